//! Writes one fragment: data files tile by tile, then the metadata.

use std::sync::Arc;

use hyperslab_core::Result;
use hyperslab_core::storage::StageWriter;

use super::statistics::{TileStats, lists};
use crate::fragment::{RTree, Stats, Totals};
use crate::generic;
use crate::key::Key;
use crate::schema::{ArrayKind, Range, Schema, WRITTEN};

/// Tiles are written when so many bytes are waiting.
const BUFFER: usize = 1 << 16;

/// One data file. It is open only while something is written: a store may have more files than a process may open, and more
/// arrays than there is memory for large buffers.
#[derive(Debug)]
pub(crate) struct TileFile {
    folder: StageWriter,
    key: String,
    /// The end of the file, not yet written.
    waiting: Vec<u8>,
    offsets: Vec<u64>,
    size: u64,
}

impl TileFile {
    fn create(folder: &StageWriter, key: String) -> Result<Self> {
        drop(folder.create(&key)?);
        Ok(Self { folder: folder.clone(), key, waiting: Vec::new(), offsets: Vec::new(), size: 0 })
    }

    fn append(&mut self, tile: &[u8]) -> Result<()> {
        self.offsets.push(self.size);
        self.size += tile.len() as u64;
        if self.waiting.len() + tile.len() < BUFFER {
            self.waiting.extend_from_slice(tile);
            return Ok(());
        }
        let start = self.size - (self.waiting.len() + tile.len()) as u64;
        self.folder.write_at(&self.key, start, &[&self.waiting, tile])?;
        self.waiting = Vec::new();
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let waiting = std::mem::take(&mut self.waiting);
        self.folder.write_at(&self.key, self.size - waiting.len() as u64, &[&waiting])
    }
}

/// An encoded tile of one field.
#[derive(Debug, Clone, Default)]
pub(crate) struct FieldTile {
    /// Values, or offsets.
    pub(crate) fixed: bytes::Bytes,
    /// Variable-length values, and their size before filtering.
    pub(crate) values: Option<(bytes::Bytes, u64)>,
    pub(crate) validity: Option<bytes::Bytes>,
    pub(crate) stats: TileStats,
}

/// The files of one field.
#[derive(Debug, Default)]
pub(crate) struct FieldFiles {
    fixed: Option<TileFile>,
    values: Option<TileFile>,
    validity: Option<TileFile>,
    var_sizes: Vec<u64>,
    stats: Vec<TileStats>,
}

impl FieldFiles {
    /// Appends a tile. The files, `stem.tdb` and its companions, are created with the first tile.
    pub(crate) fn append(&mut self, folder: &StageWriter, stem: &str, tile: &FieldTile) -> Result<()> {
        let file = |slot: &mut Option<TileFile>, suffix: &str, bytes: &[u8]| -> Result<()> {
            if slot.is_none() {
                *slot = Some(TileFile::create(folder, format!("{stem}{suffix}"))?);
            }
            slot.as_mut().map_or(Ok(()), |file| file.append(bytes))
        };
        file(&mut self.fixed, ".tdb", &tile.fixed)?;
        if let Some((values, size)) = &tile.values {
            file(&mut self.values, "_var.tdb", values)?;
            self.var_sizes.push(*size);
        }
        if let Some(validity) = &tile.validity {
            file(&mut self.validity, "_validity.tdb", validity)?;
        }
        self.stats.push(tile.stats.clone());
        Ok(())
    }

    /// Finishes the files.
    pub(crate) fn finish(&mut self) -> Result<()> {
        for file in [&mut self.fixed, &mut self.values, &mut self.validity].into_iter().flatten() {
            file.finish()?;
        }
        Ok(())
    }

    /// The keys of the files, by the end of their names.
    pub(crate) fn keys(&self) -> impl Iterator<Item = (&str, &'static str)> {
        [(&self.fixed, ".tdb"), (&self.values, "_var.tdb"), (&self.validity, "_validity.tdb")]
            .into_iter()
            .filter_map(|(file, suffix)| file.as_ref().map(|file| (file.key.as_str(), suffix)))
    }
}

/// Additional fields of a consolidated sparse fragment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Extra {
    /// When each cell was written.
    pub(crate) timestamps: bool,
    /// When each cell was deleted, and by which of these conditions, given by the names of delete files.
    pub(crate) deletes: Option<Vec<String>>,
}

impl Extra {
    fn slots(&self) -> usize {
        usize::from(self.timestamps) + 2 * usize::from(self.deletes.is_some())
    }
}

/// A fragment that is being written.
#[derive(Debug)]
pub(crate) struct FragmentWriter {
    pub(crate) folder: StageWriter,
    schema: Arc<Schema>,
    schema_name: String,
    key: Option<Key>,
    pub(crate) extra: Extra,
    /// One per slot: attributes, the unused one, dimensions, and the additional fields of consolidated fragments.
    pub(crate) fields: Vec<FieldFiles>,
}

impl FragmentWriter {
    /// Starts the fragment with this name in an array's folder.
    pub(crate) fn create(
        array: &StageWriter,
        name: &str,
        schema: Arc<Schema>,
        schema_name: String,
        extra: Extra,
        key: Option<Key>,
    ) -> Result<Self> {
        let folder = array.below(&format!("__fragments/{name}"))?;
        let slots = schema.attributes.len() + 1 + schema.dimensions.len() + extra.slots();
        let fields = std::iter::repeat_with(FieldFiles::default).take(slots).collect();
        Ok(Self { folder, schema, schema_name, key, extra, fields })
    }

    /// The name of a slot's file.
    fn stem(&self, slot: usize) -> String {
        let (attributes, dimensions) = (self.schema.attributes.len(), self.schema.dimensions.len());
        if slot < attributes {
            format!("a{slot}")
        } else if slot <= attributes + dimensions {
            format!("d{}", slot.saturating_sub(attributes + 1))
        } else {
            let names = if self.extra.timestamps { ["t", "dt", "dci"] } else { ["dt", "dci", ""] };
            names.get(slot - attributes - dimensions - 1).copied().unwrap_or_default().to_owned()
        }
    }

    /// Appends a tile of a field.
    pub(crate) fn append(&mut self, slot: usize, tile: &FieldTile) -> Result<()> {
        let stem = self.stem(slot);
        self.fields[slot].append(&self.folder, &stem, tile)
    }

    /// Writes the metadata. The fragment is then complete, but invisible until its commit file exists.
    pub(crate) fn finish(
        mut self,
        domain: &[Range],
        tiles: u64,
        last_cells: u64,
        rtree: &RTree,
    ) -> Result<()> {
        for field in &mut self.fields {
            field.finish()?;
        }
        let dense = self.schema.kind == ArrayKind::Dense;
        let mut file = MetadataFile { bytes: Vec::new(), key: self.key.as_ref() };
        let mut payload = Vec::new();
        rtree.encode(&mut payload);
        let rtree_offset = file.put(&payload)?;
        let count = tiles as usize;
        let offsets =
            |file: Option<&TileFile>| file.map_or_else(|| vec![0; count], |file| file.offsets.clone());
        let mut groups: Vec<Vec<u64>> = Vec::new();
        for pick in [
            (|field: &FieldFiles, _| field.fixed.as_ref().map(|file| file.offsets.clone()))
                as fn(&FieldFiles, usize) -> _,
            |field, _| field.values.as_ref().map(|file| file.offsets.clone()),
            |field, count| (!field.var_sizes.is_empty() || count == 0).then(|| field.var_sizes.clone()),
            |field, _| field.validity.as_ref().map(|file| file.offsets.clone()),
        ] {
            let mut zeros = None;
            let mut group = Vec::new();
            for field in &self.fields {
                group.push(match pick(field, count) {
                    Some(numbers) => file.put(&coded(&numbers))?,
                    // Fields without such tiles share one list of zeros.
                    None => match zeros {
                        Some(offset) => offset,
                        None => *zeros.insert(file.put(&coded(&offsets(None)))?),
                    },
                });
            }
            groups.push(group);
        }
        let mut totals = Vec::new();
        let mut stats = Vec::new();
        for (slot, field) in self.fields.iter().enumerate() {
            match self.schema.attributes.get(slot) {
                Some(attribute) => {
                    let (own, total) = lists(attribute, &field.stats);
                    stats.push(own);
                    total.encode(&mut totals);
                }
                None => {
                    stats.push(Stats::default());
                    Totals::default().encode(&mut totals);
                }
            }
        }
        for encode in [Stats::encode_mins, Stats::encode_maxes, Stats::encode_sums, Stats::encode_null_counts]
        {
            let mut empty = None;
            let mut group = Vec::new();
            for own in &stats {
                let payload = encode(own);
                let nothing = payload == encode(&Stats::default());
                group.push(match (nothing, empty) {
                    (true, Some(offset)) => offset,
                    (true, None) => *empty.insert(file.put(&payload)?),
                    _ => file.put(&payload)?,
                });
            }
            groups.push(group);
        }
        let totals_offset = file.put(&totals)?;
        let conditions_offset = file.put(&conditions(self.extra.deletes.as_deref().unwrap_or_default()))?;
        let mut footer = WRITTEN.to_le_bytes().to_vec();
        footer.extend((self.schema_name.len() as u64).to_le_bytes());
        footer.extend(self.schema_name.as_bytes());
        footer.extend([u8::from(dense), 0]);
        for range in domain {
            range.encode(&mut footer);
        }
        footer.extend(if dense { 0 } else { tiles }.to_le_bytes());
        footer.extend(last_cells.to_le_bytes());
        footer.extend([u8::from(self.extra.timestamps), u8::from(self.extra.deletes.is_some())]);
        let size = |file: Option<&TileFile>| file.map_or(0, |file| file.size).to_le_bytes();
        footer.extend(self.fields.iter().flat_map(|field| size(field.fixed.as_ref())));
        footer.extend(self.fields.iter().flat_map(|field| size(field.values.as_ref())));
        footer.extend(self.fields.iter().flat_map(|field| size(field.validity.as_ref())));
        footer.extend(rtree_offset.to_le_bytes());
        footer.extend(groups.iter().flatten().flat_map(|offset| offset.to_le_bytes()));
        footer.extend(totals_offset.to_le_bytes());
        footer.extend(conditions_offset.to_le_bytes());
        let mut bytes = file.bytes;
        let length = footer.len() as u64;
        bytes.extend(footer);
        bytes.extend(length.to_le_bytes());
        self.folder.put("__fragment_metadata.tdb", &bytes)
    }
}

/// The delete conditions already applied: `u64 n`, per item `u64 len, "__commits/NAME.del"`.
fn conditions(names: &[String]) -> Vec<u8> {
    let mut out = (names.len() as u64).to_le_bytes().to_vec();
    for name in names {
        let name = format!("__commits/{name}.del");
        out.extend((name.len() as u64).to_le_bytes());
        out.extend(name.as_bytes());
    }
    out
}

fn coded(numbers: &[u64]) -> Vec<u8> {
    let mut out = (numbers.len() as u64).to_le_bytes().to_vec();
    out.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    out
}

/// Generic tiles one after another.
struct MetadataFile<'a> {
    bytes: Vec<u8>,
    key: Option<&'a Key>,
}

impl MetadataFile<'_> {
    /// Appends a payload and returns its offset.
    fn put(&mut self, payload: &[u8]) -> Result<u64> {
        let offset = self.bytes.len() as u64;
        self.bytes.extend(generic::encode(payload, WRITTEN, self.key)?);
        Ok(offset)
    }
}
