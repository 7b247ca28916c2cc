//! The secondary index: which chunks hold a value, a label, a range of labels. A claim, as zone maps are.

use serde::Deserialize;

/// The chunks of an entry, by their place in the grid.
pub type Chunks = Vec<Vec<u64>>;

/// The secondary index of a file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct SecondaryIndex {
    /// Always 1.
    pub version: u32,
    /// The generation of a package; 0 in a file on its own.
    #[serde(default)]
    pub generation: u64,
    /// Entries of kinds that are not known have been left out.
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
        /// A list per value.
        postings: Vec<ValuePosting>,
    },
    /// The chunks along an axis whose labels are numbers that rise or fall.
    SortedAxisRange {
        /// The dataset.
        dataset_id: u64,
        /// The axis.
        axis: u64,
        /// Do the labels rise?
        ascending: bool,
        /// In the order of their text, which is not the order of their values.
        segments: Vec<RangeSegment>,
    },
    /// The chunks along an axis that hold each label.
    CoordLabelPostings {
        /// The dataset.
        dataset_id: u64,
        /// The axis.
        axis: u64,
        /// A list per label.
        postings: Vec<LabelPosting>,
    },
    /// A kind that we do not know.
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
    /// The last label, likewise.
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
