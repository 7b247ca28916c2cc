//! The result of a read, handed out chunk by chunk so that many threads can fill it at once.

#![expect(unsafe_code, reason = "disjoint strided parts of one buffer cannot be borrowed apart in safe Rust")]

use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

use smallvec::SmallVec;

use crate::copy::{Writes, copy_box_to};
use crate::{Error, Extents, Layout, Plan, PlannedChunk, Result};

/// Results of at least this size bypass the caches, which they would only flush.
const STREAMED_FROM: usize = 64 << 20;

/// The slots of a plan's chunks in the result. Each slot is handed out once.
///
/// The slots of two chunks of one plan never overlap: the chunks differ along some axis, and along that axis their parts have no
/// position in common. Handing out each slot once therefore gives each cell one writer.
pub struct OutputSlots<'a> {
    plan: &'a Plan,
    item: usize,
    base: *mut u8,
    writes: Writes,
    strides: SmallVec<[isize; 4]>,
    taken: Vec<AtomicU64>,
    buffer: PhantomData<&'a mut [u8]>,
}

// SAFETY: the buffer is borrowed for writing for `'a`, and `take` gives each of its cells to one caller only.
unsafe impl Send for OutputSlots<'_> {}
// SAFETY: as above; `take` decides atomically.
unsafe impl Sync for OutputSlots<'_> {}

impl fmt::Debug for OutputSlots<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutputSlots")
            .field("plan", self.plan)
            .field("item", &self.item)
            .finish_non_exhaustive()
    }
}

impl<'a> OutputSlots<'a> {
    /// Slots for `plan` in `result`, packed in C order with elements of `item` bytes.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) if the buffer size does not match the result.
    pub fn new(plan: &'a Plan, item: usize, result: &'a mut [u8]) -> Result<Self> {
        let counts = plan.positions().counts();
        let bytes = plan.positions().cells().and_then(|cells| cells.checked_mul(item as u64));
        if bytes != Some(result.len() as u64) {
            return Err(Error::invalid(format!(
                "a buffer of {} bytes cannot hold exactly {counts:?} elements of {item} bytes",
                result.len()
            )));
        }
        let words = usize::try_from(plan.len().div_ceil(64))
            .map_err(|_| Error::invalid("the plan has more chunks than memory can address"))?;
        Ok(Self {
            plan,
            item,
            base: result.as_mut_ptr(),
            writes: Writes { streamed: result.len() >= STREAMED_FROM, swap: 0 },
            strides: Layout::packed(&counts, item).strides,
            taken: std::iter::repeat_with(AtomicU64::default).take(words).collect(),
            buffer: PhantomData,
        })
    }

    /// The `index`-th chunk of the plan and its slot in the result; `None` if it was taken before or does not exist.
    #[must_use]
    pub fn take(&self, index: u64) -> Option<(PlannedChunk, OutputSlot<'_>)> {
        if index >= self.plan.len() {
            return None;
        }
        let (word, bit) = (usize::try_from(index / 64).ok()?, 1_u64 << (index % 64));
        if self.taken[word].fetch_or(bit, Ordering::Relaxed) & bit != 0 {
            return None;
        }
        let planned = self.plan.chunk(index);
        let mut layout = Layout { offset: 0, strides: self.strides.clone() };
        for (part, stride) in planned.axes.iter().zip(&mut layout.strides) {
            layout.offset += part.place as usize * stride.unsigned_abs();
            if part.backwards {
                *stride = -*stride;
            }
        }
        let slot = OutputSlot {
            base: self.base,
            writes: self.writes,
            layout,
            counts: planned.counts(),
            item: self.item,
            buffer: PhantomData,
        };
        Some((planned, slot))
    }
}

/// The slot of one chunk's wanted cells in the result.
pub struct OutputSlot<'a> {
    base: *mut u8,
    writes: Writes,
    layout: Layout,
    counts: Extents,
    item: usize,
    buffer: PhantomData<&'a mut [u8]>,
}

// SAFETY: a slot is the only one that reaches its cells, see `OutputSlots`.
unsafe impl Send for OutputSlot<'_> {}

impl fmt::Debug for OutputSlot<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutputSlot")
            .field("layout", &self.layout)
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}

impl OutputSlot<'_> {
    /// Cells per axis.
    #[must_use]
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Bytes per element.
    #[must_use]
    pub const fn item(&self) -> usize {
        self.item
    }

    /// The slot as one slice, if its cells are contiguous in C order.
    pub fn contiguous(&mut self) -> Option<&mut [u8]> {
        let mut bytes = self.item;
        for (&count, &stride) in self.counts.iter().zip(&self.layout.strides).rev() {
            if count > 1 && stride != bytes as isize {
                return None;
            }
            bytes *= count as usize;
        }
        // SAFETY: the slot's first cell is inside the result.
        let start = unsafe { self.base.add(self.layout.offset) };
        // SAFETY: its cells were just checked to be contiguous, nothing else refers to them, and they are
        // initialised bytes of the borrowed result.
        Some(unsafe { std::slice::from_raw_parts_mut(start, bytes) })
    }

    /// Copies the slot's cells from a chunk's bytes, where they have the layout `from`.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) if `from` reaches outside `source`.
    pub fn copy_from(&mut self, source: &[u8], from: &Layout) -> Result<()> {
        // SAFETY: the slot's cells are inside the result, which is borrowed for writing and so cannot
        // overlap `source`.
        unsafe { copy_box_to(source, from, self.base, &self.layout, &self.counts, self.item, self.writes) }
    }

    /// Like [`copy_from`](Self::copy_from), reversing the bytes of each number of `unit` bytes.
    ///
    /// # Errors
    ///
    /// As [`copy_from`](Self::copy_from); [`Invalid`](Error::Invalid) if elements are not whole numbers.
    pub fn copy_swapped_from(&mut self, unit: usize, source: &[u8], from: &Layout) -> Result<()> {
        if unit == 0 || !self.item.is_multiple_of(unit) {
            return Err(Error::invalid(format!(
                "elements of {} bytes do not consist of whole numbers of {unit} bytes",
                self.item
            )));
        }
        let writes = Writes { swap: unit, ..self.writes };
        // SAFETY: as in `copy_from`.
        unsafe { copy_box_to(source, from, self.base, &self.layout, &self.counts, self.item, writes) }
    }

    /// Copies a box of `counts` cells to position `at` of the slot.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) if the box is not inside the slot or `from` reaches outside `source`.
    pub fn copy_box_from(&mut self, at: &[u64], counts: &[u64], source: &[u8], from: &Layout) -> Result<()> {
        let inside = at.len() == self.counts.len()
            && counts.len() == at.len()
            && (0..at.len()).all(|d| at[d].checked_add(counts[d]).is_some_and(|end| end <= self.counts[d]));
        if !inside {
            return Err(Error::invalid(format!("a box of {counts:?} at {at:?} is not in {:?}", self.counts)));
        }
        let mut to = self.layout.clone();
        for (at, stride) in at.iter().zip(&to.strides) {
            to.offset = to.offset.wrapping_add_signed(*at as isize * stride);
        }
        // SAFETY: the box is inside the slot, whose cells are inside the borrowed result.
        unsafe { copy_box_to(source, from, self.base, &to, counts, self.item, self.writes) }
    }

    /// Sets every cell to one element.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) if its size differs from that of the result's elements.
    pub fn fill(&mut self, element: &[u8]) -> Result<()> {
        if element.len() != self.item {
            return Err(Error::invalid(format!(
                "the fill value has {} bytes, but elements have {}",
                element.len(),
                self.item
            )));
        }
        // The source repeats one element: every stride is zero.
        let from = Layout { offset: 0, strides: SmallVec::from_elem(0, self.counts.len()) };
        self.copy_from(element, &from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Grid, Selection};

    #[test]
    fn each_slot_is_handed_out_once() -> Result<()> {
        let grid = Grid::new(&[5, 5], &[2, 2])?;
        let plan = Plan::new(&grid, "[::-1, 1:4]".parse::<Selection>()?.resolve(&[5, 5], &[])?)?;
        let mut result = vec![0_u8; 15];
        let slots = OutputSlots::new(&plan, 1, &mut result)?;
        for index in 0..plan.len() {
            let (planned, mut slot) = slots.take(index).expect("the first time");
            assert!(slots.take(index).is_none());
            slot.fill(&[(planned.coord[0] * 10 + planned.coord[1]) as u8])?;
        }
        assert_eq!(result, [20, 21, 21, 10, 11, 11, 10, 11, 11, 0, 1, 1, 0, 1, 1]);
        Ok(())
    }
}
