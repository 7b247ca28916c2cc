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
