//! Rows as a NumPy structured array.

use std::io::{Seek, SeekFrom, Write};

use hyperslab_core::{Batch, Column, DType, Error, Result, StructType};
use hyperslab_npy::encode_header;

use super::Rows;

/// Writes a one-dimensional structured array with one field per column. Text and bytes are padded to the longest, which requires
/// all rows in memory; fixed-size columns are streamed.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) for lists and missing elements, which NumPy files cannot hold; [`Io`](Error::Io)
/// if the system reports an error.
pub fn write_npy<W: Write + Seek>(rows: Rows<'_>, out: &mut W) -> Result<()> {
    let variable = |column: &Column| !column.dtype.is_fixed();
    if rows.columns.iter().any(variable) {
        let (columns, batch) = rows.collect()?;
        let fixed = columns
            .into_iter()
            .zip(batch.columns)
            .map(|(column, elements)| {
                let (dtype, elements) = crate::export::fixed(&column.dtype, elements, batch.rows)?;
                Ok((Column { dtype, ..column }, elements))
            })
            .collect::<Result<Vec<_>>>()?;
        let (columns, elements): (Vec<_>, Vec<_>) = fixed.into_iter().unzip();
        return write_fixed(Rows::once(columns, Batch { rows: batch.rows, columns: elements }), out);
    }
    write_fixed(rows, out)
}

fn write_fixed<W: Write + Seek>(rows: Rows<'_>, out: &mut W) -> Result<()> {
    let failed = |source| Error::io("output", source);
    let dtype = DType::from(StructType::packed(
        rows.columns.iter().map(|column| (column.name.clone(), column.dtype.clone())),
    ));
    // The number of rows is known only at the end, so reserve the space of the largest header.
    let header = |rows: u64| encode_header(&dtype, &[rows]);
    let room = header(u64::MAX)?.len();
    out.write_all(&vec![0; room]).map_err(failed)?;
    let mut count = 0;
    for batch in rows.batches {
        let batch = batch?;
        out.write_all(&interleaved(&rows.columns, &batch)?).map_err(failed)?;
        count += batch.rows as u64;
    }
    let header = padded(header(count)?, room);
    out.seek(SeekFrom::Start(0)).and_then(|_| out.write_all(&header)).map_err(failed)
}

/// A batch in row order.
fn interleaved(columns: &[Column], batch: &Batch) -> Result<Vec<u8>> {
    let mut parts = Vec::with_capacity(columns.len());
    for (column, elements) in columns.iter().zip(&batch.columns) {
        if elements.validity.as_ref().is_some_and(|validity| validity.missing() > 0) {
            return Err(Error::invalid(format!(
                "column {}: NumPy files cannot hold missing elements; write .json, .csv, .arrow or .parquet",
                column.name
            )));
        }
        let size = column.dtype.size().unwrap_or(0);
        let bytes = elements.as_fixed().filter(|bytes| bytes.len() == size * batch.rows);
        parts.push((size, bytes.ok_or_else(|| unfit(column))?));
    }
    let width: usize = parts.iter().map(|(size, _)| size).sum();
    let mut all = Vec::with_capacity(width * batch.rows);
    for row in 0..batch.rows {
        for (size, bytes) in &parts {
            all.extend_from_slice(&bytes[row * size..(row + 1) * size]);
        }
    }
    Ok(all)
}

fn unfit(column: &Column) -> Error {
    Error::invalid(format!("column {}: NumPy files cannot hold elements of {}", column.name, column.dtype))
}

/// Extends the header to `room` bytes with trailing spaces.
fn padded(header: Vec<u8>, room: usize) -> Vec<u8> {
    let more = room.saturating_sub(header.len());
    if more == 0 {
        return header;
    }
    // Version 1 has a two-byte length, later versions four. The newline stays last.
    let wide = header[6] > 1;
    let mut header = header;
    header.pop();
    header.resize(room - 1, b' ');
    header.push(b'\n');
    if wide {
        let length = (room - 12) as u32;
        header[8..12].copy_from_slice(&length.to_le_bytes());
    } else {
        let length = (room - 10) as u16;
        header[8..10].copy_from_slice(&length.to_le_bytes());
    }
    header
}

#[cfg(test)]
mod tests {
    use hyperslab_core::{Elements, Selection};

    use super::super::plain_column;
    use super::*;

    #[test]
    fn structured_arrays_survive_a_round_trip() -> Result<()> {
        let columns = vec![plain_column("a", DType::UInt16, false), plain_column("t", DType::String, false)];
        let batch = |a: u8, t: &[&str]| {
            let a = [a, 0].repeat(t.len());
            Ok(Batch { rows: t.len(), columns: vec![Elements::fixed(a), Elements::variable(t)] })
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.npy");
        let batches = Box::new(vec![batch(7, &["x", "däy"]), batch(9, &["z"])].into_iter());
        super::super::write(Rows { columns, batches }, &path, false)?;
        let values = crate::open(&path)?.array("/")?.read(&Selection::all())?;
        let expected = serde_json::json!([{"a": 7, "t": "x"}, {"a": 7, "t": "däy"}, {"a": 9, "t": "z"}]);
        assert_eq!(values.to_json(), expected);
        Ok(())
    }
}
