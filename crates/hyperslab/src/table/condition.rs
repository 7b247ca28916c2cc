//! Conditions on rows, as users write them: `count > 50 and type == 'NK'`.
//!
//! | | |
//! |---|---|
//! | compare | `==` `=` `!=` `<>` `<` `<=` `>` `>=`, also chained: `0 <= x < 10` |
//! | combine | `and` `or` `not`, also `&` `\|` `!`; parentheses |
//! | sets and ranges | `type in ('NK', 'B')`, `not in`, `x between 1 and 5` |
//! | missing values | `x is null`, `x is not null`; a comparison with a missing value leaves the row out |
//! | values | numbers; text in single or double quotes; dates, quoted or not (`day >= 2020-01-31`); `true`, `false` |
//! | columns | names; in backquotes if they contain other characters; a boolean column is itself a condition |
//!
//! A date means its whole period: `day == '2020-01'` is all of January, and `day > '2020'` starts in 2021. Numbers are compared
//! in the type of the column, so that `x == 0.1` finds 0.1 in a `float32` column.

mod bind;
mod parse;

use std::str::FromStr;

use hyperslab_core::{Column, Error, Result, RowFilter};

use crate::query::Comparison;

/// A parsed condition on the rows of a table, not yet bound to its columns.
///
/// ```
/// use hyperslab::RowCondition;
/// let condition: RowCondition = "count > 50 and type == 'NK'".parse()?;
/// assert_eq!(condition.columns(), ["count", "type"]);
/// assert!("count > ".parse::<RowCondition>().is_err());
/// # Ok::<(), hyperslab::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct RowCondition {
    text: String,
    root: Expression,
}

#[derive(Debug, Clone, PartialEq)]
enum Expression {
    And(Vec<Self>),
    Or(Vec<Self>),
    Not(Box<Self>),
    Compare {
        column: String,
        comparison: Comparison,
        value: Literal,
    },
    In {
        column: String,
        values: Vec<Literal>,
    },
    /// Two names, where one side must be a value. Refused once the columns are known, to say which name is wrong.
    Names(String, String),
    Null(String),
    /// A boolean column.
    Flag(String),
    Constant(bool),
}

/// A value in a condition.
#[derive(Debug, Clone, PartialEq)]
enum Literal {
    Integer(i128),
    Float(f64),
    Text(String),
    Bool(bool),
}

impl FromStr for RowCondition {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Ok(Self { root: parse::parse(text)?, text: text.to_owned() })
    }
}

impl std::fmt::Display for RowCondition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl RowCondition {
    /// The names of the columns that it tests, each once, in order of appearance.
    #[must_use]
    pub fn columns(&self) -> Vec<&str> {
        let mut names = Vec::new();
        self.root.columns(&mut names);
        names
    }

    /// Combines both conditions.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let text = format!("({}) and ({})", self.text, other.text);
        Self { text, root: Expression::And(vec![self.root, other.root]) }
    }

    /// Binds the condition to these columns and their types.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) for a column that does not exist, and for a value that its column cannot hold.
    pub fn bind(&self, columns: &[Column]) -> Result<RowFilter> {
        self.root.bind(columns)
    }
}

impl Expression {
    fn columns<'a>(&'a self, names: &mut Vec<&'a str>) {
        match self {
            Self::And(parts) | Self::Or(parts) => parts.iter().for_each(|part| part.columns(names)),
            Self::Not(part) => part.columns(names),
            Self::Compare { column, .. }
            | Self::Names(column, _)
            | Self::In { column, .. }
            | Self::Null(column)
            | Self::Flag(column) => {
                if !names.contains(&column.as_str()) {
                    names.push(column);
                }
            }
            Self::Constant(_) => {}
        }
    }
}

impl std::fmt::Display for Literal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Integer(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value}"),
            Self::Text(text) => write!(f, "'{text}'"),
            Self::Bool(value) => write!(f, "{value}"),
        }
    }
}

#[cfg(test)]
mod tests;
