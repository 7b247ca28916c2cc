//! Queries of tables: several aggregations in one pass over the rows, by group.

use hyperslab_core::{Batch, Column, DType, Elements, Error, Result, Scan, Selection};

use super::groups::Groups;
use super::{RowCondition, TableReader};
use crate::query::{GroupedFold, Operation};
use crate::rows::{Rows, no_column, plain_column};

/// A query of a table. The answer has one row per group, or a single row.
///
/// As in pandas, missing values and NaN do not count. Groups are sorted by key. Rows with a missing key form a group of their
/// own, which comes last.
///
/// ```no_run
/// use hyperslab::query::Operation;
/// use hyperslab::table::{Aggregation, TableQuery};
///
/// let store = hyperslab::open("cells.tiledb")?;
/// let query = TableQuery::new([Aggregation::of(Operation::Mean, "score"), Aggregation::rows()])
///     .filter("count > 50 and type == 'NK'".parse()?)
///     .by(["type"]);
/// let (columns, answer) = query.run(&store.table("/")?)?.collect()?;
/// # Ok::<(), hyperslab::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct TableQuery {
    /// Only rows inside this selection by dimension.
    pub selection: Selection,
    /// Only rows that meet this condition.
    pub condition: Option<RowCondition>,
    /// The columns to group by.
    pub by: Vec<String>,
    /// The aggregations; the number of rows if empty.
    pub aggregations: Vec<Aggregation>,
    /// The memory limit for groups and their values, in bytes; a quarter of the process's memory by default.
    pub memory: Option<u64>,
}

/// One operation on one column.
#[derive(Debug, Clone, PartialEq)]
pub struct Aggregation {
    /// The operation on the values.
    pub operation: Operation,
    /// The column; `None` counts rows.
    pub column: Option<String>,
}

impl Aggregation {
    /// An operation on a column.
    pub fn of(operation: Operation, column: impl Into<String>) -> Self {
        Self { operation, column: Some(column.into()) }
    }

    /// The number of rows.
    #[must_use]
    pub const fn rows() -> Self {
        Self { operation: Operation::Count, column: None }
    }

    /// The name of its column in the answer: `score_mean`, `count`.
    #[must_use]
    pub fn name(&self) -> String {
        let operation = match self.operation {
            Operation::Quantile(q) => format!("q{q}"),
            other => other.name().to_owned(),
        };
        match &self.column {
            Some(column) => format!("{column}_{operation}"),
            None => operation,
        }
    }
}

/// The rows of a query without a value in one of its columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingRows {
    /// The column that is aggregated.
    pub column: String,
    /// The number of rows in which it is missing or NaN.
    pub missing: u64,
    /// The number of rows that meet the condition.
    pub rows: u64,
}

impl TableQuery {
    /// A query of all rows.
    pub fn new(aggregations: impl IntoIterator<Item = Aggregation>) -> Self {
        Self { aggregations: aggregations.into_iter().collect(), ..Self::default() }
    }

    /// Adds a condition that rows must meet.
    #[must_use]
    pub fn filter(mut self, condition: RowCondition) -> Self {
        self.condition = Some(match self.condition {
            Some(own) => own.and(condition),
            None => condition,
        });
        self
    }

    /// Groups by these columns, for one answer per distinct value.
    #[must_use]
    pub fn by<N: Into<String>>(mut self, columns: impl IntoIterator<Item = N>) -> Self {
        self.by.extend(columns.into_iter().map(Into::into));
        self
    }

    /// Runs the query in one pass over the rows, batch by batch.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) for columns that do not exist, operations that do not apply to their column, and groups that
    /// do not fit in memory; any error from reading.
    pub fn run(&self, table: &TableReader) -> Result<Rows<'static>> {
        self.run_within(table, &Scan::default())
    }

    /// Like [`run`](Self::run), for the rows of a scan. The query may use columns that the scan does not read.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn run_within(&self, table: &TableReader, within: &Scan) -> Result<Rows<'static>> {
        self.run_counted(table, within).map(|(rows, _)| rows)
    }

    /// Like [`run_within`](Self::run_within), with the missing values of each aggregated column.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn run_counted(
        &self,
        table: &TableReader,
        within: &Scan,
    ) -> Result<(Rows<'static>, Vec<MissingRows>)> {
        let schema = table.schema();
        let find = |name: &String| {
            let found = schema.columns.iter().find(|column| column.name == *name);
            found.cloned().ok_or_else(|| no_column(name, &schema.columns))
        };
        let by = self.by.iter().map(find).collect::<Result<Vec<Column>>>()?;
        if let Some(column) = by.iter().find(|column| !makes_groups(&column.dtype)) {
            return Err(Error::unsupported(
                "groups",
                format!("grouping by {}, which holds {},", column.name, column.dtype),
            ));
        }
        let rows_alone = [Aggregation::rows()];
        let asked = if self.aggregations.is_empty() { &rows_alone[..] } else { &self.aggregations };
        let mut needed = self.by.clone();
        let mut folds = Vec::with_capacity(asked.len());
        for aggregation in asked {
            let column = aggregation.column.as_ref().map(find).transpose()?;
            let place =
                column.as_ref().map(|column| match needed.iter().position(|own| *own == column.name) {
                    Some(place) => place,
                    None => {
                        needed.push(column.name.clone());
                        needed.len() - 1
                    }
                });
            let (dtype, name) =
                column.map_or((DType::Bool, String::new()), |column| (column.dtype, column.name));
            if place.is_none() && aggregation.operation != Operation::Count {
                let info = aggregation.operation.info();
                let option = if info.parametric { "over" } else { info.flag };
                return Err(Error::invalid(format!(
                    "--{}: name the columns, as in --{option} {}",
                    info.flag,
                    numeric_example(&schema.columns)
                )));
            }
            folds.push((place, GroupedFold::new(aggregation.operation, &dtype, &name)?));
        }
        let within = Scan { columns: None, ..within.clone() };
        let scan = table.narrow(&within, &self.selection, Some(&needed), self.condition.as_ref())?;
        let (groups, rows) = self.fold(table, &scan, &by, &mut folds)?;
        let mut missing: Vec<MissingRows> = Vec::new();
        for (aggregation, (_, fold)) in asked.iter().zip(&folds) {
            let Some(column) = &aggregation.column else { continue };
            if missing.iter().all(|known| known.column != *column) {
                let absent = rows.saturating_sub(fold.counted());
                missing.push(MissingRows { column: column.clone(), missing: absent, rows });
            }
        }
        Ok((answer(asked, by, groups, folds)?, missing))
    }

    /// Folds the rows of a scan. Returns the groups and the number of rows.
    fn fold(
        &self,
        table: &TableReader,
        scan: &Scan,
        by: &[Column],
        folds: &mut [(Option<usize>, GroupedFold)],
    ) -> Result<(Option<Groups>, u64)> {
        let memory = self.memory.unwrap_or_else(|| crate::memory::process_memory() / 4);
        let mut groups = (!by.is_empty()).then(|| Groups::new(by.to_vec()));
        if groups.is_some() {
            folds.iter_mut().for_each(|(_, fold)| fold.clear());
        }
        let mut total = 0;
        for batch in table.rows_of(scan)?.batches {
            let Batch { rows, columns } = batch?;
            total += rows as u64;
            let numbers = match &mut groups {
                Some(groups) => Some(groups.of_rows(&columns[..by.len()], rows)?),
                None => None,
            };
            let count = groups.as_ref().map_or(1, Groups::len);
            let mut bytes = groups.as_ref().map_or(0, Groups::bytes);
            for (place, fold) in folds.iter_mut() {
                fold.grow(count);
                match place {
                    Some(place) => fold.add(&columns[*place], rows, numbers.as_deref()),
                    None => fold.count_rows(rows, numbers.as_deref()),
                }
                bytes += fold.bytes();
            }
            if bytes > memory {
                return Err(Error::invalid(format!(
                    "{count} groups need {bytes} bytes, but the limit is {memory}; allow more with --memory"
                )));
            }
        }
        Ok((groups, total))
    }
}

fn answer(
    asked: &[Aggregation],
    by: Vec<Column>,
    groups: Option<Groups>,
    folds: Vec<(Option<usize>, GroupedFold)>,
) -> Result<Rows<'static>> {
    let (keys, order) = match groups {
        Some(groups) => groups.finish()?,
        None => (Vec::new(), vec![0]),
    };
    let picks: Vec<(usize, usize)> = order.iter().map(|&row| (0, row)).collect();
    let mut columns = Vec::new();
    let mut elements = Vec::new();
    for (column, keys) in by.into_iter().zip(keys) {
        elements.push(Elements::gather(&column.dtype, &[&keys], &picks)?);
        columns.push(Column { dimension: false, ..column });
    }
    for (aggregation, (_, fold)) in asked.iter().zip(folds) {
        let found = fold.finish()?;
        elements.push(Elements::gather(&found.dtype, &[&found.elements], &picks)?);
        columns.push(plain_column(aggregation.name(), found.dtype, found.elements.validity.is_some()));
    }
    Ok(Rows::once(columns, Batch { rows: order.len(), columns: elements }))
}

fn makes_groups(dtype: &DType) -> bool {
    !matches!(dtype, DType::Struct(_) | DType::List(_) | DType::Array(..) | DType::Float128)
}

fn numeric_example(columns: &[Column]) -> &str {
    let mut numeric = columns.iter().filter(|column| column.dtype.is_numeric());
    numeric.next_back().map_or("COLUMN", |column| column.name.as_str())
}
