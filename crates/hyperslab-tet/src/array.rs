//! One dataset as an array.

mod statistics;

use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use hyperslab_core::{
    Array, ArraySchema, Attribute, Attributes, Blob, BlobKey, ChunkCoord, ChunkRef, ChunkStatistics, Edges,
    Error, Fill, Filter, Grid, Labels, Place, Result, StoredForm, StoredStep, Usage,
};

use crate::index::{Codec, Row, RowLookup};
use crate::store::Inner;

/// Whether stored bytes, which are little-endian, are the elements in memory.
const NATIVE: bool = cfg!(target_endian = "little");

/// A dataset of a file.
#[derive(Debug)]
pub struct TetArray {
    file: Arc<Inner>,
    id: usize,
    name: String,
    schema: ArraySchema,
    /// The claims of the zone maps about its chunks, loaded on first use.
    zones: OnceLock<statistics::Zones>,
}

impl TetArray {
    /// The dataset with this id.
    ///
    /// # Errors
    ///
    /// [`NotFound`](Error::NotFound) for an id that is not in the file, [`Unsupported`](Error::Unsupported) for an
    /// element type that is not in the format, [`Corrupt`](Error::Corrupt) for a chunk extent of zero.
    pub(crate) fn new(file: Arc<Inner>, id: usize) -> Result<Self> {
        let store = file.blob.name();
        let dataset = file
            .datasets
            .get(id)
            .ok_or_else(|| Error::not_found(store.as_ref(), format!("dataset #{id}")))?;
        let path = file.tree.path(id).unwrap_or_default();
        let place = Place::new(store, "dataset directory", crate::superblock::DIRECTORY_START);
        let dtype = dataset.dtype().ok_or_else(|| {
            place.unsupported(format!("element type {} of dataset {path}", dataset.dtype_code))
        })?;
        let grid = dataset.grid().ok_or_else(|| {
            place.corrupt(format!(
                "dataset {path}: chunk shape {:?} has a zero",
                dataset.chunk_shape.as_slice()
            ))
        })?;
        file.index.check_shared(id, Place::new(store, "chunk index", file.superblock.index_offset))?;
        let name = format!("{store}{path}");
        let mut schema = ArraySchema::new(dtype, grid);
        schema.edges = Edges::Clipped;
        schema.fill = Fill::Undefined;
        schema.chunk_index = "flat table".to_owned();
        if file.index.dataset(id).is_some_and(|rows| rows.compressed) {
            schema.filters = vec![Filter::new("zstd")];
        }
        describe(&file, &dataset.name, &mut schema);
        Ok(Self { file, id, name, schema, zones: OnceLock::new() })
    }

    /// The dataset's position in the directory.
    #[must_use]
    pub const fn id(&self) -> usize {
        self.id
    }

    /// The number of a chunk's row in the index; `None` if it has none.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](Error::Corrupt) if two rows claim the chunk.
    pub fn row_number(&self, chunk: &[u64]) -> Result<Option<u64>> {
        match self.file.index.find(self.id, &self.schema.grid, chunk) {
            RowLookup::Missing => Ok(None),
            RowLookup::Row(number) => Ok(Some(number)),
            RowLookup::Twice(first, second) => Err(self
                .file
                .row_place(second)
                .corrupt(format!("rows {first} and {second} both claim chunk {chunk:?} of {}", self.name))),
        }
    }

    /// The reference of a row, after checking the row.
    fn reference(&self, number: u64) -> Result<(ChunkCoord, ChunkRef)> {
        let row = self.file.index.row(number);
        let row = row.ok_or_else(|| Error::invalid(format!("{}: no row {number}", self.name)))?;
        let codec = self.file.check_row(number, &row, &self.schema)?;
        Ok((row.coord(self.schema.grid.rank()), self.plain_or_encoded(number, &row, codec)))
    }

    fn plain_or_encoded(&self, number: u64, row: &Row, codec: Codec) -> ChunkRef {
        let mut reference = match codec {
            Codec::Raw if NATIVE => ChunkRef::plain(BlobKey::Main, row.offset, row.stored_length),
            _ => ChunkRef::encoded(BlobKey::Main, row.offset, row.stored_length, 0),
        };
        // A raw chunk in a compressed array skips the only filter.
        reference.layers[0].filter_mask = u32::from(codec == Codec::Raw && !self.schema.filters.is_empty());
        reference.layers[0].tag = number;
        reference
    }
}

/// An attribute stored as JSON, with its type stored separately.
pub(crate) fn typed(value: &serde_json::Value, dtype: Option<&String>) -> Attribute {
    let typed = dtype.and_then(|dtype| Attribute::from_json_of_type(value, dtype));
    typed.unwrap_or_else(|| value.clone().into())
}

/// Sets dimension names, labels and attributes from the footer.
fn describe(file: &Inner, name: &str, schema: &mut ArraySchema) {
    let Some(footer) = file.footer.whole() else { return };
    let rank = schema.grid.rank();
    let mut attributes: Vec<(String, Attribute)> = Vec::new();
    if let Some(metadata) = footer.metadata.datasets.get(name) {
        schema.dimensions = metadata.dimensions(rank);
        for axis in 0..rank {
            if let Some(labels) = metadata.labels(axis, schema.grid.shape()[axis]) {
                schema.labels[axis] = Labels::Texts(labels.into());
            }
        }
        attributes.extend(metadata.attrs.iter().map(|(name, text)| (name.clone(), text.as_str().into())));
    }
    if let Some(own) = footer.metadata.own.as_ref().and_then(|own| own.datasets.get(name)) {
        if own.dimensions.len() == rank {
            schema.dimensions.clone_from(&own.dimensions);
        }
        for (axis, labels) in &own.labels {
            if let Some(axis) = axis.parse().ok().filter(|axis: &usize| *axis < rank)
                && labels.len() as u64 == schema.grid.shape()[axis]
            {
                schema.labels[axis] = Labels::Texts(labels.as_slice().into());
            }
        }
        for (axis, node) in &own.label_nodes {
            if let Some(axis) = axis.parse().ok().filter(|axis: &usize| *axis < rank)
                && file.tree.array(&hyperslab_core::normal_path(node)).is_some()
            {
                schema.labels[axis] = Labels::Node(node.clone());
            }
        }
        for (name, value) in &own.attributes {
            // If another program has changed the text since, the text wins.
            let text = attributes.iter_mut().find(|(other, _)| other == name);
            match text {
                Some((_, old)) if old.as_text().as_deref() == Some(&crate::write::attribute_text(value)) => {
                    *old = typed(value, own.attribute_types.get(name));
                }
                Some(_) => {}
                None => attributes.push((name.clone(), typed(value, own.attribute_types.get(name)))),
            }
        }
    }
    schema.attributes = Attributes::from_iter(attributes);
}

impl Array for TetArray {
    fn schema(&self) -> &ArraySchema {
        &self.schema
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn locate(&self, chunks: &[ChunkCoord]) -> Result<Vec<Option<ChunkRef>>> {
        let locate = |chunk: &ChunkCoord| match self.row_number(chunk)? {
            Some(number) => {
                let (coord, reference) = self.reference(number)?;
                if coord != *chunk {
                    // The rows are mapped, so they may have changed.
                    let problem = format!("row {number} was of chunk {chunk:?} when the file was opened");
                    return Err(self.file.row_place(number).corrupt(problem));
                }
                Ok(Some(reference))
            }
            None => Ok(None),
        };
        chunks.iter().map(locate).collect()
    }

    fn blob(&self, key: &BlobKey) -> Result<Arc<dyn Blob>> {
        match key {
            BlobKey::Main => Ok(Arc::clone(&self.file.blob)),
            BlobKey::Named(name) => Err(Error::not_found(self.name.as_str(), format!("blob {name}"))),
        }
    }

    fn is_remote(&self) -> bool {
        self.file.blob.is_remote()
    }

    fn decode(
        &self,
        chunk: &ChunkCoord,
        reference: &ChunkRef,
        stored: &[Bytes],
        out: &mut [u8],
    ) -> Result<()> {
        // Check the row again, because the caller may have made up the reference.
        let number = reference.layers.first().map_or(u64::MAX, |layer| layer.tag);
        let (coord, _) = self.reference(number)?;
        let row = self.file.index.row(number);
        let (Some(row), [stored]) = (row, stored) else {
            return Err(Error::invalid(format!("{}: a chunk is one span", self.name)));
        };
        if coord != *chunk || row.raw_length != out.len() as u64 {
            return Err(Error::invalid(format!("{}: row {number} is not of chunk {chunk:?}", self.name)));
        }
        self.file.decode_row(number, &row, stored, out)?;
        if !NATIVE {
            let unit = self.schema.dtype.swap_unit().unwrap_or(1);
            out.chunks_exact_mut(unit).for_each(<[u8]>::reverse);
        }
        Ok(())
    }

    fn verify_checksum(&self, _: &ChunkCoord, reference: &ChunkRef) -> Result<()> {
        reference.layers.first().map_or(Ok(()), |layer| self.file.verify_checksum(layer.tag))
    }

    fn visit_chunks(
        &self,
        visit: &mut dyn FnMut(ChunkCoord, ChunkRef) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let rank = self.schema.grid.rank();
        for number in self.file.index.rows_of(self.id) {
            let Some(row) = self.file.index.row(number) else { continue };
            // List a damaged row as it is; decoding it reports the problem.
            let reference = self.reference(number).map_or_else(
                |_| self.plain_or_encoded(number, &row, Codec::Zstd),
                |(_, reference)| reference,
            );
            if visit(row.coord(rank), reference)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn stored_form(&self, chunk: &ChunkCoord, reference: &ChunkRef) -> Option<StoredForm> {
        let row = self.file.index.row(reference.layers.first()?.tag)?;
        let steps = match Codec::from_number(row.codec)? {
            Codec::Raw => Vec::new(),
            Codec::Zstd => vec![StoredStep::Zstd],
        };
        let whole = row.raw_length == self.schema.decoded_bytes(chunk)? as u64;
        (whole && NATIVE).then(|| StoredForm { shape: self.schema.decoded_shape(chunk), steps })
    }

    fn statistics(&self, chunks: &[ChunkCoord]) -> Result<Vec<Option<ChunkStatistics>>> {
        let zones = self.zones.get_or_init(|| statistics::read(&self.file, self.id, &self.schema));
        Ok(chunks.iter().map(|chunk| zones.get(chunk).copied()).collect())
    }

    /// A false zone map is detected only by a deep check.
    fn statistics_are_hints(&self) -> bool {
        true
    }

    fn usage(&self) -> Result<Usage> {
        let rows = self.file.index.dataset(self.id);
        Ok(rows.map_or(Usage::default(), |rows| Usage { chunks: rows.count, bytes: rows.stored_bytes }))
    }
}

/// The size of a decoded chunk in bytes; `None` on overflow of `u64`.
pub(crate) fn chunk_bytes(grid: &Grid, item: usize, chunk: &[u64]) -> Option<u64> {
    grid.region(chunk).cells()?.checked_mul(item as u64)
}
