//! Deep checks of damaged tiles.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "common/sparse.rs"]
mod sparse;

use std::path::{Path, PathBuf};

use hyperslab_core::{Depth, Elements, Report, Store};
use hyperslab_tiledb::{OpenOptions, WriteOptions, create_sparse, open_path, write_sparse};

fn words(values: impl IntoIterator<Item = i32>) -> Elements {
    Elements::fixed(values.into_iter().flat_map(i32::to_le_bytes).collect::<Vec<u8>>())
}

/// Creates five tiles of 10,000 cells each without filters, enough for several threads.
fn sparse(path: &Path) {
    let schema = sparse::schema(10_000, 999_999);
    create_sparse(path, &schema, &WriteOptions::default()).unwrap();
    write_sparse(path, &[words(0..50_000), words(0..50_000)], &WriteOptions::default()).unwrap();
}

/// A file of the only fragment.
fn file(path: &Path, name: &str) -> PathBuf {
    let fragment = std::fs::read_dir(path.join("__fragments")).unwrap().next().unwrap().unwrap();
    fragment.path().join(name)
}

/// All findings that are not OK, using this many threads.
fn failures(path: &Path, threads: usize) -> Vec<String> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let mut report = Report::default();
    let store = open_path(path, OpenOptions::default()).unwrap();
    pool.install(|| store.verify(Depth::Deep, &mut report)).unwrap();
    let failed = report.findings.iter().filter(|finding| !finding.ok);
    failed.map(|finding| format!("{}: {}", finding.check, finding.detail.as_deref().unwrap_or(""))).collect()
}

/// Changes the first cell of tiles 1 and 3. A stored tile is an 8-byte header and one chunk: a 12-byte header and its
/// cells.
fn change(file: &Path) {
    let mut bytes = std::fs::read(file).unwrap();
    let tile_bytes = bytes.len() / 5;
    for tile in [1, 3] {
        bytes[tile * tile_bytes + 20 + 2] ^= 1;
    }
    std::fs::write(file, bytes).unwrap();
}

#[test]
fn cells_outside_their_boxes_are_reported_per_tile() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("array");
    sparse(&path);
    assert_eq!(failures(&path, 1), [""; 0]);
    change(&file(&path, "d0.tdb"));
    let told = failures(&path, 1);
    assert_eq!(told.len(), 2);
    for (told, tile) in told.iter().zip([1, 3]) {
        assert!(told.starts_with("rtree: "), "{told}");
        assert!(told.contains(&format!("1 cells of tile {tile} lie outside its box along \"x\"")), "{told}");
    }
    assert_eq!(told, failures(&path, 4));
}

#[test]
fn wrong_statistics_are_reported_per_tile() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("array");
    sparse(&path);
    change(&file(&path, "a0.tdb"));
    let told = failures(&path, 1);
    assert_eq!(told.len(), 2);
    for (told, tile) in told.iter().zip([1, 3]) {
        assert!(told.starts_with(&format!("statistics: the statistics of tile {tile} of \"v\"")), "{told}");
    }
    assert_eq!(told, failures(&path, 4));
}
