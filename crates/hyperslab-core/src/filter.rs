//! Row filters: conditions on the columns of a table, already converted to the column types.
//!
//! For each row, a condition is true, false or unknown. As in SQL, it is unknown if a value that it needs is missing, and such
//! rows are left out. NaN fails every comparison and does not equal anything.

mod evaluate;
mod statistics;

pub use evaluate::{FilterColumns, Truth};
pub use statistics::ColumnRange;

use crate::{Bound, Bounds};

/// Selects rows of a table.
#[derive(Debug, Clone, PartialEq)]
pub enum RowFilter {
    /// All of these hold. An empty list selects every row.
    All(Vec<Self>),
    /// At least one of these holds.
    Any(Vec<Self>),
    /// This does not hold.
    Not(Box<Self>),
    /// A test of one column.
    Test {
        /// The column's name.
        column: String,
        /// The test of its values.
        test: Test,
    },
}

/// A test of a column's values.
#[derive(Debug, Clone, PartialEq)]
pub enum Test {
    /// Integers, dates (ticks), booleans or enumeration codes in a range, both ends included.
    Integers {
        /// The lowest.
        low: i128,
        /// The highest.
        high: i128,
    },
    /// One of these integers, sorted.
    IntegersIn(Vec<i128>),
    /// Floats between two bounds.
    Floats {
        /// The lowest.
        low: End<f64>,
        /// The highest.
        high: End<f64>,
    },
    /// One of these floats.
    FloatsIn(Vec<f64>),
    /// Texts and bytes between two bounds, compared byte by byte.
    Texts {
        /// The first.
        low: Option<End<Vec<u8>>>,
        /// The last.
        high: Option<End<Vec<u8>>>,
    },
    /// One of these texts, sorted.
    TextsIn(Vec<Vec<u8>>),
    /// The value is missing. Never unknown.
    Null,
}

/// A bound of a range.
#[derive(Debug, Clone, PartialEq)]
pub struct End<T> {
    /// The bound.
    pub value: T,
    /// Whether the bound itself belongs to the range.
    pub included: bool,
}

impl<T> End<T> {
    /// A bound that belongs to the range.
    pub const fn included(value: T) -> Self {
        Self { value, included: true }
    }

    /// A bound that does not belong to the range.
    pub const fn excluded(value: T) -> Self {
        Self { value, included: false }
    }
}

impl RowFilter {
    /// A filter that every row passes.
    #[must_use]
    pub const fn everything() -> Self {
        Self::All(Vec::new())
    }

    /// A filter that no row passes.
    #[must_use]
    pub const fn nothing() -> Self {
        Self::Any(Vec::new())
    }

    /// A test of one column.
    pub fn test(column: impl Into<String>, test: Test) -> Self {
        Self::Test { column: column.into(), test }
    }

    /// Combines both filters: a row must pass each of them.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::All(mut all), Self::All(more)) => {
                all.extend(more);
                Self::All(all)
            }
            (Self::All(mut all), one) => {
                all.push(one);
                Self::All(all)
            }
            (one, Self::All(all)) => Self::All(std::iter::once(one).chain(all).collect()),
            (one, other) => Self::All(vec![one, other]),
        }
    }

    /// The names of the columns that the filter tests, each once.
    #[must_use]
    pub fn columns(&self) -> Vec<&str> {
        let mut names = Vec::new();
        self.collect(&mut names);
        names
    }

    fn collect<'a>(&'a self, names: &mut Vec<&'a str>) {
        match self {
            Self::All(parts) | Self::Any(parts) => parts.iter().for_each(|part| part.collect(names)),
            Self::Not(part) => part.collect(names),
            Self::Test { column, .. } => {
                if !names.contains(&column.as_str()) {
                    names.push(column);
                }
            }
        }
    }

    /// A range of a column that contains every row that passes. Rows inside it may still fail.
    #[must_use]
    pub fn bounds(&self, name: &str) -> Bounds {
        match self {
            Self::All(parts) => {
                parts.iter().fold(Bounds::default(), |bounds, part| bounds.intersect(part.bounds(name)))
            }
            Self::Any(parts) if parts.len() == 1 => parts[0].bounds(name),
            Self::Test { column, test } if column == name => test.bounds(),
            _ => Bounds::default(),
        }
    }
}

impl Test {
    fn bounds(&self) -> Bounds {
        let (low, high) = match self {
            Self::Integers { low, high } => (Some(Bound::Integer(*low)), Some(Bound::Integer(*high))),
            Self::IntegersIn(values) => (
                values.first().map(|low| Bound::Integer(*low)),
                values.last().map(|high| Bound::Integer(*high)),
            ),
            Self::Floats { low, high } => (Some(Bound::Float(low.value)), Some(Bound::Float(high.value))),
            Self::FloatsIn(values) => (
                values.iter().copied().reduce(f64::min).map(Bound::Float),
                values.iter().copied().reduce(f64::max).map(Bound::Float),
            ),
            Self::Texts { low, high } => {
                let bound =
                    |end: &Option<End<Vec<u8>>>| end.as_ref().map(|end| Bound::Bytes(end.value.clone()));
                (bound(low), bound(high))
            }
            Self::TextsIn(values) => {
                let bound = |value: Option<&Vec<u8>>| value.map(|value| Bound::Bytes(value.clone()));
                (bound(values.first()), bound(values.last()))
            }
            Self::Null => (None, None),
        };
        Bounds { low, high }
    }
}

#[cfg(test)]
mod tests;
