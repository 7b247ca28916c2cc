//! Writes an array as an OME-Zarr image: the array itself and coarser levels of it, described as in version 0.5 of
//! the convention.
//!
//! A level is an array that is computed from the source piece by piece when its chunks are converted, so memory does
//! not depend on the factor between levels.

mod reduce;

use std::ops::ControlFlow;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use bytes::Bytes;
use hyperslab_core::{
    Array, ArraySchema, Attribute, Attributes, AxisPositions, Blob, BlobKey, ChunkCoord, ChunkRef, Depth,
    Edges, Error, Extents, Grid, Labels, Layer, Layout, Node, Positions, Region, Report, Result, Selection,
    Store, StoredArray, child_path, copy_box, did_you_mean, normal_path, product, read_serial,
};
use serde_json::{Value, json};

use super::{ConvertOptions, ConvertReport, Progress, chosen, convert};
use crate::{Format, OpenStore};

/// Maximum number of source bytes held at once while computing a part of a chunk.
const PIECE_BYTES: u64 = 16 << 20;
/// Further levels would consist of a single cell.
const MOST_LEVELS: usize = 32;

/// How the cells of a coarser level are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Downsample {
    /// The mean of each block; integers are rounded.
    #[default]
    Mean,
    /// The most frequent value of each block, and the smallest of equally frequent ones. Suitable for labels.
    Mode,
    /// The first value of each block.
    Nearest,
}

impl FromStr for Downsample {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "mean" => Ok(Self::Mean),
            "mode" => Ok(Self::Mode),
            "nearest" => Ok(Self::Nearest),
            other => {
                let hint = did_you_mean(other, ["mean", "mode", "nearest"]);
                Err(Error::invalid(format!("unknown method {other}{hint}")))
            }
        }
    }
}

/// Writes an array as a multiscale image with `levels` coarser levels, each at half the resolution of the one before.
/// Time and channel axes keep their length.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) if the array is not an image; [`Unsupported`](Error::Unsupported) if the format lacks
/// the convention; otherwise as [`convert`].
pub fn convert_multiscale(
    source: &OpenStore,
    target: &Path,
    format: Format,
    (levels, downsample): (usize, Downsample),
    options: &ConvertOptions,
    progress: &Progress,
) -> Result<ConvertReport> {
    if let Some((view, options)) = chosen::view(source, options)? {
        return convert_multiscale(&view, target, format, (levels, downsample), &options, progress);
    }
    let is_old = options.variant.is_some_and(|variant| variant.name().contains('2'));
    if !format.info().capabilities.multiscales || is_old {
        let what = "writing coarser levels (OME-Zarr 0.5) in a format other than Zarr v3";
        return Err(Error::unsupported(target.display().to_string(), what));
    }
    if options.selection != Selection::all() || options.append {
        return Err(Error::invalid("coarser levels require a whole array and a new store"));
    }
    if levels > MOST_LEVELS {
        return Err(Error::invalid(format!(
            "{levels} levels were requested, but at most {MOST_LEVELS} are possible"
        )));
    }
    let node = options.node.clone().map_or_else(|| source.only_node(), Ok)?;
    let array = Arc::clone(source.array(&node)?.inner());
    let store = ImageStore::new(source, &node, array, levels, downsample)?;
    let view = OpenStore::from_store(Arc::new(store), source.path());
    let options = ConvertOptions { node: None, keep_bookkeeping: false, ..options.clone() };
    convert(&view, target, format, &options, progress)
}

/// A group that contains one image.
#[derive(Debug)]
struct ImageStore {
    name: Arc<str>,
    attributes: Attributes,
    levels: Vec<Arc<dyn Array>>,
}

impl ImageStore {
    fn new(
        source: &OpenStore,
        node: &str,
        array: Arc<dyn Array>,
        levels: usize,
        downsample: Downsample,
    ) -> Result<Self> {
        let axes = Axis::of(array.schema())?;
        if downsample != Downsample::Nearest && !reduce::holds(&array.schema().dtype) {
            let dtype = &array.schema().dtype;
            return Err(Error::invalid(format!(
                "elements of type {dtype} can only be downsampled with 'nearest'"
            )));
        }
        let mut own = vec![Arc::new(LevelArray::finest(Arc::clone(&array), &axes)?) as Arc<dyn Array>];
        let mut datasets = vec![dataset(0, &vec![1; axes.len()], downsample)];
        for level in 1..=levels {
            let factors = factors(array.schema().shape(), &axes, level);
            own.push(Arc::new(LevelArray::coarser(Arc::clone(&array), &axes, &factors, downsample)?));
            datasets.push(dataset(level, &factors, downsample));
        }
        let name = node.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("image");
        let kind = match downsample {
            Downsample::Mean => "mean",
            Downsample::Mode => "mode",
            Downsample::Nearest => "nearest",
        };
        let axes: Vec<Value> =
            axes.iter().map(|axis| json!({"name": axis.name, "type": axis.kind})).collect();
        let image = json!({"name": name, "axes": axes, "datasets": datasets, "type": kind});
        let mut attributes = Attributes::new();
        attributes.set("ome", Attribute::Json(json!({"version": "0.5", "multiscales": [image]})));
        Ok(Self { name: Arc::clone(source.inner().name()), attributes, levels: own })
    }
}

/// The entry for a level in the metadata. Its coordinates are the centres of the blocks, or their first cells for
/// `Nearest`.
fn dataset(level: usize, factors: &[u64], downsample: Downsample) -> Value {
    let scale: Vec<f64> = factors.iter().map(|factor| *factor as f64).collect();
    let mut transformations = vec![json!({"type": "scale", "scale": scale})];
    if downsample != Downsample::Nearest && factors.iter().any(|factor| *factor > 1) {
        let translation: Vec<f64> = factors.iter().map(|factor| (*factor as f64 - 1.0) / 2.0).collect();
        transformations.push(json!({"type": "translation", "translation": translation}));
    }
    json!({"path": level.to_string(), "coordinateTransformations": transformations})
}

/// The factor of each axis at a level. An axis of one cell is not reduced.
fn factors(shape: &[u64], axes: &[Axis], level: usize) -> Vec<u64> {
    let factor = |(extent, axis): (&u64, &Axis)| {
        let halvings = extent.max(&1).next_power_of_two().trailing_zeros() as usize;
        if axis.kind == "space" { 1_u64 << level.min(halvings) } else { 1 }
    };
    shape.iter().zip(axes).map(factor).collect()
}

/// An axis of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Axis {
    name: String,
    kind: &'static str,
}

impl Axis {
    /// The axes of an array, by dimension name if those are image axes, otherwise by their number.
    fn of(schema: &ArraySchema) -> Result<Vec<Self>> {
        let rank = schema.shape().len();
        if !(2..=5).contains(&rank) {
            return Err(Error::invalid(format!("an image has 2 to 5 axes, the array has {rank}")));
        }
        let named: Option<Vec<Self>> =
            schema.dimensions.iter().map(|name| Self::named(name.as_ref()?)).collect();
        if let Some(named) = named.filter(|axes| Self::are_an_image(axes)) {
            return Ok(named);
        }
        let usual = ["t", "c", "z", "y", "x"];
        Ok(usual[usual.len() - rank..].iter().filter_map(|name| Self::named(name)).collect())
    }

    fn named(name: &str) -> Option<Self> {
        let kind = match name.to_ascii_lowercase().as_str() {
            "" => return None,
            "t" | "time" => "time",
            "c" | "ch" | "channel" | "channels" => "channel",
            _ => "space",
        };
        Some(Self { name: name.to_owned(), kind })
    }

    /// Checks the order: time, then channels, then two or three axes of space, all with different names.
    fn are_an_image(axes: &[Self]) -> bool {
        let order = |axis: &Self| ["time", "channel", "space"].iter().position(|kind| *kind == axis.kind);
        let sorted = axes.windows(2).all(|pair| order(&pair[0]) <= order(&pair[1]));
        let count = |kind: &str| axes.iter().filter(|axis| axis.kind == kind).count();
        let distinct =
            axes.iter().enumerate().all(|(at, axis)| axes[..at].iter().all(|own| own.name != axis.name));
        sorted && distinct && (2..=3).contains(&count("space")) && count("time") < 2 && count("channel") < 2
    }
}

impl Store for ImageStore {
    fn format(&self) -> &'static str {
        "image"
    }

    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn children(&self, path: &str) -> Result<Vec<String>> {
        let is_root = normal_path(path) == "/";
        Ok(if is_root { (0..self.levels.len()).map(|level| level.to_string()).collect() } else { Vec::new() })
    }

    fn node(&self, path: &str) -> Result<Node> {
        let path = normal_path(path);
        if path == "/" {
            return Ok(Node::Group(self.attributes.clone()));
        }
        let level = (0..self.levels.len()).find(|level| child_path("/", &level.to_string()) == path);
        match level {
            Some(level) => Ok(Node::Array(Arc::clone(&self.levels[level]))),
            None => Err(Error::not_found(Arc::clone(&self.name), path)),
        }
    }

    fn verify(&self, _: Depth, _: &mut Report) -> Result<()> {
        Ok(())
    }
}

/// A level: the source with the image's axis names, or a reduction of its blocks.
#[derive(Debug)]
struct LevelArray {
    source: Arc<dyn Array>,
    schema: ArraySchema,
    /// `None` for the source itself.
    blocks: Option<(Extents, Downsample)>,
}

impl LevelArray {
    fn finest(source: Arc<dyn Array>, axes: &[Axis]) -> Result<Self> {
        let mut schema = source.schema().clone();
        describe(&mut schema, axes);
        Ok(Self { source, schema, blocks: None })
    }

    fn coarser(
        source: Arc<dyn Array>,
        axes: &[Axis],
        factors: &[u64],
        downsample: Downsample,
    ) -> Result<Self> {
        let own = source.schema();
        let shape: Extents =
            own.shape().iter().zip(factors).map(|(extent, by)| extent.div_ceil(*by)).collect();
        let chunk: Extents = own
            .grid
            .chunk_shape()
            .iter()
            .zip(&shape)
            .map(|(chunk, extent)| (*chunk).min((*extent).max(1)))
            .collect();
        let mut schema = ArraySchema::new(own.dtype.clone(), Grid::new(&shape, &chunk)?);
        schema.fill = own.fill.clone();
        schema.nullable = own.nullable;
        schema.filters.clone_from(&own.filters);
        schema.attributes = own.attributes.clone();
        schema.edges = Edges::Clipped;
        describe(&mut schema, axes);
        Ok(Self { source, schema, blocks: Some((factors.into(), downsample)) })
    }

    /// Computes the cells of a region of this level.
    fn part(&self, region: &Region, factors: &[u64], downsample: Downsample) -> Result<Vec<u8>> {
        let shape = self.source.schema().shape();
        let axes = |axis: usize| {
            let (start, count) = (region.start[axis] * factors[axis], region.shape[axis]);
            match downsample {
                Downsample::Nearest => AxisPositions { start, count, step: factors[axis] as i64, keep: true },
                _ => {
                    let end = ((region.start[axis] + count) * factors[axis]).min(shape[axis]);
                    AxisPositions { start, count: end - start, step: 1, keep: true }
                }
            }
        };
        let positions = Positions { axes: (0..shape.len()).map(axes).collect() };
        let extents = positions.shape();
        let values = read_serial(&*self.source, positions)?;
        let bytes = values.elements.as_fixed();
        let bytes =
            bytes.ok_or_else(|| Error::invalid(format!("{}: elements of no fixed size", self.name())))?;
        match downsample {
            Downsample::Nearest => Ok(bytes.to_vec()),
            Downsample::Mean => reduce::mean(&self.schema.dtype, bytes, &extents, factors, &region.shape),
            Downsample::Mode => reduce::mode(&self.schema.dtype, bytes, &extents, factors, &region.shape),
        }
    }
}

fn describe(schema: &mut ArraySchema, axes: &[Axis]) {
    schema.dimensions = axes.iter().map(|axis| Some(axis.name.clone())).collect();
    schema.labels = vec![Labels::None; axes.len()];
    schema.max_shape = schema.shape().iter().map(|extent| Some(*extent)).collect();
    schema.stored = StoredArray::default();
}

impl Array for LevelArray {
    fn schema(&self) -> &ArraySchema {
        &self.schema
    }

    fn name(&self) -> &str {
        self.source.name()
    }

    fn locate(&self, chunks: &[ChunkCoord]) -> Result<Vec<Option<ChunkRef>>> {
        if self.blocks.is_none() {
            return self.source.locate(chunks);
        }
        let layer =
            || Layer { spans: Default::default(), filter_mask: 0, plain: false, region: None, tag: 0 };
        Ok(chunks.iter().map(|_| Some(ChunkRef { layers: [layer()].into_iter().collect() })).collect())
    }

    fn blob(&self, key: &BlobKey) -> Result<Arc<dyn Blob>> {
        self.source.blob(key)
    }

    fn decode(
        &self,
        chunk: &ChunkCoord,
        reference: &ChunkRef,
        stored: &[Bytes],
        out: &mut [u8],
    ) -> Result<()> {
        let Some((factors, downsample)) = &self.blocks else {
            return self.source.decode(chunk, reference, stored, out);
        };
        let item = self.schema.dtype.size().unwrap_or(0);
        let whole = self.schema.grid.region(chunk);
        let place = Layout::packed(&whole.shape, item);
        let block = factors.iter().try_fold(item as u64, |bytes, factor| bytes.checked_mul(*factor));
        let most = (PIECE_BYTES / block.unwrap_or(u64::MAX).max(1)).max(1);
        for part in pieces(&whole, most) {
            let cells = self.part(&part, factors, *downsample)?;
            let mut to = place.clone();
            for axis in 0..part.start.len() {
                to.offset +=
                    (part.start[axis] - whole.start[axis]) as usize * to.strides[axis].unsigned_abs();
            }
            copy_box(&cells, &Layout::packed(&part.shape, item), out, &to, &part.shape, item)?;
        }
        Ok(())
    }

    fn visit_chunks(
        &self,
        visit: &mut dyn FnMut(ChunkCoord, ChunkRef) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        if self.blocks.is_none() {
            return self.source.visit_chunks(visit);
        }
        for number in 0..self.schema.grid.chunks().unwrap_or(0) {
            let chunk = self.schema.grid.coord(number);
            if let Some(reference) = self.locate(std::slice::from_ref(&chunk))?.pop().flatten()
                && visit(chunk, reference)?.is_break()
            {
                break;
            }
        }
        Ok(())
    }

    fn stored_form(&self, chunk: &ChunkCoord, reference: &ChunkRef) -> Option<hyperslab_core::StoredForm> {
        self.blocks.is_none().then(|| self.source.stored_form(chunk, reference))?
    }

    crate::adapt::forward_to!(source: fetch);
}

/// Divides a box into pieces of at most `most` cells.
fn pieces(whole: &Region, most: u64) -> Vec<Region> {
    let mut waiting = vec![whole.clone()];
    let mut done = Vec::new();
    while let Some(region) = waiting.pop() {
        let cells = product(&region.shape).unwrap_or(u64::MAX);
        let longest = (0..region.shape.len()).max_by_key(|axis| region.shape[*axis]);
        match longest.filter(|axis| cells > most && region.shape[*axis] > 1) {
            None => done.push(region),
            Some(axis) => {
                let (mut first, mut second) = (region.clone(), region);
                first.shape[axis] /= 2;
                second.start[axis] += first.shape[axis];
                second.shape[axis] -= first.shape[axis];
                waiting.extend([second, first]);
            }
        }
    }
    done
}

#[cfg(test)]
mod tests {
    use hyperslab_core::DType;

    use super::*;

    #[test]
    fn axes_get_the_names_of_an_image() {
        let schema = |names: &[&str]| {
            let shape = vec![4; names.len()];
            let mut schema = ArraySchema::new(DType::UInt8, Grid::new(&shape, &shape).unwrap());
            schema.dimensions = names.iter().map(|name| Some((*name).to_owned())).collect();
            schema
        };
        let names = |given: &[&str]| -> Vec<String> {
            Axis::of(&schema(given)).unwrap().into_iter().map(|axis| axis.name).collect()
        };
        assert_eq!(names(&["time", "lat", "lon"]), ["time", "lat", "lon"]);
        assert_eq!(names(&["lat", "time", "lon"]), ["z", "y", "x"]);
        assert_eq!(names(&["a", "b", "c", "d"]), ["c", "z", "y", "x"]);
        assert!(Axis::of(&schema(&["x"])).is_err());
    }

    #[test]
    fn pieces_cover_a_box_once() {
        let whole = Region { start: Extents::from_slice(&[3, 0]), shape: Extents::from_slice(&[7, 5]) };
        let all = pieces(&whole, 4);
        assert!(all.iter().all(|part| product(&part.shape).unwrap() <= 4));
        assert_eq!(all.iter().map(|part| product(&part.shape).unwrap()).sum::<u64>(), 35);
    }
}
