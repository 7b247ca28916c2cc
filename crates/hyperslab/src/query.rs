//! Questions about values: reductions, grouping, windows and filters over arrays of any format and any size.
//!
//! A [`Query`] is what is asked; [`Query::plan`] gives a [`QueryPlan`], which knows every chunk, byte and request before
//! anything is read; running it folds chunk by chunk, in parallel, within a memory budget. Partial results are combined
//! in the order of the chunks, never in the order in which threads finish: an answer does not depend on the number of
//! threads.
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
//! | `explain` | what a plan will cost |
//! | `statistics` | chunks that need not be read, by what formats keep of their values |
//! | `operations` | the table of operations: names, parameters, types of answers, the reduction of each |
//! | `fold` | the reductions: a type each, with its state, kernels and merge |
//! | `accumulate`, `kernels`, `operand`, `walk` | a fold and its counts, loops over values, element types, one chunk |
//! | `unwritten` | what was never written, counted and folded at once |
//! | `grouped` | the same reductions of table columns, by group |
//! | `condition` | [`Conditions`] on values, and chunks that statistics rule out |
//! | `windows` | bins and rolling windows |
//! | `order` | medians and quantiles, also of more values than memory holds |
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

/// How values are put together before they are reduced.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Group {
    /// One group per position along these axes.
    Positions(Vec<Axis>),
    /// One group per distinct label along these axes, in the order in which they first appear.
    Labels(Vec<Axis>),
    /// So many groups along each of these axes: neighbouring positions, in runs whose lengths differ by one at most. An axis
    /// that is not longer keeps its positions. Pictures are made of these, a group a pixel.
    Pieces(Vec<(Axis, u32)>),
}

/// What is asked of an array.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Query {
    /// Which cells.
    pub selection: Selection,
    /// What is made of them.
    pub operation: Operation,
    /// The axes that are reduced; none means all.
    pub over: Vec<Axis>,
    /// Which values count.
    pub conditions: Conditions,
    /// Only positions with this label, along each axis named.
    pub labelled: Vec<(Axis, String)>,
    /// Groups.
    pub group: Option<Group>,
    /// A window along one axis.
    pub window: Option<Window>,
    /// Leave out values that are not a number. Without, one of them makes the answer not a number.
    pub skip_nan: bool,
    /// The most memory for chunks, partial results and the answer; the store's own limit when left out.
    pub memory: Option<u64>,
    /// Let an answer rest on statistics that nothing ties to the values (the zone maps of `.tet` files).
    pub trust_hints: bool,
}

impl Query {
    /// An operation over all cells.
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

    /// Only these cells.
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

    /// Only values for which these conditions hold, too.
    #[must_use]
    pub fn filter(mut self, conditions: Conditions) -> Self {
        self.conditions.all.extend(conditions.all);
        self.conditions.bitwise |= conditions.bitwise;
        self
    }

    /// Only positions with this label along an axis.
    #[must_use]
    pub fn labelled(mut self, axis: impl Into<Axis>, label: impl Into<String>) -> Self {
        self.labelled.push((axis.into(), label.into()));
        self
    }

    /// One answer per group.
    #[must_use]
    pub fn group_by(mut self, group: Group) -> Self {
        self.group = Some(group);
        self
    }

    /// One answer per window.
    #[must_use]
    pub fn window(mut self, window: Window) -> Self {
        self.window = Some(window);
        self
    }

    /// Leaves out values that are not a number.
    #[must_use]
    pub const fn skip_nan(mut self) -> Self {
        self.skip_nan = true;
        self
    }

    /// The most memory that may be used.
    #[must_use]
    pub const fn memory(mut self, bytes: u64) -> Self {
        self.memory = Some(bytes);
        self
    }

    /// The query resolved against an array: what will be read, and what for. Reads nothing of the values.
    ///
    /// # Errors
    ///
    /// [`Invalid`](hyperslab_core::Error::Invalid) for what the array does not have: axes, labels, a type that can be
    /// reduced.
    pub fn plan(&self, array: &ArrayReader) -> Result<QueryPlan> {
        QueryPlan::new(self, array)
    }

    /// Asks an array.
    ///
    /// # Errors
    ///
    /// As [`plan`](Self::plan), and whatever reading says.
    pub fn run(&self, array: &ArrayReader) -> Result<Answer> {
        self.plan(array)?.run(array)
    }
}

#[cfg(test)]
mod tests;
