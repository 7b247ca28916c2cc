//! Objects requested by id in any order: the result of a query does not depend on earlier queries.

use hyperslab_core::{DType, Elements, Geometry, GeometryQuery, Values};
use hyperslab_zvf::{GeometryKind, GeometrySpec, WriteOptions, ZvfWriter};

const POINTS: usize = 300_000;
const OBJECTS: usize = 1500;

#[test]
fn scattered_objects_in_any_order() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("points.zv");
    // Consecutive points belong to different objects, so manifests are long: one fragment per point.
    let place = |point: usize| [(point * 37 % 1009) as f32, (point * 101 % 997) as f32, (point % 991) as f32];
    let ids: Vec<Option<i64>> = (0..POINTS).map(|point| Some((point * 7919 % OBJECTS) as i64)).collect();
    let bytes: Vec<u8> = (0..POINTS).flat_map(place).flat_map(f32::to_ne_bytes).collect();
    let vertices = Values::new(DType::Float32, &[POINTS as u64, 3], Elements::fixed(bytes)).unwrap();
    let spec = GeometrySpec {
        kind: GeometryKind::PointCloud,
        rank: 3,
        dtype: DType::Float32,
        attributes: Vec::new(),
        link_width: None,
        link_attributes: Vec::new(),
        objects: true,
    };
    let mut writer = ZvfWriter::create(&target, spec, WriteOptions::new(vec![250.0; 3])).unwrap();
    writer.vertices(&vertices, &[], &ids).unwrap();
    writer.commit().unwrap();
    let stored: u64 = std::fs::read_dir(target.join("0/object_index/manifests/c"))
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().len())
        .sum();
    assert!(stored > 160 << 10, "half of {stored} bytes would be decoded at once");

    let expected = |id: i64| {
        let mut own: Vec<[u32; 3]> =
            (0..POINTS).filter(|at| ids[*at] == Some(id)).map(|at| place(at).map(f32::to_bits)).collect();
        own.sort_unstable();
        own
    };
    for order in [vec![0, 5, 1499, 700], vec![1499, 3, 3, 1498, 0], vec![900, 899, 898, 1, 1400]] {
        let geometry = hyperslab_zvf::open_path(&target).unwrap().geometry().unwrap();
        for id in order {
            let query = GeometryQuery { objects: vec![id], ..Default::default() };
            let found = geometry.query(&query).unwrap().vertices;
            let mut found: Vec<[u32; 3]> = found
                .as_slice::<f32>()
                .unwrap()
                .as_chunks::<3>()
                .0
                .iter()
                .map(|at| at.map(f32::to_bits))
                .collect();
            found.sort_unstable();
            assert!(found == expected(id), "object {id}");
        }
        assert!(
            geometry.query(&GeometryQuery { objects: vec![OBJECTS as i64], ..Default::default() }).is_err()
        );
    }

    // Only half of the index is intact: an error for objects in the other half, in any order and every time.
    let object = target.join("0/object_index/manifests/c/0");
    let bytes = std::fs::read(&object).unwrap();
    std::fs::write(&object, &bytes[..bytes.len() / 2]).unwrap();
    for order in [[1499, 2, 1499, 1498, 3], [600, 601, 1499, 650, 1498], [600, 650, 649, 1499, 651]] {
        let geometry = hyperslab_zvf::open_path(&target).unwrap().geometry().unwrap();
        for id in order {
            let found = geometry.query(&GeometryQuery { objects: vec![id], ..Default::default() });
            assert_eq!(found.is_ok(), id < 700, "object {id}");
            assert!(found.err().is_none_or(|error| error.is_corrupt()));
        }
    }
}
