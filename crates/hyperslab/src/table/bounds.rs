//! Parses range bounds in the type of a dimension. Both ends are included.

use hyperslab_core::{Bound, Bounds, Column, DType, Error, Result, date_tick};

/// The range between two labels of a dimension.
pub(super) fn bounds(column: &Column, from: Option<&str>, to: Option<&str>) -> Result<Bounds> {
    let bound = |label: &str, high: bool| {
        bound(&column.dtype, label, high).ok_or_else(|| {
            let wanted = match &column.dtype {
                DType::DateTime(_) => "a date such as 2020-01-31T12:00",
                dtype if dtype.is_float() => "a number",
                _ => "a whole number",
            };
            Error::invalid(format!("dimension {}: {label} is not {wanted}", column.name))
        })
    };
    Ok(Bounds {
        low: from.map(|label| bound(label, false)).transpose()?,
        high: to.map(|label| bound(label, true)).transpose()?,
    })
}

fn bound(dtype: &DType, label: &str, high: bool) -> Option<Bound> {
    match dtype {
        DType::Float16 | DType::Float32 | DType::Float64 | DType::Float128 => {
            let number: f64 = label.parse().ok()?;
            (!number.is_nan()).then_some(Bound::Float(number))
        }
        DType::DateTime(unit) => date_tick(label, *unit, high).map(Bound::Integer),
        DType::String | DType::Bytes | DType::Reference | DType::FixedBytes(_) | DType::FixedText(_) => {
            Some(Bound::Bytes(label.as_bytes().to_vec()))
        }
        _ => integer(label, high).map(Bound::Integer),
    }
}

/// An integer; for a fraction, the nearest integer inside the range.
fn integer(label: &str, high: bool) -> Option<i128> {
    if let Ok(number) = label.parse() {
        return Some(number);
    }
    let number: f64 = label.parse().ok()?;
    if number.is_nan() {
        return None;
    }
    // The conversion saturates, so that infinities reach to the ends.
    Some(if high { number.floor() as i128 } else { number.ceil() as i128 })
}
