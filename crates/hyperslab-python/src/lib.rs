//! The native half of the Python package `hyperslab`.
//!
//! | module | content |
//! |---|---|
//! | `store` | `Store`: an open file, its groups and nodes |
//! | `array` | `Array`: properties of an array, and reads |
//! | `table` | `Table`: rows as Arrow |
//! | `geometry` | `Geometry`: points, lines and meshes |
//! | `key` | converts the brackets of `a[...]` to positions |
//! | `memory` | engine buffers as NumPy arrays, without a copy |
//! | `dtype` | converts element types to NumPy's and back |
//! | `values` | values, attributes and JSON as Python objects |
//! | `reduce` | reductions of the engine |
//! | `write` | new stores, filled by assignment; growing arrays; conversion; comparison |
//! | `refs` | chunk locations as NumPy arrays and as references |
//! | `threads` | thread pools by size |
//! | `signals` | Python's signal handlers while the engine works |
//! | `show` | calls HTML, plots and h5py methods, which are written in Python |
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
mod signals;
mod store;
mod table;
mod threads;
mod values;
mod write;

/// Names, documents and footers are many small allocations, freed on various threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The native half of the package.
#[pyo3::pymodule]
mod _native {
    use pyo3::prelude::*;

    /// Installs the fault handler for mapped files before anything is mapped.
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
    use crate::table::{Rows, Table, store_of_rows};
    #[pymodule_export]
    use crate::threads::_after_fork;
    #[pymodule_export]
    use crate::write::{ArrayWriter, Writer, convert, diff};
}
