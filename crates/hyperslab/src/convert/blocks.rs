//! Blocks of an array that fit in memory, and boxes cut out of them.

use hyperslab_core::{DType, Elements, Grid, Layout, Region, Result, Values, copy_box, product};

/// Blocks of whole target chunks that fit in memory, grown from the last axis on so that each source chunk is decoded once, or as
/// few times as memory allows.
pub(crate) fn block_grid(target: &Grid, source_chunk: &[u64], item: u64, memory: u64) -> Result<Grid> {
    // Grow first to whole source chunks, then to whole axes, last axis first.
    let mut block = covering_grid(target, source_chunk, item, memory)?.chunk_shape().to_vec();
    for axis in (0..block.len()).rev() {
        let (step, end) = (block[axis], target.shape()[axis].max(1));
        while block[axis] < end {
            let before = block[axis];
            // If the next multiple overflows, there is nothing more to cover.
            let last = end.checked_next_multiple_of(step).unwrap_or(before);
            block[axis] = before.saturating_mul(2).min(last);
            let whole = block[axis].is_multiple_of(target.chunk_shape()[axis]);
            if block[axis] == before || !fits(&block, item, memory) || !whole {
                block[axis] = before;
                break;
            }
        }
    }
    Grid::new(target.shape(), &block)
}

fn fits(block: &[u64], item: u64, memory: u64) -> bool {
    product(block).and_then(|cells| cells.checked_mul(item)).is_some_and(|bytes| bytes <= memory)
}

/// Blocks of whole target chunks that cover whole source chunks, if those fit in memory.
pub(crate) fn covering_grid(target: &Grid, source_chunk: &[u64], item: u64, memory: u64) -> Result<Grid> {
    let mut block: Vec<u64> = target.chunk_shape().to_vec();
    for axis in (0..block.len()).rev() {
        let chunk = target.chunk_shape()[axis];
        let reach =
            source_chunk.get(axis).map_or(chunk, |source| source.div_ceil(chunk).saturating_mul(chunk));
        let end = target.shape()[axis].max(1).checked_next_multiple_of(chunk).unwrap_or(chunk);
        let before = std::mem::replace(&mut block[axis], reach.min(end));
        if !fits(&block, item, memory) {
            block[axis] = before;
        }
    }
    Grid::new(target.shape(), &block)
}

/// Copies a box of values into a sequence of elements.
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
        /// Blocks consist of whole target chunks and stay within memory, unless a single chunk exceeds it.
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
}
