//! The terms of chunked arrays as types; the traits that formats implement; errors; blobs.
//!
//! Every chunked format answers one question: *which stored bytes hold this part of the array, and how are they turned back into
//! elements?* This crate models that question.
//!
//! | module | holds |
//! |---|---|
//! | [`error`](Error) | errors and their location: [`Place`] creates a structure's errors |
//! | `parse` | [`Fields`]: little-endian fields from a slice, every access checked |
//! | `dtype` | [`DType`]: element types and their names |
//! | `element` | [`Element`]: Rust types for elements |
//! | `elements` | [`Elements`], [`Values`]: elements in memory, in Arrow's layout, and as JSON |
//! | `attributes` | [`Attributes`]: small named values of a node |
//! | `calendar` | [`Calendar`], [`TimeAxis`]: dates, and times counted from a date |
//! | `grid` | [`Grid`], [`Region`]: how a shape is divided into chunks |
//! | `selection` | [`Selection`] as users write it, [`Positions`] as numbers |
//! | `plan` | [`Plan`]: the chunks a selection touches, the part of each and its position in the result |
//! | `swap` | byte order: [`swap_bytes`], [`copy_swapped`] |
//! | `widest` | loops for the widest vectors of a processor: [`widest!`] |
//! | `pipeline` | [`visit_chunks`]: locate, fetch, decode, visit; [`read_serial`]: a read on one thread |
//! | `check` | [`check_in_order`]: deep checks on all cores, reported in index order |
//! | `copy` | [`copy_box`]: boxes of cells between two strided layouts |
//! | `budget` | [`Budget`]: the cost limit of one operation, in proportion to the store's size |
//! | `buffer` | [`Buffer`]: memory for results |
//! | `blob` | [`Blob`]: bytes that can be read at any offset |
//! | `chunk` | [`ChunkRef`]: where a chunk is stored, as plain data |
//! | `array`, `table`, `geometry` | [`Array`], [`Table`], [`Geometry`]: what a format implements |
//! | `filter` | [`RowFilter`]: conditions on the rows of a table |
//! | `store`, `sink` | [`Store`], [`Sink`]: trees of nodes, for reading and writing |
//! | `format` | [`FormatDriver`], [`FormatInfo`]: how a format is described, recognised, opened, created and repaired |
//! | `key` | [`EncryptionKey`] |
//! | `stored` | [`StoredForm`]: stored bytes that another store can take as they are; [`StoredType`], [`StoredArray`] and
//! others: what a store keeps of its nodes beyond their content |
//! | `names` | [`NodeNames`], [`join_inside`]: names from a file that become file names |
//! | `secret` | [`SecretKey`]: keys that are wiped from memory and never printed; URLs without secrets |
//! | [`storage`] | [`Storage`]: the objects at a location; stages: files, folders and changes that become visible completely or
//! not at all |
//! | `report` | [`Report`]: the findings of a check |
//! | `setters` | [`option_setters!`]: setters of option types |
//!
//! ```
//! use hyperslab_core::{Grid, Plan, Selection};
//!
//! // Which chunks of a 100 x 100 array in 64 x 64 chunks does `[10:70, 3]` touch?
//! let grid = Grid::new(&[100, 100], &[64, 64])?;
//! let selection: Selection = "[10:70, 3]".parse()?;
//! let plan = Plan::new(&grid, selection.resolve(grid.shape(), &[])?)?;
//! let coords: Vec<_> = plan.iter().map(|chunk| chunk.coord.to_vec()).collect();
//! assert_eq!(coords, [[0, 0], [1, 0]]);
//! # Ok::<(), hyperslab_core::Error>(())
//! ```
#![deny(unsafe_code)]

mod array;
mod attributes;
mod blob;
mod budget;
mod buffer;
mod calendar;
mod check;
mod chunk;
mod copy;
mod dtype;
mod element;
mod elements;
mod error;
mod external_files;
mod fetch_cost;
mod filter;
mod format;
mod geometry;
mod grid;
mod key;
mod names;
mod parse;
mod pipeline;
mod plan;
mod report;
mod secret;
mod selection;
mod setters;
mod sink;
pub mod storage;
mod store;
mod stored;
mod suggest;
mod swap;
mod table;
mod widest;

pub use array::{
    Array, ArraySchema, ChunkStatistics, Coverage, Edges, Fill, Filter, Labels, Number, PartialOutput, Usage,
    fetch_from_blobs,
};
pub use attributes::{Attribute, Attributes};
pub use blob::{Blob, BlobPart, BlobReader, FileBlob, MappedBlob, MemoryBlob};
#[cfg(unix)]
pub use blob::{guard_mappings, guarded};
pub use budget::{Budget, check_empty_elements, claimed_memory, is_plausible};
pub use buffer::Buffer;
pub use calendar::{Calendar, Rebase, TimeAxis, date_tick, instant_tick, tick_instant};
pub use check::{
    check_chunk, check_chunks_in_order, check_fetched_in_order, check_in_order, chunk_weight, fetch_ranges,
    touch,
};
pub use chunk::{BlobKey, ChunkRef, Layer, Span, UNKNOWN_LENGTH};
pub use copy::{Layout, copy_box};
pub use dtype::{DType, EnumType, Member, OpaqueType, StructType, TimeUnit};
pub use element::Element;
pub use elements::{Data, Elements, Validity, Values, element_to_json, element_to_text, time_text};
pub use error::{Corrupt, Error, Place, Result};
pub use external_files::{Anywhere, External, Externals, Locations, NoExternals, Siblings};
pub use fetch_cost::FetchCost;
pub use filter::{ColumnRange, End, FilterColumns, RowFilter, Test, Truth};
pub use format::{
    Capabilities, Content, CreateOptions, DamagedStore, ExternalFiles, FieldChange, FieldSpec, Fix,
    FormatDriver, FormatInfo, GeometryColumn, GeometrySink, GeometrySpec, Glimpse, OpenContext, Recognition,
    Repairs, RowOrder, StoreForm, TableSink, TableSpec, Variant, VariantInfo,
};
pub use geometry::{Geometry, GeometryData, GeometryLevel, GeometryQuery, GeometrySchema};
pub use grid::{CellOrder, ChunkCoord, Extents, Grid, Region, product};
pub use key::EncryptionKey;
pub use names::{NodeNames, join_inside, removable_inside};
pub use parse::Fields;
pub use pipeline::{
    Chunk, ChunkList, ChunkVisitor, Context, FetchRound, LOCATE_BATCH, OutputSlot, OutputSlots, Progress,
    Threads, decoded_bytes, fetch, fetch_rounds, gather_elements, locate, needs_elements, prefetch_index,
    read_serial, recycle_scratch, result_bytes, take_scratch, visit_chunks, with_scratch,
};
pub use plan::{AxisPart, Plan, PlannedChunk};
pub use report::{Finding, Recommendation, Report, Severity};
pub use secret::{SecretKey, url_name, wipe};
pub use selection::{AxisPositions, AxisSelection, Positions, Selection, SelectionItem, dimension_axis};
pub use sink::{ArraySink, ArraySpec, EncodedChunk, Sink, cannot_grow};
pub use storage::{
    ByteRange, ListedObject, LocalStorage, MAPPED_FROM, MemoryStorage, ObjectPlace, ObjectRange, ObjectStat,
    Storage, StorageEntry, read_spans, read_spans_cost,
};
pub use store::{Depth, Node, NodeKind, Store, child_path, is_child_path, normal_path};
pub use stored::{
    ByteOrder, CreationOrder, FillState, FloatLayout, IntegerLayout, LabelOrder, Link, LinkTarget, ObjectId,
    ReferenceKind, StoredArray, StoredAttribute, StoredClass, StoredFill, StoredFilter, StoredForm,
    StoredGroup, StoredLayout, StoredNamedType, StoredObject, StoredStep, StoredType, TextPadding, TypeName,
    VirtualSource,
};
pub use suggest::{closest, counted, did_you_mean};
pub use swap::{copy_swapped, swap_bytes};
pub use table::{Batch, Batches, Bound, Bounds, Column, Scan, StoredTable, Table, TableSchema};
