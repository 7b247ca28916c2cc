//! Copies boxes of cells between two strided layouts. Assembling, slicing and rechunking share this loop.

#![expect(
    unsafe_code,
    reason = "the innermost copy of every read; bounds are checked once per box, not per cell"
)]

use smallvec::SmallVec;

use crate::{Error, Result, copy_swapped};

/// The layout of a box of cells in a buffer: the offset of its first cell and the byte stride of each axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Byte offset of the first cell.
    pub offset: usize,
    /// Bytes from a cell to the next, per axis. A negative stride walks backwards.
    pub strides: SmallVec<[isize; 4]>,
}

impl Layout {
    /// A box of `shape` packed in C order, at the start of the buffer.
    #[must_use]
    pub fn packed(shape: &[u64], item: usize) -> Self {
        let mut strides: SmallVec<[isize; 4]> = SmallVec::from_elem(0, shape.len());
        let mut bytes = item as isize;
        for (stride, extent) in strides.iter_mut().zip(shape).rev() {
            *stride = bytes;
            bytes = bytes.saturating_mul(isize::try_from(*extent).unwrap_or(isize::MAX));
        }
        Self { offset: 0, strides }
    }

    /// The range of bytes that a box of `counts` cells of `item` bytes touches; `None` on overflow.
    fn reach(&self, counts: &[u64], item: usize) -> Option<(usize, usize)> {
        let (mut low, mut high) = (self.offset as i128, self.offset as i128);
        for (stride, count) in self.strides.iter().zip(counts) {
            let reach = (*stride as i128).checked_mul(i128::from(count.saturating_sub(1)))?;
            if reach < 0 {
                low += reach;
            } else {
                high += reach;
            }
        }
        Some((usize::try_from(low).ok()?, usize::try_from(high.checked_add(item as i128)?).ok()?))
    }

    pub(crate) fn fits(&self, counts: &[u64], item: usize, length: usize) -> bool {
        self.strides.len() == counts.len()
            && self.reach(counts, item).is_some_and(|(low, high)| low <= high && high <= length)
    }
}

/// Copies a box of `counts` cells of `item` bytes.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) if the box reaches outside either buffer.
pub fn copy_box(
    source: &[u8],
    from: &Layout,
    target: &mut [u8],
    to: &Layout,
    counts: &[u64],
    item: usize,
) -> Result<()> {
    if counts.contains(&0) || item == 0 {
        return Ok(());
    }
    if !to.fits(counts, item, target.len()) {
        return Err(outside("target", counts));
    }
    // SAFETY: `to` was just checked to stay inside `target`, which is borrowed for writing.
    unsafe { copy_box_to(source, from, target.as_mut_ptr(), to, counts, item, Writes::default()) }
}

/// How bytes are written to the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Writes {
    /// Bypass the caches, for targets much larger than they are. A cache line that is written as a whole then need not be read
    /// from memory first.
    pub(crate) streamed: bool,
    /// Reverse the bytes of each number of this size; 0 to keep them. Cells consist of whole numbers.
    pub(crate) swap: usize,
}

fn outside(which: &str, counts: &[u64]) -> Error {
    Error::invalid(format!("a box of {counts:?} cells reaches outside its {which}"))
}

/// [`copy_box`] to a pointer whose bounds the caller has checked.
///
/// # Safety
///
/// Every cell of the box laid out by `to` from `target` must be valid for writes, and must not overlap
/// `source`.
pub(crate) unsafe fn copy_box_to(
    source: &[u8],
    from: &Layout,
    target: *mut u8,
    to: &Layout,
    counts: &[u64],
    item: usize,
    writes: Writes,
) -> Result<()> {
    if counts.contains(&0) || item == 0 {
        return Ok(());
    }
    if !from.fits(counts, item, source.len()) {
        return Err(outside("source", counts));
    }
    let mut axes = merged_axes(from, to, counts, item);
    let inner = axes.pop().unwrap_or(Axis { count: 1, from: item as isize, to: item as isize });
    // SAFETY: both offsets lie inside their buffers, since the boxes do.
    let source = unsafe { source.as_ptr().add(from.offset) };
    // SAFETY: as above, by the caller's promise for the target.
    let target = unsafe { target.add(to.offset) };
    // SAFETY: `walk` visits exactly the cells of the two boxes, all of which are inside their buffers.
    unsafe { walk(&axes, inner, source, target, item, writes) };
    #[cfg(target_arch = "x86_64")]
    if writes.streamed {
        // Streamed bytes must be visible to threads that learn that the box is done.
        // SAFETY: SSE is part of x86-64.
        unsafe { std::arch::x86_64::_mm_sfence() };
    }
    Ok(())
}

/// One axis of a box: the number of cells and the stride on either side.
#[derive(Debug, Clone, Copy)]
struct Axis {
    count: usize,
    from: isize,
    to: isize,
}

/// The axes of the box, slowest in the target first, merged where both sides are contiguous.
fn merged_axes(from: &Layout, to: &Layout, counts: &[u64], item: usize) -> SmallVec<[Axis; 5]> {
    let mut axes: SmallVec<[Axis; 5]> = counts
        .iter()
        .zip(from.strides.iter().zip(&to.strides))
        .filter(|(count, _)| **count > 1)
        .map(|(&count, (&from, &to))| Axis { count: count as usize, from, to })
        .collect();
    axes.sort_by_key(|axis| std::cmp::Reverse(axis.to.unsigned_abs()));
    let mut merged: SmallVec<[Axis; 5]> = SmallVec::new();
    for axis in axes {
        let count = axis.count as isize;
        match merged.last_mut() {
            Some(outer)
                if Some(outer.from) == axis.from.checked_mul(count)
                    && Some(outer.to) == axis.to.checked_mul(count) =>
            {
                *outer = Axis { count: outer.count * axis.count, ..axis };
            }
            _ => merged.push(axis),
        }
    }
    // Cells that are adjacent on both sides form one run of bytes.
    if merged.last().is_none_or(|axis| axis.from != item as isize || axis.to != item as isize) {
        merged.push(Axis { count: 1, from: item as isize, to: item as isize });
    }
    merged
}

/// Walks the outer axes. The innermost axis is a run of bytes, or single cells if that run is one cell.
///
/// # Safety
///
/// Every cell that the axes reach from `source` and `target` must be valid for reads and writes, and the two
/// must not overlap.
unsafe fn walk(outer: &[Axis], inner: Axis, source: *const u8, target: *mut u8, item: usize, writes: Writes) {
    match outer {
        // SAFETY: the run is the innermost part of both boxes.
        [] if writes.swap > 1 => unsafe { copy_run_swapped(source, target, inner.count * item, writes) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the run is the innermost part of both boxes.
        [] if writes.streamed => unsafe { stream(source, target, inner.count * item) },
        // SAFETY: the run is the innermost part of both boxes.
        [] => unsafe { std::ptr::copy_nonoverlapping(source, target, inner.count * item) },
        // SAFETY: single cells along the last strided axis.
        [axis] if inner.count == 1 && writes.swap > 1 => unsafe {
            copy_cells_swapped(*axis, source, target, item, writes.swap);
        },
        // SAFETY: single cells along the last strided axis.
        [axis] if inner.count == 1 => unsafe { copy_cells(*axis, source, target, item) },
        [axis, rest @ ..] => {
            for i in 0..axis.count as isize {
                // SAFETY: cell `i` of this axis is inside both boxes.
                let from = unsafe { source.offset(i * axis.from) };
                // SAFETY: as above.
                let to = unsafe { target.offset(i * axis.to) };
                // SAFETY: the rest of the axes reach only cells of the boxes.
                unsafe { walk(rest, inner, from, to, item, writes) };
            }
        }
    }
}

/// Copies a run of numbers, reversing the bytes of each.
///
/// # Safety
///
/// `length` bytes must be valid for reads at `source` and for writes at `target`, and must not overlap.
unsafe fn copy_run_swapped(source: *const u8, target: *mut u8, length: usize, writes: Writes) {
    #[cfg(target_arch = "x86_64")]
    let done = if writes.streamed && std::is_x86_feature_detected!("avx2") {
        // SAFETY: by the caller's promise, and the processor has AVX2.
        unsafe { stream_swapped(source, target, length, writes.swap) }
    } else {
        0
    };
    #[cfg(not(target_arch = "x86_64"))]
    let done = 0;
    let left = length - done;
    // SAFETY: `done` is at most the length.
    let source = unsafe { source.add(done) };
    // SAFETY: as above.
    let target = unsafe { target.add(done) };
    // SAFETY: by the caller's promise.
    let from = unsafe { std::slice::from_raw_parts(source, left) };
    // SAFETY: by the caller's promise; nothing else refers to these bytes, which are initialised.
    let to = unsafe { std::slice::from_raw_parts_mut(target, left) };
    copy_swapped(writes.swap, from, to);
}

/// Copies whole cache lines of numbers, reversing the bytes of each and bypassing the caches. Returns the number of bytes copied; 0 if
/// the target does not start a cache line or the numbers have an odd size.
///
/// # Safety
///
/// As for [`copy_run_swapped`], on a processor with AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn stream_swapped(source: *const u8, target: *mut u8, length: usize, swap: usize) -> usize {
    use std::arch::x86_64::{__m256i, _mm256_loadu_si256, _mm256_shuffle_epi8, _mm256_stream_si256};
    const LINE: usize = 64;
    const WORD: usize = size_of::<__m256i>();
    /// The numbers are reversed within lanes of this many bytes.
    const LANE: usize = 16;
    if !LANE.is_multiple_of(swap) || target.align_offset(LINE) != 0 {
        return 0;
    }
    let places: [u8; WORD] = std::array::from_fn(|at| {
        let at = at % LANE;
        (at / swap * swap + swap - 1 - at % swap) as u8
    });
    // SAFETY: the array has the size of a word; the load is unaligned.
    let places = unsafe { _mm256_loadu_si256(places.as_ptr().cast()) };
    let whole = length / LINE * LINE;
    for at in (0..whole).step_by(WORD) {
        // SAFETY: `at` is inside the run.
        let from = unsafe { source.add(at) };
        // SAFETY: as above.
        let to = unsafe { target.add(at) };
        // SAFETY: a word from `at` on is inside the run; the load is unaligned.
        let word = unsafe { _mm256_loadu_si256(from.cast()) };
        let swapped = _mm256_shuffle_epi8(word, places);
        // SAFETY: the target starts a cache line, so every word of it is aligned.
        unsafe { _mm256_stream_si256(to.cast(), swapped) };
    }
    whole
}

/// Copies single cells along one axis, reversing the bytes of each number.
///
/// # Safety
///
/// As for [`walk`].
unsafe fn copy_cells_swapped(axis: Axis, source: *const u8, target: *mut u8, item: usize, swap: usize) {
    macro_rules! cells {
        ($type:ty) => {
            for i in 0..axis.count as isize {
                // SAFETY: cell `i` is inside the source box.
                let from = unsafe { source.offset(i * axis.from) };
                // SAFETY: cell `i` is inside the target box.
                let to = unsafe { target.offset(i * axis.to) };
                // SAFETY: a cell has as many bytes as the type, and the read is unaligned.
                let cell = unsafe { from.cast::<$type>().read_unaligned() };
                // SAFETY: as above.
                unsafe { to.cast::<$type>().write_unaligned(cell.swap_bytes()) };
            }
        };
    }
    match (item, swap) {
        (2, 2) => cells!(u16),
        (4, 4) => cells!(u32),
        (8, 8) => cells!(u64),
        _ => {
            for i in 0..axis.count as isize {
                // SAFETY: cell `i` is inside the source box.
                let from = unsafe { source.offset(i * axis.from) };
                // SAFETY: cell `i` is inside the target box.
                let to = unsafe { target.offset(i * axis.to) };
                // SAFETY: a cell has `item` bytes on both sides, and the sides do not overlap.
                unsafe { copy_run_swapped(from, to, item, Writes { streamed: false, swap }) };
            }
        }
    }
}

/// Copies a run of bytes, bypassing the caches for whole cache lines.
///
/// # Safety
///
/// `length` bytes must be valid for reads at `source` and for writes at `target`, and must not overlap.
#[cfg(target_arch = "x86_64")]
unsafe fn stream(source: *const u8, target: *mut u8, length: usize) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
    const LINE: usize = 64;
    const WORD: usize = size_of::<__m128i>();
    // A partially written line would be written twice.
    let whole = if target.align_offset(LINE) == 0 { length / LINE * LINE } else { 0 };
    for at in (0..whole).step_by(WORD) {
        // SAFETY: `at` is inside the run.
        let from = unsafe { source.add(at) };
        // SAFETY: as above.
        let to = unsafe { target.add(at) };
        // SAFETY: a word from `at` on is inside the run; the load is unaligned.
        let word = unsafe { _mm_loadu_si128(from.cast()) };
        // SAFETY: the target starts a cache line, so every word of it is aligned; SSE2 is part of x86-64.
        unsafe { _mm_stream_si128(to.cast(), word) };
    }
    // SAFETY: `whole` is at most the run's length.
    let from = unsafe { source.add(whole) };
    // SAFETY: as above.
    let to = unsafe { target.add(whole) };
    // SAFETY: what is left of the run.
    unsafe { std::ptr::copy_nonoverlapping(from, to, length - whole) };
}

/// Copies single cells along one axis.
///
/// # Safety
///
/// As for [`walk`].
unsafe fn copy_cells(axis: Axis, source: *const u8, target: *mut u8, item: usize) {
    macro_rules! cells {
        ($type:ty) => {
            for i in 0..axis.count as isize {
                // SAFETY: cell `i` is inside the source box.
                let from = unsafe { source.offset(i * axis.from) };
                // SAFETY: cell `i` is inside the target box.
                let to = unsafe { target.offset(i * axis.to) };
                // SAFETY: a cell has as many bytes as the type, and the read is unaligned.
                let cell = unsafe { from.cast::<$type>().read_unaligned() };
                // SAFETY: as above.
                unsafe { to.cast::<$type>().write_unaligned(cell) };
            }
        };
    }
    match item {
        1 => cells!(u8),
        2 => cells!(u16),
        4 => cells!(u32),
        8 => cells!(u64),
        16 => cells!(u128),
        _ => {
            for i in 0..axis.count as isize {
                // SAFETY: cell `i` is inside the source box.
                let from = unsafe { source.offset(i * axis.from) };
                // SAFETY: cell `i` is inside the target box.
                let to = unsafe { target.offset(i * axis.to) };
                // SAFETY: a cell has `item` bytes on both sides, and the sides do not overlap.
                unsafe { std::ptr::copy_nonoverlapping(from, to, item) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Compares with a cell-by-cell copy: any permutation of axes, any direction, any item size.
        #[test]
        fn boxes_are_copied_cell_by_cell(
            counts in prop::collection::vec(1_u64..6, 0..4),
            item in prop::sample::select(vec![1_usize, 2, 3, 4, 8, 16]),
            order in any::<u64>(),
            flips in any::<u8>(),
        ) {
            let rank = counts.len();
            let cells: usize = counts.iter().product::<u64>() as usize;
            let source: Vec<u8> = (0..cells * item).map(|i| (i * 7 % 251) as u8).collect();
            let from = Layout::packed(&counts, item);
            // The target: axes permuted, some reversed.
            let mut axes: Vec<usize> = (0..rank).collect();
            axes.sort_by_key(|axis| order.rotate_left(*axis as u32 * 13) % 97);
            let permuted: Vec<u64> = axes.iter().map(|&axis| counts[axis]).collect();
            let plain = Layout::packed(&permuted, item);
            let mut to = Layout { offset: 0, strides: SmallVec::from_elem(0, rank) };
            for (i, &axis) in axes.iter().enumerate() {
                to.strides[axis] = plain.strides[i];
                if flips >> axis & 1 == 1 {
                    to.offset += plain.strides[i] as usize * (counts[axis] as usize - 1);
                    to.strides[axis] = -plain.strides[i];
                }
            }
            let mut target = vec![0; cells * item];
            copy_box(&source, &from, &mut target, &to, &counts, item).unwrap();
            for cell in 0..cells {
                let (mut left, mut at) = (cell as u64, to.offset as isize);
                for axis in (0..rank).rev() {
                    at += to.strides[axis] * (left % counts[axis]) as isize;
                    left /= counts[axis];
                }
                let at = at as usize;
                prop_assert_eq!(&target[at..at + item], &source[cell * item..(cell + 1) * item]);
            }
        }
    }

    const STREAMED: Writes = Writes { streamed: true, swap: 0 };

    /// Compares with swapping after a plain copy: runs and single cells, streamed or not.
    #[test]
    fn swapped_boxes_are_boxes_of_swapped_numbers() {
        let source: Vec<u8> = (0..60_000_u32).map(|i| (i * 31 % 251) as u8).collect();
        for (item, swap) in [(2, 2), (4, 4), (8, 8), (16, 8), (8, 4), (6, 3)] {
            for (streamed, step) in [(false, 1), (true, 1), (false, 3), (true, 3)] {
                let counts = [3, 1500 / item as u64];
                let strides = |row: usize, step: usize| Layout {
                    offset: 0,
                    strides: SmallVec::from_slice(&[row as isize, (item * step) as isize]),
                };
                let (from, to) = (strides(5000, step), strides(4992, 1));
                let (mut plain, mut swapped) = (vec![0_u64; 2000], vec![0_u64; 2000]);
                let plain: &mut [u8] = bytemuck::cast_slice_mut(&mut plain);
                let swapped: &mut [u8] = bytemuck::cast_slice_mut(&mut swapped);
                copy_box(&source, &from, plain, &to, &counts, item).unwrap();
                let writes = Writes { streamed, swap };
                // SAFETY: the box reaches to 2 * 4992 + 1500, which is inside the target.
                unsafe { copy_box_to(&source, &from, swapped.as_mut_ptr(), &to, &counts, item, writes) }
                    .unwrap();
                for row in 0..3 {
                    let cells = row * 4992..row * 4992 + counts[1] as usize * item;
                    crate::swap_bytes(swap, &mut plain[cells]);
                }
                assert_eq!(plain, swapped, "{item} {swap} {streamed} {step}");
            }
        }
    }

    #[test]
    fn streamed_runs_are_the_same_bytes() {
        let source: Vec<u8> = (0..40_000_u32).map(|i| (i * 31 % 251) as u8).collect();
        for (offset, row, rows) in [(0, 256, 20), (64, 200, 7), (3, 129, 30), (128, 64, 5), (0, 63, 9)] {
            let (mut target, counts) = (vec![0_u64; 6000], [rows as u64, row as u64]);
            let target: &mut [u8] = bytemuck::cast_slice_mut(&mut target);
            let from = Layout { offset: 5, strides: SmallVec::from_slice(&[row as isize + 11, 1]) };
            let to = Layout { offset, strides: SmallVec::from_slice(&[512, 1]) };
            // SAFETY: the box reaches to `offset + 512 * (rows - 1) + row`, which is inside the target.
            unsafe { copy_box_to(&source, &from, target.as_mut_ptr(), &to, &counts, 1, STREAMED) }.unwrap();
            for at in 0..rows {
                let start = 5 + at * (row + 11);
                assert_eq!(target[offset + at * 512..][..row], source[start..start + row]);
                assert!(
                    target[offset + at * 512 + row..offset + (at + 1) * 512].iter().all(|byte| *byte == 0)
                );
            }
        }
    }

    #[test]
    fn outside_is_refused() {
        let from = Layout::packed(&[2, 3], 4);
        let error = copy_box(&[0; 23], &from, &mut [0; 24], &from, &[2, 3], 4).unwrap_err();
        assert!(error.to_string().contains("outside its source"));
        let error = copy_box(&[0; 24], &from, &mut [0; 23], &from, &[2, 3], 4).unwrap_err();
        assert!(error.to_string().contains("outside its target"));
    }
}
