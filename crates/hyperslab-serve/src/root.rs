//! Resolves names to locations. Nothing outside the served folder can be reached: not by `..`, not by an absolute
//! path, not through a symbolic link.

use std::path::{Path, PathBuf};

use hyperslab::{Error, OpenOptions, Result, is_remote};

use crate::answer::Failure;

/// The served location.
#[derive(Debug, Clone)]
pub(crate) enum Root {
    /// One local store.
    Store {
        /// The name that requests use.
        name: String,
        /// The path with links resolved.
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

/// The location of a named store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Located {
    /// The normalised name.
    pub(crate) name: String,
    /// The path with links resolved, or the URL.
    pub(crate) path: PathBuf,
    /// The folder that links must not lead out of; `None` for a URL.
    pub(crate) within: Option<PathBuf>,
}

impl Root {
    /// Examines a location.
    pub(crate) fn new(location: &Path, options: &OpenOptions) -> Result<Self> {
        if is_remote(location) {
            let text = location.to_string_lossy();
            let plain = text.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
            let name = plain.rsplit('/').next().unwrap_or("store").to_owned();
            hyperslab::detect(location, &options.clone().with_mapped(false))?;
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

    /// The name of the only store; `None` for a folder.
    pub(crate) fn only_store(&self) -> Option<&str> {
        match self {
            Self::Store { name, .. } | Self::Remote { name, .. } => Some(name),
            Self::Folder(_) => None,
        }
    }

    /// The folder of stores; `None` for a single store.
    pub(crate) fn folder(&self) -> Option<&Path> {
        if let Self::Folder(path) = self { Some(path) } else { None }
    }

    /// Locates the store with this name. An empty name refers to the only store.
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

    /// Removes the local path of the served folder from a message, so that only names as in requests remain.
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

/// Resolves a name inside a folder, with all links.
pub(crate) fn inside(folder: &Path, name: &str) -> Result<PathBuf, Failure> {
    let path = folder.join(name).canonicalize().map_err(|error| match error.kind() {
        std::io::ErrorKind::PermissionDenied => Failure::no_permission(),
        _ => Failure::no_file(),
    })?;
    if path.starts_with(folder) { Ok(path) } else { Err(Failure::no_file()) }
}

/// Normalises a name: parts joined by single slashes. Returns `None` for a name that could lead elsewhere.
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
    fn names_cannot_leave_the_folder() {
        for name in ["..", "../x", "a/../b", "/etc/passwd", "a//b", "./a", "a\\..\\b", "a\0b"] {
            assert_eq!(clean_name(name), None, "{name:?}");
        }
        assert_eq!(clean_name("a/b.zarr/").as_deref(), Some("a/b.zarr"));
        assert_eq!(clean_name("").as_deref(), Some(""));
        // Only a part that is exactly two dots refers to the parent.
        assert_eq!(clean_name("..a/...").as_deref(), Some("..a/..."));
    }

    #[cfg(unix)]
    #[test]
    fn links_out_of_the_folder_are_hidden() -> std::io::Result<()> {
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
