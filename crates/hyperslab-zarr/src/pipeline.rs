//! Codec pipelines: how the cells of a chunk become the bytes of an object, and back.
//!
//! Zarr chains three kinds: array to array (transpose, numcodecs' filters of numbers), one array to bytes (`bytes`,
//! `vlen-utf8`, `vlen-bytes`, `sharding_indexed`), bytes to bytes. Transposing costs nothing here: it becomes the cell order
//! of the decoded chunk, which the engine reads through.

mod parse;

use std::borrow::Cow;

use bytes::Bytes;
use hyperslab_codec::{CodecError, zstd};
use hyperslab_core::{
    CellOrder, Error, Extents, Filter, Layout, Place, Result, StoredStep, copy_box, product, recycle_scratch,
    take_scratch,
};
use serde_json::{Map, Value, json};
use smallvec::SmallVec;

use crate::codec::{Number, Step};
use crate::dtype::{StoredType, Swap, apply_swaps};
use crate::json::Doc;
use crate::shard::{IndexFormat, ShardIndex};

/// The maximum nesting depth of shards.
const MAX_DEPTH: usize = 4;

/// The limit for data of unknown decoded size, unless no codec could have expanded it that far: a run of equal bytes costs
/// Zstandard 4 bytes per 128 KiB.
const MAX_UNSIZED: usize = 1 << 30;
const MAX_EXPANSION: usize = 1 << 15;
const MAX_SMALL: usize = 1 << 20;

/// The maximum plausible decoded size of these encoded bytes.
pub(crate) fn plausible(stored: usize) -> usize {
    stored.saturating_mul(MAX_EXPANSION).saturating_add(MAX_SMALL).min(MAX_UNSIZED)
}

/// An ordered list of codecs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pipeline {
    /// Stored axis `i` is the array's axis `axes[i]`; empty if nothing is transposed.
    pub(crate) axes: Vec<u8>,
    pub(crate) serializer: Serializer,
    /// In writing order.
    pub(crate) steps: Vec<Step>,
}

/// How an array becomes bytes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Serializer {
    /// Packed elements, with some bytes swapped.
    Bytes { swaps: Vec<Swap> },
    /// `u32` count, then for each element a `u32` length and its bytes.
    Variable,
    /// numcodecs' `categorize`: the number of a text in a list, starting at 1; 0 for none.
    Categories { labels: Vec<String>, number: Number },
    /// numcodecs' `json2`: a list of the texts, then a type and a shape.
    Json,
    /// Inner chunks, found by an index.
    Shard(Box<Sharding>),
}

/// The codec `sharding_indexed`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sharding {
    /// The shape of an inner chunk, in the axes of the codec's input.
    pub(crate) chunk_shape: Extents,
    pub(crate) pipeline: Pipeline,
    pub(crate) index: IndexFormat,
}

/// The properties of the array that codecs need.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cells<'a> {
    pub(crate) item: usize,
    /// One element in native byte order, for cells that a shard does not hold.
    pub(crate) fill: &'a [u8],
}

impl Pipeline {
    /// A pipeline without codecs.
    pub(crate) const fn new() -> Self {
        Self { axes: Vec::new(), serializer: Serializer::Bytes { swaps: Vec::new() }, steps: Vec::new() }
    }

    /// Returns true if the stored bytes are the elements, in the cell order given by the axes.
    pub(crate) fn is_plain(&self) -> bool {
        self.steps.is_empty() && matches!(&self.serializer, Serializer::Bytes { swaps } if swaps.is_empty())
    }

    /// A format-independent description of the steps on elements in C order; `None` if there is none.
    pub(crate) fn stored_steps(&self) -> Option<Vec<StoredStep>> {
        let bytes = matches!(&self.serializer, Serializer::Bytes { swaps } if swaps.is_empty());
        let plain = bytes && self.axes.is_empty() && cfg!(target_endian = "little");
        if plain { self.steps.iter().map(Step::stored).collect() } else { None }
    }

    /// The order of the cells in a decoded chunk.
    pub(crate) fn order(&self) -> CellOrder {
        cell_order(&self.axes)
    }

    /// The filters as shown by `tet info`: everything but plain elements.
    pub(crate) fn shown(&self) -> Vec<Filter> {
        let mut filters = Vec::new();
        if !self.axes.is_empty() {
            filters.push(Filter::new("transpose").with("order", json!(self.axes)));
        }
        if let Serializer::Shard(sharding) = &self.serializer {
            filters.push(
                Filter::new("sharding_indexed").with("chunk_shape", json!(sharding.chunk_shape.as_slice())),
            );
            filters.extend(sharding.pipeline.shown());
        }
        filters.extend(self.steps.iter().map(Step::shown));
        filters
    }

    /// Undoes the steps; the result must fill `out`.
    fn unwrap_into(&self, stored: &[u8], out: &mut [u8], place: Place<'_>) -> Result<()> {
        let sizes = self.sizes(Some(out.len()));
        let mut current = Cow::Borrowed(stored);
        for (i, step) in self.steps.iter().enumerate().rev() {
            if i == 0 {
                step.decode(&current, out).map_err(|error| failed(error, place))?;
                recycle(current);
                return Ok(());
            }
            current = undo(step, current, sizes[i], place)?;
        }
        if current.len() != out.len() {
            return Err(place.corrupt(format!("{} bytes, expected {}", current.len(), out.len())));
        }
        out.copy_from_slice(&current);
        Ok(())
    }

    /// Undoes the steps, for a result of any size.
    pub(crate) fn unwrap<'a>(&self, stored: &'a [u8], place: Place<'_>) -> Result<Cow<'a, [u8]>> {
        let mut current = Cow::Borrowed(stored);
        for step in self.steps.iter().rev() {
            current = undo(step, current, None, place)?;
        }
        Ok(current)
    }

    /// The sizes before each step and after the last, as far as they follow from the first.
    fn sizes(&self, first: Option<usize>) -> SmallVec<[Option<usize>; 4]> {
        let mut sizes = SmallVec::from_slice(&[first]);
        let mut size = first;
        for step in &self.steps {
            size = size.and_then(|size| step.encoded_len(size));
            sizes.push(size);
        }
        sizes
    }

    /// Decodes an array of `shape` into `out`, in the order of the stored axes.
    pub(crate) fn decode(
        &self,
        stored: &[u8],
        shape: &[u64],
        cells: Cells<'_>,
        out: &mut [u8],
        place: Place<'_>,
    ) -> Result<()> {
        match &self.serializer {
            Serializer::Bytes { swaps } => {
                self.unwrap_into(stored, out, place)?;
                apply_swaps(swaps, cells.item, out);
                Ok(())
            }
            Serializer::Shard(sharding) => {
                let stored = self.unwrap(stored, place)?;
                sharding.decode(&stored, &permuted(&self.axes, shape), cells, out, place)
            }
            Serializer::Variable | Serializer::Categories { .. } | Serializer::Json => {
                Err(place.corrupt("variable-length elements where fixed ones were expected"))
            }
        }
    }

    /// Decodes the first bytes of an array of `total` bytes, if the codec can stop there.
    pub(crate) fn decode_front(&self, stored: &[u8], total: usize, item: usize, out: &mut [u8]) -> bool {
        let (Serializer::Bytes { swaps }, [Step::Zstd { .. }]) = (&self.serializer, &self.steps[..]) else {
            return false;
        };
        let done = zstd::decode_front(stored, total, out);
        if done {
            apply_swaps(swaps, item, out);
        }
        done
    }

    /// Encodes elements that are already in the order of the stored axes. Only for pipelines of new arrays.
    pub(crate) fn encode(&self, mut elements: Bytes, item: usize) -> Result<Bytes, CodecError> {
        if let Serializer::Bytes { swaps } = &self.serializer
            && !swaps.is_empty()
        {
            let mut swapped = elements.to_vec();
            apply_swaps(swaps, item, &mut swapped);
            elements = swapped.into();
        }
        for step in &self.steps {
            let mut encoded = Vec::new();
            step.encode(&elements, &mut encoded)?;
            elements = encoded.into();
        }
        Ok(elements)
    }
}

impl Sharding {
    fn parse(
        configuration: &Map<String, Value>,
        stored: &StoredType,
        rank: usize,
        doc: Doc<'_>,
        depth: usize,
    ) -> Result<Self> {
        let chunk_shape = doc.extents(doc.field(configuration, "chunk_shape")?, "chunk_shape")?;
        if chunk_shape.len() != rank || chunk_shape.contains(&0) {
            return Err(
                doc.corrupt(format!("inner chunks of {chunk_shape:?} in an array of {rank} dimensions"))
            );
        }
        let pipeline =
            Pipeline::parse_at(doc.field(configuration, "codecs")?, stored, &chunk_shape, doc, depth)?;
        let index = IndexFormat::parse(configuration, doc)?;
        Ok(Self { chunk_shape: chunk_shape.into(), pipeline, index })
    }

    /// The number of inner chunks per axis of a shard of this shape, in the codec's own axes.
    pub(crate) fn counts(&self, shape: &[u64], doc: Doc<'_>) -> Result<Extents> {
        let whole = shape.iter().zip(&self.chunk_shape).all(|(shard, chunk)| shard.is_multiple_of(*chunk));
        if !whole {
            return Err(doc.corrupt(format!(
                "shards of {shape:?} are not made of whole inner chunks of {:?}",
                self.chunk_shape.as_slice()
            )));
        }
        Ok(shape.iter().zip(&self.chunk_shape).map(|(shard, chunk)| shard / chunk).collect())
    }

    /// Decodes all inner chunks of a shard into place.
    fn decode(
        &self,
        stored: &[u8],
        shape: &[u64],
        cells: Cells<'_>,
        out: &mut [u8],
        place: Place<'_>,
    ) -> Result<()> {
        let counts = self.counts(shape, Doc { store: place.store, key: "shard" })?;
        let total = product(&counts).ok_or_else(|| place.corrupt("the number of inner chunks overflows"))?;
        let range = self.index.range(total, stored.len() as u64, place)?;
        let raw = Bytes::copy_from_slice(&stored[range.start as usize..range.end as usize]);
        let index = ShardIndex::parse(raw, self.index, stored.len() as u64, place)?;
        let inner = product(&self.chunk_shape).and_then(|cells| usize::try_from(cells).ok());
        let inner = inner.and_then(|inner| inner.checked_mul(cells.item)).filter(|bytes| *bytes <= out.len());
        let mut scratch =
            vec![0; inner.ok_or_else(|| place.corrupt("an inner chunk is larger than its shard"))?];
        let whole = Layout::packed(shape, cells.item);
        let strides = self.pipeline.order().strides(&self.chunk_shape);
        let strides = strides.iter().map(|stride| *stride as isize * cells.item as isize).collect();
        let packed = Layout { offset: 0, strides };
        let still = Layout { offset: 0, strides: SmallVec::from_elem(0, shape.len()) };
        for number in 0..total {
            let (mut to, mut left) = (whole.clone(), number);
            for axis in (0..counts.len()).rev() {
                let at = left % counts[axis] * self.chunk_shape[axis];
                left /= counts[axis];
                to.offset += at as usize * whole.strides[axis].unsigned_abs();
            }
            match index.entry(number, stored.len() as u64, place)? {
                None => copy_box(cells.fill, &still, out, &to, &self.chunk_shape, cells.item)?,
                Some(range) => {
                    let bytes = &stored[range.start as usize..range.end as usize];
                    let place = place.plus(range.start);
                    self.pipeline.decode(bytes, &self.chunk_shape, cells, &mut scratch, place)?;
                    copy_box(&scratch, &packed, out, &to, &self.chunk_shape, cells.item)?;
                }
            }
        }
        Ok(())
    }
}

/// The axes of two consecutive transposes.
pub(crate) fn compose(first: &[u8], second: &[u8]) -> Vec<u8> {
    let axes: Vec<u8> = match (first.is_empty(), second.is_empty()) {
        (true, _) => second.to_vec(),
        (_, true) => first.to_vec(),
        _ => second.iter().filter_map(|&axis| first.get(usize::from(axis)).copied()).collect(),
    };
    let identity = axes.iter().enumerate().all(|(i, axis)| i == usize::from(*axis));
    if identity { Vec::new() } else { axes }
}

/// Extents in the order of the stored axes.
pub(crate) fn permuted(axes: &[u8], extents: &[u64]) -> Extents {
    if axes.is_empty() {
        return extents.into();
    }
    axes.iter().map(|&axis| extents[usize::from(axis)]).collect()
}

/// Extents of stored axes in the array's own order; the inverse of [`permuted`].
pub(crate) fn unpermuted(axes: &[u8], extents: &[u64]) -> Extents {
    let mut own: Extents = extents.into();
    for (&axis, extent) in axes.iter().zip(extents) {
        own[usize::from(axis)] = *extent;
    }
    own
}

/// The axes, slowest first, as a cell order.
pub(crate) fn cell_order(axes: &[u8]) -> CellOrder {
    if axes.is_empty() {
        CellOrder::RowMajor
    } else if axes.iter().rev().enumerate().all(|(i, axis)| i == usize::from(*axis)) {
        CellOrder::ColumnMajor
    } else {
        CellOrder::Axes(axes.into())
    }
}

/// Undoes one step. `size` is the expected output size, if known.
fn undo<'a>(step: &Step, src: Cow<'a, [u8]>, size: Option<usize>, place: Place<'_>) -> Result<Cow<'a, [u8]>> {
    if let Cow::Borrowed(src) = src
        && let Some(stripped) = step.strip(src)
    {
        return stripped.map(Cow::Borrowed).map_err(|error| failed(error, place));
    }
    let mut out = take_scratch();
    out.clear();
    let outcome = match size {
        // A size that the stored data makes implausible is only trusted as the output grows.
        Some(size) if size / 1024 <= src.len() => {
            out.resize(size, 0);
            step.decode(&src, &mut out)
        }
        Some(size) => step.decode_vec(&src, size.min(plausible(src.len())), &mut out),
        None => step.decode_vec(&src, plausible(src.len()), &mut out),
    };
    recycle(src);
    outcome.map_err(|error| failed(error, place))?;
    Ok(Cow::Owned(out))
}

/// Keeps a buffer for the next chunk.
pub(crate) fn recycle(bytes: Cow<'_, [u8]>) {
    if let Cow::Owned(buffer) = bytes {
        recycle_scratch(buffer);
    }
}

/// A kernel's error, with its place.
pub(crate) fn failed(error: CodecError, place: Place<'_>) -> Error {
    match error {
        CodecError::Unsupported { .. } => place.unsupported(error.to_string()),
        error => place.corrupt(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use hyperslab_core::DType;

    use super::*;

    #[test]
    fn transposes_compose() {
        // [0, 1, 2] -> [2, 0, 1] -> its axes 1, 2, 0: the identity.
        assert!(compose(&[2, 0, 1], &[1, 2, 0]).is_empty());
        assert_eq!(compose(&[1, 0, 2], &[2, 1, 0]), [2, 0, 1]);
        assert_eq!(cell_order(&[2, 1, 0]), CellOrder::ColumnMajor);
        assert_eq!(unpermuted(&[2, 0, 1], &permuted(&[2, 0, 1], &[7, 8, 9])).as_slice(), [7, 8, 9]);
    }

    #[test]
    fn misplaced_codecs_are_rejected() {
        let doc = Doc { store: "x", key: "zarr.json" };
        for codecs in [
            json!([]),
            json!([{"name": "gzip", "configuration": {"level": 1}}]),
            json!([{"name": "bytes"}, {"name": "bytes"}]),
            json!([{"name": "bytes"}, {"name": "transpose", "configuration": {"order": [0]}}]),
            json!([{"name": "transpose", "configuration": {"order": [1]}}, {"name": "bytes"}]),
            json!([{"name": "vlen-utf8"}]),
        ] {
            let error = Pipeline::parse_v3(&codecs, &StoredType::plain(DType::Int32), &[4], doc).unwrap_err();
            assert!(error.is_corrupt(), "{codecs}: {error}");
        }
        let codecs = json!([{"name": "bytes"}, {"name": "gdeflate"}]);
        let error = Pipeline::parse_v3(&codecs, &StoredType::plain(DType::Int32), &[4], doc);
        assert!(error.unwrap_err().is_unsupported());
    }
}
