//! Plans a new dataset: everything is chosen, or refused, before anything is written.

use hyperslab_core::{
    ArraySpec, DType, Error, Extents, Fill, FillState, Result, StoredFill, StoredLayout, TypeName,
    VirtualSource, product,
};

use super::array::Shared;
use super::names::HeapKeeper;
use super::object::{CONSTANT, NewMessage, Style};
use super::options::{Compatibility, DatasetLayout, Hdf5Options};
use super::types::{file_type, fitting};
use crate::conversion::{Element, utf8_of};
use crate::file::Sizes;
use crate::filters::choose::{Chunks, choose, refitted};
use crate::filters::{Pipeline, check, describe};
use crate::header::{SHARED, kind};
use crate::message::datatype::{DatatypeMessage, Type};
use crate::message::fill;
use crate::message::layout::IndexKind;
use crate::message::pipeline::{self, FilterSpec};
use crate::message::space::{MAX_RANK, Space};
use crate::shared;

/// Compact data is stored in a message, whose size has 16 bits.
const MOST_COMPACT: u64 = 64_000;

/// The messages of a dataset, except for the location of its data.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The store and path, for error messages.
    pub(crate) name: String,
    pub(crate) spec: ArraySpec,
    pub(crate) dtype: Type,
    pub(crate) element: Element,
    pub(crate) pipeline: Pipeline,
    /// The stored fill value, if set.
    pub(crate) fill: Option<Vec<u8>>,
    pub(crate) layout: PlannedLayout,
    /// The path of the committed type in use.
    pub(crate) named_type: Option<String>,
    /// Whether type and filters match the source file, so that its stored chunks can be copied verbatim.
    pub(crate) copies_stored_chunks: bool,
}

/// The layout of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlannedLayout {
    Compact,
    Contiguous,
    Chunked { version: u8, index: IndexKind, early: bool },
    Virtual,
}

impl Plan {
    pub(crate) fn new(
        name: String,
        spec: &ArraySpec,
        options: &Hdf5Options,
        shared: &Shared,
    ) -> Result<Self> {
        let sizes = shared.sizes;
        let refuse = |why: String| Err(Error::invalid(format!("{name}: {why}")));
        let shape = spec.grid.shape();
        if shape.len() > MAX_RANK {
            return refuse(format!("{} dimensions, HDF5 has at most {MAX_RANK}", shape.len()));
        }
        if spec.max_shape.len() != shape.len() || spec.dimensions.len() != shape.len() {
            return refuse("limits or names for another number of dimensions".to_owned());
        }
        if shape.iter().zip(&spec.max_shape).any(|(extent, most)| most.is_some_and(|most| most < *extent)) {
            return refuse(format!("a shape of {shape:?} beyond its own limits"));
        }
        if spec.nullable {
            return Err(Error::unsupported(name, "storing missing elements (HDF5 has no null values)"));
        }
        let named = |error: Error| match error {
            Error::Invalid(why) => Error::invalid(format!("{name}: {why}")),
            other => other,
        };
        let own = spec.stored.dtype.as_ref().and_then(|stored| fitting(stored, &spec.dtype, sizes));
        let named_type = match &spec.stored.named_type {
            Some(TypeName::Path(path)) if own.is_some() => Some(path.clone()),
            _ => None,
        };
        let (dtype, element) = match own {
            Some(own) => own,
            None => {
                let dtype = file_type(&spec.dtype, sizes).map_err(named)?;
                let element = Element::new(&dtype, sizes, &name)?;
                (dtype, element)
            }
        };
        if product(shape).is_none() {
            return refuse("more cells than can be counted".to_owned());
        }
        let mut keeper = HeapKeeper { shared, node: &name };
        let fill = stored_fill(spec, &element, &mut keeper).map_err(named)?;
        let pipeline = filters_of(spec, &element, fill.as_deref()).map_err(named)?;
        let layout = layout(spec, &element, &pipeline, options).map_err(named)?;
        let pipeline =
            if matches!(layout, PlannedLayout::Chunked { .. }) { pipeline } else { Pipeline::default() };
        let copies_stored_chunks = spec.stored.dtype.as_deref() == Some(&dtype)
            && pipeline.specs.len() == spec.stored.filters.len()
            && pipeline.specs.iter().zip(&spec.stored.filters).all(|(own, stored)| own.stored() == *stored);
        let plan = Self {
            name,
            spec: spec.clone(),
            dtype,
            element,
            pipeline,
            fill,
            layout,
            named_type,
            copies_stored_chunks,
        };
        let style = if options.compatibility == Compatibility::Earliest { Style::Old } else { Style::New };
        match plan.messages(style, None, sizes) {
            Ok(_) => Ok(plan),
            Err(Error::Invalid(why)) => Err(Error::invalid(format!("{}: {why}", plan.name))),
            Err(error) => Err(error),
        }
    }

    /// Adds the messages that never change: type, fill value and filters.
    /// `named_type` is the address of the committed type that it uses.
    pub(crate) fn messages(
        &self,
        style: Style,
        named_type: Option<u64>,
        sizes: Sizes,
    ) -> Result<Vec<NewMessage>> {
        let old = style == Style::Old;
        let (flags, dtype) = match named_type {
            Some(address) => (CONSTANT | SHARED, shared::encode(address, old, sizes)?),
            None => (CONSTANT, self.dtype.encode(style.types(), sizes)?),
        };
        style.check_message("the datatype", dtype.len())?;
        let stored = self.stored_fill();
        // Distinguish an explicit fill value of zero from an unset one.
        let zeros =
            (stored.value == FillState::Set && self.fill.is_none()).then(|| vec![0; self.element.stored]);
        let value = self.fill.as_deref().or(zeros.as_deref());
        let value = fill::encode(if old { 2 } else { 3 }, stored, value, sizes)?;
        style.check_message("the fill value", value.len())?;
        let mut messages =
            vec![NewMessage::new(kind::DATATYPE, flags, dtype), NewMessage::new(kind::FILL, CONSTANT, value)];
        if !self.pipeline.specs.is_empty() {
            let filters = pipeline::encode(&self.pipeline.specs, if old { 1 } else { 2 }, sizes)?;
            style.check_message("the list of filters", filters.len())?;
            messages.push(NewMessage::new(kind::PIPELINE, CONSTANT, filters));
        }
        Ok(messages)
    }

    /// The size of all elements in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        product(self.spec.grid.shape()).unwrap_or(u64::MAX).saturating_mul(self.element.stored as u64)
    }

    /// The size of a whole chunk in bytes, before filters.
    pub(crate) fn chunk_bytes(&self) -> u64 {
        product(self.spec.grid.chunk_shape()).unwrap_or(0).saturating_mul(self.element.stored as u64)
    }

    pub(crate) fn space(&self) -> Space {
        if self.spec.stored.no_space {
            return Space { shape: Extents::new(), max_shape: Vec::new(), null: true };
        }
        let grid = self.spec.grid.shape();
        let stored = self.spec.stored.extent.as_deref().filter(|stored| {
            stored.len() == grid.len() && stored.iter().zip(grid).all(|(stored, extent)| stored <= extent)
        });
        Space { shape: stored.unwrap_or(grid).into(), max_shape: self.spec.max_shape.clone(), null: false }
    }

    /// The sources of a virtual dataset.
    pub(crate) fn virtual_sources(&self) -> &[VirtualSource] {
        match &self.spec.stored.layout {
            Some(StoredLayout::Virtual(sources)) => sources,
            _ => &[],
        }
    }

    /// When space is allocated and filled: as in the source file, or else when libhdf5 does so for this layout.
    fn stored_fill(&self) -> StoredFill {
        let own = match self.layout {
            PlannedLayout::Compact | PlannedLayout::Chunked { early: true, .. } => fill::EARLY,
            PlannedLayout::Contiguous => fill::LATE,
            PlannedLayout::Chunked { .. } | PlannedLayout::Virtual => fill::INCREMENTAL,
        };
        let usual = StoredFill { allocation: own, time: fill::IF_SET, value: FillState::Default };
        let kept = self.spec.stored.fill.unwrap_or(usual);
        // If space is declared as allocated early, the chunks must have fixed places.
        let allocation = if self.has_source_layout() && own != fill::EARLY { kept.allocation } else { own };
        StoredFill { allocation, ..kept }
    }

    /// Whether the layout is that of the source file.
    fn has_source_layout(&self) -> bool {
        matches!(
            (&self.spec.stored.layout, self.layout),
            (Some(StoredLayout::Compact), PlannedLayout::Compact)
                | (Some(StoredLayout::Contiguous | StoredLayout::External(_)), PlannedLayout::Contiguous)
                | (Some(StoredLayout::Chunked), PlannedLayout::Chunked { .. })
                | (Some(StoredLayout::Virtual(_)), PlannedLayout::Virtual)
        )
    }
}

/// The fill value in stored form. Text and lists are stored in the file's heap.
fn stored_fill(spec: &ArraySpec, element: &Element, keeper: &mut HeapKeeper<'_>) -> Result<Option<Vec<u8>>> {
    let Fill::Element(value) = &spec.fill else { return Ok(None) };
    let mut stored = Vec::new();
    match spec.dtype {
        DType::FixedText(points) => element.store(&utf8_of(value, points)?, keeper, &mut stored)?,
        _ => element.store(value, keeper, &mut stored)?,
    }
    if stored.len() != element.stored {
        return Err(Error::invalid(format!(
            "a fill value of {} bytes, elements have {}",
            stored.len(),
            element.stored
        )));
    }
    Ok(Some(stored).filter(|stored| stored.iter().any(|byte| *byte != 0)))
}

fn filters_of(spec: &ArraySpec, element: &Element, fill: Option<&[u8]>) -> Result<Pipeline> {
    let cells = product(spec.grid.chunk_shape()).unwrap_or(u64::MAX);
    let chunks = Chunks { dtype: &spec.dtype, element: element.stored, cells, fill };
    if spec.filters.len() > 32 {
        return Err(Error::invalid(format!("{} filters, HDF5 has at most 32", spec.filters.len())));
    }
    if let Some(kept) = kept_filters(spec, &chunks) {
        return Ok(Pipeline::new(kept));
    }
    let specs = spec.filters.iter().map(|filter| choose(filter, &chunks)).collect::<Result<Vec<_>>>()?;
    Ok(Pipeline::new(specs))
}

/// The source file's filters with all their parameters, if requested and applicable.
fn kept_filters(spec: &ArraySpec, chunks: &Chunks<'_>) -> Option<Vec<FilterSpec>> {
    let kept: Vec<_> = spec.stored.filters.iter().map(FilterSpec::from_stored).collect::<Option<_>>()?;
    let wanted = kept.len() == spec.filters.len()
        && kept.iter().map(describe).zip(&spec.filters).all(|(own, wanted)| own == *wanted);
    // Unsupported filters can be kept only together with the chunks encoded by them.
    let taken = spec.stored.layout == Some(StoredLayout::Chunked);
    if !wanted || taken {
        return wanted.then_some(kept);
    }
    let kept: Vec<_> = kept
        .into_iter()
        .map(|filter| refitted(filter, chunks, spec.grid.chunk_shape()))
        .collect::<Option<_>>()?;
    kept.iter().all(|filter| check(filter).is_ok()).then_some(kept)
}

/// Larger datasets are never contiguous, because that allocates every element, written or not.
const MOST_CONTIGUOUS: u64 = 1 << 40;

/// The source file's layout, if the data can be stored that way.
fn kept_layout(spec: &ArraySpec, bytes: u64, fixed: bool, filtered: bool) -> DatasetLayout {
    match &spec.stored.layout {
        Some(StoredLayout::Compact) if fixed && !filtered && bytes <= MOST_COMPACT => DatasetLayout::Compact,
        Some(StoredLayout::Contiguous | StoredLayout::External(_))
            if fixed && !filtered && bytes <= MOST_CONTIGUOUS =>
        {
            DatasetLayout::Contiguous
        }
        Some(StoredLayout::Chunked) => DatasetLayout::Chunked,
        _ => DatasetLayout::Auto,
    }
}

fn layout(
    spec: &ArraySpec,
    element: &Element,
    pipeline: &Pipeline,
    options: &Hdf5Options,
) -> Result<PlannedLayout> {
    let (shape, chunk) = (spec.grid.shape(), spec.grid.chunk_shape());
    let bytes = product(shape).unwrap_or(u64::MAX).saturating_mul(element.stored as u64);
    let fixed = shape.iter().zip(&spec.max_shape).all(|(extent, most)| *most == Some(*extent));
    let filtered = !pipeline.specs.is_empty();
    if matches!(spec.stored.layout, Some(StoredLayout::Virtual(_))) && !filtered {
        if options.compatibility == Compatibility::Earliest {
            return Err(Error::unsupported("hdf5", "virtual datasets in a file for libraries before 1.10"));
        }
        return Ok(PlannedLayout::Virtual);
    }
    let wanted = match options.layout {
        DatasetLayout::Auto => kept_layout(spec, bytes, fixed, filtered),
        wanted => wanted,
    };
    match wanted {
        _ if fixed && (shape.is_empty() || bytes == 0) => {
            return Ok(if wanted == DatasetLayout::Compact {
                PlannedLayout::Compact
            } else {
                PlannedLayout::Contiguous
            });
        }
        DatasetLayout::Compact | DatasetLayout::Contiguous if !fixed || filtered => {
            return Err(Error::invalid("only chunked data can grow or be filtered"));
        }
        DatasetLayout::Compact if bytes > MOST_COMPACT => {
            return Err(Error::invalid(format!(
                "{bytes} bytes of compact data, there is room for {MOST_COMPACT}"
            )));
        }
        DatasetLayout::Compact => return Ok(PlannedLayout::Compact),
        DatasetLayout::Contiguous => return Ok(PlannedLayout::Contiguous),
        DatasetLayout::Auto if fixed && !filtered && spec.grid.chunks() == Some(1) => {
            return Ok(PlannedLayout::Contiguous);
        }
        DatasetLayout::Auto | DatasetLayout::Chunked => {}
    }
    let chunk_bytes = product(chunk).and_then(|cells| cells.checked_mul(element.stored as u64));
    let large = chunk_bytes.is_none_or(|bytes| bytes > u64::from(u32::MAX));
    if chunk.iter().any(|extent| u32::try_from(*extent).is_err()) || large {
        return Err(Error::invalid(format!("chunks of {chunk:?}: HDF5 has chunks of less than 4 GiB")));
    }
    let beyond =
        chunk.iter().zip(&spec.max_shape).any(|(chunk, most)| most.is_some_and(|most| *chunk > most));
    if beyond {
        return Err(Error::invalid(format!(
            "chunks of {chunk:?} beyond the largest shape {:?}",
            spec.max_shape
        )));
    }
    let stored_early = spec.stored.fill.is_some_and(|fill| fill.allocation == fill::EARLY);
    let early = (options.allocate_early || stored_early) && !filtered;
    let (version, index) = match options.compatibility {
        Compatibility::Earliest => (3, IndexKind::BTree1),
        newer => match choose_index(shape, chunk, &spec.max_shape, early) {
            // A fixed array has an entry for every chunk, written or not; a tree only for written chunks.
            IndexKind::FixedArray if spec.grid.chunks().is_none_or(|chunks| chunks > MOST_FIXED) => {
                (3, IndexKind::BTree1)
            }
            index => (if newer == Compatibility::V200 && filtered { 5 } else { 4 }, index),
        },
    };
    Ok(PlannedLayout::Chunked { version, index, early: early && index == IndexKind::Implicit })
}

/// The maximum number of chunks for a fixed array, which takes at least eight bytes for each.
const MOST_FIXED: u64 = 1 << 24;

/// libhdf5's choice of an index, which never changes afterwards.
fn choose_index(shape: &[u64], chunk: &[u64], max_shape: &[Option<u64>], early: bool) -> IndexKind {
    match max_shape.iter().filter(|most| most.is_none()).count() {
        0 => {}
        1 => return IndexKind::ExtensibleArray,
        _ => return IndexKind::BTree2,
    }
    let same = |extents: &[u64]| extents.iter().zip(max_shape).all(|(extent, most)| *most == Some(*extent));
    if same(shape) && same(chunk) {
        IndexKind::Single(None)
    } else if early {
        IndexKind::Implicit
    } else {
        IndexKind::FixedArray
    }
}
