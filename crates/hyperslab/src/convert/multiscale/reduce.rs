//! Reduces blocks of cells to one cell each.

use hyperslab_core::{DType, Error, Result};

/// Returns true if blocks of elements of this type can be reduced.
pub(super) fn holds(dtype: &DType) -> bool {
    matches!(
        dtype,
        DType::Bool
            | DType::Int8
            | DType::Int16
            | DType::Int32
            | DType::Int64
            | DType::UInt8
            | DType::UInt16
            | DType::UInt32
            | DType::UInt64
            | DType::Float32
            | DType::Float64
    )
}

/// Calls a function with the block number of each cell, in C order. Consecutive cells of one block are passed as one
/// run.
fn visit_runs(shape: &[u64], factors: &[u64], blocks: &[u64], mut visit: impl FnMut(usize, usize, usize)) {
    let Some((&row, above)) = shape.split_last() else { return };
    let (last, rows) = (factors[above.len()], above.iter().product::<u64>());
    for number in 0..rows {
        let (mut left, mut block, mut stride) = (number, 0, blocks[above.len()]);
        for axis in (0..above.len()).rev() {
            block += left % above[axis] / factors[axis] * stride;
            left /= above[axis];
            stride *= blocks[axis];
        }
        let (mut at, mut first) = (0, (number * row) as usize);
        while at < row {
            let count = last.min(row - at);
            visit((block + at / last) as usize, first, count as usize);
            (at, first) = (at + count, first + count as usize);
        }
    }
}

fn count_of(blocks: &[u64]) -> usize {
    blocks.iter().product::<u64>() as usize
}

macro_rules! with_type {
    ($dtype:expr, $integer:ident, $float:ident, $($argument:expr),*) => {
        match $dtype {
            DType::Bool | DType::UInt8 => $integer::<u8, 1>($($argument),*, u8::from_ne_bytes, u8::to_ne_bytes),
            DType::Int8 => $integer::<i8, 1>($($argument),*, i8::from_ne_bytes, i8::to_ne_bytes),
            DType::Int16 => $integer::<i16, 2>($($argument),*, i16::from_ne_bytes, i16::to_ne_bytes),
            DType::Int32 => $integer::<i32, 4>($($argument),*, i32::from_ne_bytes, i32::to_ne_bytes),
            DType::Int64 => $integer::<i64, 8>($($argument),*, i64::from_ne_bytes, i64::to_ne_bytes),
            DType::UInt16 => $integer::<u16, 2>($($argument),*, u16::from_ne_bytes, u16::to_ne_bytes),
            DType::UInt32 => $integer::<u32, 4>($($argument),*, u32::from_ne_bytes, u32::to_ne_bytes),
            DType::UInt64 => $integer::<u64, 8>($($argument),*, u64::from_ne_bytes, u64::to_ne_bytes),
            DType::Float32 => $float::<f32, 4>($($argument),*, f32::from_ne_bytes, f32::to_ne_bytes),
            DType::Float64 => $float::<f64, 8>($($argument),*, f64::from_ne_bytes, f64::to_ne_bytes),
            other => return Err(Error::invalid(format!("cannot reduce blocks of elements of type {other}"))),
        }
    };
}

/// The mean of each block. Integers are rounded, halves upwards.
pub(super) fn mean(
    dtype: &DType,
    cells: &[u8],
    shape: &[u64],
    factors: &[u64],
    blocks: &[u64],
) -> Result<Vec<u8>> {
    Ok(with_type!(dtype, mean_of_integers, mean_of_floats, cells, shape, factors, blocks))
}

fn mean_of_integers<T: Into<i128> + TryFrom<i128> + Copy, const SIZE: usize>(
    cells: &[u8],
    shape: &[u64],
    factors: &[u64],
    blocks: &[u64],
    from: impl Fn([u8; SIZE]) -> T,
    to: impl Fn(T) -> [u8; SIZE],
) -> Vec<u8> {
    let (cells, _) = cells.as_chunks::<SIZE>();
    let mut sums = vec![(0_i128, 0_i128); count_of(blocks)];
    visit_runs(shape, factors, blocks, |block, first, count| {
        let run: i128 = cells[first..first + count].iter().map(|cell| from(*cell).into()).sum();
        sums[block].0 += run;
        sums[block].1 += count as i128;
    });
    let mean = |(sum, count): (i128, i128)| {
        let rounded = (2 * sum + count).div_euclid(2 * count.max(1));
        // Rounding must not move the mean outside the range of its values.
        T::try_from(rounded).map_or([0; SIZE], &to)
    };
    sums.into_iter().flat_map(mean).collect()
}

fn mean_of_floats<T: Into<f64> + FromDouble + Copy, const SIZE: usize>(
    cells: &[u8],
    shape: &[u64],
    factors: &[u64],
    blocks: &[u64],
    from: impl Fn([u8; SIZE]) -> T,
    to: impl Fn(T) -> [u8; SIZE],
) -> Vec<u8> {
    let (cells, _) = cells.as_chunks::<SIZE>();
    let mut sums = vec![(0_f64, 0_f64); count_of(blocks)];
    visit_runs(shape, factors, blocks, |block, first, count| {
        let run: f64 = cells[first..first + count].iter().map(|cell| from(*cell).into()).sum();
        sums[block].0 += run;
        sums[block].1 += count as f64;
    });
    sums.into_iter().flat_map(|(sum, count)| to(T::from_double(sum / count))).collect()
}

trait FromDouble {
    fn from_double(value: f64) -> Self;
}

impl FromDouble for f32 {
    fn from_double(value: f64) -> Self {
        value as Self
    }
}

impl FromDouble for f64 {
    fn from_double(value: f64) -> Self {
        value
    }
}

/// The most frequent value of each block, and the smallest of equally frequent ones.
pub(super) fn mode(
    dtype: &DType,
    cells: &[u8],
    shape: &[u64],
    factors: &[u64],
    blocks: &[u64],
) -> Result<Vec<u8>> {
    Ok(with_type!(dtype, mode_of, mode_of, cells, shape, factors, blocks))
}

fn mode_of<T: PartialOrd + Copy, const SIZE: usize>(
    cells: &[u8],
    shape: &[u64],
    factors: &[u64],
    blocks: &[u64],
    from: impl Fn([u8; SIZE]) -> T,
    to: impl Fn(T) -> [u8; SIZE],
) -> Vec<u8> {
    let (cells, _) = cells.as_chunks::<SIZE>();
    let mut held: Vec<Vec<T>> = vec![Vec::new(); count_of(blocks)];
    visit_runs(shape, factors, blocks, |block, first, count| {
        held[block].extend(cells[first..first + count].iter().map(|cell| from(*cell)));
    });
    let frequent = |mut values: Vec<T>| {
        // NaN sorts last, in any order.
        values.sort_by(|a, b| {
            a.partial_cmp(b).unwrap_or_else(|| a.partial_cmp(a).is_none().cmp(&b.partial_cmp(b).is_none()))
        });
        let mut best: Option<(usize, T)> = None;
        for run in values.chunk_by(|a, b| a == b) {
            if best.is_none_or(|(count, _)| run.len() > count) {
                best = Some((run.len(), run[0]));
            }
        }
        best.map_or([0; SIZE], |(_, value)| to(value))
    };
    held.into_iter().flat_map(frequent).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_at_the_edge_are_smaller() {
        // 3 by 5 cells in blocks of 2 by 2.
        let cells: Vec<u8> = (0..15).collect();
        let means = mean(&DType::UInt8, &cells, &[3, 5], &[2, 2], &[2, 3]).unwrap();
        assert_eq!(means, [3, 5, 7, 11, 13, 14]);
        let floats: Vec<u8> = cells.iter().flat_map(|cell| f32::from(*cell).to_ne_bytes()).collect();
        let means = mean(&DType::Float32, &floats, &[3, 5], &[2, 2], &[2, 3]).unwrap();
        let expected: Vec<u8> =
            [3.0_f32, 5.0, 6.5, 10.5, 12.5, 14.0].iter().flat_map(|cell| cell.to_ne_bytes()).collect();
        assert_eq!(means, expected);
    }

    #[test]
    fn the_most_frequent_value_wins() {
        let cells = [7_u8, 7, 1, 2, 3, 9, 1, 2];
        assert_eq!(mode(&DType::UInt8, &cells, &[2, 4], &[2, 2], &[1, 2]).unwrap(), [7, 1]);
        let negative: Vec<u8> =
            [-3_i16, -4, -4, i16::MIN].iter().flat_map(|cell| cell.to_ne_bytes()).collect();
        let means = mean(&DType::Int16, &negative, &[4], &[2], &[2]).unwrap();
        assert_eq!(means, [-3_i16, -16386].map(i16::to_ne_bytes).concat());
    }
}
