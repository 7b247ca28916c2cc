//! Responses of `/stats`: folded piece by piece, in bounded memory.

use hyperslab::{ArrayReader, DType, Error, Positions, Values};
use serde_json::{Value, json};

use super::data::{positions_of, selected_values, to_safe};
use super::entity::Entity;
use super::slabs::Slabs;
use crate::answer::Failure;
use crate::work::Job;

/// The number of bytes read at once.
const PIECE: u64 = 16 << 20;

/// h5grove's statistics. Of floats, only finite values count; of dates, all but "not a time".
#[derive(Debug, Clone, Default)]
struct Stats {
    strict_positive_min: Option<f64>,
    positive_min: Option<f64>,
    min: Option<f64>,
    max: Option<f64>,
    count: f64,
    mean: f64,
    /// The sum of squared distances from the mean.
    squares: f64,
}

impl Stats {
    /// Adds a number that occurs this many times.
    fn add(&mut self, number: f64, times: f64) {
        let lower = |least: &mut Option<f64>| *least = Some(least.map_or(number, |least| least.min(number)));
        if number > 0.0 {
            lower(&mut self.strict_positive_min);
        }
        if number >= 0.0 {
            lower(&mut self.positive_min);
        }
        lower(&mut self.min);
        self.max = Some(self.max.map_or(number, |most| most.max(number)));
        self.count += times;
        let from = number - self.mean;
        self.mean += from * times / self.count;
        self.squares += from * (number - self.mean) * times;
    }

    fn to_json(&self, whole: bool) -> Value {
        // Integers are reported as integers, truncated as in Python.
        let reported = |number: Option<f64>| match number {
            Some(number) if whole => {
                let whole = number.trunc() as i128;
                i64::try_from(whole)
                    .map_or_else(|_| u64::try_from(whole).map_or(json!(number), Value::from), Value::from)
            }
            Some(number) => json!(number),
            None => Value::Null,
        };
        let any = self.min.map(|_| (self.mean, (self.squares / self.count).sqrt()));
        json!({
            "strict_positive_min": reported(self.strict_positive_min), "positive_min": reported(self.positive_min),
            "min": reported(self.min), "max": reported(self.max),
            "mean": reported(any.map(|(mean, _)| mean)), "std": reported(any.map(|(_, deviation)| deviation)),
        })
    }
}

pub(crate) fn of(path: &str, entity: &Entity, selection: Option<&str>, job: &Job) -> Result<Value, Failure> {
    let mut stats = Stats::default();
    let dtype = match entity {
        Entity::Array(array) if array.schema().stored.no_space => {
            return Err(Failure::query(format!("{path} has no values")));
        }
        Entity::Array(array) => {
            let dtype = array.schema().dtype.clone();
            if numbers_of(&dtype).is_none() && dtype != DType::Float128 {
                return Err(Failure::query(format!("statistics of {dtype} are not supported")));
            }
            fold(array, selection, job, &mut stats)?;
            dtype
        }
        _ => {
            let values = selected_values(path, entity, selection, job)?;
            add_all(&values, 1.0, &mut stats)?;
            values.dtype
        }
    };
    Ok(stats.to_json(!dtype.is_float()))
}

fn fold(array: &ArrayReader, selection: Option<&str>, job: &Job, stats: &mut Stats) -> Result<(), Failure> {
    let item = array.schema().dtype.size().unwrap_or(1) as u64;
    let positions = positions_of(array, selection)?;
    let piece_bytes = PIECE.min(job.limit() / 4);
    let _held = job.reserve(piece_bytes * 2)?;
    let reader = array.clone().with_progress(std::sync::Arc::clone(&job.progress));
    if selection.is_none_or(str::is_empty) && fold_written(&reader, piece_bytes / item.max(1), job, stats)? {
        return Ok(());
    }
    for piece in
        Slabs::new(positions, item, array.schema().grid.chunk_shape(), (piece_bytes, piece_bytes * 2))
    {
        job.progress.check_cancelled()?;
        let values = reader.read_positions(piece)?;
        add_all(&safe(values), 1.0, stats)?;
    }
    Ok(())
}

fn safe(values: Values) -> Values {
    if values.dtype == DType::Float128 { to_safe(values) } else { values }
}

/// Folds an array of which little was ever written: its unwritten parts at once. Returns false for any other.
fn fold_written(reader: &ArrayReader, cells: u64, job: &Job, stats: &mut Stats) -> Result<bool, Failure> {
    let mut failure = None;
    let mut add = |values: Values, times: f64| {
        add_all(&safe(values), times, stats).map_err(|why| {
            failure = Some(why);
            Error::invalid("statistics ended")
        })
    };
    let folded = reader.visit_written(cells, &mut |region, fill| {
        job.progress.check_cancelled()?;
        let Some(fill) = fill else { return add(reader.read_positions(Positions::region(region))?, 1.0) };
        // Their number may exceed 64 bits.
        let times = region.shape.iter().map(|extent| *extent as f64).product();
        add(Values::new(reader.schema().dtype.clone(), &[1], fill.clone())?, times)
    });
    match failure {
        Some(failure) => Err(failure),
        None => Ok(folded?),
    }
}

/// The conversion of elements of this type to numbers.
pub(crate) fn numbers_of(dtype: &DType) -> Option<fn(&[u8]) -> f64> {
    macro_rules! as_number {
        ($type:ty) => {
            |bytes: &[u8]| bytemuck::pod_read_unaligned::<$type>(bytes) as f64
        };
    }
    Some(match dtype {
        DType::Bool | DType::UInt8 => as_number!(u8),
        DType::Int8 => as_number!(i8),
        DType::Int16 => as_number!(i16),
        DType::Int32 => as_number!(i32),
        DType::Int64 | DType::DateTime(_) | DType::Duration(_) => as_number!(i64),
        DType::UInt16 => as_number!(u16),
        DType::UInt32 => as_number!(u32),
        DType::UInt64 => as_number!(u64),
        DType::Float16 => |bytes| bytemuck::pod_read_unaligned::<half::f16>(bytes).to_f64(),
        DType::Float32 => as_number!(f32),
        DType::Float64 => as_number!(f64),
        DType::Enum(named) => return numbers_of(&named.base),
        _ => return None,
    })
}

/// Adds each value this many times.
fn add_all(values: &Values, times: f64, stats: &mut Stats) -> Result<(), Failure> {
    let wrong = || Failure::query(format!("{} is not a numeric type", values.dtype));
    let read = numbers_of(&values.dtype).ok_or_else(wrong)?;
    let bytes = values.elements.as_fixed().ok_or_else(wrong)?;
    let size = values.dtype.size().unwrap_or(1).max(1);
    let not_a_time =
        matches!(values.dtype, DType::DateTime(_) | DType::Duration(_)).then(|| i64::MIN.to_ne_bytes());
    for (index, element) in bytes.chunks_exact(size).enumerate() {
        if not_a_time.as_ref().is_some_and(|marker| marker == element) {
            continue;
        }
        let number = read(element);
        if number.is_finite() && !values.elements.is_missing(index) {
            stats.add(number, times);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_without_a_time_do_not_count() {
        let ticks = [5_i64, i64::MIN, 9].iter().flat_map(|tick| tick.to_ne_bytes()).collect::<Vec<_>>();
        let dtype = DType::DateTime(hyperslab::TimeUnit::Second);
        let values = Values::new(dtype, &[3], hyperslab::Elements::fixed(ticks)).unwrap();
        let mut stats = Stats::default();
        add_all(&values, 1.0, &mut stats).unwrap();
        assert_eq!((stats.min, stats.max, stats.count), (Some(5.0), Some(9.0), 2.0));
    }

    #[test]
    fn integers_are_truncated_and_empty_is_null() {
        let mut stats = Stats::default();
        assert_eq!(stats.to_json(true)["mean"], Value::Null);
        for number in [-3.0, 0.0, 2.0] {
            stats.add(number, 1.0);
        }
        let reported = stats.to_json(true);
        assert_eq!(
            reported,
            json!({"strict_positive_min": 2, "positive_min": 0, "min": -3, "max": 2, "mean": 0, "std": 2})
        );
        assert!((stats.to_json(false)["std"].as_f64().unwrap() - 2.0548).abs() < 1e-3);
    }

    #[test]
    fn numbers_that_occur_many_times_are_added_at_once() {
        let (mut each, mut at_once) = (Stats::default(), Stats::default());
        for (number, times) in [(2.0, 3), (-1.0, 1000), (7.5, 1), (0.0, 50)] {
            (0..times).for_each(|_| each.add(number, 1.0));
            at_once.add(number, f64::from(times));
        }
        assert_eq!((each.min, each.max, each.count), (at_once.min, at_once.max, at_once.count));
        assert!((each.mean - at_once.mean).abs() < 1e-12 && (each.squares - at_once.squares).abs() < 1e-9);
    }
}
