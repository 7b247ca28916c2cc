//! Arranges the rows of one chunk: their order, fragments and owners.

use hyperslab_core::{DType, Error, Result};

use super::buckets::words;
use crate::coord::{Coord, chunk_of};
use crate::fragment::Fragment;

/// The size of the two numbers before a record's position.
pub(crate) const KEY: usize = 16;
/// Marks a vertex without an object.
pub(crate) const NO_OBJECT: u64 = u64::MAX;

/// How the rows of chunks are ordered and divided into fragments.
#[derive(Debug)]
pub(crate) enum Layout {
    /// One fragment per bin, also for empty ones, so that readers find a bin's fragment by its number.
    Bins { chunk: Vec<f64>, bin: Vec<f64>, counts: Vec<u64> },
    /// One fragment per object; vertices without an object come last. Keys: the object's arrival number, the vertex.
    Owners,
    /// One fragment per visit of a path. Keys: the object's arrival number, the visit.
    Visits,
    /// One fragment per tree, parents before children. Keys: the object's arrival number, the vertex.
    Trees(Forest),
}

/// The position of each vertex in its tree.
#[derive(Debug, Default)]
pub(crate) struct Forest {
    /// The tree of each vertex.
    pub(crate) tree: Vec<u32>,
    /// Its number in a walk from the roots.
    pub(crate) number: Vec<u32>,
}

impl Layout {
    pub(crate) fn bins(chunk: &[f64], bin: &[f64]) -> Result<Self> {
        let counts: Vec<u64> =
            chunk.iter().zip(bin).map(|(chunk, bin)| (chunk / bin).round() as u64).collect();
        let total = counts.iter().try_fold(1_u64, |all, own| all.checked_mul(*own));
        match total {
            Some(1..=0xff_ffff) => Ok(Self::Bins { chunk: chunk.to_vec(), bin: bin.to_vec(), counts }),
            _ => Err(Error::invalid(format!("bins of {bin:?} in chunks of {chunk:?}"))),
        }
    }

    pub(crate) const fn is_keyed(&self) -> bool {
        !matches!(self, Self::Bins { .. })
    }
}

/// A chunk's rows.
#[derive(Debug, Default)]
pub(crate) struct Arranged {
    /// The record of each row.
    pub(crate) rows: Vec<u32>,
    pub(crate) fragments: Vec<Fragment>,
    pub(crate) uses: Vec<FragmentUse>,
}

/// A fragment's position in an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FragmentUse {
    /// The object's number among the sorted ids.
    pub(crate) object: u64,
    /// Its position among the object's fragments.
    pub(crate) order: u64,
    pub(crate) fragment: u32,
    /// Its first and last row.
    pub(crate) first: u32,
    pub(crate) last: u32,
}

/// Orders the records of a chunk. `ranks` gives the position of each object among the sorted ids, by arrival number.
pub(crate) fn arrange(
    layout: &Layout,
    records: &[u8],
    size: usize,
    dtype: &DType,
    coord: &Coord,
    chunk_number: u64,
    ranks: &[u32],
) -> Arranged {
    let count = records.len() / size;
    let record = |index: usize| &records[index * size..(index + 1) * size];
    let rank = |owner: u64| if owner == NO_OBJECT { NO_OBJECT } else { u64::from(ranks[owner as usize]) };
    match layout {
        Layout::Bins { chunk, bin, counts } => {
            let of = |index| bin_of(record(index), dtype, coord, chunk, bin, counts);
            by_bin(count, counts.iter().product(), of)
        }
        Layout::Owners => {
            // Combine the object's rank and the record in one word. Vertices without an object have the highest rank.
            let owner = |index: usize| words::<1>(record(index))[0];
            let rank = |owner: u64| ranks.get(owner as usize).copied().unwrap_or(u32::MAX);
            let mut order: Vec<u64> =
                (0..count).map(|index| u64::from(rank(owner(index))) << 32 | index as u64).collect();
            order.sort_unstable();
            let whose =
                |at: usize| if order[at] >> 32 == u64::from(u32::MAX) { NO_OBJECT } else { order[at] >> 32 };
            runs(
                order.iter().map(|entry| *entry as u32),
                |at| order[at] >> 32,
                |at| (whose(at), chunk_number),
            )
        }
        Layout::Visits => {
            let key = |at: usize| words::<2>(record(at));
            runs(0..count as u32, key, |at| (rank(key(at)[0]), key(at)[1]))
        }
        Layout::Trees(forest) => {
            let mut order: Vec<(u32, u32, u32)> = (0..count)
                .map(|index| {
                    let vertex = words::<2>(record(index))[1] as usize;
                    (forest.tree[vertex], forest.number[vertex], index as u32)
                })
                .collect();
            order.sort_unstable();
            let owner = |at: usize| rank(words::<2>(record(order[at].2 as usize))[0]);
            let place = |at: usize| chunk_number << 32 | u64::from(order[at].0);
            runs(order.iter().map(|entry| entry.2), |at| order[at].0, |at| (owner(at), place(at)))
        }
    }
}

fn by_bin(count: usize, bins: u64, bin_of: impl Fn(usize) -> u32) -> Arranged {
    let of: Vec<u32> = (0..count).map(bin_of).collect();
    let mut starts = vec![0_u32; bins as usize + 1];
    of.iter().for_each(|bin| starts[*bin as usize + 1] += 1);
    let mut fragments = Vec::with_capacity(bins as usize);
    for bin in 0..bins as usize {
        let number = starts[bin + 1];
        fragments.push(Fragment::Range { start: starts[bin].into(), count: number.into() });
        starts[bin + 1] += starts[bin];
    }
    let mut rows = vec![0; count];
    for (index, bin) in of.iter().enumerate() {
        let start = &mut starts[*bin as usize];
        rows[*start as usize] = index as u32;
        *start += 1;
    }
    Arranged { rows, fragments, uses: Vec::new() }
}

fn bin_of(record: &[u8], dtype: &DType, coord: &Coord, chunk: &[f64], bin: &[f64], counts: &[u64]) -> u32 {
    let mut number = 0;
    for (axis, count) in counts.iter().enumerate() {
        let inside = position(record, dtype, axis) - coord[axis] as f64 * chunk[axis];
        // Rounding must not move a vertex out of its chunk.
        let at = chunk_of(inside, bin[axis]).clamp(0, *count as i64 - 1);
        number = number * count + at as u64;
    }
    number as u32
}

/// A coordinate of a record that starts with its position.
pub(crate) fn position(record: &[u8], dtype: &DType, axis: usize) -> f64 {
    match dtype {
        DType::Float64 => {
            record.as_chunks::<8>().0.get(axis).map_or(f64::NAN, |word| f64::from_le_bytes(*word))
        }
        _ => record.as_chunks::<4>().0.get(axis).map_or(f64::NAN, |word| f32::from_le_bytes(*word).into()),
    }
}

/// Fragments of rows with the same key. `whose` gives the object and the position in it.
fn runs<K: PartialEq>(
    rows: impl Iterator<Item = u32>,
    key: impl Fn(usize) -> K,
    whose: impl Fn(usize) -> (u64, u64),
) -> Arranged {
    let rows: Vec<u32> = rows.collect();
    let (mut fragments, mut uses) = (Vec::new(), Vec::new());
    let mut start = 0;
    for at in 1..=rows.len() {
        if at < rows.len() && key(at) == key(start) {
            continue;
        }
        let (object, order) = whose(start);
        if object != NO_OBJECT {
            let fragment = fragments.len() as u32;
            uses.push(FragmentUse { object, order, fragment, first: start as u32, last: at as u32 - 1 });
        }
        fragments.push(Fragment::Range { start: start as u64, count: (at - start) as u64 });
        start = at;
    }
    Arranged { rows, fragments, uses }
}
