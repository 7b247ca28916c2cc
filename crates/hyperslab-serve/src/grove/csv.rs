//! Numbers as written by `numpy.savetxt`: `%.18e`, one row per line.

use std::fmt::Write;

use hyperslab::{DType, Values};

use super::data::to_safe;
use super::stats::numbers_of;
use crate::answer::Failure;

pub(crate) fn encode(values: &Values) -> Result<String, Failure> {
    if values.dtype == DType::Float128 {
        return encode(&to_safe(values.clone()));
    }
    let each = match values.shape.as_slice() {
        [_] => 1,
        [_, columns] => *columns as usize,
        other => {
            return Err(Failure::query(format!("csv holds one or two dimensions, not {}", other.len())));
        }
    };
    let wrong = || Failure::query(format!("csv of {} is not supported", values.dtype));
    let bytes = values.elements.as_fixed().ok_or_else(wrong)?;
    let size = values.dtype.size().unwrap_or(1).max(1);
    let mut out = String::with_capacity(values.len() * 26);
    for (index, held) in bytes.chunks_exact(size).enumerate() {
        match &values.dtype {
            DType::Complex64 | DType::Complex128 => {
                let part = if values.dtype == DType::Complex64 { DType::Float32 } else { DType::Float64 };
                let read = numbers_of(&part).ok_or_else(wrong)?;
                let (real, imaginary) = held.split_at(size / 2);
                let imaginary = read(imaginary);
                let sign = if imaginary.is_sign_negative() { "" } else { "+" };
                let _ = write!(out, " ({}{sign}{}j)", scientific(read(real)), scientific(imaginary));
            }
            dtype => out.push_str(&scientific(numbers_of(dtype).ok_or_else(wrong)?(held))),
        }
        out.push(if (index + 1) % each.max(1) == 0 { '\n' } else { ',' });
    }
    Ok(out)
}

/// Formats a number like C's `%.18e`.
fn scientific(number: f64) -> String {
    if number.is_nan() {
        return "nan".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let text = format!("{number:.18e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
    format!("{digits}e{sign}{exponent:0>2}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_match_printf() {
        assert_eq!(scientific(0.1), "1.000000000000000056e-01");
        assert_eq!(scientific(-1e300), "-1.000000000000000053e+300");
        assert_eq!(scientific(0.0), "0.000000000000000000e+00");
        assert_eq!(scientific(f64::NAN), "nan");
    }
}
