//! Properties of nodes beyond their content: types as stored, layout, order of creation, links.
//!
//! A reader fills in what its format keeps. A sink whose format has the same notion writes it again; others ignore it.

use std::sync::Arc;

use super::StoredType;

/// Whether the order in which things were made is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CreationOrder {
    /// It is not.
    #[default]
    Untracked,
    /// It is.
    Tracked,
    /// It is, and things can be found by it.
    Indexed,
}

/// Properties of any object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StoredObject {
    /// The order of its attributes; `None` where the format has no such choice.
    pub attribute_order: Option<CreationOrder>,
    /// A comment on it.
    pub comment: Option<String>,
}

/// Properties of a group.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StoredGroup {
    /// As of any object.
    pub object: StoredObject,
    /// The order of its links; `None` where the format has no such choice.
    pub link_order: Option<CreationOrder>,
}

/// Properties of an array.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StoredArray {
    /// As of any object.
    pub object: StoredObject,
    /// The type of its elements.
    pub dtype: Option<Arc<StoredType>>,
    /// The named type that it uses.
    pub named_type: Option<TypeName>,
    /// It has a type and no dataspace: neither a shape nor elements. An array of no elements has a shape.
    pub no_space: bool,
    /// How its bytes are laid out.
    pub layout: Option<StoredLayout>,
    /// When and with what never-written cells are filled.
    pub fill: Option<StoredFill>,
    /// Its filters in the format's own numbers, in the order of writing.
    pub filters: Vec<StoredFilter>,
    /// The shape that is stored, where dimensions that it shares with other arrays have grown beyond it.
    pub extent: Option<Vec<u64>>,
    /// The shape of the shards that hold its chunks, where the format has them.
    pub shard_shape: Option<Vec<u64>>,
    /// The document that describes it, in formats that have one, without its attributes.
    pub document: Option<Arc<serde_json::Value>>,
    /// Its description in the format's own encoding, for a writer of the same format.
    pub encoded: Option<Arc<[u8]>>,
    /// The types of its dimensions' coordinates, where the format gives them types; else none.
    pub dimension_types: Vec<crate::DType>,
    /// Arrays of the store that hold labels along an axis, besides those in the schema: axis and path.
    pub coordinates: Vec<(usize, String)>,
    /// It holds labels of its only axis, which the format keeps apart from other arrays.
    pub label: Option<LabelOrder>,
}

/// The order of labels along a dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelOrder {
    /// None.
    Unordered,
    /// Each is at least as large as the one before.
    Increasing,
    /// Each is at most as large as the one before.
    Decreasing,
}

impl LabelOrder {
    /// The order of the same labels from the end to the start.
    #[must_use]
    pub const fn reversed(self) -> Self {
        match self {
            Self::Unordered => Self::Unordered,
            Self::Increasing => Self::Decreasing,
            Self::Decreasing => Self::Increasing,
        }
    }
}

/// How an array's bytes are laid out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoredLayout {
    /// With the array's description.
    Compact,
    /// In one piece.
    Contiguous,
    /// In chunks.
    Chunked,
    /// In one piece, in these files.
    External(Vec<String>),
    /// Nowhere: its elements are those of other arrays.
    Virtual(Arc<Vec<VirtualSource>>),
}

/// A part of another array that is a part of this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VirtualSource {
    /// The other file; `.` for the same.
    pub file: String,
    /// The other array's path.
    pub dataset: String,
    /// Which part of the other array, in the format's own bytes.
    pub from: Vec<u8>,
    /// Which part of this array, in the format's own bytes.
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

/// When space is taken and filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredFill {
    /// When space is taken: 1 early, 2 late, 3 as chunks are written.
    pub allocation: u8,
    /// When the fill value is written: 0 with the space, 1 never, 2 where one was set.
    pub time: u8,
    /// Is there a value?
    pub value: FillState,
}

/// Whether a fill value was set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FillState {
    /// There is explicitly none.
    Undefined,
    /// Nobody set one: zeros.
    Default,
    /// One was set, zeros or not.
    Set,
}

/// A filter in a format's own numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredFilter {
    /// Its number.
    pub id: u32,
    /// Its name, where one is stored.
    pub name: String,
    /// Its parameters.
    pub values: Vec<u32>,
    /// May a chunk be stored without it?
    pub optional: bool,
}

/// Properties of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredAttribute {
    /// The type of its elements.
    pub dtype: Arc<StoredType>,
    /// The named type that it uses.
    pub named_type: Option<TypeName>,
    /// It has a type and no value at all.
    pub no_space: bool,
    /// Is its name marked as UTF-8?
    pub utf8_name: bool,
}

/// Which named type is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TypeName {
    /// This object of the store that it was read from.
    Id(ObjectId),
    /// The one at this path of the store that is being written.
    Path(String),
}

/// Properties of a named type.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredNamedType {
    /// As of any object.
    pub object: StoredObject,
    /// The type.
    pub dtype: Arc<StoredType>,
}

/// A name in a group, and what it leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The name.
    pub name: String,
    /// Is the name marked as UTF-8?
    pub utf8: bool,
    /// Where it leads.
    pub target: LinkTarget,
    /// Does the file have another name for it? ([`Store::as_stored`](crate::Store::as_stored) shows that one.)
    pub renamed: bool,
}

/// Where a link leads. `N` names an object of the store: by identity when it is read, by path when it is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkTarget<N = ObjectId> {
    /// To an object of the store. Several links may lead to one object.
    Hard(N),
    /// To a path of the store, whatever is there.
    Soft(String),
    /// To a path in another file.
    External {
        /// The other file.
        file: String,
        /// The path in it.
        path: String,
    },
    /// Of a kind that only its writer knows.
    Other(u8),
}

/// An object of a store: two paths that lead to one object have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId(pub u64);
