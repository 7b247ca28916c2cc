//! Dense arrays: the trait that a format implements.

use std::fmt::Debug;
use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    Attributes, Blob, BlobKey, CellOrder, ChunkCoord, ChunkRef, DType, Elements, Error, FetchCost, Grid,
    ObjectPlace, OutputSlot, PlannedChunk, Result, Span, StoredArray, StoredForm,
};

/// A dense array of some format.
///
/// A format locates chunks and decodes stored bytes to elements. The engine does the planning, parallel fetching, assembling and
/// reducing.
pub trait Array: Send + Sync + Debug {
    /// The array's schema.
    fn schema(&self) -> &ArraySchema;

    /// The store and node, for messages: `volume.h5/t`.
    fn name(&self) -> &str;

    /// Locates chunks. `None` means never written, so that the chunk holds the fill value. Takes many coordinates at once, so
    /// that an index block is read only once; never loads a whole index to find one chunk.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](Error::Corrupt) if the index is damaged, or a chunk is missing in a format without a fill value.
    fn locate(&self, chunks: &[ChunkCoord]) -> Result<Vec<Option<ChunkRef>>>;

    /// The blob with this key.
    ///
    /// # Errors
    ///
    /// [`Io`](Error::Io) or [`NotFound`](Error::NotFound) if it cannot be opened.
    fn blob(&self, key: &BlobKey) -> Result<Arc<dyn Blob>>;

    /// Decodes stored bytes (one slice per span of the reference) to elements: native byte order, in the schema's cell order.
    /// `out` has exactly the chunk's size: clipped to the array if [`Edges`] says so.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](Error::Corrupt) if the bytes do not decode to exactly that size; [`Unsupported`](Error::Unsupported) for an
    /// unsupported filter.
    fn decode(
        &self,
        chunk: &ChunkCoord,
        reference: &ChunkRef,
        stored: &[Bytes],
        out: &mut [u8],
    ) -> Result<()>;

    /// Decodes less than the whole chunk, if the format can: the wanted cells directly into their slot, or the front of the
    /// chunk. Returns which of the two it did; after [`Coverage::Nothing`] the caller decodes the whole chunk.
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

    /// Like [`decode`](Self::decode), for variable-length or nullable elements: all cells of the chunk, in C order, clipped to
    /// the array.
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

    /// Compares the stored bytes of a chunk with a checksum that the format keeps outside of them. Checksums inside the stored bytes
    /// are compared by [`decode`](Self::decode).
    ///
    /// # Errors
    ///
    /// [`Corrupt`](Error::Corrupt) if they differ, and any error from fetching.
    fn verify_checksum(&self, _chunk: &ChunkCoord, _reference: &ChunkRef) -> Result<()> {
        Ok(())
    }

    /// Visits every stored chunk, in index order. Walks the index, never the grid, which a hostile file can make endless.
    ///
    /// # Errors
    ///
    /// As [`locate`](Self::locate).
    fn visit_chunks(
        &self,
        visit: &mut dyn FnMut(ChunkCoord, ChunkRef) -> Result<ControlFlow<()>>,
    ) -> Result<()>;

    /// Returns true if [`visit_chunks`](Self::visit_chunks) visits every chunk that [`locate`](Self::locate) finds. Only then
    /// does a chunk that was not visited hold the fill value.
    fn visits_every_chunk(&self) -> bool {
        true
    }

    /// The number of stored chunks and their size. Formats that know this without a walk override it.
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

    /// Statistics that the format stores for these chunks; `None` if it stores none, and for chunks that were never written. No
    /// chunk is read for them.
    ///
    /// # Errors
    ///
    /// As [`locate`](Self::locate).
    fn statistics(&self, chunks: &[ChunkCoord]) -> Result<Vec<Option<ChunkStatistics>>> {
        Ok(vec![None; chunks.len()])
    }

    /// A format-independent description of the chunk's stored bytes, for copying them to another store unchanged; `None` if there
    /// is none. Unfiltered chunks have one in every format.
    fn stored_form(&self, chunk: &ChunkCoord, reference: &ChunkRef) -> Option<StoredForm> {
        let schema = self.schema();
        let whole = reference.as_plain()?.length == schema.decoded_bytes(chunk)? as u64;
        let shared =
            cfg!(target_endian = "little") && schema.order == CellOrder::RowMajor && !schema.nullable;
        (whole && shared).then(|| StoredForm { shape: schema.decoded_shape(chunk), steps: Vec::new() })
    }

    /// Returns true if everything that [`statistics`](Self::statistics) returns is a [hint](ChunkStatistics::hint). Callers that
    /// do not trust hints can skip the call.
    fn statistics_are_hints(&self) -> bool {
        false
    }

    /// The same array in chunks that are each stored in one piece, if its own are not. Such chunks can be referred to by other
    /// programs.
    fn stored_pieces(&self) -> Option<Box<dyn Array>> {
        None
    }

    /// Returns true if the stored bytes are on another machine, where each request has a high latency.
    fn is_remote(&self) -> bool {
        false
    }

    /// The stored bytes of these spans. `None` for a span of a missing object, which only arrays that locate chunks without a
    /// lookup ([`Span::is_whole`]) return. Neighbours in one blob are read in one call.
    ///
    /// # Errors
    ///
    /// As [`blob`](Self::blob) and [`Blob::read`].
    fn fetch(&self, spans: &[&Span]) -> Result<Vec<Option<Bytes>>> {
        fetch_from_blobs(self, spans)
    }

    /// Where the bytes of a blob are, for programs that read them without this array.
    ///
    /// # Errors
    ///
    /// As [`blob`](Self::blob).
    fn place(&self, blob: &BlobKey) -> Result<ObjectPlace> {
        let _ = blob;
        Ok(ObjectPlace::Object)
    }

    /// What [`fetch`](Self::fetch) would request for these spans. Requests none of them.
    ///
    /// # Errors
    ///
    /// As [`blob`](Self::blob).
    fn fetch_cost(&self, spans: &[&Span]) -> Result<FetchCost> {
        let mut cost = FetchCost::default();
        for run in spans.chunk_by(|a, b| a.blob == b.blob) {
            let ranges: Vec<_> = run.iter().map(|span| span.range()).collect();
            cost += self.blob(&run[0].blob)?.read_cost(&ranges);
        }
        Ok(cost)
    }
}

/// Fetches spans from the [blobs](Array::blob) of an array: the default of [`Array::fetch`].
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
        let ranges: Vec<_> = run.iter().map(|span| span.range()).collect();
        fetched.extend(blob.read(&ranges)?.into_iter().map(Some));
    }
    Ok(fetched)
}

/// The destination of a partial decode.
#[derive(Debug)]
pub struct PartialOutput<'o, 's> {
    /// The slot of the wanted cells in the result, if there is one.
    pub slot: Option<&'o mut OutputSlot<'s>>,
    /// The front of the decoded chunk, up to the last wanted element, if it is useful to stop there. It may be written to even if
    /// it is not completed.
    pub front: Option<&'o mut [u8]>,
}

/// The result of a partial decode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coverage {
    /// Nothing: the whole chunk must be decoded.
    Nothing,
    /// The wanted cells are in their slot.
    Slot,
    /// The front of the chunk is decoded.
    Front,
}

/// A number, exactly as held by an array of its kind.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Number {
    /// Of an integer, boolean or time type.
    Integer(i128),
    /// Of a floating-point type; `float16` and `float32` are widened without loss.
    Float(f64),
}

/// Statistics of the values of one chunk. They cover the cells inside the array that are neither missing nor NaN.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct ChunkStatistics {
    /// The smallest value, or a lower bound.
    pub min: Option<Number>,
    /// The largest value, or an upper bound.
    pub max: Option<Number>,
    /// The sum of the values.
    pub sum: Option<Number>,
    /// The number of cells that are missing or NaN.
    pub nulls: Option<u64>,
    /// Whether the statistics are exact and not only bounds: the smallest and largest values occur in the chunk, and the sum is
    /// that of all values.
    pub exact: bool,
    /// Whether the statistics are not verifiably tied to the stored values (writers may leave them stale, and no checksum covers
    /// them). They may decide what is read first, but a result relies on them only if the caller allows it.
    pub hint: bool,
}

/// How much of an array is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// The number of written chunks.
    pub chunks: u64,
    /// Their stored bytes.
    pub bytes: u64,
}

/// The description of a dense array: everything except where its chunks are.
#[derive(Debug, Clone)]
pub struct ArraySchema {
    /// The type of an element.
    pub dtype: DType,
    /// The shape and the chunks.
    pub grid: Grid,
    /// The limit to which each dimension may grow; `None` for unlimited. One entry per dimension.
    pub max_shape: Vec<Option<u64>>,
    /// The order of the cells in a decoded chunk.
    pub order: CellOrder,
    /// The contents of a chunk at the edge of the array.
    pub edges: Edges,
    /// Whether elements may be missing.
    pub nullable: bool,
    /// The value of a cell that was never written.
    pub fill: Fill,
    /// Dimension names, where they exist. One entry per dimension.
    pub dimensions: Vec<Option<String>>,
    /// Labels along each dimension. One entry per dimension.
    pub labels: Vec<Labels>,
    /// The attributes of the array.
    pub attributes: Attributes,
    /// The pipeline, in writing order.
    pub filters: Vec<Filter>,
    /// The kind of chunk index, in the format's own terms: "extensible array", "contiguous", "object names".
    pub chunk_index: String,
    /// Whether the writer divided the array into chunks. If not, the grid is ours and is not shown.
    pub chunked: bool,
    /// Whether it only declares a dimension of its name and length, like NetCDF-4 dimensions without a variable. Its values are
    /// meaningless.
    pub is_dimension: bool,
    /// How the format stores it, in more detail than the fields above.
    pub stored: StoredArray,
}

impl ArraySchema {
    /// An array without filters, dimension names, labels or attributes, in C order.
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

    /// The shape of a decoded chunk, clipped to the array if the format stores it so.
    #[must_use]
    pub fn decoded_shape(&self, chunk: &[u64]) -> crate::Extents {
        match self.edges {
            Edges::Clipped => self.grid.region(chunk).shape,
            Edges::Padded => self.grid.chunk_shape().into(),
        }
    }

    /// The size of a decoded chunk in bytes; `None` if elements have no fixed size or on overflow of `usize`.
    #[must_use]
    pub fn decoded_bytes(&self, chunk: &[u64]) -> Option<usize> {
        let cells = usize::try_from(crate::product(&self.decoded_shape(chunk))?).ok()?;
        cells.checked_mul(self.dtype.size()?)
    }

    /// The size of the whole array in bytes; `None` if elements have no fixed size or on overflow of `u64`.
    #[must_use]
    pub fn bytes(&self) -> Option<u64> {
        crate::product(self.shape())?.checked_mul(self.dtype.size()? as u64)
    }
}

/// The contents of a chunk at the edge of the array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Edges {
    /// As many cells as any other chunk; those outside the array are meaningless.
    Padded,
    /// Only the cells inside the array.
    Clipped,
}

/// The value of a cell that was never written.
#[derive(Debug, Clone, PartialEq)]
pub enum Fill {
    /// None: the format has no fill value, and `locate` refuses a missing chunk.
    Undefined,
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

/// One filter of a pipeline, as shown to users: a name and parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct Filter {
    /// The usual name: `gzip`, `shuffle`, `zstd`.
    pub name: String,
    /// `level`, `element_size` and the like.
    pub parameters: Map<String, Value>,
}

impl Filter {
    /// A filter without parameters.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), parameters: Map::new() }
    }

    /// Adds a parameter.
    #[must_use]
    pub fn with(mut self, parameter: &str, value: impl Into<Value>) -> Self {
        self.parameters.insert(parameter.to_owned(), value.into());
        self
    }

    /// Refuses an invalid level, which some libraries clamp and others misread.
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

    /// The filter in short form: `shuffle`, `gzip:4`.
    #[must_use]
    pub fn short(&self) -> String {
        match self.parameters.get("level") {
            Some(level) => format!("{}:{level}", self.name),
            None => self.name.clone(),
        }
    }

    /// Parses a pipeline: `shuffle,zstd:3`; `none` is one without filters.
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
    /// [`Invalid`](Error::Invalid) for an empty name or a level that is not a number.
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

    /// Converts to JSON: `{"name": "gzip", "level": 4}`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut object = Map::from_iter([("name".to_owned(), Value::from(self.name.as_str()))]);
        object.extend(self.parameters.clone());
        Value::Object(object)
    }
}
