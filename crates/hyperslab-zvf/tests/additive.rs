//! Levels that add to the next coarser one: their content includes both levels.

use std::path::Path;

use hyperslab_core::{DType, Depth, Elements, Geometry, GeometryData, GeometryQuery, Report, Store, Values};
use hyperslab_zvf::{GeometryKind, WriteOptions};
use serde_json::{Value, json};

#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
fn values(dtype: DType, numbers: &[f64], shape: &[u64]) -> Values {
    let bytes: Vec<u8> = match dtype {
        DType::Float32 => numbers.iter().flat_map(|number| (*number as f32).to_ne_bytes()).collect(),
        DType::Int64 => numbers.iter().flat_map(|number| (*number as i64).to_ne_bytes()).collect(),
        _ => numbers.iter().flat_map(|number| number.to_ne_bytes()).collect(),
    };
    Values::new(dtype, shape, Elements::fixed(bytes)).unwrap()
}

/// Lines of three vertices with these ids. A vertex's number is ten times the id plus its position.
fn lines(ids: &[i64], dtype: DType) -> GeometryData {
    let numbers: Vec<f64> = ids.iter().flat_map(|id| (0..3).map(move |at| (10 * id + at) as f64)).collect();
    let count = numbers.len() as u64;
    let positions: Vec<f64> = numbers.iter().flat_map(|number| [*number, 100.0 - *number]).collect();
    let mut data = GeometryData::points(values(dtype, &positions, &[count, 2]));
    data.attributes = vec![("n".to_owned(), values(DType::Int64, &numbers, &[count]))];
    let rows = |at: usize| (3 * at as u64..3 * at as u64 + 3).collect();
    data.objects = ids.iter().enumerate().map(|(at, id)| (*id, rows(at))).collect();
    let tenths: Vec<f64> = ids.iter().map(|id| *id as f64 / 10.0).collect();
    data.object_attributes = vec![("o".to_owned(), values(DType::Float32, &tenths, &[tenths.len() as u64]))];
    data
}

#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
fn edit(path: &Path, change: impl FnOnce(&mut Value)) {
    let mut document: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    change(&mut document["attributes"]);
    std::fs::write(path, serde_json::to_vec(&document).unwrap()).unwrap();
}

/// A store whose level 0 contains the lines 2, 3 and 5 and adds to level 1, which contains the lines 0 and 4.
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
fn additive(folder: &Path, coarse: DType) -> std::path::PathBuf {
    let (store, other) = (folder.join("store"), folder.join("other"));
    let mut options = WriteOptions::new(vec![25.0; 2]);
    options.groups = vec![vec![0, 5, 2]];
    let mut fine = lines(&[2, 3, 5], DType::Float32);
    // The group names an object of the coarser level. It has a row here, but no vertices.
    fine.objects.push((0, Vec::new()));
    fine.object_attributes[0].1 = values(DType::Float32, &[0.2, 0.3, 0.5, f64::NAN], &[4]);
    hyperslab_zvf::write(&store, GeometryKind::Polyline, &fine, &options).unwrap();
    options.groups = Vec::new();
    hyperslab_zvf::write(&other, GeometryKind::Polyline, &lines(&[0, 4], coarse), &options).unwrap();
    std::fs::rename(other.join("0"), store.join("1")).unwrap();
    std::fs::remove_dir_all(&other).unwrap();
    edit(&store.join("0/zarr.json"), |own| own["zarr_vectors_level"]["refinement"] = json!("add"));
    edit(&store.join("1/zarr.json"), |own| own["zarr_vectors_level"]["level"] = json!(1));
    edit(&store.join("zarr.json"), |root| {
        let mut dataset = root["multiscales"][0]["datasets"][0].clone();
        dataset["path"] = json!("1");
        root["multiscales"][0]["datasets"].as_array_mut().unwrap().push(dataset);
        root["zarr_vectors"]["required_capabilities"] = json!(["additive_levels"]);
        root["zarr_vectors"]["bounds"] = json!([[0.0, 0.0], [100.0, 100.0]]);
    });
    store
}

#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
fn ask(store: &Path, query: &GeometryQuery) -> GeometryData {
    hyperslab_zvf::open_path(store).unwrap().geometry().unwrap().query(query).unwrap()
}

/// The vertex numbers of each object and of the ends of links, and the objects' attributes.
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
fn meaning(data: &GeometryData) -> Value {
    let n = data.attributes[0].1.as_slice::<i64>().unwrap();
    let positions = data.vertices.to_json();
    for (row, number) in n.iter().enumerate() {
        assert_eq!(positions[row], json!([*number as f64, 100.0 - *number as f64]));
    }
    let objects: Vec<(i64, Vec<i64>)> = data
        .objects
        .iter()
        .map(|(id, rows)| (*id, rows.iter().map(|row| n[*row as usize]).collect()))
        .collect();
    let links = data.links.as_ref().unwrap().as_slice::<u64>().unwrap();
    let mut links: Vec<(i64, i64)> =
        links.chunks_exact(2).map(|link| (n[link[0] as usize], n[link[1] as usize])).collect();
    links.sort_unstable();
    json!([objects, links, data.object_attributes[0].1.to_json()])
}

#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
fn complaints(store: &Path) -> Vec<String> {
    let mut report = Report::default();
    hyperslab_zvf::open_path(store).unwrap().verify(Depth::Deep, &mut report).unwrap();
    report.findings.into_iter().filter(|finding| !finding.ok).filter_map(|finding| finding.detail).collect()
}

#[test]
fn a_level_that_adds_includes_the_coarser_one() {
    let folder = tempfile::tempdir().unwrap();
    let store = additive(folder.path(), DType::Float32);
    let whole = ask(&store, &GeometryQuery::default());
    let line = |id: i64| (id, vec![10 * id, 10 * id + 1, 10 * id + 2]);
    let edges = |ids: &[i64]| -> Vec<(i64, i64)> {
        ids.iter().flat_map(|id| [(10 * id, 10 * id + 1), (10 * id + 1, 10 * id + 2)]).collect()
    };
    let expected = json!([
        [line(2), line(3), line(5), line(0), line(4)],
        edges(&[0, 2, 3, 4, 5]),
        [0.2, 0.3, 0.5, 0.0, 0.4]
    ]);
    let rounded = |value: Value| -> Value {
        let mut value = value;
        for number in value[2].as_array_mut().into_iter().flatten() {
            *number = json!((number.as_f64().unwrap() * 10.0).round() / 10.0);
        }
        value
    };
    assert_eq!(rounded(meaning(&whole)), expected);
    let coarse = ask(&store, &GeometryQuery { level: Some(1), ..Default::default() });
    assert_eq!(rounded(meaning(&coarse)), json!([[line(0), line(4)], edges(&[0, 4]), [0.0, 0.4]]));
    let geometry = hyperslab_zvf::open_path(&store).unwrap().geometry().unwrap();
    let levels = geometry.levels().unwrap();
    assert_eq!((levels[0].vertices, levels[0].links), (15, 10));
    assert_eq!((levels[1].vertices, levels[1].links, levels[1].objects), (6, 4, 2));
    // Objects of both levels in the requested order, a group of both, and a box over both.
    let some = ask(&store, &GeometryQuery { objects: vec![4, 2], ..Default::default() });
    assert_eq!(rounded(meaning(&some)), json!([[line(4), line(2)], edges(&[2, 4]), [0.4, 0.2]]));
    let group = ask(&store, &GeometryQuery { groups: vec![0], ..Default::default() });
    assert_eq!(
        rounded(meaning(&group)),
        json!([[line(0), line(5), line(2)], edges(&[0, 2, 5]), [0.0, 0.5, 0.2]])
    );
    let region = Some([vec![1.0, 0.0], vec![20.0, 100.0]]);
    let found = ask(&store, &GeometryQuery { region, ..Default::default() });
    assert_eq!(found.attributes[0].1.to_json(), json!([20, 1, 2]));
    let missing = geometry.query(&GeometryQuery { objects: vec![9], ..Default::default() });
    assert!(missing.unwrap_err().to_string().contains("no object 9"));
    assert_eq!(complaints(&store), Vec::<String>::new());
}

#[test]
fn levels_of_different_types_are_joined_as_64_bit_floats() {
    let folder = tempfile::tempdir().unwrap();
    let store = additive(folder.path(), DType::Float64);
    let whole = ask(&store, &GeometryQuery::default());
    assert_eq!((whole.vertices.dtype, whole.vertices.shape[0]), (DType::Float64, 15));
}

#[test]
fn contradictions_to_additive_levels_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let store = additive(folder.path(), DType::Float32);
    // Not declared: still read, but reported.
    edit(&store.join("zarr.json"), |root| {
        root["zarr_vectors"].as_object_mut().unwrap().remove("required_capabilities");
    });
    assert_eq!(ask(&store, &GeometryQuery::default()).vertices.shape[0], 15);
    let found = complaints(&store);
    assert!(found.iter().any(|problem| problem.contains("additive_levels")), "{found:?}");
    // The coarsest level has nothing to add to.
    edit(&store.join("1/zarr.json"), |own| own["zarr_vectors_level"]["refinement"] = json!("add"));
    assert_eq!(ask(&store, &GeometryQuery::default()).vertices.shape[0], 15);
    let found = complaints(&store);
    assert!(found.iter().any(|problem| problem.contains("level 2, which does not exist")), "{found:?}");
    edit(&store.join("zarr.json"), |root| {
        root["zarr_vectors"]["required_capabilities"] = json!(["additive_levels"]);
    });
    let geometry = hyperslab_zvf::open_path(&store).unwrap().geometry().unwrap();
    assert!(geometry.query(&GeometryQuery::default()).unwrap_err().is_corrupt());
    // Such a store cannot be extended.
    let Err(refused) = hyperslab_zvf::ZvfWriter::append(&store, 1 << 20) else { panic!("added to") };
    assert!(refused.is_unsupported() && refused.to_string().contains("next coarser"), "{refused}");
}

#[test]
fn an_object_at_two_levels_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (store, other) = (additive(folder.path(), DType::Float32), folder.path().join("other"));
    let options = WriteOptions::new(vec![25.0; 2]);
    hyperslab_zvf::write(&other, GeometryKind::Polyline, &lines(&[0, 5], DType::Float32), &options).unwrap();
    std::fs::remove_dir_all(store.join("1")).unwrap();
    std::fs::rename(other.join("0"), store.join("1")).unwrap();
    let found = complaints(&store);
    assert!(found.iter().any(|problem| problem.contains("object 5 of /0 is also in /1")), "{found:?}");
}
