//! Times as dates: numbers that count time, as NumPy's dates or as text.

use bytemuck::pod_read_unaligned;
use hyperslab_core::{
    Calendar, DType, Elements, Number, Result, TimeAxis, TimeUnit, Validity, Values, element_to_text,
    instant_tick,
};

/// The units of NumPy's dates that are tried, in this order.
const UNITS: [TimeUnit; 3] = [TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond];

/// The number of an element, whether or not it is missing; `None` if the type is not numeric.
pub(super) fn number_at(values: &Values, index: usize) -> Option<Number> {
    let dtype = match &values.dtype {
        DType::Enum(named) => &named.base,
        other => other,
    };
    let size = dtype.size()?;
    let bytes = values.elements.as_fixed()?.get(index.checked_mul(size)?..)?.get(..size)?;
    let integer = |number: i128| Some(Number::Integer(number));
    match dtype {
        DType::Int8 => integer(pod_read_unaligned::<i8>(bytes).into()),
        DType::Int16 => integer(pod_read_unaligned::<i16>(bytes).into()),
        DType::Int32 => integer(pod_read_unaligned::<i32>(bytes).into()),
        DType::Int64 | DType::DateTime(_) | DType::Duration(_) => {
            integer(pod_read_unaligned::<i64>(bytes).into())
        }
        DType::UInt8 => integer(pod_read_unaligned::<u8>(bytes).into()),
        DType::UInt16 => integer(pod_read_unaligned::<u16>(bytes).into()),
        DType::UInt32 => integer(pod_read_unaligned::<u32>(bytes).into()),
        DType::UInt64 => integer(pod_read_unaligned::<u64>(bytes).into()),
        DType::Float16 => Some(Number::Float(pod_read_unaligned::<half::f16>(bytes).to_f64())),
        DType::Float32 => Some(Number::Float(pod_read_unaligned::<f32>(bytes).into())),
        DType::Float64 => Some(Number::Float(pod_read_unaligned::<f64>(bytes))),
        _ => None,
    }
}

/// The instant of an element; `None` if it is missing, an error if its number is not a valid time.
pub(super) fn instant_at(values: &Values, index: usize, times: TimeAxis) -> Option<Result<i128, ()>> {
    if values.elements.is_missing(index) {
        return None;
    }
    match number_at(values, index) {
        // The smallest integer is NumPy's missing date.
        Some(Number::Integer(number)) if number == i128::from(i64::MIN) => None,
        Some(Number::Integer(number)) => Some(times.instant_of_integer(number).ok_or(())),
        Some(Number::Float(number)) if number.is_nan() => None,
        Some(Number::Float(number)) => Some(times.instant(number).ok_or(())),
        None => Some(Err(())),
    }
}

/// The form of dates that holds times without loss: NumPy's dates of one unit, or text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DateForm {
    /// Whether each of [`UNITS`] holds all times so far.
    fits: [bool; UNITS.len()],
}

impl DateForm {
    /// The form for no times yet.
    pub(crate) const ANY: Self = Self { fits: [true; UNITS.len()] };

    /// The form of these times.
    pub(crate) fn of(values: &Values, times: TimeAxis) -> Self {
        Self::ANY.and(values, times)
    }

    /// The form of these times and all before.
    #[must_use]
    pub(crate) fn and(mut self, values: &Values, times: TimeAxis) -> Self {
        // Before this day the calendars differ.
        let gregorian = Calendar::Standard.span("1582-10-15").map_or(i128::MAX, |span| span.0);
        let first = match times.calendar() {
            Calendar::ProlepticGregorian => i128::MIN,
            Calendar::Standard => gregorian,
            _ => i128::MAX,
        };
        for index in 0..values.len() {
            match instant_at(values, index, times) {
                None => {}
                Some(Ok(instant)) if instant >= first => {
                    for (fits, unit) in self.fits.iter_mut().zip(UNITS) {
                        *fits = *fits && instant_tick(instant, unit).is_some();
                    }
                }
                Some(_) => self.fits = [false; UNITS.len()],
            }
            if !self.is_dates() {
                break;
            }
        }
        self
    }

    /// Returns true if NumPy's dates hold the times.
    pub(crate) fn is_dates(self) -> bool {
        self.fits.contains(&true)
    }

    /// The type of the dates.
    pub(crate) fn dtype(self) -> DType {
        let unit = UNITS.into_iter().zip(self.fits).find(|(_, fits)| *fits);
        unit.map_or(DType::String, |(unit, _)| DType::DateTime(unit))
    }

    /// Times as dates of this form. A missing time is a missing date.
    ///
    /// # Errors
    ///
    /// [`Invalid`](hyperslab_core::Error::Invalid) if there are fewer elements than the shape has cells.
    pub(crate) fn apply(self, values: &Values, times: TimeAxis) -> Result<Values> {
        let count = values.len();
        let instants = (0..count).map(|index| instant_at(values, index, times));
        let validity = Validity::from_flags(instants.clone().map(|instant| instant.is_some()));
        let validity = Some(validity).filter(|validity| validity.missing() > 0);
        let elements = match self.dtype() {
            DType::DateTime(unit) => {
                let tick = |instant: Option<Result<i128, ()>>| {
                    instant.and_then(Result::ok).and_then(|instant| instant_tick(instant, unit))
                };
                let ticks = instants.flat_map(|instant| tick(instant).unwrap_or(i64::MIN).to_ne_bytes());
                Elements::fixed(ticks.collect::<Vec<u8>>())
            }
            _ => Elements::variable(instants.enumerate().map(|(index, instant)| match instant {
                None => String::new(),
                Some(Ok(instant)) => times.calendar().text(instant),
                Some(Err(())) => element_to_text(&values.dtype, &values.elements, index),
            })),
        };
        Values::new(self.dtype(), &values.shape, elements.with_validity(validity))
    }

    /// Dates as text.
    pub(crate) const TEXT: Self = Self { fits: [false; UNITS.len()] };
}
