//! Reads tables: selections by dimension, conditions, columns by name, rows in batches, aggregations.

mod bounds;
mod condition;
mod groups;
mod query;
mod structs;

use std::sync::Arc;

use hyperslab_core::{
    Bounds, Column, Error, Result, Scan, Selection, SelectionItem, Table, TableSchema, did_you_mean,
};

pub use condition::RowCondition;
pub use query::{Aggregation, MissingRows, TableQuery};

use crate::rows::{Rows, no_column};

/// A table of an open store, ready for reading.
///
/// ```no_run
/// let store = hyperslab::open("trades.tdb")?;
/// let table = store.table("/")?;
/// let rows = table.rows(&"day=2020-01-01..2020-02-01".parse()?, Some(&["price".to_owned()]))?;
/// for batch in rows.batches {
///     println!("{} rows", batch?.rows);
/// }
/// # Ok::<(), hyperslab::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct TableReader {
    table: Arc<dyn Table>,
}

impl TableReader {
    pub(crate) fn new(table: Arc<dyn Table>) -> Self {
        Self { table }
    }

    /// The table's schema.
    #[must_use]
    pub fn schema(&self) -> &TableSchema {
        self.table.schema()
    }

    /// The underlying table, as implemented by its format.
    #[must_use]
    pub const fn inner(&self) -> &Arc<dyn Table> {
        &self.table
    }

    /// Resolves a selection and a choice of columns: labels are converted to the types of the dimensions.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) for a dimension or column that does not exist, a dimension selected twice, a position (table
    /// rows have none), or a label that its dimension cannot have.
    pub fn scan(&self, selection: &Selection, columns: Option<&[String]>) -> Result<Scan> {
        let schema = self.schema();
        let mut region: Vec<(String, _)> = Vec::new();
        for item in &selection.items {
            let SelectionItem::Labels { dimension, from, to, .. } = item else {
                return Err(self.no_positions());
            };
            let column = self.dimension(dimension)?;
            if region.iter().any(|(name, _)| name == dimension) {
                return Err(Error::invalid(format!("dimension {dimension} is selected twice")));
            }
            region.push((dimension.clone(), bounds::bounds(column, from.as_deref(), to.as_deref())?));
        }
        for name in columns.unwrap_or_default() {
            if !schema.columns.iter().any(|column| column.name == *name) {
                return Err(no_column(name, &schema.columns));
            }
        }
        Ok(Scan { columns: columns.map(<[String]>::to_vec), region, filter: None })
    }

    /// Like [`scan`](Self::scan), for the rows that meet a condition. Conditions on dimensions narrow the region.
    ///
    /// # Errors
    ///
    /// As [`scan`](Self::scan) and [`RowCondition::bind`].
    pub fn scan_where(
        &self,
        selection: &Selection,
        columns: Option<&[String]>,
        condition: Option<&RowCondition>,
    ) -> Result<Scan> {
        self.narrow(&Scan::default(), selection, columns, condition)
    }

    /// Narrows a scan: a row must lie inside both selections and meet both conditions. Without names, the columns stay.
    ///
    /// # Errors
    ///
    /// As [`scan_where`](Self::scan_where); also [`Invalid`](Error::Invalid) for a column that the scan does not read.
    pub fn narrow(
        &self,
        within: &Scan,
        selection: &Selection,
        columns: Option<&[String]>,
        condition: Option<&RowCondition>,
    ) -> Result<Scan> {
        let mut scan = within.clone();
        let own = self.scan(selection, columns)?;
        for (name, bounds) in own.region {
            narrow_region(&mut scan, &name, bounds);
        }
        if let Some(names) = own.columns {
            let readable = self.columns_of(within)?;
            if let Some(name) = names.iter().find(|name| !readable.iter().any(|column| column.name == **name))
            {
                return Err(no_column(name, &readable));
            }
            scan.columns = Some(names);
        }
        let Some(condition) = condition else { return Ok(scan) };
        let schema = self.schema();
        let filter = condition.bind(&schema.columns)?;
        for column in schema.columns.iter().filter(|column| column.dimension) {
            let bounds = filter.bounds(&column.name);
            if bounds != Bounds::default() {
                narrow_region(&mut scan, &column.name, bounds);
            }
        }
        scan.filter = Some(match scan.filter.take() {
            Some(earlier) => earlier.and(filter),
            None => filter,
        });
        Ok(scan)
    }

    /// The number of rows of a scan. Rows of a part of the table are read and counted.
    ///
    /// # Errors
    ///
    /// As [`rows_of`](Self::rows_of).
    pub fn count(&self, scan: &Scan) -> Result<u64> {
        if scan.region.is_empty() && scan.filter.is_none() {
            return self.table.rows();
        }
        // Rows are counted by their dimensions, which a scan of a region reads in any case.
        let first = self.schema().columns.first().map(|column| column.name.clone());
        let scan = Scan { columns: first.map(|name| vec![name]), ..scan.clone() };
        self.rows_of(&scan)?.batches.try_fold(0, |rows, batch| Ok(rows + batch?.rows as u64))
    }

    /// The rows inside a selection, with all columns or the named ones in that order.
    ///
    /// # Errors
    ///
    /// As [`scan`](Self::scan).
    pub fn rows(&self, selection: &Selection, columns: Option<&[String]>) -> Result<Rows<'_>> {
        self.rows_of(&self.scan(selection, columns)?)
    }

    /// Like [`rows`](Self::rows), for a resolved scan.
    ///
    /// # Errors
    ///
    /// As [`Table::scan`].
    pub fn rows_of(&self, scan: &Scan) -> Result<Rows<'_>> {
        let columns = self.columns_of(scan)?;
        let (expected, name) = (columns.len(), self.table.name().to_owned());
        let batches = self.table.scan(scan)?.map(move |batch| {
            let batch = batch?;
            if batch.columns.len() == expected {
                return Ok(batch);
            }
            Err(Error::invalid(format!(
                "{name}: a batch has {} columns, expected {expected}",
                batch.columns.len()
            )))
        });
        Ok(Rows { columns, batches: Box::new(batches) })
    }

    /// The columns that a scan reads, in its order.
    fn columns_of(&self, scan: &Scan) -> Result<Vec<Column>> {
        let columns = &self.schema().columns;
        let Some(names) = &scan.columns else { return Ok(columns.clone()) };
        let column = |name: &String| {
            let found = columns.iter().find(|column| column.name == *name).cloned();
            found.ok_or_else(|| no_column(name, columns))
        };
        names.iter().map(column).collect()
    }

    fn dimension(&self, name: &str) -> Result<&Column> {
        let dimensions = || self.schema().columns.iter().filter(|column| column.dimension);
        dimensions().find(|column| column.name == name).ok_or_else(|| {
            let names: Vec<_> = dimensions().map(|column| column.name.as_str()).collect();
            if names.is_empty() {
                return Error::invalid(format!(
                    "{name} is no dimension: the table has none to select by; choose rows with a condition, such as \
                     tet read --where '{name} >= 0'"
                ));
            }
            Error::invalid(format!("no dimension {name}{}", did_you_mean(name, names)))
        })
    }

    fn no_positions(&self) -> Error {
        let first = self.schema().columns.iter().find(|column| column.dimension);
        let name = first.map_or("x", |column| column.name.as_str());
        Error::invalid(format!(
            "the rows of a table have no positions; select by value, as in '{name}=FIRST..LAST'"
        ))
    }
}

fn narrow_region(scan: &mut Scan, dimension: &str, bounds: Bounds) {
    match scan.region.iter_mut().find(|(name, _)| name == dimension) {
        Some((_, own)) => *own = std::mem::take(own).intersect(bounds),
        None => scan.region.push((dimension.to_owned(), bounds)),
    }
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
