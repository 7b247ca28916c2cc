//! Fragments: one per write. Their metadata gives the tiles, the covered box and the time of the write.

mod footer;
mod legacy;
mod rtree;
mod stats;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use hyperslab_core::{Blob, Error, Fields, Place, Result, Storage};

pub(crate) use footer::Footer;
pub(crate) use rtree::RTree;
pub(crate) use stats::{Stats, Totals, sum_is_exact};

use crate::generic;
use crate::key::Key;
use crate::names::TimedName;
use crate::schema::{ArrayKind, Schema};

/// The lists that fragment metadata has per field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum List {
    TileOffsets,
    VarOffsets,
    VarSizes,
    ValidityOffsets,
}

/// Identifies a field in a fragment's lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Field {
    Attribute(usize),
    /// All dimensions of fragments before version 5, in one file.
    Coords,
    Dimension(usize),
    Timestamps,
    DeleteTimestamps,
    DeleteConditions,
}

/// Identifies a file of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldPart {
    /// Values, or offsets of variable-length cells.
    Fixed,
    Values,
    Validity,
}

impl FieldPart {
    /// The list of its tile offsets.
    pub(crate) const fn offsets(self) -> List {
        match self {
            Self::Fixed => List::TileOffsets,
            Self::Values => List::VarOffsets,
            Self::Validity => List::ValidityOffsets,
        }
    }
}

/// Lists that have been read.
type Lists = HashMap<(List, Field), Arc<[u64]>>;

/// A committed fragment.
#[derive(Debug)]
pub(crate) struct Fragment {
    pub(crate) name: TimedName,
    /// Its directory, relative to the store's root.
    pub(crate) key: String,
    pub(crate) schema: Arc<Schema>,
    pub(crate) footer: Footer,
    metadata: MetadataFile,
    encryption: Option<Key>,
    lists: Mutex<Lists>,
    rtree: Mutex<Option<Arc<RTree>>>,
}

/// A fragment's metadata file. It is opened when something beyond the footer is needed.
#[derive(Debug)]
pub(crate) struct MetadataFile {
    directory: Arc<dyn Storage>,
    file: String,
    /// For messages.
    label: String,
    blob: OnceLock<Arc<dyn Blob>>,
}

impl MetadataFile {
    /// The key of the file for a fragment key.
    pub(crate) fn key_of(fragment: &str) -> String {
        format!("{fragment}/__fragment_metadata.tdb")
    }

    fn new(directory: Arc<dyn Storage>, fragment: &str) -> Self {
        let file = Self::key_of(fragment);
        Self { label: format!("{}/{file}", directory.name()), directory, file, blob: OnceLock::new() }
    }

    fn open(&self) -> Result<&dyn Blob> {
        if let Some(known) = self.blob.get() {
            return Ok(&**known);
        }
        let blob = self.directory.open(&self.file)?.ok_or_else(|| {
            Place::new(self.directory.name(), "fragment", 0)
                .corrupt(format!("{} is missing, although the fragment was committed", self.file))
        })?;
        Ok(&**self.blob.get_or_init(|| blob))
    }
}

impl Fragment {
    /// Reads the footer, unless it is given by a file of consolidated footers.
    pub(crate) fn open(
        directory: &Arc<dyn Storage>,
        key: String,
        name: TimedName,
        schemas: &mut dyn FnMut(Option<&str>) -> Result<Arc<Schema>>,
        encryption: Option<&Key>,
        known: Option<&[u8]>,
    ) -> Result<Self> {
        let metadata = MetadataFile::new(Arc::clone(directory), &key);
        let version = match name.version {
            Some(version) => version,
            // `__UUID_T` is version 1 or 2, `__T1_T2_UUID` is 3 or 4; both versions of a pair have the same layout.
            None if name.stem.split('_').count() == 4 => 1,
            None => 3,
        };
        let (footer, schema, lists, rtree) = if version <= 2 {
            let schema = schemas(None)?;
            let (footer, lists, rtree) = legacy::read(metadata.open()?, &schema, encryption)?;
            (footer, schema, lists, Some(Arc::new(rtree)))
        } else {
            // If a consolidated footer cannot be read, fall back to the fragment's own.
            let place = Place::new(&metadata.label, "consolidated footer", 0);
            let given = known.and_then(|bytes| Footer::parse(bytes, schemas, place).ok());
            let (footer, schema) = match given.filter(|(footer, _)| footer.version == version) {
                Some(given) => given,
                None => Footer::read(metadata.open()?, version, schemas)?,
            };
            (footer, schema, HashMap::new(), None)
        };
        if footer.dense != (schema.kind == ArrayKind::Dense) {
            return Err(Error::unsupported(metadata.label.as_str(), "sparse fragments in dense arrays"));
        }
        Ok(Self {
            name,
            key,
            schema,
            footer,
            metadata,
            encryption: encryption.cloned(),
            lists: Mutex::new(lists),
            rtree: Mutex::new(rtree),
        })
    }

    /// Parses metadata of versions 1 and 2 and discards it, for fuzzing.
    pub(crate) fn parse_legacy(blob: &dyn Blob, schema: &Schema) -> Result<()> {
        legacy::read(blob, schema, None).map(|_| ())
    }

    pub(crate) const fn version(&self) -> u32 {
        self.footer.version
    }

    /// The position of a field in the footer's lists.
    pub(crate) fn slot(&self, field: Field) -> usize {
        let (attributes, dimensions) = (self.schema.attributes.len(), self.schema.dimensions.len());
        match field {
            Field::Attribute(index) => index,
            Field::Coords => attributes,
            Field::Dimension(index) => attributes + 1 + index,
            Field::Timestamps => attributes + 1 + dimensions,
            Field::DeleteTimestamps => attributes + 1 + dimensions + usize::from(self.footer.has_timestamps),
            Field::DeleteConditions => attributes + 2 + dimensions + usize::from(self.footer.has_timestamps),
        }
    }

    /// The name of a field's file in the store.
    pub(crate) fn file(&self, field: Field, part: FieldPart) -> String {
        let suffix = match part {
            FieldPart::Fixed => "",
            FieldPart::Values => "_var",
            FieldPart::Validity => "_validity",
        };
        let stem = match field {
            Field::Attribute(index) if self.version() > 8 => format!("a{index}"),
            Field::Attribute(index) => self.old_name(&self.schema.attributes[index].name, "__attr"),
            Field::Dimension(index) if self.version() > 8 => format!("d{index}"),
            Field::Dimension(index) => self.old_name(&self.schema.dimensions[index].name, "__dim"),
            Field::Coords => "__coords".to_owned(),
            Field::Timestamps => "t".to_owned(),
            Field::DeleteTimestamps => "dt".to_owned(),
            Field::DeleteConditions => "dci".to_owned(),
        };
        format!("{}/{stem}{suffix}.tdb", self.key)
    }

    /// Before version 9, files were named after fields; version 8 percent-encoded some characters.
    fn old_name(&self, name: &str, anonymous: &str) -> String {
        if name.is_empty() {
            return anonymous.to_owned();
        }
        if self.version() < 8 {
            return name.to_owned();
        }
        let mut coded = String::new();
        for letter in name.chars() {
            match letter {
                // These four are encoded with the codes of other characters.
                '<' => coded.push_str("%20"),
                '>' => coded.push_str("%2D"),
                '\\' => coded.push_str("%30"),
                '|' => coded.push_str("%3C"),
                letter if "!#$%&'()*+,/:;=?@[]\"".contains(letter) => {
                    coded.push_str(&format!("%{:02X}", u32::from(letter)));
                }
                letter => coded.push(letter),
            }
        }
        coded
    }

    /// A list of one number per tile.
    pub(crate) fn list(&self, list: List, field: Field) -> Result<Arc<[u64]>> {
        let locked = || self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = locked().get(&(list, field)) {
            return Ok(Arc::clone(known));
        }
        let slot = self.slot(field);
        let offset = self.footer.lists.get(&list).and_then(|offsets| offsets.get(slot)).copied();
        let offset = offset.ok_or_else(|| {
            self.place("fragment metadata").corrupt(format!("the footer has no {list:?} for {field:?}"))
        })?;
        let payload = generic::read(self.metadata.open()?, offset, self.encryption.as_ref(), "tile offsets")?;
        let place = Place::new(&self.metadata.label, "tile offsets", offset);
        let mut fields = Fields::new(&payload, place);
        let count = fields.count_u64(8)?;
        let numbers: Arc<[u64]> = (0..count).map(|_| fields.u64()).collect::<Result<_>>()?;
        if numbers.len() as u64 != self.footer.tiles(&self.schema) {
            return Err(place.corrupt(format!(
                "{} tiles are listed, but the fragment has {}",
                numbers.len(),
                self.footer.tiles(&self.schema)
            )));
        }
        locked().insert((list, field), Arc::clone(&numbers));
        Ok(numbers)
    }

    /// The offset and length of a tile in a file.
    pub(crate) fn tile_span(&self, field: Field, part: FieldPart, tile: usize) -> Result<(u64, u64)> {
        self.span_among(&self.list(part.offsets(), field)?, field, part, tile)
    }

    /// Like [`tile_span`](Self::tile_span), given the file's tile offsets.
    pub(crate) fn span_among(
        &self,
        offsets: &[u64],
        field: Field,
        part: FieldPart,
        tile: usize,
    ) -> Result<(u64, u64)> {
        let start = offsets.get(tile).copied();
        let end = offsets.get(tile + 1).copied().or_else(|| self.file_size(field, part));
        match (start, end) {
            (Some(start), Some(end)) if start <= end => Ok((start, end - start)),
            _ => Err(self
                .place("tile offsets")
                .corrupt(format!("tile {tile} of {field:?} has the invalid range {start:?} to {end:?}"))),
        }
    }

    /// The size of a file, from the footer.
    pub(crate) fn file_size(&self, field: Field, part: FieldPart) -> Option<u64> {
        let sizes = match part {
            FieldPart::Fixed => &self.footer.file_sizes,
            FieldPart::Values => &self.footer.var_sizes,
            FieldPart::Validity => &self.footer.validity_sizes,
        };
        sizes.get(self.slot(field)).copied()
    }

    /// The boxes of a sparse fragment's tiles.
    pub(crate) fn rtree(&self) -> Result<Arc<RTree>> {
        let locked = || self.rtree.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tree) = &*locked() {
            return Ok(Arc::clone(tree));
        }
        let offset = self.footer.rtree_offset;
        let payload = generic::read(self.metadata.open()?, offset, self.encryption.as_ref(), "R-tree")?;
        let place = Place::new(&self.metadata.label, "R-tree", offset);
        let tree = Arc::new(RTree::parse(&payload, self.version(), &self.schema.dimensions, place)?);
        if self.schema.kind == ArrayKind::Sparse && tree.leaves().len() as u64 != self.footer.sparse_tiles {
            return Err(place.corrupt(format!(
                "{} boxes for {} tiles",
                tree.leaves().len(),
                self.footer.sparse_tiles
            )));
        }
        *locked() = Some(Arc::clone(&tree));
        Ok(tree)
    }

    /// The delete conditions already applied to this fragment.
    pub(crate) fn processed_conditions(&self) -> Result<Vec<String>> {
        let Some(offset) = self.footer.conditions_offset else { return Ok(Vec::new()) };
        let payload =
            generic::read(self.metadata.open()?, offset, self.encryption.as_ref(), "processed conditions")?;
        let mut fields =
            Fields::new(&payload, Place::new(&self.metadata.label, "processed conditions", offset));
        let count = fields.count_u64(8)?;
        let mut names = Vec::with_capacity(count);
        for _ in 0..count {
            let length = fields.count_u64(1)?;
            names.push(String::from_utf8_lossy(fields.bytes(length)?).into_owned());
        }
        Ok(names)
    }

    /// The per-tile statistics of an attribute; `None` if the version has none.
    pub(crate) fn stats(&self, attribute: usize) -> Result<Option<Stats>> {
        let Some(offsets) = &self.footer.stats else { return Ok(None) };
        let slot = self.slot(Field::Attribute(attribute));
        let read = |list: &[u64]| -> Result<Vec<u8>> {
            let offset = list.get(slot).copied().unwrap_or(u64::MAX);
            generic::read(self.metadata.open()?, offset, self.encryption.as_ref(), "tile statistics")
        };
        let place = self.place("tile statistics");
        Stats::parse(
            &read(&offsets.mins)?,
            &read(&offsets.maxes)?,
            &read(&offsets.sums)?,
            &read(&offsets.null_counts)?,
            place,
        )
        .map(Some)
    }

    /// The fragment's own statistics, one per slot.
    pub(crate) fn totals(&self) -> Result<Vec<Totals>> {
        let Some(offset) = self.footer.totals_offset else { return Ok(Vec::new()) };
        let payload =
            generic::read(self.metadata.open()?, offset, self.encryption.as_ref(), "fragment statistics")?;
        let place = Place::new(&self.metadata.label, "fragment statistics", offset);
        Totals::parse(&payload, self.footer.slots(&self.schema), place)
    }

    /// Cells of a sparse tile.
    pub(crate) fn sparse_cells(&self, tile: usize) -> u64 {
        if tile as u64 + 1 == self.footer.sparse_tiles {
            self.footer.last_cells
        } else {
            self.schema.capacity
        }
    }

    /// Cells of all sparse tiles.
    pub(crate) fn sparse_rows(&self) -> u64 {
        match self.footer.sparse_tiles {
            0 => 0,
            tiles => (tiles - 1).saturating_mul(self.schema.capacity).saturating_add(self.footer.last_cells),
        }
    }

    pub(crate) fn place(&self, structure: &'static str) -> Place<'_> {
        Place::new(&self.metadata.label, structure, 0)
    }
}
