//! Reads by lists of positions, compared with indexing the whole array.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use hyperslab::driver::AxisPositions;
use hyperslab::{
    ArrayReader, ArraySpec, AxisPick, CreateOptions, DType, Elements, Filter, Format, Grid, Region,
    Selection, Threads, create, open,
};
use proptest::prelude::*;

/// An array of `int32` whose elements are their own numbers, in `.tet`, raw or compressed.
fn numbered(folder: &std::path::Path, shape: &[u64], chunk: &[u64], packed: bool) -> ArrayReader {
    let path = folder.join("x.tet");
    let mut spec = ArraySpec::new(DType::Int32, Grid::new(shape, chunk).unwrap());
    if packed {
        spec = spec.with_filters([Filter::new("zstd")]);
    }
    let mut sink = create(&path, Format::TET, &CreateOptions::default()).unwrap();
    sink.group("/", &hyperslab::Attributes::new()).unwrap();
    let array = sink.array("/x", &spec).unwrap();
    let strides = hyperslab::driver::CellOrder::RowMajor.strides(shape);
    for number in 0..spec.grid.chunks().unwrap() {
        let coord = spec.grid.coord(number);
        let region = spec.grid.region(&coord);
        let cells = Grid::new(&region.shape, &vec![1; shape.len()]).unwrap();
        let mut bytes = Vec::new();
        for cell in 0..region.cells().unwrap() {
            let at = cells.coord(cell);
            let value: u64 =
                (0..shape.len()).map(|axis| (region.start[axis] + at[axis]) * strides[axis]).sum();
            bytes.extend((value as i32).to_ne_bytes());
        }
        let encoded = array.encode(&coord, &Elements::fixed(bytes)).unwrap();
        array.write(&coord, encoded).unwrap();
    }
    sink.commit().unwrap();
    open(&path).unwrap().array("/x").unwrap()
}

fn positions(pick: &AxisPick) -> Vec<u64> {
    match pick {
        AxisPick::List(list) => list.clone(),
        AxisPick::Even(even) => {
            (0..even.count as i64).map(|i| (even.start as i64 + even.step * i) as u64).collect()
        }
    }
}

fn axis() -> impl Strategy<Value = (u64, u64, AxisPick)> {
    (1_u64..13, 1_u64..6, prop::collection::vec(0_u64..1000, 0..12), any::<bool>()).prop_map(
        |(extent, chunk, list, even)| {
            let list: Vec<u64> = list.into_iter().map(|at| at % extent).collect();
            let pick = if even {
                let first = list.first().copied().unwrap_or(0);
                AxisPick::Even(AxisPositions { start: first, count: first + 1, step: -1, keep: true })
            } else {
                AxisPick::List(list)
            };
            (extent, chunk, pick)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn lists_pick_every_combination(axes in prop::collection::vec(axis(), 1..4), packed: bool, alone: bool) {
        let folder = tempfile::tempdir().unwrap();
        let shape: Vec<u64> = axes.iter().map(|axis| axis.0).collect();
        let chunk: Vec<u64> = axes.iter().map(|axis| axis.1).collect();
        let picks: Vec<AxisPick> = axes.into_iter().map(|axis| axis.2).collect();
        let mut reader = numbered(folder.path(), &shape, &chunk, packed);
        if alone {
            reader = reader.with_threads(Threads::Caller);
        }
        let strides = hyperslab::driver::CellOrder::RowMajor.strides(&shape);
        let mut expected: Vec<u64> = vec![0];
        for (pick, stride) in picks.iter().zip(&strides) {
            let list = positions(pick);
            expected = expected.iter().flat_map(|sum| list.iter().map(move |at| sum + at * stride)).collect();
        }
        let expected: Vec<i32> = expected.into_iter().map(|value| value as i32).collect();
        let found = reader.read_outer(&picks).unwrap();
        prop_assert_eq!(found.as_slice::<i32>(), Some(expected.as_slice()));
    }

    #[test]
    fn small_chunks_follow_each_other(
        (rows, each) in (130_u64..260, 1_u64..3),
        (width, chunk_width) in (1_u64..5, 1_u64..6),
        bounds in (0_u64..1000, 0_u64..1000),
        deep: bool,
        packed: bool,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let (start, count) = (bounds.0 % rows, bounds.1 % (rows - bounds.0 % rows) + 1);
        let (mut shape, mut chunk) = (vec![rows, width], vec![each, chunk_width]);
        let mut region = Region::new(&[start, 0], &[count, width]);
        if deep {
            shape.insert(0, 1);
            chunk.insert(0, 1);
            region = Region::new(&[0, start, 0], &[1, count, width]);
        }
        let reader = numbered(folder.path(), &shape, &chunk, packed);
        let expected: Vec<i32> = (start * width..(start + count) * width).map(|value| value as i32).collect();
        let found = reader.read(&Selection::region(&region).unwrap()).unwrap();
        prop_assert_eq!(found.as_slice::<i32>(), Some(expected.as_slice()));
    }

    #[test]
    fn points_pick_cells(points in prop::collection::vec((0_u64..7, 0_u64..9), 0..60), packed: bool) {
        let folder = tempfile::tempdir().unwrap();
        let reader = numbered(folder.path(), &[7, 9], &[3, 4], packed);
        let (rows, columns): (Vec<_>, Vec<_>) = points.iter().copied().unzip();
        let expected: Vec<i32> = points.iter().map(|(row, column)| (row * 9 + column) as i32).collect();
        let found = reader.read_points(&[rows, columns]).unwrap();
        prop_assert_eq!(found.as_slice::<i32>(), Some(expected.as_slice()));
    }
}

#[test]
fn positions_outside_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let reader = numbered(folder.path(), &[4, 4], &[2, 2], false);
    let list = |at: u64| AxisPick::List(vec![at]);
    assert!(reader.read_outer(&[list(0), list(4)]).is_err());
    assert!(reader.read_outer(&[list(0)]).is_err());
    assert!(reader.read_points(&[vec![0], vec![4]]).is_err());
    assert!(reader.read_points(&[vec![0, 1], vec![0]]).is_err());
    assert!(reader.read_outer_into(&[list(0), list(0)], &mut [0; 3]).is_err());
}
