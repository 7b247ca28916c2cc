//! Selections by label: `time=2020-01-01..2020-02-01` to positions, both ends included.

use std::cmp::Ordering;

use hyperslab_core::{
    ArraySchema, AxisSelection, Calendar, DType, Elements, Error, Labels, Node, Positions, Result, Selection,
    SelectionItem, Store, TimeAxis, TimeUnit, Values, dimension_axis, element_to_json, read_serial,
    time_text,
};

/// The selection with every label replaced by positions.
pub(crate) fn resolve(selection: &Selection, schema: &ArraySchema, store: &dyn Store) -> Result<Selection> {
    let items = selection
        .items
        .iter()
        .map(|item| match item {
            SelectionItem::Labels { dimension, .. } | SelectionItem::Nearest { dimension, .. } => {
                let (axis, labels) = match coordinate_of(schema, dimension) {
                    Some((axis, node)) => (axis, Labels::Node(node.to_owned())),
                    None => {
                        let axis = dimension_axis(&schema.dimensions, dimension)?;
                        (axis, schema.labels.get(axis).cloned().unwrap_or(Labels::None))
                    }
                };
                let along = along(item, &labels, schema.shape()[axis], store)?;
                let name = schema.dimensions.get(axis).cloned().flatten();
                let name = name.unwrap_or_else(|| dimension.clone());
                Ok(SelectionItem::Named(name, along.unwrap_or(AxisSelection::ALL)))
            }
            other => Ok(other.clone()),
        })
        .collect::<Result<_>>()?;
    Ok(Selection { items })
}

/// The axis and label array for a name that is not a dimension but that of an array that labels an axis.
pub(crate) fn coordinate_of<'a>(schema: &'a ArraySchema, name: &str) -> Option<(usize, &'a str)> {
    if schema.dimensions.iter().flatten().any(|own| own == name) {
        return None;
    }
    let nodes = schema.labels.iter().enumerate().filter_map(|(axis, labels)| match labels {
        Labels::Node(node) => Some((axis, node.as_str())),
        _ => None,
    });
    let more = schema.stored.coordinates.iter().map(|(axis, node)| (*axis, node.as_str()));
    let mut found = more.chain(nodes).filter(|(axis, _)| *axis < schema.dimensions.len());
    found.find(|(_, node)| node.rsplit('/').next() == Some(name))
}

/// The selection of an item along a dimension of this length and these labels; `None` for an item by position, which names no
/// dimension.
pub(crate) fn along(
    item: &SelectionItem,
    labels: &Labels,
    extent: u64,
    store: &dyn Store,
) -> Result<Option<AxisSelection>> {
    Ok(Some(match item {
        SelectionItem::Positions { .. } => return Ok(None),
        SelectionItem::Named(_, selection) => *selection,
        SelectionItem::Labels { dimension, from, to, single } => {
            let ends = if *single {
                Ends::one(from.as_deref())
            } else {
                Ends::range(from.as_deref(), to.as_deref())
            };
            let range = positions(labels, extent, dimension, ends, store)?;
            if *single && range.1 - range.0 == 1 {
                AxisSelection::Index(range.0)
            } else {
                AxisSelection::range(range.0, range.1)
            }
        }
        SelectionItem::Nearest { dimension, label } => {
            AxisSelection::Index(nearest(labels, extent, dimension, label, store)?)
        }
    }))
}

/// The request along a dimension: both ends of a range, or one label, which must exist.
#[derive(Debug, Clone, Copy)]
struct Ends<'a> {
    from: Option<&'a str>,
    to: Option<&'a str>,
    single: bool,
}

impl<'a> Ends<'a> {
    const fn range(from: Option<&'a str>, to: Option<&'a str>) -> Self {
        Self { from, to, single: false }
    }

    /// One label. `30:60` means a range if both parts are numbers, as users often write it.
    fn one(label: Option<&'a str>) -> Self {
        let is_number = |text: &str| text.trim().parse::<f64>().is_ok();
        match label.and_then(|label| label.split_once(':')) {
            Some((from, to)) if is_number(from) && is_number(to) => {
                Self::range(Some(from.trim()), Some(to.trim()))
            }
            _ => Self { from: label, to: label, single: true },
        }
    }
}

/// The half-open range of positions between two labels.
fn positions(
    labels: &Labels,
    extent: u64,
    dimension: &str,
    ends: Ends<'_>,
    store: &dyn Store,
) -> Result<(i64, i64)> {
    match labels {
        // A dimension without labels is labelled by its positions, as in xarray.
        Labels::None => by_domain(0, &DType::Int64, extent, dimension, ends),
        Labels::Texts(texts) => by_text(texts, dimension, ends),
        Labels::Domain { first, dtype } => by_domain(*first, dtype, extent, dimension, ends),
        Labels::Node(path) => {
            let own = coordinate(store, path, extent, dimension)?;
            [ends.from, ends.to].into_iter().flatten().try_for_each(|label| own.check(label, dimension))?;
            by_value(&own.values, own.times, dimension, ends)
        }
    }
}

/// The position with the label nearest to a number or a time; the first of two that are equally near.
fn nearest(labels: &Labels, extent: u64, dimension: &str, label: &str, store: &dyn Store) -> Result<i64> {
    let (numbers, target) = match labels {
        Labels::Node(path) => {
            let own = coordinate(store, path, extent, dimension)?;
            own.check(label, dimension)?;
            let (numbers, times) = (numbers_of(&own.values), own.times);
            let numbers = numbers
                .ok_or_else(|| Error::invalid(format!("dimension {dimension} has no numeric labels")))?;
            let date = times.and_then(|times| Some((times, times.calendar().span(label)?)));
            match (date, label.parse::<f64>()) {
                (Some((times, (start, _))), _) => {
                    let distance = |number: f64| {
                        times.instant(number).map_or(f64::INFINITY, |instant| (instant - start) as f64)
                    };
                    (numbers.into_iter().map(distance).collect(), 0.0)
                }
                (_, Ok(number)) => (numbers, number),
                (None, Err(_)) => return Err(not_a(dimension, label, "number")),
            }
        }
        Labels::Texts(texts) => {
            let numbers: Option<Vec<f64>> = texts.iter().map(|text| text.parse().ok()).collect();
            let numbers = numbers
                .ok_or_else(|| Error::invalid(format!("dimension {dimension} has no numeric labels")))?;
            (numbers, label.parse().map_err(|_| not_a(dimension, label, "number"))?)
        }
        other => {
            let first = if let Labels::Domain { first, .. } = other { *first } else { 0 };
            let number: f64 = label.parse().map_err(|_| not_a(dimension, label, "number"))?;
            let last = extent.saturating_sub(1) as f64;
            return Ok((number - first as f64).round().clamp(0.0, last) as i64);
        }
    };
    let distances = numbers.iter().map(|number| (number - target).abs());
    let best = distances.enumerate().filter(|(_, distance)| distance.is_finite());
    let best = best.min_by(|(_, one), (_, other)| one.total_cmp(other));
    best.map(|(at, _)| at as i64).ok_or_else(|| Error::invalid(format!("dimension {dimension} is empty")))
}

/// The time axis of an array, from its attributes.
pub(crate) fn time_axis(schema: &ArraySchema) -> Option<TimeAxis> {
    let text = |name: &str| schema.attributes.get(name).and_then(|value| value.as_text());
    TimeAxis::parse(&text("units")?, &text("calendar").unwrap_or_default())
}

/// A coordinate array.
struct Coordinate {
    values: Values,
    /// Its time axis, if it counts time.
    times: Option<TimeAxis>,
    /// Units that resemble those of a time axis but cannot be parsed.
    unknown_units: Option<String>,
}

impl Coordinate {
    /// Rejects labels that are not numbers along times in unknown units.
    fn check(&self, label: &str, dimension: &str) -> Result<()> {
        match &self.unknown_units {
            Some(units) if label.parse::<f64>().is_err() => Err(Error::invalid(format!(
                "dimension {dimension} has units '{units}', which are not a CF time; select by number"
            ))),
            _ => Ok(()),
        }
    }
}

/// The coordinate array at a path.
fn coordinate(store: &dyn Store, path: &str, extent: u64, dimension: &str) -> Result<Coordinate> {
    match store.node(path)? {
        Node::Array(array) if array.schema().shape() == [extent] => {
            let times = time_axis(array.schema());
            let units = array.schema().attributes.get("units").and_then(|value| value.as_text());
            let unknown_units = units.filter(|units| times.is_none() && units.contains(" since "));
            let values = read_serial(&*array, Positions::whole(&[extent]))?;
            Ok(Coordinate { values, times, unknown_units })
        }
        _ => Err(Error::invalid(format!("dimension {dimension}: {path} does not hold its labels"))),
    }
}

/// The labels along a dimension as values, one per position: dates if a coordinate counts time. `None` if there are only
/// positions.
pub(crate) fn values_along(
    labels: &Labels,
    extent: u64,
    dimension: &str,
    store: &dyn Store,
) -> Result<Option<Values>> {
    match labels {
        Labels::None => Ok(None),
        Labels::Texts(texts) if texts.len() as u64 == extent => {
            Values::new(DType::String, &[extent], Elements::variable(texts.iter())).map(Some)
        }
        Labels::Texts(_) => Ok(None),
        Labels::Domain { first, dtype } => {
            let dtype = if matches!(dtype, DType::DateTime(_)) { dtype.clone() } else { DType::Int64 };
            let ticks = (0..extent).flat_map(|at| first.wrapping_add_unsigned(at).to_ne_bytes());
            Values::new(dtype, &[extent], Elements::fixed(ticks.collect::<Vec<u8>>())).map(Some)
        }
        Labels::Node(path) => match coordinate(store, path, extent, dimension) {
            Ok(Coordinate { values, times: Some(times), .. }) => dates(&values, times).map(Some),
            Ok(Coordinate { values, .. }) => Ok(Some(values)),
            // An array that does not hold the labels is not a coordinate.
            Err(Error::Invalid(_)) => Ok(None),
            Err(error) => Err(error),
        },
    }
}

/// Times as dates: NumPy's if they cover all values, else as text.
fn dates(values: &Values, times: TimeAxis) -> Result<Values> {
    let Some(numbers) = numbers_of(values) else { return Ok(values.clone()) };
    let gregorian = match times.calendar() {
        Calendar::ProlepticGregorian => true,
        // Before 1582-10-15 the calendars differ.
        Calendar::Standard => numbers
            .iter()
            .all(|number| times.instant(*number) >= Calendar::Standard.span("1582-10-15").map(|span| span.0)),
        _ => false,
    };
    const UNITS: [(TimeUnit, i128); 3] = [
        (TimeUnit::Millisecond, 1_000_000_000_000_000),
        (TimeUnit::Microsecond, 1_000_000_000_000),
        (TimeUnit::Nanosecond, 1_000_000_000),
    ];
    for (unit, tick) in UNITS.into_iter().filter(|_| gregorian) {
        let ticks: Option<Vec<i64>> = numbers
            .iter()
            .map(|number| {
                times
                    .instant(*number)
                    .filter(|at| at % tick == 0)
                    .and_then(|at| i64::try_from(at / tick).ok())
            })
            .collect();
        if let Some(ticks) = ticks {
            let bytes: Vec<u8> = ticks.iter().flat_map(|tick| tick.to_ne_bytes()).collect();
            return Values::new(DType::DateTime(unit), &values.shape, Elements::fixed(bytes));
        }
    }
    Values::new(
        DType::String,
        &values.shape,
        Elements::variable(numbers.iter().map(|number| times.text(*number))),
    )
}

/// Values of an array that counts time, as the texts of dates; `None` if it does not.
pub(crate) fn date_texts(schema: &ArraySchema, values: &Values) -> Option<Values> {
    let times = time_axis(schema)?;
    let is_missing = |index: usize| values.elements.is_missing(index);
    let number = |index: usize| element_to_json(&values.dtype, &values.elements, index).as_f64();
    let texts: Option<Vec<String>> =
        (0..values.len())
            .map(|index| {
                if is_missing(index) { Some(String::new()) } else { number(index).map(|own| times.text(own)) }
            })
            .collect();
    let elements = Elements::variable(texts?).with_validity(values.elements.validity.clone());
    Values::new(DType::String, &values.shape, elements).ok()
}

/// The numbers of a coordinate; `None` if it is not numeric.
pub(crate) fn numbers_of(values: &Values) -> Option<Vec<f64>> {
    let number = |index| element_to_json(&values.dtype, &values.elements, index).as_f64();
    (0..values.len()).map(number).collect()
}

fn not_a(dimension: &str, label: &str, kind: &str) -> Error {
    let hint = if label.contains('=') { "; give each selection as its own argument" } else { "" };
    Error::invalid(format!("dimension {dimension}: {label} is not a {kind}{hint}"))
}

/// Selects by exact text; if all labels are numbers, by number.
fn by_text(texts: &[String], dimension: &str, ends: Ends<'_>) -> Result<(i64, i64)> {
    let find = |label: &str, last: bool| {
        let same = |text: &String| text == label;
        let found = if last { texts.iter().rposition(same) } else { texts.iter().position(same) };
        found.ok_or_else(|| unknown(dimension, label, texts.iter().map(String::as_str)))
    };
    let numbers: Option<Vec<f64>> = texts.iter().map(|text| text.parse().ok()).collect();
    if let Some(numbers) = numbers {
        return by_number(&numbers, None, dimension, ends);
    }
    let start = ends.from.map_or(Ok(0), |label| find(label, false))?;
    let end = ends.to.map_or(Ok(texts.len()), |label| find(label, true).map(|at| at + 1))?;
    Ok((start as i64, end.max(start) as i64))
}

fn unknown<'a>(dimension: &str, label: &str, all: impl Iterator<Item = &'a str>) -> Error {
    let some: Vec<_> = all.take(4).collect();
    Error::invalid(format!(
        "dimension {dimension} has no label {label}; its labels start with {}",
        some.join(", ")
    ))
}

fn by_domain(first: i64, dtype: &DType, extent: u64, dimension: &str, ends: Ends<'_>) -> Result<(i64, i64)> {
    let tick = |label: &str, round_up: bool| -> Result<i128> {
        if let DType::DateTime(unit) = dtype {
            // Dates compare as text of the same precision: walk to the first at or after the label.
            return date_position(label, |ticks| time_text(ticks, *unit), first, extent, round_up)
                .ok_or_else(|| Error::invalid(format!("dimension {dimension}: {label} is not a date")));
        }
        label
            .parse()
            .map_err(|_| Error::invalid(format!("dimension {dimension}: {label} is not a whole number")))
    };
    let last = i128::from(first) + i128::from(extent) - 1;
    let low = ends.from.map_or(Ok(i128::from(first)), |label| tick(label, false))?;
    let high = ends.to.map_or(Ok(last), |label| tick(label, true))?;
    if let Some(label) = ends.from.filter(|_| ends.single && (low > last || high < i128::from(first))) {
        return Err(Error::invalid(format!(
            "dimension {dimension} has no label {label}; it runs from {first} to {last}"
        )));
    }
    let clamp = |value: i128| value.clamp(0, i128::from(extent)) as i64;
    let start = clamp(low - i128::from(first));
    Ok((start, clamp(high - i128::from(first) + 1).max(start)))
}

/// The tick of a date in a domain: the first at or after `label`, or with `round_up` the last that it covers.
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

fn by_value(values: &Values, times: Option<TimeAxis>, dimension: &str, ends: Ends<'_>) -> Result<(i64, i64)> {
    if let Some(numbers) = numbers_of(values) {
        return by_number(&numbers, times, dimension, ends);
    }
    let json = |index| element_to_json(&values.dtype, &values.elements, index);
    let texts: Vec<String> =
        (0..values.len()).map(|index| json(index).as_str().unwrap_or_default().to_owned()).collect();
    if !matches!(values.dtype, DType::DateTime(_)) {
        return by_text(&texts, dimension, ends);
    }
    let inside = |text: &String| {
        let low = ends.from.is_none_or(|from| text.as_str() >= from);
        let high = ends.to.is_none_or(|to| text.get(..to.len()).unwrap_or(text) <= to);
        low && high
    };
    let chosen: Vec<bool> = texts.iter().map(inside).collect();
    if let Some(label) = ends.from.filter(|_| ends.single && !chosen.contains(&true)) {
        return Err(unknown(dimension, label, texts.iter().map(String::as_str)));
    }
    one_run(&chosen, dimension)
}

/// Selects by number or by date, in ascending and descending coordinates.
fn by_number(
    numbers: &[f64],
    times: Option<TimeAxis>,
    dimension: &str,
    ends: Ends<'_>,
) -> Result<(i64, i64)> {
    let kind = if times.is_some() { "date such as 2000-01-31, nor a number" } else { "number" };
    let limit = |label: &str| {
        // Along time, 2000 is a year.
        if let Some((start, end)) = times.and_then(|times| times.calendar().span(label)) {
            return Ok(Limit::Span(start, end));
        }
        label.parse().map(Limit::Number).map_err(|_| not_a(dimension, label, kind))
    };
    let (mut low, mut high) = (ends.from.map(limit).transpose()?, ends.to.map(limit).transpose()?);
    // Along a descending coordinate, the higher end may come first, as in xarray.
    if let (Some(from), Some(to)) = (low, high)
        && numbers.first() > numbers.last()
        && to.is_below(from)
    {
        (low, high) = (high, low);
    }
    let instant = |number: f64| times.and_then(|times| times.instant(number));
    let inside = |number: &f64| {
        low.is_none_or(|low| match low {
            Limit::Number(low) => *number >= low,
            Limit::Span(start, _) => instant(*number).is_some_and(|at| at >= start),
        }) && high.is_none_or(|high| match high {
            Limit::Number(high) => *number <= high,
            Limit::Span(_, end) => instant(*number).is_some_and(|at| at < end),
        })
    };
    let chosen: Vec<bool> = numbers.iter().map(inside).collect();
    if let (Some(label), Some(low)) = (ends.from.filter(|_| ends.single && !chosen.contains(&true)), low) {
        return Err(no_label(numbers, times, dimension, label, low));
    }
    one_run(&chosen, dimension)
}

/// A bound of a range: a number, or a date and the period that it names.
#[derive(Debug, Clone, Copy)]
enum Limit {
    Number(f64),
    Span(i128, i128),
}

impl Limit {
    const fn is_below(self, other: Self) -> bool {
        match (self, other) {
            (Self::Number(own), Self::Number(other)) => own < other,
            (Self::Span(_, own), Self::Span(other, _)) => own <= other,
            _ => false,
        }
    }
}

/// The error for a missing label, which names the neighbours.
fn no_label(numbers: &[f64], times: Option<TimeAxis>, dimension: &str, label: &str, limit: Limit) -> Error {
    let instant = |number: f64| times.and_then(|times| times.instant(number));
    let is_below = |number: f64| match limit {
        Limit::Number(limit) => number < limit,
        Limit::Span(start, _) => instant(number).is_some_and(|at| at < start),
    };
    let text = |number: f64| times.map_or_else(|| number.to_string(), |times| times.text(number));
    let below = numbers.iter().copied().filter(|number| is_below(*number)).max_by(f64::total_cmp);
    let above = numbers.iter().copied().filter(|number| !is_below(*number)).min_by(f64::total_cmp);
    let near: Vec<String> = below.into_iter().chain(above).map(text).collect();
    let near = match &near[..] {
        [only] => format!("the nearest is {only}"),
        several => format!("its neighbours are {}", several.join(" and ")),
    };
    Error::invalid(format!(
        "dimension {dimension} has no label {label}; {near}. Use {dimension}~{label} for the nearest"
    ))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_a_range_are_in_the_order_of_a_descending_coordinate() -> Result<()> {
        let (up, down) = ([20.0, 30.0, 40.0, 50.0], [50.0, 40.0, 30.0, 20.0]);
        let select =
            |numbers: &[f64], from, to| by_number(numbers, None, "lat", Ends::range(Some(from), Some(to)));
        assert_eq!(select(&up, "30", "40")?, (1, 3));
        assert_eq!(select(&down, "30", "40")?, (1, 3));
        assert_eq!(select(&down, "40", "30")?, (1, 3));
        // As in xarray, nothing is between the ends.
        assert_eq!(select(&up, "40", "30")?, (0, 0));
        let days = TimeAxis::parse("days since 2000-01-01", "standard");
        let backwards =
            |from, to| by_number(&[40.0, 31.0, 30.0, 0.0], days, "time", Ends::range(Some(from), Some(to)));
        assert_eq!(backwards("2000-02", "2000-01-31")?, (0, 3));
        assert_eq!(backwards("2000-01-31", "2000-02")?, (0, 3));
        assert_eq!(backwards("2000-02", "2000-02")?, (0, 2));
        Ok(())
    }
}
