//! Statistics in fragment metadata: minimum, maximum, sum and nulls per tile, and of the fragment.

use hyperslab_core::{Fields, Place, Result};

/// Of one attribute, one entry per tile; empty where the type has none.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Stats {
    /// Fixed-size minima back to back (offsets for variable-length ones).
    pub(crate) mins: Vec<u8>,
    pub(crate) min_var: Vec<u8>,
    pub(crate) maxes: Vec<u8>,
    pub(crate) max_var: Vec<u8>,
    /// Eight bytes each: `i64`, `u64` or `f64` by the type.
    pub(crate) sums: Vec<[u8; 8]>,
    pub(crate) null_counts: Vec<u64>,
}

impl Stats {
    pub(crate) fn parse(
        mins: &[u8],
        maxes: &[u8],
        sums: &[u8],
        nulls: &[u8],
        place: Place<'_>,
    ) -> Result<Self> {
        let (mins, min_var) = extremes(mins, place)?;
        let (maxes, max_var) = extremes(maxes, place)?;
        let mut fields = Fields::new(sums, place);
        let count = fields.count_u64(8)?;
        let sums = (0..count).map(|_| fields.array()).collect::<Result<_>>()?;
        let mut fields = Fields::new(nulls, place);
        let count = fields.count_u64(8)?;
        let null_counts = (0..count).map(|_| fields.u64()).collect::<Result<_>>()?;
        Ok(Self { mins, min_var, maxes, max_var, sums, null_counts })
    }

    pub(crate) fn encode_mins(&self) -> Vec<u8> {
        encode_extremes(&self.mins, &self.min_var)
    }

    pub(crate) fn encode_maxes(&self) -> Vec<u8> {
        encode_extremes(&self.maxes, &self.max_var)
    }

    pub(crate) fn encode_sums(&self) -> Vec<u8> {
        let mut out = (self.sums.len() as u64).to_le_bytes().to_vec();
        out.extend(self.sums.iter().flatten());
        out
    }

    pub(crate) fn encode_null_counts(&self) -> Vec<u8> {
        let mut out = (self.null_counts.len() as u64).to_le_bytes().to_vec();
        out.extend(self.null_counts.iter().flat_map(|count| count.to_le_bytes()));
        out
    }
}

/// `u64 fixed_bytes, u64 var_bytes, fixed, var`.
fn extremes(bytes: &[u8], place: Place<'_>) -> Result<(Vec<u8>, Vec<u8>)> {
    let mut fields = Fields::new(bytes, place);
    let (fixed, var) = (fields.count_u64(1)?, fields.count_u64(1)?);
    Ok((fields.bytes(fixed)?.to_vec(), fields.bytes(var)?.to_vec()))
}

fn encode_extremes(fixed: &[u8], var: &[u8]) -> Vec<u8> {
    let mut out = (fixed.len() as u64).to_le_bytes().to_vec();
    out.extend((var.len() as u64).to_le_bytes());
    out.extend(fixed);
    out.extend(var);
    out
}

/// Of one slot of the whole fragment.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Totals {
    pub(crate) min: Vec<u8>,
    pub(crate) max: Vec<u8>,
    pub(crate) sum: [u8; 8],
    pub(crate) null_count: u64,
}

impl Totals {
    pub(crate) fn parse(bytes: &[u8], slots: usize, place: Place<'_>) -> Result<Vec<Self>> {
        let mut fields = Fields::new(bytes, place);
        let mut one = || -> Result<Self> {
            let length = fields.count_u64(1)?;
            let min = fields.bytes(length)?.to_vec();
            let length = fields.count_u64(1)?;
            let max = fields.bytes(length)?.to_vec();
            Ok(Self { min, max, sum: fields.array()?, null_count: fields.u64()? })
        };
        (0..slots).map(|_| one()).collect()
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend((self.min.len() as u64).to_le_bytes());
        out.extend(&self.min);
        out.extend((self.max.len() as u64).to_le_bytes());
        out.extend(&self.max);
        out.extend(self.sum);
        out.extend(self.null_count.to_le_bytes());
    }
}
