//! Converts errors to exceptions, whose classes are in `hyperslab/_errors.py`.

use std::ffi::CString;

use hyperslab::{ArrayReader, Error};
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

/// The exception for an error.
pub(crate) fn raised(py: Python<'_>, error: &Error) -> PyErr {
    exception(py, error).unwrap_or_else(|failed| failed)
}

/// An out-of-bounds or invalid index in the caller's brackets.
pub(crate) fn bad_index(py: Python<'_>, message: impl Into<String>) -> PyErr {
    build(py, "IndexOutOfBounds", message.into(), None).unwrap_or_else(|failed| failed)
}

/// An invalid request.
pub(crate) fn invalid(py: Python<'_>, message: impl Into<String>) -> PyErr {
    raised(py, &Error::invalid(message))
}

/// Runs engine work without the GIL. Signals are handled while it may wait for a server.
pub(crate) fn detached<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> hyperslab::Result<T> + Send,
) -> PyResult<T> {
    let pool = crate::threads::after_fork(py)?;
    let run = || match pool {
        Some(pool) => pool.install(work),
        None => work(),
    };
    // If a mapped file is truncated meanwhile, raise an exception instead of crashing the interpreter.
    #[cfg(unix)]
    let run = || hyperslab::driver::guarded(run);
    crate::signals::run(py, run)?.map_err(|error| raised(py, &error))
}

/// Warns of contradictory or meaningless attributes of an array whose values are decoded.
pub(crate) fn warn_of_conventions(py: Python<'_>, stored: &ArrayReader) -> PyResult<()> {
    for warning in stored.interpretation().warnings {
        let text = format!("{}: {warning}", stored.inner().name());
        let text = CString::new(text).unwrap_or_default();
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 1)?;
    }
    Ok(())
}

fn exception(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    let details = PyDict::new(py);
    let class = match error {
        Error::Corrupt(corrupt) => {
            details.set_item("store", &*corrupt.store)?;
            details.set_item("structure", &*corrupt.structure)?;
            details.set_item("offset", corrupt.offset)?;
            "CorruptError"
        }
        Error::Unsupported { store, feature } => {
            details.set_item("store", &**store)?;
            details.set_item("feature", feature)?;
            "UnsupportedError"
        }
        Error::NotFound { store, what, .. } => {
            details.set_item("store", &**store)?;
            details.set_item("what", what)?;
            "NotFoundError"
        }
        Error::Io { path, source } => {
            details.set_item("path", &**path)?;
            details.set_item("errno", source.raw_os_error())?;
            if source.kind() == std::io::ErrorKind::NotFound { "MissingFileError" } else { "IoError" }
        }
        _ => "InvalidError",
    };
    build(py, class, error.to_string(), Some(details))
}

fn build(
    py: Python<'_>,
    class: &str,
    message: String,
    details: Option<Bound<'_, PyDict>>,
) -> PyResult<PyErr> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = MODULE.get_or_try_init(py, || py.import("hyperslab._errors").map(Bound::unbind))?;
    let class = module.bind(py).getattr(class)?;
    Ok(PyErr::from_value(class.call((message,), details.as_ref())?))
}
