//! Creating tables, written in batches.

use std::fmt::Debug;
use std::str::FromStr;
use std::sync::Arc;

use crate::{Attributes, Batch, Bound, Column, Error, Result};

/// The description of the table to write.
#[derive(Debug, Clone)]
pub struct TableSpec {
    /// The columns, dimensions first.
    pub columns: Vec<Column>,
    /// The attributes of the table.
    pub attributes: Attributes,
    /// Whether several rows may have the same coordinates.
    pub duplicates: bool,
    /// The order in which rows are stored.
    pub order: RowOrder,
    /// The lowest and highest value allowed along each dimension; `None` for any.
    pub domains: Vec<Option<(Bound, Bound)>>,
    /// The tile extent of each dimension: rows within one extent are sorted together. `None` to let the format choose.
    pub extents: Vec<Option<Bound>>,
    /// The number of rows stored together; by default the format's own choice.
    pub capacity: Option<u64>,
    /// The description of its source in the encoding of the source's format.
    pub encoded: Option<Arc<[u8]>>,
    /// The memory budget for rows not yet written, in bytes.
    pub memory: u64,
}

/// The order of a table's rows, by their dimensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RowOrder {
    /// By the first dimension, then the second, and so on.
    #[default]
    RowMajor,
    /// By the last dimension, then the one before, and so on.
    ColumnMajor,
    /// Along a Hilbert curve, which stores rows that are near in all dimensions together.
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
    /// The columns that each batch must have, dimensions first.
    fn columns(&self) -> &[Column];

    /// Appends names to an enumeration; [`columns`](Self::columns) includes them afterwards.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) if all its codes are in use; [`Unsupported`](Error::Unsupported) if enumerations cannot be
    /// extended.
    fn extend_enumeration(&mut self, column: usize, names: &[String]) -> Result<()> {
        let what = format!("more names ({}) in the enumeration of column {column}", names.join(", "));
        Err(Error::unsupported("table", what))
    }

    /// Adds rows.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) if columns do not match, or coordinates are not allowed;
    /// [`Io`](Error::Io) if the system reports an error.
    fn write(&mut self, batch: Batch) -> Result<()>;

    /// Makes everything visible at once.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write); nothing is visible then.
    fn commit(self: Box<Self>) -> Result<()>;
}
