//! Zstandard (RFC 8878), using the C library with per-thread contexts.
//!
//! A stored chunk is one or more frames. Readers must accept the following, and this one does:
//!
//! - several frames one after another, which decode to their concatenation;
//! - skippable frames anywhere, which decode to nothing;
//! - frames whose header does not state the content size (every frame of a streaming writer);
//! - frames with a content checksum, which is checked.
//!
//! Other bytes after the last frame are an error, as is output of another size than requested.
//! The content size and window size stated by a frame never determine an allocation: output is written
//! directly to the caller's buffer, which also serves as the window. [`Stream`] keeps a window of its own.

mod stream;

use std::cell::RefCell;

use zstd_safe::{CCtx, CParameter, DCtx, InBuffer, OutBuffer, ResetDirective};

pub use stream::Stream;

use crate::bytes::decode_growing;
use crate::error::{Result, corrupt, invalid, size, too_long};

const CODEC: &str = "zstd";

/// `ZSTD_error_dstSize_tooSmall`; a failing call returns it negated.
const DST_TOO_SMALL: usize = 70;

thread_local! {
    static DECODER: RefCell<Option<DCtx<'static>>> = const { RefCell::new(None) };
    static ENCODER: RefCell<Option<CCtx<'static>>> = const { RefCell::new(None) };
}

/// Runs `work` with this thread's context.
fn with_decoder<T>(work: impl FnOnce(&mut DCtx<'static>) -> Result<T>) -> Result<T> {
    DECODER.with_borrow_mut(|slot| {
        work(match slot {
            Some(context) => context,
            None => slot.insert(DCtx::try_create().ok_or_else(|| invalid(CODEC, "no memory for a context"))?),
        })
    })
}

/// Decodes all frames of `src` into the front of `out`; `None` if they do not fit.
fn decode_some(src: &[u8], out: &mut [u8]) -> Result<Option<usize>> {
    if src.is_empty() {
        return Err(corrupt(CODEC, "no frame"));
    }
    with_decoder(|context| match context.decompress(out, src) {
        Ok(n) => Ok(Some(n)),
        Err(code) => {
            let _ = context.reset(ResetDirective::SessionOnly);
            if code.wrapping_neg() == DST_TOO_SMALL {
                Ok(None)
            } else {
                Err(corrupt(CODEC, zstd_safe::get_error_name(code)))
            }
        }
    })
}

/// Decodes all frames of `src` into `out`, which they must fill.
///
/// # Errors
///
/// [`Corrupt`](crate::CodecError::Corrupt) if `src` is not a sequence of frames, [`Size`](crate::CodecError::Size) if it decodes to
/// any other size.
pub fn decode(src: &[u8], out: &mut [u8]) -> Result<()> {
    match decode_some(src, out)? {
        Some(n) if n == out.len() => Ok(()),
        Some(n) => Err(size(CODEC, out.len(), n)),
        None => Err(too_long(CODEC, out.len())),
    }
}

/// Decodes the start of `src`, as many bytes as `out` has, and ignores the rest, including its checksum. Returns `false` if
/// that is impossible or needs much memory: use [`decode`] then. `src` must begin
/// with a frame whose stated content size is `total` bytes, at most 16 MiB.
pub fn decode_front(src: &[u8], total: usize, out: &mut [u8]) -> bool {
    let known = matches!(zstd_safe::get_frame_content_size(src), Ok(Some(size)) if size == total as u64);
    if !known || total > FRONT_OF || out.len() > total {
        return false;
    }
    let decoded = with_decoder(|context| {
        let decoded = front(context, src, out);
        // The rest of the frame is discarded.
        let _ = context.reset(ResetDirective::SessionOnly);
        Ok(decoded)
    });
    decoded.is_ok_and(|decoded| decoded)
}

/// The front of larger contents is not decoded separately, because contexts would keep their windows.
const FRONT_OF: usize = 16 << 20;

fn front(context: &mut DCtx<'_>, src: &[u8], out: &mut [u8]) -> bool {
    let mut input = InBuffer::around(src);
    let length = out.len();
    let mut output = OutBuffer::around(out);
    while output.pos() < length {
        let before = (input.pos(), output.pos());
        let left = context.decompress_stream(&mut output, &mut input);
        let stuck = before == (input.pos(), output.pos());
        if output.pos() < length && (stuck || !matches!(left, Ok(1..))) {
            return false;
        }
    }
    true
}

/// Decodes all frames of `src` and appends the result, at most `limit` bytes, to `out`.
///
/// # Errors
///
/// As [`decode`]; [`Size`](crate::CodecError::Size) if the result is longer than `limit`. `out` is then unchanged.
pub fn decode_vec(src: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<()> {
    let guess = match zstd_safe::get_frame_content_size(src) {
        Ok(Some(n)) => usize::try_from(n).unwrap_or(usize::MAX).min(src.len().saturating_mul(256)),
        _ => src.len().saturating_mul(4),
    };
    decode_growing(CODEC, guess, limit, out, |room| decode_some(src, room))
}

/// Options for compression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// The library's level: 1 to 22, negative for faster ones, 0 for its default (3). Others are clamped.
    pub level: i32,
    /// Whether a checksum of the content ends the frame.
    pub checksum: bool,
}

impl Options {
    /// A level, and no checksum.
    #[must_use]
    pub const fn level(level: i32) -> Self {
        Self { level, checksum: false }
    }

    /// Sets whether to add a content checksum.
    #[must_use]
    pub const fn with_checksum(self, checksum: bool) -> Self {
        Self { checksum, ..self }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::level(zstd_safe::CLEVEL_DEFAULT)
    }
}

/// Levels up to this one favour speed.
const FAST_LEVELS: i32 = 4;
/// The library (1.5.7) looks for a better place to end a block only where blocks may be 128 KiB long. At level 3 that took 1.6
/// times as long, for 0.5 % fewer bytes of a float32 field.
const FAST_BLOCK: u32 = 127 << 10;

/// The maximum block length at a level; 0 to let the library choose.
const fn longest_block(level: i32) -> u32 {
    if level <= FAST_LEVELS { FAST_BLOCK } else { 0 }
}

/// Appends `src` to `out` as one frame that states its content size.
///
/// # Errors
///
/// [`Invalid`](crate::CodecError::Invalid) if the library fails, which happens only when it is out of memory.
pub fn encode(src: &[u8], options: Options, out: &mut Vec<u8>) -> Result<()> {
    let base = out.len();
    out.reserve(zstd_safe::compress_bound(src.len()));
    let refused = |code| invalid(CODEC, zstd_safe::get_error_name(code));
    let done = ENCODER.with_borrow_mut(|slot| {
        let context = match slot {
            Some(context) => context,
            None => slot.insert(CCtx::try_create().ok_or_else(|| invalid(CODEC, "no memory for a context"))?),
        };
        context.set_parameter(CParameter::CompressionLevel(options.level)).map_err(refused)?;
        context.set_parameter(CParameter::ChecksumFlag(options.checksum)).map_err(refused)?;
        context.set_parameter(CParameter::MaxBlockSize(longest_block(options.level))).map_err(refused)?;
        let mut target = std::io::Cursor::new(&mut *out);
        target.set_position(base as u64);
        context.compress2(&mut target, src).map_err(|code| {
            let _ = context.reset(ResetDirective::SessionAndParameters);
            refused(code)
        })
    });
    if let Err(error) = done {
        out.truncate(base);
        return Err(error);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
