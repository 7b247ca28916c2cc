//! Zarr v2 and v3: arrays and groups as objects under names.
//!
//! Zarr's chunk index is the file system (or the bucket) itself: chunk `(1, 2)` of the array `t` is the object
//! `t/c/1/2`, and a chunk without an object contains the fill value. A *shard* is an object with many chunks and a
//! table of their locations. These *inner chunks* are the chunks of this crate. Each is read by its byte range,
//! without reading the whole shard.
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
//! | module | content |
//! |---|---|
//! | `store` | [`ZarrStore`]: documents, consolidated or not, and the tree of nodes |
//! | `metadata` | parses array documents of v2 and v3 into one description |
//! | `array` | [`ZarrArray`]: locates and decodes chunks |
//! | `keys` | conversion between coordinates and object names |
//! | `rectilinear` | grids with chunks of different shapes |
//! | `objects`, `shard` | objects of a single chunk; shard indexes |
//! | `pipeline`, `codec`, `vlen` | codec pipelines, single codecs, variable-length elements |
//! | `elements`, `pieces` | [`ElementStream`]: streams variable-length elements; decodes long chunks ahead |
//! | `dtype`, `fill`, `attributes`, `json` | data types, fill values, attributes, documents |
//! | `sink` | [`ZarrSink`]: new stores, which appear complete or not at all |
//! | `view` | [`ArrayView`]: an array of any format in the form of a Zarr array |
//! | `driver` | the format driver for the engine: [`ZarrDriver`] |
//! | `references` | stores whose chunks are parts of other files: kerchunk references |
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
