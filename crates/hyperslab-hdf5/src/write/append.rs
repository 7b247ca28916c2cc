//! Adds to existing files in place.
//!
//! New data is written to space that nothing refers to, and synced. Then the end of the file is updated, and finally
//! the references to the new data, in pieces that a disk writes atomically. If the process is killed at any instant,
//! the file keeps its old contents and possibly some of the new.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use hyperslab_core::storage::LocalFile;
use hyperslab_core::{
    ArraySink, ArraySpec, Attribute, Attributes, Error, FileBlob, Node, Result, Sink, Store, Values,
    normal_path,
};

use super::array::{NewArray, Shared};
use super::attributes::{NewAttribute, check_attribute, values_of};
use super::extend;
use super::grow::GrownArray;
use super::index::Patch;
use super::node::{NewKind, array_attributes, checked_attributes};
use super::object::Style;
use super::options::{Compatibility, Hdf5Options};
use super::output::Output;
use super::plan::Plan;
use super::record::Recorder;
use super::scales;
use super::space::FileSpace;
use super::tree::Tree;
use crate::dimensions::stored_path;
use crate::file::{File, lock};
use crate::store::{Hdf5Store, Resolved, find};
use crate::superblock::Superblock;
use hyperslab_core::NoExternals;

/// Each time the end of the file is moved, it is moved further by this fraction of the file, to save moves at later flushes.
const AHEAD: u64 = 16;
const LEAST_AHEAD: u64 = 64 << 10;
const MOST_AHEAD: u64 = 64 << 20;

/// Options for adding to a file.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct AppendOptions {
    /// Let other programs read the file meanwhile, like libhdf5's "single writer, multiple readers" mode. The file is
    /// marked as being written until it is closed, and space freed by index blocks is not reused.
    pub swmr: bool,
}

/// An existing file to which data is added.
///
/// ```
/// use hyperslab_core::{ArraySpec, DType, Elements, Grid, Sink, Values};
/// use hyperslab_hdf5::{AppendOptions, Hdf5Append, Hdf5Options, Hdf5Sink};
/// # fn main() -> hyperslab_core::Result<()> {
/// # let folder = std::env::temp_dir().join(format!("hyperslab-doc-append-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder).unwrap();
/// # let path = folder.join("x.h5");
/// let mut sink = Box::new(Hdf5Sink::create(&path, Hdf5Options::default())?);
/// let mut spec = ArraySpec::new(DType::UInt8, Grid::new(&[0, 4], &[1, 4])?);
/// spec.max_shape[0] = None;
/// sink.array("/frames", &spec)?;
/// sink.commit()?;
///
/// let mut file = Hdf5Append::open(&path, AppendOptions::default())?;
/// for frame in 0..3 {
///     file.append("/frames", &Values::new(DType::UInt8, &[4], Elements::fixed(vec![frame; 4]))?)?;
/// }
/// file.flush()?; // durable, and readable
/// file.close()?;
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Hdf5Append {
    shared: Arc<Shared>,
    file: Arc<File>,
    superblock: Superblock,
    swmr: bool,
    recorders: BTreeMap<String, Recorder>,
    /// Datasets being enlarged, by path.
    grown: BTreeMap<String, Arc<GrownArray>>,
    /// New nodes, and existing nodes that get new links or attributes.
    tree: Tree,
    options: Hdf5Options,
    /// Makes the file forget its recorded free space. Applied before any other change.
    forget: Vec<Patch>,
    /// Whether everything was published.
    closed: bool,
}

impl Hdf5Append {
    /// Opens the file at `path`.
    ///
    /// # Errors
    ///
    /// [`Io`](Error::Io) when the file cannot be written, [`Invalid`](Error::Invalid) when another program has it open,
    /// [`Corrupt`](Error::Corrupt) when it is damaged or truncated.
    pub fn open(path: &Path, options: AppendOptions) -> Result<Self> {
        let name: Arc<str> = path.display().to_string().into();
        let target = LocalFile::open_locked(path)?;
        let blob = Arc::new(FileBlob::open(path)?);
        let file = Arc::new(File::open(blob, Arc::new(NoExternals), 0)?);
        let mut superblock = file.superblock.clone();
        if superblock.flags & 5 != 0 {
            return Err(Error::invalid(format!(
                "{name}: another program is writing the file, or was killed while it did"
            )));
        }
        if superblock.end > file.length {
            return Err(file.place("superblock", 0).corrupt(format!(
                "the file ends at {:#x}, not at {:#x}: it was truncated",
                file.length, superblock.end
            )));
        }
        if options.swmr && superblock.version < 3 {
            return Err(file.unsupported("SWMR in a file format older than libhdf5 1.10"));
        }
        let space = file.operation(|| extend::check_file(&file).and_then(|()| FileSpace::read(&file)))?;
        // Files with an old superblock record their end relative to the base address.
        let end = superblock.end.max(file.length) - superblock.base;
        let sizes = file.sizes();
        let output = Output::new(target, Arc::clone(&name), superblock.base, end)
            .with_addresses(sizes.address)
            .with_pages(space.page)?;
        let forget = if space.kept { FileSpace::forget(&file, &output)? } else { Vec::new() };
        let style = if superblock.version < 2 { Style::Old } else { Style::New };
        let shared = Arc::new(Shared::new(output, sizes, style));
        if options.swmr {
            superblock.flags |= 5;
            shared.output.write_at(0, &superblock.encode()?)?;
            shared.output.sync()?;
            shared.output.unlock()?;
        }
        let mut own = Hdf5Options::default();
        if superblock.version < 2 {
            own.compatibility = Compatibility::Earliest;
        }
        let (tree, recorders) = (Tree::beside(&file), BTreeMap::new());
        Ok(Self {
            shared,
            file,
            superblock,
            swmr: options.swmr,
            recorders,
            grown: BTreeMap::new(),
            tree,
            options: own,
            forget,
            closed: false,
        })
    }

    /// Appends frames to the dataset at `path` along its first unlimited dimension, or else the first with room. The
    /// values have the dataset's shape with any extent along that dimension, or lack that dimension to append one frame.
    /// Returns the dataset's new extent. The frames become visible at the next [`flush`](Self::flush).
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) when the dataset cannot grow or the values do not fit it;
    /// [`Unsupported`](Error::Unsupported) for types and filters that can only be read.
    pub fn append(&mut self, path: &str, values: &Values) -> Result<u64> {
        if let Some(recorder) = self.recorders.get_mut(path) {
            return recorder.append(values);
        }
        self.append_along(path, None, values)
    }

    /// Like [`append`](Self::append), along dimension `axis`. Only the first call for a dataset chooses the dimension.
    ///
    /// # Errors
    ///
    /// As [`append`](Self::append).
    pub fn append_along(&mut self, path: &str, axis: Option<usize>, values: &Values) -> Result<u64> {
        if !self.recorders.contains_key(path) {
            let normal = normal_path(path);
            if self.grown.contains_key(&normal) {
                return Err(Error::invalid(format!("{normal} is already being enlarged")));
            }
            let recorder = self.file.operation(|| {
                let address = self.address(&normal)?;
                Recorder::open(&self.file, address, &normal, axis, &self.shared)
            })?;
            self.recorders.insert(path.to_owned(), recorder);
        }
        match self.recorders.get_mut(path) {
            Some(recorder) => recorder.append(values),
            None => Err(Error::not_found(Arc::clone(&self.file.name), path)),
        }
    }

    /// The address of an object's header in this file.
    fn address(&self, path: &str) -> Result<u64> {
        match find(&self.file, &stored_path(&self.file, path))? {
            Resolved::Object(object) if Arc::ptr_eq(&object.file, &self.file) => Ok(object.address),
            Resolved::Object(_) => Err(self.file.unsupported("adding to other files through their links")),
            Resolved::Dangling(_) => Err(Error::not_found(Arc::clone(&self.file.name), path)),
        }
    }

    /// Makes all additions durable, and visible to programs that open or refresh the file from now on.
    ///
    /// # Errors
    ///
    /// [`Io`](Error::Io) when the system refuses. Data flushed before is not affected.
    pub fn flush(&mut self) -> Result<()> {
        let mut patches = Vec::new();
        for recorder in self.recorders.values_mut() {
            patches.push(recorder.flush()?);
        }
        for array in self.grown.values() {
            patches.push(array.flush()?);
        }
        lock(&self.shared.heap).flush(&self.shared.output)?;
        self.publish(&patches)
    }

    /// Publishes the additions: syncs new data, then updates the end of the file, then applies each object's patches in
    /// order, syncing after each. A new extent without the index of its chunks would be read as fill values.
    fn publish(&mut self, objects: &[Vec<Patch>]) -> Result<()> {
        let most = objects.iter().map(Vec::len).max().unwrap_or(0);
        if most == 0 {
            return Ok(());
        }
        let output = &self.shared.output;
        if !self.forget.is_empty() {
            for patch in std::mem::take(&mut self.forget) {
                output.write_at(patch.address, &patch.bytes)?;
            }
            output.sync()?;
        }
        let length = output.length();
        if length > self.superblock.end {
            let ahead = (length / AHEAD).clamp(LEAST_AHEAD, MOST_AHEAD);
            let ahead = ahead.next_multiple_of(output.page().unwrap_or(1));
            self.superblock.end = length + ahead;
            output.set_length(self.superblock.end)?;
            output.sync()?;
            let (at, bytes) = self.superblock.encode_end()?;
            output.write_at(at, &bytes)?;
        }
        output.sync()?;
        for turn in 0..most {
            for patch in objects.iter().filter_map(|patches| patches.get(turn)) {
                output.write_at(patch.address, &patch.bytes)?;
            }
            output.sync()?;
        }
        if self.swmr {
            output.abandon();
        } else {
            output.reuse();
        }
        Ok(())
    }

    /// Sets an attribute of the group or dataset at `path`, replacing an existing one of this name. The change becomes
    /// visible at [`close`](Self::close).
    ///
    /// # Errors
    ///
    /// [`NotFound`](Error::NotFound) when there is no such node; [`Invalid`](Error::Invalid) for what an attribute
    /// cannot hold. [`close`](Self::close) returns [`Unsupported`](Error::Unsupported) for an attribute that is shared in the file.
    pub fn attribute(&mut self, path: &str, name: &str, value: impl Into<Attribute>) -> Result<()> {
        let path = self.file.operation(|| Ok(stored_path(&self.file, &normal_path(path))))?;
        let values = values_of(name, &value.into())?;
        let new = NewAttribute { name: name.to_owned(), values, stored: None };
        check_attribute(&new, self.shared.style, self.shared.sizes)?;
        self.adopt(&path)?;
        let Some(index) = self.tree.get(&path) else {
            return Err(Error::not_found(Arc::clone(&self.file.name), path));
        };
        self.tree.nodes[index].set_attribute(new);
        Ok(())
    }

    /// Adds the existing nodes along `path` to the tree.
    fn adopt(&mut self, path: &str) -> Result<bool> {
        let file = Arc::clone(&self.file);
        file.operation(|| self.tree.adopt(path))
    }

    /// Writes the added nodes and the references to them.
    fn publish_nodes(&mut self) -> Result<()> {
        if self.options.dimension_scales {
            scales::plan(&mut self.tree, &self.shared, &self.options)?;
        }
        let output = &self.shared.output;
        self.tree.flush_arrays(output)?;
        self.tree.write(&self.shared)?;
        let mut patches = Vec::new();
        for (address, added) in self.tree.additions(&self.shared)? {
            patches.push(extend::extend(&self.file, address, added, output)?);
        }
        lock(&self.shared.heap).flush(output)?;
        self.publish(&patches)
    }

    /// Flushes, publishes new nodes and attributes, and trims the space reserved at the end of the file.
    ///
    /// # Errors
    ///
    /// As [`flush`](Self::flush).
    pub fn close(mut self) -> Result<()> {
        self.finish()
    }

    fn finish(&mut self) -> Result<()> {
        self.flush()?;
        let file = Arc::clone(&self.file);
        file.whole_operation(|| self.publish_nodes())?;
        self.closed = true;
        let output = &self.shared.output;
        self.superblock.end = output.length();
        self.superblock.flags &= !5;
        let (at, bytes) = self.superblock.encode_end()?;
        output.write_at(at, &bytes)?;
        output.sync()?;
        output.set_length(self.superblock.end)?;
        output.sync()?;
        output.unlock()
    }
}

impl Sink for Hdf5Append {
    /// Creates a group, or adds these attributes to an existing one.
    fn group(&mut self, path: &str, attributes: &Attributes) -> Result<()> {
        let new = checked_attributes(attributes, false, &self.shared)?;
        if !self.adopt(path)? {
            self.tree.check(path)?;
            return self.tree.add(path, NewKind::Group { made: true }, new).map(|_| ());
        }
        let known = match Hdf5Store::new(Arc::clone(&self.file)).node(path) {
            Ok(Node::Group(known)) => known,
            Ok(_) => return Err(Error::invalid(format!("{path} exists and is not a group"))),
            Err(error) => return Err(error),
        };
        for NewAttribute { name, values, .. } in new {
            let given = Attribute::from(values);
            match known.get(&name) {
                Some(held) if held.to_json() == given.to_json() => {}
                _ => self.attribute(path, &name, given)?,
            }
        }
        Ok(())
    }

    fn array(&mut self, path: &str, spec: &ArraySpec) -> Result<Arc<dyn ArraySink>> {
        let path = &match normal_path(path) {
            root if root == "/" => "/data".to_owned(),
            path => path,
        };
        if self.adopt(path)? {
            return Err(Error::invalid(format!("{path} already exists")));
        }
        self.tree.check(path)?;
        let name = format!("{}{path}", self.file.name);
        let plan = Plan::new(name, spec, &self.options, &self.shared)?;
        let attributes = array_attributes(spec, false, &self.shared)?;
        let array = Arc::new(NewArray::new(plan, &self.shared)?);
        self.tree.add(path, NewKind::Array(Arc::clone(&array)), attributes)?;
        Ok(array)
    }

    fn grow(&mut self, path: &str, shape: &[u64]) -> Result<Arc<dyn ArraySink>> {
        let path = normal_path(path);
        if self.grown.contains_key(&path) || self.recorders.keys().any(|own| normal_path(own) == path) {
            return Err(Error::invalid(format!("{path} is already being added to")));
        }
        let array = self
            .file
            .operation(|| GrownArray::open(&self.file, self.address(&path)?, &path, shape, &self.shared))?;
        let array = Arc::new(array);
        self.grown.insert(path, Arc::clone(&array));
        Ok(array)
    }

    fn attributes(&mut self, path: &str, attributes: &Attributes) -> Result<()> {
        for NewAttribute { name, values, .. } in checked_attributes(attributes, false, &self.shared)? {
            self.attribute(path, &name, values)?;
        }
        Ok(())
    }

    fn commit(mut self: Box<Self>) -> Result<()> {
        self.finish()
    }
}

impl Drop for Hdf5Append {
    /// Discards what was not flushed: the file ends where it ended.
    fn drop(&mut self) {
        if !self.closed {
            let _ = self.shared.output.set_length(self.superblock.end.max(self.file.length));
            if self.swmr {
                self.superblock.flags &= !5;
                let _ = self.superblock.encode().and_then(|bytes| self.shared.output.write_at(0, &bytes));
            }
            // Unlock explicitly: a child process being spawned may still hold the file for a moment.
            let _ = self.shared.output.unlock();
        }
    }
}
