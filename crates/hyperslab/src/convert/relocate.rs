//! Adjusts the relative names of other files for a store in another folder.

use std::path::{Component, Path, PathBuf};

/// The name as a store at `target` must spell it, if that differs: for a relative name of an existing file beside the source, and
/// a target in another folder.
pub(super) fn relocated(name: &str, source: &Path, target: &Path) -> Option<String> {
    if name.is_empty() || name == "." || Path::new(name).is_absolute() {
        return None;
    }
    let (from, to) = (folder(source)?, folder(target)?);
    // A name pattern does not name a single file.
    if from == to || !(name.contains("%b") || from.join(name).exists()) {
        return None;
    }
    let shared = from.components().zip(to.components()).take_while(|(a, b)| a == b).count();
    let up = to.components().skip(shared).map(|_| Component::ParentDir);
    let path: PathBuf =
        up.chain(from.components().skip(shared)).chain(Path::new(name).components()).collect();
    path.to_str().map(|path| path.replace('\\', "/"))
}

fn folder(path: &Path) -> Option<PathBuf> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or_else(|| Path::new(".")).canonicalize().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_the_same_file_from_another_folder() {
        let root = tempfile::tempdir().unwrap();
        for folder in ["a/b", "c"] {
            std::fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        std::fs::write(root.path().join("a/b/x.h5"), "x").unwrap();
        let at = |path: &str| root.path().join(path);
        let name = |name: &str, to: &str| relocated(name, &at("a/b/s.h5"), &at(to));
        assert_eq!(name("x.h5", "c/t.h5").as_deref(), Some("../a/b/x.h5"));
        assert_eq!(name("x.h5", "a/t.h5").as_deref(), Some("b/x.h5"));
        assert_eq!(name("x%b.h5", "c/t.h5").as_deref(), Some("../a/b/x%b.h5"));
        assert_eq!(name("x.h5", "a/b/t.h5"), None);
        assert_eq!(name("missing.h5", "c/t.h5"), None);
        assert_eq!(name(".", "c/t.h5"), None);
        assert_eq!(name("/x.h5", "c/t.h5"), None);
    }
}
