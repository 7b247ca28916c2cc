//! Variable-length text as characters along an extra dimension, as long as the longest text.

use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use hyperslab_core::{
    Array, ArraySchema, Blob, BlobKey, CellOrder, ChunkCoord, ChunkRef, DType, Edges, Fill, Grid, Labels,
    Layer, Positions, Result, Values, read_serial,
};
use smallvec::smallvec;

/// An array of texts as an array of characters, padded with zeros.
#[derive(Debug)]
pub(super) struct Characters {
    inner: Arc<dyn Array>,
    schema: ArraySchema,
    /// Bytes per text.
    length: usize,
}

impl Characters {
    /// Reads all stored texts to find the longest.
    pub(super) fn new(inner: Arc<dyn Array>) -> Result<Self> {
        let own = inner.schema();
        let mut length = match &own.fill {
            Fill::Element(element) => {
                texts(&Values::new(own.dtype.clone(), &[1], element.clone())?).map(|text| text.len()).max()
            }
            _ => None,
        };
        inner.visit_chunks(&mut |chunk, _| {
            let values = read_serial(&*inner, Positions::region(&own.grid.region(&chunk)))?;
            length = length.max(texts(&values).map(|text| text.len()).max());
            Ok(ControlFlow::Continue(()))
        })?;
        // A dimension cannot be empty.
        let length = length.unwrap_or(0).max(1);
        let with = |extents: &[u64]| extents.iter().copied().chain([length as u64]).collect::<Vec<_>>();
        let grid = Grid::new(&with(own.shape()), &with(own.grid.chunk_shape()))?;
        let mut schema = ArraySchema {
            dtype: DType::FixedBytes(1),
            grid,
            fill: Fill::Zero,
            edges: Edges::Clipped,
            order: CellOrder::RowMajor,
            filters: Vec::new(),
            ..own.clone()
        };
        schema.max_shape.push(Some(length as u64));
        schema.dimensions.push(Some(format!("string{length}")));
        schema.labels.push(Labels::None);
        if own.dtype != DType::Bytes && schema.attributes.get("_Encoding").is_none() {
            schema.attributes.set("_Encoding", "utf-8");
        }
        Ok(Self { inner, schema, length })
    }

    /// Texts are read through the source as a whole, so a chunk has no stored bytes of its own.
    fn reference() -> ChunkRef {
        let layer = Layer { spans: smallvec![], filter_mask: 0, plain: false, region: None, tag: 0 };
        ChunkRef { layers: smallvec![layer] }
    }
}

/// The bytes of each text.
fn texts(values: &Values) -> impl Iterator<Item = Vec<u8>> + '_ {
    let fixed = match (&values.dtype, values.elements.as_fixed()) {
        (DType::FixedText(points), Some(bytes)) => Some((*points * 4, bytes)),
        _ => None,
    };
    (0..values.len()).map(move |index| match fixed {
        Some((size, bytes)) => {
            let points = bytes[index * size..(index + 1) * size].as_chunks::<4>().0.iter();
            let points = points.map(|point| u32::from_ne_bytes(*point));
            let text: String = points.map(|point| char::from_u32(point).unwrap_or('\u{fffd}')).collect();
            text.trim_end_matches('\0').as_bytes().to_vec()
        }
        None => values.elements.variable_at(index).unwrap_or_default().to_vec(),
    })
}

impl Array for Characters {
    fn schema(&self) -> &ArraySchema {
        &self.schema
    }

    fn name(&self) -> &str {
        self.inner.name()
    }

    fn locate(&self, chunks: &[ChunkCoord]) -> Result<Vec<Option<ChunkRef>>> {
        Ok(chunks.iter().map(|_| Some(Self::reference())).collect())
    }

    fn blob(&self, key: &BlobKey) -> Result<Arc<dyn Blob>> {
        self.inner.blob(key)
    }

    fn decode(&self, chunk: &ChunkCoord, _: &ChunkRef, _: &[Bytes], out: &mut [u8]) -> Result<()> {
        let own = &self.inner.schema().grid;
        let values = read_serial(&*self.inner, Positions::region(&own.region(&chunk[..own.rank()])))?;
        for (text, out) in texts(&values).zip(out.chunks_exact_mut(self.length)) {
            // The source may have changed since it was measured.
            let length = text.len().min(out.len());
            out[..length].copy_from_slice(&text[..length]);
            out[length..].fill(0);
        }
        Ok(())
    }

    fn visit_chunks(
        &self,
        visit: &mut dyn FnMut(ChunkCoord, ChunkRef) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        self.inner.visit_chunks(&mut |mut chunk, _| {
            chunk.push(0);
            visit(chunk, Self::reference())
        })
    }
}

#[cfg(test)]
mod tests {
    use hyperslab_core::Elements;

    use super::*;

    #[test]
    fn texts_of_both_kinds_are_utf8() {
        let variable = Values::new(DType::String, &[2], Elements::variable(["ä", ""])).unwrap();
        assert_eq!(texts(&variable).collect::<Vec<_>>(), ["ä".as_bytes(), b""]);
        let points: Vec<u8> = ['ä', '\0', 'b', 'c'].iter().flat_map(|c| (*c as u32).to_ne_bytes()).collect();
        let fixed = Values::new(DType::FixedText(2), &[2], Elements::fixed(points)).unwrap();
        assert_eq!(texts(&fixed).collect::<Vec<_>>(), ["ä".as_bytes(), b"bc"]);
    }
}
