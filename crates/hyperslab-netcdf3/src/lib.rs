//! NetCDF classic: CDF-1, CDF-2 (64-bit offsets) and CDF-5 (64-bit counts and more types), read and written.
//!
//! | NetCDF | Hyperslab |
//! |---|---|
//! | file | store with one group, `/` |
//! | variable | array `/name` |
//! | dimension | name of an axis; one that no variable has is an array that only declares it |
//! | record (unlimited) dimension | first axis that may grow |
//! | fixed variable | contiguous array; slabs of it are our chunks |
//! | record variable | blocks of records are our chunks: one piece of the file, or one a record |
//! | `char` | `bytes[1]`, as NetCDF-4 has it |
//!
//! Data are big-endian. They are turned round on their way from the file to the result, in one pass.
//!
//! | module | holds |
//! |---|---|
//! | `types` | element types, default fill values, versions |
//! | `header`, `encode` | the header: parsed, made |
//! | `layout` | where variables are; chunks |
//! | `attributes` | stored values to attributes and back |
//! | `array`, `store` | [`Netcdf3Store`]: a file and its variables |
//! | `plan`, `sink` | [`Netcdf3Sink`]: a new file, whole or not at all |
//! | `append` | more records for a file that exists |
//! | `driver` | the format, as the engine knows it: [`Netcdf3Driver`] |
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
pub use store::Netcdf3Store;
