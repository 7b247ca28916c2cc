//! Encodes the head and the end of a file.

use std::time::{SystemTime, UNIX_EPOCH};

use hyperslab_core::{Error, Result};
use serde::Serialize;

use crate::dataset::{Dataset, encode_directory};
use crate::footer::{FooterJson, HistoryRow, MOST_JSON, Metadata, SpillRef, encode_tail};
use crate::index::{IndexHeader, Row};
use crate::superblock::{FLAG_FOOTER, Superblock};
use crate::zone::ZoneMaps;

/// The maximum size of a footer's JSON that other readers accept.
const MOST_FOOTER: usize = 65_536;

/// The maximum number of history rows that other readers accept.
const MOST_HISTORY: usize = 4096;

/// Encodes superblock, directory and index: everything before the payloads.
pub(crate) fn encode_head(
    datasets: &[Dataset],
    rows: impl ExactSizeIterator<Item = Row>,
    header: IndexHeader,
    footer: bool,
) -> Result<Vec<u8>> {
    let flags = if footer { FLAG_FOOTER } else { 0 };
    if datasets.is_empty() {
        return Ok(Superblock { flags, ..Superblock::EMPTY }.encode().to_vec());
    }
    let directory = encode_directory(datasets)?;
    let header = IndexHeader { rows: rows.len() as u64, ..header };
    let superblock = Superblock {
        dataset_count: u32::try_from(datasets.len())
            .map_err(|_| Error::invalid("more than 2^32 datasets"))?,
        flags,
        index_offset: (Superblock::LEN + directory.len()) as u64,
        index_length: IndexHeader::index_length(header.rows)
            .ok_or_else(|| Error::invalid("an index of more than 2^64 bytes"))?,
    };
    let mut head = Vec::with_capacity(superblock.index_end() as usize);
    head.extend_from_slice(&superblock.encode());
    head.extend_from_slice(&directory);
    head.extend_from_slice(&header.encode());
    rows.for_each(|row| head.extend_from_slice(&row.encode()));
    Ok(head)
}

/// Encodes everything after the payloads, which end at `at`. Content beyond the limits is left out and noted.
pub(crate) fn encode_footer(
    mut history: Vec<HistoryRow>,
    mut metadata: Metadata,
    zones: Option<&ZoneMaps>,
    at: u64,
) -> Result<Vec<u8>> {
    let mut suffix = Vec::new();
    let mut json = FooterJson::default();
    if let Some(zones) = zones {
        serde_json::to_writer_pretty(&mut suffix, zones).map_err(unwritten)?;
        suffix.push(b'\n');
        json.zone_maps_ref = Some(SpillRef { offset: at, len: suffix.len() as u64 });
    }
    let surplus = history.len().saturating_sub(MOST_HISTORY);
    history.drain(..surplus);
    if metadata.own.as_ref().is_some_and(crate::footer::Own::is_empty) {
        metadata.own = None;
    }
    json.history = history;
    json.metadata = Some(metadata);
    let mut text = compact(&json)?;
    if text.len() > MOST_FOOTER {
        let mut metadata = json.metadata.take().unwrap_or_default();
        let spill = shortened(&mut metadata)?;
        json.metadata_ref = Some(SpillRef { offset: at + suffix.len() as u64, len: spill.len() as u64 });
        suffix.extend_from_slice(&spill);
        text = compact(&json)?;
    }
    // If the history alone is too long, drop the oldest rows first.
    while text.len() > MOST_FOOTER && !json.history.is_empty() {
        json.history.drain(..json.history.len().div_ceil(4));
        text = compact(&json)?;
    }
    encode_tail(&text, 2, &mut suffix);
    Ok(suffix)
}

/// The metadata as JSON. If it would be too long, the largest of our own extensions are left out.
fn shortened(metadata: &mut Metadata) -> Result<Vec<u8>> {
    let text = compact(metadata)?;
    if text.len() as u64 <= MOST_JSON {
        return Ok(text);
    }
    if let Some(own) = &mut metadata.own {
        own.datasets.clear();
        own.groups.clear();
        own.group_types.clear();
        own.notes =
            vec!["labels, attributes and groups beyond the limits of .tet were left out: over 16 MiB".into()];
    }
    let text = compact(metadata)?;
    if text.len() as u64 <= MOST_JSON {
        return Ok(text);
    }
    Err(Error::invalid(format!("{} bytes of metadata, .tet holds {MOST_JSON}", text.len())))
}

fn compact(value: &impl Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(unwritten)
}

fn unwritten(error: serde_json::Error) -> Error {
    Error::invalid(format!("metadata that JSON cannot hold: {error}"))
}

impl HistoryRow {
    /// A history row for an operation that happens now.
    #[must_use]
    pub fn now(op: &str, source: &str) -> Self {
        Self { op: op.to_owned(), source: source.to_owned(), at: now(), ..Self::default() }
    }
}

/// Seconds since 1970, as decimal text.
pub(crate) fn now() -> String {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()).to_string()
}
