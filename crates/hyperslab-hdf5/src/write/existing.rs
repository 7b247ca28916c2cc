//! Adds chunks to existing datasets.

use std::sync::{Arc, Mutex};

use hyperslab_core::{Array, ArraySpec, Error, Fill, Grid, Result};

use super::array::{NewArray, Shared};
use super::edit::HeaderEdit;
use super::index::{Entries, IndexWriter, Patch};
use super::plan::{Plan, PlannedLayout};
use crate::conversion::Element;
use crate::dataset::Dataset;
use crate::encode::Encoder;
use crate::file::{File, lock};
use crate::filters::Pipeline;
use crate::header::{Header, Message, kind};
use crate::message::datatype::{DatatypeMessage, Type};
use crate::message::layout::{Chunked, IndexKind, Layout};
use crate::message::space::Space;
use crate::message::{fill, pipeline};

/// An existing dataset, and the parts of its header that change when chunks are added.
#[derive(Debug)]
pub(crate) struct Existing {
    pub(crate) array: NewArray,
    header: Header,
    space: Message,
    layout: Message,
    /// The address of the index in the layout message.
    index: Mutex<Option<u64>>,
}

impl Existing {
    /// Opens the dataset at `path` for writing. Also returns it as opened for reading.
    pub(crate) fn open(
        file: &Arc<File>,
        address: u64,
        path: &str,
        shared: &Arc<Shared>,
    ) -> Result<(Self, Dataset)> {
        let header = Header::read(file, address)?;
        let need = |kind: u16| {
            let message = header.find(file, kind)?;
            message.ok_or_else(|| Error::invalid(format!("{path} is not a dataset")))
        };
        let (space, layout, dtype) = (need(kind::DATASPACE)?, need(kind::LAYOUT)?, need(kind::DATATYPE)?);
        let (shape, chunked) = (
            Space::parse(&mut space.fields(file, "dataspace message"), file.sizes())?,
            Layout::parse(file, &layout)?,
        );
        let Layout::Chunked(chunked) = chunked else {
            return Err(Error::invalid(format!(
                "{path} is contiguous and cannot grow; copy it to a chunked dataset with an unlimited dimension"
            )));
        };
        // Superblock version 1 holds the width of old trees.
        let unusual = chunked.index == IndexKind::BTree1 && file.superblock.version == 1;
        if chunked.plain_edges || chunked.version < 3 || unusual {
            return Err(file.unsupported("adding to chunks of an unusual layout"));
        }
        let dataset = Dataset::open(file, &header, path)?;
        let dtype = Type::parse(&mut dtype.fields(file, "datatype message"))?;
        let plan = plan(file, &header, &dataset, dtype, &shape, &chunked)?;
        let filtered = !plan.pipeline.specs.is_empty();
        let entries = Entries::new(shared.sizes, filtered, chunked.version, plan.chunk_bytes());
        let (grid, most) = (&plan.spec.grid, &plan.spec.max_shape);
        let index = IndexWriter::load(&chunked, grid, most, entries, file, &shared.output)?;
        let array = NewArray::existing(plan, shared, index);
        Ok((Self { array, header, space, layout, index: Mutex::new(chunked.address) }, dataset))
    }

    /// Writes the index. Returns the in-place changes, in order, that make the dataset this large.
    pub(crate) fn flush(&self, shape: &[u64]) -> Result<Vec<Patch>> {
        let mut patches = self.array.flush()?;
        let shared = self.array.shared();
        let mut edit = HeaderEdit::new(&self.header, &shared.output);
        // Keep parameters chosen by other writers: the message changes only when the index is created or moved.
        let mut index = lock(&self.index);
        if self.array.index_address() != *index {
            edit.set(&self.layout, 0, &self.array.layout_message()?)?;
            *index = self.array.index_address();
        }
        let mut extents = Encoder::new(shared.sizes);
        for extent in shape {
            extents.length(*extent);
        }
        // The extents follow version, rank, flags and type; in version 1 after five reserved bytes.
        let at = if self.space.body.first() == Some(&1) { 8 } else { 4 };
        edit.set(&self.space, at, &extents.finish()?)?;
        patches.extend(edit.finish(shared.sizes)?);
        Ok(patches)
    }
}

/// Plans the writing from the contents of the file.
fn plan(
    file: &Arc<File>,
    header: &Header,
    dataset: &Dataset,
    dtype: Type,
    space: &Space,
    chunked: &Chunked,
) -> Result<Plan> {
    let element = Element::new(&dtype, file.sizes(), &file.name)?;
    if let Some(problem) = element.unstorable() {
        return Err(file.unsupported(format!("writing {problem}")));
    }
    let specs = match header.find(file, kind::PIPELINE)? {
        Some(message) => pipeline::parse(&mut message.fields(file, "filter pipeline message"))?,
        None => Vec::new(),
    };
    specs.iter().try_for_each(crate::filters::check)?;
    let mut spec = ArraySpec::new(element.dtype.clone(), Grid::new(&space.shape, &chunked.shape)?);
    spec.max_shape.clone_from(&space.max_shape);
    spec.fill = Fill::Zero;
    Ok(Plan {
        name: dataset.name().to_owned(),
        spec,
        dtype,
        element,
        pipeline: Pipeline::new(specs),
        fill: fill::read(file, header)?.1,
        layout: PlannedLayout::Chunked { version: chunked.version, index: chunked.index, early: false },
        named_type: None,
        copies_stored_chunks: false,
    })
}
