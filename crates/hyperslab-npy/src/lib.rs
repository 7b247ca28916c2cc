//! NumPy's file formats: `.npy` (one array) and `.npz` (a zip archive of them).
//!
//! | NumPy | Hyperslab |
//! |---|---|
//! | `.npy` file | store with one array, `/` |
//! | `.npz` file, member `x.npy` | store, array `/x` |
//! | C order | slabs of whole rows, which are our chunks |
//! | `fortran_order` | one chunk whose cells are in column-major order: nothing is moved |
//! | structured dtype | struct |
//!
//! | module | holds |
//! |---|---|
//! | `header`, `literal` | the header of a file, and the Python literals in it |
//! | `array` | [`NpyStore`]: a file and its array |
//! | `npz` | [`NpzStore`]: an archive; members may be deflated |
//! | `sink` | [`NpySink`], [`NpzSink`]: new files, complete or not at all |
//! | `driver` | the format drivers for the engine: [`NpyDriver`], [`NpzDriver`] |
//!
//! ```
//! use std::sync::Arc;
//! use hyperslab_core::{DType, MemoryBlob, Node, Positions, Store, read_serial};
//! use hyperslab_npy::{NpyStore, encode_header};
//!
//! let mut file = encode_header(&DType::UInt8, &[2, 3])?;
//! file.extend_from_slice(&[1, 2, 3, 4, 5, 6]);
//! let store = NpyStore::open(Arc::new(MemoryBlob::new("x.npy", file)))?;
//! let Node::Array(array) = store.node("/")? else { panic!("an array") };
//! let values = read_serial(&*array, Positions::whole(array.schema().shape()))?;
//! assert_eq!(values.as_slice::<u8>(), Some(&[1, 2, 3, 4, 5, 6][..]));
//! # Ok::<(), hyperslab_core::Error>(())
//! ```
#![forbid(unsafe_code)]

mod array;
mod driver;
mod header;
mod literal;
mod npz;
mod sink;

pub use array::NpyStore;
pub use driver::{NpyDriver, NpzDriver};
pub use header::encode_header;
pub use npz::NpzStore;
pub use sink::{NpySink, NpzSink};
