//! BloscLZ: FastLZ with longer distances.
//!
//! A control byte below 32 is followed by one more literal than its value; of the first control byte only the low five bits
//! count. Otherwise the top three bits, minus one, are a length, which continues in the following bytes while they are 255 if it
//! is six; the low five bits and one more byte (big-endian) are a distance minus one. If all bits of the distance field are set,
//! 16 bits (big-endian) follow, to which 8191 is added. Copies are three bytes longer than their length field.

use crate::bytes::copy_back;
use crate::error::{Result, corrupt, size, too_long};

const CODEC: &str = "blosclz";
const FAR: usize = 8191;

/// Decodes `src` into `out`, which it must fill.
pub(super) fn decode(src: &[u8], out: &mut [u8]) -> Result<()> {
    let early = || corrupt(CODEC, "ends early");
    let mut at = 0;
    let mut next = || {
        let byte = src.get(at).copied();
        at += 1;
        byte
    };
    let mut filled = 0;
    let mut control = usize::from(next().ok_or_else(early)?) & 31;
    loop {
        if control < 32 {
            for _ in 0..=control {
                let byte = next().ok_or_else(early)?;
                *out.get_mut(filled).ok_or_else(|| too_long(CODEC, filled))? = byte;
                filled += 1;
            }
        } else {
            let mut len = (control >> 5) - 1;
            if len == 6 {
                loop {
                    let more = usize::from(next().ok_or_else(early)?);
                    len += more;
                    if more != 255 {
                        break;
                    }
                }
            }
            let mut distance = (control & 31) << 8 | usize::from(next().ok_or_else(early)?);
            if distance == 0x1fff {
                let high = usize::from(next().ok_or_else(early)?);
                distance = (high << 8 | usize::from(next().ok_or_else(early)?)) + FAR;
            }
            let (distance, len) = (distance + 1, len + 3);
            if distance > filled {
                return Err(corrupt(CODEC, format!("a copy from {distance} bytes back at byte {filled}")));
            }
            if len > out.len() - filled {
                return Err(too_long(CODEC, out.len()));
            }
            copy_back(out, filled, distance, len);
            filled += len;
        }
        match next() {
            Some(byte) => control = byte.into(),
            None => break,
        }
    }
    if filled == out.len() { Ok(()) } else { Err(size(CODEC, out.len(), filled)) }
}
