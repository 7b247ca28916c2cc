//! Encodes a chunk's elements as its object. Used for writing, and for showing arrays of other formats as Zarr.

use bytes::Bytes;
use hyperslab_core::{ChunkCoord, Elements, Error, Layout, Place, Result, StoredForm, copy_box, product};
use smallvec::SmallVec;

use super::{ArrayPlan, pack};
use crate::pipeline::failed;
use crate::vlen;

impl ArrayPlan {
    /// The bytes of a chunk's object, and their size before encoding.
    pub(crate) fn encode(&self, chunk: &ChunkCoord, elements: &Elements) -> Result<(Bytes, u64)> {
        if elements.validity.as_ref().is_some_and(|validity| validity.missing() > 0) {
            return Err(Error::unsupported(self.name.as_str(), "missing elements in Zarr"));
        }
        let (raw, raw_length) = match elements.as_fixed() {
            Some(bytes) => (self.padded(chunk, bytes.clone())?, bytes.len() as u64),
            None => {
                let raw = self.encode_variable(chunk, elements)?;
                let length = raw.len() as u64;
                (raw, length)
            }
        };
        let place = Place::new(&self.name, "chunk", 0);
        let encoded = self.pipeline.encode(raw, self.item()).map_err(|error| failed(error, place))?;
        Ok((encoded, raw_length))
    }

    /// Returns true if stored bytes of this form are those of a chunk's object. Whole chunks only: Zarr stores cells outside the
    /// array, other formats may not.
    pub(crate) fn takes(&self, form: &StoredForm) -> bool {
        form.shape[..] == *self.spec.grid.chunk_shape()
            && self.packing.is_empty()
            && self.pipeline.stored_steps().as_ref() == Some(&form.steps)
    }

    /// The cells of a whole chunk in storage order, with the fill value outside the array.
    fn padded(&self, chunk: &ChunkCoord, bytes: Bytes) -> Result<Bytes> {
        let (grid, item) = (&self.spec.grid, self.item());
        let bytes = if self.packing.is_empty() {
            bytes
        } else {
            pack(&bytes, &self.spec.dtype, &self.packing).into()
        };
        let region = grid.region(chunk).shape;
        if !grid.is_clipped(chunk) && self.pipeline.axes.is_empty() {
            return Ok(bytes);
        }
        let stored_shape = self.stored_shape();
        let cells = product(&stored_shape).and_then(|cells| usize::try_from(cells).ok());
        let size = cells.and_then(|cells| cells.checked_mul(item));
        let size = size.ok_or_else(|| Error::invalid(format!("{}: chunks larger than memory", self.name)))?;
        let mut whole = vec![0; size];
        if self.fill.iter().any(|byte| *byte != 0) && item > 0 {
            whole.chunks_exact_mut(item).for_each(|cell| cell.copy_from_slice(&self.fill));
        }
        let strides = self.pipeline.order().strides(grid.chunk_shape());
        let strides: SmallVec<[isize; 4]> =
            strides.iter().map(|stride| *stride as isize * item as isize).collect();
        let to = Layout { offset: 0, strides };
        copy_box(&bytes, &Layout::packed(&region, item), &mut whole, &to, &region, item)?;
        Ok(whole.into())
    }

    fn encode_variable(&self, chunk: &ChunkCoord, elements: &Elements) -> Result<Bytes> {
        let (grid, name) = (&self.spec.grid, &self.name);
        let (whole, region) = (grid.chunk_shape(), grid.region(chunk).shape);
        let cells = product(whole).and_then(|cells| usize::try_from(cells).ok());
        let cells = cells.ok_or_else(|| Error::invalid(format!("{name}: chunks larger than memory")))?;
        let mut rows = vec![Some(self.fill.as_slice()); cells];
        let strides = hyperslab_core::CellOrder::RowMajor.strides(whole);
        for index in 0..product(&region).unwrap_or(0) {
            let (mut left, mut place) = (index, 0);
            for axis in (0..region.len()).rev() {
                place += left % region[axis] * strides[axis];
                left /= region[axis];
            }
            rows[place as usize] = vlen::element_bytes(elements, &self.spec.dtype, index as usize);
        }
        let encoded = vlen::encode(rows.into_iter());
        let encoded = encoded
            .ok_or_else(|| Error::invalid(format!("{name}: an element is missing or exceeds 4 GiB")))?;
        Ok(encoded.into())
    }
}
