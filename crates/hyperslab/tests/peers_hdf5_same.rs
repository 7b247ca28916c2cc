//! HDF5 to HDF5 keeps everything: h5py's low-level interface finds no difference.

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

/// Runs the script, which must succeed, and returns its output.
fn answer(arguments: &[&str]) -> String {
    let output = script(arguments);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{arguments:?}\n{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

fn converted(source: &Path, target: &Path, options: &ConvertOptions) -> ConvertReport {
    convert(&open(source).unwrap(), target, Format::HDF5, options, &Progress::default()).unwrap()
}

/// Runs Python code with h5py, which must succeed.
fn python(code: &str, arguments: &[&Path]) {
    let python = std::env::var("HYPERSLAB_PEERS").expect("HYPERSLAB_PEERS names an interpreter with h5py");
    let output = Command::new(python).arg("-c").arg(code).args(arguments).output().unwrap();
    assert!(output.status.success(), "{code}\n{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn copies_are_identical() {
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
        // libhdf5 can continue writing: link counts, creation orders and heaps are valid.
        answer(&["edit", b]);
        if name == "block.h5" {
            let block = |path: &Path| std::fs::read(path).unwrap()[..1024].to_vec();
            assert!(block(&source) == block(&target), "the user block differs");
        }
    }
}

/// The comparison itself is tested: it notices every kind of change.
#[test]
fn the_comparison_notices_changes() {
    let folder = tempfile::tempdir().unwrap();
    answer(&["mutants", folder.path().to_str().unwrap()]);
}

/// Other chunks and filters change how values are stored, but nothing else.
#[test]
fn values_do_not_depend_on_storage() {
    let folder = tempfile::tempdir().unwrap();
    answer(&["build", folder.path().to_str().unwrap()]);
    let filters = Some(vec![hyperslab::Filter::new("gzip").with("level", 1)]);
    let options = ConvertOptions::default().with_chunk_bytes(64).with_filters(filters);
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
fn references_to_missing_objects_become_null_and_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (source, target) = (folder.path().join("a.h5"), folder.path().join("b.h5"));
    answer(&["dangling", source.to_str().unwrap()]);
    let report = converted(&source, &target, &ConvertOptions::default());
    let dropped: Vec<&str> = report.dropped().map(|loss| loss.path.as_str()).collect();
    assert_eq!(dropped, ["/", "/refs"], "{:?}", report.losses);
    python(
        "import h5py, sys\n\
         f = h5py.File(sys.argv[1])\n\
         assert f[f['refs'][0]] == f['a'] and not f['refs'][1]\n\
         assert not f.attrs['ref'] and not f.attrs['region']",
        &[&target],
    );
    let strict = ConvertOptions::default().with_strict(true).with_replace(true);
    let refused =
        convert(&open(&source).unwrap(), &target, Format::HDF5, &strict, &Progress::default()).unwrap_err();
    assert!(refused.to_string().contains("nothing was written"), "{refused}");
}

/// A part of a file keeps the links inside it. Links out of it are reported.
#[test]
fn a_part_keeps_its_links() {
    let folder = tempfile::tempdir().unwrap();
    answer(&["build", folder.path().to_str().unwrap()]);
    let target = folder.path().join("part.h5");
    let options = ConvertOptions::default().with_node("/g".to_owned());
    converted(&folder.path().join("links.h5"), &target, &options);
    python(
        "import h5py, sys\n\
         f = h5py.File(sys.argv[1])\n\
         assert list(f) == ['g'] and f['g/deep/self'] == f['g/deep'] and f['g/deep/root'] == f['/']\n\
         assert f['g'].get('relative', getlink=True).path == 'deep/v' and (f['g/relative'][:] == [1, 2, 3]).all()",
        &[&target],
    );
    // Content behind a soft link is included.
    let options = ConvertOptions::default().with_node("/soft".to_owned()).with_replace(true);
    converted(&folder.path().join("links.h5"), &target, &options);
    python("import h5py, sys\nassert (h5py.File(sys.argv[1])['soft'][:] == [1, 2, 3]).all()", &[&target]);
    let one = ConvertOptions::default()
        .with_node("/big".to_owned())
        .with_selection("[10:20]".parse::<Selection>().unwrap())
        .with_replace(true);
    converted(&folder.path().join("links.h5"), &target, &one);
    python("import h5py, sys\nassert h5py.File(sys.argv[1])['big'][0] == 10", &[&target]);
}

#[test]
fn external_files_are_found_from_another_folder() {
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
    let options = ConvertOptions::default().with_materialise(true).with_replace(true);
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

/// Files for libraries of any age have the same content, except for features that those libraries lack.
#[test]
fn files_for_old_libraries_have_the_same_content() {
    let folder = tempfile::tempdir().unwrap();
    answer(&["build", folder.path().to_str().unwrap()]);
    let (_, variant) = hyperslab::format_named("hdf5-earliest").unwrap();
    let options = ConvertOptions::default().with_variant(variant);
    let order = ["link order", "attribute order", "get_attr_creation_order"];
    for name in ["references.h5", "types.h5", "named.h5", "old.h5", "block.h5", "virtual.h5", "links.h5"] {
        let (source, target) = (folder.path().join(name), folder.path().join(format!("out-{name}")));
        let report = converted(&source, &target, &options);
        let is_unexpected =
            |what: &str| !what.contains("order of creation") && !what.contains("external links");
        let dropped: Vec<_> = report.dropped().filter(|loss| is_unexpected(&loss.what)).collect();
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
            // Those libraries support neither external links nor charsets of names.
            arguments.extend(["names", "charset of the name"]);
        }
        answer(&arguments);
    }
}

/// Files are divided into pages on request, and stay so. Free space of the source is not copied.
#[test]
fn pages_are_made_kept_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    answer(&["build", folder.path().to_str().unwrap()]);
    let check = "import h5py, sys\n\
         page = int(sys.argv[2])\n\
         f = h5py.File(sys.argv[1], 'r', **({'page_buf_size': 16 * page} if page else {}))\n\
         plist = f.id.get_create_plist()\n\
         strategy = plist.get_file_space_strategy()[0]\n\
         assert (strategy == h5py.h5f.FSPACE_STRATEGY_PAGE) == bool(page), strategy\n\
         if page: assert plist.get_file_space_page_size() == page, plist.get_file_space_page_size()\n\
         def read(name, node):\n\
         \x20   if not isinstance(node, h5py.Dataset) or node.shape is None: return\n\
         \x20   # NumPy lacks some of HDF5's types.\n\
         \x20   try: node[()]\n\
         \x20   except (TypeError, ValueError): pass\n\
         \x20   except OSError as error:\n\
         \x20       if 'conversion path' not in str(error): raise\n\
         f.visititems(read)";
    let pages = |path: &Path, page: &str| python(check, &[path, Path::new(page)]);
    for name in ["types.h5", "links.h5", "named.h5", "block.h5"] {
        let source = folder.path().join(name);
        let (paged, again) =
            (folder.path().join(format!("paged-{name}")), folder.path().join(format!("again-{name}")));
        converted(&source, &paged, &ConvertOptions::default().with_page_size(4096));
        pages(&paged, "4096");
        answer(&["compare", source.to_str().unwrap(), paged.to_str().unwrap()]);
        converted(&paged, &again, &ConvertOptions::default());
        pages(&again, "4096");
        // libhdf5 can continue writing.
        answer(&["edit", again.to_str().unwrap()]);
        let none = ConvertOptions::default().with_page_size(0).with_replace(true);
        converted(&paged, &again, &none);
        pages(&again, "0");
    }
    let refused = ConvertOptions::default().with_page_size(100);
    let target = folder.path().join("refused.h5");
    let source = open(folder.path().join("types.h5")).unwrap();
    assert!(convert(&source, &target, Format::HDF5, &refused, &Progress::default()).is_err());
    let other = convert(&source, &folder.path().join("x.zarr"), Format::ZARR, &refused, &Progress::default());
    assert!(other.unwrap_err().to_string().contains("pages"));
    let deleted = folder.path().join("deleted.h5");
    python(
        "import h5py, numpy as np, sys\n\
         f = h5py.File(sys.argv[1], 'w')\n\
         f['big'], f['small'] = np.zeros(1 << 20, 'u1'), 1\n\
         f.close()\n\
         f = h5py.File(sys.argv[1], 'a')\n\
         del f['big']",
        &[&deleted],
    );
    let target = folder.path().join("smaller.h5");
    converted(&deleted, &target, &ConvertOptions::default());
    assert!(target.metadata().unwrap().len() < 10_000);
}

/// User blocks are added and removed.
#[test]
fn user_blocks_are_given_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    answer(&["build", folder.path().to_str().unwrap()]);
    let (source, target) = (folder.path().join("types.h5"), folder.path().join("out.h5"));
    let block = vec![b'#'; 1024];
    let with = ConvertOptions::default().with_preamble(bytes::Bytes::from(block.clone()));
    converted(&source, &target, &with);
    assert!(std::fs::read(&target).unwrap().starts_with(&block));
    answer(&["compare", source.to_str().unwrap(), target.to_str().unwrap(), "get_userblock"]);
    let without = ConvertOptions::default().with_preamble(bytes::Bytes::new());
    let plain = folder.path().join("plain.h5");
    converted(&target, &plain, &without);
    assert!(std::fs::read(&plain).unwrap().starts_with(b"\x89HDF"));
}

/// Files with pages and files that record their free space are appended to; libhdf5 can continue writing.
#[test]
fn managed_files_are_added_to() {
    let folder = tempfile::tempdir().unwrap();
    let write = "import h5py, numpy as np, sys\n\
         strategy, persist = sys.argv[2], sys.argv[3] == 'True'\n\
         f = h5py.File(sys.argv[1], 'w', libver='v110', fs_strategy=strategy, fs_persist=persist, \
         **({'fs_page_size': 4096} if strategy == 'page' else {}))\n\
         f.create_dataset('t', data=np.arange(1000), maxshape=(None,), chunks=(100,))\n\
         f.create_dataset('gone', data=np.zeros(100000))\n\
         f.close()\n\
         f = h5py.File(sys.argv[1], 'a')\n\
         del f['gone']";
    let check = "import h5py, numpy as np, sys\n\
         page = {'page_buf_size': 65536} if sys.argv[2] == 'page' else {}\n\
         with h5py.File(sys.argv[1], 'r', **page) as f:\n\
         \x20   assert (f['t'][:] == np.arange(1250)).all()\n\
         with h5py.File(sys.argv[1], 'a') as f:\n\
         \x20   f['more'] = np.ones(5000)\n\
         \x20   f['t'].resize((1300,))\n\
         with h5py.File(sys.argv[1], 'r', **page) as f:\n\
         \x20   assert (f['t'][:1250] == np.arange(1250)).all() and f['more'][:].sum() == 5000";
    for (strategy, persist) in [("page", "False"), ("page", "True"), ("fsm", "True"), ("aggregate", "False")]
    {
        let path = folder.path().join(format!("{strategy}-{persist}.h5"));
        python(write, &[&path, Path::new(strategy), Path::new(persist)]);
        let store = open(&path).unwrap();
        let append = hyperslab::CreateOptions::default().with_append(true);
        let mut sink = hyperslab::create(&path, Format::HDF5, &append).unwrap();
        let bytes: Vec<u8> = (1000..1250_i64).flat_map(i64::to_ne_bytes).collect();
        let values =
            hyperslab::Values::new(hyperslab::DType::Int64, &[250], hyperslab::Elements::fixed(bytes))
                .unwrap();
        hyperslab::extend(&mut *sink, &store.array("/t").unwrap(), "/t", 0, &values).unwrap();
        sink.commit().unwrap();
        python(check, &[&path, Path::new(strategy)]);
    }
}
