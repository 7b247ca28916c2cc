//! Chunk locations, as NumPy arrays and as kerchunk references.

use std::ops::ControlFlow;
use std::path::PathBuf;

use hyperslab::driver::BlobKey;
use hyperslab::open;
use hyperslab::references::{Options, to_json, write};
use numpy::{IntoPyArray, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::array::Array;
use crate::errors::detached;
use crate::{memory, threads, values};

/// One row per stored span, in index order.
#[derive(Debug, Default)]
struct Rows {
    coords: Vec<u64>,
    offsets: Vec<u64>,
    lengths: Vec<u64>,
    masks: Vec<u32>,
    plain: Vec<bool>,
    layers: Vec<u32>,
    blobs: Vec<BlobKey>,
}

/// The locations of all stored chunks: a `hyperslab.ChunkRefs`.
pub(crate) fn chunk_refs<'py>(py: Python<'py>, array: &Array) -> PyResult<Bound<'py, PyAny>> {
    let inner = array.reader.inner();
    let rows = detached(py, || {
        let mut rows = Rows::default();
        inner.visit_chunks(&mut |coord, reference| {
            for (number, layer) in reference.layers.iter().enumerate() {
                for span in &layer.spans {
                    rows.coords.extend_from_slice(&coord);
                    rows.offsets.push(span.offset);
                    rows.lengths.push(span.length);
                    rows.masks.push(layer.filter_mask);
                    rows.plain.push(layer.plain && layer.region.is_none());
                    rows.layers.push(number as u32);
                    rows.blobs.push(span.blob.clone());
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(rows)
    })?;
    let (count, rank) = (rows.offsets.len(), array.reader.schema().shape().len());
    let names = rows.blobs.iter().map(|blob| {
        let name = match blob {
            BlobKey::Main => "",
            BlobKey::Named(name) => name,
        };
        Ok(PyString::intern(py, name).into_any())
    });
    let names = memory::objects(py, &[count as u64], names)?;
    let coords = rows.coords.into_pyarray(py).reshape([count, rank])?;
    let class = py.import("hyperslab._store")?.getattr("ChunkRefs")?;
    class.call1((
        coords,
        names,
        rows.offsets.into_pyarray(py),
        rows.lengths.into_pyarray(py),
        rows.masks.into_pyarray(py),
        rows.plain.into_pyarray(py),
        rows.layers.into_pyarray(py),
    ))
}

/// The arrays of a store as a kerchunk document, version 1. Optionally written to a file or a directory of Parquet
/// files.
#[pyfunction]
#[pyo3(signature = (path, *, url=None, inline_limit=None, output=None, overwrite=false))]
pub(crate) fn references<'py>(
    py: Python<'py>,
    path: PathBuf,
    url: Option<String>,
    inline_limit: Option<u64>,
    output: Option<PathBuf>,
    overwrite: bool,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let document = threads::within(py, None, || {
        let store = open(&path)?;
        let mut options = Options::new(&store);
        options.url = url.unwrap_or(options.url);
        options.inline_limit = inline_limit.unwrap_or(options.inline_limit);
        match &output {
            Some(target) => write(&store, &options, target, overwrite).map(|()| None),
            None => to_json(&store, &options).map(Some),
        }
    })?;
    document.map(|document| values::from_json(py, &document)).transpose()
}
