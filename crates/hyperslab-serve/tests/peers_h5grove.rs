//! Sends the same requests to h5grove and to Hyperslab, on HDF5 files of every type, and compares the responses.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use http_body_util::BodyExt;
use hyperslab::Selection;
use hyperslab_serve::{ServeOptions, Server};
use tower::ServiceExt;

#[test]
fn responses_match_h5grove() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    common::script("h5grove_compare.py", &["make", path]);
    let server = common::serve(folder.path(), ServeOptions::default());
    let told = common::script("h5grove_compare.py", &["compare", path, &server.url]);
    let (counts, differences) = told.split_once('\n').unwrap();
    assert!(differences.is_empty(), "{differences}");
    let requests: u32 = counts.split(' ').next().unwrap().parse().unwrap();
    assert!(requests > 150, "{counts}");
}

/// The status and the text of a response.
fn asked(server: &Server, uri: &str) -> (StatusCode, String) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let request =
            Request::builder().uri(uri).header(header::HOST, "localhost").body(Body::empty()).unwrap();
        let response = server.router().oneshot(request).await.unwrap();
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8_lossy(&body).into_owned())
    })
}

#[test]
fn sources_in_other_files_are_rejected_not_filled() {
    let folder = tempfile::tempdir().unwrap();
    common::script("h5grove_compare.py", &["sources", folder.path().to_str().unwrap()]);
    let server = Server::new(folder.path(), ServeOptions::default()).unwrap();
    for (node, source) in [("elsewhere", "source.h5"), ("raw", "raw.bin"), ("grows", "source.h5")] {
        let data = format!("data?file=virtual.h5&path=/{node}");
        let npy = format!("{data}&format=npy");
        let stats = format!("stats?file=virtual.h5&path=/{node}");
        let chunks = ["zarr", "zarr-numcodecs"].map(|view| format!("{view}/virtual.h5/{node}/c/0/0"));
        let old = format!("zarr2/virtual.h5/{node}/0.0");
        for uri in [data, npy, stats, chunks[0].clone(), chunks[1].clone(), old] {
            let (status, told) = asked(&server, &format!("/{uri}"));
            assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{uri}: {told}");
            assert!(told.contains(source), "{uri}: {told}");
        }
    }
    let here = asked(&server, "/data?file=virtual.h5&path=/here&selection=1");
    assert_eq!(here, (StatusCode::OK, "[4.0,5.0,6.0,7.0]".to_owned()));
    assert_eq!(asked(&server, "/meta?file=virtual.h5&path=/elsewhere").0, StatusCode::OK);
    // If other files may be read, a missing one reads as the fill value, as in libhdf5.
    let file = folder.path().join("virtual.h5");
    let first = |node: &str| {
        let values = hyperslab::open(&file)?.array(node)?.read(&Selection::all())?;
        values.to_vec::<f64>().map(|numbers| numbers[1])
    };
    assert_eq!(first("/elsewhere").unwrap(), 1.0);
    std::fs::remove_file(folder.path().join("source.h5")).unwrap();
    assert_eq!(first("/elsewhere").unwrap(), -1.0);
    let none = hyperslab::OpenOptions::default().with_external(hyperslab::ExternalFiles::None);
    let store = hyperslab::open_with(&file, &none).unwrap();
    let error = store.array("/elsewhere").unwrap().read(&Selection::all()).unwrap_err();
    assert!(error.to_string().contains("the source d of a virtual dataset is in source.h5"), "{error}");
}
