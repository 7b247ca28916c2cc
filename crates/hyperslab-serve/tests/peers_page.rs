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
    std::fs::write(served.join("dates.npy"), dates()).unwrap();
    // The extension of another format.
    std::fs::copy(served.join("dates.npy"), served.join("dates.h5")).unwrap();
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

/// 2020-01-01, "not a time", 2020-03-01, as days.
fn dates() -> Vec<u8> {
    let header = "{'descr': '<M8[D]', 'fortran_order': False, 'shape': (3,), }";
    let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    bytes.extend(format!("{header:<117}\n").bytes());
    bytes.extend([18_262_i64, i64::MIN, 18_322].iter().flat_map(|day| day.to_le_bytes()));
    bytes
}
