//! How to write a file.

/// Which libraries shall read the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Compatibility {
    /// All: superblock 0, symbol tables, version 1 headers and B-trees.
    Earliest,
    /// libhdf5 1.10 and later: its chunk indexes.
    #[default]
    V110,
    /// libhdf5 2.0 and later: filtered chunks have sizes in full width.
    V200,
}

/// How datasets are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum DatasetLayout {
    /// In one piece when it has one chunk, cannot grow and is not filtered; else in chunks.
    #[default]
    Auto,
    /// In the object's header: for few bytes.
    Compact,
    /// In one piece.
    Contiguous,
    /// In chunks, also where one piece would do.
    Chunked,
}

/// How to write a file.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Hdf5Options {
    /// Replace what is at the path.
    pub replace: bool,
    /// Make a new file durable before it is committed. What replaces one always is.
    pub sync: bool,
    /// Which libraries shall read it.
    pub compatibility: Compatibility,
    /// How datasets are laid out.
    pub layout: DatasetLayout,
    /// Take space for all chunks of unfiltered datasets that cannot grow, and need no index for them.
    pub allocate_early: bool,
    /// Write dimension scales for named dimensions, as NetCDF-4 does.
    pub dimension_scales: bool,
    /// Commit the types of enumerations, structs and complex numbers, without which the NetCDF-4 library does not know them.
    pub commit_types: bool,
    /// Store an array with the name of a dimension that it does not lie on first under another name, as the NetCDF-4 library
    /// does. Otherwise such a dimension has no scale, which needs the name.
    pub netcdf_names: bool,
    /// Attributes come with HDF5's own bookkeeping (dimension scales, NetCDF-4's numbers) and are written as they are.
    pub verbatim: bool,
    /// All nodes are made before the first chunk is written: a reference to any other is null, and told.
    pub all_declared: bool,
    /// Bytes before the file's own: none, or 512, 1024, 2048 and so on.
    pub user_block: bytes::Bytes,
    /// Cut the file into pages of this many bytes, so that few requests read it from remote storage. libhdf5 before 1.10 has
    /// no pages: [`Compatibility::Earliest`] ignores this, and says so.
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
