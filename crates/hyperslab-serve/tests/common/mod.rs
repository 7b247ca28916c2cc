//! Runs a server on a local port, for clients in other languages.

#![allow(dead_code, clippy::allow_attributes, reason = "each test program uses a part of it")]

use std::path::Path;
use std::process::Command;

use hyperslab_serve::{ServeOptions, Server};

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
