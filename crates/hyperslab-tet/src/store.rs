//! An opened file.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use hyperslab_codec::checksum::crc32c;
use hyperslab_core::{
    ArraySchema, Attributes, Blob, Depth, Error, Node, Place, Report, Result, Store, normal_path,
};

use serde_json::{Map, Value, json};

use crate::array::{TetArray, chunk_bytes};
use crate::checksums::{Expected, combine, group};
use crate::dataset::{Dataset, parse_directory};
use crate::footer::{Footer, FooterState, HistoryRow, SpillRef, parse_json};
use crate::index::{ChunkIndex, Codec, IndexHeader, Row};
use crate::secondary::{IndexEntry, SecondaryIndex};
use crate::superblock::{DIRECTORY_START, MAGIC, Superblock, align8};
use crate::tree::Tree;
use crate::zone::ZoneMaps;

/// Bytes at both ends of a remote file that are requested first.
const READ_AHEAD: u64 = 64 << 10;

/// The maximum expansion factor of zstd.
const MOST_EXPANSION: u64 = 1 << 15;

/// Returns true if this is a `.tet` file, by its first bytes.
///
/// # Errors
///
/// [`Io`](Error::Io) if it cannot be read.
pub fn probe(blob: &dyn Blob) -> Result<bool> {
    Ok(blob.len()? >= Superblock::LEN as u64 && blob.read_at(0, 4)? == MAGIC[..])
}

/// Opens a `.tet` file.
///
/// The directory and the index must be intact. A damaged footer costs the metadata but no array. Problems of a single
/// dataset or chunk are reported when it is accessed.
///
/// # Errors
///
/// [`Corrupt`](Error::Corrupt) if superblock, directory or index are damaged, [`Unsupported`](Error::Unsupported) for
/// another version of the format.
pub fn open(blob: Arc<dyn Blob>) -> Result<TetStore> {
    Ok(TetStore { file: Arc::new(Inner::open(blob)?) })
}

/// Opens a file together with an append that is committed but not applied yet.
pub(crate) fn open_pending(blob: Arc<dyn Blob>) -> Result<TetStore> {
    Ok(TetStore { file: Arc::new(Inner { pending_append: true, ..Inner::open(blob)? }) })
}

/// An opened `.tet` file.
#[derive(Debug, Clone)]
pub struct TetStore {
    pub(crate) file: Arc<Inner>,
}

/// The state of an opened file.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) blob: Arc<dyn Blob>,
    pub(crate) length: u64,
    pub(crate) superblock: Superblock,
    pub(crate) header: IndexHeader,
    pub(crate) datasets: Vec<Dataset>,
    pub(crate) index: ChunkIndex,
    pub(crate) footer: FooterState,
    pub(crate) payload_end: u64,
    pub(crate) tree: Tree,
    /// Whether some of the bytes come from a redo file.
    pub(crate) pending_append: bool,
    /// The checksums of the chunks, loaded on first use.
    checksums: OnceLock<Expected>,
}

impl Inner {
    fn open(blob: Arc<dyn Blob>) -> Result<Self> {
        let length = blob.len()?;
        let name = Arc::clone(blob.name());
        // On remote storage, request the index and the footer together.
        blob.prefetch(&[0..length.min(READ_AHEAD), length.saturating_sub(READ_AHEAD)..length]);
        let head = blob.read_at(0, length.min(Superblock::LEN as u64))?;
        let superblock = Superblock::parse(&head, length, Place::new(&name, "superblock", 0))?;
        let (datasets, header, rows) = if superblock.dataset_count == 0 {
            (Vec::new(), IndexHeader::default(), Bytes::new())
        } else {
            read_index(blob.as_ref(), &superblock, length)?
        };
        let index = ChunkIndex::new(rows, &datasets, length);
        let footer = FooterState::read(blob.as_ref(), &superblock, length)?;
        let payload_end = footer.payload_end(length);
        let own = footer.whole().and_then(|footer| footer.metadata.own.as_ref());
        let groups = own.into_iter().flat_map(|own| own.groups.keys().map(String::as_str));
        let tree = Tree::new(&datasets, groups);
        Ok(Self {
            blob,
            length,
            superblock,
            header,
            datasets,
            index,
            footer,
            payload_end,
            tree,
            pending_append: false,
            checksums: OnceLock::new(),
        })
    }

    /// The place of a row, for error messages.
    pub(crate) fn row_place(&self, number: u64) -> Place<'_> {
        let start = self.superblock.index_offset.saturating_add(IndexHeader::LEN as u64);
        let at = start.saturating_add(number.saturating_mul(Row::LEN as u64));
        Place::new(self.blob.name(), "chunk index row", at)
    }

    /// Refuses a row that cannot be read, because of its codec, its span or the size that it claims.
    pub(crate) fn check_row(&self, number: u64, row: &Row, schema: &ArraySchema) -> Result<Codec> {
        let place = self.row_place(number);
        let codec = self.check_span(number, row)?;
        let item = schema.dtype.size().unwrap_or(0);
        let coord = row.coord(schema.grid.rank());
        let expected = chunk_bytes(&schema.grid, item, &coord);
        if !schema.grid.contains(&coord) || expected != Some(row.raw_length) {
            return Err(place.corrupt(format!(
                "raw length {} of chunk {:?}, expected {expected:?}",
                row.raw_length,
                coord.as_slice()
            )));
        }
        // A zstd block has at least 4 bytes and decodes to at most 128 KiB. A larger claim is false, so refuse it before
        // allocating memory.
        if codec == Codec::Zstd && row.raw_length / MOST_EXPANSION > row.stored_length {
            return Err(place
                .corrupt(format!("{} stored bytes cannot decode to {}", row.stored_length, row.raw_length)));
        }
        Ok(codec)
    }

    /// Refuses a row whose codec is unknown or whose bytes are not among the payloads.
    pub(crate) fn check_span(&self, number: u64, row: &Row) -> Result<Codec> {
        let place = self.row_place(number);
        let Some(codec) = Codec::from_number(row.codec) else {
            return Err(place.corrupt(format!("codec {}, expected 0 (raw) or 1 (zstd)", row.codec)));
        };
        if codec == Codec::Raw && row.stored_length != row.raw_length {
            return Err(place.corrupt(format!(
                "{} stored bytes of a raw chunk of {}",
                row.stored_length, row.raw_length
            )));
        }
        let (lowest, highest) = (self.superblock.index_end(), self.payload_end);
        let inside = row.end().is_some_and(|end| end <= highest);
        if !inside || (row.offset < lowest && row.stored_length > 0) {
            return Err(place.corrupt(format!(
                "payload of {} bytes at {:#x}, payloads are between {lowest:#x} and {highest:#x}",
                row.stored_length, row.offset
            )));
        }
        Ok(codec)
    }

    /// Decodes the stored bytes of a checked row to little-endian raw bytes. `out` has the length given by the row.
    pub(crate) fn decode_row(&self, number: u64, row: &Row, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let place = Place::new(self.blob.name(), "chunk", row.offset);
        match Codec::from_number(row.codec) {
            Some(Codec::Raw) if stored.len() == out.len() => out.copy_from_slice(stored),
            Some(Codec::Zstd) => hyperslab_codec::zstd::decode(stored, out)
                .map_err(|error| place.corrupt(format!("row {number}: {error}")))?,
            _ => return Err(place.corrupt(format!("row {number}: {} stored bytes", stored.len()))),
        }
        Ok(())
    }

    /// The expected checksums of the chunks.
    pub(crate) fn expected_checksums(&self) -> &Expected {
        self.checksums.get_or_init(|| {
            let own = self.footer.whole().and_then(|footer| footer.metadata.own.as_ref());
            let table = own.and_then(|own| own.checksums.as_ref());
            Expected::of(table, self.index.bytes(), self.index.len())
        })
    }

    /// Verifies the checksum of a row's stored bytes, together with the rows that share it.
    pub(crate) fn verify_checksum(&self, number: u64) -> Result<()> {
        let Expected::Sums { sums, rows_each } = self.expected_checksums() else { return Ok(()) };
        let which = usize::try_from(number).unwrap_or(usize::MAX) / rows_each;
        let Some(rows) = group(which, *rows_each, self.index.len()) else { return Ok(()) };
        let mut found = Vec::with_capacity(rows.len());
        for row in rows {
            let Some(row) = self.index.row(row as u64) else { return Ok(()) };
            let stored = self.blob.read_at(row.offset, row.stored_length)?;
            found.push(crc32c(&stored));
        }
        let found = combine(&found, *rows_each);
        match sums.get(which) {
            Some(expected) if *expected != found => Err(self
                .row_place(number)
                .corrupt(format!("checksum {found:#010x} of the chunk, stored {expected:#010x}"))),
            _ => Ok(()),
        }
    }

    pub(crate) fn spill<T: serde::de::DeserializeOwned>(
        &self,
        spill: SpillRef,
        what: &'static str,
    ) -> Result<T> {
        let text = self.blob.read_at(spill.offset, spill.len)?;
        parse_json(&text, Place::new(self.blob.name(), what, spill.offset))
    }
}

/// Directory, index header and rows of a file that is not empty.
fn read_index(
    blob: &dyn Blob,
    superblock: &Superblock,
    length: u64,
) -> Result<(Vec<Dataset>, IndexHeader, Bytes)> {
    let place = Place::new(blob.name(), "dataset directory", Superblock::LEN as u64);
    if length < DIRECTORY_START {
        return Err(place.corrupt(format!("the file ends at {length:#x}")));
    }
    let blob_length = blob.read_at(Superblock::LEN as u64, 8)?;
    let blob_length = hyperslab_core::Fields::new(&blob_length, place).u64()?;
    let end = DIRECTORY_START.checked_add(blob_length);
    if end.and_then(align8) != Some(superblock.index_offset) {
        return Err(place.corrupt(format!(
            "{blob_length} bytes of records before a chunk index at {:#x}",
            superblock.index_offset
        )));
    }
    let records = blob.read_at(DIRECTORY_START, blob_length)?;
    let place = Place::new(blob.name(), "dataset directory", DIRECTORY_START);
    let datasets = parse_directory(&records, superblock.dataset_count, place)?;
    let place = Place::new(blob.name(), "chunk index", superblock.index_offset);
    let index = blob.read_at(superblock.index_offset, superblock.index_length)?;
    let header = IndexHeader::parse(&index, superblock.index_length, place)?;
    Ok((datasets, header, index.slice(IndexHeader::LEN..)))
}

impl TetStore {
    /// The superblock.
    #[must_use]
    pub fn superblock(&self) -> &Superblock {
        &self.file.superblock
    }

    /// The header of the chunk index: the number of rows and the recommended memory budget.
    #[must_use]
    pub fn index_header(&self) -> &IndexHeader {
        &self.file.header
    }

    /// The length of the file when it was opened.
    #[must_use]
    pub fn file_length(&self) -> u64 {
        self.file.length
    }

    /// Where payloads must end: the end of the file, or the start of the footer.
    #[must_use]
    pub fn payload_end(&self) -> u64 {
        self.file.payload_end
    }

    /// The records of the directory. The position of a record is its dataset's id.
    #[must_use]
    pub fn datasets(&self) -> &[Dataset] {
        &self.file.datasets
    }

    /// The path under which a dataset is listed.
    #[must_use]
    pub fn dataset_path(&self, id: usize) -> Option<&str> {
        self.file.tree.path(id)
    }

    /// The dataset with this id.
    ///
    /// # Errors
    ///
    /// [`NotFound`](Error::NotFound) for an id that is not in the file, [`Unsupported`](Error::Unsupported) for an
    /// element type that is not in the format, [`Corrupt`](Error::Corrupt) for a chunk extent of zero.
    pub fn dataset(&self, id: usize) -> Result<TetArray> {
        TetArray::new(Arc::clone(&self.file), id)
    }

    /// The rows of the chunk index in order, as stored and unchecked.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = Row> + '_ {
        self.file.index.bytes().as_chunks().0.iter().map(Row::parse)
    }

    /// The state of the footer.
    #[must_use]
    pub fn footer_state(&self) -> &FooterState {
        &self.file.footer
    }

    /// The footer, if there is one and it is intact.
    #[must_use]
    pub fn footer(&self) -> Option<&Footer> {
        self.file.footer.whole()
    }

    /// The history of the file, oldest first.
    #[must_use]
    pub fn history(&self) -> &[HistoryRow] {
        self.footer().map_or(&[], |footer| &footer.history)
    }

    /// The zone maps, if the file has any. They are unverified claims of the writer.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](Error::Corrupt) if they cannot be read.
    pub fn zone_maps(&self) -> Result<Option<ZoneMaps>> {
        let spill = self.footer().and_then(|footer| footer.zone_maps);
        spill.map(|spill| self.file.spill(spill, "zone maps")).transpose()
    }

    /// The secondary index, if the file has one. It is an unverified claim of the writer.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](Error::Corrupt) if it cannot be read.
    pub fn secondary_index(&self) -> Result<Option<SecondaryIndex>> {
        let Some(spill) = self.footer().and_then(|footer| footer.secondary_index) else { return Ok(None) };
        let mut index: SecondaryIndex = self.file.spill(spill, "secondary index")?;
        index.indexes.retain(|entry| *entry != IndexEntry::Unknown);
        Ok(Some(index))
    }

    fn group_attributes(&self, path: &str) -> Attributes {
        let own = self.footer().and_then(|footer| footer.metadata.own.as_ref());
        let types = own.and_then(|own| own.group_types.get(path));
        let group = own.and_then(|own| own.groups.get(path)).into_iter().flatten();
        group
            .map(|(name, value)| {
                (name.clone(), crate::array::typed(value, types.and_then(|types| types.get(name))))
            })
            .collect()
    }
}

impl Store for TetStore {
    fn format(&self) -> &'static str {
        "tet"
    }

    fn keeps_checksums(&self) -> bool {
        self.footer()
            .and_then(|footer| footer.metadata.own.as_ref())
            .is_some_and(|own| own.checksums.is_some())
    }

    fn name(&self) -> &Arc<str> {
        self.file.blob.name()
    }

    fn is_remote(&self) -> bool {
        self.file.blob.is_remote()
    }

    fn children(&self, path: &str) -> Result<Vec<String>> {
        let path = normal_path(path);
        match (self.file.tree.group(&path), self.file.tree.array(&path)) {
            (Some(children), _) => Ok(children.to_vec()),
            (None, Some(_)) => Ok(Vec::new()),
            (None, None) => Err(Error::not_found(self.name().as_ref(), path)),
        }
    }

    fn node(&self, path: &str) -> Result<Node> {
        let path = normal_path(path);
        if let Some(id) = self.file.tree.array(&path) {
            return Ok(Node::Array(Arc::new(self.dataset(id)?)));
        }
        match self.file.tree.group(&path) {
            Some(_) => Ok(Node::Group(self.group_attributes(&path))),
            None => Err(Error::not_found(self.name().as_ref(), path)),
        }
    }

    fn details(&self) -> Result<Map<String, Value>> {
        let (superblock, header) = (self.superblock(), self.index_header());
        let mut layout = json!({
            "layout_version": 1,
            "file_length": self.file_length(),
            "datasets": self.datasets().len(),
            "chunk_index_offset": superblock.index_offset,
            "chunk_index_length": superblock.index_length,
            "index_rows": header.rows,
            "payload_end": self.payload_end(),
            "footer": match self.footer_state() {
                FooterState::Absent => "none".to_owned(),
                FooterState::Whole(_) => "whole".to_owned(),
                FooterState::Damaged { error, .. } => format!("damaged: {error}"),
            },
        });
        if header.memory_budget_bps > 0 {
            layout["memory_budget_percent"] = (f64::from(header.memory_budget_bps) / 100.0).into();
        }
        if header.memory_budget_bytes > 0 {
            layout["memory_budget_bytes"] = header.memory_budget_bytes.into();
        }
        let history = serde_json::to_value(self.history()).unwrap_or_default();
        Ok(Map::from_iter([("layout".to_owned(), layout), ("history".to_owned(), history)]))
    }

    fn advised_memory(&self, machine: u64) -> Option<u64> {
        let header = self.index_header();
        // The maximum is 10,000, for all of the memory; larger values are clamped.
        let share = u64::from(header.memory_budget_bps.min(10_000));
        match (header.memory_budget_bytes, share) {
            (0, 0) => None,
            (0, share) => Some(machine / 10_000 * share),
            (bytes, _) => Some(bytes.into()),
        }
    }

    fn verify(&self, depth: Depth, report: &mut Report) -> Result<()> {
        crate::verify::verify(self, depth, report)
    }
}
