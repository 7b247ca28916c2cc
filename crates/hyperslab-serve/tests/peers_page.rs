//! The built-in page's modules, run by Node.js.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::path::Path;
use std::process::Command;

use hyperslab_serve::ServeOptions;

#[test]
fn the_page_shows_decoded_values_and_exact_integers() {
    let outer = common::folder();
    let served = outer.path().join("served");
    common::packed(&served.join("p.nc"));
    let server = common::serve(&served, ServeOptions::default());
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new("node")
        .arg(crate_folder.join("tests/peers/page.mjs"))
        .arg(crate_folder.join("page"))
        .arg(&server.url)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
