//! Work shared by all targets: list, describe, read and deeply check a store that opened.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Once;

use hyperslab_core::{
    Array, Depth, Geometry, GeometryQuery, Node, Positions, Report, Scan, Store, Table, child_path,
    decoded_bytes, needs_elements, read_serial,
};

/// The maximum number of nodes and chunks visited: enough to reach every parser, and few enough to stay fast.
const MOST_NODES: usize = 60;
const MOST_CHUNKS: usize = 40;

/// Makes the caller's thread the only one of rayon's pool, because passing small inputs between threads takes longer
/// than reading them.
pub fn set_up() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let _ = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global();
    });
}

/// Runs the whole reader. Errors are valid results.
pub fn drive(store: &dyn Store) {
    set_up();
    let mut pending = vec!["/".to_owned()];
    let mut seen = 0;
    while let Some(path) = pending.pop() {
        seen += 1;
        if seen > MOST_NODES {
            break;
        }
        match store.node(&path) {
            Ok(Node::Group(attributes)) => {
                let _ = attributes.to_json();
                let children = store.children(&path).unwrap_or_default();
                pending.extend(children.iter().take(MOST_NODES).map(|child| child_path(&path, child)));
            }
            Ok(Node::Array(array)) => read(array.as_ref()),
            Ok(Node::Table(table)) => scan(table.as_ref()),
            Ok(Node::Geometry(geometry)) => query(geometry.as_ref()),
            _ => {}
        }
    }
    let _ = store.details();
    let _ = store.verify(Depth::Deep, &mut Report::default());
}

fn read(array: &dyn Array) {
    let schema = array.schema();
    let _ = schema.attributes.to_json();
    let mut chunks = 0;
    let _ = array.visit_chunks(&mut |chunk, reference| {
        let _ = array.locate(std::slice::from_ref(&chunk));
        if !needs_elements(array)
            && let Ok(size) = decoded_bytes(array, &chunk, &reference)
            && size < 1 << 20
            && let Ok(stored) = hyperslab_core::fetch(array, &reference.spans().collect::<Vec<_>>())
        {
            let _ = array.decode(&chunk, &reference, &stored, &mut vec![0; size]);
        }
        chunks += 1;
        Ok(if chunks < MOST_CHUNKS { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    });
    let cells = hyperslab_core::product(schema.shape()).unwrap_or(u64::MAX);
    if cells < 1 << 14 && schema.bytes().is_none_or(|bytes| bytes < 1 << 18) {
        let _ = read_serial(array, Positions::whole(schema.shape()));
    }
}

fn scan(table: &dyn Table) {
    let _ = table.rows();
    if let Ok(batches) = table.scan(&Scan::default()) {
        let _ = batches.take(8).count();
    }
}

fn query(geometry: &dyn Geometry) {
    let _ = geometry.levels();
    let _ = geometry.query(&GeometryQuery::default());
}

/// The objects in an input: for each two bytes for the length of its name, four for its own length, the name and the
/// content. Truncated objects end early.
#[must_use]
pub fn objects(mut bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut objects = Vec::new();
    while let Some((lengths, rest)) = bytes.split_first_chunk::<6>() {
        let name = usize::from(u16::from_le_bytes([lengths[0], lengths[1]]));
        let length = u32::from_le_bytes([lengths[2], lengths[3], lengths[4], lengths[5]]) as usize;
        let Some((name, rest)) = rest.split_at_checked(name) else { break };
        let (object, rest) = rest.split_at(length.min(rest.len()));
        objects.push((String::from_utf8_lossy(name).into_owned(), object.to_vec()));
        bytes = rest;
    }
    objects
}

/// The files that a target mutates, by name.
///
/// # Panics
///
/// If there are none.
#[must_use]
pub fn seeds(family: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(family);
    let mut found = Vec::new();
    collect(&folder, &folder, &mut found);
    assert!(!found.is_empty(), "no files in {}", folder.display());
    found
}

/// The objects of each golden store in a folder. `name` is the store's name in each subfolder.
///
/// # Panics
///
/// If there are none.
#[must_use]
pub fn stores(folder: &str, name: &str) -> Vec<Vec<(String, Vec<u8>)>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder);
    let mut paths: Vec<_> = std::fs::read_dir(&folder).into_iter().flatten().flatten().collect();
    paths.sort_by_key(std::fs::DirEntry::file_name);
    let mut found = Vec::new();
    for store in paths.iter().map(|entry| entry.path().join(name)).filter(|path| path.is_dir()) {
        let mut objects = Vec::new();
        collect(&store, &store, &mut objects);
        found.push(objects);
    }
    assert!(!found.is_empty(), "no stores in {}", folder.display());
    found
}

/// All files below a folder, with their paths relative to the root.
fn collect(root: &Path, folder: &Path, found: &mut Vec<(String, Vec<u8>)>) {
    let mut entries: Vec<_> = std::fs::read_dir(folder).into_iter().flatten().flatten().collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for path in entries.iter().map(std::fs::DirEntry::path) {
        if path.is_dir() {
            collect(root, &path, found);
        } else if let (Ok(bytes), Ok(name)) = (std::fs::read(&path), path.strip_prefix(root)) {
            found.push((name.to_string_lossy().into_owned(), bytes));
        }
    }
}
