//! Sparse arrays as tables: dimension columns first, then attributes.
//!
//! Rows are returned in the array's global order: fragment by fragment if fragments cannot overlap, merged otherwise. Memory is
//! bounded by the open tiles, never by the number of rows.

mod coords;
mod damage;
mod filter;
mod hilbert;
mod loaded;
mod merge;
mod reader;
mod region;
mod scan;

use std::sync::{Arc, OnceLock};

use hyperslab_core::{
    Batches, Bound, Column, Error, Result, RowOrder, Scan, StoredTable, Table, TableSchema,
};

pub(crate) use coords::{Keys, key_of, keys_of};
pub(crate) use damage::damaged_fragments;
pub(crate) use merge::GlobalOrder;
pub(crate) use region::DimensionRange;
pub(crate) use scan::{VersionRows, VersionTile, join};

use crate::array::OpenArray;
use crate::condition::Delete;
use crate::metadata;
use crate::schema::{Dimension, Order, Schema, float, integer};
use filter::FilterPlan;
use reader::FragmentReader;

/// A sparse array.
#[derive(Debug)]
pub(crate) struct SparseTable {
    pub(crate) array: Arc<OpenArray>,
    schema: TableSchema,
    name: String,
    readers: OnceLock<Vec<Arc<FragmentReader>>>,
    deletes: OnceLock<Arc<[Delete]>>,
}

impl SparseTable {
    pub(crate) fn new(array: Arc<OpenArray>, path: &str) -> Result<Self> {
        let name = format!("{}{path}", array.directory.name());
        let schema = &array.schema;
        let columns = columns(&array);
        let mut attributes = metadata::or_unreadable(array.attributes())?;
        let enumerations: serde_json::Map<_, _> = schema
            .attributes
            .iter()
            .filter_map(|attribute| {
                let enumeration = array.enumeration(attribute.enumeration.as_ref()?).ok()?;
                Some((attribute.name.clone(), enumeration.to_json()))
            })
            .collect();
        if !enumerations.is_empty() {
            attributes.set("enumerations", serde_json::Value::Object(enumerations));
        }
        let schema = TableSchema { columns, attributes, stored: stored(schema) };
        Ok(Self { schema, array, name, readers: OnceLock::new(), deletes: OnceLock::new() })
    }

    fn readers(&self) -> Result<&[Arc<FragmentReader>]> {
        if let Some(known) = self.readers.get() {
            return Ok(known);
        }
        let fragments = self.array.fragments()?;
        let readers = fragments
            .iter()
            .map(|fragment| FragmentReader::new(&self.array, Arc::clone(fragment)).map(Arc::new))
            .collect::<Result<Vec<_>>>()?;
        Ok(self.readers.get_or_init(|| readers))
    }

    fn deletes(&self) -> Result<&Arc<[Delete]>> {
        if let Some(known) = self.deletes.get() {
            return Ok(known);
        }
        let deletes = self.array.deletes()?.into();
        Ok(self.deletes.get_or_init(|| deletes))
    }

    /// The column numbers that a request selects.
    fn wanted(&self, request: &Scan) -> Result<Vec<usize>> {
        let Some(names) = &request.columns else { return Ok((0..self.schema.columns.len()).collect()) };
        names
            .iter()
            .map(|name| {
                let index = self.schema.columns.iter().position(|column| column.name == *name);
                index.ok_or_else(|| Error::not_found(self.name.as_str(), format!("column {name:?}")))
            })
            .collect()
    }
}

/// The columns of a sparse array, dimensions first.
pub(crate) fn columns(array: &OpenArray) -> Vec<Column> {
    let schema = &array.schema;
    let dimensions = schema.dimensions.iter().enumerate().map(|(index, dimension)| Column {
        name: dimension.name.clone(),
        dtype: dimension.dtype(),
        nullable: false,
        dimension: true,
        filters: schema.dimension_pipeline(index).shown(),
    });
    let attributes = schema.attributes.iter().map(|attribute| Column {
        name: attribute.name.clone(),
        dtype: array.dtype_of(attribute),
        nullable: attribute.nullable,
        dimension: false,
        filters: attribute.pipeline.shown(),
    });
    dimensions.chain(attributes).collect()
}

/// The properties of the table beyond its columns.
fn stored(schema: &Schema) -> StoredTable {
    let domain = |dimension: &Dimension| {
        let size = dimension.datatype.size();
        let (low, high) = dimension.domain.split_at_checked(size)?;
        Some((bound(dimension, low), bound(dimension, high)))
    };
    StoredTable {
        duplicates: Some(schema.allows_duplicates),
        order: Some(match schema.cell_order {
            Order::Hilbert => RowOrder::Hilbert,
            Order::ColumnMajor => RowOrder::ColumnMajor,
            Order::RowMajor => RowOrder::RowMajor,
        }),
        capacity: Some(schema.capacity),
        encoded: Some(schema.encode().into()),
        domains: schema.dimensions.iter().map(domain).collect(),
        extents: schema
            .dimensions
            .iter()
            .map(|dimension| {
                Some(bound(dimension, dimension.extent.as_ref().filter(|_| !dimension.is_text())?))
            })
            .collect(),
    }
}

/// One end of a dimension's domain.
pub(crate) fn bound(dimension: &Dimension, bytes: &[u8]) -> Bound {
    let number = dimension.datatype.number();
    if number.is_float() {
        Bound::Float(float(number, bytes))
    } else {
        Bound::Integer(integer(number, bytes))
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
        let readers = self.readers()?;
        // Without deletes and overlaps, the footers give the number of rows.
        let plain = self.deletes()?.is_empty() && readers.iter().all(|reader| reader.counts_all());
        if plain && scan::components(self, readers).iter().all(|component| !component.merged) {
            return Ok(readers.iter().fold(0, |sum, reader| sum.saturating_add(reader.rows())));
        }
        let request = Scan { columns: Some(Vec::new()), ..Scan::default() };
        let mut rows = 0;
        for batch in self.scan(&request)? {
            rows += batch?.rows as u64;
        }
        Ok(rows)
    }

    fn scan(&self, request: &Scan) -> Result<Batches<'_>> {
        let region = DimensionRange::of_request(&self.array.schema, request, &self.name)?;
        let filter = request.filter.as_ref().map(|filter| FilterPlan::new(filter, &self.schema, &self.name));
        scan::start(self, self.wanted(request)?, region, filter.transpose()?)
    }
}
