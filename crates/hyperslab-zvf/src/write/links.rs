//! Resolves links from vertex numbers to rows of chunks, in bounded memory.

use std::sync::{Mutex, PoisonError};

use hyperslab_core::{Error, Result};

use super::buckets::{Buckets, Gathered, record, words};
use super::columns::{ColumnSpec, Rows};
use super::objects::VertexPlace;
use super::segments::Segments;
use crate::coord::Coord;

/// The number of vertices or links looked up together.
const BLOCK_BITS: u32 = 16;
const BLOCK: usize = 1 << BLOCK_BITS;
/// Marks a vertex without a place.
const NO_PLACE: u64 = u64::MAX;

/// The chunk and row of each vertex.
#[derive(Debug)]
pub(crate) struct Places {
    buckets: Mutex<Buckets>,
}

impl Places {
    pub(crate) fn new(buckets: Buckets) -> Self {
        Self { buckets: Mutex::new(buckets) }
    }

    /// Records the vertices of a chunk, in row order.
    pub(crate) fn add(&self, chunk: u32, vertices: impl Iterator<Item = u64>) -> Result<()> {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        for (row, vertex) in vertices.enumerate() {
            let place = u64::from(chunk) << 32 | row as u64;
            buckets.push((vertex >> BLOCK_BITS) as usize, record([vertex, place]).as_flattened())?;
        }
        Ok(())
    }

    pub(crate) fn gathered(self) -> Gathered {
        self.buckets.into_inner().unwrap_or_else(PoisonError::into_inner).gathered()
    }
}

/// Links between numbered vertices.
#[derive(Debug)]
pub(crate) struct LinkStream {
    width: usize,
    specs: Vec<ColumnSpec>,
    row_size: usize,
    /// By block of vertices: vertex, link, number of the end.
    ends: Buckets,
    /// By block of links: the rows of their attributes, in order.
    rows: Buckets,
    resolved: Buckets,
    count: u64,
}

impl LinkStream {
    pub(crate) fn new(width: usize, specs: &[ColumnSpec], buckets: impl Fn() -> Buckets) -> Self {
        Self {
            width,
            specs: specs.to_vec(),
            row_size: specs.iter().map(ColumnSpec::row_size).sum(),
            ends: buckets(),
            rows: buckets(),
            resolved: buckets(),
            count: 0,
        }
    }

    pub(crate) fn push(&mut self, links: &[u64], attributes: &Rows<'_>) -> Result<()> {
        for (row, link) in links.chunks_exact(self.width).enumerate() {
            for (k, vertex) in link.iter().enumerate() {
                let bucket = (*vertex >> BLOCK_BITS) as usize;
                self.ends.push(bucket, record([*vertex, self.count, k as u64]).as_flattened())?;
            }
            let buffer = self.rows.buffer((self.count >> BLOCK_BITS) as usize);
            attributes.append(row, &self.specs, buffer);
            self.rows.settle(self.row_size)?;
            self.count += 1;
        }
        Ok(())
    }

    /// Resolves all ends, and passes on each link that must be stored, with its attributes.
    pub(crate) fn resolve(
        self,
        places: &Gathered,
        coords: &[Coord],
        stored: impl Fn(&[VertexPlace]) -> bool,
        segments: &mut Segments,
    ) -> Result<()> {
        let (ends, rows, mut resolved) = (self.ends.gathered(), self.rows.gathered(), self.resolved);
        let mut table = vec![NO_PLACE; BLOCK];
        for block in 0..ends.len() {
            table.fill(NO_PLACE);
            for own in places.take(block)?.chunks_exact(16) {
                let [vertex, place] = words::<2>(own);
                table[vertex as usize % BLOCK] = place;
            }
            for end in ends.take(block)?.chunks_exact(24) {
                let [vertex, link, k] = words::<3>(end);
                let place = table[vertex as usize % BLOCK];
                if place == NO_PLACE {
                    return Err(Error::invalid(format!(
                        "a link refers to vertex {vertex}, which does not exist"
                    )));
                }
                resolved.push((link >> BLOCK_BITS) as usize, record([link, k, place]).as_flattened())?;
            }
        }
        let resolved = resolved.gathered();
        let mut link: Vec<VertexPlace> = vec![(0, 0); self.width];
        for block in 0..resolved.len() {
            let count = (self.count as usize - block * BLOCK).min(BLOCK);
            let mut ends = vec![0_u64; count * self.width];
            for end in resolved.take(block)?.chunks_exact(24) {
                let [number, k, place] = words::<3>(end);
                ends[(number as usize % BLOCK) * self.width + k as usize] = place;
            }
            let attributes = rows.take(block)?;
            for (number, own) in ends.chunks_exact(self.width).enumerate() {
                link.iter_mut()
                    .zip(own)
                    .for_each(|(end, place)| *end = ((place >> 32) as u32, *place as u32));
                let row = &attributes[number * self.row_size..(number + 1) * self.row_size];
                if stored(&link) {
                    segments.add(&link, coords, row)?;
                }
            }
        }
        Ok(())
    }
}
