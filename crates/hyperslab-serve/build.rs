//! Lists the files of the page that `cargo xtask page` built, for the feature `h5web`.

use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var_os("CARGO_FEATURE_H5WEB").is_none() {
        return;
    }
    println!("cargo::rerun-if-env-changed=HYPERSLAB_PAGE");
    let page = std::env::var_os("HYPERSLAB_PAGE")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/page"), PathBuf::from);
    println!("cargo::rerun-if-changed={}", page.display());
    let mut files = Vec::new();
    list(&page, &page, &mut files);
    if !files.iter().any(|(name, _)| name == "index.html") {
        println!("cargo::error=there is no page in {}: run `cargo xtask page` first", page.display());
        return;
    }
    files.sort();
    let lines: Vec<String> = files
        .iter()
        .map(|(name, path)| {
            format!("({name:?}, include_bytes!({:?}) as &[u8]),\n", path.display().to_string())
        })
        .collect();
    let Some(out) = std::env::var_os("OUT_DIR") else { return };
    let target = Path::new(&out).join("h5web.rs");
    if let Err(error) = std::fs::write(&target, format!("&[\n{}]\n", lines.concat())) {
        println!("cargo::error={}: {error}", target.display());
    }
}

/// Lists all files below a folder: names with slashes, and absolute paths.
fn list(root: &Path, folder: &Path, files: &mut Vec<(String, PathBuf)>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            list(root, &path, files);
        } else if let (Ok(name), Ok(absolute)) = (path.strip_prefix(root), path.canonicalize()) {
            files.push((name.to_string_lossy().replace('\\', "/"), absolute));
        }
    }
}
