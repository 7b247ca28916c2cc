//! Bit-width reduction (filter 7): distances from the least value of a window, in 8, 16 or 32 bits.
//!
//! Own metadata: the length of all input (u32) and the number of windows (u32); for every window its least value,
//! the bits of a distance (u8) and its length before reduction (u32). A window whose bits are not fewer than the type's, or
//! whose length is not whole values, is stored as it is; its least value may be undefined.
//! Integers of 8 bits pass through the filter without metadata: the caller sees to that.

use super::positive_delta::window_len;
use super::{Integer, load_bits};
use crate::bytes::Reader;
use crate::error::{Result, corrupt, invalid, size as size_error};

const CODEC: &str = "tiledb bit width reduction";

/// One window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The least value's bits.
    pub least: u64,
    /// Bits of every distance: 8, 16, 32 or 64.
    pub bits: u8,
    /// Bytes of the window before reduction.
    pub len: u32,
}

impl Window {
    /// Whether the window is stored as it is.
    fn is_plain(&self, integer: Integer) -> bool {
        u32::from(self.bits) >= integer.width() || !(self.len as usize).is_multiple_of(integer.size())
    }

    /// Bytes of the window as stored.
    fn stored_len(&self, integer: Integer) -> usize {
        let len = self.len as usize;
        if self.is_plain(integer) { len } else { len / integer.size() * (usize::from(self.bits) / 8) }
    }
}

/// Own metadata of the filter.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Windows {
    /// Bytes of all parts before reduction.
    pub input_len: u32,
    /// The windows, in order.
    pub windows: Vec<Window>,
}

impl Windows {
    /// Parses the metadata at the front of `metadata`; answers with what follows it.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](crate::CodecError::Corrupt) where it is cut off or impossible.
    pub fn parse(integer: Integer, metadata: &[u8]) -> Result<(Self, &[u8])> {
        let mut reader = Reader::new(CODEC, metadata);
        let (input_len, count) = (reader.u32_le()?, reader.u32_le()? as usize);
        let size = integer.size();
        let list = reader.take(count.saturating_mul(size + 5))?;
        let mut windows = Vec::with_capacity(count);
        for window in list.chunks_exact(size + 5) {
            let window = Window {
                least: load_bits(&window[..size]),
                bits: window[size],
                len: load_bits(&window[size + 1..]) as u32,
            };
            if !matches!(window.bits, 8 | 16 | 32 | 64) {
                return Err(corrupt(CODEC, format!("a window of {} bits", window.bits)));
            }
            windows.push(window);
        }
        Ok((Self { input_len, windows }, reader.rest()))
    }

    /// Appends the metadata to `out`.
    ///
    /// # Errors
    ///
    /// [`Invalid`](crate::CodecError::Invalid) where there are more windows than 32 bits can count.
    pub fn write(&self, integer: Integer, out: &mut Vec<u8>) -> Result<()> {
        let count = u32::try_from(self.windows.len()).map_err(|_| invalid(CODEC, "too many windows"))?;
        out.extend(self.input_len.to_le_bytes());
        out.extend(count.to_le_bytes());
        for window in &self.windows {
            out.extend_from_slice(&window.least.to_le_bytes()[..integer.size()]);
            out.push(window.bits);
            out.extend(window.len.to_le_bytes());
        }
        Ok(())
    }

    /// Appends the windows and distances of the part `src` to these windows and to `out`.
    ///
    /// # Errors
    ///
    /// [`Invalid`](crate::CodecError::Invalid) where the integer is of 8 bits, `src` is not whole values, or it is longer
    /// than 32 bits can say.
    pub fn encode(&mut self, integer: Integer, max_window: u32, src: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let size = integer.size();
        if size == 1 || !src.len().is_multiple_of(size) {
            return Err(invalid(CODEC, format!("{} bytes of values of {size} bytes", src.len())));
        }
        let len = u32::try_from(src.len()).ok().and_then(|len| self.input_len.checked_add(len));
        self.input_len = len.ok_or_else(|| invalid(CODEC, "too many bytes"))?;
        for window in src.chunks(window_len(size, max_window)) {
            let values = || window.chunks_exact(size).map(|from| integer.load(from));
            let (Some(least), Some(most)) = (values().min(), values().max()) else { continue };
            let bits = reduced_bits(integer, most - least);
            let plain = bits >= integer.width();
            // libtiledb leaves the least value undefined where the number of values overflows the type.
            let undefined = most - least >= (1i128 << (integer.width() - u32::from(integer.is_signed()))) - 1;
            self.windows.push(Window {
                least: if undefined { 0 } else { least as u64 },
                bits: bits as u8,
                len: window.len() as u32,
            });
            if plain {
                out.extend_from_slice(window);
                continue;
            }
            for value in values() {
                out.extend_from_slice(&((value - least) as u64).to_le_bytes()[..bits as usize / 8]);
            }
        }
        Ok(())
    }

    /// Decodes the part `src` into `out`, which it must fill.
    ///
    /// # Errors
    ///
    /// [`Size`](crate::CodecError::Size) or [`Corrupt`](crate::CodecError::Corrupt) where the windows do not fit `src` and
    /// `out`.
    pub fn decode(&self, integer: Integer, src: &[u8], out: &mut [u8]) -> Result<()> {
        let mut reader = Reader::new(CODEC, src);
        let mut at = 0;
        for window in &self.windows {
            let end = at + window.len as usize;
            let room = out.get_mut(at..end);
            let room =
                room.ok_or_else(|| corrupt(CODEC, format!("a window of {} bytes at byte {at}", window.len)))?;
            let stored = reader.take(window.stored_len(integer))?;
            if window.is_plain(integer) {
                room.copy_from_slice(stored);
            } else {
                widen(integer, window, stored, room);
            }
            at = end;
        }
        if at != out.len() {
            return Err(size_error(CODEC, out.len(), at));
        }
        if reader.is_empty() { Ok(()) } else { Err(corrupt(CODEC, "bytes after the last window")) }
    }
}

/// Adds the least value to every distance: one loop for every pair of widths.
fn widen(integer: Integer, window: &Window, stored: &[u8], out: &mut [u8]) {
    macro_rules! loops {
        ($narrow:ty, $signed:ty, $wide:ty) => {{
            let least = window.least as $wide;
            let pairs = stored.as_chunks().0.iter().zip(out.as_chunks_mut().0);
            if integer.is_signed() {
                pairs.for_each(|(from, to)| {
                    *to = (<$signed>::from_le_bytes(*from) as $wide).wrapping_add(least).to_le_bytes();
                });
            } else {
                pairs.for_each(|(from, to)| {
                    *to = <$wide>::from(<$narrow>::from_le_bytes(*from)).wrapping_add(least).to_le_bytes();
                });
            }
        }};
    }
    match (window.bits, integer.size()) {
        (8, 2) => loops!(u8, i8, u16),
        (8, 4) => loops!(u8, i8, u32),
        (8, 8) => loops!(u8, i8, u64),
        (16, 4) => loops!(u16, i16, u32),
        (16, 8) => loops!(u16, i16, u64),
        (32, 8) => loops!(u32, i32, u64),
        // Any other window is stored as it is.
        _ => {}
    }
}

/// The bits for distances up to `range`: libtiledb wants one value more, and of signed types the sign bit left alone.
fn reduced_bits(integer: Integer, range: i128) -> u32 {
    let values = range + 1;
    let fits = |bits: u32| {
        if integer.is_signed() { values < 1i128 << (bits - 1) } else { values < 1i128 << bits }
    };
    [8, 16, 32].into_iter().find(|&bits| bits < integer.width() && fits(bits)).unwrap_or(integer.width())
}
