//! Properties of nodes beyond their content: types as stored, layout, order of creation, links.
//!
//! A reader fills in the properties that its format stores. A sink whose format has them writes them; others ignore them.

use std::sync::Arc;

use super::StoredType;

/// Whether creation order is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CreationOrder {
    /// Not stored.
    #[default]
    Untracked,
    /// Stored.
    Tracked,
    /// Stored, and indexed for lookups.
    Indexed,
}

/// Properties of any object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StoredObject {
    /// The creation order of its attributes; `None` if the format has no such option.
    pub attribute_order: Option<CreationOrder>,
    /// A comment.
    pub comment: Option<String>,
}

/// Properties of a group.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StoredGroup {
    /// Properties shared with other objects.
    pub object: StoredObject,
    /// The creation order of its links; `None` if the format has no such option.
    pub link_order: Option<CreationOrder>,
}

/// Properties of an array.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StoredArray {
    /// Properties shared with other objects.
    pub object: StoredObject,
    /// The stored type of its elements.
    pub dtype: Option<Arc<StoredType>>,
    /// The named type, if it uses one.
    pub named_type: Option<TypeName>,
    /// It has a type but no dataspace, hence neither a shape nor elements. An array without elements has a shape.
    pub no_space: bool,
    /// The storage layout.
    pub layout: Option<StoredLayout>,
    /// When cells that were never written are filled, and with what.
    pub fill: Option<StoredFill>,
    /// The filters by the format's own numbers, in writing order.
    pub filters: Vec<StoredFilter>,
    /// The stored shape, if it is smaller than that of dimensions shared with other arrays, which have grown since.
    pub extent: Option<Vec<u64>>,
    /// The shape of the shards that hold its chunks, if the format has shards.
    pub shard_shape: Option<Vec<u64>>,
    /// The metadata document without the attributes, in formats that have one.
    pub document: Option<Arc<serde_json::Value>>,
    /// The metadata in the format's own encoding, for a writer of the same format.
    pub encoded: Option<Arc<[u8]>>,
    /// The types of its dimensions' coordinates; empty if the format has no such types.
    pub dimension_types: Vec<crate::DType>,
    /// Other arrays of the store that hold labels along an axis, besides those in the schema: axis and path.
    pub coordinates: Vec<(usize, String)>,
    /// If it holds labels of its only axis, stored separately from other arrays: their order.
    pub label: Option<LabelOrder>,
}

/// The order of labels along a dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelOrder {
    /// In any order.
    Unordered,
    /// Increasing; repeated labels are allowed.
    Increasing,
    /// Decreasing; repeated labels are allowed.
    Decreasing,
}

impl LabelOrder {
    /// The order of the same labels, reversed.
    #[must_use]
    pub const fn reversed(self) -> Self {
        match self {
            Self::Unordered => Self::Unordered,
            Self::Increasing => Self::Decreasing,
            Self::Decreasing => Self::Increasing,
        }
    }
}

/// The storage layout of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoredLayout {
    /// In the array's metadata.
    Compact,
    /// Contiguous.
    Contiguous,
    /// In chunks.
    Chunked,
    /// Contiguous, in these files.
    External(Vec<String>),
    /// Virtual: its elements are those of other arrays.
    Virtual(Arc<Vec<VirtualSource>>),
}

/// A part of another array that is mapped into this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VirtualSource {
    /// The name of the other file; `.` for the same file.
    pub file: String,
    /// The path of the other array.
    pub dataset: String,
    /// The selected part of the other array, in the format's own encoding.
    pub from: Vec<u8>,
    /// The selected part of this array, in the format's own encoding.
    pub to: Vec<u8>,
}

impl StoredArray {
    /// Whether the array states what never-written cells hold. Zarr v2 and HDF5 can leave it open.
    #[must_use]
    pub fn states_fill(&self) -> bool {
        let is_null =
            |document: &serde_json::Value| document.get("fill_value").is_some_and(serde_json::Value::is_null);
        !self.document.as_deref().is_some_and(is_null)
            && self.fill.is_none_or(|fill| fill.value != FillState::Undefined)
    }
}

/// When space is allocated and filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredFill {
    /// When space is allocated: 1 early, 2 late, 3 as chunks are written.
    pub allocation: u8,
    /// When the fill value is written: 0 at allocation, 1 never, 2 if it was set.
    pub time: u8,
    /// The state of the value.
    pub value: FillState,
}

/// Whether a fill value was set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FillState {
    /// Explicitly undefined.
    Undefined,
    /// Never set: zeros.
    Default,
    /// Explicitly set, to zeros or another value.
    Set,
}

/// A filter by the format's own number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredFilter {
    /// The number.
    pub id: u32,
    /// The name, if stored.
    pub name: String,
    /// The parameters.
    pub values: Vec<u32>,
    /// Whether a chunk may be stored without it.
    pub optional: bool,
}

/// Properties of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredAttribute {
    /// The stored type of its elements.
    pub dtype: Arc<StoredType>,
    /// The named type, if it uses one.
    pub named_type: Option<TypeName>,
    /// It has a type but no value.
    pub no_space: bool,
    /// Whether its name is marked as UTF-8.
    pub utf8_name: bool,
}

/// A reference to a named type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TypeName {
    /// This object of the source store.
    Id(ObjectId),
    /// The one at this path of the store being written.
    Path(String),
}

/// Properties of a named type.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredNamedType {
    /// Properties shared with other objects.
    pub object: StoredObject,
    /// The type.
    pub dtype: Arc<StoredType>,
}

/// A name in a group, and its target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The name.
    pub name: String,
    /// Whether the name is marked as UTF-8.
    pub utf8: bool,
    /// The target.
    pub target: LinkTarget,
    /// Whether the stored name is different. ([`Store::as_stored`](crate::Store::as_stored) shows that one.)
    pub renamed: bool,
}

/// The target of a link. `N` identifies an object of the store: by identity when read, by path when written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkTarget<N = ObjectId> {
    /// An object of the store. Several links may refer to one object.
    Hard(N),
    /// A path of the store, which may not exist.
    Soft(String),
    /// A path in another file.
    External {
        /// The name of the other file.
        file: String,
        /// The path inside it.
        path: String,
    },
    /// A kind known only to the writing program.
    Other(u8),
}

/// The identity of an object: two paths to one object have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId(pub u64);
