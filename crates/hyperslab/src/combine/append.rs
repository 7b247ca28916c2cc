//! Appends stores to an existing store.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use hyperslab_core::{
    Array, ArraySink, ChunkCoord, CreateOptions, Error, Grid, Node, Positions, Region, Result, Sink,
    normal_path, product, read_serial,
};

use super::array::JoinedArray;
use super::store::CombinedStore;
use super::{CombineOptions, joined};
use crate::convert::{ConvertOptions, Progress, at_once, encode_and_write, nodes_by_path};
use crate::{Format, create};

/// Options for appending stores to an existing one.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AppendOptions {
    /// How stores are opened, and how their attributes are merged.
    pub combine: CombineOptions,
    /// Memory limit for elements being copied.
    pub memory: u64,
    /// Only check, and report what would be added.
    pub dry_run: bool,
}

hyperslab_core::option_setters! { AppendOptions {
    with_combine = combine: CombineOptions,
    with_memory = memory: u64,
    with_dry_run = dry_run: bool,
} }

impl Default for AppendOptions {
    fn default() -> Self {
        Self { combine: CombineOptions::default(), memory: 256 << 20, dry_run: false }
    }
}

/// The result of an append.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct AppendReport {
    /// The number of arrays that became longer.
    pub arrays: u64,
    /// The size of the added elements in bytes.
    pub bytes: u64,
    /// The old length of the dimension.
    pub before: u64,
    /// The new length of the dimension.
    pub after: u64,
    /// Notes for the user: node and text.
    pub notes: Vec<(String, String)>,
}

/// Appends stores to the end of another, along a dimension. All arrays of the target with that dimension become
/// longer, or none does. A geometry grows along `vertex`: it gets the vertices, objects and links of the stores. HDF5
/// and Zarr commit each array separately, so a process killed during the commit can leave arrays of different
/// lengths.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) if a store disagrees with the target, or does not follow it; the message names the
/// difference, and nothing changes. [`Unsupported`](Error::Unsupported) if the target's format cannot grow.
pub fn append_along(
    target: &Path,
    sources: &[PathBuf],
    dimension: &str,
    options: &AppendOptions,
    progress: &Progress,
) -> Result<AppendReport> {
    #[cfg(feature = "remote")]
    if let Some(url) = crate::location::remote_url(target) {
        return append_remote(url, sources, dimension, options, progress);
    }
    if let Some(format) = geometry_format(target, options)? {
        return append_geometry((target, format), sources, dimension, options, progress);
    }
    append_with(target, sources, dimension, options, progress, |format, options| {
        create(target, format, options)
    })
}

/// The target's format if it is a geometry.
fn geometry_format(target: &Path, options: &AppendOptions) -> Result<Option<Format>> {
    let format = crate::open_with(target, &options.combine.open)?.driver();
    Ok(format.filter(|format| format.writes_geometry()))
}

/// The accepted names of the only dimension of a geometry.
const VERTICES: [&str; 2] = ["vertex", "vertices"];

/// Like [`append_along`], for a geometry: adds vertices, objects and links.
fn append_geometry(
    (target, format): (&Path, Format),
    sources: &[PathBuf],
    dimension: &str,
    options: &AppendOptions,
    progress: &Progress,
) -> Result<AppendReport> {
    if !VERTICES.contains(&dimension) {
        let problem =
            format!("{} is a geometry, which grows along \"vertex\" only", crate::location_name(target));
        return Err(Error::invalid(problem));
    }
    check_sources(target, sources)?;
    if !options.combine.drop.is_empty() || !options.combine.keep.is_empty() {
        return Err(Error::invalid(format!(
            "{} is a geometry, to which sources are added as a whole",
            target.display()
        )));
    }
    let open = |path: &PathBuf| crate::open_with(path, &options.combine.open);
    let sources = sources.iter().map(open).collect::<Result<Vec<_>>>()?;
    let converting = ConvertOptions::default().with_memory(options.memory);
    let (before, done) =
        crate::convert::append_geometry(target, format, &sources, (&converting, options.dry_run), progress)?;
    let notes = done.losses.into_iter().map(|loss| (loss.path, loss.what)).collect();
    Ok(AppendReport { arrays: done.arrays, bytes: done.bytes, before, after: before + done.rows, notes })
}

fn check_sources(target: &Path, sources: &[PathBuf]) -> Result<()> {
    if let Some(path) = sources.iter().find(|path| crate::convert::same_file(path, target)) {
        return Err(Error::invalid(format!("{} cannot be added to itself", crate::location_name(path))));
    }
    if sources.is_empty() {
        return Err(Error::invalid("nothing to add: no file matches"));
    }
    Ok(())
}

/// Refuses to leave out arrays of the target that have the dimension, because all of them grow.
fn check_dropped(target: &Path, dimension: &str, options: &CombineOptions) -> Result<()> {
    if !options.keep.is_empty() {
        return Err(Error::invalid(
            "all arrays along the dimension grow; drop others instead of keeping some",
        ));
    }
    for name in &options.drop {
        let store = crate::open_with(target, &options.open)?;
        if store.node(name).is_err() {
            continue;
        }
        let below = normal_path(name);
        let is_below = |path: &str| {
            path.strip_prefix(&below).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let grows = nodes_by_path(&store)?.into_iter().find(|(path, node)| {
            let has =
                |array: &dyn Array| array.schema().dimensions.iter().flatten().any(|own| own == dimension);
            is_below(path) && matches!(node, Node::Array(array) if has(&**array))
        });
        if let Some((path, _)) = grows {
            return Err(Error::invalid(format!(
                "{}: {path} grows along {dimension} with the others and cannot be left out; remove it from the store first",
                target.display()
            )));
        }
    }
    Ok(())
}

/// Like [`append_along`], for a store at a URL.
#[cfg(feature = "remote")]
fn append_remote(
    url: &str,
    sources: &[PathBuf],
    dimension: &str,
    options: &AppendOptions,
    progress: &Progress,
) -> Result<AppendReport> {
    use crate::upload::{change_directory, change_file, format_at, with_copy, with_sink};

    let target = Path::new(url);
    let own = &options.combine.open.remote;
    let remote = hyperslab_remote::Remote::new(url, own)?;
    let format = format_at(url, own)?;
    if format.info().created_form() == hyperslab_core::StoreForm::File {
        let work = |local: &Path| append_along(local, sources, dimension, options, progress);
        return if options.dry_run { with_copy(&remote, work) } else { change_file(&remote, progress, work) };
    }
    if options.dry_run {
        return with_sink(&remote, format, |sink| {
            append_with(target, sources, dimension, options, progress, |_, options| sink(options))
        });
    }
    change_directory(&remote, format, progress, |sink| {
        append_with(target, sources, dimension, options, progress, |_, options| sink(options))
    })
}

fn append_with(
    target: &Path,
    sources: &[PathBuf],
    dimension: &str,
    options: &AppendOptions,
    progress: &Progress,
    sink: impl FnOnce(Format, &CreateOptions) -> Result<Box<dyn Sink>>,
) -> Result<AppendReport> {
    check_sources(target, sources)?;
    check_dropped(target, dimension, &options.combine)?;
    let mut paths = vec![target.to_owned()];
    paths.extend_from_slice(sources);
    let (combination, combined) = joined(&paths, dimension, &options.combine, true)?;
    let format = combination.store.driver().ok_or_else(|| {
        Error::unsupported(crate::location_name(target), "adding to a store of an unknown format")
    })?;
    // Existing attributes of the target are kept.
    let notes = combination.notes.into_iter().filter(|(_, note)| !note.starts_with("attributes ")).collect();
    let mut report = AppendReport { notes, ..AppendReport::default() };
    let create_options = CreateOptions::default().with_append(true);
    let mut sink = sink(format, &create_options)?;
    let additions = combined
        .joined
        .iter()
        .map(|path| Addition::new(&mut *sink, &combined, path))
        .collect::<Result<Vec<_>>>()?;
    for addition in &additions {
        report.arrays += u64::from(!addition.array.schema().is_dimension);
        report.bytes = report.bytes.saturating_add(addition.bytes());
        (report.before, report.after) = (addition.before, addition.after());
    }
    if options.dry_run {
        return Ok(report);
    }
    progress.total.fetch_add(report.bytes, Ordering::Relaxed);
    for addition in &additions {
        addition.write(options.memory, progress)?;
    }
    sink.finish()?;
    sink.commit()?;
    Ok(report)
}

/// An addition to one array.
struct Addition {
    array: Arc<JoinedArray>,
    sink: Arc<dyn ArraySink>,
    /// The old length.
    before: u64,
}

impl Addition {
    fn new(sink: &mut dyn Sink, combined: &CombinedStore, path: &str) -> Result<Self> {
        let array = combined.array(path)?;
        // The target comes first; it may be empty.
        let before = array.pieces.first().filter(|piece| piece.part == 0).map_or(0, |piece| piece.length);
        let sink = sink.grow(path, array.schema().shape()).map_err(|why| match why {
            Error::Invalid(why) => Error::invalid(format!(
                "{path}: {why}; arrays grow along unlimited dimensions, see `tet convert --unlimited`"
            )),
            other => other,
        })?;
        Ok(Self { array, sink, before })
    }

    fn after(&self) -> u64 {
        self.array.schema().shape()[self.array.axis]
    }

    /// The size of the new elements in bytes.
    fn bytes(&self) -> u64 {
        let schema = self.array.schema();
        let mut shape = schema.shape().to_vec();
        shape[self.array.axis] = self.after() - self.before;
        let item = schema.dtype.size().unwrap_or(16) as u64;
        product(&shape).unwrap_or(u64::MAX).saturating_mul(item)
    }

    /// Writes the new chunks, and those that the old end cut off.
    fn write(&self, memory: u64, progress: &Progress) -> Result<()> {
        let (schema, axis, grid) = (self.array.schema(), self.array.axis, self.sink.grid());
        if self.before == self.after() || schema.is_dimension {
            return Ok(());
        }
        let extent = grid.chunk_shape()[axis];
        let first = self.before / extent;
        let mut counts = grid.extents();
        counts[axis] = counts[axis].saturating_sub(first);
        let numbers = Grid::new(&counts, &vec![1; counts.len()])?;
        let item = schema.dtype.size().unwrap_or(64) as u64;
        let chunk_bytes = product(grid.chunk_shape()).unwrap_or(u64::MAX).saturating_mul(item).max(1);
        let make = |number: u64| {
            progress.check_cancelled()?;
            let mut chunk: ChunkCoord = numbers.coord(number);
            chunk[axis] += first;
            let region: Region = grid.region(&chunk);
            let values = read_serial(&*self.array, Positions::region(&region))?;
            Ok((self.sink.encode(&chunk, &values.elements)?, chunk))
        };
        let write = |(encoded, chunk): (_, ChunkCoord)| {
            self.sink.write(&chunk, encoded)?;
            let mut region = grid.region(&chunk);
            let end = region.start[axis] + region.shape[axis];
            region.shape[axis] = end - region.start[axis].max(self.before).min(end);
            let added = region.cells().unwrap_or(0).saturating_mul(item);
            progress.done.fetch_add(added, Ordering::Relaxed);
            Ok(())
        };
        let kept = if self.sink.any_order() { None } else { Some(at_once(memory / 4, chunk_bytes)) };
        encode_and_write(numbers.chunks().unwrap_or(0), kept, |numbers| Ok(numbers.collect()), make, write)
    }
}
