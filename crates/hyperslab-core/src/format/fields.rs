//! Adding and dropping fields of existing arrays and tables.

use crate::{DType, Elements, Filter};

/// A change to the fields of an array's cells, or of a table's rows.
#[derive(Debug, Clone)]
pub enum FieldChange {
    /// Add a field. Existing cells get its fill value.
    Add(FieldSpec),
    /// Drop the field with this name. It remains visible at earlier times.
    Drop(String),
}

/// A new field.
#[derive(Debug, Clone)]
pub struct FieldSpec {
    /// Its name.
    pub name: String,
    /// The type of its values.
    pub dtype: DType,
    /// Whether values may be missing. Those of existing cells then are.
    pub nullable: bool,
    /// The value for existing cells; by default the format's own fill value.
    pub fill: Option<Elements>,
    /// The filter pipeline, in writing order.
    pub filters: Vec<Filter>,
}
