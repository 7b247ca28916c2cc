//! Arrays of structs as tables with a column per member.

use std::sync::Arc;

use hyperslab_core::{Batch, Batches, DType, Error, Result, Selection, product};

use super::TableReader;
use crate::ArrayReader;
use crate::source::{Opened, RowSource, table};

/// The rows of a selection of an array of structs.
#[derive(Debug)]
struct StructRows {
    reader: ArrayReader,
    selection: Selection,
}

impl RowSource for StructRows {
    fn batches(&self, columns: &[usize]) -> Result<Batches<'_>> {
        let columns = columns.to_vec();
        let batches = self.reader.rows(&self.selection)?.batches.map(move |batch| {
            let batch = batch?;
            let columns = columns.iter().map(|column| batch.columns[*column].clone()).collect();
            Ok(Batch { rows: batch.rows, columns })
        });
        Ok(Box::new(batches))
    }
}

impl ArrayReader {
    /// The elements of a selection as a table, if the array holds structs: the [dimension columns](Self::rows), then
    /// a column per member.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) for elements that are not structs, or a selection outside the array.
    pub fn table(&self, selection: &Selection) -> Result<TableReader> {
        let name = self.inner().name();
        if !matches!(self.schema().dtype, DType::Struct(_)) {
            return Err(Error::invalid(format!(
                "{name}: its elements are not structs, so it has no columns to query as a table"
            )));
        }
        let shape = self.resolve(selection)?.shape();
        let rows = product(&shape).ok_or_else(|| Error::invalid(format!("{name}: more than 2^64 rows")))?;
        let mut columns = self.rows(selection)?.columns;
        // Positions are not stored, so a range of them cannot be read alone.
        columns.iter_mut().for_each(|column| column.dimension = false);
        let source = StructRows { reader: self.clone(), selection: selection.clone() };
        let attributes = self.schema().attributes.clone();
        Ok(TableReader::new(table(Opened::new(columns, rows, Box::new(source)), Arc::from(name), attributes)))
    }
}
