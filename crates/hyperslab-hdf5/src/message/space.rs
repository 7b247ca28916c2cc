//! Dataspaces: shapes and maximum shapes.

use hyperslab_core::{Extents, Fields, Result, product};

use crate::encode::Encoder;
use crate::file::{FileFields, Sizes, ones};

/// No library supports a higher rank.
pub(crate) const MAX_RANK: usize = 32;

/// A dataspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Space {
    /// Elements per dimension; empty for a scalar.
    pub(crate) shape: Extents,
    /// The maximum extent of each dimension; `None` for unlimited.
    pub(crate) max_shape: Vec<Option<u64>>,
    /// Whether it is the null dataspace, which has no elements and no shape.
    pub(crate) null: bool,
}

impl Space {
    pub(crate) fn parse(fields: &mut Fields<'_>, sizes: Sizes) -> Result<Self> {
        let place = fields.place();
        let version = fields.version(&[1, 2])?;
        let (rank, flags) = (usize::from(fields.u8()?), fields.u8()?);
        let mut null = false;
        if version == 1 {
            fields.skip(5)?;
        } else {
            null = fields.u8()? == 2;
        }
        if rank > MAX_RANK {
            return Err(place.corrupt(format!("rank {rank}")));
        }
        let mut shape = Extents::new();
        for _ in 0..rank {
            shape.push(fields.length(sizes)?);
        }
        let mut max_shape: Vec<_> = shape.iter().map(|extent| Some(*extent)).collect();
        if flags & 1 != 0 {
            for most in &mut max_shape {
                let limit = fields.length(sizes)?;
                *most = (limit != ones(sizes.length)).then_some(limit);
            }
        }
        if !null && product(&shape).is_none() {
            return Err(place.corrupt(format!("the number of elements overflows: {shape:?}")));
        }
        Ok(Self { shape, max_shape, null })
    }

    /// Encodes the message in version 1 or 2. The maximum is always included, so that nothing moves when the shape grows.
    pub(crate) fn encode(&self, version: u8, sizes: Sizes) -> Result<Vec<u8>> {
        let mut out = Encoder::new(sizes);
        let rank = self.shape.len();
        out.u8(version).limit(rank, MAX_RANK as u64, "dimensions").count(rank, 1, "dimensions");
        out.u8(u8::from(rank > 0));
        if version == 1 {
            out.zeros(5);
        } else {
            out.u8(if self.null { 2 } else { u8::from(rank > 0) });
        }
        self.shape.iter().for_each(|extent| {
            out.length(*extent);
        });
        let unlimited = ones(sizes.length);
        self.max_shape.iter().for_each(|most| {
            out.length(most.unwrap_or(unlimited));
        });
        out.finish()
    }

    /// The number of elements.
    pub(crate) fn elements(&self) -> u64 {
        if self.null { 0 } else { product(&self.shape).unwrap_or(0) }
    }
}
