//! `Table`: rows of columns, in Arrow format.

use std::sync::mpsc::sync_channel;
use std::sync::{Arc, OnceLock};

use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader};
use hyperslab::query::{Operation, OperationInfo, Parameters};
use hyperslab::table::{Aggregation, TableQuery};
use hyperslab::{Column, RowCondition, Scan, Selection, TableReader};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyString};

use crate::errors::{detached, invalid, raised};
use crate::store::{Origin, Store};
use crate::{show, values};

/// The maximum number of batches that wait for the reader.
const AHEAD: usize = 2;

/// Rows of named columns: a sparse array. pyarrow, polars, DuckDB and pandas accept it directly
/// (``__arrow_c_stream__``).
#[pyclass(frozen, module = "hyperslab")]
#[derive(Debug)]
pub(crate) struct Table {
    reader: TableReader,
    origin: Arc<Origin>,
    path: String,
    scan: Scan,
    /// The arguments of the `select` calls that led to `scan`, for pickling.
    steps: Vec<Step>,
    /// The number of rows, once counted.
    rows: OnceLock<u64>,
}

/// Selection, columns and condition of one call of `select`.
type Step = (Option<String>, Option<Vec<String>>, Option<String>);

impl Table {
    pub(crate) fn new(reader: TableReader, origin: Arc<Origin>, path: String) -> Self {
        Self { reader, origin, path, scan: Scan::default(), steps: Vec::new(), rows: OnceLock::new() }
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
    /// The names of the columns, dimensions first.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.chosen().into_iter().map(|column| column.name).collect()
    }

    /// The columns by which rows are selected.
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

    /// The attributes of the table.
    #[getter]
    fn attrs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        values::attributes(py, &self.reader.schema().attributes)
    }

    /// The path in its store.
    #[getter]
    fn path(&self) -> &str {
        &self.path
    }

    /// The number of selected rows. Counting the rows of a selection reads them, once.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let rows = match self.rows.get() {
            Some(&rows) => rows,
            None => {
                let counted =
                    crate::threads::within(py, self.origin.threads, || self.reader.count(&self.scan))?;
                *self.rows.get_or_init(|| counted)
            }
        };
        Ok(usize::try_from(rows)?)
    }

    /// The number of rows of the whole table.
    fn _all_rows(&self, py: Python<'_>) -> PyResult<u64> {
        detached(py, || self.reader.inner().rows())
    }

    /// Whether a selection or a condition restricts the rows.
    fn _is_part(&self) -> bool {
        !self.scan.region.is_empty() || self.scan.filter.is_some()
    }

    /// The rows inside a selection by dimension (``"day=2020-01-01..2020-02-01"``) that meet a condition
    /// (``"count > 50 and type == 'NK'"``), with the named columns. Adds to earlier selections and conditions.
    #[pyo3(signature = (selection=None, columns=None, r#where=None))]
    fn select(
        &self,
        py: Python<'_>,
        selection: Option<String>,
        columns: Option<Vec<String>>,
        r#where: Option<String>,
    ) -> PyResult<Self> {
        let parsed = parsed_selection(py, selection.as_deref())?;
        let condition = parsed_condition(py, r#where.as_deref())?;
        let scan = self.reader.narrow(&self.scan, &parsed, columns.as_deref(), condition.as_ref());
        Ok(Self {
            reader: self.reader.clone(),
            origin: Arc::clone(&self.origin),
            path: self.path.clone(),
            scan: scan.map_err(|error| raised(py, &error))?,
            steps: self.steps.iter().cloned().chain([(selection, columns, r#where)]).collect(),
            rows: OnceLock::new(),
        })
    }

    /// Return the rows that meet a condition, or aggregations of them, by group.
    ///
    /// Without ``by`` and operations, returns rows, as :meth:`select` does. Operations are keywords with the columns that
    /// they apply to: ``t.query("count > 50", by="type", mean="score", sum=["x", "y"], count=True)``. All are computed in one
    /// pass. Missing values and NaN are ignored, as in pandas.
    #[pyo3(signature = (r#where=None, *, by=None, selection=None, columns=None, ddof=0, memory=None, **operations))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn query<'py>(
        &self,
        py: Python<'py>,
        r#where: Option<String>,
        by: Option<&Bound<'py, PyAny>>,
        selection: Option<String>,
        columns: Option<Vec<String>>,
        ddof: u32,
        memory: Option<u64>,
        operations: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if by.is_none() && operations.is_none_or(|operations| operations.is_empty()) {
            let chosen = self.select(py, selection, columns, r#where)?;
            return Ok(Bound::new(py, chosen)?.into_any());
        }
        if columns.is_some() {
            return Err(invalid(
                py,
                "columns are for rows; name the columns of each operation, as in mean='score'",
            ));
        }
        let query = TableQuery {
            selection: parsed_selection(py, selection.as_deref())?,
            condition: parsed_condition(py, r#where.as_deref())?,
            by: by.map(names).transpose()?.unwrap_or_default(),
            aggregations: aggregations(py, operations, ddof)?,
            memory,
        };
        let found = crate::threads::within(py, self.origin.threads, || {
            query.run_within(&self.reader, &self.scan)?.collect()
        })?;
        Ok(Bound::new(py, Rows { columns: found.0, batch: found.1 })?.into_any())
    }

    /// The first selected rows, in memory.
    #[pyo3(signature = (rows=5))]
    fn head(&self, py: Python<'_>, rows: usize) -> PyResult<Rows> {
        let (columns, batch) =
            crate::threads::within(py, self.origin.threads, || self.reader.rows_of(&self.scan)?.head(rows))?;
        Ok(Rows { columns, batch })
    }

    /// The rows as a pandas data frame. Enumerations become categories. Requires pyarrow.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        to_pandas(slf.as_any())
    }

    /// The rows as an Arrow C stream.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The protocol allows a producer that cannot cast to use its own schema.
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
                // The receiver is gone, so stop.
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
        let parts =
            (self.origin.location.as_str(), self.path.as_str(), self.origin.options(py)?, self.steps.clone());
        Ok((reopen, parts).into_pyobject(py)?.into_any())
    }

    fn __repr__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        show::call(slf, "hyperslab._html", "table_text")
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        show::call(slf, "hyperslab._html", "table_html")
    }
}

fn parsed_selection(py: Python<'_>, text: Option<&str>) -> PyResult<Selection> {
    text.map_or_else(|| Ok(Selection::all()), |text| text.parse().map_err(|error| raised(py, &error)))
}

fn parsed_condition(py: Python<'_>, text: Option<&str>) -> PyResult<Option<RowCondition>> {
    text.map(|text| text.parse().map_err(|error| raised(py, &error))).transpose()
}

/// Accepts one name or several.
fn names(given: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    if given.is_instance_of::<PyString>() { Ok(vec![given.extract()?]) } else { given.extract() }
}

fn aggregations(
    py: Python<'_>,
    operations: Option<&Bound<'_, PyDict>>,
    ddof: u32,
) -> PyResult<Vec<Aggregation>> {
    let mut all = Vec::new();
    for (name, given) in operations.into_iter().flat_map(|operations| operations.iter()) {
        let name: String = name.extract()?;
        let info = OperationInfo::named(&name).ok_or_else(|| {
            invalid(py, format!("no operation {name}; there are count, sum, mean, min, max, std, …"))
        })?;
        if name == "quantile" {
            let shares: std::collections::BTreeMap<String, f64> = given.extract().map_err(|_| {
                invalid(py, "quantile takes a dictionary of columns and shares: {'score': 0.9}")
            })?;
            all.extend(shares.into_iter().map(|(column, q)| Aggregation::of(Operation::Quantile(q), column)));
            continue;
        }
        let operation = info.operation(&Parameters { ddof, ..Parameters::default() });
        match given.extract::<bool>() {
            Ok(true) => all.push(Aggregation { operation, column: None }),
            Ok(false) => {}
            Err(_) => all.extend(names(&given)?.into_iter().map(|column| Aggregation::of(operation, column))),
        }
    }
    Ok(all)
}

fn to_pandas<'py>(rows: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    rows.py().import("pyarrow")?.getattr("table")?.call1((rows,))?.call_method0("to_pandas")
}

/// The result of a table query: rows in memory. pyarrow, polars, DuckDB and pandas accept it directly.
#[pyclass(frozen, module = "hyperslab")]
#[derive(Debug)]
pub(crate) struct Rows {
    columns: Vec<Column>,
    batch: hyperslab::Batch,
}

#[pymethods]
impl Rows {
    /// The names of the columns, group keys first.
    #[getter]
    fn columns(&self) -> Vec<&str> {
        self.columns.iter().map(|column| column.name.as_str()).collect()
    }

    fn __len__(&self) -> usize {
        self.batch.rows
    }

    /// A list of values per column.
    fn to_pydict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        for (column, elements) in self.columns.iter().zip(&self.batch.columns) {
            let values =
                (0..self.batch.rows).map(|row| hyperslab::rows::cell_to_json(&column.dtype, elements, row));
            all.set_item(&column.name, values::from_json(py, &values.collect())?)?;
        }
        Ok(all)
    }

    /// The rows as a pandas data frame. Requires pyarrow.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        to_pandas(slf.as_any())
    }

    /// The rows as an Arrow C stream.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let batch = hyperslab::arrow::record_batch(&self.columns, self.batch.clone());
        let batch = batch.map_err(|error| raised(py, &error))?;
        let schema = batch.schema();
        let stream = FFI_ArrowArrayStream::new(Box::new(RecordBatchIterator::new([Ok(batch)], schema)));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    fn __repr__(&self) -> String {
        format!("<hyperslab.Rows {}: {}>", self.batch.rows, self.columns().join(", "))
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        show::call(slf, "hyperslab._html", "rows_html")
    }
}

/// The rows of an object with ``__arrow_c_stream__`` (a data frame, an Arrow table) as a store with one table.
#[pyfunction]
#[expect(unsafe_code, reason = "the C stream of Arrow is handed over as a pointer")]
pub(crate) fn store_of_rows(py: Python<'_>, rows: &Bound<'_, PyAny>) -> PyResult<Store> {
    let capsule = rows.call_method0("__arrow_c_stream__")?;
    let capsule = capsule.cast::<PyCapsule>()?;
    let pointer = capsule.pointer_checked(Some(c"arrow_array_stream"))?;
    // SAFETY: the capsule has the name that the protocol gives to a valid stream, which `from_raw` moves out, as consumers do.
    let stream = unsafe { RecordBatchStreamReader::from_raw(pointer.as_ptr().cast()) };
    let failed = |error: arrow_schema::ArrowError| invalid(py, format!("cannot read the rows: {error}"));
    let stream = stream.map_err(failed)?;
    let schema = stream.schema();
    // A producer that needs the interpreter attaches to it by itself.
    let batches = py.detach(|| stream.collect::<Result<Vec<RecordBatch>, _>>()).map_err(failed)?;
    let name = format!("the {}", rows.get_type().name()?);
    let open = hyperslab::arrow::store_of(&name, &schema, batches).map_err(|error| raised(py, &error))?;
    Ok(Store::in_memory(open))
}

fn arrow_array_error(message: String) -> arrow_schema::ArrowError {
    arrow_schema::ArrowError::ExternalError(message.into())
}
