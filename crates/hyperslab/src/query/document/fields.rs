//! Parses the keys of a document, one function per key.

use hyperslab_core::{Number, Result};
use serde_json::{Map, Value};

use super::{Requested, Slice, bad};
use crate::query::transform::Method;
use crate::query::{
    Axis, Comparison, Condition, Conditions, Group, Mode, Operation, OperationInfo, Pad, Parameters, Window,
};

const MOST_AXES: usize = 8;
const MOST_WINDOW: u64 = 1 << 20;
const MOST_BINS: u64 = 4096;

fn object<'a>(value: &'a Value, key: &str) -> Result<&'a Map<String, Value>> {
    value.as_object().ok_or_else(|| bad(format!("`{key}` must be an object")))
}

/// Refuses unknown keys.
fn only(members: &Map<String, Value>, key: &str, known: &[&str]) -> Result<()> {
    match members.keys().find(|own| !known.contains(&own.as_str())) {
        Some(own) => Err(bad(format!("unknown field `{key}.{own}` (there are {})", known.join(", ")))),
        None => Ok(()),
    }
}

/// An axis number, or a name: `[A-Za-z_][A-Za-z0-9_-]*`.
pub(super) fn axis(value: &Value) -> Result<Axis> {
    match value {
        Value::Number(number) => number
            .as_u64()
            .and_then(|number| usize::try_from(number).ok())
            .map(Axis::Number)
            .ok_or_else(|| bad(format!("invalid axis label {number}: an axis is counted from 0"))),
        Value::String(text) => {
            let rest = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            let name =
                text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && text.chars().all(rest);
            let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            if text.len() > 32 || !(name || digits) {
                return Err(bad(format!("invalid axis label `{text}`")));
            }
            Ok(Axis::from(text.as_str()))
        }
        _ => Err(bad("an axis must be a number or a name")),
    }
}

/// `0`, `"time"`, `[0, "lat"]`, `{"axis": 0}`; an empty list means all.
fn axes(value: &Value) -> Result<Vec<Axis>> {
    let axes = match value {
        Value::Array(items) => items.iter().map(axis).collect::<Result<Vec<_>>>()?,
        Value::Object(members) => match members.get("axis").or_else(|| members.get("axes")) {
            Some(inner) if !inner.is_object() => return axes(inner),
            _ => return Err(bad("an axis object must have `axis` or `axes`")),
        },
        single => vec![axis(single)?],
    };
    if axes.len() > MOST_AXES {
        return Err(bad(format!("{} axes, but the limit is {MOST_AXES}", axes.len())));
    }
    for (number, axis) in axes.iter().enumerate() {
        if axes[..number].contains(axis) {
            return Err(bad(format!("axis {axis} is listed more than once")));
        }
    }
    Ok(axes)
}

pub(super) fn operation(key: &str, value: &Value) -> Result<(Requested, Vec<Axis>)> {
    let plain = |operation| Requested::Reduce { operation, skip_nan: false };
    let skipping = |operation| Requested::Reduce { operation, skip_nan: true };
    let asked = match key {
        "quantile" | "histogram" | "transform" => return parametric(key, object(value, key)?),
        "null_count" => {
            let fill = match value.as_object().and_then(|members| members.get("fill")) {
                None | Some(Value::Null) => None,
                Some(fill) => Some(fill.as_f64().ok_or_else(|| bad("`null_count.fill` must be a number"))?),
            };
            let over = match value.as_object() {
                Some(members) if !members.contains_key("axis") && !members.contains_key("axes") => Vec::new(),
                _ => axes(value)?,
            };
            return Ok((plain(Operation::NullCount { fill }), over));
        }
        "nan_mean" => skipping(Operation::Mean),
        "nan_std" => skipping(Operation::Std { ddof: 0 }),
        "covariance" => Requested::Covariance { correlation: false },
        "correlation" => Requested::Covariance { correlation: true },
        other => {
            let info = OperationInfo::named(other).filter(|info| info.name == other);
            let info = info.ok_or_else(|| bad(format!("unknown field `{other}`")))?;
            let operation = info.operation(&Parameters::default());
            Requested::Reduce { operation, skip_nan: info.skips_nan_in_documents }
        }
    };
    Ok((asked, axes(value)?))
}

fn parametric(key: &str, members: &Map<String, Value>) -> Result<(Requested, Vec<Axis>)> {
    let over = match members.get("axis").or_else(|| members.get("axes")) {
        Some(spec) => axes(spec)?,
        None => Vec::new(),
    };
    let number = |name: &str| match members.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            let found = value.as_f64().filter(|value| value.is_finite());
            found.map(Some).ok_or_else(|| bad(format!("`{key}.{name}` must be a finite number")))
        }
    };
    let operation = match key {
        "quantile" => {
            let q = number("q")?.ok_or_else(|| bad("`quantile.q` is required"))?;
            if !(0.0..=1.0).contains(&q) {
                return Err(bad(format!("`quantile.q` must be between 0 and 1, not {q}")));
            }
            Operation::Quantile(q)
        }
        "histogram" => {
            let bins =
                members.get("bins").and_then(Value::as_u64).filter(|bins| (1..=MOST_BINS).contains(bins));
            let bins = bins.ok_or_else(|| bad(format!("`histogram.bins` is required, 1 to {MOST_BINS}")))?;
            let range = match (number("min")?, number("max")?) {
                (None, None) => None,
                (Some(low), Some(high)) if low < high => Some((low, high)),
                (Some(low), Some(high)) => {
                    return Err(bad(format!("`histogram.min` must be below `histogram.max`: {low}, {high}")));
                }
                _ => return Err(bad("`histogram` takes both `min` and `max`, or neither")),
            };
            Operation::Histogram { bins: bins as usize, range, clamp: true }
        }
        _ => {
            let method = members.get("method").and_then(Value::as_str);
            let method = method.ok_or_else(|| bad("`transform.method` is required"))?;
            let found = Method::from_name(method)
                .ok_or_else(|| bad(format!("unknown transform method `{method}`")))?;
            return Ok((Requested::Transform(found), over));
        }
    };
    Ok((Requested::Reduce { operation, skip_nan: false }, over))
}

pub(super) fn selection(value: &Value) -> Result<Vec<Slice>> {
    let slices = value.as_array().ok_or_else(|| bad("`selection` must be a list of slices"))?;
    if slices.len() > MOST_AXES {
        return Err(bad(format!("`selection` has {} axes, but the limit is {MOST_AXES}", slices.len())));
    }
    slices.iter().enumerate().map(|(axis, slice)| one_slice(axis, slice)).collect()
}

fn one_slice(axis: usize, value: &Value) -> Result<Slice> {
    let key = format!("selection[{axis}]");
    let members = object(value, &key)?;
    only(members, &key, &["start", "stop", "step", "start_label", "stop_label"])?;
    let number = |name: &str| match members.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value
            .as_u64()
            .map(Some)
            .ok_or_else(|| bad(format!("`{key}.{name}` must be a non-negative integer"))),
    };
    let text = |name: &str| match members.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value
            .as_str()
            .map(|text| Some(text.to_owned()))
            .ok_or_else(|| bad(format!("`{key}.{name}` must be a string"))),
    };
    let slice = Slice {
        start: number("start")?,
        stop: number("stop")?,
        step: number("step")?,
        start_label: text("start_label")?,
        stop_label: text("stop_label")?,
    };
    if slice.step == Some(0) {
        return Err(bad(format!("{key}.step must be >= 1, got 0")));
    }
    if let (Some(start), Some(stop)) = (slice.start, slice.stop)
        && start >= stop
    {
        return Err(bad(format!("{key}: start must be < stop when both set (got {start} >= {stop})")));
    }
    for (position, label, name) in [
        (slice.start.is_some(), slice.start_label.is_some(), "start"),
        (slice.stop.is_some(), slice.stop_label.is_some(), "stop"),
    ] {
        if position && label {
            return Err(bad(format!("{key}: use either `{name}` or `{name}_label`, not both")));
        }
    }
    Ok(slice)
}

pub(super) fn filter(value: &Value) -> Result<Conditions> {
    let members = object(value, "filter")?;
    if members.is_empty() || members.len() > 8 {
        return Err(bad("`filter` must have 1 to 8 predicates"));
    }
    only(members, "filter", &["eq", "ne", "lt", "le", "gt", "ge", "is_null", "is_not_null"])?;
    let mut all = Vec::new();
    for (key, value) in members {
        let kind = match key.as_str() {
            "eq" => Comparison::Equal,
            "ne" => Comparison::NotEqual,
            "lt" => Comparison::Less,
            "le" => Comparison::LessOrEqual,
            "gt" => Comparison::Greater,
            "ge" => Comparison::GreaterOrEqual,
            null => {
                if value != &Value::Bool(true) {
                    return Err(bad(format!("`filter.{null}` must be true")));
                }
                all.push(if null == "is_null" { Condition::IsNull } else { Condition::IsNotNull });
                continue;
            }
        };
        all.push(Condition::Compare(kind, number(key, value)?));
    }
    let has = |key: &str| members.contains_key(key);
    let compares = ["eq", "ne", "lt", "le", "gt", "ge"].iter().any(|key| has(key));
    if has("is_null") && has("is_not_null") {
        return Err(bad("`filter` cannot be both `is_null` and `is_not_null`"));
    }
    if has("is_null") && compares {
        return Err(bad("`filter.is_null` cannot be combined with comparisons"));
    }
    if has("gt") && has("ge") || has("lt") && has("le") {
        return Err(bad("`filter` takes at most one lower and one upper bound"));
    }
    let bound = |a: &str, b: &str| members.get(a).or_else(|| members.get(b)).and_then(Value::as_f64);
    if let (Some(low), Some(high)) = (bound("gt", "ge"), bound("lt", "le"))
        && (low > high || low == high && (has("gt") || has("lt")))
    {
        return Err(bad(format!("`filter` range is empty: from {low} to {high}")));
    }
    Ok(Conditions { all, bitwise: true })
}

/// Integers stay integers, because those above 2^53 would change as floats.
fn number(key: &str, value: &Value) -> Result<Number> {
    let whole = value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from));
    let float = || value.as_f64().filter(|value| value.is_finite());
    whole
        .map(Number::Integer)
        .or_else(|| float().map(Number::Float))
        .ok_or_else(|| bad(format!("`filter.{key}` must be a finite number")))
}

pub(super) fn label_filter(value: &Value) -> Result<(Axis, String)> {
    let members = object(value, "label_filter")?;
    only(members, "label_filter", &["axis", "eq"])?;
    let along = members.get("axis").ok_or_else(|| bad("`label_filter.axis` is required"))?;
    let label =
        members.get("eq").and_then(Value::as_str).filter(|label| !label.is_empty() && label.len() <= 1024);
    Ok((axis(along)?, label.ok_or_else(|| bad("`label_filter.eq` must be a non-empty string"))?.to_owned()))
}

pub(super) fn group(value: &Value) -> Result<Group> {
    if value.is_array() {
        let by = axes(value)?;
        if by.is_empty() {
            return Err(bad("`group_by` must list at least one axis"));
        }
        return Ok(Group::Positions(by));
    }
    let members = object(value, "group_by")?;
    only(members, "group_by", &["by", "axes"])?;
    match members.get("by").and_then(Value::as_str) {
        Some("labels") => {}
        Some(other) => return Err(bad(format!("unknown group_by.by `{other}` (expected labels)"))),
        None => return Err(bad("`group_by.by` is required (labels)")),
    }
    let by = axes(members.get("axes").ok_or_else(|| bad("`group_by.axes` is required"))?)?;
    if by.is_empty() {
        return Err(bad("`group_by.axes` must list at least one axis"));
    }
    Ok(Group::Labels(by))
}

pub(super) fn window(value: &Value) -> Result<Window> {
    let members = object(value, "window")?;
    only(members, "window", &["axis", "size", "mode", "pad", "step", "align", "min_count"])?;
    let along = axis(members.get("axis").ok_or_else(|| bad("`window.axis` is required"))?)?;
    let number = |key: &str| match members.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value
            .as_u64()
            .filter(|value| (1..=MOST_WINDOW).contains(value))
            .map(Some)
            .ok_or_else(|| bad(format!("`window.{key}` must be a whole number from 1 to {MOST_WINDOW}"))),
    };
    let text = |key: &str, usual: &'static str| match members.get(key) {
        None | Some(Value::Null) => Ok(usual.to_owned()),
        Some(value) => {
            value.as_str().map(str::to_owned).ok_or_else(|| bad(format!("`window.{key}` must be a string")))
        }
    };
    let size = number("size")?.ok_or_else(|| bad("`window.size` is required"))?;
    let mode = match text("mode", "")?.as_str() {
        "bins" => Mode::Bins,
        "rolling" => Mode::Rolling,
        "" => return Err(bad("`window.mode` is required: `bins` or `rolling`")),
        other => return Err(bad(format!("unknown window mode `{other}`; use `bins` or `rolling`"))),
    };
    let step = number("step")?;
    if mode == Mode::Bins && step.is_some() {
        return Err(bad("`window.step` is only for `rolling`"));
    }
    let pad = match text("pad", "none")?.as_str() {
        "none" => Pad::None,
        "0" => Pad::Zero,
        "nan" => Pad::Nan,
        "fill" => Pad::Fill,
        other => return Err(bad(format!("unknown window pad `{other}`; use none, 0, nan or fill"))),
    };
    let from_end = match text("align", "start")?.as_str() {
        "start" => false,
        "end" => true,
        other => return Err(bad(format!("unknown window align `{other}`; use start or end"))),
    };
    let min_count = number("min_count")?.unwrap_or(1);
    if min_count > size {
        return Err(bad(format!("`window.min_count` {min_count} is above `window.size` {size}")));
    }
    Ok(Window { axis: along, size, mode, step: step.unwrap_or(1), pad, from_end, min_count })
}

pub(super) fn align(value: &Value, dataset: &str) -> Result<(String, Vec<Axis>)> {
    let members = object(value, "align")?;
    only(members, "align", &["with", "axes"])?;
    let with = members.get("with").and_then(Value::as_str).filter(|name| !name.trim().is_empty());
    let with = with.ok_or_else(|| bad("`align.with` must be a non-empty string"))?;
    let along = axes(members.get("axes").ok_or_else(|| bad("`align.axes` is required"))?)?;
    if along.is_empty() {
        return Err(bad("`align.axes` must list at least one axis"));
    }
    if with == dataset {
        return Err(bad("`align.with` must name a dataset other than `dataset`"));
    }
    Ok((with.to_owned(), along))
}

pub(super) fn path(value: &Value, key: &str) -> Result<String> {
    let path = value.as_str().filter(|path| !path.trim().is_empty() && path.len() <= 1024);
    path.map(str::to_owned).ok_or_else(|| bad(format!("`{key}` must be a path of 1 to 1024 bytes")))
}

/// The destination of a transform: its path, if it is a file.
pub(super) fn write(value: &Value) -> Result<Option<String>> {
    let target = |name: &str| match name {
        "ram" | "switch" | "spill" | "sidecar" => Ok(name.to_owned()),
        other => Err(bad(format!("unknown write target `{other}`; use ram, switch, spill or sidecar"))),
    };
    if let Some(name) = value.as_str() {
        target(name)?;
        return Ok(None);
    }
    let members = object(value, "write")?;
    only(members, "write", &["target", "path", "timestamp"])?;
    let name = target(members.get("target").and_then(Value::as_str).unwrap_or("switch"))?;
    if members.get("timestamp").is_some_and(|stamp| !stamp.is_boolean() || name != "sidecar") {
        return Err(bad("`write.timestamp` must be a boolean, and only applies to `sidecar`"));
    }
    let Some(to) = members.get("path") else { return Ok(None) };
    if name != "spill" && name != "sidecar" {
        return Err(bad("`write.path` only applies to `spill` and `sidecar`"));
    }
    path(to, "write.path").map(Some)
}

/// The memory limit.
pub(super) fn execution(value: &Value) -> Result<Option<u64>> {
    let members = object(value, "execution")?;
    let known = [
        "memory_budget_bytes",
        "memory_budget_percent",
        "memory_budget_percent_bps",
        "fold_parallel",
        "device",
    ];
    only(members, "execution", &known)?;
    let number = |key: &str, most: f64| match members.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value
            .as_f64()
            .filter(|value| (0.0..=most).contains(value))
            .map(Some)
            .ok_or_else(|| bad(format!("`execution.{key}` must be a number from 0 to {most}"))),
    };
    let percent = number("memory_budget_percent", 100.0)?;
    let points = number("memory_budget_percent_bps", 10000.0)?;
    if percent.is_some() && points.is_some() {
        return Err(bad(
            "`execution.memory_budget_percent` and `execution.memory_budget_percent_bps` cannot be combined",
        ));
    }
    if members.get("fold_parallel").is_some_and(|value| !value.is_boolean()) {
        return Err(bad("`execution.fold_parallel` must be a boolean"));
    }
    if members.get("device").is_some_and(|value| !value.is_string()) {
        return Err(bad("`execution.device` must be a string"));
    }
    Ok(number("memory_budget_bytes", u64::MAX as f64)?.map(|bytes| bytes as u64))
}
