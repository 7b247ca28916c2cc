//! Answers as rows: one column per kept axis, then the answers.

use std::collections::HashMap;

use hyperslab_core::{
    AxisPositions, Batch, Column, DType, Elements, Error, Positions, Result, Selection, Values, product,
};

use super::Answer;
use super::answer::AnswerAxis;
use super::axes::labels;
use crate::ArrayReader;
use crate::rows::{Rows, plain_column};

impl Answer {
    /// The answers as rows. The last column holds the answers and has the operation's name. Before it come the columns of each
    /// axis: the labels of its groups; else the labels of the positions that `selection` kept; else positions. A window has two
    /// columns, for its first and its last position (`time`, `time_end`), and a bin of a histogram three: its number and its edges
    /// (`bin`, `bin_low`, `bin_high`).
    ///
    /// # Errors
    ///
    /// [`Invalid`](hyperslab_core::Error::Invalid) for a selection that the array does not have; otherwise any error from reading
    /// its labels.
    pub fn rows(&self, array: &ArrayReader, selection: &Selection) -> Result<Rows<'static>> {
        Self::rows_of(std::slice::from_ref(self), array, selection)
    }

    /// Like [`rows`](Self::rows), for the answers of several operations on the same array: a column for each.
    ///
    /// # Errors
    ///
    /// As [`rows`](Self::rows), and [`Invalid`](hyperslab_core::Error::Invalid) for answers with different axes or the same name,
    /// and for histograms beside others.
    pub fn rows_of(answers: &[Self], array: &ArrayReader, selection: &Selection) -> Result<Rows<'static>> {
        let Some((first, others)) = answers.split_first() else {
            return Err(Error::invalid("there are no answers"));
        };
        for (number, other) in others.iter().enumerate() {
            if other.axes != first.axes || other.edges.is_some() || first.edges.is_some() {
                return Err(Error::invalid(format!(
                    "the answers of {} and {} have different axes, so they cannot share a file",
                    first.operation, other.operation
                )));
            }
            if answers[..=number].iter().any(|before| before.operation == other.operation) {
                return Err(Error::invalid(format!("two columns would be named {}", other.operation)));
            }
        }
        first.joined_rows(others, array, selection)
    }

    fn joined_rows(
        &self,
        others: &[Self],
        array: &ArrayReader,
        selection: &Selection,
    ) -> Result<Rows<'static>> {
        let shape = self.shape();
        let rows = self.column.len();
        let positions = array.resolve(selection)?;
        let (mut columns, mut batch) = (Vec::new(), Batch { rows, columns: Vec::new() });
        for (number, axis) in self.axes.iter().enumerate() {
            let inner = product(&shape[number + 1..]).unwrap_or(1).max(1);
            let place = |row: usize| (row as u64 / inner % axis.extent.max(1)) as usize;
            let picks: Vec<_> = (0..rows).map(|row| (0, place(row))).collect();
            let name = axis.name.clone().unwrap_or_else(|| format!("dim_{number}"));
            let edges = self.edges.as_deref().filter(|_| number + 1 == self.axes.len());
            let own = match edges {
                Some(edges) => bin_columns(axis, edges)?,
                None => axis_columns(axis, array, &positions)?,
            };
            for (suffix, labels) in own {
                batch.columns.push(Elements::gather(&labels.dtype, &[&labels.elements], &picks)?);
                let nullable = labels.elements.validity.is_some();
                let column = plain_column(format!("{name}{suffix}"), labels.dtype, nullable);
                columns.push(Column { dimension: true, ..column });
            }
        }
        for answer in std::iter::once(self).chain(others) {
            let values = answer.values()?;
            let nullable = values.elements.validity.is_some();
            columns.push(plain_column(answer.operation, values.dtype, nullable));
            batch.columns.push(values.elements);
        }
        Ok(Rows::once(columns, batch))
    }
}

/// The labels along an axis of an answer, as columns with the suffixes of their names.
fn axis_columns(
    axis: &AnswerAxis,
    array: &ArrayReader,
    positions: &Positions,
) -> Result<Vec<(&'static str, Values)>> {
    let dimensions = &array.schema().dimensions;
    let fits = |own: &AxisPositions| {
        axis.labels.is_some() || axis.windows.is_some() || own.keep && own.count == axis.extent
    };
    let number = (0..dimensions.len()).find(|number| {
        axis.name.is_some() && dimensions[*number] == axis.name && fits(&positions.axes[*number])
    });
    if let Some(texts) = &axis.labels {
        return Ok(vec![("", group_labels(texts, array, positions, number)?)]);
    }
    let own = match number {
        Some(number) => array.labels_at(number, positions.axes[number])?,
        None => None,
    };
    Ok(match (&axis.windows, own) {
        (Some(windows), Some(labels)) => {
            let at = |end: fn(&(u64, u64)) -> u64| {
                let picks: Vec<_> = windows.iter().map(|window| (0, end(window) as usize)).collect();
                let elements = Elements::gather(&labels.dtype, &[&labels.elements], &picks)?;
                Values::new(labels.dtype.clone(), &[axis.extent], elements)
            };
            vec![("", at(|window| window.0)?), ("_end", at(|window| window.1)?)]
        }
        (Some(windows), None) => {
            let start = number.map_or((0, 1), |number| {
                (positions.axes[number].start.cast_signed(), positions.axes[number].step)
            });
            let at = |position: u64| start.0 + start.1 * position.cast_signed();
            let first = integers(windows.iter().map(|window| at(window.0)))?;
            vec![("", first), ("_end", integers(windows.iter().map(|window| at(window.1)))?)]
        }
        (None, Some(labels)) => vec![("", labels)],
        (None, None) => vec![("", integers(0..axis.extent.cast_signed())?)],
    })
}

/// The labels of groups, in the type of the coordinate.
fn group_labels(
    texts: &[String],
    array: &ArrayReader,
    positions: &Positions,
    number: Option<usize>,
) -> Result<Values> {
    let Some(number) = number else {
        return Values::new(DType::String, &[texts.len() as u64], Elements::variable(texts));
    };
    let own = labels(array, number, positions)?;
    let mut found: HashMap<String, usize> = HashMap::new();
    for at in 0..own.len() {
        found.entry(own.text(at)).or_insert(at as usize);
    }
    let at = |text: &String| found.get(text).map(|at| (0, *at));
    let picks: Option<Vec<_>> = texts.iter().map(at).collect();
    let picks = picks.ok_or_else(|| Error::invalid("the groups are not labels of the selected positions"))?;
    let values = own.into_values()?;
    let elements = Elements::gather(&values.dtype, &[&values.elements], &picks)?;
    Values::new(values.dtype, &[texts.len() as u64], elements)
}

/// The numbers and the edges of a histogram's bins.
fn bin_columns(axis: &AnswerAxis, edges: &[f64]) -> Result<Vec<(&'static str, Values)>> {
    let floats = |edges: &[f64]| {
        let bytes: Vec<u8> = edges.iter().flat_map(|edge| edge.to_ne_bytes()).collect();
        Values::new(DType::Float64, &[axis.extent], Elements::fixed(bytes))
    };
    let last = edges.len().saturating_sub(1);
    Ok(vec![
        ("", integers(0..axis.extent.cast_signed())?),
        ("_low", floats(&edges[..last])?),
        ("_high", floats(edges.get(1..).unwrap_or_default())?),
    ])
}

fn integers(numbers: impl Iterator<Item = i64>) -> Result<Values> {
    let bytes: Vec<u8> = numbers.flat_map(i64::to_ne_bytes).collect();
    Values::new(DType::Int64, &[bytes.len() as u64 / 8], Elements::fixed(bytes))
}
