//! Answers in the shape that readers of query documents expect.

use hyperslab_core::{Result, Values, element_to_json};
use serde_json::{Map, Value, json};

use crate::query::Answer;

/// The fields of `execution` for a reduction with this key.
pub(super) fn fields(
    key: &str,
    answer: &Answer,
    scalar: bool,
    matched: Option<u64>,
) -> Result<Map<String, Value>> {
    let values = answer.values()?;
    let mut fields = Map::new();
    fields.insert("operation_element_count".to_owned(), matched.unwrap_or(answer.cells).into());
    let name = match key {
        "arg_min" => "argmin",
        "arg_max" => "argmax",
        other => other,
    };
    if key == "histogram" {
        let counts = flat(&values);
        if scalar {
            fields.insert("operation_histogram_counts".to_owned(), counts);
            fields.insert("operation_histogram_edges".to_owned(), json!(answer.edges));
        } else {
            fields.insert("operation_reduced_histogram_counts".to_owned(), counts);
        }
        fields.insert("operation_reduced_shape".to_owned(), json!(answer.shape()));
        return Ok(fields);
    }
    if !scalar {
        fields.insert(format!("operation_reduced_{name}"), flat(&values));
        fields.insert("operation_reduced_shape".to_owned(), json!(answer.shape()));
        return Ok(fields);
    }
    let value = one(&values, 0);
    match key {
        "count" => {
            fields.insert("operation_element_count".to_owned(), value);
        }
        "arg_min" | "arg_max" => {
            fields.insert(format!("operation_{name}_index"), value);
        }
        _ => {
            fields.insert(format!("operation_{name}"), value);
        }
    }
    Ok(fields)
}

/// All values in one list, in C order.
pub(super) fn flat(values: &Values) -> Value {
    (0..values.len()).map(|index| one(values, index)).collect()
}

/// A value; `null` if it is missing, infinite or NaN.
fn one(values: &Values, index: usize) -> Value {
    match element_to_json(&values.dtype, &values.elements, index) {
        Value::String(_) => Value::Null,
        value => value,
    }
}
