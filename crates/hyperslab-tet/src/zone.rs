//! Zone maps: the smallest and the largest value of every chunk. A claim of the writer, never trusted for values.

use serde::{Deserialize, Serialize};

/// The zone maps of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ZoneMaps {
    /// Always 1.
    pub version: u32,
    /// The generation of a package; 0 in a file that stands alone.
    #[serde(default)]
    pub generation: u64,
    /// The package's hash of its file; zeros in a file that stands alone.
    #[serde(default)]
    pub packed_sha256: String,
    /// One per row of the index, in its order.
    pub chunks: Vec<Zone>,
}

/// What is said of one chunk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Zone {
    /// The dataset.
    pub dataset_id: u64,
    /// The chunk's place in the grid.
    pub chunk_index: Vec<u64>,
    /// How many elements it has.
    pub element_count: u64,
    /// How many of them are missing: not a number, or the fill value.
    pub null_count: u64,
    /// The smallest of the others: its bytes (little-endian) in hexadecimal. Absent when all are missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_le: Option<String>,
    /// The largest of them, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_le: Option<String>,
}

impl ZoneMaps {
    /// The zone maps of a file that stands alone.
    pub(crate) fn standalone(chunks: Vec<Zone>) -> Self {
        Self { version: 1, generation: 0, packed_sha256: "0".repeat(64), chunks }
    }
}

/// The bytes that a hexadecimal text stands for; `None` when it is none.
#[must_use]
pub fn hex_bytes(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| (byte as char).to_digit(16);
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let bytes = pairs.iter().map(|[high, low]| Some((digit(*high)? << 4 | digit(*low)?) as u8)).collect();
    if rest.is_empty() { bytes } else { None }
}

/// The hexadecimal text of bytes.
pub(crate) fn hex_text(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
