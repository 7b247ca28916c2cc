use super::*;
use proptest::prelude::*;

fn row(dataset: u64, coord: &[u64]) -> Row {
    let mut slots = [0; 8];
    slots[..coord.len()].copy_from_slice(coord);
    Row { dataset, coord: slots, offset: 0, raw_length: 0, stored_length: 1, codec: 0, reserved: 0 }
}

fn dataset(shape: &[u64], chunk_shape: &[u64]) -> Dataset {
    Dataset { name: "x".into(), dtype_code: 1, shape: shape.into(), chunk_shape: chunk_shape.into() }
}

fn index(rows: &[Row], datasets: &[Dataset]) -> ChunkIndex {
    ChunkIndex::new(rows.iter().flat_map(Row::encode).collect::<Vec<_>>().into(), datasets, u64::MAX)
}

#[test]
fn rows_outside_are_strays_and_never_found() {
    let datasets = [dataset(&[4], &[2]), dataset(&[4], &[0])];
    let rows = [row(0, &[1]), row(0, &[2]), row(1, &[0]), row(2, &[0]), row(u64::MAX, &[u64::MAX])];
    let index = index(&rows, &datasets);
    assert_eq!(index.strays(), 4);
    let grid = datasets[0].grid().unwrap();
    assert_eq!(index.find(0, &grid, &[1]), RowLookup::Row(0));
    assert_eq!(index.find(0, &grid, &[0]), RowLookup::Missing);
    assert_eq!(index.find(0, &grid, &[2]), RowLookup::Missing);
    assert_eq!(index.find(0, &grid, &[0, 0]), RowLookup::Missing);
    assert_eq!(index.find(1, &grid, &[0]), RowLookup::Missing);
}

#[test]
fn coordinates_that_differ_past_the_rank_are_the_same_chunk() {
    let datasets = [dataset(&[4], &[2])];
    for rows in [[row(0, &[1]), row(0, &[1, 5])], [row(0, &[1, 9]), row(0, &[1, 5])]] {
        let grid = datasets[0].grid().unwrap();
        assert_eq!(index(&rows, &datasets).find(0, &grid, &[1]), RowLookup::Twice(0, 1));
        assert_eq!(index(&rows, &datasets).rows_of(0).collect::<Vec<_>>(), [0]);
    }
    // The same in a grid too large for a table.
    let datasets = [dataset(&[1 << 40], &[2])];
    let grid = datasets[0].grid().unwrap();
    let index = index(&[row(0, &[7, 1]), row(0, &[3]), row(0, &[7])], &datasets);
    assert_eq!(index.find(0, &grid, &[7]), RowLookup::Twice(0, 2));
    assert_eq!(index.find(0, &grid, &[3]), RowLookup::Row(1));
    assert_eq!(index.rows_of(0).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn a_grid_past_u64_is_searched() {
    let datasets = [dataset(&[u64::MAX; 8], &[1; 8])];
    let grid = datasets[0].grid().unwrap();
    let (a, b) = ([5, 0, 0, 0, 0, 0, 0, 9], [5, 0, 0, 0, 0, 0, 1, 0]);
    for (rows, places) in [([row(0, &a), row(0, &b)], [0, 1]), ([row(0, &b), row(0, &a)], [1, 0])] {
        let index = index(&rows, &datasets);
        assert_eq!([index.find(0, &grid, &a), index.find(0, &grid, &b)], places.map(RowLookup::Row));
        assert_eq!(index.find(0, &grid, &[5, 0, 0, 0, 0, 0, 0, 0]), RowLookup::Missing);
    }
}

proptest! {
    /// Whatever the order and the holes, every row is found at its coordinate and nothing else is.
    #[test]
    fn every_order_is_found(
        shapes in prop::collection::vec((1_u64..12, 1_u64..12, 1_u64..4), 1..4),
        keep in prop::collection::vec(any::<bool>(), 432),
        order in prop::sample::select(vec!["written", "reversed", "mixed"]),
        huge: bool,
    ) {
        let scale = if huge { 1 << 40 } else { 1 };
        let datasets: Vec<_> = shapes.iter().map(|&(a, b, c)| dataset(&[a * scale, b], &[c, 1])).collect();
        let mut rows = Vec::new();
        for (id, &(a, b, c)) in shapes.iter().enumerate() {
            for i in 0..a.div_ceil(c) {
                rows.extend((0..b).map(|j| row(id as u64, &[i, j])));
            }
        }
        let mut rows: Vec<_> = rows.into_iter().zip(&keep).filter(|(_, keep)| **keep).map(|(row, _)| row).collect();
        match order {
            "reversed" => rows.reverse(),
            "mixed" => rows.sort_by_key(|row| (row.coord[1].wrapping_mul(31) + row.coord[0] * 17) % 7),
            _ => {}
        }
        let index = index(&rows, &datasets);
        prop_assert_eq!(index.strays(), 0);
        for (id, own) in datasets.iter().enumerate() {
            let grid = own.grid().unwrap();
            for i in 0..14 {
                for j in 0..14 {
                    let at = rows.iter().position(|row| row.dataset == id as u64 && row.coord[..2] == [i, j]);
                    let expected = at.map_or(RowLookup::Missing, |at| RowLookup::Row(at as u64));
                    prop_assert_eq!(index.find(id, &grid, &[i, j]), expected);
                }
            }
            let mine: Vec<u64> = (0_u64..).zip(&rows)
                .filter(|(_, row)| row.dataset == id as u64).map(|(at, _)| at).collect();
            prop_assert_eq!(index.rows_of(id).collect::<Vec<_>>(), mine);
        }
    }
}
