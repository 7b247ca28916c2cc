//! Rows of named columns: sparse arrays.

use std::fmt::Debug;

use crate::{Attributes, DType, Elements, Filter, Result};

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

    /// Batches of the columns asked for, of the rows inside the region.
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
}

/// A range of a dimension, both ends included; `None` reaches to the end.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Bounds {
    /// The lowest value.
    pub low: Option<Bound>,
    /// The highest value.
    pub high: Option<Bound>,
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

/// Some rows.
#[derive(Debug, Clone)]
pub struct Batch {
    /// How many.
    pub rows: usize,
    /// One per column asked for.
    pub columns: Vec<Elements>,
}
