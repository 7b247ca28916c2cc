//! Stores written by this crate and read back: every kind, in little memory, with attributes of links and objects,
//! with coarser levels.

use std::collections::BTreeMap;
use std::path::Path;

use hyperslab_core::storage::{Step, Trace};
use hyperslab_core::{DType, Depth, Elements, Geometry, GeometryData, GeometryQuery, Report, Store, Values};
use hyperslab_zvf::{
    ColumnSpec, CrossLevel, GeometryKind, GeometrySpec, PyramidOptions, WriteOptions, ZvfWriter,
    build_pyramid,
};
use serde_json::Value;

/// A fixed sequence of pseudo-random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }

    fn at(&mut self) -> f32 {
        self.below(12_000) as f32 / 100.0 - 40.0
    }
}

#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
fn floats(numbers: &[f32], shape: &[u64]) -> Values {
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
    Values::new(DType::Float32, shape, Elements::fixed(bytes)).unwrap()
}

#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
fn integers(numbers: &[i64], shape: &[u64]) -> Values {
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
    Values::new(DType::Int64, shape, Elements::fixed(bytes)).unwrap()
}

/// A geometry of each kind. `n` numbers the vertices, `w` the links, and `o` is a tenth of the object's id.
fn sample(kind: GeometryKind, count: u64) -> GeometryData {
    let mut random = Random(kind.name().len() as u64);
    let positions: Vec<f32> = (0..3 * count).map(|_| random.at()).collect();
    let mut data = GeometryData::points(floats(&positions, &[count, 3]));
    let numbers: Vec<i64> = (0..count as i64).collect();
    data.attributes = vec![
        ("n".to_owned(), integers(&numbers, &[count])),
        ("v".to_owned(), floats(&positions, &[count, 3])),
    ];
    let owned = |each: u64| -> Vec<(i64, Vec<u64>)> {
        (0..count.div_ceil(each))
            .map(|i| (i as i64 * 7 - 20, (i * each..(i * each + each).min(count)).collect()))
            .collect()
    };
    data.objects = match kind {
        GeometryKind::PointCloud | GeometryKind::Graph | GeometryKind::Mesh => {
            let mut objects: BTreeMap<i64, Vec<u64>> = BTreeMap::new();
            (0..count).for_each(|row| objects.entry(random.below(9) as i64 * 5 - 7).or_default().push(row));
            objects.into_iter().collect()
        }
        GeometryKind::Line => owned(2),
        _ => owned(10),
    };
    let links: Vec<i64> = match kind {
        GeometryKind::Graph => {
            (0..2 * count).flat_map(|_| [random.below(count) as i64, random.below(count) as i64]).collect()
        }
        GeometryKind::Mesh => (0..count)
            .flat_map(|_| {
                let a = random.below(count - 2) as i64;
                [a, a + 2, a + 1]
            })
            .collect(),
        // Every object is a tree.
        GeometryKind::Skeleton => (0..count as i64)
            .filter(|row| row % 10 != 0)
            .flat_map(|row| [row, row - 1 - random.below((row % 10) as u64) as i64])
            .collect(),
        _ => Vec::new(),
    };
    if !links.is_empty() {
        let width = if kind == GeometryKind::Mesh { 3 } else { 2 };
        let rows = links.len() as u64 / width;
        data.links = Some(integers(&links, &[rows, width]));
        if kind != GeometryKind::Skeleton {
            let weights: Vec<i64> = (0..rows as i64).collect();
            data.link_attributes = vec![("w".to_owned(), integers(&weights, &[rows]))];
        }
    }
    let tenths: Vec<f32> = data.objects.iter().map(|(id, _)| *id as f32 / 10.0).collect();
    data.object_attributes = vec![("o".to_owned(), floats(&tenths, &[tenths.len() as u64]))];
    data
}

#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
fn ask(path: &Path, query: &GeometryQuery) -> GeometryData {
    hyperslab_zvf::open_path(path).unwrap().geometry().unwrap().query(query).unwrap()
}

#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
fn verified(path: &Path) {
    let mut report = Report::default();
    hyperslab_zvf::open_path(path).unwrap().verify(Depth::Deep, &mut report).unwrap();
    let complaints: Vec<_> = report.findings.iter().filter(|finding| !finding.ok).collect();
    assert!(complaints.is_empty(), "{}: {complaints:?}", path.display());
}

/// The content of a geometry, independent of the vertex order: positions, weighted links and objects, by the numbers
/// in `n`.
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
fn meaning(data: &GeometryData, undirected: bool) -> Value {
    let n: Vec<i64> =
        data.attributes.iter().find(|(name, _)| name == "n").unwrap().1.as_slice().unwrap().to_vec();
    let of = |row: &u64| n[*row as usize];
    let positions = data.vertices.to_json();
    let copies = data.attributes.iter().find(|(name, _)| name == "v").unwrap().1.to_json();
    let mut vertices: Vec<(i64, &Value, &Value)> =
        (0..n.len()).map(|row| (n[row], &positions[row], &copies[row])).collect();
    vertices.sort_by_key(|vertex| vertex.0);
    let mut links: Vec<(Vec<i64>, Value)> = Vec::new();
    if let Some(own) = &data.links {
        let rows: Vec<Vec<u64>> = serde_json::from_value(own.to_json()).unwrap();
        let weights = data.link_attributes.first().map(|(_, weights)| weights.to_json());
        for (number, row) in rows.iter().enumerate() {
            let mut ends: Vec<i64> = row.iter().map(of).collect();
            if undirected {
                ends.sort_unstable();
            }
            links.push((ends, weights.as_ref().map_or(Value::Null, |weights| weights[number].clone())));
        }
        links.sort_by_key(|link| link.0.clone());
    }
    let tenths = data.object_attributes.first().unwrap().1.to_json();
    let mut objects: Vec<(i64, Vec<i64>, Value)> = data
        .objects
        .iter()
        .enumerate()
        .map(|(number, (id, rows))| (*id, rows.iter().map(of).collect(), tenths[number].clone()))
        .collect();
    objects.sort_by_key(|object| object.0);
    serde_json::json!([vertices, links, objects])
}

/// The expected result of reading: paths link their vertices, and vertices of other objects have no defined order.
fn expected(kind: GeometryKind, data: &GeometryData) -> GeometryData {
    let mut data = data.clone();
    if matches!(kind, GeometryKind::Line | GeometryKind::Polyline | GeometryKind::Streamline) {
        let links: Vec<i64> = data
            .objects
            .iter()
            .flat_map(|(_, rows)| rows.windows(2))
            .flat_map(|pair| [pair[0] as i64, pair[1] as i64])
            .collect();
        data.links = Some(integers(&links, &[links.len() as u64 / 2, 2]));
    }
    data
}

fn sorted_objects(mut data: GeometryData, kind: GeometryKind) -> GeometryData {
    if !matches!(kind, GeometryKind::Line | GeometryKind::Polyline | GeometryKind::Streamline) {
        let n: Vec<i64> = data
            .attributes
            .iter()
            .find(|(name, _)| name == "n")
            .and_then(|(_, n)| n.as_slice())
            .map(<[i64]>::to_vec)
            .unwrap_or_default();
        data.objects.iter_mut().for_each(|(_, rows)| rows.sort_by_key(|row| n[*row as usize]));
    }
    data
}

#[test]
fn every_kind_round_trips_with_any_memory_budget() {
    let folder = tempfile::tempdir().unwrap();
    for kind in GeometryKind::ALL {
        let data = sample(kind, 120);
        let undirected = kind == GeometryKind::Skeleton;
        let truth = meaning(&sorted_objects(expected(kind, &data), kind), undirected);
        for (number, memory) in [512 << 20, 1].into_iter().enumerate() {
            let target = folder.path().join(format!("{}-{number}", kind.name()));
            let mut options = WriteOptions::new(vec![60.0; 3]);
            options.memory = memory;
            options.compression = (number == 0).then_some(1);
            options.groups = vec![vec![data.objects[0].0, data.objects[1].0]];
            hyperslab_zvf::write(&target, kind, &data, &options).unwrap();
            verified(&target);
            let found = ask(&target, &GeometryQuery::default());
            assert_eq!(meaning(&sorted_objects(found, kind), undirected), truth, "{} {memory}", kind.name());
            let group = ask(&target, &GeometryQuery { groups: vec![0], ..Default::default() });
            assert_eq!(group.objects.len(), 2);
        }
    }
}

#[test]
fn batches_keep_what_belongs_together() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("batches");
    let data = sample(GeometryKind::PointCloud, 200);
    let attribute = &data.attributes[0].1;
    let spec = GeometrySpec {
        kind: GeometryKind::PointCloud,
        rank: 3,
        dtype: DType::Float32,
        attributes: vec![ColumnSpec::of("n", attribute).unwrap()],
        link_width: None,
        link_attributes: Vec::new(),
        objects: true,
    };
    let mut writer = ZvfWriter::create(&target, spec, WriteOptions::new(vec![60.0; 3])).unwrap();
    let positions = data.vertices.as_slice::<f32>().unwrap();
    let n = attribute.as_slice::<i64>().unwrap();
    // The ids are repeated in every batch.
    for batch in 0..4 {
        let rows = batch * 50..(batch + 1) * 50;
        let ids: Vec<Option<i64>> = rows.clone().map(|row| Some(row as i64 % 6)).collect();
        let own = [("n".to_owned(), integers(&n[rows.clone()], &[50]))];
        writer.vertices(&floats(&positions[3 * rows.start..3 * rows.end], &[50, 3]), &own, &ids).unwrap();
    }
    writer.commit().unwrap();
    verified(&target);
    for id in 0..6 {
        let found = ask(&target, &GeometryQuery { objects: vec![id], ..Default::default() });
        let mut found: Vec<i64> = found.attributes[0].1.as_slice::<i64>().unwrap().to_vec();
        found.sort_unstable();
        assert_eq!(found, (0..200).filter(|row| row % 6 == id).collect::<Vec<_>>());
    }
}

/// Brute-force bins of all vertices and of each object, for the means.
fn bins(data: &GeometryData, bin: f64) -> BTreeMap<Vec<i64>, Vec<usize>> {
    let mut bins: BTreeMap<Vec<i64>, Vec<usize>> = BTreeMap::new();
    let positions = data.vertices.as_slice::<f32>().unwrap_or_default();
    for (row, position) in positions.chunks_exact(3).enumerate() {
        let own = position.iter().map(|at| (f64::from(*at) / bin).floor() as i64).collect();
        bins.entry(own).or_default().push(row);
    }
    bins
}

#[test]
fn coarser_levels_are_the_means_of_their_bins() {
    let folder = tempfile::tempdir().unwrap();
    for kind in GeometryKind::ALL {
        let data = sample(kind, 100);
        for (shared, cross) in [(true, CrossLevel::Both), (false, CrossLevel::None)] {
            let target = folder.path().join(format!("{}-{shared}", kind.name()));
            let mut options = WriteOptions::new(vec![60.0; 3]);
            options.factors = vec![2.0, 4.0];
            options.bin_shape = Some(vec![30.0; 3]);
            options.shared_fragments = shared;
            options.cross_level = cross;
            options.memory = if shared { 1 } else { 512 << 20 };
            hyperslab_zvf::write(&target, kind, &data, &options).unwrap();
            verified(&target);
            for (level, bin) in [(1, 60.0), (2, 240.0)] {
                let coarse = ask(&target, &GeometryQuery { level: Some(level), ..Default::default() });
                assert_eq!(coarse.objects.len(), data.objects.len(), "{} {shared} {level}", kind.name());
                assert_eq!(coarse.object_attributes.len(), 1);
                assert_eq!(coarse.attributes.len(), 2);
                // The attribute `v` is the position, so its mean is the mean position.
                assert_eq!(coarse.attributes[1].1.to_json(), coarse.vertices.to_json());
                if shared {
                    let bins = bins(
                        &ask(&target, &GeometryQuery { level: Some(level - 1), ..Default::default() }),
                        bin,
                    );
                    assert_eq!(coarse.vertices.shape[0], bins.len() as u64, "{} {level}", kind.name());
                } else {
                    // No vertex belongs to two objects.
                    let named: usize = coarse.objects.iter().map(|(_, rows)| rows.len()).sum();
                    assert!(
                        named as u64 == coarse.vertices.shape[0] || kind == GeometryKind::Skeleton,
                        "{}",
                        kind.name()
                    );
                }
                if kind == GeometryKind::Graph || kind == GeometryKind::Mesh {
                    assert_eq!(coarse.link_attributes[0].1.shape[0], coarse.links.as_ref().unwrap().shape[0]);
                }
            }
        }
    }
}

#[test]
fn a_pyramid_is_added_to_an_existing_store() {
    let folder = tempfile::tempdir().unwrap();
    let (once, later) = (folder.path().join("once"), folder.path().join("later"));
    let data = sample(GeometryKind::Streamline, 120);
    let mut options = WriteOptions::new(vec![60.0; 3]);
    hyperslab_zvf::write(&later, GeometryKind::Streamline, &data, &options).unwrap();
    options.factors = vec![2.0, 2.0];
    options.bin_shape = Some(vec![30.0; 3]);
    options.cross_level = CrossLevel::Up;
    hyperslab_zvf::write(&once, GeometryKind::Streamline, &data, &options).unwrap();
    let own = PyramidOptions {
        bin_shape: Some(vec![30.0; 3]),
        cross_level: CrossLevel::Up,
        ..PyramidOptions::new(vec![2.0, 2.0])
    };
    // The root lists a level only after the level is durable.
    let ((), trace) = Trace::of(|| build_pyramid(&later, &own).unwrap());
    assert_eq!(trace.violations(true), Vec::<String>::new());
    let root = later.join("zarr.json");
    assert!(trace.steps.iter().any(|step| matches!(step, Step::Rename { to, .. } if *to == root)));
    verified(&later);
    for level in 0..3 {
        let query = GeometryQuery { level: Some(level), ..Default::default() };
        let (a, b) = (ask(&once, &query), ask(&later, &query));
        assert_eq!(a.vertices.to_json(), b.vertices.to_json());
        assert_eq!((a.objects, a.links.unwrap().to_json()), (b.objects, b.links.unwrap().to_json()));
    }
    assert!(build_pyramid(&later, &own).unwrap_err().to_string().contains("3 levels"));
}

/// The number of files below a folder.
fn files(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| if entry.path().is_dir() { files(&entry.path()) } else { 1 }).sum()
}

#[test]
fn shards_hold_the_cells_of_coarser_levels() {
    let folder = tempfile::tempdir().unwrap();
    let data = sample(GeometryKind::Streamline, 400);
    let made = [true, false].map(|shards| {
        let target = folder.path().join(shards.to_string());
        hyperslab_zvf::write(&target, GeometryKind::Streamline, &data, &WriteOptions::new(vec![60.0; 3]))
            .unwrap();
        let options = PyramidOptions { shards, ..PyramidOptions::new(vec![2.0, 2.0]) };
        build_pyramid(&target, &options).unwrap();
        verified(&target);
        target
    });
    for level in 1..3 {
        let [sharded, single] =
            made.each_ref().map(|target| files(&target.join(format!("{level}/vertices"))));
        assert!(sharded < single, "{sharded} of {single}");
        let query = GeometryQuery { level: Some(level), ..Default::default() };
        let [a, b] = made.each_ref().map(|target| ask(target, &query));
        assert_eq!(a.vertices.to_json(), b.vertices.to_json());
        assert_eq!((a.objects, a.links.unwrap().to_json()), (b.objects, b.links.unwrap().to_json()));
    }
}

#[test]
fn inconsistent_data_is_rejected_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("x");
    let options = WriteOptions::new(vec![60.0; 3]);
    let good = sample(GeometryKind::Graph, 20);
    let mut cases: Vec<(GeometryData, WriteOptions, &str)> = Vec::new();
    let mut edit = |change: &dyn Fn(&mut GeometryData, &mut WriteOptions), why: &'static str| {
        let (mut data, mut options) = (good.clone(), options.clone());
        change(&mut data, &mut options);
        cases.push((data, options, why));
    };
    edit(&|data, _| data.vertices = floats(&[f32::NAN; 60], &[20, 3]), "finite");
    let far = |data: &mut GeometryData, _: &mut WriteOptions| {
        data.links = Some(integers(&[0, 20], &[1, 2]));
        data.link_attributes.clear();
    };
    edit(&far, "vertex 20 of 20");
    edit(&|data, _| data.objects[0].1.push(99), "past the last");
    edit(&|data, _| data.objects[0].1 = data.objects[1].1.clone(), "belongs to another");
    edit(&|data, _| data.attributes[0].1 = integers(&[1], &[1]), "needs 20 rows");
    edit(&|_, options| options.chunk_shape = vec![0.0; 3], "chunk shape");
    edit(&|_, options| options.bin_shape = Some(vec![7.0; 3]), "do not divide");
    edit(&|_, options| options.groups = vec![vec![12345]], "12345");
    edit(&|_, options| options.bounds = Some([vec![0.0; 3], vec![1.0; 3]]), "outside the bounds");
    for (data, options, why) in cases {
        let error = hyperslab_zvf::write(&target, GeometryKind::Graph, &data, &options).unwrap_err();
        assert!(error.to_string().contains(why), "{why}: {error}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{why}");
    }
}

/// A column becomes a folder with its name.
#[test]
fn columns_with_unsafe_names_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let numbers = integers(&[1, 2], &[2]);
    for name in ["", ".", "..", "a/b", "a\\b", "/etc", "zarr.json", &"x".repeat(256)] {
        let spec = GeometrySpec {
            kind: GeometryKind::PointCloud,
            rank: 3,
            dtype: DType::Float32,
            attributes: vec![ColumnSpec::of(name, &numbers).unwrap()],
            link_width: None,
            link_attributes: Vec::new(),
            objects: false,
        };
        let made = ZvfWriter::create(folder.path().join("x"), spec, WriteOptions::new(vec![60.0; 3]));
        let refused = made.unwrap_err().to_string();
        assert!(refused.contains("cannot write"), "{name:?}: {refused}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
