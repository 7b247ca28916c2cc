//! Covariance and correlation: of two arrays, and of the variables of one matrix.

use hyperslab_core::{
    AxisPart, AxisPositions, ChunkCoord, DType, Elements, Error, Plan, PlannedChunk, Positions, Region,
    Result, Selection, Values,
};
use rayon::prelude::*;

use super::operand::{Stored, for_stored};
use super::transform::floats;
use crate::ArrayReader;
use crate::written::{LARGE, fill_element, fold_pieces, list, written};

/// The number of values read from each array at once.
const PART: u64 = 1 << 20;

/// The moments of pairs of values.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Moments {
    n: f64,
    mean: [f64; 2],
    /// The sums of squared deviations of both sides, and of their products.
    deviations: [f64; 3],
}

impl Moments {
    fn of(a: &[f64], b: &[f64], skip_nan: bool) -> Self {
        let kept = || a.iter().zip(b).filter(|(a, b)| !skip_nan || !(a.is_nan() || b.is_nan()));
        let n = kept().count() as f64;
        if n == 0.0 {
            return Self::default();
        }
        let mean = [kept().map(|(a, _)| a).sum::<f64>() / n, kept().map(|(_, b)| b).sum::<f64>() / n];
        let mut deviations = [0.0; 3];
        for (a, b) in kept() {
            let (a, b) = (a - mean[0], b - mean[1]);
            deviations[0] += a * a;
            deviations[1] += b * b;
            deviations[2] += a * b;
        }
        Self { n, mean, deviations }
    }

    fn merge(self, other: Self) -> Self {
        let n = self.n + other.n;
        if self.n == 0.0 || other.n == 0.0 {
            return if self.n == 0.0 { other } else { self };
        }
        let delta = [other.mean[0] - self.mean[0], other.mean[1] - self.mean[1]];
        let weight = self.n * other.n / n;
        let cross = [delta[0] * delta[0], delta[1] * delta[1], delta[0] * delta[1]];
        let sum = |i: usize| self.deviations[i] + other.deviations[i] + cross[i] * weight;
        Self {
            n,
            mean: [self.mean[0] + delta[0] * other.n / n, self.mean[1] + delta[1] * other.n / n],
            deviations: [sum(0), sum(1), sum(2)],
        }
    }
}

/// The covariance and correlation of two arrays of the same shape.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair {
    /// The number of pairs.
    pub count: u64,
    /// The population covariance; `None` without pairs.
    pub covariance: Option<f64>,
    /// Pearson's correlation; `None` if either side is constant.
    pub correlation: Option<f64>,
}

/// Computes covariance and correlation of the same selection of two arrays, part by part, in bounded memory.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) if the selections have different shapes or a type cannot be reduced; otherwise any error from
/// reading.
pub fn pair(a: &ArrayReader, b: &ArrayReader, selection: &Selection, skip_nan: bool) -> Result<Pair> {
    let (own, other) = (a.resolve(selection)?, b.resolve(selection)?);
    if own.counts() != other.counts() {
        return Err(Error::invalid(format!(
            "the arrays differ in shape: {:?} and {:?}",
            own.counts().as_slice(),
            other.counts().as_slice()
        )));
    }
    let read = |part: &Region| {
        let there = |whole: &Positions| Positions {
            axes: (whole.axes.iter().zip(&part.start).zip(&part.shape))
                .map(|((axis, at), count)| cut(*axis, *at, *count))
                .collect(),
        };
        Ok(Moments::of(&numbers(a, there(&own))?, &numbers(b, there(&other))?, skip_nan))
    };
    let all = match [written_boxes(a, &own)?, written_boxes(b, &other)?] {
        [Some(of_a), Some(of_b)] => {
            let written: Vec<&Region> = of_a.iter().chain(&of_b).collect();
            let unwritten = Moments::of(&fill_number(a)?, &fill_number(b)?, skip_nan);
            let mut take = |region: &Region, written: bool| match region.cells() {
                _ if written => read(region),
                Some(cells) => Ok(Moments { n: unwritten.n * cells as f64, ..unwritten }),
                None => Err(Error::invalid("the number of cells overflows")),
            };
            fold_pieces(&Region::whole(&own.counts()), &written, PART, &mut take, &|a, b| a.merge(b))?
        }
        _ => {
            let moments = parts(a, &own)?.par_iter().map(read).collect::<Result<Vec<_>>>()?;
            moments.into_iter().fold(Moments::default(), Moments::merge)
        }
    };
    let some = all.n > 0.0;
    let spread = (all.deviations[0] * all.deviations[1]).sqrt();
    Ok(Pair {
        count: all.n as u64,
        covariance: some.then(|| all.deviations[2] / all.n),
        correlation: (some && spread > 0.0).then(|| all.deviations[2] / spread),
    })
}

/// The boxes of a selection that written chunks cover, if walking all of it would take longer.
fn written_boxes(array: &ArrayReader, positions: &Positions) -> Result<Option<Vec<Region>>> {
    let plan = Plan::new(&array.schema().grid, positions.clone())?;
    let large = positions.cells().is_none_or(|cells| cells > LARGE / 8);
    let list = if large { list } else { written };
    let places =
        list(&**array.inner(), plan.len(), array.memory() / 4, |chunk: &ChunkCoord| plan.place_of(chunk))?;
    Ok(places.map(|places| places.iter().map(|place| box_of(&plan.at(place))).collect()))
}

/// The box in the result that the wanted cells of a chunk fill.
fn box_of(chunk: &PlannedChunk) -> Region {
    Region { start: chunk.axes.iter().map(AxisPart::first_place).collect(), shape: chunk.counts() }
}

/// The value of cells that were never written.
fn fill_number(array: &ArrayReader) -> Result<Vec<f64>> {
    let schema = array.schema();
    let fill = Values::new(schema.dtype.clone(), &[1], fill_element(schema))?;
    for_stored!(Stored::of(&schema.dtype, array.inner().name())?, floats(&fill))
}

/// Divides the selection into boxes that follow the first array's chunks, none larger than [`PART`] values if the chunks allow.
fn parts(array: &ArrayReader, positions: &Positions) -> Result<Vec<Region>> {
    let plan = Plan::new(&array.schema().grid, positions.clone())?;
    let mut parts = Vec::new();
    for whole in plan.iter().map(|chunk| box_of(&chunk)) {
        let inner: u64 = whole.shape.iter().skip(1).product();
        let (Some(&start), Some(&count)) = (whole.start.first(), whole.shape.first()) else {
            parts.push(whole);
            continue;
        };
        let each = (PART / inner.max(1)).max(1);
        for at in (0..count).step_by(each as usize) {
            let mut part = whole.clone();
            (part.start[0], part.shape[0]) = (start + at, each.min(count - at));
            parts.push(part);
        }
    }
    Ok(parts)
}

/// Some of the positions along an axis.
fn cut(axis: AxisPositions, at: u64, count: u64) -> AxisPositions {
    AxisPositions { start: axis.start.wrapping_add_signed(at as i64 * axis.step), count, ..axis }
}

fn numbers(array: &ArrayReader, positions: Positions) -> Result<Vec<f64>> {
    let stored = Stored::of(&array.schema().dtype, array.inner().name())?;
    let values = array.read_positions(positions)?;
    for_stored!(stored, floats(&values))
}

/// The covariances (or correlations) of the variables of a matrix whose observations lie along `axis`.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) if the array does not have two axes and a type that can be reduced.
pub fn matrix(array: &ArrayReader, selection: &Selection, axis: usize, correlation: bool) -> Result<Values> {
    let positions = array.resolve(selection)?;
    if positions.axes.len() != 2 || axis > 1 {
        return Err(Error::invalid("covariance and correlation need two axes: observations and variables"));
    }
    let (observations, variables) = (positions.axes[axis].count, positions.axes[1 - axis].count as usize);
    if positions.cells().is_none_or(|cells| cells > LARGE / 8) {
        return Err(Error::unsupported(
            array.inner().name(),
            format!("the covariances of {observations} observations of {variables} variables; select less"),
        ));
    }
    let square =
        variables.checked_mul(variables).filter(|cells| (*cells as u64).saturating_mul(8) <= array.memory());
    let square = square
        .ok_or_else(|| Error::invalid(format!("a matrix of {variables} variables is larger than memory")))?;
    let each = (PART / variables.max(1) as u64).max(1);
    let block = |at: u64| -> Result<Vec<f64>> {
        let mut part = positions.clone();
        part.axes[axis] = cut(part.axes[axis], at, each.min(observations - at));
        let mut values = numbers(array, part)?;
        if axis == 1 {
            // The observations, one after another.
            let count = values.len() / variables.max(1);
            values = (0..values.len()).map(|i| values[i % variables * count + i / variables]).collect();
        }
        Ok(values)
    };
    let mut means = vec![0.0; variables];
    for at in (0..observations).step_by(each as usize) {
        for row in block(at)?.chunks_exact(variables.max(1)) {
            means.iter_mut().zip(row).for_each(|(mean, value)| *mean += value);
        }
    }
    means.iter_mut().for_each(|mean| *mean /= observations as f64);
    let mut sums = vec![0.0; square];
    for at in (0..observations).step_by(each as usize) {
        for row in block(at)?.chunks_exact(variables.max(1)) {
            let off: Vec<f64> = row.iter().zip(&means).map(|(value, mean)| value - mean).collect();
            for (sums, own) in sums.chunks_exact_mut(variables.max(1)).zip(&off) {
                sums.iter_mut().zip(&off).for_each(|(sum, other)| *sum += own * other);
            }
        }
    }
    sums.iter_mut().for_each(|sum| *sum /= observations as f64);
    if correlation {
        let spread: Vec<f64> = (0..variables).map(|i| sums[i * variables + i].sqrt()).collect();
        for (cell, sum) in sums.iter_mut().enumerate() {
            *sum /= spread[cell / variables] * spread[cell % variables];
        }
    }
    let bytes: Vec<u8> = sums.into_iter().flat_map(f64::to_ne_bytes).collect();
    Values::new(DType::Float64, &[variables as u64, variables as u64], Elements::fixed(bytes))
}
