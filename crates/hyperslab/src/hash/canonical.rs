//! The canonical encoding of elements: the bytes that are hashed, whatever the machine, format and chunking.

use hyperslab_core::{DType, Data, Elements};

/// The full name of a type, including details that its usual name omits.
pub(crate) fn type_name(dtype: &DType) -> String {
    match dtype {
        DType::Enum(named) => {
            let members: Vec<_> =
                named.members.iter().map(|(name, value)| format!("{name:?}={value}")).collect();
            format!("enum<{}>{{{}}}", type_name(&named.base), members.join(","))
        }
        DType::Struct(fields) => {
            let member =
                |member: &hyperslab_core::Member| format!("{:?}:{}", member.name, type_name(&member.dtype));
            format!("struct{{{}}}", fields.members.iter().map(member).collect::<Vec<_>>().join(","))
        }
        DType::List(base) => format!("list<{}>", type_name(base)),
        DType::Array(base, shape) => format!("{}{shape:?}", type_name(base)),
        plain => plain.to_string(),
    }
}

/// Appends elements `start..end`: a byte that tells whether any is missing, then the elements. If any is missing, each element is
/// preceded by a byte that tells whether it is present.
pub(crate) fn block(dtype: &DType, elements: &Elements, start: usize, end: usize, out: &mut Vec<u8>) {
    let missing = elements.validity.is_some() && (start..end).any(|index| elements.is_missing(index));
    out.push(u8::from(missing));
    if let (false, Some(size), Data::Fixed(bytes)) = (missing, dtype.size(), &elements.data)
        && !matches!(dtype, DType::Struct(_))
    {
        return fixed(dtype, bytes.get(start * size..end * size).unwrap_or_default(), out);
    }
    for index in start..end {
        if missing {
            out.push(u8::from(!elements.is_missing(index)));
            if elements.is_missing(index) {
                continue;
            }
        }
        element(dtype, elements, index, out);
    }
}

fn element(dtype: &DType, elements: &Elements, index: usize, out: &mut Vec<u8>) {
    match (&elements.data, dtype) {
        (Data::Fixed(bytes), _) => {
            let size = dtype.size().unwrap_or(0);
            fixed(dtype, bytes.get(index * size..(index + 1) * size).unwrap_or_default(), out);
        }
        (Data::Variable { offsets, bytes }, _) => {
            let (start, end) = range(offsets, index);
            let held = bytes.get(start..end).unwrap_or_default();
            out.extend_from_slice(&(held.len() as u64).to_le_bytes());
            out.extend_from_slice(held);
        }
        (Data::List { offsets, items }, DType::List(base)) => {
            let (start, end) = range(offsets, index);
            out.extend_from_slice(&(end.saturating_sub(start) as u64).to_le_bytes());
            block(base, items, start, end, out);
        }
        (Data::FixedList { each, items }, DType::Array(base, _)) => {
            block(base, items, index * each, (index + 1) * each, out);
        }
        (Data::Struct { members, .. }, DType::Struct(fields)) => {
            for (member, held) in fields.members.iter().zip(members) {
                block(&member.dtype, held, index, index + 1, out);
            }
        }
        // The layout always matches the type.
        _ => {}
    }
}

fn range(offsets: &[u64], index: usize) -> (usize, usize) {
    let at = |index: usize| offsets.get(index).map_or(0, |offset| *offset as usize);
    (at(index), at(index + 1))
}

/// Fixed-size elements: little-endian, without padding, one zero and one NaN.
fn fixed(dtype: &DType, bytes: &[u8], out: &mut Vec<u8>) {
    match dtype {
        DType::Float16 => {
            for held in bytes.as_chunks().0 {
                let bits = u16::from_ne_bytes(*held);
                let bits = match bits & 0x7fff {
                    0 => 0,
                    0x7c01.. => 0x7e00,
                    _ => bits,
                };
                out.extend_from_slice(&bits.to_le_bytes());
            }
        }
        DType::Float32 | DType::Complex64 => {
            for held in bytes.as_chunks().0 {
                let number = f32::from_ne_bytes(*held);
                let number = if number.is_nan() { f32::from_bits(0x7fc0_0000) } else { number + 0.0 };
                out.extend_from_slice(&number.to_le_bytes());
            }
        }
        DType::Float64 | DType::Complex128 => {
            for held in bytes.as_chunks().0 {
                let number = f64::from_ne_bytes(*held);
                let number =
                    if number.is_nan() { f64::from_bits(0x7ff8_0000_0000_0000) } else { number + 0.0 };
                out.extend_from_slice(&number.to_le_bytes());
            }
        }
        // The last six of its sixteen bytes are padding.
        DType::Float128 => bytes.chunks_exact(16).for_each(|held| out.extend_from_slice(&held[..10])),
        DType::Bool => out.extend(bytes.iter().map(|byte| u8::from(*byte != 0))),
        DType::Enum(named) => fixed(&named.base, bytes, out),
        DType::Array(base, _) => fixed(base, bytes, out),
        DType::Struct(fields) if fields.size > 0 => {
            for held in bytes.chunks_exact(fields.size) {
                for member in &fields.members {
                    let end = member.offset + member.dtype.size().unwrap_or(0);
                    // Encoded like a block of one present element.
                    out.push(0);
                    fixed(&member.dtype, held.get(member.offset..end).unwrap_or_default(), out);
                }
            }
        }
        _ => match dtype.swap_unit().filter(|unit| cfg!(target_endian = "big") && *unit > 1) {
            Some(unit) => bytes.chunks_exact(unit).for_each(|held| out.extend(held.iter().rev())),
            None => out.extend_from_slice(bytes),
        },
    }
}

#[cfg(test)]
mod tests {
    use hyperslab_core::{StructType, Validity};

    use super::*;

    fn bytes(dtype: &DType, elements: &Elements, count: usize) -> Vec<u8> {
        let mut out = Vec::new();
        block(dtype, elements, 0, count, &mut out);
        out
    }

    #[test]
    fn zero_has_no_sign_and_nan_no_payload() {
        let of = |number: f64| bytes(&DType::Float64, &Elements::fixed(number.to_ne_bytes().to_vec()), 1);
        assert_eq!(of(0.0), of(-0.0));
        assert_eq!(of(f64::NAN), of(-f64::from_bits(0x7ff0_0000_0000_0001)));
        assert_ne!(of(f64::NAN), of(f64::INFINITY));
        let half = |bits: u16| bytes(&DType::Float16, &Elements::fixed(bits.to_ne_bytes().to_vec()), 1);
        assert_eq!(half(0x8000), half(0));
        assert_eq!(half(0xfc01), half(0x7e00));
        assert_ne!(half(0xfc00), half(0x7c00));
    }

    #[test]
    fn padding_and_missing_values_do_not_count() {
        let mut loose = StructType::packed([("a", DType::UInt8), ("b", DType::UInt8)]);
        let packed = loose.clone();
        loose.members[1].offset = 3;
        loose.size = 4;
        let a = bytes(&loose.into(), &Elements::fixed(vec![1, 9, 9, 2]), 1);
        assert_eq!(a, bytes(&packed.clone().into(), &Elements::fixed(vec![1, 2]), 1));
        let members = vec![Elements::fixed(vec![1]), Elements::fixed(vec![2])];
        let held = Elements { data: Data::Struct { length: 1, members }, validity: None };
        assert_eq!(a, bytes(&packed.into(), &held, 1));
        let gone =
            |byte| Elements::fixed(vec![7, byte]).with_validity(Some(Validity::from_flags([true, false])));
        assert_eq!(bytes(&DType::UInt8, &gone(1), 2), bytes(&DType::UInt8, &gone(2), 2));
        let all = Elements::fixed(vec![7, 1]).with_validity(Some(Validity::from_flags([true, true])));
        assert_eq!(bytes(&DType::UInt8, &all, 2), bytes(&DType::UInt8, &Elements::fixed(vec![7, 1]), 2));
    }

    #[test]
    fn texts_do_not_run_into_each_other() {
        let of = |texts: [&str; 2]| bytes(&DType::String, &Elements::variable(texts), 2);
        assert_ne!(of(["ab", "c"]), of(["a", "bc"]));
    }
}
