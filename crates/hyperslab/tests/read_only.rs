//! Opening, reading and checking a store never writes: the bytes and times of all files stay the same.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use hyperslab::repair::repair_path;
use hyperslab::{
    ArraySpec, Attributes, ChunkCoord, CreateOptions, DType, Depth, Elements, Format, Grid, OpenOptions,
    Result, Selection, create, open_with,
};

fn write(path: &Path, format: Format) -> Result<()> {
    let mut sink = create(path, format, &CreateOptions::default())?;
    sink.group("/", &Attributes::new())?;
    let spec = ArraySpec::new(DType::UInt8, Grid::new(&[4], &[4])?);
    let array = sink.array(if format.info().capabilities.several_arrays { "/a" } else { "/" }, &spec)?;
    let chunk = ChunkCoord::from_slice(&[0]);
    array.write(&chunk, array.encode(&chunk, &Elements::fixed(vec![1, 2, 3, 4]))?)?;
    drop(array);
    sink.commit()
}

/// Every file and folder, with its bytes and modification time.
fn state(folder: &Path) -> BTreeMap<PathBuf, (Option<Vec<u8>>, SystemTime)> {
    let mut found = BTreeMap::new();
    let mut pending = vec![folder.to_owned()];
    while let Some(path) = pending.pop() {
        let modified = std::fs::metadata(&path).unwrap().modified().unwrap();
        if path.is_dir() {
            pending.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            found.insert(path, (None, modified));
        } else {
            let bytes = std::fs::read(&path).unwrap();
            found.insert(path, (Some(bytes), modified));
        }
    }
    found
}

fn set_readonly(folder: &Path, readonly: bool) {
    for path in state(folder).into_keys() {
        let mut permissions = std::fs::metadata(&path).unwrap().permissions();
        permissions.set_readonly(readonly);
        std::fs::set_permissions(&path, permissions).unwrap();
    }
}

#[test]
fn reading_changes_no_file() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let formats: Vec<Format> =
        Format::all().into_iter().filter(|format| format.info().capabilities.create).collect();
    for format in &formats {
        write(&folder.path().join(format.name()), *format)?;
    }
    // A file that only has the name of a redo file.
    std::fs::write(folder.path().join("tet.redo"), "something else").unwrap();
    set_readonly(folder.path(), true);
    let before = state(folder.path());
    for format in &formats {
        let path = folder.path().join(format.name());
        for mapped in [true, false] {
            let options = OpenOptions::default().with_mapped(mapped);
            let store = open_with(&path, &options)?;
            let values = store.array(&store.only_node()?)?.read(&Selection::all())?;
            assert_eq!(values.as_slice::<u8>(), Some(&[1, 2, 3, 4][..]), "{format}");
            store.catalog()?;
            assert!(store.verify(Depth::Deep)?.ok(), "{format}");
            assert!(repair_path(&path, &options, true)?.fixes.is_empty(), "{format}");
        }
        assert_eq!(state(folder.path()), before, "{format}");
    }
    set_readonly(folder.path(), false);
    Ok(())
}
