//! Coordinates: the labels along a dimension, read once and decoded by the conventions of the file.

use std::sync::Arc;

use hyperslab_core::{
    ArraySchema, AxisPositions, Calendar, DType, Elements, Error, Labels, Node, Number, Positions, Result,
    Store, TimeAxis, TimeUnit, Values, element_to_text, read_serial, tick_instant, time_text,
};

use super::dates::{DateForm, instant_at, number_at};
use super::time_axis;
use crate::ArrayReader;

/// The labels along a dimension, one per position.
#[derive(Debug, Clone)]
pub(crate) struct Coordinate {
    labels: Decoded,
    pub(super) kind: LabelKind,
    /// Units that resemble those of a time axis but cannot be parsed.
    pub(super) unknown_units: Option<String>,
}

/// Decoded labels.
#[derive(Debug, Clone)]
enum Decoded {
    /// `first`, `first + step`, `first + 2 * step` …
    Count { first: i128, step: i64, extent: u64 },
    /// In memory.
    Values(Values),
}

/// How labels are compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum LabelKind {
    /// As integers.
    Integers,
    /// As floats of this type.
    Floats(FloatWidth),
    /// As numbers that are stored as text.
    NumberTexts,
    /// As instants, counted by numbers.
    Times(TimeAxis),
    /// As instants, stored as NumPy's dates.
    Dates(TimeUnit),
    /// As text.
    Texts,
}

/// The precision of floats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FloatWidth {
    Half,
    Single,
    Double,
}

impl FloatWidth {
    /// The nearest number of this precision, so that `0.1` equals a label that is stored as a single-precision 0.1.
    pub(super) fn nearest(self, number: f64) -> f64 {
        match self {
            Self::Half => half::f16::from_f64(number).to_f64(),
            Self::Single => f64::from(number as f32),
            Self::Double => number,
        }
    }
}

impl Coordinate {
    /// The positions of a dimension without labels.
    pub(crate) const fn positions(extent: u64) -> Self {
        let labels = Decoded::Count { first: 0, step: 1, extent };
        Self { labels, kind: LabelKind::Integers, unknown_units: None }
    }

    /// Reads the labels along a dimension; `None` if there are none.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) if the named array does not hold labels for this dimension; otherwise any error from reading it.
    pub(crate) fn read(
        labels: &Labels,
        extent: u64,
        dimension: &str,
        store: &Arc<dyn Store>,
    ) -> Result<Option<Self>> {
        let whole = AxisPositions { start: 0, count: extent, step: 1, keep: true };
        Self::read_part(labels, extent, whole, dimension, store)
    }

    /// Reads the labels at some positions along a dimension; `None` if there are none.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub(crate) fn read_part(
        labels: &Labels,
        extent: u64,
        part: AxisPositions,
        dimension: &str,
        store: &Arc<dyn Store>,
    ) -> Result<Option<Self>> {
        Ok(Some(match labels {
            Labels::None => return Ok(None),
            Labels::Texts(texts) if texts.len() as u64 == extent => {
                let at = |number: u64| part.start.wrapping_add_signed(part.step.wrapping_mul(number as i64));
                let texts = (0..part.count).filter_map(|number| texts.get(usize::try_from(at(number)).ok()?));
                let texts = Elements::variable(texts);
                Self::of_values(Values::new(DType::String, &[part.count], texts)?, None)
            }
            Labels::Texts(_) => return Ok(None),
            Labels::Domain { first, dtype } => {
                let first = i128::from(*first) + i128::from(part.start);
                let labels = Decoded::Count { first, step: part.step, extent: part.count };
                let kind = match dtype {
                    DType::DateTime(unit) => LabelKind::Dates(*unit),
                    _ => LabelKind::Integers,
                };
                Self { labels, kind, unknown_units: None }
            }
            Labels::Node(path) => {
                let Node::Array(array) = store.node(path)? else { return Err(not_labels(dimension, path)) };
                let reader = ArrayReader::new(array, Arc::clone(store), u64::MAX);
                let times = time_axis(reader.schema());
                let units = reader.schema().attributes.get("units").and_then(|value| value.as_text());
                let unknown_units = units.filter(|units| times.is_none() && units.contains(" since "));
                let values = if reader.schema().shape() == [extent] {
                    let reader = reader.decoded_nullable()?;
                    let positions = Positions { axes: [part].into_iter().collect() };
                    reader.mark_missing(read_serial(&**reader.inner(), positions)?)
                } else if is_text_of_characters(reader.schema(), extent) {
                    read_characters(&reader, part)?
                } else {
                    return Err(not_labels(dimension, path));
                };
                Self { unknown_units, ..Self::of_values(values, times) }
            }
        }))
    }

    /// Labels in memory.
    pub(super) fn of_values(mut values: Values, times: Option<TimeAxis>) -> Self {
        if values.elements.validity.as_ref().is_some_and(|validity| validity.missing() == 0) {
            values.elements.validity = None;
        }
        let kind = match (&values.dtype, times) {
            (DType::DateTime(unit), _) => LabelKind::Dates(*unit),
            _ if !values.is_empty() && number_at(&values, 0).is_none() => {
                if are_numbers(&values) {
                    LabelKind::NumberTexts
                } else {
                    LabelKind::Texts
                }
            }
            (_, Some(times)) => LabelKind::Times(times),
            (DType::Float16, _) => LabelKind::Floats(FloatWidth::Half),
            (DType::Float32, _) => LabelKind::Floats(FloatWidth::Single),
            (DType::Float64, _) => LabelKind::Floats(FloatWidth::Double),
            _ => LabelKind::Integers,
        };
        Self { labels: Decoded::Values(values), kind, unknown_units: None }
    }

    /// The number of labels.
    pub(crate) fn len(&self) -> u64 {
        match &self.labels {
            Decoded::Count { extent, .. } => *extent,
            Decoded::Values(values) => values.len() as u64,
        }
    }

    /// Returns true if labels ascend one by one, so that none is listed.
    pub(super) const fn is_count(&self) -> bool {
        matches!(self.labels, Decoded::Count { step: 1.., .. })
    }

    /// A number in the order of the labels: labels are equal if their keys are, and compare as their keys do. `None` for a missing
    /// label. The key of a text is its position.
    pub(super) fn key(&self, at: u64) -> Option<i128> {
        match (self.kind, &self.labels) {
            (LabelKind::Texts, _) => Some(i128::from(at)),
            (LabelKind::NumberTexts, _) => self.text(at).parse().ok().and_then(float_key),
            (LabelKind::Times(times), Decoded::Values(values)) => {
                instant_at(values, at as usize, times)?.ok()
            }
            (LabelKind::Dates(unit), _) => match self.number(at)? {
                Number::Integer(tick) if tick != i128::from(i64::MIN) => {
                    Some(tick_instant(saturated(tick), unit))
                }
                _ => None,
            },
            _ => match self.number(at)? {
                Number::Integer(number) => Some(number),
                Number::Float(number) => float_key(number),
            },
        }
    }

    /// The number of a label; `None` if it is missing or a text.
    pub(super) fn number(&self, at: u64) -> Option<Number> {
        match &self.labels {
            Decoded::Count { first, step, .. } => {
                Some(Number::Integer(first + i128::from(*step) * i128::from(at)))
            }
            Decoded::Values(values) if values.elements.is_missing(at as usize) => None,
            Decoded::Values(values) => number_at(values, at as usize),
        }
    }

    /// The calendar of dates and times.
    pub(super) const fn calendar(&self) -> Option<Calendar> {
        match &self.kind {
            LabelKind::Times(times) => Some(times.calendar()),
            LabelKind::Dates(_) => Some(Calendar::ProlepticGregorian),
            _ => None,
        }
    }

    /// The label at a position as text; empty if it is missing.
    pub(crate) fn text(&self, at: u64) -> String {
        match (self.kind, &self.labels) {
            (LabelKind::Dates(unit @ (TimeUnit::Year | TimeUnit::Month)), _) => match self.number(at) {
                Some(Number::Integer(tick)) => time_text(saturated(tick), unit).unwrap_or_default(),
                _ => String::new(),
            },
            (LabelKind::Times(_) | LabelKind::Dates(_), _) => match (self.key(at), self.calendar()) {
                (Some(instant), Some(calendar)) => calendar.text(instant),
                _ => String::new(),
            },
            (_, Decoded::Count { first, step, .. }) => {
                (first + i128::from(*step) * i128::from(at)).to_string()
            }
            (_, Decoded::Values(values)) if values.elements.is_missing(at as usize) => String::new(),
            (_, Decoded::Values(values)) => element_to_text(&values.dtype, &values.elements, at as usize),
        }
    }

    /// All labels as values: times as dates.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) if there are more than fit in memory.
    pub(crate) fn into_values(self) -> Result<Values> {
        match self.labels {
            Decoded::Values(values) => match self.kind {
                LabelKind::Times(times) => DateForm::of(&values, times).apply(&values, times),
                _ => Ok(values),
            },
            Decoded::Count { first, step, extent } => {
                let dtype = match self.kind {
                    LabelKind::Dates(unit) => DType::DateTime(unit),
                    _ => DType::Int64,
                };
                let tick = |at: u64| saturated(first + i128::from(step) * i128::from(at));
                let ticks = (0..extent).flat_map(|at| tick(at).to_ne_bytes());
                Values::new(dtype, &[extent], Elements::fixed(ticks.collect::<Vec<u8>>()))
            }
        }
    }
}

fn not_labels(dimension: &str, path: &str) -> Error {
    Error::invalid(format!("dimension {dimension}: {path} does not hold its labels"))
}

fn saturated(tick: i128) -> i64 {
    tick.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

/// A key in the order of floats; `None` for NaN.
pub(super) fn float_key(number: f64) -> Option<i128> {
    // Adding zero makes -0.0 equal to 0.0.
    let bits = (number + 0.0).to_bits().cast_signed();
    (!number.is_nan()).then(|| i128::from(bits ^ ((bits >> 63).cast_unsigned() >> 1).cast_signed()))
}

/// Returns true if all values are texts of numbers.
fn are_numbers(values: &Values) -> bool {
    let is_text = matches!(values.dtype, DType::String | DType::FixedText(_) | DType::FixedBytes(_));
    is_text
        && (0..values.len())
            .all(|index| element_to_text(&values.dtype, &values.elements, index).parse::<f64>().is_ok())
}

/// Returns true if an array holds one text per position, as characters along its last dimension.
pub(super) fn is_text_of_characters(schema: &ArraySchema, extent: u64) -> bool {
    schema.dtype == DType::FixedBytes(1)
        && matches!(schema.shape(), [own, length] if *own == extent && *length > 0)
}

/// The texts at some positions of an array of characters. Trailing zeros are padding.
fn read_characters(reader: &ArrayReader, part: AxisPositions) -> Result<Values> {
    let length = reader.schema().shape().get(1).copied().unwrap_or(1);
    let along = AxisPositions { start: 0, count: length, step: 1, keep: true };
    let positions = Positions { axes: [part, along].into_iter().collect() };
    let values = read_serial(&**reader.inner(), positions)?;
    let bytes = values.elements.as_fixed().cloned().unwrap_or_default();
    let texts = bytes.chunks_exact(length as usize).map(|text| {
        let end = text.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        String::from_utf8_lossy(&text[..end])
    });
    let texts: Vec<_> = texts.collect();
    Values::new(DType::String, &[part.count], Elements::variable(texts.iter().map(|text| text.as_bytes())))
}
