//! Checks of stores that zarr, h5py and netCDF4 wrote: missing chunks, outdated records, and stale consolidated
//! documents.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::Command;

use hyperslab::verify::{Record, Verified, verify_path};
use hyperslab::{Depth, OpenOptions, Selection, Severity};

fn python(code: &str, folder: &Path) {
    let python = std::env::var("HYPERSLAB_PEERS").expect("HYPERSLAB_PEERS names an interpreter with zarr");
    let output = Command::new(python).args(["-c", code]).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

const MAKE: &str = "
import h5py, netCDF4, numpy as np, zarr
for version in (2, 3):
    root = zarr.open_group(f'v{version}.zarr', mode='w', zarr_format=version)
    data = np.arange(1, 129)
    root.create_array('a', data=data, chunks=1, compressors=None)
    root.create_array('g/b', data=data, chunks=64, attributes={'units': 'K'})
    if version == 3:
        root.create_array('checked', data=data, chunks=64, compressors=zarr.codecs.Crc32cCodec())
        root.create_array('sharded', data=data, chunks=(4,), shards=(16,), compressors=None)
    zarr.consolidate_metadata(f'v{version}.zarr')
with h5py.File('f.h5', 'w') as f:
    f.create_dataset('whole', data=np.arange(8), chunks=(2,), fletcher32=True)
    f.create_dataset('part', shape=8, dtype='i4', chunks=(2,))[:4] = 1
    f['plain'] = np.arange(3)
with netCDF4.Dataset('c.nc3', 'w', format='NETCDF3_CLASSIC') as f:
    f.createDimension('t', 3)
    f.createVariable('v', 'f4', ('t',))[:] = [1, 2, 3]
";

fn verified(path: &Path) -> Verified {
    verify_path(path, &OpenOptions::default(), Depth::Quick).unwrap()
}

/// The details of a check, each with its node.
fn details(verified: &Verified, check: &str) -> Vec<String> {
    let found = verified.report.findings.iter().filter(|finding| finding.check == check);
    found
        .map(|finding| {
            let (node, detail) = (finding.node.as_deref(), finding.detail.as_deref());
            format!("{} {}", node.unwrap_or_default(), detail.unwrap_or_default()).trim().to_owned()
        })
        .collect()
}

fn against(path: &Path, record: &Record) -> Verified {
    let mut found = verified(path);
    found.compare(&OpenOptions::default(), record).unwrap();
    found
}

#[test]
fn missing_chunks_are_reported_and_are_errors_if_recorded() {
    let folder = tempfile::tempdir().unwrap();
    python(MAKE, folder.path());
    for (name, chunks) in [("v2.zarr", ["a/3", "a/4", "a/100"]), ("v3.zarr", ["a/c/3", "a/c/4", "a/c/100"])] {
        let store = folder.path().join(name);
        assert!(details(&verified(&store), "missing_chunks").is_empty());
        let file = folder.path().join(format!("{name}.json"));
        Record::of(&hyperslab::open(&store).unwrap()).unwrap().write(&file).unwrap();
        let record = Record::read(&file).unwrap();
        let unchanged = against(&store, &record);
        assert!(unchanged.report.ok() && details(&unchanged, "record").len() == 1);
        for chunk in chunks {
            std::fs::remove_file(store.join(chunk)).unwrap();
        }
        let found = verified(&store);
        assert!(found.report.ok());
        assert_eq!(
            details(&found, "missing_chunks"),
            ["/a 3 of 128 chunks were never written or are missing"]
        );
        let finding = found.report.findings.iter().find(|finding| finding.check == "missing_chunks").unwrap();
        assert_eq!((finding.severity, finding.ok), (Severity::Info, false));
        let found = against(&store, &record);
        assert!(!found.report.ok());
        let missing = [3, 4, 100].map(|at| format!("/a chunk [{at}] was recorded but no longer exists"));
        assert_eq!(details(&found, "record_missing"), missing);
        // One chunk that changed in place, and a new one.
        std::fs::write(store.join(chunks[0]), 7_i64.to_le_bytes()).unwrap();
        let other = Path::new(chunks[0]).parent().unwrap().join("9");
        std::fs::write(store.join(other), 7_i64.to_le_bytes()).unwrap();
        let found = against(&store, &record);
        let changed = [3, 9].map(|at| format!("/a chunk [{at}] differs from the record"));
        assert_eq!(details(&found, "record_changed"), changed);
        let found = against(&store, &Record { chunks: record.chunks[1..].to_vec(), ..record.clone() });
        assert_eq!(details(&found, "record_new"), ["/a chunk [0] exists but was not recorded"]);
    }
}

#[test]
fn records_cover_files_and_descriptions() {
    let folder = tempfile::tempdir().unwrap();
    python(MAKE, folder.path());
    let store = folder.path().join("f.h5");
    assert_eq!(
        details(&verified(&store), "missing_chunks"),
        ["/part 2 of 4 chunks were never written or are missing"]
    );
    let record = Record::of(&hyperslab::open(&store).unwrap()).unwrap();
    assert_eq!(record.chunks.iter().filter(|chunk| chunk.node == "/whole").count(), 4);
    // Eight bytes per element, and four for the checksum.
    assert!(record.chunks.iter().filter(|chunk| chunk.node == "/whole").all(|chunk| chunk.bytes == 20));
    python(
        "import h5py; f = h5py.File('f.h5', 'a'); f['plain'][1] = 9; f['whole'].attrs['u'] = 1",
        folder.path(),
    );
    let found = against(&store, &record);
    let expected =
        ["/whole its description differs from the record", "/plain chunk [0] differs from the record"];
    assert_eq!(details(&found, "record_changed"), expected);
    let file = folder.path().join("no.json");
    for text in ["", "{}", "[1", r#"{"version":2,"format":"zarr","hash":"blake3","nodes":[],"chunks":[]}"#] {
        std::fs::write(&file, text).unwrap();
        assert!(Record::read(&file).is_err(), "{text}");
    }
}

#[test]
fn content_without_checksums_is_named() {
    let folder = tempfile::tempdir().unwrap();
    python(MAKE, folder.path());
    let of = |name: &str| details(&verified(&folder.path().join(name)), "no_checksum").join("");
    assert_eq!(of("f.h5"), "of 3 arrays, 2 have chunks without a checksum: /part, /plain");
    assert_eq!(of("c.nc3"), "of 1 array, 1 has chunks without a checksum: /v");
    let zarr = of("v3.zarr");
    assert!(zarr.contains("/a") && zarr.contains("/sharded") && !zarr.contains("/checked"), "{zarr}");
}

#[test]
fn stale_consolidated_documents_are_reported_and_can_be_ignored() {
    let folder = tempfile::tempdir().unwrap();
    python(MAKE, folder.path());
    for version in [2, 3] {
        let store = folder.path().join(format!("v{version}.zarr"));
        let fresh = details(&verified(&store), "consolidated_metadata");
        assert!(fresh.len() == 1 && fresh[0].contains("match those of the nodes"), "{fresh:?}");
        let change = "import numpy as np, sys, zarr\n\
            root = zarr.open_group('NAME', mode='r+', use_consolidated=False)\n\
            root.create_array('g/new', data=np.arange(3))\n\
            root['a'].resize(130)\n\
            root['a'][128:] = 7\n\
            root['g/b'].attrs['units'] = 'm'";
        python(&change.replace("NAME", &format!("v{version}.zarr")), folder.path());
        let found = verified(&store);
        assert!(found.report.ok());
        let stale = details(&found, "consolidated_metadata");
        assert_eq!(stale.len(), 3, "{stale:#?}");
        assert!(stale[0].starts_with("/a stale: shape is [128] there, but [130]"), "{stale:#?}");
        assert!(stale[1].starts_with("/g/b stale: attributes is {\"units\":\"K\"}"), "{stale:#?}");
        assert_eq!(stale[2], "/g/new stale: it hides an existing node");
        assert_eq!(found.report.recommendations[0].code, "consolidate_metadata");
        let trusting = hyperslab::open(&store).unwrap();
        assert_eq!(trusting.children("/g").unwrap(), ["b"]);
        assert_eq!(trusting.array("/a").unwrap().schema().shape(), [128]);
        let options = OpenOptions::default().with_consolidated(false);
        let around = hyperslab::open_with(&store, &options).unwrap();
        assert_eq!(around.children("/g").unwrap(), ["b", "new"]);
        let values = around.array("/a").unwrap().read(&Selection::all()).unwrap();
        assert_eq!(values.as_slice::<i64>().unwrap()[127..], [128, 7, 7]);
        // Without consolidated metadata, nothing can be stale.
        let own = verify_path(&store, &options, Depth::Deep).unwrap();
        assert!(own.report.ok() && details(&own, "consolidated_metadata").is_empty());
        // A node that was removed.
        std::fs::remove_dir_all(store.join("g/b")).unwrap();
        let stale = details(&verified(&store), "consolidated_metadata");
        assert!(stale.contains(&"/g/b stale: it lists a node that does not exist".to_owned()), "{stale:#?}");
    }
}
