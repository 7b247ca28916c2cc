//! Statistics in fragment metadata: minimum, maximum, sum and null count, per tile and for the whole fragment.

use hyperslab_core::{ChunkStatistics, Fields, Number as CoreNumber, Place, Result};

use crate::datatype::{CellValues, Datatype, Number};
use crate::schema::{Attribute, float, integer};

/// The statistics of one attribute, with one entry per tile. A list is empty if the type lacks that statistic.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Stats {
    /// Fixed-size minima, back to back. For variable-length cells, offsets of the minima.
    pub(crate) mins: Vec<u8>,
    pub(crate) min_var: Vec<u8>,
    pub(crate) maxes: Vec<u8>,
    pub(crate) max_var: Vec<u8>,
    /// Eight bytes each: `i64`, `u64` or `f64`, depending on the type.
    pub(crate) sums: Vec<[u8; 8]>,
    pub(crate) null_counts: Vec<u64>,
}

impl Stats {
    pub(crate) fn parse(
        mins: &[u8],
        maxes: &[u8],
        sums: &[u8],
        nulls: &[u8],
        place: Place<'_>,
    ) -> Result<Self> {
        let (mins, min_var) = extremes(mins, place)?;
        let (maxes, max_var) = extremes(maxes, place)?;
        let mut fields = Fields::new(sums, place);
        let count = fields.count_u64(8)?;
        let sums = (0..count).map(|_| fields.array()).collect::<Result<_>>()?;
        let mut fields = Fields::new(nulls, place);
        let count = fields.count_u64(8)?;
        let null_counts = (0..count).map(|_| fields.u64()).collect::<Result<_>>()?;
        Ok(Self { mins, min_var, maxes, max_var, sums, null_counts })
    }

    /// Returns false for text, because the library writes wrong statistics for it.
    pub(crate) fn are_usable(attribute: &Attribute) -> bool {
        attribute.values == CellValues::Fixed(1)
            && !attribute.datatype.is_bytes()
            && !matches!(
                attribute.datatype,
                Datatype::StringUtf16 | Datatype::StringUtf32 | Datatype::StringUcs2 | Datatype::StringUcs4
            )
    }

    /// The statistics of a tile of this many cells. Returns `None` if there are none, or if all cells are null.
    pub(crate) fn of_tile(&self, attribute: &Attribute, tile: usize, cells: u64) -> Option<ChunkStatistics> {
        let number = attribute.datatype.number();
        let size = number.size();
        let bytes = |all: &[u8]| all.get(tile * size..(tile + 1) * size).map(<[u8]>::to_vec);
        let value = |bytes: &[u8]| {
            if number.is_float() {
                CoreNumber::Float(float(number, bytes))
            } else {
                CoreNumber::Integer(integer(number, bytes))
            }
        };
        let nulls = if attribute.nullable { *self.null_counts.get(tile)? } else { 0 };
        if nulls >= cells {
            return None;
        }
        let (min, max) = (bytes(&self.mins)?, bytes(&self.maxes)?);
        let sum = sum_of(number, *self.sums.get(tile)?);
        let exact = sum_is_exact(number, &min, &max, cells);
        if let CoreNumber::Float(sum) = sum
            && !(exact && sum.abs() < f64::MAX)
        {
            // The sum shows a NaN, an infinity or an overflow. The format does not define the extremes in that case.
            return None;
        }
        let (min, max, sum) = (Some(value(&min)), Some(value(&max)), exact.then_some(sum));
        Some(ChunkStatistics { min, max, sum, nulls: Some(nulls), exact: true, hint: false })
    }

    pub(crate) fn encode_mins(&self) -> Vec<u8> {
        encode_extremes(&self.mins, &self.min_var)
    }

    pub(crate) fn encode_maxes(&self) -> Vec<u8> {
        encode_extremes(&self.maxes, &self.max_var)
    }

    pub(crate) fn encode_sums(&self) -> Vec<u8> {
        let mut out = (self.sums.len() as u64).to_le_bytes().to_vec();
        out.extend(self.sums.iter().flatten());
        out
    }

    pub(crate) fn encode_null_counts(&self) -> Vec<u8> {
        let mut out = (self.null_counts.len() as u64).to_le_bytes().to_vec();
        out.extend(self.null_counts.iter().flat_map(|count| count.to_le_bytes()));
        out
    }
}

/// Returns true if a stored sum is certainly exact. The library's sum saturates at the limit of its type, and later
/// cells may move it away from the limit again, so the value alone does not show an overflow. The sum is exact if
/// even this many cells of the largest magnitude could not reach the limit, in whatever order they were added.
pub(crate) fn sum_is_exact(number: Number, min: &[u8], max: &[u8], cells: u64) -> bool {
    if number.is_float() {
        let largest = float(number, min).abs().max(float(number, max).abs());
        return (largest * cells as f64).is_finite();
    }
    let largest = integer(number, min).unsigned_abs().max(integer(number, max).unsigned_abs());
    let end = if number.is_signed() { i64::MAX.unsigned_abs() } else { u64::MAX };
    largest.checked_mul(cells.into()).is_some_and(|sum| sum <= end.into())
}

/// Decodes a stored sum.
fn sum_of(number: Number, bytes: [u8; 8]) -> CoreNumber {
    if number.is_float() {
        CoreNumber::Float(f64::from_le_bytes(bytes))
    } else if number.is_signed() {
        CoreNumber::Integer(i64::from_le_bytes(bytes).into())
    } else {
        CoreNumber::Integer(u64::from_le_bytes(bytes).into())
    }
}

/// Parses `u64 fixed_bytes, u64 var_bytes, fixed, var`.
fn extremes(bytes: &[u8], place: Place<'_>) -> Result<(Vec<u8>, Vec<u8>)> {
    let mut fields = Fields::new(bytes, place);
    let (fixed, var) = (fields.count_u64(1)?, fields.count_u64(1)?);
    Ok((fields.bytes(fixed)?.to_vec(), fields.bytes(var)?.to_vec()))
}

fn encode_extremes(fixed: &[u8], var: &[u8]) -> Vec<u8> {
    let mut out = (fixed.len() as u64).to_le_bytes().to_vec();
    out.extend((var.len() as u64).to_le_bytes());
    out.extend(fixed);
    out.extend(var);
    out
}

/// The statistics of one slot over the whole fragment.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Totals {
    pub(crate) min: Vec<u8>,
    pub(crate) max: Vec<u8>,
    pub(crate) sum: [u8; 8],
    pub(crate) null_count: u64,
}

impl Totals {
    pub(crate) fn parse(bytes: &[u8], slots: usize, place: Place<'_>) -> Result<Vec<Self>> {
        let mut fields = Fields::new(bytes, place);
        let mut one = || -> Result<Self> {
            let length = fields.count_u64(1)?;
            let min = fields.bytes(length)?.to_vec();
            let length = fields.count_u64(1)?;
            let max = fields.bytes(length)?.to_vec();
            Ok(Self { min, max, sum: fields.array()?, null_count: fields.u64()? })
        };
        (0..slots).map(|_| one()).collect()
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend((self.min.len() as u64).to_le_bytes());
        out.extend(&self.min);
        out.extend((self.max.len() as u64).to_le_bytes());
        out.extend(&self.max);
        out.extend(self.sum);
        out.extend(self.null_count.to_le_bytes());
    }
}
