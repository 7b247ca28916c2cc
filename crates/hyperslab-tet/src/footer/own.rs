//! The key `hyperslab` of the metadata: what the format has no place for. Other readers ignore it.
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

/// What only we write into a file.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Own {
    /// A checksum per chunk: the format has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksums: Option<Checksums>,
    /// What is beyond the limits of the metadata proper, by the name of the dataset.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "few_entries")]
    pub datasets: BTreeMap<String, OwnDataset>,
    /// Attributes of groups, by path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "few_entries")]
    pub groups: BTreeMap<String, BTreeMap<String, Value>>,
    /// The types of attributes of groups that JSON does not tell, by path and name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "few_entries")]
    pub group_types: BTreeMap<String, BTreeMap<String, String>>,
    /// What could not be kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// What is beyond the limits of one dataset's metadata.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct OwnDataset {
    /// Names of the dimensions, where some have none or there was no room.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dimensions: Vec<Option<String>>,
    /// Labels, by the number of the axis.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, Vec<String>>,
    /// The arrays that hold the labels, by the number of the axis.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub label_nodes: BTreeMap<String, String>,
    /// Attributes that are not short texts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, Value>,
    /// The types of attributes that JSON does not tell, by name.
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
