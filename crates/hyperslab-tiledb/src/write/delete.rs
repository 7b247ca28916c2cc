//! Deletes by condition: a file beside the commits that every reader applies to earlier fragments.
//!
//! The file holds the *negated* condition: true means keep. As in the library, the negation is pushed down to the comparisons, so
//! a row whose value is null or NaN is deleted by every condition on that value.

use std::path::Path;
use std::sync::Arc;

use hyperslab_core::storage::StagedChange;
use hyperslab_core::{End, Error, Result, RowFilter, Test};

use super::{WriteOptions, time_of, timed_name};
use crate::OpenOptions;
use crate::array::OpenArray;
use crate::datatype::{CellValues, Datatype};
use crate::generic;
use crate::schema::{ArrayKind, Schema, WRITTEN, integer_bytes};

const LESS: u8 = 0;
const LESS_EQUAL: u8 = 1;
const GREATER: u8 = 2;
const GREATER_EQUAL: u8 = 3;
const EQUAL: u8 = 4;
const NOT_EQUAL: u8 = 5;
const IN: u8 = 6;
const NOT_IN: u8 = 7;
const AND: u8 = 0;
const OR: u8 = 1;

/// Deletes the rows of a sparse array that pass a filter.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) for a dense array or a field that it does not have; [`Unsupported`](Error::Unsupported) for a
/// filter that the library cannot read back.
pub fn delete_rows(path: &Path, filter: &RowFilter, options: &WriteOptions) -> Result<()> {
    let open = OpenOptions { key: options.key.clone(), ..OpenOptions::default() };
    let directory = Arc::new(hyperslab_core::LocalStorage::new(path));
    let array = OpenArray::open(directory, String::new(), open)?;
    if array.schema.kind != ArrayKind::Sparse {
        return Err(Error::invalid(format!(
            "{} is a dense array; only sparse arrays have rows to delete",
            path.display()
        )));
    }
    let mut payload = Vec::new();
    Encoder { schema: &array.schema }.put(filter, true, &mut payload)?;
    let at = time_of(&array, options)?;
    let change = StagedChange::open(path)?;
    let key = format!("__commits/{}.del", timed_name(at, at, true)?);
    change.writer().put(&key, &generic::encode(&payload, WRITTEN, options.key.as_ref())?)?;
    change.publish(&[key])
}

struct Encoder<'a> {
    schema: &'a Schema,
}

impl Encoder<'_> {
    /// Appends a condition, optionally negated.
    fn put(&self, filter: &RowFilter, negated: bool, out: &mut Vec<u8>) -> Result<()> {
        match filter {
            RowFilter::Not(part) => self.put(part, !negated, out),
            RowFilter::All(parts) | RowFilter::Any(parts) => {
                let all = matches!(filter, RowFilter::All(_)) != negated;
                match parts.as_slice() {
                    [] => {
                        Err(Error::unsupported("tiledb", "deleting all rows or none by a constant condition"))
                    }
                    [only] => self.put(only, negated, out),
                    parts => {
                        node(if all { AND } else { OR }, parts.len(), out);
                        parts.iter().try_for_each(|part| self.put(part, negated, out))
                    }
                }
            }
            RowFilter::Test { column, test } => self.put_test(column, test, negated, out),
        }
    }

    fn put_test(&self, column: &str, test: &Test, negated: bool, out: &mut Vec<u8>) -> Result<()> {
        let (datatype, values) = self.field(column)?;
        let number = datatype.number();
        let fixed = |value: i128| integer_bytes(number, value);
        let float = |value: f64| {
            if number.size() == 4 {
                (value as f32).to_le_bytes().to_vec()
            } else {
                value.to_le_bytes().to_vec()
            }
        };
        let is_text = matches!(test, Test::Texts { .. } | Test::TextsIn(_));
        if *test != Test::Null && (values == CellValues::Variable) != is_text {
            return Err(Error::unsupported("tiledb", format!("deleting by {column}")));
        }
        match test {
            Test::Null => Err(Error::invalid(
                "cannot delete by 'is null': the TileDB library could not read the array afterwards",
            )),
            Test::Integers { low, high } => {
                let (least, most) = number.limits();
                let (low, high) = (*low.max(&least), *high.min(&most));
                let low_end = (low > least).then(|| End::included(fixed(low)));
                let high_end = (high < most).then(|| End::included(fixed(high)));
                if low > high {
                    return Err(Error::invalid(format!("no value of {column} meets the condition")));
                }
                put_range(column, low_end, high_end, low == high, negated, out)
            }
            Test::Floats { low, high } => {
                let end = |end: &End<f64>| {
                    let open = End { value: float(end.value), included: end.included };
                    end.value.is_finite().then_some(open)
                };
                put_range(column, end(low), end(high), low == high, negated, out)
            }
            Test::Texts { low, high } => put_range(column, low.clone(), high.clone(), false, negated, out),
            Test::IntegersIn(values) => {
                let (least, most) = number.limits();
                let own = values.iter().filter(|value| (least..=most).contains(*value));
                put_members(column, own.map(|value| fixed(*value)).collect(), negated, out)
            }
            Test::FloatsIn(values) => {
                put_members(column, values.iter().map(|value| float(*value)).collect(), negated, out)
            }
            Test::TextsIn(values) => put_members(column, values.clone(), negated, out),
        }
    }

    fn field(&self, name: &str) -> Result<(Datatype, CellValues)> {
        let attribute = self.schema.attributes.iter().find(|own| own.name == name);
        let dimension = self.schema.dimensions.iter().find(|own| own.name == name);
        attribute
            .map(|own| (own.datatype, own.values))
            .or_else(|| dimension.map(|own| (own.datatype, own.values)))
            .ok_or_else(|| Error::invalid(format!("no column {name}")))
    }
}

fn node(operation: u8, parts: usize, out: &mut Vec<u8>) {
    out.extend([0, operation]);
    out.extend((parts as u64).to_le_bytes());
}

fn put_value(column: &str, operation: u8, value: &[u8], out: &mut Vec<u8>) {
    out.extend([1, operation]);
    out.extend((column.len() as u32).to_le_bytes());
    out.extend(column.as_bytes());
    out.extend((value.len() as u64).to_le_bytes());
    out.extend(value);
}

fn put_range(
    column: &str,
    low: Option<End<Vec<u8>>>,
    high: Option<End<Vec<u8>>>,
    one: bool,
    negated: bool,
    out: &mut Vec<u8>,
) -> Result<()> {
    if let (true, Some(low)) = (one, &low) {
        put_value(column, if negated { NOT_EQUAL } else { EQUAL }, &low.value, out);
        return Ok(());
    }
    let below = |end: &End<Vec<u8>>| match (negated, end.included) {
        (false, true) => GREATER_EQUAL,
        (false, false) => GREATER,
        (true, true) => LESS,
        (true, false) => LESS_EQUAL,
    };
    let above = |end: &End<Vec<u8>>| match (negated, end.included) {
        (false, true) => LESS_EQUAL,
        (false, false) => LESS,
        (true, true) => GREATER,
        (true, false) => GREATER_EQUAL,
    };
    let ends = [low.map(|end| (below(&end), end.value)), high.map(|end| (above(&end), end.value))];
    let ends: Vec<_> = ends.into_iter().flatten().collect();
    match ends.len() {
        0 => return Err(Error::unsupported("tiledb", format!("deleting by any value of {column}"))),
        1 => {}
        parts => node(if negated { OR } else { AND }, parts, out),
    }
    ends.iter().for_each(|(operation, value)| put_value(column, *operation, value, out));
    Ok(())
}

fn put_members(column: &str, values: Vec<Vec<u8>>, negated: bool, out: &mut Vec<u8>) -> Result<()> {
    match values.as_slice() {
        [] => return Err(Error::invalid(format!("no value of {column} meets the condition"))),
        [only] => {
            put_value(column, if negated { NOT_EQUAL } else { EQUAL }, only, out);
            return Ok(());
        }
        _ => {}
    }
    put_value(column, if negated { NOT_IN } else { IN }, &values.concat(), out);
    out.extend((values.len() as u64 * 8).to_le_bytes());
    let mut offset = 0_u64;
    for value in &values {
        out.extend(offset.to_le_bytes());
        offset += value.len() as u64;
    }
    Ok(())
}
