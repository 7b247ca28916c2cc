//! NetCDF classic: CDF-1, CDF-2 (64-bit offsets) and CDF-5 (64-bit counts and more types), read and written.
//!
//! | NetCDF | Hyperslab |
//! |---|---|
//! | file | store with one group, `/` |
//! | variable | array `/name` |
//! | dimension | axis name; a dimension without a variable is an array that only declares it |
//! | record (unlimited) dimension | first axis that may grow |
//! | fixed variable | contiguous array; slabs of it are our chunks |
//! | record variable | blocks of records are our chunks: one piece of the file, or one per record |
//! | `char` | `bytes[1]`, as in NetCDF-4 |
//!
//! Data are big-endian. They are swapped in one pass while they are copied from the file to the result.
//!
//! | module | holds |
//! |---|---|
//! | `types` | element types, default fill values, versions |
//! | `header`, `encode` | the header: parsing and encoding |
//! | `layout` | the locations of variables; chunks |
//! | `attributes` | stored values to attributes and back |
//! | `array`, `store` | [`Netcdf3Store`]: a file and its variables |
//! | `plan`, `sink` | [`Netcdf3Sink`]: a new file, complete or not at all |
//! | `append` | more records for an existing file |
//! | `driver` | the format driver for the engine: [`Netcdf3Driver`] |
//!
//! ```
//! use std::sync::Arc;
//! use hyperslab_core::{MemoryBlob, Node, Positions, Store, read_serial};
//! use hyperslab_netcdf3::Netcdf3Store;
//!
//! // CDF-1 without records: the dimension x = 2, no attributes, and the variable `v(x)` of 16-bit integers at byte 80.
//! let mut file = b"CDF\x01\0\0\0\0".to_vec();
//! let fields: [&[u8]; 6] = [
//!     b"\0\0\0\x0a\0\0\0\x01\0\0\0\x01x\0\0\0\0\0\0\x02",
//!     b"\0\0\0\0\0\0\0\0",
//!     b"\0\0\0\x0b\0\0\0\x01\0\0\0\x01v\0\0\0\0\0\0\x01\0\0\0\0",
//!     b"\0\0\0\0\0\0\0\0",
//!     b"\0\0\0\x03\0\0\0\x04\0\0\0\x50",
//!     b"\x01\x02\x03\x04",
//! ];
//! fields.iter().for_each(|field| file.extend_from_slice(field));
//! let store = Netcdf3Store::open(Arc::new(MemoryBlob::new("x.nc", file)))?;
//! let Node::Array(array) = store.node("/v")? else { panic!("an array") };
//! let values = read_serial(&*array, Positions::whole(array.schema().shape()))?;
//! assert_eq!(values.as_slice::<i16>(), Some(&[0x102, 0x304][..]));
//! # Ok::<(), hyperslab_core::Error>(())
//! ```
#![forbid(unsafe_code)]

mod append;
mod array;
mod attributes;
mod driver;
mod encode;
mod header;
mod layout;
mod plan;
mod sink;
mod store;
mod types;

pub use driver::Netcdf3Driver;
pub use sink::Netcdf3Sink;
pub use store::{MissingRecords, Netcdf3Store};
