//! Selections by index, by label, and by the names of struct members.

use hyperslab::{AxisPick, DType, Selection};
use pyo3::prelude::*;
use pyo3::types::{PyEllipsis, PyList, PyString, PyTuple};
use smallvec::SmallVec;

use super::Array;
use super::indexers::whole_mask;
use crate::errors::{detached, raised};
use crate::key::Key;

/// Selections as text in brackets, as on the command line: ``a["lat=30..60"]``, ``a["time=2000", "lat~50"]``.
pub(crate) fn text_selection(py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Option<Selection>> {
    let texts = items_of(key);
    let is_selection = |text: &Bound<'_, PyAny>| {
        let text = text.cast::<PyString>().ok().and_then(|text| text.to_str().ok());
        text.is_some_and(|text| text.contains(['=', '~', ']']))
    };
    if texts.is_empty() || !texts.iter().all(is_selection) {
        return Ok(None);
    }
    let mut selection = Selection::all();
    for text in texts {
        let item: Selection = text.extract::<String>()?.parse().map_err(|error| raised(py, &error))?;
        selection = selection.and(item);
    }
    Ok(Some(selection))
}

/// The items of an index.
fn items_of<'py>(key: &Bound<'py, PyAny>) -> Vec<Bound<'py, PyAny>> {
    match key.cast::<PyTuple>() {
        Ok(items) => items.iter().collect(),
        Err(_) => vec![key.clone()],
    }
}

impl Array {
    /// The cells that an index, a mask or labels select.
    pub(super) fn read_key<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Some(points) = whole_mask(key, self.shape_of())? {
            return self.read_points(py, &points, &[points.first().map_or(0, Vec::len) as u64]);
        }
        if let Some(selection) = text_selection(py, key)? {
            return self.read_selection(py, &selection, &[], false);
        }
        self.read(py, &Key::parse(key, self.shape_of())?)
    }

    /// The names of struct members in an index, as in h5py, and the rest of the index: ``a["x"]``, ``a["x", :10]``.
    pub(super) fn members_in<'py>(
        &self,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
        let DType::Struct(fields) = &self.reader.schema().dtype else { return Ok(None) };
        let py = key.py();
        let (names, rest): (Vec<_>, Vec<_>) = items_of(key).into_iter().partition(|item| {
            let name = item.cast::<PyString>().ok().and_then(|name| name.to_str().ok());
            name.is_some_and(|name| fields.members.iter().any(|member| member.name == name))
        });
        let names = match names.as_slice() {
            [] => return Ok(None),
            [one] => one.clone(),
            several => PyList::new(py, several)?.into_any(),
        };
        let rest = if rest.is_empty() {
            PyEllipsis::get(py).to_owned().into_any()
        } else {
            PyTuple::new(py, rest)?.into_any()
        };
        Ok(Some((names, rest)))
    }

    /// Reads a selection by label, and lists of labels along other dimensions.
    pub(super) fn read_selection<'py>(
        &self,
        py: Python<'py>,
        selection: &Selection,
        lists: &[(String, Vec<String>)],
        nearest: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let axes = detached(py, || {
            let positions = self.reader.resolve(selection)?;
            let mut axes: SmallVec<[AxisPick; 4]> =
                positions.axes.iter().map(|axis| AxisPick::Even(*axis)).collect();
            for (dimension, labels) in lists {
                let (axis, positions) = self.reader.label_positions(dimension, labels, nearest)?;
                axes[axis] = AxisPick::List(positions);
            }
            Ok(axes)
        })?;
        let key = Key { axes, new_axes: SmallVec::new(), listed: !lists.is_empty(), ellipsis: false };
        self.read(py, &key)
    }
}
