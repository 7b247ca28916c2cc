//! References to chunks: zarr reads files through our references, and we read them through our own and kerchunk's.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::Command;

use hyperslab::references::{Options, to_json, write};
use hyperslab::{ExternalFiles, OpenOptions};

fn script(command: &str, folder: &Path) {
    let python = std::env::var("HYPERSLAB_PEERS")
        .expect("HYPERSLAB_PEERS names an interpreter with zarr and kerchunk");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/references.py");
    let output = Command::new(python).arg(script).arg(command).arg(folder).output().unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Compares every array of both stores by its values.
fn same_values(source: &Path, through: &Path) {
    let (a, b) = (hyperslab::open(source).unwrap(), hyperslab::open(through).unwrap());
    let mut compared = 0;
    a.walk(&mut |path, node| {
        if let Ok(hyperslab::Node::Array(array)) = node
            && !array.schema().is_dimension
        {
            let all = "[...]".parse()?;
            let (ours, theirs) = (a.array(path)?.read(&all)?, b.array(path)?.read(&all)?);
            assert_eq!(ours.to_json(), theirs.to_json(), "{} {path}", source.display());
            compared += 1;
        }
        Ok(())
    })
    .unwrap();
    assert!(compared > 0);
}

#[test]
fn reading_through_references_equals_reading_the_source() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    script("make", folder.path());
    let sources = ["a.h5", "b.nc", "c.nc", "d.nc", "f.npy", "y.zip", "z.zip"];
    for source in sources {
        let target = &*Path::new(source).with_extension("json").to_string_lossy().into_owned();
        let store = hyperslab::open(at(source)).unwrap();
        write(&store, &Options::new(&store), &at(target), false).unwrap();
        assert!(
            write(&store, &Options::new(&store), &at(target), false).is_err(),
            "an existing file is kept"
        );
        same_values(&at(source), &at(target));
    }
    script("check", folder.path());
    same_values(&at("k.h5"), &at("kerchunk.json"));
}

#[test]
fn chunks_in_folders_beside_the_references_are_opened() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    script("make", folder.path());
    let (format, variant) = hyperslab::format_named("zarr").unwrap();
    let options = hyperslab::convert::ConvertOptions::default().with_variant(variant);
    let source = hyperslab::open(at("b.nc")).unwrap();
    hyperslab::convert::convert(&source, &at("b.zarr"), format, &options, &hyperslab::Progress::default())
        .unwrap();
    let store = hyperslab::open(at("b.zarr")).unwrap();
    write(&store, &Options::new(&store), &at("z.json"), false).unwrap();
    same_values(&at("b.zarr"), &at("z.json"));
}

#[test]
fn chunks_that_no_codec_reads_are_copied_up_to_a_limit() {
    let folder = tempfile::tempdir().unwrap();
    script("make", folder.path());
    let store = hyperslab::open(folder.path().join("a.h5")).unwrap();
    let document = to_json(&store, &Options::new(&store)).unwrap();
    let refs = document["refs"].as_object().unwrap();
    assert!(refs["g/gzip/0.0"].is_array() && refs["contiguous/0.0"].is_array());
    // A skipped filter, and a filter that numcodecs lacks.
    assert!(refs["masked/0.0"].is_array() && refs["masked/1.0"].is_string() && refs["g/lzf/0.0"].is_string());
    let options = Options { inline_limit: 100, ..Options::new(&store) };
    let error = to_json(&store, &options).unwrap_err();
    assert!(error.is_unsupported() && error.to_string().contains("100 bytes"), "{error}");
}

#[test]
fn external_file_rules_apply_to_targets() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    script("make", folder.path());
    let store = hyperslab::open(folder.path().join("b.nc")).unwrap();
    let target = other.path().join("b.json");
    write(&store, &Options::new(&store), &target, false).unwrap();
    let read = |external| {
        let options = OpenOptions::default().with_external(external);
        hyperslab::open_with(&target, &options)?.array("/v")?.read(&"[0, 0]".parse()?)
    };
    for (rule, why) in [(ExternalFiles::None, "not followed"), (ExternalFiles::Beside, "not in the folder")] {
        let error = read(rule).unwrap_err().to_string();
        assert!(
            error.contains("b.nc") && error.contains("may not be opened") && error.contains(why),
            "{error}"
        );
    }
    assert!(read(ExternalFiles::Any).is_ok());
    // A file that is too short is an error, not a missing chunk.
    std::fs::write(folder.path().join("b.nc"), b"CDF\x01").unwrap();
    assert!(read(ExternalFiles::Any).unwrap_err().is_corrupt());
}

/// Only a source that does not exist reads as the fill value.
#[test]
fn sources_of_virtual_datasets_are_read_or_reported() {
    let folder = tempfile::tempdir().unwrap();
    script("make", folder.path());
    let path = folder.path().join("inner/v.h5");
    let read = |node: &str, external: ExternalFiles| {
        let store = hyperslab::open_with(&path, &OpenOptions::default().with_external(external)).unwrap();
        store.array(node).and_then(|array| array.read(&"[0, :3]".parse()?)).map(|values| values.to_json())
    };
    let refused = read("/outside", ExternalFiles::Beside).unwrap_err().to_string();
    assert!(refused.contains("../a.h5") && refused.contains("policy for external files"), "{refused}");
    let a = hyperslab::open(folder.path().join("a.h5")).unwrap();
    let expected = a.array("/contiguous").unwrap().read(&"[0, :3]".parse().unwrap()).unwrap().to_json();
    assert_eq!(read("/outside", ExternalFiles::Any).unwrap(), expected);
    assert_eq!(read("/missing", ExternalFiles::Beside).unwrap(), serde_json::json!([-1.0, -1.0, -1.0]));
    assert!(read("/damaged", ExternalFiles::Beside).unwrap_err().is_corrupt());
}
