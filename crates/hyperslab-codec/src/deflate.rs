//! DEFLATE (RFC 1951), raw or wrapped as zlib (RFC 1950) or gzip (RFC 1952), using libdeflate with
//! per-thread contexts.
//!
//! HDF5 filter 1 and TileDB filter 1 ("gzip") store zlib streams. Zarr's `gzip` stores one or more concatenated
//! gzip members, possibly followed by zero bytes. The wrappers' checksums are verified.
//! Bytes after a zlib stream are ignored, as by the formats' own readers.

use std::cell::RefCell;

use libdeflater::{CompressionLvl, Compressor};

use crate::bytes::decode_growing;
use crate::error::{Result, corrupt, invalid, size, too_long};

/// The wrapper of the DEFLATE data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wrapper {
    /// None.
    Raw,
    /// Two bytes before, Adler-32 after.
    Zlib,
    /// A header of at least ten bytes before, CRC-32 and length after.
    Gzip,
}

impl Wrapper {
    const fn codec(self) -> &'static str {
        match self {
            Self::Raw => "deflate",
            Self::Zlib => "zlib",
            Self::Gzip => "gzip",
        }
    }
}

thread_local! {
    static DECODER: RefCell<Option<library::Decoder>> = const { RefCell::new(None) };
    static ENCODERS: RefCell<[Option<Compressor>; 13]> = const { RefCell::new([const { None }; 13]) };
}

/// The result of decoding one stream.
enum Outcome {
    /// The number of bytes consumed and written.
    Done { taken: usize, written: usize },
    /// The output is too small.
    NoRoom,
    /// The stream is damaged or truncated.
    Bad,
}

#[expect(unsafe_code, reason = "the safe binding does not return how many bytes a stream took")]
mod library {
    use std::ptr::NonNull;

    use libdeflate_sys as sys;

    use super::{Outcome, Wrapper};

    /// A decompressor of the C library, freed when dropped.
    #[derive(Debug)]
    pub(super) struct Decoder(NonNull<sys::libdeflate_decompressor>);

    impl Decoder {
        pub(super) fn new() -> Option<Self> {
            // SAFETY: the call has no preconditions; null means no memory.
            NonNull::new(unsafe { sys::libdeflate_alloc_decompressor() }).map(Self)
        }

        /// Decodes one stream from the front of `src` into the front of `out`.
        pub(super) fn one(&mut self, wrapper: Wrapper, src: &[u8], out: &mut [u8]) -> Outcome {
            let call = match wrapper {
                Wrapper::Raw => sys::libdeflate_deflate_decompress_ex,
                Wrapper::Zlib => sys::libdeflate_zlib_decompress_ex,
                Wrapper::Gzip => sys::libdeflate_gzip_decompress_ex,
            };
            let (mut taken, mut written) = (0, 0);
            // SAFETY: the decompressor is alive and only used here; both pointers are given with the lengths of
            // the slices that they come from, and the two counts outlive the call.
            let code = unsafe {
                call(
                    self.0.as_ptr(),
                    src.as_ptr().cast(),
                    src.len(),
                    out.as_mut_ptr().cast(),
                    out.len(),
                    &mut taken,
                    &mut written,
                )
            };
            match code {
                sys::libdeflate_result_LIBDEFLATE_SUCCESS => Outcome::Done { taken, written },
                sys::libdeflate_result_LIBDEFLATE_INSUFFICIENT_SPACE => Outcome::NoRoom,
                _ => Outcome::Bad,
            }
        }
    }

    impl Drop for Decoder {
        fn drop(&mut self) {
            // SAFETY: allocated by the library in `new`, and freed once.
            unsafe { sys::libdeflate_free_decompressor(self.0.as_ptr()) }
        }
    }
}

/// Decodes `src` into the front of `out`; `None` if it does not fit.
fn decode_some(wrapper: Wrapper, src: &[u8], out: &mut [u8]) -> Result<Option<usize>> {
    let codec = wrapper.codec();
    DECODER.with_borrow_mut(|slot| {
        let decoder = match slot {
            Some(decoder) => decoder,
            None => {
                slot.insert(library::Decoder::new().ok_or_else(|| invalid(codec, "no memory for a context"))?)
            }
        };
        let (mut at, mut filled) = (0, 0);
        loop {
            match decoder.one(wrapper, &src[at..], &mut out[filled..]) {
                Outcome::Done { taken, written } => {
                    at += taken;
                    filled += written;
                }
                Outcome::NoRoom => return Ok(None),
                Outcome::Bad => {
                    return Err(corrupt(codec, format!("the stream at byte {at} is damaged or cut off")));
                }
            }
            if wrapper != Wrapper::Gzip || src[at..].iter().all(|&b| b == 0) {
                return Ok(Some(filled));
            }
        }
    })
}

/// Decodes `src` into `out`, which it must fill.
///
/// # Errors
///
/// [`Corrupt`](crate::CodecError::Corrupt) if the stream is damaged or truncated,
/// [`Size`](crate::CodecError::Size) if it decodes to any other size.
pub fn decode(wrapper: Wrapper, src: &[u8], out: &mut [u8]) -> Result<()> {
    match decode_some(wrapper, src, out)? {
        Some(n) if n == out.len() => Ok(()),
        Some(n) => Err(size(wrapper.codec(), out.len(), n)),
        None => Err(too_long(wrapper.codec(), out.len())),
    }
}

/// Decodes `src` and appends the result, at most `limit` bytes, to `out`.
///
/// # Errors
///
/// As [`decode`]; [`Size`](crate::CodecError::Size) if the result is longer than `limit`. `out` is then unchanged.
pub fn decode_vec(wrapper: Wrapper, src: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<()> {
    let guess = src.len().saturating_mul(4);
    decode_growing(wrapper.codec(), guess, limit, out, |room| decode_some(wrapper, src, room))
}

/// Appends `src`, compressed, to `out`.
///
/// Levels are libdeflate's, 0 (stored) to 12, which roughly correspond to those of zlib. −1 is the default, 6.
///
/// # Errors
///
/// [`Invalid`](crate::CodecError::Invalid) if the level does not exist.
pub fn encode(wrapper: Wrapper, src: &[u8], level: i32, out: &mut Vec<u8>) -> Result<()> {
    let codec = wrapper.codec();
    let level = if level == -1 { 6 } else { level };
    let refused = || invalid(codec, format!("no level {level}"));
    let slot = usize::try_from(level).map_err(|_| refused())?;
    ENCODERS.with_borrow_mut(|slots| {
        let encoder = match slots.get_mut(slot).ok_or_else(refused)? {
            Some(encoder) => encoder,
            empty => empty.insert(Compressor::new(CompressionLvl::new(level).map_err(|_| refused())?)),
        };
        let base = out.len();
        let bound = match wrapper {
            Wrapper::Raw => encoder.deflate_compress_bound(src.len()),
            Wrapper::Zlib => encoder.zlib_compress_bound(src.len()),
            Wrapper::Gzip => encoder.gzip_compress_bound(src.len()),
        };
        out.resize(base + bound, 0);
        let room = &mut out[base..];
        let written = match wrapper {
            Wrapper::Raw => encoder.deflate_compress(src, room),
            Wrapper::Zlib => encoder.zlib_compress(src, room),
            Wrapper::Gzip => encoder.gzip_compress(src, room),
        };
        match written {
            Ok(n) => {
                out.truncate(base + n);
                Ok(())
            }
            Err(_) => {
                out.truncate(base);
                Err(invalid(codec, "the library's own bound was too small"))
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::CodecError;
    use crate::testing::{noise, steps};

    #[test]
    fn streams_of_the_reference_decode() {
        let gzip = include_bytes!("../tests/data/steps.gz").as_slice();
        let zlib = include_bytes!("../tests/data/steps.zlib").as_slice();
        let padded = [gzip, &[0; 5]].concat();
        for (wrapper, src) in [
            (Wrapper::Zlib, zlib),
            (Wrapper::Gzip, gzip),
            (Wrapper::Gzip, &padded),
            (Wrapper::Raw, &zlib[2..]),
        ] {
            let mut out = vec![0; 1200];
            decode(wrapper, src, &mut out).unwrap();
            assert_eq!(out, steps());
            let mut out = Vec::new();
            decode_vec(wrapper, src, 1200, &mut out).unwrap();
            assert_eq!(out, steps());
            for len in [0, 499, 1199, 1201] {
                let error = decode(wrapper, src, &mut vec![0; len]).unwrap_err();
                assert!(matches!(error, CodecError::Size { .. }), "{error}");
            }
            assert!(decode_vec(wrapper, src, 1199, &mut out).is_err());
            assert_eq!(out.len(), 1200);
        }
        let mut out = vec![0; 1200];
        for len in 0..zlib.len() {
            assert!(decode(Wrapper::Zlib, &zlib[..len], &mut out).is_err());
        }
        assert!(decode(Wrapper::Gzip, &[gzip, b"x"].concat(), &mut out).is_err());
    }

    #[test]
    fn wrong_checksums_are_errors() {
        let mut zlib = include_bytes!("../tests/data/steps.zlib").to_vec();
        let last = zlib.len() - 1;
        zlib[last] ^= 1;
        assert!(decode(Wrapper::Zlib, &zlib, &mut vec![0; 1200]).is_err());
    }

    #[test]
    fn levels_are_checked() {
        for level in [-2, 13, i32::MIN, i32::MAX] {
            assert!(encode(Wrapper::Zlib, b"x", level, &mut Vec::new()).is_err());
        }
        for level in -1..=12 {
            let (src, mut stored) = (noise(1000), vec![1]);
            encode(Wrapper::Zlib, &src, level, &mut stored).unwrap();
            let mut out = vec![0; 1000];
            decode(Wrapper::Zlib, &stored[1..], &mut out).unwrap();
            assert_eq!(out, src);
        }
    }

    fn wrappers() -> impl Strategy<Value = Wrapper> {
        prop_oneof![Just(Wrapper::Raw), Just(Wrapper::Zlib), Just(Wrapper::Gzip)]
    }

    proptest! {
        #[test]
        fn round_trip(data: Vec<u8>, level in 0..=9i32, wrapper in wrappers()) {
            let mut stored = Vec::new();
            encode(wrapper, &data, level, &mut stored).unwrap();
            let mut out = vec![0; data.len()];
            decode(wrapper, &stored, &mut out).unwrap();
            prop_assert_eq!(&out, &data);
        }

        #[test]
        fn arbitrary_bytes_never_panic(data: Vec<u8>, len in 0..512usize, wrapper in wrappers()) {
            let _ = decode(wrapper, &data, &mut vec![0; len]);
            let mut out = Vec::new();
            let _ = decode_vec(wrapper, &data, len, &mut out);
            prop_assert!(out.capacity() <= len.max(64));
        }
    }
}
