//! TileDB arrays and groups: schema, fragments, tiles, filters; dense and sparse; reader, writer, checks.
//!
//! | TileDB | Hyperslab |
//! |---|---|
//! | dense array | a group `/` with one array per attribute: `/a` (`/a0` for an attribute without a name) |
//! | sparse array | a table `/`: dimension columns, then attributes; rows in global order |
//! | group | a group whose members are its children; a member outside the directory is a link |
//! | tile | a chunk; its own chunks are decoded one by one, as needed |
//! | fragment | a layer of a chunk: the result of one write |
//! | array metadata | attributes; keys `__tiledb_attr.NAME.KEY` belong to the attribute `NAME` |
//! | domain that does not start at zero | positions from zero, with the domain as labels |
//! | dimension label | an array of one dimension beside the attributes, under the label's name |
//! | enumeration | an enum, whose names are the texts or numbers; its type and order are the attribute `enumeration` |
//! | timestamps | [`OpenOptions::at`]: the time window of a reader |
//!
//! | module | content |
//! |---|---|
//! | `datatype`, `pipeline` | [`Datatype`] and [`Pipeline`]: codes and options |
//! | `tile` | tiles in chunks, and chunks through their filters, both ways |
//! | `generic` | generic tiles, which hold everything but data |
//! | `schema`, `fragment`, `metadata`, `group`, `condition` | the structures in the files: parsers and encoders |
//! | `names`, `listing`, `array`, `label` | the objects of a directory inside a time window |
//! | `field`, `cells` | decoded tiles as elements |
//! | `dense`, `sparse` | the core's arrays and tables |
//! | `store`, `verify`, `stale` | the core's store, its checks, leftovers of killed writers |
//! | `driver` | the format driver for the engine: [`TileDbDriver`] |
//! | `write` | new arrays, new fragments, consolidation, vacuum, repair |
//!
//! Versions 1 to 23 are read, and version 22 is written. Sparse fragments in dense arrays and labels of sparse arrays
//! cannot be read. As in the library, a delete on a field also deletes the rows in which the field is null.
//!
//! ```
//! use hyperslab_core::{ArraySpec, DType, Elements, Filter, Grid, Node, Positions, Sink, Store, read_serial};
//! use hyperslab_tiledb::{OpenOptions, WriteOptions, create, open_path};
//!
//! let folder = tempfile::tempdir().unwrap();
//! let path = folder.path().join("volume");
//! let mut sink = create(&path, WriteOptions::default())?;
//! let spec = ArraySpec::new(DType::UInt8, Grid::new(&[2, 3], &[2, 2])?).with_filters([Filter::new("zstd")]);
//! let array = sink.array("/a", &spec)?;
//! for (chunk, cells) in [([0, 0], vec![1, 2, 4, 5]), ([0, 1], vec![3, 6])] {
//!     let encoded = array.encode(&chunk.as_slice().into(), &Elements::fixed(cells))?;
//!     array.write(&chunk.as_slice().into(), encoded)?;
//! }
//! Box::new(sink).commit()?;
//!
//! let store = open_path(&path, OpenOptions::default())?;
//! let Node::Array(array) = store.node("/a")? else { panic!("an array") };
//! let values = read_serial(&*array, Positions::whole(&[2, 3]))?;
//! assert_eq!(values.to_json().to_string(), "[[1,2,3],[4,5,6]]");
//! # Ok::<(), hyperslab_core::Error>(())
//! ```
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::sync::Arc;

mod array;
mod cells;
mod condition;
mod datatype;
mod dense;
mod driver;
mod field;
mod fragment;
#[doc(hidden)]
pub mod fuzz;
mod generic;
mod group;
mod key;
mod label;
mod listing;
mod metadata;
mod names;
mod pipeline;
mod random;
mod schema;
mod sparse;
mod stale;
mod store;
mod tile;
mod verify;
mod write;

pub use datatype::{CellValues, Datatype, Number};
pub use driver::TileDbDriver;
pub use key::Key;
pub use names::TimeWindow;
pub use pipeline::{Filter, Pipeline, WebpOptions};
pub use schema::{ArrayKind, Attribute, Dimension, DimensionLabel, Enumeration, Order, Range, Schema};
pub use store::{TileDbStore, open, open_path, probe};
pub use write::{
    ConsolidateOptions, TileDbAppend, TileDbSink, TileDbTable, WriteOptions, append, append_elsewhere,
    append_table, append_table_elsewhere, consolidate, create, create_sparse, create_table, delete_rows,
    evolve, repair, vacuum, write_sparse,
};

/// How to open an array.
#[derive(Debug, Clone, Default)]
pub struct OpenOptions {
    /// The time window in milliseconds; all of time by default.
    pub at: TimeWindow,
    /// The key of an encrypted array.
    pub key: Option<Key>,
    /// Fragments to ignore, by name.
    pub without: Arc<BTreeSet<String>>,
}
