//! Rows of named columns: sparse arrays.

use std::cmp::Ordering;
use std::fmt::Debug;
use std::sync::Arc;

use crate::{Attributes, DType, Elements, Filter, Result, RowFilter, RowOrder};

/// Rows and columns. A region is a box over the table's dimension columns.
pub trait Table: Send + Sync + Debug {
    /// The description of the table.
    fn schema(&self) -> &TableSchema;

    /// The store and node, for messages.
    fn name(&self) -> &str;

    /// The number of rows.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](crate::Error::Corrupt) if they cannot be counted.
    fn rows(&self) -> Result<u64>;

    /// Reads the requested columns of the rows inside the region that pass the filter, in batches.
    ///
    /// # Errors
    ///
    /// [`Invalid`](crate::Error::Invalid) for an unknown column or dimension. Each batch may also fail on its own.
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

/// Properties of a table that a format stores beyond its rows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StoredTable {
    /// Whether several rows may have the same coordinates. `None` if there are no coordinates.
    pub duplicates: Option<bool>,
    /// How rows are sorted.
    pub order: Option<RowOrder>,
    /// The number of rows stored together.
    pub capacity: Option<u64>,
    /// The lowest and highest value allowed along each dimension; `None` for any.
    pub domains: Vec<Option<(Bound, Bound)>>,
    /// The tile extent of each dimension: rows within one extent are sorted together.
    pub extents: Vec<Option<Bound>>,
    /// Its description in the format's own encoding, for a writer of the same format.
    pub encoded: Option<Arc<[u8]>>,
}

/// A column.
#[derive(Debug, Clone)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// The type of its elements.
    pub dtype: DType,
    /// Whether elements may be missing.
    pub nullable: bool,
    /// Whether it is a dimension, by which regions are given.
    pub dimension: bool,
    /// The filter pipeline of its values.
    pub filters: Vec<Filter>,
}

/// The part of a table to read.
#[derive(Debug, Clone, Default)]
pub struct Scan {
    /// The columns, in this order; `None` for all.
    pub columns: Option<Vec<String>>,
    /// Ranges by dimension name, both ends included. Dimensions not listed are read as a whole.
    pub region: Vec<(String, Bounds)>,
    /// The condition on rows; `None` for all rows.
    pub filter: Option<RowFilter>,
}

/// A range of a dimension, both ends included; `None` means unbounded.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Bounds {
    /// The lowest value.
    pub low: Option<Bound>,
    /// The highest value.
    pub high: Option<Bound>,
}

impl Bounds {
    /// The intersection of both ranges. Bounds of different kinds are not compared; the first one stays.
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

/// One bound of a range.
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
    /// The number of rows.
    pub rows: usize,
    /// One per requested column.
    pub columns: Vec<Elements>,
}
