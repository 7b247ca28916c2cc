//! Packs some bits of every number: the codec `packbits`, and numcodecs' filter of that name for booleans.

use super::{Outcome, corrupt, wrong_size};

/// Which bits of a number are packed, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PackBits {
    /// Bytes of a number.
    pub(crate) size: usize,
    /// The first bit, counted from the lowest.
    pub(crate) first: u32,
    /// The number of bits.
    pub(crate) bits: u32,
    /// Whether the bits above are copies of the last.
    pub(crate) signed: bool,
    pub(crate) padding: Padding,
    /// Whether the highest bit of a byte comes first.
    pub(crate) high_first: bool,
}

/// Where the number of padding bits is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Padding {
    Untold,
    First,
    Last,
}

const CODEC: &str = "packbits";

impl PackBits {
    /// numcodecs': one bit of each boolean, highest first, after a byte that counts the padding.
    pub(crate) const BOOLEANS: Self =
        Self { size: 1, first: 0, bits: 1, signed: false, padding: Padding::First, high_first: true };

    pub(crate) fn encoded_len(&self, decoded: usize) -> Option<usize> {
        let bits = (decoded / self.size).checked_mul(self.bits as usize)?;
        bits.div_ceil(8).checked_add(usize::from(self.padding != Padding::Untold))
    }

    /// The maximum decoded size of encoded bytes.
    pub(crate) fn decoded_len(&self, encoded: usize) -> usize {
        let bytes = encoded.saturating_sub(usize::from(self.padding != Padding::Untold));
        bytes.saturating_mul(8) / self.bits as usize * self.size
    }

    pub(crate) fn decode(&self, src: &[u8], out: &mut [u8]) -> Outcome<()> {
        if self.encoded_len(out.len()) != Some(src.len()) || !out.len().is_multiple_of(self.size) {
            return Err(wrong_size(CODEC, self.encoded_len(out.len()).unwrap_or(usize::MAX), src.len()));
        }
        let (reported, packed) = match self.padding {
            Padding::Untold => (None, src),
            Padding::First => (src.first(), &src[1..]),
            Padding::Last => (src.last(), &src[..src.len() - 1]),
        };
        let padding = packed.len() * 8 - out.len() / self.size * self.bits as usize;
        if let Some(reported) = reported
            && usize::from(*reported) != padding
        {
            return Err(corrupt(CODEC, format!("{reported} padding bits, expected {padding}")));
        }
        let mut at = 0;
        for number in out.chunks_exact_mut(self.size) {
            let mut value = 0_u64;
            for bit in 0..self.bits {
                let place = if self.high_first { 7 - at % 8 } else { at % 8 };
                value |= u64::from(packed[at / 8] >> place & 1) << bit;
                at += 1;
            }
            let unused = 64 - self.bits;
            let value = if self.signed { ((value << unused) as i64 >> unused) as u64 } else { value };
            let bytes = (value << self.first).to_le_bytes();
            number.copy_from_slice(&bytes[..self.size]);
            if cfg!(target_endian = "big") {
                number.reverse();
            }
        }
        Ok(())
    }

    pub(crate) fn encode(&self, src: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        let length = self.encoded_len(src.len()).unwrap_or(0);
        out.resize(start + length, 0);
        let bits = src.len() / self.size * self.bits as usize;
        let padding = (bits.next_multiple_of(8) - bits) as u8;
        let packed = match self.padding {
            Padding::Untold => &mut out[start..],
            Padding::First => {
                out[start] = padding;
                &mut out[start + 1..]
            }
            Padding::Last => {
                out[start + length - 1] = padding;
                &mut out[start..start + length - 1]
            }
        };
        let mut at = 0;
        for number in src.chunks_exact(self.size) {
            let mut wide = [0; 8];
            wide[..self.size].copy_from_slice(number);
            if cfg!(target_endian = "big") {
                wide[..self.size].reverse();
            }
            let value = u64::from_le_bytes(wide) >> self.first;
            for bit in 0..self.bits {
                let place = if self.high_first { 7 - at % 8 } else { at % 8 };
                packed[at / 8] |= ((value >> bit & 1) as u8) << place;
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_round_trip() {
        let four = PackBits {
            size: 1,
            first: 0,
            bits: 4,
            signed: true,
            padding: Padding::Untold,
            high_first: false,
        };
        let numbers = [1_i8, -1, 7, -8, 3].map(|number| number as u8);
        let mut packed = Vec::new();
        four.encode(&numbers, &mut packed);
        assert_eq!(packed, [0xf1, 0x87, 0x03]);
        let mut back = [0; 5];
        four.decode(&packed, &mut back).unwrap();
        assert_eq!(back, numbers);
        let reported = PackBits { padding: Padding::Last, ..four };
        packed.push(4);
        reported.decode(&packed, &mut back).unwrap();
        packed[3] = 5;
        assert!(
            reported.decode(&packed, &mut back).is_err() && reported.decode(&packed, &mut back[1..]).is_err()
        );
        let middle = PackBits { size: 2, first: 3, bits: 5, signed: false, ..reported };
        let (mut packed, mut back) = (Vec::new(), [0; 4]);
        middle.encode(&[0xff, 0xff, 0x08, 0], &mut packed);
        middle.decode(&packed, &mut back).unwrap();
        assert_eq!(back, [0xf8, 0, 0x08, 0]);
    }

    #[test]
    fn booleans_match_numcodecs() {
        let mut packed = Vec::new();
        PackBits::BOOLEANS.encode(&[1, 0, 1, 0, 0, 0, 0, 1, 1], &mut packed);
        assert_eq!(packed, [7, 0b1010_0001, 0b1000_0000]);
    }
}
