//! Content hashes: equal for equal values, whatever the format, the chunking and the pipeline.
//!
//! Types, shapes and values count; names, attributes, fill values and chunks do not. Two arrays have the same hash if
//! [`diff`](mod@crate::diff) finds the same types, shapes and values. The hash (version 2) is based on BLAKE3 and defined in
//! `docs/notes/content-hash.md`.
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

use std::collections::HashMap;

use blake3::Hasher;
use hyperslab_core::{DType, Elements, Error, Extents, GeometryQuery, Node, Region, Result, Values, product};
use rayon::prelude::*;

use crate::geometry::GeometryReader;
use crate::written::{fill_element, fold_pieces, halves, written_chunks};
use crate::{ArrayReader, OpenStore, TableReader, convert};

pub use blake3::Hash;

/// The maximum number of elements in a box that is not halved. Part of the definition.
const BLOCK_CELLS: u64 = 1 << 16;
/// The memory limit for values being hashed.
const MEMORY: u64 = 256 << 20;

fn start(kind: &str) -> Hasher {
    let mut hasher = Hasher::new();
    hasher.update(format!("hyperslab content hash 2 {kind}\n").as_bytes());
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

/// The hash of an array's type, shape and values. The array is read box by box on all cores; parts that were never written are
/// not read.
///
/// # Errors
///
/// Any error from reading.
pub fn array(reader: &ArrayReader) -> Result<Hash> {
    let schema = reader.schema();
    let whole = Region::whole(schema.shape());
    let listed = written_chunks(&**reader.inner(), MEMORY / 4)?;
    let item = schema.dtype.size().unwrap_or(64).max(1) as u64;
    let most = (MEMORY.min(reader.memory()) / item).max(BLOCK_CELLS);
    let (written, most) = match listed {
        // A few chunks, far apart: use boxes not much larger than a chunk.
        Some(chunks) => {
            let chunk = product(schema.grid.chunk_shape()).unwrap_or(u64::MAX).saturating_mul(8);
            (chunks.iter().map(|chunk| schema.grid.region(chunk)).collect(), chunk.clamp(BLOCK_CELLS, most))
        }
        None => (vec![whole.clone()], most),
    };
    let mut unwritten =
        Repeated { dtype: &schema.dtype, element: fill_element(schema), known: HashMap::new() };
    let mut take = |region: &Region, written: bool| {
        if !written {
            return unwritten.tree(&region.shape);
        }
        let values = reader.read_positions(hyperslab_core::Positions::region(region))?;
        tree(&values, &Region::whole(&region.shape))
    };
    let root =
        fold_pieces(&whole, &written.iter().collect::<Vec<_>>(), most, &mut take, &|a, b| join(&a, &b))?;
    let mut hasher = start("array");
    head(&mut hasher, &schema.dtype, schema.shape());
    hasher.update(root.as_bytes());
    Ok(hasher.finalize())
}

/// The hash of values in memory, equal to that of an array that holds them.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) if the elements do not have the layout of their type.
pub fn values(values: &Values) -> Result<Hash> {
    let mut hasher = start("array");
    head(&mut hasher, &values.dtype, &values.shape);
    hasher.update(tree(values, &Region::whole(&values.shape))?.as_bytes());
    Ok(hasher.finalize())
}

/// The hash of a box of values: of its elements, or of the hashes of its halves. Part of the definition.
fn tree(values: &Values, region: &Region) -> Result<Hash> {
    match halves(region).filter(|_| region.cells().is_none_or(|cells| cells > BLOCK_CELLS)) {
        Some([low, high]) => {
            let (low, high) = rayon::join(|| tree(values, &low), || tree(values, &high));
            Ok(join(&low?, &high?))
        }
        None => Ok(leaf(&values.dtype, &convert::cut(&values.dtype, values, region)?)),
    }
}

fn leaf(dtype: &DType, elements: &Elements) -> Hash {
    let mut bytes = Vec::new();
    canonical::block(dtype, elements, 0, elements.len(dtype), &mut bytes);
    blake3::hash(&bytes)
}

/// The hash of a box from those of its halves. No block of elements begins with this byte.
fn join(low: &Hash, high: &Hash) -> Hash {
    let mut hasher = Hasher::new();
    hasher.update(&[2]).update(low.as_bytes()).update(high.as_bytes());
    hasher.finalize()
}

/// Boxes in which every cell holds the same element. The order of the axes does not matter for the hash of such a box, so repeated
/// halving gives only a few different shapes.
struct Repeated<'a> {
    dtype: &'a DType,
    element: Elements,
    /// By sorted shape.
    known: HashMap<Extents, Hash>,
}

impl Repeated<'_> {
    fn tree(&mut self, shape: &[u64]) -> Result<Hash> {
        let mut shape = Extents::from_slice(shape);
        shape.sort_unstable();
        if let Some(known) = self.known.get(&shape) {
            return Ok(*known);
        }
        let region = Region::whole(&shape);
        let hash = match (region.cells(), halves(&region)) {
            (Some(cells @ ..=BLOCK_CELLS), _) => {
                let cells = vec![(0, 0); cells as usize];
                leaf(self.dtype, &Elements::gather(self.dtype, &[&self.element], &cells)?)
            }
            (_, Some([low, high])) => join(&self.tree(&low.shape)?, &self.tree(&high.shape)?),
            (_, None) => return Err(Error::invalid(format!("cannot hash a box of {shape:?} cells"))),
        };
        self.known.insert(shape, hash);
        Ok(hash)
    }
}

/// The hash of a table's columns and rows. The order of the rows does not matter.
///
/// # Errors
///
/// Any error from reading.
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
/// Any error from reading.
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

/// The hashes of all nodes that hold values, at and below a path. Returned paths are relative to it.
///
/// # Errors
///
/// Any error from reading. A node that cannot be read ends the operation.
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

/// A single hash of several nodes, made from their paths and hashes, sorted by path. For a single node, its own hash.
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
