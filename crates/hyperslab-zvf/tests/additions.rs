//! Adding vertices, objects and links to existing stores.

use std::collections::BTreeMap;
use std::path::Path;

use hyperslab_core::{DType, Depth, Elements, Geometry, GeometryData, GeometryQuery, Report, Store, Values};
use hyperslab_zvf::{CrossLevel, GeometryKind, PyramidOptions, WriteOptions, ZvfWriter, build_pyramid};
use serde_json::{Value, json};

#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
fn floats(numbers: impl IntoIterator<Item = f32>, shape: &[u64]) -> Values {
    let bytes: Vec<u8> = numbers.into_iter().flat_map(f32::to_ne_bytes).collect();
    Values::new(DType::Float32, shape, Elements::fixed(bytes)).unwrap()
}

#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
fn integers(numbers: impl IntoIterator<Item = i64>, shape: &[u64]) -> Values {
    let bytes: Vec<u8> = numbers.into_iter().flat_map(i64::to_ne_bytes).collect();
    Values::new(DType::Int64, shape, Elements::fixed(bytes)).unwrap()
}

/// Objects of five vertices, starting at number `first`, spread over chunks by a multiplicative sequence.
fn part(kind: GeometryKind, first: u64, count: u64) -> GeometryData {
    let at = |number: u64, prime: u64| (number * prime % 199) as f32 - 60.0;
    let positions = (first..first + count).flat_map(|number| [at(number, 73), at(number, 31)]);
    let mut data = GeometryData::points(floats(positions, &[count, 2]));
    data.attributes = vec![("n".to_owned(), integers((first..first + count).map(|n| n as i64), &[count]))];
    data.objects = (0..count / 5).map(|i| ((first / 5 + i) as i64, (5 * i..5 * i + 5).collect())).collect();
    data.object_attributes = vec![(
        "o".to_owned(),
        floats(data.objects.iter().map(|(id, _)| *id as f32), &[data.objects.len() as u64]),
    )];
    let rows = count as i64;
    let links: Vec<i64> = match kind {
        GeometryKind::Graph => (0..rows).flat_map(|row| [row, row * 7 % rows]).collect(),
        GeometryKind::Mesh => (0..rows - 2).flat_map(|row| [row + 1, row, row + 2]).collect(),
        GeometryKind::Skeleton => {
            (0..rows).filter(|row| row % 5 != 0).flat_map(|row| [row, row - row % 5]).collect()
        }
        _ => return data,
    };
    let width = if kind == GeometryKind::Mesh { 3 } else { 2 };
    let total = links.len() as u64 / width;
    data.links = Some(integers(links, &[total, width]));
    if kind != GeometryKind::Skeleton {
        data.link_attributes =
            vec![("w".to_owned(), integers((0..total as i64).map(|w| w + first as i64), &[total]))];
    }
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

/// Positions, weighted links and objects by the numbers of vertices, independent of their order.
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
fn meaning(data: &GeometryData, sorted_ends: bool) -> Value {
    let n = data.attributes[0].1.as_slice::<i64>().unwrap();
    let positions = data.vertices.to_json();
    let vertices: BTreeMap<i64, &Value> =
        n.iter().enumerate().map(|(row, n)| (*n, &positions[row])).collect();
    let mut links: Vec<(Vec<i64>, Value)> = Vec::new();
    if let Some(own) = &data.links {
        let rows: Vec<Vec<u64>> = serde_json::from_value(own.to_json()).unwrap();
        let weights = data.link_attributes.first().map(|(_, weights)| weights.to_json());
        for (at, link) in rows.iter().enumerate() {
            let mut ends: Vec<i64> = link.iter().map(|row| n[*row as usize]).collect();
            if sorted_ends {
                ends.sort_unstable();
            }
            links.push((ends, weights.as_ref().map_or(Value::Null, |weights| weights[at].clone())));
        }
        links.sort_by_key(|link| (link.0.clone(), link.1.as_i64()));
    }
    let attributes = data.object_attributes.first().map(|(_, own)| own.to_json());
    let mut objects = BTreeMap::new();
    for (at, (id, rows)) in data.objects.iter().enumerate() {
        let mut rows: Vec<i64> = rows.iter().map(|row| n[*row as usize]).collect();
        rows.sort_unstable();
        objects.insert(*id, (rows, attributes.as_ref().map_or(Value::Null, |own| own[at].clone())));
    }
    json!([vertices, links, objects])
}

/// For every kind, the result equals writing both parts at once.
#[test]
fn additions_equal_writing_at_once() {
    let folder = tempfile::tempdir().unwrap();
    for kind in GeometryKind::ALL {
        let target = folder.path().join(kind.name());
        let mut options = WriteOptions::new(vec![50.0; 2]);
        options.groups = vec![vec![1, 2]];
        options.shard_shape = (kind == GeometryKind::Mesh).then_some(2);
        options.compression = if kind == GeometryKind::Graph { None } else { Some(1) };
        let (first, second) = (part(kind, 0, 60), part(kind, 60, 40));
        hyperslab_zvf::write(&target, kind, &first, &options).unwrap();
        let before = ask(&target, &GeometryQuery::default());
        let mut writer = ZvfWriter::append(&target, 1 << 20).unwrap();
        writer.add(&second, &[vec![3, 15]]).unwrap();
        drop(ZvfWriter::append(&target, 1 << 20).unwrap_err());
        let undirected = kind == GeometryKind::Skeleton;
        // Nothing is visible before the commit.
        assert_eq!(
            meaning(&ask(&target, &GeometryQuery::default()), undirected),
            meaning(&before, undirected)
        );
        writer.commit().unwrap();
        verified(&target);
        let whole = folder.path().join(format!("{}-both", kind.name()));
        let mut both = ZvfWriter::append(&target, 1 << 20).unwrap();
        both.add(&part(kind, 100, 20), &[]).unwrap();
        drop(both);
        let found = meaning(&ask(&target, &GeometryQuery::default()), undirected);
        let expected = [&before, &{
            hyperslab_zvf::write(&whole, kind, &second, &WriteOptions::new(vec![50.0; 2])).unwrap();
            ask(&whole, &GeometryQuery::default())
        }]
        .map(|data| meaning(data, undirected));
        for list in [0, 2] {
            let mut all = expected[0][list].as_object().unwrap().clone();
            all.extend(expected[1][list].as_object().unwrap().clone());
            assert_eq!(found[list], Value::Object(all), "{}", kind.name());
        }
        let mut links: Vec<String> =
            expected.iter().flat_map(|own| own[1].as_array().unwrap()).map(Value::to_string).collect();
        let mut own: Vec<String> = found[1].as_array().unwrap().iter().map(Value::to_string).collect();
        links.sort_unstable();
        own.sort_unstable();
        assert_eq!(own, links, "{}", kind.name());
        for (number, ids) in [(0, [1, 2]), (1, [3, 15])] {
            let group = ask(&target, &GeometryQuery { groups: vec![number], ..Default::default() });
            assert_eq!(group.objects.iter().map(|(id, _)| *id).collect::<Vec<_>>(), ids, "{}", kind.name());
        }
    }
}

/// Adds batches of vertices to binned points, to points with objects, and to a single object.
#[test]
fn vertices_are_added_in_batches() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("bins");
    let mut options = WriteOptions::new(vec![50.0; 2]);
    options.bin_shape = Some(vec![25.0, 10.0]);
    let mut first = part(GeometryKind::PointCloud, 0, 60);
    (first.objects, first.object_attributes) = (Vec::new(), Vec::new());
    hyperslab_zvf::write(&target, GeometryKind::PointCloud, &first, &options).unwrap();
    let mut writer = ZvfWriter::append(&target, 1).unwrap();
    let second = part(GeometryKind::PointCloud, 60, 40);
    writer.vertices(&second.vertices, &second.attributes, &[]).unwrap();
    writer.commit().unwrap();
    verified(&target);
    let found = ask(&target, &GeometryQuery::default());
    let mut n = found.attributes[0].1.as_slice::<i64>().unwrap().to_vec();
    n.sort_unstable();
    assert_eq!(n, (0..100).collect::<Vec<_>>());
    let root: Value = serde_json::from_slice(&std::fs::read(target.join("zarr.json")).unwrap()).unwrap();
    assert_eq!(root["attributes"]["zarr_vectors"]["base_bin_shape"], json!([25.0, 10.0]));

    let target = folder.path().join("objects");
    hyperslab_zvf::write(
        &target,
        GeometryKind::PointCloud,
        &part(GeometryKind::PointCloud, 0, 60),
        &WriteOptions::new(vec![50.0; 2]),
    )
    .unwrap();
    let mut writer = ZvfWriter::append(&target, 1 << 20).unwrap();
    // An existing object, a new one, and none.
    let owners: Vec<Option<i64>> = (0..40).map(|row| [Some(3), Some(99), None][row % 3]).collect();
    writer.vertices(&second.vertices, &second.attributes, &owners).unwrap();
    writer.commit().unwrap();
    verified(&target);
    for (id, count, value) in [(3, 5 + 14, json!([3.0])), (99, 13, Value::Null), (4, 5, json!([4.0]))] {
        let found = ask(&target, &GeometryQuery { objects: vec![id], ..Default::default() });
        assert_eq!(found.objects[0].1.len(), count);
        // The new object has no value for the attribute.
        if value.is_array() {
            assert_eq!(found.object_attributes[0].1.to_json(), value);
        } else {
            assert!(found.object_attributes[0].1.as_slice::<f32>().unwrap()[0].is_nan());
        }
    }
}

/// Coarser levels equal those generated from all data.
#[test]
fn coarser_levels_are_regenerated() {
    let folder = tempfile::tempdir().unwrap();
    let (target, whole) = (folder.path().join("added"), folder.path().join("whole"));
    let options = WriteOptions::new(vec![50.0; 2]);
    let mut pyramid = PyramidOptions::new(vec![2.0, 2.0]);
    pyramid.bin_shape = Some(vec![12.5; 2]);
    pyramid.cross_level = CrossLevel::Both;
    hyperslab_zvf::write(&target, GeometryKind::PointCloud, &part(GeometryKind::PointCloud, 0, 60), &options)
        .unwrap();
    build_pyramid(&target, &pyramid).unwrap();
    let mut writer = ZvfWriter::append(&target, 1 << 20).unwrap();
    writer.add(&part(GeometryKind::PointCloud, 60, 40), &[]).unwrap();
    writer.commit().unwrap();
    verified(&target);
    hyperslab_zvf::write(&whole, GeometryKind::PointCloud, &part(GeometryKind::PointCloud, 0, 100), &options)
        .unwrap();
    build_pyramid(&whole, &pyramid).unwrap();
    for level in 0..3 {
        let positions = |path: &Path| {
            let found = ask(path, &GeometryQuery { level: Some(level), ..Default::default() });
            let mut rows: Vec<String> =
                found.vertices.to_json().as_array().unwrap().iter().map(Value::to_string).collect();
            rows.sort_unstable();
            rows
        };
        assert_eq!(positions(&target), positions(&whole), "level {level}");
    }
    let root = |path: &Path| -> Value {
        serde_json::from_slice(&std::fs::read(path.join("zarr.json")).unwrap()).unwrap()
    };
    let (own, other) = (root(&target), root(&whole));
    assert_eq!(own["attributes"]["multiscales"], other["attributes"]["multiscales"]);
    // Levels generated by another method cannot be regenerated.
    let level = target.join("1/zarr.json");
    let text = std::fs::read_to_string(&level).unwrap();
    std::fs::write(&level, text.replace("per_object", "manual")).unwrap();
    let refused = ZvfWriter::append(&target, 1 << 20).unwrap_err();
    assert!(refused.is_unsupported() && refused.to_string().contains("level 1"), "{refused}");
}

/// Unknown metadata is preserved. Content that would be lost is rejected.
#[test]
fn metadata_is_preserved_or_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("store");
    hyperslab_zvf::write(
        &target,
        GeometryKind::Polyline,
        &part(GeometryKind::Polyline, 0, 60),
        &WriteOptions::new(vec![50.0; 2]),
    )
    .unwrap();
    let edit = |path: &str, change: &dyn Fn(&mut Value)| {
        let path = target.join(path);
        let mut document: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        change(&mut document["attributes"]);
        std::fs::write(&path, serde_json::to_vec(&document).unwrap()).unwrap();
    };
    edit("zarr.json", &|root| {
        root["user_metadata"] = json!({"lab": "7"});
        root["zarr_vectors"]["crs"] = json!({"name": "local"});
    });
    edit("0/vertex_attributes/n/zarr.json", &|own| own["unit"] = json!("metre"));
    edit("0/object_attributes/o/zarr.json", &|own| own["description"] = json!("tenths"));
    edit("0/zarr.json", &|own| own["zarr_vectors_level"]["note"] = json!("kept"));
    let mut writer = ZvfWriter::append(&target, 1 << 20).unwrap();
    let again = writer.add(&part(GeometryKind::Polyline, 0, 10), &[]).unwrap_err();
    assert!(again.to_string().contains("already exists"), "{again}");
    drop(writer);
    let mut writer = ZvfWriter::append(&target, 1 << 20).unwrap();
    writer.add(&part(GeometryKind::Polyline, 60, 10), &[]).unwrap();
    writer.commit().unwrap();
    let read = |path: &str| -> Value {
        let document: Value = serde_json::from_slice(&std::fs::read(target.join(path)).unwrap()).unwrap();
        document["attributes"].clone()
    };
    assert_eq!(read("zarr.json")["user_metadata"], json!({"lab": "7"}));
    assert_eq!(read("zarr.json")["zarr_vectors"]["crs"], json!({"name": "local"}));
    assert_eq!(read("0/vertex_attributes/n/zarr.json")["unit"], "metre");
    assert_eq!(read("0/object_attributes/o/zarr.json")["description"], "tenths");
    let level = read("0/zarr.json");
    assert_eq!(
        (&level["zarr_vectors_level"]["note"], &level["zarr_vectors_level"]["vertex_count"]),
        (&json!("kept"), &json!(70))
    );
    // Attributes that differ from the existing ones.
    let mut writer = ZvfWriter::append(&target, 1 << 20).unwrap();
    let mut other = part(GeometryKind::Polyline, 70, 10);
    other.attributes[0].0 = "m".to_owned();
    let refused = writer.add(&other, &[]).unwrap_err();
    assert!(refused.to_string().contains("\"m\"") && refused.to_string().contains("[n]"), "{refused}");
    drop(writer);
    std::fs::create_dir(target.join("parametric")).unwrap();
    let refused = ZvfWriter::append(&target, 1 << 20).unwrap_err();
    assert!(refused.is_unsupported() && refused.to_string().contains("parametric"), "{refused}");
    std::fs::remove_dir(target.join("parametric")).unwrap();
    assert_eq!(ask(&target, &GeometryQuery::default()).vertices.shape[0], 70);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}
