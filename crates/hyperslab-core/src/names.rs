//! Names that become file names.
//!
//! A node's name comes from a file that may be hostile. Every name is checked here before it becomes part of a local path:
//! [`NodeNames`] checks the nodes that a directory format writes, [`join_inside`] checks all other names.

use std::path::{Component, Path, PathBuf};

use crate::{Error, Result};

/// The longest file name that common file systems allow, in bytes.
const LONGEST_NAME: usize = 255;

/// The rules for node names of a directory format. Each part of a node's path becomes a folder.
///
/// ```
/// use hyperslab_core::NodeNames;
/// let names = NodeNames::new("Zarr", |name| name == "zarr.json");
/// assert_eq!(names.key("out.zarr", "/group/array")?, "group/array");
/// assert!(names.key("out.zarr", "/../array").is_err());
/// assert!(names.key("out.zarr", "/group/zarr.json").is_err());
/// # Ok::<(), hyperslab_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct NodeNames {
    format: &'static str,
    is_reserved: fn(&str) -> bool,
}

impl NodeNames {
    /// The rules of a format that reserves some names.
    #[must_use]
    pub const fn new(format: &'static str, is_reserved: fn(&str) -> bool) -> Self {
        Self { format, is_reserved }
    }

    /// The node's path below the store: `a/b` for `/a/b`, empty for the root.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) if a part of it cannot be a folder name in this format.
    pub fn key(&self, store: &str, path: &str) -> Result<String> {
        let key = path.strip_prefix('/').unwrap_or(path);
        if key.is_empty() {
            return Ok(String::new());
        }
        for name in key.split('/') {
            self.check(name).map_err(|why| {
                Error::invalid(format!(
                    "{store}: cannot write the node {path:?}: {why}; rename it in the source or leave it out"
                ))
            })?;
        }
        Ok(key.to_owned())
    }

    /// Checks a name that becomes one part of a node's path, such as a column name.
    ///
    /// # Errors
    ///
    /// As [`key`](Self::key).
    pub fn name(&self, store: &str, name: &str) -> Result<()> {
        self.check(name).map_err(|why| {
            Error::invalid(format!("{store}: cannot write {name:?}: {why}; rename it or leave it out"))
        })
    }

    fn check(&self, name: &str) -> Result<(), String> {
        if let Some(why) = unusable(name) {
            return Err(why.to_owned());
        }
        if (self.is_reserved)(name) {
            return Err(format!("{} reserves the name {name:?} for its own files", self.format));
        }
        Ok(())
    }
}

/// Why a name cannot be a file name; `None` if it can.
fn unusable(name: &str) -> Option<&'static str> {
    // Names that consist of periods can lead elsewhere. Zarr forbids all of them.
    if name.is_empty() {
        Some("its name is empty")
    } else if name.bytes().all(|byte| byte == b'.') {
        Some("its name consists only of periods")
    } else if name.contains(['/', '\\']) || (cfg!(windows) && name.contains(':')) {
        Some("its name contains a path separator")
    } else if name.contains('\0') {
        Some("its name contains a NUL character")
    } else if name.len() > LONGEST_NAME {
        Some("its name is longer than the 255 bytes that file systems allow")
    } else {
        None
    }
}

/// Joins a key to a folder. The key comes from a file, so it must not lead out of the folder.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) for an absolute key or one that contains `..`.
pub fn join_inside(folder: &Path, key: &str) -> Result<PathBuf> {
    let relative = Path::new(key);
    if relative.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
        Ok(folder.join(relative))
    } else {
        Err(Error::invalid(format!("{}: the name {key:?} leads out of the directory", folder.display())))
    }
}

/// Joins a key to a folder, for removal. Unlike [`join_inside`], this also refuses a key that leads out of the folder through a
/// symbolic link: reading through such a link is harmless, removing its target is not.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) for a key that leads out of the folder.
pub fn removable_inside(folder: &Path, key: &str) -> Result<PathBuf> {
    let path = join_inside(folder, key)?;
    // A link at the end of the path is itself removed, so only its parent folder matters.
    let (Ok(real), Some(Ok(above))) = (folder.canonicalize(), path.parent().map(Path::canonicalize)) else {
        return Ok(path); // Nothing exists here, so nothing can be removed.
    };
    if path.file_name().is_none() || path == folder || !above.starts_with(&real) {
        return Err(Error::invalid(format!(
            "{}: not removing {key:?}, which leads out of the directory; remove the symbolic link",
            folder.display()
        )));
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: NodeNames = NodeNames::new("Test", |name| name == "reserved");

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        let long = "x".repeat(256);
        let names = ["", ".", "..", "...", "a\\b", "a\0b", "reserved", &long, "/etc"];
        for name in names {
            let error = NAMES.key("store", &format!("/group/{name}")).unwrap_err().to_string();
            assert!(error.starts_with("store: cannot write the node \"/group/"), "{error}");
            assert!(error.contains("rename it"), "{error}");
            assert!(NAMES.name("store", name).is_err(), "{name:?}");
        }
        assert!(NAMES.key("store", "//etc/passwd").is_err());
        assert!(NAMES.key("store", "a//b").is_err());
        assert!(NAMES.key("store", "/a/").is_err());
    }

    #[test]
    fn usual_names_are_kept() -> Result<()> {
        for name in ["a", "a b", ".hidden", "..a", "größe", "a:b", "__x__", "c", "0.0", &"x".repeat(255)] {
            if !(cfg!(windows) && name.contains(':')) {
                assert_eq!(NAMES.key("store", &format!("/group/{name}"))?, format!("group/{name}"));
            }
        }
        assert_eq!(NAMES.key("store", "/")?, "");
        assert_eq!(NAMES.key("store", "")?, "");
        assert_eq!(NAMES.key("store", "a/b")?, "a/b");
        Ok(())
    }

    #[test]
    fn keys_stay_inside() -> Result<()> {
        let folder = Path::new("store");
        assert_eq!(join_inside(folder, "a/b")?, folder.join("a/b"));
        for key in ["..", "a/../..", "/etc/passwd", "a/../b"] {
            assert!(join_inside(folder, key).is_err(), "{key}");
        }
        Ok(())
    }

    #[test]
    #[cfg(unix)]
    fn nothing_is_removed_behind_a_link() -> Result<()> {
        let folder = tempfile::tempdir().unwrap();
        let (store, outside) = (folder.path().join("store"), folder.path().join("outside"));
        std::fs::create_dir_all(store.join("own")).unwrap();
        std::fs::create_dir(&outside).unwrap();
        std::os::unix::fs::symlink(&outside, store.join("link")).unwrap();
        removable_inside(&store, "own/x")?;
        removable_inside(&store, "own")?;
        removable_inside(&store, "missing/x")?;
        // The link itself belongs to the store.
        removable_inside(&store, "link")?;
        for key in ["link/x", "", ".", "../outside"] {
            assert!(removable_inside(&store, key).is_err(), "{key}");
        }
        Ok(())
    }
}
