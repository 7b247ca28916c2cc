//! WebP images: rows of pixels of three or four bytes. Lossless ones are read and written, lossy ones are read.

use std::io::Cursor;

use image_webp::{ColorType, DecodingError, WebPDecoder, WebPEncoder};

use crate::error::{Result, corrupt, invalid, size, unsupported};

const CODEC: &str = "webp";

/// The order of the bytes of a pixel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub enum Pixels {
    Rgb,
    Bgr,
    Rgba,
    Bgra,
}

impl Pixels {
    /// Bytes of a pixel.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Self::Rgb | Self::Bgr => 3,
            Self::Rgba | Self::Bgra => 4,
        }
    }

    const fn is_reversed(self) -> bool {
        matches!(self, Self::Bgr | Self::Bgra)
    }
}

/// Decodes an image of `width` by `height` pixels into `out`, which it must fill.
///
/// # Errors
///
/// [`Corrupt`](crate::CodecError::Corrupt) if `src` is damaged, [`Size`](crate::CodecError::Size) if the image has another
/// size, [`Unsupported`](crate::CodecError::Unsupported) for animations.
pub fn decode(pixels: Pixels, width: usize, height: usize, src: &[u8], out: &mut [u8]) -> Result<()> {
    let expected = width.checked_mul(height).and_then(|count| count.checked_mul(pixels.size()));
    if expected != Some(out.len()) {
        return Err(invalid(CODEC, format!("{width} by {height} pixels are not {} bytes", out.len())));
    }
    let mut decoder = WebPDecoder::new(Cursor::new(src)).map_err(failed)?;
    if decoder.is_animated() {
        return Err(unsupported(CODEC, "an animation"));
    }
    let (found_width, found_height) = decoder.dimensions();
    if (found_width as usize, found_height as usize) != (width, height) {
        let found = (found_width as usize).saturating_mul(found_height as usize);
        return Err(size(CODEC, out.len(), found.saturating_mul(pixels.size())));
    }
    let found = if decoder.has_alpha() { 4 } else { 3 };
    if found == pixels.size() {
        decoder.read_image(out).map_err(failed)?;
        if pixels.is_reversed() {
            out.chunks_exact_mut(found).for_each(|pixel| pixel.swap(0, 2));
        }
        return Ok(());
    }
    let mut image = vec![0; width * height * found];
    decoder.read_image(&mut image).map_err(failed)?;
    for (from, to) in image.chunks_exact(found).zip(out.chunks_exact_mut(pixels.size())) {
        to[..3].copy_from_slice(&from[..3]);
        if pixels.is_reversed() {
            to.swap(0, 2);
        }
        // An image without transparency is opaque.
        to[3..].fill(u8::MAX);
    }
    Ok(())
}

/// Appends `src`, an image of `width` by `height` pixels, to `out`, in lossless form.
///
/// # Errors
///
/// [`Invalid`](crate::CodecError::Invalid) if `src` has another size, or if the image is empty or has more than 16,383 pixels along a
/// side.
pub fn encode(pixels: Pixels, width: usize, height: usize, src: &[u8], out: &mut Vec<u8>) -> Result<()> {
    const MOST: usize = 16_383;
    if width.checked_mul(height).and_then(|count| count.checked_mul(pixels.size())) != Some(src.len()) {
        return Err(invalid(CODEC, format!("{width} by {height} pixels are not {} bytes", src.len())));
    }
    if !(1..=MOST).contains(&width) || !(1..=MOST).contains(&height) {
        return Err(invalid(CODEC, format!("{width} by {height} pixels; from 1 to {MOST} are possible")));
    }
    let mut image = src.to_vec();
    if pixels.is_reversed() {
        image.chunks_exact_mut(pixels.size()).for_each(|pixel| pixel.swap(0, 2));
    }
    let color = if pixels.size() == 3 { ColorType::Rgb8 } else { ColorType::Rgba8 };
    WebPEncoder::new(out)
        .encode(&image, width as u32, height as u32, color)
        .map_err(|error| invalid(CODEC, error.to_string()))
}

fn failed(error: DecodingError) -> crate::CodecError {
    corrupt(CODEC, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(pixels: Pixels, width: usize, height: usize) -> Vec<u8> {
        (0..width * height * pixels.size()).map(|at| (at * at / 7) as u8).collect()
    }

    #[test]
    fn images_round_trip_without_loss() {
        for pixels in [Pixels::Rgb, Pixels::Bgr, Pixels::Rgba, Pixels::Bgra] {
            for (width, height) in [(1, 1), (5, 3), (64, 17)] {
                let image = image(pixels, width, height);
                let mut stored = Vec::new();
                encode(pixels, width, height, &image, &mut stored).unwrap();
                let mut out = vec![0; image.len()];
                decode(pixels, width, height, &stored, &mut out).unwrap();
                assert_eq!(out, image, "{pixels:?} {width} {height}");
            }
        }
    }

    #[test]
    fn images_of_another_size_and_damaged_ones_are_refused() {
        let image = image(Pixels::Rgb, 8, 8);
        let mut stored = Vec::new();
        encode(Pixels::Rgb, 8, 8, &image, &mut stored).unwrap();
        assert!(decode(Pixels::Rgb, 4, 16, &stored, &mut [0; 192]).is_err());
        assert!(decode(Pixels::Rgb, 8, 8, &stored, &mut [0; 100]).is_err());
        for end in 0..stored.len() - 1 {
            let _ = decode(Pixels::Rgb, 8, 8, &stored[..end], &mut [0; 192]);
        }
        assert!(decode(Pixels::Rgb, 8, 8, &stored[..stored.len() / 2], &mut [0; 192]).is_err());
        assert!(encode(Pixels::Rgba, 0, 4, &[], &mut Vec::new()).is_err());
        assert!(encode(Pixels::Rgb, 20_000, 1, &[0; 60_000], &mut Vec::new()).is_err());
    }
}
