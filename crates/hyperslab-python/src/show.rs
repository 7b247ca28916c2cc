//! Calls the parts of the package that are written in Python: representations, plots and h5py's methods.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// Calls a function of the package with an object.
pub(crate) fn call<'py>(
    object: &Bound<'py, impl pyo3::PyClass>,
    module: &str,
    function: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let function = object.py().import(module)?.getattr(function)?;
    function.call1((object,))
}

/// Like [`call`], with additional arguments.
pub(crate) fn call_with<'py>(
    object: &Bound<'py, impl pyo3::PyClass>,
    module: &str,
    function: &str,
    words: &Bound<'py, PyTuple>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let function = object.py().import(module)?.getattr(function)?;
    let all: Vec<Bound<'py, PyAny>> =
        std::iter::once(object.clone().into_any()).chain(words.iter()).collect();
    function.call(PyTuple::new(object.py(), all)?, options)
}
