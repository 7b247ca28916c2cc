//! Fills new and growing arrays region by region.
//!
//! Formats take whole chunks. Complete chunks are stored at once; partial ones wait for the rest of their cells.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyperslab_core::{
    ArraySink, AxisPositions, Buffer, CellOrder, ChunkCoord, DType, Elements, Error, Fill, Grid, Layout,
    Positions, Region, Result, Sink, Values, copy_box,
};
use rayon::prelude::*;

use crate::ArrayReader;

/// An array being written, filled region by region from any thread. Complete chunks are stored at once; partial chunks wait in
/// memory for the rest of their cells.
#[derive(Debug)]
pub struct RegionWriter {
    sink: Arc<dyn ArraySink>,
    dtype: DType,
    fill: Fill,
    parts: Mutex<HashMap<ChunkCoord, PartialChunk>>,
}

/// Extends an array: once the sink is committed, `values` follow the existing values along an axis. The sink must add to the
/// store from which the array was opened.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) for an axis that does not exist, or values of another type or with other extents along the other
/// axes; otherwise as [`Sink::grow`].
pub fn extend(
    sink: &mut dyn Sink,
    old: &ArrayReader,
    path: &str,
    axis: usize,
    values: &Values,
) -> Result<()> {
    let schema = old.schema();
    let fits = values.shape.len() == schema.shape().len()
        && axis < schema.shape().len()
        && (0..values.shape.len()).all(|other| other == axis || values.shape[other] == schema.shape()[other]);
    if !fits {
        return Err(Error::invalid(format!(
            "cannot append shape {:?} to shape {:?} along axis {axis}",
            values.shape,
            schema.shape()
        )));
    }
    let (old_end, mut shape) = (schema.shape()[axis], schema.shape().to_vec());
    shape[axis] = old_end
        .checked_add(values.shape[axis])
        .ok_or_else(|| Error::invalid(format!("{path}: axis {axis} cannot be that long")))?;
    let grown = sink.grow(path, &shape)?;
    // The sink has locked the store; the reader may predate data that another writer added.
    if let Some(now) = grown.grown_from().filter(|now| *now != schema.shape()) {
        return Err(Error::invalid(format!(
            "{path} has grown from {:?} to {now:?} since it was opened; open it again",
            schema.shape()
        )));
    }
    let target = RegionWriter::new(grown, schema.dtype.clone(), schema.fill.clone());
    // Chunks clipped by the old edge are stored again, including their old cells.
    let cut = old_end - old_end % target.grid().chunk_shape()[axis];
    let mut edge = Region::whole(schema.shape());
    (edge.start[axis], edge.shape[axis]) = (cut, old_end - cut);
    if cut < old_end && values.shape[axis] > 0 {
        let axes = edge.start.iter().zip(&edge.shape);
        let axes =
            axes.map(|(start, count)| AxisPositions { start: *start, count: *count, step: 1, keep: true });
        target.assign(&edge, &old.read_positions(Positions { axes: axes.collect() })?)?;
    }
    let mut added = Region::whole(&values.shape);
    added.start[axis] = old_end;
    target.assign(&added, values)?;
    target.finish()
}

/// A partially filled chunk.
#[derive(Debug)]
struct PartialChunk {
    cells: Cells,
    /// Which cells have been assigned.
    there: Vec<bool>,
    left: usize,
}

/// The cells of a partially filled chunk.
#[derive(Debug)]
enum Cells {
    Fixed(Buffer),
    /// Variable-length elements, or elements some of which are missing.
    Any(Elements),
}

impl Cells {
    fn elements(self) -> Elements {
        match self {
            Self::Fixed(cells) => Elements::fixed(cells.freeze()),
            Self::Any(elements) => elements,
        }
    }
}

impl RegionWriter {
    /// Fills an array of this type. Unassigned cells of a stored chunk hold `fill`.
    #[must_use]
    pub fn new(sink: Arc<dyn ArraySink>, dtype: DType, fill: Fill) -> Self {
        Self { sink, dtype, fill, parts: Mutex::default() }
    }

    /// The shape and the chunks.
    #[must_use]
    pub fn grid(&self) -> &Grid {
        self.sink.grid()
    }

    /// Assigns values (C order) to a region.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) if the region is outside the array, the number of values does not match, or a chunk was
    /// already stored; any error from encoding or writing.
    pub fn assign(&self, region: &Region, values: &Values) -> Result<()> {
        let shape = self.grid().shape();
        let inside = region.start.len() == shape.len()
            && region.shape.len() == shape.len()
            && (0..shape.len()).all(|axis| {
                region.start[axis].checked_add(region.shape[axis]).is_some_and(|end| end <= shape[axis])
            });
        if !inside || values.dtype != self.dtype || Some(values.len() as u64) != region.cells() {
            return Err(Error::invalid(format!(
                "cannot assign {} values of type {} to the region {:?} at {:?} of an array of {} {shape:?}",
                values.len(),
                values.dtype,
                region.shape,
                region.start,
                self.dtype
            )));
        }
        assign(self, region, values)
    }

    fn parts(&self) -> MutexGuard<'_, HashMap<ChunkCoord, PartialChunk>> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn store(&self, chunk: &ChunkCoord, elements: &Elements) -> Result<()> {
        let encoded = self.sink.encode(chunk, elements)?;
        self.sink.write(chunk, encoded)
    }

    /// Stores the chunks that were never completed, with the fill value in their unassigned cells.
    ///
    /// # Errors
    ///
    /// Any error from encoding or writing.
    pub fn finish(&self) -> Result<()> {
        let mut parts: Vec<_> = std::mem::take(&mut *self.parts()).into_iter().collect();
        // In grid order, so that the same input gives the same file.
        parts.sort_by(|(one, _), (other, _)| one.cmp(other));
        for (chunk, part) in parts {
            self.store(&chunk, &part.cells.elements())?;
        }
        Ok(())
    }

    fn new_part(&self, cells: usize) -> Result<PartialChunk> {
        let fill = match &self.fill {
            Fill::Element(element) => Some(element),
            _ => None,
        };
        let Some(item) = self.dtype.size() else {
            let zero = Elements::zero(&self.dtype);
            let filled = Elements::gather(&self.dtype, &[fill.unwrap_or(&zero)], &vec![(0, 0); cells])?;
            return Ok(PartialChunk { cells: Cells::Any(filled), there: vec![false; cells], left: cells });
        };
        let mut buffer = Buffer::zeroed(cells * item)?;
        let element = fill.and_then(Elements::as_fixed);
        if let Some(element) = element.filter(|element| element.len() == item && item > 0) {
            for cell in buffer.as_mut_slice().chunks_exact_mut(item) {
                cell.copy_from_slice(element);
            }
        }
        Ok(PartialChunk { cells: Cells::Fixed(buffer), there: vec![false; cells], left: cells })
    }
}

fn assign(target: &RegionWriter, region: &Region, values: &Values) -> Result<()> {
    let grid = target.grid();
    if region.shape.contains(&0) {
        return Ok(());
    }
    let first: Vec<u64> =
        region.start.iter().zip(grid.chunk_shape()).map(|(start, chunk)| start / chunk).collect();
    let counts: Vec<u64> = (0..first.len())
        .map(|axis| {
            let last = region.start[axis] + region.shape[axis] - 1;
            last / grid.chunk_shape()[axis] - first[axis] + 1
        })
        .collect();
    let touched = Grid::single(&[]);
    let touched = if counts.is_empty() { touched } else { Grid::new(&counts, &vec![1; counts.len()])? };
    let count = usize::try_from(touched.chunks().unwrap_or(0)).unwrap_or(usize::MAX);
    (0..count).into_par_iter().with_max_len(1).try_for_each(|number| {
        let local = touched.coord(number as u64);
        let chunk: ChunkCoord = local.iter().zip(&first).map(|(at, first)| at + first).collect();
        assign_chunk(target, &chunk, region, values)
    })
}

fn assign_chunk(target: &RegionWriter, chunk: &ChunkCoord, region: &Region, values: &Values) -> Result<()> {
    let own = target.grid().region(chunk);
    let both = if own.shape.is_empty() { Some(own.clone()) } else { own.intersect(region) };
    let Some(both) = both else { return Ok(()) };
    let whole = both == own;
    let cells = usize::try_from(own.cells().unwrap_or(u64::MAX))
        .map_err(|_| Error::invalid("a chunk is larger than memory"))?;
    // Fixed-size elements without missing ones are copied by rows, others one by one.
    let plain =
        target.dtype.size().zip(values.elements.as_fixed().filter(|_| values.elements.validity.is_none()));
    if whole {
        let Some((item, bytes)) = plain else {
            return target.store(chunk, &picked(target, region, &both, values)?);
        };
        let mut buffer = Buffer::zeroed(cells * item)?;
        let to = Layout::packed(&own.shape, item);
        copy_box(bytes, &layout(region, &both, item), buffer.as_mut_slice(), &to, &both.shape, item)?;
        return target.store(chunk, &Elements::fixed(buffer.freeze()));
    }
    let mut parts = target.parts();
    let mut part = match parts.remove(chunk) {
        Some(part) => part,
        None => target.new_part(cells)?,
    };
    let places = offsets(&own, &both);
    part.cells = match (part.cells, plain) {
        (Cells::Fixed(mut buffer), Some((item, bytes))) => {
            let (from, to) = (layout(region, &both, item), layout(&own, &both, item));
            copy_box(bytes, &from, buffer.as_mut_slice(), &to, &both.shape, item)?;
            Cells::Fixed(buffer)
        }
        (before, _) => {
            let mut picks: Vec<(usize, usize)> = (0..cells).map(|cell| (0, cell)).collect();
            for (to, from) in places.iter().zip(offsets(region, &both)) {
                picks[*to] = (1, from);
            }
            let sources = [&before.elements(), &values.elements];
            Cells::Any(Elements::gather(&target.dtype, &sources, &picks)?)
        }
    };
    for cell in places {
        if !std::mem::replace(&mut part.there[cell], true) {
            part.left -= 1;
        }
    }
    if part.left > 0 {
        parts.insert(chunk.clone(), part);
        return Ok(());
    }
    drop(parts);
    target.store(chunk, &part.cells.elements())
}

/// The layout of a box in the packed cells of a region that contains it.
fn layout(region: &Region, inside: &Region, item: usize) -> Layout {
    let mut layout = Layout::packed(&region.shape, item);
    for ((start, own), stride) in inside.start.iter().zip(&region.start).zip(&layout.strides) {
        layout.offset += (start - own) as usize * stride.unsigned_abs();
    }
    layout
}

/// The cells of a box, as C-order offsets in the region that contains it.
fn offsets(region: &Region, inside: &Region) -> Vec<usize> {
    let strides = CellOrder::RowMajor.strides(&region.shape);
    let count = inside.cells().unwrap_or(0);
    (0..count)
        .map(|cell| {
            let (mut left, mut at) = (cell, 0);
            for axis in (0..strides.len()).rev() {
                at += (inside.start[axis] - region.start[axis] + left % inside.shape[axis]) * strides[axis];
                left /= inside.shape[axis];
            }
            at as usize
        })
        .collect()
}

fn picked(target: &RegionWriter, region: &Region, inside: &Region, values: &Values) -> Result<Elements> {
    let picks: Vec<_> = offsets(region, inside).into_iter().map(|cell| (0, cell)).collect();
    Elements::gather(&target.dtype, &[&values.elements], &picks)
}

#[cfg(test)]
#[cfg(feature = "tet")]
mod tests {
    use std::path::Path;

    use hyperslab_core::{ArraySpec, Attributes, DType, Selection};
    use proptest::prelude::*;

    use super::*;
    use crate::{Format, create};
    use hyperslab_core::CreateOptions;

    fn numbers(shape: &[u64], first: u32) -> Values {
        let count = shape.iter().product::<u64>() as u32;
        let bytes: Vec<u8> = (first..first + count).flat_map(u32::to_ne_bytes).collect();
        Values::new(DType::UInt32, shape, Elements::fixed(bytes)).unwrap()
    }

    fn write(path: &Path, chunk: &[u64], values: &Values) {
        let mut sink = create(path, Format::TET, &CreateOptions::default()).unwrap();
        sink.group("/", &Attributes::new()).unwrap();
        let spec = ArraySpec::new(values.dtype.clone(), Grid::new(&values.shape, chunk).unwrap());
        let array = RegionWriter::new(sink.array("/t", &spec).unwrap(), values.dtype.clone(), Fill::Zero);
        array.assign(&Region::whole(&values.shape), values).unwrap();
        array.finish().unwrap();
        sink.commit().unwrap();
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn appended_values_follow_existing_ones(
            shape in prop::collection::vec(1_u64..7, 1..4), chunk in 1_u64..4, axis in 0_usize..3, more in 0_u64..6,
        ) {
            let (axis, folder) = (axis % shape.len(), tempfile::tempdir().unwrap());
            let path = folder.path().join("t.tet");
            let old = numbers(&shape, 0);
            write(&path, &vec![chunk; shape.len()], &old);
            let mut added = shape.clone();
            added[axis] = more;
            let new = numbers(&added, 10_000);
            let options = CreateOptions::default().with_append(true);
            let store = crate::open(&path).unwrap();
            let mut sink = create(&path, Format::TET, &options).unwrap();
            extend(&mut *sink, &store.array("/t").unwrap(), "/t", axis, &new).unwrap();
            sink.commit().unwrap();
            drop(store);
            let store = crate::open(&path).unwrap();
            let found = store.array("/t").unwrap().read(&Selection::all()).unwrap();
            let inner: u64 = shape[axis + 1..].iter().product();
            let outer: u64 = shape[..axis].iter().product();
            let (old, new) = (old.as_slice::<u32>().unwrap(), new.as_slice::<u32>().unwrap());
            let (a, b) = ((shape[axis] * inner) as usize, (more * inner) as usize);
            let expected: Vec<u32> = (0..outer as usize)
                .flat_map(|at| [&old[at * a..(at + 1) * a], &new[at * b..(at + 1) * b]].concat())
                .collect();
            prop_assert_eq!(found.as_slice::<u32>().unwrap(), &expected[..]);
        }
    }

    #[test]
    fn wrong_extents_types_and_axes_are_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.tet");
        write(&path, &[2, 2], &numbers(&[3, 4], 0));
        let store = crate::open(&path).unwrap();
        let array = store.array("/t").unwrap();
        let options = CreateOptions::default().with_append(true);
        let mut sink = create(&path, Format::TET, &options).unwrap();
        assert!(extend(&mut *sink, &array, "/t", 0, &numbers(&[1, 3], 0)).is_err());
        assert!(extend(&mut *sink, &array, "/t", 2, &numbers(&[3, 4], 0)).is_err());
        assert!(extend(&mut *sink, &array, "/none", 0, &numbers(&[1, 4], 0)).is_err());
        let floats = Values::new(DType::Float32, &[1, 4], Elements::fixed(vec![0; 16])).unwrap();
        assert!(extend(&mut *sink, &array, "/t", 0, &floats).is_err());
        let folder = tempfile::tempdir().unwrap();
        let mut sink =
            create(&folder.path().join("new.npy"), Format::NPY, &CreateOptions::default()).unwrap();
        assert!(sink.grow("/t", &[4]).unwrap_err().is_unsupported());
    }
}
