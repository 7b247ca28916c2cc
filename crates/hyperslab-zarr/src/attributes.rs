//! Attributes: JSON documents to typed values and back, with xarray's conventions.
//!
//! JSON has one kind of number, and xarray stores some properties of an array in attributes and fields of its own. This module
//! handles both: above this crate an attribute has the type that the convention gives it, and dimension names and missing-value
//! markers are found in one place.
//!
//! | | v2 | v3 |
//! |---|---|---|
//! | dimension names | attribute `_ARRAY_DIMENSIONS` | field `dimension_names` |
//! | `_FillValue` | field `fill_value` | attribute `_FillValue`; floats as base64 of a little-endian double |
//! | `_FillValue` of text | field `fill_value` | attribute `missing_value`: xarray does not open an array of text with `_FillValue` |
//! | `_FillValue` of another type, or several | attribute `_FillValue` | attribute `missing_value`: xarray does not open a store with such a `_FillValue` |

use hyperslab_core::{Attribute, Attributes, DType, Elements, Fill, Result, Values};
use serde_json::{Map, Value, json};

use crate::fill;
use crate::json::{Doc, mark, non_finite, without_marks};

/// The attribute in which xarray stores dimension names in v2.
pub(crate) const DIMENSIONS: &str = "_ARRAY_DIMENSIONS";
/// CF's missing-value marker.
pub(crate) const FILL_VALUE: &str = "_FillValue";
/// CF's other marker, which may have several values.
const MISSING_VALUE: &str = "missing_value";
/// Attributes whose values have the type of the array's elements, by CF.
const OF_ELEMENT_TYPE: [&str; 6] =
    [MISSING_VALUE, "valid_min", "valid_max", "valid_range", "flag_values", "flag_masks"];

/// The attributes of a group.
pub(crate) fn of_group(document: Option<&Value>, doc: Doc<'_>) -> Result<Attributes> {
    Ok(fields(document, doc)?.iter().map(|(name, value)| (name.as_str(), read(value))).collect())
}

/// The attributes of a v3 array.
pub(crate) fn of_array_v3(document: Option<&Value>, dtype: &DType, doc: Doc<'_>) -> Result<Attributes> {
    let attribute = |(name, value): (&String, &Value)| {
        let typed = if name == FILL_VALUE { marker_v3(value, dtype) } else { typed(name, value, dtype) };
        (name.clone(), typed.map_or_else(|| read(value), Attribute::Values))
    };
    Ok(fields(document, doc)?.iter().map(attribute).collect())
}

/// The attributes of a v2 array. xarray uses `fill_value` as the missing-value marker, ahead of any attribute.
pub(crate) fn of_array_v2(
    document: Option<&Value>,
    dtype: &DType,
    fill_value: Option<&Value>,
    fill: &Fill,
    doc: Doc<'_>,
) -> Result<Attributes> {
    let fields = fields(document, doc)?;
    let mut attributes = Attributes::new();
    for (name, value) in fields.iter().filter(|(name, _)| *name != DIMENSIONS) {
        let typed = if name == FILL_VALUE { exact(value, dtype) } else { typed(name, value, dtype) };
        attributes.set(name.as_str(), typed.map_or_else(|| read(value), Attribute::Values));
    }
    // Without dimension names it is not an xarray array, and an empty text is not a marker.
    let is_marker = fields.contains_key(DIMENSIONS)
        && fill_value.is_some_and(|value| !value.is_null() && value.as_str() != Some(""));
    if is_marker && (dtype.is_fixed() || matches!(fill, Fill::Element(_))) {
        let element = match fill {
            Fill::Element(element) => element.clone(),
            _ => Elements::zero(dtype),
        };
        attributes.set(FILL_VALUE, Values::scalar(dtype.clone(), element)?);
    }
    Ok(attributes)
}

fn fields<'v>(document: Option<&'v Value>, doc: Doc<'_>) -> Result<std::borrow::Cow<'v, Map<String, Value>>> {
    match document {
        None | Some(Value::Null) => Ok(std::borrow::Cow::Owned(Map::new())),
        Some(value) => doc.object(value, "attributes").map(std::borrow::Cow::Borrowed),
    }
}

/// Reads a value unchanged. Bare `NaN` and `Infinity` are numbers.
fn read(value: &Value) -> Attribute {
    let number = |value: &Value| non_finite(value).or_else(|| value.as_f64());
    let floats = |numbers: Vec<f64>, shape: &[u64]| {
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
        Values::new(DType::Float64, shape, Elements::fixed(bytes)).ok()
    };
    let values = match value {
        Value::Array(items) if items.iter().any(|item| non_finite(item).is_some()) => items
            .iter()
            .map(number)
            .collect::<Option<Vec<f64>>>()
            .and_then(|numbers| floats(numbers, &[items.len() as u64])),
        single => non_finite(single).and_then(|number| floats(vec![number], &[])),
    };
    values.map_or_else(|| Attribute::Json(without_marks(value)), Attribute::Values)
}

/// An attribute that has the array's element type; `None` for others, or if the conversion would change the value.
fn typed(name: &str, value: &Value, dtype: &DType) -> Option<Values> {
    if !OF_ELEMENT_TYPE.contains(&name) || !(dtype.is_integer() || dtype.is_float()) {
        return None;
    }
    let Value::Array(items) = value else { return exact(value, dtype) };
    let items: Option<Vec<Values>> = items.iter().map(|item| exact(item, dtype)).collect();
    let bytes: Vec<u8> =
        items?.iter().filter_map(|item| item.elements.as_fixed()).flat_map(|bytes| bytes.to_vec()).collect();
    let count = bytes.len() / dtype.size()?;
    Values::new(dtype.clone(), &[count as u64], Elements::fixed(bytes)).ok()
}

/// A number as an element of the type; `None` if it is not a number or not exactly representable.
fn exact(value: &Value, dtype: &DType) -> Option<Values> {
    if value.is_string() && non_finite(value).is_none() {
        return None;
    }
    let mut bytes = Vec::new();
    fill::element(value, dtype, &mut bytes)?;
    let values = Values::scalar(dtype.clone(), Elements::fixed(bytes)).ok()?;
    let same = match (values.to_json().as_f64(), value.as_f64()) {
        (Some(own), Some(wanted)) => own == wanted || (dtype.is_integer() && values.to_json() == *value),
        _ => true,
    };
    same.then_some(values)
}

/// A v3 `_FillValue`.
fn marker_v3(value: &Value, dtype: &DType) -> Option<Values> {
    let double = |value: &Value| -> Option<Value> {
        let Some(text) = value.as_str().filter(|_| non_finite(value).is_none()) else {
            return Some(value.clone());
        };
        let bytes: [u8; 8] = fill::decode_base64(text)?.try_into().ok()?;
        let number = f64::from_le_bytes(bytes);
        Some(mark(number).unwrap_or_else(|| json!(number)))
    };
    match (dtype, value) {
        (DType::Complex64 | DType::Complex128, Value::Array(parts)) => {
            exact(&Value::Array(parts.iter().map(double).collect::<Option<_>>()?), dtype)
        }
        _ if dtype.is_float() => {
            // A double represents the nearest value of a narrower type.
            let mut bytes = Vec::new();
            fill::element(&double(value)?, dtype, &mut bytes)?;
            Values::scalar(dtype.clone(), Elements::fixed(bytes)).ok()
        }
        _ => exact(value, dtype),
    }
}

/// Attributes as a JSON document.
pub(crate) fn to_json(attributes: &Attributes) -> Map<String, Value> {
    attributes.iter().map(|(name, value)| (name.to_owned(), write(value))).collect()
}

/// The attributes of an array as stored in v3.
pub(crate) fn to_v3(attributes: &Attributes, dtype: &DType) -> Map<String, Value> {
    let mut document = to_json(attributes);
    let Some(marker) = attributes.get(FILL_VALUE) else { return document };
    if let Some(marker) = marker_to_v3(marker, dtype) {
        document.insert(FILL_VALUE.to_owned(), marker);
        return document;
    }
    let Some(marker) = document.shift_remove(FILL_VALUE) else { return document };
    if is_text(dtype) {
        if let Some(text) = text_marker_in_v3(attributes, dtype) {
            document.insert(MISSING_VALUE.to_owned(), Value::String(text));
        }
    } else {
        let other = document.remove(MISSING_VALUE);
        document.insert(MISSING_VALUE.to_owned(), both_markers(other, marker));
    }
    document
}

/// All markers of an array, as one value or a list.
fn both_markers(other: Option<Value>, marker: Value) -> Value {
    let items = |value: Value| match value {
        Value::Array(items) => items,
        single => vec![single],
    };
    let mut all = other.map_or_else(Vec::new, items);
    for marker in items(marker) {
        if !all.contains(&marker) {
            all.push(marker);
        }
    }
    if all.len() == 1 { all.remove(0) } else { Value::Array(all) }
}

/// The change to the missing-value marker in v3; `None` if there is no marker or it is stored as it is.
pub(crate) fn changed_marker_in_v3(attributes: &Attributes, dtype: &DType) -> Option<&'static str> {
    let marker = attributes.get(FILL_VALUE)?;
    if !is_text(dtype) {
        return marker_to_v3(marker, dtype).is_none().then_some(
            "_FillValue is not one value of the array's type; it is stored as missing_value, so that xarray opens the store",
        );
    }
    Some(match text_marker_in_v3(attributes, dtype) {
        Some(_) => "_FillValue is stored as missing_value, in which xarray reads markers of text",
        None => "_FillValue is left out, because xarray reads no markers of such text from Zarr 3",
    })
}

/// The marker of a text array, which v3 stores as `missing_value`. xarray does not compare byte strings with it.
fn text_marker_in_v3(attributes: &Attributes, dtype: &DType) -> Option<String> {
    let is_free =
        attributes.get(MISSING_VALUE).is_none() && matches!(dtype, DType::String | DType::FixedText(_));
    single_text(attributes.get(FILL_VALUE)?).filter(|_| is_free)
}

const fn is_text(dtype: &DType) -> bool {
    matches!(dtype, DType::String | DType::Bytes | DType::FixedText(_) | DType::FixedBytes(_))
}

/// The only text of an attribute.
fn single_text(attribute: &Attribute) -> Option<String> {
    write(attribute).as_str().map(str::to_owned)
}

/// The attributes of an array as stored in v2, and its missing-value marker, if any.
pub(crate) fn to_v2(
    attributes: &Attributes,
    dtype: &DType,
    dimensions: &[Option<String>],
) -> (Map<String, Value>, Option<Elements>) {
    let mut document = to_json(attributes);
    let names: Option<Vec<&String>> = dimensions.iter().map(Option::as_ref).collect();
    if let Some(names) = names {
        document.insert(DIMENSIONS.to_owned(), json!(names));
    }
    let marker = attributes.get(FILL_VALUE).and_then(|marker| element_of(marker, dtype));
    if marker.is_some() {
        document.shift_remove(FILL_VALUE);
    }
    (document, marker)
}

/// One attribute as JSON. A list of one value becomes that value, as in NetCDF.
fn write(attribute: &Attribute) -> Value {
    let Attribute::Values(values) = attribute else { return attribute.to_json() };
    let document = match (values.shape.as_slice(), values.to_json()) {
        ([1], Value::Array(mut items)) if items.len() == 1 => items.remove(0),
        (_, document) => document,
    };
    if values.dtype.is_float() { marked(&document) } else { document }
}

/// Converts non-finite numbers, which are strings in our JSON, to bare numbers.
fn marked(document: &Value) -> Value {
    match document {
        Value::Array(items) => items.iter().map(marked).collect(),
        Value::String(text) => {
            let number = text.replace("Infinity", "inf").parse::<f64>().ok();
            number.and_then(mark).unwrap_or_else(|| document.clone())
        }
        other => other.clone(),
    }
}

/// The single element of an attribute, in the type of the array; `None` if it has no such element.
fn element_of(attribute: &Attribute, dtype: &DType) -> Option<Elements> {
    match attribute {
        Attribute::Values(values) if values.dtype == *dtype && values.len() == 1 => {
            Some(values.elements.clone())
        }
        Attribute::Values(values) if values.dtype.is_numeric() && dtype.is_numeric() => {
            exact(&write(attribute), dtype).map(|values| values.elements)
        }
        _ if is_text(dtype) => {
            Values::text_of_type(&single_text(attribute)?, dtype).map(|values| values.elements)
        }
        Attribute::Json(value) => exact(value, dtype).map(|values| values.elements),
        _ => None,
    }
}

fn marker_to_v3(attribute: &Attribute, dtype: &DType) -> Option<Value> {
    let element = element_of(attribute, dtype)?;
    let bytes = element.as_fixed()?;
    let double = |number: f64| json!(fill::encode_base64(&number.to_le_bytes()));
    let number = |value: &Value| match value {
        Value::String(text) => text.replace("Infinity", "inf").parse::<f64>().ok(),
        number => number.as_f64(),
    };
    let values = Values::scalar(dtype.clone(), Elements::fixed(bytes.clone())).ok()?.to_json();
    match dtype {
        DType::Complex64 | DType::Complex128 => {
            let parts = values.as_array()?.iter().map(|part| number(part).map(double));
            parts.collect::<Option<Vec<_>>>().map(Value::Array)
        }
        _ if dtype.is_float() => number(&values).map(double),
        DType::Bool => Some(values),
        _ if dtype.is_integer() => Some(values),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOC: Doc<'_> = Doc { store: "x.zarr", key: "zarr.json" };

    fn marker(dtype: &DType, bytes: &[u8]) -> Attributes {
        let values = Values::scalar(dtype.clone(), Elements::fixed(bytes.to_vec())).unwrap();
        Attributes::from_iter([(FILL_VALUE, values)])
    }

    #[test]
    fn markers_have_the_form_that_xarray_reads() {
        let cases: [(DType, Vec<u8>, Value); 6] = [
            (DType::Float32, (-9999_f32).to_ne_bytes().to_vec(), json!("AAAAAICHw8A=")),
            (DType::Float64, f64::NAN.to_ne_bytes().to_vec(), json!("AAAAAAAA+H8=")),
            (DType::Int16, (-1_i16).to_ne_bytes().to_vec(), json!(-1)),
            (DType::UInt64, u64::MAX.to_ne_bytes().to_vec(), json!(u64::MAX)),
            (DType::Bool, vec![1], json!(true)),
            (
                DType::Complex64,
                [(-1_f32).to_ne_bytes(), f32::NAN.to_ne_bytes()].concat(),
                json!(["AAAAAAAA8L8=", "AAAAAAAA+H8="]),
            ),
        ];
        for (dtype, bytes, document) in cases {
            let own = marker(&dtype, &bytes);
            let written = Value::Object(to_v3(&own, &dtype));
            assert_eq!(written[FILL_VALUE], document, "{dtype}");
            let back = of_array_v3(Some(&written), &dtype, DOC).unwrap();
            let Some(Attribute::Values(values)) = back.get(FILL_VALUE) else { panic!("{dtype}") };
            assert_eq!((&values.dtype, values.elements.as_fixed().unwrap().as_ref()), (&dtype, &bytes[..]));
        }
    }

    #[test]
    fn markers_that_are_no_element_become_missing_values() {
        let number =
            |number: f64| Values::scalar(DType::Float64, Elements::fixed(number.to_ne_bytes().to_vec()));
        for (dtype, value, document) in [
            (DType::Float32, 1e20, json!(1e20)),
            (DType::Int32, 2.5, json!(2.5)),
            (DType::Int16, 99_999.0, json!(99_999.0)),
        ] {
            let own = Attributes::from_iter([(FILL_VALUE, number(value).unwrap())]);
            assert_eq!(Value::Object(to_v3(&own, &dtype)), json!({MISSING_VALUE: document}), "{dtype}");
            assert!(changed_marker_in_v3(&own, &dtype).is_some());
        }
        let mut own = Attributes::from_iter([(FILL_VALUE, number(2.5).unwrap())]);
        own.set(MISSING_VALUE, number(-1.0).unwrap());
        assert_eq!(Value::Object(to_v3(&own, &DType::Int32)), json!({MISSING_VALUE: [-1.0, 2.5]}));
    }

    #[test]
    fn version_2_keeps_the_marker_as_its_fill_value() {
        let own = marker(&DType::Int16, &(-5_i16).to_ne_bytes());
        let (document, element) = to_v2(&own, &DType::Int16, &[Some("x".to_owned())]);
        assert_eq!(Value::Object(document.clone()), json!({DIMENSIONS: ["x"]}));
        let fill = Fill::Element(element.unwrap());
        let back =
            of_array_v2(Some(&Value::Object(document)), &DType::Int16, Some(&json!(-5)), &fill, DOC).unwrap();
        assert_eq!(back, own);
        // An array that xarray would not open has no such marker.
        let plain = of_array_v2(None, &DType::Int16, Some(&json!(-5)), &fill, DOC).unwrap();
        assert!(plain.is_empty());
        // `null` is not a marker.
        let document = json!({DIMENSIONS: ["x"]});
        let none = of_array_v2(Some(&document), &DType::Int16, Some(&Value::Null), &Fill::Zero, DOC).unwrap();
        assert!(none.is_empty());
    }

    #[test]
    fn attributes_of_the_element_type_get_it_where_nothing_changes() {
        let document =
            json!({"missing_value": -1, "valid_range": [0, 70000], "valid_max": 7, "scale_factor": 2});
        let attributes = of_array_v3(Some(&document), &DType::Int16, DOC).unwrap();
        let dtype = |name: &str| match attributes.get(name) {
            Some(Attribute::Values(values)) => Some(values.dtype.clone()),
            _ => None,
        };
        assert_eq!(dtype("missing_value"), Some(DType::Int16));
        assert_eq!(dtype("valid_max"), Some(DType::Int16));
        assert_eq!((dtype("valid_range"), dtype("scale_factor")), (None, None));
        assert_eq!(attributes.get("valid_range"), Some(&Attribute::Json(json!([0, 70000]))));
    }

    #[test]
    fn non_finite_numbers_are_numbers() {
        let parsed = DOC.parse(br#"{"a": NaN, "b": [1, Infinity], "c": "NaN", "d": {"e": NaN}}"#).unwrap();
        let attributes = of_group(Some(&parsed), DOC).unwrap();
        let Some(Attribute::Values(a)) = attributes.get("a") else { panic!("a number") };
        assert!(a.as_slice::<f64>().unwrap()[0].is_nan());
        assert_eq!(attributes.get("c"), Some(&Attribute::Json(json!("NaN"))));
        assert_eq!(attributes.get("d"), Some(&Attribute::Json(json!({"e": "NaN"}))));
        let text = crate::json::to_text("k", &Value::Object(to_json(&attributes))).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("\"a\": NaN") && text.contains("Infinity") && text.contains("\"c\": \"NaN\""));
    }
}
