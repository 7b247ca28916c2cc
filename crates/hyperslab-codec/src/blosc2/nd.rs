//! Arrays in frames: chunks and blocks as boxes.

use super::CODEC;
use crate::bytes::Reader;
use crate::error::{Result, corrupt, unsupported};

/// The maximum number of dimensions that the library writes.
const MAX_RANK: usize = 16;

/// The shape of an array, of its chunks and of their blocks, in elements.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NdShape {
    /// Of the array.
    pub shape: Vec<usize>,
    /// Of a chunk.
    pub chunk: Vec<usize>,
    /// Of a block.
    pub block: Vec<usize>,
}

impl NdShape {
    /// Parses the content of the `b2nd` metadata.
    pub(super) fn parse(content: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(CODEC, content);
        let [array, _version, rank] = reader.array()?;
        let rank = usize::from(rank);
        if array & 0xf0 != 0x90 {
            return Err(corrupt(CODEC, format!("b2nd metadata of type {array:#x}")));
        }
        if rank > MAX_RANK {
            return Err(unsupported(CODEC, format!("{rank} dimensions")));
        }
        let mut list = |tag: u8, width: usize| -> Result<Vec<usize>> {
            let found = reader.u8()?;
            if found != 0x90 | rank as u8 && !(rank == 16 && found == 0xdc && reader.array::<2>()? == [0, 16])
            {
                return Err(corrupt(CODEC, format!("a list of type {found:#x} for {rank} dimensions")));
            }
            (0..rank)
                .map(|_| {
                    if reader.u8()? != tag {
                        return Err(corrupt(CODEC, "a length of the wrong type"));
                    }
                    let value = reader.take(width)?.iter().fold(0u64, |n, &b| n << 8 | u64::from(b));
                    let fits = usize::try_from(value).ok().filter(|&n| n <= isize::MAX as usize);
                    fits.ok_or_else(|| corrupt(CODEC, format!("a length of {value:#x}")))
                })
                .collect()
        };
        let shape = list(0xd3, 8)?;
        let chunk = list(0xd2, 4)?;
        let block = list(0xd2, 4)?;
        for ((&n, &c), &b) in shape.iter().zip(&chunk).zip(&block) {
            if n > 0 && (c == 0 || b == 0) {
                return Err(corrupt(CODEC, "a chunk or block of length 0"));
            }
        }
        Ok(Self { shape, chunk, block })
    }

    /// Bytes of the array.
    pub(super) fn byte_len(&self, element: usize) -> Result<usize> {
        product(self.shape.iter().copied().chain([element]))
    }

    /// Bytes of a block.
    pub(super) fn block_len(&self, element: usize) -> Result<usize> {
        product(self.block.iter().copied().chain([element]))
    }

    /// Bytes of a row of a chunk, clipped to the array.
    pub(super) fn row_len(&self, element: usize) -> usize {
        match (self.shape.last(), self.chunk.last()) {
            (Some(&n), Some(&c)) => n.min(c) * element,
            _ => element,
        }
    }

    pub(super) fn chunk_count(&self) -> Result<usize> {
        product(self.shape.iter().zip(&self.chunk).map(|(n, c)| n.div_ceil((*c).max(1))))
    }

    /// The first element of chunk `i`.
    fn chunk_origin(&self, mut i: usize) -> Vec<usize> {
        let mut origin = vec![0; self.shape.len()];
        for d in (0..origin.len()).rev() {
            let count = self.shape[d].div_ceil(self.chunk[d].max(1)).max(1);
            origin[d] = i % count * self.chunk[d];
            i /= count;
        }
        origin
    }

    /// Calls `visit` with the number and the first element of every block of chunk `i` that overlaps the array.
    pub(super) fn each_block(
        &self,
        i: usize,
        mut visit: impl FnMut(usize, &[usize]) -> Result<()>,
    ) -> Result<()> {
        let origin = self.chunk_origin(i);
        let rank = origin.len();
        let total: Vec<usize> = (0..rank).map(|d| self.chunk[d].div_ceil(self.block[d].max(1))).collect();
        let used: Vec<usize> = (0..rank)
            .map(|d| {
                let part = self.chunk[d].min(self.shape[d] - origin[d]);
                part.div_ceil(self.block[d].max(1))
            })
            .collect();
        let mut coordinate = vec![0; rank];
        loop {
            let number =
                (0..rank).try_fold(0usize, |n, d| n.checked_mul(total[d])?.checked_add(coordinate[d]));
            let number = number.ok_or_else(|| corrupt(CODEC, "the number of blocks overflows"))?;
            let first: Vec<usize> = (0..rank).map(|d| origin[d] + coordinate[d] * self.block[d]).collect();
            visit(number, &first)?;
            if !advance(&mut coordinate, &used) {
                return Ok(());
            }
        }
    }

    /// Copies a block whose first element is at `origin` into the array, without the part outside the chunk or the array.
    pub(super) fn paste(&self, block: &[u8], origin: &[usize], element: usize, out: &mut [u8]) -> Result<()> {
        let rank = origin.len();
        let part: Vec<usize> = (0..rank)
            .map(|d| {
                let in_chunk = self.chunk[d] - origin[d] % self.chunk[d];
                self.block[d].min(in_chunk).min(self.shape[d] - origin[d])
            })
            .collect();
        let row = part.last().map_or(1, |n| *n) * element;
        self.each_row(&part, |coordinate| {
            let (mut from, mut to) = (0, 0);
            for d in 0..rank {
                from = from * self.block[d] + coordinate[d];
                to = to * self.shape[d] + origin[d] + coordinate[d];
            }
            let (from, to) = (from * element, to * element);
            match (block.get(from..from + row), out.get_mut(to..to + row)) {
                (Some(from), Some(to)) => {
                    to.copy_from_slice(from);
                    Ok(())
                }
                _ => Err(corrupt(CODEC, "a block does not fit the array")),
            }
        })
    }

    /// Writes `row` to every row of chunk `i`.
    pub(super) fn fill_chunk(&self, i: usize, row: &[u8], element: usize, out: &mut [u8]) -> Result<()> {
        let origin = self.chunk_origin(i);
        let rank = origin.len();
        let part: Vec<usize> = (0..rank).map(|d| self.chunk[d].min(self.shape[d] - origin[d])).collect();
        let len = part.last().map_or(1, |n| *n) * element;
        self.each_row(&part, |coordinate| {
            let to = (0..rank).fold(0, |to, d| to * self.shape[d] + origin[d] + coordinate[d]) * element;
            match (row.get(..len), out.get_mut(to..to + len)) {
                (Some(from), Some(to)) => {
                    to.copy_from_slice(from);
                    Ok(())
                }
                _ => Err(corrupt(CODEC, "a chunk does not fit the array")),
            }
        })
    }

    /// Calls `visit` with the first coordinate of every row of a box of `part` elements.
    fn each_row(&self, part: &[usize], mut visit: impl FnMut(&[usize]) -> Result<()>) -> Result<()> {
        let mut rows = part.to_vec();
        if let Some(last) = rows.last_mut() {
            *last = 1;
        }
        let mut coordinate = vec![0; rows.len()];
        loop {
            visit(&coordinate)?;
            if !advance(&mut coordinate, &rows) {
                return Ok(());
            }
        }
    }
}

/// The next coordinate in C order; false after the last.
fn advance(coordinate: &mut [usize], end: &[usize]) -> bool {
    for (c, end) in coordinate.iter_mut().zip(end).rev() {
        *c += 1;
        if *c < *end {
            return true;
        }
        *c = 0;
    }
    false
}

fn product(mut factors: impl Iterator<Item = usize>) -> Result<usize> {
    factors
        .try_fold(1usize, usize::checked_mul)
        .filter(|&n| n <= isize::MAX as usize)
        .ok_or_else(|| corrupt(CODEC, "the shape overflows"))
}
