//! Formats: how each is described, recognised, opened, created and repaired.
//!
//! A format crate implements [`FormatDriver`] once. Everything that differs between formats is a field of [`FormatInfo`] or a
//! method of the driver, so the engine never asks which format it has.

mod fields;
mod geometry;
mod info;
mod options;
mod table;

use std::fmt::Debug;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

pub use fields::{FieldChange, FieldSpec};
pub use geometry::{GeometryColumn, GeometrySink, GeometrySpec};
pub use info::{Capabilities, FormatInfo, StoreForm, Variant, VariantInfo};
pub use options::{CreateOptions, ExternalFiles, OpenContext};
pub use table::{RowOrder, TableSink, TableSpec};

use crate::storage::StagedChange;
use crate::{
    Attribute, Attributes, Blob, DType, Error, GeometryData, Result, RowFilter, Sink, Storage, Store,
};

/// One format. Drivers hold no state: a store, a sink or a repair holds its own.
pub trait FormatDriver: Send + Sync + Debug {
    /// Name, extensions, variants and capabilities.
    fn info(&self) -> &'static FormatInfo;

    /// Decides whether this looks like a store of the format. Called for every driver whose [`FormatInfo::forms`] contains the
    /// form of the content, so it should read as little as possible.
    ///
    /// # Errors
    ///
    /// [`Io`](Error::Io) if the bytes cannot be read.
    fn recognise(&self, glimpse: &Glimpse<'_>) -> Result<Recognition>;

    /// Opens a store for reading. Must never write.
    ///
    /// # Errors
    ///
    /// Any problem of the store. [`Invalid`](Error::Invalid) for a [form](StoreForm) that the format does not have.
    fn open(&self, content: Content, context: &OpenContext<'_>) -> Result<Arc<dyn Store>>;

    /// Returns true if this is certainly a store of the format, so that replacing it cannot destroy anything else. A format whose
    /// signature is shared with other kinds of files checks more here than in [`recognise`](Self::recognise).
    ///
    /// # Errors
    ///
    /// [`Io`](Error::Io) if the bytes cannot be read.
    fn is_store(&self, content: &Content) -> Result<bool> {
        Ok(self.recognise(&Glimpse::new(content)?)? != Recognition::No)
    }

    /// Creates a store. Nothing is visible at `target` before the sink is committed.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](Error::Unsupported) if the format cannot be written; [`Invalid`](Error::Invalid) if the target
    /// exists and [`replace`](CreateOptions::replace) is not set; [`Io`](Error::Io) if the system reports an error.
    fn create(&self, target: &Path, options: &CreateOptions) -> Result<Box<dyn Sink>> {
        let _ = options;
        Err(self.unsupported(target, "writing"))
    }

    /// Opens an existing store to add to it. Nothing changes before the sink is committed.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](Error::Unsupported) if the format cannot add to existing stores; otherwise as
    /// [`create`](Self::create).
    fn append(&self, target: &Path, options: &CreateOptions) -> Result<Box<dyn Sink>> {
        let _ = options;
        Err(self.unsupported(target, "adding to"))
    }

    /// Like [`append`](Self::append), for a directory store on another machine: it is read through `storage`, and
    /// additions are written to `change`.
    ///
    /// # Errors
    ///
    /// As [`append`](Self::append).
    fn append_elsewhere(
        &self,
        storage: Arc<dyn Storage>,
        change: StagedChange,
        options: &CreateOptions,
    ) -> Result<Box<dyn Sink>> {
        let _ = (change, options);
        Err(Error::unsupported(
            Arc::clone(storage.name()),
            "adding to a store of this format on remote storage",
        ))
    }

    /// Creates a store of one geometry, to be written in batches. Only for formats with
    /// [`geometry_kinds`](FormatInfo::geometry_kinds).
    ///
    /// # Errors
    ///
    /// As [`create`](Self::create).
    fn create_geometry(&self, target: &Path, spec: &GeometrySpec) -> Result<Box<dyn GeometrySink>> {
        let _ = spec;
        Err(self.unsupported(target, "writing geometry to"))
    }

    /// Opens the geometry at `target` to add vertices, objects and links. Vertex numbers in links are relative to the added
    /// vertices. Nothing changes before the sink is committed.
    ///
    /// # Errors
    ///
    /// As [`append`](Self::append).
    fn append_geometry(&self, target: &Path, memory: u64) -> Result<Box<dyn GeometrySink>> {
        let _ = memory;
        Err(self.unsupported(target, "adding geometry to"))
    }

    /// Writes a new store of one geometry in memory, with its objects and their groups.
    ///
    /// # Errors
    ///
    /// As [`create_geometry`](Self::create_geometry).
    fn write_geometry(&self, target: &Path, spec: &GeometrySpec, data: &GeometryData) -> Result<()> {
        let _ = (spec, data);
        Err(self.unsupported(target, "writing geometry to"))
    }

    /// Creates a store of one table, to be written in batches. Only for formats with the capability
    /// [`tables`](Capabilities::tables).
    ///
    /// # Errors
    ///
    /// As [`create`](Self::create).
    fn create_table(
        &self,
        target: &Path,
        spec: &TableSpec,
        options: &CreateOptions,
    ) -> Result<Box<dyn TableSink>> {
        let _ = (spec, options);
        Err(self.unsupported(target, "writing a table to"))
    }

    /// Opens the table at `target` to add rows.
    ///
    /// # Errors
    ///
    /// As [`append`](Self::append).
    fn append_table(
        &self,
        target: &Path,
        memory: u64,
        options: &CreateOptions,
    ) -> Result<Box<dyn TableSink>> {
        let _ = (memory, options);
        Err(self.unsupported(target, "adding rows to"))
    }

    /// Like [`append_table`](Self::append_table), for a directory store on another machine; see
    /// [`append_elsewhere`](Self::append_elsewhere).
    ///
    /// # Errors
    ///
    /// As [`append`](Self::append).
    fn append_table_elsewhere(
        &self,
        storage: Arc<dyn Storage>,
        change: StagedChange,
        memory: u64,
        options: &CreateOptions,
    ) -> Result<Box<dyn TableSink>> {
        let _ = (change, memory, options);
        Err(Error::unsupported(
            Arc::clone(storage.name()),
            "adding rows to a store of this format on remote storage",
        ))
    }

    /// Deletes the rows of the table at `path` that pass the filter.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](Error::Unsupported) if rows cannot be deleted, or not by this filter.
    fn delete_rows(&self, path: &Path, filter: &RowFilter, context: &OpenContext<'_>) -> Result<()> {
        let _ = (filter, context);
        Err(self.unsupported(path, "deleting rows of"))
    }

    /// Adds or drops fields of the array or table at a node. Applies all of the changes or none. With `dry_run`, only checks
    /// them.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) for a new name that exists, or a dropped one that does not; [`Unsupported`](Error::Unsupported)
    /// if fields cannot change.
    fn change_fields(
        &self,
        path: &Path,
        node: &str,
        changes: &[FieldChange],
        context: &OpenContext<'_>,
        dry_run: bool,
    ) -> Result<()> {
        let _ = (node, changes, context, dry_run);
        Err(self.unsupported(path, "adding or dropping fields of"))
    }

    /// Returns true if a geometry can have this column.
    fn takes_column(&self, column: &GeometryColumn) -> bool {
        column.dtype.is_numeric()
    }

    /// Finds the safe fixes and, unless `dry_run`, applies them. The default finds none.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](Error::Corrupt) if the store is too damaged to plan a repair; [`Io`](Error::Io) if the system reports an error.
    fn repair(&self, path: &Path, context: &OpenContext<'_>, dry_run: bool) -> Result<Repairs> {
        let _ = (path, context, dry_run);
        Ok(Repairs::default())
    }

    /// Opens the intact part of a damaged store, if that is more than [`open`](Self::open) reads; `None` otherwise.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    fn open_damaged(&self, content: Content, context: &OpenContext<'_>) -> Result<Option<DamagedStore>> {
        let _ = (content, context);
        Ok(None)
    }

    /// Merges the fragments that separate writes have created. `progress` receives the number of stored bytes done and in
    /// total, and returns whether to continue. Returns the number of merged fragments.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](Error::Unsupported) if the format has no fragments; otherwise any error from reading and writing.
    fn consolidate(
        &self,
        path: &Path,
        context: &OpenContext<'_>,
        progress: &(dyn Fn(u64, u64) -> bool + Sync),
    ) -> Result<u64> {
        let _ = (context, progress);
        Err(self.unsupported(path, "consolidating"))
    }

    /// Removes the fragments that [`consolidate`](Self::consolidate) replaced. Returns their number.
    ///
    /// # Errors
    ///
    /// As [`consolidate`](Self::consolidate).
    fn vacuum(&self, path: &Path, context: &OpenContext<'_>) -> Result<u64> {
        let _ = context;
        Err(self.unsupported(path, "vacuuming"))
    }

    /// The names of attributes that are the format's own bookkeeping: readers turn them into schemas, and writers generate
    /// them. `elsewhere` is set for attributes copied to another format. Called for every driver, whatever the source, because
    /// another program may have copied a format's bookkeeping into a different format.
    fn bookkeeping<'a>(&self, attributes: &'a Attributes, elsewhere: bool) -> Vec<&'a str> {
        let _ = (attributes, elsewhere);
        Vec::new()
    }

    /// The reason why a node cannot have this attribute; `None` if it can. A conversion leaves out such attributes and reports them.
    fn refused_attribute(&self, attribute: &Attribute) -> Option<String> {
        let _ = attribute;
        None
    }

    /// Whether texts of attributes are UTF-8, so that other characters must be recoded.
    fn attributes_are_utf8(&self) -> bool {
        true
    }

    /// Returns true if arrays of a variant can hold elements of this type, possibly in a form specific to the format. A
    /// conversion stores other types as one that the format can hold.
    fn holds(&self, dtype: &DType, variant: Option<Variant>) -> bool {
        let _ = (dtype, variant);
        true
    }

    /// The error for an operation that the format does not have.
    fn unsupported(&self, path: &Path, operation: &str) -> Error {
        Error::unsupported(path.display().to_string(), format!("{operation} {}", self.info().name))
    }
}

/// The bytes of a store: one file, or a directory of them.
#[derive(Debug, Clone)]
pub enum Content {
    /// A file.
    File(Arc<dyn Blob>),
    /// A directory.
    Directory(Arc<dyn Storage>),
}

impl Content {
    /// The form: file or directory.
    #[must_use]
    pub const fn form(&self) -> StoreForm {
        match self {
            Self::File(_) => StoreForm::File,
            Self::Directory(_) => StoreForm::Directory,
        }
    }

    /// The file's bytes.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) for a directory.
    pub fn into_file(self, info: &FormatInfo) -> Result<Arc<dyn Blob>> {
        match self {
            Self::File(blob) => Ok(blob),
            Self::Directory(directory) => Err(info.wrong_form(directory.name(), StoreForm::Directory)),
        }
    }

    /// The directory.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) for a file.
    pub fn into_directory(self, info: &FormatInfo) -> Result<Arc<dyn Storage>> {
        match self {
            Self::Directory(directory) => Ok(directory),
            Self::File(blob) => Err(info.wrong_form(blob.name(), StoreForm::File)),
        }
    }
}

/// A first look at a possible store. The first bytes of a file are read once for all drivers.
#[derive(Debug)]
pub struct Glimpse<'a> {
    head: Bytes,
    content: &'a Content,
}

impl<'a> Glimpse<'a> {
    /// The number of bytes read from the start of a file.
    const HEAD: u64 = 64;

    /// Reads the start of this content.
    ///
    /// # Errors
    ///
    /// [`Io`](Error::Io) if the bytes cannot be read.
    pub fn new(content: &'a Content) -> Result<Self> {
        let head = match content {
            Content::File(blob) => blob.read_range(0..blob.len()?.min(Self::HEAD))?,
            Content::Directory(_) => Bytes::new(),
        };
        Ok(Self { head, content })
    }

    /// The first bytes of a file, at most 64; empty for a directory.
    #[must_use]
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// The file, for signatures that are not at its start.
    #[must_use]
    pub fn blob(&self) -> Option<&'a dyn Blob> {
        match self.content {
            Content::File(blob) => Some(&**blob),
            Content::Directory(_) => None,
        }
    }

    /// The file, for a driver that must open it as a container.
    #[must_use]
    pub const fn file(&self) -> Option<&'a Arc<dyn Blob>> {
        match self.content {
            Content::File(blob) => Some(blob),
            Content::Directory(_) => None,
        }
    }

    /// The directory, to look up names.
    #[must_use]
    pub fn directory(&self) -> Option<&'a dyn Storage> {
        match self.content {
            Content::Directory(directory) => Some(&**directory),
            Content::File(_) => None,
        }
    }
}

/// A driver's verdict on a glimpse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recognition {
    /// Not a store of this format.
    No,
    /// A container that other formats are built on, such as a zip archive or a Zarr hierarchy. The driver opens it when no
    /// other driver returns `Yes`.
    Container,
    /// A store of this format.
    Yes,
}

impl From<bool> for Recognition {
    fn from(is_store: bool) -> Self {
        if is_store { Self::Yes } else { Self::No }
    }
}

/// The intact part of a damaged store.
#[derive(Debug)]
pub struct DamagedStore {
    /// The store, without the rest.
    pub store: Arc<dyn Store>,
    /// Positions along the first axis of arrays that are missing at their ends: the node, and the positions.
    pub cut: Vec<(String, Range<u64>)>,
    /// Other parts that are left out: the node, and a description with the reason.
    pub lost: Vec<(String, String)>,
}

/// The safe fixes that a driver found or applied.
#[derive(Debug, Clone, Default)]
pub struct Repairs {
    /// The fixes, in the order in which they apply.
    pub fixes: Vec<Fix>,
    /// Damage that no safe fix covers; `None` if a check of the store reports it.
    pub remaining: Option<Vec<String>>,
}

/// One fix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fix {
    /// Its stable name.
    pub code: String,
    /// What it does.
    pub message: String,
}
