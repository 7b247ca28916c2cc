//! Rectilinear grids: chunks whose extents differ along an axis.
//!
//! The engine's grids are regular. A rectilinear array therefore gets a regular grid with chunks as large as its largest stored
//! ones. Each is assembled from the stored chunks that it touches, one layer each.

use hyperslab_core::{Extents, Region, Result};
use serde_json::Value;

use crate::json::Doc;

/// The maximum number of stored chunks per assembled chunk.
const MAX_LAYERS: u64 = 1 << 16;

/// The bounds of stored chunks, per axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rectilinear {
    axes: Vec<Axis>,
}

/// Runs of equal extents along one axis.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Axis {
    runs: Vec<Run>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    /// The number of its first chunk, and the start of that chunk.
    first: u64,
    start: u64,
    edge: u64,
    count: u64,
}

impl Axis {
    fn parse(value: &Value, extent: u64, doc: Doc<'_>) -> Result<Self> {
        let wrong = || doc.corrupt(format!("chunk_shapes {value} for {extent} cells"));
        let positive = |value: &Value| value.as_u64().filter(|number| *number > 0).ok_or_else(wrong);
        let pairs: Vec<(u64, u64)> = match value {
            Value::Number(_) => {
                let edge = positive(value)?;
                vec![(edge, extent.div_ceil(edge).max(1))]
            }
            Value::Array(items) => {
                let pair = |item: &Value| match item {
                    Value::Array(run) => match run.as_slice() {
                        [edge, count] => Ok((positive(edge)?, positive(count)?)),
                        _ => Err(wrong()),
                    },
                    single => Ok((positive(single)?, 1)),
                };
                items.iter().map(pair).collect::<Result<_>>()?
            }
            _ => return Err(wrong()),
        };
        let (mut runs, mut first, mut start): (Vec<Run>, u64, u64) = (Vec::new(), 0, 0);
        for (edge, count) in pairs {
            match runs.last_mut() {
                Some(last) if last.edge == edge => {
                    last.count = last.count.checked_add(count).ok_or_else(wrong)?
                }
                _ => runs.push(Run { first, start, edge, count }),
            }
            first = first.checked_add(count).ok_or_else(wrong)?;
            start = edge.checked_mul(count).and_then(|cells| start.checked_add(cells)).ok_or_else(wrong)?;
        }
        if start < extent || runs.is_empty() {
            return Err(wrong());
        }
        Ok(Self { runs })
    }

    fn chunks(&self) -> u64 {
        self.runs.last().map_or(0, |run| run.first + run.count)
    }

    /// The chunk that contains a cell.
    fn chunk_of(&self, cell: u64) -> u64 {
        let run = self.runs.partition_point(|run| run.start <= cell).saturating_sub(1);
        self.runs.get(run).map_or(0, |run| run.first + (cell - run.start) / run.edge)
    }

    /// The start of a chunk, and its extent.
    fn bounds(&self, chunk: u64) -> (u64, u64) {
        let run = self.runs.partition_point(|run| run.first <= chunk).saturating_sub(1);
        self.runs.get(run).map_or((0, 0), |run| (run.start + (chunk - run.first) * run.edge, run.edge))
    }
}

impl Rectilinear {
    /// The configuration of the chunk grid.
    pub(crate) fn parse(configuration: &Value, shape: &[u64], doc: Doc<'_>) -> Result<Self> {
        let kind = configuration.get("kind").and_then(Value::as_str).unwrap_or("inline");
        if kind != "inline" {
            return Err(doc.unsupported(format!("a rectilinear chunk grid of kind {kind:?}")));
        }
        let shapes = doc.list(configuration.get("chunk_shapes").unwrap_or(&Value::Null), "chunk_shapes")?;
        if shapes.len() != shape.len() {
            return Err(doc.corrupt(format!("{} chunk_shapes for {} dimensions", shapes.len(), shape.len())));
        }
        let axes = shapes.iter().zip(shape).map(|(value, extent)| Axis::parse(value, *extent, doc));
        let own = Self { axes: axes.collect::<Result<_>>()? };
        let chunk = own.chunk_shape(shape);
        let least = |axis: &Axis| axis.runs.iter().map(|run| run.edge).min().unwrap_or(1);
        let layers = own.axes.iter().zip(&chunk).try_fold(1_u64, |product, (axis, extent)| {
            product.checked_mul((extent.div_ceil(least(axis)) + 1).min(axis.chunks()))
        });
        match layers {
            Some(layers) if layers <= MAX_LAYERS => Ok(own),
            _ => Err(doc.unsupported("a rectilinear chunk grid of very different extents")),
        }
    }

    /// The largest extents inside the array.
    pub(crate) fn chunk_shape(&self, shape: &[u64]) -> Extents {
        let largest = |axis: &Axis| axis.runs.iter().map(|run| run.edge).max().unwrap_or(1);
        self.axes.iter().zip(shape).map(|(axis, extent)| largest(axis).min((*extent).max(1))).collect()
    }

    /// Returns true if there is a stored chunk with this coordinate.
    pub(crate) fn contains(&self, stored: &[u64]) -> bool {
        stored.len() == self.axes.len() && stored.iter().zip(&self.axes).all(|(at, axis)| *at < axis.chunks())
    }

    /// The cells of a stored chunk, including those outside the array.
    pub(crate) fn region(&self, stored: &[u64]) -> Region {
        let bounds = stored.iter().zip(&self.axes).map(|(at, axis)| axis.bounds(*at));
        let (start, shape) = bounds.unzip();
        Region { start, shape }
    }

    /// The first and last stored chunk that a region touches, per axis. The region must not be empty.
    fn touched(&self, region: &Region) -> (Extents, Extents) {
        let sides = region.start.iter().zip(&region.shape).zip(&self.axes);
        sides
            .map(|((start, extent), axis)| (axis.chunk_of(*start), axis.chunk_of(start + extent - 1)))
            .unzip()
    }

    /// The number of stored chunks that a region touches.
    pub(crate) fn touched_chunks(&self, region: &Region) -> u64 {
        if region.shape.contains(&0) {
            return 0;
        }
        let (first, last) = self.touched(region);
        let counts = first.iter().zip(&last).map(|(first, last)| (last - first).saturating_add(1));
        counts.fold(1, u64::saturating_mul)
    }

    /// The coordinates of all stored chunks that a region touches, in C order.
    pub(crate) fn chunks_of(&self, region: &Region) -> Vec<Extents> {
        if region.shape.contains(&0) {
            return Vec::new();
        }
        let (first, last) = self.touched(region);
        let mut found = Vec::new();
        let mut at = first.clone();
        loop {
            found.push(at.clone());
            let Some(axis) = (0..at.len()).rev().find(|&axis| at[axis] < last[axis]) else { return found };
            at[axis] += 1;
            at[axis + 1..].copy_from_slice(&first[axis + 1..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const DOC: Doc<'_> = Doc { store: "x.zarr", key: "zarr.json" };

    #[test]
    fn examples_of_the_specification_are_parsed() -> Result<()> {
        let shapes =
            json!({"kind": "inline", "chunk_shapes": [4, [1, 2, 3], [[4, 2]], [[1, 3], 3], [4, 4, 4]]});
        let grid = Rectilinear::parse(&shapes, &[6; 5], DOC)?;
        assert_eq!(grid.chunk_shape(&[6; 5]).as_slice(), [4, 3, 4, 3, 4]);
        let counts: Vec<u64> = grid.axes.iter().map(Axis::chunks).collect();
        assert_eq!(counts, [2, 3, 2, 4, 3]);
        let region = grid.region(&[1, 2, 0, 3, 2]);
        assert_eq!(
            (region.start.as_slice(), region.shape.as_slice()),
            (&[4, 3, 0, 3, 8][..], &[4, 3, 4, 3, 4][..])
        );
        let touched = grid.chunks_of(&Region::new(&[0, 0, 0, 0, 0], &[4, 3, 4, 3, 4]));
        assert_eq!(touched.len(), 2 * 3);
        assert!(grid.contains(&[1, 2, 1, 3, 2]) && !grid.contains(&[1, 2, 1, 4, 2]));
        Ok(())
    }

    #[test]
    fn invalid_grids_are_rejected() {
        for shapes in [
            json!([[1, 2]]),
            json!([[0, 6]]),
            json!([[[3, 0], 6]]),
            json!([[[u64::MAX, 2]]]),
            json!([[[1, u64::MAX], 2]]),
            json!([]),
            json!([[[1, 2, 3], 6]]),
            json!(["6"]),
            json!([[]]),
        ] {
            let error = Rectilinear::parse(&json!({"chunk_shapes": shapes}), &[6], DOC).unwrap_err();
            assert!(error.is_corrupt(), "{shapes}: {error}");
        }
        let uneven = json!({"chunk_shapes": [[[1, 1_u64 << 40], 1_u64 << 40]]});
        assert!(Rectilinear::parse(&uneven, &[1 << 41], DOC).unwrap_err().is_unsupported());
    }
}
