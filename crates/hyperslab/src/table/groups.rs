//! Assigns rows to groups: rows whose key columns hold the same values.

use std::cmp::Ordering;
use std::collections::HashMap;

use hyperslab_core::{Batch, Column, DType, Data, Elements, Result};

/// The groups so far, in the order of their first rows.
#[derive(Debug)]
pub(super) struct Groups {
    columns: Vec<Column>,
    numbers: HashMap<Vec<u8>, u32>,
    /// The keys of the groups, batch by batch.
    keys: Vec<Batch>,
    bytes: u64,
}

impl Groups {
    pub(super) fn new(columns: Vec<Column>) -> Self {
        Self { columns, numbers: HashMap::new(), keys: Vec::new(), bytes: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.numbers.len()
    }

    /// The approximate size in bytes.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The group of each row. `keys` are the key columns of the rows.
    pub(super) fn of_rows(&mut self, keys: &[Elements], rows: usize) -> Result<Vec<u32>> {
        let (mut groups, mut first, mut key) = (Vec::with_capacity(rows), Vec::new(), Vec::new());
        let mut last: Option<(Vec<u8>, u32)> = None;
        for row in 0..rows {
            key.clear();
            for (column, elements) in self.columns.iter().zip(keys) {
                put_key(&column.dtype, elements, row, &mut key);
            }
            // Neighbouring rows are often in the same group.
            if let Some((own, group)) = &last
                && *own == key
            {
                groups.push(*group);
                continue;
            }
            let group = match self.numbers.get(key.as_slice()) {
                Some(group) => *group,
                None => {
                    let group = self.numbers.len() as u32;
                    first.push((0, row));
                    self.bytes += 2 * key.len() as u64 + 80;
                    self.numbers.insert(key.clone(), group);
                    group
                }
            };
            last = Some((key.clone(), group));
            groups.push(group);
        }
        if !first.is_empty() {
            let new = self.columns.iter().zip(keys);
            let new = new.map(|(column, elements)| Elements::gather(&column.dtype, &[elements], &first));
            self.keys.push(Batch { rows: first.len(), columns: new.collect::<Result<_>>()? });
        }
        Ok(groups)
    }

    /// The keys of all groups, and their output order: by value, missing ones last.
    pub(super) fn finish(self) -> Result<(Vec<Elements>, Vec<usize>)> {
        let rows = self.numbers.len();
        let columns: Vec<Column> = self.columns;
        let all =
            crate::rows::Rows { columns: columns.clone(), batches: Box::new(self.keys.into_iter().map(Ok)) };
        let (_, batch) = all.collect()?;
        let mut order: Vec<usize> = (0..rows).collect();
        order.sort_by(|&a, &b| {
            let each = columns.iter().zip(&batch.columns);
            each.fold(Ordering::Equal, |found, (column, elements)| {
                found.then_with(|| compare(&column.dtype, elements, a, b))
            })
        });
        Ok((batch.columns, order))
    }
}

/// The bytes that identify a value. Both zeros are one value, and so are all NaNs.
fn put_key(dtype: &DType, elements: &Elements, row: usize, key: &mut Vec<u8>) {
    if elements.is_missing(row) {
        key.push(0);
        return;
    }
    key.push(1);
    match (&elements.data, dtype.size()) {
        (Data::Fixed(bytes), Some(size)) => {
            let value = bytes.get(row * size..(row + 1) * size).unwrap_or_default();
            match float(dtype, value) {
                Some(float) if float.is_nan() => key.extend(f64::NAN.to_ne_bytes()),
                Some(float) => key.extend((float + 0.0).to_ne_bytes()),
                None => key.extend_from_slice(value),
            }
        }
        _ => {
            let text = elements.variable_at(row).unwrap_or_default();
            key.extend((text.len() as u64).to_ne_bytes());
            key.extend_from_slice(text);
        }
    }
}

fn float(dtype: &DType, value: &[u8]) -> Option<f64> {
    Some(match dtype {
        DType::Float16 => half::f16::from_ne_bytes(value.try_into().ok()?).to_f64(),
        DType::Float32 => f64::from(f32::from_ne_bytes(value.try_into().ok()?)),
        DType::Float64 => f64::from_ne_bytes(value.try_into().ok()?),
        _ => return None,
    })
}

fn integer(dtype: &DType, value: &[u8]) -> Option<i128> {
    Some(match dtype {
        DType::Bool | DType::UInt8 => i128::from(*value.first()?),
        DType::UInt16 => u16::from_ne_bytes(value.try_into().ok()?).into(),
        DType::UInt32 => u32::from_ne_bytes(value.try_into().ok()?).into(),
        DType::UInt64 => u64::from_ne_bytes(value.try_into().ok()?).into(),
        DType::Int8 => i8::from_ne_bytes(value.try_into().ok()?).into(),
        DType::Int16 => i16::from_ne_bytes(value.try_into().ok()?).into(),
        DType::Int32 => i32::from_ne_bytes(value.try_into().ok()?).into(),
        DType::Int64 | DType::DateTime(_) | DType::Duration(_) => {
            i64::from_ne_bytes(value.try_into().ok()?).into()
        }
        DType::Enum(named) => return integer(&named.base, value),
        _ => return None,
    })
}

fn compare(dtype: &DType, elements: &Elements, a: usize, b: usize) -> Ordering {
    let missing = elements.is_missing(a).cmp(&elements.is_missing(b));
    if missing.is_ne() || elements.is_missing(a) {
        return missing;
    }
    let (Data::Fixed(bytes), Some(size)) = (&elements.data, dtype.size()) else {
        return elements.variable_at(a).cmp(&elements.variable_at(b));
    };
    let value = |row: usize| bytes.get(row * size..(row + 1) * size).unwrap_or_default();
    match (float(dtype, value(a)), float(dtype, value(b))) {
        (Some(a), Some(b)) => a.is_nan().cmp(&b.is_nan()).then(a.total_cmp(&b)),
        _ => match (integer(dtype, value(a)), integer(dtype, value(b))) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => value(a).cmp(value(b)),
        },
    }
}
