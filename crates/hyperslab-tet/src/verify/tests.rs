use hyperslab_core::{ArraySpec, DType, Filter, Grid, Sink};
use serde_json::Value;

use super::*;
use crate::write::tests::{sample, write_all};
use crate::{TetOptions, TetSink};

fn written(path: &Path, shape: &[u64], chunks: &[u64], packed: bool) -> Vec<u8> {
    let options = TetOptions { overwrite: true, ..TetOptions::default() };
    let mut sink: Box<dyn Sink> = Box::new(TetSink::create(path, options).unwrap());
    let mut spec = ArraySpec::new(DType::Int64, Grid::new(shape, chunks).unwrap());
    if packed {
        spec = spec.with_filters([Filter::new("zstd")]);
    }
    write_all(sink.as_mut(), "a", &spec, &sample(&spec.dtype, shape)).unwrap();
    sink.commit().unwrap();
    std::fs::read(path).unwrap()
}

fn failed(path: &Path, depth: Depth) -> Vec<String> {
    let report = verify_path(path, depth).unwrap();
    assert_eq!(report.ok, report.report.ok());
    report
        .report
        .findings
        .iter()
        .filter(|finding| !finding.ok)
        .map(|finding| finding.check.to_string())
        .collect()
}

#[test]
fn a_flipped_bit_anywhere_in_a_payload_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.tet");
    for packed in [false, true] {
        let good = written(&path, &[20, 30], &[7, 30], packed);
        // Compressed chunks are in order of arrival.
        assert_eq!(failed(&path, Depth::Deep), if packed { vec!["payload_order"] } else { vec![] });
        for row in open_path(&path).unwrap().rows() {
            for at in [row.offset, row.offset + row.stored_length / 2, row.offset + row.stored_length - 1] {
                let mut damaged = good.clone();
                damaged[at as usize] ^= 0x10;
                std::fs::write(&path, &damaged).unwrap();
                assert!(failed(&path, Depth::Deep).contains(&"chunk_checksums".to_owned()));
            }
        }
    }
}

#[test]
fn the_report_has_a_stable_shape() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.tet");
    let good = written(&path, &[200], &[1], false);
    let json = serde_json::to_value(verify_path(&path, Depth::Quick).unwrap()).unwrap();
    assert_eq!((&json["ok"], &json["file_len"]), (&Value::Bool(true), &Value::from(good.len())));
    assert_eq!(json["summary"]["chunk_count"], 200);
    let skipped =
        json["findings"].as_array().unwrap().iter().find(|own| own["check"] == "chunk_decode_skipped");
    assert_eq!((&skipped.unwrap()["severity"], &skipped.unwrap()["ok"]), (&"warning".into(), &false.into()));
    assert_eq!(json["recommendations"][0]["code"], "run_deep_verify");
    // A file that cannot be opened is a finding; one that does not exist is an error.
    std::fs::write(&path, &good[..100]).unwrap();
    let json = serde_json::to_value(verify_path(&path, Depth::Quick).unwrap()).unwrap();
    assert_eq!((&json["ok"], &json["findings"][0]["check"]), (&false.into(), &"parse".into()));
    assert_eq!(json["recommendations"][0]["code"], "invalid_layout");
    assert!(verify_path(&folder.path().join("none"), Depth::Quick).is_err());
}

#[test]
fn checksums_of_another_index_are_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.tet");
    let mut bytes = written(&path, &[4], &[2], false);
    let store = open_path(&path).unwrap();
    // Two rows swap places: still the same array.
    let at = store.superblock().index_offset as usize + 32;
    let (first, second) = (bytes[at..at + 104].to_vec(), bytes[at + 104..at + 208].to_vec());
    bytes[at..at + 104].copy_from_slice(&second);
    bytes[at + 104..at + 208].copy_from_slice(&first);
    std::fs::write(&path, &bytes).unwrap();
    let report = verify_path(&path, Depth::Deep).unwrap();
    assert!(report.ok, "{:#?}", report.report.findings);
    assert_eq!(failed(&path, Depth::Deep), ["payload_order", "chunk_checksums"]);
}

#[test]
fn long_lists_are_shortened() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.tet");
    let mut bytes = written(&path, &[200], &[1], false);
    let store = open_path(&path).unwrap();
    for row in store.rows() {
        bytes[row.offset as usize] ^= 1;
    }
    std::fs::write(&path, &bytes).unwrap();
    let report = verify_path(&path, Depth::Deep).unwrap();
    let sums: Vec<_> = report.report.findings.iter().filter(|own| own.check == "chunk_checksums").collect();
    assert_eq!(sums.len(), MOST_FINDINGS + 1);
    assert_eq!(sums[MOST_FINDINGS].detail.as_deref(), Some("and 184 more"));
}
