//! Queries: reductions, grouping, windows and filters over arrays of any format and size.
//!
//! A [`Query`] describes the question. [`Query::plan`] returns a [`QueryPlan`], which knows every chunk, byte and request before
//! anything is read. Running it folds chunk by chunk, in parallel, within a memory budget. Partial results are combined in chunk
//! order, never in the order in which threads finish, so an answer does not depend on the number of threads.
//!
//! ```
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("x.npy");
//! # let values = hyperslab::Values::new(hyperslab::DType::UInt8, &[2, 3], hyperslab::Elements::fixed(vec![0, 1, 2, 3, 4, 5]))?;
//! # hyperslab::export::write_npy(&values, &mut std::fs::File::create(&path)?)?;
//! use hyperslab::query::{Operation, Query};
//!
//! let array = hyperslab::open(&path)?.array("/")?;
//! let sums = Query::new(Operation::Sum).over([1]).filter("> 0".parse()?).run(&array)?;
//! assert_eq!(sums.values()?.as_slice::<i64>(), Some(&[3, 12][..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | does |
//! |---|---|
//! | `plan` | [`QueryPlan`]: a query resolved against one array; splits, serialises, explains |
//! | `run`, `finish` | plan → tiles of the result → chunks → accumulators → answer |
//! | `explain` | the cost of a plan |
//! | `statistics` | skips chunks by their stored statistics |
//! | `operations` | the table of operations: names, parameters, types of answers, the reduction of each |
//! | `fold` | the reductions: a type each, with its state, kernels and merge |
//! | `accumulate`, `kernels`, `operand`, `walk` | a fold and its counts, loops over values, element types, one chunk |
//! | `unwritten` | counts unwritten cells and folds them at once |
//! | `grouped` | the same reductions of table columns, by group |
//! | `condition` | [`Conditions`] on values, and chunks that statistics rule out |
//! | `windows` | bins and rolling windows |
//! | `order` | medians and quantiles, also for more values than memory holds |
//! | `pairs` | covariance and correlation |
//! | `transform` | whole arrays, normalised |
//! | [`document`] | the query documents of `.tet`, JSON and TOML |
//! | `answer`, `rows` | [`Answer`]: typed values with their axes, also as rows |

mod accumulate;
mod answer;
mod axes;
mod condition;
pub mod document;
mod explain;
mod finish;
mod fold;
mod grouped;
mod kernels;
mod operand;
mod operations;
mod order;
mod pairs;
mod plan;
mod remote;
mod rows;
mod run;
mod serial;
mod statistics;
mod transform;
mod unwritten;
mod walk;
mod windows;

use hyperslab_core::{Result, Selection};
use serde::{Deserialize, Serialize};

pub use answer::{Answer, AnswerAxis};
pub use axes::Axis;
pub use condition::{Comparison, Condition, Conditions};
pub(crate) use grouped::GroupedFold;
pub use operations::{OPERATIONS, Operation, OperationInfo, Parameters};
pub use pairs::{Pair, matrix, pair};
pub use plan::{Explanation, QueryPlan};
pub use run::Partial;
pub use transform::{Method, transform};
pub use windows::{Mode, Pad, Window};

use crate::ArrayReader;

/// How values are grouped before they are reduced.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Group {
    /// One group per position along these axes.
    Positions(Vec<Axis>),
    /// One group per distinct label along these axes, in the order in which they first appear.
    Labels(Vec<Axis>),
    /// This many groups along each of these axes: runs of neighbouring positions whose lengths differ by at most one. An axis
    /// that is not longer keeps its positions. Figures use this, with one group per pixel.
    Pieces(Vec<(Axis, u32)>),
}

/// A query of an array.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Query {
    /// The cells to query.
    pub selection: Selection,
    /// The operation on them.
    pub operation: Operation,
    /// The axes to reduce; empty means all.
    pub over: Vec<Axis>,
    /// Conditions that values must meet.
    pub conditions: Conditions,
    /// Only positions with this label along the named axis.
    pub labelled: Vec<(Axis, String)>,
    /// The grouping.
    pub group: Option<Group>,
    /// A window along one axis.
    pub window: Option<Window>,
    /// Ignore NaN. Otherwise a single NaN makes the answer NaN.
    pub skip_nan: bool,
    /// The memory limit for chunks, partial results and the answer; the store's own limit by default.
    pub memory: Option<u64>,
    /// Use statistics that are not verifiably tied to the values (the zone maps of `.tet` files).
    pub trust_hints: bool,
}

impl Query {
    /// A query of all cells.
    #[must_use]
    pub const fn new(operation: Operation) -> Self {
        Self {
            selection: Selection::all(),
            operation,
            over: Vec::new(),
            conditions: Conditions { all: Vec::new(), bitwise: false },
            labelled: Vec::new(),
            group: None,
            window: None,
            skip_nan: false,
            memory: None,
            trust_hints: false,
        }
    }

    /// Selects cells.
    #[must_use]
    pub fn select(mut self, selection: Selection) -> Self {
        self.selection = self.selection.and(selection);
        self
    }

    /// Reduces these axes and keeps the others.
    #[must_use]
    pub fn over<A: Into<Axis>>(mut self, axes: impl IntoIterator<Item = A>) -> Self {
        self.over.extend(axes.into_iter().map(Into::into));
        self
    }

    /// Adds conditions that values must meet.
    #[must_use]
    pub fn filter(mut self, conditions: Conditions) -> Self {
        self.conditions.all.extend(conditions.all);
        self.conditions.bitwise |= conditions.bitwise;
        self
    }

    /// Keeps only positions with this label along an axis.
    #[must_use]
    pub fn labelled(mut self, axis: impl Into<Axis>, label: impl Into<String>) -> Self {
        self.labelled.push((axis.into(), label.into()));
        self
    }

    /// Groups values, for one answer per group.
    #[must_use]
    pub fn group_by(mut self, group: Group) -> Self {
        self.group = Some(group);
        self
    }

    /// Applies a window, for one answer per window.
    #[must_use]
    pub fn window(mut self, window: Window) -> Self {
        self.window = Some(window);
        self
    }

    /// Ignores NaN.
    #[must_use]
    pub const fn skip_nan(mut self) -> Self {
        self.skip_nan = true;
        self
    }

    /// Sets the memory limit.
    #[must_use]
    pub const fn memory(mut self, bytes: u64) -> Self {
        self.memory = Some(bytes);
        self
    }

    /// Resolves the query against an array. No values are read.
    ///
    /// # Errors
    ///
    /// [`Invalid`](hyperslab_core::Error::Invalid) for axes or labels that the array does not have, or a type that cannot be
    /// reduced.
    pub fn plan(&self, array: &ArrayReader) -> Result<QueryPlan> {
        QueryPlan::new(self, array)
    }

    /// Runs the query on an array.
    ///
    /// # Errors
    ///
    /// As [`plan`](Self::plan), and any error from reading.
    pub fn run(&self, array: &ArrayReader) -> Result<Answer> {
        self.plan(array)?.run(array)
    }
}

#[cfg(test)]
mod tests;
