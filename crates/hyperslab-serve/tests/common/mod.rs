//! Runs a server on a local port, for clients in other languages, or asks its router.

#![allow(dead_code, clippy::allow_attributes, reason = "each test program uses a part of it")]

use std::path::Path;
use std::process::Command;

use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode, header};
use http_body_util::BodyExt;
use hyperslab::convert::{ConvertOptions, Progress, convert};
use hyperslab::{
    ArraySpec, Attributes, CreateOptions, DType, Elements, Fill, Grid, Region, RegionWriter, Values, export,
    format_named,
};
use hyperslab_serve::{ServeOptions, Server};
use serde_json::Value;
use tower::ServiceExt;

/// A server that runs until it is dropped.
pub(crate) struct Running {
    pub url: String,
    _runtime: tokio::runtime::Runtime,
}

/// Starts a server for a location.
pub(crate) fn serve(location: &Path, options: ServeOptions) -> Running {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let server = Server::new(location, options).unwrap();
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    runtime.spawn(server.serve(listener));
    Running { url, _runtime: runtime }
}

/// Runs a script of the peers and returns its output.
pub(crate) fn script(name: &str, words: &[&str]) -> String {
    let python =
        std::env::var("HYPERSLAB_PEERS").expect("HYPERSLAB_PEERS names an interpreter with the peers");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers").join(name);
    let output = Command::new(python).arg(script).args(words).output().unwrap();
    assert!(output.status.success(), "{name} {words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Writes an array that counts up from `first`, as `.npy`.
pub(crate) fn write_npy(path: &Path, shape: &[u64], first: f32) {
    let cells: u64 = shape.iter().product();
    let bytes: Vec<u8> = (0..cells).flat_map(|i| (first + i as f32).to_ne_bytes()).collect();
    let values = Values::new(DType::Float32, shape, Elements::fixed(bytes)).unwrap();
    export::write(&values, path, true).unwrap();
}

pub(crate) fn converted(from: &Path, to: &Path, format: &str) {
    let (format, variant) = format_named(format).unwrap();
    let options = ConvertOptions::default().with_variant(variant);
    convert(&hyperslab::open(from).unwrap(), to, format, &options, &Progress::default()).unwrap();
}

/// A response of the router.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: header::HeaderName) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn floats(&self) -> Vec<f32> {
        self.body.chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect()
    }
}

pub(crate) fn request(uri: &str) -> axum::http::request::Builder {
    Request::builder().uri(uri).header(header::HOST, "127.0.0.1:8642")
}

pub(crate) async fn send(server: &Server, request: Request<Body>) -> Answer {
    let response = server.router().oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    Answer {
        status: parts.status,
        headers: parts.headers,
        body: body.collect().await.unwrap().to_bytes().to_vec(),
    }
}

pub(crate) async fn get(server: &Server, uri: &str) -> Answer {
    send(server, request(uri).body(Body::empty()).unwrap()).await
}

pub(crate) fn run(work: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(work);
}

/// A folder, with a store beside it that must not be reachable.
pub(crate) fn folder() -> tempfile::TempDir {
    let outer = tempfile::tempdir().unwrap();
    let inner = outer.path().join("served");
    std::fs::create_dir_all(inner.join("sub")).unwrap();
    write_npy(&outer.path().join("secret.npy"), &[2], 0.0);
    write_npy(&inner.join("a.npy"), &[4, 6], 0.0);
    converted(&inner.join("a.npy"), &inner.join("sub/a.zarr"), "zarr3");
    converted(&inner.join("a.npy"), &inner.join("a.tet"), "tet");
    outer
}

pub(crate) fn server(outer: &tempfile::TempDir, options: ServeOptions) -> Server {
    Server::new(&outer.path().join("served"), options).unwrap()
}

/// A NetCDF-4 file with a packed array over a dimension without a variable, and large integers.
pub(crate) fn packed(path: &Path) {
    let (format, variant) = format_named("netcdf4").unwrap();
    let mut sink = hyperslab::create(path, format, &CreateOptions::default().with_variant(variant)).unwrap();
    sink.dimension("/x", 3, Some(3)).unwrap();
    let mut array = |name: &str, dtype: DType, bytes: Vec<u8>, attributes: Attributes| {
        let mut spec = ArraySpec::new(dtype.clone(), Grid::new(&[3], &[3]).unwrap());
        spec.dimensions = vec![Some("x".to_owned())];
        spec.attributes = attributes;
        let values = Values::new(dtype.clone(), &[3], Elements::fixed(bytes)).unwrap();
        let target = RegionWriter::new(sink.array(name, &spec).unwrap(), dtype, Fill::Zero);
        let region = Region { start: [0].into_iter().collect(), shape: [3].into_iter().collect() };
        target.assign(&region, &values).unwrap();
        target.finish().unwrap();
    };
    let number = |dtype: DType, bytes: Vec<u8>| Values::scalar(dtype, Elements::fixed(bytes)).unwrap();
    let mut attributes = Attributes::from_iter([("units", "K")]);
    attributes.set("scale_factor", number(DType::Float64, 0.01_f64.to_ne_bytes().to_vec()));
    attributes.set("add_offset", number(DType::Float64, 273.15_f64.to_ne_bytes().to_vec()));
    attributes.set("_FillValue", number(DType::Int16, (-999_i16).to_ne_bytes().to_vec()));
    let stored = [-315_i16, -999, 5].iter().flat_map(|value| value.to_ne_bytes()).collect();
    array("/t", DType::Int16, stored, attributes);
    let large = [u64::MAX, 0, 5].iter().flat_map(|value| value.to_ne_bytes()).collect();
    let mut attributes = Attributes::new();
    attributes.set("largest", number(DType::UInt64, u64::MAX.to_ne_bytes().to_vec()));
    array("/ids", DType::UInt64, large, attributes);
    sink.commit().unwrap();
}
