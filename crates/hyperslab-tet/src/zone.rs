//! Zone maps: the minimum and maximum of every chunk. They are claims of the writer and never trusted for values.

use half::f16;
use hyperslab_core::{Attributes, DType, widest};
use serde::{Deserialize, Serialize};

/// The zone maps of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ZoneMaps {
    /// Always 1.
    pub version: u32,
    /// The generation of a package; 0 in a standalone file.
    #[serde(default)]
    pub generation: u64,
    /// The package's hash of its file; zeros in a standalone file.
    #[serde(default)]
    pub packed_sha256: String,
    /// One per row of the index, in index order.
    pub chunks: Vec<Zone>,
}

/// The claims about one chunk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Zone {
    /// The dataset.
    pub dataset_id: u64,
    /// The chunk's coordinate.
    pub chunk_index: Vec<u64>,
    /// The number of elements.
    pub element_count: u64,
    /// The number of missing elements: NaN or the fill value.
    pub null_count: u64,
    /// The minimum of the others: its bytes (little-endian) in hexadecimal. Absent if all are missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_le: Option<String>,
    /// Their maximum, in the same form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_le: Option<String>,
}

impl ZoneMaps {
    /// The zone maps of a standalone file.
    pub(crate) fn standalone(chunks: Vec<Zone>) -> Self {
        Self { version: 1, generation: 0, packed_sha256: "0".repeat(64), chunks }
    }
}

/// The bytes of a hexadecimal text; `None` if it is invalid.
#[must_use]
pub fn hex_bytes(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| (byte as char).to_digit(16);
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let bytes = pairs.iter().map(|[high, low]| Some((digit(*high)? << 4 | digit(*low)?) as u8)).collect();
    if rest.is_empty() { bytes } else { None }
}

/// The hexadecimal text of bytes.
pub(crate) fn hex_text(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The statistics of one chunk. Elements are little-endian bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Statistics {
    pub(crate) elements: u64,
    pub(crate) nulls: u64,
    /// Minimum and maximum of the others, in the first bytes.
    pub(crate) range: Option<([u8; 8], [u8; 8])>,
}

/// The statistics of cells of one width. Elements are compared by a key: an integer with the same order, from which they can be
/// restored. The loop has no branches, so that the compiler can vectorise it.
macro_rules! statistics {
    ($bits:ty => $key:ty, $raw:expr, $missing:expr, $to_key:expr, $to_bits:expr, $nan:expr) => {{
        const N: usize = size_of::<$bits>();
        let (cells, _) = $raw.as_chunks::<N>();
        let missing = $missing.and_then(|bytes: &[u8]| <[u8; N]>::try_from(bytes).ok());
        let (any_missing, missing) = (missing.is_some(), <$bits>::from_le_bytes(missing.unwrap_or_default()));
        let (mut nulls, mut low, mut high) = (0_u64, <$key>::MAX, <$key>::MIN);
        // As many cells as a counter of their own width can count, so that all lanes have the same width.
        for block in cells.chunks(if N == 1 { 255 } else { 1 << 15 }) {
            let (mut least, mut most) = (<$key>::MAX, <$key>::MIN);
            for cell in block {
                let key: $key = $to_key(<$bits>::from_le_bytes(*cell));
                (least, most) = (least.min(key), most.max(key));
            }
            // In total order, NaNs lie beyond the infinities: if none is at the ends, there are none.
            if any_missing || $nan($to_bits(least)) || $nan($to_bits(most)) {
                let mut count: $bits = 0;
                (least, most) = (<$key>::MAX, <$key>::MIN);
                for cell in block {
                    let bits = <$bits>::from_le_bytes(*cell);
                    let null = $nan(bits) | (any_missing & (bits == missing));
                    let key: $key = $to_key(bits);
                    count += <$bits>::from(null);
                    least = least.min(if null { <$key>::MAX } else { key });
                    most = most.max(if null { <$key>::MIN } else { key });
                }
                nulls += u64::from(count);
            }
            (low, high) = (low.min(least), high.max(most));
        }
        let wide = |key: $key| {
            let mut bytes = [0; 8];
            let bits: $bits = $to_bits(key);
            bytes[..N].copy_from_slice(&bits.to_le_bytes());
            bytes
        };
        let elements = cells.len() as u64;
        Statistics { elements, nulls, range: (nulls < elements).then(|| (wide(low), wide(high))) }
    }};
}

/// Floats in IEEE total order: negative numbers are ordered by descending magnitude.
macro_rules! float_statistics {
    ($bits:ty => $key:ty, $infinity:expr, $raw:expr, $missing:expr) => {{
        // Its own inverse.
        let flip = |signed: $key| signed ^ (((signed >> (<$key>::BITS - 1)) as $bits) >> 1) as $key;
        let nan = |bits: $bits| bits & (<$bits>::MAX >> 1) > $infinity;
        statistics!($bits => $key, $raw, $missing, |bits: $bits| flip(bits as $key), |key| flip(key) as $bits, nan)
    }};
}

/// Integers are their own keys and are never NaN.
macro_rules! integer_statistics {
    ($bits:ty => $key:ty, $raw:expr, $missing:expr) => {
        statistics!($bits => $key, $raw, $missing, |bits: $bits| bits as $key, |key| key as $bits, |_| false)
    };
}

widest! {
    /// The statistics of a chunk's little-endian bytes, given the missing-value marker.
    statistics_of[](dtype: &DType, raw: &[u8], missing: Option<&[u8]>) -> Statistics, statistics_here
}

#[inline(always)]
fn statistics_here(dtype: &DType, raw: &[u8], missing: Option<&[u8]>) -> Statistics {
    match dtype {
        DType::Float16 => float_statistics!(u16 => i16, 0x7c00, raw, missing),
        DType::Float32 => float_statistics!(u32 => i32, 0x7f80_0000, raw, missing),
        DType::Float64 => float_statistics!(u64 => i64, 0x7ff0_0000_0000_0000, raw, missing),
        DType::Int16 => integer_statistics!(u16 => i16, raw, missing),
        DType::Int32 => integer_statistics!(u32 => i32, raw, missing),
        DType::Int64 => integer_statistics!(u64 => i64, raw, missing),
        DType::UInt16 => integer_statistics!(u16 => u16, raw, missing),
        DType::UInt32 => integer_statistics!(u32 => u32, raw, missing),
        DType::UInt64 => integer_statistics!(u64 => u64, raw, missing),
        _ => integer_statistics!(u8 => u8, raw, missing),
    }
}

impl Statistics {
    /// The statistics of a chunk's little-endian bytes, given the missing-value marker.
    pub(crate) fn of(dtype: &DType, raw: &[u8], missing: Option<&[u8]>) -> Self {
        statistics_of(dtype, raw, missing)
    }

    /// Combines the statistics of two consecutive parts of a chunk.
    pub(crate) fn and(self, next: &Self, dtype: &DType) -> Self {
        let range = match (self.range, next.range) {
            (Some(own), Some(next)) => Self::ends(dtype, &[own.0, own.1, next.0, next.1]),
            (own, next) => own.or(next),
        };
        Self { elements: self.elements + next.elements, nulls: self.nulls + next.nulls, range }
    }

    /// The minimum and maximum of these.
    fn ends(dtype: &DType, values: &[[u8; 8]]) -> Option<([u8; 8], [u8; 8])> {
        let size = dtype.size().unwrap_or(8);
        let bytes: Vec<u8> = values.iter().flat_map(|value| &value[..size]).copied().collect();
        Self::of(dtype, &bytes, None).range
    }

    /// Returns true if every value of `other` lies within the claimed range.
    pub(crate) fn covers(&self, other: &Self, dtype: &DType) -> bool {
        let (claimed, found) = match (self.range, other.range) {
            (_, None) => return true,
            (None, Some(_)) => return false,
            (Some(claimed), Some(found)) => (claimed, found),
        };
        // The claims must be the extremes of all four.
        Self::ends(dtype, &[claimed.0, found.0, found.1, claimed.1]) == Some(claimed)
    }

    /// The encoding that travels with an encoded chunk.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let (low, high) = self.range.unwrap_or_default();
        let mut bytes = vec![u8::from(self.range.is_some())];
        for field in [self.elements.to_le_bytes(), self.nulls.to_le_bytes(), low, high] {
            bytes.extend_from_slice(&field);
        }
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (any, fields) = bytes.split_first()?;
        let [elements, nulls, low, high] = *<&[[u8; 8]; 4]>::try_from(fields.as_chunks().0).ok()?;
        let range = (*any == 1).then_some((low, high));
        Some(Self { elements: u64::from_le_bytes(elements), nulls: u64::from_le_bytes(nulls), range })
    }

    /// Converts to a row of the zone maps.
    pub(crate) fn zone(&self, dataset: usize, coord: &[u64], item: usize) -> Zone {
        let text = |value: &[u8; 8]| hex_text(&value[..item.min(8)]);
        Zone {
            dataset_id: dataset as u64,
            chunk_index: coord.to_vec(),
            element_count: self.elements,
            null_count: self.nulls,
            min_le: self.range.as_ref().map(|(low, _)| text(low)),
            max_le: self.range.as_ref().map(|(_, high)| text(high)),
        }
    }

    /// The claims of a zone; `None` if its text is not an element of `item` bytes.
    pub(crate) fn of_zone(zone: &Zone, item: usize) -> Option<Self> {
        let value = |text: &str| {
            let bytes = hex_bytes(text).filter(|bytes| bytes.len() == item && item <= 8)?;
            let mut wide = [0; 8];
            wide[..item].copy_from_slice(&bytes);
            Some(wide)
        };
        let range = match (&zone.min_le, &zone.max_le) {
            (None, None) => None,
            (Some(low), Some(high)) => Some((value(low)?, value(high)?)),
            _ => return None,
        };
        Some(Self { elements: zone.element_count, nulls: zone.null_count, range })
    }
}

/// The bytes (little-endian) of the missing-value marker in the attributes.
pub(crate) fn missing_bytes(dtype: &DType, attributes: &Attributes) -> Option<Vec<u8>> {
    let value = crate::footer::MISSING_MARKERS.iter().find_map(|name| attributes.get(name))?;
    parse_element(dtype, &crate::write::attribute_text(&value.to_json()))
}

/// An element from its decimal text.
pub(crate) fn parse_element(dtype: &DType, text: &str) -> Option<Vec<u8>> {
    let text = text.trim();
    macro_rules! parsed {
        ($type:ty) => {
            text.parse::<$type>().ok()?.to_le_bytes().to_vec()
        };
    }
    Some(match dtype {
        DType::Float16 => f16::from_f64(text.parse().ok()?).to_le_bytes().to_vec(),
        DType::Float32 => parsed!(f32),
        DType::Float64 => parsed!(f64),
        DType::Int16 => parsed!(i16),
        DType::Int32 => parsed!(i32),
        DType::Int64 => parsed!(i64),
        DType::UInt8 => parsed!(u8),
        DType::UInt16 => parsed!(u16),
        DType::UInt32 => parsed!(u32),
        DType::UInt64 => parsed!(u64),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_in_total_order_and_nans_are_missing() {
        let cells = [1.5_f32, -0.0, 0.0, f32::NAN, -3.0, f32::INFINITY, 7.0];
        let raw: Vec<u8> = cells.iter().flat_map(|cell| cell.to_le_bytes()).collect();
        let of = |missing: Option<f32>| {
            let missing = missing.map(f32::to_le_bytes);
            Statistics::of(&DType::Float32, &raw, missing.as_ref().map(<[u8; 4]>::as_slice))
        };
        let zone = of(Some(7.0)).zone(0, &[0], 4);
        assert_eq!((zone.element_count, zone.null_count), (7, 2));
        assert_eq!(zone.min_le.as_deref(), Some(hex_text(&(-3.0_f32).to_le_bytes()).as_str()));
        assert_eq!(zone.max_le.as_deref(), Some(hex_text(&f32::INFINITY.to_le_bytes()).as_str()));
        assert!(of(None).covers(&of(Some(-3.0)), &DType::Float32));
        assert!(!of(Some(-3.0)).covers(&of(None), &DType::Float32));
        assert_eq!(Statistics::decode(&of(None).encode()), Some(of(None)));
        assert_eq!(Statistics::of_zone(&zone, 4), Some(of(Some(7.0))));
        let zeros = [0.0_f32, -0.0].iter().flat_map(|cell| cell.to_le_bytes()).collect::<Vec<_>>();
        let (low, high) = Statistics::of(&DType::Float32, &zeros, None).range.unwrap();
        assert_eq!((low[3], high[3]), (0x80, 0));
    }

    /// Compares blocks with and without missing values with a cell-by-cell walk.
    #[test]
    fn statistics_of_blocks_match_a_single_pass() {
        let mut cells: Vec<f32> = (0..100_000).map(|cell| (cell as f32 * 0.37).sin() * 1e3).collect();
        (cells[40_000], cells[99_999], cells[70_000]) = (f32::NAN, -f32::NAN, f32::NEG_INFINITY);
        let raw: Vec<u8> = cells.iter().flat_map(|cell| cell.to_le_bytes()).collect();
        let missing = cells[5];
        for missing in [None, Some(missing)] {
            let here = |cell: &&f32| !cell.is_nan() && Some(**cell) != missing;
            let walked = |best: fn(f32, f32) -> f32| cells.iter().filter(here).copied().reduce(best);
            let bytes = missing.map(f32::to_le_bytes);
            let zone = Statistics::of(&DType::Float32, &raw, bytes.as_ref().map(<[u8; 4]>::as_slice)).zone(
                0,
                &[0],
                4,
            );
            let text = |value: Option<f32>| value.map(|value| hex_text(&value.to_le_bytes()));
            assert_eq!(zone.null_count, (cells.len() - cells.iter().filter(here).count()) as u64);
            assert_eq!((zone.min_le, zone.max_le), (text(walked(f32::min)), text(walked(f32::max))));
        }
        let bytes: Vec<u8> =
            (0..1000).map(|cell| if cell < 600 { 7 } else { (cell % 100) as u8 + 20 }).collect();
        let statistics = Statistics::of(&DType::UInt8, &bytes, Some(&[7]));
        assert_eq!((statistics.elements, statistics.nulls), (1000, 600));
        assert_eq!(statistics.range.map(|(low, high)| (low[0], high[0])), Some((20, 119)));
    }

    proptest::proptest! {
        /// Numbers, zeros of both signs and NaNs, in complete and incomplete blocks.
        #[test]
        fn minimum_and_maximum_follow_total_order(
            cells in proptest::collection::vec(
                proptest::prop_oneof![
                    8 => -9.0_f64..9.0,
                    1 => proptest::sample::select(vec![0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY]),
                    1 => proptest::sample::select(vec![f64::NAN, 0.0]),
                ],
                0..100,
            ),
        ) {
            let numbers = || cells.iter().filter(|cell| !cell.is_nan()).copied();
            let ends = numbers().min_by(f64::total_cmp).zip(numbers().max_by(f64::total_cmp));
            let raw: Vec<u8> = cells.iter().flat_map(|cell| cell.to_le_bytes()).collect();
            let found = Statistics::of(&DType::Float64, &raw, None);
            let ends = ends.map(|(low, high)| (low.to_le_bytes(), high.to_le_bytes()));
            proptest::prop_assert_eq!(found.range, ends);
            proptest::prop_assert_eq!(found.nulls as usize, cells.len() - numbers().count());
            let (front, back) = raw.split_at(raw.len() / 16 * 8);
            let of = |part| Statistics::of(&DType::Float64, part, None);
            proptest::prop_assert_eq!(of(front).and(&of(back), &DType::Float64), found);
        }
    }

    #[test]
    fn integers_are_signed_or_not() {
        let raw = [0xff, 0xff, 1, 0];
        let range =
            |dtype: &DType| Statistics::of(dtype, &raw, None).range.map(|(low, high)| (low[0], high[0]));
        assert_eq!(range(&DType::Int16), Some((0xff, 1)));
        assert_eq!(range(&DType::UInt16), Some((1, 0xff)));
    }
}
