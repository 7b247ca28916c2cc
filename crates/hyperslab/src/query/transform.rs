//! Normalises whole arrays: each value by the statistics of the values it is reduced with.

use hyperslab_core::{DType, Elements, Error, Result, Values};
use serde::{Deserialize, Serialize};

use super::axes::{self, AxisMap};
use super::operand::{Cell, Operand, Stored, for_stored, load};
use super::{Answer, Operation, Query};
use crate::ArrayReader;

/// A method of normalisation. Non-finite values stay unchanged; a divisor of zero gives NaN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Method {
    /// Subtract the mean and divide by the standard deviation.
    Zscore,
    /// Scale the smallest value to 0 and the largest to 1.
    Minmax,
    /// Divide by the sum of absolute values.
    L1,
    /// Divide by the root of the sum of squares.
    L2,
    /// Subtract the mean.
    Center,
    /// Divide by the standard deviation.
    Scale,
    /// The logarithm of one plus the distance from the smallest value.
    Log1p,
    /// The square root of the distance from the smallest value.
    Sqrt,
    /// The exponential, divided by the sum of exponentials.
    Softmax,
}

impl Method {
    const ALL: [(&'static str, Self); 9] = [
        ("zscore", Self::Zscore),
        ("minmax", Self::Minmax),
        ("l1", Self::L1),
        ("l2", Self::L2),
        ("center", Self::Center),
        ("scale", Self::Scale),
        ("log1p", Self::Log1p),
        ("sqrt", Self::Sqrt),
        ("softmax", Self::Softmax),
    ];

    /// The method with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(own, _)| *own == name).map(|(_, method)| *method)
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, own)| *own == self).map_or("", |(name, _)| name)
    }

    /// The statistics it needs.
    const fn needs(self) -> &'static [Operation] {
        match self {
            Self::Zscore => &[Operation::Mean, Operation::Std { ddof: 0 }],
            Self::Minmax => &[Operation::Min, Operation::Max],
            Self::L1 => &[Operation::NormL1],
            Self::L2 => &[Operation::NormL2],
            Self::Center => &[Operation::Mean],
            Self::Scale => &[Operation::Std { ddof: 0 }],
            Self::Log1p | Self::Sqrt => &[Operation::Min],
            Self::Softmax => &[Operation::Max],
        }
    }

    fn apply(self, value: f64, a: f64, b: f64) -> f64 {
        if !value.is_finite() {
            return value;
        }
        let by = |upper: f64, lower: f64| if lower == 0.0 { f64::NAN } else { upper / lower };
        match self {
            Self::Zscore => by(value - a, b),
            Self::Minmax => by(value - a, b - a),
            Self::L1 | Self::L2 | Self::Scale => by(value, a),
            Self::Center => value - a,
            Self::Log1p => (value - a).ln_1p(),
            Self::Sqrt => (value - a).sqrt(),
            Self::Softmax => by((value - a).exp(), b),
        }
    }
}

/// The selected values, normalised over the query's axes. `float32` and `float64` keep their type.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) for arrays of other types, and for a result that exceeds the memory limit.
pub fn transform(array: &ArrayReader, query: &Query, method: Method) -> Result<Values> {
    let dtype = &array.schema().dtype;
    if !matches!(dtype, DType::Float32 | DType::Float64) {
        return Err(Error::invalid(format!(
            "transform {} needs float32 or float64, not {dtype}",
            method.name()
        )));
    }
    let positions = array.resolve(&query.selection)?;
    // The original values, as float64, and the result.
    let each = 2 * dtype.size().unwrap_or(8) as u64 + 8;
    let (needed, allowed) = (
        positions.cells().unwrap_or(u64::MAX).saturating_mul(each),
        query.memory.unwrap_or_else(|| array.memory()),
    );
    if needed > allowed {
        return Err(Error::invalid(format!(
            "{}: transform {} of the selection needs {needed} bytes, but the limit is {allowed}; select less or raise the limit",
            array.inner().name(),
            method.name()
        )));
    }
    let statistic = |operation| Query { operation, skip_nan: true, ..query.clone() }.run(array);
    let known = method.needs().iter().map(|operation| statistic(*operation)).collect::<Result<Vec<_>>>()?;
    let maps = axes::maps(query, array, &positions)?;
    let values = array.read_positions(positions.clone())?;
    let stored = Stored::of(dtype, array.inner().name())?;
    let numbers: Vec<f64> = for_stored!(stored, floats(&values))?;
    // The cell of the statistics that each value belongs to.
    let mut strides = vec![0_usize; maps.len()];
    let mut cells = 1;
    for axis in
        (0..maps.len()).rev().filter(|axis| maps[*axis] == AxisMap::Keep && positions.axes[*axis].keep)
    {
        strides[axis] = cells;
        cells *= positions.axes[axis].count as usize;
    }
    let counts = positions.counts();
    let cell_of = |mut index: usize| {
        let mut cell = 0;
        for axis in (0..counts.len()).rev() {
            cell += index % counts[axis] as usize * strides[axis];
            index /= counts[axis] as usize;
        }
        cell
    };
    let at = |answer: Option<&Answer>, cell: usize| answer.map_or(0.0, |answer| answer.float(cell));
    let mut sums = vec![0.0; if method == Method::Softmax { cells } else { 0 }];
    if method == Method::Softmax {
        for (index, value) in numbers.iter().enumerate().filter(|(_, value)| value.is_finite()) {
            let cell = cell_of(index);
            sums[cell] += (value - at(known.first(), cell)).exp();
        }
    }
    let changed = numbers.iter().enumerate().map(|(index, value)| {
        let cell = cell_of(index);
        let second = sums.get(cell).copied().unwrap_or_else(|| at(known.get(1), cell));
        method.apply(*value, at(known.first(), cell), second)
    });
    let bytes: Vec<u8> = match dtype {
        DType::Float32 => changed.flat_map(|value| (value as f32).to_ne_bytes()).collect(),
        _ => changed.flat_map(f64::to_ne_bytes).collect(),
    };
    Values::new(dtype.clone(), &values.shape, Elements::fixed(bytes))
}

/// Values as floats.
pub(super) fn floats<C: Cell>(values: &Values) -> Result<Vec<f64>> {
    let bytes = values
        .elements
        .as_fixed()
        .ok_or_else(|| Error::invalid("elements without a fixed size cannot be reduced"))?;
    let mut lanes = vec![C::Operand::from_i128(0); values.len()];
    load::<C>(bytes, 0, size_of::<C>() as isize, &mut lanes);
    Ok(lanes.into_iter().map(Operand::to_f64).collect())
}
