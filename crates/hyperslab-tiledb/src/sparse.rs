//! Sparse arrays as tables.

use std::sync::Arc;

use hyperslab_core::{Batches, Error, Result, Scan, Table, TableSchema};

use crate::array::OpenArray;

/// A sparse array.
#[derive(Debug)]
pub(crate) struct SparseTable {
    array: Arc<OpenArray>,
    schema: TableSchema,
    name: String,
}

impl SparseTable {
    pub(crate) fn new(array: Arc<OpenArray>, path: &str) -> Result<Self> {
        let name = format!("{}{path}", array.directory.name());
        Ok(Self { schema: TableSchema { columns: Vec::new(), attributes: array.attributes()? }, array, name })
    }
}

impl Table for SparseTable {
    fn schema(&self) -> &TableSchema {
        &self.schema
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn rows(&self) -> Result<u64> {
        Ok(0)
    }

    fn scan(&self, _request: &Scan) -> Result<Batches<'_>> {
        Err(Error::unsupported(Arc::clone(&self.array.name), "sparse arrays"))
    }
}
