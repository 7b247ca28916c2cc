//! `Table`: rows of columns, as Arrow.

use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator};
use hyperslab::{Column, Scan, Selection, TableReader};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use crate::errors::{detached, invalid, raised};
use crate::store::Origin;
use crate::values;

/// Batches that wait for the reader, at most.
const AHEAD: usize = 2;

/// Rows of named columns: a sparse array. pyarrow, polars, DuckDB and pandas take it as it is (``__arrow_c_stream__``).
#[pyclass(frozen, module = "hyperslab")]
#[derive(Debug)]
pub(crate) struct Table {
    reader: TableReader,
    origin: Arc<Origin>,
    path: String,
    scan: Scan,
    said: (Option<String>, Option<Vec<String>>),
}

impl Table {
    pub(crate) fn new(reader: TableReader, origin: Arc<Origin>, path: String) -> Self {
        Self { reader, origin, path, scan: Scan::default(), said: (None, None) }
    }

    fn chosen(&self) -> Vec<Column> {
        let all = &self.reader.schema().columns;
        match &self.scan.columns {
            None => all.clone(),
            Some(names) => {
                names.iter().filter_map(|name| all.iter().find(|c| c.name == *name).cloned()).collect()
            }
        }
    }
}

#[pymethods]
impl Table {
    /// The columns' names, dimensions first.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.chosen().into_iter().map(|column| column.name).collect()
    }

    /// The columns over which rows are selected.
    #[getter]
    fn dimensions(&self) -> Vec<String> {
        let columns = &self.reader.schema().columns;
        columns.iter().filter(|column| column.dimension).map(|column| column.name.clone()).collect()
    }

    /// NumPy's type of each column.
    #[getter]
    fn dtypes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let types = PyDict::new(py);
        for column in self.chosen() {
            types.set_item(&column.name, crate::dtype::to_numpy(py, &column.dtype)?)?;
        }
        Ok(types)
    }

    /// What people wrote beside the table.
    #[getter]
    fn attrs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        values::attributes(py, &self.reader.schema().attributes)
    }

    /// The path in its store.
    #[getter]
    fn path(&self) -> &str {
        &self.path
    }

    /// All rows of the table, whatever is selected.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let rows = detached(py, || self.reader.inner().rows())?;
        Ok(usize::try_from(rows)?)
    }

    /// The rows inside a selection by dimension (``"day=2020-01-01..2020-02-01"``), of the columns named.
    #[pyo3(signature = (selection=None, columns=None))]
    fn select(
        &self,
        py: Python<'_>,
        selection: Option<String>,
        columns: Option<Vec<String>>,
    ) -> PyResult<Self> {
        let parsed = match &selection {
            Some(text) => text.parse::<Selection>().map_err(|error| raised(py, &error))?,
            None => Selection::all(),
        };
        let scan = self.reader.scan(&parsed, columns.as_deref()).map_err(|error| raised(py, &error))?;
        Ok(Self {
            reader: self.reader.clone(),
            origin: Arc::clone(&self.origin),
            path: self.path.clone(),
            scan,
            said: (selection, columns),
        })
    }

    /// The rows as a stream of Arrow's C interface.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The protocol lets a producer that cannot cast answer with its own schema.
        drop(requested_schema);
        let (send, receive) = sync_channel(AHEAD);
        let (reader, scan, columns) = (self.reader.clone(), self.scan.clone(), self.chosen());
        let schema = hyperslab::arrow::schema(&columns);
        let produce = move || {
            let rows = match reader.rows_of(&scan) {
                Ok(rows) => rows,
                Err(error) => {
                    let _ = send.send(Err(error));
                    return;
                }
            };
            for batch in rows.batches {
                let batch = batch.and_then(|batch| hyperslab::arrow::record_batch(&rows.columns, batch));
                let last = batch.is_err();
                // A reader that went away wants no more.
                if send.send(batch).is_err() || last {
                    return;
                }
            }
        };
        let pool = crate::threads::own_after_fork(py)?;
        std::thread::Builder::new()
            .name("hyperslab-table".to_owned())
            .spawn(move || match pool {
                Some(pool) => pool.install(produce),
                None => produce(),
            })
            .map_err(|error| invalid(py, error.to_string()))?;
        let batches = receive.into_iter().map(|batch: hyperslab::Result<RecordBatch>| {
            batch.map_err(|error| arrow_array_error(error.to_string()))
        });
        let stream = FFI_ArrowArrayStream::new(Box::new(RecordBatchIterator::new(batches, schema)));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let reopen = py.import("hyperslab._store")?.getattr("_reopen_table")?;
        let (selection, columns) = &self.said;
        let parts = (
            self.origin.location.as_str(),
            self.path.as_str(),
            self.origin.options(py)?,
            selection.as_deref(),
            columns.clone(),
        );
        Ok((reopen, parts).into_pyobject(py)?.into_any())
    }

    fn __repr__(&self) -> String {
        format!("<hyperslab.Table {:?}: {}>", self.path, self.columns().join(", "))
    }
}

fn arrow_array_error(message: String) -> arrow_schema::ArrowError {
    arrow_schema::ArrowError::ExternalError(message.into())
}
