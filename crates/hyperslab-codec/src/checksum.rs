//! Checksums and digests.
//!
//! Each is a function of a slice. The format crates know where a checksum is stored, and in which byte order.
//!
//! | function | used by |
//! |---|---|
//! | [`crc32()`] | gzip, numcodecs `crc32` |
//! | [`crc32c()`], [`crc32c_append`] | Zarr v3 `crc32c` and shard indexes; our table of checksums in `.tet` |
//! | [`adler32`] | zlib, numcodecs `adler32` |
//! | [`fletcher32`], [`verify_fletcher32`] | HDF5 filter 3, numcodecs `fletcher32` |
//! | [`lookup3`] | HDF5 metadata and name hashes, numcodecs `jenkins_lookup3` |
//! | [`md5()`], [`sha256()`] | TileDB filters 12 and 13 |

use md5::Digest as _;

use crate::error::{CodecError, Result};

/// CRC-32 with the polynomial of gzip and PNG.
#[must_use]
pub fn crc32(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

/// CRC-32C, the Castagnoli polynomial.
#[must_use]
pub fn crc32c(bytes: &[u8]) -> u32 {
    ::crc32c::crc32c(bytes)
}

/// The CRC-32C of bytes that follow others, given the sum of those.
#[must_use]
pub fn crc32c_append(before: u32, bytes: &[u8]) -> u32 {
    ::crc32c::crc32c_append(before, bytes)
}

/// Adler-32 (RFC 1950), starting from 1.
#[must_use]
pub fn adler32(bytes: &[u8]) -> u32 {
    simd_adler32::adler32(&bytes)
}

/// MD5 digest.
#[must_use]
pub fn md5(bytes: &[u8]) -> [u8; 16] {
    ::md5::Md5::digest(bytes).into()
}

/// SHA-256 digest.
#[must_use]
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    sha2::Sha256::digest(bytes).into()
}

/// Fletcher's checksum as computed by HDF5: over big-endian pairs of bytes, with an odd last byte as the high half.
///
/// HDF5 stores it as a little-endian integer after the data.
///
/// ```
/// assert_eq!(hyperslab_codec::checksum::fletcher32(b"\x01\x02"), 0x0102_0102);
/// ```
#[must_use]
pub fn fletcher32(bytes: &[u8]) -> u32 {
    /// The number of words summed side by side.
    const LANES: usize = 16;
    /// The maximum number of words per lane for which the weighted sum fits in 32 bits.
    const ROUNDS: usize = 360;
    // Sums modulo 65535. Due to the definition's end-around carry, a multiple of 65535 other than 0 stays 65535.
    let (mut sum1, mut sum2) = (0u64, 0u64);
    let (pairs, odd) = bytes.as_chunks::<2>();
    let (groups, rest) = pairs.as_chunks::<LANES>();
    for block in groups.chunks(ROUNDS) {
        // Per lane: the sum, and the sum of the running sums, in which the last word counts once.
        let (mut plain, mut weighted) = ([0u32; LANES], [0u32; LANES]);
        for group in block {
            for lane in 0..LANES {
                plain[lane] += u32::from(u16::from_be_bytes(group[lane]));
                weighted[lane] += plain[lane];
            }
        }
        let total: u64 = plain.iter().map(|&sum| u64::from(sum)).sum();
        let rounds: u64 = weighted.iter().map(|&sum| u64::from(sum)).sum();
        // In a group, j fewer words follow lane j than lane 0.
        let early: u64 = (0..).zip(&plain).map(|(lane, &sum): (u64, _)| lane * u64::from(sum)).sum();
        let words = (block.len() * LANES) as u64;
        sum2 = carry(sum2 + words * sum1 + LANES as u64 * rounds - early);
        sum1 = carry(sum1 + total);
    }
    for pair in rest {
        sum1 = carry(sum1 + u64::from(u16::from_be_bytes(*pair)));
        sum2 = carry(sum2 + sum1);
    }
    if let [last] = odd {
        sum1 = carry(sum1 + (u64::from(*last) << 8));
        sum2 = carry(sum2 + sum1);
    }
    (sum2 << 16 | sum1) as u32
}

/// The sum modulo 65535, but 0 only for 0.
fn carry(sum: u64) -> u64 {
    if sum == 0 { 0 } else { (sum - 1) % 0xffff + 1 }
}

/// Returns true if a checksum matches the stored one. Under a fuzzer every checksum matches, because a fuzzer cannot guess
/// them and should reach the code behind them.
#[must_use]
#[expect(unexpected_cfgs, reason = "set by cargo-fuzz, but not declared")]
pub const fn agree(computed: u32, stored: u32) -> bool {
    computed == stored || cfg!(fuzzing)
}

/// Verifies data against the checksum that HDF5 stored after it.
///
/// Big-endian writers before HDF5 1.6.3 swapped the two bytes of each half; both forms are accepted.
///
/// # Errors
///
/// [`Checksum`](CodecError::Checksum) if neither form matches.
pub fn verify_fletcher32(bytes: &[u8], stored: u32) -> Result<()> {
    let computed = fletcher32(bytes);
    let [a, b, c, d] = computed.to_be_bytes();
    if agree(computed, stored) || stored == u32::from_be_bytes([b, a, d, c]) {
        return Ok(());
    }
    Err(CodecError::Checksum { codec: "fletcher32", computed: computed.into(), stored: stored.into() })
}

/// Bob Jenkins's lookup3 `hashlittle`, the checksum of HDF5's metadata structures.
///
/// `initial` is 0 in HDF5.
#[must_use]
pub fn lookup3(bytes: &[u8], initial: u32) -> u32 {
    // Only the low 32 bits of the length are used.
    let start = 0xdead_beef_u32.wrapping_add(bytes.len() as u32).wrapping_add(initial);
    let (mut a, mut b, mut c) = (start, start, start);
    let word = |at: &[u8]| u32::from_le_bytes([at[0], at[1], at[2], at[3]]);
    let mut rest = bytes;
    while let (true, Some((block, tail))) = (rest.len() > 12, rest.split_first_chunk::<12>()) {
        a = a.wrapping_add(word(&block[..4]));
        b = b.wrapping_add(word(&block[4..8]));
        c = c.wrapping_add(word(&block[8..]));
        a = a.wrapping_sub(c) ^ c.rotate_left(4);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(6);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(8);
        b = b.wrapping_add(a);
        a = a.wrapping_sub(c) ^ c.rotate_left(16);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(19);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(4);
        b = b.wrapping_add(a);
        rest = tail;
    }
    if rest.is_empty() {
        return c;
    }
    let mut block = [0; 12];
    block[..rest.len()].copy_from_slice(rest);
    a = a.wrapping_add(word(&block[..4]));
    b = b.wrapping_add(word(&block[4..8]));
    c = c.wrapping_add(word(&block[8..]));
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    (c ^ b).wrapping_sub(b.rotate_left(24))
}

#[cfg(test)]
mod tests;
