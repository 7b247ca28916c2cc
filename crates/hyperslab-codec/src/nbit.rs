//! HDF5's n-bit filter (5): only the significant bits of every number, packed.
//!
//! The filter's parameters describe the element. An atomic number has a size, a byte order, a precision and an offset; the
//! `precision` bits above the lowest `offset` bits are stored, highest first. Arrays are stored as their elements, compounds
//! as their members in order, and anything else as whole bytes. Nothing is aligned. Bits that are not stored, and bytes
//! between members, decode to zero; the type conversion extends the sign.
//!
//! libhdf5 has a quirk on which its files depend: after an array of arrays or of compounds, it continues with the
//! parameters of the *inner* type, not with those after it. The following members of a compound then differ from those of
//! the type, and the last ones are not stored at all. [`NBit`] does the same, because such chunks cannot be decoded otherwise.

use crate::bits::{BitReader, BitWriter};
use crate::error::{Result, corrupt, invalid, size as size_error, unsupported};

const CODEC: &str = "nbit";
/// The maximum nesting depth of types.
const MAX_DEPTH: u32 = 32;
/// The maximum number of types in a description, including inner ones.
const MAX_KINDS: u32 = 1 << 16;

/// How the filter treats an element, from its parameters ("client data").
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NBit {
    /// No bits can be saved: the chunk is stored unchanged.
    plain: bool,
    elements: usize,
    kind: NbitType,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum NbitType {
    Atomic { size: usize, big_endian: bool, precision: u32, offset: u32 },
    Array { size: usize, base: Box<NbitType> },
    Compound { size: usize, members: Vec<(usize, NbitType)> },
    Whole { size: usize },
}

/// Takes parameters one by one.
struct Parameters<'a> {
    rest: std::slice::Iter<'a, u32>,
    kinds: u32,
}

impl Parameters<'_> {
    fn next(&mut self) -> Result<u32> {
        self.rest.next().copied().ok_or_else(|| corrupt(CODEC, "too few parameters"))
    }

    fn size(&mut self) -> Result<usize> {
        match self.next()? {
            0 => Err(corrupt(CODEC, "a type of size 0")),
            size => Ok(size as usize),
        }
    }

    fn kind(&mut self, depth: u32) -> Result<NbitType> {
        if depth > MAX_DEPTH {
            return Err(unsupported(CODEC, format!("types nested more than {MAX_DEPTH} deep")));
        }
        self.kinds += 1;
        if self.kinds > MAX_KINDS {
            return Err(unsupported(CODEC, format!("more than {MAX_KINDS} types in one")));
        }
        match self.next()? {
            1 => {
                let (size, order) = (self.size()?, self.next()?);
                let (precision, offset) = (self.next()?, self.next()?);
                if size > 16 {
                    return Err(unsupported(CODEC, format!("a number of {size} bytes")));
                }
                if order > 1 {
                    return Err(corrupt(CODEC, format!("byte order {order}")));
                }
                let top = precision.checked_add(offset);
                if precision == 0 || top.is_none_or(|top| top > size as u32 * 8) {
                    return Err(corrupt(
                        CODEC,
                        format!("precision {precision} and offset {offset} in {size} bytes"),
                    ));
                }
                Ok(NbitType::Atomic { size, big_endian: order == 1, precision, offset })
            }
            2 => {
                let size = self.size()?;
                let mut inner = self.rest.clone();
                let base = Box::new(self.kind(depth + 1)?);
                if matches!(*base, NbitType::Array { .. } | NbitType::Compound { .. }) {
                    // The quirk: continue after the class of the inner type.
                    inner.next();
                    self.rest = inner;
                }
                // A type stored as whole bytes has its own size, which libhdf5 ignores here.
                if matches!(*base, NbitType::Whole { .. }) {
                    return Ok(NbitType::Whole { size });
                }
                if !size.is_multiple_of(base.size()) {
                    return Err(corrupt(CODEC, format!("an array of {size} bytes of {}", base.size())));
                }
                Ok(NbitType::Array { size, base })
            }
            3 => {
                let (size, count) = (self.size()?, self.next()?);
                let mut members = Vec::new();
                for _ in 0..count {
                    let offset = self.next()? as usize;
                    let kind = self.kind(depth + 1)?;
                    if offset.checked_add(kind.size()).is_none_or(|end| end > size) {
                        return Err(corrupt(CODEC, format!("a member at {offset} outside of {size} bytes")));
                    }
                    members.push((offset, kind));
                }
                Ok(NbitType::Compound { size, members })
            }
            4 => Ok(NbitType::Whole { size: self.size()? }),
            class => Err(corrupt(CODEC, format!("class {class}"))),
        }
    }
}

impl NbitType {
    const fn size(&self) -> usize {
        match self {
            Self::Atomic { size, .. }
            | Self::Array { size, .. }
            | Self::Compound { size, .. }
            | Self::Whole { size } => *size,
        }
    }

    /// Stored bits of one element.
    fn bits(&self) -> u64 {
        match self {
            Self::Atomic { precision, .. } => u64::from(*precision),
            Self::Array { size, base } => base.bits() * (size / base.size()) as u64,
            Self::Compound { members, .. } => members.iter().map(|(_, kind)| kind.bits()).sum(),
            Self::Whole { size } => *size as u64 * 8,
        }
    }

    /// Decodes one element into zeroed bytes.
    fn decode(&self, bits: &mut BitReader<'_>, out: &mut [u8]) -> Result<()> {
        match self {
            Self::Atomic { size, big_endian, precision, offset } => {
                if *size <= 8 && *precision <= 57 {
                    let value = bits.get(*precision)? << offset;
                    if *big_endian {
                        out.copy_from_slice(&value.to_be_bytes()[8 - size..]);
                    } else {
                        out.copy_from_slice(&value.to_le_bytes()[..*size]);
                    }
                    return Ok(());
                }
                let value = bits.get_wide(*precision)? << offset;
                if *big_endian {
                    out.copy_from_slice(&value.to_be_bytes()[16 - size..]);
                } else {
                    out.copy_from_slice(&value.to_le_bytes()[..*size]);
                }
            }
            Self::Array { base, .. } => {
                for element in out.chunks_exact_mut(base.size()) {
                    base.decode(bits, element)?;
                }
            }
            Self::Compound { members, .. } => {
                for (offset, kind) in members {
                    kind.decode(bits, &mut out[*offset..*offset + kind.size()])?;
                }
            }
            Self::Whole { .. } => {
                for byte in out {
                    *byte = bits.get(8)? as u8;
                }
            }
        }
        Ok(())
    }

    fn encode(&self, src: &[u8], bits: &mut BitWriter<'_>) {
        match self {
            Self::Atomic { size, big_endian, precision, offset } => {
                let mut wide = [0; 16];
                let value = if *big_endian {
                    wide[16 - size..].copy_from_slice(src);
                    u128::from_be_bytes(wide)
                } else {
                    wide[..*size].copy_from_slice(src);
                    u128::from_le_bytes(wide)
                };
                bits.put_wide(value >> offset, *precision);
            }
            Self::Array { base, .. } => {
                for element in src.chunks_exact(base.size()) {
                    base.encode(element, bits);
                }
            }
            Self::Compound { members, .. } => {
                for (offset, kind) in members {
                    kind.encode(&src[*offset..*offset + kind.size()], bits);
                }
            }
            Self::Whole { .. } => {
                for byte in src {
                    bits.put(u64::from(*byte), 8);
                }
            }
        }
    }
}

impl NBit {
    /// Parses the filter's parameters as they are in the pipeline message.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](crate::CodecError::Corrupt) if they describe no type,
    /// [`Unsupported`](crate::CodecError::Unsupported) if a number is longer than 16 bytes.
    pub fn parse(client: &[u32]) -> Result<Self> {
        let mut parameters = Parameters { rest: client.iter(), kinds: 0 };
        let (_count, plain, elements) = (parameters.next()?, parameters.next()?, parameters.next()?);
        let kind = parameters.kind(0)?;
        Ok(Self { plain: plain != 0, elements: elements as usize, kind })
    }

    /// The decoded size of a chunk, unverified.
    #[must_use]
    pub const fn decoded_len(&self) -> Option<usize> {
        self.elements.checked_mul(self.kind.size())
    }

    /// Decodes the chunk `src` into `out`, which it must fill. Bytes after the last element are ignored.
    ///
    /// # Errors
    ///
    /// [`Size`](crate::CodecError::Size) if `out` is not [`decoded_len`](Self::decoded_len) bytes,
    /// [`Corrupt`](crate::CodecError::Corrupt) if `src` is truncated.
    pub fn decode(&self, src: &[u8], out: &mut [u8]) -> Result<()> {
        if self.decoded_len() != Some(out.len()) {
            return Err(size_error(CODEC, out.len(), self.decoded_len().unwrap_or(usize::MAX)));
        }
        if self.plain {
            let whole = src.get(..out.len()).ok_or_else(|| size_error(CODEC, out.len(), src.len()))?;
            out.copy_from_slice(whole);
            return Ok(());
        }
        // Check this first, so that a short chunk costs nothing.
        if u128::from(self.kind.bits()) * self.elements as u128 > src.len() as u128 * 8 {
            return Err(corrupt(CODEC, format!("ends early: {} bytes", src.len())));
        }
        let mut bits = BitReader::new(CODEC, src);
        if let NbitType::Atomic {
            size: size @ (1 | 2 | 4 | 8),
            big_endian,
            precision: precision @ ..=57,
            offset,
        } = self.kind
        {
            /// One loop for each size, so that a number is stored in a single write.
            macro_rules! numbers {
                ($number:ty) => {
                    for to in out.as_chunks_mut().0 {
                        let value = (bits.get(precision)? << offset) as $number;
                        *to = if big_endian { value.to_be_bytes() } else { value.to_le_bytes() };
                    }
                };
            }
            match size {
                1 => numbers!(u8),
                2 => numbers!(u16),
                4 => numbers!(u32),
                _ => numbers!(u64),
            }
            return Ok(());
        }
        out.fill(0);
        for element in out.chunks_exact_mut(self.kind.size()) {
            self.kind.decode(&mut bits, element)?;
        }
        Ok(())
    }

    /// Appends the chunk `src`, encoded, to `out`.
    ///
    /// # Errors
    ///
    /// [`Invalid`](crate::CodecError::Invalid) if `src` is not [`decoded_len`](Self::decoded_len) bytes.
    pub fn encode(&self, src: &[u8], out: &mut Vec<u8>) -> Result<()> {
        if self.decoded_len() != Some(src.len()) {
            return Err(invalid(
                CODEC,
                format!("{} bytes, expected {} elements of {}", src.len(), self.elements, self.kind.size()),
            ));
        }
        if self.plain {
            out.extend_from_slice(src);
            return Ok(());
        }
        let mut bits = BitWriter::new(out);
        for element in src.chunks_exact(self.kind.size()) {
            self.kind.encode(element, &mut bits);
        }
        bits.finish();
        // libhdf5 starts a new byte once one is full.
        if (self.kind.bits() * self.elements as u64).is_multiple_of(8) {
            out.push(0);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{client, data, noise};

    const CASES: [&str; 11] = [
        "nbit.i4.17.0",
        "nbit.i4.14.5",
        "nbit.i4be.13.3",
        "nbit.u2.9.2",
        "nbit.u1.3.1",
        "nbit.u8.40.8",
        "nbit.u8be.64.0",
        "nbit.f4.20.7",
        "nbit.i4.32.0",
        "nbit.record",
        "nbit.compound",
    ];

    #[test]
    fn chunks_of_libhdf5_decode_and_encode_to_the_same_bytes() {
        for name in CASES {
            let filter = NBit::parse(&client(name)).unwrap();
            let (stored, want) = (data(&format!("{name}.stored")), data(&format!("{name}.raw")));
            let mut out = vec![1; want.len()];
            filter.decode(&stored, &mut out).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(out == want, "{name}");
            let mut back = Vec::new();
            filter.encode(&want, &mut back).unwrap();
            if name == "nbit.compound" {
                // It has an array of arrays, so libhdf5 lost some of it.
                assert_eq!(back.len(), stored.len());
            } else {
                assert_eq!(back, stored, "{name}");
            }
            assert!(filter.decode(&stored[..stored.len() / 2], &mut out).is_err());
            assert!(filter.decode(&stored, &mut out[1..]).is_err());
        }
    }

    proptest! {
        #[test]
        fn any_number_round_trips(size in 1..=16u32, precision in 0..128u32, offset in 0..128u32, order in 0..=1u32, n in 0..20u32) {
            let precision = precision % (size * 8) + 1;
            let offset = offset % (size * 8 - precision + 1);
            let filter = NBit::parse(&[8, 0, n, 1, size, order, precision, offset]).unwrap();
            let src = noise((n * size) as usize);
            let (mut stored, mut once, mut again) = (Vec::new(), vec![0; src.len()], Vec::new());
            filter.encode(&src, &mut stored).unwrap();
            filter.decode(&stored, &mut once).unwrap();
            filter.encode(&once, &mut again).unwrap();
            prop_assert_eq!(stored, again);
        }

        #[test]
        fn arbitrary_parameters_never_panic(
            client in prop::collection::vec(0..20u32, 0..40),
            src: Vec<u8>,
            len in 0..400usize,
        ) {
            if let Ok(filter) = NBit::parse(&client) {
                let len = filter.decoded_len().filter(|&n| n < 4000).unwrap_or(len);
                let _ = filter.decode(&src, &mut vec![0; len]);
            }
        }
    }
}
