//! Node names that are not valid file names: no target format writes outside its own folder, and nothing is left
//! behind.
#![cfg(all(feature = "zarr", feature = "tiledb"))]

use std::path::Path;
use std::sync::Arc;

use hyperslab::convert::{ConvertOptions, Progress, convert};
use hyperslab::{
    ArraySpec, Attributes, CreateOptions, DType, Depth, Elements, Error, Format, Grid, Node, OpenStore,
    Report, Result, Store, create,
};

/// A store with one array under a name that no library would write: `/group/NAME`, or `/NAME`.
#[derive(Debug)]
struct Hostile {
    name: Arc<str>,
    group: String,
    array: String,
    content: OpenStore,
}

impl Store for Hostile {
    fn format(&self) -> &'static str {
        "hdf5"
    }

    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn children(&self, path: &str) -> Result<Vec<String>> {
        Ok(if path == "/" { vec![self.group.clone()] } else { vec![self.array.clone()] })
    }

    fn node(&self, path: &str) -> Result<Node> {
        match path {
            "/" => Ok(Node::Group(Attributes::new())),
            path if path == format!("/{}", self.group) => Ok(Node::Group(Attributes::new())),
            path if path == format!("/{}/{}", self.group, self.array) => self.content.node("/"),
            _ => Err(Error::not_found(Arc::clone(&self.name), path)),
        }
    }

    fn verify(&self, _: Depth, _: &mut Report) -> Result<()> {
        Ok(())
    }
}

fn write_npy(path: &Path) -> Result<()> {
    let mut sink = create(path, Format::NPY, &CreateOptions::default())?;
    let array = sink.array("/", &ArraySpec::new(DType::UInt8, Grid::new(&[3], &[3])?))?;
    let chunk = [0].as_slice().into();
    array.write(&chunk, array.encode(&chunk, &Elements::fixed(vec![1, 2, 3]))?)?;
    sink.commit()
}

/// All files and folders below a folder, with the bytes of files.
#[expect(clippy::unwrap_used, reason = "a failure here is a failure of the test")]
fn tree(folder: &Path, found: &mut Vec<(String, Vec<u8>)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        found.push((path.display().to_string(), std::fs::read(&path).unwrap_or_default()));
        if path.is_dir() {
            tree(&path, found);
        }
    }
}

#[test]
fn hostile_names_are_rejected_and_nothing_is_written() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let content = folder.path().join("content.npy");
    write_npy(&content)?;
    // The target's folder is two levels down, so that files written outside it are found.
    let inner = folder.path().join("outer").join("inner");
    std::fs::create_dir_all(&inner).unwrap();
    let (mut before, long) = (Vec::new(), "x".repeat(256));
    tree(folder.path(), &mut before);
    let everywhere = ["..", ".", "", "...", "/etc", "../../up", "a\\b", "nul\0", &long];
    let zarr = ["zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata"];
    let timed = "__1_1_0123456789abcdef0123456789abcdef_22";
    let tiledb = ["__schema", "__meta", "__fragments", "__commits", "__labels", "__tiledb_group.tdb", timed];
    for (format, target, reserved) in [
        (Format::ZARR, "out.zarr", &zarr[..]),
        (Format::TILEDB, "out.tiledb", &tiledb[..]),
        (Format::NPZ, "out.npz", &["x.npy"][..]),
    ] {
        for name in everywhere.iter().chain(reserved) {
            for (group, array) in [(*name, "a"), ("group", *name)] {
                if format == Format::NPZ && group == "x.npy" {
                    continue; // Only the last part gets an extension.
                }
                let source = Hostile {
                    name: "hostile.h5".into(),
                    group: group.to_owned(),
                    array: array.to_owned(),
                    content: hyperslab::open(&content)?,
                };
                let source = OpenStore::from_store(Arc::new(source), "hostile.h5");
                let (options, progress) = (ConvertOptions::default(), Progress::default());
                let done = convert(&source, &inner.join(target), format, &options, &progress);
                assert!(done.is_err(), "{group:?}/{array:?} to {target}");
                let mut after = Vec::new();
                tree(folder.path(), &mut after);
                assert!(before == after, "{group:?}/{array:?} to {target} left something behind");
            }
        }
    }
    Ok(())
}
