//! Geometries as Neuroglancer's precomputed sources.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::path::Path;

use axum::http::StatusCode;
use hyperslab_serve::{ServeOptions, Server};

use common::{get, run};

/// Stores written by zarr-vectors.
fn geometries() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../hyperslab-zvf/tests/golden/stores")
}

fn float(bytes: &[u8], at: usize) -> f32 {
    f32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn word(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// The positions and ids of all annotations of a store. Reads the cells of the index like Neuroglancer does.
async fn annotations(server: &Server, store: &str) -> (Vec<Vec<f32>>, Vec<u64>, usize) {
    let base = format!("/neuroglancer/{store}/annotations");
    let info = get(server, &format!("{base}/info")).await.json();
    assert_eq!(info["@type"], "neuroglancer_annotations_v1", "{info}");
    let rank = info["dimensions"].as_object().unwrap().len();
    let widths = |kind: &str| match kind.trim_start_matches(|letter: char| letter.is_alphabetic()) {
        "8" => 1,
        "16" => 2,
        _ => 4,
    };
    let properties: usize =
        info["properties"].as_array().unwrap().iter().map(|own| widths(own["type"].as_str().unwrap())).sum();
    let stride = (4 * rank + properties).next_multiple_of(4);
    let grid: Vec<u64> = info["spatial"][0]["grid_shape"]
        .as_array()
        .unwrap()
        .iter()
        .map(|extent| extent.as_u64().unwrap())
        .collect();
    let (mut places, mut ids) = (Vec::new(), Vec::new());
    for number in 0..grid.iter().product::<u64>() {
        let mut left = number;
        let mut cell: Vec<String> = Vec::new();
        for extent in grid.iter().rev() {
            cell.insert(0, (left % extent).to_string());
            left /= extent;
        }
        let bytes = get(server, &format!("{base}/spatial0/{}", cell.join("_"))).await.body;
        let count = long(&bytes, 0) as usize;
        assert_eq!(bytes.len(), 8 + count * (stride + 8));
        for row in 0..count {
            places.push((0..rank).map(|axis| float(&bytes, 8 + row * stride + 4 * axis)).collect());
            ids.push(long(&bytes, 8 + count * stride + 8 * row));
        }
    }
    (places, ids, rank)
}

#[test]
fn vertices_are_annotations_for_neuroglancer() {
    run(async {
        let server = Server::new(&geometries(), ServeOptions::default()).unwrap();
        for store in ["points", "streamlines", "skeleton"] {
            let (places, ids, rank) = annotations(&server, store).await;
            let told = get(&server, &format!("/api/geometry?file={store}&path=/&level=0")).await.json();
            let flat: Vec<f32> =
                told["vertices"].as_array().unwrap().iter().map(|at| at.as_f64().unwrap() as f32).collect();
            let mut expected: Vec<Vec<f32>> = flat.chunks_exact(rank).map(<[f32]>::to_vec).collect();
            let mut found = places.clone();
            let order = |a: &Vec<f32>, b: &Vec<f32>| a.partial_cmp(b).unwrap();
            expected.sort_by(order);
            found.sort_by(order);
            assert!(!found.is_empty());
            assert_eq!(found, expected, "{store}: every vertex is in one cell");
            let distinct: std::collections::BTreeSet<u64> = ids.iter().copied().collect();
            assert_eq!(distinct.len(), ids.len());
            for (id, place) in ids.iter().zip(&places).take(5) {
                let one = get(&server, &format!("/neuroglancer/{store}/annotations/by_id/{id}")).await;
                let again: Vec<f32> = (0..rank).map(|axis| float(&one.body, 4 * axis)).collect();
                assert_eq!(&again, place);
            }
            for missing in [
                "annotations/by_id/99999999999999",
                "annotations/spatial0/9_9_9",
                "annotations/x",
                "other/info",
            ] {
                let status = get(&server, &format!("/neuroglancer/{store}/{missing}")).await.status;
                assert_eq!(status, StatusCode::NOT_FOUND, "{missing}");
            }
        }
    });
}

#[test]
fn lines_are_skeletons_for_neuroglancer() {
    run(async {
        let server = Server::new(&geometries(), ServeOptions::default()).unwrap();
        for store in ["streamlines", "skeleton"] {
            let base = format!("/neuroglancer/{store}/skeletons");
            let info = get(&server, &format!("{base}/info")).await.json();
            assert_eq!(info["@type"], "neuroglancer_skeletons");
            let attributes = info["vertex_attributes"].as_array().unwrap().len();
            let listed = get(&server, &format!("{base}/properties/info")).await.json();
            let ids = listed["inline"]["ids"].as_array().unwrap();
            assert!(!ids.is_empty());
            for id in ids {
                let bytes = get(&server, &format!("{base}/{}", id.as_str().unwrap())).await.body;
                let (vertices, edges) = (word(&bytes, 0), word(&bytes, 4));
                assert!(vertices > 0 && edges > 0);
                assert_eq!(bytes.len(), 8 + vertices * 12 + edges * 8 + attributes * vertices * 4);
                let ends = (0..2 * edges).map(|end| word(&bytes, 8 + vertices * 12 + 4 * end));
                assert!(ends.into_iter().all(|end| end < vertices));
            }
            assert_eq!(get(&server, &format!("{base}/987654")).await.status, StatusCode::NOT_FOUND);
        }
        let refused = get(&server, "/neuroglancer/points/skeletons/info").await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    });
}
