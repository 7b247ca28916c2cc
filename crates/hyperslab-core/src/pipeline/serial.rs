//! Single-threaded reads, and results whose elements have no fixed size.

use super::{Chunk, Context, OutputSlots, needs_elements, visit_chunks};
use crate::{Array, Buffer, CellOrder, Elements, Error, Layout, Plan, Positions, Result, Values};

/// Reads these positions of an array, chunk by chunk, on the calling thread.
///
/// # Errors
///
/// Any error from planning, fetching or decoding.
pub fn read_serial(array: &dyn Array, positions: Positions) -> Result<Values> {
    let schema = array.schema();
    let plan = Plan::new(&schema.grid, positions)?;
    let context = Context::new(u64::MAX);
    let elements = if needs_elements(array) {
        let mut parts = Vec::new();
        let mut take = |chunk: &mut Chunk<'_>| {
            parts.push(chunk.elements()?);
            Ok(())
        };
        visit_chunks(array, &plan, 0..plan.len(), &context, &mut take)?;
        gather_elements(array, &plan, &parts)?
    } else {
        let mut buffer = Buffer::zeroed(result_bytes(array, &plan)?)?;
        let slots = OutputSlots::new(&plan, schema.dtype.size().unwrap_or(0), buffer.as_mut_slice())?;
        let mut copy = |chunk: &mut Chunk<'_>| match slots.take(chunk.index()) {
            Some((wanted, mut slot)) => chunk.copy_into(&wanted, &mut slot),
            None => Ok(()),
        };
        visit_chunks(array, &plan, 0..plan.len(), &context, &mut copy)?;
        drop(slots);
        Elements::fixed(buffer.freeze())
    };
    Values::new(schema.dtype.clone(), &plan.positions().shape(), elements)
}

/// The size of a plan's result in bytes.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) if memory cannot hold it.
pub fn result_bytes(array: &dyn Array, plan: &Plan) -> Result<usize> {
    let item = array.schema().dtype.size().unwrap_or(0);
    let cells = plan.positions().cells().and_then(|cells| usize::try_from(cells).ok());
    cells
        .and_then(|cells| cells.checked_mul(item))
        .filter(|bytes| isize::try_from(*bytes).is_ok())
        .ok_or_else(|| {
            Error::invalid(format!(
                "{}: a result of {:?} elements is larger than memory; select less",
                array.name(),
                plan.positions().counts().as_slice()
            ))
        })
}

/// Arranges the elements of a plan's chunks, given in plan order, in the order of the result.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) if a chunk has fewer elements than cells.
pub fn gather_elements(array: &dyn Array, plan: &Plan, chunks: &[Elements]) -> Result<Elements> {
    let schema = array.schema();
    let counts = plan.positions().counts();
    let cells = plan.positions().cells().and_then(|cells| usize::try_from(cells).ok());
    let cells =
        cells.ok_or_else(|| Error::invalid(format!("{}: the result is larger than memory", array.name())))?;
    let result = Layout::packed(&counts, 1);
    let mut picks = vec![(0, 0); cells];
    for (row, wanted) in plan.iter().enumerate() {
        let strides = CellOrder::RowMajor.strides(&schema.grid.region(&wanted.coord).shape);
        let counts = wanted.counts();
        for cell in 0..crate::product(&counts).unwrap_or(0) {
            let (mut left, mut from, mut to) = (cell, 0, 0);
            for axis in (0..counts.len()).rev() {
                let (part, at) = (&wanted.axes[axis], left % counts[axis]);
                left /= counts[axis];
                from += (part.first + at * part.step) * strides[axis];
                let place = if part.backwards { part.place - at } else { part.place + at };
                to += place as usize * result.strides[axis].unsigned_abs();
            }
            picks[to] = (row, from as usize);
        }
    }
    Elements::gather(&schema.dtype, &chunks.iter().collect::<Vec<_>>(), &picks)
}
