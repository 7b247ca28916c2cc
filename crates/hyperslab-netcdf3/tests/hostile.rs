//! Damaged files: any damage leads to a result or an error, never to a panic, a hang or excessive memory use.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::ops::ControlFlow;
use std::sync::Arc;

use hyperslab_core::{Depth, MemoryBlob, Node, Positions, Report, Result, Store, read_serial};
use hyperslab_netcdf3::Netcdf3Store;
use proptest::prelude::*;

fn golden(name: &str) -> Vec<u8> {
    std::fs::read(common::golden().join(format!("{name}.nc"))).unwrap()
}

fn opened(bytes: Vec<u8>) -> Result<Netcdf3Store> {
    Netcdf3Store::open(Arc::new(MemoryBlob::new("x.nc", bytes)))
}

/// Lists, reads and checks everything that can be opened.
fn drive(bytes: Vec<u8>) {
    let length = bytes.len();
    let Ok(store) = opened(bytes) else { return };
    let _ = store.details();
    for name in store.children("/").unwrap() {
        let Ok(Node::Array(array)) = store.node(&format!("/{name}")) else { continue };
        let schema = array.schema();
        let mut chunks = 0;
        array
            .visit_chunks(&mut |chunk, reference| {
                chunks += 1;
                assert!(array.locate(&[chunk]).unwrap()[0].as_ref() == Some(&reference));
                Ok(ControlFlow::Continue(()))
            })
            .unwrap();
        assert!(chunks <= length, "{name}: {chunks} chunks in {length} bytes");
        if schema.bytes().is_some_and(|bytes| bytes < 1 << 20) {
            let _ = read_serial(&*array, Positions::whole(schema.shape()));
        }
    }
    store.verify(Depth::Deep, &mut Report::default()).unwrap();
}

/// The error for a file with these bytes at an offset.
fn refused(name: &str, at: usize, new: &[u8]) -> String {
    let mut bytes = golden(name);
    bytes[at..at + new.len()].copy_from_slice(new);
    let error = opened(bytes).unwrap_err();
    assert!(error.is_corrupt(), "{error}");
    error.to_string()
}

/// The offset of a name in a file.
fn find(name: &str, what: &[u8]) -> usize {
    golden(name).windows(what.len()).position(|window| window == what).unwrap()
}

#[test]
fn truncated_headers_are_refused_and_truncated_data_is_reported() {
    for name in ["classic", "data64", "single_short", "scipy_1_2"] {
        let whole = golden(name);
        let header = opened(whole.clone()).unwrap().details().unwrap()["header_bytes"].as_u64().unwrap();
        for length in 0..header as usize {
            let error = opened(whole[..length].to_vec()).unwrap_err();
            assert!(error.is_corrupt(), "{name} of {length} bytes: {error}");
        }
        for length in header as usize..whole.len() {
            drive(whole[..length].to_vec());
        }
        // Variables whose data is missing report that, and the others can be read.
        let store = opened(whole[..header as usize].to_vec()).unwrap();
        let child = &store.children("/").unwrap()[0];
        let error = store.node(&format!("/{child}")).unwrap_err();
        assert!(error.is_corrupt() && error.to_string().contains("the file at"), "{error}");
        let mut report = Report::default();
        store.verify(Depth::Quick, &mut report).unwrap();
        assert!(!report.ok());
    }
}

#[test]
fn false_claims_are_reported() {
    // Negative numbers: records, then the number of dimensions.
    assert!(refused("classic", 4, &[0x80, 0, 0, 1]).contains("negative"));
    assert!(refused("classic", 12, &[0xff, 0xff, 0xff, 0xff]).contains("negative"));
    // Counts that exceed the remaining bytes.
    assert!(refused("classic", 12, &[0x7f, 0xff, 0xff, 0xff]).contains("with room for"));
    assert!(refused("data64", 16, &[0x7f; 8]).contains("with room for"));
    assert!(refused("classic", 8, &[0, 0, 0, 11]).contains("tag 11"));
    assert!(refused("classic", 3, &[3]).contains("expected CDF and 1, 2 or 5"));
    // A second record dimension: the length of `x` follows its padded name.
    assert!(refused("classic", find("classic", b"x\0\0\0") + 4, &[0; 4]).contains("two record dimensions"));
    // A name of length zero.
    assert!(refused("classic", find("classic", b"time") - 4, &[0; 4]).contains("a name of 0 bytes"));
    // A dimension that does not exist, and the record dimension after another: the axes of `fixed_i1` are 2 and 1.
    let axes = find("classic", b"fixed_i1") + 8 + 4;
    assert!(refused("classic", axes, &[0, 0, 0, 99]).contains("has dimension 99 of 5"));
    assert!(refused("classic", axes + 4, &[0; 4]).contains("not first"));
    // A dimension of 2^31 - 1 costs nothing until its data is read.
    let mut bytes = golden("classic");
    let length = find("classic", b"unused\0\0") + 8;
    bytes[length..length + 4].copy_from_slice(&[0x7f, 0xff, 0xff, 0xff]);
    let store = opened(bytes).unwrap();
    let Node::Array(array) = store.node("/unused").unwrap() else { panic!("a dimension") };
    assert_eq!(array.schema().shape(), [(1 << 31) - 1]);
}

/// The location of the variable's offset: after its name, axes, (empty) attributes, type and size.
fn begin_of(name: &str, variable: &[u8], rank: usize) -> usize {
    let padded = variable.len().next_multiple_of(4);
    find(name, variable) + padded + 4 + 4 * rank + 8 + 4 + 4
}

#[test]
fn variables_that_overlap_are_refused() {
    let fixed = begin_of("single_short", b"fixed", 1);
    let record = begin_of("single_short", b"record", 2);
    let bytes = golden("single_short");
    let begin = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    assert!(begin(fixed) + 4 == begin(record), "the offsets are where the test expects them");
    let error = refused("single_short", record, &begin(fixed).to_be_bytes());
    assert!(error.contains("inside \"fixed\"") || error.contains("inside \"record\""), "{error}");
    assert!(refused("single_short", fixed, &[0, 0, 0, 4]).contains("inside the header"));
    // Past the end: the file can be opened, but not the variable.
    let mut bytes = bytes.clone();
    bytes[record..record + 4].copy_from_slice(&[0x7f, 0, 0, 0]);
    let store = opened(bytes).unwrap();
    assert!(store.node("/fixed").is_ok());
    assert!(store.node("/record").unwrap_err().to_string().contains("the file at"));
}

#[test]
fn a_claim_of_many_records_costs_nothing() {
    let mut bytes = golden("single_short");
    bytes[4..8].copy_from_slice(&[0x7f, 0xff, 0xff, 0xff]);
    let store = opened(bytes.clone()).unwrap();
    assert!(store.node("/record").unwrap_err().is_corrupt());
    drive(bytes);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Change, remove or repeat any bytes of any golden file.
    #[test]
    fn mutations_never_panic(
        name in prop::sample::select(vec!["classic", "data64", "single_short", "scipy_2_2", "stream", "no_records"]),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0_u8..4), 1..6),
        in_header in any::<bool>(),
    ) {
        let mut bytes = golden(name);
        for (index, value, kind) in changes {
            let most = if in_header { bytes.len().min(700) } else { bytes.len() };
            let at = index.index(most.max(1));
            match kind {
                0 | 1 => bytes[at] = value,
                2 => { bytes.truncate(at.max(1)); }
                _ => bytes.insert(at, value),
            }
        }
        drive(bytes);
    }

    /// Arbitrary bytes after the magic.
    #[test]
    fn noise_never_panics(version in prop::sample::select(vec![1_u8, 2, 5]), noise in prop::collection::vec(0_u8..14, 0..200)) {
        let mut bytes = b"CDF".to_vec();
        bytes.push(version);
        bytes.extend(noise);
        drive(bytes);
    }
}
