//! One tile of a fragment. Columns are decoded on demand, and only for the wanted cells.

use std::sync::{Arc, OnceLock};

use hyperslab_core::{Data, Elements, Result};

use super::Keys;
use super::reader::{ColumnCells, FragmentReader};
use super::region::DimensionRange;
use super::scan::Context;
use crate::condition::{CellValue, Delete};

/// A tile with its selected cells.
#[derive(Debug)]
pub(crate) struct Loaded {
    reader: Arc<FragmentReader>,
    pub(crate) tile: usize,
    pub(crate) cells: usize,
    /// The selected cells; `None` for all.
    pub(super) selection: Option<Vec<u32>>,
    columns: Vec<OnceLock<ColumnCells>>,
    times: Option<Vec<u64>>,
    delete_times: Option<Vec<u64>>,
}

impl Loaded {
    pub(crate) fn load(context: &Context, reader: usize, tile: usize, inside: bool) -> Result<Self> {
        let reader = Arc::clone(&context.readers[reader]);
        let cells = reader.cells(tile)?;
        let mut loaded = Self {
            times: reader.timestamps(tile)?,
            delete_times: reader.delete_times(tile)?,
            columns: std::iter::repeat_with(OnceLock::new).take(context.names.len()).collect(),
            selection: None,
            reader,
            tile,
            cells,
        };
        let fragment = Arc::clone(&loaded.reader.fragment);
        let late = !fragment.name.inside(context.window);
        if !late && inside {
            return Ok(loaded);
        }
        // The first dimension is decoded before memory is allocated, so that a false cell count is detected.
        let mut wanted: Vec<u32> = match &loaded.times {
            Some(times) if late => {
                (0..cells as u32).filter(|&cell| context.window.contains(times[cell as usize])).collect()
            }
            _ if late && !context.window.contains(fragment.name.start) => Vec::new(),
            _ => {
                loaded.column(0)?;
                (0..cells as u32).collect()
            }
        };
        if !inside {
            for (dimension, range) in context.region.iter().enumerate() {
                if *range != DimensionRange::All && !wanted.is_empty() {
                    range.select(&loaded.keys(dimension)?, &mut wanted);
                }
            }
        }
        loaded.selection = Some(wanted);
        Ok(loaded)
    }

    /// The number of selected cells.
    pub(crate) fn count(&self) -> usize {
        self.selection.as_ref().map_or(self.cells, Vec::len)
    }

    /// The `index`-th selected cell.
    pub(crate) fn selected(&self, index: usize) -> usize {
        self.selection.as_ref().map_or(index, |selection| selection[index] as usize)
    }

    /// The time at which a cell was written.
    pub(crate) fn time(&self, cell: usize) -> u64 {
        self.times.as_ref().map_or(self.reader.fragment.name.start, |times| times[cell])
    }

    /// Returns a column, which is decoded once.
    pub(super) fn column(&self, column: usize) -> Result<ColumnCells> {
        let slot = &self.columns[column];
        if let Some(known) = slot.get() {
            return Ok(known.clone());
        }
        let cells = self.reader.column(column, self.tile)?;
        Ok(slot.get_or_init(|| cells).clone())
    }

    pub(crate) fn keys(&self, dimension: usize) -> Result<Keys> {
        let number = self.reader.datatype(dimension).number();
        let keys = match self.column(dimension)? {
            ColumnCells::Each(elements) | ColumnCells::Same(elements) => Keys::of(number, &elements),
        };
        // The schema of the fragment and that of the array may disagree about the type.
        if keys.len() != self.cells {
            return Err(self.reader.fragment.place("sparse tile").corrupt(format!(
                "{} coordinates of dimension {dimension} for {} cells",
                keys.len(),
                self.cells
            )));
        }
        Ok(keys)
    }

    /// Removes deleted cells from the selection.
    pub(super) fn drop_deleted(&mut self, context: &Context) -> Result<()> {
        if self.delete_times.is_none() && !self.may_be_deleted(context)? {
            return Ok(());
        }
        let mut alive = Vec::with_capacity(self.count());
        for index in 0..self.count() {
            let cell = self.selected(index);
            if !self.is_deleted(context, cell)? {
                alive.push(cell as u32);
            }
        }
        self.selection = Some(alive);
        Ok(())
    }

    /// Removes cells that fail the filter from the selection. Decodes only the filter's columns.
    pub(super) fn drop_filtered(&mut self, context: &Context) -> Result<()> {
        let Some(filter) = &context.filter else { return Ok(()) };
        if self.count() == 0 || filter.takes_all(&self.reader, self.tile)? {
            return Ok(());
        }
        let passed = filter.evaluate(self.cells, &|column| self.column(column))?;
        self.selection = Some(match self.selection.take() {
            Some(mut selection) => {
                selection.retain(|&cell| passed[cell as usize] == 1);
                selection
            }
            None => {
                let cells = passed.iter().enumerate().filter(|(_, passed)| **passed == 1);
                cells.map(|(cell, _)| cell as u32).collect()
            }
        });
        Ok(())
    }

    fn may_be_deleted(&self, context: &Context) -> Result<bool> {
        for delete in context.deletes.iter() {
            if self.applies(delete)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns true if a delete can affect this fragment.
    fn applies(&self, delete: &Delete) -> Result<bool> {
        Ok(delete.name.start >= self.reader.fragment.name.start
            && !self.reader.has_processed(&delete.name.stem)?)
    }

    /// Returns true if a cell was deleted, either by its own delete time or by a condition that is not yet applied.
    pub(crate) fn is_deleted(&self, context: &Context, cell: usize) -> Result<bool> {
        if self
            .delete_times
            .as_ref()
            .is_some_and(|times| times[cell] <= context.window.end && times[cell] != u64::MAX)
        {
            return Ok(true);
        }
        for delete in context.deletes.iter() {
            if self.deletes(context, delete, cell)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The time at which a cell was first deleted; `u64::MAX` for never.
    pub(super) fn deleted_at(&self, context: &Context, cell: usize) -> Result<u64> {
        let mut first = self.delete_times.as_ref().map_or(u64::MAX, |times| times[cell]);
        for delete in context.deletes.iter() {
            if delete.name.start < first && self.deletes(context, delete, cell)? {
                first = delete.name.start;
            }
        }
        Ok(first)
    }

    /// Returns true if a condition that is not yet applied deletes a cell.
    fn deletes(&self, context: &Context, delete: &Delete, cell: usize) -> Result<bool> {
        if delete.name.start < self.time(cell) || !self.applies(delete)? {
            return Ok(false);
        }
        let mut fields = Vec::new();
        delete.keep.fields(&mut fields);
        let mut columns = Vec::with_capacity(fields.len());
        for field in fields {
            if let Some(index) = context.names.iter().position(|(name, _)| *name == field) {
                columns.push((field, index, self.column(index)?));
            }
        }
        let keep = delete.keep.evaluate(&|name: &str| {
            let (_, index, cells) = columns.iter().find(|(field, ..)| field == name)?;
            let (elements, cell) = match cells {
                ColumnCells::Each(elements) => (elements, cell),
                ColumnCells::Same(elements) => (elements, 0),
            };
            let datatype = self.reader.datatype(*index);
            Some(CellValue {
                datatype,
                text: datatype.is_bytes() || matches!(elements.data, Data::Variable { .. }),
                nullable: context.names[*index].1,
                bytes: cell_bytes(elements, datatype.size(), cell),
            })
        });
        Ok(keep == Some(false))
    }
}

/// The bytes of one cell; `None` if it is null.
fn cell_bytes(elements: &Elements, size: usize, cell: usize) -> Option<&[u8]> {
    if elements.is_missing(cell) {
        return None;
    }
    match &elements.data {
        Data::Fixed(bytes) => bytes.get(cell * size..(cell + 1) * size),
        _ => elements.variable_at(cell),
    }
}
