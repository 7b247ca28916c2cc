//! Decodes frames piece by piece, only as far as needed.

use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer};

use super::CODEC;
use crate::error::{Result, corrupt, invalid};

/// The base-2 logarithm of the largest window that is kept in memory: 8 MiB, as RFC 8878 recommends to support.
const WINDOW_LOG: u32 = 23;

/// Decodes frames from the front, in pieces.
///
/// Unlike [`decode`](super::decode) this keeps a window of decoded data, of the size stated by a frame. Frames
/// with a window of more than 8 MiB are refused.
pub struct Stream<S> {
    context: DCtx<'static>,
    src: S,
    at: usize,
    /// Whether a frame has begun but not ended.
    inside: bool,
}

impl<S> std::fmt::Debug for Stream<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream").field("at", &self.at).field("inside", &self.inside).finish_non_exhaustive()
    }
}

impl<S: AsRef<[u8]>> Stream<S> {
    /// A stream over the frames of `src`.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](crate::CodecError::Corrupt) if there is no frame, [`Invalid`](crate::CodecError::Invalid) if there is no
    /// memory for a context.
    pub fn new(src: S) -> Result<Self> {
        if src.as_ref().is_empty() {
            return Err(corrupt(CODEC, "no frame"));
        }
        let mut context = DCtx::try_create().ok_or_else(|| invalid(CODEC, "no memory for a context"))?;
        context
            .set_parameter(DParameter::WindowLogMax(WINDOW_LOG))
            .map_err(|code| invalid(CODEC, zstd_safe::get_error_name(code)))?;
        Ok(Self { context, src, at: 0, inside: false })
    }

    /// Fills `out` with the next bytes. Returns their number, which is less than the length of `out` only at the end.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](crate::CodecError::Corrupt) if the frames are damaged, or a window is too large. Nothing more
    /// can be read after that.
    pub fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        let src = self.src.as_ref();
        let mut filled = 0;
        while filled < out.len() && (self.inside || self.at < src.len()) {
            let mut input = InBuffer::around(&src[self.at..]);
            let mut output = OutBuffer::around(&mut out[filled..]);
            let left = self.context.decompress_stream(&mut output, &mut input);
            let (read, written) = (input.pos(), output.pos());
            let left = left.map_err(|code| corrupt(CODEC, zstd_safe::get_error_name(code)))?;
            self.inside = left != 0;
            if self.inside && read == 0 && written == 0 {
                return Err(corrupt(CODEC, format!("ends early, after {} bytes", src.len())));
            }
            self.at += read;
            filled += written;
        }
        Ok(filled)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Options, encode};
    use super::*;

    fn frames() -> (Vec<u8>, Vec<u8>) {
        let plain: Vec<u8> = (0..700_000_u32).flat_map(|i| (i / 7 * 31).to_le_bytes()).collect();
        let mut stored = Vec::new();
        // Two frames, the second with a checksum, and a skippable one between them.
        encode(&plain[..1_000_001], Options::level(3), &mut stored).unwrap();
        stored.extend([0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3]);
        encode(&plain[1_000_001..], Options::level(1).with_checksum(true), &mut stored).unwrap();
        (plain, stored)
    }

    #[test]
    fn pieces_of_any_size_make_up_the_content() {
        let (plain, stored) = frames();
        for size in [1000, 128 << 10, plain.len(), plain.len() + 1] {
            let mut stream = Stream::new(&stored).unwrap();
            let (mut all, mut piece) = (Vec::new(), vec![0; size]);
            loop {
                let n = stream.read(&mut piece).unwrap();
                all.extend_from_slice(&piece[..n]);
                if n < size {
                    break;
                }
            }
            assert!(all == plain, "pieces of {size}");
            assert_eq!(stream.read(&mut piece).unwrap(), 0);
        }
    }

    #[test]
    fn incomplete_frames_are_refused() {
        let (_, mut stored) = frames();
        let all = |src: &[u8]| -> Result<()> {
            let mut stream = Stream::new(src)?;
            let mut piece = vec![0; 100_000];
            while stream.read(&mut piece)? == piece.len() {}
            Ok(())
        };
        assert!(all(&stored).is_ok());
        assert!(all(&[]).is_err() && all(b"no frame at all").is_err());
        assert!(all(&stored[..stored.len() - 1]).is_err() && all(&stored[..100]).is_err());
        let last = stored.len() - 1;
        stored[last] ^= 1;
        assert!(all(&stored).is_err(), "the checksum is checked");
    }
}
