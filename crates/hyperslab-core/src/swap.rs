//! Byte order: swaps numbers in place or while copying.

use crate::widest;

widest! {
    /// Reverses the bytes of each number of `unit` bytes. A remainder at the end is left as is.
    ///
    /// ```
    /// let mut bytes = [1, 2, 3, 4];
    /// hyperslab_core::swap_bytes(2, &mut bytes);
    /// assert_eq!(bytes, [2, 1, 4, 3]);
    /// ```
    pub swap_bytes[](unit: usize, bytes: &mut [u8]), swap_here
}

widest! {
    /// Copies numbers of `unit` bytes, reversing the bytes of each. Copies as many bytes as fit both sides; a remainder after the
    /// last whole number is copied as is.
    pub copy_swapped[](unit: usize, from: &[u8], to: &mut [u8]), copy_here
}

#[inline(always)]
fn swap_here(unit: usize, bytes: &mut [u8]) {
    #[inline(always)]
    fn fixed<const N: usize>(bytes: &mut [u8]) {
        bytes.as_chunks_mut::<N>().0.iter_mut().for_each(|number| number.reverse());
    }
    // Known widths become vector instructions.
    match unit {
        0 | 1 => {}
        2 => fixed::<2>(bytes),
        4 => fixed::<4>(bytes),
        8 => fixed::<8>(bytes),
        unit => bytes.chunks_exact_mut(unit).for_each(<[u8]>::reverse),
    }
}

#[inline(always)]
fn copy_here(unit: usize, from: &[u8], to: &mut [u8]) {
    #[inline(always)]
    fn fixed<const N: usize>(from: &[u8], to: &mut [u8]) {
        let ((from, rest), (to, end)) = (from.as_chunks::<N>(), to.as_chunks_mut::<N>());
        for (from, to) in from.iter().zip(to) {
            *to = *from;
            to.reverse();
        }
        end.copy_from_slice(rest);
    }
    let length = from.len().min(to.len());
    let (from, to) = (&from[..length], &mut to[..length]);
    match unit {
        2 => fixed::<2>(from, to),
        4 => fixed::<4>(from, to),
        8 => fixed::<8>(from, to),
        unit => {
            to.copy_from_slice(from);
            swap_here(unit, to);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_agree_with_a_plain_loop() {
        let from: Vec<u8> = (0..203).map(|i| i as u8).collect();
        for unit in [0, 1, 2, 3, 4, 8, 16] {
            let mut expected = from.clone();
            if unit > 0 {
                expected.chunks_exact_mut(unit).for_each(<[u8]>::reverse);
            }
            let (mut swapped, mut copied) = (from.clone(), vec![0; from.len()]);
            swap_bytes(unit, &mut swapped);
            copy_swapped(unit, &from, &mut copied);
            assert_eq!((&swapped, &copied), (&expected, &expected), "{unit}");
        }
    }
}
