//! A writer in a process of its own, that is killed.

#![allow(dead_code, clippy::allow_attributes, reason = "not all tests use all of it")]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use hyperslab_core::{
    ArraySpec, DType, Depth, Elements, Filter, Grid, Node, Positions, Report, Sink, Store, Values,
    read_serial,
};
use hyperslab_hdf5::{AppendOptions, Hdf5Append, Hdf5Options, Hdf5Sink};

/// Elements of a frame.
const CELLS: u64 = 16;

/// Frame `number`: every element is the number, and a bit more.
pub(crate) fn frame(number: u64) -> Values {
    let bytes: Vec<u8> = (0..CELLS).flat_map(|cell| (number * 100 + cell).to_le_bytes()).collect();
    Values::new(DType::UInt64, &[CELLS], Elements::fixed(bytes)).unwrap()
}

/// The process that is to be killed: appends and flushes without end, and says how much it has flushed.
pub(crate) fn child() {
    let Some(path) = std::env::var_os("HYPERSLAB_RECORD") else { return };
    let number = |name: &str| std::env::var(name).unwrap().parse::<u64>().unwrap();
    let (every, thickness, swmr) =
        (number("HYPERSLAB_EVERY"), number("HYPERSLAB_THICKNESS"), number("HYPERSLAB_SWMR"));
    let path = Path::new(&path);
    let mut sink = Box::new(Hdf5Sink::create(path, Hdf5Options::default()).unwrap());
    let mut spec = ArraySpec::new(DType::UInt64, Grid::new(&[0, CELLS], &[thickness, CELLS]).unwrap());
    spec.max_shape[0] = None;
    if thickness > 1 {
        spec.filters = vec![Filter::new("shuffle"), Filter::new("gzip").with("level", 1)];
    }
    sink.array("/frames", &spec).unwrap();
    sink.commit().unwrap();
    let mut options = AppendOptions::default();
    options.swmr = swmr != 0;
    let mut file = Hdf5Append::open(path, options).unwrap();
    let mut out = std::io::stdout();
    for number in 0.. {
        file.append("/frames", &frame(number)).unwrap();
        if (number + 1) % every == 0 {
            file.flush().unwrap();
            writeln!(out, "flushed {}", number + 1).unwrap();
            out.flush().unwrap();
        }
    }
}

/// Starts the writer.
pub(crate) fn spawn(path: &Path, every: u64, thickness: u64, swmr: bool) -> std::process::Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture"])
        .env("HYPERSLAB_RECORD", path)
        .env("HYPERSLAB_EVERY", every.to_string())
        .env("HYPERSLAB_THICKNESS", thickness.to_string())
        .env("HYPERSLAB_SWMR", u8::from(swmr).to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Runs the writer and kills it somewhere; answers how many frames it said to have flushed.
pub(crate) fn record_and_kill(path: &Path, round: u64, swmr: bool) -> u64 {
    let (every, thickness) = ([1, 3, 10][round as usize % 3], [1, 1, 4][round as usize / 3 % 3]);
    let mut child = spawn(path, every, thickness, swmr);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut flushed = 0;
    let mut seen = 0;
    // At least some flushes, then a while that differs from round to round.
    while seen < 5 + round * 7 {
        let line = lines.next().unwrap().unwrap();
        if let Some(number) = line.strip_prefix("flushed ") {
            flushed = number.parse().unwrap();
            seen += 1;
        }
    }
    std::thread::sleep(std::time::Duration::from_micros(137 * (round * round % 29)));
    child.kill().unwrap();
    child.wait().unwrap();
    // What it said before it died.
    for line in lines.map_while(Result::ok) {
        if let Some(number) = line.strip_prefix("flushed ").and_then(|number| number.parse().ok()) {
            flushed = number;
        }
    }
    flushed
}

/// Refuses a file that lacks a flushed frame, or has a wrong one; answers how many there are.
pub(crate) fn check(path: &Path, flushed: u64) -> u64 {
    let store = hyperslab_hdf5::open_path(path).unwrap();
    let mut report = Report::default();
    store.verify(Depth::Deep, &mut report).unwrap();
    assert!(report.ok(), "{report:?}");
    let Ok(Node::Array(array)) = store.node("/frames") else { panic!("no dataset") };
    let read = read_serial(&*array, Positions::whole(array.schema().shape())).unwrap();
    let frames = read.shape[0];
    assert!(frames >= flushed, "{flushed} frames were flushed, {frames} are there");
    let expected: Vec<u8> =
        (0..frames).flat_map(|number| frame(number).elements.as_fixed().unwrap().to_vec()).collect();
    assert_eq!(&read.elements.as_fixed().unwrap()[..], &expected[..]);
    frames
}
