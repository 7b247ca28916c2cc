//! Reads untrusted bytes: a checked cursor, and buffers that grow up to a limit.

use crate::error::{Result, corrupt, too_long};

/// Reads a slice from front to back and never past it.
#[derive(Debug, Clone)]
pub(crate) struct Reader<'a> {
    codec: &'static str,
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) const fn new(codec: &'static str, bytes: &'a [u8]) -> Self {
        Self { codec, rest: bytes }
    }

    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next `n` bytes; an error if there are fewer.
    pub(crate) fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        match self.rest.split_at_checked(n) {
            Some((head, tail)) => {
                self.rest = tail;
                Ok(head)
            }
            None => {
                Err(corrupt(self.codec, format!("ends early: {n} bytes expected, {} left", self.rest.len())))
            }
        }
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        match self.rest.split_first_chunk::<N>() {
            Some((head, tail)) => {
                self.rest = tail;
                Ok(*head)
            }
            None => {
                Err(corrupt(self.codec, format!("ends early: {N} bytes expected, {} left", self.rest.len())))
            }
        }
    }

    pub(crate) fn u8(&mut self) -> Result<u8> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    pub(crate) fn u32_le(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u32_be(&mut self) -> Result<u32> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    pub(crate) fn u64_le(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64_be(&mut self) -> Result<u64> {
        Ok(u64::from_be_bytes(self.array()?))
    }
}

/// Appends the output of `decode` to `out`, without knowing its size in advance.
///
/// `decode` is given a zeroed buffer and returns the number of bytes written, or `None` if the buffer is too small. It is then
/// called again with a larger one of at most `limit` bytes. On an error, `out` is unchanged.
pub(crate) fn decode_growing(
    codec: &'static str,
    guess: usize,
    limit: usize,
    out: &mut Vec<u8>,
    mut decode: impl FnMut(&mut [u8]) -> Result<Option<usize>>,
) -> Result<()> {
    let base = out.len();
    let mut room = guess.clamp(64, limit.max(64)).min(limit);
    loop {
        out.reserve_exact((base + room).saturating_sub(out.len()));
        out.resize(base + room, 0);
        match decode(&mut out[base..]) {
            Ok(Some(n)) => {
                out.truncate(base + n.min(room));
                return Ok(());
            }
            Ok(None) if room < limit => room = room.saturating_mul(4).min(limit),
            Ok(None) => {
                out.truncate(base);
                return Err(too_long(codec, limit));
            }
            Err(error) => {
                out.truncate(base);
                return Err(error);
            }
        }
    }
}

/// Copies `len` bytes from `distance` back to `out[at..]`, with Lempel-Ziv semantics: if the distance is shorter than the length,
/// the bytes just written repeat.
///
/// The caller has checked `1 <= distance <= at` and `len <= out.len() - at`.
pub(crate) fn copy_back(out: &mut [u8], at: usize, distance: usize, len: usize) {
    if distance >= len {
        out.copy_within(at - distance..at - distance + len, at);
    } else if distance == 1 {
        let byte = out[at - 1];
        out[at..at + len].fill(byte);
    } else {
        // The copied part doubles each time.
        let (start, mut done) = (at - distance, 0);
        while done < len {
            let now = (distance + done).min(len - done);
            out.copy_within(start..start + now, at + done);
            done += now;
        }
    }
}
