//! Vertices, links and attributes as plain numbers.

use hyperslab_core::{Error, Result, Values, element_to_json};

use super::Selected;

/// All elements as `f64`. Values that are not numbers become NaN.
pub(super) fn floats(values: &Values) -> Vec<f64> {
    let number = |index| match element_to_json(&values.dtype, &values.elements, index) {
        serde_json::Value::String(text) => text.parse().unwrap_or(f64::NAN),
        value => value.as_f64().unwrap_or(f64::NAN),
    };
    match (values.as_slice::<f32>(), values.as_slice::<f64>(), &values.dtype) {
        (Some(singles), _, hyperslab_core::DType::Float32) => singles.iter().map(|&n| f64::from(n)).collect(),
        (_, Some(doubles), hyperslab_core::DType::Float64) => doubles.to_vec(),
        _ => (0..values.len()).map(number).collect(),
    }
}

/// The vertex rows of each link.
pub(super) fn links(selected: &Selected) -> Result<Vec<Vec<usize>>> {
    let Some(links) = &selected.data.links else { return Ok(Vec::new()) };
    let width = links.shape.get(1).map_or(1, |width| *width as usize).max(1);
    let row = |index| {
        let value = element_to_json(&links.dtype, &links.elements, index);
        let row = value.as_u64().and_then(|row| usize::try_from(row).ok());
        row.ok_or_else(|| Error::invalid(format!("a link refers to vertex {value}, which does not exist")))
    };
    let rows = (0..links.len()).map(row).collect::<Result<Vec<_>>>()?;
    Ok(rows.chunks(width).map(<[usize]>::to_vec).collect())
}

/// Vertices as three numbers each; a missing axis is zero.
pub(super) fn points(selected: &Selected) -> Result<Vec<[f64; 3]>> {
    let rank = selected.axes.len();
    if rank == 0 || rank > 3 {
        return Err(Error::invalid(format!(
            "the geometry has {rank} axes, but the file format holds at most three"
        )));
    }
    let numbers = floats(&selected.data.vertices);
    let point =
        |row: &[f64]| [row[0], row.get(1).copied().unwrap_or(0.0), row.get(2).copied().unwrap_or(0.0)];
    Ok(numbers.chunks_exact(rank).map(point).collect())
}

/// Returns true for one number per vertex.
pub(super) fn is_number(values: &Values) -> bool {
    let one = values.shape.iter().skip(1).product::<u64>() == 1;
    one && (values.dtype.is_numeric() || values.dtype == hyperslab_core::DType::Bool)
}

/// Returns true if objects run from vertex to vertex without explicit links.
pub(super) fn are_lines(selected: &Selected) -> bool {
    selected.kinds.iter().any(|kind| kind.contains("line"))
}
