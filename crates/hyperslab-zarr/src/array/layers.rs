//! Assembles chunks of a rectilinear grid from stored ones.

use std::ops::ControlFlow;

use bytes::Bytes;
use hyperslab_core::{
    BlobKey, ChunkCoord, ChunkRef, Extents, Layer, Layout, Place, Region, Result, Span, copy_box, product,
};
use smallvec::{SmallVec, smallvec};

use super::ZarrArray;
use crate::pipeline::{Cells, plausible};
use crate::rectilinear::Rectilinear;

impl ZarrArray {
    /// An assembled chunk, with one layer for each stored chunk that it touches.
    pub(super) fn layers(&self, grid: &Rectilinear, chunk: &[u64]) -> Result<Option<ChunkRef>> {
        let own = self.schema.grid.region(chunk);
        let mut layers = SmallVec::new();
        for stored in grid.chunks_of(&own) {
            let key = self.keys.key(&self.key, &stored);
            let Some(size) = self.objects.size(&key)? else { continue };
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

    /// Visits the chunks that start in this stored chunk, so that each chunk is visited once.
    pub(super) fn visit_layers(
        &self,
        grid: &Rectilinear,
        stored: &[u64],
        visit: &mut dyn FnMut(ChunkCoord, ChunkRef) -> Result<ControlFlow<()>>,
    ) -> Result<bool> {
        let whole = Region::whole(self.schema.grid.shape());
        let Some(region) = grid.region(stored).intersect(&whole) else { return Ok(true) };
        let chunk = self.schema.grid.chunk_shape();
        let first = region.start.iter().zip(chunk).map(|(start, extent)| start / extent);
        let last = region.start.iter().zip(&region.shape).zip(chunk);
        let last = last.map(|((start, shape), extent)| (start + shape - 1) / extent);
        let (first, last): (Extents, Extents) = (first.collect(), last.collect());
        let key = BlobKey::named(self.keys.key(&self.key, stored));
        let counts: Extents = first.iter().zip(&last).map(|(first, last)| last - first + 1).collect();
        for number in 0..product(&counts).unwrap_or(0) {
            let mut left = number;
            let mut coord = first.clone();
            for axis in (0..counts.len()).rev() {
                coord[axis] += left % counts[axis];
                left /= counts[axis];
            }
            let Some(reference) = self.layers(grid, &coord)? else { continue };
            let leads = reference.spans().next().is_some_and(|span| span.blob == key);
            if leads && visit(coord, reference)?.is_break() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
