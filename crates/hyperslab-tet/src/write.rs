//! Writes files.

mod finish;
mod metadata;
mod names;
mod rows;
mod sink;
mod stage;

pub(crate) use finish::{encode_footer, encode_head, now};
pub(crate) use metadata::{Described, delete_from_group, describe, limits, set_group};
pub(crate) use names::Names;
pub(crate) use rows::Dimensioned;
use serde_json::Value;
pub(crate) use sink::MOST_ZONES;
pub use sink::{TetOptions, TetSink};
pub(crate) use stage::{Stage, StagedArray, head_length, rows_checksum};

/// An attribute in the format's text form: text unchanged, anything else as JSON.
pub(crate) fn attribute_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
pub(crate) mod tests;
