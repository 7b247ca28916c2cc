//! Differences of values that never fall (filter 10), window by window.
//!
//! Own metadata: the number of windows (u32), and for every window its first value and its length in bytes (u32). The
//! data is as long as before; the first difference of a window is 0.

use super::{Integer, Word, by_size, load_bits};
use crate::bytes::Reader;
use crate::error::{Result, corrupt, invalid, size as size_error};

const CODEC: &str = "tiledb positive delta";

/// One window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The first value's bits.
    pub first: u64,
    /// Bytes of the window.
    pub len: u32,
}

/// Own metadata of the filter.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Windows {
    /// The windows, in order.
    pub windows: Vec<Window>,
}

impl Windows {
    /// Parses the metadata at the front of `metadata`; answers with what follows it.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](crate::CodecError::Corrupt) where it is cut off.
    pub fn parse(integer: Integer, metadata: &[u8]) -> Result<(Self, &[u8])> {
        let mut reader = Reader::new(CODEC, metadata);
        let count = reader.u32_le()? as usize;
        let each = integer.size() + 4;
        let list = reader.take(count.saturating_mul(each))?;
        let windows = list
            .chunks_exact(each)
            .map(|window| Window {
                first: load_bits(&window[..integer.size()]),
                len: load_bits(&window[integer.size()..]) as u32,
            })
            .collect();
        Ok((Self { windows }, reader.rest()))
    }

    /// Appends the metadata to `out`.
    ///
    /// # Errors
    ///
    /// [`Invalid`](crate::CodecError::Invalid) where there are more windows than 32 bits can count.
    pub fn write(&self, integer: Integer, out: &mut Vec<u8>) -> Result<()> {
        let count = u32::try_from(self.windows.len()).map_err(|_| invalid(CODEC, "too many windows"))?;
        out.extend(count.to_le_bytes());
        for window in &self.windows {
            out.extend_from_slice(&window.first.to_le_bytes()[..integer.size()]);
            out.extend(window.len.to_le_bytes());
        }
        Ok(())
    }

    /// Appends the windows and differences of the part `src` to these windows and to `out`.
    ///
    /// # Errors
    ///
    /// [`Invalid`](crate::CodecError::Invalid) where `src` is not whole values, or a value is less than the one before.
    pub fn encode(&mut self, integer: Integer, max_window: u32, src: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let size = integer.size();
        if !src.len().is_multiple_of(size) {
            return Err(invalid(CODEC, format!("{} bytes of values of {size} bytes", src.len())));
        }
        for window in src.chunks(window_len(size, max_window)) {
            let mut last = integer.load(&window[..size]);
            self.windows.push(Window { first: load_bits(&window[..size]), len: window.len() as u32 });
            for from in window.chunks_exact(size) {
                let value = integer.load(from);
                if value < last {
                    return Err(invalid(CODEC, format!("{value} after {last}")));
                }
                out.extend_from_slice(&((value - last) as u64).to_le_bytes()[..size]);
                last = value;
            }
        }
        Ok(())
    }

    /// Decodes the part `src` into `out` of the same length.
    ///
    /// # Errors
    ///
    /// [`Size`](crate::CodecError::Size) where the lengths differ, [`Corrupt`](crate::CodecError::Corrupt) where the windows
    /// are not as long as that together.
    pub fn decode(&self, integer: Integer, src: &[u8], out: &mut [u8]) -> Result<()> {
        if src.len() != out.len() {
            return Err(size_error(CODEC, out.len(), src.len()));
        }
        let mut at = 0;
        for window in &self.windows {
            let end = at + window.len as usize;
            let (Some(src), Some(out)) = (src.get(at..end), out.get_mut(at..end)) else {
                return Err(corrupt(CODEC, format!("a window of {} bytes at byte {at}", window.len)));
            };
            by_size!(integer.size(), decode_words(window.first, src, out), else ());
            at = end;
        }
        if at == out.len() { Ok(()) } else { Err(size_error(CODEC, out.len(), at)) }
    }
}

fn decode_words<W: Word>(first: u64, src: &[u8], out: &mut [u8]) {
    let mut last = W::load(&first.to_le_bytes()[..W::SIZE]);
    for (from, to) in src.chunks_exact(W::SIZE).zip(out.chunks_exact_mut(W::SIZE)) {
        last = last.plus(W::load(from));
        last.store(to);
    }
    // A window that is cut inside a value ends with bytes as they are.
    let whole = src.len() / W::SIZE * W::SIZE;
    out[whole..].copy_from_slice(&src[whole..]);
}

/// Whole values, and at least one.
pub(super) fn window_len(size: usize, max_window: u32) -> usize {
    (max_window as usize / size * size).max(size)
}
