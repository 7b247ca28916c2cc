//! Computes one chunk of a coarser level from the finer chunks that it covers.

use bytes::Bytes;
use hyperslab_core::{DType, Place, Result};

use super::objects::FineUse;
use crate::coord::{Coord, chunk_of, dotted};
use crate::fragment::{Fragment, FragmentIndex};
use crate::level::Level;
use crate::numbers::{put_float, to_f64};
use crate::write::ColumnSpec;
use crate::write::arrange::{Arranged, FragmentUse, NO_OBJECT};

/// A row that is in no fragment.
pub(super) const NO_ROW: u32 = u32::MAX;
/// The maximum number of bins per chunk for a lookup table.
const TABLE: u64 = 1 << 20;

/// How vertices are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grouping {
    /// One vertex per bin; no objects.
    Bins,
    /// One vertex per bin. Any number of objects may refer to it, as paths or as sets.
    Shared { paths: bool },
    /// One vertex per bin and object.
    Owned,
    /// One vertex for each section of a path inside a bin.
    Stretches,
}

/// The geometry of a coarser chunk.
#[derive(Debug)]
pub(super) struct Shape<'a> {
    /// The size of a chunk of the coarser level, and of its bins.
    pub(super) chunk: &'a [f64],
    pub(super) bin: &'a [f64],
    /// The number of bins in a chunk, per axis.
    pub(super) counts: &'a [u64],
}

/// A chunk of the finer level.
pub(super) struct Piece {
    positions: Vec<f64>,
    rows: usize,
    /// The rows that are in a fragment; `None` for all.
    named: Option<Vec<bool>>,
    index: FragmentIndex,
    uses: Vec<FineUse>,
    cells: Vec<Option<Bytes>>,
}

impl Piece {
    pub(super) fn read(
        level: &Level,
        coord: &Coord,
        specs: &[ColumnSpec],
        uses: Vec<FineUse>,
    ) -> Result<Option<Self>> {
        let Some(vertices) = level.read_chunk(coord)? else { return Ok(None) };
        let rows = vertices.rows as usize;
        let (index, _) = level.read_fragments(coord, vertices.rows)?;
        let named = if index.tiles(vertices.rows) {
            None
        } else {
            let mut named = vec![false; rows];
            let all = (0..index.len()).filter_map(|fragment| index.rows(fragment)).flatten();
            all.for_each(|row| named[row as usize] = true);
            Some(named)
        };
        let mut cells = Vec::with_capacity(specs.len());
        for (spec, (_, array)) in specs.iter().zip(level.attributes()?) {
            let cell = array.read_cell(coord)?;
            if let Some(cell) = cell.as_ref().filter(|cell| cell.len() != rows * spec.row_size()) {
                let name = format!("{} chunk {}", array.name(), dotted(coord));
                let problem = format!("{} bytes of {} for {rows} vertices", cell.len(), spec.dtype);
                return Err(Place::new(&name, "vertex attribute", 0).corrupt(problem));
            }
            cells.push(cell);
        }
        if let Some(one) = uses.iter().find(|own| own.fragment as usize >= index.len()) {
            let name = format!("{} chunk {}", level.vertices.name(), dotted(coord));
            let problem = format!("a manifest names fragment {} of {}", one.fragment, index.len());
            return Err(Place::new(&name, "manifest", 0).corrupt(problem));
        }
        let positions = to_f64(&level.dtype, &vertices.bytes);
        Ok(Some(Self { positions, rows, named, index, uses, cells }))
    }

    fn is_named(&self, row: usize) -> bool {
        self.named.as_ref().is_none_or(|named| named[row])
    }
}

/// The content of a coarser chunk.
pub(super) struct Aggregated {
    pub(super) arranged: Arranged,
    /// The position and the attributes of each row.
    pub(super) records: Vec<u8>,
    pub(super) record: usize,
    /// For each piece, the coarser row of each of its rows.
    pub(super) maps: Vec<Vec<u32>>,
}

/// Computes the coarser chunk with this coordinate and number from its pieces.
pub(super) fn aggregate(
    grouping: Grouping,
    shape: &Shape<'_>,
    coord: &Coord,
    number: u64,
    pieces: &[Piece],
    dtype: &DType,
    specs: &[ColumnSpec],
) -> Aggregated {
    let rank = shape.bin.len();
    let leading = coord.len() - rank;
    let bins: Vec<Vec<u64>> = pieces.iter().map(|piece| bins_of(piece, shape, &coord[leading..])).collect();
    let mut made = CoarseRows {
        maps: pieces.iter().map(|piece| vec![NO_ROW; piece.rows]).collect(),
        ..CoarseRows::default()
    };
    match grouping {
        Grouping::Bins | Grouping::Shared { .. } => made.by_bin(pieces, &bins, shape),
        Grouping::Owned => made.by_owner(pieces, &bins),
        Grouping::Stretches => made.by_stretch(pieces, &bins),
    }
    let rows = made.count;
    let (mut fragments, mut uses) = (made.fragments, made.uses);
    match grouping {
        Grouping::Bins => fragments = vec![Fragment::Range { start: 0, count: rows as u64 }],
        Grouping::Shared { paths } => {
            fragments = (0..rows as u64).map(|start| Fragment::Range { start, count: 1 }).collect();
            uses = shared_uses(pieces, &made.maps, paths, number);
        }
        Grouping::Owned => uses.iter_mut().for_each(|own| own.order = number << 32 | u64::from(own.fragment)),
        Grouping::Stretches => {}
    }
    let record = dtype.size().unwrap_or(4) * rank + specs.iter().map(ColumnSpec::row_size).sum::<usize>();
    let records = means(pieces, &made.maps, rows, rank, dtype, specs, record);
    let arranged = Arranged { rows: (0..rows as u32).collect(), fragments, uses };
    Aggregated { arranged, records, record, maps: made.maps }
}

/// The bin of each row, relative to the coarser chunk.
fn bins_of(piece: &Piece, shape: &Shape<'_>, chunk: &[i64]) -> Vec<u64> {
    let rank = shape.bin.len();
    let low: Vec<f64> = chunk.iter().zip(shape.chunk).map(|(at, size)| *at as f64 * size).collect();
    let one = |position: &[f64]| {
        let mut number = 0;
        for axis in 0..rank {
            let at = chunk_of(position[axis] - low[axis], shape.bin[axis]);
            number = number * shape.counts[axis] + at.clamp(0, shape.counts[axis] as i64 - 1) as u64;
        }
        number
    };
    piece.positions.chunks_exact(rank).map(one).collect()
}

/// The coarser rows collected so far.
#[derive(Default)]
struct CoarseRows {
    maps: Vec<Vec<u32>>,
    count: usize,
    fragments: Vec<Fragment>,
    uses: Vec<FragmentUse>,
}

impl CoarseRows {
    fn by_bin(&mut self, pieces: &[Piece], bins: &[Vec<u64>], shape: &Shape<'_>) {
        let total = shape.counts.iter().try_fold(1_u64, |all, own| all.checked_mul(*own));
        let named = || {
            let all = pieces.iter().zip(bins).enumerate();
            all.flat_map(|(number, (piece, bins))| {
                let rows = bins.iter().enumerate().filter(|(row, _)| piece.is_named(*row));
                rows.map(move |(row, bin)| (number, row, *bin))
            })
        };
        if let Some(total) = total.filter(|total| *total <= TABLE) {
            let mut table = vec![NO_ROW; total as usize];
            named().for_each(|(_, _, bin)| table[bin as usize] = 0);
            for place in table.iter_mut().filter(|place| **place == 0) {
                *place = self.count as u32;
                self.count += 1;
            }
            for (piece, row, bin) in named() {
                self.maps[piece][row] = table[bin as usize];
            }
            return;
        }
        let mut distinct: Vec<u64> = named().map(|(_, _, bin)| bin).collect();
        distinct.sort_unstable();
        distinct.dedup();
        self.count = distinct.len();
        for (piece, row, bin) in named() {
            self.maps[piece][row] = distinct.partition_point(|own| *own < bin) as u32;
        }
    }

    /// Creates rows by object and bin; rows without an object come last. Each object gets a fragment.
    fn by_owner(&mut self, pieces: &[Piece], bins: &[Vec<u64>]) {
        let mut all: Vec<(u64, u64, u32, u32)> = Vec::new();
        for (number, (piece, bins)) in pieces.iter().zip(bins).enumerate() {
            let mut owners = vec![NO_OBJECT; piece.rows];
            for own in &piece.uses {
                let rows = piece.index.rows(own.fragment as usize).into_iter().flatten();
                rows.for_each(|row| owners[row as usize] = own.object);
            }
            let rows = (0..piece.rows).filter(|row| piece.is_named(*row));
            all.extend(rows.map(|row| (owners[row], bins[row], number as u32, row as u32)));
        }
        all.sort_unstable();
        for own in all.chunk_by(|a, b| a.0 == b.0) {
            let first = self.count;
            for same in own.chunk_by(|a, b| a.1 == b.1) {
                same.iter()
                    .for_each(|entry| self.maps[entry.2 as usize][entry.3 as usize] = self.count as u32);
                self.count += 1;
            }
            self.end_fragment(first, own[0].0, 0);
        }
    }

    /// Creates rows by sections of a path in a bin. Each finer fragment gets a fragment.
    fn by_stretch(&mut self, pieces: &[Piece], bins: &[Vec<u64>]) {
        for (number, (piece, bins)) in pieces.iter().zip(bins).enumerate() {
            for own in &piece.uses {
                let (first, mut last) = (self.count, None);
                for row in piece.index.rows(own.fragment as usize).into_iter().flatten() {
                    let bin = bins[row as usize];
                    if last != Some(bin) {
                        self.count += 1;
                        last = Some(bin);
                    }
                    self.maps[number][row as usize] = self.count as u32 - 1;
                }
                if self.count > first {
                    self.end_fragment(first, own.object, own.order);
                }
            }
        }
    }

    fn end_fragment(&mut self, first: usize, object: u64, order: u64) {
        if object != NO_OBJECT {
            let fragment = self.fragments.len() as u32;
            let last = self.count as u32 - 1;
            self.uses.push(FragmentUse { object, order, fragment, first: first as u32, last });
        }
        self.fragments.push(Fragment::Range { start: first as u64, count: (self.count - first) as u64 });
    }
}

/// The bins of every object in order, without consecutive repetitions.
fn shared_uses(pieces: &[Piece], maps: &[Vec<u32>], paths: bool, number: u64) -> Vec<FragmentUse> {
    let mut uses = Vec::new();
    for (piece, map) in pieces.iter().zip(maps) {
        for own in &piece.uses {
            let (mut last, mut index) = (NO_ROW, 0);
            for row in piece.index.rows(own.fragment as usize).into_iter().flatten() {
                let to = map[row as usize];
                if to == last {
                    continue;
                }
                last = to;
                let order = if paths { own.order << 32 | index } else { number << 32 | u64::from(to) };
                uses.push(FragmentUse { object: own.object, order, fragment: to, first: to, last: to });
                index += 1;
            }
        }
    }
    uses
}

/// The position and the attributes of each coarser row: means of floats, the first value of other types.
fn means(
    pieces: &[Piece],
    maps: &[Vec<u32>],
    rows: usize,
    rank: usize,
    dtype: &DType,
    specs: &[ColumnSpec],
    record: usize,
) -> Vec<u8> {
    let mut sums = vec![0.0_f64; rows * rank];
    let mut counts = vec![0_u32; rows];
    for (piece, map) in pieces.iter().zip(maps) {
        for (position, to) in piece.positions.chunks_exact(rank).zip(map) {
            if *to != NO_ROW {
                let sum = &mut sums[*to as usize * rank..][..rank];
                sum.iter_mut().zip(position).for_each(|(sum, at)| *sum += at);
                counts[*to as usize] += 1;
            }
        }
    }
    let columns: Vec<Vec<u8>> = specs
        .iter()
        .enumerate()
        .map(|(column, spec)| coarse_column(pieces, maps, rows, column, spec))
        .collect();
    let mut records = Vec::with_capacity(rows * record);
    for row in 0..rows {
        for sum in &sums[row * rank..(row + 1) * rank] {
            put_float(dtype, sum / f64::from(counts[row].max(1)), &mut records);
        }
        for (column, spec) in columns.iter().zip(specs) {
            let size = spec.row_size();
            records.extend_from_slice(&column[row * size..(row + 1) * size]);
        }
    }
    records
}

fn coarse_column(
    pieces: &[Piece],
    maps: &[Vec<u32>],
    rows: usize,
    column: usize,
    spec: &ColumnSpec,
) -> Vec<u8> {
    let (size, width) = (spec.row_size(), spec.width.unwrap_or(1) as usize);
    let cells = pieces.iter().zip(maps).filter_map(|(piece, map)| Some((piece.cells[column].as_ref()?, map)));
    if !matches!(spec.dtype, DType::Float16 | DType::Float32 | DType::Float64) {
        let mut seen = vec![false; rows];
        let mut out = vec![0; rows * size];
        for (cell, map) in cells {
            for (row, to) in map.iter().enumerate().filter(|(_, to)| **to != NO_ROW) {
                if !std::mem::replace(&mut seen[*to as usize], true) {
                    out[*to as usize * size..][..size].copy_from_slice(&cell[row * size..(row + 1) * size]);
                }
            }
        }
        return out;
    }
    let (mut sums, mut counts) = (vec![0.0_f64; rows * width], vec![0_u32; rows]);
    for (cell, map) in cells {
        for (values, to) in to_f64(&spec.dtype, cell).chunks_exact(width).zip(map) {
            if *to != NO_ROW {
                let sum = &mut sums[*to as usize * width..][..width];
                sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
                counts[*to as usize] += 1;
            }
        }
    }
    let mut out = Vec::with_capacity(rows * size);
    for (index, sum) in sums.iter().enumerate() {
        // The mean of no values is NaN.
        put_float(&spec.dtype, sum / f64::from(counts[index / width]), &mut out);
    }
    out
}
