//! Files that a file refers to: external links, external raw data, sources of virtual datasets.

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{Blob, LocalStorage, Result, Storage};

/// Opens the files that a file refers to.
pub trait Externals: Send + Sync + Debug {
    /// Opens the file with this name, as written in the file that refers to it. Returns `None` if it does not exist or may not be
    /// opened.
    ///
    /// # Errors
    ///
    /// If the file exists but cannot be opened.
    fn open(&self, name: &str) -> Result<Option<External>>;

    /// Returns true if a file with this name may not be opened. Such a file may well exist, so it must not count as missing.
    fn refuses(&self, name: &str) -> bool {
        let _ = name;
        false
    }
}

/// A file that another file refers to, and how to resolve names inside *it*.
#[derive(Debug, Clone)]
pub struct External {
    /// Its bytes.
    pub blob: Arc<dyn Blob>,
    /// Resolves names in this file, relative to its own folder.
    pub externals: Arc<dyn Externals>,
}

/// Never opens another file.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoExternals;

impl Externals for NoExternals {
    fn open(&self, _name: &str) -> Result<Option<External>> {
        Ok(None)
    }

    fn refuses(&self, _name: &str) -> bool {
        true
    }
}

/// Files in the folder that holds a file, and in the folders below it. A name that leads out of the folder is not opened.
#[derive(Debug, Clone)]
pub struct Siblings {
    storage: Arc<dyn Storage>,
    /// The folder, below the root, of the referring file.
    within: String,
}

impl Siblings {
    /// Opens files of this storage.
    #[must_use]
    pub const fn new(storage: Arc<dyn Storage>) -> Self {
        Self { storage, within: String::new() }
    }

    /// The key for a name, if it stays inside the folder.
    fn key(&self, name: &str) -> Option<String> {
        if name.starts_with('/') || name.contains('\0') {
            return None;
        }
        let mut parts: Vec<&str> = self.within.split('/').filter(|part| !part.is_empty()).collect();
        for part in name.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    parts.pop()?;
                }
                part => parts.push(part),
            }
        }
        Some(parts.join("/"))
    }

    fn open_key(&self, key: &str) -> Result<Option<External>> {
        if key.is_empty() {
            return Ok(None);
        }
        let Some(blob) = self.storage.open(key)? else { return Ok(None) };
        let within = key.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
        Ok(Some(External { blob, externals: Arc::new(Self { within, ..self.clone() }) }))
    }
}

impl Externals for Siblings {
    fn open(&self, name: &str) -> Result<Option<External>> {
        if let Some(key) = self.key(name)
            && let Some(found) = self.open_key(&key)?
        {
            return Ok(Some(found));
        }
        // A file that was moved together with its neighbours still names them by their old folder, and an absolute name may lead
        // to a folder below this one. Like libhdf5, fall back to the file's own folder, but look for the longest end of the name
        // first. On other machines, where each attempt is a request, only the last part is looked for.
        let mut ends = name.match_indices('/').map(|(at, _)| &name[at + 1..]);
        let ends: Vec<&str> = match self.storage.is_remote() {
            true => ends.next_back().into_iter().collect(),
            false => ends.collect(),
        };
        for key in ends.into_iter().filter_map(|end| self.key(end)) {
            if let Some(found) = self.open_key(&key)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Names that lead out of the folder, and hidden files.
    fn refuses(&self, name: &str) -> bool {
        let is_hidden = |part: &str| part.starts_with('.') && part != "." && part != "..";
        self.key(name).is_none_or(|key| key.split('/').any(is_hidden))
    }
}

/// Any file on this machine.
#[derive(Debug, Clone)]
pub struct Anywhere {
    folder: PathBuf,
    mapped: bool,
}

impl Anywhere {
    /// Resolves names relative to this folder. Files are mapped, or read by position.
    pub fn new(folder: impl Into<PathBuf>, mapped: bool) -> Self {
        Self { folder: folder.into(), mapped }
    }

    fn open_path(&self, path: &Path) -> Result<Option<External>> {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str()))
        else {
            return Ok(None);
        };
        let storage = LocalStorage::new(folder);
        let storage = if self.mapped { storage } else { storage.unmapped() };
        let externals = Arc::new(Self::new(folder, self.mapped));
        Ok(storage.open(name)?.map(|blob| External { blob, externals }))
    }
}

impl Externals for Anywhere {
    fn open(&self, name: &str) -> Result<Option<External>> {
        if let Some(found) = self.open_path(&self.folder.join(name))? {
            return Ok(Some(found));
        }
        match Path::new(name).file_name() {
            Some(last) => self.open_path(&self.folder.join(last)),
            None => Ok(None),
        }
    }
}

/// Opens blobs at other locations: URLs of web servers and buckets.
pub trait Locations: Send + Sync + Debug {
    /// Opens the object at this URL; `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// If the object exists but cannot be opened, or no known storage serves the URL.
    fn open(&self, url: &str) -> Result<Option<Arc<dyn Blob>>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_inside_the_folder() {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("root");
        std::fs::create_dir_all(root.join("sub")).unwrap();
        for (name, content) in [("secret", "s"), ("root/a", "a"), ("root/sub/b", "b"), ("root/.hidden", "h")]
        {
            std::fs::write(outer.path().join(name), content).unwrap();
        }
        let folder = Siblings::new(Arc::new(LocalStorage::new(&root).confined()));
        assert!(folder.open("../secret").unwrap().is_none());
        assert!(folder.open(outer.path().join("secret").to_str().unwrap()).unwrap().is_none());
        assert!(folder.open(".hidden").unwrap().is_none());
        assert!(
            ["../secret", "/elsewhere/a", ".hidden", "sub/.b"].map(|name| folder.refuses(name)) == [true; 4]
        );
        assert!(!folder.refuses("./missing"));
        assert!(folder.open("./a").unwrap().is_some());
        // A file that was moved together with its neighbours, and those in folders below it.
        assert!(folder.open("/elsewhere/a").unwrap().is_some());
        assert!(folder.open("/elsewhere/sub/b").unwrap().is_some());
        assert!(folder.open(root.join("sub/b").to_str().unwrap()).unwrap().is_some());
        assert!(folder.open("/elsewhere/sub/../../secret").unwrap().is_none());
        let below = folder.open("sub/b").unwrap().unwrap().externals;
        assert!(below.open("../a").unwrap().is_some());
        assert!(below.open("b").unwrap().is_some());
        assert!(below.open("../../secret").unwrap().is_none());
        let anywhere = Anywhere::new(&root, false);
        assert!(anywhere.open("../secret").unwrap().is_some());
        assert!(anywhere.open(".hidden").unwrap().is_some());
    }

    #[test]
    #[cfg(unix)]
    fn links_out_of_the_folder_are_not_followed() {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("root");
        std::fs::create_dir_all(root.join("sub")).unwrap();
        std::fs::write(outer.path().join("secret"), "s").unwrap();
        std::fs::write(root.join("sub/b"), "b").unwrap();
        std::os::unix::fs::symlink(outer.path().join("secret"), root.join("out")).unwrap();
        std::os::unix::fs::symlink(outer.path(), root.join("folder")).unwrap();
        std::os::unix::fs::symlink("sub/b", root.join("in")).unwrap();
        let folder = Siblings::new(Arc::new(LocalStorage::new(&root).confined()));
        assert!(folder.open("out").unwrap().is_none());
        assert!(folder.open("folder/secret").unwrap().is_none());
        assert!(folder.open("in").unwrap().is_some());
    }
}
