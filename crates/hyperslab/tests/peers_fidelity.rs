//! Content whose meaning is easily lost in a conversion. The real libraries write the sources and read the results.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use hyperslab::convert::{ConvertOptions, ConvertReport, Progress, convert};
use hyperslab::{Filter, format_named};

fn script(arguments: &[&str]) -> String {
    let python =
        std::env::var("HYPERSLAB_PEERS").expect("HYPERSLAB_PEERS names an interpreter with the peers");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/fidelity.py");
    let output = Command::new(python).arg(script).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The folder with the sources.
fn folder() -> &'static Path {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        script(&["make", folder.path().to_str().unwrap()]);
        folder
    });
    folder.path()
}

fn check(case: &str) {
    let wrong = script(&["check", folder().to_str().unwrap(), case]);
    assert!(wrong.is_empty(), "{wrong}");
}

/// Converts to the format given by the extension.
fn to_with(source: &str, target: &str, options: ConvertOptions) -> ConvertReport {
    let name = match target.rsplit('.').next().unwrap() {
        "nc" => "netcdf4",
        "nc3" => "netcdf3",
        "h5" => "hdf5",
        other => other,
    };
    let (format, variant) = format_named(name).unwrap();
    let store = hyperslab::open(folder().join(source)).unwrap();
    let options = options.with_variant(variant);
    let report = convert(&store, &folder().join(target), format, &options, &Progress::default());
    report.map_err(|why| format!("{source} to {target}: {why}")).unwrap()
}

fn to(source: &str, target: &str) -> ConvertReport {
    to_with(source, target, ConvertOptions::default())
}

#[test]
fn booleans_have_no_markers_in_netcdf() {
    for target in ["booleans.nc", "booleans.nc3"] {
        assert_eq!(to("booleans.zarr2", target).notes(), [""; 0]);
    }
    check("booleans");
}

/// Edits a variable that is stored under another name, in place and by rewriting the file.
fn edit_names() {
    use hyperslab::edit::{Edit, EditOptions, edit};
    let target = folder().join("names-edited.nc");
    std::fs::copy(folder().join("names.nc"), &target).unwrap();
    let set = Edit::SetAttribute { node: "/y".to_owned(), name: "units".to_owned(), value: "m".into() };
    edit(&target, &[set], &EditOptions::default(), &Progress::default()).unwrap();
    let units = || {
        let store = hyperslab::open(&target).unwrap();
        let array = store.array("/y").unwrap();
        assert_eq!(array.schema().shape(), [3]);
        array.schema().attributes.get("units").and_then(|units| units.as_text())
    };
    assert_eq!(units().as_deref(), Some("m"));
    // This change rewrites the file.
    let delete = Edit::DeleteAttribute { node: "/y".to_owned(), name: "units".to_owned() };
    edit(&target, &[delete], &EditOptions::default(), &Progress::default()).unwrap();
    assert_eq!(units(), None);
}

#[test]
fn variables_may_be_named_like_dimensions_that_they_do_not_lie_on() {
    let store = hyperslab::open(folder().join("names.nc")).unwrap();
    assert_eq!(store.children("/").unwrap(), ["y", "v", "x"]);
    let values = store.array("/y").unwrap().read(&hyperslab::Selection::all()).unwrap();
    assert_eq!(values.as_slice::<f32>(), Some(&[1.0, 2.0, 3.0][..]));
    to("names.nc", "names-copy.nc");
    // Converting a part regenerates the bookkeeping.
    to_with("names.nc", "names-part.nc", ConvertOptions::default().with_selection("y=0..1".parse().unwrap()));
    to("names.nc", "names.nc3");
    to("names.nc", "names.zarr3");
    to("names.nc3", "names-from-nc3.nc");
    to("names.zarr3", "names-from-zarr.nc");
    edit_names();
    check("names");
}

#[test]
fn coordinates_of_several_dimensions_are_scales() {
    to("coordinates.nc3", "coordinates.nc");
    to("coordinates.nc3", "coordinates.zarr3");
    to("coordinates.zarr3", "coordinates-from-zarr.nc");
    check("coordinates");
    let store = hyperslab::open(folder().join("coordinates.nc")).unwrap();
    let dimensions = |path: &str| store.array(path).unwrap().schema().dimensions.clone();
    assert_eq!(dimensions("/y"), [Some("y".to_owned()), Some("x".to_owned())]);
    assert_eq!(dimensions("/v"), [Some("y".to_owned()), Some("x".to_owned())]);
}

#[test]
fn markers_of_missing_values_keep_their_meaning() {
    for version in [2, 3] {
        for ending in ["nc", "nc3"] {
            to(&format!("half.zarr{version}"), &format!("half{version}.{ending}"));
        }
    }
    let notes = to("complex.zarr2", "complex.nc").notes();
    assert!(notes[0].contains("the missing-value marker is left out"), "{notes:?}");
    for kind in ["bytes", "fixed", "texts"] {
        let source = format!("{kind}.zarr2");
        let notes = to(&source, &format!("{kind}.zarr3")).notes();
        assert!(notes[0].contains("_FillValue"), "{notes:?}");
        let notes = to(&source, &format!("{kind}.nc3")).notes();
        assert!(notes[0].contains("the missing-value marker is left out"), "{notes:?}");
        to(&source, &format!("{kind}.nc"));
        to(&source, &format!("{kind}.h5"));
    }
    for target in ["characters.zarr2", "characters.zarr3", "characters.nc3"] {
        to("characters.nc", target);
    }
    to("characters.nc3", "characters-back.nc");
    check("markers");
}

#[test]
fn filters_are_readable_by_the_libraries_of_the_target() {
    let plain = ConvertOptions::default;
    for version in [2, 3] {
        to("checksum.nc", &format!("checksum.zarr{version}"));
        to("blosc.h5", &format!("blosc.zarr{version}"));
    }
    to_with("packed.h5", "packed-chunks.h5", plain().with_chunk_shape(vec![7, 20]));
    to_with("packed.h5", "packed-part.h5", plain().with_selection("[3:17]".parse().unwrap()));
    let notes = to("zstd.zarr3", "zstd.nc").notes();
    assert_eq!(
        notes,
        ["/v: filter zstd replaced by shuffle and gzip, which every library of the format reads"]
    );
    let asked = to_with("zstd.zarr3", "zstd-asked.nc", plain().with_filters(vec![Filter::new("zstd")]));
    assert_eq!(asked.notes(), [""; 0]);
    assert_eq!(to("zstd-asked.nc", "zstd-copy.h5").notes(), [""; 0]);
    check("filters");
}

#[test]
fn attributes_have_types_that_the_netcdf_library_lists() {
    let notes = to("attributes.zarr3", "attributes.nc").notes();
    for words in ["\"matrix\" is stored as the text of its JSON", "\"yes\" is stored as int8"] {
        assert!(notes.iter().any(|note| note.contains(words)), "{words}: {notes:?}");
    }
    let notes = to("attributes.h5", "attributes-from-hdf5.nc").notes();
    for words in [
        "attribute \"z\" of type complex128 is not shown by the NetCDF library",
        "attribute \"matrix\" of shape [2, 2] is stored as a plain list",
    ] {
        assert!(notes.iter().any(|note| note.contains(words)), "{words}: {notes:?}");
    }
    check("attributes");
}

/// Compares two stores of the folder in everything that users see.
fn differences(a: &str, b: &str) -> Vec<String> {
    let [a, b] = [a, b].map(|name| hyperslab::open(folder().join(name)).unwrap());
    let report = hyperslab::diff::diff((&a, "/"), (&b, "/"), &hyperslab::diff::DiffOptions::default());
    let report = report.unwrap();
    report.differences.iter().map(|found| format!("{}: {}", found.path, found.sentence())).collect()
}

#[test]
fn characters_that_are_not_utf_8_are_kept_or_told() {
    for (source, target) in [
        ("latin.nc", "latin-copy.nc"),
        ("latin.nc", "latin-from.nc3"),
        ("latin.nc3", "latin-from.nc"),
        ("latin.nc3", "latin-copy.nc3"),
    ] {
        assert_eq!(to(source, target).notes(), [""; 0], "{source} to {target}");
        assert_eq!(differences(source, target), [""; 0], "{source} to {target}");
    }
    for target in ["latin.zarr2", "latin.zarr3", "latin.tet", "latin.tiledb"] {
        let told = to("latin.nc3", target).notes();
        assert_eq!(told, ["/v: attribute \"units\" is not UTF-8; it is read as Latin-1"], "{target}");
    }
    to("latin.tet", "latin-tet.nc");
    to("latin.tiledb", "latin-tiledb.nc");
    check("characters");
}

#[test]
fn bytes_of_any_length_are_kept() {
    for target in ["raw.h5", "raw-tiledb.nc", "raw.zarr3", "raw.tet"] {
        to("raw.tiledb", target);
    }
    to("raw.zarr3", "raw-zarr3.tiledb");
    to("raw.tet", "raw-tet.tiledb");
    for ending in ["h5", "nc"] {
        let (between, back) = (format!("blobs.{ending}"), format!("blobs-{ending}.tiledb"));
        to("blobs.tiledb", &between);
        assert_eq!(differences("blobs.tiledb", &between), [""; 0], "{ending}");
        to(&between, &back);
        assert_eq!(differences("blobs.tiledb", &back), [""; 0], "{ending}");
    }
    check("bytes");
}

#[test]
fn spans_of_time_are_those_of_xarray() {
    to("spans.zarr3", "spans.nc");
    to("spans.zarr3", "spans.nc3");
    to("spans.nc", "spans-back.zarr3");
    check("spans");
}

#[test]
fn nested_structs_come_back() {
    for name in ["zarr2", "zarr3", "tiledb", "tet"] {
        let between = format!("structs.{name}");
        let told = to("structs.h5", &between).notes();
        // Where references are texts, that is told; `.tet` has neither.
        let words = if name == "tet" { "reference" } else { "references are stored as the paths" };
        assert!(told.iter().any(|note| note.starts_with("/reference") && note.contains(words)), "{told:?}");
        to(&between, &format!("structs-{name}.h5"));
    }
    check("structs");
}

#[test]
fn documents_are_stored_as_their_text() {
    for target in ["documents.nc", "documents.nc3"] {
        let report = to("documents.zarr3", target);
        assert_eq!(report.dropped().count(), 0, "{:?}", report.notes());
        let told = report.notes();
        assert!(
            told.iter().any(|note| note.contains("\"dict\" is stored as the text of its JSON")),
            "{told:?}"
        );
    }
    check("documents");
}

#[test]
fn attributes_that_npz_lacks_are_told() {
    let told = to("latin.nc", "latin.npz").notes();
    assert_eq!(told, ["/v: npz has no attributes; left out: units, name"]);
}

#[test]
fn fixed_text_and_opaque_bytes_come_back() {
    to("text.npz", "text.h5");
    to("text.h5", "text-back.npz");
    assert_eq!(differences("text.npz", "text-back.npz"), [""; 0]);
    to("opaque.h5", "opaque.tiledb");
    to("opaque.tiledb", "opaque-back.h5");
    assert_eq!(differences("opaque.h5", "opaque-back.h5"), [""; 0]);
    check("text");
}

#[test]
fn arrays_that_cannot_be_read_are_left_out_and_reported() {
    let report = to("objects.npz", "objects.zarr3");
    let told = report.notes();
    assert!(
        told.len() == 1 && told[0].starts_with("/o: not converted: ") && told[0].contains("pickle"),
        "{told:?}"
    );
    assert_eq!(report.dropped().count(), 1);
    let store = hyperslab::open(folder().join("objects.npz")).unwrap();
    let format = format_named("zarr").unwrap().0;
    for options in [
        ConvertOptions::default().with_strict(true),
        ConvertOptions::default().with_node("/o".to_owned()),
        ConvertOptions::default().with_drop(vec!["a".to_owned()]),
    ] {
        let target = folder().join("objects-refused.zarr");
        let refused = convert(&store, &target, format, &options, &Progress::default());
        assert!(refused.is_err() && !target.exists(), "{options:?}");
    }
    check("objects");
}

#[test]
fn packed_bits_are_kept_in_version_3() {
    assert_eq!(to("bits.zarr2", "bits.zarr3").notes(), [""; 0]);
    assert_eq!(differences("bits.zarr2", "bits.zarr3"), [""; 0]);
    check("bits");
}

#[test]
fn empty_datasets_and_some_scales_survive() {
    let unlimited = ConvertOptions::default().with_unlimited(vec!["0".to_owned()]);
    to_with("null.h5", "null-unlimited.h5", unlimited);
    // A renamed node is written by copying the file.
    let edits = [hyperslab::edit::Edit::Rename { from: "/other".to_owned(), to: "/moved".to_owned() }];
    let path = folder().join("scales.h5");
    hyperslab::edit::edit(&path, &edits, &hyperslab::edit::EditOptions::default(), &Progress::default())
        .unwrap();
    check("scales");
}

#[test]
fn time_zones_and_metadata_of_tables_are_attributes() {
    to("zones.parquet", "zones.zarr3");
    let store = hyperslab::open(folder().join("zones.parquet")).unwrap();
    let rows = folder().join("zones-copy.parquet");
    let options = ConvertOptions::default();
    let report = hyperslab::convert::convert_to_rows(&store, &rows, &options, &Progress::default()).unwrap();
    let told = report.notes();
    assert!(told.iter().any(|note| note.contains("owner") && note.contains("time_zones")), "{told:?}");
    check("zones");
}
