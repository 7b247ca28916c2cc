//! The dataset directory: one record per array.

use std::sync::Arc;

use hyperslab_core::{DType, Error, Extents, Fields, Grid, Place, Result, product};

use crate::superblock::align8;

/// The maximum number of dimensions of a record.
pub const MAX_RANK: usize = 8;

/// The bytes of a record before its name.
const HEAD: usize = 16;

/// The size of the smallest record: no name, one dimension.
const SMALLEST: usize = 32;

/// The element types by code. The set is closed; it is not sorted by size.
const DTYPES: [(u32, DType); 10] = [
    (1, DType::Float32),
    (2, DType::Float64),
    (3, DType::Int32),
    (4, DType::Int64),
    (5, DType::UInt8),
    (6, DType::UInt16),
    (7, DType::Int16),
    (8, DType::UInt32),
    (9, DType::Float16),
    (10, DType::UInt64),
];

/// The type with this code; `None` for an unknown code.
#[must_use]
pub fn dtype_of_code(code: u32) -> Option<DType> {
    DTYPES.iter().find(|(own, _)| *own == code).map(|(_, dtype)| dtype.clone())
}

/// The code of this type; `None` for a type that the format cannot store.
#[must_use]
pub fn code_of_dtype(dtype: &DType) -> Option<u32> {
    DTYPES.iter().find(|(_, own)| own == dtype).map(|(code, _)| *code)
}

/// One record of the dataset directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dataset {
    /// The name. It may be empty, contain `/`, or occur twice.
    pub name: Arc<str>,
    /// The code of the element type, which may be unknown.
    pub dtype_code: u32,
    /// Elements per dimension.
    pub shape: Extents,
    /// Elements of a chunk per dimension. In a damaged file, some may be zero.
    pub chunk_shape: Extents,
}

impl Dataset {
    /// The element type; `None` for an unknown code.
    #[must_use]
    pub fn dtype(&self) -> Option<DType> {
        dtype_of_code(self.dtype_code)
    }

    /// The shape and the chunks; `None` if a chunk extent is zero.
    #[must_use]
    pub fn grid(&self) -> Option<Grid> {
        Grid::new(&self.shape, &self.chunk_shape).ok()
    }

    /// The decoded size in bytes; `None` on overflow of `u64` or for an unknown type.
    #[must_use]
    pub fn bytes(&self) -> Option<u64> {
        product(&self.shape)?.checked_mul(self.dtype()?.size()? as u64)
    }

    /// The size of its record in bytes.
    pub(crate) fn record_length(&self) -> usize {
        (HEAD + self.name.len()).next_multiple_of(8) + 16 * self.shape.len()
    }

    /// Appends its record.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) if it has no dimension or more than eight, or its name is longer than 4 GiB.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) -> Result<()> {
        let rank = self.shape.len();
        let name_length = u32::try_from(self.name.len())
            .map_err(|_| Error::invalid(format!("a dataset name of {} bytes", self.name.len())))?;
        if !(1..=MAX_RANK).contains(&rank) || self.chunk_shape.len() != rank {
            return Err(Error::invalid(format!(
                "{}: {rank} dimensions, .tet holds 1 to {MAX_RANK}",
                self.name
            )));
        }
        let start = out.len();
        for field in [name_length, self.dtype_code, rank as u32, 0] {
            out.extend_from_slice(&field.to_le_bytes());
        }
        out.extend_from_slice(self.name.as_bytes());
        // The shape is aligned to 8 bytes, relative to the start of the record.
        out.resize(start + (HEAD + self.name.len()).next_multiple_of(8), 0);
        for extent in self.shape.iter().chain(&self.chunk_shape) {
            out.extend_from_slice(&extent.to_le_bytes());
        }
        Ok(())
    }

    fn parse(fields: &mut Fields<'_>) -> Result<Self> {
        let place = fields.place();
        let name_length = fields.u32()? as usize;
        let dtype_code = fields.u32()?;
        let rank = fields.u32()? as usize;
        if !(1..=MAX_RANK).contains(&rank) {
            return Err(place.corrupt(format!("{rank} dimensions, expected 1 to {MAX_RANK}")));
        }
        fields.skip(4)?;
        let name = fields.bytes(name_length)?;
        let name = std::str::from_utf8(name).map_err(|error| place.corrupt(format!("name: {error}")))?.into();
        fields.skip((HEAD + name_length).next_multiple_of(8) - (HEAD + name_length))?;
        let mut extents = || (0..rank).map(|_| fields.u64()).collect::<Result<Extents>>();
        Ok(Self { name, dtype_code, shape: extents()?, chunk_shape: extents()? })
    }
}

/// Reads `count` records, which must fill `bytes`. A dataset's id is the position of its record.
///
/// # Errors
///
/// [`Corrupt`](Error::Corrupt) if the records do not fill the directory, or one has no dimension, more than
/// eight, or a name that is not UTF-8.
pub(crate) fn parse_directory(bytes: &[u8], count: u32, place: Place<'_>) -> Result<Vec<Dataset>> {
    let room = bytes.len() / SMALLEST;
    if count as usize > room {
        return Err(place.corrupt(format!("{count} records, with room for {room}")));
    }
    let mut fields = Fields::new(bytes, place);
    let mut datasets = Vec::with_capacity(count as usize);
    for _ in 0..count {
        datasets.push(Dataset::parse(&mut fields)?);
    }
    fields.end()?;
    Ok(datasets)
}

/// Encodes the length of the directory and all records: everything between superblock and chunk index.
pub(crate) fn encode_directory(datasets: &[Dataset]) -> Result<Vec<u8>> {
    let mut bytes = vec![0; 8];
    for dataset in datasets {
        dataset.encode(&mut bytes)?;
    }
    let length = (bytes.len() - 8) as u64;
    bytes[..8].copy_from_slice(&length.to_le_bytes());
    debug_assert_eq!(align8(length), Some(length));
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PLACE: Place<'static> = Place::new("x.tet", "dataset directory", 40);

    fn dataset(name: &str, dtype_code: u32, shape: &[u64], chunk_shape: &[u64]) -> Dataset {
        Dataset { name: name.into(), dtype_code, shape: shape.into(), chunk_shape: chunk_shape.into() }
    }

    #[test]
    fn every_type_has_one_code() {
        for code in 1..=10 {
            assert_eq!(dtype_of_code(code).as_ref().and_then(code_of_dtype), Some(code));
        }
        assert_eq!(dtype_of_code(0), None);
        assert_eq!(dtype_of_code(11), None);
        assert_eq!(code_of_dtype(&DType::Bool), None);
    }

    #[test]
    fn rank_zero_and_nine_are_refused() -> Result<()> {
        let bytes = encode_directory(&[dataset("a", 1, &[2, 3], &[2, 2])])?;
        for rank in [0_u32, 9, u32::MAX] {
            let mut changed = bytes[8..].to_vec();
            changed[8..12].copy_from_slice(&rank.to_le_bytes());
            assert!(parse_directory(&changed, 1, PLACE).unwrap_err().is_corrupt());
        }
        assert!(parse_directory(&bytes[8..], 2, PLACE).unwrap_err().is_corrupt());
        assert!(parse_directory(&bytes[8..], u32::MAX, PLACE).unwrap_err().is_corrupt());
        assert!(parse_directory(&bytes[8..], 0, PLACE).unwrap_err().is_corrupt());
        Ok(())
    }

    proptest! {
        #[test]
        fn records_round_trip(
            names in prop::collection::vec("[a-zé/]{0,12}", 0..5),
            rank in 1_usize..=8,
            code: u32,
            extent: u64,
        ) {
            let datasets: Vec<_> = names.iter()
                .map(|name| dataset(name, code, &vec![extent; rank], &vec![extent ^ 1; rank])).collect();
            let bytes = encode_directory(&datasets).unwrap();
            let lengths: usize = datasets.iter().map(Dataset::record_length).sum();
            prop_assert_eq!(bytes.len(), 8 + lengths);
            prop_assert_eq!(parse_directory(&bytes[8..], names.len() as u32, PLACE).unwrap(), datasets);
        }
    }
}
