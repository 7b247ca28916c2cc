//! Files of rows as stores with one table: CSV, Parquet and Arrow. They are read in batches, any number of times.
//!
//! | file | recognised by | types |
//! |---|---|---|
//! | `.csv`, `.tsv` | its name | inferred by reading all of it: integers, floats, booleans, dates, text |
//! | `.parquet` | `PAR1` | the file's own |
//! | `.arrow`, `.feather` | `ARROW1` | the file's own |
//!
//! Dictionaries of texts become enumerations, other dictionaries their values. Lists of a fixed size become small arrays.

#[cfg(feature = "arrow")]
mod columnar;
mod csv;
#[cfg(feature = "arrow")]
mod from_arrow;
#[cfg(feature = "arrow")]
mod ipc;
mod reader;

use std::collections::HashMap;
use std::sync::Arc;

#[cfg(feature = "arrow")]
use columnar::open_batches;
#[cfg(all(feature = "arrow", feature = "zarr"))]
pub(crate) use columnar::open_parquet;
use hyperslab_core::{
    Attributes, Batch, Batches, Column, Content, Depth, Elements, Error, FormatDriver, FormatInfo, Glimpse,
    Node, OpenContext, Recognition, Report, Result, Scan, Store, Table, TableSchema,
};
#[cfg(feature = "arrow")]
pub(crate) use ipc::check_block as check_arrow_block;

/// A source of rows.
pub(crate) trait RowSource: Send + Sync + std::fmt::Debug {
    /// Batches of these columns, by number. Without columns, only the number of rows counts.
    fn batches(&self, columns: &[usize]) -> Result<Batches<'_>>;
}

/// A file of rows as a table.
#[derive(Debug)]
struct SourceTable {
    name: Arc<str>,
    schema: TableSchema,
    /// The position of each column.
    places: HashMap<String, usize>,
    rows: u64,
    source: Box<dyn RowSource>,
}

impl SourceTable {
    fn place(&self, name: &str) -> Result<usize> {
        self.places.get(name).copied().ok_or_else(|| crate::rows::no_column(name, &self.schema.columns))
    }
}

impl Table for SourceTable {
    fn schema(&self) -> &TableSchema {
        &self.schema
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn rows(&self) -> Result<u64> {
        Ok(self.rows)
    }

    fn scan(&self, request: &Scan) -> Result<Batches<'_>> {
        if let Some((dimension, _)) = request.region.first() {
            return Err(Error::invalid(format!("{}: {dimension} is not a dimension", self.name)));
        }
        let wanted = match &request.columns {
            Some(names) => names.iter().map(|name| self.place(name)).collect::<Result<Vec<_>>>()?,
            None => (0..self.schema.columns.len()).collect(),
        };
        let mut needed = wanted.clone();
        for name in request.filter.iter().flat_map(|filter| filter.columns()) {
            needed.push(self.place(name)?);
        }
        needed.sort_unstable();
        needed.dedup();
        let batches = self.source.batches(&needed)?;
        let filter = request.filter.clone();
        let passed = batches.map(move |batch| {
            let batch = batch?;
            let held = |column: usize| -> Result<Elements> {
                let at =
                    needed.binary_search(&column).map_err(|_| Error::invalid("a column was not read"))?;
                Ok(batch.columns[at].clone())
            };
            let rows = match &filter {
                None => None,
                Some(filter) => {
                    let truth = filter.evaluate(batch.rows, &|name| {
                        let column = self.place(name)?;
                        Ok((self.schema.columns[column].dtype.clone(), held(column)?))
                    })?;
                    Some(truth.rows())
                }
            };
            let columns = wanted.iter().map(|&column| match &rows {
                None => held(column),
                Some(rows) => {
                    let picks: Vec<_> = rows.iter().map(|row| (0, *row as usize)).collect();
                    Elements::gather(&self.schema.columns[column].dtype, &[&held(column)?], &picks)
                }
            });
            let columns = columns.collect::<Result<Vec<_>>>()?;
            Ok(Batch { rows: rows.map_or(batch.rows, |rows| rows.len()), columns })
        });
        Ok(Box::new(passed.filter(|batch| !batch.as_ref().is_ok_and(|batch| batch.rows == 0))))
    }
}

/// A store with a single table.
#[derive(Debug)]
struct SourceStore {
    format: &'static str,
    name: Arc<str>,
    table: Arc<SourceTable>,
}

impl Store for SourceStore {
    fn format(&self) -> &'static str {
        self.format
    }

    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn children(&self, _: &str) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn node(&self, path: &str) -> Result<Node> {
        if hyperslab_core::normal_path(path) == "/" {
            return Ok(Node::Table(Arc::clone(&self.table) as Arc<dyn Table>));
        }
        Err(Error::not_found(Arc::clone(&self.name), path))
    }

    fn verify(&self, _: Depth, report: &mut Report) -> Result<()> {
        for batch in self.table.scan(&Scan::default())? {
            if let Err(error) = batch {
                report.failure("rows", &error);
                break;
            }
        }
        Ok(())
    }
}

/// The content of an opened file of rows.
pub(crate) struct Opened {
    pub(crate) columns: Vec<Column>,
    rows: u64,
    pub(crate) source: Box<dyn RowSource>,
    /// What the file says of the table.
    attributes: Attributes,
}

impl Opened {
    pub(crate) const fn new(columns: Vec<Column>, rows: u64, source: Box<dyn RowSource>) -> Self {
        Self { columns, rows, source, attributes: Attributes::new() }
    }

    fn into_table(self, name: Arc<str>, attributes: Attributes) -> SourceTable {
        let Self { columns, rows, source, attributes: own } = self;
        let mut attributes = attributes;
        own.iter().for_each(|(name, value)| attributes.set(name, value.clone()));
        let schema = TableSchema { columns, attributes, stored: Default::default() };
        // If a name occurs twice, the first one wins.
        let names = schema.columns.iter().enumerate().rev();
        let places = names.map(|(place, column)| (column.name.clone(), place)).collect();
        SourceTable { name, schema, places, rows, source }
    }
}

/// A table of these rows.
pub(crate) fn table(opened: Opened, name: Arc<str>, attributes: Attributes) -> Arc<dyn Table> {
    Arc::new(opened.into_table(name, attributes))
}

/// A store whose only node is a table of these record batches.
#[cfg(feature = "arrow")]
pub(crate) fn batches_store(
    name: &str,
    schema: &arrow_schema::SchemaRef,
    batches: Vec<arrow_array::RecordBatch>,
) -> Result<Arc<dyn Store>> {
    let name = Arc::from(name);
    let opened = open_batches(&name, schema, batches)?;
    Ok(store(&ARROW, name, opened))
}

fn store(info: &'static FormatInfo, name: Arc<str>, opened: Opened) -> Arc<dyn Store> {
    let table = Arc::new(opened.into_table(Arc::clone(&name), Attributes::new()));
    Arc::new(SourceStore { format: info.name, name, table })
}

macro_rules! driver {
    ($(#[doc = $doc:literal])+ $driver:ident, $info:ident, $name:literal, $recognise:expr, $open:path) => {
        $(#[doc = $doc])+
        #[derive(Debug)]
        pub struct $driver;

        // Without extensions, because those belong to files of rows, which are not written as stores.
        static $info: FormatInfo = FormatInfo::new($name);

        impl FormatDriver for $driver {
            fn info(&self) -> &'static FormatInfo {
                &$info
            }

            fn recognise(&self, glimpse: &Glimpse<'_>) -> Result<Recognition> {
                let recognise: fn(&Glimpse<'_>) -> bool = $recognise;
                Ok(recognise(glimpse).into())
            }

            fn open(&self, content: Content, _: &OpenContext<'_>) -> Result<Arc<dyn Store>> {
                let blob = content.into_file(&$info)?;
                let name = Arc::clone(blob.name());
                Ok(store(&$info, name, $open(blob)?))
            }

            /// Such files belong to other programs, so they are never replaced by a store.
            fn is_store(&self, _: &Content) -> Result<bool> {
                Ok(false)
            }
        }
    };
}

driver!(
    /// Comma- and tab-separated text.
    CsvDriver, CSV, "csv", |glimpse| csv::is_named_so(glimpse), csv::open
);
#[cfg(feature = "arrow")]
driver!(
    /// Parquet.
    ParquetDriver, PARQUET, "parquet", |glimpse| glimpse.head().starts_with(b"PAR1"), columnar::open_parquet
);
#[cfg(feature = "arrow")]
driver!(
    /// Arrow's files.
    ArrowDriver, ARROW, "arrow", |glimpse| glimpse.head().starts_with(b"ARROW1"), columnar::open_arrow
);
