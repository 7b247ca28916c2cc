//! Converts columns to the types of the target table. Values never change: one that does not fit is an error.

use std::collections::{HashMap, HashSet};

use hyperslab_core::{Bound, Column, DType, Elements, Error, Result, TimeUnit, element_to_text};

/// The elements of a column in the type of another.
pub(super) fn coerced(elements: Elements, rows: usize, from: &Column, to: &Column) -> Result<Elements> {
    if from.dtype == to.dtype {
        return Ok(elements);
    }
    let refused = || {
        Error::invalid(format!(
            "column {} holds {}, which cannot be stored as {}",
            from.name,
            described(&from.dtype),
            described(&to.dtype)
        ))
    };
    let validity = elements.validity.clone();
    let found = match (&from.dtype, &to.dtype) {
        (DType::Enum(_) | DType::FixedBytes(_) | DType::FixedText(_), DType::String) => {
            Elements::variable((0..rows).map(|row| element_to_text(&from.dtype, &elements, row)))
        }
        (DType::Enum(_) | DType::String, DType::Enum(named)) => {
            let codes: HashMap<&str, i128> =
                named.members.iter().map(|(name, code)| (name.as_str(), *code)).collect();
            let mut bytes = Vec::new();
            for row in 0..rows {
                let name = element_to_text(&from.dtype, &elements, row);
                let code = match codes.get(name.as_str()) {
                    Some(code) => *code,
                    None if elements.is_missing(row) => 0,
                    None => {
                        let column = &to.name;
                        return Err(Error::invalid(format!(
                            "column {column}: {name:?} is not in its enumeration"
                        )));
                    }
                };
                put(&named.base, Number::Integer(code), &mut bytes).ok_or_else(refused)?;
            }
            Elements::fixed(bytes)
        }
        (DType::DateTime(own), DType::DateTime(wanted)) => {
            let (multiply, divide) = ratio(*own, *wanted).ok_or_else(refused)?;
            numbers(&from.dtype, &elements, rows, to, |number| match number {
                // "Not a time" is preserved.
                Number::Integer(tick) if tick == i128::from(i64::MIN) => Some(number),
                Number::Integer(tick) => {
                    let scaled = tick.checked_mul(multiply)?;
                    (scaled % divide == 0).then(|| Number::Integer(scaled / divide))
                }
                Number::Float(_) => None,
            })?
        }
        (own, wanted) if own.is_numeric() && wanted.is_numeric() && !wide(own) && !wide(wanted) => {
            numbers(own, &elements, rows, to, Some)?
        }
        _ => return Err(refused()),
    };
    Ok(found.with_validity(validity))
}

/// The texts of a column that an enumeration has no code for, in row order.
pub(super) fn missing_names(elements: &Elements, rows: usize, from: &Column, to: &DType) -> Vec<String> {
    let DType::Enum(named) = to else { return Vec::new() };
    let known: HashSet<&str> = named.members.iter().map(|(name, _)| name.as_str()).collect();
    let mut missing = Vec::new();
    // The enumerations are usually the same.
    if let DType::Enum(own) = &from.dtype {
        if own.members.iter().all(|(name, _)| known.contains(name.as_str())) {
            return missing;
        }
    } else if from.dtype != DType::String {
        return missing;
    }
    let mut found = HashSet::new();
    for row in (0..rows).filter(|row| !elements.is_missing(*row)) {
        let name = element_to_text(&from.dtype, elements, row);
        if !known.contains(name.as_str()) && found.insert(name.clone()) {
            missing.push(name);
        }
    }
    missing
}

fn described(dtype: &DType) -> String {
    if let DType::Enum(_) = dtype { "an enumeration".to_owned() } else { dtype.to_string() }
}

fn wide(dtype: &DType) -> bool {
    *dtype == DType::Float128
}

#[derive(Debug, Clone, Copy)]
enum Number {
    Integer(i128),
    Float(f64),
}

fn numbers(
    own: &DType,
    elements: &Elements,
    rows: usize,
    to: &Column,
    change: impl Fn(Number) -> Option<Number>,
) -> Result<Elements> {
    let mut bytes = Vec::with_capacity(rows * to.dtype.size().unwrap_or(8));
    for row in 0..rows {
        let placed = match number(own, elements, row).and_then(&change) {
            Some(number) => put(&to.dtype, number, &mut bytes),
            None => None,
        };
        if placed.is_some() {
            continue;
        }
        if elements.is_missing(row) {
            bytes.resize(bytes.len() + to.dtype.size().unwrap_or(8), 0);
            continue;
        }
        let value = element_to_text(own, elements, row);
        return Err(Error::invalid(format!("column {}: {value} does not fit {}", to.name, to.dtype)));
    }
    Ok(Elements::fixed(bytes))
}

fn number(dtype: &DType, elements: &Elements, row: usize) -> Option<Number> {
    let size = dtype.size()?;
    let bytes = elements.as_fixed()?.get(row * size..(row + 1) * size)?;
    macro_rules! read {
        ($type:ty) => {
            <$type>::from_ne_bytes(bytes.try_into().ok()?)
        };
    }
    Some(match dtype {
        DType::Int8 => Number::Integer(read!(i8).into()),
        DType::Int16 => Number::Integer(read!(i16).into()),
        DType::Int32 => Number::Integer(read!(i32).into()),
        DType::Int64 | DType::DateTime(_) | DType::Duration(_) => Number::Integer(read!(i64).into()),
        DType::UInt8 => Number::Integer(read!(u8).into()),
        DType::UInt16 => Number::Integer(read!(u16).into()),
        DType::UInt32 => Number::Integer(read!(u32).into()),
        DType::UInt64 => Number::Integer(read!(u64).into()),
        DType::Float16 => Number::Float(half::f16::from_ne_bytes(bytes.try_into().ok()?).to_f64()),
        DType::Float32 => Number::Float(read!(f32).into()),
        DType::Float64 => Number::Float(read!(f64)),
        _ => return None,
    })
}

/// Appends a number in a type; `None` if it does not fit. Floats are rounded to the precision of the type.
fn put(dtype: &DType, number: Number, out: &mut Vec<u8>) -> Option<()> {
    let integer = match number {
        Number::Integer(value) => Some(value),
        Number::Float(value) if value.fract() == 0.0 && value.abs() < 1e18 => Some(value as i128),
        Number::Float(_) => None,
    };
    let float = match number {
        Number::Integer(value) => value as f64,
        Number::Float(value) => value,
    };
    macro_rules! put {
        ($type:ty) => {
            out.extend(<$type>::try_from(integer?).ok()?.to_ne_bytes())
        };
    }
    match dtype {
        DType::Int8 => put!(i8),
        DType::Int16 => put!(i16),
        DType::Int32 => put!(i32),
        DType::Int64 | DType::DateTime(_) | DType::Duration(_) => put!(i64),
        DType::UInt8 => put!(u8),
        DType::UInt16 => put!(u16),
        DType::UInt32 => put!(u32),
        DType::UInt64 => put!(u64),
        DType::Float16 => out.extend(half::f16::from_f64(float).to_ne_bytes()),
        DType::Float32 => {
            let narrow = float as f32;
            if narrow.is_infinite() && float.is_finite() {
                return None;
            }
            out.extend(narrow.to_ne_bytes());
        }
        DType::Float64 => out.extend(float.to_ne_bytes()),
        _ => return None,
    }
    Some(())
}

/// The ratio of ticks of one unit to those of another: multiply, then divide.
fn ratio(own: TimeUnit, wanted: TimeUnit) -> Option<(i128, i128)> {
    let (own, wanted) = (nanoseconds(own)?, nanoseconds(wanted)?);
    Some(if own >= wanted { (own / wanted, 1) } else { (1, wanted / own) })
}

const fn nanoseconds(unit: TimeUnit) -> Option<i128> {
    Some(match unit {
        TimeUnit::Week => 7 * 86_400_000_000_000,
        TimeUnit::Day => 86_400_000_000_000,
        TimeUnit::Hour => 3_600_000_000_000,
        TimeUnit::Minute => 60_000_000_000,
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
        _ => return None,
    })
}

/// The lowest and highest of the present numbers.
pub(super) fn range(dtype: &DType, elements: &Elements) -> Option<(Bound, Bound)> {
    let rows = elements.len(dtype);
    let there = (0..rows).filter(|row| !elements.is_missing(*row));
    let numbers = there.filter_map(|row| number(dtype, elements, row));
    let mut found: Option<(Bound, Bound)> = None;
    for number in numbers {
        let (low, high) = match (found.take(), number) {
            (Some((Bound::Integer(low), Bound::Integer(high))), Number::Integer(value)) => {
                (Bound::Integer(low.min(value)), Bound::Integer(high.max(value)))
            }
            (Some((Bound::Float(low), Bound::Float(high))), Number::Float(value)) => {
                (Bound::Float(low.min(value)), Bound::Float(high.max(value)))
            }
            (_, Number::Integer(value)) => (Bound::Integer(value), Bound::Integer(value)),
            (_, Number::Float(value)) => (Bound::Float(value), Bound::Float(value)),
        };
        found = Some((low, high));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::plain_column;

    fn convert_all(values: &[i64], from: DType, to: DType) -> Result<Elements> {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        let (from, to) = (plain_column("a", from, false), plain_column("a", to, false));
        coerced(Elements::fixed(bytes), values.len(), &from, &to)
    }

    #[test]
    fn values_that_do_not_fit_are_errors() -> Result<()> {
        let small = convert_all(&[1, -2], DType::Int64, DType::Int8)?;
        assert_eq!(small.as_fixed().unwrap()[..], [1, 0xfe]);
        let error = convert_all(&[1, 300], DType::Int64, DType::UInt8).unwrap_err().to_string();
        assert_eq!(error, "column a: 300 does not fit uint8");
        let day = DType::DateTime(TimeUnit::Day);
        let ticks = convert_all(&[2], day.clone(), DType::DateTime(TimeUnit::Second))?;
        assert_eq!(ticks.as_fixed().unwrap()[..], 172_800_i64.to_ne_bytes());
        assert!(convert_all(&[1], DType::DateTime(TimeUnit::Second), day).is_err());
        assert!(convert_all(&[1], DType::Int64, DType::String).is_err());
        Ok(())
    }
}
