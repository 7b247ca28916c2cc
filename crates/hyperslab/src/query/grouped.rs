//! Reductions of table columns, for any number of groups and rows in any order. They use the folds of arrays.

use hyperslab_core::{DType, Elements, Error, Result, Values as Answers};

use super::Operation;
use super::answer::{Answer, AnswerAxis, Column};
use super::fold::{
    AnyFold, CellContext, Count, FloatExtreme, FloatProduct, FloatSum, IntegerExtreme, IntegerProduct,
    IntegerSum, Moments, Values,
};
use super::operand::{Cell, KeyKind, Operand, Stored, for_stored};

/// One operation on one column, with one answer per group. Missing values and NaN do not count.
#[derive(Debug)]
pub(crate) struct GroupedFold {
    operation: Operation,
    dtype: DType,
    /// `None` if values are only counted.
    stored: Option<Stored>,
    fold: AnyFold,
    counts: Vec<u64>,
    /// The number of groups that the fold has room for.
    room: usize,
    /// The number of values folded.
    values: u64,
}

impl GroupedFold {
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) for an operation that does not apply to this type or to groups of rows.
    pub(crate) fn new(operation: Operation, dtype: &DType, name: &str) -> Result<Self> {
        let refused =
            || Error::invalid(format!("column {name} holds {dtype}, which has no {}", operation.name()));
        let stored = match (operation, dtype) {
            (Operation::Count, _) => None,
            (_, DType::Enum(_)) => return Err(refused()),
            _ if !operation.applies_to(dtype) => return Err(refused()),
            _ => Some(Stored::of(dtype, name).map_err(|_| refused())?),
        };
        let floats = stored.is_some_and(|stored| stored.key_kind() == KeyKind::Float);
        let by_kind = |float: AnyFold, integer: AnyFold| if floats { float } else { integer };
        let fold = match operation {
            Operation::Count => AnyFold::Count(Count),
            Operation::Sum | Operation::Mean => {
                by_kind(AnyFold::Sum(FloatSum::default()), AnyFold::IntegerSum(IntegerSum::default()))
            }
            Operation::Min => {
                by_kind(AnyFold::Min(FloatExtreme::default()), AnyFold::IntegerMin(IntegerExtreme::default()))
            }
            Operation::Max => {
                by_kind(AnyFold::Max(FloatExtreme::default()), AnyFold::IntegerMax(IntegerExtreme::default()))
            }
            Operation::Var { .. } | Operation::Std { .. } => AnyFold::Moments(Moments::default()),
            Operation::Product => by_kind(
                AnyFold::Product(FloatProduct::default()),
                AnyFold::IntegerProduct(IntegerProduct::default()),
            ),
            Operation::NormL1 => {
                by_kind(AnyFold::L1(FloatSum::default()), AnyFold::IntegerL1(IntegerSum::default()))
            }
            Operation::NormL2 => AnyFold::L2(FloatSum::default()),
            Operation::Median | Operation::Quantile(_) => AnyFold::Values(Values::new(true)),
            other => {
                return Err(Error::invalid(format!(
                    "{} applies to arrays, not to tables",
                    other.info().flag
                )));
            }
        };
        let fold = fold.sized(1);
        Ok(Self { operation, dtype: dtype.clone(), stored, fold, counts: vec![0], room: 1, values: 0 })
    }

    /// Makes room for this many groups.
    pub(crate) fn grow(&mut self, groups: usize) {
        if groups > self.counts.len() {
            self.counts.resize(groups, 0);
        }
        if groups > self.room {
            let room = groups.next_power_of_two();
            let mut larger = self.fold.sized(room);
            (0..self.room).for_each(|cell| larger.copy_cell(cell, &self.fold, cell));
            (self.fold, self.room) = (larger, room);
        }
    }

    /// Adds rows of the column. Row `i` belongs to group `groups[i]`; without groups, all rows belong to the first.
    pub(crate) fn add(&mut self, elements: &Elements, rows: usize, groups: Option<&[u32]>) {
        let Some(stored) = self.stored else {
            for row in (0..rows).filter(|row| !is_missing(&self.dtype, elements, *row)) {
                self.counts[groups.map_or(0, |groups| groups[row] as usize)] += 1;
            }
            return;
        };
        for_stored!(stored, add_values(self, elements, groups));
    }

    /// Counts rows, whatever their values.
    pub(crate) fn count_rows(&mut self, rows: usize, groups: Option<&[u32]>) {
        match groups {
            Some(groups) => groups.iter().for_each(|group| self.counts[*group as usize] += 1),
            None => self.counts[0] += rows as u64,
        }
    }

    /// The number of values in all groups.
    pub(crate) fn counted(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Removes all groups.
    pub(crate) fn clear(&mut self) {
        self.counts.clear();
    }

    /// The approximate size in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        let (cell, value) = self.fold.bytes();
        (self.room as u64).saturating_mul(cell + 8).saturating_add(self.values.saturating_mul(value))
    }

    /// One answer per group.
    pub(crate) fn finish(mut self) -> Result<Answers> {
        let groups = self.counts.len();
        let mut column = Column::with_capacity(groups);
        let key = self.stored.map_or(KeyKind::Signed, Stored::key_kind);
        for group in 0..groups {
            let context = CellContext {
                operation: self.operation,
                count: self.counts[group],
                enough: true,
                skip_nan: true,
                decoded: false,
                whole: false,
                key,
            };
            self.fold.finish(group, &context, &mut column);
        }
        let axis = AnswerAxis { name: None, extent: groups as u64, labels: None, windows: None };
        let answer = Answer {
            operation: self.operation.name(),
            axes: vec![axis],
            cells: self.values,
            missing: None,
            edges: None,
            dtype: self.operation.dtype(&self.dtype),
            times: None,
            column,
        };
        answer.values()
    }
}

/// Returns true if a value is null, "not a time" or NaN.
fn is_missing(dtype: &DType, elements: &Elements, row: usize) -> bool {
    if elements.is_missing(row) {
        return true;
    }
    let at = |size: usize| elements.as_fixed().and_then(|bytes| bytes.get(row * size..(row + 1) * size));
    match dtype {
        DType::Float16 => {
            at(2).is_some_and(|value| bytemuck::pod_read_unaligned::<half::f16>(value).is_nan())
        }
        DType::Float32 => at(4).is_some_and(|value| bytemuck::pod_read_unaligned::<f32>(value).is_nan()),
        DType::Float64 => at(8).is_some_and(|value| bytemuck::pod_read_unaligned::<f64>(value).is_nan()),
        DType::DateTime(_) | DType::Duration(_) => {
            at(8).is_some_and(|value| bytemuck::pod_read_unaligned::<i64>(value) == i64::MIN)
        }
        _ => false,
    }
}

fn add_values<C: Cell>(own: &mut GroupedFold, elements: &Elements, groups: Option<&[u32]>) {
    let Some(bytes) = elements.as_fixed() else { return };
    let dated = matches!(own.dtype, DType::DateTime(_) | DType::Duration(_));
    let (mut values, mut cells) = (Vec::new(), Vec::new());
    for (row, value) in bytes.chunks_exact(size_of::<C>()).enumerate() {
        let value = bytemuck::pod_read_unaligned::<C>(value).widen();
        if value.is_nan() || elements.is_missing(row) || (dated && value.to_i128() == i128::from(i64::MIN)) {
            continue;
        }
        values.push(value);
        if let Some(groups) = groups {
            cells.push(groups[row]);
            own.counts[groups[row] as usize] += 1;
        }
    }
    own.values += values.len() as u64;
    if groups.is_some() {
        own.fold.scatter(&cells, &values);
    } else {
        own.counts[0] += values.len() as u64;
        own.fold.run(0, &values);
    }
}
