//! Enumerations of new arrays: the texts or numbers that an attribute's integers represent.
//!
//! The values come from the element type or, for formats without enumerations, from an attribute `enumeration` stored
//! beside the integers. That attribute also has the enumeration's name and whether its values are ordered.

use hyperslab_core::storage::StageWriter;
use hyperslab_core::{Attributes, DType, EnumType, Error, Result};
use serde_json::Value;

use super::types::datatype;
use crate::datatype::Datatype;
use crate::generic;
use crate::key::Key;
use crate::random;
use crate::schema::{Enumeration, Schema, WRITTEN};

/// The node attribute that shows an enumeration.
pub(crate) const ATTRIBUTE: &str = "enumeration";

/// An enumeration to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewEnumeration {
    pub(crate) name: String,
    ordered: bool,
    datatype: Datatype,
    /// The values as text.
    values: Vec<String>,
}

impl NewEnumeration {
    /// The enumeration of an attribute. Returns `None` if it has none, or if TileDB cannot represent it because its
    /// codes are not `0, 1, 2, …`.
    pub(crate) fn of(name: &str, dtype: &DType, described: Option<&Value>) -> Option<Self> {
        let parsed = match described {
            // Formats without structured attributes store it as JSON text.
            Some(Value::String(text)) => serde_json::from_str(text).ok(),
            other => other.cloned(),
        };
        let described = parsed.as_ref().and_then(Value::as_object);
        let field = |key: &str| described.and_then(|described| described.get(key));
        let texts = |values: &Value| -> Option<Vec<String>> {
            let text = |value: &Value| match value {
                Value::String(text) => Some(text.clone()),
                Value::Number(number) => Some(number.to_string()),
                _ => None,
            };
            values.as_array()?.iter().map(text).collect()
        };
        let values = match dtype {
            DType::Enum(named) if named.is_numbered() => {
                named.members.iter().map(|(name, _)| name.clone()).collect()
            }
            dtype if dtype.is_integer() => field("values").and_then(texts)?,
            _ => return None,
        };
        let name = field("name").and_then(Value::as_str).filter(|name| !name.is_empty()).unwrap_or(name);
        let ordered = field("ordered").and_then(Value::as_bool);
        let ordered = ordered.unwrap_or_else(|| matches!(dtype, DType::Enum(named) if named.ordered));
        let mut datatype = Enumeration::datatype_named(field("type").and_then(Value::as_str));
        if Enumeration::encode(name, "", datatype, ordered, &values).is_none() {
            datatype = Datatype::StringUtf8;
        }
        Some(Self { name: name.to_owned(), ordered, datatype, values })
    }

    /// Like [`of`](Self::of), but takes the enumeration from the attributes of an array. Also returns the attributes
    /// without it.
    pub(crate) fn from_attributes(
        name: &str,
        dtype: &DType,
        attributes: &Attributes,
    ) -> (Option<Self>, Attributes) {
        let described = attributes.get(ATTRIBUTE).map(hyperslab_core::Attribute::to_json);
        match Self::of(name, dtype, described.as_ref()) {
            Some(found) => (Some(found), attributes.filtered(|name, _| name != ATTRIBUTE)),
            None => (None, attributes.clone()),
        }
    }
}

/// Writes the enumerations of a new schema's attributes and adds them to the schema. If two attributes use the same
/// name for different values, each gets its own enumeration.
pub(crate) fn put<'a>(
    folder: &StageWriter,
    schema: &mut Schema,
    enumerations: impl IntoIterator<Item = (usize, &'a NewEnumeration)>,
    key: Option<&Key>,
) -> Result<()> {
    let mut written: Vec<(String, &NewEnumeration)> = Vec::new();
    for (attribute, own) in enumerations {
        if let Some((name, _)) = written.iter().find(|(_, other)| *other == own) {
            schema.attributes[attribute].enumeration = Some(name.clone());
            continue;
        }
        let mut name = own.name.clone();
        while schema.enumerations.iter().any(|(other, _)| *other == name) {
            name = format!("{}_{name}", schema.attributes[attribute].name);
        }
        let file = put_file(folder, &name, own.datatype, own.ordered, &own.values, key)?;
        schema.enumerations.push((name.clone(), file));
        schema.attributes[attribute].enumeration = Some(name.clone());
        written.push((name, own));
    }
    Ok(())
}

/// Writes the values of an enumeration. Returns the name of the file.
fn put_file(
    folder: &StageWriter,
    name: &str,
    datatype: Datatype,
    ordered: bool,
    values: &[String],
    key: Option<&Key>,
) -> Result<String> {
    let file = format!("__{}_0", random::uuid()?);
    let payload = Enumeration::encode(name, &file, datatype, ordered, values)
        .ok_or_else(|| Error::invalid(format!("enumeration {name} holds numbers; {values:?} are not")))?;
    folder.put(&format!("__schema/__enumerations/{file}"), &generic::encode(&payload, WRITTEN, key)?)?;
    Ok(file)
}

/// Returns an attribute's type with more names appended to its enumeration.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) if it has no enumeration of texts, or if its integers are too small for the new codes.
pub(crate) fn extended(dtype: &DType, column: &str, names: &[String]) -> Result<DType> {
    let DType::Enum(named) = dtype else {
        return Err(Error::invalid(format!("column {column} has no enumeration")));
    };
    let mut members = named.members.clone();
    for (name, code) in names.iter().zip(members.len() as i128..) {
        members.push((name.clone(), code));
    }
    let most = datatype(&named.base).map_or(0, |(datatype, _)| datatype.number().limits().1);
    if members.len() as i128 - 1 > most {
        let base = &named.base;
        return Err(Error::invalid(format!(
            "column {column}: its enumeration is full: {base} cannot count {} names",
            members.len()
        )));
    }
    Ok(EnumType { members, ..EnumType::clone(named) }.into())
}

/// Writes an attribute's enumeration again with all names of a type, and updates the schema.
pub(crate) fn put_extended(
    folder: &StageWriter,
    schema: &mut Schema,
    stored: &Enumeration,
    dtype: &DType,
    key: Option<&Key>,
) -> Result<()> {
    let DType::Enum(named) = dtype else { return Ok(()) };
    let values: Vec<String> = named.members.iter().map(|(name, _)| name.clone()).collect();
    let file = put_file(folder, &stored.name, stored.datatype, stored.ordered, &values, key)?;
    if let Some((_, own)) = schema.enumerations.iter_mut().find(|(name, _)| *name == stored.name) {
        *own = file;
    }
    Ok(())
}
