//! Rows as comma-separated values with a header line.

use std::io::Write;

use hyperslab_core::{DType, Elements, Error, Result, element_to_text};
use serde_json::Value;

use super::{Rows, cell_to_json};

/// Writes a header line and one line per row. Missing elements are empty; lists and structs are JSON.
///
/// # Errors
///
/// Any error from a batch; [`Io`](Error::Io) if the system reports an error.
pub fn write_csv(rows: Rows<'_>, out: &mut dyn Write) -> Result<()> {
    let failed = |source| Error::io("output", source);
    let names: Vec<_> = rows.columns.iter().map(|column| quoted(&column.name)).collect();
    writeln!(out, "{}", names.join(",")).map_err(failed)?;
    let mut line = String::new();
    for batch in rows.batches {
        let batch = batch?;
        for row in 0..batch.rows {
            line.clear();
            for (number, (column, elements)) in rows.columns.iter().zip(&batch.columns).enumerate() {
                if number > 0 {
                    line.push(',');
                }
                line.push_str(&cell(&column.dtype, elements, row));
            }
            line.push('\n');
            out.write_all(line.as_bytes()).map_err(failed)?;
        }
    }
    Ok(())
}

/// One element in CSV form.
pub(super) fn cell(dtype: &DType, elements: &Elements, index: usize) -> String {
    if matches!(dtype, DType::Float16 | DType::Float32 | DType::Float64) && !elements.is_missing(index) {
        return element_to_text(dtype, elements, index);
    }
    match cell_to_json(dtype, elements, index) {
        Value::Null => String::new(),
        // Empty text is quoted, to distinguish it from a missing element.
        Value::String(text) if text.is_empty() => "\"\"".to_owned(),
        Value::String(text) => quoted(&text),
        nested @ (Value::Array(_) | Value::Object(_)) => quoted(&nested.to_string()),
        plain => plain.to_string(),
    }
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) || text.trim().len() != text.len() {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
