//! Answers as rows: one column per kept axis, then the answers.

use hyperslab_core::{Batch, DType, Elements, Result, Selection, Values, product};

use super::Answer;
use super::answer::AnswerAxis;
use crate::ArrayReader;
use crate::rows::{Rows, plain_column};

impl Answer {
    /// The answers as rows. The last column holds the answers and has the operation's name. Before it comes one column per axis:
    /// the labels of its groups; else the labels of the positions that `selection` kept; else positions.
    ///
    /// # Errors
    ///
    /// [`Invalid`](hyperslab_core::Error::Invalid) for a selection that the array does not have; otherwise any error from reading
    /// its labels.
    pub fn rows(&self, array: &ArrayReader, selection: &Selection) -> Result<Rows<'static>> {
        let values = self.values()?;
        let shape = self.shape();
        let rows = values.len();
        let (mut columns, mut batch) = (Vec::new(), Batch { rows, columns: Vec::new() });
        for (number, axis) in self.axes.iter().enumerate() {
            let labels = labels_of(axis, array, selection)?;
            let inner = product(&shape[number + 1..]).unwrap_or(1).max(1);
            let place = |row: usize| (row as u64 / inner % axis.extent.max(1)) as usize;
            let picks: Vec<_> = (0..rows).map(|row| (0, place(row))).collect();
            batch.columns.push(Elements::gather(&labels.dtype, &[&labels.elements], &picks)?);
            let name = axis.name.clone().unwrap_or_else(|| format!("dim_{number}"));
            let nullable = labels.elements.validity.is_some();
            columns.push(hyperslab_core::Column {
                dimension: true,
                ..plain_column(name, labels.dtype, nullable)
            });
        }
        columns.push(plain_column(self.operation, values.dtype.clone(), values.elements.validity.is_some()));
        batch.columns.push(values.elements);
        Ok(Rows::once(columns, batch))
    }
}

/// The labels along an axis of an answer.
fn labels_of(axis: &AnswerAxis, array: &ArrayReader, selection: &Selection) -> Result<Values> {
    if let Some(labels) = &axis.labels {
        return Values::new(DType::String, &[axis.extent], Elements::variable(labels));
    }
    let positions = array.resolve(selection)?;
    let kept = positions.axes.iter().enumerate().filter(|(_, own)| own.keep);
    for ((number, own), labels) in kept.zip(array.labels_along(&positions)?) {
        let named = axis.name.is_some() && array.schema().dimensions[number] == axis.name;
        if let (true, Some(labels)) = (named && own.count == axis.extent, labels) {
            let at = |index: u64| own.start.wrapping_add_signed(own.step.wrapping_mul(index as i64)) as usize;
            let picks: Vec<_> = (0..own.count).map(|index| (0, at(index))).collect();
            let elements = Elements::gather(&labels.dtype, &[&labels.elements], &picks)?;
            return Values::new(labels.dtype, &[axis.extent], elements);
        }
    }
    let numbers = (0..axis.extent as i64).flat_map(i64::to_ne_bytes);
    Values::new(DType::Int64, &[axis.extent], Elements::fixed(numbers.collect::<Vec<u8>>()))
}
