//! Gives arrays that formats store in different forms one form, so that they can be compared.

use hyperslab_core::{Array, Attribute, DType, Elements, Node, Result, Values, element_to_json};

use crate::convert::netcdf_form_of;

/// Both nodes in NetCDF's form, if only one of them is: characters beside text, flags of one byte beside booleans.
pub(super) fn nodes(a: &Node, b: &Node) -> Result<Option<[Node; 2]>> {
    let (Node::Array(one), Node::Array(other)) = (a, b) else { return Ok(None) };
    if is_netcdf_form(&**other, &**one) {
        return Ok(Some([Node::Array(netcdf_form_of(one)?), b.clone()]));
    }
    if is_netcdf_form(&**one, &**other) {
        return Ok(Some([a.clone(), Node::Array(netcdf_form_of(other)?)]));
    }
    Ok(None)
}

/// Whether an array can be NetCDF's form of another.
fn is_netcdf_form(array: &dyn Array, of: &dyn Array) -> bool {
    let (own, of) = (array.schema(), of.schema());
    match (&of.dtype, &own.dtype) {
        (DType::Bool, DType::Int8) => {
            own.attributes.get("dtype").and_then(Attribute::as_text).as_deref() == Some("bool")
        }
        (dtype, DType::FixedBytes(1)) => {
            let is_text =
                matches!(dtype, DType::String | DType::Bytes | DType::FixedText(_) | DType::FixedBytes(_));
            is_text && own.shape().split_last().is_some_and(|(_, shape)| shape == of.shape())
        }
        _ => false,
    }
}

/// Whether elements of these types are texts that are only stored in different ways.
pub(super) fn are_texts(a: &DType, b: &DType) -> bool {
    let is_text = |dtype: &DType| matches!(dtype, DType::String | DType::FixedText(_));
    let can_be = |dtype: &DType| is_text(dtype) || matches!(dtype, DType::FixedBytes(_));
    a != b && (is_text(a) && can_be(b) || can_be(a) && is_text(b))
}

/// The values as texts of any length. Padding is no content.
pub(super) fn texts(values: &Values) -> Result<Values> {
    Values::new(DType::String, &values.shape, text_elements(&values.dtype, &values.elements))
}

/// The elements as texts of any length.
pub(super) fn text_elements(dtype: &DType, elements: &Elements) -> Elements {
    if *dtype == DType::String {
        return elements.clone();
    }
    let text = |index| match element_to_json(dtype, elements, index) {
        serde_json::Value::String(text) => text,
        other => other.to_string(),
    };
    let texts: Vec<String> = (0..elements.len(dtype)).map(text).collect();
    Elements::variable(texts).with_validity(elements.validity.clone())
}
