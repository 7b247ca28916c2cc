//! HDF5 to HDF5 is the same file, better stored: h5py's low-level interface finds no difference.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::{Command, Output};

use hyperslab::convert::{ConvertOptions, ConvertReport, Progress, convert};
use hyperslab::{Format, Selection, open};

fn script(arguments: &[&str]) -> Output {
    let python = std::env::var("HYPERSLAB_PEERS").expect("HYPERSLAB_PEERS names an interpreter with h5py");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/hdf5_same.py");
    Command::new(python).arg(script).args(arguments).output().unwrap()
}

/// The script's answer; it must succeed.
fn answer(arguments: &[&str]) -> String {
    let output = script(arguments);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{arguments:?}\n{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

fn converted(source: &Path, target: &Path, options: &ConvertOptions) -> ConvertReport {
    convert(&open(source).unwrap(), target, Format::HDF5, options, &Progress::default()).unwrap()
}

/// Runs Python with h5py; it must succeed.
fn python(code: &str, arguments: &[&Path]) {
    let python = std::env::var("HYPERSLAB_PEERS").expect("HYPERSLAB_PEERS names an interpreter with h5py");
    let output = Command::new(python).arg("-c").arg(code).args(arguments).output().unwrap();
    assert!(output.status.success(), "{code}\n{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn everything_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let names = answer(&["build", folder.path().to_str().unwrap()]);
    assert!(names.lines().count() >= 10, "{names}");
    for name in names.lines() {
        let (source, target) = (folder.path().join(name), folder.path().join(format!("out-{name}")));
        let report = converted(&source, &target, &ConvertOptions::default());
        assert_eq!(report.dropped().count(), 0, "{name}: {:?}", report.losses);
        let (a, b) = (source.to_str().unwrap(), target.to_str().unwrap());
        let mut arguments = vec!["compare", a, b];
        if name == "external.h5" {
            assert!(report.losses[0].what.contains("raw.bin"), "{:?}", report.losses);
            arguments.push("get_external_count");
        } else {
            assert_eq!(report.losses, [], "{name}");
        }
        answer(&arguments);
        if name == "links.h5" {
            assert!(target.metadata().unwrap().len() <= source.metadata().unwrap().len());
        }
        // libhdf5 goes on with the file: counts of links, orders and heaps are as it expects them.
        answer(&["edit", b]);
        if name == "block.h5" {
            let block = |path: &Path| std::fs::read(path).unwrap()[..1024].to_vec();
            assert!(block(&source) == block(&target), "the user block is another");
        }
    }
}

/// What the comparison does not notice is not proven: it notices every kind of change.
#[test]
fn the_comparison_notices_changes() {
    let folder = tempfile::tempdir().unwrap();
    answer(&["mutants", folder.path().to_str().unwrap()]);
}

/// Other chunks and filters change how values are stored, and nothing else.
#[test]
fn values_stored_in_another_way_stay_the_same() {
    let folder = tempfile::tempdir().unwrap();
    answer(&["build", folder.path().to_str().unwrap()]);
    let filters = Some(vec![hyperslab::Filter::new("gzip").with("level", 1)]);
    let options = ConvertOptions { chunk_bytes: Some(64), filters, ..ConvertOptions::default() };
    let storage = ["layout", "chunk", "filters", "get_alloc_time", "get_external_count"];
    for name in ["types.h5", "references.h5", "named.h5", "links.h5", "virtual.h5"] {
        let (source, target) = (folder.path().join(name), folder.path().join(format!("out-{name}")));
        let report = converted(&source, &target, &options);
        assert_eq!(report.dropped().count(), 0, "{name}: {:?}", report.losses);
        let mut arguments = vec!["compare", source.to_str().unwrap(), target.to_str().unwrap()];
        arguments.extend(storage);
        answer(&arguments);
    }
}

#[test]
fn references_to_what_is_gone_are_null_and_told() {
    let folder = tempfile::tempdir().unwrap();
    let (source, target) = (folder.path().join("a.h5"), folder.path().join("b.h5"));
    answer(&["dangling", source.to_str().unwrap()]);
    let report = converted(&source, &target, &ConvertOptions::default());
    let told: Vec<&str> = report.dropped().map(|loss| loss.path.as_str()).collect();
    assert_eq!(told, ["/", "/refs"], "{:?}", report.losses);
    python(
        "import h5py, sys\n\
         f = h5py.File(sys.argv[1])\n\
         assert f[f['refs'][0]] == f['a'] and not f['refs'][1]\n\
         assert not f.attrs['ref'] and not f.attrs['region']",
        &[&target],
    );
    let strict = ConvertOptions { strict: true, replace: true, ..ConvertOptions::default() };
    let refused =
        convert(&open(&source).unwrap(), &target, Format::HDF5, &strict, &Progress::default()).unwrap_err();
    assert!(refused.to_string().contains("nothing was written"), "{refused}");
}

/// A part of a file keeps what is in it; what leads out of it is told.
#[test]
fn a_part_keeps_its_links() {
    let folder = tempfile::tempdir().unwrap();
    answer(&["build", folder.path().to_str().unwrap()]);
    let target = folder.path().join("part.h5");
    let options = ConvertOptions { node: Some("/g".to_owned()), ..ConvertOptions::default() };
    converted(&folder.path().join("links.h5"), &target, &options);
    python(
        "import h5py, sys\n\
         f = h5py.File(sys.argv[1])\n\
         assert list(f) == ['g'] and f['g/deep/self'] == f['g/deep'] and f['g/deep/root'] == f['/']\n\
         assert f['g'].get('relative', getlink=True).path == 'deep/v' and (f['g/relative'][:] == [1, 2, 3]).all()",
        &[&target],
    );
    // Through a soft link, what it leads to is taken.
    let options =
        ConvertOptions { node: Some("/soft".to_owned()), replace: true, ..ConvertOptions::default() };
    converted(&folder.path().join("links.h5"), &target, &options);
    python("import h5py, sys\nassert (h5py.File(sys.argv[1])['soft'][:] == [1, 2, 3]).all()", &[&target]);
    let one = ConvertOptions {
        node: Some("/big".to_owned()),
        selection: "[10:20]".parse::<Selection>().unwrap(),
        replace: true,
        ..ConvertOptions::default()
    };
    converted(&folder.path().join("links.h5"), &target, &one);
    python("import h5py, sys\nassert h5py.File(sys.argv[1])['big'][0] == 10", &[&target]);
}

#[test]
fn other_files_are_found_from_another_folder() {
    let folder = tempfile::tempdir().unwrap();
    answer(&["build", folder.path().to_str().unwrap()]);
    let elsewhere = folder.path().join("deep/elsewhere");
    std::fs::create_dir_all(&elsewhere).unwrap();
    let (source, target) = (folder.path().join("virtual.h5"), elsewhere.join("virtual.h5"));
    let report = converted(&source, &target, &ConvertOptions::default());
    assert!(
        report.losses.iter().all(|loss| !loss.dropped && loss.what.contains("../../part")),
        "{:?}",
        report.losses
    );
    let same = "import h5py, sys\n\
         a, b = h5py.File(sys.argv[1]), h5py.File(sys.argv[2])\n\
         assert b['v'].is_virtual == b['own'].is_virtual\n\
         for name in a: assert (a[name][:] == b[name][:]).all(), name";
    python(&format!("{same}\nassert b['v'].is_virtual"), &[&source, &target]);
    let options = ConvertOptions { materialise: true, replace: true, ..ConvertOptions::default() };
    let report = converted(&source, &target, &options);
    assert_eq!(report.losses.len(), 2, "{:?}", report.losses);
    python(
        &format!("{same}\nassert not b['v'].is_virtual and b['v'].attrs['units'] == 'K'"),
        &[&source, &target],
    );
    let (source, target) = (folder.path().join("links.h5"), elsewhere.join("links.h5"));
    converted(&source, &target, &ConvertOptions::default());
    python(
        "import h5py, sys\n\
         f = h5py.File(sys.argv[1])\n\
         assert (f['external'][:] == range(5)).all()\n\
         assert f.get('missing', getlink=True).filename == 'missing.h5'",
        &[&target],
    );
}

/// Files that libraries of any age read hold the same, but for what those libraries do not know.
#[test]
fn old_libraries_are_told_the_same() {
    let folder = tempfile::tempdir().unwrap();
    answer(&["build", folder.path().to_str().unwrap()]);
    let (_, variant) = hyperslab::format_named("hdf5-earliest").unwrap();
    let options = ConvertOptions { variant, ..ConvertOptions::default() };
    let order = ["link order", "attribute order", "get_attr_creation_order"];
    for name in ["references.h5", "types.h5", "named.h5", "old.h5", "block.h5", "virtual.h5", "links.h5"] {
        let (source, target) = (folder.path().join(name), folder.path().join(format!("out-{name}")));
        let report = converted(&source, &target, &options);
        let untold = |what: &str| !what.contains("order of creation") && !what.contains("external links");
        let dropped: Vec<_> = report.dropped().filter(|loss| untold(&loss.what)).collect();
        assert_eq!(dropped, Vec::<&hyperslab::convert::Loss>::new(), "{name}");
        let superblock = if name == "block.h5" { 1024 } else { 0 };
        assert_eq!(std::fs::read(&target).unwrap()[superblock + 8], 0, "{name}: the superblock's version");
        let mut arguments = vec!["compare", source.to_str().unwrap(), target.to_str().unwrap()];
        arguments.extend(order);
        if name == "virtual.h5" {
            assert!(
                report.losses.iter().any(|loss| loss.what.contains("with its values")),
                "{:?}",
                report.losses
            );
            arguments.extend(["layout", "get_alloc_time", "filters"]);
        }
        if name == "links.h5" {
            // Those libraries have no external links, and names of no charset.
            arguments.extend(["names", "charset of the name"]);
        }
        answer(&arguments);
    }
}
