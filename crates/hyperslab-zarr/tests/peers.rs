//! Interoperability with the real libraries: reads what zarr-python and tensorstore write, and lets them read what
//! this crate writes.

mod support;

use hyperslab_core::{Array, ArraySpec, DType, Depth, Elements, Filter, Grid, Report, Sink, Store};
use hyperslab_zarr::{WriteOptions, ZarrFormat, ZarrSink};

use std::path::{Path, PathBuf};
use std::process::Command;

fn python(script: &str, arguments: &[&Path]) {
    let interpreter = std::env::var("HYPERSLAB_PEERS")
        .expect("HYPERSLAB_PEERS must name a Python interpreter that has zarr, numcodecs and tensorstore");
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests").join(script);
    let output =
        Command::new(interpreter).arg(script).args(arguments).output().expect("the interpreter starts");
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn stores_of_zarr_python_are_read() {
    let folder = tempfile::tempdir().unwrap();
    python("cases.py", &[folder.path()]);
    let cases = support::cases(folder.path());
    assert!(cases.len() > 150, "{} cases", cases.len());
    for case in &cases {
        support::check(folder.path(), case);
    }
}

#[test]
fn stores_of_tensorstore_are_read() {
    let folder = tempfile::tempdir().unwrap();
    python("peers/tensorstore_cases.py", &[folder.path()]);
    let cases = support::cases(folder.path());
    assert!(cases.len() > 45, "{} cases", cases.len());
    for case in &cases {
        support::check(folder.path(), case);
    }
}

/// Every case of the first test, written again in several ways and read by both libraries.
#[test]
fn new_stores_are_read_by_both_libraries() {
    let folder = tempfile::tempdir().unwrap();
    python("cases.py", &[folder.path()]);
    let mut written = Vec::new();
    for (number, case) in support::cases(folder.path()).iter().enumerate() {
        let array = support::open(folder.path(), case);
        for (variant, (format, shard_shape, filters)) in variants(number).into_iter().enumerate() {
            let target = folder.path().join(format!("out-{number}-{variant}"));
            let options = WriteOptions { format, shard_shape, consolidated: true, ..WriteOptions::default() };
            support::copy(&*array, &target, options, &filters)
                .unwrap_or_else(|e| panic!("{}: {e}", array.name()));
            let format = if format == ZarrFormat::V3 { 3 } else { 2 };
            written.push(serde_json::json!({"path": target, "case": number, "format": format}));
            // This crate must read the same.
            let store = hyperslab_zarr::open_path(&target).unwrap();
            let copy = store.array("/g/a").unwrap();
            assert_eq!(support::read(&copy), support::read(&*array), "{}", copy.name());
            let mut report = Report::default();
            store.verify(Depth::Deep, &mut report).unwrap();
            assert!(report.ok(), "{report:?}");
        }
    }
    std::fs::write(folder.path().join("written.json"), serde_json::to_vec(&written).unwrap()).unwrap();
    python("peers/check.py", &[folder.path()]);
}

/// Three ways to write a case, which vary between cases.
fn variants(number: usize) -> Vec<(ZarrFormat, Option<Vec<u64>>, Vec<Filter>)> {
    let zstd = || Filter::new("zstd").with("level", 3);
    let blosc =
        |cname: &str, shuffle: &str| Filter::new("blosc").with("cname", cname).with("shuffle", shuffle);
    let pipelines = [
        vec![],
        vec![zstd()],
        vec![Filter::new("gzip").with("level", 4), Filter::new("crc32c")],
        vec![blosc("lz4", "shuffle")],
        vec![blosc("zstd", "bitshuffle")],
        vec![blosc("zlib", "noshuffle")],
        vec![Filter::new("lz4")],
        vec![Filter::new("bz2").with("level", 3)],
        vec![Filter::new("fletcher32"), Filter::new("zlib")],
        vec![Filter::new("adler32"), zstd()],
    ];
    let pick = |by: usize| pipelines[(number + by) % pipelines.len()].clone();
    vec![
        (ZarrFormat::V3, None, pick(0)),
        (ZarrFormat::V3, Some(vec![4]), pick(3)),
        (ZarrFormat::V2, None, pick(6)),
    ]
}

#[test]
fn types_and_codecs_beyond_the_standard_ones_are_read() {
    let folder = tempfile::tempdir().unwrap();
    python("peers/types_cases.py", &[folder.path()]);
    let cases = support::cases(folder.path());
    assert!(cases.len() > 70, "{} cases", cases.len());
    for case in &cases {
        support::check(folder.path(), case);
    }
}

/// Narrow types for tensorstore, LZMA and Pcodec for zarr-python.
#[test]
fn types_and_codecs_beyond_the_standard_ones_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let small: Vec<u8> = (0..60_u32).flat_map(|i| (i as f32 / 4.0 - 7.0).to_le_bytes()).collect();
    let nibbles: Vec<u8> =
        (0..60_u32).map(|i| (i % 16) as u8 as i8 as u8).map(|n| n.wrapping_sub(8)).collect();
    type Case<'a> = (&'a str, DType, &'a [u8], Vec<Filter>, &'a str, ZarrFormat);
    let cases: Vec<Case<'_>> = vec![
        (
            "zarr3",
            DType::Float32,
            &small,
            vec![Filter::new("bfloat16"), Filter::new("gzip")],
            "bfloat16",
            ZarrFormat::V3,
        ),
        ("zarr3", DType::Int8, &nibbles, vec![Filter::new("int4")], "int4", ZarrFormat::V3),
        ("zarr", DType::Float32, &small, vec![Filter::new("lzma")], "", ZarrFormat::V3),
        ("zarr", DType::Float32, &small, vec![Filter::new("lzma").with("preset", 2)], "", ZarrFormat::V2),
        ("zarr", DType::Float32, &small, vec![Filter::new("pcodec")], "", ZarrFormat::V3),
        ("zarr", DType::Float32, &small, vec![Filter::new("pcodec").with("level", 4)], "", ZarrFormat::V2),
    ];
    let mut written = Vec::new();
    for (number, (reader, dtype, bytes, filters, name, format)) in cases.into_iter().enumerate() {
        let (source, target) =
            (folder.path().join(format!("in-{number}")), folder.path().join(format!("out-{number}")));
        make(&source, &dtype, &[6, 10], &[4, 5], bytes).unwrap();
        let store = hyperslab_zarr::open_path(&source).unwrap();
        let array = store.array("/").unwrap();
        let options = WriteOptions { format, ..WriteOptions::default() };
        support::copy(&array, &target, options, &filters).unwrap();
        let copy = hyperslab_zarr::open_path(&target).unwrap();
        assert_eq!(support::read(&copy.array("/g/a").unwrap()), support::read(&array), "{name}");
        let values = format!("values-{number}");
        std::fs::write(folder.path().join(&values), bytes).unwrap();
        let wide = dtype.to_string();
        written.push(serde_json::json!({"path": target, "reader": reader, "type": name, "values": values, "wide": wide, "shape": [6, 10]}));
    }
    std::fs::write(folder.path().join("written.json"), serde_json::to_vec(&written).unwrap()).unwrap();
    python("peers/types_check.py", &[folder.path()]);
}

/// Creates a store whose root is an array of these elements, chunked and without filters.
fn make(
    target: &Path,
    dtype: &DType,
    shape: &[u64],
    chunk: &[u64],
    elements: &[u8],
) -> hyperslab_core::Result<()> {
    let grid = Grid::new(shape, chunk)?;
    let mut sink: Box<dyn Sink> = Box::new(ZarrSink::create(target, WriteOptions::default())?);
    let array = sink.array("/", &ArraySpec::new(dtype.clone(), grid.clone()))?;
    let item = dtype.size().unwrap_or(1);
    for number in 0..grid.chunks().unwrap_or(0) {
        let coord = grid.coord(number);
        let region = grid.region(&coord);
        let mut part = Vec::new();
        for row in 0..region.shape[0] {
            let at = ((region.start[0] + row) * shape[1] + region.start[1]) as usize * item;
            part.extend_from_slice(&elements[at..at + region.shape[1] as usize * item]);
        }
        array.write(&coord, array.encode(&coord, &Elements::fixed(part))?)?;
    }
    sink.commit()
}
