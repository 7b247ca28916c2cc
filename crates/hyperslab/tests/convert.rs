//! Conversions: stored bytes copied unchanged, filters carried over, provenance.

#![cfg(all(feature = "tet", feature = "zarr", feature = "tiledb"))]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::path::{Path, PathBuf};

use hyperslab::convert::{ConvertOptions, ConvertReport, PROVENANCE, Progress, convert};
use hyperslab::{
    ArraySpec, Attributes, CreateOptions, DType, Elements, Filter, Format, Grid, OpenStore, Result,
    Selection, Values, export,
};

/// 40 × 36 compressible numbers.
fn sample(folder: &Path) -> PathBuf {
    let path = folder.join("x.npy");
    let bytes: Vec<u8> = (0..1440_u32).flat_map(|i| (i / 24).to_le_bytes()).collect();
    export::write(&Values::new(DType::UInt32, &[40, 36], Elements::fixed(bytes)).unwrap(), &path, true)
        .unwrap();
    path
}

fn to(source: &Path, target: &Path, options: &ConvertOptions) -> Result<ConvertReport> {
    let format = Format::from_extension(target).unwrap();
    convert(&hyperslab::open(source)?, target, format, options, &Progress::default())
}

fn chunked(filters: Option<Vec<Filter>>) -> ConvertOptions {
    ConvertOptions::default().with_chunk_shape(vec![16, 12]).with_filters(filters)
}

fn named(names: &[&str]) -> Option<Vec<Filter>> {
    Some(names.iter().map(|name| Filter::new(*name)).collect())
}

fn values(path: &Path) -> Values {
    let store = hyperslab::open(path).unwrap();
    let node = store.only_node().unwrap();
    store.array(&node).unwrap().read(&Selection::all()).unwrap()
}

/// The stored bytes of every chunk, by coordinate.
fn stored(store: &OpenStore) -> Vec<(Vec<u64>, Vec<u8>)> {
    let array = store.array(&store.only_node().unwrap()).unwrap();
    let mut chunks = Vec::new();
    array
        .inner()
        .visit_chunks(&mut |coord, reference| {
            let bytes = hyperslab_core::fetch(&**array.inner(), &reference.spans().collect::<Vec<_>>())?;
            chunks.push((coord.to_vec(), bytes.concat()));
            Ok(std::ops::ControlFlow::Continue(()))
        })
        .unwrap();
    chunks.sort();
    chunks
}

/// Nine chunks, three of them clipped by the edge. Formats that pad chunks store those differently.
#[test]
fn stored_bytes_are_copied_if_both_sides_store_them_alike() {
    let zstd = || named(&["zstd"]);
    for (first, filters, second, copied) in [
        ("a.tet", zstd(), "b.tet", 9),
        ("a.tet", named(&[]), "b.tet", 9),
        ("a.zarr", zstd(), "b.zarr", 9),
        ("a.zarr", named(&["shuffle", "zlib", "crc32c"]), "b.zarr", 9),
        ("a.zarr", named(&["gzip"]), "b.zarr", 9),
        ("a.zarr", named(&["blosc"]), "b.zarr", 9),
        ("a.zarr", named(&["lz4"]), "b.zarr", 0),
        ("a.tet", zstd(), "b.zarr", 6),
        ("a.zarr", zstd(), "b.tet", 6),
        ("a.tet", named(&[]), "b.zarr", 6),
        ("a.zarr", named(&["gzip"]), "b.tet", 0),
        ("a.tet", zstd(), "b.tiledb", 0),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let source = sample(folder.path());
        let (a, b) = (folder.path().join(first), folder.path().join(second));
        to(&source, &a, &chunked(filters.clone())).unwrap();
        let report = to(&a, &b, &ConvertOptions::default()).unwrap();
        assert_eq!(report.copied_chunks, copied, "{first} {filters:?} {second}: {report:?}");
        assert_eq!(values(&b), values(&source), "{first} {filters:?} {second}");
        if first[1..] == second[1..] {
            assert_eq!(report.notes(), [""; 0]);
            let (a, b) = (hyperslab::open(&a).unwrap(), hyperslab::open(&b).unwrap());
            assert_eq!(stored(&a), stored(&b), "{first} {filters:?}");
        }
        let verdict = hyperslab::open(&b).unwrap().verify(hyperslab::Depth::Deep).unwrap();
        assert!(verdict.ok(), "{first} {second}: {verdict:?}");
    }
}

/// With other chunks, a selection or another pipeline, everything is decoded.
#[test]
fn chunks_stored_differently_are_encoded_again() {
    let folder = tempfile::tempdir().unwrap();
    let source = sample(folder.path());
    let a = folder.path().join("a.zarr");
    to(&source, &a, &chunked(named(&["zstd"]))).unwrap();
    let others = [
        ConvertOptions::default().with_chunk_shape(vec![16, 36]),
        ConvertOptions::default().with_filters(named(&["gzip"])),
        ConvertOptions::default().with_selection("[::-1]".parse().unwrap()),
    ];
    for (number, options) in others.iter().enumerate() {
        let b = folder.path().join(format!("b{number}.zarr"));
        assert_eq!(to(&a, &b, options).unwrap().copied_chunks, 0, "{options:?}");
        let store = hyperslab::open(&a).unwrap();
        let expected = store.array(&store.only_node().unwrap()).unwrap().read(&options.selection).unwrap();
        assert_eq!(values(&b), expected);
    }
}

#[test]
fn filters_are_kept_if_the_target_has_them() {
    let folder = tempfile::tempdir().unwrap();
    let source = sample(folder.path());
    let filters_of = |path: &Path| -> Vec<String> {
        let store = hyperslab::open(path).unwrap();
        let array = store.array(&store.only_node().unwrap()).unwrap();
        array.schema().filters.iter().map(|filter| filter.name.clone()).collect()
    };
    let (zarr, tet, tiledb) =
        (folder.path().join("a.zarr"), folder.path().join("a.tet"), folder.path().join("a.tiledb"));
    to(&source, &zarr, &chunked(named(&["shuffle", "gzip"]))).unwrap();
    let report = to(&zarr, &tet, &ConvertOptions::default()).unwrap();
    assert_eq!(report.notes(), ["/: filters shuffle and gzip not carried over: zstd instead"]);
    assert_eq!(filters_of(&tet), ["zstd"]);
    let report = to(&zarr, &tiledb, &ConvertOptions::default()).unwrap();
    assert_eq!(report.notes(), [""; 0]);
    assert_eq!(filters_of(&tiledb), ["byteshuffle", "gzip"]);
    // Filters are not content.
    let strict = ConvertOptions::default().with_strict(true).with_replace(true);
    assert!(to(&zarr, &tet, &strict).is_ok());
}

#[test]
fn provenance_is_recorded_and_not_compared() {
    let folder = tempfile::tempdir().unwrap();
    let source = sample(folder.path());
    let (a, b) = (folder.path().join("a.zarr"), folder.path().join("b.zarr"));
    to(&source, &a, &chunked(None).with_provenance(true)).unwrap();
    to(&a, &b, &ConvertOptions::default().with_provenance(true)).unwrap();
    let (one, two) = (hyperslab::open(&a).unwrap(), hyperslab::open(&b).unwrap());
    let said = |store: &OpenStore| {
        let node = store.node("/").unwrap();
        let hyperslab::Node::Array(array) = node else { panic!("an array at the root") };
        array.schema().attributes.get(PROVENANCE).unwrap().as_text().unwrap()
    };
    assert!(said(&one).contains(": npy x.npy"), "{}", said(&one));
    assert_eq!(said(&two).lines().count(), 2);
    assert!(said(&two).ends_with(": zarr a.zarr"), "{}", said(&two));
    let report =
        hyperslab::diff::diff((&one, "/"), (&two, "/"), &hyperslab::diff::DiffOptions::default()).unwrap();
    assert!(report.differences.is_empty(), "{report:?}");
}

#[test]
fn chunk_sizes_and_unlimited_axes_are_set() {
    let folder = tempfile::tempdir().unwrap();
    let source = sample(folder.path());
    let options = ConvertOptions::default().with_chunk_bytes(1000);
    let a = folder.path().join("a.zarr");
    to(&source, &a, &options).unwrap();
    let store = hyperslab::open(&a).unwrap();
    let array = store.array(&store.only_node().unwrap()).unwrap();
    assert_eq!(array.schema().grid.chunk_shape(), [10, 18]);
    let wrong = ConvertOptions::default().with_unlimited(vec!["7".to_owned()]);
    assert!(
        to(&source, &folder.path().join("b.zarr"), &wrong).unwrap_err().to_string().contains("no axis 7")
    );
}

#[test]
fn unsupported_arrays_are_reported_and_the_others_converted() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("both.zarr");
    let mut sink = hyperslab::create(&source, Format::ZARR, &CreateOptions::default()).unwrap();
    sink.group("/", &Attributes::new()).unwrap();
    // `.tet` has at most eight dimensions.
    for (path, shape) in [("/deep", &[3, 1, 1, 1, 1, 1, 1, 1, 1][..]), ("/numbers", &[3])] {
        let array = sink.array(path, &ArraySpec::new(DType::UInt8, Grid::single(shape))).unwrap();
        let (chunk, elements) = (array.grid().coord(0), Elements::fixed(vec![0, 1, 1]));
        array.write(&chunk, array.encode(&chunk, &elements).unwrap()).unwrap();
    }
    sink.commit().unwrap();
    let target = folder.path().join("t.tet");
    let strict = ConvertOptions::default().with_strict(true);
    assert!(to(&source, &target, &strict).is_err());
    assert!(!target.exists());
    // For a single array, the error is returned.
    let alone = ConvertOptions::default().with_node("/deep".to_owned());
    assert!(to(&source, &target, &alone).unwrap_err().is_unsupported());
    let report = to(&source, &target, &ConvertOptions::default()).unwrap();
    assert_eq!(report.arrays, 1);
    assert!(
        report.notes().iter().any(|note| note.starts_with("/deep: not converted")),
        "{:?}",
        report.notes()
    );
    assert_eq!(values(&target).as_slice::<u8>().unwrap(), [0, 1, 1]);
}

/// Paths, and so whole stores, survive a format that stores values in fields below an array.
#[test]
fn trees_survive_a_round_trip_through_tiledb() {
    use hyperslab::{diff, hash};

    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut sink = hyperslab::create(&path("a.zarr"), Format::ZARR, &CreateOptions::default()).unwrap();
    let mut attributes = Attributes::new();
    attributes.set("units", "K");
    sink.group("/", &Attributes::new()).unwrap();
    sink.group("/deep", &Attributes::new()).unwrap();
    for (node, first) in [("/temp", 1_u16), ("/deep/temp", 7), ("/deep/deep", 20), ("/own/own", 30)] {
        let mut spec = ArraySpec::new(DType::UInt16, Grid::new(&[3], &[2]).unwrap());
        spec.attributes = attributes.clone();
        let array = sink.array(node, &spec).unwrap();
        for (chunk, values) in [(0, vec![first, first + 1]), (1, vec![first + 2])] {
            let bytes: Vec<u8> = values.into_iter().flat_map(u16::to_ne_bytes).collect();
            let coord = [chunk].as_slice().into();
            array.write(&coord, array.encode(&coord, &Elements::fixed(bytes)).unwrap()).unwrap();
        }
    }
    sink.commit().unwrap();

    let stores = ["a.zarr", "b.tiledb", "c.tiledb", "d.tet", "e.tiledb", "f.zarr"];
    for pair in stores.windows(2) {
        to(&path(pair[0]), &path(pair[1]), &ConvertOptions::default()).unwrap();
    }
    let first = hyperslab::open(path(stores[0])).unwrap();
    let whole = |store: &OpenStore| hash::together(&hash::nodes(store, "/").unwrap());
    for name in &stores[1..] {
        let other = hyperslab::open(path(name)).unwrap();
        let report = diff::diff((&first, "/"), (&other, "/"), &diff::DiffOptions::default()).unwrap();
        assert!(report.same(), "{name}: {:?}", report.differences);
        assert_eq!((report.nodes, report.elements), (4, 12), "{name}");
        assert_eq!(whole(&first), whole(&other), "{name}");
    }
    // A single node, by either of its names.
    for (number, node) in ["/temp", "/temp/temp"].into_iter().enumerate() {
        let target = path(&format!("one-{number}.zarr"));
        let options = ConvertOptions::default().with_node(node.to_owned());
        to(&path("b.tiledb"), &target, &options).unwrap();
        let store = hyperslab::open(&target).unwrap();
        assert_eq!(store.array("/temp").unwrap().schema().shape(), [3]);
    }
}

/// Dimension scales are dimensions in every format: HDF5's bookkeeping attributes for them are neither copied nor
/// compared. Dimensions without a name stay unnamed.
#[cfg(feature = "hdf5")]
#[test]
fn bookkeeping_attributes_stay_in_their_format() {
    use hyperslab::diff;

    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut sink = hyperslab::create(&path("a.h5"), Format::HDF5, &CreateOptions::default()).unwrap();
    sink.group("/", &Attributes::new()).unwrap();
    for (node, shape, names) in
        [("/x", &[3][..], vec![Some("x".to_owned())]), ("/v", &[2, 3][..], vec![None, Some("x".to_owned())])]
    {
        let mut spec = ArraySpec::new(DType::UInt8, Grid::new(shape, shape).unwrap());
        spec.dimensions = names.into_iter().collect();
        spec.attributes.set("NAME", "given by people");
        let array = sink.array(node, &spec).unwrap();
        let coord = vec![0; shape.len()].as_slice().into();
        let elements = Elements::fixed(vec![7; shape.iter().product::<u64>() as usize]);
        array.write(&coord, array.encode(&coord, &elements).unwrap()).unwrap();
    }
    sink.commit().unwrap();

    let stores = ["a.h5", "b.tiledb", "c.zarr", "d.h5"];
    for pair in stores.windows(2) {
        to(&path(pair[0]), &path(pair[1]), &ConvertOptions::default()).unwrap();
    }
    let first = hyperslab::open(path(stores[0])).unwrap();
    for name in &stores[1..] {
        let other = hyperslab::open(path(name)).unwrap();
        let report = diff::diff((&first, "/"), (&other, "/"), &diff::DiffOptions::default()).unwrap();
        assert!(report.same(), "{name}: {:?}", report.differences);
    }
    let zarr = hyperslab::open(path("c.zarr")).unwrap();
    let (x, v) = (zarr.array("/x").unwrap(), zarr.array("/v").unwrap());
    assert!(x.schema().attributes.is_empty(), "{:?}", x.schema().attributes);
    assert_eq!(v.schema().attributes.to_json()["NAME"], "given by people");
    assert_eq!(v.schema().attributes.len(), 1);
    assert_eq!(v.schema().dimensions.to_vec(), [None, Some("x".to_owned())]);
    let back = hyperslab::open(path("d.h5")).unwrap();
    assert_eq!(back.array("/v").unwrap().schema().dimensions.to_vec(), [None, Some("x".to_owned())]);
}

/// This also holds within one format, where attributes contain the dimension names.
#[test]
fn dimensions_are_made_unlimited_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let (source, target) = (folder.path().join("a.h5"), folder.path().join("b.h5"));
    let mut sink = hyperslab::create(&source, Format::HDF5, &CreateOptions::default()).unwrap();
    sink.group("/", &Attributes::new()).unwrap();
    for (path, shape) in [("/time", &[4][..]), ("/v", &[4, 2])] {
        let mut spec = ArraySpec::new(DType::UInt8, Grid::single(shape));
        for (name, own) in spec.dimensions.iter_mut().zip(["time", "x"]) {
            *name = Some(own.to_owned());
        }
        let array = sink.array(path, &spec).unwrap();
        let chunk = vec![0; shape.len()].as_slice().into();
        let elements = Elements::fixed(vec![1; shape.iter().product::<u64>() as usize]);
        array.write(&chunk, array.encode(&chunk, &elements).unwrap()).unwrap();
    }
    sink.commit().unwrap();
    let options = ConvertOptions::default().with_unlimited(vec!["time".to_owned()]);
    convert(&hyperslab::open(&source).unwrap(), &target, Format::HDF5, &options, &Progress::default())
        .unwrap();
    let store = hyperslab::open(&target).unwrap();
    assert_eq!(store.array("/v").unwrap().schema().max_shape, [None, Some(2)]);
    assert_eq!(store.array("/time").unwrap().schema().max_shape, [None]);
    let wrong = options.with_unlimited(vec!["tome".to_owned()]).with_replace(true);
    assert!(
        convert(&hyperslab::open(&source).unwrap(), &target, Format::HDF5, &wrong, &Progress::default())
            .is_err()
    );
}

#[test]
fn shards_apply_to_arrays_with_as_many_axes() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("two.npz");
    let mut sink = hyperslab::create(&source, Format::NPZ, &CreateOptions::default()).unwrap();
    for (path, shape) in [("/line", &[8][..]), ("/plane", &[8, 8])] {
        let array = sink.array(path, &ArraySpec::new(DType::UInt8, Grid::single(shape))).unwrap();
        let chunk = array.grid().coord(0);
        let elements = Elements::fixed(vec![1; shape.iter().product::<u64>() as usize]);
        array.write(&chunk, array.encode(&chunk, &elements).unwrap()).unwrap();
    }
    sink.commit().unwrap();
    let options = |shards: &[u64]| {
        ConvertOptions::default().with_chunk_shape(vec![2, 2]).with_shard_shape(Some(shards.to_vec()))
    };
    let target = folder.path().join("two.zarr");
    to(&source, &target, &options(&[4, 4])).unwrap();
    let document = |node: &str| std::fs::read_to_string(target.join(node).join("zarr.json")).unwrap();
    assert!(document("plane").contains("sharding_indexed") && !document("line").contains("sharding_indexed"));
    for (shards, words) in [(&[4, 4, 4][..], "shards of 4,4,4 have 3 axes"), (&[0], "at least 1")] {
        let refused = to(&source, &folder.path().join("no.zarr"), &options(shards)).unwrap_err();
        assert!(refused.to_string().contains(words), "{refused}");
    }
    let report = to(&source, &folder.path().join("rounded.zarr"), &options(&[3])).unwrap();
    assert!(
        report.notes().iter().any(|note| note.contains("rounded up to whole chunks: [4, 4]")),
        "{:?}",
        report.notes()
    );
}
