//! Making files.

use serde_json::Value;

/// An attribute as the text that the format wants: text as it is, anything else as JSON.
pub(crate) fn attribute_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
