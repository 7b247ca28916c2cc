//! Converts decoded tiles to elements.

use hyperslab_core::{DType, Data, Elements, Place, Result, Validity};

use crate::datatype::{CellValues, Datatype};

/// Variable-length cells from their values and a tile of little-endian `u64` offsets.
pub(crate) fn variable(
    datatype: Datatype,
    offsets: &[u8],
    values: Vec<u8>,
    place: Place<'_>,
) -> Result<Elements> {
    let (words, tail) = offsets.as_chunks::<8>();
    if !tail.is_empty() {
        return Err(place.corrupt(format!("{} bytes are not a whole number of offsets", offsets.len())));
    }
    let offsets = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
    variable_from(datatype, offsets, values, place)
}

/// Variable-length cells from their start offsets.
pub(crate) fn variable_from(
    datatype: Datatype,
    mut offsets: Vec<u64>,
    values: Vec<u8>,
    place: Place<'_>,
) -> Result<Elements> {
    offsets.push(values.len() as u64);
    let size = datatype.size() as u64;
    let ordered = offsets.windows(2).all(|pair| pair[0] <= pair[1]);
    if !ordered || offsets.first().is_some_and(|first| *first > values.len() as u64) {
        return Err(place.corrupt("offsets decrease or reach past the values"));
    }
    let data = match datatype.dtype(CellValues::Variable) {
        DType::List(_) => {
            if offsets.iter().any(|offset| offset % size != 0) {
                return Err(place.corrupt(format!("an offset points inside a value of {size} bytes")));
            }
            for offset in &mut offsets {
                *offset /= size;
            }
            Data::List { offsets, items: Box::new(Elements::fixed(values)) }
        }
        _ => Data::Variable { offsets, bytes: values.into() },
    };
    Ok(Elements { data, validity: None })
}

/// One flag per cell: 1 for a value, 0 for null.
pub(crate) fn validity(flags: &[u8]) -> Validity {
    Validity::from_flags(flags.iter().map(|flag| *flag != 0))
}
