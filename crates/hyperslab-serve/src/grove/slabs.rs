//! Divides a large selection into smaller ones whose results are contiguous in memory.

use hyperslab::Positions;
use hyperslab::driver::AxisPositions;

/// The pieces of a selection, in C order.
#[derive(Debug)]
pub(crate) struct Slabs {
    whole: Positions,
    /// The maximum number of positions per axis in a piece.
    each: Vec<u64>,
    next: Option<Vec<u64>>,
}

impl Slabs {
    /// Divides into pieces of about `target` bytes. If `most` bytes allow it, pieces contain whole chunks along the
    /// divided axis, so that no chunk is decoded twice.
    pub(crate) fn new(whole: Positions, item: u64, chunk: &[u64], (target, most): (u64, u64)) -> Self {
        let counts: Vec<u64> = whole.axes.iter().map(|axis| axis.count).collect();
        let mut each = counts.clone();
        let bytes = |each: &[u64]| each.iter().fold(item.max(1), |all, extent| all.saturating_mul(*extent));
        for axis in 0..each.len() {
            if bytes(&each) <= target {
                break;
            }
            each[axis] = 1;
            let row = bytes(&each);
            let step = whole.axes[axis].step.unsigned_abs().max(1);
            // The number of positions within one chunk.
            let aligned = (chunk.get(axis).copied().unwrap_or(1) / step).max(1).min(counts[axis]);
            if row.saturating_mul(aligned) <= most {
                each[axis] = (target / row / aligned * aligned).max(aligned).min(counts[axis]);
                break;
            }
            each[axis] = (most / row.max(1)).clamp(1, counts[axis].max(1));
            if each[axis] > 1 {
                break;
            }
        }
        let next = if counts.contains(&0) { None } else { Some(vec![0; counts.len()]) };
        Self { whole, each, next }
    }

    /// The size of the largest piece in bytes.
    pub(crate) fn largest(&self, item: u64) -> u64 {
        self.each.iter().fold(item, |bytes, extent| bytes.saturating_mul(*extent))
    }
}

impl Iterator for Slabs {
    type Item = Positions;

    fn next(&mut self) -> Option<Positions> {
        let at = self.next.clone()?;
        let axes = self.whole.axes.iter().zip(&at).zip(&self.each).map(|((axis, first), each)| {
            let count = (*each).min(axis.count - first);
            let offset = i128::from(axis.step) * i128::from(*first);
            let start = (i128::from(axis.start) + offset) as u64;
            AxisPositions { start, count, ..*axis }
        });
        let piece = Positions { axes: axes.collect() };
        let mut following = at;
        let mut carried = true;
        for axis in (0..following.len()).rev() {
            if !carried {
                break;
            }
            following[axis] += self.each[axis];
            carried = following[axis] >= self.whole.axes[axis].count;
            if carried {
                following[axis] = 0;
            }
        }
        self.next = if carried { None } else { Some(following) };
        Some(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pieces cover each cell once, in order, for all sizes.
    #[test]
    fn pieces_cover_the_selection() {
        for (shape, chunk, target, most) in [
            (vec![10_u64, 7, 3], vec![4_u64, 7, 3], 100, 1000),
            (vec![10, 7, 3], vec![4, 7, 3], 5, 6),
            (vec![5], vec![2], 2, 2),
            (vec![], vec![], 1, 1),
            (vec![3, 0], vec![1, 1], 1, 1),
            (vec![2, 100], vec![2, 10], 8, 30),
        ] {
            let whole = Positions::whole(&shape);
            let strides: Vec<u64> = (0..shape.len()).map(|axis| shape[axis + 1..].iter().product()).collect();
            let mut seen = Vec::new();
            for piece in Slabs::new(whole, 1, &chunk, (target, most)) {
                let mut cells = vec![0_u64];
                for (axis, stride) in piece.axes.iter().zip(&strides) {
                    cells = cells
                        .iter()
                        .flat_map(|base| (0..axis.count).map(move |i| base + (axis.start + i) * stride))
                        .collect();
                }
                assert!(cells.len() as u64 <= most.max(target), "{shape:?}");
                seen.extend(cells);
            }
            let all: u64 = shape.iter().product();
            assert!(seen.iter().copied().eq(0..all), "{shape:?} {seen:?}");
        }
    }
}
