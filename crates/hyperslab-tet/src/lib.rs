//! The `.tet` v1 file.
#![forbid(unsafe_code)]

mod append;
mod array;
mod checksums;
mod dataset;
mod disk;
mod footer;
mod index;
mod package;
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
pub use footer::{
    CoordAxis, DatasetMetadata, FileMetadata, Footer, FooterState, HistoryRow, Metadata, Own, OwnDataset,
    SpillRef,
};
pub use index::{Codec, IndexHeader, Row};
pub use package::{open_package, open_path, probe_package};
pub use secondary::{Chunks, IndexEntry, LabelPosting, RangeSegment, SecondaryIndex, ValuePosting};
pub use store::{TetStore, open, probe};
pub use superblock::Superblock;
pub use verify::{FileReport, Summary, verify_path};
pub use write::{TetOptions, TetSink};
pub use zone::{Zone, ZoneMaps, hex_bytes};
