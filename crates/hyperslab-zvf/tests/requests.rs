//! The objects that a query reads: only the chunks of its box or of its object.

use std::path::PathBuf;
use std::sync::Arc;

use hyperslab_core::{Geometry, GeometryQuery, LocalStorage};
use hyperslab_testing::{LoggedStorage, RequestLog};
use hyperslab_zvf::ZvfGeometry;

#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
fn opened(name: &str) -> (ZvfGeometry, RequestLog) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/stores").join(name);
    let directory = LoggedStorage::new(LocalStorage::new(path));
    let log = directory.log();
    let geometry = hyperslab_zvf::open(Arc::new(directory)).unwrap().geometry().unwrap();
    let _ = log.take();
    (geometry, log)
}

fn query(region: Option<[Vec<f64>; 2]>, objects: Vec<i64>) -> GeometryQuery {
    GeometryQuery { region, objects, attributes: Some(Vec::new()), ..Default::default() }
}

/// The chunks of an array among the requested objects.
fn chunks(objects: &[String], array: &str) -> Vec<String> {
    let prefix = format!("0/{array}/c/");
    objects.iter().filter_map(|key| key.strip_prefix(&prefix)).map(str::to_owned).collect()
}

#[test]
fn a_box_reads_only_its_chunks() {
    // Chunks of 50, starting at -50, so cell 0 is below zero.
    let (geometry, log) = opened("points");
    let data = geometry.query(&query(Some([vec![1.0, 1.0], vec![49.0, 49.0]]), Vec::new())).unwrap();
    assert!(data.vertices.shape[0] > 0);
    let objects = log.objects();
    assert_eq!(chunks(&objects, "vertices"), ["1/1"]);
    // The level declares that its fragments tile the rows, so the index is not needed.
    assert_eq!(objects.len(), 1, "{objects:?}");
    // Repeating the query reads nothing.
    geometry.query(&query(Some([vec![1.0, 1.0], vec![49.0, 49.0]]), Vec::new())).unwrap();
    assert!(log.objects().is_empty());
    geometry.query(&query(Some([vec![500.0, 1.0], vec![501.0, 49.0]]), Vec::new())).unwrap();
    assert!(log.objects().is_empty());
}

#[test]
fn an_object_reads_only_its_chunks() {
    let (geometry, log) = opened("streamlines");
    let all = geometry.query(&query(None, Vec::new())).unwrap();
    let every = chunks(&log.objects(), "vertices");
    assert!(every.len() > 2);
    let (short, _) = all.objects.iter().min_by_key(|(_, rows)| rows.len()).unwrap();
    let (geometry, log) = opened("streamlines");
    let data = geometry.query(&query(None, vec![*short])).unwrap();
    let objects = log.objects();
    let read = chunks(&objects, "vertices");
    assert!(
        !read.is_empty() && read.len() <= data.vertices.shape[0] as usize && read.len() < every.len(),
        "{read:?}"
    );
    assert_eq!(chunks(&objects, "vertex_fragments"), read);
    assert!(chunks(&objects, "vertex_attributes/n").is_empty());
}
