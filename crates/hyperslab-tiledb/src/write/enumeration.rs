//! Enumerations of new arrays: the texts or numbers that an attribute's integers stand for.
//!
//! The values come from the type of the elements, or from an attribute `enumeration` where a format without enumerations kept
//! them beside the integers. That attribute also has the enumeration's own name, and whether the order of its values counts.

use hyperslab_core::storage::StageWriter;
use hyperslab_core::{Attributes, DType, EnumType, Error, Result};
use serde_json::Value;

use super::types::datatype;
use crate::datatype::Datatype;
use crate::generic;
use crate::key::Key;
use crate::random;
use crate::schema::{Enumeration, Schema, WRITTEN};

/// The attribute of a node under which an enumeration is shown.
pub(crate) const ATTRIBUTE: &str = "enumeration";

/// An enumeration that is to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewEnumeration {
    pub(crate) name: String,
    ordered: bool,
    datatype: Datatype,
    /// The values as text.
    values: Vec<String>,
}

impl NewEnumeration {
    /// The enumeration of an attribute; `None` where it has none, or one that TileDB cannot hold: its integers count the
    /// values from zero on.
    pub(crate) fn of(name: &str, dtype: &DType, described: Option<&Value>) -> Option<Self> {
        let parsed = match described {
            // Formats without documents keep them as text.
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
        let ordered = field("ordered").and_then(Value::as_bool).unwrap_or(false);
        let mut datatype = Enumeration::datatype_named(field("type").and_then(Value::as_str));
        if Enumeration::encode(name, "", datatype, ordered, &values).is_none() {
            datatype = Datatype::StringUtf8;
        }
        Some(Self { name: name.to_owned(), ordered, datatype, values })
    }

    /// As [`of`](Self::of), from the attributes of an array; and its attributes without it.
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

/// Writes the enumerations of a new schema's attributes and notes them in it. Attributes that name the same enumeration with
/// other values get one of their own.
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

/// Writes the values of an enumeration; returns the name of the file.
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

/// The type of an attribute whose enumeration gets more names, behind those that it has.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) when it has no enumeration of texts, or its integers cannot count so far.
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
    Ok(EnumType { base: named.base.clone(), members }.into())
}

/// Writes the enumeration of an attribute once more, with all names that a type has, and notes it in the schema.
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
