//! The order of stores along their dimension, with gaps and overlaps.

use std::path::PathBuf;

use hyperslab_core::{Error, Result};

use super::examine::{Model, StoreFacts};

/// A step between two stores that exceeds the usual step by this factor is a gap.
const GAP: f64 = 1.5;

/// The maximum number of gaps listed.
const MOST_GAPS: usize = 20;

/// The store numbers, sorted by coordinate.
pub(super) fn sorted(
    model: &Model,
    paths: &[PathBuf],
    all: &[StoreFacts],
    first_stays: bool,
    notes: &mut Vec<(String, String)>,
) -> Result<Vec<usize>> {
    let mut order: Vec<usize> = (0..all.len()).collect();
    let dimension = &model.dimension;
    let Some(path) = &model.coordinate else {
        notes.push((
            "/".to_owned(),
            format!("{dimension} has no coordinate; files are joined in the given order"),
        ));
        return Ok(order);
    };
    let numbers: Option<Vec<&[f64]>> = all.iter().map(|facts| facts.coordinate.as_deref()).collect();
    let Some(numbers) = numbers else {
        notes.push((path.clone(), "it is not numeric; files are joined in the given order".to_owned()));
        return Ok(order);
    };
    for (number, values) in numbers.iter().enumerate() {
        if values.iter().any(|value| value.is_nan()) {
            return Err(Error::invalid(format!("{}: {path} has missing values", paths[number].display())));
        }
    }
    let spans = Spans { model, paths, numbers };
    // Stores without elements fit anywhere.
    order.retain(|number| !spans.numbers[*number].is_empty());
    let descending = spans.descending(path)?;
    let key =
        |number: &usize| if descending { -spans.numbers[*number][0] } else { spans.numbers[*number][0] };
    let fixed = usize::from(first_stays && order.first() == Some(&0));
    order[fixed..].sort_by(|one, other| key(one).total_cmp(&key(other)));
    for pair in order.windows(2) {
        spans.check_overlap(pair[0], pair[1], descending)?;
    }
    spans.note_gaps(&order, path, notes);
    let empty = (0..all.len()).filter(|number| spans.numbers[*number].is_empty());
    // The first store stays in front of all others even if it is empty.
    let (mut front, mut behind): (Vec<usize>, Vec<usize>) =
        empty.partition(|number| first_stays && *number == 0);
    front.append(&mut order);
    front.append(&mut behind);
    Ok(front)
}

/// The coordinates of all stores.
struct Spans<'a> {
    model: &'a Model,
    paths: &'a [PathBuf],
    numbers: Vec<&'a [f64]>,
}

impl Spans<'_> {
    /// Returns true if the coordinate is descending. Fails if it is neither ascending nor descending.
    fn descending(&self, path: &str) -> Result<bool> {
        let falls = self.numbers.iter().find_map(|values| (values.len() > 1).then(|| values[1] < values[0]));
        let falls = falls.unwrap_or(false);
        for (number, values) in self.numbers.iter().enumerate() {
            let in_order = |pair: &[f64]| if falls { pair[1] < pair[0] } else { pair[1] > pair[0] };
            if let Some(at) = values.windows(2).position(|pair| !in_order(pair)) {
                let (one, next) = (self.text(values[at]), self.text(values[at + 1]));
                let way = if falls { "falling" } else { "rising" };
                return Err(Error::invalid(format!(
                    "{}: {path} is not {way} throughout: {next} follows {one} at position {at}; sort it first",
                    self.paths[number].display()
                )));
            }
        }
        Ok(falls)
    }

    fn text(&self, number: f64) -> String {
        self.model.time().map_or_else(|| number.to_string(), |time| time.text(number))
    }

    fn ends(&self, number: usize) -> (f64, f64) {
        let values = self.numbers[number];
        (values.first().copied().unwrap_or(0.0), values.last().copied().unwrap_or(0.0))
    }

    fn check_overlap(&self, one: usize, next: usize, descending: bool) -> Result<()> {
        let (last, first) = (self.ends(one).1, self.ends(next).0);
        if if descending { first < last } else { first > last } {
            return Ok(());
        }
        let is_covered = |value: &&f64| if descending { **value >= last } else { **value <= last };
        let covered = self.numbers[next].iter().take_while(is_covered).count();
        let whole = covered == self.numbers[next].len();
        let (one, next) = (self.paths[one].display(), self.paths[next].display());
        let dimension = &self.model.dimension;
        let advice = if whole {
            format!("leave {next} out")
        } else {
            format!("use the rest of the second: tet convert {next} REST --select '{dimension}[{covered}:]'")
        };
        Err(Error::invalid(format!(
            "{one} and {next} overlap along {dimension}: the first ends at {}, the second begins at {}; {advice}",
            self.text(last),
            self.text(first)
        )))
    }

    /// Reports steps between two stores that are longer than usual.
    fn note_gaps(&self, order: &[usize], path: &str, notes: &mut Vec<(String, String)>) {
        let inside = order.iter().flat_map(|number| self.numbers[*number].windows(2));
        let longest = inside.map(|pair| (pair[1] - pair[0]).abs()).fold(0.0, f64::max);
        let between = |pair: &[usize]| (self.ends(pair[1]).0 - self.ends(pair[0]).1).abs();
        let mut steps: Vec<f64> = order.windows(2).map(between).collect();
        steps.sort_by(f64::total_cmp);
        // Files with a single position have no step of their own, so use the median step between files.
        let usual =
            longest.max(if longest > 0.0 { 0.0 } else { steps.get(steps.len() / 2).copied().unwrap_or(0.0) });
        let gaps: Vec<&[usize]> =
            order.windows(2).filter(|pair| between(pair) > usual * GAP && usual > 0.0).collect();
        for pair in gaps.iter().take(MOST_GAPS) {
            let (last, first) = (self.text(self.ends(pair[0]).1), self.text(self.ends(pair[1]).0));
            let (one, next) = (self.paths[pair[0]].display(), self.paths[pair[1]].display());
            notes.push((path.to_owned(), format!("gap from {last} ({one}) to {first} ({next})")));
        }
        if gaps.len() > MOST_GAPS {
            notes.push((path.to_owned(), format!("{} more gaps", gaps.len() - MOST_GAPS)));
        }
    }
}
