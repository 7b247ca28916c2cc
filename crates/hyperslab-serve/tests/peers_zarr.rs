//! zarr-python and tensorstore read stores of every format over HTTP and must see the values of the source.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use hyperslab::convert::{ConvertOptions, Progress, convert};
use hyperslab::format_named;
use hyperslab_serve::ServeOptions;

#[test]
fn zarr_readers_see_the_values_of_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    common::script("zarr_read.py", &["make", path]);
    // The same arrays in formats that no available library writes with these chunks.
    let source = hyperslab::open(folder.path().join("chunked.h5")).unwrap();
    for (name, format) in [
        ("chunked.tet", "tet"),
        ("chunked.tiledb", "tiledb"),
        ("chunked.nc", "netcdf3"),
        ("chunked.zarr", "zarr3"),
    ] {
        let (format, variant) = format_named(format).unwrap();
        let options = ConvertOptions::default().with_variant(variant);
        convert(&source, &folder.path().join(name), format, &options, &Progress::default()).unwrap();
    }
    let server = common::serve(folder.path(), ServeOptions::default());
    let told = common::script("zarr_read.py", &["compare", path, &server.url]);
    let (count, differences) = told.split_once('\n').unwrap();
    assert!(differences.is_empty(), "{differences}");
    assert!(count.parse::<u32>().unwrap() >= 40, "{count}");
}

/// The view of a store has the nodes, attributes and values that a conversion to Zarr writes.
#[test]
fn views_equal_conversions() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let made = common::script("zarr_view.py", &["make", path]);
    let stores: Vec<&str> = made.lines().collect();
    for version in ["zarr2", "zarr3"] {
        let (format, variant) = format_named(version).unwrap();
        let options = ConvertOptions::default().with_variant(variant);
        for store in &stores {
            let source = hyperslab::open(folder.path().join(store)).unwrap();
            let target = folder.path().join(format!("{store}.{version}"));
            convert(&source, &target, format, &options, &Progress::default()).unwrap();
        }
    }
    let server = common::serve(folder.path(), ServeOptions::default());
    let words: Vec<&str> = ["compare", path, &server.url].into_iter().chain(stores.iter().copied()).collect();
    let told = common::script("zarr_view.py", &words);
    let (count, differences) = told.split_once('\n').unwrap();
    assert!(differences.is_empty(), "{differences}");
    assert!(count.parse::<u32>().unwrap() >= 50, "{count}");
}
