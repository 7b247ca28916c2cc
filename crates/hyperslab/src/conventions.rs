//! Conventions: missing values, packing and units of stored values.
//!
//! Stored values are never changed. An [`Interpretation`] is derived from the attributes of an array, and
//! [`ArrayReader::decoded`](crate::ArrayReader::decoded) reads through it. The rules are those of the CF conventions as xarray
//! applies them: stored values are compared with the missing-value markers; all others are converted to the decoded type,
//! multiplied by `scale_factor` and increased by `add_offset`.

mod attribute;
mod companions;
mod multiscale;
mod unpack;

use std::sync::Arc;

use hyperslab_core::{Array, ArraySchema, Attributes, DType, Number, Result};

use crate::adapt::{Mapped, Relabelled, mapped_fill};
use attribute::{Stated, numbers};
pub(crate) use companions::{companions, rename_companions, text_like};
pub use multiscale::{Axis, Level, Multiscale, level_path};
use unpack::{UnpackSpec, unpack};

/// How the file's conventions interpret an array's values.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Interpretation {
    /// Stored values that mark missing ones, from `_FillValue` and `missing_value`. Exact numbers of the stored type, after
    /// applying [`unsigned`](Self::unsigned).
    pub missing: Vec<Number>,
    /// The smallest and largest valid stored value, from `valid_min`, `valid_max` and `valid_range`.
    pub valid: (Option<Number>, Option<Number>),
    /// The factor for packed values.
    pub scale: Option<f64>,
    /// The offset added to them afterwards.
    pub offset: Option<f64>,
    /// The integer type that `_Unsigned` gives the stored values, if it differs.
    pub unsigned: Option<DType>,
    /// The unit, as given in the file.
    pub unit: Option<String>,
    /// Invalid or contradictory attributes, and the assumption made instead.
    pub warnings: Vec<String>,
    /// Whether scale and offset are single-precision numbers, so that decoded values are as well.
    single: bool,
    /// Whether bytes stand for truth values, as xarray stores them.
    boolean: bool,
}

impl Interpretation {
    /// Derives the interpretation from an array's attributes.
    #[must_use]
    pub fn of(schema: &ArraySchema) -> Self {
        let mut own = Self { unit: text(&schema.attributes, "units"), ..Self::default() };
        let numbers = number_type(&schema.dtype);
        if !numbers.is_integer() && !numbers.is_float() {
            return own;
        }
        own.unsigned = reinterpreted(&schema.attributes, &schema.dtype);
        own.find_missing(schema);
        own.find_valid_range(schema);
        own.find_packing(schema);
        own.find_contradictions(schema);
        own.boolean = matches!(schema.dtype, DType::Int8 | DType::UInt8)
            && !schema.nullable
            && !own.is_packed()
            && text(&schema.attributes, "dtype").is_some_and(|dtype| dtype == "bool");
        own
    }

    /// Returns true if bytes stand for truth values.
    pub(crate) const fn is_boolean(&self) -> bool {
        self.boolean
    }

    /// Adds warnings about contradictory or meaningless attributes.
    fn find_contradictions(&mut self, schema: &ArraySchema) {
        let stated = |name: &str| schema.attributes.get(name).and_then(numbers);
        if let (Some(fill), Some(missing)) = (stated("_FillValue"), stated("missing_value")) {
            let value = |number: &Stated| self.stored_value(schema, number);
            let same = |a: &Stated, b: &Stated| match (value(a), value(b)) {
                (Some(Number::Float(a)), Some(Number::Float(b))) => a == b || a.is_nan() && b.is_nan(),
                (a, b) => a == b,
            };
            if !fill.iter().all(|fill| missing.iter().any(|missing| same(fill, missing))) {
                self.warnings
                    .push("_FillValue and missing_value differ; both are treated as missing".to_owned());
            }
        }
        let calendar = text(&schema.attributes, "calendar").unwrap_or_default();
        if let Some(units) = self.unit.as_ref().filter(|units| units.contains(" since "))
            && hyperslab_core::TimeAxis::parse(units, &calendar).is_none()
        {
            let calendar = if calendar.is_empty() { "standard" } else { &calendar };
            self.warnings.push(format!(
                "units {units:?} with the calendar {calendar:?} do not describe a time; values are treated as plain numbers"
            ));
        }
    }

    /// Returns true if stored values need no decoding.
    #[must_use]
    pub fn is_identity(&self) -> bool {
        !self.is_packed() && self.missing.is_empty() && self.unsigned.is_none()
    }

    /// Returns true if values are scaled or shifted.
    #[must_use]
    pub const fn is_packed(&self) -> bool {
        self.scale.is_some() || self.offset.is_some()
    }

    /// The type of the stored values before unpacking.
    fn stored<'a>(&'a self, schema: &'a ArraySchema) -> &'a DType {
        self.unsigned.as_ref().unwrap_or_else(|| number_type(&schema.dtype))
    }

    /// The type of decoded values, as xarray chooses it.
    #[must_use]
    pub fn dtype(&self, schema: &ArraySchema) -> DType {
        let stored = self.stored(schema);
        let size = stored.size().unwrap_or(8);
        if self.is_packed() {
            // A single-precision float has too few digits for 4-byte integers.
            let narrow = self.single && (stored.is_float() || size < 4);
            return if narrow { DType::Float32 } else { DType::Float64 };
        }
        match stored {
            _ if self.missing.is_empty() || stored.is_float() => stored.clone(),
            _ if size <= 2 => DType::Float32,
            _ => DType::Float64,
        }
    }

    fn find_missing(&mut self, schema: &ArraySchema) {
        for name in ["_FillValue", "missing_value"] {
            let Some(attribute) = schema.attributes.get(name) else { continue };
            let Some(stated) = numbers(attribute) else {
                self.warnings.push(format!("{name} is not a number and is ignored"));
                continue;
            };
            for number in stated {
                match self.stored_value(schema, &number) {
                    // NaN is missing already.
                    Some(Number::Float(value)) if value.is_nan() => {
                        if schema.dtype.is_float() && !self.missing.iter().any(is_nan) {
                            self.missing.push(Number::Float(f64::NAN));
                        }
                    }
                    Some(value) if !self.missing.contains(&value) => self.missing.push(value),
                    Some(_) => {}
                    None => self.warnings.push(format!(
                        "{name} {number} is not a value of type {}, so no cell equals it",
                        self.stored(schema)
                    )),
                }
            }
        }
    }

    fn find_valid_range(&mut self, schema: &ArraySchema) {
        let bound = |name: &str, index: usize| {
            let stated = numbers(schema.attributes.get(name)?)?;
            self.stored_value(schema, stated.get(index)?)
        };
        let low = bound("valid_range", 0).or_else(|| bound("valid_min", 0));
        let high = bound("valid_range", 1).or_else(|| bound("valid_max", 0));
        self.valid = (low, high);
    }

    fn find_packing(&mut self, schema: &ArraySchema) {
        let mut single = true;
        let mut factor = |name: &str| {
            let attribute = schema.attributes.get(name)?;
            match numbers(attribute).as_deref() {
                Some([number]) if number.to_f64().is_finite() => {
                    single &= number.single;
                    Some(number.to_f64())
                }
                _ => {
                    self.warnings.push(format!("{name} is not a finite number and is ignored"));
                    None
                }
            }
        };
        (self.scale, self.offset) = (factor("scale_factor"), factor("add_offset"));
        // As in xarray, an offset without a factor is added in double precision.
        self.single = single && self.scale.is_some();
    }

    /// A number from an attribute as a value of the stored type; `None` if no stored value equals it.
    fn stored_value(&self, schema: &ArraySchema, stated: &Stated) -> Option<Number> {
        let value = match (&self.unsigned, stated.number) {
            // The marker is given in the stored type and means the same bits.
            (Some(unsigned), Number::Integer(value)) => {
                let bits = 8 * unsigned.size()? as u32;
                Number::Integer(match unsigned {
                    DType::UInt8 | DType::UInt16 | DType::UInt32 | DType::UInt64 if value < 0 => {
                        value + (1 << bits)
                    }
                    DType::Int8 | DType::Int16 | DType::Int32 | DType::Int64 if value >= 1 << (bits - 1) => {
                        value - (1 << bits)
                    }
                    _ => value,
                })
            }
            (_, other) => other,
        };
        Stated::as_element(value, self.stored(schema))
    }

    /// The array with decoded values: floats in which NaN marks missing values, or integers of the other signedness if nothing
    /// else is to be decoded. `None` if there is nothing to decode.
    pub(crate) fn decode(&self, array: &Arc<dyn Array>, valid_only: bool) -> Result<Option<Arc<dyn Array>>> {
        let own = array.schema();
        let valid = if valid_only { self.valid } else { (None, None) };
        if self.is_identity() && valid == (None, None) {
            return Ok(None);
        }
        let mut dtype = self.dtype(own);
        if self.missing.is_empty() && valid == (None, None) && !self.is_packed() {
            let schema =
                ArraySchema { dtype, attributes: self.remaining_attributes(&own.attributes), ..own.clone() };
            return Ok(Some(Arc::new(Relabelled::new(Arc::clone(array), schema))));
        }
        if !dtype.is_float() {
            dtype = if dtype.size() <= Some(2) { DType::Float32 } else { DType::Float64 };
        }
        let spec = UnpackSpec { missing: &self.missing, valid, scale: self.scale, offset: self.offset };
        let map = unpack(self.stored(own), &dtype, &spec, array.name())?;
        let fill = mapped_fill(own, &map, dtype.size().unwrap_or(0));
        let attributes = self.remaining_attributes(&own.attributes);
        let schema = ArraySchema { dtype, fill, attributes, ..own.clone() };
        Ok(Some(Arc::new(Mapped::new(Arc::clone(array), schema, map))))
    }

    /// The attributes that decoding has not consumed.
    fn remaining_attributes(&self, attributes: &Attributes) -> Attributes {
        const USED: [&str; 5] = ["_FillValue", "missing_value", "scale_factor", "add_offset", "_Unsigned"];
        let kept = attributes.iter().filter(|(name, _)| !USED.contains(name));
        kept.map(|(name, value)| (name, value.clone())).collect()
    }
}

/// An array of bytes as truth values.
pub(crate) fn as_booleans(array: &Arc<dyn Array>) -> Arc<dyn Array> {
    let schema = ArraySchema { dtype: DType::Bool, ..array.schema().clone() };
    Arc::new(Relabelled::new(Arc::clone(array), schema))
}

/// The type of the numbers that are stored: enumerations are integers with names.
fn number_type(dtype: &DType) -> &DType {
    match dtype {
        DType::Enum(named) => &named.base,
        other => other,
    }
}

fn is_nan(number: &Number) -> bool {
    matches!(number, Number::Float(value) if value.is_nan())
}

fn text(attributes: &Attributes, name: &str) -> Option<String> {
    attributes.get(name)?.as_text().filter(|text| !text.is_empty())
}

/// The integer type that `_Unsigned` gives elements of this type, if it differs.
fn reinterpreted(attributes: &Attributes, dtype: &DType) -> Option<DType> {
    let unsigned = match attributes.get("_Unsigned")?.as_text()?.to_lowercase().as_str() {
        "true" => true,
        "false" => false,
        _ => return None,
    };
    Some(match (dtype, unsigned) {
        (DType::Int8, true) => DType::UInt8,
        (DType::Int16, true) => DType::UInt16,
        (DType::Int32, true) => DType::UInt32,
        (DType::Int64, true) => DType::UInt64,
        (DType::UInt8, false) => DType::Int8,
        (DType::UInt16, false) => DType::Int16,
        (DType::UInt32, false) => DType::Int32,
        (DType::UInt64, false) => DType::Int64,
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
