//! The nodes of a file being written.

use std::sync::Arc;

use hyperslab_core::{ArraySpec, Attributes, DType, Error, Extents, Result, StoredGroup, Values};
use serde_json::Value;

use super::array::{NewArray, Shared};
use super::attributes::{NewAttribute, check_attribute, set_by_people, values_of};
use super::object::MOST_ATTRIBUTES;
use super::scales::ScaleAttribute;
use crate::message::datatype::Type;

/// A node of the file being written.
#[derive(Debug)]
pub(crate) struct NewNode {
    pub(crate) path: String,
    pub(crate) kind: NewKind,
    pub(crate) attributes: Vec<NewAttribute>,
    /// Attributes added by dimension scales.
    pub(crate) scales: Vec<ScaleAttribute>,
    /// The links of a group in creation order.
    pub(crate) children: Vec<Child>,
    /// The address of the header, once known.
    pub(crate) address: u64,
    /// Group properties kept from the source file.
    pub(crate) stored: StoredGroup,
    /// The number of hard links to the node, plus the uses of a committed type.
    pub(crate) links: u32,
}

impl NewNode {
    /// Sets an attribute; one of the same name is replaced.
    pub(crate) fn set_attribute(&mut self, new: NewAttribute) {
        match self.attributes.iter_mut().find(|known| known.name == new.name) {
            Some(held) => *held = new,
            None => self.attributes.push(new),
        }
    }
}

/// A link in a group.
#[derive(Debug)]
pub(crate) struct Child {
    pub(crate) name: String,
    pub(crate) target: ChildTarget,
}

/// The target of a link.
#[derive(Debug)]
pub(crate) enum ChildTarget {
    /// To a node of the tree.
    Node(usize),
    /// To a path.
    Soft(String),
    /// To a path in another file.
    External { file: String, path: String },
}

/// The kind of a node.
#[derive(Debug)]
pub(crate) enum NewKind {
    Group {
        /// False if it was only created as the parent of another node.
        made: bool,
    },
    Array(Arc<NewArray>),
    /// A committed type.
    Type(Arc<Type>),
    /// A node that the file held before.
    Existing,
}

/// The attributes of an array in the form to be stored. A `_FillValue` of text is given the type of the array; the NetCDF-4
/// library fails on any other type.
pub(crate) fn array_attributes(
    spec: &ArraySpec,
    verbatim: bool,
    shared: &Shared,
) -> Result<Vec<NewAttribute>> {
    const MARKER: &str = "_FillValue";
    let own = spec.attributes.get(MARKER).filter(|_| !verbatim && spec.attributes.stored(MARKER).is_none());
    let text = own.and_then(|marker| match marker.to_json() {
        Value::String(text) => Some(text),
        Value::Array(items) if items.len() == 1 => items[0].as_str().map(str::to_owned),
        _ => None,
    });
    let Some(mut marker) = text.and_then(|text| Values::text_of_type(&text, &spec.dtype)) else {
        return checked_attributes(&spec.attributes, verbatim, shared);
    };
    // A single character becomes one byte, and any other text a list of one text.
    if marker.dtype != DType::FixedBytes(1) {
        marker.shape = Extents::from_slice(&[1]);
    }
    let mut attributes = spec.attributes.clone();
    attributes.set(MARKER, marker);
    checked_attributes(&attributes, verbatim, shared)
}

/// The attributes of a node in the form to be stored.
///
/// With the `verbatim` option they include the bookkeeping attributes of dimension scales and NetCDF-4.
pub(crate) fn checked_attributes(
    attributes: &Attributes,
    verbatim: bool,
    shared: &Shared,
) -> Result<Vec<NewAttribute>> {
    let mut checked = Vec::new();
    let mut chosen = set_by_people(attributes).map(|(name, _)| name).peekable();
    for (name, value) in attributes.iter() {
        if chosen.next_if_eq(&name).is_none() && !verbatim {
            continue;
        }
        let (values, stored) = (values_of(name, value)?, attributes.stored(name).cloned());
        let attribute = NewAttribute { name: name.to_owned(), values, stored };
        check_attribute(&attribute, shared.style, shared.sizes)?;
        checked.push(attribute);
    }
    if checked.len() > MOST_ATTRIBUTES {
        return Err(Error::invalid(format!(
            "{} attributes of one object, but HDF5 numbers at most {MOST_ATTRIBUTES}",
            checked.len()
        )));
    }
    Ok(checked)
}
