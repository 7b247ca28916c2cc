//! Rows of named columns: sparse arrays.

use std::cmp::Ordering;
use std::fmt::Debug;

use crate::{Attributes, DType, Elements, Filter, Result, RowFilter, RowOrder};

/// Rows and columns. A region is a box over the table's dimension columns.
pub trait Table: Send + Sync + Debug {
    /// The description of the table.
    fn schema(&self) -> &TableSchema;

    /// The store and node, for messages.
    fn name(&self) -> &str;

    /// How many rows there are.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](crate::Error::Corrupt) when they cannot be counted.
    fn rows(&self) -> Result<u64>;

    /// Batches of the columns asked for, of the rows inside the region that pass the filter.
    ///
    /// # Errors
    ///
    /// [`Invalid`](crate::Error::Invalid) for a column or dimension that is not there; each batch may fail on
    /// its own.
    fn scan(&self, request: &Scan) -> Result<Batches<'_>>;
}

/// Batches, one after the other.
pub type Batches<'a> = Box<dyn Iterator<Item = Result<Batch>> + Send + 'a>;

/// The description of a table.
#[derive(Debug, Clone)]
pub struct TableSchema {
    /// The columns, dimensions first.
    pub columns: Vec<Column>,
    /// The attributes of the table.
    pub attributes: Attributes,
    /// How its format stores it.
    pub stored: StoredTable,
}

/// What a format keeps of a table beyond its rows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StoredTable {
    /// May several rows have the same coordinates? `None` where there are none.
    pub duplicates: Option<bool>,
    /// How rows are sorted.
    pub order: Option<RowOrder>,
    /// Rows that are stored together.
    pub capacity: Option<u64>,
    /// Of each dimension: the lowest and the highest value that may ever be written. `None` for any.
    pub domains: Vec<Option<(Bound, Bound)>>,
    /// Of each dimension: how far rows reach that are sorted together.
    pub extents: Vec<Option<Bound>>,
}

/// A column.
#[derive(Debug, Clone)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// The type of its elements.
    pub dtype: DType,
    /// May elements be missing?
    pub nullable: bool,
    /// Is it a dimension, over which regions are given?
    pub dimension: bool,
    /// The pipeline that its values went through.
    pub filters: Vec<Filter>,
}

/// Which part of a table to read.
#[derive(Debug, Clone, Default)]
pub struct Scan {
    /// The columns, in this order; `None` for all.
    pub columns: Option<Vec<String>>,
    /// Ranges by dimension name, both ends included; dimensions left out are whole.
    pub region: Vec<(String, Bounds)>,
    /// Which of these rows are wanted; `None` for all.
    pub filter: Option<RowFilter>,
}

/// A range of a dimension, both ends included; `None` reaches to the end.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Bounds {
    /// The lowest value.
    pub low: Option<Bound>,
    /// The highest value.
    pub high: Option<Bound>,
}

impl Bounds {
    /// What lies in both ranges. Ends of different kinds are not compared; the first stays.
    #[must_use]
    pub fn intersect(self, other: Self) -> Self {
        let pick = |a: Option<Bound>, b: Option<Bound>, wanted: Ordering| match (a, b) {
            (Some(a), Some(b)) => Some(if b.compare(&a) == Some(wanted) { b } else { a }),
            (a, b) => a.or(b),
        };
        Self {
            low: pick(self.low, other.low, Ordering::Greater),
            high: pick(self.high, other.high, Ordering::Less),
        }
    }
}

/// One end of a range.
#[derive(Debug, Clone, PartialEq)]
pub enum Bound {
    /// Of an integer or date dimension (ticks of its unit).
    Integer(i128),
    /// Of a float dimension.
    Float(f64),
    /// Of a text dimension.
    Bytes(Vec<u8>),
}

impl Bound {
    fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Integer(a), Self::Integer(b)) => Some(a.cmp(b)),
            (Self::Float(a), Self::Float(b)) => a.partial_cmp(b),
            (Self::Bytes(a), Self::Bytes(b)) => Some(a.cmp(b)),
            _ => None,
        }
    }
}

/// Some rows.
#[derive(Debug, Clone)]
pub struct Batch {
    /// How many.
    pub rows: usize,
    /// One per column asked for.
    pub columns: Vec<Elements>,
}
