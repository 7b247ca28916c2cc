//! Evaluates filters on columns in memory.

use crate::{DType, Data, Elements, Error, Result, element_to_text};

use super::{End, RowFilter, Test};

/// Looks up a column for a filter: type and elements by name.
pub type FilterColumns<'a> = dyn Fn(&str) -> Result<(DType, Elements)> + 'a;

/// The result of a condition for each row: one byte per row, 0 or 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Truth {
    yes: Vec<u8>,
    /// Rows for which the condition is false; `None` if it is false for all that are not `yes`.
    no: Option<Vec<u8>>,
}

impl Truth {
    fn constant(rows: usize, answer: bool) -> Self {
        Self { yes: vec![u8::from(answer); rows], no: None }
    }

    /// One byte per row: 1 where the condition holds.
    #[must_use]
    pub fn yes(&self) -> &[u8] {
        &self.yes
    }

    /// One byte per row: 1 where the condition holds.
    #[must_use]
    pub fn into_yes(self) -> Vec<u8> {
        self.yes
    }

    /// The number of rows for which the condition holds.
    #[must_use]
    pub fn count(&self) -> usize {
        // Sum bytes in blocks that cannot overflow, so that the compiler can vectorise.
        self.yes.chunks(255).map(|block| usize::from(block.iter().sum::<u8>())).sum()
    }

    /// The numbers of the rows for which the condition holds.
    #[must_use]
    pub fn rows(&self) -> Vec<u32> {
        let mut rows = vec![0; self.yes.len()];
        let mut count = 0;
        for (row, yes) in self.yes.iter().enumerate() {
            rows[count] = row as u32;
            count += usize::from(*yes);
        }
        rows.truncate(count);
        rows
    }

    fn no(&self) -> Vec<u8> {
        self.no.clone().unwrap_or_else(|| self.yes.iter().map(|yes| yes ^ 1).collect())
    }

    fn negated(self) -> Self {
        match self.no {
            Some(no) => Self { yes: no, no: Some(self.yes) },
            None => Self { yes: self.yes.iter().map(|yes| yes ^ 1).collect(), no: None },
        }
    }

    fn and(mut self, other: &Self) -> Self {
        if self.no.is_some() || other.no.is_some() {
            let mut no = self.no();
            no.iter_mut().zip(other.no()).for_each(|(no, more)| *no |= more);
            self.no = Some(no);
        }
        self.yes.iter_mut().zip(&other.yes).for_each(|(yes, more)| *yes &= more);
        self
    }
}

impl RowFilter {
    /// Evaluates the filter for each row.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) if a column's type does not match its test, or its number of rows differs; any error from
    /// `columns`.
    pub fn evaluate(&self, rows: usize, columns: &FilterColumns<'_>) -> Result<Truth> {
        match self {
            Self::Not(part) => Ok(part.evaluate(rows, columns)?.negated()),
            Self::All(parts) => {
                let mut truth = Truth::constant(rows, true);
                for part in parts {
                    // If the condition is already false for every row, the remaining columns need not be decoded.
                    if truth.no.is_none() && truth.count() == 0 {
                        break;
                    }
                    truth = truth.and(&part.evaluate(rows, columns)?);
                }
                Ok(truth)
            }
            Self::Any(parts) => {
                let mut truth = Truth::constant(rows, true);
                for part in parts {
                    truth = truth.and(&part.evaluate(rows, columns)?.negated());
                }
                Ok(truth.negated())
            }
            Self::Test { column, test } => {
                let (dtype, elements) = columns(column)?;
                let truth = test.evaluate(&dtype, &elements, rows);
                truth.ok_or_else(|| {
                    Error::invalid(format!(
                        "column {column}: the condition does not apply to the type {dtype}"
                    ))
                })
            }
        }
    }
}

impl Test {
    /// Returns `None` if the elements have another layout.
    fn evaluate(&self, dtype: &DType, elements: &Elements, rows: usize) -> Option<Truth> {
        let missing = missing(dtype, elements, rows);
        if *self == Self::Null {
            return Some(match missing {
                Some(missing) => Truth { yes: missing, no: None },
                None => Truth::constant(rows, false),
            });
        }
        let mut yes = match self {
            Self::Integers { low, high } => integers(dtype, elements, Range { low: *low, high: *high })?,
            Self::IntegersIn(values) => integers(dtype, elements, Members(values))?,
            Self::Floats { low, high } => floats(dtype, elements, |value| {
                // Both comparisons are false for NaN.
                (value > low.value || (low.included && value == low.value))
                    && (value < high.value || (high.included && value == high.value))
            })?,
            Self::FloatsIn(values) => floats(dtype, elements, |value| values.contains(&value))?,
            Self::Texts { low, high } => {
                texts(dtype, elements, rows, |text| above(text, low.as_ref()) && below(text, high.as_ref()))?
            }
            Self::TextsIn(values) => texts(dtype, elements, rows, |text| {
                values.binary_search_by(|own| own.as_slice().cmp(text)).is_ok()
            })?,
            Self::Null => return None,
        };
        if yes.len() != rows {
            return None;
        }
        let Some(missing) = missing else { return Some(Truth { yes, no: None }) };
        let mut no = Vec::with_capacity(rows);
        for (yes, missing) in yes.iter_mut().zip(&missing) {
            no.push((*yes ^ 1) & (missing ^ 1));
            *yes &= missing ^ 1;
        }
        Some(Truth { yes, no: Some(no) })
    }
}

fn above(text: &[u8], low: Option<&End<Vec<u8>>>) -> bool {
    low.is_none_or(
        |low| if low.included { text >= low.value.as_slice() } else { text > low.value.as_slice() },
    )
}

fn below(text: &[u8], high: Option<&End<Vec<u8>>>) -> bool {
    high.is_none_or(
        |high| if high.included { text <= high.value.as_slice() } else { text < high.value.as_slice() },
    )
}

/// Which rows are missing; `None` if none is. "Not a time" counts as missing.
fn missing(dtype: &DType, elements: &Elements, rows: usize) -> Option<Vec<u8>> {
    let mut missing: Option<Vec<u8>> = elements
        .validity
        .as_ref()
        .map(|validity| (0..rows).map(|row| u8::from(!validity.get(row))).collect());
    if let (DType::DateTime(_) | DType::Duration(_), Data::Fixed(bytes)) = (dtype, &elements.data) {
        let ticks = bytes.as_chunks::<8>().0;
        let not_a_time = i64::MIN.to_ne_bytes();
        if ticks.contains(&not_a_time) {
            let missing = missing.get_or_insert_with(|| vec![0; rows]);
            for (missing, tick) in missing.iter_mut().zip(ticks) {
                *missing |= u8::from(*tick == not_a_time);
            }
        }
    }
    missing
}

/// A set of integers, for all stored integer types.
trait IntegerSet {
    fn apply<T: Copy + Ord + TryFrom<i128>>(
        &self,
        values: impl Iterator<Item = T>,
        least: T,
        most: T,
    ) -> Vec<u8>;
}

struct Range {
    low: i128,
    high: i128,
}

impl IntegerSet for Range {
    fn apply<T: Copy + Ord + TryFrom<i128>>(
        &self,
        values: impl Iterator<Item = T>,
        least: T,
        most: T,
    ) -> Vec<u8> {
        // A bound that the type cannot hold lies below or above all its values.
        let below = T::try_from(self.low).map_or(if self.low < 0 { Some(least) } else { None }, Some);
        let above = T::try_from(self.high).map_or(if self.high < 0 { None } else { Some(most) }, Some);
        match (below, above) {
            (Some(low), Some(high)) => {
                values.map(|value| u8::from((value >= low) & (value <= high))).collect()
            }
            _ => values.map(|_| 0).collect(),
        }
    }
}

struct Members<'a>(&'a [i128]);

impl IntegerSet for Members<'_> {
    fn apply<T: Copy + Ord + TryFrom<i128>>(&self, values: impl Iterator<Item = T>, _: T, _: T) -> Vec<u8> {
        let own: Vec<T> = self.0.iter().filter_map(|value| T::try_from(*value).ok()).collect();
        if own.len() <= 8 {
            return values
                .map(|value| own.iter().fold(0, |yes, own| yes | u8::from(*own == value)))
                .collect();
        }
        values.map(|value| u8::from(own.binary_search(&value).is_ok())).collect()
    }
}

fn integers(dtype: &DType, elements: &Elements, set: impl IntegerSet) -> Option<Vec<u8>> {
    let bytes = elements.as_fixed()?;
    macro_rules! apply {
        ($type:ty) => {{
            let values = bytes.as_chunks::<{ size_of::<$type>() }>().0;
            set.apply(values.iter().map(|value| <$type>::from_ne_bytes(*value)), <$type>::MIN, <$type>::MAX)
        }};
    }
    Some(match dtype {
        DType::Bool => set.apply(bytes.iter().map(|value| u8::from(*value != 0)), u8::MIN, u8::MAX),
        DType::UInt8 => apply!(u8),
        DType::UInt16 => apply!(u16),
        DType::UInt32 => apply!(u32),
        DType::UInt64 => apply!(u64),
        DType::Int8 => apply!(i8),
        DType::Int16 => apply!(i16),
        DType::Int32 => apply!(i32),
        DType::Int64 | DType::DateTime(_) | DType::Duration(_) => apply!(i64),
        DType::Enum(named) => return integers(&named.base, elements, set),
        _ => return None,
    })
}

fn floats(dtype: &DType, elements: &Elements, holds: impl Fn(f64) -> bool) -> Option<Vec<u8>> {
    let bytes = elements.as_fixed()?;
    Some(match dtype {
        DType::Float16 => {
            let values = bytes.as_chunks::<2>().0.iter();
            values.map(|value| u8::from(holds(half::f16::from_ne_bytes(*value).to_f64()))).collect()
        }
        DType::Float32 => {
            let values = bytes.as_chunks::<4>().0.iter();
            values.map(|value| u8::from(holds(f64::from(f32::from_ne_bytes(*value))))).collect()
        }
        DType::Float64 => {
            bytes.as_chunks::<8>().0.iter().map(|value| u8::from(holds(f64::from_ne_bytes(*value)))).collect()
        }
        _ => return None,
    })
}

fn texts(dtype: &DType, elements: &Elements, rows: usize, holds: impl Fn(&[u8]) -> bool) -> Option<Vec<u8>> {
    match (&elements.data, dtype) {
        (Data::Variable { offsets, bytes }, _) => offsets
            .windows(2)
            .map(|ends| bytes.get(ends[0] as usize..ends[1] as usize).map(|text| u8::from(holds(text))))
            .collect(),
        (Data::Fixed(bytes), DType::FixedBytes(size)) if *size > 0 => {
            let trimmed = |text: &[u8]| text.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            Some(bytes.chunks_exact(*size).map(|text| u8::from(holds(&text[..trimmed(text)]))).collect())
        }
        (Data::Fixed(_), DType::FixedText(_)) => Some(
            (0..rows).map(|row| u8::from(holds(element_to_text(dtype, elements, row).as_bytes()))).collect(),
        ),
        _ => None,
    }
}
