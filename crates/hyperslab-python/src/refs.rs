//! Where chunks are stored, as NumPy arrays.

use std::ops::ControlFlow;

use hyperslab::BlobKey;
use numpy::{IntoPyArray, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::array::Array;
use crate::errors::detached;
use crate::memory;

/// One row per stored span, in the order of the index.
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

/// The references of all stored chunks: a `hyperslab.ChunkRefs`.
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
