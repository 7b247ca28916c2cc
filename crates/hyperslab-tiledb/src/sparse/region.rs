//! The wanted range of each dimension, and how it relates to a tile's box.

use hyperslab_core::{Bound, Error, Result, Scan};

use super::Keys;
use super::coords::{integer_key, key_of, key_of_float};
use crate::schema::{Dimension, Range, Schema};

/// The wanted range of one dimension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DimensionRange {
    All,
    None,
    /// A range of keys, both ends included.
    Fixed {
        low: u64,
        high: u64,
    },
    /// A range of texts, both ends included.
    Text {
        low: Option<Vec<u8>>,
        high: Option<Vec<u8>>,
    },
}

/// The relation of a box to the wanted region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Relation {
    Outside,
    Partly,
    Inside,
}

impl DimensionRange {
    /// Builds one range per dimension from a request.
    pub(crate) fn of_request(schema: &Schema, request: &Scan, name: &str) -> Result<Vec<Self>> {
        let mut region = vec![Self::All; schema.dimensions.len()];
        for (dimension, bounds) in &request.region {
            let index = schema.dimensions.iter().position(|own| own.name == *dimension);
            let index = index.ok_or_else(|| Error::not_found(name, format!("dimension {dimension:?}")))?;
            region[index] =
                Self::of_bounds(&schema.dimensions[index], bounds.low.as_ref(), bounds.high.as_ref())
                    .ok_or_else(|| {
                        Error::invalid(format!("{name}: bounds of another type for dimension {dimension:?}"))
                    })?;
        }
        Ok(region)
    }

    fn of_bounds(dimension: &Dimension, low: Option<&Bound>, high: Option<&Bound>) -> Option<Self> {
        if dimension.is_text() {
            let text = |bound: Option<&Bound>| match bound {
                None => Some(None),
                Some(Bound::Bytes(bytes)) => Some(Some(bytes.clone())),
                Some(_) => None,
            };
            return Some(Self::Text { low: text(low)?, high: text(high)? });
        }
        let number = dimension.datatype.number();
        let (low, high) = if number.is_float() {
            let float = |bound: &Bound| match bound {
                Bound::Integer(value) => Some(*value as f64),
                Bound::Float(value) => Some(*value),
                Bound::Bytes(_) => None,
            };
            (
                low.map_or(Some(0), |bound| float(bound).map(key_of_float))?,
                high.map_or(Some(u64::MAX), |bound| float(bound).map(key_of_float))?,
            )
        } else {
            let (least, most) = number.limits();
            let whole = |bound: &Bound, round: fn(f64) -> f64| match bound {
                Bound::Integer(value) => Some(*value),
                Bound::Float(value) => Some(round(*value) as i128),
                Bound::Bytes(_) => None,
            };
            let low = low.map_or(Some(least), |bound| whole(bound, f64::ceil))?.max(least);
            let high = high.map_or(Some(most), |bound| whole(bound, f64::floor))?.min(most);
            if low > high {
                return Some(Self::None);
            }
            (integer_key(number, low), integer_key(number, high))
        };
        Some(if low > high { Self::None } else { Self::Fixed { low, high } })
    }

    /// The relation of a range of this dimension to the wanted range.
    fn relation(&self, dimension: &Dimension, range: &Range) -> Relation {
        let of = |below: bool, above: bool, inside: bool| match (below || above, inside) {
            (true, _) => Relation::Outside,
            (_, true) => Relation::Inside,
            _ => Relation::Partly,
        };
        match self {
            Self::All => Relation::Inside,
            Self::None => Relation::Outside,
            Self::Fixed { low, high } => {
                let number = dimension.datatype.number();
                let (first, last) = (key_of(number, &range.low), key_of(number, &range.high));
                of(last < *low, first > *high, first >= *low && last <= *high)
            }
            Self::Text { low, high } => {
                let below = low.as_ref().is_some_and(|low| range.high < *low);
                let above = high.as_ref().is_some_and(|high| range.low > *high);
                let inside = low.as_ref().is_none_or(|low| range.low >= *low)
                    && high.as_ref().is_none_or(|high| range.high <= *high);
                of(below, above, inside)
            }
        }
    }

    /// The relation of a box to the wanted region.
    pub(crate) fn relation_of(region: &[Self], dimensions: &[Dimension], ranges: &[Range]) -> Relation {
        region
            .iter()
            .zip(dimensions)
            .zip(ranges)
            .map(|((wanted, dimension), range)| wanted.relation(dimension, range))
            .min()
            .unwrap_or(Relation::Inside)
    }

    /// Keeps only the cells whose coordinate is in the wanted range.
    pub(crate) fn select(&self, keys: &Keys, cells: &mut Vec<u32>) {
        match (self, keys) {
            (Self::All, _) => {}
            (Self::Fixed { low, high }, Keys::Fixed(keys)) => {
                cells.retain(|&cell| (*low..=*high).contains(&keys[cell as usize]));
            }
            (Self::Text { low, high }, keys) => cells.retain(|&cell| {
                let text = keys.text(cell as usize);
                low.as_ref().is_none_or(|low| text >= low.as_slice())
                    && high.as_ref().is_none_or(|high| text <= high.as_slice())
            }),
            _ => cells.clear(),
        }
    }
}
