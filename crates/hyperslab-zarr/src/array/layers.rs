//! Assembles chunks of a rectilinear grid from stored ones.

use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;

use bytes::Bytes;
use hyperslab_core::{
    BlobKey, Budget, ChunkCoord, ChunkRef, Extents, Layer, Layout, Place, Region, Result, Span, copy_box,
    product,
};
use smallvec::{SmallVec, smallvec};

use super::ZarrArray;
use crate::pipeline::{Cells, plausible};
use crate::rectilinear::Rectilinear;

/// Stored chunks are looked up by name if a request touches at most this many of them, and are listed otherwise.
const MAX_LOOKUPS: u64 = 1 << 12;
/// The work of adding a stored chunk to an assembled one.
const WORK_PER_LAYER: u64 = 64;

/// A stored chunk, with its size if the listing has it.
type StoredChunk = (ChunkCoord, Option<u64>);

impl ZarrArray {
    /// Locates assembled chunks. Each gets one layer for every stored chunk that it touches.
    pub(super) fn locate_assembled(
        &self,
        grid: &Rectilinear,
        chunks: &[ChunkCoord],
    ) -> Result<Vec<Option<ChunkRef>>> {
        let lookups = chunks.iter().map(|chunk| grid.touched_chunks(&self.schema.grid.region(chunk)));
        if lookups.fold(0, u64::saturating_add) <= MAX_LOOKUPS {
            let each = |chunk: &ChunkCoord| {
                let stored = grid.chunks_of(&self.schema.grid.region(chunk));
                self.layers(grid, chunk, stored.into_iter().map(|stored| (stored, None)))
            };
            return chunks.iter().map(each).collect();
        }
        // A document can claim any number of stored chunks, but only few may exist.
        let wanted: HashSet<&ChunkCoord> = chunks.iter().collect();
        let gathered = self.gather(grid, |chunk| wanted.contains(chunk))?;
        let each = |chunk: &ChunkCoord| match gathered.get(chunk) {
            Some(stored) => self.layers(grid, chunk, stored.iter().cloned()),
            None => Ok(None),
        };
        chunks.iter().map(each).collect()
    }

    /// The stored chunks that exist, by the assembled chunks that touch them and are wanted.
    fn gather(
        &self,
        grid: &Rectilinear,
        wanted: impl Fn(&ChunkCoord) -> bool,
    ) -> Result<BTreeMap<ChunkCoord, Vec<StoredChunk>>> {
        let mut listed: Vec<StoredChunk> = Vec::new();
        self.visit_objects(&mut |stored, size| {
            if grid.contains(&stored) {
                listed.push((stored, size));
            }
            Ok(true)
        })?;
        let budget = Budget::new(self.directory.name(), listed.len() as u64);
        let mut gathered: BTreeMap<ChunkCoord, Vec<StoredChunk>> = BTreeMap::new();
        for stored in listed {
            self.visit_touching(grid, &stored.0, &mut |chunk| {
                budget.spend(WORK_PER_LAYER, "rectilinear grid")?;
                if wanted(&chunk) {
                    gathered.entry(chunk).or_default().push(stored.clone());
                }
                Ok(())
            })?;
        }
        Ok(gathered)
    }

    /// Visits the assembled chunks that touch a stored one.
    fn visit_touching(
        &self,
        grid: &Rectilinear,
        stored: &[u64],
        visit: &mut dyn FnMut(ChunkCoord) -> Result<()>,
    ) -> Result<()> {
        let whole = Region::whole(self.schema.grid.shape());
        let Some(region) = grid.region(stored).intersect(&whole) else { return Ok(()) };
        let chunk = self.schema.grid.chunk_shape();
        let first = region.start.iter().zip(chunk).map(|(start, extent)| start / extent);
        let last = region.start.iter().zip(&region.shape).zip(chunk);
        let last = last.map(|((start, shape), extent)| (start + shape - 1) / extent);
        let (first, last): (Extents, Extents) = (first.collect(), last.collect());
        let mut coord = first.clone();
        loop {
            visit(coord.clone())?;
            let Some(axis) = (0..coord.len()).rev().find(|&axis| coord[axis] < last[axis]) else {
                return Ok(());
            };
            coord[axis] += 1;
            coord[axis + 1..].copy_from_slice(&first[axis + 1..]);
        }
    }

    /// An assembled chunk with one layer for each of these stored chunks that exists.
    fn layers(
        &self,
        grid: &Rectilinear,
        chunk: &[u64],
        stored: impl Iterator<Item = StoredChunk>,
    ) -> Result<Option<ChunkRef>> {
        let own = self.schema.grid.region(chunk);
        let mut layers = SmallVec::new();
        for (stored, size) in stored {
            let key = self.keys.key(&self.key, &stored);
            let Some(size) = size.map_or_else(|| self.objects.size(&key), |size| Ok(Some(size)))? else {
                continue;
            };
            let Some(mut shared) = own.intersect(&grid.region(&stored)) else { continue };
            for (start, first) in shared.start.iter_mut().zip(&own.start) {
                *start -= first;
            }
            let spans = smallvec![Span { blob: BlobKey::named(key), offset: 0, length: size }];
            layers.push(Layer {
                spans,
                filter_mask: 0,
                plain: false,
                region: Some(Box::new(shared)),
                tag: 0,
            });
        }
        Ok((!layers.is_empty()).then_some(ChunkRef { layers }))
    }

    /// Decodes the layers of a chunk into place. All other cells get the fill value.
    pub(super) fn assemble(
        &self,
        grid: &Rectilinear,
        chunk: &[u64],
        (reference, stored): (&ChunkRef, &[Bytes]),
        out: &mut [u8],
    ) -> Result<()> {
        let own = self.schema.grid.region(chunk);
        let whole = self.schema.grid.chunk_shape();
        let cells = Cells { item: self.schema.dtype.size().unwrap_or(0), fill: &self.fill };
        let still = Layout { offset: 0, strides: SmallVec::from_elem(0, whole.len()) };
        let packed = Layout::packed(whole, cells.item);
        copy_box(cells.fill, &still, out, &packed, whole, cells.item)?;
        for (layer, stored) in reference.layers.iter().zip(stored) {
            let store = layer.spans.first().map_or_else(String::new, |span| span.blob.to_string());
            let place = Place::new(&store, "chunk", 0);
            let Some(shared) = &layer.region else { return Err(place.corrupt("a layer without a region")) };
            let first: Extents =
                shared.start.iter().zip(&own.start).map(|(start, own)| start + own).collect();
            // The stored chunk that contains the first shared cell.
            let one = Region { shape: first.iter().map(|_| 1).collect(), start: first };
            let coord = grid.chunks_of(&one).pop().unwrap_or_default();
            let region = grid.region(&coord);
            let bytes = product(&region.shape).and_then(|count| usize::try_from(count).ok());
            let bytes = bytes.and_then(|count| count.checked_mul(cells.item));
            let bytes = bytes.filter(|bytes| *bytes <= plausible(stored.len()));
            let mut scratch =
                vec![0; bytes.ok_or_else(|| place.corrupt(format!("a chunk of {:?} cells", region.shape)))?];
            self.pipeline.decode(stored, &region.shape, cells, &mut scratch, place)?;
            let strides = self.pipeline.order().strides(&region.shape);
            let mut from = Layout {
                offset: 0,
                strides: strides.iter().map(|stride| *stride as isize * cells.item as isize).collect(),
            };
            let mut to = packed.clone();
            for axis in 0..whole.len() {
                let skipped = one.start[axis] - region.start[axis];
                from.offset += skipped as usize * from.strides[axis].unsigned_abs();
                to.offset += shared.start[axis] as usize * to.strides[axis].unsigned_abs();
            }
            copy_box(&scratch, &from, out, &to, &shared.shape, cells.item)?;
        }
        Ok(())
    }

    /// Visits the assembled chunks of which a part is stored, in coordinate order.
    pub(super) fn visit_assembled(
        &self,
        grid: &Rectilinear,
        visit: &mut dyn FnMut(ChunkCoord, ChunkRef) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        for (chunk, stored) in self.gather(grid, |_| true)? {
            if let Some(reference) = self.layers(grid, &chunk, stored.into_iter())?
                && visit(chunk, reference)?.is_break()
            {
                break;
            }
        }
        Ok(())
    }
}
