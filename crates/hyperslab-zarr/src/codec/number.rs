//! numcodecs' number filters: delta, fixed scale and offset, quantisation, type conversion.

use half::f16;
use hyperslab_codec::CodecError;
use hyperslab_core::Filter;

use super::{Outcome, corrupt, wrong_size};

/// A NumPy number type: kind, width and byte order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Number {
    pub(crate) kind: NumberClass,
    pub(crate) size: usize,
    pub(crate) big: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NumberClass {
    Bool,
    Signed,
    Unsigned,
    Float,
}

/// A value during conversion from one type to another.
#[derive(Debug, Clone, Copy)]
enum Held {
    Integer(i128),
    Float(f64),
}

impl Number {
    /// Parses NumPy's type string: `<f4`, `|u1`, `int16`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let named = [("bool", "|b1"), ("float", "f"), ("uint", "u"), ("int", "i")];
        let short = named.iter().find_map(|(long, code)| {
            let bits = text.strip_prefix(long)?;
            if bits.is_empty() {
                Some((*code).to_owned())
            } else {
                Some(format!("{code}{}", bits.parse::<usize>().ok()? / 8))
            }
        });
        let text = short.as_deref().unwrap_or(text);
        let big = text.starts_with('>') || (cfg!(target_endian = "big") && !text.starts_with('<'));
        let text = text.trim_start_matches(['<', '>', '|', '=']);
        let kind = match text.chars().next()? {
            'b' => NumberClass::Bool,
            'i' => NumberClass::Signed,
            'u' => NumberClass::Unsigned,
            'f' => NumberClass::Float,
            _ => return None,
        };
        let size = text[1..].parse().ok()?;
        let known = match kind {
            NumberClass::Bool => size == 1,
            NumberClass::Float => matches!(size, 2 | 4 | 8),
            _ => matches!(size, 1 | 2 | 4 | 8),
        };
        known.then_some(Self { kind, size, big })
    }

    /// The number, if it is an integer.
    pub(crate) fn integer(self, bytes: &[u8]) -> Option<i128> {
        match self.get(bytes) {
            Held::Integer(value) => Some(value),
            Held::Float(_) => None,
        }
    }

    fn get(self, bytes: &[u8]) -> Held {
        let mut wide = [0; 8];
        for (i, byte) in bytes.iter().take(8).enumerate() {
            wide[if self.big { self.size - 1 - i } else { i }] = *byte;
        }
        let bits = u64::from_le_bytes(wide);
        match (self.kind, self.size) {
            (NumberClass::Float, 2) => Held::Float(f16::from_bits(bits as u16).into()),
            (NumberClass::Float, 4) => Held::Float(f32::from_bits(bits as u32).into()),
            (NumberClass::Float, _) => Held::Float(f64::from_bits(bits)),
            (NumberClass::Signed, size) => {
                let unused = 64 - 8 * size as u32;
                Held::Integer(((bits << unused) as i64 >> unused).into())
            }
            _ => Held::Integer(bits.into()),
        }
    }

    /// Stores a value like NumPy's `astype`: integers wrap, floats lose their fraction.
    fn put(self, held: Held, out: &mut [u8]) {
        let bits = match (self.kind, self.size) {
            (NumberClass::Float, 2) => f16::from_f64(held.float()).to_bits().into(),
            (NumberClass::Float, 4) => (held.float() as f32).to_bits().into(),
            (NumberClass::Float, _) => held.float().to_bits(),
            (NumberClass::Bool, _) => u64::from(held.float() != 0.0),
            _ => match held {
                Held::Integer(value) => value as u64,
                Held::Float(value) => value as i128 as u64,
            },
        };
        for (i, byte) in out.iter_mut().enumerate() {
            let place = if self.big { self.size - 1 - i } else { i };
            *byte = (bits >> (8 * place)) as u8;
        }
    }

    /// The value rounded to this type.
    fn round(self, held: Held) -> Held {
        let mut bytes = [0; 8];
        self.put(held, &mut bytes[..self.size]);
        self.get(&bytes[..self.size])
    }
}

impl Held {
    fn float(self) -> f64 {
        match self {
            Self::Integer(value) => value as f64,
            Self::Float(value) => value,
        }
    }
}

/// A filter that maps each number to another.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NumberFilter {
    /// The filter's name in numcodecs.
    pub(crate) name: &'static str,
    /// The type before encoding.
    pub(crate) decoded: Number,
    /// The type that is stored.
    pub(crate) stored: Number,
    pub(crate) kind: NumberKind,
}

/// The transform of the numbers, beside the type conversion.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum NumberKind {
    /// None that decoding could undo (quantisation, rounding, type conversion).
    Convert,
    /// Each is stored as the difference from the one before.
    Delta,
    /// `(value - offset) * scale` is stored.
    ScaleOffset { scale: f64, offset: f64 },
}

impl NumberFilter {
    pub(crate) fn encoded_len(&self, decoded: usize) -> Option<usize> {
        (decoded / self.decoded.size).checked_mul(self.stored.size)
    }

    pub(crate) fn decoded_len(&self, encoded: usize) -> Outcome<usize> {
        let whole = encoded.is_multiple_of(self.stored.size);
        let length = (encoded / self.stored.size).checked_mul(self.decoded.size).filter(|_| whole);
        length
            .ok_or_else(|| corrupt(self.name, format!("{encoded} bytes are not a whole number of elements")))
    }

    pub(crate) fn decode(&self, src: &[u8], out: &mut [u8]) -> Outcome<()> {
        let found = self.decoded_len(src.len())?;
        if found != out.len() {
            return Err(wrong_size(self.name, out.len(), found));
        }
        if self.kind == NumberKind::Convert && self.stored == self.decoded {
            out.copy_from_slice(src);
            return Ok(());
        }
        let mut last = None;
        for (src, out) in src.chunks_exact(self.stored.size).zip(out.chunks_exact_mut(self.decoded.size)) {
            let mut held = self.stored.get(src);
            match self.kind {
                NumberKind::Convert => {}
                NumberKind::Delta => {
                    held = self.decoded.round(held);
                    held = match (last, held) {
                        (None, held) => held,
                        (Some(Held::Integer(sum)), Held::Integer(step)) => Held::Integer(sum + step),
                        (Some(sum), step) => Held::Float(sum.float() + step.float()),
                    };
                    held = self.decoded.round(held);
                    last = Some(held);
                }
                NumberKind::ScaleOffset { scale, offset } => {
                    // NumPy divides and adds in the stored type if that is a float, in float64 otherwise.
                    let narrow = |value: f64| match self.stored.kind {
                        NumberClass::Float => self.stored.round(Held::Float(value)).float(),
                        _ => value,
                    };
                    held = Held::Float(narrow(narrow(held.float() / scale) + offset));
                }
            }
            self.decoded.put(held, out);
        }
        Ok(())
    }

    pub(crate) fn shown(&self) -> Filter {
        let filter = Filter::new(self.name);
        match self.kind {
            NumberKind::ScaleOffset { scale, offset } => filter.with("scale", scale).with("offset", offset),
            _ => filter,
        }
    }
}

impl From<NumberFilter> for super::Step {
    fn from(filter: NumberFilter) -> Self {
        Self::Numbers(filter)
    }
}

/// The error for a type that number filters do not support.
pub(crate) fn no_number(text: &str) -> CodecError {
    corrupt("numcodecs", format!("dtype {text:?} of a filter of numbers"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Number {
        Number::parse(text).unwrap()
    }

    #[test]
    fn deltas_wrap_and_change_type() {
        let delta = NumberFilter {
            name: "delta",
            decoded: number(">i2"),
            stored: number("|i1"),
            kind: NumberKind::Delta,
        };
        let mut out = [0; 6];
        delta.decode(&[100, 100, 0xff], &mut out).unwrap();
        assert_eq!(out, [0, 100, 0, 200, 0, 199]);
        let wrapping = NumberFilter { decoded: number("|u1"), stored: number("|u1"), ..delta };
        let mut out = [0; 3];
        wrapping.decode(&[5, 254, 1], &mut out).unwrap();
        assert_eq!(out, [5, 3, 4]);
        assert!(wrapping.decode(&[1, 2], &mut out).is_err());
    }

    #[test]
    fn scale_and_offset_are_undone() {
        let kind = NumberKind::ScaleOffset { scale: 10.0, offset: 1000.0 };
        let filter =
            NumberFilter { name: "fixedscaleoffset", decoded: number("<f8"), stored: number("u1"), kind };
        let mut out = [0; 16];
        filter.decode(&[0, 57], &mut out).unwrap();
        assert_eq!(out[8..], 1005.7_f64.to_le_bytes());
        assert_eq!(number("float32"), number("<f4"));
        assert_eq!(Number::parse("<U3"), None);
    }
}
