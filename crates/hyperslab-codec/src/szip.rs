//! szip (HDF5 filter 4): the lossless coder of CCSDS 121.0-B, in the framing of libaec and the szip library.
//!
//! A chunk is its decoded size (u32, little-endian) and a stream of bits, highest first. Elements of 32 and 64 bits are first
//! byte-shuffled over the whole chunk and coded as samples of 8 bits; others are samples of their own size, in 1, 2 or 4 bytes.
//! Samples are cut into scanlines, each padded to whole blocks of `pixels_per_block`. With nearest-neighbour
//! prediction the first sample of a scanline is stored whole and every other one as its distance from the one
//! before, folded into a number that is not negative.
//!
//! A block begins with an identifier of 3, 4 or 5 bits (samples of up to 8, 16, 32 bits): all ones, the samples follow whole;
//! `k + 1`, the parts of all samples above their low `k` bits in unary, then the low bits; zero, one more bit, which selects
//! a run of zero blocks (its length in unary) from pairs of samples in unary ("second extension").

mod encode;

use crate::bits::BitReader;
use crate::error::{Result, corrupt, size as size_error, too_long, unsupported};
use crate::shuffle;

const CODEC: &str = "szip";
/// The maximum number of pixels per block in the szip library.
const MAX_BLOCK: u32 = 32;
/// The maximum number of pixels per scanline.
const MAX_SCANLINE: u32 = 4096;
/// The number of blocks per segment, at the end of which a run of zero blocks ends.
const SEGMENT: usize = 64;
/// The maximum unary number of a pair, for sums up to 12.
const MAX_PAIR: u32 = 90;

/// The filter's operation, from its parameters ("client data").
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Szip {
    predict: bool,
    big_endian: bool,
    pixels_per_block: usize,
    bits_per_pixel: u32,
    pixels_per_scanline: usize,
}

impl Szip {
    /// Parses the filter's parameters as they are in the pipeline message: option mask, pixels per block, bits per
    /// pixel, pixels per scanline.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](crate::CodecError::Corrupt) if they are invalid.
    pub fn parse(client: &[u32]) -> Result<Self> {
        let &[mask, block, bits, line] =
            client.first_chunk::<4>().ok_or_else(|| corrupt(CODEC, "fewer than 4 parameters"))?;
        if block == 0 || block > MAX_BLOCK || !block.is_multiple_of(2) {
            return Err(corrupt(CODEC, format!("{block} pixels per block")));
        }
        if line == 0 || line > MAX_SCANLINE {
            return Err(corrupt(CODEC, format!("{line} pixels per scanline")));
        }
        if !matches!(bits, 1..=24 | 32 | 64) {
            return Err(unsupported(CODEC, format!("{bits} bits per pixel")));
        }
        Ok(Self {
            predict: mask & 32 != 0,
            big_endian: mask & 16 != 0,
            pixels_per_block: block as usize,
            bits_per_pixel: bits,
            pixels_per_scanline: line as usize,
        })
    }

    /// Decodes the chunk `src` into `out`, which it must fill.
    ///
    /// # Errors
    ///
    /// [`Size`](crate::CodecError::Size) if the chunk states another size, [`Corrupt`](crate::CodecError::Corrupt) if
    /// it is damaged or truncated.
    pub fn decode(&self, src: &[u8], out: &mut [u8]) -> Result<()> {
        let (stated, stream) =
            src.split_first_chunk::<4>().ok_or_else(|| corrupt(CODEC, "ends early: no size"))?;
        let stated = u32::from_le_bytes(*stated) as usize;
        if stated != out.len() {
            return Err(size_error(CODEC, out.len(), stated));
        }
        match self.bits_per_pixel {
            bits @ (32 | 64) => {
                let mut planes = vec![0; out.len()];
                self.decode_samples(8, 1, stream, &mut planes)?;
                shuffle::decode(bits as usize / 8, &planes, out)
            }
            bits @ 17.. => self.decode_samples(bits, 4, stream, out),
            bits @ 9.. => self.decode_samples(bits, 2, stream, out),
            bits => self.decode_samples(bits, 1, stream, out),
        }
    }

    /// Decodes the chunk `src` and appends the result, at most `limit` bytes, to `out`.
    ///
    /// # Errors
    ///
    /// As [`decode`](Self::decode); [`Size`](crate::CodecError::Size) if the result is longer than `limit`. `out` is then
    /// unchanged.
    pub fn decode_vec(&self, src: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<()> {
        let stated = src.first_chunk::<4>().ok_or_else(|| corrupt(CODEC, "ends early: no size"))?;
        let len = u32::from_le_bytes(*stated) as usize;
        if len > limit {
            return Err(too_long(CODEC, limit));
        }
        let base = out.len();
        out.resize(base + len, 0);
        self.decode(src, &mut out[base..]).inspect_err(|_| out.truncate(base))
    }

    /// Decodes samples of `bits` bits, `bytes` bytes each, scanline by scanline.
    fn decode_samples(&self, bits: u32, bytes: usize, stream: &[u8], out: &mut [u8]) -> Result<()> {
        if !out.len().is_multiple_of(bytes) {
            return Err(corrupt(CODEC, format!("{} bytes of samples of {bytes} bytes", out.len())));
        }
        let mut reader = BitReader::new(CODEC, stream);
        let blocks = self.pixels_per_scanline.div_ceil(self.pixels_per_block);
        let mut line = Scanline {
            bits,
            id_len: id_len(bits),
            block: self.pixels_per_block,
            blocks,
            predict: self.predict,
            samples: Vec::with_capacity(blocks * self.pixels_per_block),
        };
        for out in out.chunks_mut(self.pixels_per_scanline * bytes) {
            line.decode(&mut reader, out.len() / bytes)?;
            let samples = line.samples.iter();
            match (bytes, self.big_endian) {
                (1, _) => samples.zip(out).for_each(|(s, to)| *to = *s as u8),
                (2, false) => {
                    samples.zip(out.as_chunks_mut().0).for_each(|(s, to)| *to = (*s as u16).to_le_bytes());
                }
                (2, true) => {
                    samples.zip(out.as_chunks_mut().0).for_each(|(s, to)| *to = (*s as u16).to_be_bytes());
                }
                (_, false) => samples.zip(out.as_chunks_mut().0).for_each(|(s, to)| *to = s.to_le_bytes()),
                (_, true) => samples.zip(out.as_chunks_mut().0).for_each(|(s, to)| *to = s.to_be_bytes()),
            }
        }
        Ok(())
    }
}

/// Bits of a block's identifier.
const fn id_len(bits: u32) -> u32 {
    match bits {
        17.. => 5,
        9.. => 4,
        _ => 3,
    }
}

/// Decodes one scanline after another.
struct Scanline {
    bits: u32,
    id_len: u32,
    /// Samples per block.
    block: usize,
    /// Blocks per scanline.
    blocks: usize,
    predict: bool,
    samples: Vec<u32>,
}

impl Scanline {
    /// Decodes whole blocks until there are `wanted` samples. For all scanlines but the last, that is all blocks.
    fn decode(&mut self, reader: &mut BitReader<'_>, wanted: usize) -> Result<()> {
        self.samples.clear();
        while self.samples.len() < wanted {
            self.block(reader)?;
        }
        if self.predict {
            self.unfold();
        }
        Ok(())
    }

    /// Decodes one block, or a run of zero blocks.
    fn block(&mut self, reader: &mut BitReader<'_>) -> Result<()> {
        let first = self.predict && self.samples.is_empty();
        let end = self.samples.len() + self.block;
        let most = u64::MAX >> (64 - self.bits);
        let id = reader.get(self.id_len)? as u32;
        if id == (1 << self.id_len) - 1 {
            while self.samples.len() < end {
                self.samples.push(reader.get(self.bits)? as u32);
            }
            return Ok(());
        }
        let pairs = id == 0 && reader.get(1)? == 1;
        if first {
            self.samples.push(reader.get(self.bits)? as u32);
        }
        if id > 0 {
            let k = id - 1;
            let start = self.samples.len();
            self.samples.resize(end, 0);
            let samples = &mut self.samples[start..];
            let mut all = 0;
            for sample in samples.iter_mut() {
                let high = u64::from(reader.get_unary()?) << k;
                all |= high;
                *sample = high as u32;
            }
            if all > most {
                self.samples.truncate(start);
                return Err(corrupt(CODEC, format!("a sample of more than {} bits", self.bits)));
            }
            if k > 0 {
                for sample in samples {
                    *sample |= reader.get(k)? as u32;
                }
            }
            return Ok(());
        }
        if pairs {
            let mut odd = first;
            while self.samples.len() < end {
                let code = reader.get_unary()?;
                if code > MAX_PAIR {
                    return Err(corrupt(CODEC, format!("a pair of code {code}")));
                }
                // Pairs with sum s have codes from s (s + 1) / 2 on, in the order of the second number.
                let sum = ((8 * code + 1).isqrt() - 1) / 2;
                let second = code - sum * (sum + 1) / 2;
                if !odd {
                    self.samples.push(sum - second);
                }
                odd = false;
                self.samples.push(second);
            }
            return Ok(());
        }
        // A run of zero blocks; the code 4 is a run up to the end of the segment or scanline.
        let at = (end - self.block) / self.block;
        let run = match reader.get_unary()? as usize {
            4 => (self.blocks - at).min(SEGMENT - at % SEGMENT),
            code @ 0..4 => code + 1,
            code => code,
        };
        if run > self.blocks - at {
            return Err(corrupt(CODEC, format!("{run} zero blocks at block {at} of {}", self.blocks)));
        }
        self.samples.resize((at + run) * self.block, 0);
        Ok(())
    }

    /// Undoes the prediction: from distances back to samples.
    fn unfold(&mut self) {
        let most = (u64::MAX >> (64 - self.bits)) as u32;
        let Some((first, rest)) = self.samples.split_first_mut() else { return };
        let mut last = (*first).min(most);
        for sample in rest {
            let distance = *sample;
            let near = last.min(most - last);
            last = if u64::from(distance) <= u64::from(near) * 2 {
                // Even differences are positive, odd ones negative. Avoid a branch, which would be unpredictable.
                last.wrapping_add((distance >> 1) ^ (distance & 1).wrapping_neg())
            } else if last <= most - last {
                distance.min(most)
            } else {
                most.saturating_sub(distance)
            };
            *sample = last;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{client, data};

    const CASES: [&str; 22] = [
        "szip.f8.ec.16",
        "szip.f8.nn.16",
        "szip.i2.ec.16",
        "szip.i2.nn.16",
        "szip.i4.ec.16",
        "szip.i4.nn.16",
        "szip.noise",
        "szip.odd",
        "szip.sparse.ec.16",
        "szip.sparse.nn.16",
        "szip.sparse2.ec.32",
        "szip.sparse2.ec.8",
        "szip.sparse2.nn.32",
        "szip.sparse2.nn.8",
        "szip.u1.ec.32",
        "szip.u1.ec.8",
        "szip.u1.nn.32",
        "szip.u1.nn.8",
        "szip.u2.12",
        "szip.u2be.ec.16",
        "szip.u2be.nn.16",
        "szip.u3.nn",
    ];

    #[test]
    fn chunks_of_libhdf5_decode() {
        for name in CASES {
            let filter = Szip::parse(&client(name)).unwrap();
            let (stored, want) = (data(&format!("{name}.stored")), data(&format!("{name}.raw")));
            let mut out = Vec::new();
            filter
                .decode_vec(&stored, want.len(), &mut out)
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            let first = out.iter().zip(&want).position(|(a, b)| a != b);
            assert!(out == want, "{name}: differs at byte {first:?}");
            assert!(filter.decode(&stored[..stored.len() / 2], &mut out).is_err());
            assert!(filter.decode(&stored, &mut out[1..]).is_err());
            assert!(filter.decode_vec(&stored, want.len() - 1, &mut out).is_err());
        }
    }

    #[test]
    fn encoding_is_as_short_as_that_of_libaec() {
        for name in CASES {
            let filter = Szip::parse(&client(name)).unwrap();
            let (stored, raw) = (data(&format!("{name}.stored")), data(&format!("{name}.raw")));
            let (mut back, mut out) = (Vec::new(), vec![0; raw.len()]);
            filter.encode(&raw, &mut back).unwrap();
            filter.decode(&back, &mut out).unwrap();
            assert!(out == raw, "{name}");
            assert!(back.len() <= stored.len(), "{name}: {} bytes, libaec {}", back.len(), stored.len());
        }
    }

    #[test]
    fn wrong_parameters_are_errors() {
        for client in [
            &[][..],
            &[4, 0, 8, 8],
            &[4, 34, 8, 8],
            &[4, 7, 8, 8],
            &[4, 8, 0, 8],
            &[4, 8, 25, 8],
            &[4, 8, 8, 0],
        ] {
            assert!(Szip::parse(client).is_err(), "{client:?}");
        }
    }

    proptest! {
        #[test]
        fn round_trip(
            src in prop::collection::vec(prop_oneof![4 => 0..3u8, 1 => any::<u8>()], 0..1200),
            predict: bool,
            block in 1..=16u32,
            bits in prop::sample::select(vec![8u32, 16, 32, 64]),
            line in 1..300u32,
        ) {
            let filter = Szip::parse(&[if predict { 32 } else { 4 }, block * 2, bits, line]).unwrap();
            let src = &src[..src.len() / 8 * 8];
            let (mut stored, mut out) = (Vec::new(), vec![0; src.len()]);
            filter.encode(src, &mut stored).unwrap();
            filter.decode(&stored, &mut out).unwrap();
            prop_assert_eq!(&out, src);
        }

        #[test]
        fn damage_never_panics(which in 0..22usize, at: prop::sample::Index, to: u8, cut: prop::sample::Index) {
            let filter = Szip::parse(&client(CASES[which])).unwrap();
            let mut stored = data(&format!("{}.stored", CASES[which]));
            let at = 4 + at.index(stored.len() - 4);
            stored[at] = to;
            let mut out = Vec::new();
            let _ = filter.decode_vec(&stored, 1 << 16, &mut out);
            stored.truncate(cut.index(stored.len()));
            let _ = filter.decode_vec(&stored, 1 << 16, &mut out);
        }

        #[test]
        fn arbitrary_bytes_never_panic(src: Vec<u8>, mask: u8, block in 0..40u32, bits in 0..70u32, line in 0..200u32, len: u8) {
            if let Ok(filter) = Szip::parse(&[mask.into(), block, bits, line]) {
                let stream = [&[len, 0, 0, 0][..], &src].concat();
                let _ = filter.decode(&stream, &mut vec![0; len.into()]);
            }
        }
    }
}
