//! HDF5 and NetCDF-4 files, read and written in parallel and without a C library.
//!
//! | module | holds |
//! |---|---|
//! | `superblock`, `driver`, `file`, `cache_image` | the start of the file; its bytes, possibly in several files; the widths of its numbers; caches |
//! | `header`, `message`, `shared` | object headers and their messages, including shared ones |
//! | `group`, `symbol_table`, `btree2`, `heap` | old-style and new-style groups, with their trees and heaps |
//! | `conversion` | datatypes: the corresponding types in memory, and the conversion of elements |
//! | `index` | chunk indexes: B-tree v1, single, implicit, fixed array, extensible array, B-tree v2 |
//! | `filters` | the filter pipeline over the kernels of `hyperslab-codec` |
//! | `dataset`, `contiguous`, `virtuals` | datasets as arrays |
//! | `attributes`, `dimensions`, `references`, `paths` | attributes, dimension scales, references as paths |
//! | `store`, `verify` | path lookup, external files, integrity checks |
//! | `operation` | the budget of work and memory for each call |
//! | `format` | the engine's driver for the format: [`Hdf5Driver`] |
//! | `write`, `encode` | new files; each structure is encoded beside its parser |
//!
//! HDF5's terms map to ours: a *dataset* is an array, an *object header* makes a node, a *filter pipeline* is a
//! pipeline, a *dimension scale* gives a dimension's name and labels. A dataset that is not chunked is divided into slabs
//! of our own, and its schema has `chunked: false`.
//!
//! Files are not trusted. Each call into a store or array has a [`Budget`](hyperslab_core::Budget) of work and memory
//! in proportion to the size of the file, and every structure that is read draws on it. A file with cycles, or with claims
//! out of proportion to its size, ends the call with an error. The next call starts with a full budget.
//!
//! ```
//! # fn main() -> hyperslab_core::Result<()> {
//! use hyperslab_core::{Node, Positions, Store, read_serial};
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/latest.h5");
//! let store = hyperslab_hdf5::open_path(path.as_ref())?;
//! for name in store.children("/")? {
//!     if let Node::Array(array) = store.node(&name)? {
//!         let schema = array.schema();
//!         println!("{name}: {} {:?}", schema.dtype, schema.shape());
//!         let values = read_serial(&*array, Positions::whole(schema.shape()))?;
//!         assert_eq!(values.shape.as_slice(), schema.shape());
//!     }
//! }
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod attributes;
mod btree2;
mod cache_image;
mod contiguous;
mod conversion;
mod dataset;
mod dimensions;
mod driver;
mod encode;
mod file;
mod filters;
mod format;
mod group;
mod header;
mod heap;
mod index;
mod message;
mod operation;
mod paths;
mod references;
mod selection;
mod shared;
mod store;
mod superblock;
mod symbol_table;
mod verify;
mod virtuals;
mod write;

use std::path::Path;
use std::sync::Arc;

use hyperslab_core::{Blob, LocalStorage, MappedBlob, Result};

pub use format::Hdf5Driver;
pub use hyperslab_core::{Anywhere, External, Externals, NoExternals, Siblings};
pub use store::Hdf5Store;
pub use write::{
    AppendOptions, Compatibility, DatasetLayout, Hdf5Append, Hdf5Options, Hdf5Sink, set_by_people,
};

/// Returns true if this is an HDF5 file: its signature is at byte 0, or after a user block of 512, 1024, 2048 … bytes.
///
/// # Errors
///
/// Fails only if the blob cannot be read.
pub fn probe(blob: &dyn Blob) -> Result<bool> {
    Ok(superblock::find_signature(blob)?.is_some())
}

/// Opens the file in this blob. `externals` finds the other files that it refers to.
///
/// # Errors
///
/// [`Corrupt`](hyperslab_core::Error::Corrupt) if there is no readable superblock.
pub fn open(blob: Arc<dyn Blob>, externals: Arc<dyn Externals>) -> Result<Hdf5Store> {
    Ok(Hdf5Store::new(Arc::new(file::File::open(blob, externals, 0)?)))
}

/// Opens the file at this path. Other files that it refers to are opened only in its own folder and below.
///
/// # Errors
///
/// As [`open`]; also when the file cannot be mapped.
pub fn open_path(path: &Path) -> Result<Hdf5Store> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    open(
        Arc::new(MappedBlob::open(path)?),
        Arc::new(Siblings::new(Arc::new(LocalStorage::new(folder).confined()))),
    )
}
