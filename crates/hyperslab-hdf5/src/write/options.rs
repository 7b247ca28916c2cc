//! Options for writing a file.

/// Which libraries must be able to read the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Compatibility {
    /// All versions: superblock 0, symbol tables, version 1 headers and B-trees.
    Earliest,
    /// libhdf5 1.10 and later, which introduced new chunk indexes.
    #[default]
    V110,
    /// libhdf5 2.0 and later, which stores the sizes of filtered chunks in full width.
    V200,
}

/// The storage layout of datasets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum DatasetLayout {
    /// Contiguous if a dataset has one chunk, cannot grow and is not filtered; else chunked.
    #[default]
    Auto,
    /// In the object's header, for small datasets.
    Compact,
    /// In one contiguous piece.
    Contiguous,
    /// In chunks, even where contiguous storage would do.
    Chunked,
}

/// Options for writing a file.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Hdf5Options {
    /// Replace an existing file at the path.
    pub replace: bool,
    /// Sync a new file before it is committed. A file that replaces another is always synced.
    pub sync: bool,
    /// Which libraries must be able to read the file.
    pub compatibility: Compatibility,
    /// The storage layout of datasets.
    pub layout: DatasetLayout,
    /// Allocate all chunks of unfiltered datasets that cannot grow, which then need no index.
    pub allocate_early: bool,
    /// Write dimension scales for named dimensions, as NetCDF-4 does.
    pub dimension_scales: bool,
    /// Commit the types of enumerations, structs and complex numbers. The NetCDF-4 library needs committed types to recognise them.
    pub commit_types: bool,
    /// If an array is named like a dimension, but that dimension is not its first, store it under another name, as the NetCDF-4
    /// library does. Otherwise the dimension gets no scale, because the name is taken.
    pub netcdf_names: bool,
    /// The attributes passed in include HDF5's own bookkeeping (dimension scales, NetCDF-4's numbers); write them unchanged.
    pub verbatim: bool,
    /// All nodes are declared before the first chunk is written. A reference to any other node becomes null and is reported.
    pub all_declared: bool,
    /// A user block to place before the HDF5 data: empty, or 512, 1024, 2048 … bytes.
    pub user_block: bytes::Bytes,
    /// Divide the file into pages of this many bytes, so that reading it from remote storage takes few requests. libhdf5 before
    /// 1.10 does not support pages: with [`Compatibility::Earliest`] this is ignored, and reported as a change.
    pub page_size: Option<u64>,
}

impl Default for Hdf5Options {
    fn default() -> Self {
        Self {
            replace: false,
            sync: false,
            compatibility: Compatibility::default(),
            layout: DatasetLayout::default(),
            allocate_early: false,
            dimension_scales: true,
            commit_types: false,
            netcdf_names: false,
            verbatim: false,
            all_declared: false,
            user_block: bytes::Bytes::new(),
            page_size: None,
        }
    }
}
