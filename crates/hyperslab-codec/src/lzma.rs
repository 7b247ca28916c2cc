//! LZMA as written by Python's `lzma` module and numcodecs: `.xz`, `.lzma`, and raw LZMA2.

use std::io::{Read, Write};

use lzma_rust2::{CheckType, Lzma2Reader, LzmaReader, XzOptions, XzReader, XzWriter};

use crate::error::{Result, corrupt, invalid, size, too_long, unsupported};

const CODEC: &str = "lzma";

/// The maximum dictionary size, in KiB: the largest preset uses 64 MiB.
const MEMORY_KIB: u32 = 160 << 10;

/// The container of the compressed bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Container {
    /// `.xz`, of one or more streams.
    Xz,
    /// `.lzma`, the predecessor of `.xz`.
    Alone,
    /// None: raw LZMA2 with this dictionary, after a delta filter with this distance (0: none).
    Raw {
        /// Bytes of the dictionary.
        dictionary: u32,
        /// Distance of the delta filter, 0 to 256.
        delta: u16,
    },
}

fn reader(container: Container, src: &[u8]) -> Result<Box<dyn Read + '_>> {
    Ok(match container {
        Container::Xz => Box::new(XzReader::new_mem_limit(src, true, MEMORY_KIB)),
        Container::Alone => Box::new(
            LzmaReader::new_mem_limit(src, MEMORY_KIB, None)
                .map_err(|error| corrupt(CODEC, error.to_string()))?,
        ),
        Container::Raw { dictionary, delta } => {
            if dictionary > MEMORY_KIB << 10 {
                return Err(unsupported(CODEC, format!("a dictionary of {dictionary} bytes")));
            }
            let reader = Lzma2Reader::new(src, dictionary.max(4096), None);
            match delta {
                0 => Box::new(reader),
                1..=256 => {
                    Box::new(Undelta { inner: reader, history: [0; 256], distance: delta.into(), at: 0 })
                }
                other => return Err(invalid(CODEC, format!("a delta filter of distance {other}"))),
            }
        }
    })
}

/// Adds to each byte the one `distance` before it.
struct Undelta<R> {
    inner: R,
    history: [u8; 256],
    distance: usize,
    at: usize,
}

impl<R: Read> Read for Undelta<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.inner.read(buffer)?;
        for byte in &mut buffer[..read] {
            let slot = self.at % self.distance;
            *byte = byte.wrapping_add(self.history[slot]);
            self.history[slot] = *byte;
            self.at += 1;
        }
        Ok(read)
    }
}

/// Reads until `out` is full or the input ends. Returns the number of bytes.
fn fill(reader: &mut dyn Read, out: &mut [u8]) -> Result<usize> {
    let mut filled = 0;
    while filled < out.len() {
        match reader.read(&mut out[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) => return Err(corrupt(CODEC, error.to_string())),
        }
    }
    Ok(filled)
}

/// Decodes `src` into `out`, which it must fill.
///
/// # Errors
///
/// [`Corrupt`](crate::CodecError::Corrupt) if `src` is damaged or truncated, [`Size`](crate::CodecError::Size) if it
/// decodes to any other size.
pub fn decode(container: Container, src: &[u8], out: &mut [u8]) -> Result<()> {
    let mut reader = reader(container, src)?;
    let filled = fill(&mut *reader, out)?;
    if filled < out.len() {
        return Err(size(CODEC, out.len(), filled));
    }
    match fill(&mut *reader, &mut [0])? {
        0 => Ok(()),
        _ => Err(too_long(CODEC, out.len())),
    }
}

/// Decodes `src` and appends the result, at most `limit` bytes, to `out`.
///
/// # Errors
///
/// As [`decode`]; [`Size`](crate::CodecError::Size) if the result is longer than `limit`.
pub fn decode_vec(container: Container, src: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<()> {
    let start = out.len();
    let room = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    let read = reader(container, src)?.take(room).read_to_end(out);
    let outcome = match read {
        Err(error) => Err(corrupt(CODEC, error.to_string())),
        Ok(read) if read > limit => Err(too_long(CODEC, limit)),
        Ok(_) => Ok(()),
    };
    outcome.inspect_err(|_| out.truncate(start))
}

/// Appends `src` as one `.xz` stream with a CRC-32 to `out`. Presets are 0 to 9.
///
/// # Errors
///
/// [`Invalid`](crate::CodecError::Invalid) for another preset.
pub fn encode(src: &[u8], preset: u32, out: &mut Vec<u8>) -> Result<()> {
    if preset > 9 {
        return Err(invalid(CODEC, format!("preset {preset}; there are 0 to 9")));
    }
    let mut options = XzOptions::with_preset(preset);
    options.set_check_sum_type(CheckType::Crc32);
    let failed = |error: std::io::Error| invalid(CODEC, error.to_string());
    let mut writer = XzWriter::new(out, options).map_err(failed)?;
    writer.write_all(src).map_err(failed)?;
    writer.finish().map_err(failed)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{data, noise, steps};

    #[test]
    fn streams_of_python_decode() {
        let raw = Container::Raw { dictionary: 1 << 20, delta: 4 };
        for (name, container) in [("xz", Container::Xz), ("alone", Container::Alone), ("raw", raw)] {
            let stored = data(&format!("steps.lzma.{name}"));
            let mut out = vec![0; 1200];
            decode(container, &stored, &mut out).unwrap();
            assert_eq!(out, steps(), "{name}");
            assert!(decode(container, &stored, &mut out[1..]).is_err());
            assert!(decode(container, &stored[..stored.len() / 2], &mut out).is_err(), "{name}");
            let mut grown = vec![1];
            decode_vec(container, &stored, 1200, &mut grown).unwrap();
            assert_eq!(grown[1..], steps());
            assert!(decode_vec(container, &stored, 1199, &mut grown).is_err());
            assert_eq!(grown.len(), 1201);
        }
    }

    #[test]
    fn xz_streams_round_trip() {
        for src in [Vec::new(), vec![3; 100_000], noise(10_000), steps()] {
            let (mut stored, mut out) = (Vec::new(), vec![0; src.len()]);
            encode(&src, 1, &mut stored).unwrap();
            decode(Container::Xz, &stored, &mut out).unwrap();
            assert!(out == src);
        }
        assert!(encode(&[], 10, &mut Vec::new()).is_err());
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(src: Vec<u8>, len in 0..512usize) {
            for container in [Container::Xz, Container::Alone, Container::Raw { dictionary: 4096, delta: 3 }] {
                let _ = decode(container, &src, &mut vec![0; len]);
                let _ = decode_vec(container, &src, len, &mut Vec::new());
            }
        }
    }
}
