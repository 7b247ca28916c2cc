//! Hostile files: each is refused clearly, at the cost of a small multiple of its size.

use std::ops::ControlFlow;
use std::sync::Arc;

use hyperslab_core::{Array, ChunkCoord, Depth, MemoryBlob, Node, Report, Result, Store, read_serial};
use hyperslab_core::{Elements, Positions};

use crate::dataset::Dataset;
use crate::index::{IndexHeader, Row};
use crate::write::encode_head;
use crate::{TetStore, open};

fn dataset(dtype_code: u32, shape: &[u64], chunk_shape: &[u64]) -> Dataset {
    Dataset { name: "x".into(), dtype_code, shape: shape.into(), chunk_shape: chunk_shape.into() }
}

/// A row of dataset 0. The payload starts directly after an index of `rows` rows.
fn row(coord: &[u64], raw_length: u64, stored_length: u64, codec: u32) -> Row {
    let mut slots = [0; 8];
    slots[..coord.len()].copy_from_slice(coord);
    Row { dataset: 0, coord: slots, offset: 0, raw_length, stored_length, codec, reserved: 0 }
}

/// A file with these rows, whose payloads follow one another.
fn file(datasets: &[Dataset], rows: &[Row], payload: &[u8]) -> Vec<u8> {
    let length =
        encode_head(datasets, rows.iter().copied(), IndexHeader::default(), false).unwrap().len() as u64;
    let mut at = length;
    let placed = rows.iter().map(|row| {
        let placed = Row { offset: row.offset.wrapping_add(at), ..*row };
        at = at.wrapping_add(row.stored_length);
        placed
    });
    let placed: Vec<_> = placed.collect();
    let mut bytes = encode_head(datasets, placed.into_iter(), IndexHeader::default(), false).unwrap();
    bytes.extend_from_slice(payload);
    bytes
}

fn opened(bytes: Vec<u8>) -> Result<TetStore> {
    open(Arc::new(MemoryBlob::new("hostile.tet", bytes)))
}

fn read_chunk(store: &TetStore, chunk: &[u64]) -> Result<Vec<u8>> {
    let array = store.dataset(0)?;
    let chunk = ChunkCoord::from_slice(chunk);
    let reference = array.locate(std::slice::from_ref(&chunk))?.remove(0);
    let reference = reference.ok_or_else(|| hyperslab_core::Error::not_found("x", "chunk"))?;
    let stored = hyperslab_core::fetch(&array, &reference.spans().collect::<Vec<_>>())?;
    let mut out = vec![0; hyperslab_core::decoded_bytes(&array, &chunk, &reference)?];
    array.decode(&chunk, &reference, &stored, &mut out)?;
    Ok(out)
}

fn failed_checks(store: &TetStore) -> Vec<String> {
    let mut report = Report::default();
    store.verify(Depth::Deep, &mut report).unwrap();
    report.findings.iter().filter(|finding| !finding.ok).map(|finding| finding.check.to_string()).collect()
}

fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    hyperslab_codec::zstd::encode(bytes, hyperslab_codec::zstd::Options::level(3), &mut out).unwrap();
    out
}

#[test]
fn frames_of_another_size_are_refused() {
    for length in [0, 15, 17, 1 << 20] {
        let frames = compressed(&vec![7; length]);
        let rows = [row(&[0], 16, frames.len() as u64, 1)];
        let store = opened(file(&[dataset(5, &[16], &[16])], &rows, &frames)).unwrap();
        assert!(read_chunk(&store, &[0]).unwrap_err().is_corrupt());
        assert!(failed_checks(&store).contains(&"chunk_decode".to_owned()));
    }
    // Many frames, and a skippable one, form one chunk.
    let mut frames = vec![0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
    frames.extend(compressed(&[1; 9]));
    frames.extend(compressed(&[2; 7]));
    let rows = [row(&[0], 16, frames.len() as u64, 1)];
    let store = opened(file(&[dataset(5, &[16], &[16])], &rows, &frames)).unwrap();
    assert_eq!(read_chunk(&store, &[0]).unwrap()[8..10], [1, 2]);
    // Bytes after the last frame do not.
    frames.push(0);
    let rows = [row(&[0], 16, frames.len() as u64, 1)];
    let store = opened(file(&[dataset(5, &[16], &[16])], &rows, &frames)).unwrap();
    assert!(read_chunk(&store, &[0]).unwrap_err().is_corrupt());
}

#[test]
fn decompression_bombs_are_refused() {
    // A thousand frames of a mebibyte each, for a chunk of 16 bytes.
    let frames = compressed(&vec![0; 1 << 20]).repeat(1000);
    let rows = [row(&[0], 16, frames.len() as u64, 1)];
    let store = opened(file(&[dataset(5, &[16], &[16])], &rows, &frames)).unwrap();
    assert!(read_chunk(&store, &[0]).unwrap_err().is_corrupt());
    // A chunk of a tebibyte in twenty bytes.
    let frames = compressed(&[0; 100]);
    let rows = [row(&[0], 1 << 40, frames.len() as u64, 1)];
    let store = opened(file(&[dataset(5, &[1 << 40], &[1 << 40])], &rows, &frames)).unwrap();
    assert!(read_chunk(&store, &[0]).unwrap_err().is_corrupt());
    assert!(failed_checks(&store).contains(&"chunk_decode".to_owned()));
}

#[test]
fn an_endless_grid_is_never_walked() {
    let rows = [row(&[5], 4, 4, 0)];
    let store = opened(file(&[dataset(1, &[1 << 40], &[1])], &rows, &[1, 2, 3, 4])).unwrap();
    assert_eq!(read_chunk(&store, &[5]).unwrap(), [1, 2, 3, 4]);
    assert!(read_chunk(&store, &[6]).unwrap_err().is_not_found());
    assert_eq!(store.dataset(0).unwrap().usage().unwrap().chunks, 1);
    assert_eq!(failed_checks(&store), ["dataset_tensor_bytes"]);
}

#[test]
fn overflowing_shapes_are_refused() {
    let rows = [row(&[0; 8], 4, 4, 0)];
    for (shape, chunks) in
        [([u64::MAX; 8], [u64::MAX; 8]), ([u64::MAX; 8], [1 << 40; 8]), ([1 << 63; 8], [1; 8])]
    {
        let store = opened(file(&[dataset(1, &shape, &chunks)], &rows, &[0; 4])).unwrap();
        let result = read_chunk(&store, &[0; 8]);
        assert!(chunks == [1; 8] || result.unwrap_err().is_corrupt());
        assert!(failed_checks(&store).contains(&"dataset_tensor_bytes".to_owned()));
        let array = store.dataset(0).unwrap();
        assert!(read_serial(&array, Positions::whole(&shape)).is_err());
    }
}

#[test]
fn wrong_rows_affect_only_their_chunk() {
    let good = row(&[1], 8, 8, 0);
    let wrong = [
        ("raw length", row(&[0], 4, 4, 0), "dataset_tensor_bytes"),
        ("stored bytes", row(&[0], 8, 4, 0), "parse"),
        ("codec 7", row(&[0], 8, 8, 7), "parse"),
        ("payload", Row { offset: 1 << 50, ..row(&[0], 8, 8, 0) }, "parse"),
        ("payload", Row { offset: u64::MAX - 323, ..row(&[0], 8, 8, 0) }, "parse"),
    ];
    for (problem, wrong, check) in wrong {
        let store = opened(file(&[dataset(1, &[4], &[2])], &[wrong, good], &[9; 16])).unwrap();
        let error = read_chunk(&store, &[0]).unwrap_err();
        assert!(error.is_corrupt() && error.to_string().contains(problem), "{error}");
        assert_eq!(read_chunk(&store, &[1]).unwrap(), [9; 8]);
        assert!(failed_checks(&store).contains(&check.to_owned()), "{:?}", failed_checks(&store));
    }
}

#[test]
fn stray_and_duplicate_rows_are_reported() {
    let rows = [row(&[0], 8, 8, 0), Row { dataset: 3, ..row(&[1], 8, 8, 0) }];
    let store = opened(file(&[dataset(1, &[4], &[2])], &rows, &[9; 16])).unwrap();
    assert!(failed_checks(&store).contains(&"chunk_dataset_ids".to_owned()));
    let rows = [row(&[0], 8, 8, 0), row(&[u64::MAX], 8, 8, 0)];
    let store = opened(file(&[dataset(1, &[4], &[2])], &rows, &[9; 16])).unwrap();
    assert!(failed_checks(&store).contains(&"dataset_tensor_bytes".to_owned()));
    let rows = [row(&[0], 8, 8, 0), row(&[0], 8, 8, 0)];
    let store = opened(file(&[dataset(1, &[4], &[2])], &rows, &[9; 16])).unwrap();
    assert!(read_chunk(&store, &[0]).unwrap_err().to_string().contains("rows 0 and 1"));
    assert!(failed_checks(&store).contains(&"chunk_coords".to_owned()));
}

#[test]
fn overlapping_payloads_are_reported() {
    let over = |offset: u64| {
        let rows = [row(&[0], 8, 8, 0), Row { offset: offset.wrapping_sub(8), ..row(&[1], 8, 8, 0) }];
        opened(file(&[dataset(1, &[4], &[2])], &rows, &[9; 24])).unwrap()
    };
    assert_eq!(failed_checks(&over(0)), ["payload_order", "payload_offsets", "trailing_bytes"]);
    assert!(failed_checks(&over(4)).contains(&"payload_overlap".to_owned()));
    let head = over(0u64.wrapping_sub(100));
    assert!(failed_checks(&head).contains(&"payload_bounds".to_owned()));
    assert!(read_chunk(&head, &[1]).unwrap_err().is_corrupt());
    assert_eq!(read_chunk(&head, &[0]).unwrap(), [9; 8]);
}

/// A short frame holds a mebibyte, and each row would decode it.
#[test]
fn rows_that_share_their_bytes_are_refused() {
    let frames = compressed(&vec![7; 1 << 20]);
    let sharing = |count: u64| {
        let length = frames.len() as u64;
        let one = |at: u64| Row { offset: 0_u64.wrapping_sub(at * length), ..row(&[at], 1 << 20, length, 1) };
        let rows: Vec<Row> = (0..count).map(one).collect();
        opened(file(&[dataset(5, &[count << 20], &[1 << 20])], &rows, &frames)).unwrap()
    };
    let store = sharing(1000);
    let refused = store.dataset(0).unwrap_err();
    assert!(refused.is_corrupt() && refused.to_string().contains("1000 rows claim"), "{refused}");
    let checks = failed_checks(&store);
    assert!(checks.contains(&"payload_offsets".to_owned()), "{checks:?}");
    assert!(!checks.contains(&"chunk_decode".to_owned()), "{checks:?}");
    // A few rows are damaged, and the others are read.
    assert_eq!(read_chunk(&sharing(3), &[1]).unwrap(), vec![7; 1 << 20]);
}

#[test]
fn unknown_types_and_zero_chunks_affect_only_their_array() {
    let rows = [Row { dataset: 2, ..row(&[0], 8, 8, 0) }];
    let named = |name: &str, own: Dataset| Dataset { name: name.into(), ..own };
    let datasets = [
        named("a", dataset(99, &[2], &[2])),
        named("b", dataset(1, &[2], &[0])),
        named("c", dataset(1, &[2], &[2])),
    ];
    let store = opened(file(&datasets, &rows, &[9; 8])).unwrap();
    assert_eq!(store.children("/").unwrap(), ["a", "b", "c"]);
    assert!(store.node("/a").unwrap_err().is_unsupported());
    assert!(store.node("/b").unwrap_err().is_corrupt());
    assert!(matches!(store.node("/c").unwrap(), Node::Array(_)));
    assert_eq!(failed_checks(&store).iter().filter(|check| *check == "dataset_tensor_bytes").count(), 2);
}

#[test]
fn invalid_heads_are_refused() {
    let good = file(&[dataset(1, &[2], &[2])], &[row(&[0], 8, 8, 0)], &[9; 8]);
    assert!(opened(good.clone()).is_ok());
    let index = 40 + 24 + 16;
    let words: [(usize, u64); 9] = [
        (0, 0),                      // magic
        (8, u64::from(u32::MAX)),    // dataset count
        (16, u64::MAX),              // index offset
        (16, 8),                     // index offset
        (24, u64::MAX),              // index length
        (32, u64::MAX),              // directory length
        (40, u64::from(u32::MAX)),   // name length
        (index, 0),                  // index magic
        (index + 8, u64::MAX / 104), // rows
    ];
    for (at, word) in words {
        let mut bytes = good.clone();
        bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
        let error = opened(bytes).unwrap_err();
        assert!(error.is_corrupt() || error.is_unsupported(), "{at}: {error}");
    }
    for length in 0..good.len() - 8 {
        assert!(opened(good[..length].to_vec()).is_err());
    }
}

/// A good file with this footer JSON, or these last bytes.
fn with_footer(json: &[u8], tail: Option<[u8; 16]>) -> TetStore {
    let mut bytes = file(&[dataset(5, &[2], &[2])], &[row(&[0], 2, 2, 0)], &[9; 2]);
    bytes[12] = 1;
    match tail {
        None => crate::footer::encode_tail(json, 2, &mut bytes),
        Some(tail) => {
            bytes.extend_from_slice(json);
            bytes.extend_from_slice(&tail);
        }
    }
    opened(bytes).unwrap()
}

#[test]
fn invalid_footers_affect_only_the_footer() {
    let tail = |length: u64, version: u32, magic: &[u8; 4]| {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&length.to_le_bytes());
        bytes[8..12].copy_from_slice(&version.to_le_bytes());
        bytes[12..].copy_from_slice(magic);
        Some(bytes)
    };
    let deep = format!(r#"{{"x":{}1{}}}"#, "[".repeat(200_000), "]".repeat(200_000));
    let reference =
        |offset: u64, len: u64| format!(r#"{{"zone_maps_ref":{{"offset":{offset},"len":{len}}}}}"#);
    let spills = [
        reference(0, 1 << 60),
        reference(0, 250),
        reference(u64::MAX, 2),
        reference(240, 0),
        reference(1 << 40, 1 << 40),
    ];
    let mut lies = vec![
        with_footer(b"{}", tail(u64::MAX, 2, b"THST")),
        with_footer(b"{}", tail(100_000, 2, b"THST")),
        with_footer(b"{}", tail(2, 3, b"THST")),
        with_footer(b"{}", tail(2, 2, b"THSX")),
        with_footer(b"{", None),
        with_footer(br#"{"history":null}"#, None),
        with_footer(br#"{"metadata":{"datasets":{"x":{"attrs":{"a":1}}}}}"#, None),
    ];
    lies.extend(spills.iter().map(|json| with_footer(json.as_bytes(), None)));
    for store in lies {
        assert!(store.footer().is_none());
        assert_eq!(read_chunk(&store, &[0]).unwrap(), [9; 2]);
        assert!(failed_checks(&store).contains(&"footer".to_owned()));
    }
    // Unknown fields are skipped, however deep.
    assert!(with_footer(deep.as_bytes(), None).footer().is_some());
    // Our own key, damaged.
    let store = with_footer(br#"{"metadata":{"hyperslab":{"checksums":7}}}"#, None);
    assert!(store.footer().unwrap().own_damage.is_some());
}

/// Reads everything. Only panics, hangs and memory matter.
fn drive(bytes: Vec<u8>) {
    let length = bytes.len() as u64;
    let Ok(store) = opened(bytes) else { return };
    let mut groups = vec!["/".to_owned()];
    while let Some(group) = groups.pop() {
        for child in store.children(&group).unwrap_or_default() {
            let path = hyperslab_core::child_path(&group, &child);
            match store.node(&path) {
                Ok(Node::Array(array)) => read_array(array.as_ref(), length),
                Ok(_) => groups.push(path),
                Err(_) => {}
            }
        }
    }
    let _ = (store.zone_maps(), store.secondary_index());
    let mut report = Report::default();
    let _ = store.verify(Depth::Deep, &mut report);
}

fn read_array(array: &dyn Array, length: u64) {
    let schema = array.schema();
    let _ = (schema.attributes.to_json(), array.usage());
    let mut chunks = 0;
    let _ = array.visit_chunks(&mut |chunk, reference| {
        chunks += 1;
        if let Ok(size) = hyperslab_core::decoded_bytes(array, &chunk, &reference)
            && let Ok(stored) = hyperslab_core::fetch(array, &reference.spans().collect::<Vec<_>>())
            // The decoded size was promised by a row that was checked.
            && array.locate(std::slice::from_ref(&chunk)).is_ok()
        {
            assert!(size as u64 <= (length + 4) << 15, "{size} bytes out of a file of {length}");
            let _ = array.decode(&chunk, &reference, &stored, &mut vec![0; size]);
        }
        Ok(ControlFlow::Continue(()))
    });
    if schema.bytes().is_some_and(|bytes| bytes < 1 << 20) {
        let _: Result<Elements> =
            read_serial(array, Positions::whole(schema.shape())).map(|values| values.elements);
    }
}

/// Small files by the reference library.
fn golden() -> Vec<(String, Vec<u8>)> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "tet"));
    files.sort();
    assert!(files.len() >= 5);
    files.iter().map(|path| (path.display().to_string(), std::fs::read(path).unwrap())).collect()
}

#[test]
fn flipped_truncated_and_spliced_files_never_panic() {
    for (_, good) in golden() {
        // A generator without a dependency: a linear congruence.
        let mut state = good.len() as u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below.max(1)
        };
        for round in 0..400 {
            let mut bytes = good.clone();
            match round % 4 {
                // Any byte; more often one near the start, where the structures are.
                0 | 1 => {
                    let reach = if round % 8 == 0 { bytes.len() } else { bytes.len().min(600) };
                    for _ in 0..=random(3) {
                        bytes[random(reach)] = [0, 1, 0x7f, 0x80, 0xff, random(256) as u8][random(6)];
                    }
                }
                2 => bytes.truncate(random(good.len())),
                _ => {
                    let (from, to) = (random(good.len()), random(good.len()));
                    let count = random(200).min(good.len() - from.max(to));
                    bytes.copy_within(from..from + count, to);
                }
            }
            drive(bytes);
        }
    }
}
