//! The initial corpus of a target: golden files, in the target's input format.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::run::root;

/// Fills the corpus of a target from golden files and from the seed folder with its name. Without either, it starts
/// empty.
pub(super) fn write_seeds(target: &str, corpus: &Path) -> io::Result<()> {
    let own = format!("fuzz/seeds/{target}");
    if root().join(&own).is_dir() {
        copies(&own, corpus, &["py"])?;
    }
    match target {
        "hdf5" => copies("crates/hyperslab-hdf5/tests/golden", corpus, &["py", "json"]),
        "netcdf3" => copies("crates/hyperslab-netcdf3/tests/golden", corpus, &["py", "json"]),
        "tet" => copies("crates/hyperslab-tet/tests/golden", corpus, &["py", "json"]),
        "fragment_index" => copies("crates/hyperslab-zvf/tests/golden", corpus, &["py", "json"]),
        "zarr" => zarr(corpus),
        "zarr_store" | "engine" => packed("crates/hyperslab-zarr/tests/golden/stores", corpus),
        "zvf" => packed("crates/hyperslab-zvf/tests/golden/stores", corpus),
        "tiledb" => tiledb(corpus),
        "tiledb_parsers" => tiledb_files(corpus),
        _ => Ok(()),
    }
}

/// Every file below a folder.
fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let (mut files, mut pending) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() { pending.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    Ok(files)
}

fn is_named(path: &Path, names: &[&str]) -> bool {
    path.file_name().is_some_and(|name| names.iter().any(|wanted| name == *wanted))
}

/// Copies the files of a folder, except those with these extensions.
fn copies(folder: &str, corpus: &Path, but: &[&str]) -> io::Result<()> {
    for path in files(&root().join(folder))? {
        if let Some(name) = path.file_name()
            && path.extension().is_none_or(|extension| but.iter().all(|other| extension != *other))
        {
            fs::copy(&path, corpus.join(name))?;
        }
    }
    Ok(())
}

/// The documents in one line each, followed by the bytes of the array's first object.
fn zarr(corpus: &Path) -> io::Result<()> {
    let all = files(&root().join("crates/hyperslab-zarr/tests/golden"))?;
    let documents = all.iter().filter(|path| is_named(path, &["zarr.json", ".zarray"]));
    for (number, document) in documents.enumerate() {
        let folder = document.parent().unwrap_or(document);
        let object = all.iter().find(|path| {
            path.starts_with(folder) && !is_named(path, &["zarr.json", ".zarray", ".zattrs", ".zgroup"])
        });
        let mut seed = fs::read_to_string(document)?.replace('\n', " ").into_bytes();
        seed.push(b'\n');
        if let Some(object) = object {
            seed.extend(fs::read(object)?);
        }
        fs::write(corpus.join(format!("golden-{number}")), seed)?;
    }
    Ok(())
}

/// Whole stores: each object is preceded by the lengths of its name and its content.
fn packed(stores: &str, corpus: &Path) -> io::Result<()> {
    for entry in fs::read_dir(root().join(stores))? {
        let store = entry?.path();
        if !store.is_dir() {
            continue;
        }
        let mut seed = Vec::new();
        for path in files(&store)? {
            let name = path.strip_prefix(&store).unwrap_or(&path).to_string_lossy().replace('\\', "/");
            let bytes = fs::read(&path)?;
            seed.extend((name.len() as u16).to_le_bytes());
            seed.extend((bytes.len() as u32).to_le_bytes());
            seed.extend(name.as_bytes());
            seed.extend(bytes);
        }
        let name = store.file_name().unwrap_or_default().to_owned();
        fs::write(corpus.join(name), seed)?;
    }
    Ok(())
}

/// A schema, and a fragment's metadata and first file, preceded by the lengths of the first two.
fn tiledb(corpus: &Path) -> io::Result<()> {
    let all = files(&root().join("crates/hyperslab-tiledb/tests/golden"))?;
    let fragments = all.iter().filter(|path| is_named(path, &["__fragment_metadata.tdb"]));
    for (number, metadata) in fragments.enumerate() {
        let fragment = metadata.parent().unwrap_or(metadata);
        let array = fragment.ancestors().find(|folder| folder.ends_with("array"));
        let schema = all.iter().find(|path| {
            let own = array.is_some_and(|array| path.starts_with(array));
            own && path.parent().is_some_and(|folder| folder.ends_with("__schema"))
        });
        let data = all.iter().find(|path| path.parent() == Some(fragment) && *path != metadata);
        let (Some(schema), Some(data)) = (schema, data) else { continue };
        let (schema, metadata) = (fs::read(schema)?, fs::read(metadata)?);
        let (Ok(first), Ok(second)) = (u16::try_from(schema.len()), u16::try_from(metadata.len())) else {
            continue;
        };
        let lengths = [first.to_le_bytes(), second.to_le_bytes()].concat();
        fs::write(
            corpus.join(format!("golden-{number}")),
            [lengths, schema, metadata, fs::read(data)?].concat(),
        )?;
    }
    Ok(())
}

/// Every file of the arrays, preceded by a byte that selects a parser.
fn tiledb_files(corpus: &Path) -> io::Result<()> {
    let all = files(&root().join("crates/hyperslab-tiledb/tests/golden"))?;
    for (number, path) in
        all.iter().filter(|path| path.extension().is_none_or(|end| end != "json")).enumerate()
    {
        let mut seed = vec![number as u8 % 32];
        seed.extend(fs::read(path)?);
        fs::write(corpus.join(format!("golden-{number}")), seed)?;
    }
    Ok(())
}
