//! The query documents of `.tet`: one flat JSON object (or TOML table) with a dataset, a selection, filters and at most one
//! operation.
//!
//! [`Document::parse`] checks everything that can be checked without a file. [`Document::run`] runs the query on a store and
//! answers in the shape that readers of these documents expect (`execution.operation_mean`, `execution.operation_reduced_sum` …).
//! Integers are folded exactly, a filter applies to every operation, and the result does not depend on the chunking.
//!
//! ```
//! use hyperslab::query::document::Document;
//! let document = Document::parse(r#"{"dataset": "t", "filter": {"gt": 273}, "mean": "time"}"#, false)?;
//! assert_eq!(document.dataset, "t");
//! assert!(Document::parse(r#"{"dataset": "t", "sum": [], "mean": []}"#, false).is_err());
//! # Ok::<(), hyperslab::Error>(())
//! ```

mod answer;
mod fields;
mod run;

use hyperslab_core::{Error, Result};
use serde_json::{Map, Value};

use super::transform::Method;
use super::{Axis, Conditions, Group, Operation, Window};

/// The maximum size of a document in bytes.
const MOST_BYTES: usize = 1 << 20;
/// The maximum nesting depth.
const MOST_DEPTH: usize = 64;
/// The maximum number of steps in a pipeline.
const MOST_STEPS: usize = 8;

/// The keys of operations.
const OPERATIONS: [&str; 26] = [
    "sum",
    "mean",
    "min",
    "max",
    "count",
    "var",
    "std",
    "product",
    "norm_l1",
    "norm_l2",
    "all_finite",
    "any_nan",
    "any_inf",
    "arg_min",
    "arg_max",
    "median",
    "quantile",
    "histogram",
    "nan_count",
    "inf_count",
    "null_count",
    "covariance",
    "correlation",
    "nan_mean",
    "nan_std",
    "transform",
];

/// The other keys.
const OTHERS: [&str; 12] = [
    "dataset",
    "layout_version",
    "selection",
    "filter",
    "label_filter",
    "group_by",
    "window",
    "align",
    "pipeline",
    "spill",
    "write",
    "execution",
];

/// A parsed query document.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// The dataset's name.
    pub dataset: String,
    /// One slice per axis.
    pub(super) selection: Option<Vec<Slice>>,
    pub(super) conditions: Conditions,
    pub(super) label: Option<(Axis, String)>,
    pub(super) group: Option<Group>,
    pub(super) window: Option<Window>,
    pub(super) align: Option<(String, Vec<Axis>)>,
    /// The key of the operation and its parameters.
    pub(super) operation: Option<(&'static str, Requested)>,
    pub(super) axes: Vec<Axis>,
    pub(super) spill: Option<String>,
    pub(super) memory: Option<u64>,
    pub(super) source: Map<String, Value>,
}

/// The operation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Requested {
    Reduce { operation: Operation, skip_nan: bool },
    Covariance { correlation: bool },
    Transform(Method),
}

/// One axis of a selection.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Slice {
    pub(super) start: Option<u64>,
    pub(super) stop: Option<u64>,
    pub(super) step: Option<u64>,
    pub(super) start_label: Option<String>,
    pub(super) stop_label: Option<String>,
}

fn bad(message: impl Into<String>) -> Error {
    Error::invalid(message)
}

impl Document {
    /// Parses and checks a document: JSON, or TOML if `toml` is set.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) with the key and the problem.
    pub fn parse(text: &str, toml: bool) -> Result<Self> {
        if text.len() > MOST_BYTES {
            return Err(bad(format!(
                "query document has {} bytes, but the limit is {MOST_BYTES}",
                text.len()
            )));
        }
        let tree: Value = if toml {
            toml::from_str(text).map_err(|error| bad(format!("query document: {error}")))?
        } else {
            serde_json::from_str(text).map_err(|error| bad(format!("query document: {error}")))?
        };
        if depth(&tree) > MOST_DEPTH {
            return Err(bad(format!("query document is nested deeper than {MOST_DEPTH}")));
        }
        let Value::Object(object) = tree else { return Err(bad("query document must be an object")) };
        Self::from_object(object)
    }

    fn from_object(object: Map<String, Value>) -> Result<Self> {
        if object.contains_key("operation") {
            return Err(bad(
                "nested `operation` is not supported; write the operation as a key, as in \"mean\": 0",
            ));
        }
        if object.contains_key("output") {
            return Err(bad("nested `output` is not supported; write \"spill\": \"path\""));
        }
        if let Some(key) = object.keys().find(|key| !known(key)) {
            return Err(bad(format!("unknown field `{key}`")));
        }
        let dataset = match object.get("dataset") {
            Some(Value::String(name)) if !name.trim().is_empty() => name.clone(),
            _ => return Err(bad("`dataset` must be a non-empty string")),
        };
        if dataset.len() > 1024 {
            return Err(bad("`dataset` has more than 1024 bytes"));
        }
        let mut document = Self {
            dataset,
            selection: None,
            conditions: Conditions::default(),
            label: None,
            group: None,
            window: None,
            align: None,
            operation: None,
            axes: Vec::new(),
            spill: None,
            memory: None,
            source: object.clone(),
        };
        document.read_keys(&object)?;
        if let Some(steps) = object.get("pipeline") {
            document.read_pipeline(&object, steps)?;
        }
        document.check(&object)?;
        Ok(document)
    }

    fn read_keys(&mut self, object: &Map<String, Value>) -> Result<()> {
        self.read_operation(object)?;
        for (key, value) in object {
            match key.as_str() {
                "layout_version" if value.as_u64().is_none_or(|version| version > u64::from(u32::MAX)) => {
                    return Err(bad("`layout_version` must be a non-negative integer"));
                }
                "selection" | "select" if !value.is_null() => {
                    self.selection = Some(fields::selection(value)?)
                }
                "filter" => self.conditions = fields::filter(value)?,
                "label_filter" => self.label = Some(fields::label_filter(value)?),
                "group_by" => self.group = Some(fields::group(value)?),
                "window" => self.window = Some(fields::window(value)?),
                "align" => self.align = Some(fields::align(value, &self.dataset)?),
                "spill" => self.spill = Some(fields::path(value, "spill")?),
                "write" => {
                    if let Some(path) = fields::write(value)? {
                        self.spill = Some(path);
                    }
                }
                "execution" => self.memory = fields::execution(value)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn read_operation(&mut self, object: &Map<String, Value>) -> Result<()> {
        let mut named = OPERATIONS.iter().filter(|key| object.contains_key(**key));
        let Some(key) = named.next() else { return Ok(()) };
        if named.next().is_some() {
            return Err(bad("query document must have at most one reduction key"));
        }
        let (asked, axes) = fields::operation(key, &object[*key])?;
        self.operation = Some((key, asked));
        self.axes = axes;
        Ok(())
    }

    fn read_pipeline(&mut self, object: &Map<String, Value>, steps: &Value) -> Result<()> {
        let taken = ["selection", "filter", "label_filter", "group_by", "window", "align", "spill", "write"];
        let clash =
            object.keys().find(|key| taken.contains(&key.as_str()) || OPERATIONS.contains(&key.as_str()));
        if let Some(key) = clash {
            return Err(bad(format!("`pipeline` cannot be combined with top-level `{key}`")));
        }
        let steps = steps.as_array().filter(|steps| !steps.is_empty() && steps.len() <= MOST_STEPS);
        let steps =
            steps.ok_or_else(|| bad(format!("`pipeline` must be a list of 1 to {MOST_STEPS} steps")))?;
        let mut last = None;
        for (number, step) in steps.iter().enumerate() {
            let step = step.as_object().filter(|step| !step.is_empty());
            let step =
                step.ok_or_else(|| bad(format!("`pipeline[{number}]` must be an object that names a step")))?;
            let reduces = |key: &str| OPERATIONS.contains(&key) || matches!(key, "group_by" | "window");
            let rank = match step.keys().next().map_or("", String::as_str) {
                "select" => 0,
                "filter" => 1,
                "spill" | "write" => 3,
                key if reduces(key) => 2,
                key => return Err(bad(format!("unknown pipeline step `{key}`"))),
            };
            if let Some(key) = step.keys().skip(1).find(|key| rank != 2 || !reduces(key)) {
                return Err(bad(format!("unknown field `pipeline[{number}].{key}`")));
            }
            if last.is_some_and(|last| last >= rank) {
                return Err(bad(format!(
                    "`pipeline[{number}]` is out of order or comes twice: select, filter, reduce, then spill or write"
                )));
            }
            last = Some(rank);
            if rank == 2 && !step.keys().any(|key| OPERATIONS.contains(&key.as_str())) {
                return Err(bad(format!("`pipeline[{number}]` requires a reduction")));
            }
            self.read_keys(step)?;
        }
        Ok(())
    }

    /// Checks the combination of keys.
    fn check(&self, object: &Map<String, Value>) -> Result<()> {
        let has = |key: &str| object.contains_key(key);
        if self.align.is_some() {
            let others = object
                .keys()
                .any(|key| !matches!(key.as_str(), "dataset" | "layout_version" | "align" | "execution"));
            if others {
                return Err(bad("`align` cannot be combined with any other question"));
            }
        }
        let reduces = matches!(self.operation, Some((_, Requested::Reduce { .. })));
        let ordered = matches!(self.operation, Some(("median" | "quantile" | "histogram", _)));
        if self.window.is_some() {
            if self.group.is_some() {
                return Err(bad("`window` cannot be combined with `group_by`"));
            }
            if self.operation.is_none() {
                return Err(bad("`window` requires a reduction, such as \"sum\": []"));
            }
            if !reduces || ordered {
                return Err(bad(
                    "`window` cannot be combined with transform, median, quantile, histogram, covariance or correlation",
                ));
            }
        }
        if self.group.is_some() {
            if self.operation.is_none() {
                return Err(bad("`group_by` requires a reduction, such as \"sum\": []"));
            }
            if !reduces {
                return Err(bad("`group_by` cannot be combined with transform, covariance or correlation"));
            }
        }
        let transforms = matches!(self.operation, Some((_, Requested::Transform(_))));
        if has("write") && !transforms {
            return Err(bad("`write` requires a transform operation"));
        }
        if has("spill") && (has("write") || transforms) {
            return Err(bad("`spill` and `write` cannot be combined; a transform is written to `write`"));
        }
        if matches!(self.operation, Some((_, Requested::Covariance { .. }))) && self.axes.len() != 1 {
            return Err(bad("covariance and correlation take one axis: that of the observations"));
        }
        Ok(())
    }

    /// The original document.
    #[must_use]
    pub const fn source(&self) -> &Map<String, Value> {
        &self.source
    }
}

fn known(key: &str) -> bool {
    OPERATIONS.contains(&key) || OTHERS.contains(&key)
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests;
