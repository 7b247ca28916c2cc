//! Any format to any other: what the source's traits answer is what the target's sink is told.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hyperslab_core::{
    ArraySchema, ArraySink, ArraySpec, DType, Elements, Error, Filter, Grid, Layout, Node, Positions, Region,
    Result, Selection, Values, copy_box, product,
};
use rayon::prelude::*;

use crate::{ArrayReader, CreateOptions, Format, OpenStore, create};

/// How to convert.
#[derive(Debug, Clone)]
pub struct ConvertOptions {
    /// Only this node and what is below it.
    pub node: Option<String>,
    /// Only this part of the (single) array.
    pub selection: Selection,
    /// The target's chunks; the source's own, or a default, when left out.
    pub chunk_shape: Option<Vec<u64>>,
    /// Gather chunks in shards of this shape, in formats that have them.
    pub shard_shape: Option<Vec<u64>>,
    /// The target's pipeline; the target's default when left out.
    pub filters: Option<Vec<Filter>>,
    /// Replace a target that exists.
    pub replace: bool,
    /// Add to a target that exists, in formats that can.
    pub append: bool,
    /// Refuse what the target cannot hold, instead of noting it.
    pub strict: bool,
    /// Memory for elements on their way.
    pub memory: u64,
}

impl Default for ConvertOptions {
    fn default() -> Self {
        Self {
            node: None,
            selection: Selection::all(),
            chunk_shape: None,
            shard_shape: None,
            filters: None,
            replace: false,
            append: false,
            strict: false,
            memory: 256 << 20,
        }
    }
}

/// How far a conversion is. Shared with whoever shows it.
#[derive(Debug, Default)]
pub struct Progress {
    /// Bytes of elements to convert in all.
    pub total: AtomicU64,
    /// Bytes of elements that are done.
    pub done: AtomicU64,
    /// Set to stop: the conversion ends with an error and leaves nothing behind.
    pub stop: AtomicBool,
}

/// What became of everything in the source.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct ConvertReport {
    /// Arrays that were written.
    pub arrays: u64,
    /// Bytes of their elements.
    pub bytes: u64,
    /// What the target cannot hold, and what was done about it.
    pub notes: Vec<String>,
}

/// Converts a store. The target appears whole or not at all.
///
/// # Errors
///
/// Whatever reading the source and writing the target say; [`Invalid`](Error::Invalid) when stopped.
pub fn convert(
    source: &OpenStore,
    target: &Path,
    format: Format,
    options: &ConvertOptions,
    progress: &Progress,
) -> Result<ConvertReport> {
    if same_file(source.path(), target) {
        return Err(Error::invalid(format!("{} is the source itself", target.display())));
    }
    let nodes = chosen_nodes(source, options.node.as_deref())?;
    let arrays = nodes.iter().filter(|(_, node)| matches!(node, Node::Array(_))).count();
    if arrays != 1 && options.selection != Selection::all() {
        return Err(Error::invalid(format!("a selection needs one array, there are {arrays}; name one")));
    }
    let provenance = CreateOptions {
        replace: options.replace,
        append: options.append,
        source: Some(source.format().to_owned()),
        shard_shape: options.shard_shape.clone(),
    };
    let mut sink = create(target, format, &provenance)?;
    let mut report = ConvertReport::default();
    let mut copies = Vec::new();
    // All nodes are declared before the first chunk is written: formats lay out their directories then.
    for (path, node) in &nodes {
        match node {
            Node::Group(attributes) => sink.group(path, attributes)?,
            Node::Array(array) => {
                let reader = source.reader(std::sync::Arc::clone(array));
                let copy = Copy::new(reader, options)?;
                progress.total.fetch_add(copy.bytes, Ordering::Relaxed);
                let array_sink = sink.array(path, &copy.spec)?;
                copies.push((copy, array_sink));
            }
            other => report.notes.push(format!("{path}: a {} is not converted", other.kind())),
        }
    }
    if let (true, Some(note)) = (options.strict, report.notes.first()) {
        return Err(Error::invalid(format!("{note}; nothing was written")));
    }
    for (copy, array_sink) in copies {
        copy.run(&*array_sink, options.memory, progress)?;
        report.arrays += 1;
        report.bytes += copy.bytes;
    }
    sink.commit()?;
    Ok(report)
}

fn same_file(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

/// The nodes to convert, parents first. One that cannot be read ends the conversion: nothing is dropped in silence.
fn chosen_nodes(source: &OpenStore, only: Option<&str>) -> Result<Vec<(String, Node)>> {
    let mut nodes = Vec::new();
    let only = only.map(hyperslab_core::normal_path);
    source.walk(&mut |path, node| {
        let chosen = only.as_ref().is_none_or(|only| {
            only == "/"
                || path == only
                || path.strip_prefix(only.as_str()).is_some_and(|rest| rest.starts_with('/'))
        });
        if chosen
            || matches!(node, Ok(Node::Group(_))) && only.as_ref().is_some_and(|only| is_above(path, only))
        {
            nodes.push((path.to_owned(), node?));
        }
        Ok(())
    })?;
    if let Some(only) = only
        && !nodes.iter().any(|(path, _)| *path == only)
    {
        return Err(Error::not_found(source.path().display().to_string(), only));
    }
    Ok(nodes)
}

fn is_above(path: &str, below: &str) -> bool {
    path == "/" || below.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'))
}

/// One array on its way.
#[derive(Debug)]
struct Copy {
    reader: ArrayReader,
    positions: Positions,
    spec: ArraySpec,
    bytes: u64,
}

impl Copy {
    fn new(reader: ArrayReader, options: &ConvertOptions) -> Result<Self> {
        let positions = reader.resolve(&options.selection)?;
        let schema = reader.schema();
        let spec = spec_of(schema, &positions, options)?;
        let item = schema.dtype.size().unwrap_or(16) as u64;
        let bytes = positions.cells().unwrap_or(u64::MAX).saturating_mul(item);
        Ok(Self { reader, positions, spec, bytes })
    }

    /// Reads blocks that memory holds, each of whole target chunks, and writes their chunks.
    fn run(&self, sink: &dyn ArraySink, memory: u64, progress: &Progress) -> Result<()> {
        let item = self.spec.dtype.size().unwrap_or(64) as u64;
        let blocks = block_grid(sink.grid(), &self.source_chunk_shape(), item, memory / 2)?;
        for number in 0..blocks.chunks().unwrap_or(0) {
            if progress.stop.load(Ordering::Relaxed) {
                return Err(Error::invalid("stopped; nothing was written"));
            }
            let region = blocks.region(&blocks.coord(number));
            let values = self.reader.read_positions(self.within(&region))?;
            write_block(sink, &self.spec.dtype, &region, &values)?;
            progress.done.fetch_add(region.cells().unwrap_or(0).saturating_mul(item), Ordering::Relaxed);
        }
        Ok(())
    }

    /// The source's chunks, along the axes that the result keeps.
    fn source_chunk_shape(&self) -> Vec<u64> {
        let chunks = self.reader.schema().grid.chunk_shape();
        self.positions
            .axes
            .iter()
            .zip(chunks)
            .filter(|(axis, _)| axis.keep)
            .map(|(_, chunk)| *chunk)
            .collect()
    }

    /// The positions of a region of the result.
    fn within(&self, region: &Region) -> Positions {
        let mut positions = self.positions.clone();
        let kept = positions.axes.iter_mut().filter(|axis| axis.keep);
        for (axis, (start, count)) in kept.zip(region.start.iter().zip(&region.shape)) {
            axis.start = axis.start.wrapping_add_signed(axis.step.wrapping_mul(*start as i64));
            axis.count = *count;
        }
        positions
    }
}

/// What the target is told of an array.
fn spec_of(schema: &ArraySchema, positions: &Positions, options: &ConvertOptions) -> Result<ArraySpec> {
    let shape = positions.shape();
    let kept = |index: usize| positions.axes.get(index).is_some_and(|axis| axis.keep);
    let keep = |values: &[u64]| -> Vec<u64> {
        values.iter().enumerate().filter(|(index, _)| kept(*index)).map(|(_, value)| *value).collect()
    };
    let chunk_shape = match &options.chunk_shape {
        Some(chunk_shape) => chunk_shape.clone(),
        None if schema.chunked => keep(schema.grid.chunk_shape()),
        None => default_chunk_shape(&shape, schema.dtype.size().unwrap_or(16) as u64),
    };
    // A chunk larger than the array would be stored padded by some formats.
    let chunk_shape: Vec<u64> =
        chunk_shape.iter().zip(&shape).map(|(chunk, extent)| (*chunk).min((*extent).max(1))).collect();
    let mut spec = ArraySpec::new(schema.dtype.clone(), Grid::new(&shape, &chunk_shape)?);
    let whole =
        positions.axes.iter().zip(schema.shape()).all(|(axis, extent)| axis.count == *extent && axis.keep);
    if whole {
        spec.max_shape.clone_from(&schema.max_shape);
        spec.labels.clone_from(&schema.labels);
    }
    spec.dimensions = schema
        .dimensions
        .iter()
        .enumerate()
        .filter(|(index, _)| kept(*index))
        .map(|(_, name)| name.clone())
        .collect();
    spec.nullable = schema.nullable;
    spec.fill = schema.fill.clone();
    spec.attributes = schema.attributes.clone();
    spec.filters = options.filters.clone().unwrap_or_default();
    Ok(spec)
}

/// Chunks of about a mebibyte, as near to cubes as the shape allows: good for slices in any direction.
pub fn default_chunk_shape(shape: &[u64], item: u64) -> Vec<u64> {
    let mut chunk: Vec<u64> = shape.iter().map(|extent| (*extent).max(1)).collect();
    let most = ((1 << 20) / item.max(1)).max(1);
    while product(&chunk).is_none_or(|cells| cells > most) {
        let Some(longest) = chunk.iter_mut().max() else { break };
        if *longest == 1 {
            break;
        }
        *longest = longest.div_ceil(2);
    }
    chunk
}

/// Blocks of whole target chunks that memory holds, grown from the last axis on so that each source chunk is
/// decoded once, or as few times as memory allows.
pub(crate) fn block_grid(target: &Grid, source_chunk: &[u64], item: u64, memory: u64) -> Result<Grid> {
    let mut block: Vec<u64> = target.chunk_shape().to_vec();
    let fits =
        |block: &[u64]| product(block).and_then(|cells| cells.checked_mul(item)).is_some_and(|b| b <= memory);
    // First reach over whole source chunks, then over whole axes, last axis first.
    for axis in (0..block.len()).rev() {
        let chunk = target.chunk_shape()[axis];
        let reach =
            source_chunk.get(axis).map_or(chunk, |source| source.div_ceil(chunk).saturating_mul(chunk));
        let before = std::mem::replace(
            &mut block[axis],
            reach.min(target.shape()[axis].max(1).next_multiple_of(chunk)),
        );
        if !fits(&block) {
            block[axis] = before;
        }
    }
    for axis in (0..block.len()).rev() {
        let (step, end) = (block[axis], target.shape()[axis].max(1));
        while block[axis] < end {
            let before = block[axis];
            block[axis] = (before * 2).min(end.next_multiple_of(step));
            if !fits(&block) || !block[axis].is_multiple_of(target.chunk_shape()[axis]) {
                block[axis] = before;
                break;
            }
        }
    }
    Grid::new(target.shape(), &block)
}

/// Cuts a block into the target's chunks, encodes them on all cores and writes them in order.
fn write_block(sink: &dyn ArraySink, dtype: &DType, region: &Region, values: &Values) -> Result<()> {
    let grid = sink.grid();
    let first: Vec<u64> =
        region.start.iter().zip(grid.chunk_shape()).map(|(start, chunk)| start / chunk).collect();
    let inside = Grid::new(&region.shape, grid.chunk_shape())?;
    let count = usize::try_from(inside.chunks().unwrap_or(0)).unwrap_or(usize::MAX);
    let turn = Mutex::new(());
    (0..count).into_par_iter().with_max_len(1).try_for_each(|number| {
        let local = inside.coord(number as u64);
        let chunk = local.iter().zip(&first).map(|(at, first)| at + first).collect();
        let elements = cut(dtype, values, &inside.region(&local))?;
        let encoded = sink.encode(&chunk, &elements)?;
        // One writer at a time; the others go on encoding.
        let _turn = turn.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        sink.write(&chunk, encoded)
    })
}

/// A box of values as a row of elements.
pub(crate) fn cut(dtype: &DType, values: &Values, region: &Region) -> Result<Elements> {
    if region.shape[..] == values.shape[..] {
        return Ok(values.elements.clone());
    }
    let (Some(item), Some(bytes), None) =
        (dtype.size(), values.elements.as_fixed(), &values.elements.validity)
    else {
        return cut_elements(dtype, values, region);
    };
    let cells = usize::try_from(region.cells().unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
    let mut packed = hyperslab_core::Buffer::zeroed(cells.saturating_mul(item))?;
    let mut from = Layout::packed(&values.shape, item);
    from.offset = region
        .start
        .iter()
        .zip(&from.strides)
        .map(|(start, stride)| *start as usize * stride.unsigned_abs())
        .sum();
    let to = Layout::packed(&region.shape, item);
    copy_box(bytes, &from, packed.as_mut_slice(), &to, &region.shape, item)?;
    Ok(Elements::fixed(packed.freeze()))
}

fn cut_elements(dtype: &DType, values: &Values, region: &Region) -> Result<Elements> {
    let strides = hyperslab_core::CellOrder::RowMajor.strides(&values.shape);
    let cells = region.cells().unwrap_or(0);
    let picks: Vec<_> = (0..cells)
        .map(|cell| {
            let (mut left, mut at) = (cell, 0);
            for axis in (0..region.shape.len()).rev() {
                at += (region.start[axis] + left % region.shape[axis]) * strides[axis];
                left /= region.shape[axis];
            }
            (0, at as usize)
        })
        .collect();
    Elements::gather(dtype, &[&values.elements], &picks)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Blocks are made of whole target chunks and stay within memory, unless one chunk alone does not.
        #[test]
        fn blocks_are_whole_chunks(
            dims in prop::collection::vec((1_u64..100, 1_u64..20, 1_u64..20), 1..4),
            memory in 1_u64..100_000,
        ) {
            let shape: Vec<_> = dims.iter().map(|d| d.0).collect();
            let chunk: Vec<_> = dims.iter().map(|d| d.1).collect();
            let source: Vec<_> = dims.iter().map(|d| d.2).collect();
            let blocks = block_grid(&Grid::new(&shape, &chunk).unwrap(), &source, 4, memory).unwrap();
            prop_assert!(blocks.chunk_shape().iter().zip(&chunk).all(|(block, chunk)| block % chunk == 0));
            let bytes = product(blocks.chunk_shape()).unwrap() * 4;
            prop_assert!(bytes <= memory || blocks.chunk_shape() == &chunk[..]);
        }
    }

    #[test]
    fn default_chunks_are_about_a_mebibyte() {
        assert_eq!(default_chunk_shape(&[1024, 1024, 1024], 4), [64, 64, 64]);
        assert_eq!(default_chunk_shape(&[10, 3], 8), [10, 3]);
        assert_eq!(default_chunk_shape(&[], 8), [0_u64; 0]);
    }
}
