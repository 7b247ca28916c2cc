//! Fill values.

use hyperslab_core::{FillState, Result, StoredFill};

use crate::encode::Encoder;
use crate::file::{File, FileFields, Sizes};
use crate::header::{Header, kind};

/// When space for elements is allocated.
pub(crate) const EARLY: u8 = 1;
pub(crate) const LATE: u8 = 2;
pub(crate) const INCREMENTAL: u8 = 3;
/// The fill value is written if it is set ("if set" in libhdf5).
pub(crate) const IF_SET: u8 = 2;

/// The fill value message, and the stored bytes of the value; `None` if it is not set, which means zeros.
pub(crate) fn read(file: &File, header: &Header) -> Result<(StoredFill, Option<Vec<u8>>)> {
    let mut stored = StoredFill { allocation: LATE, time: IF_SET, value: FillState::Default };
    if let Some(message) = header.find(file, kind::FILL)? {
        let mut fields = message.fields(file, "fill value message");
        let version = fields.version(&[1, 2, 3])?;
        let defined = if version == 3 {
            let flags = fields.u8()?;
            (stored.allocation, stored.time) = (flags & 3, flags >> 2 & 3);
            if flags & 0x10 != 0 {
                stored.value = FillState::Undefined;
            }
            flags & 0x20 != 0
        } else {
            // Version 1 always has a size, which may be zero.
            (stored.allocation, stored.time) = (fields.u8()?, fields.u8()?);
            fields.u8()? != 0 || version == 1
        };
        if defined {
            // Before version 3 the size is signed, and a negative size means that the value is not set.
            if version < 3 && fields.rest().get(3).is_some_and(|byte| byte & 0x80 != 0) {
                stored.value = FillState::Undefined;
                return Ok((stored, None));
            }
            let size = fields.count_u32(1)?;
            if size > 0 {
                stored.value = FillState::Set;
            }
            let value = (size > 0).then(|| fields.bytes(size).map(<[u8]>::to_vec)).transpose()?;
            return Ok((stored, value));
        }
        if version == 3 {
            return Ok((stored, None));
        }
        stored.value = FillState::Undefined;
    }
    let Some(message) = header.find(file, kind::OLD_FILL)? else { return Ok((stored, None)) };
    let mut fields = message.fields(file, "old fill value message");
    let size = fields.count_u32(1)?;
    let value = (size > 0).then(|| fields.bytes(size).map(<[u8]>::to_vec)).transpose()?;
    if value.is_some() {
        stored.value = FillState::Set;
    }
    Ok((stored, value))
}

/// Encodes the message.
pub(crate) fn encode(version: u8, stored: StoredFill, value: Option<&[u8]>, sizes: Sizes) -> Result<Vec<u8>> {
    let mut out = Encoder::new(sizes);
    let undefined = value.is_none() && stored.value == FillState::Undefined;
    out.u8(version);
    if version == 3 {
        let state = u8::from(undefined) << 4 | u8::from(value.is_some()) << 5;
        out.u8(stored.allocation & 3 | (stored.time & 3) << 2 | state);
    } else {
        out.u8(stored.allocation).u8(stored.time).u8(u8::from(!undefined));
    }
    if let Some(value) = value {
        out.count(value.len(), 4, "bytes of a fill value").put(value);
    } else if version < 3 && !undefined {
        out.u32(0);
    }
    out.finish()
}
