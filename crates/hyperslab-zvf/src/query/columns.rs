//! Values and attributes of the selected vertices.

use bytes::Bytes;
use hyperslab_core::{DType, Elements, Error, Place, Result, Validity, Values};
use serde_json::Value;

use super::select::Selected;
use crate::cells::CellArray;
use crate::coord::dotted;
use crate::level::Level;

/// An attribute in a query's result.
#[derive(Debug)]
pub(crate) enum Column<'a> {
    /// An attribute with its own cells.
    Cells(&'a str, &'a CellArray),
    /// The attribute by which space is chunked: its value is that of the chunk.
    ByChunk(String, &'a [Value]),
}

/// The columns that a query selects; all of them if it names none.
pub(crate) fn wanted<'a>(level: &'a Level, names: Option<&[String]>) -> Result<Vec<Column<'a>>> {
    if names.is_some_and(<[String]>::is_empty) {
        return Ok(Vec::new());
    }
    let mut columns: Vec<Column<'a>> =
        level.attributes()?.iter().map(|(name, cells)| Column::Cells(name, cells)).collect();
    let by_chunk = level.metadata.get("chunk_attribute_name").and_then(Value::as_str);
    let values = level.metadata.get("chunk_attribute_values").and_then(Value::as_array);
    if let (Some(name), Some(values), true) = (by_chunk, values, level.leading() == 1) {
        columns.push(Column::ByChunk(name.to_owned(), values));
    }
    let Some(names) = names else { return Ok(columns) };
    let mut chosen = Vec::with_capacity(names.len());
    for name in names {
        let at = columns.iter().position(|column| column.name() == name);
        let at = at.ok_or_else(|| {
            Error::invalid(format!(
                "{}{}: there is no vertex attribute {name:?}",
                level.zarr.directory().name(),
                level.path
            ))
        })?;
        chosen.push(columns.swap_remove(at));
    }
    Ok(chosen)
}

impl Column<'_> {
    fn name(&self) -> &str {
        match self {
            Self::Cells(name, _) => name,
            Self::ByChunk(name, _) => name,
        }
    }
}

/// The positions, one row per vertex, in world coordinates.
pub(crate) fn vertices(selected: &Selected<'_>) -> Result<Values> {
    let level = selected.level;
    let (rank, size) = (level.root.rank(), level.vertex_size());
    let mut bytes = Vec::with_capacity(selected.picked.len() * size);
    for (chunk, row) in &selected.picked {
        let at = *row as usize * size;
        bytes.extend_from_slice(&selected.chunks[*chunk as usize].vertices.bytes[at..at + size]);
    }
    to_native(&level.dtype, &mut bytes);
    let shape = [selected.picked.len() as u64, rank as u64];
    let values = Values::new(level.dtype.clone(), &shape, Elements::fixed(bytes))?;
    match &level.root.offset {
        None => Ok(values),
        Some(offset) => translated(&values, offset),
    }
}

/// Adds an offset to positions, as 64-bit floats, because a large offset exceeds the precision of 32-bit floats.
fn translated(values: &Values, offset: &[f64]) -> Result<Values> {
    let rank = offset.len();
    let mut bytes = Vec::with_capacity(values.len() * 8);
    for index in 0..values.len() {
        let number = hyperslab_core::element_to_json(&values.dtype, &values.elements, index);
        let position = number.as_f64().unwrap_or(f64::NAN) + offset[index % rank];
        bytes.extend(position.to_ne_bytes());
    }
    Values::new(DType::Float64, &values.shape, Elements::fixed(bytes))
}

/// Converts stored little-endian numbers to the native byte order.
fn to_native(dtype: &DType, bytes: &mut [u8]) {
    if cfg!(target_endian = "big") {
        bytes.chunks_exact_mut(dtype.swap_unit().unwrap_or(1)).for_each(<[u8]>::reverse);
    }
}

/// The columns, one row per vertex.
pub(crate) fn gather(selected: &Selected<'_>, wanted: &[Column<'_>]) -> Result<Vec<(String, Values)>> {
    let column = |column: &Column<'_>| {
        let values = match column {
            Column::Cells(_, cells) => cell_values(selected, cells)?,
            Column::ByChunk(_, values) => chunk_values(selected, values)?,
        };
        Ok((column.name().to_owned(), values))
    };
    wanted.iter().map(column).collect()
}

fn cell_values(selected: &Selected<'_>, cells: &CellArray) -> Result<Values> {
    let dtype = cells.dtype()?;
    let item = dtype.size().unwrap_or(1);
    let mut width = None;
    let mut held: Vec<Option<Bytes>> = Vec::with_capacity(selected.chunks.len());
    for chunk in &selected.chunks {
        let cell = cells.cell(&chunk.coord)?;
        if let Some(cell) = &cell {
            // Derive the width from the bytes: some writers declare an empty row shape for rows of several columns.
            let own = (cell.len() as u64).checked_div(chunk.vertices.rows * item as u64).unwrap_or(0);
            let whole = own * chunk.vertices.rows * item as u64 == cell.len() as u64 && own > 0;
            if !whole || width.is_some_and(|width| width != own) {
                let name = format!("{} chunk {}", cells.name(), dotted(&chunk.coord));
                let problem = format!("{} bytes of {dtype} for {} vertices", cell.len(), chunk.vertices.rows);
                return Err(Place::new(&name, "vertex attribute", 0).corrupt(problem));
            }
            width = Some(own);
        }
        held.push(cell);
    }
    let declared = cells.row_width();
    let width = width.or(declared).unwrap_or(1);
    let size = item * width as usize;
    let mut bytes = Vec::with_capacity(selected.picked.len() * size);
    for (chunk, row) in &selected.picked {
        let at = *row as usize * size;
        match &held[*chunk as usize] {
            Some(cell) => bytes.extend_from_slice(&cell[at..at + size]),
            None => bytes.resize(bytes.len() + size, 0),
        }
    }
    to_native(&dtype, &mut bytes);
    let missing = held.iter().any(Option::is_none).then(|| {
        let there = selected.picked.iter().map(|(chunk, _)| held[*chunk as usize].is_some());
        Validity::from_flags(there.flat_map(|there| std::iter::repeat_n(there, width as usize)))
    });
    let rows = selected.picked.len() as u64;
    // A single column is flat if it is declared as `[]`, or has one value per row.
    let flat =
        width == 1 && cells.attributes.get("row_shape").and_then(Value::as_array).is_none_or(Vec::is_empty);
    let shape: &[u64] = if flat { &[rows] } else { &[rows, width] };
    let values = Values::new(dtype, shape, Elements::fixed(bytes).with_validity(missing))?;
    match cells.attributes.get("categories").and_then(Value::as_array) {
        Some(categories) if flat => categorical(&values, categories, cells),
        _ => Ok(values),
    }
}

/// Converts codes to the texts of their categories. The fill value means missing.
fn categorical(codes: &Values, categories: &[Value], cells: &CellArray) -> Result<Values> {
    let Some(texts) = categories.iter().map(Value::as_str).collect::<Option<Vec<_>>>() else {
        return Ok(codes.clone());
    };
    let fill = cells.attributes.get("_FillValue").and_then(Value::as_i64);
    let mut rows = Vec::with_capacity(codes.len());
    for index in 0..codes.len() {
        let code = hyperslab_core::element_to_json(&codes.dtype, &codes.elements, index);
        let code = code.as_i64();
        let text = code.and_then(|code| usize::try_from(code).ok()).and_then(|code| texts.get(code));
        if text.is_none() && code.is_some() && code != fill {
            let problem = format!("code {code:?} of {} categories", texts.len());
            return Err(Place::new(cells.name(), "vertex attribute", 0).corrupt(problem));
        }
        rows.push(text.copied());
    }
    let validity =
        rows.iter().any(Option::is_none).then(|| Validity::from_flags(rows.iter().map(Option::is_some)));
    let elements = Elements::variable(rows.iter().map(|text| text.unwrap_or(""))).with_validity(validity);
    Values::new(DType::String, &[rows.len() as u64], elements)
}

/// The value of each vertex's chunk on the leading axis.
fn chunk_values(selected: &Selected<'_>, values: &[Value]) -> Result<Values> {
    let rows = selected.picked.iter().map(|(chunk, _)| {
        let bin = selected.chunks[*chunk as usize].coord[0];
        usize::try_from(bin).ok().and_then(|bin| values.get(bin))
    });
    let rows: Vec<Option<&Value>> = rows.collect();
    let validity =
        rows.iter().any(Option::is_none).then(|| Validity::from_flags(rows.iter().map(Option::is_some)));
    let shape = [rows.len() as u64];
    let integers = values.iter().all(|value| value.is_i64());
    let (dtype, elements) = if integers || values.iter().all(Value::is_number) {
        let bytes = rows.iter().flat_map(|value| {
            let value = value.unwrap_or(&Value::Null);
            if integers {
                value.as_i64().unwrap_or(0).to_ne_bytes()
            } else {
                value.as_f64().unwrap_or(f64::NAN).to_ne_bytes()
            }
        });
        (if integers { DType::Int64 } else { DType::Float64 }, Elements::fixed(bytes.collect::<Vec<u8>>()))
    } else {
        let text = |value: &Option<&Value>| match value {
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => String::new(),
        };
        (DType::String, Elements::variable(rows.iter().map(text)))
    };
    Values::new(dtype, &shape, elements.with_validity(validity))
}
