//! Stores written by the real libraries that differ in one respect: that difference is reported with its code, and
//! nothing else.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::Command;

use hyperslab::convert::{ConvertOptions, Progress, convert};
use hyperslab::diff::{DiffOptions, DiffReport, diff};
use hyperslab::format_named;

fn build(folder: &Path) -> Vec<[String; 3]> {
    let python = std::env::var("HYPERSLAB_PEERS").expect("HYPERSLAB_PEERS names an interpreter with h5py");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/diff.py");
    let output = Command::new(python).arg(script).arg(folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn compared(a: &Path, b: &Path, options: &DiffOptions) -> DiffReport {
    diff((&hyperslab::open(a).unwrap(), "/"), (&hyperslab::open(b).unwrap(), "/"), options).unwrap()
}

#[test]
fn each_difference_is_reported_with_its_code() {
    let folder = tempfile::tempdir().unwrap();
    for [code, name, extension] in build(folder.path()) {
        let [a, b] = ["a", "b"].map(|side| folder.path().join(format!("{code}~{name}.{side}.{extension}")));
        let report = compared(&a, &b, &DiffOptions::default());
        let found: Vec<&str> = report.differences.iter().map(|difference| difference.code).collect();
        let expected: &[&str] = if code == "same" { &[] } else { &[&code] };
        assert_eq!(found, expected, "{code}~{name}: {:#?}", report.differences);
        let json = report.to_json();
        for difference in json["differences"].as_array().unwrap() {
            assert_eq!(difference["code"], code);
            assert!(difference["sentence"].as_str().unwrap().ends_with('.'), "{difference}");
        }
        // Swapping the sides gives a difference too, and a store does not differ from itself.
        assert_eq!(compared(&b, &a, &DiffOptions::default()).differences.len(), found.len());
        assert!(compared(&a, &a, &DiffOptions::default()).same(), "{code}~{name}");
        // With `values_only`, fewer properties are compared.
        let values = DiffOptions::default().with_values_only(true);
        let counted = ["node", "kind", "type", "shape", "values"].contains(&code.as_str());
        if code != "link" && name != "array" {
            assert_eq!(compared(&a, &b, &values).same(), !counted, "{code}~{name}");
        }
    }
}

#[test]
fn properties_that_a_format_lacks_are_not_differences() {
    let folder = tempfile::tempdir().unwrap();
    build(folder.path());
    let source = folder.path().join("rich.h5");
    for (name, to) in [("t.zarr", "zarr3"), ("t2.zarr", "zarr2"), ("t.tet", "tet")] {
        let target = folder.path().join(name);
        let (format, variant) = format_named(to).unwrap();
        let options = ConvertOptions::default().with_variant(variant);
        convert(&hyperslab::open(&source).unwrap(), &target, format, &options, &Progress::default()).unwrap();
        let report = compared(&source, &target, &DiffOptions::default());
        assert!(report.same() && report.nodes == 4, "{to}: {:#?}", report.differences);
    }
    // Properties that both formats express are compared.
    let target = folder.path().join("fill~zarr3.a.zarr");
    let other = folder.path().join("t.h5");
    let (format, variant) = format_named("hdf5").unwrap();
    let options = ConvertOptions::default().with_variant(variant);
    convert(&hyperslab::open(&target).unwrap(), &other, format, &options, &Progress::default()).unwrap();
    assert!(compared(&target, &other, &DiffOptions::default()).same());
    let report = compared(&folder.path().join("fill~zarr3.b.zarr"), &other, &DiffOptions::default());
    assert_eq!(report.differences.iter().map(|one| one.code).collect::<Vec<_>>(), ["fill"]);
}
