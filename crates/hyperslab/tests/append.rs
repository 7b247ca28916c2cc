//! Appends behave the same in every format that supports them, and uncommitted changes are never visible.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hyperslab::{
    ArraySpec, Attributes, CreateOptions, DType, Elements, Error, Fill, Filter, Format, Grid, Node,
    OpenStore, Region, RegionWriter, Selection, Sink, Values, create, extend,
};
use proptest::prelude::*;
use serde_json::json;

/// A format, and how it stores arrays that grow.
#[derive(Debug, Clone)]
struct Kind {
    format: Format,
    filters: Vec<Filter>,
    /// The number of chunks per shard along each axis.
    shards: Option<u64>,
}

fn kinds() -> Vec<Kind> {
    let mut kinds = Vec::new();
    for format in [Format::TET, Format::HDF5, Format::TILEDB, Format::ZARR] {
        for filters in [Vec::new(), vec![Filter::new("zstd").with("level", 1)]] {
            kinds.push(Kind { format, filters, shards: None });
        }
    }
    kinds.push(Kind { format: Format::ZARR, filters: vec![Filter::new("zstd")], shards: Some(2) });
    kinds
}

impl Kind {
    fn path(&self, folder: &Path) -> PathBuf {
        folder.join(format!("t.{}", self.format.info().extensions[0]))
    }

    /// Writes `/t` with these values and no maximum length.
    fn write(&self, path: &Path, chunk: &[u64], values: &Values) {
        let shard_shape = self.shards.map(|each| chunk.iter().map(|extent| extent * each).collect());
        let options = CreateOptions::default().with_shard_shape(shard_shape);
        let mut sink = create(path, self.format, &options).unwrap();
        sink.group("/", &Attributes::new()).unwrap();
        let mut spec = ArraySpec::new(values.dtype.clone(), Grid::new(&values.shape, chunk).unwrap())
            .with_filters(self.filters.clone());
        spec.max_shape = vec![None; chunk.len()];
        let array = RegionWriter::new(sink.array("/t", &spec).unwrap(), values.dtype.clone(), Fill::Zero);
        array.assign(&Region::whole(&values.shape), values).unwrap();
        array.finish().unwrap();
        drop(array);
        sink.commit().unwrap();
    }

    fn append(&self, path: &Path) -> Box<dyn Sink> {
        create(path, self.format, &CreateOptions::default().with_append(true)).unwrap()
    }

    /// An uncommitted append that makes the array longer.
    fn extended(&self, path: &Path, axis: usize, values: &Values) -> Box<dyn Sink> {
        let store = hyperslab::open(path).unwrap();
        let mut sink = self.append(path);
        extend(&mut *sink, &store.array("/t").unwrap(), "/t", axis, values).unwrap();
        sink
    }
}

fn read(path: &Path, node: &str) -> Values {
    let store = hyperslab::open(path).unwrap();
    let values = store.array(node).unwrap().read(&Selection::all()).unwrap();
    let report = store.verify(hyperslab::Depth::Deep).unwrap();
    assert!(report.ok(), "{}: {report:?}", path.display());
    values
}

fn attributes_of(store: &OpenStore, node: &str) -> serde_json::Map<String, serde_json::Value> {
    match store.node(node).unwrap() {
        Node::Group(attributes) => attributes.to_json(),
        Node::Array(array) => array.schema().attributes.to_json(),
        _ => serde_json::Map::new(),
    }
}

fn numbers(shape: &[u64], first: u32) -> Values {
    let count = shape.iter().product::<u64>() as u32;
    let bytes: Vec<u8> = (first..first + count).flat_map(u32::to_ne_bytes).collect();
    Values::new(DType::UInt32, shape, Elements::fixed(bytes)).unwrap()
}

/// The values of both, concatenated.
fn joined(one: &Values, other: &Values, axis: usize) -> Values {
    let inner: u64 = one.shape[axis + 1..].iter().product();
    let outer: u64 = one.shape[..axis].iter().product();
    let (a, b) = ((one.shape[axis] * inner) as usize, (other.shape[axis] * inner) as usize);
    let picks: Vec<(usize, usize)> = (0..outer as usize)
        .flat_map(|at| {
            (at * a..(at + 1) * a).map(|cell| (0, cell)).chain((at * b..(at + 1) * b).map(|cell| (1, cell)))
        })
        .collect();
    let elements = Elements::gather(&one.dtype, &[&one.elements, &other.elements], &picks).unwrap();
    let mut shape = one.shape.to_vec();
    shape[axis] += other.shape[axis];
    Values::new(one.dtype.clone(), &shape, elements).unwrap()
}

/// Every file below a folder.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.insert(path.clone(), std::fs::read(&path).unwrap());
        }
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn appended_values_follow_existing_ones(
        shape in prop::collection::vec(1_u64..7, 1..4), chunk in 1_u64..4,
        steps in prop::collection::vec((0_usize..3, 0_u64..6), 1..4),
    ) {
        for kind in kinds() {
            let folder = tempfile::tempdir().unwrap();
            let path = kind.path(folder.path());
            let mut expected = numbers(&shape, 1);
            kind.write(&path, &vec![chunk; shape.len()], &expected);
            for (number, (axis, more)) in steps.iter().enumerate() {
                let axis = axis % shape.len();
                let mut added = expected.shape.to_vec();
                added[axis] = *more;
                let new = numbers(&added, 10_000 * (number as u32 + 1));
                kind.extended(&path, axis, &new).commit().unwrap();
                expected = joined(&expected, &new, axis);
                prop_assert_eq!(&read(&path, "/t"), &expected, "{:?}", kind);
            }
            prop_assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing beside it");
        }
    }
}

#[test]
fn texts_are_appended_to_partial_chunks() {
    let texts = |words: &[&str]| {
        Values::new(DType::String, &[words.len() as u64], Elements::variable(words)).unwrap()
    };
    for kind in kinds().into_iter().filter(|kind| kind.format != Format::TET) {
        let folder = tempfile::tempdir().unwrap();
        let path = kind.path(folder.path());
        kind.write(&path, &[4], &texts(&["a", "", "ccc", "dd", "e"]));
        kind.extended(&path, 0, &texts(&["f", "gg"])).commit().unwrap();
        kind.extended(&path, 0, &texts(&["h", "i", "jj"])).commit().unwrap();
        let all = texts(&["a", "", "ccc", "dd", "e", "f", "gg", "h", "i", "jj"]);
        assert_eq!(read(&path, "/t"), all, "{kind:?}");
    }
}

/// A dropped append leaves every byte unchanged. A killed one leaves the readable content unchanged.
#[test]
fn uncommitted_appends_are_invisible() {
    for kind in kinds() {
        let folder = tempfile::tempdir().unwrap();
        let path = kind.path(folder.path());
        let old = numbers(&[5, 3], 1);
        kind.write(&path, &[2, 2], &old);
        let before = files(folder.path());
        drop(kind.extended(&path, 0, &numbers(&[4, 3], 100)));
        assert_eq!(files(folder.path()), before, "{kind:?}");
        std::mem::forget(kind.extended(&path, 0, &numbers(&[4, 3], 100)));
        assert_eq!(read(&path, "/t"), old, "{kind:?}");
    }
}

/// A commit that was killed before it wrote the document or schema that makes it visible: the array is unchanged, and
/// the next append does not see the leftovers.
#[test]
fn interrupted_commits_are_invisible() {
    for kind in kinds().into_iter().filter(|kind| [Format::ZARR, Format::TILEDB].contains(&kind.format)) {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (path, done) = (kind.path(folder.path()), kind.path(other.path()));
        let old = numbers(&[5, 3], 1);
        kind.write(&path, &[2, 2], &old);
        for (name, bytes) in files(&path) {
            let target = done.join(name.strip_prefix(&path).unwrap());
            std::fs::create_dir_all(target.parent().unwrap()).unwrap();
            std::fs::write(target, bytes).unwrap();
        }
        kind.extended(&done, 0, &numbers(&[4, 3], 100)).commit().unwrap();
        for (name, bytes) in files(&done) {
            let below = name.strip_prefix(&done).unwrap();
            if !below.ends_with("zarr.json") && !below.iter().any(|part| part == "__schema") {
                let target = path.join(below);
                std::fs::create_dir_all(target.parent().unwrap()).unwrap();
                std::fs::write(target, bytes).unwrap();
            }
        }
        assert_eq!(read(&path, "/t"), old, "{kind:?}");
        // The fill value, whose chunks a store may leave out.
        let zeros = Values::new(DType::UInt32, &[3, 3], Elements::fixed(vec![0; 36])).unwrap();
        kind.extended(&path, 0, &zeros).commit().unwrap();
        assert_eq!(read(&path, "/t"), joined(&old, &zeros, 0), "{kind:?}");
    }
}

#[test]
fn nodes_and_attributes_are_added_and_replaced() {
    for format in [Format::HDF5, Format::ZARR] {
        let folder = tempfile::tempdir().unwrap();
        let kind = Kind { format, filters: Vec::new(), shards: None };
        let path = kind.path(folder.path());
        kind.write(&path, &[2], &numbers(&[3], 1));
        let set = |list: &[(&str, serde_json::Value)]| {
            list.iter().map(|(name, value)| (*name, value.clone())).collect::<Attributes>()
        };
        let mut sink = kind.append(&path);
        sink.attributes("/t", &set(&[("units", json!("K")), ("range", json!([1, 2]))])).unwrap();
        sink.group("/", &set(&[("title", json!("one"))])).unwrap();
        sink.group("/g/deep", &set(&[("n", json!(1))])).unwrap();
        let spec = ArraySpec::new(DType::UInt8, Grid::new(&[4], &[2]).unwrap());
        let array = RegionWriter::new(sink.array("/g/x", &spec).unwrap(), DType::UInt8, Fill::Zero);
        let bytes = Values::new(DType::UInt8, &[4], Elements::fixed(vec![1, 2, 3, 4])).unwrap();
        array.assign(&Region::whole(&[4]), &bytes).unwrap();
        drop(array);
        assert!(sink.array("/t", &spec).is_err(), "it exists already");
        assert!(sink.array("/t/below", &spec).is_err(), "its parent is an array");
        assert!(sink.group("/t", &Attributes::new()).is_err(), "it is not a group");
        assert!(matches!(sink.attributes("/none", &set(&[("a", json!(1))])), Err(Error::NotFound { .. })));
        assert!(hyperslab::open(&path).unwrap().array("/g/x").is_err());
        sink.commit().unwrap();
        assert_eq!(read(&path, "/g/x"), bytes);

        let store = hyperslab::open(&path).unwrap();
        let mut sink = kind.append(&path);
        extend(&mut *sink, &store.array("/t").unwrap(), "/t", 0, &numbers(&[2], 4)).unwrap();
        sink.attributes("/t", &set(&[("units", json!("degrees Celsius"))])).unwrap();
        sink.attributes("/", &set(&[("title", json!(2))])).unwrap();
        sink.commit().unwrap();
        let store = hyperslab::open(&path).unwrap();
        let attributes = |node: &str| attributes_of(&store, node);
        assert_eq!(
            serde_json::Value::Object(attributes("/t")),
            json!({"units": "degrees Celsius", "range": [1, 2]})
        );
        assert_eq!(attributes("/")["title"], json!(2));
        assert_eq!(attributes("/g/deep")["n"], json!(1));
        assert_eq!(read(&path, "/t"), numbers(&[5], 1));
    }
}

#[test]
fn unsupported_appends_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let options = CreateOptions::default().with_append(true);
    for (format, words) in [(Format::HDF5, "can grow to 3"), (Format::TILEDB, "is full")] {
        let kind = Kind { format, filters: vec![Filter::new("zstd")], shards: None };
        let path = kind.path(folder.path());
        let mut sink = create(&path, format, &CreateOptions::default()).unwrap();
        let spec =
            ArraySpec::new(DType::UInt32, Grid::new(&[3], &[2]).unwrap()).with_filters(kind.filters.clone());
        let array = RegionWriter::new(sink.array("/t", &spec).unwrap(), DType::UInt32, Fill::Zero);
        array.assign(&Region::whole(&[3]), &numbers(&[3], 1)).unwrap();
        array.finish().unwrap();
        drop(array);
        sink.commit().unwrap();
        let store = hyperslab::open(&path).unwrap();
        let mut sink = create(&path, format, &options).unwrap();
        let why = extend(&mut *sink, &store.array("/t").unwrap(), "/t", 0, &numbers(&[1], 4)).unwrap_err();
        assert!(why.to_string().contains(words), "{why}");
        assert!(sink.grow("/t", &[2]).is_err());
        assert!(sink.grow("/none", &[9]).is_err());
        if format == Format::TILEDB {
            let why = sink.array("/new", &spec).unwrap_err();
            assert!(why.is_unsupported(), "{why}");
            assert!(sink.group("/new", &Attributes::new()).unwrap_err().is_unsupported());
            assert!(sink.array("/t", &spec).is_err());
        }
    }
    let two = numbers(&[3, 4], 1);
    let kind = Kind { format: Format::TILEDB, filters: Vec::new(), shards: None };
    let path = folder.path().join("two.tiledb");
    kind.write(&path, &[2, 2], &two);
    // Several axes grow at once, and none becomes shorter.
    assert!(kind.append(&path).grow("/t", &[5, 6]).is_ok());
    assert!(kind.append(&path).grow("/t", &[5, 3]).is_err());
}

/// Metadata of arrays and groups of TileDB is replaced too.
#[test]
fn metadata_of_tiledb_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let kind = Kind { format: Format::TILEDB, filters: Vec::new(), shards: None };
    let path = kind.path(folder.path());
    kind.write(&path, &[2], &numbers(&[3], 1));
    for words in ["one", "another"] {
        let mut sink = kind.append(&path);
        sink.attributes("/t", &Attributes::from_iter([("units", words)])).unwrap();
        sink.attributes("/", &Attributes::from_iter([("title", words)])).unwrap();
        assert!(sink.attributes("/none", &Attributes::new()).is_err());
        sink.commit().unwrap();
        let store = hyperslab::open(&path).unwrap();
        assert_eq!(attributes_of(&store, "/t")["units"], words);
        assert_eq!(attributes_of(&store, "/")["title"], words);
    }
}
