//! The key `hyperslab` of the metadata, for content that has no place in the format. Other readers ignore it.
//!
//! ```json
//! {"checksums": {"algorithm": "crc32c", "rows_each": 1, "index": 305419896, "base64": "…"},
//!  "datasets": {"x": {"labels": {"0": ["…"]}, "attributes": {"valid_range": [0, 10]}}},
//!  "groups": {"/a": {"title": "…"}}, "notes": ["…"]}
//! ```

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::metadata::few_entries;
use crate::checksums::Checksums;

/// Our own additions to the metadata.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Own {
    /// A checksum per chunk, which the format lacks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksums: Option<Checksums>,
    /// Metadata beyond the limits of other readers, by dataset name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "few_entries")]
    pub datasets: BTreeMap<String, OwnDataset>,
    /// Attributes of groups, by path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "few_entries")]
    pub groups: BTreeMap<String, BTreeMap<String, Value>>,
    /// The types of group attributes that JSON does not imply, by path and name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "few_entries")]
    pub group_types: BTreeMap<String, BTreeMap<String, String>>,
    /// Notes on content that was lost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Metadata of one dataset beyond the limits of other readers.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct OwnDataset {
    /// Dimension names, if some are missing or there was no room.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dimensions: Vec<Option<String>>,
    /// Labels, by axis number.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, Vec<String>>,
    /// The arrays that hold the labels, by axis number.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub label_nodes: BTreeMap<String, String>,
    /// Attributes that are not short texts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, Value>,
    /// The types of attributes that JSON does not imply, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attribute_types: BTreeMap<String, String>,
}

impl OwnDataset {
    pub(crate) fn is_empty(&self) -> bool {
        self.dimensions.is_empty()
            && self.labels.is_empty()
            && self.label_nodes.is_empty()
            && self.attributes.is_empty()
            && self.attribute_types.is_empty()
    }
}

impl Own {
    pub(crate) fn is_empty(&self) -> bool {
        self.checksums.is_none()
            && self.datasets.is_empty()
            && self.groups.is_empty()
            && self.notes.is_empty()
    }
}
