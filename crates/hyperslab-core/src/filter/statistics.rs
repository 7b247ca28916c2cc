//! Evaluates filters on the statistics of a block of rows.

use super::{RowFilter, Test};
use crate::Number;

/// The known range of a column's values in a block of rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ColumnRange {
    /// The lower bound of the values.
    pub min: Number,
    /// The upper bound of the values.
    pub max: Number,
    /// Whether values may be missing or NaN.
    pub missing: bool,
}

/// Whether a condition can be true, false or unknown for a row of the block.
#[derive(Debug, Clone, Copy)]
struct Possible {
    yes: bool,
    no: bool,
    unknown: bool,
}

impl RowFilter {
    /// Returns true if no row of a block with these statistics can pass.
    #[must_use]
    pub fn rules_out(&self, known: &dyn Fn(&str) -> Option<ColumnRange>) -> bool {
        !self.possible(known).yes
    }

    /// Returns true if every row of a block with these statistics passes.
    #[must_use]
    pub fn takes_all(&self, known: &dyn Fn(&str) -> Option<ColumnRange>) -> bool {
        let possible = self.possible(known);
        !possible.no && !possible.unknown
    }

    fn possible(&self, known: &dyn Fn(&str) -> Option<ColumnRange>) -> Possible {
        match self {
            Self::All(parts) => {
                parts.iter().fold(Possible { yes: true, no: false, unknown: false }, |all, part| {
                    let part = part.possible(known);
                    Possible {
                        yes: all.yes && part.yes,
                        no: all.no || part.no,
                        unknown: all.unknown || part.unknown,
                    }
                })
            }
            Self::Any(parts) => {
                parts.iter().fold(Possible { yes: false, no: true, unknown: false }, |any, part| {
                    let part = part.possible(known);
                    Possible {
                        yes: any.yes || part.yes,
                        no: any.no && part.no,
                        unknown: any.unknown || part.unknown,
                    }
                })
            }
            Self::Not(part) => {
                let part = part.possible(known);
                Possible { yes: part.no, no: part.yes, unknown: part.unknown }
            }
            Self::Test { column, test } => known(column)
                .map_or(Possible { yes: true, no: true, unknown: true }, |range| test.possible(&range)),
        }
    }
}

impl Test {
    fn possible(&self, range: &ColumnRange) -> Possible {
        let unknown = range.missing;
        match (self, range.min, range.max) {
            (Self::Null, ..) => Possible { yes: unknown, no: true, unknown: false },
            (Self::Integers { low, high }, Number::Integer(min), Number::Integer(max)) => {
                Possible { yes: max >= *low && min <= *high, no: min < *low || max > *high, unknown }
            }
            (Self::IntegersIn(values), Number::Integer(min), Number::Integer(max)) => {
                let from = values.partition_point(|value| *value < min);
                let inside = values.get(from).is_some_and(|value| *value <= max);
                Possible { yes: inside, no: min != max || !inside, unknown }
            }
            (Self::Floats { low, high }, Number::Float(min), Number::Float(max)) => {
                let above = max > low.value || (low.included && max == low.value);
                let below = min < high.value || (high.included && min == high.value);
                let all_above = min > low.value || (low.included && min == low.value);
                let all_below = max < high.value || (high.included && max == high.value);
                // NaN is outside every range.
                Possible { yes: above && below, no: !(all_above && all_below) || unknown, unknown }
            }
            (Self::FloatsIn(values), Number::Float(min), Number::Float(max)) => {
                Possible { yes: values.iter().any(|value| (min..=max).contains(value)), no: true, unknown }
            }
            _ => Possible { yes: true, no: true, unknown: true },
        }
    }
}
