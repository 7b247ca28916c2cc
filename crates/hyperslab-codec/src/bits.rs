//! Bit streams, highest bit of a byte first.

use crate::error::{Result, corrupt};

/// Reads bits from the front of a slice.
#[derive(Debug)]
pub(crate) struct BitReader<'a> {
    codec: &'static str,
    rest: &'a [u8],
    /// Unread bits, in the high bits; the rest are zeros.
    held: u64,
    count: u32,
}

impl<'a> BitReader<'a> {
    pub(crate) const fn new(codec: &'static str, bytes: &'a [u8]) -> Self {
        Self { codec, rest: bytes, held: 0, count: 0 }
    }

    /// Refills the buffer to at least 57 bits, or to all that are left.
    fn refill(&mut self) {
        if let Some(bytes) = self.rest.first_chunk::<8>() {
            let taken = (64 - self.count) / 8;
            if taken > 0 {
                let whole = u64::from_be_bytes(*bytes);
                let wanted = whole & !(u64::MAX.checked_shr(taken * 8).unwrap_or(0));
                self.held |= wanted >> self.count;
                self.count += taken * 8;
                self.rest = &self.rest[taken as usize..];
            }
            return;
        }
        while self.count <= 56 {
            let Some((&byte, rest)) = self.rest.split_first() else { break };
            self.held |= u64::from(byte) << (56 - self.count);
            self.count += 8;
            self.rest = rest;
        }
    }

    #[cold]
    fn early<T>(&self) -> Result<T> {
        Err(corrupt(self.codec, "ends early"))
    }

    /// The next `n` bits as a number, at most 57.
    #[inline]
    pub(crate) fn get(&mut self, n: u32) -> Result<u64> {
        if n == 0 {
            return Ok(0);
        }
        if self.count < n {
            self.refill();
            if self.count < n {
                return self.early();
            }
        }
        let value = self.held >> (64 - n);
        self.held <<= n;
        self.count -= n;
        Ok(value)
    }

    /// The next `n` bits as a number, at most 128.
    pub(crate) fn get_wide(&mut self, n: u32) -> Result<u128> {
        let mut value = 0;
        let mut left = n;
        while left > 0 {
            let now = left.min(32);
            value = value << now | u128::from(self.get(now)?);
            left -= now;
        }
        Ok(value)
    }

    /// The number of zeros before the next one, which is consumed too.
    #[inline]
    pub(crate) fn get_unary(&mut self) -> Result<u32> {
        let mut zeros = 0;
        loop {
            let here = self.held.leading_zeros();
            if here < self.count {
                self.held = self.held << here << 1;
                self.count -= here + 1;
                return Ok(zeros + here);
            }
            zeros = match zeros.checked_add(self.count) {
                Some(zeros) => zeros,
                None => return self.early(),
            };
            self.held = 0;
            self.count = 0;
            self.refill();
            if self.count == 0 {
                return self.early();
            }
        }
    }
}

/// Appends bits to a vector.
#[derive(Debug)]
pub(crate) struct BitWriter<'a> {
    out: &'a mut Vec<u8>,
    /// Bits not yet written, in the low bits.
    held: u64,
    count: u32,
}

impl<'a> BitWriter<'a> {
    pub(crate) const fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out, held: 0, count: 0 }
    }

    /// Writes the low `n` bits of `value`, at most 56.
    #[inline]
    pub(crate) fn put(&mut self, value: u64, n: u32) {
        if n == 0 {
            return;
        }
        self.held = self.held << n | (value & (u64::MAX >> (64 - n)));
        self.count += n;
        while self.count >= 8 {
            self.count -= 8;
            self.out.push((self.held >> self.count) as u8);
        }
    }

    /// Writes the low `n` bits of `value`, at most 128.
    pub(crate) fn put_wide(&mut self, value: u128, n: u32) {
        let mut left = n;
        while left > 0 {
            let now = left.min(32);
            left -= now;
            self.put((value >> left) as u64, now);
        }
    }

    /// Writes the remaining bits, padded with zeros to a byte.
    pub(crate) fn finish(mut self) {
        if self.count > 0 {
            let pad = 8 - self.count;
            self.put(0, pad);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn written_bits_are_read_back(fields in prop::collection::vec((any::<u128>(), 0..=128u32), 0..50)) {
            let mut bytes = Vec::new();
            let mut writer = BitWriter::new(&mut bytes);
            for (value, n) in &fields {
                writer.put_wide(*value, *n);
            }
            writer.finish();
            let total: u32 = fields.iter().map(|(_, n)| n).sum();
            prop_assert_eq!(bytes.len(), total.div_ceil(8) as usize);
            let mut reader = BitReader::new("test", &bytes);
            for (value, n) in &fields {
                let mask = u128::MAX.checked_shr(128 - n).unwrap_or(0);
                prop_assert_eq!(reader.get_wide(*n).unwrap(), value & mask);
            }
            prop_assert!(reader.get(8).is_err());
        }

        #[test]
        fn unary_counts_zeros(counts in prop::collection::vec(0..300u32, 0..50)) {
            let mut bytes = Vec::new();
            let mut writer = BitWriter::new(&mut bytes);
            for n in &counts {
                for _ in 0..*n {
                    writer.put(0, 1);
                }
                writer.put(1, 1);
            }
            writer.finish();
            let mut reader = BitReader::new("test", &bytes);
            for n in counts {
                prop_assert_eq!(reader.get_unary().unwrap(), n);
            }
            prop_assert!(reader.get_unary().is_err());
        }
    }
}
