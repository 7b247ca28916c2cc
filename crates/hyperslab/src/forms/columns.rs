//! Restores tables that are stored as a group with one array per column.

use std::sync::Arc;

use hyperslab_core::{
    Array, Attributes, Batch, Batches, Bound, Bounds, Column, DType, Elements, Error, Positions, Region,
    Result, RowFilter, Scan, StoredTable, Table, TableSchema, Values, read_serial,
};

use super::{COLUMN, DIMENSION, DUPLICATES, number, unmarked};
use crate::rows::no_column;

/// Rows per batch.
const BATCH_ROWS: u64 = 1 << 16;

/// A table made of one array per column.
#[derive(Debug)]
pub(crate) struct RestoredTable {
    name: String,
    schema: TableSchema,
    arrays: Vec<Arc<dyn Array>>,
    rows: u64,
}

impl RestoredTable {
    /// Combines columns with their attributes. Returns `None` if the attributes do not number the columns, or the arrays differ
    /// in length.
    pub(super) fn new(
        name: String,
        columns: Vec<(String, Arc<dyn Array>, Attributes)>,
        attributes: Attributes,
    ) -> Option<Self> {
        let mut numbered: Vec<(u64, Column, Arc<dyn Array>)> = Vec::new();
        for (name, array, stored) in columns {
            // Arrays that only declare a dimension are not columns.
            if array.schema().is_dimension {
                continue;
            }
            let schema = array.schema();
            let column = Column {
                name,
                dtype: schema.dtype.clone(),
                nullable: schema.nullable,
                dimension: number(&stored, DIMENSION) == Some(1),
                filters: schema.filters.clone(),
            };
            numbered.push((number(&stored, COLUMN)?, column, array));
        }
        numbered.sort_by_key(|(number, ..)| *number);
        let rows = match numbered.first()?.2.schema().shape() {
            [rows] => *rows,
            _ => return None,
        };
        if !numbered.iter().all(|(_, _, array)| array.schema().shape() == [rows]) {
            return None;
        }
        let (columns, arrays) = numbered.into_iter().map(|(_, column, array)| (column, array)).unzip();
        // A format without tables accepts any number and order of rows.
        let duplicates = (number(&attributes, DUPLICATES) == Some(1)).then_some(true);
        let stored = StoredTable { duplicates, ..StoredTable::default() };
        Some(Self {
            name,
            schema: TableSchema { columns, attributes: unmarked(&attributes), stored },
            arrays,
            rows,
        })
    }

    fn read(&self, column: usize, start: u64, rows: u64) -> Result<Values> {
        read_serial(&*self.arrays[column], Positions::region(&Region::new(&[start], &[rows])))
    }

    fn position(&self, name: &str) -> Result<usize> {
        let found = self.schema.columns.iter().position(|column| column.name == name);
        found.ok_or_else(|| no_column(name, &self.schema.columns))
    }

    /// The rows of a block that are inside the region and pass the filter.
    fn batch(
        &self,
        start: u64,
        wanted: &[usize],
        region: &[(usize, Bounds)],
        filter: Option<&RowFilter>,
    ) -> Result<Batch> {
        let rows = BATCH_ROWS.min(self.rows - start);
        let mut kept: Option<Vec<(usize, usize)>> = None;
        for (column, bounds) in region {
            let values = self.read(*column, start, rows)?;
            let inside = |index: &(usize, usize)| is_inside(&values, index.1, bounds);
            kept = Some(match kept {
                None => (0..rows as usize).map(|row| (0, row)).filter(inside).collect(),
                Some(kept) => kept.into_iter().filter(inside).collect(),
            });
        }
        if let Some(filter) = filter {
            let truth = filter.evaluate(rows as usize, &|name| {
                let values = self.read(self.position(name)?, start, rows)?;
                Ok((values.dtype, values.elements))
            })?;
            let passes = |row: &(usize, usize)| truth.yes()[row.1] != 0;
            kept = Some(match kept {
                None => (0..rows as usize).map(|row| (0, row)).filter(passes).collect(),
                Some(kept) => kept.into_iter().filter(passes).collect(),
            });
        }
        let mut columns = Vec::with_capacity(wanted.len());
        for column in wanted {
            let values = self.read(*column, start, rows)?;
            columns.push(match &kept {
                None => values.elements,
                Some(picks) => Elements::gather(&values.dtype, &[&values.elements], picks)?,
            });
        }
        Ok(Batch { rows: kept.map_or(rows as usize, |kept| kept.len()), columns })
    }
}

impl Table for RestoredTable {
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
        let wanted = match &request.columns {
            None => (0..self.arrays.len()).collect(),
            Some(names) => names.iter().map(|name| self.position(name)).collect::<Result<Vec<_>>>()?,
        };
        let mut region = Vec::new();
        for (name, bounds) in &request.region {
            let column = self.position(name)?;
            if !self.schema.columns[column].dimension {
                return Err(Error::invalid(format!("column {name} is not a dimension")));
            }
            region.push((column, bounds.clone()));
        }
        let starts = (0..self.rows).step_by(BATCH_ROWS as usize);
        let filter = request.filter.clone();
        Ok(Box::new(starts.map(move |start| self.batch(start, &wanted, &region, filter.as_ref()))))
    }
}

/// Returns true if the value of a row is within bounds.
fn is_inside(values: &Values, index: usize, bounds: &Bounds) -> bool {
    let above = |low: &Bound| compare(values, index, low).is_some_and(std::cmp::Ordering::is_ge);
    let below = |high: &Bound| compare(values, index, high).is_some_and(std::cmp::Ordering::is_le);
    !values.elements.is_missing(index)
        && bounds.low.as_ref().is_none_or(above)
        && bounds.high.as_ref().is_none_or(below)
}

fn compare(values: &Values, index: usize, bound: &Bound) -> Option<std::cmp::Ordering> {
    if let Bound::Bytes(bound) = bound {
        return match values.elements.variable_at(index) {
            Some(own) => Some(own.cmp(bound)),
            None => {
                let own = element(values, index)?;
                let end = own.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
                Some(own[..end].cmp(bound))
            }
        };
    }
    let own = number_of(&values.dtype, element(values, index)?)?;
    match (own, bound) {
        (Bound::Integer(own), Bound::Integer(bound)) => Some(own.cmp(bound)),
        (Bound::Integer(own), Bound::Float(bound)) => (own as f64).partial_cmp(bound),
        (Bound::Float(own), Bound::Float(bound)) => own.partial_cmp(bound),
        (Bound::Float(own), Bound::Integer(bound)) => own.partial_cmp(&(*bound as f64)),
        _ => None,
    }
}

fn element(values: &Values, index: usize) -> Option<&[u8]> {
    let size = values.dtype.size()?;
    values.elements.as_fixed()?.get(index.checked_mul(size)?..)?.get(..size)
}

fn number_of(dtype: &DType, bytes: &[u8]) -> Option<Bound> {
    macro_rules! number {
        ($type:ty) => {
            <$type>::from_ne_bytes(bytes.try_into().ok()?)
        };
    }
    Some(match dtype {
        DType::Int8 => Bound::Integer(number!(i8).into()),
        DType::Int16 => Bound::Integer(number!(i16).into()),
        DType::Int32 => Bound::Integer(number!(i32).into()),
        DType::Int64 | DType::DateTime(_) | DType::Duration(_) => Bound::Integer(number!(i64).into()),
        DType::UInt8 | DType::Bool => Bound::Integer(number!(u8).into()),
        DType::UInt16 => Bound::Integer(number!(u16).into()),
        DType::UInt32 => Bound::Integer(number!(u32).into()),
        DType::UInt64 => Bound::Integer(number!(u64).into()),
        DType::Float32 => Bound::Float(number!(f32).into()),
        DType::Float64 => Bound::Float(number!(f64)),
        _ => return None,
    })
}
