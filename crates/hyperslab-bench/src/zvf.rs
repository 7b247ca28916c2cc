//! Zarr Vectors stores written by zarr-vectors, queried and rewritten, compared with that library.

use std::hint::black_box;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use hyperslab::driver::Geometry;
use hyperslab::{DType, GeometryQuery, Values};
use hyperslab_core::Place;
use hyperslab_zvf::{
    ColumnSpec, FragmentIndex, GeometryKind, GeometrySpec, PyramidOptions, WriteOptions, ZvfWriter,
    build_pyramid,
};

use crate::harness::{Bench, OURS, Outcome, clear, say, timed, timed_prepared};
use crate::peers;

/// The peer and its script.
const PEER: &str = "zarr-vectors";
const SCRIPT: &str = "zvf.py";
/// The chunk and bin sizes of all stores, as in `zvf.py`.
const CHUNK: f64 = 125.0;
const BIN: f64 = 31.25;
/// The number of rows in the chunks that the fragment indexes describe.
const FRAGMENT_ROWS: u64 = 4096;

/// The cases of this module.
const LINES: [&str; 11] = [
    "zvf 100 boxes, 2 million points, zstd",
    "zvf 100 boxes, 2 million points, raw",
    "zvf 20 objects of 100 scattered points by id",
    "zvf 20 streamlines by id",
    "zvf 10 exact boxes, 20,000 streamlines",
    "zvf write 2 million points",
    "zvf write 2 million points, 20,000 ids",
    "zvf pyramid of two levels",
    "zvf pyramid of two levels, 20,000 objects",
    "zvf pyramid of two levels, streamlines",
    "zvf 10,000 fragment indexes",
];

pub(crate) fn run(bench: &mut Bench) -> Outcome {
    if bench.python.is_none() || !LINES.iter().any(|line| bench.wants(line)) {
        return Ok(());
    }
    let inputs = created_once(bench, "inputs", "make_inputs", None)?;
    let inputs = inputs.as_path();
    queries(bench, inputs)?;
    writes(bench, inputs)?;
    pyramids(bench, inputs)?;
    if bench.wants(LINES[10]) {
        fragments(bench, inputs)?;
    }
    Ok(())
}

/// A store or folder that the peer creates once.
fn created_once(bench: &Bench, name: &str, case: &str, inputs: Option<&Path>) -> Outcome<PathBuf> {
    let path = bench.files.join(format!("zvf-{name}"));
    if !path.exists() {
        crate::harness::say(&format!("making {}", path.display()));
        let arguments: Vec<&Path> = inputs.into_iter().chain([path.as_path()]).collect();
        peers::run(bench, SCRIPT, case, &arguments)?;
    }
    Ok(path)
}

/// Times a case of the peer, and compares both results.
fn against(
    bench: &mut Bench,
    line: &str,
    ours: (String, f64),
    found: u64,
    case: &str,
    paths: [&Path; 2],
) -> Outcome {
    let answer = peers::run(bench, SCRIPT, case, &paths)?;
    let mut words = answer.split_whitespace();
    let seconds: f64 = words.next().ok_or("no time")?.parse()?;
    let theirs = words.next().unwrap_or_default();
    let note = if theirs == found.to_string() || theirs == "None" {
        String::new()
    } else {
        format!("we found {found}, they {theirs}")
    };
    bench.line(line, [ours, (PEER.to_owned(), seconds)], &note);
    Ok(())
}

fn geometry(path: &Path) -> Outcome<hyperslab_zvf::ZvfGeometry> {
    Ok(hyperslab_zvf::open_path(path)?.geometry()?)
}

/// A column of numbers from an input.
fn input(folder: &Path, name: &str) -> Outcome<Values> {
    let store = hyperslab::open(folder.join(format!("{name}.npy")))?;
    let reader = store.array("/")?;
    Ok(reader.read(&hyperslab::Selection::all())?)
}

fn boxes(inputs: &Path) -> Outcome<Vec<[Vec<f64>; 2]>> {
    let all = input(inputs, "boxes")?;
    let numbers = all.as_slice::<f64>().ok_or("boxes of float64")?;
    Ok(numbers.chunks_exact(6).map(|pair| [pair[..3].to_vec(), pair[3..].to_vec()]).collect())
}

/// Every run opens the store again, so nothing is cached from the previous run.
fn run_queries(path: &Path, queries: &[GeometryQuery]) -> Outcome<(u64, (String, f64))> {
    let mut found = 0;
    let time = timed("hyperslab", || {
        let geometry = geometry(path)?;
        found = 0;
        for query in queries {
            found += black_box(geometry.query(query)?).vertices.shape[0];
        }
        Ok(())
    })?;
    Ok((found, time))
}

fn queries(bench: &mut Bench, inputs: &Path) -> Outcome {
    let by_box = |region: [Vec<f64>; 2]| GeometryQuery {
        region: Some(region),
        attributes: Some(Vec::new()),
        ..Default::default()
    };
    let by_id =
        |id: i64| GeometryQuery { objects: vec![id], attributes: Some(Vec::new()), ..Default::default() };
    let boxes: Vec<GeometryQuery> = boxes(inputs)?.into_iter().map(by_box).collect();
    let ids: Vec<GeometryQuery> = (0..20_000).step_by(1000).map(by_id).collect();
    let cases = [
        (LINES[0], "points_zstd", "boxes", &boxes[..]),
        (LINES[1], "points_raw", "boxes", &boxes[..]),
        (LINES[2], "points_ids", "points_object", &ids[..]),
        (LINES[3], "lines", "lines_object", &ids[..]),
        (LINES[4], "lines", "lines_boxes", &boxes[..10]),
    ];
    for (line, store, case, queries) in cases {
        if bench.wants(line) {
            let path = created_once(bench, store, &format!("make_{store}"), Some(inputs))?;
            let (found, ours) = run_queries(&path, queries)?;
            against(bench, line, ours, found, case, [inputs, &path])?;
        }
    }
    Ok(())
}

fn writes(bench: &mut Bench, inputs: &Path) -> Outcome {
    for (line, case, with_ids) in [(LINES[5], "write_points", false), (LINES[6], "write_points_ids", true)] {
        if !bench.wants(line) {
            continue;
        }
        let (points, values) = (input(inputs, "points")?, input(inputs, "values")?);
        let ids = input(inputs, "ids")?;
        let ids: Vec<Option<i64>> = ids.as_slice::<i64>().ok_or("ids")?.iter().copied().map(Some).collect();
        let ids = if with_ids { &ids[..] } else { &[] };
        let attributes = [("v".to_owned(), values)];
        let target = bench.files.join("zvf-written");
        let ours = timed_prepared(
            OURS,
            || clear(&target),
            || {
                let spec = GeometrySpec {
                    kind: GeometryKind::PointCloud,
                    rank: 3,
                    dtype: DType::Float32,
                    attributes: vec![ColumnSpec::of("v", &attributes[0].1)?],
                    link_width: None,
                    link_attributes: Vec::new(),
                    objects: with_ids,
                };
                let mut options = WriteOptions::new(vec![CHUNK; 3]);
                options.bin_shape = (!with_ids).then(|| vec![BIN; 3]);
                let mut writer = ZvfWriter::create(&target, spec, options)?;
                writer.vertices(&points, &attributes, ids)?;
                Ok(writer.commit()?)
            },
        )?;
        clear(&target)?;
        against(bench, line, ours, 0, case, [inputs, &bench.files.join("zvf-written-peer")])?;
    }
    Ok(())
}

/// Generates coarser levels in a copy of a store that the peer wrote.
fn pyramids(bench: &mut Bench, inputs: &Path) -> Outcome {
    // Stores without bins start from whole chunks there.
    for (line, store, bin) in
        [(LINES[7], "points_zstd", BIN), (LINES[8], "points_ids", CHUNK), (LINES[9], "lines", CHUNK)]
    {
        if !bench.wants(line) {
            continue;
        }
        let path = created_once(bench, store, &format!("make_{store}"), Some(inputs))?;
        let copy = bench.files.join("zvf-pyramid");
        clear(&copy)?;
        copy_folder(&path, &copy)?;
        let root = std::fs::read(copy.join("zarr.json"))?;
        let options = PyramidOptions { bin_shape: Some(vec![bin; 3]), ..PyramidOptions::new(vec![2.0, 2.0]) };
        let mut seconds = Vec::new();
        for _ in 0..6 {
            for level in ["1", "2"] {
                clear(&copy.join(level))?;
            }
            std::fs::write(copy.join("zarr.json"), &root)?;
            let start = std::time::Instant::now();
            build_pyramid(&copy, &options)?;
            seconds.push(start.elapsed().as_secs_f64());
        }
        seconds.remove(0);
        seconds.sort_by(f64::total_cmp);
        let (base, added) = (size(&copy.join("0"))?, size(&copy.join("1"))? + size(&copy.join("2"))?);
        // A number in the name would make every run a separate case.
        say(&format!("{line}: {:.1} % more bytes", added as f64 * 100.0 / base as f64));
        against(bench, line, ("hyperslab".to_owned(), seconds[2]), 2, "pyramid", [inputs, &path])?;
    }
    Ok(())
}

fn copy_folder(from: &Path, to: &Path) -> Outcome {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// Bytes of all files under a folder.
fn size(folder: &Path) -> Outcome<u64> {
    let mut total = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        total += if entry.file_type()?.is_dir() { size(&entry.path())? } else { entry.metadata()?.len() };
    }
    Ok(total)
}

fn fragments(bench: &mut Bench, inputs: &Path) -> Outcome {
    let bytes = input(inputs, "blobs")?;
    let bytes = bytes.elements.as_fixed().ok_or("bytes")?.clone();
    let lengths = input(inputs, "blob_lengths")?;
    let mut blobs: Vec<Bytes> = Vec::new();
    let mut at = 0;
    for length in lengths.as_slice::<i64>().ok_or("lengths")? {
        blobs.push(bytes.slice(at..at + *length as usize));
        at += *length as usize;
    }
    let mut found = 0;
    let ours = timed("hyperslab", || {
        found = 0;
        for blob in &blobs {
            let place = Place::new("blobs", "fragment index", 0);
            let index = FragmentIndex::parse(blob.clone(), place)?;
            index.check_rows(FRAGMENT_ROWS, place)?;
            found +=
                (0..index.len()).filter_map(|f| index.rows(f)).map(|rows| rows.len() as u64).sum::<u64>();
        }
        Ok(())
    })?;
    against(bench, LINES[10], ours, found, "fragments", [inputs, inputs])
}
