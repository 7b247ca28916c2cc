//! Salvage of truncated and damaged stores of every format.

#![cfg(all(feature = "zarr", feature = "tiledb"))]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

use hyperslab::convert::{ConvertOptions, Progress, convert};
use hyperslab::salvage::{SalvageReport, salvage};
use hyperslab::{
    ArraySpec, Attributes, CreateOptions, DType, Elements, Format, Grid, OpenOptions, Region, RegionWriter,
    Scan, Selection, Values, create, format_named, open,
};

fn save(path: &Path, target: &Path) -> hyperslab::Result<SalvageReport> {
    let (open, options) = (OpenOptions::default(), ConvertOptions::default());
    salvage(path, target, None, &open, &options, &Progress::default())
}

/// A store of arrays of 100 × 3 numbers, counting from zero.
fn store(path: &Path, format: &str, nodes: &[&str]) {
    let (format, variant) = format_named(format).unwrap();
    let mut sink = create(path, format, &CreateOptions::default().with_variant(variant)).unwrap();
    if nodes != ["/"] {
        sink.group("/", &Attributes::new()).unwrap();
    }
    let spec = ArraySpec::new(DType::Int32, Grid::new(&[100, 3], &[10, 3]).unwrap());
    let arrays: Vec<_> = nodes.iter().map(|node| sink.array(node, &spec).unwrap()).collect();
    for array in arrays {
        let bytes: Vec<u8> = (0..300_i32).flat_map(i32::to_ne_bytes).collect();
        let writer = RegionWriter::new(array, DType::Int32, spec.fill.clone());
        let values = Values::new(DType::Int32, &[100, 3], Elements::fixed(bytes)).unwrap();
        writer.assign(&Region::whole(&[100, 3]), &values).unwrap();
        writer.finish().unwrap();
    }
    sink.commit().unwrap();
}

fn cut(path: &Path, eighths: usize) -> PathBuf {
    let bytes = std::fs::read(path).unwrap();
    let cut = path.with_file_name(format!("cut_{}", path.file_name().unwrap().to_str().unwrap()));
    std::fs::write(&cut, &bytes[..bytes.len() * eighths / 8]).unwrap();
    cut
}

fn numbers(path: &Path, node: &str) -> Vec<i32> {
    open(path).unwrap().array(node).unwrap().read_vec(&Selection::all()).unwrap()
}

fn rows(path: &Path) -> u64 {
    open(path).unwrap().table("/").unwrap().count(&Scan::default()).unwrap()
}

#[test]
fn whole_rows_of_a_truncated_npy_file_are_saved() {
    let folder = tempfile::tempdir().unwrap();
    let (path, out) = (folder.path().join("n.npy"), folder.path().join("saved.npy"));
    store(&path, "npy", &["/"]);
    let report = save(&cut(&path, 5), &out).unwrap();
    let lost = &report.lost[0];
    let rows = i32::try_from(lost.positions.clone().unwrap().start).unwrap();
    assert!((50..65).contains(&rows) && report.lost.len() == 1, "{:?}", report.lost);
    assert_eq!(numbers(&out, "/"), (0..rows * 3).collect::<Vec<_>>());
    // Bytes after the data are ignored.
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.extend_from_slice(b"more");
    std::fs::write(&path, bytes).unwrap();
    assert!(open(&path).is_err());
    assert!(save(&path, &folder.path().join("other.npy")).unwrap().lost.is_empty());
    // A header alone holds nothing.
    std::fs::write(&path, &std::fs::read(&path).unwrap()[..64]).unwrap();
    assert!(save(&path, &folder.path().join("none.npy")).is_err());
}

#[test]
fn whole_members_of_truncated_archives_are_saved() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("several.npz");
    store(&path, "npz", &["/a", "/b", "/c", "/d"]);
    let out = folder.path().join("saved.npz");
    let report = save(&cut(&path, 5), &out).unwrap();
    let lost: Vec<&str> = report.lost.iter().map(|lost| lost.node.as_str()).collect();
    assert_eq!(lost, ["/", "/c"]);
    assert!(report.lost[0].reason.contains("2 whole members"), "{}", report.lost[0].reason);
    assert_eq!(open(&out).unwrap().children("/").unwrap(), ["a", "b"]);
    assert_eq!(numbers(&out, "/b"), (0..300).collect::<Vec<_>>());

    let path = folder.path().join("store.zarr.zip");
    store(&path, "zarr3-zip", &["/a"]);
    let out = folder.path().join("saved.zarr");
    let (open_options, options) = (OpenOptions::default(), ConvertOptions::default());
    let cut = cut(&path, 5);
    let report =
        salvage(&cut, &out, Some(Format::ZARR), &open_options, &options, &Progress::default()).unwrap();
    assert!(report.lost.iter().any(|lost| lost.node == "/" && lost.reason.contains("appear unwritten")));
    let saved = numbers(&out, "/a");
    let whole = saved.iter().zip(0..).filter(|(found, own)| *found == own).count();
    assert!((30..270).contains(&whole), "{whole} of 300 values");
    assert!(saved.iter().zip(0..).all(|(found, own)| *found == own || *found == 0));
}

#[test]
fn fragments_without_damage_are_saved() {
    let folder = tempfile::tempdir().unwrap();
    let (csv, more) = (folder.path().join("rows.csv"), folder.path().join("more.csv"));
    let lines: String = (0..500).map(|row| format!("{row},{}.5\n", row * 2)).collect();
    std::fs::write(&csv, format!("x,value\n{lines}")).unwrap();
    std::fs::write(&more, "x,value\n1000,1.5\n1001,2.5\n1002,3.5\n").unwrap();
    let path = folder.path().join("rows.tiledb");
    let table = hyperslab::convert::TableOptions::default().with_dimensions(vec!["x".to_owned()]);
    let options = ConvertOptions::default().with_table(table);
    convert(&open(&csv).unwrap(), &path, Format::TILEDB, &options, &Progress::default()).unwrap();
    let append = ConvertOptions::default().with_append(true);
    convert(&open(&more).unwrap(), &path, Format::TILEDB, &append, &Progress::default()).unwrap();
    let mut fragments: Vec<PathBuf> =
        std::fs::read_dir(path.join("__fragments")).unwrap().map(|entry| entry.unwrap().path()).collect();
    fragments.sort();
    assert_eq!(fragments.len(), 2);
    for (damaged, left) in [(1, 500), (0, 3)] {
        let file = fragments[damaged].join("a0.tdb");
        let whole = std::fs::read(&file).unwrap();
        std::fs::write(&file, &whole[..whole.len() / 2]).unwrap();
        for target in ["saved.csv", "saved.tiledb"] {
            let out = folder.path().join(format!("{damaged}_{target}"));
            let report = save(&path, &out).unwrap();
            assert_eq!(report.lost.len(), 1, "{:?}", report.lost);
            let reason = &report.lost[0].reason;
            assert!(reason.starts_with(&format!("the {} rows of the fragment", 503 - left)), "{reason}");
            assert_eq!(rows(&out), left);
        }
        std::fs::write(&file, &whole).unwrap();
    }
    assert!(save(&path, &folder.path().join("whole.tiledb")).unwrap().lost.is_empty());
}

#[cfg(feature = "arrow")]
#[test]
fn intact_batches_of_arrow_files_are_saved() {
    let folder = tempfile::tempdir().unwrap();
    let (source, path) = (folder.path().join("n.csv"), folder.path().join("n.arrow"));
    // More rows than a batch holds, with a dictionary beside the numbers.
    let text: String = (0..200_000).map(|row| format!("{row},{}\n", row % 7)).collect();
    std::fs::write(&source, format!("a,b\n{text}")).unwrap();
    hyperslab::convert::convert_to_rows(
        &open(&source).unwrap(),
        &path,
        &ConvertOptions::default(),
        &Progress::default(),
    )
    .unwrap();
    assert!(save(&path, &folder.path().join("whole.arrow")).unwrap().lost.is_empty());
    assert_eq!(rows(&folder.path().join("whole.arrow")), 200_000);
    let out = folder.path().join("saved.csv");
    let report = save(&cut(&path, 6), &out).unwrap();
    assert!(report.lost[0].reason.contains("the file ends in this batch"), "{:?}", report.lost);
    let saved = std::fs::read_to_string(&out).unwrap();
    let count = saved.lines().count() - 1;
    assert!((65_536..200_000).contains(&count), "{count}");
    assert_eq!(saved.lines().last().unwrap(), format!("{},{}", count - 1, (count - 1) % 7));
    // A batch whose buffers lie outside it is left out.
    let mut bytes = std::fs::read(&path).unwrap();
    let schema_only = folder.path().join("cut.arrow");
    bytes.truncate(300);
    std::fs::write(&schema_only, bytes).unwrap();
    assert!(
        save(&schema_only, &folder.path().join("none.csv")).is_err_and(|why| !why.to_string().is_empty())
    );
}
