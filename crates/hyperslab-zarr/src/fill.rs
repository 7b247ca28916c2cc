//! Fill values: JSON to one element and back.

use half::f16;
use hyperslab_codec::narrow::Narrow;
use hyperslab_core::{DType, Elements, Fill, Result, Values};
use serde_json::{Value, json};

use crate::dtype::{StoredType, apply_swaps};
use crate::json::{Doc, non_finite};

/// The fill value of a document. `null` (v2) leaves it undefined, and readers use zeros.
pub(crate) fn parse(value: &Value, stored: &StoredType, doc: Doc<'_>) -> Result<Fill> {
    let dtype = &stored.dtype;
    if value.is_null() {
        return Ok(Fill::Zero);
    }
    if !dtype.is_fixed() {
        // v2 writers put 0 here for texts.
        return Ok(match value.as_str() {
            None | Some("") => Fill::Zero,
            Some(_) if matches!(dtype, DType::List(_)) => Fill::Zero,
            Some(text) if *dtype == DType::Bytes => Fill::Element(Elements::variable([
                decode_base64(text).unwrap_or_else(|| text.as_bytes().into())
            ])),
            Some(text) => Fill::Element(Elements::variable([text])),
        });
    }
    let mut bytes = Vec::with_capacity(dtype.size().unwrap_or(0));
    if let Some(narrow) = stored.narrow
        && let Some(floats) = narrow_bits(value, narrow)
    {
        floats.into_iter().for_each(|float| bytes.extend(float.to_ne_bytes()));
        return Ok(Fill::Element(Elements::fixed(bytes)));
    }
    element(value, dtype, &mut bytes)
        .ok_or_else(|| doc.corrupt(format!("fill_value {value} is not a {dtype}")))?;
    if matches!(dtype, DType::Struct(_)) && value.is_string() {
        apply_swaps(&stored.swaps, bytes.len(), &mut bytes);
    }
    if stored.scale != 1 {
        bytes = scale(&bytes, stored.scale).ok_or_else(|| doc.corrupt(format!("fill_value {value}")))?;
    }
    Ok(if bytes.iter().all(|byte| *byte == 0) { Fill::Zero } else { Fill::Element(Elements::fixed(bytes)) })
}

/// Narrow floats by their bits: `"0x7fc0"`, or a pair of them.
fn narrow_bits(value: &Value, narrow: Narrow) -> Option<Vec<f32>> {
    let float = |value: &Value| {
        let bits = u16::try_from(bits(value, narrow.stored_size())?).ok()?;
        Some(narrow.to_f32(bits))
    };
    match value {
        Value::Array(parts) => parts.iter().map(float).collect(),
        single => float(single).map(|float| vec![float]),
    }
}

/// Converts counts of `factor` ticks to ticks. "Not a time" is preserved.
fn scale(bytes: &[u8], factor: i64) -> Option<Vec<u8>> {
    let ticks = i64::from_ne_bytes(bytes.try_into().ok()?);
    let ticks = if ticks == i64::MIN { ticks } else { ticks.checked_mul(factor)? };
    Some(ticks.to_ne_bytes().to_vec())
}

/// Appends one element in native byte order; `None` if the JSON does not match the type.
pub(crate) fn element(value: &Value, dtype: &DType, out: &mut Vec<u8>) -> Option<()> {
    macro_rules! integer {
        ($type:ty) => {
            out.extend(<$type>::try_from(integer(value)?).ok()?.to_ne_bytes())
        };
    }
    match dtype {
        DType::Bool => out.push(u8::from(match value {
            Value::Bool(truth) => *truth,
            number => integer(number)? != 0,
        })),
        DType::Int8 => integer!(i8),
        DType::Int16 => integer!(i16),
        DType::Int32 => integer!(i32),
        DType::Int64 => integer!(i64),
        DType::UInt8 => integer!(u8),
        DType::UInt16 => integer!(u16),
        DType::UInt32 => integer!(u32),
        DType::UInt64 => integer!(u64),
        DType::Float16 => match bits(value, 2) {
            Some(bits) => out.extend(u16::try_from(bits).ok()?.to_ne_bytes()),
            None => out.extend(f16::from_f64(float(value)?).to_ne_bytes()),
        },
        DType::Float32 => match bits(value, 4) {
            Some(bits) => out.extend(u32::try_from(bits).ok()?.to_ne_bytes()),
            None => out.extend((float(value)? as f32).to_ne_bytes()),
        },
        DType::Float64 => match bits(value, 8) {
            Some(bits) => out.extend(bits.to_ne_bytes()),
            None => out.extend(float(value)?.to_ne_bytes()),
        },
        DType::Complex64 | DType::Complex128 => {
            let base = if *dtype == DType::Complex64 { DType::Float32 } else { DType::Float64 };
            match value {
                Value::Array(parts) if parts.len() == 2 => {
                    element(&parts[0], &base, out)?;
                    element(&parts[1], &base, out)?;
                }
                real => {
                    element(real, &base, out)?;
                    element(&json!(0.0), &base, out)?;
                }
            }
        }
        DType::DateTime(_) | DType::Duration(_) => match value.as_str() {
            Some("NaT") => out.extend(i64::MIN.to_ne_bytes()),
            _ => integer!(i64),
        },
        DType::FixedText(points) => {
            let text: Vec<char> = value.as_str()?.chars().collect();
            if text.len() > *points {
                return None;
            }
            text.iter().for_each(|&point| out.extend(u32::from(point).to_ne_bytes()));
            out.resize(out.len() + 4 * (points - text.len()), 0);
        }
        DType::Struct(fields) if value.is_object() => {
            for member in &fields.members {
                element(value.get(&member.name)?, &member.dtype, out)?;
            }
        }
        _ => raw(value, dtype.size()?, out)?,
    }
    Some(())
}

/// Bytes: base64, a list of numbers, or 0 for zeros.
fn raw(value: &Value, size: usize, out: &mut Vec<u8>) -> Option<()> {
    let mut bytes = match value {
        Value::String(text) => decode_base64(text)?,
        Value::Array(items) => items
            .iter()
            .map(|item| item.as_u64().and_then(|item| u8::try_from(item).ok()))
            .collect::<Option<_>>()?,
        number => (integer(number)? == 0).then(Vec::new)?,
    };
    if bytes.len() > size {
        return None;
    }
    bytes.resize(size, 0);
    out.append(&mut bytes);
    Some(())
}

fn integer(value: &Value) -> Option<i128> {
    if let Some(number) = value.as_i64() {
        return Some(number.into());
    }
    if let Some(number) = value.as_u64() {
        return Some(number.into());
    }
    // Some writers spell integers as floats; those below 2^53 are exact.
    let number = value.as_f64()?;
    (number.fract() == 0.0 && number.abs() < 9e15).then_some(number as i128)
}

fn float(value: &Value) -> Option<f64> {
    match value {
        bare if non_finite(bare).is_some() => non_finite(bare),
        Value::String(name) => match name.as_str() {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        number => number.as_f64(),
    }
}

/// A float by its bits: `"0x7fc00000"`.
fn bits(value: &Value, size: usize) -> Option<u64> {
    let digits = value.as_str()?.strip_prefix("0x")?;
    (digits.len() == 2 * size).then(|| u64::from_str_radix(digits, 16).ok())?
}

/// The fill value as JSON, for v3 and v2.
pub(crate) fn to_json(fill: &Fill, dtype: &DType) -> Value {
    let element = match fill {
        Fill::Element(element) => element.clone(),
        Fill::Zero | Fill::Undefined => Elements::zero(dtype),
    };
    match dtype {
        DType::String | DType::Reference => {
            json!(
                element
                    .variable_at(0)
                    .map_or_else(String::new, |text| String::from_utf8_lossy(text).into_owned())
            )
        }
        DType::Bytes => json!(encode_base64(element.variable_at(0).unwrap_or_default())),
        DType::DateTime(_) | DType::Duration(_) => {
            let ticks = element.as_fixed().and_then(|bytes| bytes.as_ref().try_into().ok());
            json!(ticks.map_or(0, i64::from_ne_bytes))
        }
        DType::FixedBytes(_) => {
            let bytes = element.as_fixed().map_or(&[][..], |bytes| bytes.as_ref());
            let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            json!(encode_base64(&bytes[..end]))
        }
        DType::Opaque(_) | DType::Struct(_) => {
            json!(encode_base64(element.as_fixed().map_or(&[][..], |bytes| bytes.as_ref())))
        }
        DType::Enum(named) => to_json(fill, &named.base),
        DType::List(_) => Value::Null,
        _ => Values::scalar(dtype.clone(), element).map_or(Value::Null, |values| values.to_json()),
    }
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub(crate) fn encode_base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let wide =
            group.iter().fold(0_u32, |wide, byte| wide << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for i in 0..4 {
            let symbol = ALPHABET[(wide >> (18 - 6 * i) & 63) as usize];
            text.push(if i <= group.len() { symbol.into() } else { '=' });
        }
    }
    text
}

pub(crate) fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=');
    if !text.len().is_multiple_of(4) || text.len() - digits.len() > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(digits.len() * 3 / 4);
    let (mut wide, mut held) = (0_u32, 0);
    for digit in digits.bytes() {
        let value = ALPHABET.iter().position(|own| *own == digit)?;
        wide = wide << 6 | value as u32;
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((wide >> held) as u8);
            wide &= (1 << held) - 1;
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::parse_v2;

    const DOC: Doc<'_> = Doc { store: "x.zarr", key: ".zarray" };

    fn fill(dtype: &str, value: Value) -> Option<Vec<u8>> {
        let stored = parse_v2(&json!(dtype), DOC).unwrap();
        match parse(&value, &stored, DOC).ok()? {
            Fill::Element(element) => Some(element.as_fixed()?.to_vec()),
            _ => Some(Vec::new()),
        }
    }

    #[test]
    fn numbers_in_all_their_spellings() {
        assert_eq!(fill("<f4", json!("NaN")).unwrap(), f32::NAN.to_ne_bytes());
        assert_eq!(fill("<f4", json!("0xff800000")).unwrap(), f32::NEG_INFINITY.to_ne_bytes());
        assert_eq!(fill("<f4", json!(1)).unwrap(), 1_f32.to_ne_bytes());
        assert_eq!(fill("<i8", json!(i64::MIN)).unwrap(), i64::MIN.to_ne_bytes());
        assert_eq!(fill("<u8", json!(u64::MAX)).unwrap(), u64::MAX.to_ne_bytes());
        assert_eq!(fill("<i2", json!(40000)), None);
        assert_eq!(fill("<i2", json!(3.0)).unwrap(), 3_i16.to_ne_bytes());
        assert_eq!(fill("<M8[10us]", json!(7)).unwrap(), 70_i64.to_ne_bytes());
        assert_eq!(fill("<c8", json!([1.0, "NaN"])).unwrap()[..4], 1_f32.to_ne_bytes());
        assert_eq!(fill("|S5", json!("YWI=")).unwrap(), b"ab\0\0\0");
        assert_eq!(fill("<f8", json!(0)).unwrap(), b"");
        assert_eq!(fill("<f8", json!("what")), None);
    }

    #[test]
    fn base64_round_trips() {
        for length in 0..9_u8 {
            let bytes: Vec<u8> = (0..length).map(|i| i.wrapping_mul(97)).collect();
            assert_eq!(decode_base64(&encode_base64(&bytes)).unwrap(), bytes);
        }
        assert_eq!(decode_base64("YW"), None);
        assert_eq!(decode_base64("Y*=="), None);
    }
}
