//! Attributes being written.

use bytes::Bytes;
use hyperslab_core::{
    Attribute, Attributes, DType, Elements, Error, Extents, Result, StoredAttribute, TypeName, Values,
};

use super::object::{Style, shortened};
use super::types::{file_type, fitting};
use crate::conversion::{Element, Keeper, utf8_of};
use crate::file::Sizes;
use crate::message::attribute::Content;
use crate::message::datatype::{Class, Padding, Type};
use crate::message::space::Space;

/// Bookkeeping attributes of dimension scales and NetCDF-4: generated, never copied.
const BOOKKEEPING_ATTRIBUTES: [&str; 5] =
    ["DIMENSION_LIST", "REFERENCE_LIST", "DIMENSION_LABELS", "_Netcdf4Dimid", "_Netcdf4Coordinates"];

/// The attributes that users set, without the bookkeeping of dimension scales and NetCDF-4. Which scale belongs to
/// which dimension is part of an array's schema, and every writer stores that in its own way.
pub fn set_by_people(attributes: &Attributes) -> impl Iterator<Item = (&str, &Attribute)> {
    let is_scale = attributes
        .get("CLASS")
        .and_then(Attribute::as_text)
        .is_some_and(|class| class.trim_end_matches('\0') == "DIMENSION_SCALE");
    attributes.iter().filter(move |(name, _)| {
        !(BOOKKEEPING_ATTRIBUTES.contains(name) || is_scale && matches!(*name, "CLASS" | "NAME"))
    })
}

/// An attribute to write.
#[derive(Debug, Clone)]
pub(crate) struct NewAttribute {
    pub(crate) name: String,
    pub(crate) values: Values,
    /// How the source file stores it.
    pub(crate) stored: Option<StoredAttribute>,
}

/// An attribute's values in the form to be stored.
pub(crate) fn values_of(name: &str, attribute: &Attribute) -> Result<Values> {
    if name.is_empty() || name.contains('\0') {
        return Err(Error::invalid(format!("{name:?} cannot name an attribute")));
    }
    match attribute {
        Attribute::Unreadable(reason) => Err(Error::invalid(format!("attribute {name:?}: {reason}"))),
        readable => readable
            .to_values()
            .ok_or_else(|| Error::invalid(format!("attribute {name:?} of an unknown kind"))),
    }
}

/// Refuses an attribute that cannot be stored, before anything is written.
pub(crate) fn check_attribute(attribute: &NewAttribute, style: Style, sizes: Sizes) -> Result<()> {
    let name = &attribute.name;
    let what = || format!("attribute {:?}", shortened(name));
    let named = |error: Error| match error {
        Error::Invalid(why) => Error::invalid(format!("{}: {why}", what())),
        other => other,
    };
    let stored = attribute.content(sizes, &mut Anywhere).map_err(named)?;
    let message = stored.encode(name, style.types(), sizes).map_err(named)?;
    // New-style objects keep large attributes in a heap.
    if style == Style::Old { style.check_message(&what(), message.len()) } else { Ok(()) }
}

/// Stores nothing and finds every object; used to determine the size of an attribute.
struct Anywhere;

impl Keeper for Anywhere {
    fn keep(&mut self, _: &[u8]) -> Result<(u64, u32)> {
        Ok((0, 0))
    }

    fn object(&mut self, _: &str) -> Result<u64> {
        Ok(0)
    }

    fn has_object(&mut self, _: &str) -> bool {
        true
    }
}

impl NewAttribute {
    /// The attribute's stored form: as in the source file, if its values still have that type.
    pub(crate) fn content(&self, sizes: Sizes, keeper: &mut dyn Keeper) -> Result<Content> {
        let Some((stored, (dtype, element))) = self
            .stored
            .as_ref()
            .and_then(|stored| Some((stored, fitting(&stored.dtype, &self.values.dtype, sizes)?)))
        else {
            return content(&self.values, sizes, keeper);
        };
        let mut data = Vec::new();
        if !stored.no_space {
            element.store(&self.values.elements, keeper, &mut data)?;
        }
        let named_type = match &stored.named_type {
            Some(TypeName::Path(path)) => Some(keeper.object(path)?),
            _ => None,
        };
        let mut space = space(&self.values.shape);
        if stored.no_space {
            space = Space { shape: Extents::new(), max_shape: Vec::new(), null: true };
        }
        Ok(Content { named_type, utf8_name: stored.utf8_name, ..Content::new(dtype, space, data) })
    }
}

/// Encodes an attribute's values. Variable-length parts are stored through `keeper`.
pub(crate) fn content(values: &Values, sizes: Sizes, keeper: &mut dyn Keeper) -> Result<Content> {
    let mut dtype = values.dtype.clone();
    let mut elements = values.elements.clone();
    // A fixed-size string has at least one byte, even if empty.
    if matches!(dtype, DType::FixedBytes(0) | DType::FixedText(0)) {
        dtype = DType::FixedBytes(1);
        elements = Elements::fixed(vec![0; values.len()]);
    }
    // Text of variable length ends at its first NUL.
    if let (DType::String, 1, Some(text)) = (&dtype, values.len(), elements.variable_at(0))
        && text.contains(&0)
    {
        dtype = DType::FixedBytes(text.len());
        elements = Elements::fixed(text.to_vec());
    }
    // References to objects outside the file, or to regions, are stored as the text that they are read as.
    if dtype == DType::Reference
        && (0..values.len())
            .filter_map(|index| std::str::from_utf8(elements.variable_at(index)?).ok())
            .any(|path| !path.is_empty() && keeper.object(path).is_err())
    {
        dtype = DType::String;
    }
    if let DType::FixedText(points) = dtype {
        elements = utf8_of(&elements, points)?;
    }
    let stored = file_type(&dtype, sizes)?;
    let element = Element::new(&stored, sizes, "attribute")?;
    if let Some(problem) = element.unstorable() {
        return Err(Error::unsupported("attribute", problem));
    }
    let mut data = Vec::new();
    element.store(&elements, keeper, &mut data)?;
    Ok(Content::new(stored, space(&values.shape), data))
}

/// A dataspace that does not grow.
pub(crate) fn space(shape: &[u64]) -> Space {
    Space { shape: shape.into(), max_shape: shape.iter().map(|extent| Some(*extent)).collect(), null: false }
}

/// A text as dimension scales store it: fixed size, NUL-terminated.
pub(crate) fn c_text(text: &str) -> Content {
    let data: Bytes = [text.as_bytes(), &[0]].concat().into();
    let class = Class::String { padding: Padding::NulTerminated, utf8: false };
    Content::new(Type { class, size: data.len() }, space(&[]), data)
}
