//! Grids: how an array's shape is divided into chunks.

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::{Error, Result};

/// One number per dimension: a shape, a position, a chunk coordinate. Up to four are stored inline.
pub type Extents = SmallVec<[u64; 4]>;

/// The position of a chunk in the grid.
pub type ChunkCoord = Extents;

/// A box of cells: its first cell and its shape.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Region {
    /// The first cell.
    pub start: Extents,
    /// Cells per dimension.
    pub shape: Extents,
}

impl Region {
    /// The box of `shape` cells at `start`.
    #[must_use]
    pub fn new(start: &[u64], shape: &[u64]) -> Self {
        Self { start: start.into(), shape: shape.into() }
    }

    /// The region that covers an array of this shape.
    #[must_use]
    pub fn whole(shape: &[u64]) -> Self {
        Self { start: SmallVec::from_elem(0, shape.len()), shape: shape.into() }
    }

    /// The cells that both regions contain; `None` if there are none.
    #[must_use]
    pub fn intersect(&self, other: &Self) -> Option<Self> {
        let mut both = Self { start: Extents::new(), shape: Extents::new() };
        for d in 0..self.start.len().min(other.start.len()) {
            let start = self.start[d].max(other.start[d]);
            let end = self.start[d]
                .saturating_add(self.shape[d])
                .min(other.start[d].saturating_add(other.shape[d]));
            if start >= end {
                return None;
            }
            both.start.push(start);
            both.shape.push(end - start);
        }
        Some(both)
    }

    /// Number of cells; `None` on overflow of `u64`.
    #[must_use]
    pub fn cells(&self) -> Option<u64> {
        product(&self.shape)
    }
}

/// The product of the extents; `None` on overflow of `u64`.
#[must_use]
pub fn product(extents: &[u64]) -> Option<u64> {
    // A zero anywhere makes the product zero, however large the rest.
    if extents.contains(&0) {
        return Some(0);
    }
    extents.iter().try_fold(1_u64, |product, extent| product.checked_mul(*extent))
}

/// A regular grid: all chunks have the same shape. The last chunks may reach past the edge of the array.
///
/// ```
/// use hyperslab_core::Grid;
/// let grid = Grid::new(&[7, 10], &[3, 4])?;
/// assert_eq!(grid.extents()[..], [3, 3]);
/// let corner = grid.region(&[2, 2]);
/// assert_eq!((&corner.start[..], &corner.shape[..]), (&[6, 8][..], &[1, 2][..]));
/// # Ok::<(), hyperslab_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "UncheckedGrid")]
pub struct Grid {
    shape: Extents,
    chunk_shape: Extents,
}

/// A deserialised grid before validation, which may come from an untrusted source.
#[derive(Deserialize)]
struct UncheckedGrid {
    shape: Extents,
    chunk_shape: Extents,
}

impl TryFrom<UncheckedGrid> for Grid {
    type Error = Error;

    fn try_from(unchecked: UncheckedGrid) -> Result<Self> {
        Self::new(&unchecked.shape, &unchecked.chunk_shape)
    }
}

impl Grid {
    /// Divides an array of `shape` into chunks of `chunk_shape`.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) if the ranks differ or a chunk extent is zero.
    pub fn new(shape: &[u64], chunk_shape: &[u64]) -> Result<Self> {
        if shape.len() != chunk_shape.len() {
            return Err(Error::invalid(format!(
                "chunk shape {chunk_shape:?} has {} dimensions, the array {shape:?} has {}",
                chunk_shape.len(),
                shape.len()
            )));
        }
        if chunk_shape.contains(&0) {
            return Err(Error::invalid(format!("chunk shape {chunk_shape:?} has an extent of zero")));
        }
        Ok(Self { shape: shape.into(), chunk_shape: chunk_shape.into() })
    }

    /// One chunk that covers the whole array.
    #[must_use]
    pub fn single(shape: &[u64]) -> Self {
        Self { shape: shape.into(), chunk_shape: shape.iter().map(|&extent| extent.max(1)).collect() }
    }

    /// Divides an array that is stored contiguously in C order into runs of about `bytes`. Each chunk is contiguous, and there
    /// are enough chunks to keep many threads busy.
    #[must_use]
    pub fn slabs(shape: &[u64], item: u64, bytes: u64) -> Self {
        let mut chunk_shape: Extents = SmallVec::from_elem(1, shape.len());
        let mut room = (bytes / item.max(1)).max(1);
        for (chunk, extent) in chunk_shape.iter_mut().zip(shape).rev() {
            *chunk = (*extent).clamp(1, room);
            room /= *chunk;
            if *chunk < *extent {
                break;
            }
        }
        Self { shape: shape.into(), chunk_shape }
    }

    /// The array's shape.
    #[must_use]
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The shape of a chunk that is not clipped by the edge.
    #[must_use]
    pub fn chunk_shape(&self) -> &[u64] {
        &self.chunk_shape
    }

    /// The number of dimensions.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// Chunks per dimension.
    #[must_use]
    pub fn extents(&self) -> Extents {
        self.shape.iter().zip(&self.chunk_shape).map(|(shape, chunk)| shape.div_ceil(*chunk)).collect()
    }

    /// Total number of chunks; `None` on overflow of `u64`.
    #[must_use]
    pub fn chunks(&self) -> Option<u64> {
        product(&self.extents())
    }

    /// Returns true if the grid has this chunk.
    #[must_use]
    pub fn contains(&self, chunk: &[u64]) -> bool {
        chunk.len() == self.rank() && chunk.iter().zip(self.extents()).all(|(&at, extent)| at < extent)
    }

    /// The array cells that a chunk holds, clipped at the edge.
    #[must_use]
    pub fn region(&self, chunk: &[u64]) -> Region {
        let start: Extents =
            chunk.iter().zip(&self.chunk_shape).map(|(at, extent)| at.saturating_mul(*extent)).collect();
        let shape = start
            .iter()
            .zip(&self.shape)
            .zip(&self.chunk_shape)
            .map(|((start, end), extent)| end.saturating_sub(*start).min(*extent))
            .collect();
        Region { start, shape }
    }

    /// Returns true if the edge of the array clips this chunk.
    #[must_use]
    pub fn is_clipped(&self, chunk: &[u64]) -> bool {
        self.region(chunk).shape != self.chunk_shape
    }

    /// The chunk's number in C order (last dimension fastest); `None` outside the grid or on overflow of `u64`.
    #[must_use]
    pub fn linear(&self, chunk: &[u64]) -> Option<u64> {
        if !self.contains(chunk) {
            return None;
        }
        let mut number = 0_u64;
        for (at, extent) in chunk.iter().zip(self.extents()) {
            number = number.checked_mul(extent)?.checked_add(*at)?;
        }
        Some(number)
    }

    /// The chunk with this number in C order; the inverse of [`linear`](Self::linear).
    #[must_use]
    pub fn coord(&self, mut number: u64) -> ChunkCoord {
        let extents = self.extents();
        let mut coord: ChunkCoord = SmallVec::from_elem(0, extents.len());
        for (at, extent) in coord.iter_mut().zip(&extents).rev() {
            let extent = (*extent).max(1);
            *at = number % extent;
            number /= extent;
        }
        coord
    }
}

/// The order in which a chunk's cells are stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub enum CellOrder {
    /// C order: the last axis varies fastest.
    #[default]
    RowMajor,
    /// Fortran order: the first axis varies fastest.
    ColumnMajor,
    /// Any other order, given as the axes, slowest first.
    Axes(SmallVec<[u8; 8]>),
}

impl CellOrder {
    /// The distance in cells between neighbours along each axis of a box of this shape.
    #[must_use]
    pub fn strides(&self, shape: &[u64]) -> Extents {
        let rank = shape.len();
        let mut strides: Extents = SmallVec::from_elem(1, rank);
        let mut cells = 1_u64;
        for i in 0..rank {
            let axis = match self {
                Self::RowMajor => rank - 1 - i,
                Self::ColumnMajor => i,
                Self::Axes(axes) => usize::from(axes[rank - 1 - i]),
            };
            strides[axis] = cells;
            cells = cells.saturating_mul(shape[axis]);
        }
        strides
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn zero_extent_has_no_chunks() {
        assert_eq!(Grid::new(&[0, u64::MAX], &[4, 1]).unwrap().chunks(), Some(0));
    }

    #[test]
    fn slabs_are_contiguous_runs() {
        assert_eq!(Grid::slabs(&[100, 8, 4], 4, 1024).chunk_shape(), [8, 8, 4]);
        assert_eq!(Grid::slabs(&[100, 8, 4], 4, 64).chunk_shape(), [1, 4, 4]);
        assert_eq!(Grid::slabs(&[3, 8, 4], 4, 1 << 20).chunk_shape(), [3, 8, 4]);
        assert_eq!(Grid::slabs(&[0, 8], 4, 64).chunk_shape(), [1, 8]);
        assert_eq!(Grid::slabs(&[5], 100, 64).chunk_shape(), [1]);
        assert_eq!(Grid::slabs(&[], 4, 64).chunk_shape(), [0_u64; 0]);
    }

    #[test]
    fn axes_order_agrees_with_named_orders() {
        let shape = [3, 4, 5];
        let axes = |order: [u8; 3]| CellOrder::Axes(order.as_slice().into()).strides(&shape);
        assert_eq!(axes([0, 1, 2]), CellOrder::RowMajor.strides(&shape));
        assert_eq!(axes([2, 1, 0]), CellOrder::ColumnMajor.strides(&shape));
        assert_eq!(axes([1, 0, 2]), Extents::from_slice(&[5, 15, 1]));
    }

    proptest! {
        #[test]
        fn linear_and_coord_are_inverse(dims in prop::collection::vec((1_u64..50, 1_u64..9), 1..5), pick: u64) {
            let (shape, chunk): (Vec<_>, Vec<_>) = dims.into_iter().unzip();
            let grid = Grid::new(&shape, &chunk).unwrap();
            let number = pick % grid.chunks().unwrap();
            prop_assert_eq!(grid.linear(&grid.coord(number)), Some(number));
        }

        #[test]
        fn regions_tile_the_array(dims in prop::collection::vec((0_u64..20, 1_u64..9), 1..4)) {
            let (shape, chunk): (Vec<_>, Vec<_>) = dims.into_iter().unzip();
            let grid = Grid::new(&shape, &chunk).unwrap();
            let cells: u64 = (0..grid.chunks().unwrap())
                .map(|number| grid.region(&grid.coord(number)).cells().unwrap())
                .sum();
            prop_assert_eq!(Some(cells), product(&shape));
        }
    }
}
