//! The memory limit that a `.tet` file advises is respected where possible, and never prevents an answer.

#![cfg(feature = "tet")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use hyperslab::query::{Operation, Query};
use hyperslab::{ArraySpec, ChunkCoord, DType, Elements, Grid, Selection, Sink};
use hyperslab_tet::{TetOptions, TetSink};

const SIDE: u64 = 1024;
const CHUNK: u64 = 16;

/// Writes a square array in square chunks. The file advises this many bytes, or this share of the machine's memory.
fn square(path: &std::path::Path, bytes: u32, share: u16) {
    let mut options = TetOptions::default();
    (options.memory_budget_bytes, options.memory_budget_bps) = (bytes, share);
    let mut sink: Box<dyn Sink> = Box::new(TetSink::create(path, options).unwrap());
    let spec = ArraySpec::new(DType::Float64, Grid::new(&[SIDE, SIDE], &[CHUNK, CHUNK]).unwrap());
    let array = sink.array("/x", &spec).unwrap();
    for chunk in 0..array.grid().chunks().unwrap() {
        let chunk: ChunkCoord = array.grid().coord(chunk);
        let cells = array.grid().region(&chunk).cells().unwrap();
        let cells = (0..cells).flat_map(|cell| ((cell * 7 % 64 + chunk[1]) as f64).to_le_bytes());
        let encoded = array.encode(&chunk, &Elements::fixed(cells.collect::<Vec<_>>())).unwrap();
        array.write(&chunk, encoded).unwrap();
    }
    sink.commit().unwrap();
}

#[test]
fn advice_bounds_the_work_and_blocks_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let cases = [
        ("none", 0, 0),
        ("one byte", 1, 0),
        ("little", 2 << 20, 0),
        ("a sliver", 0, 1),
        ("all", 0, u16::MAX),
    ];
    let (mut answers, mut most) = (Vec::new(), Vec::new());
    for (name, bytes, share) in cases {
        let path = path(&format!("{name}.tet"));
        square(&path, bytes, share);
        let array = hyperslab::open(&path).unwrap().array("/x").unwrap();
        // The median of every column keeps all of its values: more than two mebibytes if all columns are processed at
        // once.
        let query = Query::new(Operation::Median).over([0]);
        let plan = query.plan(&array).unwrap();
        let explained = plan.explain(&array).unwrap();
        most.push(explained.memory);
        answers.push(plan.run(&array).unwrap());
        assert_eq!(array.read(&Selection::all()).unwrap().len(), (SIDE * SIDE) as usize, "{name}");
    }
    // No advice, or advice to use all memory.
    assert!(most[0] > 8 << 20 && most[0] == most[4], "{most:?}");
    assert!(most[1] <= 2 << 20 && most[2] <= 4 << 20, "{most:?}");
    let first = format!("{:?}", answers[0]);
    assert!(answers.iter().all(|answer| format!("{answer:?}") == first));
}
