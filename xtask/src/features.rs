//! Builds combinations that the other checks leave out: the library with few features, and the fuzz targets.

use crate::Outcome;
use crate::run::{cargo, root, say, target};

/// Feature sets of the library that users may choose.
const SETS: &[&str] =
    &["", "tet", "hdf5", "netcdf3", "tiledb", "zarr", "zarr,zvf", "arrow", "ndarray", "remote", "gcs,azure"];

/// Checks that each set of features compiles without warnings, and that the fuzz targets compile.
pub(crate) fn run() -> Outcome {
    for set in SETS {
        say(&format!("features: {}", if set.is_empty() { "none" } else { set }));
        let mut check = cargo();
        check.args(["clippy", "--quiet", "-p", "hyperslab", "--no-default-features", "--features", set]);
        crate::run::run(check.args(["--", "-D", "warnings"]))?;
    }
    say("fuzz targets");
    let mut fuzz = cargo();
    fuzz.args(["check", "--quiet", "--bins", "--manifest-path"]).arg(root().join("fuzz/Cargo.toml"));
    crate::run::run(fuzz.arg("--target-dir").arg(target()))
}
