//! Row filters on the tiles of a sparse array: first by statistics, before a tile is read; then by its cells, before
//! the other columns are decoded.

use hyperslab_core::{ColumnRange, DType, Elements, Error, Result, RowFilter, TableSchema};

use super::reader::{ColumnCells, FragmentReader};

/// A filter, and the positions of the columns that it uses.
#[derive(Debug)]
pub(crate) struct FilterPlan {
    filter: RowFilter,
    columns: Vec<(usize, DType)>,
    names: Vec<String>,
}

impl FilterPlan {
    pub(crate) fn new(filter: &RowFilter, schema: &TableSchema, name: &str) -> Result<Self> {
        let (mut columns, mut names) = (Vec::new(), Vec::new());
        for own in filter.columns() {
            let found = schema.columns.iter().position(|column| column.name == own);
            let index = found.ok_or_else(|| Error::not_found(name, format!("column {own:?}")))?;
            columns.push((index, schema.columns[index].dtype.clone()));
            names.push(own.to_owned());
        }
        Ok(Self { filter: filter.clone(), columns, names })
    }

    /// Returns true if the tile's statistics show that none of its cells pass.
    pub(crate) fn rules_out(&self, reader: &FragmentReader, tile: usize) -> Result<bool> {
        let ranges = self.ranges(reader, tile)?;
        Ok(self.filter.rules_out(&|name| self.place(name).and_then(|at| ranges[at])))
    }

    /// Returns true if the tile's statistics show that all of its cells pass.
    pub(crate) fn takes_all(&self, reader: &FragmentReader, tile: usize) -> Result<bool> {
        let ranges = self.ranges(reader, tile)?;
        Ok(self.filter.takes_all(&|name| self.place(name).and_then(|at| ranges[at])))
    }

    fn ranges(&self, reader: &FragmentReader, tile: usize) -> Result<Vec<Option<ColumnRange>>> {
        self.columns.iter().map(|(column, _)| reader.range(*column, tile)).collect()
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|own| own == name)
    }

    /// Returns one byte per row: 1 if it passes. `column` returns the cells of a column by its number.
    pub(crate) fn evaluate(
        &self,
        rows: usize,
        column: &dyn Fn(usize) -> Result<ColumnCells>,
    ) -> Result<Vec<u8>> {
        let truth = self.filter.evaluate(rows, &|name| {
            let at = self.place(name).ok_or_else(|| Error::invalid(format!("no column {name}")))?;
            let (index, dtype) = &self.columns[at];
            let elements = match column(*index)? {
                ColumnCells::Each(elements) => elements,
                ColumnCells::Same(one) => Elements::gather(dtype, &[&one], &vec![(0, 0); rows])?,
            };
            Ok((dtype.clone(), elements))
        })?;
        Ok(truth.into_yes())
    }
}

impl FragmentReader {
    /// The range of an attribute's cells in a tile, from the fragment's metadata.
    fn range(&self, column: usize, tile: usize) -> Result<Option<ColumnRange>> {
        let Some((attribute, stats)) = self.statistics(column)? else { return Ok(None) };
        let cells = self.cells(tile)? as u64;
        let Some(known) = stats.of_tile(attribute, tile, cells) else { return Ok(None) };
        let (Some(min), Some(max)) = (known.min, known.max) else { return Ok(None) };
        Ok(Some(ColumnRange { min, max, missing: known.nulls != Some(0) }))
    }
}
