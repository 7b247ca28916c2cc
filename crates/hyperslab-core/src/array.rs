//! Dense arrays: the trait that a format implements.

use std::fmt::Debug;
use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    Attributes, Blob, BlobKey, CellOrder, ChunkCoord, ChunkRef, DType, Elements, Error, Grid, OutputSlot,
    PlannedChunk, Result, Span, StoredArray, StoredForm,
};

/// A dense array of some format.
///
/// A format says where chunks are stored and how stored bytes become elements. Planning, fetching in
/// parallel, assembling and reducing are the engine's.
pub trait Array: Send + Sync + Debug {
    /// What the array is.
    fn schema(&self) -> &ArraySchema;

    /// The store and node, for messages: `volume.h5/t`.
    fn name(&self) -> &str;

    /// Where these chunks are stored. `None`: never written, so the fill value. Takes many coordinates at
    /// once, so that an index block is read once, not once per chunk; never loads a whole index to find one.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](Error::Corrupt) when the index is damaged, or a chunk is missing in a format without a
    /// fill value.
    fn locate(&self, chunks: &[ChunkCoord]) -> Result<Vec<Option<ChunkRef>>>;

    /// The blob with this key.
    ///
    /// # Errors
    ///
    /// [`Io`](Error::Io) or [`NotFound`](Error::NotFound) when it cannot be opened.
    fn blob(&self, key: &BlobKey) -> Result<Arc<dyn Blob>>;

    /// Stored bytes (one slice per span of the reference) back to elements: native byte order, in the schema's
    /// cell order. `out` has exactly the chunk's size: clipped to the array where [`Edges`] says so.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](Error::Corrupt) when the bytes do not decode to exactly that many;
    /// [`Unsupported`](Error::Unsupported) for an unsupported filter.
    fn decode(
        &self,
        chunk: &ChunkCoord,
        reference: &ChunkRef,
        stored: &[Bytes],
        out: &mut [u8],
    ) -> Result<()>;

    /// Decodes less than the whole chunk, where the format can: the wanted cells straight into their slot, or the front of
    /// the chunk. Says which of the two it did; after [`Coverage::Nothing`] the caller decodes the whole chunk.
    ///
    /// # Errors
    ///
    /// As [`decode`](Self::decode).
    fn decode_partial(
        &self,
        _wanted: &PlannedChunk,
        _reference: &ChunkRef,
        _stored: &[Bytes],
        _out: PartialOutput<'_, '_>,
    ) -> Result<Coverage> {
        Ok(Coverage::Nothing)
    }

    /// As [`decode`](Self::decode), for elements of variable length or that may be missing: all cells of the
    /// chunk, in C order, clipped to the array.
    ///
    /// # Errors
    ///
    /// As [`decode`](Self::decode).
    fn decode_elements(
        &self,
        _chunk: &ChunkCoord,
        _reference: &ChunkRef,
        _stored: &[Bytes],
    ) -> Result<Elements> {
        Err(Error::unsupported(self.name(), format!("reading elements of type {}", self.schema().dtype)))
    }

    /// Visits every stored chunk, in the order of the index. Walks the index, never the grid, which a hostile
    /// file can make endless.
    ///
    /// # Errors
    ///
    /// As [`locate`](Self::locate).
    fn visit_chunks(
        &self,
        visit: &mut dyn FnMut(ChunkCoord, ChunkRef) -> Result<ControlFlow<()>>,
    ) -> Result<()>;

    /// Does [`visit_chunks`](Self::visit_chunks) visit every chunk that [`locate`](Self::locate) finds? Only then is a chunk
    /// that was not visited known to hold the fill value.
    fn visits_every_chunk(&self) -> bool {
        true
    }

    /// How many chunks are stored, in how many bytes. Formats that know without a walk say so.
    ///
    /// # Errors
    ///
    /// As [`locate`](Self::locate).
    fn usage(&self) -> Result<Usage> {
        let mut usage = Usage::default();
        self.visit_chunks(&mut |_, reference| {
            usage.chunks += 1;
            usage.bytes = usage.bytes.saturating_add(reference.stored_bytes());
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(usage)
    }

    /// Statistics that the format stores for these chunks; `None` where it stores none, and for chunks that were
    /// never written. Only what is stored: no chunk is read for it.
    ///
    /// # Errors
    ///
    /// As [`locate`](Self::locate).
    fn statistics(&self, chunks: &[ChunkCoord]) -> Result<Vec<Option<ChunkStatistics>>> {
        Ok(vec![None; chunks.len()])
    }

    /// The chunk's stored bytes in terms that formats share, for callers that copy them to another store unchanged;
    /// `None` if no such terms exist. Unfiltered chunks have them in every format.
    fn stored_form(&self, chunk: &ChunkCoord, reference: &ChunkRef) -> Option<StoredForm> {
        let schema = self.schema();
        let whole = reference.as_plain()?.length == schema.decoded_bytes(chunk)? as u64;
        let shared =
            cfg!(target_endian = "little") && schema.order == CellOrder::RowMajor && !schema.nullable;
        (whole && shared).then(|| StoredForm { shape: schema.decoded_shape(chunk), steps: Vec::new() })
    }

    /// Is everything that [`statistics`](Self::statistics) returns a [hint](ChunkStatistics::hint)? Callers that do not
    /// trust hints can skip the call.
    fn statistics_are_hints(&self) -> bool {
        false
    }

    /// Are the stored bytes on another machine, so that a request takes as long as many bytes?
    fn is_remote(&self) -> bool {
        false
    }

    /// The stored bytes of these spans; `None` for a span of an object that is not there, which only arrays that locate
    /// chunks without looking ([`Span::is_whole`]) return. Neighbours in one blob are read in one call.
    ///
    /// # Errors
    ///
    /// As [`blob`](Self::blob) and [`Blob::read`].
    fn fetch(&self, spans: &[&Span]) -> Result<Vec<Option<Bytes>>> {
        fetch_from_blobs(self, spans)
    }
}

/// Fetches spans from the [blobs](Array::blob) of an array: what [`Array::fetch`] does unless a format knows better.
///
/// # Errors
///
/// As [`Array::fetch`].
pub fn fetch_from_blobs<A: Array + ?Sized>(array: &A, spans: &[&Span]) -> Result<Vec<Option<Bytes>>> {
    let mut fetched = Vec::with_capacity(spans.len());
    for run in spans.chunk_by(|a, b| a.blob == b.blob) {
        let blob = array.blob(&run[0].blob)?;
        if let [span] = run
            && !blob.is_remote()
        {
            fetched.push(Some(blob.read_at(span.offset, span.length)?));
            continue;
        }
        let ranges: Vec<_> =
            run.iter().map(|span| span.offset..span.offset.saturating_add(span.length)).collect();
        fetched.extend(blob.read(&ranges)?.into_iter().map(Some));
    }
    Ok(fetched)
}

/// Where a part of a chunk can be decoded to.
#[derive(Debug)]
pub struct PartialOutput<'o, 's> {
    /// The slot of the wanted cells in the result, where there is one.
    pub slot: Option<&'o mut OutputSlot<'s>>,
    /// The front of the decoded chunk, up to the last wanted element, where decoding can usefully end there. It may be
    /// written to even when it is not completed.
    pub front: Option<&'o mut [u8]>,
}

/// The result of a partial decode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coverage {
    /// Nothing: the whole chunk is to be decoded.
    Nothing,
    /// The wanted cells are in their slot.
    Slot,
    /// The front of the chunk is decoded.
    Front,
}

/// A number, exactly as an array of its kind holds it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Number {
    /// Of an integer, boolean or time type.
    Integer(i128),
    /// Of a floating-point type; `float16` and `float32` widened, which loses nothing.
    Float(f64),
}

/// Statistics of the values of one chunk. They cover the cells that are neither missing nor
/// not-a-number, and only of those inside the array.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct ChunkStatistics {
    /// The smallest value, or one below it.
    pub min: Option<Number>,
    /// The largest value, or one above it.
    pub max: Option<Number>,
    /// The sum of the values.
    pub sum: Option<Number>,
    /// How many cells are missing or not a number.
    pub nulls: Option<u64>,
    /// The claims are the values themselves, not only bounds: the smallest and the largest value are in the chunk, and the
    /// sum is that of all of them.
    pub exact: bool,
    /// Nothing ties these claims to the stored values (writers may leave them stale, no checksum covers them): they may
    /// decide what is read first, but a result relies on them only if the caller asks for it.
    pub hint: bool,
}

/// How much of an array is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Chunks that were written.
    pub chunks: u64,
    /// Their stored bytes.
    pub bytes: u64,
}

/// The description of a dense array: everything except where its chunks are.
#[derive(Debug, Clone)]
pub struct ArraySchema {
    /// The type of an element.
    pub dtype: DType,
    /// Shape and chunks.
    pub grid: Grid,
    /// How far each dimension may grow: `None` without end. As long as the shape.
    pub max_shape: Vec<Option<u64>>,
    /// The order of the cells in a decoded chunk.
    pub order: CellOrder,
    /// The contents of a chunk at the edge of the array.
    pub edges: Edges,
    /// May elements be missing?
    pub nullable: bool,
    /// The value of a cell that was never written.
    pub fill: Fill,
    /// A name per dimension, where it has one. As long as the shape.
    pub dimensions: Vec<Option<String>>,
    /// Labels along each dimension. As long as the shape.
    pub labels: Vec<Labels>,
    /// The attributes of the array.
    pub attributes: Attributes,
    /// The pipeline, in the order of writing.
    pub filters: Vec<Filter>,
    /// What finds a chunk, in the format's own words: "extensible array", "contiguous", "object names".
    pub chunk_index: String,
    /// Did the writer cut the array into chunks? If not, the grid is ours and is not shown.
    pub chunked: bool,
    /// Does it only declare a dimension of its name and length, as NetCDF-4's dimensions without a variable do? Its
    /// values mean nothing.
    pub is_dimension: bool,
    /// How the format stores it, in more detail than the fields above say.
    pub stored: StoredArray,
}

impl ArraySchema {
    /// An array without filters, names, labels and attributes, in C order.
    #[must_use]
    pub fn new(dtype: DType, grid: Grid) -> Self {
        let rank = grid.rank();
        Self {
            dtype,
            max_shape: grid.shape().iter().map(|extent| Some(*extent)).collect(),
            grid,
            order: CellOrder::RowMajor,
            edges: Edges::Padded,
            nullable: false,
            fill: Fill::Zero,
            dimensions: vec![None; rank],
            labels: vec![Labels::None; rank],
            attributes: Attributes::new(),
            filters: Vec::new(),
            chunk_index: String::new(),
            chunked: true,
            is_dimension: false,
            stored: StoredArray::default(),
        }
    }

    /// Elements per dimension.
    #[must_use]
    pub fn shape(&self) -> &[u64] {
        self.grid.shape()
    }

    /// Cells of a decoded chunk, per dimension: clipped to the array where the format stores it so.
    #[must_use]
    pub fn decoded_shape(&self, chunk: &[u64]) -> crate::Extents {
        match self.edges {
            Edges::Clipped => self.grid.region(chunk).shape,
            Edges::Padded => self.grid.chunk_shape().into(),
        }
    }

    /// Bytes of a decoded chunk; `None` when elements have no fixed size or it passes `usize`.
    #[must_use]
    pub fn decoded_bytes(&self, chunk: &[u64]) -> Option<usize> {
        let cells = usize::try_from(crate::product(&self.decoded_shape(chunk))?).ok()?;
        cells.checked_mul(self.dtype.size()?)
    }

    /// The whole array's bytes; `None` when elements have no fixed size or it passes `u64`.
    #[must_use]
    pub fn bytes(&self) -> Option<u64> {
        crate::product(self.shape())?.checked_mul(self.dtype.size()? as u64)
    }
}

/// The contents of a chunk at the edge of the array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Edges {
    /// As many cells as any other; those outside the array mean nothing.
    Padded,
    /// Only the cells inside the array.
    Clipped,
}

/// The value of a cell that was never written.
#[derive(Debug, Clone, PartialEq)]
pub enum Fill {
    /// Nothing: the format has no fill value, and `locate` refuses a missing chunk.
    Refused,
    /// Zeros (empty text, an empty list).
    Zero,
    /// This element.
    Element(Elements),
}

/// Labels along a dimension, by which `time=2020-01-01..2020-02-01` finds positions.
#[derive(Debug, Clone, PartialEq)]
pub enum Labels {
    /// None are known.
    None,
    /// One text per position.
    Texts(Arc<[String]>),
    /// Position `i` has the value `first + i`: a domain that does not start at zero.
    Domain {
        /// The value of position 0.
        first: i64,
        /// An integer type or a date type.
        dtype: DType,
    },
    /// A one-dimensional array of this store holds them.
    Node(String),
}

/// One filter of a pipeline, as it is shown: a name and parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct Filter {
    /// The name that people know: `gzip`, `shuffle`, `zstd`.
    pub name: String,
    /// `level`, `element_size` and the like.
    pub parameters: Map<String, Value>,
}

impl Filter {
    /// A filter without parameters.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), parameters: Map::new() }
    }

    /// The same, with one more parameter.
    #[must_use]
    pub fn with(mut self, parameter: &str, value: impl Into<Value>) -> Self {
        self.parameters.insert(parameter.to_owned(), value.into());
        self
    }

    /// Refuses a level that the filter does not have, which some libraries clamp and others misread.
    ///
    /// ```
    /// use hyperslab_core::Filter;
    /// assert!(Filter::new("zstd").with("level", 99).check_level().is_err());
    /// assert!(Filter::new("gzip").with("level", 9).check_level().is_ok());
    /// ```
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid), naming the valid levels.
    pub fn check_level(&self) -> Result<()> {
        let (low, high) = match self.name.as_str() {
            "gzip" | "zlib" | "deflate" | "blosc" | "blosc2" => (0, 9),
            "bzip2" | "bz2" => (1, 9),
            "zstd" => (-131_072, 22),
            "brotli" => (0, 11),
            _ => return Ok(()),
        };
        for name in ["level", "clevel"] {
            let Some(level) = self.parameters.get(name) else { continue };
            if !level.as_i64().is_some_and(|level| (low..=high).contains(&level)) {
                return Err(Error::invalid(format!(
                    "filter {}: {name} {level} is not between {low} and {high}",
                    self.name
                )));
            }
        }
        Ok(())
    }

    /// A pipeline as people write it: `shuffle,zstd:3`; `none` is one without filters.
    ///
    /// ```
    /// use hyperslab_core::Filter;
    /// let filters = Filter::parse_list("shuffle,zstd:3")?;
    /// assert_eq!(filters, [Filter::new("shuffle"), Filter::new("zstd").with("level", 3)]);
    /// # Ok::<(), hyperslab_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) for an empty name or a level that is no number.
    pub fn parse_list(text: &str) -> Result<Vec<Self>> {
        if text == "none" {
            return Ok(Vec::new());
        }
        let one = |part: &str| match part.trim().split_once(':') {
            None if part.trim().is_empty() => Err(Error::invalid(format!("{text:?}: a filter is missing"))),
            None => Ok(Self::new(part.trim())),
            Some((name, level)) => {
                let level: i64 = level
                    .parse()
                    .map_err(|_| Error::invalid(format!("{part:?}: {level:?} is not a level")))?;
                Ok(Self::new(name).with("level", level))
            }
        };
        text.split(',').map(one).collect()
    }

    /// As JSON: `{"name": "gzip", "level": 4}`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut object = Map::from_iter([("name".to_owned(), Value::from(self.name.as_str()))]);
        object.extend(self.parameters.clone());
        Value::Object(object)
    }
}
