//! Byte shuffle: groups the first bytes of all elements, then the second bytes, and so on.
//!
//! With elements of `size` bytes, byte `j` of element `i` of `n` moves to position `j * n + i`. Bytes after the last
//! whole element stay at the end. Elements of one byte are not moved. HDF5 filter 2, TileDB
//! filter 9, numcodecs `shuffle` and Blosc all do this; Blosc does it block by block.
//!
//! Sizes 2, 4, 8 and 16 use vectors. Sixteen elements of `size` bytes are `size` vectors. If the position
//! of a byte is written as a binary number, interleaving the first half of the vectors with the second half rotates that
//! number left by one. Shuffling is a rotation by four (the element's number has four bits), unshuffling one by
//! log₂ `size`: the same step, repeated.

use crate::error::{Result, invalid, size as size_error};

const CODEC: &str = "shuffle";

fn check(size: usize, src: &[u8], out: &[u8]) -> Result<()> {
    if size == 0 {
        return Err(invalid(CODEC, "element size 0"));
    }
    if src.len() != out.len() {
        return Err(size_error(CODEC, out.len(), src.len()));
    }
    Ok(())
}

/// Shuffles `src`, elements of `size` bytes, into `out` of the same length.
///
/// # Errors
///
/// [`Invalid`](crate::CodecError::Invalid) if `size` is 0, [`Size`](crate::CodecError::Size) if the lengths differ.
pub fn encode(size: usize, src: &[u8], out: &mut [u8]) -> Result<()> {
    check(size, src, out)?;
    let n = src.len() / size;
    if size == 1 || n < 2 {
        out.copy_from_slice(src);
        return Ok(());
    }
    let body = n * size;
    out[body..].copy_from_slice(&src[body..]);
    let (src, out) = (&src[..body], &mut out[..body]);
    let done = match size {
        2 => vector::shuffle::<2>(src, out),
        4 => vector::shuffle::<4>(src, out),
        8 => vector::shuffle::<8>(src, out),
        16 => vector::shuffle::<16>(src, out),
        _ => 0,
    };
    if done == n {
        return Ok(());
    }
    // Process blocks of elements, so that a block stays in the L1 cache while its planes are written.
    let block = block_len(size);
    let mut first = done;
    while first < n {
        let last = (first + block).min(n);
        for (j, plane) in out.chunks_exact_mut(n).enumerate() {
            let elements = &src[first * size..last * size];
            for (to, element) in plane[first..last].iter_mut().zip(elements.chunks_exact(size)) {
                *to = element[j];
            }
        }
        first = last;
    }
    Ok(())
}

/// Undoes [`encode`]: `src` of elements of `size` bytes, shuffled, back into `out` of the same length.
///
/// # Errors
///
/// [`Invalid`](crate::CodecError::Invalid) if `size` is 0, [`Size`](crate::CodecError::Size) if the lengths differ.
pub fn decode(size: usize, src: &[u8], out: &mut [u8]) -> Result<()> {
    check(size, src, out)?;
    let n = src.len() / size;
    if size == 1 || n < 2 {
        out.copy_from_slice(src);
        return Ok(());
    }
    let body = n * size;
    out[body..].copy_from_slice(&src[body..]);
    let (src, out) = (&src[..body], &mut out[..body]);
    let done = match size {
        2 => vector::unshuffle::<2>(src, out),
        4 => vector::unshuffle::<4>(src, out),
        8 => vector::unshuffle::<8>(src, out),
        16 => vector::unshuffle::<16>(src, out),
        _ => 0,
    };
    if done == n {
        return Ok(());
    }
    let block = block_len(size);
    let mut first = done;
    while first < n {
        let last = (first + block).min(n);
        let elements = &mut out[first * size..last * size];
        for (j, plane) in src.chunks_exact(n).enumerate() {
            for (from, element) in plane[first..last].iter().zip(elements.chunks_exact_mut(size)) {
                element[j] = *from;
            }
        }
        first = last;
    }
    Ok(())
}

/// Elements per block of the plain loops: 16 KiB of them, and whole cache lines of a plane.
fn block_len(size: usize) -> usize {
    (16_384 / size).max(64)
}

#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "vector loads and stores, and calls of code for a detected processor")]
mod vector {
    use std::arch::x86_64::*;

    /// One interleaving step: rotates the linear position of every byte left by one bit.
    #[inline]
    #[target_feature(enable = "sse2")]
    fn step<const N: usize>(v: [__m128i; N]) -> [__m128i; N] {
        let mut out = v;
        for i in 0..N / 2 {
            out[2 * i] = _mm_unpacklo_epi8(v[i], v[i + N / 2]);
            out[2 * i + 1] = _mm_unpackhi_epi8(v[i], v[i + N / 2]);
        }
        out
    }

    /// [`step`] on sixteen elements in the low lanes and sixteen more in the high lanes.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn step2<const N: usize>(v: [__m256i; N]) -> [__m256i; N] {
        let mut out = v;
        for i in 0..N / 2 {
            out[2 * i] = _mm256_unpacklo_epi8(v[i], v[i + N / 2]);
            out[2 * i + 1] = _mm256_unpackhi_epi8(v[i], v[i + N / 2]);
        }
        out
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn load(from: &[u8; 16]) -> __m128i {
        // SAFETY: the reference is to sixteen readable bytes; the load needs no alignment.
        unsafe { _mm_loadu_si128(from.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn store(to: &mut [u8; 16], v: __m128i) {
        // SAFETY: the reference is to sixteen writable bytes; the store needs no alignment.
        unsafe { _mm_storeu_si128(to.as_mut_ptr().cast(), v) }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn load2(from: &[u8; 32]) -> __m256i {
        // SAFETY: the reference is to 32 readable bytes; the load needs no alignment.
        unsafe { _mm256_loadu_si256(from.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn store2(to: &mut [u8; 32], v: __m256i) {
        // SAFETY: the reference is to 32 writable bytes; the store needs no alignment.
        unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), v) }
    }

    /// Shuffles elements from the front, as far as they fill vectors. Returns their number.
    pub(super) fn shuffle<const N: usize>(src: &[u8], out: &mut [u8]) -> usize {
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has AVX2, as just asked.
            unsafe { shuffle_avx2::<N>(src, out) }
        } else {
            // SAFETY: every x86-64 processor has SSE2.
            unsafe { shuffle_sse2::<N>(src, out) }
        }
    }

    /// Unshuffles elements from the front, as far as they fill vectors. Returns their number.
    pub(super) fn unshuffle<const N: usize>(src: &[u8], out: &mut [u8]) -> usize {
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has AVX2, as just asked.
            unsafe { unshuffle_avx2::<N>(src, out) }
        } else {
            // SAFETY: every x86-64 processor has SSE2.
            unsafe { unshuffle_sse2::<N>(src, out) }
        }
    }

    #[target_feature(enable = "sse2")]
    pub(super) fn shuffle_sse2<const N: usize>(src: &[u8], out: &mut [u8]) -> usize {
        let n = out.len() / N;
        let (groups, _) = src.as_chunks::<16>();
        let (groups, _) = groups.as_chunks::<N>();
        for (g, group) in groups.iter().enumerate() {
            let mut v = [_mm_setzero_si128(); N];
            for (v, bytes) in v.iter_mut().zip(group) {
                *v = load(bytes);
            }
            let v = step(step(step(step(v))));
            for (v, plane) in v.iter().zip(out.chunks_exact_mut(n)) {
                if let Some(to) = plane[g * 16..].first_chunk_mut::<16>() {
                    store(to, *v);
                }
            }
        }
        groups.len() * 16
    }

    #[target_feature(enable = "sse2")]
    pub(super) fn unshuffle_sse2<const N: usize>(src: &[u8], out: &mut [u8]) -> usize {
        let n = src.len() / N;
        let (groups, _) = out.as_chunks_mut::<16>();
        let (groups, _) = groups.as_chunks_mut::<N>();
        let done = groups.len() * 16;
        for (g, group) in groups.iter_mut().enumerate() {
            let mut v = [_mm_setzero_si128(); N];
            for (v, plane) in v.iter_mut().zip(src.chunks_exact(n)) {
                if let Some(from) = plane[g * 16..].first_chunk::<16>() {
                    *v = load(from);
                }
            }
            for _ in 0..N.ilog2() {
                v = step(v);
            }
            for (v, bytes) in v.iter().zip(group) {
                store(bytes, *v);
            }
        }
        done
    }

    #[target_feature(enable = "avx2")]
    fn shuffle_avx2<const N: usize>(src: &[u8], out: &mut [u8]) -> usize {
        let n = out.len() / N;
        let (halves, _) = src.as_chunks::<16>();
        let (halves, _) = halves.as_chunks::<N>();
        let (groups, _) = halves.as_chunks::<2>();
        for (g, [low, high]) in groups.iter().enumerate() {
            let mut v = [_mm256_setzero_si256(); N];
            for ((v, low), high) in v.iter_mut().zip(low).zip(high) {
                *v = _mm256_set_m128i(load(high), load(low));
            }
            let v = step2(step2(step2(step2(v))));
            for (v, plane) in v.iter().zip(out.chunks_exact_mut(n)) {
                if let Some(to) = plane[g * 32..].first_chunk_mut::<32>() {
                    store2(to, *v);
                }
            }
        }
        groups.len() * 32
    }

    #[target_feature(enable = "avx2")]
    fn unshuffle_avx2<const N: usize>(src: &[u8], out: &mut [u8]) -> usize {
        let n = src.len() / N;
        let (halves, _) = out.as_chunks_mut::<16>();
        let (halves, _) = halves.as_chunks_mut::<N>();
        let (groups, _) = halves.as_chunks_mut::<2>();
        let done = groups.len() * 32;
        for (g, [low, high]) in groups.iter_mut().enumerate() {
            let mut v = [_mm256_setzero_si256(); N];
            for (v, plane) in v.iter_mut().zip(src.chunks_exact(n)) {
                if let Some(from) = plane[g * 32..].first_chunk::<32>() {
                    *v = load2(from);
                }
            }
            for _ in 0..N.ilog2() {
                v = step2(v);
            }
            for ((v, low), high) in v.iter().zip(low).zip(high) {
                store(low, _mm256_castsi256_si128(*v));
                store(high, _mm256_extracti128_si256::<1>(*v));
            }
        }
        done
    }
}

#[cfg(not(target_arch = "x86_64"))]
use plain as vector;

/// The same steps on arrays, which compilers turn into the vector instructions of the processor.
#[cfg(any(test, not(target_arch = "x86_64")))]
mod plain {
    #[inline(always)]
    fn step<const N: usize>(v: [[u8; 16]; N]) -> [[u8; 16]; N] {
        let mut out = v;
        for i in 0..N / 2 {
            for b in 0..8 {
                out[2 * i][2 * b] = v[i][b];
                out[2 * i][2 * b + 1] = v[i + N / 2][b];
                out[2 * i + 1][2 * b] = v[i][b + 8];
                out[2 * i + 1][2 * b + 1] = v[i + N / 2][b + 8];
            }
        }
        out
    }

    pub(super) fn shuffle<const N: usize>(src: &[u8], out: &mut [u8]) -> usize {
        let n = out.len() / N;
        let (groups, _) = src.as_chunks::<16>();
        let (groups, _) = groups.as_chunks::<N>();
        for (g, group) in groups.iter().enumerate() {
            let v = step(step(step(step(*group))));
            for (v, plane) in v.iter().zip(out.chunks_exact_mut(n)) {
                plane[g * 16..g * 16 + 16].copy_from_slice(v);
            }
        }
        groups.len() * 16
    }

    pub(super) fn unshuffle<const N: usize>(src: &[u8], out: &mut [u8]) -> usize {
        let n = src.len() / N;
        let (groups, _) = out.as_chunks_mut::<16>();
        let (groups, _) = groups.as_chunks_mut::<N>();
        let done = groups.len() * 16;
        for (g, group) in groups.iter_mut().enumerate() {
            let mut v = [[0; 16]; N];
            for (v, plane) in v.iter_mut().zip(src.chunks_exact(n)) {
                v.copy_from_slice(&plane[g * 16..g * 16 + 16]);
            }
            for _ in 0..N.ilog2() {
                v = step(v);
            }
            *group = v;
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{hex, noise};

    /// The definition, one byte at a time.
    fn slow(size: usize, src: &[u8]) -> Vec<u8> {
        let n = src.len() / size;
        let mut out = src.to_vec();
        for i in 0..n {
            for j in 0..size {
                out[j * n + i] = src[i * size + j];
            }
        }
        out
    }

    #[test]
    fn numcodecs_shuffles_the_same() {
        // numcodecs 0.16.6: Shuffle(elementsize).encode(numpy.arange(n, dtype="u1"))
        for (size, want) in [
            (
                4,
                "0004080c1014181c2024282c3034383c4044484c500105090d1115191d2125292d3135393d4145494d5102060a0e12161a1e
                 22262a2e32363a3e42464a4e5203070b0f13171b1f23272b2f33373b3f43474b4f53",
            ),
            (3, "000306090c0f1215181b1e2124272a2d30330104070a0d101316191c1f2225282b2e31340205080b0e1114171a1d202326292c2f3235"),
        ] {
            let want = hex(want);
            let src: Vec<u8> = (0..want.len() as u8).collect();
            let mut out = vec![0; src.len()];
            encode(size, &src, &mut out).unwrap();
            assert_eq!(out, want);
        }
    }

    #[test]
    fn tiledb_shuffles_the_same() {
        // libtiledb: byteshuffle of int32 [0, 1, 2, 3, 4, 5, 6, 7, 1000, -5]
        let src: Vec<u8> =
            [0i32, 1, 2, 3, 4, 5, 6, 7, 1000, -5].iter().flat_map(|v| v.to_le_bytes()).collect();
        let mut out = vec![0; 40];
        encode(4, &src, &mut out).unwrap();
        assert_eq!(
            out,
            hex("0001020304050607e8fb000000000000000003ff000000000000000000ff000000000000000000ff")
        );
    }

    #[test]
    fn every_size_and_length_agrees_with_the_definition() {
        for size in (1..=17).chain([24, 32, 100, 300]) {
            for n in [0, 1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 300] {
                for tail in [0, size / 2] {
                    let src = noise(n * size + tail);
                    let mut out = vec![0; src.len()];
                    encode(size, &src, &mut out).unwrap();
                    assert_eq!(out, slow(size, &src), "size {size}, {n} elements, tail {tail}");
                    let mut back = vec![0; src.len()];
                    decode(size, &out, &mut back).unwrap();
                    assert_eq!(back, src, "size {size}, {n} elements, tail {tail}");
                }
            }
        }
    }

    /// Checks one pair of kernels. They leave elements that do not fill a vector.
    fn check_kernels<const N: usize>(
        shuffle: fn(&[u8], &mut [u8]) -> usize,
        unshuffle: fn(&[u8], &mut [u8]) -> usize,
    ) {
        let src = noise(N * 149);
        let want = slow(N, &src);
        let mut out = vec![0; src.len()];
        let done = shuffle(&src, &mut out);
        assert_eq!(done, 144);
        for (out, want) in out.chunks_exact(149).zip(want.chunks_exact(149)) {
            assert_eq!(out[..done], want[..done]);
        }
        let mut back = vec![0; src.len()];
        assert_eq!(unshuffle(&want, &mut back), done);
        assert_eq!(back[..done * N], src[..done * N]);
    }

    #[test]
    fn kernels_without_vectors_agree_too() {
        check_kernels::<2>(plain::shuffle::<2>, plain::unshuffle::<2>);
        check_kernels::<4>(plain::shuffle::<4>, plain::unshuffle::<4>);
        check_kernels::<8>(plain::shuffle::<8>, plain::unshuffle::<8>);
        check_kernels::<16>(plain::shuffle::<16>, plain::unshuffle::<16>);
    }

    #[cfg(target_arch = "x86_64")]
    #[expect(unsafe_code, reason = "calls of code for a feature that every x86-64 processor has")]
    #[test]
    fn kernels_of_the_smaller_vectors_agree_too() {
        // SAFETY: every x86-64 processor has SSE2.
        let shuffle: fn(&[u8], &mut [u8]) -> usize =
            |src, out| unsafe { vector::shuffle_sse2::<4>(src, out) };
        // SAFETY: every x86-64 processor has SSE2.
        let unshuffle: fn(&[u8], &mut [u8]) -> usize =
            |src, out| unsafe { vector::unshuffle_sse2::<4>(src, out) };
        check_kernels::<4>(shuffle, unshuffle);
    }

    #[test]
    fn wrong_arguments_are_errors() {
        assert!(encode(0, &[1], &mut [0]).is_err());
        assert!(decode(4, &[1, 2], &mut [0]).is_err());
    }

    proptest! {
        #[test]
        fn round_trip(data: Vec<u8>, size in 1..40usize) {
            let mut out = vec![0; data.len()];
            encode(size, &data, &mut out).unwrap();
            let mut back = vec![0; data.len()];
            decode(size, &out, &mut back).unwrap();
            prop_assert_eq!(back, data);
        }
    }
}
