//! The secondary index: which chunks hold a value, a label, or a range of labels. Like zone maps, it is an unverified claim.

use serde::Deserialize;

/// The chunks of an entry, by coordinate.
pub type Chunks = Vec<Vec<u64>>;

/// The secondary index of a file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct SecondaryIndex {
    /// Always 1.
    pub version: u32,
    /// The generation of a package; 0 in a standalone file.
    #[serde(default)]
    pub generation: u64,
    /// The entries. Unknown kinds are left out.
    #[serde(default)]
    pub indexes: Vec<IndexEntry>,
}

/// One index over one dataset.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum IndexEntry {
    /// The chunks that hold each of a few values.
    ValuePostings {
        /// The dataset.
        dataset_id: u64,
        /// One list per value.
        postings: Vec<ValuePosting>,
    },
    /// The chunks along an axis whose labels are ascending or descending numbers.
    SortedAxisRange {
        /// The dataset.
        dataset_id: u64,
        /// The axis.
        axis: u64,
        /// Whether the labels ascend.
        ascending: bool,
        /// In the order of their text, which is not that of their values.
        segments: Vec<RangeSegment>,
    },
    /// The chunks along an axis that hold each label.
    CoordLabelPostings {
        /// The dataset.
        dataset_id: u64,
        /// The axis.
        axis: u64,
        /// One list per label.
        postings: Vec<LabelPosting>,
    },
    /// An unknown kind.
    #[serde(other)]
    Unknown,
}

/// The chunks that hold a value.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ValuePosting {
    /// The value's bytes (little-endian) in hexadecimal.
    pub value_le: String,
    /// The chunks.
    pub chunks: Chunks,
}

/// The chunks between two labels.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct RangeSegment {
    /// The first label, as `float64` (little-endian) in hexadecimal.
    pub lo_le: String,
    /// The last label, in the same form.
    pub hi_le: String,
    /// The chunks.
    pub chunks: Chunks,
}

/// The chunks that hold a label.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct LabelPosting {
    /// The label.
    pub label: String,
    /// The chunks.
    pub chunks: Chunks,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_kinds_are_skipped() {
        let text = r#"{"version":1,"generation":0,"packed_sha256":"0","indexes":[
            {"kind":"bloom","dataset_id":0,"bits":[[1]]},
            {"kind":"value_postings","dataset_id":0,"dtype":"f32","postings":[{"value_le":"00","chunks":[[0,1]]}]}]}"#;
        let index: SecondaryIndex = serde_json::from_str(text).unwrap();
        assert_eq!(index.indexes[0], IndexEntry::Unknown);
        assert!(
            matches!(&index.indexes[1], IndexEntry::ValuePostings { postings, .. } if postings[0].chunks == [[0, 1]])
        );
    }
}
