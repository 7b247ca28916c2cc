//! Forms: how content stands in a format that has no place for it, and how it is found again.
//!
//! The rules are those of `docs/notes/0003-forms.md`. The converter stores nodes in these forms where the target's
//! [capabilities](hyperslab_core::Capabilities) and [types](hyperslab_core::FormatDriver::holds) ask for it; [`restored`] wraps
//! an opened store, so that whoever reads it sees the nodes that were meant.
//!
//! | content | form | marked by |
//! |---|---|---|
//! | elements of a type that the format lacks | a type that it has, often with one more axis | [`TYPE`] |
//! | structs | a group with an array per member | [`TYPE`] of the group |
//! | elements that may be missing | the values, and beside them an array that is 1 where one is missing | [`MASK`] |
//! | a table | a group with an array per column | [`KIND`] of the group, [`COLUMN`] and [`DIMENSION`] of its arrays |
//! | a geometry | a group with arrays for vertices, links, objects and attributes | nothing: their names say it |

mod array;
mod columns;
mod derived;
mod element;
mod geometry;
mod restore;
mod types;

use hyperslab_core::{Attributes, DType};

pub(crate) use array::{ArrayForm, mask_path, stored_arrays};
use columns::RestoredTable;
pub(crate) use element::Form;
use element::Leaf;
pub(crate) use geometry::stored_geometry;
pub(crate) use restore::restored;
use types::type_text;

/// The type that the elements of an array, or the members of a group, stand for.
pub(crate) const TYPE: &str = "hyperslab_type";
/// The name of the array beside this one that tells which elements are missing.
pub(crate) const MASK: &str = "hyperslab_mask";
/// What a group stands for.
pub(crate) const KIND: &str = "hyperslab_kind";
/// The [`KIND`] of a table.
pub(crate) const TABLE: &str = "table";
/// The number of a column.
pub(crate) const COLUMN: &str = "hyperslab_column";
/// Set on columns that are dimensions.
pub(crate) const DIMENSION: &str = "hyperslab_dimension";
/// The dimension that the columns of a table share.
pub(crate) const ROW: &str = "row";

/// What the name of a mask ends with.
const MASK_ENDING: &str = "_mask";

/// What a target has a place for.
pub(crate) struct Holds<'a> {
    /// Elements of this type.
    pub(crate) dtype: &'a dyn Fn(&DType) -> bool,
    /// Elements that may be missing.
    pub(crate) nullable: bool,
}

/// The attributes without the marks of forms.
fn unmarked(attributes: &Attributes) -> Attributes {
    attributes.filtered(|name, _| ![TYPE, MASK, KIND, COLUMN, DIMENSION].contains(&name))
}

/// The text of an attribute.
fn text(attributes: &Attributes, name: &str) -> Option<String> {
    attributes.get(name)?.as_text()
}

/// The number of an attribute; formats that only know text hold it as text.
fn number(attributes: &Attributes, name: &str) -> Option<u64> {
    let value = attributes.get(name)?.to_json();
    // NetCDF's attributes are always lists.
    let value = value.as_array().and_then(|list| list.first()).unwrap_or(&value);
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}
