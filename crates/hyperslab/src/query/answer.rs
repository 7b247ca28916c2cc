//! Answers: typed values with their axes.

use hyperslab_core::{DType, Elements, Error, Result, TimeAxis, Validity, Values};
use serde_json::{Map, Value, json};

use crate::ArrayReader;

/// One axis of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerAxis {
    /// The dimension's name, if it has one; `bin` for a histogram.
    pub name: Option<String>,
    /// The number of answers along it.
    pub extent: u64,
    /// The labels of groups.
    pub labels: Option<Vec<String>>,
    /// The first and the last position of each window, counted along the selection.
    pub windows: Option<Vec<(u64, u64)>>,
}

/// The result of a query.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The operation's name.
    pub operation: &'static str,
    /// The axes that were kept; empty for a single answer.
    pub axes: Vec<AnswerAxis>,
    /// The number of selected cells.
    pub cells: u64,
    /// How many of these cells are missing, as null or by the file's conventions, if that was counted.
    pub missing: Option<u64>,
    /// The edges of a histogram's bins: one more than there are bins.
    pub edges: Option<Vec<f64>>,
    pub(super) dtype: DType,
    pub(super) column: Column,
    /// The time axis of the answers, if they are to be shown as dates.
    pub(super) times: Option<TimeAxis>,
}

/// Answers in their simplest form: floats or integers, some missing.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Column {
    pub(super) floats: Vec<f64>,
    pub(super) integers: Vec<i128>,
    /// Which answers are present.
    pub(super) valid: Vec<bool>,
    /// Set if an integer overflowed, so that the floats count.
    pub(super) inexact: bool,
    /// The number of values that went into them, if counted.
    pub(super) values: u64,
}

impl Column {
    /// Empty, with room for this many. Whether they are integers or floats is only known when the first one arrives.
    pub(super) fn with_capacity(count: usize) -> Self {
        Self { valid: Vec::with_capacity(count), ..Self::default() }
    }

    pub(super) fn push_float(&mut self, value: Option<f64>) {
        if self.floats.is_empty() {
            self.floats.reserve(self.valid.capacity());
        }
        self.floats.push(value.unwrap_or(f64::NAN));
        self.valid.push(value.is_some());
    }

    pub(super) fn push_integer(&mut self, value: Option<i128>) {
        if self.integers.is_empty() {
            self.integers.reserve(self.valid.capacity());
        }
        self.integers.push(value.unwrap_or(0));
        self.valid.push(value.is_some());
    }

    pub(super) fn len(&self) -> usize {
        self.valid.len()
    }
}

impl Answer {
    /// The shape: one extent per kept axis.
    #[must_use]
    pub fn shape(&self) -> Vec<u64> {
        self.axes.iter().map(|axis| axis.extent).collect()
    }

    /// Shows answers as dates, if they are times of an array that counts time by its attributes `units` and `calendar`: the
    /// smallest, the largest and values in between.
    #[must_use]
    pub fn dated(mut self, array: &ArrayReader) -> Self {
        let is_time = matches!(self.operation, "min" | "max" | "mean" | "nan_mean" | "median" | "quantile");
        self.times = is_time.then(|| array.time_axis()).flatten();
        self
    }

    /// The unit of the answers, given the array's: the same for a mean, none for a count. A standard deviation of times is a
    /// length of time.
    #[must_use]
    pub fn unit(&self, array: &ArrayReader) -> Option<String> {
        let unit = array.interpretation().unit?;
        let duration = unit.split_once(" since ").map(|(duration, _)| duration.trim().to_owned());
        match self.operation {
            "std" => Some(duration.unwrap_or(unit)),
            "min" | "max" | "mean" | "nan_mean" | "median" | "quantile" | "sum" | "norm_l1" | "norm_l2" => {
                Some(unit).filter(|_| duration.is_none())
            }
            _ => None,
        }
    }

    /// The answers as dates: NumPy's if they hold all, else text. `None` if they are not to be shown as dates.
    ///
    /// # Errors
    ///
    /// As [`values`](Self::values).
    pub fn dates(&self) -> Result<Option<Values>> {
        let Some(times) = self.times else { return Ok(None) };
        let values = Self { times: None, ..self.clone() }.values()?;
        crate::labels::DateForm::of(&values, times).apply(&values, times).map(Some)
    }

    /// The answers as values: integers if they fit, else floats. Missing answers are marked. Dates are text.
    ///
    /// # Errors
    ///
    /// None in practice, because the shape is the answer's own.
    pub fn values(&self) -> Result<Values> {
        if let Some(times) = self.times {
            let texts = (0..self.column.len()).map(|index| match self.column.valid[index] {
                true => match self.column.integers.get(index) {
                    Some(number) if !self.column.inexact => times.text_of_integer(*number),
                    _ => times.text(self.float(index)),
                },
                false => String::new(),
            });
            let validity = Validity::from_flags(self.column.valid.iter().copied());
            let validity = Some(validity).filter(|validity| validity.missing() > 0);
            let texts = Elements::variable(texts).with_validity(validity);
            return Values::new(DType::String, &self.shape(), texts);
        }
        let (dtype, bytes) = self.bytes()?;
        let all = self.column.valid.iter().all(|valid| *valid);
        let validity = (!all).then(|| Validity::from_flags(self.column.valid.iter().copied()));
        Values::new(dtype, &self.shape(), Elements::fixed(bytes).with_validity(validity))
    }

    fn bytes(&self) -> Result<(DType, Vec<u8>)> {
        let column = &self.column;
        if column.inexact || column.integers.is_empty() {
            let floats = &column.floats;
            return Ok(match self.dtype {
                DType::Float16 => (
                    DType::Float16,
                    floats.iter().flat_map(|value| half::f16::from_f64(*value).to_ne_bytes()).collect(),
                ),
                DType::Float32 => {
                    (DType::Float32, floats.iter().flat_map(|value| (*value as f32).to_ne_bytes()).collect())
                }
                _ => (DType::Float64, floats.iter().flat_map(|value| value.to_ne_bytes()).collect()),
            });
        }
        let integers = &column.integers;
        let within = |low: i128, high: i128| integers.iter().all(|value| (low..=high).contains(value));
        let dtype = match &self.dtype {
            DType::Enum(named) => named.base.clone(),
            // Sums are wide integers. They are stored as signed integers if they fit, which is nearly always.
            DType::Float64 if within(i64::MIN.into(), i64::MAX.into()) => DType::Int64,
            DType::Float64 if within(0, u64::MAX.into()) => DType::UInt64,
            DType::Float64 => {
                let bytes = integers.iter().flat_map(|value| (*value as f64).to_ne_bytes()).collect();
                return Ok((DType::Float64, bytes));
            }
            own => own.clone(),
        };
        let size = dtype.size().unwrap_or(8);
        let mut bytes = Vec::with_capacity(integers.len() * size);
        for value in integers {
            let wide = value.to_le_bytes();
            if cfg!(target_endian = "little") {
                bytes.extend_from_slice(&wide[..size]);
            } else {
                bytes.extend(wide[..size].iter().rev());
            }
        }
        Ok((dtype, bytes))
    }

    /// The only answer as a float; `None` if it is missing.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) if there are several.
    pub fn scalar(&self) -> Result<Option<f64>> {
        let several =
            || Error::invalid(format!("expected a single answer, but there are {}", self.column.len()));
        let ([valid], true) = (self.column.valid.as_slice(), self.axes.is_empty()) else {
            return Err(several());
        };
        Ok(valid.then(|| self.float(0)))
    }

    /// The answers as floats, in C order. Missing answers become NaN.
    #[must_use]
    pub fn floats(&self) -> Vec<f64> {
        let one = |index| if self.column.valid[index] { self.float(index) } else { f64::NAN };
        (0..self.column.len()).map(one).collect()
    }

    /// Answer `index` as a float.
    pub(super) fn float(&self, index: usize) -> f64 {
        match self.column.integers.get(index) {
            Some(value) if !self.column.inexact => *value as f64,
            _ => self.column.floats[index],
        }
    }

    /// Converts to a JSON object: operation, dimensions, shape, group labels, values as nested lists.
    ///
    /// # Errors
    ///
    /// As [`values`](Self::values).
    pub fn to_json(&self) -> Result<Value> {
        let values = self.values()?;
        let mut object = Map::new();
        object.insert("operation".to_owned(), self.operation.into());
        object.insert("dtype".to_owned(), values.dtype.to_string().into());
        object.insert("shape".to_owned(), json!(self.shape()));
        object.insert("cells".to_owned(), self.cells.into());
        if let Some(missing) = self.missing {
            object.insert("missing".to_owned(), missing.into());
        }
        if self.axes.iter().any(|axis| axis.name.is_some()) {
            object.insert("dimensions".to_owned(), self.axes.iter().map(|axis| json!(axis.name)).collect());
        }
        if self.axes.iter().any(|axis| axis.labels.is_some()) {
            object.insert("labels".to_owned(), self.axes.iter().map(|axis| json!(axis.labels)).collect());
        }
        if let Some(edges) = &self.edges {
            object.insert("edges".to_owned(), json!(edges));
        }
        object.insert("values".to_owned(), values.to_json());
        Ok(Value::Object(object))
    }
}
