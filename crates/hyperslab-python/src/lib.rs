//! The native half of the Python package `hyperslab`.
//!
//! | module | holds |
//! |---|---|
//! | `store` | `Store`: an open file, its groups and nodes |
//! | `array` | `Array`: what an array is, and reading it |
//! | `table` | `Table`: rows as Arrow |
//! | `geometry` | `Geometry`: points, lines and meshes |
//! | `key` | the brackets of `a[...]` to positions |
//! | `memory` | bytes of the engine as NumPy arrays, without a copy |
//! | `dtype` | element types to NumPy's and back |
//! | `values` | values, attributes and JSON as Python objects |
//! | `reduce` | reductions of the engine |
//! | `write` | new stores, filled by assignment; longer arrays; conversion; comparison |
//! | `refs` | where chunks are stored, as NumPy arrays and as references |
//! | `threads` | pools of threads, by size |
//! | `show` | HTML, plots and h5py's names, which are written in Python |
//! | `errors` | errors as exceptions |
#![deny(unsafe_code)]

mod array;
mod change;
mod dtype;
mod errors;
mod geometry;
mod key;
mod memory;
mod reduce;
mod refs;
mod show;
mod store;
mod table;
mod threads;
mod values;
mod write;

/// Names, documents and footers are many small pieces of memory, taken and given back on several threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What Rust brings to the package.
#[pyo3::pymodule]
mod _native {
    use pyo3::prelude::*;

    /// Guards mappings before anything is mapped.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        #[cfg(unix)]
        hyperslab::driver::guard_mappings();
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }

    #[pymodule_export]
    use crate::array::{Array, Outer, Points};
    #[pymodule_export]
    use crate::change::{append_along, concat, edit_store, evolve};
    #[pymodule_export]
    use crate::geometry::Geometry;
    #[pymodule_export]
    use crate::refs::references;
    #[pymodule_export]
    use crate::store::{Store, absolute_location, format_of_name, formats, is_remote};
    #[pymodule_export]
    use crate::table::{Rows, Table};
    #[pymodule_export]
    use crate::threads::_after_fork;
    #[pymodule_export]
    use crate::write::{ArrayWriter, Writer, convert, diff};
}
