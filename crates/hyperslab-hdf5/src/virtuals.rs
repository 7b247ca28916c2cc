//! Virtual datasets: arrays whose elements are stored in other datasets.

mod axis;
mod cast;
mod mapping;
mod pieces;

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use hyperslab_core::{
    Array, ChunkCoord, Elements, Error, Extents, Fill, Layout, Place, Region, Result, VirtualSource,
    copy_box, product, read_serial,
};

use crate::dataset::Dataset;
use crate::file::{File, lock};
use crate::header::{Header, ObjectKind};
use crate::message::space::Space;
use crate::store::{Resolved, find, not_followed, open_external};
use mapping::Mapping;
pub(crate) use mapping::encode_mappings;
use pieces::Piece;

const MAPPING: &str = "virtual dataset mapping";

/// The fixed cost of reading a source, besides its bytes.
const READ: u64 = 448;

/// The maximum nesting depth of virtual datasets.
const MAX_DEPTH: u32 = 16;

/// Sources by file and path; `None` for those that do not exist.
type Sources = HashMap<(String, String), Option<Arc<Dataset>>>;

/// A source's file and path, and the source if it exists.
type Opened<'a> = (&'a str, &'a str, Result<Option<Arc<Dataset>>>);

/// The mappings of a virtual dataset.
#[derive(Debug)]
pub(crate) struct Virtual {
    file: Arc<File>,
    /// Its shape, which follows its sources if it is unlimited.
    pub(crate) shape: Extents,
    mappings: Vec<Mapping>,
    /// The mappings as they are stored.
    pub(crate) stored: Arc<Vec<VirtualSource>>,
    sources: Mutex<Sources>,
}

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Runs `work` one level deeper, unless sources form a cycle.
fn nested<T>(file: &File, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let depth = DEPTH.get();
    if depth >= MAX_DEPTH {
        return Err(file.place("virtual dataset", 0).corrupt("virtual datasets form a cycle"));
    }
    DEPTH.set(depth + 1);
    let result = work();
    DEPTH.set(depth);
    result
}

impl Virtual {
    pub(crate) fn read(file: &Arc<File>, heap: Option<u64>, index: u32, space: &Space) -> Result<Self> {
        let (mut mappings, mut stored) = (Vec::new(), Vec::new());
        if let Some(heap) = heap {
            let collection = file.collection(heap)?;
            let place = file.place("virtual dataset mappings", heap);
            (mappings, stored) = mapping::parse(file, collection.object(file, index)?, place)?;
        }
        let sources = Mutex::default();
        let mut made = Self {
            file: Arc::clone(file),
            shape: space.shape.clone(),
            mappings,
            stored: Arc::new(stored),
            sources,
        };
        nested(file, || made.expand())?;
        Ok(made)
    }

    /// Resolves unlimited parts by the current extents of the sources.
    fn expand(&mut self) -> Result<()> {
        let shape_of = |file: &str, dataset: &str| {
            let source = self.source(file, dataset)?;
            Ok(source.map(|source| Extents::from_slice(source.schema().shape())))
        };
        let (mappings, shape) = mapping::expand(&self.file, &self.mappings, &self.shape, &shape_of)?;
        self.mappings = mappings;
        self.shape = shape;
        Ok(())
    }

    /// Returns true if this file may not be opened. A source in it may exist, so its part must not read as the fill value.
    pub(crate) fn refuses(&self, file: &str) -> bool {
        file != "." && self.file.externals.refuses(file)
    }

    /// A source; `None` if it does not exist, which reads as the fill value.
    fn source(&self, file: &str, dataset: &str) -> Result<Option<Arc<Dataset>>> {
        let key = (file.to_owned(), dataset.to_owned());
        if let Some(source) = lock(&self.sources).get(&key) {
            return Ok(source.clone());
        }
        let source = self.open(file, dataset)?;
        lock(&self.sources).insert(key, source.clone());
        Ok(source)
    }

    /// Every source once, by file and path: the dataset, `None` if it is missing, or the error.
    pub(crate) fn sources(&self) -> Vec<Opened<'_>> {
        let mut names: Vec<_> =
            self.mappings.iter().map(|mapping| (mapping.file.as_str(), mapping.dataset.as_str())).collect();
        names.sort_unstable();
        names.dedup();
        names.into_iter().map(|(file, dataset)| (file, dataset, self.open(file, dataset))).collect()
    }

    fn open(&self, file: &str, dataset: &str) -> Result<Option<Arc<Dataset>>> {
        let file = if file == "." {
            Arc::clone(&self.file)
        } else {
            match open_external(&self.file, file)? {
                Some(file) => file,
                None if self.refuses(file) => {
                    let what = format!("the source {dataset} of a virtual dataset");
                    return Err(not_followed(&self.file, &what, file));
                }
                None => return Ok(None),
            }
        };
        let Resolved::Object(object) = find(&file, dataset)? else { return Ok(None) };
        let header = Header::read(&object.file, object.address)?;
        if header.kind(&object.file)? != ObjectKind::Dataset {
            return Ok(None);
        }
        nested(&file, || Dataset::open(&object.file, &header, &object.path))
            .map(|source| Some(Arc::new(source)))
    }

    /// Passes each part of the chunk that has a source to `visit`.
    fn visit(
        &self,
        dataset: &Dataset,
        region: &Region,
        visit: &mut dyn FnMut(&Dataset, &Piece) -> Result<()>,
    ) -> Result<()> {
        let item = dataset.schema().dtype.size().unwrap_or(size_of::<(u64, u64)>()) as u64;
        for mapping in &self.mappings {
            self.file.spend(0, MAPPING)?;
            if !mapping.touches(region) {
                continue;
            }
            let Some(source) = self.source(&mapping.file, &mapping.dataset)? else { continue };
            let place = Place::new(dataset.name(), "virtual dataset mapping", 0);
            let (own, shape) = (&*self.file, source.schema().shape());
            pieces::visit(own, mapping, region, shape, &self.shape, place, &mut |piece| {
                // All reads of sources, however many, belong to one operation.
                let bytes =
                    product(&piece.counts()).unwrap_or(u64::MAX).saturating_mul(item).saturating_add(READ);
                self.file.spend(
                    bytes.saturating_add(source.decoding(piece.chunks(&source.schema().grid))),
                    MAPPING,
                )?;
                nested(&self.file, || visit(&source, piece))
            })?;
        }
        Ok(())
    }

    /// Reads the elements of a chunk.
    pub(crate) fn decode(&self, dataset: &Dataset, chunk: &ChunkCoord, out: &mut [u8]) -> Result<()> {
        let schema = dataset.schema();
        let item = schema.dtype.size().unwrap_or(0);
        match &schema.fill {
            Fill::Element(element) => {
                let element = element.as_fixed().map_or(&[][..], |bytes| bytes);
                if element.len() == item && item > 0 {
                    out.chunks_exact_mut(item).for_each(|cell| cell.copy_from_slice(element));
                }
            }
            _ => out.fill(0),
        }
        let region = schema.grid.region(chunk);
        let place = Layout::packed(&region.shape, item);
        self.visit(dataset, &region, &mut |source, piece| {
            let at = Place::new(dataset.name(), "virtual dataset mapping", 0);
            let values = read_serial(source, piece.positions(at)?)?;
            let bytes = match values.elements.as_fixed() {
                Some(bytes) if values.dtype == schema.dtype => bytes.clone(),
                _ => cast::cast(&values, &schema.dtype).ok_or_else(|| other_type(dataset, source))?.into(),
            };
            let from = Layout::packed(&piece.counts(), item);
            let to = piece.place(&region, &place, at)?;
            copy_box(&bytes, &from, out, &to, &piece.counts(), item)
        })
    }

    /// Reads the elements of a chunk, for variable-length types.
    pub(crate) fn decode_elements(&self, dataset: &Dataset, chunk: &ChunkCoord) -> Result<Elements> {
        let schema = dataset.schema();
        let region = schema.grid.region(chunk);
        let cells = product(&region.shape).and_then(|cells| usize::try_from(cells).ok()).unwrap_or(0);
        let fill = match &schema.fill {
            Fill::Element(element) => element.clone(),
            _ => Elements::zero(&schema.dtype),
        };
        let mut rows = vec![fill];
        let mut picks = vec![(0, 0); cells];
        let place = Layout::packed(&region.shape, 1);
        self.visit(dataset, &region, &mut |source, piece| {
            if source.schema().dtype != schema.dtype {
                return Err(other_type(dataset, source));
            }
            let mapping = Place::new(dataset.name(), "virtual dataset mapping", 0);
            let values = read_serial(source, piece.positions(mapping)?)?;
            let (counts, to) = (piece.counts(), piece.place(&region, &place, mapping)?);
            for cell in 0..product(&counts).unwrap_or(0) {
                let (mut left, mut at) = (cell, to.offset);
                for axis in (0..counts.len()).rev() {
                    at += (left % counts[axis]) as usize * to.strides[axis].unsigned_abs();
                    left /= counts[axis];
                }
                let pick =
                    picks.get_mut(at).ok_or_else(|| mapping.corrupt("a cell lies outside its chunk"))?;
                *pick = (rows.len(), cell as usize);
            }
            rows.push(values.elements);
            Ok(())
        })?;
        Elements::gather(&schema.dtype, &rows.iter().collect::<Vec<_>>(), &picks)
    }
}

fn other_type(dataset: &Dataset, source: &Dataset) -> Error {
    let (ours, theirs) = (&dataset.schema().dtype, &source.schema().dtype);
    dataset.file.unsupported(format!("a virtual dataset of {ours} over a source of {theirs}"))
}
