//! Fill values.

use hyperslab_core::Result;

use crate::encode::Encoder;
use crate::file::{File, FileFields, Sizes};
use crate::header::{Header, kind};

/// The bytes of the fill value, as stored; `None` where none was set, which means zeros.
pub(crate) fn read(file: &File, header: &Header) -> Result<Option<Vec<u8>>> {
    if let Some(message) = header.find(file, kind::FILL)? {
        let mut fields = message.fields(file, "fill value message");
        let version = fields.version(&[1, 2, 3])?;
        let defined = if version == 3 {
            fields.u8()? & 0x20 != 0
        } else {
            // Times of allocation and writing; version 1 always has a size, which may be zero.
            fields.skip(2)?;
            fields.u8()? != 0 || version == 1
        };
        if defined {
            // Before version 3 the size is signed, and a negative one means that none was set.
            if version < 3 && fields.rest().get(3).is_some_and(|byte| byte & 0x80 != 0) {
                return Ok(None);
            }
            let size = fields.count_u32(1)?;
            return (size > 0).then(|| fields.bytes(size).map(<[u8]>::to_vec)).transpose();
        }
        if version == 3 {
            return Ok(None);
        }
    }
    let Some(message) = header.find(file, kind::OLD_FILL)? else { return Ok(None) };
    let mut fields = message.fields(file, "old fill value message");
    let size = fields.count_u32(1)?;
    (size > 0).then(|| fields.bytes(size).map(<[u8]>::to_vec)).transpose()
}

/// When space for elements is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Allocation {
    Early,
    Late,
    Incremental,
}

impl Allocation {
    const fn code(self) -> u8 {
        match self {
            Self::Early => 1,
            Self::Late => 2,
            Self::Incremental => 3,
        }
    }
}

/// The message. The value is written where someone set one, "if set" in libhdf5's words.
pub(crate) fn encode(
    version: u8,
    allocation: Allocation,
    value: Option<&[u8]>,
    sizes: Sizes,
) -> Result<Vec<u8>> {
    const IF_SET: u8 = 2;
    let mut out = Encoder::new(sizes);
    out.u8(version);
    if version == 3 {
        out.u8(allocation.code() | IF_SET << 2 | u8::from(value.is_some()) << 5);
    } else {
        out.u8(allocation.code()).u8(IF_SET).u8(1);
    }
    if let Some(value) = value {
        out.count(value.len(), 4, "bytes of a fill value").put(value);
    } else if version < 3 {
        out.u32(0);
    }
    out.finish()
}
