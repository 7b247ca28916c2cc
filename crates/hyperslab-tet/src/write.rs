//! Making files.

mod finish;
mod metadata;
mod rows;
mod sink;
mod stage;

pub(crate) use metadata::limits;
use serde_json::Value;
pub use sink::{TetOptions, TetSink};

/// An attribute as the text that the format wants: text as it is, anything else as JSON.
pub(crate) fn attribute_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests;
