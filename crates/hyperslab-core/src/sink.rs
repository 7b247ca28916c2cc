//! Sinks: creating and changing the nodes of a store.

use std::fmt::Debug;
use std::sync::Arc;

use bytes::Bytes;

use crate::{
    Attributes, ChunkCoord, DType, Elements, Error, Fill, Filter, Grid, Labels, LinkTarget, Result,
    StoredArray, StoredForm, StoredGroup, StoredNamedType,
};

/// Creates the nodes of a store. Nothing is visible before [`commit`](Sink::commit). A sink that is dropped leaves nothing
/// behind.
pub trait Sink: Send + Debug {
    /// Creates a group. Its parents must already exist.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) if the path exists; [`Unsupported`](Error::Unsupported) for content that the format cannot
    /// hold.
    fn group(&mut self, path: &str, attributes: &Attributes) -> Result<()>;

    /// Like [`group`](Self::group), with format details from the source. Formats without such details ignore them.
    ///
    /// # Errors
    ///
    /// As [`group`](Self::group).
    fn group_as(&mut self, path: &str, attributes: &Attributes, _stored: &StoredGroup) -> Result<()> {
        self.group(path, attributes)
    }

    /// Creates a link. The target of a hard link must already exist.
    ///
    /// # Errors
    ///
    /// As [`group`](Self::group).
    fn link(&mut self, path: &str, _target: &LinkTarget<String>) -> Result<()> {
        Err(Error::unsupported(path, "links"))
    }

    /// Creates a named type. Arrays and attributes refer to it by its path.
    ///
    /// # Errors
    ///
    /// As [`group`](Self::group).
    fn named_type(
        &mut self,
        path: &str,
        _dtype: &DType,
        _attributes: &Attributes,
        _stored: &StoredNamedType,
    ) -> Result<()> {
        Err(Error::unsupported(path, "named types"))
    }

    /// Creates a dimension that has no array of the same name: its length, and the limit to which it may grow (`None` for
    /// unlimited). Formats that know dimensions only as axis names do nothing.
    ///
    /// # Errors
    ///
    /// As [`group`](Self::group).
    fn dimension(&mut self, _path: &str, _length: u64, _limit: Option<u64>) -> Result<()> {
        Ok(())
    }

    /// Creates an array, to be filled chunk by chunk. Content that the format cannot hold is refused here, before anything is
    /// written.
    ///
    /// # Errors
    ///
    /// As [`group`](Self::group).
    fn array(&mut self, path: &str, spec: &ArraySpec) -> Result<Arc<dyn ArraySink>>;

    /// Grows an existing array to `shape`, so that chunks can be added. Chunks that the old edge clipped and that are now larger
    /// must be written again; all others are kept. Only sinks that add to an existing store have such arrays.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) if the array would shrink or exceed its maximum shape; [`Unsupported`](Error::Unsupported) if
    /// arrays cannot grow.
    fn grow(&mut self, path: &str, shape: &[u64]) -> Result<Arc<dyn ArraySink>> {
        Err(Error::unsupported(path, format!("growing an array to {shape:?}")))
    }

    /// Sets attributes of a node. Attributes of the same names are replaced, the others stay. A sink that adds to a store can
    /// change any node.
    ///
    /// # Errors
    ///
    /// [`NotFound`](Error::NotFound) if there is no such node; [`Unsupported`](Error::Unsupported) if attributes can only be
    /// written together with their node.
    fn attributes(&mut self, path: &str, attributes: &Attributes) -> Result<()> {
        let names: Vec<&str> = attributes.iter().map(|(name, _)| name).collect();
        Err(Error::unsupported(path, format!("setting the attributes {names:?} of an existing node")))
    }

    /// Deletes attributes of an existing node.
    ///
    /// # Errors
    ///
    /// As [`attributes`](Self::attributes).
    fn delete_attributes(&mut self, path: &str, names: &[&str]) -> Result<()> {
        Err(Error::unsupported(path, format!("deleting the attributes {names:?} in place")))
    }

    /// Moves an existing node to another path.
    ///
    /// # Errors
    ///
    /// [`NotFound`](Error::NotFound) if there is no such node, [`Invalid`](Error::Invalid) if the new path exists,
    /// [`Unsupported`](Error::Unsupported) if nodes cannot be renamed.
    fn rename(&mut self, path: &str, to: &str) -> Result<()> {
        Err(Error::unsupported(path, format!("renaming to {to} in place")))
    }

    /// Removes an existing node and everything below it.
    ///
    /// # Errors
    ///
    /// As [`rename`](Self::rename).
    fn remove(&mut self, path: &str) -> Result<()> {
        Err(Error::unsupported(path, "removing a node in place"))
    }

    /// Nodes that are stored in a different form than requested: path and description. Called when all nodes exist, before the
    /// first chunk is written.
    fn changes(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// Writes everything that is left before [`commit`](Self::commit). Returns losses that only showed while values were written:
    /// node and reason.
    ///
    /// # Errors
    ///
    /// As [`commit`](Self::commit).
    fn finish(&mut self) -> Result<Vec<(String, String)>> {
        Ok(Vec::new())
    }

    /// Makes everything visible at once.
    ///
    /// # Errors
    ///
    /// [`Io`](Error::Io) if the system reports an error. Nothing is visible then.
    fn commit(self: Box<Self>) -> Result<()>;
}

/// An array that is being written. Encoding is separate from writing, so that some chunks can be encoded on all cores while
/// others are written.
pub trait ArraySink: Send + Sync + Debug {
    /// The grid of the chunks to write.
    fn grid(&self) -> &Grid;

    /// The shape before the array grew, if it existed before. This is the shape found after the writer had locked the store.
    fn grown_from(&self) -> Option<&[u64]> {
        None
    }

    /// Encodes a chunk's elements (C order, native byte order, clipped to the array) to the bytes to store.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) if the number of elements does not match the chunk.
    fn encode(&self, chunk: &ChunkCoord, elements: &Elements) -> Result<EncodedChunk>;

    /// Takes over bytes stored by another store as this chunk, without decoding them. Returns `None` if this array stores its
    /// chunks in another form. The elements have this array's type.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) for a chunk outside the grid.
    fn adopt(
        &self,
        _chunk: &ChunkCoord,
        _form: &StoredForm,
        _stored: &Bytes,
    ) -> Result<Option<EncodedChunk>> {
        Ok(None)
    }

    /// Returns true if the order in which chunks are written does not affect the store. Each chunk is then best written by the
    /// thread that encoded it.
    fn any_order(&self) -> bool {
        false
    }

    /// Returns true if an unwritten chunk takes no space and reads as the array's fill value.
    fn leaves_out_fill(&self) -> bool {
        false
    }

    /// Writes an encoded chunk, in any order and from any thread.
    ///
    /// # Errors
    ///
    /// [`Io`](Error::Io) if the system reports an error, [`Invalid`](Error::Invalid) if the chunk was already written.
    fn write(&self, chunk: &ChunkCoord, encoded: EncodedChunk) -> Result<()>;
}

/// A chunk's bytes, ready to be stored.
#[derive(Debug, Clone)]
pub struct EncodedChunk {
    /// One part for most formats; offsets, values and validity for variable-length ones.
    pub parts: Vec<Bytes>,
    /// Bit `i`: filter `i` of the pipeline was skipped.
    pub filter_mask: u32,
    /// Bytes before encoding.
    pub raw_length: u64,
    /// For the format's own use (a checksum, statistics).
    pub tag: u64,
}

/// The description of an array to create.
#[derive(Debug, Clone)]
pub struct ArraySpec {
    /// The type of an element.
    pub dtype: DType,
    /// The shape and the chunks.
    pub grid: Grid,
    /// The limit to which each dimension may grow; `None` for unlimited. One entry per dimension.
    pub max_shape: Vec<Option<u64>>,
    /// Whether elements may be missing.
    pub nullable: bool,
    /// The value of a cell that is never written.
    pub fill: Fill,
    /// Dimension names, where they exist. One entry per dimension.
    pub dimensions: Vec<Option<String>>,
    /// Labels along each dimension. One entry per dimension.
    pub labels: Vec<Labels>,
    /// The attributes to write.
    pub attributes: Attributes,
    /// The pipeline, in writing order.
    pub filters: Vec<Filter>,
    /// How the source stores the array, for formats that can store it the same way. Details that contradict the fields above are
    /// ignored.
    pub stored: StoredArray,
}

impl ArraySpec {
    /// An array without filters, dimension names, labels or attributes.
    #[must_use]
    pub fn new(dtype: DType, grid: Grid) -> Self {
        let rank = grid.rank();
        Self {
            dtype,
            max_shape: grid.shape().iter().map(|extent| Some(*extent)).collect(),
            grid,
            nullable: false,
            fill: Fill::Zero,
            dimensions: vec![None; rank],
            labels: vec![Labels::None; rank],
            attributes: Attributes::new(),
            filters: Vec::new(),
            stored: StoredArray::default(),
        }
    }

    /// Sets the filter pipeline.
    #[must_use]
    pub fn with_filters(mut self, filters: impl IntoIterator<Item = Filter>) -> Self {
        self.filters = filters.into_iter().collect();
        self
    }

    /// Checks that the elements fit the chunk. The sinks of all formats share this check.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) if the chunk is outside the grid or the number of elements does not match.
    pub fn check_chunk(&self, chunk: &[u64], elements: &Elements) -> Result<()> {
        if !self.grid.contains(chunk) {
            return Err(Error::invalid(format!(
                "chunk {chunk:?} is outside the grid {:?}",
                self.grid.extents()
            )));
        }
        let (cells, found) = (self.grid.region(chunk).cells(), elements.len(&self.dtype) as u64);
        if cells != Some(found) && self.dtype.size() != Some(0) {
            return Err(Error::invalid(format!(
                "chunk {chunk:?} has {cells:?} cells, but {found} elements were given"
            )));
        }
        Ok(())
    }
}

/// The error for an array that cannot be resized to the requested shape.
///
/// ```
/// let error = hyperslab_core::cannot_grow("/t", &[14, 64], &[7, 64]);
/// assert!(error.to_string().contains("since it was opened"));
/// ```
#[must_use]
pub fn cannot_grow(path: &str, old: &[u64], new: &[u64]) -> crate::Error {
    let shrinks = old.len() == new.len() && old.iter().zip(new).any(|(old, new)| new < old);
    let why = if shrinks { "; arrays only grow, and it may have grown since it was opened" } else { "" };
    crate::Error::invalid(format!("{path}: {old:?} cannot become {new:?}{why}"))
}
