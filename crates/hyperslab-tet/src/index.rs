//! Finds the row of a chunk.
//!
//! Writers emit rows by dataset, then by grid in C order, but this is not guaranteed. One pass over the rows checks this per
//! dataset and chooses the cheapest lookup:
//!
//! | the dataset's rows | lookup | memory |
//! |---|---|---|
//! | together, in order, complete | the chunk's number in C order is the row | none |
//! | together, in order, some missing | binary search in the mapped rows | none |
//! | in any order, most of the grid present | a table from chunk number to row | at most 16 bytes per row |
//! | in any order, sparse | binary search in a sorted list of rows | 8 bytes per row |
//!
//! Rows without a dataset or outside the grid are never found; `verify` reports them.

mod row;

use std::cmp::Ordering;

use bytes::Bytes;
use hyperslab_core::{Grid, Place, Result};
pub use row::{Codec, IndexHeader, Row};
use row::{RowBytes, word};

use crate::dataset::Dataset;

/// The maximum number of table slots per row.
const SLOTS_PER_ROW: u64 = 4;

/// Rows may claim this many times the bytes that the file has for them.
const MAX_SHARED: u64 = 16;

/// A table slot without a row.
const EMPTY: u32 = u32::MAX;

/// All rows, and how to find one.
#[derive(Debug)]
pub(crate) struct ChunkIndex {
    rows: Bytes,
    datasets: Vec<DatasetRows>,
    strays: u64,
    /// The number of bytes that rows can refer to.
    payload: u64,
}

/// The rows of one dataset.
#[derive(Debug)]
pub(crate) struct DatasetRows {
    /// Rows that are inside the grid.
    pub(crate) count: u64,
    /// Their claimed stored size.
    pub(crate) stored_bytes: u64,
    /// The same, counting at most the whole payload for each row.
    claimed: u64,
    /// Whether one of them is compressed.
    pub(crate) compressed: bool,
    rank: usize,
    first: u64,
    last: u64,
    in_order: bool,
    lookup: Lookup,
}

#[derive(Debug)]
enum Lookup {
    /// Nothing is found.
    None,
    /// The chunk's number, counted from the first row.
    Direct,
    /// Binary search between the first and the last row.
    Search,
    /// Chunk number to row, and duplicate rows by chunk number.
    Table { slots: Vec<u32>, again: Vec<(u64, u64)> },
    /// Row numbers in coordinate order.
    Sorted(Vec<u64>),
}

/// The result of a lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowLookup {
    Missing,
    Row(u64),
    /// Two rows claim the chunk.
    Twice(u64, u64),
}

impl ChunkIndex {
    /// Scans every row once. `rows` is the index without its header, in a file of `length` bytes.
    pub(crate) fn new(rows: Bytes, datasets: &[Dataset], length: u64) -> Self {
        let grids: Vec<Option<Grid>> = datasets.iter().map(Dataset::grid).collect();
        let payload = length.saturating_sub(rows.len() as u64);
        let mut index = Self { datasets: Vec::new(), strays: 0, rows, payload };
        let (found, strays) = scan(index.slices(), &grids, payload);
        (index.datasets, index.strays) = (found, strays);
        index.choose(&grids);
        index
    }

    fn slices(&self) -> &[RowBytes] {
        self.rows.as_chunks().0
    }

    /// The number of rows.
    pub(crate) fn len(&self) -> u64 {
        self.slices().len() as u64
    }

    /// The number of rows without a dataset or outside their grid.
    pub(crate) const fn strays(&self) -> u64 {
        self.strays
    }

    /// The row with this number.
    pub(crate) fn row(&self, number: u64) -> Option<Row> {
        self.slices().get(usize::try_from(number).ok()?).map(Row::parse)
    }

    /// All rows, as they are stored.
    pub(crate) const fn bytes(&self) -> &Bytes {
        &self.rows
    }

    /// Facts about a dataset's rows.
    pub(crate) fn dataset(&self, id: usize) -> Option<&DatasetRows> {
        self.datasets.get(id)
    }

    /// Refuses rows of a dataset that share their bytes: each would be decoded, so that a small file could require any amount of
    /// work. A few damaged rows are not refused here.
    pub(crate) fn check_shared(&self, id: usize, place: Place<'_>) -> Result<()> {
        let Some(own) = self.datasets.get(id) else { return Ok(()) };
        if own.claimed / MAX_SHARED > self.payload {
            return Err(place.corrupt(format!(
                "{} rows claim {} stored bytes, and the file has {} beside the index",
                own.count, own.stored_bytes, self.payload
            )));
        }
        Ok(())
    }

    /// The row of a chunk.
    pub(crate) fn find(&self, id: usize, grid: &Grid, coord: &[u64]) -> RowLookup {
        let Some(own) = self.datasets.get(id) else { return RowLookup::Missing };
        if !grid.contains(coord) {
            return RowLookup::Missing;
        }
        let rows = self.slices();
        match &own.lookup {
            Lookup::None => RowLookup::Missing,
            Lookup::Direct => {
                grid.linear(coord).map_or(RowLookup::Missing, |number| RowLookup::Row(own.first + number))
            }
            Lookup::Search => {
                let range = &rows[own.first as usize..=own.last as usize];
                match range.binary_search_by(|row| compare(row, coord)) {
                    Ok(at) => RowLookup::Row(own.first + at as u64),
                    Err(_) => RowLookup::Missing,
                }
            }
            Lookup::Table { slots, again } => {
                let Some(number) = grid.linear(coord) else { return RowLookup::Missing };
                match slots.get(number as usize) {
                    None | Some(&EMPTY) => RowLookup::Missing,
                    Some(&row) => match again.binary_search_by_key(&number, |(own, _)| *own) {
                        Ok(at) => RowLookup::Twice(row.into(), again[at].1),
                        Err(_) => RowLookup::Row(row.into()),
                    },
                }
            }
            Lookup::Sorted(order) => {
                let at = order.partition_point(|&row| compare(&rows[row as usize], coord).is_lt());
                let equal = |&&row: &&u64| compare(&rows[row as usize], coord).is_eq();
                match (order.get(at).filter(equal), order.get(at + 1).filter(equal)) {
                    (Some(&row), Some(&other)) => RowLookup::Twice(row, other),
                    (Some(&row), None) => RowLookup::Row(row),
                    _ => RowLookup::Missing,
                }
            }
        }
    }

    /// The row numbers of a dataset in index order. Of rows that claim the same chunk, only the first.
    pub(crate) fn rows_of(&self, id: usize) -> Box<dyn Iterator<Item = u64> + '_> {
        let Some(own) = self.datasets.get(id) else { return Box::new(std::iter::empty()) };
        match &own.lookup {
            Lookup::None => Box::new(std::iter::empty()),
            Lookup::Direct | Lookup::Search => Box::new(own.first..=own.last),
            Lookup::Table { slots, .. } => {
                let mut rows: Vec<u32> = slots.iter().copied().filter(|&row| row != EMPTY).collect();
                rows.sort_unstable();
                Box::new(rows.into_iter().map(u64::from))
            }
            Lookup::Sorted(order) => {
                let rows = self.slices();
                let mut firsts: Vec<u64> = order.clone();
                firsts.dedup_by(|b, a| {
                    coords(&rows[*a as usize], own.rank).eq(coords(&rows[*b as usize], own.rank))
                });
                firsts.sort_unstable();
                Box::new(firsts.into_iter())
            }
        }
    }

    /// Two rows of a dataset that claim the same chunk, for every such chunk.
    pub(crate) fn duplicates(&self, id: usize) -> Vec<(u64, u64)> {
        match self.datasets.get(id).map(|own| (&own.lookup, own.rank)) {
            Some((Lookup::Table { slots, again }, _)) => {
                again.iter().map(|&(chunk, row)| (slots[chunk as usize].into(), row)).collect()
            }
            Some((Lookup::Sorted(order), rank)) => {
                let rows = self.slices();
                let same = |pair: &&[u64]| {
                    coords(&rows[pair[0] as usize], rank).eq(coords(&rows[pair[1] as usize], rank))
                };
                order.windows(2).filter(same).map(|pair| (pair[0], pair[1])).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Chooses the lookup of each dataset.
    fn choose(&mut self, grids: &[Option<Grid>]) {
        let few_rows = self.len() < u64::from(EMPTY);
        let mut again = false;
        for (own, grid) in self.datasets.iter_mut().zip(grids) {
            let Some(grid) = grid.as_ref().filter(|_| own.count > 0) else { continue };
            let chunks = grid.chunks();
            let together = own.last - own.first + 1 == own.count;
            own.lookup = if own.in_order && together {
                // In order, inside the grid and complete: row and chunk number are the same.
                if chunks == Some(own.count) { Lookup::Direct } else { Lookup::Search }
            } else {
                again = true;
                match chunks {
                    Some(chunks) if few_rows && chunks <= own.count.saturating_mul(SLOTS_PER_ROW) => {
                        Lookup::Table { slots: vec![EMPTY; chunks as usize], again: Vec::new() }
                    }
                    _ => Lookup::Sorted(Vec::with_capacity(own.count as usize)),
                }
            };
        }
        if again {
            self.collect(grids);
        }
    }

    /// Fills the tables and lists in a second pass, only for files whose rows are out of order.
    fn collect(&mut self, grids: &[Option<Grid>]) {
        let (rows, extents) = (self.rows.clone(), extents_of(grids));
        let rows: &[RowBytes] = rows.as_chunks().0;
        for (number, row) in rows.iter().enumerate() {
            let Some((id, extents)) = grid_of(row, &extents) else { continue };
            match &mut self.datasets[id].lookup {
                Lookup::Table { slots, again } => {
                    let chunk = linear(row, extents);
                    match slots.get_mut(chunk as usize) {
                        Some(slot) if *slot == EMPTY => *slot = number as u32,
                        _ => again.push((chunk, number as u64)),
                    }
                }
                Lookup::Sorted(order) => order.push(number as u64),
                _ => {}
            }
        }
        for (own, grid) in self.datasets.iter_mut().zip(grids) {
            match &mut own.lookup {
                Lookup::Table { again, .. } => again.sort_unstable(),
                // Both sorts keep the rows of one chunk in file order.
                Lookup::Sorted(order) => match grid.as_ref().filter(|grid| grid.chunks().is_some()) {
                    Some(grid) => {
                        let extents = grid.extents();
                        order.sort_by_cached_key(|&row| linear(&rows[row as usize], &extents));
                    }
                    None => order.sort_by(|&a, &b| {
                        coords(&rows[a as usize], own.rank).cmp(coords(&rows[b as usize], own.rank))
                    }),
                },
                _ => {}
            }
        }
    }
}

type GridExtents = Option<hyperslab_core::Extents>;

fn extents_of(grids: &[Option<Grid>]) -> Vec<GridExtents> {
    grids.iter().map(|grid| grid.as_ref().map(Grid::extents)).collect()
}

/// The dataset and the grid of a row; `None` for a row of no dataset or outside its grid.
fn grid_of<'e>(row: &RowBytes, extents: &'e [GridExtents]) -> Option<(usize, &'e [u64])> {
    let id = usize::try_from(word(row, 0)).ok()?;
    let extents = extents.get(id)?.as_deref()?;
    let inside = |(axis, extent): (usize, &u64)| word(row, Row::COORD + 8 * axis) < *extent;
    extents.iter().enumerate().all(inside).then_some((id, extents))
}

/// The chunk's number in C order. The caller has checked that it exists.
fn linear(row: &RowBytes, extents: &[u64]) -> u64 {
    extents.iter().enumerate().fold(0_u64, |number, (axis, extent)| {
        number.wrapping_mul(*extent).wrapping_add(word(row, Row::COORD + 8 * axis))
    })
}

/// The coordinates of a row. Slots beyond the rank are meaningless.
fn coords(row: &RowBytes, rank: usize) -> impl Iterator<Item = u64> + '_ {
    (0..rank).map(|axis| word(row, Row::COORD + 8 * axis))
}

/// Compares a row's coordinates with these.
fn compare(row: &RowBytes, coord: &[u64]) -> Ordering {
    coords(row, coord.len()).cmp(coord.iter().copied())
}

/// Counts the rows of every dataset, and checks whether they are in order.
fn scan(rows: &[RowBytes], grids: &[Option<Grid>], payload: u64) -> (Vec<DatasetRows>, u64) {
    let extents = extents_of(grids);
    let empty = |grid: &Option<Grid>| DatasetRows {
        rank: grid.as_ref().map_or(0, Grid::rank),
        count: 0,
        stored_bytes: 0,
        claimed: 0,
        compressed: false,
        first: 0,
        last: 0,
        in_order: true,
        lookup: Lookup::None,
    };
    let mut datasets: Vec<_> = grids.iter().map(empty).collect();
    let mut strays = 0;
    for (number, row) in rows.iter().enumerate() {
        let Some((id, extents)) = grid_of(row, &extents) else {
            strays += 1;
            continue;
        };
        let own = &mut datasets[id];
        if own.count == 0 {
            own.first = number as u64;
        } else if own.in_order {
            let before = coords(&rows[own.last as usize], extents.len());
            own.in_order = before.lt(coords(row, extents.len()));
        }
        own.last = number as u64;
        own.count += 1;
        let stored = word(row, Row::STORED);
        own.stored_bytes = own.stored_bytes.saturating_add(stored);
        own.claimed = own.claimed.saturating_add(stored.min(payload));
        own.compressed |= word(row, Row::CODEC) as u32 != Codec::Raw.number();
    }
    (datasets, strays)
}

#[cfg(test)]
mod tests;
