//! Elements as JSON, for `-o x.json`, attributes and fill values.

use serde_json::{Map, Number, Value};

use super::{Data, Elements, Values};
use crate::calendar::year_text;
use crate::{Calendar, DType, TimeUnit};

/// The number stored in these bytes; `None` if their length does not match.
macro_rules! number {
    ($type:ty, $bytes:expr) => {
        <[u8; size_of::<$type>()]>::try_from($bytes).map(<$type>::from_ne_bytes).ok()
    };
}

impl Values {
    /// Nested lists of the elements. A scalar becomes a single value.
    #[must_use]
    pub fn to_json(&self) -> Value {
        nested(&self.shape, &mut 0, &mut |index| element_to_json(&self.dtype, &self.elements, index))
    }
}

/// Nested lists over a shape, in C order.
fn nested(shape: &[u64], next: &mut usize, element: &mut impl FnMut(usize) -> Value) -> Value {
    match shape {
        [] => {
            *next += 1;
            element(*next - 1)
        }
        [extent, inner @ ..] => Value::Array((0..*extent).map(|_| nested(inner, next, element)).collect()),
    }
}

/// Element `index` as JSON: numbers as numbers, text as text, structs as objects, lists as lists, bytes that are not UTF-8 as
/// `{"hex": …}`, complex numbers as `[re, im]`, non-finite floats as strings, missing elements as null.
#[must_use]
pub fn element_to_json(dtype: &DType, elements: &Elements, index: usize) -> Value {
    if elements.is_missing(index) {
        return Value::Null;
    }
    let items = |base: &DType, items: &Elements, range: std::ops::Range<usize>| {
        Value::Array(range.map(|item| element_to_json(base, items, item)).collect())
    };
    match (&elements.data, dtype) {
        (Data::Fixed(bytes), _) => {
            let size = dtype.size().unwrap_or(0);
            index
                .checked_mul(size)
                .and_then(|start| bytes.get(start..start + size))
                .map_or(Value::Null, |element| fixed_to_json(dtype, element))
        }
        (Data::Variable { .. }, _) => elements.variable_at(index).map_or(Value::Null, text_or_hex),
        (Data::List { offsets, items: below }, DType::List(base)) => {
            match (offsets.get(index), offsets.get(index + 1)) {
                (Some(&start), Some(&end)) => items(base, below, start as usize..end as usize),
                _ => Value::Null,
            }
        }
        (Data::FixedList { each, items: below }, DType::Array(base, shape)) => {
            let shape: Vec<u64> = shape.iter().map(|&extent| extent as u64).collect();
            let mut next = 0;
            nested(&shape, &mut next, &mut |item| element_to_json(base, below, index * each + item))
        }
        (Data::Struct { members, .. }, DType::Struct(fields)) => {
            let named = fields.members.iter().zip(members);
            let named = named
                .map(|(member, held)| (member.name.clone(), element_to_json(&member.dtype, held, index)));
            Value::Object(named.collect())
        }
        _ => Value::Null,
    }
}

/// Element `index` as readable text: the shortest digits that identify the number, enum members by name.
#[must_use]
pub fn element_to_text(dtype: &DType, elements: &Elements, index: usize) -> String {
    let fixed = elements.as_fixed().zip(dtype.size()).filter(|_| !elements.is_missing(index));
    let bytes = fixed
        .and_then(|(bytes, size)| bytes.get(index.checked_mul(size)?..).and_then(|rest| rest.get(..size)));
    let special = match (dtype, bytes) {
        (DType::Float16, Some(bytes)) => {
            number!(u16, bytes).map(|bits| half::f16::from_bits(bits).to_string())
        }
        (DType::Float32, Some(bytes)) => number!(f32, bytes).map(short_float),
        (DType::Float64, Some(bytes)) => number!(f64, bytes).map(short_float),
        (DType::Enum(named), Some(bytes)) => {
            let value = fixed_to_json(&named.base, bytes);
            let value = value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from));
            value.and_then(|value| named.name_of(value)).map(str::to_owned)
        }
        _ => None,
    };
    special.unwrap_or_else(|| match element_to_json(dtype, elements, index) {
        Value::String(text) => text,
        other => other.to_string(),
    })
}

/// The shortest digits, with an exponent where that is shorter.
fn short_float<F: Into<f64> + Copy + std::fmt::Debug + std::fmt::LowerExp>(number: F) -> String {
    let magnitude = number.into().abs();
    let plain = magnitude == 0.0 || (1e-4..1e16).contains(&magnitude) || !magnitude.is_finite();
    if plain { format!("{number:?}") } else { format!("{number:e}") }
}

fn fixed_to_json(dtype: &DType, bytes: &[u8]) -> Value {
    let value = match dtype {
        DType::Bool => bytes.first().map(|byte| Value::Bool(*byte != 0)),
        DType::Int8 => number!(i8, bytes).map(Value::from),
        DType::Int16 => number!(i16, bytes).map(Value::from),
        DType::Int32 => number!(i32, bytes).map(Value::from),
        DType::Int64 | DType::Duration(_) => number!(i64, bytes).map(Value::from),
        DType::UInt8 => number!(u8, bytes).map(Value::from),
        DType::UInt16 => number!(u16, bytes).map(Value::from),
        DType::UInt32 => number!(u32, bytes).map(Value::from),
        DType::UInt64 => number!(u64, bytes).map(Value::from),
        DType::Float16 => number!(u16, bytes).map(|bits| float(half::f16::from_bits(bits).to_f64())),
        DType::Float32 => number!(f32, bytes).map(|number| float(f64::from(number))),
        DType::Float64 => number!(f64, bytes).map(float),
        DType::Float128 => Some(float(extended(bytes))),
        DType::Complex64 => pair(&DType::Float32, bytes),
        DType::Complex128 => pair(&DType::Float64, bytes),
        DType::DateTime(unit) => {
            number!(i64, bytes).map(|ticks| time_text(ticks, *unit).map_or(Value::Null, Value::from))
        }
        DType::FixedBytes(_) => Some(text_or_hex(trimmed(bytes))),
        DType::FixedText(_) => Some(Value::String(utf32(bytes))),
        DType::Opaque(_) => Some(hex(bytes)),
        DType::Enum(named) => Some(fixed_to_json(&named.base, bytes)),
        DType::Struct(fields) => {
            let member = |member: &crate::Member| {
                let end = member.offset + member.dtype.size().unwrap_or(0);
                let held = bytes.get(member.offset..end);
                (member.name.clone(), held.map_or(Value::Null, |held| fixed_to_json(&member.dtype, held)))
            };
            Some(Value::Object(fields.members.iter().map(member).collect()))
        }
        DType::Array(base, shape) => {
            let (shape, size) =
                (shape.iter().map(|&e| e as u64).collect::<Vec<_>>(), base.size().unwrap_or(0));
            Some(nested(&shape, &mut 0, &mut |item| {
                bytes
                    .get(item * size..(item + 1) * size)
                    .map_or(Value::Null, |held| fixed_to_json(base, held))
            }))
        }
        DType::Bytes | DType::String | DType::List(_) | DType::Reference => None,
    };
    value.unwrap_or(Value::Null)
}

fn pair(part: &DType, bytes: &[u8]) -> Option<Value> {
    let (real, imaginary) = bytes.split_at_checked(bytes.len() / 2)?;
    Some(Value::Array(vec![fixed_to_json(part, real), fixed_to_json(part, imaginary)]))
}

/// JSON cannot represent non-finite numbers.
fn float(number: f64) -> Value {
    match Number::from_f64(number) {
        Some(finite) => Value::Number(finite),
        None if number.is_nan() => "NaN".into(),
        None if number > 0.0 => "Infinity".into(),
        None => "-Infinity".into(),
    }
}

/// The 80-bit x87 float: 64 bits of mantissa including the leading one, 15 bits of exponent, a sign.
fn extended(bytes: &[u8]) -> f64 {
    let (Some(mantissa), Some(top)) = (number!(u64, &bytes[..8.min(bytes.len())]), bytes.get(8..10)) else {
        return f64::NAN;
    };
    let top = u16::from_le_bytes([top[0], top[1]]);
    let (sign, exponent) = (if top >> 15 == 1 { -1.0 } else { 1.0 }, i32::from(top & 0x7fff));
    let magnitude = match (exponent, mantissa << 1) {
        (0x7fff, 0) => f64::INFINITY,
        (0x7fff, _) => f64::NAN,
        // In two steps, because a single power of two below 2^-1074 would already be zero.
        _ => {
            (mantissa as f64)
                * 2_f64.powi((exponent - 16383) / 2)
                * 2_f64.powi(exponent - 16383 - (exponent - 16383) / 2 - 63)
        }
    };
    sign * magnitude
}

fn trimmed(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    &bytes[..end]
}

fn utf32(bytes: &[u8]) -> String {
    let points = bytes.chunks_exact(4).filter_map(|point| number!(u32, point));
    let text: String =
        points.map(|point| char::from_u32(point).unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
    text.trim_end_matches('\0').to_owned()
}

fn text_or_hex(bytes: &[u8]) -> Value {
    std::str::from_utf8(bytes).map_or_else(|_| hex(bytes), Value::from)
}

fn hex(bytes: &[u8]) -> Value {
    let digits = bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut digits, byte| {
        for nibble in [byte >> 4, byte & 15] {
            digits.extend(char::from_digit(u32::from(nibble), 16));
        }
        digits
    });
    Value::Object(Map::from_iter([("hex".to_owned(), Value::String(digits))]))
}

/// A time in ISO 8601, as precise as its unit, in NumPy's form; `None` for "not a time".
///
/// ```
/// use hyperslab_core::{TimeUnit, time_text};
/// assert_eq!(time_text(50, TimeUnit::Year).as_deref(), Some("2020"));
/// assert_eq!(time_text(-1, TimeUnit::Second).as_deref(), Some("1969-12-31T23:59:59"));
/// assert_eq!(time_text(1_500, TimeUnit::Millisecond).as_deref(), Some("1970-01-01T00:00:01.500"));
/// assert_eq!(time_text(i64::MIN, TimeUnit::Day), None);
/// ```
#[must_use]
pub fn time_text(ticks: i64, unit: TimeUnit) -> Option<String> {
    if ticks == i64::MIN {
        return None;
    }
    let ticks = i128::from(ticks);
    // Ticks in a day, and digits of a fraction of a second.
    let (per_day, digits) = match unit {
        TimeUnit::Year => return Some(year_text(ticks + 1970)),
        TimeUnit::Month => {
            return Some(format!(
                "{}-{:02}",
                year_text(1970 + ticks.div_euclid(12)),
                ticks.rem_euclid(12) + 1
            ));
        }
        TimeUnit::Week => return Some(date_text(ticks * 7)),
        TimeUnit::Day => return Some(date_text(ticks)),
        TimeUnit::Hour => (24, 0),
        TimeUnit::Minute => (24 * 60, 0),
        TimeUnit::Second => (86_400, 0),
        TimeUnit::Millisecond => (86_400_000, 3),
        TimeUnit::Microsecond => (86_400_000_000, 6),
        TimeUnit::Nanosecond => (86_400_000_000_000, 9),
        TimeUnit::Picosecond => (86_400_000_000_000_000, 12),
        TimeUnit::Femtosecond => (86_400_000_000_000_000_000, 15),
        TimeUnit::Attosecond => (86_400_000_000_000_000_000_000_i128, 18),
    };
    let mut text = date_text(ticks.div_euclid(per_day));
    let within = ticks.rem_euclid(per_day);
    let hour = within * 24 / per_day;
    text.push_str(&format!("T{hour:02}"));
    if unit == TimeUnit::Hour {
        return Some(text);
    }
    let minute = within * 1440 / per_day % 60;
    text.push_str(&format!(":{minute:02}"));
    if unit == TimeUnit::Minute {
        return Some(text);
    }
    let per_second = per_day / 86_400;
    text.push_str(&format!(":{:02}", within / per_second % 60));
    if digits > 0 {
        text.push_str(&format!(".{:0digits$}", within % per_second));
    }
    Some(text)
}

/// The date of a day counted from 1970-01-01, in the proleptic Gregorian calendar.
fn date_text(day: i128) -> String {
    let (year, month, date) = Calendar::ProlepticGregorian.date(day);
    format!("{}-{month:02}-{date:02}", year_text(year))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Elements, StructType};

    fn json_of(dtype: DType, bytes: &[u8]) -> Value {
        element_to_json(&dtype, &Elements::fixed(bytes.to_vec()), 0)
    }

    #[test]
    fn every_kind_has_its_json() {
        assert_eq!(json_of(DType::Float32, &0.1_f32.to_ne_bytes()), json!(0.1_f32 as f64));
        assert_eq!(json_of(DType::Float64, &f64::NEG_INFINITY.to_ne_bytes()), json!("-Infinity"));
        assert_eq!(json_of(DType::FixedBytes(4), b"ab\0\0"), json!("ab"));
        assert_eq!(json_of(DType::FixedBytes(2), b"\xff\x01"), json!({"hex": "ff01"}));
        assert_eq!(json_of(DType::UInt64, &u64::MAX.to_ne_bytes()), json!(u64::MAX));
        let point =
            StructType::packed([("a", DType::UInt8), ("b", DType::Array(DType::UInt8.into(), vec![2]))]);
        assert_eq!(json_of(point.into(), &[1, 2, 3]), json!({"a": 1, "b": [2, 3]}));
    }

    #[test]
    fn extended_floats_are_read() {
        // 1.0 and -2.5 as x87 writes them.
        let one = [0, 0, 0, 0, 0, 0, 0, 0x80, 0xff, 0x3f, 0, 0, 0, 0, 0, 0];
        assert_eq!(extended(&one), 1.0);
        let minus = [0, 0, 0, 0, 0, 0, 0, 0xa0, 0x00, 0xc0, 0, 0, 0, 0, 0, 0];
        assert_eq!(extended(&minus), -2.5);
    }

    #[test]
    fn dates_before_and_after_leap_days() {
        assert_eq!(date_text(11_016), "2000-02-29");
        assert_eq!(date_text(11_017), "2000-03-01");
        assert_eq!(date_text(-719_528), "0000-01-01");
        assert_eq!(time_text(1, TimeUnit::Week).unwrap(), "1970-01-08");
    }
}
