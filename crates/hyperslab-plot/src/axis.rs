//! Axes: coordinates along a dimension, and their tick marks.

use hyperslab::driver::{AxisPositions, Labels, element_to_json, element_to_text};
use hyperslab::{ArrayReader, Calendar, DType, Node, OpenStore, Positions, Result, TimeAxis, TimeUnit};
use serde_json::Value;

use crate::samples::Samples;
use crate::ticks::{self, Tick};

/// The maximum number of coordinates to read. Longer axes are sampled.
const MAX_SAMPLES: u64 = 4096;

/// One axis of a panel.
#[derive(Debug, Clone)]
pub struct Axis {
    /// Its name and unit.
    pub label: String,
    /// The start and the end of the axis, in its own coordinate: values, or positions counted from 0.
    pub range: (f64, f64),
    /// Whether numbers increase downwards, like the rows of a matrix.
    pub downwards: bool,
    pub(crate) scale: Scale,
}

/// The meaning of an axis's coordinate.
#[derive(Debug, Clone)]
pub(crate) enum Scale {
    /// The coordinate is the value. Ticks show the difference from `base`, which is part of the label.
    Values { base: f64 },
    /// The coordinate is a count.
    Counts,
    /// The coordinate is a position: `first + position * step` is its index in the array.
    Index { first: f64, step: f64 },
    /// Each position has a number, in ascending or descending order.
    Numbers { samples: Samples, degrees: bool },
    /// Each position has an instant in attoseconds.
    Times { samples: Samples, calendar: Calendar },
    /// Each coordinate has a text.
    Texts(Vec<(f64, String)>),
}

impl Axis {
    /// An axis of values.
    pub(crate) fn values(label: String, low: f64, high: f64) -> Self {
        let (base, name) = base(low, high);
        let label = format!("{label}{name}");
        Self { label, range: (low, high), downwards: false, scale: Scale::Values { base } }
    }

    /// An axis of colours, whose ticks are values.
    pub(crate) const fn colors(label: String, low: f64, high: f64) -> Self {
        Self { label, range: (low, high), downwards: false, scale: Scale::Values { base: 0.0 } }
    }

    /// An axis of values that stand for instants; `None` if one is out of range.
    pub(crate) fn times(
        label: String,
        (low, high): (f64, f64),
        calendar: Calendar,
        instant: impl Fn(f64) -> Option<i128>,
    ) -> Option<Self> {
        /// Months and years differ in length.
        const PIECES: u32 = 64;
        const MILLISECOND: i128 = 1_000_000_000_000_000;
        // Texts are rounded to milliseconds after the origin.
        let origin = instant(low)?.div_euclid(MILLISECOND) * MILLISECOND;
        let point = |number| {
            let at = low + f64::from(number) / f64::from(PIECES) * (high - low);
            Some((at, (instant(at)? - origin) as f64 / 1e18))
        };
        let mut points = (0..=PIECES).map(point).collect::<Option<Vec<_>>>()?;
        // The range may be finer than an instant.
        points.dedup_by(|later, earlier| later.1 <= earlier.1);
        let samples = Samples::monotonic(points, origin)?;
        Some(Self { label, range: (low, high), downwards: false, scale: Scale::Times { samples, calendar } })
    }

    /// An axis of enumeration values, with the names as ticks.
    pub(crate) fn names(label: String, low: f64, high: f64, members: &[(String, i128)]) -> Self {
        let mut texts: Vec<(f64, String)> =
            members.iter().map(|(name, code)| (*code as f64, name.clone())).collect();
        texts.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        Self { label, range: (low, high), downwards: false, scale: Scale::Texts(texts) }
    }

    /// An axis of counts, from zero.
    pub(crate) fn counts(label: &str, high: f64) -> Self {
        Self { label: label.to_owned(), range: (0.0, high.max(1.0)), downwards: false, scale: Scale::Counts }
    }

    /// The axis of selected positions along a dimension of an array.
    pub(crate) fn of(
        store: &OpenStore,
        array: &ArrayReader,
        axis: usize,
        wanted: AxisPositions,
    ) -> Result<Self> {
        let schema = array.schema();
        let name = schema.dimensions.get(axis).cloned().flatten();
        let every = wanted.count.div_ceil(MAX_SAMPLES).max(1);
        let found = match schema.labels.get(axis).unwrap_or(&Labels::None) {
            Labels::None => AxisDescription::default(),
            Labels::Texts(texts) => AxisDescription {
                scale: texts_scale((0..wanted.count).step_by(every as usize).filter_map(|at| {
                    Some((at as f64 + 0.5, texts.get(usize::try_from(position(wanted, at)).ok()?)?.clone()))
                })),
                ..AxisDescription::default()
            },
            Labels::Domain { first, dtype } => {
                let numbers = (0..wanted.count).step_by(every as usize).map(|at| {
                    (at as f64 + 0.5, (i128::from(*first) + i128::from(position(wanted, at))) as f64)
                });
                AxisDescription {
                    scale: numbers_scale(numbers.collect(), times_of(dtype), false),
                    ..AxisDescription::default()
                }
            }
            Labels::Node(path) => from_node(store, path, schema.shape()[axis], wanted, every)?,
        };
        let label = found.label.or_else(|| name.clone()).unwrap_or_else(|| format!("axis {axis}"));
        let unit = found.unit.filter(|_| !matches!(found.scale, Some(Scale::Times { .. })));
        let scale =
            found.scale.unwrap_or(Scale::Index { first: wanted.start as f64, step: wanted.step as f64 });
        Ok(Self {
            label: with_unit(&label, unit.as_deref()),
            range: (0.0, wanted.count as f64),
            downwards: false,
            scale,
        })
    }

    /// Returns true if its numbers descend as positions ascend.
    pub(crate) fn is_falling(&self) -> bool {
        match &self.scale {
            Scale::Numbers { samples, .. } | Scale::Times { samples, .. } => samples.is_falling(),
            Scale::Index { step, .. } => *step < 0.0,
            _ => false,
        }
    }

    /// Returns true if its positions have numbers, so that larger ones belong further up.
    pub(crate) const fn is_numbered(&self) -> bool {
        matches!(self.scale, Scale::Numbers { .. })
    }

    /// Returns true if the coordinates are instants.
    pub(crate) const fn is_times(&self) -> bool {
        matches!(self.scale, Scale::Times { .. })
    }

    /// Returns true if the numbers are degrees of latitude or longitude.
    pub(crate) const fn is_degrees(&self) -> bool {
        matches!(self.scale, Scale::Numbers { degrees: true, .. })
    }

    /// The extent of its numbers, if they are evenly spaced.
    pub(crate) fn extent(&self) -> Option<f64> {
        let Scale::Numbers { samples, .. } = &self.scale else { return None };
        Some((samples.number(self.range.1) - samples.number(self.range.0)).abs())
    }

    /// Its numbers, if its cells have different widths.
    const fn uneven(&self) -> Option<&Samples> {
        match &self.scale {
            Scale::Numbers { samples, .. } | Scale::Times { samples, .. } if !samples.is_even() => {
                Some(samples)
            }
            _ => None,
        }
    }

    /// Returns true if all cells have the same width.
    pub(crate) const fn is_even(&self) -> bool {
        self.uneven().is_none()
    }

    /// A value as JSON: the date if it is an instant.
    pub(crate) fn value(&self, value: f64) -> Value {
        match value {
            _ if value.is_nan() => "NaN".into(),
            f64::INFINITY => "Infinity".into(),
            f64::NEG_INFINITY => "-Infinity".into(),
            _ if self.is_times() => self.text(value).into(),
            _ => value.into(),
        }
    }

    /// The relative place of a position: 0 at the start of the axis, 1 at its end.
    pub(crate) fn share(&self, at: f64) -> f64 {
        let (low, high) = self.range;
        match self.uneven() {
            Some(samples) => {
                let (first, last) = (samples.number(low), samples.number(high));
                (samples.number(at) - first) / (last - first)
            }
            None => (at - low) / (high - low),
        }
    }

    /// The position at a relative place.
    pub(crate) fn at_share(&self, share: f64) -> f64 {
        let (low, high) = self.range;
        match self.uneven() {
            Some(samples) => {
                let (first, last) = (samples.number(low), samples.number(high));
                samples.position(first + share * (last - first))
            }
            None => low + share * (high - low),
        }
    }

    /// The coordinate at a position, as JSON; `None` if the axis has no coordinates.
    pub(crate) fn coordinate(&self, position: f64) -> Option<Value> {
        match &self.scale {
            Scale::Numbers { samples, .. } => Some(samples.number(position).into()),
            Scale::Times { .. } | Scale::Texts(_) => Some(self.text(position).into()),
            Scale::Values { .. } | Scale::Counts | Scale::Index { .. } => None,
        }
    }

    /// The coordinate at a position, as text.
    pub(crate) fn text(&self, position: f64) -> String {
        match &self.scale {
            Scale::Values { .. } | Scale::Counts => short(position),
            Scale::Index { first, step } => short(first + (position - 0.5).floor() * step),
            Scale::Numbers { samples, .. } => short(samples.number(position)),
            Scale::Times { samples, calendar } => {
                let seconds = samples.number(position);
                calendar.text(samples.origin() + (seconds * 1e3).round() as i128 * 1_000_000_000_000_000)
            }
            Scale::Texts(texts) => {
                let near = texts
                    .iter()
                    .min_by(|(a, _), (b, _)| (a - position).abs().total_cmp(&(b - position).abs()));
                near.map(|(_, text)| text.clone()).unwrap_or_default()
            }
        }
    }

    /// Returns about `most` ticks at most.
    #[must_use]
    pub fn ticks(&self, most: usize) -> Vec<Tick> {
        let (low, high) = self.range;
        let most = most.max(1);
        let inside = |at: &f64| *at >= low.min(high) - 1e-9 && *at <= low.max(high) + 1e-9;
        let labelled = |numbers: Vec<f64>, at: &dyn Fn(f64) -> f64| {
            let texts = ticks::texts(&numbers);
            let pairs = numbers.into_iter().zip(texts).map(|(number, label)| Tick { at: at(number), label });
            pairs.filter(|tick| inside(&tick.at)).collect()
        };
        match &self.scale {
            Scale::Values { base } => {
                // If the precision of doubles is too coarse for a tick, it would be misplaced.
                let step = (high - low) / most as f64;
                let mut numbers = ticks::numbers(low - base, high - base, most, false);
                numbers.retain(|number| (number + base - base - number).abs() <= 0.01 * step);
                labelled(numbers, &|number| number + base)
            }
            Scale::Counts => labelled(ticks::numbers(low, high, most, true), &|number| number),
            Scale::Index { first, step } => {
                let ends = (*first, first + (high - 1.0).max(0.0) * step);
                let numbers = ticks::numbers(ends.0.min(ends.1), ends.0.max(ends.1), most, true);
                labelled(numbers, &|number| (number - first) / step + 0.5)
            }
            Scale::Numbers { samples, degrees } => {
                let (a, b) = (samples.number(low), samples.number(high));
                let (a, b) = (a.min(b), a.max(b));
                let numbers =
                    if *degrees { ticks::degrees(a, b, most) } else { ticks::numbers(a, b, most, false) };
                labelled(numbers, &|number| samples.position(number))
            }
            Scale::Times { samples, calendar } => {
                let instant = |position: f64| {
                    samples.origin()
                        + (samples.number(position) * 1e3).round() as i128 * 1_000_000_000_000_000
                };
                let (a, b) = (instant(low), instant(high));
                ticks::times(*calendar, a.min(b), a.max(b), most)
                    .into_iter()
                    .map(|(instant, label)| Tick {
                        at: samples.position((instant - samples.origin()) as f64 / 1e18),
                        label,
                    })
                    .filter(|tick| inside(&tick.at))
                    .collect()
            }
            Scale::Texts(texts) => {
                let shown: Vec<_> = texts.iter().filter(|(at, _)| inside(at)).collect();
                let some = shown.iter().step_by(shown.len().div_ceil(most).max(1));
                some.map(|(at, label)| Tick { at: *at, label: label.clone() }).collect()
            }
        }
    }
}

/// The properties found for a dimension.
#[derive(Default)]
struct AxisDescription {
    scale: Option<Scale>,
    label: Option<String>,
    unit: Option<String>,
}

/// The position in the array of a selected position.
fn position(wanted: AxisPositions, at: u64) -> u64 {
    wanted.start.wrapping_add_signed(at as i64 * wanted.step)
}

fn texts_scale(texts: impl Iterator<Item = (f64, String)>) -> Option<Scale> {
    let texts: Vec<_> = texts.collect();
    (!texts.is_empty()).then_some(Scale::Texts(texts))
}

/// A scale of numbers or times. Uses texts if they neither ascend nor descend.
fn numbers_scale(points: Vec<(f64, f64)>, times: Option<TimeAxis>, degrees: bool) -> Option<Scale> {
    if let Some(times) = times {
        let instants: Option<Vec<_>> =
            points.iter().map(|(at, number)| Some((*at, times.instant(*number)?))).collect();
        let instants = instants?;
        let origin = instants.first()?.1;
        let seconds = instants.iter().map(|(at, instant)| (*at, (instant - origin) as f64 / 1e18)).collect();
        let calendar = times.calendar();
        return match Samples::monotonic(seconds, origin) {
            Some(samples) => Some(Scale::Times { samples, calendar }),
            None => texts_scale(instants.iter().map(|(at, instant)| (*at, calendar.text(*instant)))),
        };
    }
    match Samples::monotonic(points.clone(), 0) {
        Some(samples) => Some(Scale::Numbers { samples, degrees }),
        None => texts_scale(points.iter().map(|(at, number)| (*at, short(*number)))),
    }
}

/// The time axis of a date type.
fn times_of(dtype: &DType) -> Option<TimeAxis> {
    let DType::DateTime(unit) = dtype else { return None };
    let unit = match unit {
        TimeUnit::Day => "days",
        TimeUnit::Hour => "hours",
        TimeUnit::Minute => "minutes",
        TimeUnit::Second => "seconds",
        TimeUnit::Millisecond => "milliseconds",
        _ => return None,
    };
    TimeAxis::parse(&format!("{unit} since 1970-01-01"), "proleptic_gregorian")
}

/// Reads the coordinate array of a dimension. An unsuitable array gives no labels.
fn from_node(
    store: &OpenStore,
    path: &str,
    extent: u64,
    wanted: AxisPositions,
    every: u64,
) -> Result<AxisDescription> {
    let Node::Array(array) = store.node(path)? else { return Ok(AxisDescription::default()) };
    if array.schema().shape() != [extent] || wanted.count == 0 {
        return Ok(AxisDescription::default());
    }
    let text = |name: &str| array.schema().attributes.get(name).and_then(|value| value.as_text());
    let (unit, calendar) = (text("units"), text("calendar").unwrap_or_default());
    let times = unit.as_deref().and_then(|unit| TimeAxis::parse(unit, &calendar));
    let label =
        ["long_name", "standard_name"].iter().find_map(|name| text(name)).filter(|text| !text.is_empty());
    let name = path.rsplit('/').next().unwrap_or_default().to_owned();
    let label = label.unwrap_or(name);
    let degrees = unit.as_deref().is_some_and(is_angle);
    let count = (wanted.count - 1) / every + 1;
    let sampled = AxisPositions { count, step: wanted.step * every as i64, keep: true, ..wanted };
    let reader = store.reader(array);
    let reader = if times.is_none() { reader.decoded()? } else { reader };
    let values = reader.read_positions(Positions { axes: [sampled].into_iter().collect() })?;
    let at = |index: usize| index as f64 * every as f64 + 0.5;
    let nanoseconds = match &values.dtype {
        DType::DateTime(TimeUnit::Nanosecond) => Some(1e9),
        DType::DateTime(TimeUnit::Microsecond) => Some(1e6),
        _ => None,
    };
    let scale = if let (Some(each), Some(ticks)) = (nanoseconds, values.elements.as_fixed()) {
        let ticks = ticks.chunks_exact(8).map(bytemuck_i64);
        let points = ticks.enumerate().map(|(index, tick)| (at(index), tick as f64 / each)).collect();
        numbers_scale(points, TimeAxis::parse("seconds since 1970-01-01", "proleptic_gregorian"), false)
    } else if let (Some(times), Some(ticks)) = (times_of(&values.dtype), values.elements.as_fixed()) {
        let ticks = ticks.chunks_exact(8).map(bytemuck_i64);
        numbers_scale(
            ticks.enumerate().map(|(index, tick)| (at(index), tick as f64)).collect(),
            Some(times),
            false,
        )
    } else {
        let number = |index| element_to_json(&values.dtype, &values.elements, index).as_f64();
        let numbers: Option<Vec<(f64, f64)>> =
            (0..values.len()).map(|index| Some((at(index), number(index)?))).collect();
        match numbers {
            Some(numbers) => numbers_scale(numbers, times, degrees),
            None => texts_scale(
                (0..values.len())
                    .map(|index| (at(index), element_to_text(&values.dtype, &values.elements, index))),
            ),
        }
    };
    Ok(AxisDescription { scale, label: Some(label), unit })
}

fn bytemuck_i64(bytes: &[u8]) -> i64 {
    let mut word = [0; 8];
    word.copy_from_slice(bytes);
    i64::from_ne_bytes(word)
}

fn is_angle(unit: &str) -> bool {
    unit.to_ascii_lowercase().starts_with("degree")
}

/// The label of a name and its unit.
pub(crate) fn with_unit(name: &str, unit: Option<&str>) -> String {
    let unit = match unit.map(str::trim) {
        None | Some("" | "1" | "none" | "unitless") => return name.to_owned(),
        Some("degrees_north" | "degree_north" | "degrees_N") => "°N",
        Some("degrees_east" | "degree_east" | "degrees_E") => "°E",
        Some("degree" | "degrees") => "°",
        Some("degC" | "degrees_C" | "degree_Celsius" | "celsius" | "Celsius") => "°C",
        Some(other) => other,
    };
    format!("{name} [{unit}]")
}

/// An offset to subtract from ticks that would otherwise need many digits, and its text for the label; 0 if they need
/// few.
fn base(low: f64, high: f64) -> (f64, String) {
    let (span, largest) = (high - low, low.abs().max(high.abs()));
    if !(span > 0.0 && largest.is_finite() && largest / span > 1e5) {
        return (0.0, String::new());
    }
    let power = span.log10().ceil() as i32 + 2;
    let round = 10_f64.powi(power);
    let base = (low.midpoint(high) / round).round() * round;
    let decimals = usize::try_from(-power).unwrap_or(0);
    let sign = if base < 0.0 { '+' } else { '\u{2212}' };
    (base, format!(" {sign} {:.decimals$}", base.abs()))
}

/// A number in short notation.
pub(crate) fn short(number: f64) -> String {
    if number == 0.0 || (1e-4..1e7).contains(&number.abs()) {
        let rounded = (number * 1e6).round() / 1e6;
        return format!("{rounded}");
    }
    format!("{number:.4e}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_at_their_numbers() {
        // 90, 80 … -90, at the centres of the cells.
        let points = (0..19).map(|at| (f64::from(at) + 0.5, 90.0 - 10.0 * f64::from(at))).collect();
        let axis = Axis {
            label: String::new(),
            range: (0.0, 19.0),
            downwards: false,
            scale: numbers_scale(points, None, true).unwrap(),
        };
        let marks: Vec<(f64, String)> = axis.ticks(6).into_iter().map(|tick| (tick.at, tick.label)).collect();
        assert!(axis.is_falling() && axis.is_degrees());
        assert!(
            marks.contains(&(0.5, "90".to_owned())) && marks.contains(&(9.5, "0".to_owned())),
            "{marks:?}"
        );
        assert_eq!(axis.extent(), Some(190.0));
        assert_eq!(axis.text(18.5), "-90");
    }

    #[test]
    fn dates_are_at_their_instants() {
        let times = TimeAxis::parse("days since 2000-01-01", "noleap");
        let points = (0..730).map(|at| (f64::from(at) + 0.5, f64::from(at))).collect();
        let axis = Axis {
            label: String::new(),
            range: (0.0, 730.0),
            downwards: false,
            scale: numbers_scale(points, times, false).unwrap(),
        };
        let marks = axis.ticks(4);
        assert_eq!(marks[1].label, "2000-07");
        assert!((marks[1].at - 181.5).abs() < 1e-6, "{marks:?}");
        assert_eq!(axis.text(365.5), "2001-01-01");
    }

    #[test]
    fn cells_of_irregular_coordinates_have_different_widths() {
        let numbers = [0.0, 1.0, 2.0, 10.0, 20.0, 100.0];
        let points = numbers.iter().enumerate().map(|(at, number)| (at as f64 + 0.5, *number)).collect();
        let axis = Axis {
            label: String::new(),
            range: (0.0, 6.0),
            downwards: false,
            scale: numbers_scale(points, None, false).unwrap(),
        };
        // The cells extend from -0.5 to 140.
        for (position, number) in
            [(0.0, -0.5), (0.5, 0.0), (3.0, 6.0), (3.5, 10.0), (5.0, 60.0), (6.0, 140.0)]
        {
            let share = axis.share(position);
            assert!((share - (number + 0.5) / 140.5).abs() < 1e-12, "{position} is at {share}");
            assert!((axis.at_share(share) - position).abs() < 1e-9);
        }
        assert!(!axis.is_even());
        // Ticks are at their numbers, at equal distances.
        let places: Vec<f64> = axis.ticks(4).iter().map(|tick| axis.share(tick.at)).collect();
        assert!(places.windows(3).all(|three| ((three[2] - three[1]) - (three[1] - three[0])).abs() < 1e-9));
    }

    #[test]
    fn coordinates_that_are_not_sorted_are_texts() {
        let scale = numbers_scale(vec![(0.5, 3.0), (1.5, 1.0), (2.5, 2.0)], None, false);
        assert!(matches!(scale, Some(Scale::Texts(texts)) if texts[1].1 == "1"));
    }

    #[test]
    fn ticks_of_close_numbers_use_a_base() {
        let axis = Axis::values("t [s]".to_owned(), 1e9 - 0.004, 1e9 + 0.104);
        assert_eq!(axis.label, "t [s] \u{2212} 1000000000");
        let labels: Vec<String> = axis.ticks(4).into_iter().map(|tick| tick.label).collect();
        assert_eq!(labels, ["0.00", "0.05", "0.10"]);
        // There is no double between these two numbers.
        let first = 2_f64.powi(53);
        let axis = Axis::values(String::new(), first, first + 2.0);
        let marks: Vec<f64> = axis.ticks(8).into_iter().map(|tick| tick.at).collect();
        assert_eq!(marks, [first, first + 2.0]);
        assert_eq!(Axis::values("v".to_owned(), 0.0, 5.0).label, "v");
    }

    #[test]
    fn units_in_labels() {
        assert_eq!(with_unit("latitude", Some("degrees_north")), "latitude [°N]");
        assert_eq!(with_unit("ratio", Some("1")), "ratio");
        assert_eq!(with_unit("t", None), "t");
    }
}
