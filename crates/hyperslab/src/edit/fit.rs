//! Fits attributes to the format of a store and to the node that gets them.

use hyperslab_core::{
    Attribute, Attributes, DType, Elements, Error, Node, Result, Values, did_you_mean, normal_path,
};

use super::{Edit, attributes_of, parse_attribute, value};
use crate::conventions::text_like;
use crate::convert::fitted_attribute;
use crate::{Format, OpenStore, format_of_extension};

/// CF's missing-value marker, an element of the array.
const MARKER: &str = "_FillValue";
/// Other attributes to which CF gives the type of the array's elements.
const OF_ELEMENT_TYPE: [&str; 4] = ["missing_value", "valid_min", "valid_max", "valid_range"];

/// Parses an attribute of a node as [`parse_attribute`] does. Its numbers get the named type, else that of the existing attribute,
/// else that of the array for attributes that hold array values.
///
/// # Errors
///
/// As [`attributes_of`]; [`Invalid`](Error::Invalid) for a name that is not a numeric type, and for a value that its type cannot
/// hold.
pub fn attribute_value(
    store: &OpenStore,
    node: &str,
    name: &str,
    text: &str,
    named: Option<&str>,
) -> Result<Attribute> {
    let attributes = attributes_of(store, node)?;
    let held = match attributes.get(name) {
        Some(Attribute::Values(values)) => Some(values.dtype.clone()),
        _ => None,
    };
    let own = elements_of(store, node)?.filter(|_| name == MARKER || OF_ELEMENT_TYPE.contains(&name));
    let (wanted, must_be_number) = match (named, held, own) {
        (Some(named), ..) => (Some(numeric_type(named)?), true),
        (None, _, Some(own)) if name == MARKER => (Some(own), true),
        (None, Some(held), _) => (Some(held), false),
        (None, None, Some(own)) => (Some(own), true),
        (None, None, None) => (None, false),
    };
    let value = parse_attribute(text, wanted.as_ref())?;
    let is_number =
        matches!(&value, Attribute::Values(values) if values.dtype.is_integer() || values.dtype.is_float());
    match wanted {
        Some(dtype) if must_be_number && !is_number => {
            Err(Error::invalid(format!("{name}: {text} is not a value of type {dtype}")))
        }
        _ => Ok(value),
    }
}

fn numeric_type(named: &str) -> Result<DType> {
    const NUMBERS: [DType; 11] = [
        DType::Int8,
        DType::Int16,
        DType::Int32,
        DType::Int64,
        DType::UInt8,
        DType::UInt16,
        DType::UInt32,
        DType::UInt64,
        DType::Float16,
        DType::Float32,
        DType::Float64,
    ];
    let names: Vec<String> = NUMBERS.iter().map(DType::to_string).collect();
    let found = NUMBERS.iter().find(|dtype| dtype.to_string() == named);
    found.cloned().ok_or_else(|| {
        let hint = did_you_mean(named, names.iter().map(String::as_str));
        Error::invalid(format!("{named} is not a numeric type{hint}"))
    })
}

/// The type of an array's elements, if they are numbers.
fn elements_of(store: &OpenStore, node: &str) -> Result<Option<DType>> {
    let dtype = match store.find(&normal_path(node))? {
        Node::Array(array) => array.schema().dtype.clone(),
        _ => return Ok(None),
    };
    Ok(Some(dtype).filter(|dtype| dtype.is_integer() || dtype.is_float()))
}

/// The edit with the attribute as the store's format holds it. An attribute that the format lacks or that is its bookkeeping is an
/// error.
pub(super) fn fitted(store: &OpenStore, format: Format, edit: &Edit) -> Result<Edit> {
    let (Edit::SetAttribute { node, name, .. } | Edit::DeleteAttribute { node, name }) = edit else {
        return Ok(edit.clone());
    };
    let attributes = attributes_of(store, node)?;
    let mut edited = attributes.clone();
    if let Edit::SetAttribute { value, .. } = edit {
        edited.set(name.as_str(), value.clone());
    }
    let is_bookkeeping =
        |attributes: &Attributes| format.driver().bookkeeping(attributes, false).contains(&name.as_str());
    if is_bookkeeping(&attributes) || is_bookkeeping(&edited) {
        return Err(refused(
            store,
            node,
            name,
            "it is part of the format's bookkeeping and cannot be edited",
        ));
    }
    let Edit::SetAttribute { value, .. } = edit else { return Ok(edit.clone()) };
    let value = match (attributes.get(name), value.as_text()) {
        _ if name == MARKER => marker(store, node, value)?,
        (Some(old), Some(text)) => text_like(old, &text),
        _ => value.clone(),
    };
    let value = held(store, format, &value).map_err(|why| refused(store, node, name, &why))?;
    Ok(Edit::SetAttribute { node: node.clone(), name: name.clone(), value })
}

fn refused(store: &OpenStore, node: &str, name: &str, why: &str) -> Error {
    let (path, node) = (store.path().display(), normal_path(node));
    Error::invalid(format!("{path}: attribute {name:?} of {node}: {why}. Nothing was changed"))
}

/// A missing-value marker has the type of the array's elements.
fn marker(store: &OpenStore, node: &str, value: &Attribute) -> Result<Attribute> {
    if let Some(dtype) = elements_of(store, node)? {
        let wrong =
            || refused(store, node, MARKER, &format!("it must be one value of the array's type, {dtype}"));
        let typed = value::number_of_type(value, &dtype).map_err(|_| wrong())?;
        return typed.map(Attribute::Values).ok_or_else(wrong);
    }
    // An array of characters has a character.
    if let Node::Array(array) = store.find(&normal_path(node))?
        && let (DType::FixedBytes(length), Some(text)) = (&array.schema().dtype, value.as_text())
        && text.len() == *length
    {
        let values = Values::scalar(DType::FixedBytes(*length), Elements::fixed(text.into_bytes()))?;
        return Ok(Attribute::Values(values));
    }
    Ok(value.clone())
}

/// The value in the type in which the format holds it, or the reason why it cannot hold it.
fn held(store: &OpenStore, format: Format, value: &Attribute) -> Result<Attribute, String> {
    let info = format.info();
    let is_document = |value: &Attribute| {
        let as_text = value.to_values().is_none_or(|own| own.dtype == DType::String && own.shape.is_empty());
        matches!(value, Attribute::Json(document) if !document.is_string()) && as_text
    };
    if is_document(value) && !info.capabilities.json_attributes {
        return Err(format!("{} holds no {}", info.name, kind(&value.to_json())));
    }
    // Not every writer of NetCDF-4 marks its files.
    let by_extension = format_of_extension(store.path()).filter(|(named, _)| *named == format);
    let variant = store.inner().variant().and_then(|variant| info.variant(variant));
    let variant = variant.or_else(|| by_extension?.1);
    let fitted = fitted_attribute(value, format, variant, false).map(|(fitted, _)| fitted);
    let fitted = fitted.as_ref().unwrap_or(value);
    if variant.is_some_and(|variant| variant.info().netcdf_types)
        && let Attribute::Values(own) = fitted
    {
        let is_text = matches!(own.dtype, DType::String | DType::FixedBytes(_) | DType::FixedText(_));
        let is_number = own.dtype.is_integer() || own.dtype.is_float();
        if !is_text && !is_number || own.dtype == DType::Float128 {
            return Err(format!("the NetCDF library has no attributes of type {}", own.dtype));
        }
    }
    match format.driver().refused_attribute(fitted) {
        Some(why) => Err(why),
        None => Ok(fitted.clone()),
    }
}

/// The kind of a JSON document.
const fn kind(document: &serde_json::Value) -> &'static str {
    match document {
        serde_json::Value::Null => "null",
        serde_json::Value::Object(_) => "objects in attributes",
        _ => "empty or mixed lists in attributes",
    }
}
