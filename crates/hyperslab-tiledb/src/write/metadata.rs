//! Attributes as array metadata.

use hyperslab_core::storage::StageWriter;
use hyperslab_core::{Attribute, Attributes, DType, Data, Result};

use super::timed_name;
use crate::datatype::{CellValues, Datatype};
use crate::generic;
use crate::key::Key;
use crate::metadata::Entry;
use crate::schema::WRITTEN;

/// Writes attributes of an array or group. Writes nothing if there are none. Values without a TileDB type are written
/// as JSON text.
pub(crate) fn put(folder: &StageWriter, attributes: &Attributes, at: u64, key: Option<&Key>) -> Result<()> {
    put_prefixed(folder, [("", attributes)], at, key).map(|_| ())
}

/// Like [`put`], for several sets of attributes, each with a key prefix. Returns the key of the file.
pub(crate) fn put_prefixed<'a>(
    folder: &StageWriter,
    sets: impl IntoIterator<Item = (&'a str, &'a Attributes)>,
    at: u64,
    key: Option<&Key>,
) -> Result<Option<String>> {
    put_changes(folder, sets, &[], at, key)
}

/// Like [`put_prefixed`], and also deletes the keys in `deleted`.
pub(crate) fn put_changes<'a>(
    folder: &StageWriter,
    sets: impl IntoIterator<Item = (&'a str, &'a Attributes)>,
    deleted: &[String],
    at: u64,
    key: Option<&Key>,
) -> Result<Option<String>> {
    let mut payload = Vec::new();
    for name in deleted {
        Entry { key: name.clone(), value: None }.encode(&mut payload);
    }
    for (prefix, attributes) in sets {
        for (name, attribute) in attributes.iter() {
            let key = format!("{prefix}{name}");
            if let Some(value) = value_of(attribute) {
                Entry { key, value: Some(value) }.encode(&mut payload);
            } else if let Some((text, dtype)) = text_of(attribute) {
                if let Some(dtype) = dtype {
                    let key = format!("{}{key}", crate::metadata::TYPE_PREFIX);
                    Entry { key, value: Some(text_value(dtype)) }.encode(&mut payload);
                }
                Entry { key, value: Some(text_value(text)) }.encode(&mut payload);
            }
        }
    }
    if payload.is_empty() {
        return Ok(None);
    }
    let file = format!("__meta/{}", timed_name(at, at, false)?);
    folder.put(&file, &generic::encode(&payload, WRITTEN, key)?)?;
    Ok(Some(file))
}

/// The value in a type of the format; `None` if there is no such type.
fn value_of(attribute: &Attribute) -> Option<(Datatype, u32, Vec<u8>)> {
    let values = attribute.to_values()?;
    let single = values.shape.is_empty();
    match (&values.dtype, &values.elements.data) {
        (DType::String, Data::Variable { bytes, .. }) if single => {
            Some((Datatype::StringUtf8, bytes.len() as u32, bytes.to_vec()))
        }
        (DType::Bytes, Data::Variable { bytes, .. }) if single => {
            Some((Datatype::Blob, bytes.len() as u32, bytes.to_vec()))
        }
        (dtype, Data::Fixed(bytes)) if values.shape.len() <= 1 && values.elements.validity.is_none() => {
            let (datatype, CellValues::Fixed(1)) = super::types::datatype(dtype)? else { return None };
            (!datatype.is_bytes() && !bytes.is_empty())
                .then(|| (datatype, (bytes.len() / datatype.size()) as u32, bytes.to_vec()))
        }
        _ => None,
    }
}

/// A value without a TileDB type as JSON, and the name of its type.
fn text_of(attribute: &Attribute) -> Option<(String, Option<String>)> {
    let typed = Attribute::Values(attribute.to_values()?);
    let text = match typed.to_json() {
        serde_json::Value::String(text) => text,
        other => other.to_string(),
    };
    Some((text, typed.type_beside_json()))
}

fn text_value(text: String) -> (Datatype, u32, Vec<u8>) {
    (Datatype::StringUtf8, text.len() as u32, text.into_bytes())
}
