//! Checks that no more is read than an operation needs.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use hyperslab_core::{Attributes, Blob, ChunkCoord, MemoryBlob, Node, Result, Sink, Store};
use hyperslab_hdf5::{Hdf5Options, Hdf5Sink, NoExternals, open};

/// Counts the bytes requested.
#[derive(Debug)]
struct Counting {
    inner: MemoryBlob,
    bytes: AtomicU64,
    ranges: Mutex<Vec<Range<u64>>>,
}

impl Blob for Counting {
    fn name(&self) -> &Arc<str> {
        self.inner.name()
    }

    fn len(&self) -> Result<u64> {
        self.inner.len()
    }

    fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.bytes.fetch_add(ranges.iter().map(|range| range.end - range.start).sum(), Ordering::Relaxed);
        self.ranges.lock().unwrap().extend_from_slice(ranges);
        self.inner.read(ranges)
    }
}

fn golden(name: &str) -> Arc<Counting> {
    counting(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name))
}

fn counting(path: &Path) -> Arc<Counting> {
    let inner = MemoryBlob::new("counted", std::fs::read(path).unwrap());
    Arc::new(Counting { inner, bytes: AtomicU64::new(0), ranges: Mutex::default() })
}

#[test]
fn opening_reads_the_superblock_only() {
    for name in ["earliest.h5", "latest.h5"] {
        let blob = golden(name);
        open(Arc::clone(&blob) as Arc<dyn Blob>, Arc::new(NoExternals)).unwrap();
        assert!(blob.bytes.load(Ordering::Relaxed) <= 512, "{name}: {:?}", blob.ranges.lock().unwrap());
    }
}

#[test]
fn names_are_listed_without_opening_children() {
    for name in ["earliest.h5", "latest.h5"] {
        let blob = golden(name);
        let store = open(Arc::clone(&blob) as Arc<dyn Blob>, Arc::new(NoExternals)).unwrap();
        assert_eq!(store.children("/many").unwrap().len(), 20);
        // The root, the group, its names and its tree have a few kilobytes, whatever the children are.
        let read = blob.bytes.load(Ordering::Relaxed);
        assert!(read < 16 << 10, "{name}: {read} bytes, {:?}", blob.ranges.lock().unwrap());
    }
}

#[test]
fn members_of_a_listed_group_are_not_searched_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("many.h5");
    let mut sink = Hdf5Sink::create(&path, Hdf5Options::default()).unwrap();
    let names: Vec<String> = (0..500).map(|number| format!("/n{number:03}")).collect();
    names.iter().for_each(|name| sink.group(name, &Attributes::new()).unwrap());
    Box::new(sink).commit().unwrap();
    let reads = |listed: bool| {
        let blob = counting(&path);
        let store = open(Arc::clone(&blob) as Arc<dyn Blob>, Arc::new(NoExternals)).unwrap();
        let links = if listed { store.links("/") } else { Ok(None) };
        assert_eq!(links.unwrap().map_or(500, |links| links.len()), 500);
        let before = blob.ranges.lock().unwrap().len();
        assert!(names.iter().all(|name| matches!(store.node(name), Ok(Node::Group(_)))));
        let after = blob.ranges.lock().unwrap().len();
        after - before
    };
    // This saves reading the nodes of the tree and the link itself.
    let (listed, searched) = (reads(true), reads(false));
    assert!(listed + 2 * names.len() <= searched, "{listed} reads, {searched} without a list");
}

#[test]
fn one_chunk_is_found_without_the_whole_index() {
    let blob = golden("latest.h5");
    let store = open(Arc::clone(&blob) as Arc<dyn Blob>, Arc::new(NoExternals)).unwrap();
    let Node::Array(array) = store.node("/grids/long").unwrap() else { panic!("not an array") };
    let before = blob.bytes.load(Ordering::Relaxed);
    let found = array.locate(&[ChunkCoord::from_slice(&[1100])]).unwrap();
    assert!(found[0].is_some());
    // Header, index block, one super block and one data block of 128 elements; the array has room for 1500.
    let read = blob.bytes.load(Ordering::Relaxed) - before;
    assert!(read < 2048, "{read} bytes, {:?}", blob.ranges.lock().unwrap());
}
