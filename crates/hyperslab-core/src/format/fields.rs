//! Fields of arrays and tables that exist: added and dropped.

use crate::{DType, Elements, Filter};

/// A change of the fields that every cell of an array, or every row of a table, has.
#[derive(Debug, Clone)]
pub enum FieldChange {
    /// One more. Cells that were written before hold its fill value.
    Add(FieldSpec),
    /// The field of this name is gone. Earlier times still have it.
    Drop(String),
}

/// A new field.
#[derive(Debug, Clone)]
pub struct FieldSpec {
    /// Its name.
    pub name: String,
    /// The type of its values.
    pub dtype: DType,
    /// May values be missing? Those of cells that were written before are.
    pub nullable: bool,
    /// The value of cells that were written before; the format's own where left out.
    pub fill: Option<Elements>,
    /// The pipeline of its values, in the order of writing.
    pub filters: Vec<Filter>,
}
