//! TileDB arrays and groups: schema, fragments, tiles, filters; dense and sparse.
//!
//! | TileDB | here |
//! |---|---|
//! | dense array | a group `/` with one array per attribute: `/a` |
//! | sparse array | a table `/`: dimension columns, then attributes |
//! | group | a group whose members are its children |
//! | tile | a chunk |
//! | fragment | a layer of a chunk |
//! | array metadata | attributes |
#![forbid(unsafe_code)]

mod array;
mod cells;
mod condition;
mod datatype;
mod dense;
mod field;
mod fragment;
mod generic;
mod group;
mod key;
mod listing;
mod metadata;
mod names;
mod pipeline;
mod random;
mod schema;
mod sparse;
mod store;
mod tile;
mod verify;
mod write;

pub use datatype::{CellValues, Datatype, Number};
pub use key::Key;
pub use names::Window as TimeWindow;
pub use pipeline::{Filter, Pipeline};
pub use schema::{ArrayKind, Attribute, Dimension, Enumeration, Order, Range, Schema};
pub use store::{TileDbStore, open, open_path, probe};
pub use write::{TileDbSink, WriteOptions, create, create_sparse, write_sparse};

/// How to open an array.
#[derive(Debug, Clone, Default)]
pub struct OpenOptions {
    /// The milliseconds to look at; all of time by default.
    pub at: TimeWindow,
    /// The key of an encrypted array.
    pub key: Option<Key>,
}
