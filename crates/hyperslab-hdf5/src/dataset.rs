//! Datasets: their schema, and how their chunks are found and decoded.

use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use hyperslab_core::{
    Array, ArraySchema, Blob, BlobKey, ChunkCoord, ChunkRef, Edges, Elements, Error, Fill, Grid,
    Layout as Strides, ObjectId, ObjectPlace, Place, Result, StoredArray, StoredForm, StoredLayout,
    StoredStep, TypeName, copy_box, product, recycle_scratch, swap_bytes, take_scratch,
};
use smallvec::SmallVec;

use crate::contiguous::{self, External};
use crate::conversion::{Element, Heaps, Step};
use crate::file::File;
use crate::filters::{Pipeline, describe};
use crate::header::{Header, kind};
use crate::index::{ChunkIndex, Stored};
use crate::message::datatype::{DatatypeMessage, Type};
use crate::message::layout::{Chunked, Layout};
use crate::message::pipeline::FilterSpec;
use crate::message::space::Space;
use crate::message::{external, fill, pipeline};
use crate::operation::outside;
use crate::virtuals::Virtual;
use crate::{attributes, dimensions};

/// A dataset as an array.
#[derive(Debug)]
pub(crate) struct Dataset {
    pub(crate) file: Arc<File>,
    /// The store and path, for error messages.
    name: String,
    schema: ArraySchema,
    element: Element,
    pipeline: Pipeline,
    source: Source,
}

/// The storage of the elements.
#[derive(Debug)]
enum Source {
    /// Not allocated: all elements are the fill value.
    Nothing,
    /// Contiguous, from this offset of the blob.
    Piece(u64),
    /// Contiguous, split over external files.
    External(External),
    Chunked {
        index: Box<ChunkIndex>,
        plain_edges: bool,
    },
    Virtual(Box<Virtual>),
}

impl Dataset {
    /// Opens the dataset with this header, found at `path`.
    pub(crate) fn open(file: &Arc<File>, header: &Header, path: &str) -> Result<Self> {
        let place = file.place("object header", header.address);
        let need = |kind: u16, what: &str| {
            header.find(file, kind)?.ok_or_else(|| place.corrupt(format!("a dataset without {what}")))
        };
        let dtype = need(kind::DATATYPE, "a datatype")?;
        let dtype = Type::parse(&mut dtype.fields(file, "datatype message"))?;
        let space = need(kind::DATASPACE, "a dataspace")?;
        let space = Space::parse(&mut space.fields(file, "dataspace message"), file.sizes())?;
        let element = Element::new(&dtype, file.sizes(), &file.name)?;
        let layout =
            header.find(file, kind::LAYOUT)?.map(|message| Layout::parse(file, &message)).transpose()?;
        let pipeline = match header.find(file, kind::PIPELINE)? {
            Some(message) => {
                Pipeline::new(pipeline::parse(&mut message.fields(file, "filter pipeline message"))?)
            }
            None => Pipeline::default(),
        };
        let name = format!("{}{path}", file.name);
        let parts =
            Parts { file, header, element: &element, space: &space, pipeline: &pipeline, name: &name };
        let (grid, source, chunk_index) = parts.source(layout.as_ref())?;
        let mut schema = ArraySchema::new(element.dtype.clone(), grid);
        schema.chunked = matches!(layout, Some(Layout::Chunked(_)));
        schema.edges = if schema.chunked { Edges::Padded } else { Edges::Clipped };
        if !space.null {
            schema.max_shape.clone_from(&space.max_shape);
        }
        let (stored_fill, fill) = fill::read(file, header)?;
        schema.fill = parts.fill(fill)?;
        schema.stored = StoredArray {
            object: header.stored_object(file),
            named_type: header.named_type(file).map(|address| TypeName::Id(ObjectId(address))),
            no_space: space.null,
            layout: stored_layout(layout.as_ref(), &source),
            fill: Some(stored_fill),
            filters: pipeline.specs.iter().map(FilterSpec::stored).collect(),
            dtype: Some(dtype.into()),
            ..StoredArray::default()
        };
        schema.filters = pipeline.specs.iter().map(describe).collect();
        chunk_index.clone_into(&mut schema.chunk_index);
        let raw = attributes::raw(file, header)?;
        dimensions::read(file, &raw, path, &mut schema);
        schema.attributes = attributes::decode(file, &raw);
        Ok(Self { file: Arc::clone(file), name, schema, element, pipeline, source })
    }

    /// The mappings, if this is a virtual dataset.
    pub(crate) fn as_virtual(&self) -> Option<&Virtual> {
        match &self.source {
            Source::Virtual(sources) => Some(sources),
            _ => None,
        }
    }

    fn place(&self, reference: &ChunkRef) -> Place<'_> {
        Place::new(&self.name, "chunk", reference.spans().next().map_or(0, |span| span.offset))
    }

    /// The reference to a stored chunk.
    fn reference(&self, chunk: &[u64], stored: Stored, plain_edges: bool) -> ChunkRef {
        let mut mask = stored.mask;
        if plain_edges && self.schema.grid.is_clipped(chunk) {
            mask = u32::MAX;
        }
        // A chunk outside the file is refused only when it is fetched, so that other chunks stay readable.
        let offset = self.file.superblock.base.saturating_add(stored.address);
        let mut reference = ChunkRef::encoded(BlobKey::Main, offset, stored.size, mask);
        reference.layers[0].plain = self.element.is_plain() && self.pipeline.is_plain(mask);
        reference
    }

    fn piece(&self, chunk: &[u64], start: u64) -> ChunkRef {
        let (offset, length) = contiguous::range(&self.schema.grid, chunk, self.element.stored as u64);
        let mut reference = ChunkRef::encoded(BlobKey::Main, start.saturating_add(offset), length, 0);
        reference.layers[0].plain = self.element.is_plain();
        reference
    }

    /// The reference to a chunk, if it is stored. Chunks of virtual datasets always count as stored, by their sources.
    fn locate_one(&self, chunk: &ChunkCoord) -> Result<Option<ChunkRef>> {
        Ok(match &self.source {
            Source::Nothing | Source::Chunked { .. } => None,
            Source::Piece(start) => Some(self.piece(chunk, *start)),
            Source::External(external) => {
                let (offset, length) =
                    contiguous::range(&self.schema.grid, chunk, self.element.stored as u64);
                Some(external.reference(&self.file, offset, length, self.element.is_plain())?)
            }
            Source::Virtual(_) => Some(ChunkRef { layers: SmallVec::new() }),
        })
    }

    /// Decodes a chunk's stored elements into `out`, with all filters undone.
    fn raw(&self, reference: &ChunkRef, stored: &[Bytes], out: &mut [u8]) -> Result<()> {
        let place = self.place(reference);
        let mask = reference.layers.first().map_or(0, |layer| layer.filter_mask);
        if let Source::External(_) = self.source {
            // Bytes past the end of an external file read as zeros.
            let mut rest = out;
            for part in stored {
                let (head, tail) = rest.split_at_mut(part.len().min(rest.len()));
                head.copy_from_slice(&part[..head.len()]);
                rest = tail;
            }
            rest.fill(0);
            return Ok(());
        }
        match stored {
            [stored] => self.pipeline.decode(mask, stored, out, place),
            _ => Err(Error::invalid(format!("{}: {} spans for one chunk", self.name, stored.len()))),
        }
    }

    /// Calls `work` with the stored elements of a chunk.
    fn with_raw<T>(
        &self,
        chunk: &ChunkCoord,
        reference: &ChunkRef,
        stored: &[Bytes],
        work: impl FnOnce(&[u8]) -> Result<T>,
    ) -> Result<T> {
        let cells = product(&self.schema.decoded_shape(chunk)).and_then(|cells| usize::try_from(cells).ok());
        let bytes = cells.and_then(|cells| cells.checked_mul(self.element.stored));
        let bytes = bytes.ok_or_else(|| self.place(reference).corrupt("a chunk larger than memory"))?;
        if let ([stored], true) = (stored, self.pipeline.is_plain(reference.layers[0].filter_mask))
            && stored.len() == bytes
        {
            return work(stored);
        }
        let mut scratch = take_scratch();
        if scratch.len() < bytes {
            scratch = self.file.zeroed(bytes, "chunk")?;
        }
        let result =
            self.raw(reference, stored, &mut scratch[..bytes]).and_then(|()| work(&scratch[..bytes]));
        recycle_scratch(scratch);
        result
    }
}

/// The layout in the core's model.
fn stored_layout(layout: Option<&Layout>, source: &Source) -> Option<StoredLayout> {
    Some(match (layout?, source) {
        (_, Source::External(external)) => StoredLayout::External(external.files()),
        (_, Source::Virtual(sources)) => StoredLayout::Virtual(Arc::clone(&sources.stored)),
        (Layout::Compact { .. }, _) => StoredLayout::Compact,
        (Layout::Chunked(_), _) => StoredLayout::Chunked,
        _ => StoredLayout::Contiguous,
    })
}

/// The header messages from which a dataset is built.
struct Parts<'a> {
    file: &'a Arc<File>,
    header: &'a Header,
    element: &'a Element,
    space: &'a Space,
    pipeline: &'a Pipeline,
    name: &'a str,
}

impl Parts<'_> {
    /// The grid, the storage of the elements, and the name of the index.
    fn source(&self, layout: Option<&Layout>) -> Result<(Grid, Source, &'static str)> {
        let shape: &[u64] = if self.space.null { &[0] } else { &self.space.shape };
        let slabs = || contiguous::slabs(shape, self.element.stored as u64);
        let place = self.file.place("data layout message", self.header.address);
        if self.space.null {
            return Ok((slabs(), Source::Nothing, "null"));
        }
        Ok(match layout {
            None => (slabs(), Source::Nothing, "contiguous"),
            Some(Layout::Compact { address, size }) => {
                self.check_size(*size, place)?;
                (slabs(), Source::Piece(self.file.absolute(place, *address)?), "compact")
            }
            Some(Layout::Contiguous { address }) => {
                if let Some(message) = self.header.find(self.file, kind::EXTERNAL_FILES)? {
                    let slots = external::parse(self.file, &message)?;
                    return Ok((slabs(), Source::External(External::new(slots)), "external"));
                }
                let source = match address {
                    // Ignore the recorded size: libhdf5 recomputes it too.
                    Some(address) => Source::Piece(self.file.superblock.base.saturating_add(*address)),
                    None => Source::Nothing,
                };
                (slabs(), source, "contiguous")
            }
            Some(Layout::Chunked(chunked)) => {
                let (grid, source) = self.chunked(chunked, place)?;
                (grid, source, chunked.index.name())
            }
            Some(Layout::Virtual { heap, index }) => {
                let sources = Virtual::read(self.file, *heap, *index, self.space)?;
                let grid = contiguous::slabs(&sources.shape, self.element.stored as u64);
                (grid, Source::Virtual(Box::new(sources)), "virtual")
            }
        })
    }

    /// Refuses a layout that holds fewer bytes than the elements need.
    fn check_size(&self, size: u64, place: Place<'_>) -> Result<()> {
        let needed = self.space.elements().checked_mul(self.element.stored as u64);
        match needed {
            Some(needed) if needed <= size => Ok(()),
            _ => Err(place.corrupt(format!(
                "{size} bytes for {} elements of {}",
                self.space.elements(),
                self.element.stored
            ))),
        }
    }

    fn chunked(&self, chunked: &Chunked, place: Place<'_>) -> Result<(Grid, Source)> {
        if chunked.shape.len() != self.space.shape.len() || chunked.shape.contains(&0) {
            return Err(place.corrupt(format!(
                "chunks of {:?} for an array of {:?}",
                chunked.shape,
                self.space.shape.as_slice()
            )));
        }
        if chunked.element != self.element.stored as u64 {
            return Err(place.corrupt(format!(
                "chunks of elements of {} bytes, the type has {}",
                chunked.element, self.element.stored
            )));
        }
        let bytes = product(&chunked.shape).and_then(|cells| cells.checked_mul(chunked.element));
        let bytes = bytes.ok_or_else(|| place.corrupt("chunks larger than memory"))?;
        let grid = Grid::new(&self.space.shape, &chunked.shape)?;
        let filtered = !self.pipeline.specs.is_empty();
        let index = ChunkIndex::new(chunked, grid.clone(), &self.space.max_shape, bytes, filtered);
        Ok((grid, Source::Chunked { index: Box::new(index), plain_edges: chunked.plain_edges }))
    }

    fn fill(&self, stored: Option<Vec<u8>>) -> Result<Fill> {
        let Some(bytes) = stored else { return Ok(Fill::Zero) };
        let place = Place::new(self.name, "fill value", 0);
        if bytes.len() != self.element.stored {
            // Only unwritten cells need this value. Reading those fails; all others stay readable.
            return Ok(Fill::Undefined);
        }
        if bytes.iter().all(|byte| *byte == 0) {
            return Ok(Fill::Zero);
        }
        let heaps = Heaps::new(self.file, place);
        Ok(Fill::Element(self.element.elements(&bytes, &heaps)?))
    }
}

impl Array for Dataset {
    fn schema(&self) -> &ArraySchema {
        &self.schema
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn locate(&self, chunks: &[ChunkCoord]) -> Result<Vec<Option<ChunkRef>>> {
        if let Source::Chunked { index, plain_edges } = &self.source {
            let found = self.file.operation(|| index.find(&self.file, chunks))?;
            let reference = |(chunk, stored): (&ChunkCoord, Option<Stored>)| {
                stored.map(|stored| self.reference(chunk, stored, *plain_edges))
            };
            return Ok(chunks.iter().zip(found).map(reference).collect());
        }
        self.file.operation(|| chunks.iter().map(|chunk| self.locate_one(chunk)).collect())
    }

    fn is_remote(&self) -> bool {
        self.file.blob.is_remote()
    }

    fn blob(&self, key: &BlobKey) -> Result<Arc<dyn Blob>> {
        match (key, &self.source) {
            (BlobKey::Main, _) => Ok(Arc::clone(&self.file.blob)),
            (BlobKey::Named(name), Source::External(external)) => external.blob(&self.file, name),
            (BlobKey::Named(name), _) => Err(Error::not_found(Arc::clone(&self.file.name), name.to_string())),
        }
    }

    fn decode(
        &self,
        chunk: &ChunkCoord,
        reference: &ChunkRef,
        stored: &[Bytes],
        out: &mut [u8],
    ) -> Result<()> {
        if let Source::Virtual(sources) = &self.source {
            let cells = self.schema.grid.region(chunk).cells().unwrap_or(0);
            return self.file.virtual_operation(cells, || sources.decode(self, chunk, out));
        }
        match &self.element.step {
            Step::Copy => self.raw(reference, stored, out),
            Step::Swap(unit) => {
                self.raw(reference, stored, out)?;
                swap_bytes(*unit, out);
                Ok(())
            }
            _ => self.file.operation(|| {
                self.with_raw(chunk, reference, stored, |raw| {
                    self.element.convert(raw, out, self.place(reference))
                })
            }),
        }
    }

    fn decode_elements(
        &self,
        chunk: &ChunkCoord,
        reference: &ChunkRef,
        stored: &[Bytes],
    ) -> Result<Elements> {
        if let Source::Virtual(sources) = &self.source {
            let cells = self.schema.grid.region(chunk).cells().unwrap_or(0);
            return self.file.virtual_operation(cells, || sources.decode_elements(self, chunk));
        }
        self.file.operation(|| self.read_elements(chunk, reference, stored))
    }

    fn stored_form(&self, chunk: &ChunkCoord, reference: &ChunkRef) -> Option<StoredForm> {
        let shape = self.schema.decoded_shape(chunk);
        // Variable-length elements refer to this file's heap, so they cannot be copied verbatim.
        let ([layer], Some(_)) = (reference.layers.as_slice(), self.element.size) else { return None };
        let plain = self.element.is_plain() && cfg!(target_endian = "little");
        let steps = match self.source {
            Source::Chunked { .. } => {
                let mut steps = self.pipeline.stored_steps(layer.filter_mask)?;
                if !plain {
                    steps.insert(0, StoredStep::Typed);
                }
                steps
            }
            _ if layer.plain && plain => Vec::new(),
            _ => return None,
        };
        let whole = product(&shape).and_then(|cells| cells.checked_mul(self.element.stored as u64));
        let filtered = steps.iter().any(|step| *step != StoredStep::Typed);
        (filtered || Some(reference.stored_bytes()) == whole).then_some(StoredForm { shape, steps })
    }

    fn place(&self, blob: &BlobKey) -> Result<ObjectPlace> {
        let is_encoded = self.file.is_joined && *blob == BlobKey::Main;
        Ok(if is_encoded { ObjectPlace::Encoded } else { ObjectPlace::Object })
    }

    fn visit_chunks(
        &self,
        visit: &mut dyn FnMut(ChunkCoord, ChunkRef) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        self.file.operation(|| self.walk(&mut |chunk, reference| outside(|| visit(chunk, reference))))
    }

    /// The chunks of a virtual dataset are stored by its sources.
    fn visits_every_chunk(&self) -> bool {
        !matches!(self.source, Source::Virtual(_))
    }
}

impl Dataset {
    /// Passes every stored chunk to `visit`, as part of the current operation.
    pub(crate) fn walk(
        &self,
        visit: &mut dyn FnMut(ChunkCoord, ChunkRef) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        if let Source::Chunked { index, plain_edges } = &self.source {
            return index.visit(&self.file, &mut |chunk, stored| {
                let reference = self.reference(&chunk, stored, *plain_edges);
                visit(chunk, reference)
            });
        }
        if matches!(self.source, Source::Nothing | Source::Virtual(_)) {
            return Ok(());
        }
        // Refuse contiguous data longer than the file, so that the number of slabs to visit is bounded.
        let bytes = self.space_bytes();
        if matches!(self.source, Source::Piece(_)) && bytes.is_none_or(|bytes| bytes > self.file.stored) {
            return Err(Place::new(&self.name, "contiguous data", 0).corrupt("longer than the file"));
        }
        for number in 0..self.schema.grid.chunks().unwrap_or(0) {
            self.file.spend(0, "slabs of contiguous data")?;
            let chunk = self.schema.grid.coord(number);
            if let Some(reference) = self.locate_one(&chunk)?
                && visit(chunk, reference)?.is_break()
            {
                break;
            }
        }
        Ok(())
    }

    /// The cost of decoding this many chunks. Decoding is far cheaper per byte than parsing structures.
    pub(crate) fn decoding(&self, chunks: u64) -> u64 {
        let bytes = product(self.schema.grid.chunk_shape()).unwrap_or(u64::MAX);
        let bytes = bytes.saturating_mul(self.element.stored as u64);
        if self.pipeline.specs.is_empty() { 0 } else { (bytes / 64).saturating_mul(chunks) }
    }

    fn space_bytes(&self) -> Option<u64> {
        product(self.schema.shape())?.checked_mul(self.element.stored as u64)
    }

    fn read_elements(&self, chunk: &ChunkCoord, reference: &ChunkRef, stored: &[Bytes]) -> Result<Elements> {
        self.with_raw(chunk, reference, stored, |raw| {
            let heaps = Heaps::new(&self.file, self.place(reference));
            let shape = self.schema.grid.region(chunk).shape;
            let whole = self.schema.decoded_shape(chunk);
            if shape == whole {
                return self.element.elements(raw, &heaps);
            }
            // Cells outside the array are undefined, and must not be looked up in the heap.
            let item = self.element.stored;
            let cells = product(&shape).unwrap_or(0) as usize;
            let mut inside = self.file.zeroed(cells.saturating_mul(item), "chunk")?;
            let (from, to) = (Strides::packed(&whole, item), Strides::packed(&shape, item));
            copy_box(raw, &from, &mut inside, &to, &shape, item)?;
            self.element.elements(&inside, &heaps)
        })
    }
}
