//! Labels given as Python objects, as the texts of selections.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyString};

/// Digits of a fraction of a second. With all of them, a text names one instant and no period.
const DIGITS: usize = 18;

/// A label as text: dates in ISO 8601, numbers in decimal. `None` for `None`.
///
/// A `datetime64`, a `Timestamp` or a `datetime` is one instant; only text and dates without a time name a period.
pub(super) fn text(label: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    if label.is_none() {
        return Ok(None);
    }
    if let Ok(text) = label.cast::<PyString>() {
        return text.extract().map(Some);
    }
    if label.hasattr("dtype")? {
        let py = label.py();
        let scalar = py.import("numpy")?.call_method1("asarray", (label,))?.get_item(())?;
        if scalar.getattr("dtype")?.getattr("kind")?.extract::<String>()? != "M" {
            return text(&scalar.call_method0("item")?);
        }
        // Longer units would name a period.
        let unit = py.import("numpy")?.call_method1("datetime_data", (scalar.getattr("dtype")?,))?;
        let unit: String = unit.get_item(0)?.extract()?;
        let scalar = match unit.as_str() {
            "ns" | "ps" | "fs" | "as" => scalar,
            _ => scalar.call_method1("astype", ("datetime64[us]",))?,
        };
        return scalar.str()?.extract::<String>().map(|text| Some(instant(text)));
    }
    if label.hasattr("isoformat")? {
        let text: String = label.call_method0("isoformat")?.extract()?;
        return Ok(Some(if label.hasattr("hour")? { instant(text) } else { text }));
    }
    let text: String = label.str()?.extract()?;
    Ok(Some(if label.is_instance_of::<PyBool>() { text.to_lowercase() } else { text }))
}

/// The labels of a list, a tuple or an array; `None` for a single label.
pub(super) fn texts(labels: &Bound<'_, PyAny>) -> PyResult<Option<Vec<String>>> {
    let is_array = labels.hasattr("ndim")? && labels.getattr("ndim")?.extract::<usize>()? > 0;
    let is_list =
        labels.hasattr("__iter__")? && !labels.hasattr("ndim")? && !labels.is_instance_of::<PyString>();
    if !is_array && !is_list {
        return Ok(None);
    }
    let missing = || pyo3::exceptions::PyValueError::new_err("a label is missing");
    let items = labels.try_iter()?.map(|label| text(&label?)?.ok_or_else(missing));
    items.collect::<PyResult<Vec<String>>>().map(Some)
}

/// A date and time with all digits, so that it names no period.
fn instant(text: String) -> String {
    match text.rsplit_once('.') {
        Some((start, fraction)) => format!("{start}.{fraction:0<DIGITS$}"),
        None if text.contains(['+', 'Z']) || !text.contains('T') => text,
        None => format!("{text}.{:0<DIGITS$}", ""),
    }
}
