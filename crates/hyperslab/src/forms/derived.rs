//! Arrays whose cells are derived from the cells of other arrays.

use std::fmt::Debug;
use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use hyperslab_core::{
    Array, ArraySchema, Blob, BlobKey, ChunkCoord, ChunkRef, Elements, Error, Layer, Region, Result, Usage,
};
use smallvec::smallvec;

/// The source of a derived array's cells.
pub(super) trait Cells: Send + Sync + Debug {
    /// The arrays from which cells are derived. The first has the same chunks as the derived array.
    fn sources(&self) -> &[Arc<dyn Array>];

    /// The cells of a region, in C order.
    fn cells(&self, region: &Region) -> Result<Elements>;
}

/// An array whose cells are derived from other arrays, chunk by chunk.
#[derive(Debug)]
pub(super) struct Derived<C> {
    name: String,
    schema: ArraySchema,
    cells: C,
    /// Whether chunks are never left out, because unwritten cells do not hold the fill value or cannot be identified.
    dense: bool,
}

impl<C: Cells> Derived<C> {
    /// The schema's chunks hold the cells inside the array, in C order. Unless `dense`, its fill value is the content of chunks
    /// that no source has written.
    pub(super) fn new(name: &str, schema: ArraySchema, cells: C, dense: bool) -> Self {
        let alike = cells.sources().iter().all(|source| {
            let (own, other) = (&schema.grid, &source.schema().grid);
            let shared = own.rank().min(other.rank());
            own.chunk_shape()[..shared] == other.chunk_shape()[..shared]
                && other.extents()[shared..].iter().all(|chunks| *chunks <= 1)
        });
        let dense = dense || !alike || cells.sources().is_empty();
        Self { name: name.to_owned(), schema, cells, dense }
    }
}

/// A chunk that exists but has no stored bytes of its own.
fn reference() -> ChunkRef {
    let layer = Layer { spans: smallvec![], filter_mask: 0, plain: false, region: None, tag: 0 };
    ChunkRef { layers: smallvec![layer] }
}

impl<C: Cells> Array for Derived<C> {
    fn schema(&self) -> &ArraySchema {
        &self.schema
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn locate(&self, chunks: &[ChunkCoord]) -> Result<Vec<Option<ChunkRef>>> {
        if self.dense {
            return Ok(chunks.iter().map(|_| Some(reference())).collect());
        }
        let mut found = vec![None; chunks.len()];
        for source in self.cells.sources() {
            let rank = source.schema().grid.rank();
            let own = |chunk: &ChunkCoord| {
                let mut own: ChunkCoord = chunk.iter().copied().take(rank).collect();
                own.resize(rank, 0);
                own
            };
            let located = source.locate(&chunks.iter().map(own).collect::<Vec<_>>())?;
            for (found, located) in found.iter_mut().zip(located) {
                if located.is_some() {
                    found.get_or_insert_with(reference);
                }
            }
        }
        Ok(found)
    }

    fn blob(&self, key: &BlobKey) -> Result<Arc<dyn Blob>> {
        match self.cells.sources() {
            [first, ..] => first.blob(key),
            [] => Err(Error::invalid(format!("{}: a derived array has no stored bytes", self.name))),
        }
    }

    fn decode(&self, chunk: &ChunkCoord, _: &ChunkRef, _: &[Bytes], out: &mut [u8]) -> Result<()> {
        let elements = self.cells.cells(&self.schema.grid.region(chunk))?;
        match elements.as_fixed() {
            Some(bytes) if bytes.len() == out.len() => out.copy_from_slice(bytes),
            _ => {
                return Err(Error::invalid(format!(
                    "{}: chunk {chunk:?} does not decode to {} bytes",
                    self.name,
                    out.len()
                )));
            }
        }
        Ok(())
    }

    fn decode_elements(&self, chunk: &ChunkCoord, _: &ChunkRef, _: &[Bytes]) -> Result<Elements> {
        self.cells.cells(&self.schema.grid.region(chunk))
    }

    fn visit_chunks(
        &self,
        visit: &mut dyn FnMut(ChunkCoord, ChunkRef) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let rank = self.schema.grid.rank();
        let Some(first) = self.cells.sources().first() else {
            // Derived from memory, so the grid is as small as its cells.
            for number in 0..self.schema.grid.chunks().unwrap_or(0) {
                if visit(self.schema.grid.coord(number), reference())?.is_break() {
                    break;
                }
            }
            return Ok(());
        };
        first.visit_chunks(&mut |mut chunk, _| {
            // For axes that the derived array does not have, one chunk represents all.
            if chunk.iter().skip(rank).any(|at| *at > 0) {
                return Ok(ControlFlow::Continue(()));
            }
            chunk.resize(rank, 0);
            visit(chunk, reference())
        })
    }

    fn visits_every_chunk(&self) -> bool {
        match self.cells.sources() {
            [] => true,
            [only] => !self.dense && only.visits_every_chunk(),
            _ => false,
        }
    }

    fn usage(&self) -> Result<Usage> {
        let mut all = Usage::default();
        for (number, source) in self.cells.sources().iter().enumerate() {
            let usage = source.usage()?;
            all.bytes = all.bytes.saturating_add(usage.bytes);
            if number == 0 {
                all.chunks = usage.chunks;
            }
        }
        Ok(all)
    }

    fn is_remote(&self) -> bool {
        self.cells.sources().iter().any(|source| source.is_remote())
    }
}
