//! Conditions on values: parsed from text, and compiled to the tests that a kernel runs.

use std::fmt;
use std::str::FromStr;

use hyperslab_core::{ChunkStatistics, Error, Number, Result};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::operand::Operand;

/// How a value is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Comparison {
    /// Equal.
    Equal,
    /// Not equal. A missing value is not equal to any.
    NotEqual,
    /// Less than.
    Less,
    /// At most.
    LessOrEqual,
    /// Greater than.
    Greater,
    /// At least.
    GreaterOrEqual,
}

/// One condition on a value.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Condition {
    /// Compared with a number, exactly, whatever the types.
    Compare(Comparison, Number),
    /// Missing: NaN, or the array's own missing value.
    IsNull,
    /// Not missing.
    IsNotNull,
}

/// Conditions, all of which must hold. If empty, every value counts.
///
/// ```
/// use hyperslab::query::Conditions;
/// let warm: Conditions = "> 273, <= 310".parse()?;
/// assert_eq!(warm.to_string(), "> 273, <= 310");
/// assert!("~ 3".parse::<Conditions>().is_err());
/// # Ok::<(), hyperslab::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Conditions {
    /// The conditions.
    pub all: Vec<Condition>,
    /// Whether floats are compared by bits, so that the two zeros differ. Query documents do so; the command line does not.
    #[serde(default)]
    pub bitwise: bool,
}

impl Conditions {
    /// Returns true if every value counts.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

const SYMBOLS: [(&str, Comparison); 7] = [
    (">=", Comparison::GreaterOrEqual),
    ("<=", Comparison::LessOrEqual),
    ("!=", Comparison::NotEqual),
    ("==", Comparison::Equal),
    (">", Comparison::Greater),
    ("<", Comparison::Less),
    ("=", Comparison::Equal),
];

impl FromStr for Conditions {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let text = text.replace(" and ", ",").replace("&&", ",");
        let all = text.split(',').map(|part| part.trim().parse()).collect::<Result<_>>()?;
        Ok(Self { all, bitwise: false })
    }
}

impl FromStr for Condition {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "null" | "is null" => return Ok(Self::IsNull),
            "not null" | "is not null" => return Ok(Self::IsNotNull),
            _ => {}
        }
        let symbol =
            SYMBOLS.iter().find_map(|(symbol, kind)| Some((*kind, text.strip_prefix(symbol)?.trim())));
        let (kind, number) = symbol.ok_or_else(|| {
            Error::invalid(format!(
                "condition {text:?}: expected '> 273', '<= 5', '!= 0', 'null' or 'not null'"
            ))
        })?;
        let parsed = number
            .parse::<i128>()
            .map(Number::Integer)
            .or_else(|_| number.parse::<f64>().map(Number::Float))
            .map_err(|_| Error::invalid(format!("condition {text:?}: {number:?} is not a number")))?;
        if matches!(parsed, Number::Float(value) if value.is_nan()) {
            return Err(Error::invalid(format!(
                "condition {text:?}: no value equals NaN; use 'null' or 'not null'"
            )));
        }
        Ok(Self::Compare(kind, parsed))
    }
}

impl fmt::Display for Conditions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, condition) in self.all.iter().enumerate() {
            f.write_str(if i > 0 { ", " } else { "" })?;
            match condition {
                Condition::IsNull => f.write_str("null")?,
                Condition::IsNotNull => f.write_str("not null")?,
                Condition::Compare(kind, number) => {
                    let symbol = SYMBOLS.iter().find(|(_, own)| own == kind).map_or("", |(symbol, _)| symbol);
                    match number {
                        Number::Integer(value) => write!(f, "{symbol} {value}")?,
                        Number::Float(value) => write!(f, "{symbol} {value}")?,
                    }
                }
            }
        }
        Ok(())
    }
}

/// The values that a kernel keeps.
#[derive(Debug, Clone)]
pub(super) struct Mask<T> {
    /// The range, both ends included.
    low: T,
    high: T,
    unequal: Vec<T>,
    /// Keep a value equal to this one, compared by bits.
    equal: Option<T>,
    /// No value can pass.
    never: bool,
    compares: bool,
    /// Values that mark missing ones.
    markers: SmallVec<[T; 2]>,
    want_null: Option<bool>,
    skip_nan: bool,
    bitwise: bool,
}

impl<T: Operand> Mask<T> {
    /// The mask for these conditions; `None` if every value is kept. `markers` are the values that mark missing ones.
    pub(super) fn new(conditions: &Conditions, markers: &[Number], skip_nan: bool) -> Option<Self> {
        let skip_nan = skip_nan && T::FLOAT;
        if conditions.is_empty() && !skip_nan {
            return None;
        }
        let mut mask = Self {
            low: T::LOW,
            high: T::HIGH,
            unequal: Vec::new(),
            equal: None,
            never: false,
            compares: false,
            markers: markers.iter().copied().map(nearest).collect(),
            want_null: None,
            skip_nan,
            bitwise: conditions.bitwise,
        };
        for condition in &conditions.all {
            match condition {
                Condition::IsNull => mask.null(true),
                Condition::IsNotNull => mask.null(false),
                Condition::Compare(kind, number) => mask.compare(*kind, *number),
            }
        }
        Some(mask)
    }

    fn null(&mut self, wanted: bool) {
        self.never |= self.want_null.is_some_and(|own| own != wanted);
        self.want_null = Some(wanted);
    }

    fn compare(&mut self, kind: Comparison, number: Number) {
        let exact = nearest::<T>(number);
        let order = compare(exact, number);
        let equal = order == Some(std::cmp::Ordering::Equal);
        // The first value of the operand type at or above the number, and the last at or below it; `None` if there is
        // none.
        let at_least = if order == Some(std::cmp::Ordering::Less) { next_up(exact) } else { Some(exact) };
        let at_most = if order == Some(std::cmp::Ordering::Greater) { next_down(exact) } else { Some(exact) };
        self.compares |= kind != Comparison::NotEqual;
        let (low, high) = match kind {
            Comparison::NotEqual => {
                if equal {
                    self.unequal.push(exact);
                }
                return;
            }
            Comparison::Equal if !equal => {
                self.never = true;
                return;
            }
            Comparison::Equal => {
                if self.bitwise {
                    self.never |= self.equal.is_some_and(|own| !own.same(exact));
                    self.equal = Some(exact);
                }
                (Some(exact), Some(exact))
            }
            Comparison::GreaterOrEqual => (at_least, Some(T::HIGH)),
            Comparison::Greater => (if equal { next_up(exact) } else { at_least }, Some(T::HIGH)),
            Comparison::LessOrEqual => (Some(T::LOW), at_most),
            Comparison::Less => (Some(T::LOW), if equal { next_down(exact) } else { at_most }),
        };
        let (Some(low), Some(high)) = (low, high) else {
            self.never = true;
            return;
        };
        if low > self.low {
            self.low = low;
        }
        if high < self.high {
            self.high = high;
        }
    }

    /// Returns true if the value is missing.
    fn is_null(&self, value: T) -> bool {
        value.is_nan() || self.is_marker(value)
    }

    fn is_marker(&self, value: T) -> bool {
        self.markers.iter().any(|marker| value.same(*marker))
    }

    /// Returns true if missing elements pass.
    pub(super) fn keeps_missing(&self) -> bool {
        self.want_null == Some(true) && !self.compares && !self.never && self.equal.is_none()
    }

    /// Returns true if the value passes.
    pub(super) fn keeps(&self, value: T) -> bool {
        if self.never || (self.skip_nan && value.is_nan()) {
            return false;
        }
        if self.compares && !(value >= self.low && value <= self.high) {
            return false;
        }
        if self.compares && self.is_marker(value) {
            return false;
        }
        self.equal.is_none_or(|equal| value.same(equal))
            && !self.unequal.iter().any(|own| if self.bitwise { value.same(*own) } else { value == *own })
            && self.want_null.is_none_or(|wanted| self.is_null(value) == wanted)
    }

    /// Copies the values that pass to the front of `kept`, which must be at least as long. Returns their number.
    pub(super) fn select(&self, values: &[T], kept: &mut [T]) -> usize {
        let mut count = 0;
        let plain = self.compares
            && !self.never
            && self.markers.is_empty()
            && self.equal.is_none()
            && self.unequal.is_empty()
            && self.want_null.is_none();
        if plain {
            for &value in values {
                kept[count] = value;
                count += usize::from((value >= self.low) & (value <= self.high));
            }
        } else {
            for &value in values {
                kept[count] = value;
                count += usize::from(self.keeps(value));
            }
        }
        count
    }

    /// Returns true if NaN never passes.
    pub(super) const fn refuses_nan(&self) -> bool {
        self.compares || self.skip_nan
    }

    /// Returns true if every value of a chunk with these statistics passes.
    pub(super) fn keeps_all(&self, known: &ChunkStatistics) -> bool {
        use std::cmp::Ordering::{Greater, Less};
        let simple = self.compares
            && !self.never
            && self.markers.is_empty()
            && self.equal.is_none()
            && self.unequal.is_empty()
            && self.want_null.is_none();
        let low = known.min.and_then(|min| compare(self.low, min));
        let high = known.max.and_then(|max| compare(self.high, max));
        let inside = low.is_some_and(|low| low != Greater) && high.is_some_and(|high| high != Less);
        simple && inside && known.nulls == Some(0)
    }

    /// Returns true if no value of a chunk with these statistics can pass.
    pub(super) fn rules_out(&self, known: &ChunkStatistics) -> bool {
        let below =
            |a: Option<Number>, b: T| a.is_some_and(|a| compare(b, a) == Some(std::cmp::Ordering::Greater));
        let above =
            |a: Option<Number>, b: T| a.is_some_and(|a| compare(b, a) == Some(std::cmp::Ordering::Less));
        // Missing values fail every comparison too, so the range of the others decides.
        self.never || (self.compares && (below(known.max, self.low) || above(known.min, self.high)))
    }
}

/// The nearest value of the operand type.
pub(super) fn nearest<T: Operand>(number: Number) -> T {
    match number {
        Number::Integer(value) => T::from_i128(value),
        Number::Float(value) => T::from_f64(value),
    }
}

/// Compares an operand with a number, exactly.
fn compare<T: Operand>(value: T, number: Number) -> Option<std::cmp::Ordering> {
    match (T::FLOAT, number) {
        (true, Number::Float(other)) => value.to_f64().partial_cmp(&other),
        (false, Number::Integer(other)) => Some(value.to_i128().cmp(&other)),
        (true, Number::Integer(other)) => {
            compare_mixed(other, value.to_f64()).map(std::cmp::Ordering::reverse)
        }
        (false, Number::Float(other)) => compare_mixed(value.to_i128(), other),
    }
}

/// Compares an integer with a float, exactly.
fn compare_mixed(integer: i128, float: f64) -> Option<std::cmp::Ordering> {
    if float.is_nan() {
        return None;
    }
    // The cast saturates. If the whole parts are equal, the fraction decides.
    let whole = float.floor() as i128;
    Some(integer.cmp(&whole).then(if float > float.floor() {
        std::cmp::Ordering::Less
    } else {
        std::cmp::Ordering::Equal
    }))
}

fn next_up<T: Operand>(value: T) -> Option<T> {
    (value < T::HIGH).then(|| value.up())
}

fn next_down<T: Operand>(value: T) -> Option<T> {
    (value > T::LOW).then(|| value.down())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kept<T: Operand>(text: &str, values: &[T]) -> Vec<T> {
        let mask = Mask::new(&text.parse().unwrap(), &[], false).unwrap();
        values.iter().copied().filter(|value| mask.keeps(*value)).collect()
    }

    #[test]
    fn comparisons_are_exact_across_types() {
        assert_eq!(kept("> 2.5", &[1_i64, 2, 3, 4]), [3, 4]);
        assert_eq!(kept(">= 3", &[2_i64, 3]), [3]);
        assert_eq!(kept("< 3", &[2_u64, 3]), [2]);
        assert_eq!(kept("< 0", &[0_u64, 3]), [0_u64; 0]);
        assert_eq!(kept("<= 1e30", &[u64::MAX]), [u64::MAX]);
        assert_eq!(kept("== 9007199254740993", &[(1_i64 << 53) + 1, 1 << 53]), [(1_i64 << 53) + 1]);
        assert_eq!(kept("!= 9007199254740993", &[(1_i64 << 53) + 1, 1 << 53]), [1_i64 << 53]);
        // The nearest float32 to 0.1 lies above it.
        assert_eq!(kept("> 0.1", &[0.1_f32]), [0.1]);
        assert_eq!(kept("== 0.1", &[0.1_f32]), [0.0_f32; 0]);
        assert_eq!(kept("== 0.1", &[0.1_f64]), [0.1]);
        assert_eq!(kept("== 0", &[0.0_f64, -0.0]).len(), 2);
        assert_eq!(kept("> 16777216", &[16_777_216_f32, 16_777_218.0]), [16_777_218.0]);
        assert_eq!(kept("> 0, < 3", &[f64::NAN, 0.0, 1.0, 3.0]), [1.0]);
        assert_eq!(kept("!= 0", &[f64::NAN, 0.0]).len(), 1);
        assert_eq!(kept("null", &[f64::NAN, 0.0]).len(), 1);
        assert_eq!(kept("not null", &[f64::NAN, 0.0]), [0.0]);
    }

    proptest! {
        #[test]
        fn comparisons_match_those_of_exact_numbers(value in any::<f32>(), other in any::<f64>(), near in any::<bool>()) {
            let other = if near { f64::from(value) + other.signum() * 1e-9 } else { other };
            for (symbol, holds) in [
                (">", f64::from(value) > other), (">=", f64::from(value) >= other),
                ("<", f64::from(value) < other), ("<=", f64::from(value) <= other),
            ] {
                prop_assert_eq!(kept(&format!("{symbol} {other:?}"), &[value]).len(), usize::from(holds), "{} {} {}", value, symbol, other);
            }
        }
    }
}
