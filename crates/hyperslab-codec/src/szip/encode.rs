//! Writes szip streams, choosing the shortest option for every block.

use super::{CODEC, MAX_PAIR, SEGMENT, Szip};
use crate::bits::BitWriter;
use crate::error::{Result, invalid};
use crate::shuffle;

impl Szip {
    /// Appends the chunk `src`, its size and its stream, to `out`.
    ///
    /// # Errors
    ///
    /// [`Invalid`](crate::CodecError::Invalid) if `src` is not whole pixels or longer than a 32-bit length, or if a pixel has
    /// more bits than the parameters allow.
    pub fn encode(&self, src: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let stated = u32::try_from(src.len()).map_err(|_| invalid(CODEC, "too many bytes"))?;
        let base = out.len();
        out.extend(stated.to_le_bytes());
        let done = match self.bits_per_pixel {
            bits @ (32 | 64) => {
                let mut planes = vec![0; src.len()];
                shuffle::encode(bits as usize / 8, src, &mut planes)?;
                self.encode_samples(8, 1, &planes, out)
            }
            bits @ 17.. => self.encode_samples(bits, 4, src, out),
            bits @ 9.. => self.encode_samples(bits, 2, src, out),
            bits => self.encode_samples(bits, 1, src, out),
        };
        done.inspect_err(|_| out.truncate(base))
    }

    fn encode_samples(&self, bits: u32, bytes: usize, src: &[u8], out: &mut Vec<u8>) -> Result<()> {
        if !src.len().is_multiple_of(bytes) {
            return Err(invalid(CODEC, format!("{} bytes of samples of {bytes} bytes", src.len())));
        }
        let block = self.pixels_per_block;
        let whole = self.pixels_per_scanline.next_multiple_of(block);
        let most = (u64::MAX >> (64 - bits)) as u32;
        let mut coder = Coder {
            bits,
            id_len: super::id_len(bits),
            writer: BitWriter::new(out),
            block,
            zeros: Zeros::default(),
        };
        let mut samples = Vec::with_capacity(whole);
        for line in src.chunks(self.pixels_per_scanline * bytes) {
            samples.clear();
            for from in line.chunks_exact(bytes) {
                let fold = |value: u32, byte: &u8| value << 8 | u32::from(*byte);
                let sample =
                    if self.big_endian { from.iter().fold(0, fold) } else { from.iter().rev().fold(0, fold) };
                if sample > most {
                    return Err(invalid(CODEC, format!("{sample:#x} has more than {bits} bits")));
                }
                samples.push(sample);
            }
            // Pad with the last sample, which costs nothing if predicted.
            let pad = if self.predict { samples.last().copied().unwrap_or(0) } else { 0 };
            samples.resize(whole, pad);
            if self.predict {
                fold(&mut samples, most);
            }
            coder.line(&samples, self.predict);
        }
        coder.writer.finish();
        Ok(())
    }
}

/// Every sample but the first becomes its folded distance from the one before.
fn fold(samples: &mut [u32], most: u32) {
    let Some((first, rest)) = samples.split_first_mut() else { return };
    let mut last = *first;
    for sample in rest {
        let near = last.min(most - last);
        let distance = sample.abs_diff(last);
        let folded = match (distance > near, *sample >= last) {
            (true, _) => near + distance,
            (false, true) => 2 * distance,
            (false, false) => 2 * distance - 1,
        };
        last = std::mem::replace(sample, folded);
    }
}

/// The pending run of zero blocks.
#[derive(Default)]
struct Zeros {
    count: u32,
    /// The reference sample at the start of the run, if the run starts the scanline.
    reference: Option<u32>,
}

struct Coder<'a> {
    bits: u32,
    id_len: u32,
    writer: BitWriter<'a>,
    block: usize,
    zeros: Zeros,
}

/// The encoding of a block.
#[derive(Clone, Copy)]
enum Choice {
    Whole,
    Split(u32),
    Pairs,
}

impl Coder<'_> {
    fn unary(&mut self, mut zeros: u32) {
        while zeros >= 32 {
            self.writer.put(0, 32);
            zeros -= 32;
        }
        self.writer.put(1, zeros + 1);
    }

    fn line(&mut self, samples: &[u32], predict: bool) {
        let blocks = samples.len() / self.block;
        for (i, samples) in samples.chunks_exact(self.block).enumerate() {
            let reference = (predict && i == 0).then(|| samples[0]);
            let values = if reference.is_some() { &samples[1..] } else { samples };
            if values.iter().all(|&value| value == 0) {
                if self.zeros.count == 0 {
                    self.zeros.reference = reference;
                }
                self.zeros.count += 1;
                if i + 1 == blocks || (i + 1).is_multiple_of(SEGMENT) {
                    self.flush_zeros(true);
                }
                continue;
            }
            self.flush_zeros(false);
            self.values(reference, values);
        }
    }

    /// Writes the run of zero blocks. `to_end` is set if it reaches the end of a segment or scanline.
    fn flush_zeros(&mut self, to_end: bool) {
        let Zeros { count, reference } = std::mem::take(&mut self.zeros);
        if count == 0 {
            return;
        }
        self.writer.put(0, self.id_len + 1);
        if let Some(reference) = reference {
            self.writer.put(reference.into(), self.bits);
        }
        self.unary(match count {
            1..5 => count - 1,
            _ if to_end => 4,
            _ => count,
        });
    }

    /// The best option for a block of `values`, and its number of bits.
    fn choose(&self, reference: bool, values: &[u32]) -> Choice {
        let n = values.len() as u64;
        let mut best = (self.block as u64 * u64::from(self.bits), Choice::Whole);
        // The identifiers of all ones and of zero are reserved.
        let most = ((1 << self.id_len) - 3).min(self.bits);
        for k in 0..=most {
            let high: u64 = values.iter().map(|&value| u64::from(value) >> k).sum();
            let len = high + n + n * u64::from(k) + if reference { u64::from(self.bits) } else { 0 };
            if len < best.0 {
                best = (len, Choice::Split(k));
            } else if high == 0 {
                break;
            }
        }
        let mut pairs = 1 + if reference { u64::from(self.bits) } else { 0 };
        for (first, second) in pairs_of(reference, values) {
            match pair_code(first, second) {
                Some(code) => pairs += u64::from(code) + 1,
                None => return best.1,
            }
        }
        if pairs < best.0 { Choice::Pairs } else { best.1 }
    }

    fn values(&mut self, reference: Option<u32>, values: &[u32]) {
        let choice = self.choose(reference.is_some(), values);
        match choice {
            Choice::Whole => self.writer.put((1 << self.id_len) - 1, self.id_len),
            Choice::Split(k) => self.writer.put((k + 1).into(), self.id_len),
            Choice::Pairs => self.writer.put(1, self.id_len + 1),
        }
        if let Some(reference) = reference {
            self.writer.put(reference.into(), self.bits);
        }
        match choice {
            Choice::Whole => {
                for &value in values {
                    self.writer.put(value.into(), self.bits);
                }
            }
            Choice::Split(k) => {
                for &value in values {
                    self.unary(value >> k);
                }
                for &value in values {
                    self.writer.put(value.into(), k);
                }
            }
            Choice::Pairs => {
                for (first, second) in pairs_of(reference.is_some(), values) {
                    self.unary(pair_code(first, second).unwrap_or(0));
                }
            }
        }
    }
}

/// The values in pairs. A reference sample replaces the first value.
fn pairs_of(reference: bool, values: &[u32]) -> impl Iterator<Item = (u32, u32)> + '_ {
    let (lone, even) = values.split_at(usize::from(reference).min(values.len()));
    let even = even.as_chunks::<2>().0.iter().map(|&[first, second]| (first, second));
    lone.iter().map(|&second| (0, second)).chain(even)
}

/// The code of a pair; `None` if there is none.
fn pair_code(first: u32, second: u32) -> Option<u32> {
    let sum = first.checked_add(second).filter(|&sum| sum <= 12)?;
    Some(sum * (sum + 1) / 2 + second).filter(|&code| code <= MAX_PAIR)
}
