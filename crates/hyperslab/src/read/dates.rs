//! Arrays that count time, as arrays of NumPy's dates.

use std::sync::Arc;

use hyperslab_core::{ArraySchema, DType, Elements, Grid, Positions, Result, TimeAxis, Values};

use super::ArrayReader;
use crate::adapt::{ElementMap, Mapped, mapped_fill};
use crate::labels::{self, DateForm};

/// The number of bytes read at once to find the form of dates.
const PART_BYTES: u64 = 64 << 20;

impl ArrayReader {
    /// Like [`decoded`](Self::decoded), with times as NumPy's dates if these hold all times without loss. All values of an array
    /// that counts time are read to find out.
    ///
    /// # Errors
    ///
    /// As [`decoded`](Self::decoded); for an array that counts time, any error from reading it.
    pub fn decoded_dates(&self) -> Result<Self> {
        let Some(times) = self.time_axis() else { return self.decoded() };
        let numbers = self.decoded_nullable()?;
        let schema = numbers.schema();
        let size = schema.dtype.size().unwrap_or(8) as u64;
        let parts = Grid::slabs(schema.shape(), size, PART_BYTES.min(self.memory()));
        let parts =
            (0..parts.chunks().unwrap_or(0)).map(|part| Positions::region(&parts.region(&parts.coord(part))));
        let form = numbers.date_form(times, parts)?;
        if !form.is_dates() {
            return self.decoded();
        }
        let map = DateMap { reader: numbers.clone(), times, form };
        let fill = mapped_fill(schema, &map, 8);
        let attributes = schema.attributes.filtered(|name, _| !matches!(name, "units" | "calendar"));
        let schema = ArraySchema { dtype: form.dtype(), fill, attributes, ..schema.clone() };
        let array = Mapped::new(Arc::clone(numbers.inner()), schema, map);
        Ok(Self { decoded: true, ..self.with_array(Arc::new(array)) })
    }

    /// Returns true if its values count time, by its attributes or those of the coordinate whose bounds it holds.
    #[must_use]
    pub fn counts_time(&self) -> bool {
        self.time_axis().is_some()
    }

    /// The time axis of its values: from its own attributes, or those of the coordinate whose bounds it holds.
    pub(crate) fn time_axis(&self) -> Option<TimeAxis> {
        labels::time_axis_of(&*self.array, &*self.store)
    }

    /// The time axis by which rows of its values become dates.
    pub(crate) fn row_times(&self) -> Option<TimeAxis> {
        self.dates_in_rows.then(|| self.time_axis())?
    }

    /// The form of dates that holds the times at these positions without loss.
    pub(crate) fn date_form(
        &self,
        times: TimeAxis,
        parts: impl IntoIterator<Item = Positions>,
    ) -> Result<DateForm> {
        let mut form = DateForm::ANY;
        for part in parts {
            form = form.and(&self.mark_missing(self.read_positions(part)?), times);
            if !form.is_dates() {
                break;
            }
        }
        Ok(form)
    }
}

/// From numbers that count time to dates.
#[derive(Debug)]
struct DateMap {
    /// The array of the numbers.
    reader: ArrayReader,
    times: TimeAxis,
    form: DateForm,
}

impl DateMap {
    fn dates(&self, numbers: &[u8]) -> Result<Values> {
        let dtype: &DType = &self.reader.schema().dtype;
        let count = numbers.len() / dtype.size().unwrap_or(1).max(1);
        let values = Values::new(dtype.clone(), &[count as u64], Elements::fixed(numbers.to_vec()))?;
        self.form.apply(&self.reader.mark_missing(values), self.times)
    }
}

impl ElementMap for DateMap {
    fn map(&self, from: &[u8], to: &mut [u8]) {
        let dates = self.dates(from).ok();
        match dates.as_ref().and_then(|dates| dates.elements.as_fixed()) {
            Some(dates) if dates.len() == to.len() => to.copy_from_slice(dates),
            _ => to.chunks_exact_mut(8).for_each(|date| date.copy_from_slice(&i64::MIN.to_ne_bytes())),
        }
    }
}
