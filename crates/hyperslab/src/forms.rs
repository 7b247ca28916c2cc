//! Forms: how a format stores content that it does not support natively, and how that content is restored.
//!
//! The rules are in `docs/notes/0003-forms.md`. The converter stores nodes in forms if the target's
//! [capabilities](hyperslab_core::Capabilities) and [types](hyperslab_core::FormatDriver::holds) require it;
//! [`restored`] wraps an opened store, so that readers see the original nodes.
//!
//! | content | form | marked by |
//! |---|---|---|
//! | elements of a type that the format lacks | a type that it has, often with one more axis | [`TYPE`] |
//! | structs | a group with an array per member | [`TYPE`] of the group |
//! | elements that may be missing | the values, and a separate array that is 1 where an element is missing | [`MASK`] |
//! | an array without dimensions, or without elements | an array of one element along each axis of length zero | [`SHAPE`] |
//! | a table | a group with an array per column | [`KIND`] of the group, [`COLUMN`] and [`DIMENSION`] of its arrays |
//! | labels along a dimension that are part of an array | a coordinate named like the dimension | [`LABELS`](labels::LABELS) of the coordinate |
//! | a geometry | a group with arrays for vertices, links, objects and attributes | the names of the arrays |

mod array;
mod columns;
mod derived;
mod element;
mod geometry;
mod labels;
mod restore;
mod sink;
mod types;

use hyperslab_core::{Attributes, Capabilities, DType};

pub(crate) use array::{ArrayForm, mask_path, stored_arrays};
use columns::RestoredTable;
pub(crate) use element::Form;
use element::Leaf;
pub(crate) use geometry::stored_geometry;
pub(crate) use labels::{CreatedCoordinates, DimensionLabels, HeldLabels, labels_of};
pub(crate) use restore::{mask_of, restored};
pub(crate) use sink::formed;
pub(crate) use types::parse_type;
use types::type_text;

/// The original type of the elements of an array, or of the members of a group.
pub(crate) const TYPE: &str = "hyperslab_type";
/// The name of the mask in the same group, which marks missing elements.
pub(crate) const MASK: &str = "hyperslab_mask";
/// The shape of an array without dimensions or without elements.
pub(crate) const SHAPE: &str = "hyperslab_shape";
/// The kind of node that a group represents.
pub(crate) const KIND: &str = "hyperslab_kind";
/// The [`KIND`] of a table.
pub(crate) const TABLE: &str = "table";
/// The number of a column.
pub(crate) const COLUMN: &str = "hyperslab_column";
/// Set on columns that are dimensions.
pub(crate) const DIMENSION: &str = "hyperslab_dimension";
/// Set on the group of a table in which several rows may have the same coordinates.
pub(crate) const DUPLICATES: &str = "hyperslab_duplicates";
/// The dimension that the columns of a table share.
pub(crate) const ROW: &str = "row";

/// The suffix of a mask's name.
pub(crate) const MASK_ENDING: &str = "_mask";

/// Returns true if a mask may have this name.
pub(crate) fn is_mask_name(name: &str) -> bool {
    name.trim_end_matches('_').ends_with(MASK_ENDING)
}

/// The content that a target supports natively.
pub(crate) struct NativeSupport<'a> {
    /// Elements of this type.
    pub(crate) dtype: &'a dyn Fn(&DType) -> bool,
    /// Elements that may be missing.
    pub(crate) nullable: bool,
    /// Arrays without dimensions.
    pub(crate) scalars: bool,
    /// Arrays without elements.
    pub(crate) empty: bool,
}

impl<'a> NativeSupport<'a> {
    /// The content that a format supports natively, with a function for element types.
    pub(crate) const fn new(dtype: &'a dyn Fn(&DType) -> bool, capabilities: Capabilities) -> Self {
        let Capabilities { nullable, no_scalars, no_empty, .. } = capabilities;
        Self { dtype, nullable, scalars: !no_scalars, empty: !no_empty }
    }

    /// Arrays of this shape.
    fn shape(&self, shape: &[u64]) -> bool {
        (self.scalars || !shape.is_empty()) && (self.empty || !shape.contains(&0))
    }
}

/// The attributes without those that mark forms.
fn unmarked(attributes: &Attributes) -> Attributes {
    attributes.filtered(|name, _| ![TYPE, MASK, SHAPE, KIND, COLUMN, DIMENSION, DUPLICATES].contains(&name))
}

/// An attribute as text.
fn text(attributes: &Attributes, name: &str) -> Option<String> {
    attributes.get(name)?.as_text()
}

/// An attribute as a number. Formats that only support text store it as text.
fn number(attributes: &Attributes, name: &str) -> Option<u64> {
    let value = attributes.get(name)?.to_json();
    // NetCDF's attributes are always lists.
    let value = value.as_array().and_then(|list| list.first()).unwrap_or(&value);
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}
