//! Content that formats store in their own ways, checked by their libraries: lists, enumerations, dimension labels,
//! groups.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::Command;

use hyperslab::combine::{AppendOptions, append_along};
use hyperslab::convert::{ConvertOptions, ConvertReport, Progress, convert};
use hyperslab::{Error, Node, Result, format_named, format_of_target, open};

fn script(command: &str, name: &str, folder: &Path) {
    let python = std::env::var("HYPERSLAB_PEERS").expect("HYPERSLAB_PEERS names an interpreter");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/formats.py");
    let output = Command::new(python).arg(script).args([command, name]).arg(folder).output().unwrap();
    assert!(output.status.success(), "{command} {name}: {}", String::from_utf8_lossy(&output.stderr));
}

fn converted(from: &Path, to: &Path, name: &str, options: ConvertOptions) -> Result<ConvertReport> {
    let (format, variant) = format_named(name)?;
    convert(&open(from)?, to, format, &options.with_variant(variant), &Progress::default())
}

#[test]
fn lists_are_kept_in_hdf5_and_zarr() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    script("make", "lists", folder.path());
    let lists = open(at("lists.zarr")).unwrap().array("/").unwrap().read(&"[...]".parse().unwrap()).unwrap();
    assert_eq!(lists.to_json(), serde_json::json!([[1, 2, 3], [4], [], [5, 6], [7]]));
    converted(&at("lists.zarr"), &at("lists.h5"), "hdf5", ConvertOptions::default()).unwrap();
    converted(&at("lists.h5"), &at("back.zarr"), "zarr2", ConvertOptions::default()).unwrap();
    script("check", "lists", folder.path());
}

#[test]
fn a_copy_of_a_tiledb_array_has_the_same_schema() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    script("make", "tiledb", folder.path());
    for name in ["dense", "columns", "sparse"] {
        let copy = at(&format!("{name}.tiledb"));
        converted(&at(name), &copy, "tiledb", ConvertOptions::default()).unwrap();
    }
    script("check", "tiledb", folder.path());
    // The numbers of an enumeration are its categories.
    let found = open(at("dense")).unwrap().array("/w").unwrap().read(&"[0, 0:3]".parse().unwrap()).unwrap();
    let texts: Vec<String> =
        (0..3).map(|index| hyperslab_core::element_to_text(&found.dtype, &found.elements, index)).collect();
    assert_eq!(texts, ["0.5", "1.5", "1e30"]);
}

#[test]
fn dimension_labels_are_restored() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    script("make", "labels", folder.path());
    for (ending, format) in [("nc", "netcdf4"), ("h5", "hdf5"), ("zarr", "zarr"), ("tet", "tet")] {
        let between = at(&format!("labels.{ending}"));
        converted(&at("labels"), &between, format, ConvertOptions::default()).unwrap();
        let back = at(&format!("{ending}.tiledb"));
        converted(&between, &back, "tiledb", ConvertOptions::default()).unwrap();
    }
    script("check", "labels", folder.path());
}

#[test]
fn variables_of_a_tiledb_group_are_added_to_and_groups_are_left_out_of_netcdf3() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    script("make", "variables", folder.path());
    converted(&at("first.nc"), &at("g.tiledb"), "tiledb", ConvertOptions::default()).unwrap();
    let store = open(at("g.tiledb")).unwrap();
    assert!(matches!(store.node("/temp").unwrap(), Node::Array(_)));
    assert_eq!(store.array("/temp/temp").unwrap().schema().shape(), [4, 3], "the long path still works");
    drop(store);
    append_along(
        &at("g.tiledb"),
        &[at("second.nc")],
        "time",
        &AppendOptions::default(),
        &Progress::default(),
    )
    .unwrap();
    converted(&at("g.tiledb"), &at("back.nc"), "netcdf4", ConvertOptions::default()).unwrap();
    let node = ConvertOptions::default().with_node(Some("/dims".to_owned()));
    converted(&at("groups.nc"), &at("dims.nc3"), "netcdf3", node).unwrap();
    let report = converted(&at("groups.nc"), &at("top.nc3"), "netcdf3", ConvertOptions::default()).unwrap();
    assert!(report.dropped().any(|loss| loss.path == "/dims"), "{:?}", report.notes());
    script("check", "variables", folder.path());
}

#[test]
fn the_format_of_a_target_follows_from_name_extension_and_content() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let found = |target: &Path, name: Option<&str>, appends| -> Result<_> {
        let (format, variant) = format_of_target(target, name, appends)?
            .ok_or_else(|| Error::invalid("the format cannot be determined"))?;
        Ok((format.name(), variant.map(hyperslab::Variant::name)))
    };
    assert_eq!(found(&at("a.zip"), Some("zarr2"), false)?, ("zarr-zip", Some("zarr2-zip")));
    assert_eq!(found(&at("a.zip"), Some("zarr"), false)?.0, "zarr-zip");
    assert_eq!(found(&at("a.zarr"), Some("zarr2"), false)?, ("zarr", Some("zarr2")));
    assert_eq!(found(&at("a.nc"), Some("zarr2"), false)?, ("zarr", Some("zarr2")));
    assert!(found(&at("group"), None, true).is_err());
    script("make", "labels", folder.path());
    assert_eq!(found(&at("labels"), None, true)?.0, "tiledb");
    assert!(found(&at("labels"), None, false).is_err());
    Ok(())
}
