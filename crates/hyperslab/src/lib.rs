//! One engine for chunked arrays in any file format.
//!
//! ```
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("field.npy");
//! # let values = hyperslab::Values::new(hyperslab::DType::UInt8, &[2, 3], hyperslab::Elements::fixed(vec![0, 1, 2, 3, 4, 5]))?;
//! # hyperslab::export::write(&values, &path, false)?;
//! // The format is recognised from the content.
//! let store = hyperslab::open(&path)?;
//! let array = store.array("/")?;
//! println!("{} {:?}", array.schema().dtype, array.schema().shape());
//! let part = array.read(&"[0, ::2]".parse()?)?;
//! assert_eq!(part.as_slice::<u8>(), Some(&[0, 2][..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | purpose |
//! |---|---|
//! | `formats` | the table of drivers: [`Format`], [`create`], [`register`] |
//! | `open` | [`open()`]: recognises the format, returns an [`OpenStore`] |
//! | `catalog` | [`Catalog`]: every node with its shape, type, filters and attributes |
//! | `folder` | [`stores_in`]: the stores in a folder |
//! | `read` | [`ArrayReader`]: plan → locate → fetch → decode → assemble, in parallel |
//! | [`query`] | reductions, groups, windows, filters: planned, folded chunk by chunk |
//! | [`table`] | [`TableReader`]: rows of a table by dimension, column and condition; aggregations by group |
//! | [`source`] | CSV, Parquet and Arrow files as stores of one table |
//! | [`geometry`] | [`GeometryReader`](geometry::GeometryReader): vertices, links and objects by box, object or group; `.ply`, `.obj`, `.swc` |
//! | `memory` | the memory available to the process |
//! | `labels` | resolves selections by coordinate label to positions |
//! | [`convert`](mod@convert) | converts any format to any other, in bounded memory |
//! | [`combine`] | joins several stores along a dimension; appends to a store |
//! | [`edit`](mod@edit) | changes attributes, names and nodes of an existing store, in place or by rewriting it |
//! | [`diff`](mod@diff), [`hash`](mod@hash) | compares values and metadata of any formats and chunkings |
//! | `fields` | arrays whose only field has the array's name |
//! | [`verify`], [`repair`] | checks for damage; applies safe fixes |
//! | `forms` | how formats store content that they do not support natively |
//! | [`salvage`](mod@salvage) | copies everything readable in a damaged store to a new store |
//! | [`fragments`] | merges and removes the fragments of formats that store every write separately |
//! | [`rows`] | tables, arrays and geometries as rows of columns: `.csv`, `.json`, `.npy`, `.arrow`, `.parquet` |
//! | `arrow` | elements as Arrow's arrays, without a copy where the layouts agree |
//! | `ndarray` | results as arrays of the `ndarray` crate (feature `ndarray`) |
//! | [`export`] | values to `.npy`, `.json`, `.csv` |
//! | [`zarr_view`] | any store as a Zarr v3 store: documents and chunks by their keys |
//! | [`npy`] | NumPy's files as a format |
//!
//! The terms (store, node, array, chunk, plan …) are defined in [`hyperslab_core`], whose types are re-exported here.
#![deny(unsafe_code)]

mod adapt;
#[cfg(feature = "arrow")]
pub mod arrow;
mod catalog;
pub mod combine;
pub mod conventions;
pub mod convert;
pub mod diff;
pub mod driver;
pub mod edit;
pub mod export;
mod fields;
mod folder;
mod formats;
mod forms;
pub mod fragments;
pub mod geometry;
pub mod hash;
mod labels;
mod location;
mod memory;
#[cfg(feature = "ndarray")]
pub mod ndarray;
mod open;
pub mod query;
mod read;
#[cfg(feature = "zarr")]
pub mod references;
mod region;
pub mod repair;
pub mod rows;
pub mod salvage;
pub mod source;
pub mod table;
#[cfg(feature = "remote")]
mod upload;
pub mod verify;
mod written;
#[cfg(feature = "zarr")]
pub mod zarr_view;

pub use catalog::{Alias, Catalog, CatalogDimension, CatalogNode, NodeFacts, SortBy, Total};
pub use folder::stores_in;
pub use formats::{
    Format, create, create_table, extension_hint, format_named, format_of_extension, format_of_target,
    register,
};
pub use hyperslab_core::{
    ArraySchema, ArraySink, ArraySpec, Attribute, Attributes, AxisSelection, Batch, Batches, Bound, Bounds,
    Calendar, Capabilities, ChunkCoord, Column, CreateOptions, DType, Data, Depth, Element, Elements,
    EncryptionKey, EnumType, Error, ExternalFiles, Fill, Filter, Finding, FormatDriver, FormatInfo,
    GeometryData, GeometryQuery, GeometrySchema, Grid, Member, Node, NodeKind, OpaqueType, Positions,
    Progress, Recommendation, Region, Report, Result, RowOrder, Scan, Selection, SelectionItem, Severity,
    Sink, Store, StructType, TableSchema, Threads, TimeAxis, TimeUnit, Validity, Values, Variant,
};
pub use hyperslab_npy as npy;
#[cfg(feature = "remote")]
pub use hyperslab_remote::{Meter, RemoteOptions, Traffic, interrupt_current_reads, interrupt_reads};
pub use location::{absolute_location, is_remote, location_name, write_at};
pub use open::{OpenOptions, OpenStore, detect, open, open_with};
pub use read::{ArrayReader, AxisPick, RealPart};
pub use region::{RegionWriter, extend};
pub use table::{RowCondition, TableReader};
