//! Names to locations. Nothing outside the served folder can be named: not by `..`, not by an absolute path, not through a
//! symbolic link.

use std::path::{Path, PathBuf};

use hyperslab::{Error, OpenOptions, Result, is_remote};

use crate::answer::Failure;

/// What is served.
#[derive(Debug, Clone)]
pub(crate) enum Root {
    /// One store of this machine.
    Store {
        /// The name that requests use.
        name: String,
        /// Where it is, links resolved.
        path: PathBuf,
    },
    /// All stores below a folder.
    Folder(PathBuf),
    /// One store at a URL.
    Remote {
        /// The name that requests use.
        name: String,
        /// The address.
        url: PathBuf,
    },
}

/// Where a named store is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Located {
    /// Its one spelling.
    pub(crate) name: String,
    /// The path, links resolved, or the URL.
    pub(crate) path: PathBuf,
    /// The folder that links must not lead out of; `None` for a URL.
    pub(crate) within: Option<PathBuf>,
}

impl Root {
    /// Looks at a location.
    pub(crate) fn new(location: &Path, options: &OpenOptions) -> Result<Self> {
        if is_remote(location) {
            let text = location.to_string_lossy();
            let plain = text.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
            let name = plain.rsplit('/').next().unwrap_or("store").to_owned();
            return Ok(Self::Remote { name, url: location.to_owned() });
        }
        let failed = |source| Error::io(location.display().to_string(), source);
        let path = location.canonicalize().map_err(failed)?;
        match hyperslab::detect(&path, &options.clone().with_mapped(false)) {
            Ok(_) => {}
            Err(_) if path.is_dir() => return Ok(Self::Folder(path)),
            Err(error) => return Err(error),
        }
        let shown = location.file_name().or_else(|| path.file_name());
        let name = shown.map_or_else(|| "store".to_owned(), |name| name.to_string_lossy().into_owned());
        Ok(Self::Store { name, path })
    }

    /// The name of the only store.
    pub(crate) fn only_store(&self) -> Option<&str> {
        match self {
            Self::Store { name, .. } | Self::Remote { name, .. } => Some(name),
            Self::Folder(_) => None,
        }
    }

    /// The folder of stores, where one is served.
    pub(crate) fn folder(&self) -> Option<&Path> {
        if let Self::Folder(path) = self { Some(path) } else { None }
    }

    /// Where the store of this name is. Without a name, the only store.
    pub(crate) fn resolve(&self, name: &str) -> Result<Located, Failure> {
        let clean = clean_name(name).ok_or_else(Failure::no_file)?;
        match self {
            Self::Store { name, path } if clean.is_empty() || clean == *name => {
                Ok(Located { name: name.clone(), path: path.clone(), within: Some(path.clone()) })
            }
            Self::Remote { name, url } if clean.is_empty() || clean == *name => {
                Ok(Located { name: name.clone(), path: url.clone(), within: None })
            }
            Self::Folder(folder) => {
                let path = inside(folder, &clean)?;
                Ok(Located { name: clean, path, within: Some(folder.clone()) })
            }
            _ => Err(Failure::no_file()),
        }
    }

    /// Messages name files as requests do: where the folder is on this machine is nobody's business.
    pub(crate) fn hide(&self, message: &str) -> String {
        let hidden = match self {
            Self::Store { name, path } => return message.replace(&*path.to_string_lossy(), name),
            Self::Folder(folder) => folder,
            Self::Remote { .. } => return message.to_owned(),
        };
        let folder = hidden.to_string_lossy();
        message.replace(&format!("{}/", folder.trim_end_matches('/')), "").replace(&*folder, ".")
    }
}

/// The path of a name inside a folder, all links resolved.
pub(crate) fn inside(folder: &Path, name: &str) -> Result<PathBuf, Failure> {
    let path = folder.join(name).canonicalize().map_err(|error| match error.kind() {
        std::io::ErrorKind::PermissionDenied => Failure::no_permission(),
        _ => Failure::no_file(),
    })?;
    if path.starts_with(folder) { Ok(path) } else { Err(Failure::no_file()) }
}

/// A name in its one spelling: parts joined by single slashes. `None` for one that could lead elsewhere.
fn clean_name(name: &str) -> Option<String> {
    let mut parts = Vec::new();
    if name.contains(['\\', '\0', ':']) && (cfg!(windows) || name.contains(['\\', '\0'])) {
        return None;
    }
    for part in name.trim_end_matches('/').split('/') {
        match part {
            "" if name.is_empty() || name == "/" => {}
            "" | "." | ".." => return None,
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_climb() {
        for name in ["..", "../x", "a/../b", "/etc/passwd", "a//b", "./a", "a\\..\\b", "a\0b"] {
            assert_eq!(clean_name(name), None, "{name:?}");
        }
        assert_eq!(clean_name("a/b.zarr/").as_deref(), Some("a/b.zarr"));
        assert_eq!(clean_name("").as_deref(), Some(""));
        // Only a part that is exactly two dots climbs.
        assert_eq!(clean_name("..a/...").as_deref(), Some("..a/..."));
    }

    #[cfg(unix)]
    #[test]
    fn links_out_of_the_folder_are_not_there() -> std::io::Result<()> {
        let outer = tempfile::tempdir()?;
        let folder = outer.path().canonicalize()?.join("served");
        std::fs::create_dir(&folder)?;
        std::fs::write(outer.path().join("secret.npy"), b"x")?;
        std::fs::write(folder.join("own.npy"), b"x")?;
        std::os::unix::fs::symlink(outer.path().join("secret.npy"), folder.join("link.npy"))?;
        std::os::unix::fs::symlink(folder.join("own.npy"), folder.join("inner.npy"))?;
        let root = Root::Folder(folder.clone());
        assert!(root.resolve("link.npy").is_err());
        assert!(root.resolve("../secret.npy").is_err());
        assert_eq!(root.resolve("inner.npy").unwrap().path, folder.join("own.npy"));
        assert_eq!(root.hide(&format!("{}/own.npy: damaged", folder.display())), "own.npy: damaged");
        Ok(())
    }
}
