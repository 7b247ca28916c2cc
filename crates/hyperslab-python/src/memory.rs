//! Engine buffers as NumPy arrays, without a copy.

#![expect(unsafe_code, reason = "creating NumPy arrays over engine buffers needs NumPy's C API")]

use std::os::raw::{c_int, c_void};

use bytes::Bytes;
use hyperslab::driver::Buffer;
use numpy::npyffi::{self, NPY_ARRAY_CARRAY, NPY_ARRAY_CARRAY_RO, PY_ARRAY_API};
use numpy::{PyArrayDescr, PyArrayDescrMethods, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use smallvec::SmallVec;

use crate::errors::invalid;

/// The memory behind a NumPy array: keeps a mapped file or a buffer alive.
#[pyclass(frozen, module = "hyperslab._native")]
struct Memory {
    _held: Held,
}

/// Never read, because NumPy has the pointer. Only keeps the memory alive.
#[expect(dead_code, reason = "keeps the memory alive")]
enum Held {
    Shared(Bytes),
    Own(Buffer),
}

/// Elements to expose to NumPy.
pub(crate) enum Cells {
    /// A mapped file: read-only.
    View(Bytes),
    /// A fresh buffer, which the caller may modify.
    Fresh(Buffer),
}

/// The elements as an array, or as a scalar if there are no dimensions and `scalar` is set.
pub(crate) fn array<'py>(
    py: Python<'py>,
    dtype: &Bound<'py, PyArrayDescr>,
    shape: &[u64],
    cells: Cells,
    scalar: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let (base, shape) = flatten_subarrays(dtype, shape)?;
    let mut dims = SmallVec::<[npyffi::npy_intp; 8]>::with_capacity(shape.len());
    for extent in &shape {
        dims.push((*extent).try_into().map_err(|_| invalid(py, format!("an extent of {extent}")))?);
    }
    let (pointer, bytes, flags, held) = match cells {
        Cells::View(bytes) => (bytes.as_ptr(), bytes.len(), NPY_ARRAY_CARRAY_RO, Held::Shared(bytes)),
        Cells::Fresh(mut buffer) => {
            let slice = buffer.as_mut_slice();
            (slice.as_mut_ptr().cast_const(), slice.len(), NPY_ARRAY_CARRAY, Held::Own(buffer))
        }
    };
    let needed = dims.iter().try_fold(base.itemsize(), |size, extent| size.checked_mul(*extent as usize));
    if needed != Some(bytes) {
        return Err(invalid(
            py,
            format!("{bytes} bytes for {shape:?} elements of {} bytes", base.itemsize()),
        ));
    }
    let owner = Bound::new(py, Memory { _held: held })?;
    // SAFETY: NumPy was imported, so its table of types is there.
    let class = unsafe { npyffi::get_type_object(py, npyffi::NpyTypes::PyArray_Type) };
    // SAFETY: the pointer is valid for `bytes` bytes, exactly those that the shape and type need, for as long as
    // `owner` lives, which becomes the array's base; NumPy takes over the reference to the type.
    let made = unsafe {
        PY_ARRAY_API.PyArray_NewFromDescr(
            py,
            class,
            base.into_dtype_ptr(),
            dims.len() as c_int,
            dims.as_mut_ptr(),
            std::ptr::null_mut(),
            pointer.cast_mut().cast::<c_void>(),
            flags,
            std::ptr::null_mut(),
        )
    };
    // SAFETY: a new reference, or null with an exception set.
    let made = unsafe { Bound::from_owned_ptr_or_err(py, made)? };
    let pointer = made.as_ptr().cast::<npyffi::PyArrayObject>();
    // SAFETY: `made` is an array without a base; the reference to `owner` is given away.
    if unsafe { PY_ARRAY_API.PyArray_SetBaseObject(py, pointer, owner.into_ptr()) } < 0 {
        return Err(PyErr::fetch(py));
    }
    // SAFETY: `made` is an array. Mapped elements may be unaligned; this call updates the flags.
    unsafe { PY_ARRAY_API.PyArray_UpdateFlags(py, pointer, npyffi::NPY_ARRAY_UPDATE_ALL) };
    if scalar && dims.is_empty() { made.get_item(PyTuple::empty(py)) } else { Ok(made) }
}

/// Moves the dimensions of array elements to the end of the shape. Returns the base type and the new shape.
fn flatten_subarrays<'py>(
    dtype: &Bound<'py, PyArrayDescr>,
    shape: &[u64],
) -> PyResult<(Bound<'py, PyArrayDescr>, SmallVec<[u64; 8]>)> {
    let mut all: SmallVec<[u64; 8]> = shape.into();
    if !dtype.has_subarray() {
        return Ok((dtype.clone(), all));
    }
    all.extend(dtype.shape().iter().map(|extent| *extent as u64));
    Ok((dtype.base(), all))
}

/// Passes the bytes of the caller's contiguous, writable array to `work`.
pub(crate) fn with_writable<T>(
    array: &Bound<'_, PyAny>,
    work: impl FnOnce(&mut [u8]) -> PyResult<T>,
) -> PyResult<T> {
    let py = array.py();
    let flags = array.getattr("flags")?;
    let flag = |name: &str| -> PyResult<bool> { flags.getattr(name)?.extract() };
    if !flag("c_contiguous")? || !flag("writeable")? {
        return Err(invalid(py, "the buffer must be contiguous in C order and writable"));
    }
    let bytes: usize = array.getattr("nbytes")?.extract()?;
    if bytes == 0 {
        return work(&mut []);
    }
    let pointer = array.cast::<numpy::PyUntypedArray>()?.as_array_ptr();
    // SAFETY: a NumPy array object, whose `data` field points to its first element.
    let start = unsafe { (*pointer).fields.data }.cast::<u8>();
    // SAFETY: contiguous, writable and `nbytes` long. The array outlives `work`. The documentation requires the
    // caller to prevent concurrent access.
    work(unsafe { std::slice::from_raw_parts_mut(start, bytes) })
}

/// Creates an array of objects.
pub(crate) fn objects<'py>(
    py: Python<'py>,
    shape: &[u64],
    items: impl Iterator<Item = PyResult<Bound<'py, PyAny>>>,
) -> PyResult<Bound<'py, PyAny>> {
    let array = py.import("numpy")?.call_method1("empty", (shape.to_vec(), "O"))?;
    let count: usize = array.getattr("size")?.extract()?;
    let pointer = array.cast::<numpy::PyUntypedArray>()?.as_array_ptr();
    // SAFETY: a new, contiguous array of object pointers.
    let slots = unsafe { (*pointer).fields.data }.cast::<*mut pyo3::ffi::PyObject>();
    for (index, item) in items.take(count).enumerate() {
        let item = item?.into_ptr();
        // SAFETY: `index` is below the number of elements.
        let slot = unsafe { slots.add(index) };
        // SAFETY: the slot belongs to this new array; its previous reference (`None`) is released after the
        // replacement.
        let before = unsafe { slot.replace(item) };
        // SAFETY: a reference that the array owned, or null.
        unsafe { pyo3::ffi::Py_XDECREF(before) };
    }
    Ok(array)
}
