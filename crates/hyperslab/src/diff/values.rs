//! Finds the elements in which two sequences differ.

use hyperslab_core::{DType, Data, Elements, Result};

use crate::hash::canonical;
use crate::rows::members;

/// The tolerance for floats: `|a - b| <= absolute + relative * |b|`, as in NumPy's `allclose`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Tolerance {
    /// The relative tolerance, which is multiplied by the magnitude of the second value.
    pub relative: f64,
    /// The absolute tolerance.
    pub absolute: f64,
}

impl Tolerance {
    /// Returns true if values must be equal.
    #[must_use]
    pub fn is_exact(self) -> bool {
        self == Self::default()
    }

    fn allows(self, a: f64, b: f64) -> bool {
        a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= self.absolute + self.relative * b.abs()
    }
}

/// The result of comparing two sequences.
#[derive(Debug, Default)]
pub(super) struct Mismatches {
    /// Whether element `i` differs. Empty if none does.
    pub(super) differs: Vec<bool>,
    /// The largest difference between numbers.
    pub(super) largest: Option<f64>,
}

impl Mismatches {
    fn mark(&mut self, index: usize, count: usize) {
        if self.differs.is_empty() {
            self.differs.resize(count, false);
        }
        self.differs[index] = true;
    }

    fn apart(&mut self, by: f64) {
        if !by.is_nan() {
            self.largest = Some(self.largest.map_or(by, |largest| largest.max(by)));
        }
    }
}

/// Compares `count` elements of the same type.
pub(super) fn compare(
    dtype: &DType,
    a: &Elements,
    b: &Elements,
    count: usize,
    tolerance: Tolerance,
) -> Result<Mismatches> {
    let mut found = Mismatches::default();
    if let (Data::Fixed(one), Data::Fixed(other), None, None) = (&a.data, &b.data, &a.validity, &b.validity)
        && one == other
    {
        return Ok(found);
    }
    for index in 0..count {
        if a.is_missing(index) != b.is_missing(index) {
            found.mark(index, count);
        }
    }
    let there = |index: usize| !a.is_missing(index) && !b.is_missing(index);
    match (dtype, &a.data, &b.data) {
        (DType::Struct(fields), ..) => {
            let pairs = members(fields, a)?.into_iter().zip(members(fields, b)?);
            for (member, (one, other)) in fields.members.iter().zip(pairs) {
                merge(&mut found, compare(&member.dtype, &one, &other, count, tolerance)?, 1, count);
            }
        }
        (DType::Complex64 | DType::Complex128, Data::Fixed(one), Data::Fixed(other)) => {
            let part = if *dtype == DType::Complex64 { DType::Float32 } else { DType::Float64 };
            let (one, other) = (Elements::fixed(one.clone()), Elements::fixed(other.clone()));
            let parts = compare(&part, &one, &other, count * 2, tolerance)?;
            merge_there(&mut found, parts, 2, count, there);
        }
        (DType::Array(base, shape), Data::Fixed(one), Data::Fixed(other)) => {
            let each = shape.iter().product::<usize>();
            let (one, other) = (Elements::fixed(one.clone()), Elements::fixed(other.clone()));
            let parts = compare(base, &one, &other, count * each, tolerance)?;
            merge_there(&mut found, parts, each, count, there);
        }
        _ => match (numbers(dtype, a), numbers(dtype, b)) {
            (Some(one), Some(other)) => {
                for (index, (one, other)) in one.into_iter().zip(other).enumerate().take(count) {
                    if there(index) && !tolerance.allows(one, other) {
                        found.mark(index, count);
                        found.apart((one - other).abs());
                    }
                }
            }
            _ => compare_canonical_bytes(dtype, a, b, count, &mut found),
        },
    }
    Ok(found)
}

fn merge(found: &mut Mismatches, parts: Mismatches, each: usize, count: usize) {
    merge_there(found, parts, each, count, |_| true);
}

/// An element differs if one of its parts does.
fn merge_there(
    found: &mut Mismatches,
    parts: Mismatches,
    each: usize,
    count: usize,
    there: impl Fn(usize) -> bool,
) {
    for (part, _) in parts.differs.iter().enumerate().filter(|(_, differs)| **differs) {
        if there(part / each.max(1)) {
            found.mark(part / each.max(1), count);
        }
    }
    if let Some(largest) = parts.largest {
        found.apart(largest);
    }
}

/// Floats as `f64`, without merging distinct values.
fn numbers(dtype: &DType, elements: &Elements) -> Option<Vec<f64>> {
    let bytes = elements.as_fixed()?;
    Some(match dtype {
        DType::Float32 => {
            bytes.as_chunks().0.iter().map(|held| f64::from(f32::from_ne_bytes(*held))).collect()
        }
        DType::Float64 => bytes.as_chunks().0.iter().map(|held| f64::from_ne_bytes(*held)).collect(),
        DType::Float16 => {
            let half = |held: &[u8; 2]| half::f16::from_bits(u16::from_ne_bytes(*held)).to_f64();
            bytes.as_chunks().0.iter().map(half).collect()
        }
        _ => return None,
    })
}

/// All other elements are equal if their canonical bytes are equal.
fn compare_canonical_bytes(dtype: &DType, a: &Elements, b: &Elements, count: usize, found: &mut Mismatches) {
    let (mut one, mut other) = (Vec::new(), Vec::new());
    for index in 0..count {
        one.clear();
        other.clear();
        canonical::block(dtype, a, index, index + 1, &mut one);
        canonical::block(dtype, b, index, index + 1, &mut other);
        if one != other {
            found.mark(index, count);
            if let Some((one, other)) = integer(dtype, a, index).zip(integer(dtype, b, index)) {
                found.apart(one.abs_diff(other) as f64);
            }
        }
    }
}

fn integer(dtype: &DType, elements: &Elements, index: usize) -> Option<i128> {
    if !dtype.is_integer() || elements.is_missing(index) {
        return None;
    }
    let value = hyperslab_core::element_to_json(dtype, elements, index);
    value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from))
}
