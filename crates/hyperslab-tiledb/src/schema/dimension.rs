//! Dimensions: type, domain and tile extent.

use hyperslab_core::{DType, Fields, Place, Result};

use super::{put_text, text};
use crate::datatype::{CellValues, Datatype, Number};
use crate::pipeline::Pipeline;

/// One dimension.
#[derive(Debug, Clone)]
pub struct Dimension {
    /// Its name; may be empty.
    pub name: String,
    /// The type of its coordinates.
    pub datatype: Datatype,
    /// The number of values per coordinate: one, or variable for strings.
    pub values: CellValues,
    /// The filters for its coordinates in sparse arrays.
    pub pipeline: Pipeline,
    /// The lowest and the highest coordinate as bytes; empty for strings.
    pub domain: Vec<u8>,
    /// The extent of a tile as bytes.
    pub extent: Option<Vec<u8>>,
}

impl Dimension {
    /// Parses all dimensions of a schema. Before version 5, they share one type and have no pipelines.
    pub(super) fn parse_all(fields: &mut Fields<'_>, version: u32, coords: &Pipeline) -> Result<Vec<Self>> {
        let place = fields.place();
        let shared = if version < 5 { Some(Datatype::parse(fields.u8()?, place)?) } else { None };
        let count = fields.count_u32(5)?;
        (0..count).map(|_| Self::parse(fields, shared, coords)).collect()
    }

    fn parse(fields: &mut Fields<'_>, shared: Option<Datatype>, coords: &Pipeline) -> Result<Self> {
        let name = text(fields)?;
        let place = fields.place();
        let (datatype, values, pipeline, domain_bytes) = match shared {
            Some(datatype) => (datatype, CellValues::Fixed(1), coords.clone(), 2 * datatype.size()),
            None => {
                let datatype = Datatype::parse(fields.u8()?, place)?;
                let values = CellValues::from_code(fields.u32()?);
                let pipeline = Pipeline::parse(fields)?;
                (datatype, values, pipeline, fields.count_u64(1)?)
            }
        };
        let expected = if values == CellValues::Variable { 0 } else { 2 * datatype.size() };
        if domain_bytes != expected || !matches!(values, CellValues::Variable | CellValues::Fixed(1)) {
            return Err(place.corrupt(format!("a domain of {domain_bytes} bytes, expected {expected}")));
        }
        let domain = fields.bytes(domain_bytes)?.to_vec();
        let extent = if fields.u8()? == 0 { Some(fields.bytes(datatype.size())?.to_vec()) } else { None };
        let dimension = Self { name, datatype, values, pipeline, domain, extent };
        if let (Some(extent), false) = (&dimension.extent, dimension.is_text()) {
            let zero = if datatype.number().is_float() {
                float(datatype.number(), extent).partial_cmp(&0.0) != Some(std::cmp::Ordering::Greater)
            } else {
                integer(datatype.number(), extent) == 0
            };
            if zero {
                return Err(place.corrupt("a tile extent of zero"));
            }
        }
        Ok(dimension)
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put_text(&self.name, out);
        out.push(self.datatype.code());
        out.extend(self.values.code().to_le_bytes());
        self.pipeline.encode(out);
        out.extend((self.domain.len() as u64).to_le_bytes());
        out.extend(&self.domain);
        match &self.extent {
            Some(extent) => {
                out.push(0);
                out.extend(extent);
            }
            None => out.push(1),
        }
    }

    /// Returns true if it is a dimension of strings.
    #[must_use]
    pub fn is_text(&self) -> bool {
        self.values == CellValues::Variable
    }

    /// The type of a coordinate.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.datatype.dtype(self.values)
    }

    /// The lowest and the highest coordinate of an integer dimension.
    #[must_use]
    pub fn bounds(&self) -> Option<(i128, i128)> {
        if self.is_text() || self.datatype.number().is_float() {
            return None;
        }
        let size = self.datatype.size();
        let number = self.datatype.number();
        Some((integer(number, &self.domain[..size]), integer(number, &self.domain[size..])))
    }

    /// The tile extent of an integer dimension; the whole domain if none is set.
    #[must_use]
    pub fn tile_extent(&self) -> Option<u64> {
        let (low, high) = self.bounds()?;
        match &self.extent {
            // An extent is never negative, so extents of signed types are read as unsigned.
            Some(extent) => {
                let mut wide = [0; 8];
                wide[..extent.len()].copy_from_slice(extent);
                Some(u64::from_le_bytes(wide))
            }
            None => u64::try_from(high - low + 1).ok(),
        }
    }

    /// The number of cells in an integer domain; `None` if it exceeds `u64`.
    #[must_use]
    pub fn cells(&self) -> Option<u64> {
        let (low, high) = self.bounds()?;
        u64::try_from(high.checked_sub(low)?.checked_add(1)?).ok()
    }

    pub(super) fn check_dense(&self, place: Place<'_>) -> Result<()> {
        let Some((low, high)) = self.bounds() else {
            return Err(
                place.corrupt(format!("dimension {:?} of a dense array is not of integers", self.name))
            );
        };
        if low > high {
            return Err(place.corrupt(format!("dimension {:?} has the domain {low} to {high}", self.name)));
        }
        if self.cells().is_none() || self.tile_extent().is_none_or(|extent| extent == 0) {
            return Err(place.unsupported(format!("dimension {:?} of 2^64 cells", self.name)));
        }
        Ok(())
    }
}

/// Decodes an integer.
pub(crate) fn integer(number: Number, bytes: &[u8]) -> i128 {
    let mut wide = [0; 8];
    let size = number.size().min(bytes.len());
    wide[..size].copy_from_slice(&bytes[..size]);
    let word = u64::from_le_bytes(wide);
    if number.is_signed() {
        let shift = 64 - 8 * number.size() as u32;
        i128::from(((word << shift) as i64) >> shift)
    } else {
        i128::from(word)
    }
}

/// Encodes an integer that must be in the type's range.
pub(crate) fn integer_bytes(number: Number, value: i128) -> Vec<u8> {
    value.to_le_bytes()[..number.size()].to_vec()
}

/// Decodes a float.
pub(crate) fn float(number: Number, bytes: &[u8]) -> f64 {
    match (number, bytes) {
        (Number::F32, &[a, b, c, d, ..]) => f64::from(f32::from_le_bytes([a, b, c, d])),
        (_, &[a, b, c, d, e, f, g, h, ..]) => f64::from_le_bytes([a, b, c, d, e, f, g, h]),
        _ => f64::NAN,
    }
}
