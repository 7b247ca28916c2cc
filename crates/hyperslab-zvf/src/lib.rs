//! Zarr Vectors (ZVF): points, lines, polylines, graphs, skeletons and meshes, in chunks of space, on top of Zarr.
//!
//! Space is divided into *chunks*. A chunk's vertices are one byte string. Its *fragments* group rows that belong
//! together. An *object* is a list of fragments in any number of chunks, its *manifest*. Coarser *levels* contain the
//! same objects with fewer vertices.
//!
//! | Zarr Vectors | Hyperslab |
//! |---|---|
//! | store | store; its geometry is the node `/`, a level is `/0`, `/1` … |
//! | level | [`GeometryLevel`](hyperslab_core::GeometryLevel) |
//! | vertex, link, object, group | as in [`GeometryData`](hyperslab_core::GeometryData) |
//! | cell | the bytes of one chunk in one array |
//! | fragment, manifest, segment | internal to this crate |
//!
//! | module | content |
//! |---|---|
//! | `fragment` | [`FragmentIndex`]: ranges and lists of rows, backed by the bytes of the blob |
//! | `manifest`, `manifests` | the fragments of an object; a compact cache for many objects |
//! | `links` | stored links, within a chunk and across |
//! | `objects` | ids, manifests, groups |
//! | `cells` | arrays with one byte string per chunk |
//! | `meta`, `coord` | documents; coordinates and their spelling |
//! | `level`, `query` | a level, and queries on it |
//! | `chain` | levels that add to the next coarser one |
//! | `older` | the layouts of 0.6 and 0.7 |
//! | `store`, `geometry` | [`ZvfStore`], [`ZvfGeometry`], [`FragmentStore`] |
//! | `info`, `verify` | statistics of chunks and fragments; checks |
//! | `write` | [`ZvfWriter`], [`write`]: new stores, in bounded memory, on all cores |
//! | `attributes` | changes attributes of an existing store |
//! | `driver` | the format driver for the engine: [`ZvfDriver`] |
//! | `pyramid` | [`build_pyramid`]: generates coarser levels |
//!
//! ```
//! use bytes::Bytes;
//! use hyperslab_core::Place;
//! use hyperslab_zvf::{Fragment, FragmentIndex, encode_fragments};
//!
//! let fragments = [Fragment::Range { start: 0, count: 4 }, Fragment::Rows(vec![12, 7, 19])];
//! let blob = encode_fragments(&fragments, 20)?;
//! let index = FragmentIndex::parse(Bytes::from(blob), Place::new("x.zv", "fragment index", 0))?;
//! assert!(index.is_range(0));
//! assert_eq!(index.rows(1).map(|rows| rows.collect()), Some(vec![12, 7, 19]));
//! # Ok::<(), hyperslab_core::Error>(())
//! ```
#![forbid(unsafe_code)]

mod attributes;
mod cells;
mod chain;
mod coord;
mod driver;
mod fragment;
mod geometry;
mod info;
mod level;
mod links;
mod manifest;
mod manifests;
mod meta;
mod numbers;
mod objects;
mod older;
mod pyramid;
mod query;
mod store;
mod verify;
mod write;

pub use driver::ZvfDriver;
pub use fragment::{Fragment, FragmentIndex, MAGIC, encode as encode_fragments};
pub use geometry::ZvfGeometry;
pub use pyramid::{PyramidOptions, build_pyramid};
pub use store::{FragmentStore, ZvfStore, open, open_fragment_index, open_path, probe, probe_fragment_index};
pub use write::{ColumnSpec, CrossLevel, GeometryKind, GeometrySpec, WriteOptions, ZvfWriter, write};
