//! The parts of a chunk that a mapping covers: boxes of the source, and their destinations.

use hyperslab_core::{AxisPositions, Extents, Grid, Layout, Place, Positions, Region, Result, product};

use super::axis::{Axis, Run};
use super::mapping::Mapping;
use crate::file::File;
use crate::selection::Selected;

/// Selections that are not products of axes are walked cell by cell, up to this many.
const MAX_CELLS: u64 = 1 << 24;

/// A box of the source and the corresponding box of the virtual dataset: one run per axis of each.
#[derive(Debug, Clone)]
pub(crate) struct Piece {
    from: Vec<Run>,
    /// One per axis of the virtual dataset.
    to: Vec<Run>,
    /// The axes of the virtual dataset along which the box is longer than one, and those of the source.
    pairs: Vec<(usize, usize)>,
}

impl Piece {
    /// The positions to read from the source.
    pub(crate) fn positions(&self, place: Place<'_>) -> Result<Positions> {
        let axis = |run: &Run| {
            let step = i64::try_from(step_of(run));
            let step = step.map_err(|_| place.corrupt(format!("cells {} apart", run.step)))?;
            Ok(AxisPositions { start: run.cell, count: run.count, step, keep: true })
        };
        Ok(Positions { axes: self.from.iter().map(axis).collect::<Result<_>>()? })
    }

    /// The approximate number of source chunks that it touches.
    pub(crate) fn chunks(&self, grid: &Grid) -> u64 {
        let along = |(run, extent): (&Run, &u64)| {
            let span = run.count.saturating_sub(1).saturating_mul(run.step);
            (span / (*extent).max(1)).saturating_add(1).min(run.count)
        };
        self.from.iter().zip(grid.chunk_shape()).map(along).fold(1, u64::saturating_mul)
    }

    /// Cells along the axes that are longer than one.
    pub(crate) fn counts(&self) -> Extents {
        self.pairs.iter().map(|(to, _)| self.to[*to].count).collect()
    }

    /// Its layout in a chunk of this region, whose cells have the layout `whole`.
    pub(crate) fn place(&self, region: &Region, whole: &Layout, place: Place<'_>) -> Result<Layout> {
        let outside = || place.corrupt("cells lie outside their chunk");
        let mut offset = whole.offset;
        for (axis, run) in self.to.iter().enumerate() {
            let cell = run.cell.checked_sub(region.start[axis]).and_then(|cell| usize::try_from(cell).ok());
            let by = cell.and_then(|cell| cell.checked_mul(whole.strides[axis].unsigned_abs()));
            offset = by.and_then(|by| offset.checked_add(by)).ok_or_else(outside)?;
        }
        let strides = self.pairs.iter().map(|(to, _)| {
            let step = isize::try_from(step_of(&self.to[*to])).ok();
            step.and_then(|step| whole.strides[*to].checked_mul(step)).ok_or_else(outside)
        });
        Ok(Layout { offset, strides: strides.collect::<Result<_>>()? })
    }
}

/// The distance between the cells of a run. For a single cell the stored distance is irrelevant.
const fn step_of(run: &Run) -> u64 {
    if run.count > 1 { run.step } else { 1 }
}

/// What a selection selects along each axis; `None` if it is not a product of axes.
fn axes(selected: &Selected, shape: &[u64], settled: Option<(usize, u64)>) -> Option<Vec<Axis>> {
    match selected {
        Selected::All => Some(shape.iter().map(|extent| Axis::whole(*extent)).collect()),
        Selected::Regular(slabs) if slabs.len() == shape.len() => {
            let axis = |(index, (slab, extent)): (usize, (&crate::selection::Slab, &u64))| match settled {
                Some((open, length)) if open == index => Axis::new(*slab, *extent).with_length(length),
                _ => Axis::new(*slab, *extent),
            };
            Some(slabs.iter().zip(shape).enumerate().map(axis).collect())
        }
        _ => None,
    }
}

/// Passes each part of the region that the mapping covers to `visit`.
pub(crate) fn visit(
    file: &File,
    mapping: &Mapping,
    region: &Region,
    source: &[u64],
    whole: &[u64],
    place: Place<'_>,
    visit: &mut dyn FnMut(&Piece) -> Result<()>,
) -> Result<()> {
    if mapping.from == Selected::None || mapping.to == Selected::None {
        return Ok(());
    }
    let settled = mapping.settled;
    let from = axes(&mapping.from, source, settled.map(|settled| (settled.from, settled.length)));
    let to = axes(&mapping.to, whole, settled.map(|settled| (settled.to, settled.length)));
    if let (Some(from), Some(to)) = (&from, &to)
        && let Some(pairs) = pair(from, to)
    {
        return product_of_axes(from, to, &pairs, region, source, visit);
    }
    cell_by_cell(file, mapping, region, source, whole, place, visit)
}

/// Axes longer than one correspond in order and have equal lengths.
fn pair(from: &[Axis], to: &[Axis]) -> Option<Vec<(usize, usize)>> {
    let long = |axes: &[Axis]| (0..axes.len()).filter(|axis| axes[*axis].length != 1).collect::<Vec<_>>();
    let (theirs, ours) = (long(from), long(to));
    let same = theirs.len() == ours.len()
        && theirs.iter().zip(&ours).all(|(theirs, ours)| from[*theirs].length == to[*ours].length);
    same.then(|| ours.into_iter().zip(theirs).collect())
}

fn product_of_axes(
    from: &[Axis],
    to: &[Axis],
    pairs: &[(usize, usize)],
    region: &Region,
    source: &[u64],
    visit: &mut dyn FnMut(&Piece) -> Result<()>,
) -> Result<()> {
    let single = |axis: &Axis| Run { first: 0, count: 1, cell: axis.cell(0), step: 1 };
    let mut piece = Piece {
        from: from.iter().map(single).collect(),
        to: to.iter().map(single).collect(),
        pairs: pairs.to_vec(),
    };
    // The selected numbers that lie in the region, along each axis.
    let mut ranges = Vec::with_capacity(pairs.len());
    for (axis, selected) in to.iter().enumerate() {
        let (start, end) = (region.start[axis], region.start[axis].saturating_add(region.shape[axis]));
        let (first, end) = (selected.below(start), selected.below(end));
        if first >= end {
            return Ok(());
        }
        if let Some((_, theirs)) = pairs.iter().find(|(ours, _)| *ours == axis) {
            // A source smaller than the mapping has no cells past its end.
            ranges.push((first, end.min(from[*theirs].below(source[*theirs]))));
        }
    }
    let inside = |axis: usize| piece_inside(&from[axis], source[axis]);
    if (0..from.len()).any(|axis| from[axis].length == 1 && !inside(axis)) {
        return Ok(());
    }
    walk(from, to, &ranges, 0, &mut piece, visit)
}

fn piece_inside(axis: &Axis, extent: u64) -> bool {
    axis.cell(0) < extent
}

/// All combinations of runs, axis by axis.
fn walk(
    from: &[Axis],
    to: &[Axis],
    ranges: &[(u64, u64)],
    depth: usize,
    piece: &mut Piece,
    visit: &mut dyn FnMut(&Piece) -> Result<()>,
) -> Result<()> {
    let Some(&(mut next, end)) = ranges.get(depth) else { return visit(piece) };
    let (ours, theirs) = piece.pairs[depth];
    while next < end {
        let (mut to_run, mut from_run) = (to[ours].run(next, end), from[theirs].run(next, end));
        let count = to_run.count.min(from_run.count);
        if count == 0 {
            break;
        }
        (to_run.count, from_run.count) = (count, count);
        (piece.to[ours], piece.from[theirs]) = (to_run, from_run);
        walk(from, to, ranges, depth + 1, piece, visit)?;
        next += count;
    }
    Ok(())
}

/// The cells of a selection, in its order.
enum Cells {
    Listed(Vec<Extents>),
    /// All combinations of the axis selections, the last axis fastest.
    Product(Vec<Axis>, u64),
}

impl Cells {
    fn new(file: &File, selected: &Selected, shape: &[u64], place: Place<'_>) -> Result<Self> {
        let too_many = || place.unsupported("a virtual dataset with a large irregular selection");
        let mut found: Vec<Extents> = Vec::new();
        match selected {
            Selected::None => {}
            Selected::Points(points) => {
                file.allocate((points.len() * size_of::<Extents>()) as u64, place.structure)?;
                found.extend(points.iter().map(|point| Extents::from_slice(point)));
            }
            Selected::Boxes(boxes) => {
                for (first, last) in boxes {
                    let counts: Extents = first
                        .iter()
                        .zip(last)
                        .map(|(first, last)| last.checked_sub(*first).map_or(0, |n| n.saturating_add(1)))
                        .collect();
                    let fits = |total: &u64| {
                        total.checked_add(found.len() as u64).is_some_and(|all| all <= MAX_CELLS)
                    };
                    let total = product(&counts).filter(fits).ok_or_else(too_many)?;
                    file.allocate(total * size_of::<Extents>() as u64, place.structure)?;
                    found.extend((0..total).map(|number| {
                        let within = place_of(number, &counts);
                        first.iter().zip(&within).map(|(first, by)| first.saturating_add(*by)).collect()
                    }));
                }
                found.sort_unstable();
                found.dedup();
            }
            Selected::All | Selected::Regular(_) => {
                let axes = axes(selected, shape, None).unwrap_or_default();
                let counts: Extents = axes.iter().map(|axis| axis.length).collect();
                let total = product(&counts).filter(|total| *total <= MAX_CELLS).ok_or_else(too_many)?;
                let total = if axes.len() == shape.len() { total } else { 0 };
                file.spend(total.saturating_mul(CELL), place.structure)?;
                return Ok(Self::Product(axes, total));
            }
        }
        found.retain(|cell| cell.len() == shape.len());
        file.spend((found.len() as u64).saturating_mul(CELL), place.structure)?;
        Ok(Self::Listed(found))
    }

    fn len(&self) -> u64 {
        match self {
            Self::Listed(cells) => cells.len() as u64,
            Self::Product(_, total) => *total,
        }
    }

    fn get(&self, number: u64) -> Extents {
        match self {
            Self::Listed(cells) => cells.get(number as usize).cloned().unwrap_or_default(),
            Self::Product(axes, _) => {
                let counts: Extents = axes.iter().map(|axis| axis.length).collect();
                place_of(number, &counts).iter().zip(axes).map(|(at, axis)| axis.cell(*at)).collect()
            }
        }
    }
}

/// The cost of visiting a cell.
const CELL: u64 = 4;

/// The position of cell `number` of a box.
fn place_of(number: u64, counts: &[u64]) -> Extents {
    let (mut left, mut at) = (number, Extents::from_elem(0, counts.len()));
    for axis in (0..counts.len()).rev() {
        at[axis] = left % counts[axis].max(1);
        left /= counts[axis].max(1);
    }
    at
}

fn cell_by_cell(
    file: &File,
    mapping: &Mapping,
    region: &Region,
    source: &[u64],
    whole: &[u64],
    place: Place<'_>,
    visit: &mut dyn FnMut(&Piece) -> Result<()>,
) -> Result<()> {
    let from = Cells::new(file, &mapping.from, source, place)?;
    let to = Cells::new(file, &mapping.to, whole, place)?;
    let runs = |cell: &[u64]| cell.iter().map(|at| Run { first: 0, count: 1, cell: *at, step: 1 }).collect();
    for number in 0..from.len().min(to.len()) {
        let (from, to) = (from.get(number), to.get(number));
        let within = to
            .iter()
            .enumerate()
            .all(|(axis, at)| *at >= region.start[axis] && *at - region.start[axis] < region.shape[axis]);
        if within && from.iter().zip(source).all(|(at, extent)| at < extent) {
            visit(&Piece { from: runs(&from), to: runs(&to), pairs: Vec::new() })?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selection::Slab;

    const PLACE: Place<'_> = Place { store: "test", structure: "virtual dataset mapping", offset: 0 };

    fn file() -> File {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/latest.h5");
        let blob = hyperslab_core::MappedBlob::open(&path).unwrap();
        File::open(std::sync::Arc::new(blob), std::sync::Arc::new(crate::NoExternals), 0).unwrap()
    }

    fn mapping(from: Selected, to: Selected) -> Mapping {
        Mapping { file: ".".to_owned(), dataset: "/x".to_owned(), from, to, settled: None }
    }

    /// Boxes with too many cells to count are refused, whatever was counted before.
    #[test]
    fn counts_of_cells_do_not_wrap() {
        let boxes = Selected::Boxes(vec![(vec![0], vec![9]), (vec![20], vec![u64::MAX - 1])]);
        let file = file();
        assert!(Cells::new(&file, &boxes, &[u64::MAX], PLACE).is_err_and(|error| error.is_unsupported()));
        let region = Region::new(&[0], &[100]);
        let both = mapping(boxes.clone(), boxes);
        assert!(visit(&file, &both, &region, &[u64::MAX], &[u64::MAX], PLACE, &mut |_| Ok(())).is_err());
    }

    /// Cells too far apart for a step are refused; a single cell has no step.
    #[test]
    fn steps_do_not_wrap() {
        let slab =
            |stride: u64, count: u64| Selected::Regular(vec![Slab { start: 0, stride, count, block: 1 }]);
        let region = Region::new(&[0], &[100]);
        let whole = Layout::packed(&[100], 8);
        let far = 1_u64 << 63;
        for (from, to, good) in [
            (slab(far, 2), slab(1, 2), false),
            (slab(1, 2), slab(far, 2), true),
            (slab(3, 2), slab(2, 2), true),
        ] {
            let mut count = 0;
            visit(&file(), &mapping(from, to), &region, &[u64::MAX], &[u64::MAX], PLACE, &mut |piece| {
                count += 1;
                assert_eq!(piece.positions(PLACE).is_ok(), good);
                piece.place(&region, &whole, PLACE).map(|_| ())
            })
            .unwrap();
            assert_eq!(count, 1);
        }
    }
}
