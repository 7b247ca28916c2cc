//! The content of a store as comparable text.

use std::hash::{DefaultHasher, Hasher};
use std::path::Path;

use hyperslab::{Depth, Node, OpenOptions, OpenStore, Result, hash, open_with};

/// The extensions of files that are not stores.
const PLAIN: [&str; 6] = ["csv", "json", "arrow", "parquet", "ply", "obj"];

/// The content at a path as our reader sees it: every node with its type, shape, attributes and the hash of its
/// values, after a deep check. If the reader rejects the content, the text contains a hash of the bytes, so that
/// different damaged files are not mistaken for each other.
#[must_use]
pub fn of(path: &Path) -> String {
    if path.symlink_metadata().is_err() {
        return ABSENT.to_owned();
    }
    let ending = path.extension().unwrap_or_default().to_string_lossy();
    if PLAIN.contains(&&*ending) {
        return bytes_of(path);
    }
    match nodes(path) {
        Ok(text) => text,
        Err(problem) => format!("{REFUSED} {problem}\n{}", bytes_of(path)),
    }
}

/// The content of a missing target.
pub const ABSENT: &str = "absent";

/// The start of the text for content that the reader rejects.
pub const REFUSED: &str = "refused:";

fn nodes(path: &Path) -> Result<String> {
    // Not mapped, because a damaged file must not end this process.
    of_store(&open_with(path, &OpenOptions::default().with_mapped(false))?)
}

/// The content of a store.
///
/// # Errors
///
/// Any error from reading.
pub fn of_store(store: &OpenStore) -> Result<String> {
    let mut lines = vec![store.format().to_owned()];
    store.walk(&mut |path, node| {
        let line = match node? {
            Node::Group(attributes) => format!("group {path} {:?}", attributes.to_json()),
            Node::Array(array) => {
                let schema = array.schema();
                let (shape, attributes) = (schema.shape(), schema.attributes.to_json());
                format!("array {path} {} {shape:?} {attributes:?}", schema.dtype)
            }
            _ => format!("node {path}"),
        };
        lines.push(line);
        Ok(())
    })?;
    for (path, value) in hash::nodes(store, "/")? {
        lines.push(format!("hash {path} {}", value.to_hex()));
    }
    let report = store.verify(Depth::Deep)?;
    if !report.ok() {
        lines.push(format!("damage {report:?}"));
    }
    Ok(lines.join("\n"))
}

fn bytes_of(path: &Path) -> String {
    let mut hasher = DefaultHasher::new();
    let mut files = Vec::new();
    list(path, &mut files);
    files.sort();
    for file in files {
        hasher.write(file.strip_prefix(path).unwrap_or(&file).as_os_str().as_encoded_bytes());
        hasher.write(&std::fs::read(&file).unwrap_or_default());
    }
    format!("bytes {:016x}", hasher.finish())
}

fn list(path: &Path, files: &mut Vec<std::path::PathBuf>) {
    match std::fs::read_dir(path) {
        Ok(entries) => entries.flatten().for_each(|entry| list(&entry.path(), files)),
        Err(_) => files.push(path.to_owned()),
    }
}
