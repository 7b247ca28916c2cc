//! Zarr v2 and v3: arrays and groups as objects under names.
//!
//! Zarr's chunk index is the file system (or the bucket) itself: chunk `(1, 2)` of the array `t` is the object `t/c/1/2`, and a
//! chunk that has no object holds the fill value. Where many chunks share one object, a *shard*, a table at its end says where
//! each of them is; those *inner chunks* are our chunks, and one is read by its byte range, never with its whole shard.
//!
//! | Zarr | Hyperslab |
//! |---|---|
//! | store, hierarchy | store |
//! | chunk (or inner chunk, with sharding) | chunk |
//! | shard, chunk object | blob |
//! | chunk key, shard index | chunk index |
//! | codecs, filters and compressor | pipeline |
//! | transpose codec, `order: F` | the cell order of a decoded chunk: nothing is moved |
//!
//! | module | holds |
//! |---|---|
//! | `store` | [`ZarrStore`]: documents, consolidated or not, and the tree of nodes |
//! | `metadata` | array documents of v2 and v3, as one description |
//! | `array` | [`ZarrArray`]: where chunks are, and how they are decoded |
//! | `keys` | object names, and back |
//! | `rectilinear` | grids whose chunks differ |
//! | `objects`, `shard` | objects of one chunk; the index of a shard |
//! | `pipeline`, `codec`, `vlen` | codecs in a row, single codecs, elements of any length |
//! | `elements`, `pieces` | [`ElementStream`]: the latter one after the other; long chunks decoded ahead |
//! | `dtype`, `fill`, `attributes`, `json` | data types, fill values, attributes, documents |
//! | `sink` | [`ZarrSink`]: new stores, whole or not at all |
//! | `view` | [`ArrayView`]: an array of any format as a Zarr array would be stored |
//! | `driver` | the format, as the engine knows it: [`ZarrDriver`] |
//! | `references` | stores whose chunks are parts of other files: kerchunk's references |
//! | `verify` | checks |
//! | `zip` | stores in zip archives |
//!
//! ```
//! use std::sync::Arc;
//! use hyperslab_core::{MemoryStorage, Node, Positions, Store, read_serial};
//!
//! let document = r#"{"zarr_format": 3, "node_type": "array", "shape": [3], "data_type": "uint8", "fill_value": 9,
//!   "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
//!   "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
//!   "codecs": [{"name": "bytes"}]}"#;
//! let directory = MemoryStorage::new("t.zarr", [("zarr.json", document.as_bytes()), ("c/0", &[1, 2])]);
//! let store = hyperslab_zarr::open(Arc::new(directory))?;
//! let Node::Array(array) = store.node("/")? else { panic!("an array") };
//! let values = read_serial(&*array, Positions::whole(array.schema().shape()))?;
//! assert_eq!(values.as_slice::<u8>(), Some(&[1, 2, 9][..]));
//! # Ok::<(), hyperslab_core::Error>(())
//! ```
#![forbid(unsafe_code)]

mod array;
mod attributes;
mod codec;
mod driver;
mod dtype;
mod elements;
mod fill;
mod json;
mod keys;
mod metadata;
mod objects;
mod pieces;
mod pipeline;
mod rectilinear;
mod references;
mod shard;
mod sink;
mod stale;
mod store;
mod verify;
mod view;
mod vlen;
mod zip;

pub use array::ZarrArray;
pub use driver::{ZarrDriver, ZarrZipDriver};
pub use elements::ElementStream;
pub use references::{
    ExportOptions, Reference, ReferenceTable, ReferencesDriver, array_references, group_references,
    open_references, references_to_json,
};
pub use sink::{NODE_NAMES, WriteOptions, ZarrAppend, ZarrFormat, ZarrSink};
pub use store::{ZarrStore, open, open_path, open_with, probe};
pub use view::{ArrayView, CodecSet, group_document};
