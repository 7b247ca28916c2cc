//! Ranges of coordinates: non-empty domains, current domains, boxes of R-trees.

use hyperslab_core::{Fields, Result};

use super::Dimension;

/// A range of one dimension, both ends included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    /// The lowest coordinate as bytes.
    pub low: Vec<u8>,
    /// The highest coordinate as bytes.
    pub high: Vec<u8>,
    /// Whether it is a range of strings.
    pub text: bool,
}

impl Range {
    /// Parses a range. Fixed-size: low, high. Strings: `u64 total, u64 low_len, low, high`.
    fn parse(fields: &mut Fields<'_>, dimension: &Dimension) -> Result<Self> {
        if !dimension.is_text() {
            let size = dimension.datatype.size();
            let (low, high) = (fields.bytes(size)?.to_vec(), fields.bytes(size)?.to_vec());
            return Ok(Self { low, high, text: false });
        }
        let place = fields.place();
        let total = fields.count_u64(1)?;
        let low = fields.count_u64(1)?;
        let high = total
            .checked_sub(low)
            .ok_or_else(|| place.corrupt(format!("a range of {total} bytes whose start has {low}")))?;
        Ok(Self { low: fields.bytes(low)?.to_vec(), high: fields.bytes(high)?.to_vec(), text: true })
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        if self.text {
            out.extend(((self.low.len() + self.high.len()) as u64).to_le_bytes());
            out.extend((self.low.len() as u64).to_le_bytes());
        }
        out.extend(&self.low);
        out.extend(&self.high);
    }
}

/// Parses one range per dimension.
pub(crate) fn ranges(fields: &mut Fields<'_>, dimensions: &[Dimension]) -> Result<Vec<Range>> {
    dimensions.iter().map(|dimension| Range::parse(fields, dimension)).collect()
}
