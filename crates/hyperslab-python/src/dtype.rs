//! Converts element types to NumPy's and back.

use hyperslab::{DType, EnumType, StructType, TimeUnit};
use numpy::PyArrayDescr;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::errors::{invalid, raised};

/// NumPy's type for the elements: `object` for variable lengths.
pub(crate) fn to_numpy<'py>(py: Python<'py>, dtype: &DType) -> PyResult<Bound<'py, PyArrayDescr>> {
    let name = match dtype {
        DType::Bool => "?".to_owned(),
        DType::Float128 => "longdouble".to_owned(),
        DType::FixedBytes(size) => format!("S{size}"),
        DType::FixedText(points) => format!("U{points}"),
        DType::Opaque(opaque) => format!("V{}", opaque.size),
        DType::Enum(named) => return named_integers(py, named),
        DType::Struct(fields) if dtype.is_fixed() => return members(py, fields),
        DType::Array(base, shape) if dtype.is_fixed() => {
            return make(py, (to_numpy(py, base)?, PyTuple::new(py, shape)?));
        }
        fixed if fixed.is_fixed() => fixed.to_string(),
        _ => "O".to_owned(),
    };
    PyArrayDescr::new(py, name)
}

fn make<'py>(py: Python<'py>, spec: impl IntoPyObject<'py>) -> PyResult<Bound<'py, PyArrayDescr>> {
    PyArrayDescr::new(py, spec)
}

/// Integers whose NumPy type has the member names in its metadata: `dtype.metadata["enum"]`, as in h5py.
fn named_integers<'py>(py: Python<'py>, named: &EnumType) -> PyResult<Bound<'py, PyArrayDescr>> {
    let names = PyDict::new(py);
    for (name, value) in &named.members {
        names.set_item(name, value)?;
    }
    let (metadata, options) = (PyDict::new(py), PyDict::new(py));
    metadata.set_item("enum", names)?;
    options.set_item("metadata", metadata)?;
    let dtype = py.import("numpy")?.getattr("dtype")?;
    let dtype = dtype.call((to_numpy(py, &named.base)?,), Some(&options))?;
    Ok(dtype.cast_into::<PyArrayDescr>()?)
}

fn members<'py>(py: Python<'py>, fields: &StructType) -> PyResult<Bound<'py, PyArrayDescr>> {
    let (names, formats, offsets) = (PyList::empty(py), PyList::empty(py), PyList::empty(py));
    for member in &fields.members {
        names.append(&member.name)?;
        formats.append(to_numpy(py, &member.dtype)?)?;
        offsets.append(member.offset)?;
    }
    let spec = PyDict::new(py);
    spec.set_item("names", names)?;
    spec.set_item("formats", formats)?;
    spec.set_item("offsets", offsets)?;
    spec.set_item("itemsize", fields.size)?;
    make(py, spec)
}

/// The element type of a NumPy type in native byte order. `object` is text.
pub(crate) fn from_numpy(dtype: &Bound<'_, PyAny>) -> PyResult<DType> {
    let py = dtype.py();
    let kind: String = dtype.getattr("kind")?.extract()?;
    let size: usize = dtype.getattr("itemsize")?.extract()?;
    if let Some((base, shape)) =
        dtype.getattr("subdtype")?.extract::<Option<(Bound<'_, PyAny>, Vec<usize>)>>()?
    {
        return Ok(DType::Array(from_numpy(&base)?.into(), shape));
    }
    let unknown = || invalid(py, format!("arrays of NumPy's type {dtype} cannot be written"));
    let named = enum_members(dtype)?;
    let base = match (kind.as_str(), size) {
        ("b", 1) => DType::Bool,
        ("i", _) => DType::integer(size, true).ok_or_else(unknown)?,
        ("u", _) => DType::integer(size, false).ok_or_else(unknown)?,
        ("f", 2) => DType::Float16,
        ("f", 4) => DType::Float32,
        ("f", 8) => DType::Float64,
        ("f", 16) => DType::Float128,
        ("c", 8) => DType::Complex64,
        ("c", 16) => DType::Complex128,
        ("S", size) => DType::FixedBytes(size),
        ("U", size) => DType::FixedText(size / 4),
        ("O" | "T", _) => DType::String,
        ("M" | "m", _) => {
            let name: String = dtype.getattr("str")?.extract()?;
            let unit =
                name.split_once('[').and_then(|(_, rest)| TimeUnit::from_code(rest.trim_end_matches(']')));
            let unit = unit.ok_or_else(unknown)?;
            if kind == "M" { DType::DateTime(unit) } else { DType::Duration(unit) }
        }
        ("V", _) if !dtype.getattr("names")?.is_none() => return fields_of(dtype, size),
        _ => return Err(unknown()),
    };
    Ok(match named {
        Some(members) => EnumType::new(base, members).into(),
        None => base,
    })
}

fn enum_members(dtype: &Bound<'_, PyAny>) -> PyResult<Option<Vec<(String, i128)>>> {
    let metadata = dtype.getattr("metadata")?;
    if metadata.is_none() {
        return Ok(None);
    }
    match metadata.call_method1("get", ("enum",))?.extract::<Option<Bound<'_, PyDict>>>()? {
        None => Ok(None),
        Some(names) => names
            .iter()
            .map(|(name, value)| Ok((name.extract()?, value.extract()?)))
            .collect::<PyResult<_>>()
            .map(Some),
    }
}

fn fields_of(dtype: &Bound<'_, PyAny>, size: usize) -> PyResult<DType> {
    let fields = dtype.getattr("fields")?;
    let mut members = Vec::new();
    for name in dtype.getattr("names")?.try_iter()? {
        let name: String = name?.extract()?;
        let field = fields.get_item(&name)?;
        members.push(hyperslab::Member {
            name,
            offset: field.get_item(1)?.extract()?,
            dtype: from_numpy(&field.get_item(0)?)?,
        });
    }
    Ok(StructType { members, size }.into())
}

/// Converts a NumPy array to values: native byte order, C order. An object array becomes text.
pub(crate) fn values_of(py: Python<'_>, array: &Bound<'_, PyAny>) -> PyResult<hyperslab::Values> {
    let numpy = py.import("numpy")?;
    let array = numpy.call_method1("asarray", (array,))?;
    let dtype = array.getattr("dtype")?;
    let native = dtype.call_method1("newbyteorder", ("=",))?;
    let shape: Vec<u64> = array.getattr("shape")?.extract()?;
    let held = from_numpy(&native)?;
    let elements = if held == DType::String {
        texts(&array)?
    } else {
        let packed = numpy.call_method1("ascontiguousarray", (&array, native))?;
        let bytes: Vec<u8> = packed.call_method0("tobytes")?.extract()?;
        hyperslab::Elements::fixed(bytes)
    };
    hyperslab::Values::new(held, &shape, elements).map_err(|error| raised(py, &error))
}

fn texts(array: &Bound<'_, PyAny>) -> PyResult<hyperslab::Elements> {
    let mut all = Vec::new();
    for item in array.call_method0("ravel")?.try_iter()? {
        all.push(item?.extract::<String>()?);
    }
    Ok(hyperslab::Elements::variable(all))
}
