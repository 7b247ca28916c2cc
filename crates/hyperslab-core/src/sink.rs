//! Places to create nodes.

use std::fmt::Debug;
use std::sync::Arc;

use bytes::Bytes;

use crate::{
    Attributes, ChunkCoord, DType, Elements, Error, Fill, Filter, Grid, Labels, LinkTarget, Result,
    StoredArray, StoredForm, StoredGroup, StoredNamedType,
};

/// A place to create nodes. Nothing is visible before [`commit`](Sink::commit); dropped, it leaves nothing
/// after.
pub trait Sink: Send + Debug {
    /// A group. Its parents must have been made before.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) if the path exists; [`Unsupported`](Error::Unsupported) for what
    /// the format cannot hold.
    fn group(&mut self, path: &str, attributes: &Attributes) -> Result<()>;

    /// As [`group`](Self::group), with what the source keeps of it. Formats that keep nothing of the kind ignore it.
    ///
    /// # Errors
    ///
    /// As [`group`](Self::group).
    fn group_as(&mut self, path: &str, attributes: &Attributes, _stored: &StoredGroup) -> Result<()> {
        self.group(path, attributes)
    }

    /// A link. The target of a hard link must have been made before.
    ///
    /// # Errors
    ///
    /// As [`group`](Self::group).
    fn link(&mut self, path: &str, _target: &LinkTarget<String>) -> Result<()> {
        Err(Error::unsupported(path, "links"))
    }

    /// A named type. Arrays and attributes refer to it by its path.
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

    /// A dimension that no array of its name describes: its length, and how far it may grow (`None`: without end).
    /// Formats that know dimensions only as names of axes have nothing to do.
    ///
    /// # Errors
    ///
    /// As [`group`](Self::group).
    fn dimension(&mut self, _path: &str, _length: u64, _limit: Option<u64>) -> Result<()> {
        Ok(())
    }

    /// An array, to be filled chunk by chunk. Anything that the format cannot hold is refused here, before anything is
    /// written.
    ///
    /// # Errors
    ///
    /// As [`group`](Self::group).
    fn array(&mut self, path: &str, spec: &ArraySpec) -> Result<Arc<dyn ArraySink>>;

    /// Grows an existing array to `shape` and adds chunks. Chunks that the old edge
    /// cut and that are larger now must be written again; all others are kept. Only sinks that add to an existing
    /// store have such arrays.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) when it would become smaller or larger than it may; [`Unsupported`](Error::Unsupported)
    /// where arrays cannot grow.
    fn grow(&mut self, path: &str, shape: &[u64]) -> Result<Arc<dyn ArraySink>> {
        Err(Error::unsupported(path, format!("growing to {shape:?} here")))
    }

    /// Gives a node attributes: those of the same names are replaced, its others stay. Of a store that is added to, any node.
    ///
    /// # Errors
    ///
    /// [`NotFound`](Error::NotFound) when there is no such node; [`Unsupported`](Error::Unsupported) where attributes are
    /// written with their nodes alone.
    fn attributes(&mut self, path: &str, attributes: &Attributes) -> Result<()> {
        let names: Vec<&str> = attributes.iter().map(|(name, _)| name).collect();
        Err(Error::unsupported(path, format!("setting the attributes {names:?} of a node that is there")))
    }

    /// Deletes attributes of a node of a store that is added to.
    ///
    /// # Errors
    ///
    /// As [`attributes`](Self::attributes).
    fn delete_attributes(&mut self, path: &str, names: &[&str]) -> Result<()> {
        Err(Error::unsupported(path, format!("deleting the attributes {names:?} in place")))
    }

    /// Gives a node of a store that is added to another path.
    ///
    /// # Errors
    ///
    /// [`NotFound`](Error::NotFound) when there is no such node, [`Invalid`](Error::Invalid) when something stands at the new
    /// path, [`Unsupported`](Error::Unsupported) where nodes keep their names.
    fn rename(&mut self, path: &str, to: &str) -> Result<()> {
        Err(Error::unsupported(path, format!("renaming to {to} in place")))
    }

    /// Removes a node of a store that is added to, with everything below it.
    ///
    /// # Errors
    ///
    /// As [`rename`](Self::rename).
    fn remove(&mut self, path: &str) -> Result<()> {
        Err(Error::unsupported(path, "removing a node in place"))
    }

    /// Nodes that are stored in another form than requested: path and description. Called when all
    /// nodes are there, before the first chunk is written.
    fn changes(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// Writes everything that is left before [`commit`](Self::commit). Answers what could not be kept and was only found
    /// out while values were written: node and reason.
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
    /// [`Io`](Error::Io) when the system refuses; nothing is visible then.
    fn commit(self: Box<Self>) -> Result<()>;
}

/// An array that is being written. Encoding is separate from writing, so that chunks can be encoded on all cores
/// while others are written.
pub trait ArraySink: Send + Sync + Debug {
    /// The grid in which chunks are expected.
    fn grid(&self) -> &Grid;

    /// The shape before it grew, of an array that was there already: what the writer found when it had the store for itself.
    fn grown_from(&self) -> Option<&[u64]> {
        None
    }

    /// A chunk's elements (C order, native byte order, clipped to the array) to the bytes that will be stored.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) when there are more or fewer elements than the chunk has cells.
    fn encode(&self, chunk: &ChunkCoord, elements: &Elements) -> Result<EncodedChunk>;

    /// Takes bytes that another store holds as this chunk's own, without decoding them; `None` when this array stores
    /// its chunks in another form. The elements are of this array's type.
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

    /// Is the store the same in whatever order its chunks are written? Then each is best written by the thread that
    /// encoded it.
    fn any_order(&self) -> bool {
        false
    }

    /// Does a chunk that is never written take no room, and read as the fill value that the array was created with?
    fn leaves_out_fill(&self) -> bool {
        false
    }

    /// Writes an encoded chunk, in any order and from any thread.
    ///
    /// # Errors
    ///
    /// [`Io`](Error::Io) when the system refuses, [`Invalid`](Error::Invalid) when the chunk was written before.
    fn write(&self, chunk: &ChunkCoord, encoded: EncodedChunk) -> Result<()>;
}

/// A chunk's bytes as they will be stored.
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

/// What array to make.
#[derive(Debug, Clone)]
pub struct ArraySpec {
    /// The type of an element.
    pub dtype: DType,
    /// Shape and chunks.
    pub grid: Grid,
    /// How far each dimension may grow: `None` without end. As long as the shape.
    pub max_shape: Vec<Option<u64>>,
    /// May elements be missing?
    pub nullable: bool,
    /// The value of a cell that is never written.
    pub fill: Fill,
    /// A name per dimension, where it has one. As long as the shape.
    pub dimensions: Vec<Option<String>>,
    /// Labels along each dimension. As long as the shape.
    pub labels: Vec<Labels>,
    /// What to write beside it.
    pub attributes: Attributes,
    /// The pipeline, in the order of writing.
    pub filters: Vec<Filter>,
    /// How the source stores it, for formats that can store it so again. What contradicts the fields above is ignored.
    pub stored: StoredArray,
}

impl ArraySpec {
    /// An array without filters, names, labels and attributes.
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

    /// The same, through this pipeline.
    #[must_use]
    pub fn with_filters(mut self, filters: impl IntoIterator<Item = Filter>) -> Self {
        self.filters = filters.into_iter().collect();
        self
    }

    /// Refuses an encoded element count that does not fit a chunk: shared by the formats' sinks.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) when the chunk is outside the grid or the elements are too many or too few.
    pub fn check_chunk(&self, chunk: &[u64], elements: &Elements) -> Result<()> {
        if !self.grid.contains(chunk) {
            return Err(Error::invalid(format!(
                "chunk {chunk:?} is outside the grid {:?}",
                self.grid.extents()
            )));
        }
        let (cells, found) = (self.grid.region(chunk).cells(), elements.len(&self.dtype) as u64);
        if cells != Some(found) && self.dtype.size() != Some(0) {
            return Err(Error::invalid(format!("{found} elements for chunk {chunk:?} of {cells:?} cells")));
        }
        Ok(())
    }
}
