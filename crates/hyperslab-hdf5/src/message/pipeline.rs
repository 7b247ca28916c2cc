//! The filter pipeline message.

use hyperslab_core::{Fields, Result, StoredFilter};

use crate::encode::Encoder;
use crate::file::{FileFields, Sizes};

/// One filter, as described in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FilterSpec {
    pub(crate) id: u16,
    pub(crate) name: String,
    /// Client data: the filter's parameters.
    pub(crate) values: Vec<u32>,
    /// Whether a chunk may be stored without it.
    pub(crate) optional: bool,
}

/// The filters, in writing order.
pub(crate) fn parse(fields: &mut Fields<'_>) -> Result<Vec<FilterSpec>> {
    let version = fields.version(&[1, 2])?;
    let place = fields.place();
    let count = usize::from(fields.u8()?);
    // The mask of skipped filters has 32 bits.
    if count > 32 {
        return Err(place.corrupt(format!("{count} filters")));
    }
    if version == 1 {
        fields.skip(6)?;
    }
    (0..count).map(|_| filter(fields, version)).collect()
}

fn filter(fields: &mut Fields<'_>, version: u8) -> Result<FilterSpec> {
    let id = fields.u16()?;
    let name_length = if version == 1 || id >= 256 { usize::from(fields.u16()?) } else { 0 };
    let optional = fields.u16()? & 1 != 0;
    let count = usize::from(fields.u16()?);
    let padded = if version == 1 { name_length.next_multiple_of(8) } else { name_length };
    let name = fields.bytes(padded)?;
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    let name = String::from_utf8_lossy(&name[..end]).into_owned();
    let place = fields.place();
    if count > fields.remaining() / 4 {
        return Err(place.corrupt(format!("{count} parameters, {} bytes left", fields.remaining())));
    }
    let values = (0..count).map(|_| fields.u32()).collect::<Result<Vec<_>>>()?;
    if version == 1 && count % 2 == 1 {
        fields.skip(4)?;
    }
    Ok(FilterSpec { id, name, values, optional })
}

/// Encodes the message. Filters that may leave a chunk unchanged are marked optional.
pub(crate) fn encode(specs: &[FilterSpec], version: u8, sizes: Sizes) -> Result<Vec<u8>> {
    let mut out = Encoder::new(sizes);
    out.u8(version).limit(specs.len(), 32, "filters").count(specs.len(), 1, "filters");
    if version == 1 {
        out.zeros(6);
    }
    for spec in specs {
        let name = if spec.name.is_empty() { Vec::new() } else { [spec.name.as_bytes(), &[0]].concat() };
        out.u16(spec.id);
        let unit = if version == 1 { 8 } else { 1 };
        if version == 1 || spec.id >= 256 {
            out.count(name.len().next_multiple_of(unit), 2, "bytes of a filter's name");
        }
        out.u16(u16::from(spec.optional)).count(spec.values.len(), 2, "parameters of a filter");
        if version == 1 || spec.id >= 256 {
            let from = out.len();
            out.put(&name).pad(from, unit);
        }
        spec.values.iter().for_each(|value| {
            out.u32(*value);
        });
        if version == 1 && spec.values.len() % 2 == 1 {
            out.zeros(4);
        }
    }
    out.finish()
}

impl FilterSpec {
    /// A filter that chunks may skip, unless it is a checksum or changes values.
    pub(crate) const fn new(id: u16, name: String, values: Vec<u32>) -> Self {
        use crate::filters::id::{FLETCHER32, SCALE_OFFSET};
        Self { id, name, values, optional: !matches!(id, FLETCHER32 | SCALE_OFFSET) }
    }

    /// Converts to the core's model.
    pub(crate) fn stored(&self) -> StoredFilter {
        let (id, name, values) = (self.id.into(), self.name.clone(), self.values.clone());
        StoredFilter { id, name, values, optional: self.optional }
    }

    /// The filter of this number; `None` if HDF5 has no such numbers.
    pub(crate) fn from_stored(stored: &StoredFilter) -> Option<Self> {
        let (id, name, values) = (stored.id.try_into().ok()?, stored.name.clone(), stored.values.clone());
        Some(Self { id, name, values, optional: stored.optional })
    }
}
