//! Small stores that claim far more objects, rows or ids than they have. Each is refused at a cost in proportion to its size.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use hyperslab_core::{
    ArraySpec, Attribute, Attributes, ChunkCoord, DType, Depth, Elements, Error, Geometry, GeometryQuery,
    Grid, Report, Sink, Store,
};
use hyperslab_zarr::ZarrSink;
use hyperslab_zvf::{Fragment, encode_fragments};
use serde_json::{Value, json};

/// A store with one axis and one chunk.
struct Claims {
    rows: u64,
    fragments: Vec<Fragment>,
    /// The fragments of the only object.
    named: Vec<i64>,
    /// The number of objects in the index.
    objects: u64,
    /// The range of ids of each group.
    group: [i64; 2],
    groups: u64,
    bin: f64,
}

impl Default for Claims {
    fn default() -> Self {
        Self {
            rows: 4,
            fragments: vec![Fragment::Range { start: 0, count: 4 }],
            named: vec![0],
            objects: 1,
            group: [0, 1],
            groups: 1,
            bin: 5.0,
        }
    }
}

fn attributes(object: &Value) -> Attributes {
    let entries = object.as_object().into_iter().flatten();
    entries.map(|(name, value)| (name.as_str(), Attribute::Json(value.clone()))).collect()
}

fn array(sink: &mut dyn Sink, path: &str, count: u64, own: &Value, cell: Option<Vec<u8>>) {
    let chunk = if cell.is_some() { 1 } else { count };
    let mut spec = ArraySpec::new(DType::Bytes, Grid::new(&[count], &[chunk]).unwrap());
    spec.attributes = attributes(own);
    let array = sink.array(path, &spec).unwrap();
    let first: ChunkCoord = [0].as_slice().into();
    if let Some(cell) = cell {
        array.write(&first, array.encode(&first, &Elements::variable([cell])).unwrap()).unwrap();
    }
}

impl Claims {
    fn write(&self, target: &Path) {
        let mut sink: Box<dyn Sink> = Box::new(ZarrSink::create(target, Default::default()).unwrap());
        let root = json!({
            "zarr_vectors": {"zv_version": "0.9.2", "chunk_shape": [10.0, 10.0], "bounds": [[0.0, 0.0], [9.0, 9.0]],
                "geometry_types": ["point_cloud"], "base_bin_shape": [self.bin, self.bin]},
            "multiscales": [{"axes": [{"name": "y", "type": "space"}, {"name": "x", "type": "space"}],
                "datasets": [{"path": "0"}]}],
        });
        sink.group("/", &attributes(&root)).unwrap();
        let level = json!({"zarr_vectors_level": {"level": 0, "arrays_present": ["vertices"]}});
        sink.group("/0", &attributes(&level)).unwrap();
        let cells = |own: Value, cell: Vec<u8>, path: &str, sink: &mut dyn Sink| {
            let mut own = own;
            own["nonempty_chunks"] = json!(["0.0"]);
            let mut spec = ArraySpec::new(DType::Bytes, Grid::new(&[1, 1], &[1, 1]).unwrap());
            spec.attributes = attributes(&own);
            let array = sink.array(path, &spec).unwrap();
            let first: ChunkCoord = [0, 0].as_slice().into();
            array.write(&first, array.encode(&first, &Elements::variable([cell])).unwrap()).unwrap();
        };
        let vertices = vec![0; self.rows as usize * 8];
        cells(json!({"zv_array": "vertices", "dtype": "float32"}), vertices, "/0/vertices", &mut *sink);
        let index = encode_fragments(&self.fragments, self.rows).unwrap();
        cells(json!({"encoding": "fragment_index_v1"}), index, "/0/vertex_fragments", &mut *sink);
        if self.objects > 0 {
            let own = json!({"layout": "vlen_manifests_v1", "num_objects": self.objects, "sid_ndim": 2});
            sink.group("/0/object_index", &attributes(&own)).unwrap();
            let mut manifest = 1_u32.to_le_bytes().to_vec();
            manifest.extend([0; 16]);
            manifest.push(2);
            manifest.extend((self.named.len() as u32).to_le_bytes());
            manifest.extend(self.named.iter().flat_map(|fragment| fragment.to_le_bytes()));
            let stored = (self.objects == 1).then_some(manifest);
            array(&mut *sink, "/0/object_index/manifests", self.objects, &json!({}), stored);
            let ranges: serde_json::Map<String, Value> =
                (0..self.groups).map(|group| (group.to_string(), json!(self.group))).collect();
            let own = json!({"zv_array": "groups", "num_groups": self.groups, "group_ranges": ranges});
            array(&mut *sink, "/0/groups", self.groups, &own, None);
        }
        sink.commit().unwrap();
    }

    /// The outcome of a query of everything, and of one of the first group; and whether a deep check passes.
    fn outcomes(&self) -> ([Option<Error>; 2], bool) {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("claims.zv");
        self.write(&target);
        let store = hyperslab_zvf::open_path(&target).unwrap();
        let mut report = Report::default();
        store.verify(Depth::Deep, &mut report).unwrap();
        let _ = store.details();
        let geometry = store.geometry().unwrap();
        let group = GeometryQuery { groups: vec![0], ..GeometryQuery::default() };
        ([GeometryQuery::default(), group].map(|query| geometry.query(&query).err()), report.ok())
    }
}

#[track_caller]
fn assert_corrupt(found: Option<Error>, text: &str) {
    let error = found.unwrap();
    assert!(error.is_corrupt() && error.to_string().contains(text), "{error}");
}

#[test]
fn modest_claims_are_read() {
    let ([all, group], verified) = Claims::default().outcomes();
    assert!(all.is_none() && group.is_none() && verified, "{all:?} {group:?}");
    let shared = Claims { named: vec![0; 1000], ..Claims::default() };
    let ([all, group], _) = shared.outcomes();
    assert!(all.is_none() && group.is_none(), "{all:?} {group:?}");
}

#[test]
fn fragments_that_share_all_rows_are_refused() {
    let rows = 4000;
    let all = Fragment::Range { start: 0, count: rows };
    let claims = Claims { rows, fragments: vec![all; 40_000], ..Claims::default() };
    let ([all, group], verified) = claims.outcomes();
    assert_corrupt(all, "ranges of 160000000 rows");
    assert_corrupt(group, "ranges of 160000000 rows");
    assert!(!verified);
}

#[test]
fn objects_that_repeat_fragments_are_refused() {
    let rows = 4000;
    let fragments = vec![Fragment::Range { start: 0, count: rows }];
    let claims = Claims { rows, fragments, named: vec![0; 100_000], ..Claims::default() };
    let ([all, group], _) = claims.outcomes();
    assert_corrupt(all, "the file's size can justify");
    assert_corrupt(group, "the file's size can justify");
}

#[test]
fn objects_that_are_not_stored_are_refused() {
    let ([all, group], verified) = Claims { objects: 1 << 40, ..Claims::default() }.outcomes();
    assert_corrupt(all, "almost none of them stored");
    assert_corrupt(group, "almost none of them stored");
    assert!(!verified);
}

#[test]
fn groups_of_all_integers_are_refused() {
    let ([all, group], verified) = Claims { group: [0, 1 << 32], ..Claims::default() }.outcomes();
    assert!(all.is_none(), "{all:?}");
    assert_corrupt(group, "group range");
    assert!(!verified);
    let ([_, group], _) = Claims { group: [i64::MIN, i64::MAX], ..Claims::default() }.outcomes();
    assert_corrupt(group, "group range");
    // Each is modest, but not all together.
    let ([_, group], verified) = Claims { group: [0, 1 << 20], groups: 1000, ..Claims::default() }.outcomes();
    assert!(matches!(group, Some(Error::Invalid(_))) && !verified);
}

/// Without objects, the fragments of points are bins. Their number exceeds 64 bits.
#[test]
fn bins_beyond_all_numbers_are_counted() {
    let (found, _) = Claims { bin: 1e-300, objects: 0, ..Claims::default() }.outcomes();
    assert!(found[0].is_none(), "{found:?}");
}
