//! New tables, written in batches.

use std::fmt::Debug;
use std::str::FromStr;
use std::sync::Arc;

use crate::{Attributes, Batch, Bound, Column, Error, Result};

/// What table to write, and how.
#[derive(Debug, Clone)]
pub struct TableSpec {
    /// The columns, dimensions first.
    pub columns: Vec<Column>,
    /// What to write beside it.
    pub attributes: Attributes,
    /// May several rows have the same coordinates?
    pub duplicates: bool,
    /// How rows are sorted.
    pub order: RowOrder,
    /// Of each dimension: the lowest and the highest value that may ever be written. `None` for any.
    pub domains: Vec<Option<(Bound, Bound)>>,
    /// Of each dimension: how far rows reach that are sorted together. `None` where that is not decided.
    pub extents: Vec<Option<Bound>>,
    /// Rows that are stored together; the format's own number when left out.
    pub capacity: Option<u64>,
    /// The description of its source in the encoding of the source's format.
    pub encoded: Option<Arc<[u8]>>,
    /// Memory for rows that are not written yet, in bytes.
    pub memory: u64,
}

/// How the rows of a table are sorted by their dimensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RowOrder {
    /// By the first dimension, then by the next.
    #[default]
    RowMajor,
    /// By the last dimension, then by the one before.
    ColumnMajor,
    /// Along a Hilbert curve: rows that are near in all dimensions are stored together.
    Hilbert,
}

impl FromStr for RowOrder {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "row-major" | "row" => Ok(Self::RowMajor),
            "column-major" | "col-major" | "column" | "col" => Ok(Self::ColumnMajor),
            "hilbert" => Ok(Self::Hilbert),
            other => Err(Error::invalid(format!(
                "no order {other}; there are row-major, column-major and hilbert"
            ))),
        }
    }
}

/// A table that is being written. Nothing is visible before [`commit`](TableSink::commit).
pub trait TableSink: Send + Debug {
    /// The columns that batches must have, dimensions first.
    fn columns(&self) -> &[Column];

    /// Gives an enumeration more names, behind those that it has; [`columns`](Self::columns) shows them.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) when its codes are used up; [`Unsupported`](Error::Unsupported) where enumerations stay as
    /// they are.
    fn extend_enumeration(&mut self, column: usize, names: &[String]) -> Result<()> {
        let what = format!("more names ({}) in the enumeration of column {column}", names.join(", "));
        Err(Error::unsupported("table", what))
    }

    /// More rows.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) when columns do not fit, or rows have coordinates that they may not have;
    /// [`Io`](Error::Io) when the system refuses.
    fn write(&mut self, batch: Batch) -> Result<()>;

    /// Makes everything visible at once.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write); nothing is visible then.
    fn commit(self: Box<Self>) -> Result<()>;
}
