//! Selections by label: `time=2020-01-01..2020-02-01` to positions, both ends included.

use std::cmp::Ordering;

use hyperslab_core::{
    ArraySchema, AxisSelection, DType, Error, Labels, Node, Positions, Result, Selection, SelectionItem,
    Store, Values, dimension_axis, element_to_json, read_serial, time_text,
};

/// The selection with every label replaced by positions.
pub(crate) fn resolve(selection: &Selection, schema: &ArraySchema, store: &dyn Store) -> Result<Selection> {
    let items = selection
        .items
        .iter()
        .map(|item| match item {
            SelectionItem::Labels { dimension, from, to, single } => {
                let axis = dimension_axis(&schema.dimensions, dimension)?;
                let range = positions(schema, axis, dimension, (from.as_deref(), to.as_deref()), store)?;
                let axis = if *single && range.1 - range.0 == 1 {
                    AxisSelection::Index(range.0)
                } else {
                    AxisSelection::range(range.0, range.1)
                };
                Ok(SelectionItem::Named(dimension.clone(), axis))
            }
            other => Ok(other.clone()),
        })
        .collect::<Result<_>>()?;
    Ok(Selection { items })
}

type Ends<'a> = (Option<&'a str>, Option<&'a str>);

/// The half-open range of positions between two labels.
fn positions(
    schema: &ArraySchema,
    axis: usize,
    dimension: &str,
    ends: Ends<'_>,
    store: &dyn Store,
) -> Result<(i64, i64)> {
    let extent = schema.shape()[axis];
    let none = || Error::invalid(format!("dimension {dimension} has no coordinate labels"));
    match schema.labels.get(axis).unwrap_or(&Labels::None) {
        Labels::None => Err(none()),
        Labels::Texts(texts) => by_text(texts, dimension, ends),
        Labels::Domain { first, dtype } => by_domain(*first, dtype, extent, dimension, ends),
        Labels::Node(path) => match store.node(path)? {
            Node::Array(array) if array.schema().shape() == [extent] => {
                let values = read_serial(&*array, Positions::whole(&[extent]))?;
                by_value(&values, dimension, ends)
            }
            _ => Err(none()),
        },
    }
}

/// By exact text; where all labels are numbers, by number.
fn by_text(texts: &[String], dimension: &str, (from, to): Ends<'_>) -> Result<(i64, i64)> {
    let find = |label: &str, last: bool| {
        let same = |text: &String| text == label;
        let found = if last { texts.iter().rposition(same) } else { texts.iter().position(same) };
        found.ok_or_else(|| unknown(dimension, label, texts.iter().map(String::as_str)))
    };
    let numbers: Option<Vec<f64>> = texts.iter().map(|text| text.parse().ok()).collect();
    if let Some(numbers) = numbers {
        return by_number(&numbers, dimension, (from, to));
    }
    let start = from.map_or(Ok(0), |label| find(label, false))?;
    let end = to.map_or(Ok(texts.len()), |label| find(label, true).map(|at| at + 1))?;
    Ok((start as i64, end.max(start) as i64))
}

fn unknown<'a>(dimension: &str, label: &str, all: impl Iterator<Item = &'a str>) -> Error {
    let some: Vec<_> = all.take(4).collect();
    Error::invalid(format!("dimension {dimension} has no label {label}; it begins {}", some.join(", ")))
}

fn by_domain(
    first: i64,
    dtype: &DType,
    extent: u64,
    dimension: &str,
    (from, to): Ends<'_>,
) -> Result<(i64, i64)> {
    let tick = |label: &str, round_up: bool| -> Result<i128> {
        if let DType::DateTime(unit) = dtype {
            // Dates compare as text of the same precision: walk to the first that is not before the label.
            return date_position(label, |ticks| time_text(ticks, *unit), first, extent, round_up)
                .ok_or_else(|| Error::invalid(format!("dimension {dimension}: {label} is not a date")));
        }
        label
            .parse()
            .map_err(|_| Error::invalid(format!("dimension {dimension}: {label} is not a whole number")))
    };
    let low = from.map_or(Ok(i128::from(first)), |label| tick(label, false))?;
    let high = to.map_or(Ok(i128::from(first) + i128::from(extent) - 1), |label| tick(label, true))?;
    let clamp = |value: i128| value.clamp(0, i128::from(extent)) as i64;
    let start = clamp(low - i128::from(first));
    Ok((start, clamp(high - i128::from(first) + 1).max(start)))
}

/// The tick of a date in a domain: the first not before `label`, or with `round_up` the last that it covers.
fn date_position(
    label: &str,
    text: impl Fn(i64) -> Option<String>,
    first: i64,
    extent: u64,
    round_up: bool,
) -> Option<i128> {
    if !label.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let at = |position: u64| first.checked_add_unsigned(position).and_then(&text).unwrap_or_default();
    let before = |position: u64| {
        let own = at(position);
        let order = own.get(..label.len()).unwrap_or(&own).cmp(label);
        order == Ordering::Less || (round_up && order == Ordering::Equal)
    };
    let (mut low, mut high) = (0, extent);
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Some(i128::from(first) + i128::from(low) - i128::from(round_up))
}

fn by_value(values: &Values, dimension: &str, ends: Ends<'_>) -> Result<(i64, i64)> {
    let json: Vec<_> =
        (0..values.len()).map(|index| element_to_json(&values.dtype, &values.elements, index)).collect();
    if let Some(numbers) = json.iter().map(serde_json::Value::as_f64).collect::<Option<Vec<_>>>() {
        return by_number(&numbers, dimension, ends);
    }
    let texts: Vec<String> = json.iter().map(|value| value.as_str().unwrap_or_default().to_owned()).collect();
    if !matches!(values.dtype, DType::DateTime(_)) {
        return by_text(&texts, dimension, ends);
    }
    let inside = |text: &String| {
        let low = ends.0.is_none_or(|from| text.as_str() >= from);
        let high = ends.1.is_none_or(|to| text.get(..to.len()).unwrap_or(text) <= to);
        low && high
    };
    let chosen: Vec<bool> = texts.iter().map(inside).collect();
    one_run(&chosen, dimension)
}

/// By number, ascending or descending coordinates alike.
fn by_number(numbers: &[f64], dimension: &str, (from, to): Ends<'_>) -> Result<(i64, i64)> {
    let number = |label: &str| {
        label
            .parse::<f64>()
            .map_err(|_| Error::invalid(format!("dimension {dimension}: {label} is not a number")))
    };
    let (low, high) = (from.map(number).transpose()?, to.map(number).transpose()?);
    let inside = |value: &f64| low.is_none_or(|low| *value >= low) && high.is_none_or(|high| *value <= high);
    let chosen: Vec<bool> = numbers.iter().map(inside).collect();
    one_run(&chosen, dimension)
}

/// The chosen positions as one range.
fn one_run(chosen: &[bool], dimension: &str) -> Result<(i64, i64)> {
    let Some(start) = chosen.iter().position(|chosen| *chosen) else { return Ok((0, 0)) };
    let end = chosen.iter().rposition(|chosen| *chosen).map_or(start, |last| last + 1);
    if chosen[start..end].iter().all(|chosen| *chosen) {
        return Ok((start as i64, end as i64));
    }
    Err(Error::invalid(format!("dimension {dimension} is not sorted: the labels do not select one range")))
}
