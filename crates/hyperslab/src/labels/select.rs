//! Positions of labels along a coordinate.

use std::ops::Range;

use hyperslab_core::{Calendar, Error, Number, Result};

use super::coordinate::{Coordinate, LabelKind, float_key};

/// The request along a dimension: both ends of a range, or one label, which must exist.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ends<'a> {
    pub(super) from: Option<&'a str>,
    pub(super) to: Option<&'a str>,
    pub(super) single: bool,
}

impl<'a> Ends<'a> {
    /// One label.
    pub(super) const fn one(label: &'a str) -> Self {
        Self { from: Some(label), to: Some(label), single: true }
    }
}

/// The keys of times count attoseconds.
const ATTOSECONDS_PER_DAY: i128 = 86_400 * 1_000_000_000_000_000_000;

/// The smallest and the largest key that a label names.
type Keys = (i128, i128);

impl Coordinate {
    /// The positions between two labels, both included.
    pub(super) fn positions_of(&self, ends: Ends<'_>, dimension: &str) -> Result<Range<u64>> {
        let limits = |ends: Ends<'_>| -> Result<(Option<Keys>, Option<Keys>)> {
            let keys = |label: &str| self.keys_of(label, dimension);
            Ok((ends.from.map(keys).transpose()?, ends.to.map(keys).transpose()?))
        };
        let (ends, (from, to)) = match limits(ends) {
            Ok(found) => (ends, found),
            // Users often write a range with a colon.
            Err(why) => {
                let ranges = ends.from.filter(|_| ends.single).into_iter().flat_map(colon_ranges);
                let mut found = ranges.filter_map(|range| Some((range, limits(range).ok()?)));
                found.next().ok_or(why)?
            }
        };
        if ends.single && self.kind == LabelKind::Texts {
            return self.one_run(|at, _| ends.from == Some(self.text(at).as_str()), dimension);
        }
        let (from, to) = match (from, to) {
            // Along a descending coordinate, the higher end may come first, as in xarray.
            (Some(from), Some(to)) if to.1 < from.0 && self.is_descending() => (Some(to), Some(from)),
            other => other,
        };
        let (low, high) = (from.map(|keys| keys.0), to.map(|keys| keys.1));
        let found = match (low, high) {
            (None, None) => 0..self.len(),
            _ if self.is_count() => {
                let start = low.map_or(0, |low| self.first_at_least(low));
                let end = high.map_or(self.len(), |high| self.first_at_least(high.saturating_add(1)));
                start..end.max(start)
            }
            _ => {
                let inside =
                    |key: i128| low.is_none_or(|low| key >= low) && high.is_none_or(|high| key <= high);
                self.one_run(|_, key| key.is_some_and(inside), dimension)?
            }
        };
        match (ends.from, from) {
            (Some(label), Some(keys)) if ends.single && found.is_empty() => {
                Err(self.no_label(dimension, label, keys))
            }
            _ => Ok(found),
        }
    }

    /// Returns true if a label names a period of time that may have several positions, as in xarray: a year or a month always, a day
    /// only if there are times within days, and so on.
    pub(super) fn is_period(&self, label: &str) -> bool {
        let (LabelKind::Times(_) | LabelKind::Dates(_)) = self.kind else { return false };
        let Some((start, end)) = self.calendar().and_then(|calendar| calendar.span(label.trim())) else {
            return false;
        };
        let length = end - start;
        length > ATTOSECONDS_PER_DAY
            || (0..self.len()).any(|at| self.key(at).is_some_and(|key| key.rem_euclid(length) != 0))
    }

    /// Whether each position has a label.
    pub(crate) fn matches(&self, label: &str, dimension: &str) -> Result<Vec<bool>> {
        if matches!(self.kind, LabelKind::Texts | LabelKind::NumberTexts) {
            let same: Vec<bool> = (0..self.len()).map(|at| self.text(at) == label).collect();
            if same.contains(&true) {
                return Ok(same);
            }
        }
        let keys = self.keys_of(label, dimension)?;
        let inside = |key: i128| (keys.0..=keys.1).contains(&key);
        let same: Vec<bool> = (0..self.len()).map(|at| self.key(at).is_some_and(inside)).collect();
        if same.contains(&true) { Ok(same) } else { Err(self.no_label(dimension, label, keys)) }
    }

    /// The position with the label nearest to a number or a time. Of two that are equally near, the larger label, as in xarray.
    pub(super) fn nearest(&self, label: &str, dimension: &str) -> Result<u64> {
        let empty = || Error::invalid(format!("dimension {dimension} is empty"));
        let last = self.len().checked_sub(1).ok_or_else(empty)?;
        if self.kind == LabelKind::Texts {
            return Err(Error::invalid(format!("dimension {dimension} has no numeric labels")));
        }
        let target = match self.kind {
            LabelKind::Times(_) | LabelKind::Dates(_) => Target::Key(self.keys_of(label, dimension)?.0),
            LabelKind::Integers => match label.trim().parse() {
                Ok(number) => Target::Key(number),
                Err(_) => Target::Float(self.float_of(label, dimension)?),
            },
            _ => Target::Float(self.float_of(label, dimension)?),
        };
        if self.is_count() {
            let key = match target {
                Target::Key(key) => key,
                Target::Float(number) => (number + 0.5).floor() as i128,
            };
            let above = self.first_at_least(key).min(last);
            let below = above.saturating_sub(1);
            let distance = |at: u64| self.key(at).map_or(u128::MAX, |own| own.abs_diff(key));
            return Ok(if distance(below) < distance(above) { below } else { above });
        }
        let best = (0..self.len())
            .filter_map(|at| Some((at, self.distance(at, target)?, self.key(at)?)))
            .min_by(|(_, one, one_key), (_, other, other_key)| one.cmp(other).then(other_key.cmp(one_key)));
        best.map(|(at, ..)| at).ok_or_else(empty)
    }

    /// The distance of a label from a target, in an order of distances; `None` for a missing label.
    fn distance(&self, at: u64, target: Target) -> Option<u128> {
        match target {
            Target::Key(target) => self.key(at).map(|key| key.abs_diff(target)),
            Target::Float(target) => {
                let distance = (self.float(at)? - target).abs();
                float_key(distance).filter(|_| distance.is_finite()).map(i128::unsigned_abs)
            }
        }
    }

    /// The label at a position as a float.
    fn float(&self, at: u64) -> Option<f64> {
        match self.kind {
            LabelKind::NumberTexts => self.text(at).parse().ok(),
            _ => match self.number(at)? {
                Number::Integer(number) => Some(number as f64),
                Number::Float(number) => Some(number),
            },
        }
    }

    /// The first position whose key is at least this, along ascending labels.
    fn first_at_least(&self, key: i128) -> u64 {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.key(middle).is_some_and(|own| own < key) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// The keys that a label names: a period of time, a number, or the first and the last position of a text.
    fn keys_of(&self, label: &str, dimension: &str) -> Result<Keys> {
        let one = |key: i128| (key, key);
        match self.kind {
            LabelKind::Texts => {
                let same = |at: &u64| self.text(*at) == label;
                let first = (0..self.len()).find(same).ok_or_else(|| self.no_text(dimension, label))?;
                let last = (0..self.len()).rfind(same).unwrap_or(first);
                Ok((first.into(), last.into()))
            }
            LabelKind::Integers => {
                if let Ok(number) = label.trim().parse() {
                    return Ok(one(number));
                }
                let number = self.float_of(label, dimension)?;
                if self.is_count() && number.fract() != 0.0 {
                    return Err(self.not_a(dimension, label));
                }
                Ok((number.ceil() as i128, number.floor() as i128))
            }
            LabelKind::Floats(_) | LabelKind::NumberTexts => {
                let number = self.float_of(label, dimension)?;
                float_key(number).map(one).ok_or_else(|| self.not_a(dimension, label))
            }
            LabelKind::Times(_) | LabelKind::Dates(_) => {
                let label = label.trim();
                let span = self.calendar().and_then(|calendar| calendar.span(label));
                // Along time, 2000 is a year.
                let key = span.map(|(start, end)| (start, end - 1)).or_else(|| match self.kind {
                    LabelKind::Times(times) => match label.parse::<i64>() {
                        Ok(number) => times.instant_of_integer(number.into()).map(one),
                        Err(_) => times.instant(label.parse().ok()?).map(one),
                    },
                    _ => None,
                });
                key.ok_or_else(|| self.not_a(dimension, label))
            }
        }
    }

    /// A label as a number of the precision that labels have.
    fn float_of(&self, label: &str, dimension: &str) -> Result<f64> {
        let number: Option<f64> = label.trim().parse().ok().filter(|number: &f64| !number.is_nan());
        match (number, self.kind) {
            (Some(number), LabelKind::Floats(width)) => Ok(width.nearest(number)),
            (Some(number), _) => Ok(number),
            (None, _) => Err(self.not_a(dimension, label)),
        }
    }

    /// Returns true if the first label is larger than the last.
    fn is_descending(&self) -> bool {
        let first = (0..self.len()).find_map(|at| self.key(at));
        let last = (0..self.len()).rev().find_map(|at| self.key(at));
        first > last && self.kind != LabelKind::Texts
    }

    /// The positions for which `is_inside` holds, given a position and its key. They must be neighbours.
    fn one_run(&self, is_inside: impl Fn(u64, Option<i128>) -> bool, dimension: &str) -> Result<Range<u64>> {
        let (mut found, mut count) = (0..0, 0);
        for at in 0..self.len() {
            if is_inside(at, self.key(at)) {
                if count == 0 {
                    found.start = at;
                }
                found.end = at + 1;
                count += 1;
            }
        }
        if found.end - found.start == count {
            return Ok(found);
        }
        Err(Error::invalid(format!(
            "dimension {dimension} is not sorted: the labels do not select one range"
        )))
    }

    /// The error for a text that is not a label of this kind.
    fn not_a(&self, dimension: &str, label: &str) -> Error {
        if let Some(units) = &self.unknown_units {
            return Error::invalid(format!(
                "dimension {dimension} has units '{units}', which are not a CF time; select by number"
            ));
        }
        if let Some(calendar) = self.calendar() {
            let calendars = [Calendar::ProlepticGregorian, Calendar::AllLeap, Calendar::Days360];
            if calendars.iter().any(|other| other.span(label).is_some()) {
                let name = calendar.name();
                return Error::invalid(format!(
                    "dimension {dimension}: there is no {label} in the calendar {name}"
                ));
            }
        }
        let kind = match self.kind {
            LabelKind::Times(_) => "date such as 2000-01-30, nor a number",
            LabelKind::Dates(_) => "date such as 2000-01-30",
            LabelKind::Integers if self.is_count() => "whole number",
            _ => "number",
        };
        let hint = match () {
            () if label.contains('=') => "; give each selection as its own argument".to_owned(),
            () if label.contains(':') => {
                format!("; a range is {dimension}=FIRST..LAST, a range of positions {dimension}[FIRST:END]")
            }
            () => String::new(),
        };
        Error::invalid(format!("dimension {dimension}: {label} is not a {kind}{hint}"))
    }

    fn no_text(&self, dimension: &str, label: &str) -> Error {
        let some: Vec<_> = (0..self.len().min(4)).map(|at| self.text(at)).collect();
        Error::invalid(format!(
            "dimension {dimension} has no label {label}; its labels start with {}",
            some.join(", ")
        ))
    }

    /// The error for a missing label, which names the neighbours.
    fn no_label(&self, dimension: &str, label: &str, keys: Keys) -> Error {
        if self.kind == LabelKind::Texts {
            return self.no_text(dimension, label);
        }
        let missing = format!("dimension {dimension} has no label {label}");
        if self.len() == 0 {
            return Error::invalid(format!("dimension {dimension} is empty"));
        }
        let (below, above) = if self.is_count() {
            let above = self.first_at_least(keys.0);
            (above.checked_sub(1), Some(above).filter(|at| *at < self.len()))
        } else {
            let own = |at: u64| Some((self.key(at)?, at));
            let all = (0..self.len()).filter_map(own);
            let below = all.clone().filter(|(key, _)| *key < keys.0).max_by_key(|(key, _)| *key);
            let above = all.filter(|(key, _)| *key >= keys.0).min_by_key(|(key, _)| *key);
            (below.map(|(_, at)| at), above.map(|(_, at)| at))
        };
        if self.is_count() && self.kind == LabelKind::Integers {
            let (first, last) = (self.text(0), self.text(self.len() - 1));
            return Error::invalid(format!("{missing}; it runs from {first} to {last}"));
        }
        let text = |at: u64| {
            let text = self.text(at);
            text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
        };
        let near: Vec<String> = below.into_iter().chain(above).map(text).collect();
        let near = match &near[..] {
            [only] => format!("the nearest is {only}"),
            several => format!("its neighbours are {}", several.join(" and ")),
        };
        Error::invalid(format!("{missing}; {near}. Use {dimension}~{label} for the nearest"))
    }
}

/// What a nearest label is near to.
#[derive(Debug, Clone, Copy)]
enum Target {
    Key(i128),
    Float(f64),
}

/// The ranges that a text with colons may mean: `30:60`, `2000-01-05:2000-01-07`, `30:`.
fn colon_ranges(text: &str) -> impl Iterator<Item = Ends<'_>> {
    text.match_indices(':').filter_map(move |(at, _)| {
        let (from, to) = (text[..at].trim(), text[at + 1..].trim());
        let (from, to) = (Some(from).filter(|from| !from.is_empty()), Some(to).filter(|to| !to.is_empty()));
        let is_number = |text: &str| text.parse::<f64>().is_ok();
        // The colons of a time of day separate a date from a number.
        let are_alike = from.zip(to).is_none_or(|(from, to)| is_number(from) == is_number(to));
        (are_alike && (from.is_some() || to.is_some())).then_some(Ends { from, to, single: false })
    })
}
