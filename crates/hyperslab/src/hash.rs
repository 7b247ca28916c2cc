//! Content hashes: equal for equal values, whatever the format, the chunking and the pipeline.
//!
//! Types, shapes and values count; names, attributes, fill values and chunks do not. Two arrays have the same hash when
//! [`diff`](mod@crate::diff) finds the same types, shapes and values in them. The definition, version 1, uses BLAKE3 and
//! stands in `docs/notes/content-hash.md`.
//!
//! ```
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("x.npy");
//! # let values = hyperslab::Values::new(hyperslab::DType::UInt8, &[2, 3], hyperslab::Elements::fixed(vec![0, 1, 2, 3, 4, 5]))?;
//! # hyperslab::export::write(&values, &path, false)?;
//! let store = hyperslab::open(&path)?;
//! let hash = hyperslab::hash::array(&store.array("/")?)?;
//! println!("{}", hash.to_hex());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub(crate) mod canonical;

use blake3::Hasher;
use hyperslab_core::{DType, Error, Extents, GeometryQuery, Grid, Node, Result, Values, product};
use rayon::prelude::*;

use crate::geometry::GeometryReader;
use crate::{ArrayReader, OpenStore, TableReader, convert};

pub use blake3::Hash;

/// Elements in a block at most. Part of the definition.
const BLOCK_CELLS: u64 = 1 << 16;
/// Memory for values on their way.
const MEMORY: u64 = 256 << 20;

/// The logical blocks of a shape: the longest axis (the first of them) is halved, rounding up, until a block has at most
/// 65,536 elements. Part of the definition: depends on the shape alone.
pub(crate) fn block_shape(shape: &[u64]) -> Extents {
    let mut block: Extents = shape.iter().map(|extent| (*extent).max(1)).collect();
    while product(&block).is_none_or(|cells| cells > BLOCK_CELLS) {
        let longest = block.iter().copied().max().unwrap_or(1);
        let Some(axis) = block.iter_mut().find(|extent| **extent == longest) else { break };
        *axis = axis.div_ceil(2);
    }
    block
}

/// The blocks of an array, and the larger boxes that are read at once: whole blocks, whole chunks where memory allows.
pub(crate) fn blocks(reader: &ArrayReader, memory: u64) -> Result<(Grid, Grid)> {
    let schema = reader.schema();
    let blocks = Grid::new(schema.shape(), &block_shape(schema.shape()))?;
    let item = schema.dtype.size().unwrap_or(64).max(1) as u64;
    let boxes = convert::block_grid(&blocks, schema.grid.chunk_shape(), item, memory.min(reader.memory()))?;
    Ok((blocks, boxes))
}

fn start(kind: &str) -> Hasher {
    let mut hasher = Hasher::new();
    hasher.update(format!("hyperslab content hash 1 {kind}\n").as_bytes());
    hasher
}

fn text(hasher: &mut Hasher, text: &str) {
    number(hasher, text.len() as u64);
    hasher.update(text.as_bytes());
}

fn number(hasher: &mut Hasher, number: u64) {
    hasher.update(&number.to_le_bytes());
}

fn head(hasher: &mut Hasher, dtype: &DType, shape: &[u64]) {
    text(hasher, &canonical::type_name(dtype));
    number(hasher, shape.len() as u64);
    shape.iter().for_each(|extent| number(hasher, *extent));
}

/// The hash of an array's type, shape and values. Read block by block, on all cores.
///
/// # Errors
///
/// Whatever reading says.
pub fn array(reader: &ArrayReader) -> Result<Hash> {
    let schema = reader.schema();
    let (blocks, boxes) = blocks(reader, MEMORY)?;
    let count = blocks.chunks().and_then(|count| usize::try_from(count).ok());
    let count = count.filter(|count| *count < 1 << 31);
    let count =
        count.ok_or_else(|| Error::invalid(format!("{}: too large to hash", reader.inner().name())))?;
    let mut hashes = vec![[0; 32]; count];
    for number in 0..boxes.chunks().unwrap_or(0) {
        let region = boxes.region(&boxes.coord(number));
        let values = reader.read_positions(hyperslab_core::Positions::region(&region))?;
        let inside = Grid::new(&region.shape, blocks.chunk_shape())?;
        let done: Vec<(usize, [u8; 32])> = (0..inside.chunks().unwrap_or(0) as usize)
            .into_par_iter()
            .map(|local| {
                let coord = inside.coord(local as u64);
                let elements = convert::cut(&schema.dtype, &values, &inside.region(&coord))?;
                let mut bytes = Vec::new();
                canonical::block(&schema.dtype, &elements, 0, elements.len(&schema.dtype), &mut bytes);
                let first = region.start.iter().zip(blocks.chunk_shape()).map(|(start, block)| start / block);
                let place: Extents = first.zip(&coord).map(|(first, at)| first + at).collect();
                let place = blocks.linear(&place).unwrap_or(0) as usize;
                Ok((place, *blake3::hash(&bytes).as_bytes()))
            })
            .collect::<Result<_>>()?;
        for (place, hash) in done {
            hashes[place] = hash;
        }
    }
    let mut hasher = start("array");
    head(&mut hasher, &schema.dtype, schema.shape());
    for hash in &hashes {
        hasher.update(hash);
    }
    Ok(hasher.finalize())
}

/// The hash of values in memory: the same as that of an array that holds them.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) when the elements are not held as their type says.
pub fn values(values: &Values) -> Result<Hash> {
    let mut hasher = start("array");
    head(&mut hasher, &values.dtype, &values.shape);
    let blocks = Grid::new(&values.shape, &block_shape(&values.shape))?;
    for number in 0..blocks.chunks().unwrap_or(0) {
        let elements = convert::cut(&values.dtype, values, &blocks.region(&blocks.coord(number)))?;
        let mut bytes = Vec::new();
        canonical::block(&values.dtype, &elements, 0, elements.len(&values.dtype), &mut bytes);
        hasher.update(blake3::hash(&bytes).as_bytes());
    }
    Ok(hasher.finalize())
}

/// The hash of a table's columns and rows, in whatever order the rows come.
///
/// # Errors
///
/// Whatever reading says.
pub fn table(reader: &TableReader) -> Result<Hash> {
    let rows = reader.rows_of(&hyperslab_core::Scan::default())?;
    let (mut sum, mut count) = ([0_u64; 4], 0_u64);
    for batch in rows.batches {
        let batch = batch?;
        let part = (0..batch.rows)
            .into_par_iter()
            .fold(
                || ([0; 4], Vec::new()),
                |(sum, mut bytes), row| {
                    bytes.clear();
                    for (column, elements) in rows.columns.iter().zip(&batch.columns) {
                        canonical::block(&column.dtype, elements, row, row + 1, &mut bytes);
                    }
                    (add(sum, lanes(&blake3::hash(&bytes))), bytes)
                },
            )
            .map(|(sum, _)| sum)
            .reduce(|| [0; 4], add);
        sum = add(sum, part);
        count += batch.rows as u64;
    }
    let mut hasher = start("table");
    number(&mut hasher, rows.columns.len() as u64);
    for column in &rows.columns {
        text(&mut hasher, &column.name);
        text(&mut hasher, &canonical::type_name(&column.dtype));
    }
    number(&mut hasher, count);
    sum.iter().for_each(|lane| number(&mut hasher, *lane));
    Ok(hasher.finalize())
}

fn lanes(hash: &Hash) -> [u64; 4] {
    let mut lanes = [0; 4];
    for (lane, bytes) in lanes.iter_mut().zip(hash.as_bytes().as_chunks().0) {
        *lane = u64::from_le_bytes(*bytes);
    }
    lanes
}

fn add(a: [u64; 4], b: [u64; 4]) -> [u64; 4] {
    [a[0].wrapping_add(b[0]), a[1].wrapping_add(b[1]), a[2].wrapping_add(b[2]), a[3].wrapping_add(b[3])]
}

/// The hash of a geometry: vertices, attributes, links and objects of every level.
///
/// # Errors
///
/// Whatever reading says.
pub fn geometry(reader: &GeometryReader) -> Result<Hash> {
    let mut hasher = start("geometry");
    let levels = reader.inner().levels()?.len();
    number(&mut hasher, levels as u64);
    for level in 0..levels {
        let query = GeometryQuery { level: Some(level), ..GeometryQuery::default() };
        let data = reader.query(&query)?.data;
        hasher.update(values(&data.vertices)?.as_bytes());
        let mut attributes: Vec<_> = data.attributes.iter().collect();
        attributes.sort_by(|a, b| a.0.cmp(&b.0));
        number(&mut hasher, attributes.len() as u64);
        for (name, held) in attributes {
            text(&mut hasher, name);
            hasher.update(values(held)?.as_bytes());
        }
        number(&mut hasher, u64::from(data.links.is_some()));
        if let Some(links) = &data.links {
            hasher.update(values(links)?.as_bytes());
        }
        let mut objects = data.objects;
        objects.sort();
        number(&mut hasher, objects.len() as u64);
        for (id, rows) in objects {
            hasher.update(&id.to_le_bytes());
            number(&mut hasher, rows.len() as u64);
            rows.iter().for_each(|row| number(&mut hasher, *row));
        }
    }
    Ok(hasher.finalize())
}

/// The hashes of the nodes of a store that hold values, at and below a path: paths are below that one.
///
/// # Errors
///
/// Whatever reading says: a node that cannot be read ends it.
pub fn nodes(store: &OpenStore, root: &str) -> Result<Vec<(String, Hash)>> {
    let root = hyperslab_core::normal_path(root);
    let mut found = Vec::new();
    for (path, node) in crate::diff::below(store, &root)? {
        let full = crate::diff::join(&root, &path);
        let hash = match node {
            Node::Array(held) => array(&store.reader(held))?,
            Node::Table(_) => table(&store.table(&full)?)?,
            Node::Geometry(_) => geometry(&store.geometry(&full)?)?,
            _ => continue,
        };
        found.push((path, hash));
    }
    Ok(found)
}

/// One hash of several nodes: of their paths and hashes, sorted by path. A single node is its own.
#[must_use]
pub fn together(nodes: &[(String, Hash)]) -> Hash {
    if let [(_, only)] = nodes {
        return *only;
    }
    let mut sorted: Vec<_> = nodes.iter().collect();
    sorted.sort_by(|a, b| a.0.cmp(&b.0));
    let mut hasher = start("store");
    number(&mut hasher, sorted.len() as u64);
    for (path, hash) in sorted {
        text(&mut hasher, path);
        hasher.update(hash.as_bytes());
    }
    hasher.finalize()
}

#[cfg(test)]
mod tests;
