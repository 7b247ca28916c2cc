//! Options for a driver that opens or creates a store.

use std::path::Path;
use std::sync::Arc;

use super::Variant;
use crate::storage::{StageOptions, Storage};
use crate::{Anywhere, EncryptionKey, Error, Externals, Locations, NoExternals, Result, Siblings};

/// Options for opening a store. A driver ignores options that do not apply to its format.
#[derive(Debug, Clone, Default)]
pub struct OpenContext<'a> {
    /// The path of the store on this machine; `None` if it is remote.
    pub path: Option<&'a Path>,
    /// The folder of a single-file store; `None` for directories.
    pub beside: Option<Arc<dyn Storage>>,
    /// Which other files the store may refer to.
    pub external: ExternalFiles,
    /// Map other files of the store. If false, read them by position, which is safe for files that others may truncate.
    pub mapped: bool,
    /// Read only what was written in this range of times, in milliseconds since 1970.
    pub at: Option<(u64, u64)>,
    /// The key of an encrypted store.
    pub key: Option<EncryptionKey>,
    /// Read every node's own metadata instead of the consolidated copy in the root.
    pub unconsolidated: bool,
    /// Opens other locations that the store refers to, if [`external`](Self::external) is [`Any`](ExternalFiles::Any).
    pub locations: Option<Arc<dyn Locations>>,
}

impl OpenContext<'_> {
    /// Resolves the names of other files that the store refers to.
    #[must_use]
    pub fn externals(&self) -> Arc<dyn Externals> {
        match (self.external, &self.beside) {
            (ExternalFiles::Any, _) if self.path.is_some() => {
                let folder = self.path.and_then(Path::parent).filter(|folder| !folder.as_os_str().is_empty());
                Arc::new(Anywhere::new(folder.unwrap_or_else(|| Path::new(".")), self.mapped))
            }
            (ExternalFiles::Any | ExternalFiles::Beside, Some(beside)) => {
                Arc::new(Siblings::new(Arc::clone(beside)))
            }
            _ => Arc::new(NoExternals),
        }
    }
}

/// Which files a store may refer to: external raw data, sources of virtual datasets, external links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExternalFiles {
    /// No other file is opened.
    None,
    /// Regular files in the store's folder and below it, except hidden files and symbolic links that lead out of the folder.
    #[default]
    Beside,
    /// Any file that the process can read.
    Any,
}

impl std::str::FromStr for ExternalFiles {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "none" => Ok(Self::None),
            "beside" => Ok(Self::Beside),
            "any" => Ok(Self::Any),
            _ => Err(Error::invalid(format!(
                "{name:?} is not a policy for external files; choose none, beside or any"
            ))),
        }
    }
}

/// Options for creating a store. A driver ignores options that do not apply to its format.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct CreateOptions {
    /// Replace the store at the target.
    pub replace: bool,
    /// Sync a new store before the sink's commit returns. A store that replaces or changes another is always synced.
    pub sync: bool,
    /// Add to the store at the target, if the format supports it.
    pub append: bool,
    /// When adding to a format of fragments: write an array as a new fragment of the one with its name, or of the only one.
    pub only_array: bool,
    /// The source of the content (`npy`, `hdf5` …), for formats that keep a history.
    pub source: Option<String>,
    /// Gather chunks in shards of this shape, if the format supports it.
    pub shard_shape: Option<Vec<u64>>,
    /// The variant to write, if the format has several.
    pub variant: Option<Variant>,
    /// All nodes come from a store of the same format. Their attributes include the format's own bookkeeping, which is
    /// written unchanged.
    pub verbatim: bool,
    /// The store replaces the one at the target, with changes: its history continues, in formats that keep one.
    pub rewrite: bool,
    /// Foreign bytes to write before the content, if the format supports it.
    pub preamble: Option<bytes::Bytes>,
    /// Divide the file into pages of this many bytes, if the format supports it.
    pub page_size: Option<u64>,
}

crate::option_setters! { CreateOptions {
    with_replace = replace: bool,
    with_sync = sync: bool,
    with_append = append: bool,
    with_only_array = only_array: bool,
    with_source = source: into Option<String>,
    with_shard_shape = shard_shape: into Option<Vec<u64>>,
    with_variant = variant: into Option<Variant>,
    with_verbatim = verbatim: bool,
    with_rewrite = rewrite: bool,
    with_preamble = preamble: into Option<bytes::Bytes>,
    with_page_size = page_size: into Option<u64>,
} }

impl CreateOptions {
    /// How the store is published.
    #[must_use]
    pub fn stage(&self) -> StageOptions {
        StageOptions::default().with_replace(self.replace).with_sync(self.sync)
    }
}
