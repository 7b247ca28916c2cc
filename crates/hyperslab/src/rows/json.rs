//! Rows as one JSON object with a list per column.

use std::io::{self, Seek, SeekFrom, Write};

use hyperslab_core::{Error, Result};
use tempfile::SpooledTempFile;

use super::{Rows, cell_to_json};

/// A column's text stays in memory up to this size; beyond it, it goes to a temporary file.
const IN_MEMORY: usize = 4 << 20;

/// Writes `{"name": [value, …], …}`. Columns are collected separately, so memory stays bounded.
///
/// # Errors
///
/// Any error from a batch; [`Io`](Error::Io) if the system reports an error.
pub fn write_json(rows: Rows<'_>, out: &mut dyn Write) -> Result<()> {
    let failed = |source| Error::io("output", source);
    let mut texts: Vec<_> = rows.columns.iter().map(|_| SpooledTempFile::new(IN_MEMORY)).collect();
    let mut first = true;
    for batch in rows.batches {
        let batch = batch?;
        for ((column, elements), text) in rows.columns.iter().zip(&batch.columns).zip(&mut texts) {
            append(text, first, batch.rows, |row| cell_to_json(&column.dtype, elements, row))
                .map_err(failed)?;
        }
        first &= batch.rows == 0;
    }
    let mut finish = || -> io::Result<()> {
        out.write_all(b"{")?;
        for (number, (column, text)) in rows.columns.iter().zip(&mut texts).enumerate() {
            out.write_all(if number > 0 { b",\n" } else { b"" })?;
            serde_json::to_writer(&mut *out, &column.name)?;
            out.write_all(b": [")?;
            text.seek(SeekFrom::Start(0))?;
            io::copy(text, out)?;
            out.write_all(b"]")?;
        }
        out.write_all(b"}\n")
    };
    finish().map_err(failed)
}

fn append(
    text: &mut SpooledTempFile,
    first: bool,
    rows: usize,
    value: impl Fn(usize) -> serde_json::Value,
) -> io::Result<()> {
    let mut buffer = Vec::new();
    for row in 0..rows {
        if !(first && row == 0) {
            buffer.extend_from_slice(b", ");
        }
        serde_json::to_writer(&mut buffer, &value(row))?;
        if buffer.len() > 1 << 16 {
            text.write_all(&buffer)?;
            buffer.clear();
        }
    }
    text.write_all(&buffer)
}

#[cfg(test)]
mod tests {
    use hyperslab_core::{Batch, DType, Elements, Validity};

    use super::super::plain_column;
    use super::*;

    fn written(rows: Rows<'_>) -> serde_json::Value {
        let mut out = Vec::new();
        write_json(rows, &mut out).unwrap();
        serde_json::from_slice(&out).unwrap()
    }

    #[test]
    fn each_column_is_a_list() {
        let columns = vec![plain_column("a", DType::UInt8, true), plain_column("t", DType::String, false)];
        let batch = |a: Vec<u8>, there: bool, t: &[&str]| {
            let rows = a.len();
            let a = Elements::fixed(a).with_validity(Some(Validity::from_flags(vec![there; rows])));
            Ok(Batch { rows, columns: vec![a, Elements::variable(t)] })
        };
        let batches = vec![
            batch(vec![], true, &[]),
            batch(vec![1, 2], true, &["x", "y"]),
            batch(vec![3], false, &["z"]),
        ];
        let rows = Rows { columns: columns.clone(), batches: Box::new(batches.into_iter()) };
        assert_eq!(written(rows), serde_json::json!({"a": [1, 2, null], "t": ["x", "y", "z"]}));
        let none = Rows { columns, batches: Box::new(std::iter::empty()) };
        assert_eq!(written(none), serde_json::json!({"a": [], "t": []}));
    }
}
