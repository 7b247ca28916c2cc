//! Parses selections: `[0, 10:20, ::2]`, `time[3:7]`, `time=2020-01-01..2020-02-01`, `lat~50.1`.

use std::str::FromStr;

use super::{AxisSelection, Selection, SelectionItem};
use crate::{Error, Result};

impl FromStr for Selection {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let text = text.trim();
        let bad = |why: &str| Error::invalid(format!("selection {text:?}: {why}"));
        let item = if let Some((name, axes)) = text.strip_suffix(']').and_then(|text| text.split_once('[')) {
            let name = name.trim();
            if name.is_empty() {
                positions(axes).map_err(|why| bad(&why))?
            } else {
                SelectionItem::Named(name.to_owned(), axis(axes).map_err(|why| bad(&why))?)
            }
        } else if let Some((name, labels)) = text.split_once('=') {
            if let Some(meant) = range_of_slice(labels.trim()) {
                let name = name.trim();
                return Err(bad(&format!("a range of labels has two dots, as in {name}={meant}")));
            }
            labels_of(name.trim(), labels.trim()).ok_or_else(|| bad("a label is missing"))?
        } else if let Some((name, label)) = text.split_once('~') {
            let (dimension, label) = (name.trim().to_owned(), label.trim().to_owned());
            if dimension.is_empty() || label.is_empty() {
                return Err(bad("a label is missing"));
            }
            SelectionItem::Nearest { dimension, label }
        } else {
            return Err(bad("expected '[0, 10:20, ::2]', 'time[3:7]', 'time=FIRST..LAST' or 'lat~NEAREST'"));
        };
        Ok(Self { items: vec![item] })
    }
}

fn positions(axes: &str) -> Result<SelectionItem, String> {
    let (mut head, mut tail, mut ellipsis) = (Vec::new(), Vec::new(), false);
    let axes = axes.trim().trim_end_matches(',');
    for part in axes.split(',').filter(|_| !axes.trim().is_empty()) {
        if part.trim() == "..." {
            if std::mem::replace(&mut ellipsis, true) {
                return Err("more than one '...'".into());
            }
        } else if ellipsis {
            tail.push(axis(part)?);
        } else {
            head.push(axis(part)?);
        }
    }
    Ok(SelectionItem::Positions { head, tail })
}

fn axis(text: &str) -> Result<AxisSelection, String> {
    let text = text.trim();
    let number = |text: &str| {
        let text = text.trim();
        if text.is_empty() {
            return Ok(None);
        }
        text.parse::<i64>().map(Some).map_err(|_| format!("{text:?} is not a whole number"))
    };
    let mut parts = text.split(':');
    let first = number(parts.next().unwrap_or_default())?;
    let Some(second) = parts.next() else {
        return first.map(AxisSelection::Index).ok_or_else(|| "an axis is missing".into());
    };
    let stop = number(second)?;
    let step = parts.next().map_or(Ok(None), number)?.unwrap_or(1);
    if parts.next().is_some() {
        return Err(format!("{text:?} has more than start:stop:step"));
    }
    if step == 0 {
        return Err("the step must not be zero".into());
    }
    Ok(AxisSelection::Slice { start: first, stop, step })
}

fn labels_of(dimension: &str, labels: &str) -> Option<SelectionItem> {
    let given = |text: &str| (!text.trim().is_empty()).then(|| text.trim().to_owned());
    if dimension.is_empty() {
        return None;
    }
    let (from, to, single) = match labels.split_once("..") {
        Some((from, to)) => (given(from), given(to), false),
        None => {
            let label = given(labels)?;
            (Some(label.clone()), Some(label), true)
        }
    };
    Some(SelectionItem::Labels { dimension: dimension.to_owned(), from, to, single })
}

/// The range that was meant by labels written like a slice: `30:`, `:30` or two dates with a colon between them. `30:60` is
/// understood when the labels are known.
fn range_of_slice(labels: &str) -> Option<String> {
    let is_date = |text: &str| {
        let bytes = text.as_bytes();
        bytes.len() >= 6 && bytes[..4].iter().all(u8::is_ascii_digit) && bytes[4] == b'-'
    };
    let is_end = |text: &str| is_date(text) || text.parse::<f64>().is_ok();
    if labels.contains("..") {
        return None;
    }
    labels.match_indices(':').find_map(|(at, _)| {
        let (from, to) = (labels[..at].trim(), labels[at + 1..].trim());
        let is_range = match (from.is_empty(), to.is_empty()) {
            (false, true) => is_end(from),
            (true, false) => is_end(to),
            (false, false) => is_date(from) && is_date(to),
            (true, true) => false,
        };
        is_range.then(|| format!("{from}..{to}"))
    })
}
