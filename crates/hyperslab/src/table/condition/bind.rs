//! Binds conditions to the types of their columns.

use hyperslab_core::{Column, DType, End, EnumType, Error, Result, RowFilter, Test, TimeUnit, date_tick};

use super::{Expression, Literal};
use crate::query::Comparison;
use crate::rows::no_column;

impl Expression {
    pub(super) fn bind(&self, columns: &[Column]) -> Result<RowFilter> {
        let find = |name: &str| {
            let found = columns.iter().find(|column| column.name == name);
            found.ok_or_else(|| no_column(name, columns))
        };
        let all = |parts: &[Self]| parts.iter().map(|part| part.bind(columns)).collect::<Result<Vec<_>>>();
        Ok(match self {
            Self::And(parts) => RowFilter::All(all(parts)?),
            Self::Or(parts) => RowFilter::Any(all(parts)?),
            Self::Not(part) => RowFilter::Not(Box::new(part.bind(columns)?)),
            Self::Constant(true) => RowFilter::everything(),
            Self::Constant(false) => RowFilter::nothing(),
            Self::Null(name) => RowFilter::test(find(name)?.name.as_str(), Test::Null),
            Self::Flag(name) => match find(name)? {
                Column { dtype: DType::Bool, .. } => {
                    RowFilter::test(name.as_str(), Test::Integers { low: 1, high: 1 })
                }
                column => {
                    return Err(Error::invalid(format!(
                        "column {name} holds {}; compare it with a value, as in '{name} > 0'",
                        kind(&column.dtype)
                    )));
                }
            },
            Self::Compare { column, comparison, value } => compare(find(column)?, *comparison, value)?,
            Self::Names(first, second) => return Err(of_two_names(first, second, columns)),
            Self::In { column, values } => one_of(find(column)?, values)?,
        })
    }
}

/// The error for a comparison of two names: probably text without quotes, or a misspelt column.
fn of_two_names(first: &str, second: &str, columns: &[Column]) -> Error {
    let find = |name: &str| columns.iter().find(|column| column.name == name);
    let (column, unknown) = match (find(first), find(second)) {
        (Some(_), Some(_)) => {
            let what = format!("comparing the columns {first} and {second}");
            return Error::unsupported("condition", what);
        }
        (Some(column), None) => (column, second),
        (None, Some(column)) => (column, first),
        (None, None) => return no_column(first, columns),
    };
    let is_text = matches!(column.dtype, DType::Enum(_))
        || text(&column.dtype, &Literal::Text(String::new())).is_some();
    if is_text {
        return Error::invalid(format!("no column {unknown}; put text in quotes, as in '{unknown}'"));
    }
    no_column(unknown, columns)
}

fn compare(column: &Column, comparison: Comparison, value: &Literal) -> Result<RowFilter> {
    if comparison == Comparison::NotEqual {
        return Ok(RowFilter::Not(Box::new(compare(column, Comparison::Equal, value)?)));
    }
    let wrong = || wrong_type(column, value);
    let test = match &column.dtype {
        dtype if dtype.is_float() && *dtype != DType::Float128 => {
            floats(comparison, float(dtype, value).ok_or_else(wrong)?)
        }
        DType::DateTime(unit) => {
            let (low, high) = date(value, *unit).ok_or_else(wrong)?;
            integers(comparison, low, high)
        }
        DType::Bool => {
            let value = match value {
                Literal::Bool(value) => i128::from(*value),
                Literal::Integer(value @ (0 | 1)) => *value,
                _ => return Err(wrong()),
            };
            integers(comparison, value, value)
        }
        dtype if dtype.is_integer() || matches!(dtype, DType::Duration(_)) => match value {
            Literal::Integer(value) => integers(comparison, *value, *value),
            Literal::Float(value) if !value.is_nan() => between_integers(comparison, *value),
            _ => return Err(wrong()),
        },
        DType::Enum(_) if comparison != Comparison::Equal => {
            return Err(Error::invalid(format!(
                "column {} is an enumeration: use ==, != or in, not an order",
                column.name
            )));
        }
        DType::Enum(_) => return one_of(column, std::slice::from_ref(value)),
        _ => texts(comparison, text(&column.dtype, value).ok_or_else(wrong)?),
    };
    Ok(RowFilter::test(column.name.as_str(), test))
}

fn one_of(column: &Column, values: &[Literal]) -> Result<RowFilter> {
    let wrong = |value| move || wrong_type(column, value);
    let test = match &column.dtype {
        DType::Enum(named) => {
            let mut codes = Vec::new();
            for value in values {
                codes.extend(codes_of(named, value).ok_or_else(|| wrong_type(column, value))?);
            }
            codes.sort_unstable();
            Test::IntegersIn(codes)
        }
        dtype if text(dtype, &Literal::Text(String::new())).is_some() => {
            let texts = values.iter().map(|value| text(&column.dtype, value).ok_or_else(wrong(value)));
            let mut texts = texts.collect::<Result<Vec<_>>>()?;
            texts.sort_unstable();
            Test::TextsIn(texts)
        }
        dtype if dtype.is_float() && *dtype != DType::Float128 => {
            let floats = values.iter().map(|value| float(&column.dtype, value).ok_or_else(wrong(value)));
            Test::FloatsIn(floats.collect::<Result<_>>()?)
        }
        dtype if dtype.is_integer() || *dtype == DType::Bool => {
            let mut integers = Vec::new();
            for value in values {
                match value {
                    Literal::Integer(value) => integers.push(*value),
                    Literal::Bool(value) if column.dtype == DType::Bool => integers.push(i128::from(*value)),
                    // A fraction equals no integer.
                    Literal::Float(value) if value.fract() == 0.0 => integers.push(*value as i128),
                    Literal::Float(_) => {}
                    _ => return Err(wrong_type(column, value)),
                }
            }
            integers.sort_unstable();
            Test::IntegersIn(integers)
        }
        // Dates are periods, and each period is a range.
        _ => {
            let each = values.iter().map(|value| compare(column, Comparison::Equal, value));
            return Ok(RowFilter::Any(each.collect::<Result<_>>()?));
        }
    };
    Ok(RowFilter::test(column.name.as_str(), test))
}

/// The codes of an enumeration's members that equal a value; `None` for a value of another type.
fn codes_of(named: &EnumType, value: &Literal) -> Option<Vec<i128>> {
    let matching = |is_same: &dyn Fn(&str) -> bool| {
        named.members.iter().filter(|(own, _)| is_same(own)).map(|(_, code)| *code).collect()
    };
    if let Literal::Text(name) = value {
        return Some(matching(&|own| own == name));
    }
    let number = float(&DType::Float64, value)?;
    let are_numbers = named.members.iter().all(|(own, _)| own.parse::<f64>().is_ok());
    are_numbers.then(|| matching(&|own| own.parse() == Ok(number)))
}

/// Compares with a value that covers a range of integers (a period of ticks).
fn integers(comparison: Comparison, low: i128, high: i128) -> Test {
    let (low, high) = match comparison {
        Comparison::Equal | Comparison::NotEqual => (low, high),
        Comparison::Less => (i128::MIN, low.saturating_sub(1)),
        Comparison::LessOrEqual => (i128::MIN, high),
        Comparison::Greater => (high.saturating_add(1), i128::MAX),
        Comparison::GreaterOrEqual => (low, i128::MAX),
    };
    Test::Integers { low, high }
}

/// Compares integers with a float. The casts saturate, so that infinities reach to the ends.
fn between_integers(comparison: Comparison, value: f64) -> Test {
    let (floor, ceil) = (value.floor() as i128, value.ceil() as i128);
    let (low, high) = match comparison {
        // The range is empty if the float lies between two integers.
        Comparison::Equal | Comparison::NotEqual => (ceil, floor),
        Comparison::Less => (i128::MIN, ceil.saturating_sub(1)),
        Comparison::LessOrEqual => (i128::MIN, floor),
        Comparison::Greater => (floor.saturating_add(1), i128::MAX),
        Comparison::GreaterOrEqual => (ceil, i128::MAX),
    };
    Test::Integers { low, high }
}

fn floats(comparison: Comparison, value: f64) -> Test {
    let (least, most) = (End::included(f64::NEG_INFINITY), End::included(f64::INFINITY));
    let (low, high) = match comparison {
        Comparison::Equal | Comparison::NotEqual => (End::included(value), End::included(value)),
        Comparison::Less => (least, End::excluded(value)),
        Comparison::LessOrEqual => (least, End::included(value)),
        Comparison::Greater => (End::excluded(value), most),
        Comparison::GreaterOrEqual => (End::included(value), most),
    };
    Test::Floats { low, high }
}

fn texts(comparison: Comparison, value: Vec<u8>) -> Test {
    let (low, high) = match comparison {
        Comparison::Equal | Comparison::NotEqual => return Test::TextsIn(vec![value]),
        Comparison::Less => (None, Some(End::excluded(value))),
        Comparison::LessOrEqual => (None, Some(End::included(value))),
        Comparison::Greater => (Some(End::excluded(value)), None),
        Comparison::GreaterOrEqual => (Some(End::included(value)), None),
    };
    Test::Texts { low, high }
}

/// The value in the column's precision.
fn float(dtype: &DType, value: &Literal) -> Option<f64> {
    let value = match value {
        Literal::Integer(value) => *value as f64,
        Literal::Float(value) => *value,
        _ => return None,
    };
    Some(match dtype {
        DType::Float16 => half::f16::from_f64(value).to_f64(),
        DType::Float32 => f64::from(value as f32),
        _ => value,
    })
}

/// The first and last tick of a date's period.
fn date(value: &Literal, unit: TimeUnit) -> Option<(i128, i128)> {
    let label = match value {
        Literal::Text(text) => text.clone(),
        // A year.
        Literal::Integer(year) => year.to_string(),
        _ => return None,
    };
    Some((date_tick(&label, unit, false)?, date_tick(&label, unit, true)?))
}

fn text(dtype: &DType, value: &Literal) -> Option<Vec<u8>> {
    let is_text = matches!(
        dtype,
        DType::String | DType::Bytes | DType::Reference | DType::FixedBytes(_) | DType::FixedText(_)
    );
    match value {
        Literal::Text(text) if is_text => Some(text.as_bytes().to_vec()),
        _ => None,
    }
}

fn kind(dtype: &DType) -> String {
    match dtype {
        DType::String | DType::Bytes | DType::Reference | DType::FixedBytes(_) | DType::FixedText(_) => {
            "text".to_owned()
        }
        DType::DateTime(_) => "dates".to_owned(),
        DType::Enum(named) => {
            let names: Vec<_> = named.members.iter().take(8).map(|(name, _)| format!("'{name}'")).collect();
            let more = if named.members.len() > 8 { ", …" } else { "" };
            format!("one of {}{more}", names.join(", "))
        }
        other => other.to_string(),
    }
}

fn wrong_type(column: &Column, value: &Literal) -> Error {
    let name = &column.name;
    let hint = match (&column.dtype, value) {
        (DType::DateTime(_), Literal::Text(_)) => {
            "; dates look like '2020-01-31' or '2020-01-31T12:00'".to_owned()
        }
        (dtype, Literal::Integer(_) | Literal::Float(_))
            if text(dtype, &Literal::Text(String::new())).is_some() =>
        {
            format!("; put text in quotes, as in '{value}'")
        }
        (dtype, Literal::Text(text)) if dtype.is_numeric() && text.parse::<f64>().is_ok() => {
            format!("; write the number without quotes, as in {name} == {text}")
        }
        _ => String::new(),
    };
    match &column.dtype {
        dtype @ (DType::Struct(_)
        | DType::List(_)
        | DType::Array(..)
        | DType::Complex64
        | DType::Complex128
        | DType::Float128
        | DType::Opaque(_)) => {
            Error::unsupported("condition", format!("comparing column {name}, which holds {dtype},"))
        }
        dtype => Error::invalid(format!(
            "column {name} holds {}; {value} cannot be compared with it{hint}",
            kind(dtype)
        )),
    }
}
