//! Bit-width reduction and positive delta: integers in windows, each with its own base.

use super::numbers::{Integer, Word, by_width};
use crate::error::{Result, corrupt, invalid, size as size_error};

const WIDTH: &str = "bit-width reduction";
const POSITIVE: &str = "positive delta";

fn length(bytes: &[u8]) -> usize {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[..4]);
    u32::from_le_bytes(word) as usize
}

/// Undoes bit-width reduction. `windows` is the metadata, `value offset, u8 bits, u32 window length` each, where the
/// length is that of the window before reduction.
///
/// # Errors
///
/// [`Corrupt`](crate::CodecError::Corrupt) or [`Size`](crate::CodecError::Size) if windows and bytes do not match.
pub fn decode_bit_width(integer: Integer, windows: &[u8], src: &[u8], out: &mut [u8]) -> Result<()> {
    by_width!(integer.size, WIDTH, widen_all(integer, windows, src, out))
}

fn widen_all<W: Word>(integer: Integer, windows: &[u8], src: &[u8], out: &mut [u8]) -> Result<()> {
    let (mut from, mut to) = (0, 0);
    for window in windows.chunks_exact(W::SIZE + 5) {
        let (base, bits, plain) = (W::load(window), window[W::SIZE], length(&window[W::SIZE + 1..]));
        let end = to + plain;
        let Some(target) = out.get_mut(to..end) else { return Err(size_error(WIDTH, out.len(), end)) };
        let reduced = usize::from(bits) < 8 * W::SIZE && plain.is_multiple_of(W::SIZE);
        if reduced && !matches!(bits, 8 | 16 | 32) {
            return Err(corrupt(WIDTH, format!("a width of {bits} bits, expected 8, 16, 32 or 64")));
        }
        let stored = if reduced { plain / W::SIZE * usize::from(bits / 8) } else { plain };
        let Some(bytes) = src.get(from..from + stored) else {
            return Err(corrupt(WIDTH, format!("{stored} bytes expected, {} there", src.len() - from)));
        };
        match (reduced, bits) {
            (false, _) => target.copy_from_slice(bytes),
            (_, 8) => widen::<W, 1>(integer.signed, base, bytes, target),
            (_, 16) => widen::<W, 2>(integer.signed, base, bytes, target),
            _ => widen::<W, 4>(integer.signed, base, bytes, target),
        }
        (from, to) = (from + stored, end);
    }
    if to != out.len() || from != src.len() {
        return Err(size_error(WIDTH, out.len(), to));
    }
    Ok(())
}

fn widen<W: Word, const N: usize>(signed: bool, base: W, bytes: &[u8], out: &mut [u8]) {
    let (narrow, _) = bytes.as_chunks::<N>();
    for (narrow, to) in narrow.iter().zip(out.chunks_exact_mut(W::SIZE)) {
        let mut wide = [0; 8];
        wide[..N].copy_from_slice(narrow);
        let (value, shift) = (u64::from_le_bytes(wide), 64 - 8 * N as u32);
        let value = if signed { (((value << shift) as i64) >> shift) as u64 } else { value };
        base.plus(W::from_u64(value)).store(to);
    }
}

/// The size of a window of at most `max` bytes, for a part of `part` bytes.
fn window_bytes(max: usize, part: usize, size: usize) -> usize {
    (part.min(max) / size * size).max(size)
}

/// Appends the reduced windows to `out` and their metadata to `windows`. Returns the number of windows.
///
/// # Errors
///
/// [`Invalid`](crate::CodecError::Invalid) for integers of other widths.
pub fn encode_bit_width(
    integer: Integer,
    max_window: usize,
    src: &[u8],
    windows: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<u32> {
    by_width!(integer.size, WIDTH, reduce_all(integer, max_window, src, windows, out))
}

fn reduce_all<W: Word>(
    integer: Integer,
    max_window: usize,
    src: &[u8],
    windows: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<u32> {
    let mut count = 0;
    for window in src.chunks(window_bytes(max_window, src.len(), W::SIZE)) {
        let values = || window.chunks_exact(W::SIZE).map(|value| integer.value(W::load(value).to_u64()));
        let (low, high) = (values().min().unwrap_or(0), values().max().unwrap_or(0));
        let bits = bits_of(integer, high - low);
        let reduced = bits < 8 * W::SIZE && window.len().is_multiple_of(W::SIZE);
        let base = W::from_u64(if bits < 8 * W::SIZE { low as u64 } else { 0 });
        let at = windows.len();
        windows.resize(at + W::SIZE, 0);
        base.store(&mut windows[at..]);
        windows.push(if reduced { bits } else { 8 * W::SIZE } as u8);
        windows.extend((window.len() as u32).to_le_bytes());
        if reduced {
            for value in window.chunks_exact(W::SIZE) {
                out.extend(&W::load(value).minus(base).to_u64().to_le_bytes()[..bits / 8]);
            }
        } else {
            out.extend_from_slice(window);
        }
        count += 1;
    }
    Ok(count)
}

/// The bit width for a range of values: it must hold one more than the range, and signed types keep their sign bit.
fn bits_of(integer: Integer, range: i128) -> usize {
    let needed = range + 1;
    let fits = |bits: u32| {
        if integer.signed { needed < 1_i128 << (bits - 1) } else { needed < 1_i128 << bits }
    };
    [8_u32, 16, 32]
        .into_iter()
        .find(|&bits| fits(bits))
        .map_or(64, |bits| bits as usize)
        .min(8 * integer.size)
}

/// Undoes positive delta. `windows` is the metadata, `first value, u32 window length` each.
///
/// # Errors
///
/// [`Size`](crate::CodecError::Size) if windows and bytes do not match.
pub fn decode_positive_delta(size: usize, windows: &[u8], src: &[u8], out: &mut [u8]) -> Result<()> {
    if src.len() != out.len() {
        return Err(size_error(POSITIVE, out.len(), src.len()));
    }
    by_width!(size, POSITIVE, add_up(windows, src, out))
}

fn add_up<W: Word>(windows: &[u8], src: &[u8], out: &mut [u8]) -> Result<()> {
    let mut at = 0;
    for window in windows.chunks_exact(W::SIZE + 4) {
        let (mut last, end) = (W::load(window), at + length(&window[W::SIZE..]));
        let (Some(from), Some(to)) = (src.get(at..end), out.get_mut(at..end)) else {
            return Err(size_error(POSITIVE, src.len(), end));
        };
        let body = from.len() - from.len() % W::SIZE;
        to[body..].copy_from_slice(&from[body..]);
        for (from, to) in from.chunks_exact(W::SIZE).zip(to.chunks_exact_mut(W::SIZE)) {
            last = last.plus(W::load(from));
            last.store(to);
        }
        at = end;
    }
    if at != out.len() {
        return Err(size_error(POSITIVE, out.len(), at));
    }
    Ok(())
}

/// Appends the differences inside each window to `out` and the windows' metadata to `windows`. Returns the number of windows.
///
/// # Errors
///
/// [`Invalid`](crate::CodecError::Invalid) if a value is below the one before it in its window.
pub fn encode_positive_delta(
    integer: Integer,
    max_window: usize,
    src: &[u8],
    windows: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<u32> {
    by_width!(integer.size, POSITIVE, differences(integer, max_window, src, windows, out))
}

fn differences<W: Word>(
    integer: Integer,
    max_window: usize,
    src: &[u8],
    windows: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<u32> {
    let mut count = 0;
    for window in src.chunks(window_bytes(max_window, src.len(), W::SIZE)) {
        let mut last = if window.len() >= W::SIZE { W::load(window) } else { W::from_u64(0) };
        let at = windows.len();
        windows.resize(at + W::SIZE, 0);
        last.store(&mut windows[at..]);
        windows.extend((window.len() as u32).to_le_bytes());
        let start = out.len();
        out.extend_from_slice(window);
        for (from, to) in window.chunks_exact(W::SIZE).zip(out[start..].chunks_exact_mut(W::SIZE)) {
            let value = W::load(from);
            if integer.value(value.to_u64()) < integer.value(last.to_u64()) {
                return Err(invalid(POSITIVE, "values that decrease"));
            }
            value.minus(last).store(to);
            last = value;
        }
        count += 1;
    }
    Ok(count)
}
