//! Other files that a file refers to: external links, external raw data, sources of virtual datasets.

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hyperslab_core::{Blob, Directory, LocalDirectory, MappedBlob, Result};

/// Finds the other files that a file refers to.
pub trait Externals: Send + Sync + Debug {
    /// The file of this name, as it is written in the file that refers to it; `None` when there is none, or
    /// none that may be opened.
    ///
    /// # Errors
    ///
    /// When it is there and cannot be opened.
    fn open(&self, name: &str) -> Result<Option<External>>;
}

/// Another file, and how names in *it* are found.
#[derive(Debug, Clone)]
pub struct External {
    /// Its bytes.
    pub blob: Arc<dyn Blob>,
    /// Names in it are relative to its own folder.
    pub externals: Arc<dyn Externals>,
}

/// No other file is ever opened.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoExternals;

impl Externals for NoExternals {
    fn open(&self, _name: &str) -> Result<Option<External>> {
        Ok(None)
    }
}

/// Files of one folder and the folders below it; names that lead out of it are not opened, unless asked for.
#[derive(Debug, Clone)]
pub struct Folder {
    root: PathBuf,
    /// The folder, below the root, of the file that refers to others.
    within: PathBuf,
    anywhere: bool,
}

impl Folder {
    /// Files in and below this folder.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), within: PathBuf::new(), anywhere: false }
    }

    /// Also files outside the folder, by absolute names or by names that climb.
    #[must_use]
    pub const fn anywhere(mut self) -> Self {
        self.anywhere = true;
        self
    }

    /// The name relative to the root, where it stays inside.
    fn inside(&self, name: &Path) -> Option<PathBuf> {
        let mut parts = Vec::new();
        for part in self.within.join(name).components() {
            match part {
                std::path::Component::Normal(part) => parts.push(part.to_owned()),
                std::path::Component::CurDir => {}
                std::path::Component::ParentDir => {
                    parts.pop()?;
                }
                _ => return None,
            }
        }
        Some(parts.iter().collect())
    }

    fn open_inside(&self, relative: &Path) -> Result<Option<External>> {
        let Some(key) = relative.to_str() else { return Ok(None) };
        let Some(blob) = LocalDirectory::new(&self.root).open(key)? else { return Ok(None) };
        let within = relative.parent().map(Path::to_path_buf).unwrap_or_default();
        Ok(Some(External { blob, externals: Arc::new(Self { within, ..self.clone() }) }))
    }
}

impl Externals for Folder {
    fn open(&self, name: &str) -> Result<Option<External>> {
        let name = Path::new(name);
        if self.anywhere {
            let path = self.root.join(&self.within).join(name);
            if path.is_file() {
                let folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
                let blob = Arc::new(MappedBlob::open(&path)?);
                return Ok(Some(External { blob, externals: Arc::new(Self::new(folder).anywhere()) }));
            }
        }
        if let Some(relative) = self.inside(name)
            && let Some(found) = self.open_inside(&relative)?
        {
            return Ok(Some(found));
        }
        // A file that was moved with its neighbours still names them by their old folder: libhdf5 then looks
        // beside the file.
        match name.file_name() {
            Some(last) => self.open_inside(&self.within.join(last)),
            None => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_inside_the_folder() {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("root");
        std::fs::create_dir_all(root.join("sub")).unwrap();
        std::fs::write(outer.path().join("secret"), "s").unwrap();
        std::fs::write(root.join("a"), "a").unwrap();
        std::fs::write(root.join("sub/b"), "b").unwrap();
        let folder = Folder::new(&root);
        assert!(folder.open("../secret").unwrap().is_none());
        assert!(folder.open(outer.path().join("secret").to_str().unwrap()).unwrap().is_none());
        assert!(folder.open("./a").unwrap().is_some());
        let below = folder.open("sub/b").unwrap().unwrap().externals;
        assert!(below.open("../a").unwrap().is_some());
        assert!(below.open("b").unwrap().is_some());
        assert!(below.open("../../secret").unwrap().is_none());
        assert!(folder.clone().anywhere().open("../secret").unwrap().is_some());
    }
}
