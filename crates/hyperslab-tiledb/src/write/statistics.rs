//! Minimum, maximum, sum and nulls of a tile, as stored in fragment metadata.

use hyperslab_core::{Data, Elements};

use crate::datatype::{CellValues, Datatype, Number};
use crate::fragment::{Stats, Totals};
use crate::schema::{Attribute, float, integer};

/// The statistics of one tile.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct TileStats {
    /// `None` if every cell is null or the type has no extremes.
    pub(crate) min: Option<Vec<u8>>,
    pub(crate) max: Option<Vec<u8>>,
    pub(crate) sum: [u8; 8],
    pub(crate) nulls: u64,
}

/// A sum computed like the library's: if the next number would overflow the type, the sum becomes the limit of the type and stays
/// there.
#[derive(Debug, Clone, Copy, Default)]
struct StoppingSum<T> {
    sum: T,
    stopped: bool,
}

macro_rules! stopping_integers {
    ($type:ty) => {
        impl StoppingSum<$type> {
            fn add(&mut self, value: $type) {
                if !self.stopped {
                    self.stopped = self.sum.checked_add(value).is_none();
                    self.sum = self.sum.saturating_add(value);
                }
            }
        }
    };
}

stopping_integers!(i64);
stopping_integers!(u64);

impl StoppingSum<f64> {
    /// By the library's rule, an infinite number counts as an overflow, unless the sum has the other sign.
    fn add(&mut self, value: f64) {
        if self.stopped {
            return;
        }
        let same_sign = (self.sum < 0.0) == (value < 0.0);
        self.stopped = same_sign && self.sum.abs() > f64::MAX - value.abs();
        self.sum = match self.stopped {
            true if self.sum < 0.0 => f64::MIN,
            true => f64::MAX,
            false => self.sum + value,
        };
    }
}

/// Returns true if the attribute has minima and maxima: one number per cell, or `char` and ASCII strings.
pub(crate) fn has_extremes(attribute: &Attribute) -> bool {
    match attribute.datatype {
        Datatype::Char | Datatype::StringAscii => true,
        Datatype::StringUtf8
        | Datatype::StringUtf16
        | Datatype::StringUtf32
        | Datatype::StringUcs2
        | Datatype::StringUcs4
        | Datatype::Any
        | Datatype::Blob
        | Datatype::GeomWkb
        | Datatype::GeomWkt => false,
        _ => attribute.values == CellValues::Fixed(1),
    }
}

/// Returns true if the attribute has sums: one number per cell.
pub(crate) fn has_sum(attribute: &Attribute) -> bool {
    attribute.values == CellValues::Fixed(1)
        && has_extremes(attribute)
        && attribute.datatype != Datatype::StringAscii
}

impl TileStats {
    /// The statistics of these cells.
    pub(crate) fn of(attribute: &Attribute, elements: &Elements, cells: usize) -> Self {
        let nulls = elements.validity.as_ref().map_or(0, |validity| validity.missing() as u64);
        let mut stats = Self { nulls, ..Self::default() };
        if !has_extremes(attribute) {
            return stats;
        }
        let text =
            matches!(attribute.datatype, Datatype::Char | Datatype::StringAscii) && !has_sum(attribute);
        if text {
            stats.of_text(elements, attribute.cell_size(), cells);
        } else if let Data::Fixed(bytes) = &elements.data {
            stats.of_numbers(attribute.datatype.number(), bytes, Some(elements));
        }
        stats
    }

    /// The statistics of numbers without missing values.
    pub(crate) fn of_cells(attribute: &Attribute, bytes: &[u8]) -> Self {
        let mut stats = Self::default();
        if has_sum(attribute) {
            stats.of_numbers(attribute.datatype.number(), bytes, None);
        }
        stats
    }

    fn of_text(&mut self, elements: &Elements, cell: Option<usize>, cells: usize) {
        for index in (0..cells).filter(|&index| !elements.is_missing(index)) {
            let bytes = match (&elements.data, cell) {
                (Data::Fixed(bytes), Some(cell)) => bytes.get(index * cell..(index + 1) * cell),
                _ => elements.variable_at(index),
            };
            let Some(bytes) = bytes else { continue };
            if self.min.as_deref().is_none_or(|min| bytes < min) {
                self.min = Some(bytes.to_vec());
            }
            if self.max.as_deref().is_none_or(|max| bytes > max) {
                self.max = Some(bytes.to_vec());
            }
        }
    }

    fn of_numbers(&mut self, number: Number, bytes: &[u8], elements: Option<&Elements>) {
        let elements = elements.filter(|elements| elements.validity.is_some());
        let missing = |index: usize| elements.is_some_and(|elements| elements.is_missing(index));
        macro_rules! integers {
            ($type:ty, $wide:ty) => {{
                let (cells, _) = bytes.as_chunks::<{ size_of::<$type>() }>();
                let (mut min, mut max, mut any) = (<$type>::MAX, <$type>::MIN, false);
                let mut sum = StoppingSum::<$wide>::default();
                if elements.is_none() && size_of::<$type>() < 8 {
                    // This many narrow integers cannot overflow 64 bits, so the loop needs no branches.
                    for block in cells.chunks(1 << 20) {
                        let mut part = 0 as $wide;
                        for cell in block {
                            let value = <$type>::from_le_bytes(*cell);
                            (min, max) = (min.min(value), max.max(value));
                            part = part.wrapping_add(value as $wide);
                        }
                        sum.add(part);
                        any = true;
                    }
                } else {
                    for (_, cell) in cells.iter().enumerate().filter(|(index, _)| !missing(*index)) {
                        let value = <$type>::from_le_bytes(*cell);
                        (min, max, any) = (min.min(value), max.max(value), true);
                        sum.add(value as $wide);
                    }
                }
                if any {
                    (self.min, self.max) =
                        (Some(min.to_le_bytes().to_vec()), Some(max.to_le_bytes().to_vec()));
                }
                self.sum = sum.sum.to_le_bytes();
            }};
        }
        macro_rules! floats {
            ($type:ty) => {{
                let values =
                    bytes.as_chunks::<{ size_of::<$type>() }>().0.iter().map(|b| <$type>::from_le_bytes(*b));
                let (mut min, mut max, mut sum, mut any) =
                    (<$type>::INFINITY, <$type>::NEG_INFINITY, 0_f64, false);
                for (_, value) in values.clone().enumerate().filter(|(index, _)| !missing(*index)) {
                    // NaN is neither minimum nor maximum, but makes the sum NaN.
                    (min, max, sum, any) = (min.min(value), max.max(value), sum + f64::from(value), true);
                }
                if !sum.is_finite() {
                    let mut stopping = StoppingSum::<f64>::default();
                    let counted = values.enumerate().filter(|(index, _)| !missing(*index));
                    counted.for_each(|(_, value)| stopping.add(f64::from(value)));
                    sum = stopping.sum;
                }
                if any {
                    if min > max {
                        (min, max) = (<$type>::NAN, <$type>::NAN);
                    }
                    (self.min, self.max) =
                        (Some(min.to_le_bytes().to_vec()), Some(max.to_le_bytes().to_vec()));
                }
                self.sum = sum.to_le_bytes();
            }};
        }
        match number {
            Number::I8 => integers!(i8, i64),
            Number::I16 => integers!(i16, i64),
            Number::I32 => integers!(i32, i64),
            Number::I64 => integers!(i64, i64),
            Number::U8 => integers!(u8, u64),
            Number::U16 => integers!(u16, u64),
            Number::U32 => integers!(u32, u64),
            Number::U64 => integers!(u64, u64),
            Number::F32 => floats!(f32),
            Number::F64 => floats!(f64),
        }
    }

    /// Serialises the statistics, to pass them from encoding to writing.
    pub(crate) fn pack(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for extreme in [&self.min, &self.max] {
            out.push(u8::from(extreme.is_some()));
            let bytes = extreme.as_deref().unwrap_or_default();
            out.extend((bytes.len() as u64).to_le_bytes());
            out.extend(bytes);
        }
        out.extend(self.sum);
        out.extend(self.nulls.to_le_bytes());
        out
    }

    /// The inverse of [`pack`](Self::pack).
    pub(crate) fn unpack(fields: &mut hyperslab_core::Fields<'_>) -> hyperslab_core::Result<Self> {
        let mut extreme = || -> hyperslab_core::Result<Option<Vec<u8>>> {
            let there = fields.u8()? != 0;
            let length = fields.count_u64(1)?;
            let bytes = fields.bytes(length)?.to_vec();
            Ok(there.then_some(bytes))
        };
        let (min, max) = (extreme()?, extreme()?);
        Ok(Self { min, max, sum: fields.array()?, nulls: fields.u64()? })
    }
}

/// Builds an attribute's lists and totals from the statistics of its tiles.
pub(crate) fn lists(attribute: &Attribute, tiles: &[TileStats]) -> (Stats, Totals) {
    let (mut stats, mut totals) = (Stats::default(), Totals::default());
    if attribute.nullable {
        stats.null_counts = tiles.iter().map(|tile| tile.nulls).collect();
        totals.null_count = tiles.iter().map(|tile| tile.nulls).sum();
    }
    if has_extremes(attribute) {
        for tile in tiles {
            put_extreme(attribute, tile.min.as_deref(), &mut stats.mins, &mut stats.min_var);
            put_extreme(attribute, tile.max.as_deref(), &mut stats.maxes, &mut stats.max_var);
        }
        let below = |a: &[u8], b: &[u8]| before(attribute, a, b);
        let mins = tiles.iter().filter_map(|tile| tile.min.clone());
        let maxes = tiles.iter().filter_map(|tile| tile.max.clone());
        totals.min = mins.reduce(|a, b| if below(&b, &a) { b } else { a }).unwrap_or_default();
        totals.max = maxes.reduce(|a, b| if below(&a, &b) { b } else { a }).unwrap_or_default();
    }
    if has_sum(attribute) {
        stats.sums = tiles.iter().map(|tile| tile.sum).collect();
        totals.sum = total(attribute.datatype.number(), tiles.iter().map(|tile| tile.sum));
    }
    // A fragment that contains only nulls stores zeros.
    if has_extremes(attribute)
        && let Some(cell) = attribute.cell_size()
    {
        for extreme in [&mut totals.min, &mut totals.max] {
            if extreme.is_empty() {
                *extreme = vec![0; cell];
            }
        }
    }
    (stats, totals)
}

fn put_extreme(attribute: &Attribute, value: Option<&[u8]>, fixed: &mut Vec<u8>, var: &mut Vec<u8>) {
    match attribute.cell_size() {
        Some(cell) => fixed.extend(value.map_or_else(|| vec![0; cell], <[u8]>::to_vec)),
        None => {
            fixed.extend((var.len() as u64).to_le_bytes());
            var.extend(value.unwrap_or_default());
        }
    }
}

fn before(attribute: &Attribute, a: &[u8], b: &[u8]) -> bool {
    if !has_sum(attribute) {
        return a < b;
    }
    let number = attribute.datatype.number();
    if number.is_float() {
        float(number, a) < float(number, b)
    } else {
        integer(number, a) < integer(number, b)
    }
}

/// The sum of the tiles' sums, by the same rule.
fn total(number: Number, sums: impl Iterator<Item = [u8; 8]>) -> [u8; 8] {
    macro_rules! total {
        ($type:ty) => {{
            let mut total = StoppingSum::<$type>::default();
            sums.for_each(|sum| total.add(<$type>::from_le_bytes(sum)));
            total.sum.to_le_bytes()
        }};
    }
    if number.is_float() {
        total!(f64)
    } else if number.is_signed() {
        total!(i64)
    } else {
        total!(u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(number: Number, bytes: Vec<u8>) -> [u8; 8] {
        let mut stats = TileStats::default();
        stats.of_numbers(number, &bytes, None);
        stats.sum
    }

    /// The values that the library stores for these cells.
    #[test]
    fn sums_stop_at_the_end_of_their_type() {
        let signed = |cells: &[i64]| {
            let bytes = cells.iter().flat_map(|cell| cell.to_le_bytes()).collect();
            i64::from_le_bytes(sum(Number::I64, bytes))
        };
        assert_eq!(signed(&[i64::MAX, 1, -5, 7]), i64::MAX);
        assert_eq!(signed(&[i64::MIN, -1, 5]), i64::MIN);
        assert_eq!(signed(&[i64::MAX, -5, 5]), i64::MAX);
        assert_eq!(signed(&[i64::MAX, i64::MIN, 2]), 1);
        let unsigned = |cells: &[u64]| {
            let bytes = cells.iter().flat_map(|cell| cell.to_le_bytes()).collect();
            u64::from_le_bytes(sum(Number::U64, bytes))
        };
        assert_eq!(unsigned(&[u64::MAX, 1, 0]), u64::MAX);
        assert_eq!(unsigned(&[1, 2, 3]), 6);
        let floats = |cells: &[f64]| {
            let bytes = cells.iter().flat_map(|cell| cell.to_le_bytes()).collect();
            f64::from_le_bytes(sum(Number::F64, bytes))
        };
        assert_eq!(floats(&[1e308, 1e308, -1e308]), f64::MAX);
        assert_eq!(floats(&[-1e308, -1e308, 1e308]), f64::MIN);
        assert_eq!(floats(&[f64::INFINITY, 1.0]), f64::MAX);
        assert_eq!(floats(&[f64::NEG_INFINITY, 1.0]), f64::NEG_INFINITY);
        assert!(floats(&[f64::NAN, 1.0]).is_nan());
        assert_eq!(floats(&[0.5, 1.0]), 1.5);
    }
}
