//! Options for a driver that opens or creates a store.

use std::path::Path;
use std::sync::Arc;

use super::Variant;
use crate::storage::{StageOptions, Storage};
use crate::{Anywhere, EncryptionKey, Error, Externals, Locations, NoExternals, Result, Siblings};

/// How a store is opened. A driver ignores options that its format does not have.
#[derive(Debug, Clone, Default)]
pub struct OpenContext<'a> {
    /// Where the store is on this machine; `None` when it is elsewhere.
    pub path: Option<&'a Path>,
    /// The folder that holds a single-file store; `None` for directories.
    pub beside: Option<Arc<dyn Storage>>,
    /// Which other files the store may refer to.
    pub external: ExternalFiles,
    /// Map other files of the store, or read them by position: safe for files that others may truncate.
    pub mapped: bool,
    /// Only what was written between these milliseconds since 1970.
    pub at: Option<(u64, u64)>,
    /// The key of an encrypted store.
    pub key: Option<EncryptionKey>,
    /// Read every node's own document, not the consolidated copy in the root.
    pub unconsolidated: bool,
    /// Opens what the store refers to elsewhere; only where [`external`](Self::external) is [`Any`](ExternalFiles::Any).
    pub locations: Option<Arc<dyn Locations>>,
}

impl OpenContext<'_> {
    /// The other files that the store may refer to, by name.
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

/// Which files a store may lead to: external raw data, sources of virtual datasets, external links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExternalFiles {
    /// No other file is opened.
    None,
    /// Regular files in the store's folder and below it. Hidden files, and symbolic links that lead out of the folder, are
    /// not followed.
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
            _ => {
                Err(Error::invalid(format!("{name:?} is not a rule for external files: none, beside or any")))
            }
        }
    }
}

/// How to create a store. A driver ignores what its format does not have.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct CreateOptions {
    /// Replace the store at the target.
    pub replace: bool,
    /// Make a new store durable before the sink's commit returns. One that replaces or changes another always is.
    pub sync: bool,
    /// Add to the store at the target, in formats that can.
    pub append: bool,
    /// When adding to a format of fragments: an array is a new fragment of the one of its name, or of the only one there is.
    pub only_array: bool,
    /// Where the content comes from (`npy`, `hdf5` …), for formats that keep a history.
    pub source: Option<String>,
    /// Gather chunks in shards of this shape, in formats that have them.
    pub shard_shape: Option<Vec<u64>>,
    /// The variant to write, in formats that have several.
    pub variant: Option<Variant>,
    /// All nodes come from a store of the same format, with all of their attributes: the format's own bookkeeping is
    /// among them, and is written as it is.
    pub verbatim: bool,
    /// Bytes before the content, in formats that leave such to others.
    pub preamble: Option<bytes::Bytes>,
    /// Cut the file into pages of this many bytes, in formats that have such.
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
    with_preamble = preamble: into Option<bytes::Bytes>,
    with_page_size = page_size: into Option<u64>,
} }

impl CreateOptions {
    /// How the store is put in its place.
    #[must_use]
    pub fn stage(&self) -> StageOptions {
        StageOptions::default().with_replace(self.replace).with_sync(self.sync)
    }
}
