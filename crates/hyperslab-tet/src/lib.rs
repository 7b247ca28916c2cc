//! The `.tet` v1 file: a flat table of chunks, their payloads, and a JSON footer.
//!
//! ```text
//! superblock 32 | directory length 8 | dataset records | chunk index: header 32, rows of 104 | payloads … | footer?
//! ```
//!
//! | `.tet` | Hyperslab |
//! |---|---|
//! | dataset | array; a name with `/` is a path, and its groups are implied |
//! | dataset id | the dataset's position in the directory; `/#3` finds dataset 3 whatever its name |
//! | chunk index row, `chunk_index` | chunk reference, chunk coordinate |
//! | payload | a chunk's stored bytes |
//! | codec 0, 1 | no filter, `zstd` |
//! | attrs, dim_names, coords | attributes, dimension names, labels |
//! | zone map | the smallest and largest value of a chunk |
//!
//! | module | holds |
//! |---|---|
//! | `superblock`, `dataset`, `index`, `footer` | the structures, each with `parse` and `encode` side by side |
//! | `index` | finding a chunk's row: directly, by search, or through a table |
//! | `footer::own`, `checksums` | our extensions: checksums, groups, content beyond the limits of other readers |
//! | `zone`, `secondary` | statistics and indexes by other writers; statistics that we write |
//! | `store`, `array`, `tree`, `package` | an opened file, its arrays, their names; packages of such files |
//! | `write` | a new file: [`TetSink`] |
//! | `append` | more chunks and arrays for an existing file: [`TetAppend`] |
//! | `verify`, `repair` | checks and repairs |
//! | `driver` | the format driver for the engine: [`TetDriver`] |
//! | `disk` | positional writes, temporary names |
//!
//! The extent of damage: a damaged superblock, directory or index header costs everything; a damaged footer, the metadata; an
//! unknown element type or a chunk extent of zero, that array; a wrong row, that chunk.
//!
//! ```
//! use std::sync::Arc;
//! use hyperslab_core::{Array, ArraySpec, ChunkCoord, DType, Elements, Grid, Positions, Sink, read_serial};
//! use hyperslab_tet::{TetOptions, TetSink, open_path};
//!
//! let folder = tempfile::tempdir().unwrap();
//! let path = folder.path().join("sample.tet");
//!
//! // Two chunks of a 3 x 2 array: the second is cut by the edge.
//! let mut sink = TetSink::create(&path, TetOptions::default())?;
//! let array = sink.array("/t", &ArraySpec::new(DType::UInt8, Grid::new(&[3, 2], &[2, 2])?))?;
//! for (row, cells) in [(1, vec![5, 6]), (0, vec![1, 2, 3, 4])] {
//!     let chunk = ChunkCoord::from_slice(&[row, 0]);
//!     array.write(&chunk, array.encode(&chunk, &Elements::fixed(cells))?)?;
//! }
//! Box::new(sink).commit()?;
//!
//! let array = open_path(&path)?.dataset(0)?;
//! let values = read_serial(&array, Positions::whole(array.schema().shape()))?;
//! assert_eq!(values.as_slice::<u8>(), Some(&[1, 2, 3, 4, 5, 6][..]));
//! # Ok::<(), hyperslab_core::Error>(())
//! ```
#![deny(unsafe_code)]

mod append;
mod array;
mod checksums;
mod dataset;
mod disk;
mod driver;
mod footer;
#[cfg(test)]
mod hostile;
mod index;
mod package;
mod repair;
mod secondary;
mod store;
mod superblock;
mod tree;
mod verify;
mod write;
mod zone;

pub use append::{TetAppend, recover};
pub use array::TetArray;
pub use checksums::Checksums;
pub use dataset::{Dataset, MAX_RANK, code_of_dtype, dtype_of_code};
pub use driver::TetDriver;
pub use footer::{
    CoordAxis, DatasetMetadata, FileMetadata, Footer, FooterState, HistoryRow, Metadata, Own, OwnDataset,
    SpillRef,
};
pub use index::{Codec, IndexHeader, Row};
pub use package::{open_package, open_path, probe_package};
pub use repair::{Fix, RepairPlan, plan_repair};
pub use secondary::{Chunks, IndexEntry, LabelPosting, RangeSegment, SecondaryIndex, ValuePosting};
pub use store::{TetStore, open, probe};
pub use superblock::Superblock;
pub use verify::{FileReport, Summary, verify_path};
pub use write::{TetOptions, TetSink};
pub use zone::{Zone, ZoneMaps, hex_bytes};
