//! The codec `zfp`: the field is the chunk, and the configuration replaces a header.

use hyperslab_codec::zfp::{self, Field, Mode, Scalar};
use hyperslab_core::{DType, Result};
use serde_json::{Map, Value};

use super::{Outcome, Subject};
use crate::json::Doc;

/// A chunk as zfp stores it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Zfp {
    mode: Mode,
    field: Field,
    /// How numbers that zfp lacks are stored as ones that it has.
    demotion: Demotion,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Demotion {
    None,
    /// Fewer bits, signed or unsigned, in the high bits of an `int32`.
    Narrow {
        bits: u32,
        signed: bool,
    },
    /// Never below zero.
    Unsigned,
}

impl Zfp {
    pub(crate) fn parse(
        configuration: &Map<String, Value>,
        subject: Subject<'_>,
        doc: Doc<'_>,
    ) -> Result<Self> {
        let (scalar, demotion) = match subject.dtype {
            DType::Int32 => (Scalar::Int32, Demotion::None),
            DType::Int64 | DType::DateTime(_) | DType::Duration(_) => (Scalar::Int64, Demotion::None),
            DType::Float32 if subject.narrow.is_none() => (Scalar::Float32, Demotion::None),
            DType::Float64 => (Scalar::Float64, Demotion::None),
            DType::UInt32 => (Scalar::Int32, Demotion::Unsigned),
            DType::UInt64 => (Scalar::Int64, Demotion::Unsigned),
            DType::Int8 | DType::Int16 | DType::UInt8 | DType::UInt16 if subject.narrow.is_none() => {
                let signed = matches!(subject.dtype, DType::Int8 | DType::Int16);
                (Scalar::Int32, Demotion::Narrow { bits: 8 * subject.item as u32, signed })
            }
            other => return Err(doc.unsupported(format!("codec \"zfp\" for {other}"))),
        };
        let shape: Option<Vec<usize>> =
            subject.shape.iter().map(|extent| usize::try_from(*extent).ok()).collect();
        let shape = shape.ok_or_else(|| doc.corrupt("a chunk larger than memory"))?;
        let field = Field::new(scalar, &shape).map_err(|error| doc.unsupported(error.to_string()))?;
        let mode = mode(configuration, &field, doc)?;
        Ok(Self { mode, field, demotion })
    }

    pub(crate) fn decode(&self, src: &[u8], out: &mut [u8]) -> Outcome<()> {
        let (bits, signed) = match self.demotion {
            Demotion::None => return zfp::decode(&self.field, self.mode, src, out),
            Demotion::Unsigned => {
                zfp::decode(&self.field, self.mode, src, out)?;
                for number in out.chunks_exact_mut(self.field.scalar().size()) {
                    let sign = if cfg!(target_endian = "big") { number.first() } else { number.last() };
                    if sign.is_some_and(|byte| byte & 0x80 != 0) {
                        number.fill(0);
                    }
                }
                return Ok(());
            }
            Demotion::Narrow { bits, signed } => (bits, signed),
        };
        let size = bits as usize / 8;
        let mut wide = vec![0; (out.len() / size).saturating_mul(4)];
        zfp::decode(&self.field, self.mode, src, &mut wide)?;
        for (number, wide) in out.chunks_exact_mut(size).zip(wide.as_chunks::<4>().0) {
            let half = 1 << (bits - 1);
            let value = i32::from_ne_bytes(*wide) >> (31 - bits);
            let value =
                if signed { value.clamp(-half, half - 1) } else { (value + half).clamp(0, 2 * half - 1) };
            let bytes = value.to_le_bytes();
            number.copy_from_slice(&bytes[..size]);
            if cfg!(target_endian = "big") {
                number.reverse();
            }
        }
        Ok(())
    }
}

fn mode(configuration: &Map<String, Value>, field: &Field, doc: Doc<'_>) -> Result<Mode> {
    let number = |name: &str| {
        let value = configuration.get(name).and_then(Value::as_f64);
        value.ok_or_else(|| doc.corrupt(format!("codec \"zfp\" has no {name}")))
    };
    let integer = |name: &str| {
        let value = configuration.get(name).and_then(Value::as_i64);
        let value = value.and_then(|value| i32::try_from(value).ok());
        value.ok_or_else(|| doc.corrupt(format!("codec \"zfp\" has no {name}")))
    };
    let count = |name: &str| {
        u32::try_from(integer(name)?).map_err(|_| doc.corrupt(format!("{name} of codec \"zfp\" is negative")))
    };
    Ok(match configuration.get("mode").and_then(Value::as_str) {
        Some("reversible") => Mode::reversible(),
        Some("fixed_accuracy") => Mode::fixed_accuracy(number("tolerance")?),
        Some("fixed_precision") => Mode::fixed_precision(count("precision")?),
        Some("fixed_rate") => Mode::fixed_rate(number("rate")?, field.scalar(), field.dimensions())
            .map_err(|error| doc.corrupt(error.to_string()))?,
        Some("expert") => Mode {
            min_bits: count("minbits")?,
            max_bits: count("maxbits")?,
            max_precision: count("maxprec")?,
            min_exponent: integer("minexp")?,
        },
        other => return Err(doc.corrupt(format!("mode of codec \"zfp\" is {other:?}"))),
    })
}
