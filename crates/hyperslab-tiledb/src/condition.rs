//! Delete conditions: trees of comparisons.
//!
//! A file holds the *negated* condition: true means keep. As in the library, a comparison with null is false. Rows whose field is
//! null therefore disappear with every delete on it, unless another part of the condition keeps them.

use hyperslab_core::{Fields, Place, Result};

use crate::datatype::Datatype;
use crate::names::TimedName;
use crate::schema::{float, integer};

/// The maximum depth of a tree.
const MAX_DEPTH: usize = 64;

/// A delete: its time, and the condition for rows to keep.
#[derive(Debug, Clone)]
pub(crate) struct Delete {
    pub(crate) name: TimedName,
    pub(crate) keep: Condition,
}

/// A node of a condition tree.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Condition {
    And(Vec<Condition>),
    Or(Vec<Condition>),
    Not(Box<Condition>),
    Compare {
        field: String,
        op: Op,
        value: Vec<u8>,
    },
    /// Equals one of these values or, if negated, none of them.
    Member {
        field: String,
        negated: bool,
        values: Vec<Vec<u8>>,
    },
    Always(bool),
}

/// A comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
    NotEqual,
}

/// One cell of a field, as seen by a condition.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CellValue<'a> {
    pub(crate) datatype: Datatype,
    /// Whether it holds text or bytes rather than numbers.
    pub(crate) text: bool,
    pub(crate) nullable: bool,
    /// `None` if it is null.
    pub(crate) bytes: Option<&'a [u8]>,
}

impl Delete {
    pub(crate) fn parse(name: TimedName, bytes: &[u8], place: Place<'_>) -> Result<Self> {
        let mut fields = Fields::new(bytes, place);
        let keep = Condition::parse(&mut fields, 0)?;
        fields.end()?;
        Ok(Self { name, keep })
    }
}

impl Condition {
    fn parse(fields: &mut Fields<'_>, depth: usize) -> Result<Self> {
        let place = fields.place();
        if depth > MAX_DEPTH {
            return Err(place.corrupt(format!("the condition is deeper than {MAX_DEPTH}")));
        }
        match fields.u8()? {
            0 => {
                let op = fields.u8()?;
                let count = fields.count_u64(2)?;
                let mut children =
                    (0..count).map(|_| Self::parse(fields, depth + 1)).collect::<Result<Vec<_>>>()?;
                match (op, children.pop()) {
                    (0, last) => Ok(Self::And(children.into_iter().chain(last).collect())),
                    (1, last) => Ok(Self::Or(children.into_iter().chain(last).collect())),
                    (2, Some(only)) if children.is_empty() => Ok(Self::Not(Box::new(only))),
                    _ => Err(place.corrupt(format!("operation {op} of {count} conditions"))),
                }
            }
            1 => Self::parse_value(fields),
            other => Err(place.corrupt(format!("condition node {other}, expected 0 or 1"))),
        }
    }

    fn parse_value(fields: &mut Fields<'_>) -> Result<Self> {
        let place = fields.place();
        let code = fields.u8()?;
        let length = fields.count_u32(1)?;
        let field = String::from_utf8_lossy(fields.bytes(length)?).into_owned();
        let length = fields.count_u64(1)?;
        let value = fields.bytes(length)?.to_vec();
        let op = match code {
            0 => Op::Less,
            1 => Op::LessEqual,
            2 => Op::Greater,
            3 => Op::GreaterEqual,
            4 => Op::Equal,
            5 => Op::NotEqual,
            6 | 7 => {
                let bytes = fields.count_u64(1)?;
                let offsets = fields.bytes(bytes)?;
                let mut starts: Vec<usize> = Vec::new();
                for word in offsets.as_chunks::<8>().0 {
                    starts.push(usize::try_from(u64::from_le_bytes(*word)).unwrap_or(usize::MAX));
                }
                let ends = starts.iter().skip(1).copied().chain([value.len()]);
                let values =
                    starts.iter().zip(ends).map(|(&start, end)| value.get(start..end).map(<[u8]>::to_vec));
                let values = values.collect::<Option<Vec<_>>>();
                let values =
                    values.ok_or_else(|| place.corrupt("the members lie outside the condition's value"))?;
                return Ok(Self::Member { field, negated: code == 7, values });
            }
            253 => return Ok(Self::Always(true)),
            254 => return Ok(Self::Always(false)),
            other => return Err(place.corrupt(format!("comparison {other}"))),
        };
        Ok(Self::Compare { field, op, value })
    }

    /// Collects the fields that the condition uses.
    pub(crate) fn fields(&self, names: &mut Vec<String>) {
        match self {
            Self::And(children) | Self::Or(children) => {
                for child in children {
                    child.fields(names);
                }
            }
            Self::Not(child) => child.fields(names),
            Self::Compare { field, .. } | Self::Member { field, .. } => {
                if !names.contains(field) {
                    names.push(field.clone());
                }
            }
            Self::Always(_) => {}
        }
    }

    /// Evaluates the condition for a row; `None` if it uses a field that does not exist.
    pub(crate) fn evaluate<'a>(&self, cell: &impl Fn(&str) -> Option<CellValue<'a>>) -> Option<bool> {
        match self {
            Self::Always(answer) => Some(*answer),
            Self::Not(child) => child.evaluate(cell).map(|answer| !answer),
            Self::And(children) => {
                let mut known = Some(true);
                for child in children {
                    match child.evaluate(cell) {
                        Some(false) => return Some(false),
                        Some(true) => {}
                        None => known = None,
                    }
                }
                known
            }
            Self::Or(children) => {
                let mut known = Some(false);
                for child in children {
                    match child.evaluate(cell) {
                        Some(true) => return Some(true),
                        Some(false) => {}
                        None => known = None,
                    }
                }
                known
            }
            Self::Compare { field, op, value } => {
                let found = cell(field)?;
                if found.nullable && value.is_empty() && !found.text {
                    // A comparison with null itself.
                    return match op {
                        Op::Equal => Some(found.bytes.is_none()),
                        Op::NotEqual => Some(found.bytes.is_some()),
                        _ => Some(false),
                    };
                }
                let Some(bytes) = found.bytes else { return Some(false) };
                // NaN differs from everything and is neither less nor greater.
                Some(compare(&found, bytes, value).map_or(*op == Op::NotEqual, |order| op.holds(order)))
            }
            Self::Member { field, negated, values } => {
                let found = cell(field)?;
                let Some(bytes) = found.bytes else { return Some(false) };
                let inside = values
                    .iter()
                    .any(|value| compare(&found, bytes, value) == Some(std::cmp::Ordering::Equal));
                Some(inside != *negated)
            }
        }
    }
}

impl Op {
    const fn holds(self, order: std::cmp::Ordering) -> bool {
        match self {
            Self::Less => order.is_lt(),
            Self::LessEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterEqual => order.is_ge(),
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
        }
    }
}

/// Compares a cell with a condition's value; `None` for NaN.
fn compare(cell: &CellValue<'_>, bytes: &[u8], value: &[u8]) -> Option<std::cmp::Ordering> {
    if cell.text {
        return Some(bytes.cmp(value));
    }
    let number = cell.datatype.number();
    if number.is_float() {
        return float(number, bytes).partial_cmp(&float(number, value));
    }
    Some(integer(number, bytes).cmp(&integer(number, value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The library's answer for a row whose only field is null.
    #[test]
    fn comparisons_with_null_are_false() {
        let null =
            |_: &str| Some(CellValue { datatype: Datatype::Int32, text: false, nullable: true, bytes: None });
        let compare = |op, value: &[u8]| Condition::Compare { field: "a".into(), op, value: value.to_vec() };
        let five = 5_i32.to_le_bytes();
        for op in [Op::Less, Op::LessEqual, Op::Greater, Op::GreaterEqual, Op::Equal, Op::NotEqual] {
            assert_eq!(compare(op, &five).evaluate(&null), Some(false), "{op:?}");
        }
        for negated in [false, true] {
            let member = Condition::Member { field: "a".into(), negated, values: vec![five.to_vec()] };
            assert_eq!(member.evaluate(&null), Some(false));
        }
        // A comparison with null itself.
        assert_eq!(compare(Op::Equal, &[]).evaluate(&null), Some(true));
        assert_eq!(compare(Op::NotEqual, &[]).evaluate(&null), Some(false));
        let or = Condition::Or(vec![compare(Op::Less, &five), Condition::Always(true)]);
        assert_eq!(or.evaluate(&null), Some(true));
        assert_eq!(compare(Op::Less, &five).evaluate(&|_: &str| None), None);
    }
}
