//! Rebases times of stores that count from another date: the same instants in the first store's numbers.

use std::sync::Arc;

use bytemuck::pod_read_unaligned;
use hyperslab_core::{Array, ArraySchema, Attributes, DType, Error, Fill, Rebase, Result, TimeAxis, Values};

use crate::adapt::{ElementMap, Mapped};

/// The conversion from one store's times to the first store's.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Times {
    rebase: Rebase,
    /// The units of the first store.
    units: String,
}

/// The time axis of an array; `None` if it does not count time.
pub(super) fn time_axis(attributes: &Attributes) -> Option<TimeAxis> {
    let text = |name: &str| attributes.get(name).and_then(hyperslab_core::Attribute::as_text);
    TimeAxis::parse(&text("units")?, &text("calendar").unwrap_or_default())
}

impl Times {
    /// The conversion for an array, from its attributes and those of the same array in the first store. `None` if both use the
    /// same units, or do not count time.
    pub(super) fn new(own: &Attributes, first: &Attributes) -> Option<Self> {
        let rebase = time_axis(own)?.rebase(&time_axis(first)?)?;
        let units = first.get("units").and_then(hyperslab_core::Attribute::as_text)?;
        (!rebase.is_identity()).then_some(Self { rebase, units })
    }

    /// The units of the first store.
    pub(super) fn units(&self) -> &str {
        &self.units
    }

    /// The array with the first store's numbers.
    pub(super) fn applied(&self, array: Arc<dyn Array>) -> Result<Arc<dyn Array>> {
        let schema = array.schema();
        let map = RebaseMap { rebase: self.rebase, dtype: schema.dtype.clone() };
        if !can_map(&schema.dtype) {
            return Err(Error::unsupported(array.name(), format!("changing times of type {}", schema.dtype)));
        }
        let mut mapped: ArraySchema = schema.clone();
        mapped.attributes.set("units", self.units.as_str());
        // A cell that was never written holds no time.
        mapped.fill = match &schema.fill {
            Fill::Undefined => Fill::Undefined,
            other => other.clone(),
        };
        Ok(Arc::new(Mapped::new(array, mapped, map)))
    }

    /// Returns true if every converted value fits its type exactly.
    pub(super) fn is_exact(&self, values: &Values) -> bool {
        let Some(bytes) = values.elements.as_fixed() else { return false };
        let rebase = &self.rebase;
        match values.dtype {
            DType::Int32 => bytes.chunks_exact(4).all(|bytes| {
                i64::from(pod_read_unaligned::<i32>(bytes)).fits(rebase, |n| i32::try_from(n).is_ok())
            }),
            DType::Int64 => {
                bytes.chunks_exact(8).all(|bytes| pod_read_unaligned::<i64>(bytes).fits(rebase, |_| true))
            }
            DType::Float32 => bytes.chunks_exact(4).all(|bytes| {
                let number = pod_read_unaligned::<f32>(bytes);
                let moved = rebase.float(f64::from(number));
                number.is_nan() || f64::from(moved as f32) == moved
            }),
            DType::Float64 => true,
            _ => false,
        }
    }
}

/// Whether an integer stays exact.
trait Fits {
    fn fits(self, rebase: &Rebase, holds: impl Fn(i64) -> bool) -> bool;
}

impl Fits for i64 {
    fn fits(self, rebase: &Rebase, holds: impl Fn(i64) -> bool) -> bool {
        rebase.integer(self).is_some_and(holds)
    }
}

fn can_map(dtype: &DType) -> bool {
    matches!(dtype, DType::Int32 | DType::Int64 | DType::Float32 | DType::Float64)
}

/// Shifts numbers of one type. All values were checked before, so none is rounded here.
#[derive(Debug)]
struct RebaseMap {
    rebase: Rebase,
    dtype: DType,
}

impl ElementMap for RebaseMap {
    fn map(&self, from: &[u8], to: &mut [u8]) {
        macro_rules! each {
            ($type:ty, $map:expr) => {
                for (from, to) in
                    from.chunks_exact(size_of::<$type>()).zip(to.chunks_exact_mut(size_of::<$type>()))
                {
                    let number: $type = $map(pod_read_unaligned::<$type>(from));
                    to.copy_from_slice(&number.to_ne_bytes());
                }
            };
        }
        let integer = |number: i64| self.rebase.integer(number).unwrap_or(number);
        match self.dtype {
            DType::Int32 => each!(i32, |number| i32::try_from(integer(i64::from(number))).unwrap_or(number)),
            DType::Int64 => each!(i64, integer),
            DType::Float32 => each!(f32, |number| self.rebase.float(f64::from(number)) as f32),
            _ => each!(f64, |number| self.rebase.float(number)),
        }
    }
}
