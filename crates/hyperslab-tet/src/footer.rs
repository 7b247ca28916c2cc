//! The footer: history, metadata, and the spills before it.
//!
//! From the end of the file backwards:
//!
//! ```text
//! … payloads | zone maps? | secondary index? | metadata? | JSON | JSON length u64 | version u32 | "THST"
//! ```

mod metadata;
mod own;

use hyperslab_core::{Blob, Fields, Place, Result};
pub use metadata::{CoordAxis, DatasetMetadata, FileMetadata, HistoryRow, Metadata, SpillRef};
pub(crate) use metadata::{FooterJson, MISSING_MARKERS};
pub use own::{Own, OwnDataset};
use serde::Deserialize;

use crate::superblock::Superblock;

/// The last bytes of every file with a footer.
pub(crate) const MAGIC: &[u8; 4] = b"THST";

/// Bytes after the JSON.
pub(crate) const TAIL: u64 = 16;

/// Larger JSON and metadata spills are refused: writers may write at most 16 MiB.
pub(crate) const MOST_JSON: u64 = 16 << 20;

/// The state of the footer.
#[derive(Debug)]
pub enum FooterState {
    /// The superblock says that there is no footer.
    Absent,
    /// It was read.
    Whole(Box<Footer>),
    /// The superblock announces a footer that cannot be read. The arrays can.
    Damaged {
        /// The problem.
        error: hyperslab_core::Error,
        /// Where the payloads end, as far as known.
        payload_end: u64,
    },
}

/// A footer.
#[derive(Debug, Clone, PartialEq)]
pub struct Footer {
    /// 1 or 2.
    pub version: u32,
    /// The history of the file, oldest first.
    pub history: Vec<HistoryRow>,
    /// The metadata.
    pub metadata: Metadata,
    /// The location of the metadata, if they are not in the JSON.
    pub metadata_spill: Option<SpillRef>,
    /// The location of the zone maps.
    pub zone_maps: Option<SpillRef>,
    /// The location of the secondary index.
    pub secondary_index: Option<SpillRef>,
    /// Where the payloads end and the footer starts.
    pub start: u64,
    /// Why our own key could not be read, if it could not.
    pub own_damage: Option<String>,
}

impl FooterState {
    /// The footer, if it is intact.
    #[must_use]
    pub fn whole(&self) -> Option<&Footer> {
        if let Self::Whole(footer) = self { Some(footer) } else { None }
    }

    /// Where payloads must end.
    #[must_use]
    pub fn payload_end(&self, file_length: u64) -> u64 {
        match self {
            Self::Absent => file_length,
            Self::Whole(footer) => footer.start,
            Self::Damaged { payload_end, .. } => *payload_end,
        }
    }

    /// Reads the footer of a file. Damage is a state, not an error, because the arrays do not need the footer.
    ///
    /// # Errors
    ///
    /// [`Io`](hyperslab_core::Error::Io) only.
    pub(crate) fn read(blob: &dyn Blob, superblock: &Superblock, length: u64) -> Result<Self> {
        if !superblock.has_footer() {
            return Ok(Self::Absent);
        }
        let lowest = superblock.index_end();
        let damaged = |error: hyperslab_core::Error, payload_end| match error {
            io @ hyperslab_core::Error::Io { .. } => Err(io),
            error => Ok(Self::Damaged { error, payload_end }),
        };
        let tail = match Tail::read(blob, lowest, length) {
            Ok(tail) => tail,
            Err(error) => return damaged(error, length),
        };
        match Footer::read(blob, &tail, lowest) {
            Ok(footer) => Ok(Self::Whole(Box::new(footer))),
            Err(error) => damaged(error, tail.json_start),
        }
    }
}

/// The last 16 bytes.
#[derive(Debug, Clone, Copy)]
struct Tail {
    version: u32,
    json_start: u64,
    json_length: u64,
}

impl Tail {
    fn read(blob: &dyn Blob, lowest: u64, length: u64) -> Result<Self> {
        let at = length.saturating_sub(TAIL);
        let place = Place::new(blob.name(), "footer", at);
        if at < lowest {
            return Err(
                place.corrupt("the footer is flagged, but there is no room for it after the chunk index")
            );
        }
        let bytes = blob.read_at(at, TAIL)?;
        let mut fields = Fields::new(&bytes, place);
        let json_length = fields.u64()?;
        let version = fields.u32()?;
        fields.magic(MAGIC)?;
        if !(1..=2).contains(&version) {
            return Err(place.corrupt(format!("history version {version}, expected 1 or 2")));
        }
        match at.checked_sub(json_length) {
            Some(json_start) if json_start >= lowest => Ok(Self { version, json_start, json_length }),
            _ => Err(place.corrupt(format!("JSON of {json_length} bytes, with room for {}", at - lowest))),
        }
    }
}

impl Footer {
    fn read(blob: &dyn Blob, tail: &Tail, lowest: u64) -> Result<Self> {
        let place = Place::new(blob.name(), "footer JSON", tail.json_start);
        let text = read_json(blob, place, tail.json_length)?;
        let json: FooterJson = parse_json(&text, place)?;
        // Version 1 has only the metadata spill; other references are meaningless there.
        let current = tail.version == 2;
        let zone_maps = json.zone_maps_ref.filter(|_| current);
        let secondary_index = json.secondary_index_ref.filter(|_| current);
        let start = spills_start(&[zone_maps, secondary_index, json.metadata_ref], tail, lowest, place)?;
        let (mut metadata, own) = match json.metadata_ref {
            None => (json.metadata.unwrap_or_default(), own_key(&text, true)),
            Some(spill) => {
                let place = Place::new(blob.name(), "metadata spill", spill.offset);
                let text = read_json(blob, place, spill.len)?;
                (parse_json(&text, place)?, own_key(&text, false))
            }
        };
        let own_damage = match own {
            Ok(own) => {
                metadata.own = own;
                None
            }
            Err(error) => Some(error.to_string()),
        };
        Ok(Self {
            version: tail.version,
            history: json.history,
            metadata,
            metadata_spill: json.metadata_ref,
            zone_maps,
            secondary_index,
            start,
            own_damage,
        })
    }
}

/// Salvages the JSON of a damaged footer if only the spills are wrong.
pub(crate) fn salvage(blob: &dyn Blob, superblock: &Superblock, length: u64) -> Footer {
    let json = Tail::read(blob, superblock.index_end(), length).and_then(|tail| {
        let place = Place::new(blob.name(), "footer JSON", tail.json_start);
        let text = read_json(blob, place, tail.json_length)?;
        let mut json: FooterJson = parse_json(&text, place)?;
        if let Some(metadata) = &mut json.metadata {
            metadata.own = own_key(&text, true).ok().flatten();
        }
        Ok(json)
    });
    let json = json.unwrap_or_default();
    Footer {
        version: 2,
        history: json.history,
        metadata: json.metadata.unwrap_or_default(),
        metadata_spill: None,
        zone_maps: None,
        secondary_index: None,
        start: length,
        own_damage: None,
    }
}

/// Our own key, parsed separately.
fn own_key(text: &[u8], inside_metadata: bool) -> serde_json::Result<Option<Own>> {
    #[derive(Deserialize)]
    struct Inner {
        hyperslab: Option<Own>,
    }
    #[derive(Deserialize)]
    struct Outer {
        metadata: Option<Inner>,
    }
    Ok(if inside_metadata {
        serde_json::from_slice::<Outer>(text)?.metadata.and_then(|metadata| metadata.hyperslab)
    } else {
        serde_json::from_slice::<Inner>(text)?.hyperslab
    })
}

fn read_json(blob: &dyn Blob, place: Place<'_>, length: u64) -> Result<bytes::Bytes> {
    if length > MOST_JSON {
        return Err(place.corrupt(format!("{length} bytes of JSON, but the limit is {MOST_JSON}")));
    }
    blob.read_at(place.offset, length)
}

/// Parses JSON. An error gives line and column, which in compact JSON is the byte.
pub(crate) fn parse_json<'a, T: Deserialize<'a>>(text: &'a [u8], place: Place<'_>) -> Result<T> {
    serde_json::from_slice(text).map_err(|error| place.corrupt(error.to_string()))
}

/// The start of the first spill. Spills must be contiguous in this order, directly before the JSON and after the index: a spill
/// elsewhere would be read from a payload.
fn spills_start(spills: &[Option<SpillRef>], tail: &Tail, lowest: u64, place: Place<'_>) -> Result<u64> {
    let mut end = tail.json_start;
    for spill in spills.iter().rev().flatten() {
        if spill.offset < lowest || spill.offset.checked_add(spill.len) != Some(end) {
            return Err(place.corrupt(format!(
                "a spill of {} bytes at {:#x}, expected to end at {end:#x}",
                spill.len, spill.offset
            )));
        }
        end = spill.offset;
    }
    Ok(end)
}

/// Appends JSON and tail. Everything before is already in `out`.
pub(crate) fn encode_tail(json: &[u8], version: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(json);
    out.extend_from_slice(&(json.len() as u64).to_le_bytes());
    out.extend_from_slice(&version.to_le_bytes());
    out.extend_from_slice(MAGIC);
}
