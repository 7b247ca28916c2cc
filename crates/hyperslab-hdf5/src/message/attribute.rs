//! Attribute messages: a name, a type, a space and the bytes of the values.

use std::sync::Arc;

use bytes::Bytes;
use hyperslab_core::{Fields, Result};

use super::datatype::{DatatypeMessage, Type, TypeVersion};
use super::space::Space;
use crate::encode::Encoder;
use crate::file::{File, FileFields, Sizes};
use crate::header::{Message, kind};
use crate::shared;

/// The maximum factor by which a type in memory exceeds its message.
const TYPE_EXPANSION: u64 = 16;

/// An attribute that is not yet decoded.
#[derive(Debug, Clone)]
pub(crate) struct RawAttribute {
    pub(crate) name: String,
    /// The stored name, which may not be UTF-8.
    pub(crate) stored_name: Bytes,
    /// Type, space and bytes, or the error. The name is valid either way.
    pub(crate) content: Result<Content, String>,
}

/// The content of an attribute.
#[derive(Debug, Clone)]
pub(crate) struct Content {
    pub(crate) dtype: Arc<Type>,
    /// The address of the committed type, if it is one.
    pub(crate) named_type: Option<u64>,
    /// Whether the attribute's name is marked as UTF-8.
    pub(crate) utf8_name: bool,
    pub(crate) space: Space,
    pub(crate) data: Bytes,
}

impl RawAttribute {
    pub(crate) fn parse(file: &File, message: &Message) -> Result<Self> {
        let mut fields = message.fields(file, "attribute message");
        let version = fields.version(&[1, 2, 3])?;
        let flags = fields.u8()?;
        let flags = if version == 1 { 0 } else { flags };
        let [name, dtype, space] = [fields.u16()?, fields.u16()?, fields.u16()?].map(usize::from);
        let utf8_name = version == 3 && fields.u8()? == 1;
        // Version 1 pads each part to a multiple of 8 bytes.
        let padded = |length: usize| if version == 1 { length.next_multiple_of(8) } else { length };
        let at = fields.position();
        let text = fields.bytes(padded(name))?;
        let text = &text[..text.iter().position(|byte| *byte == 0).unwrap_or(name.min(text.len()))];
        file.allocate(text.len() as u64, "attribute message")?;
        let stored_name = message.body.slice(at..at + text.len());
        let name = String::from_utf8_lossy(text).into_owned();
        let parts = Parts { dtype, space, padded: [padded(dtype), padded(space)], flags, utf8_name };
        let content = parts.parse(file, message, &mut fields).map_err(|error| error.to_string());
        Ok(Self { name, stored_name, content })
    }
}

/// The sizes of the parts after the name.
struct Parts {
    dtype: usize,
    space: usize,
    padded: [usize; 2],
    flags: u8,
    utf8_name: bool,
}

impl Parts {
    fn parse(&self, file: &File, message: &Message, fields: &mut Fields<'_>) -> Result<Content> {
        let at = fields.position();
        fields.skip(self.padded[0])?;
        let body = message.body.slice(at..at + self.dtype);
        let address = message.address.saturating_add(at as u64);
        let named_type = (self.flags & 1 != 0).then(|| shared::object_of(file, &body, address)).flatten();
        let dtype = shared::body(file, kind::DATATYPE, body, address, self.flags & 1 != 0)?;
        // Many attributes may share one type, and each holds a copy.
        file.allocate(TYPE_EXPANSION * dtype.body.len() as u64, "datatype message")?;
        let dtype = Type::parse(&mut dtype.fields(file, "datatype message"))?;
        let at = fields.position();
        fields.skip(self.padded[1])?;
        let body = message.body.slice(at..at + self.space);
        let address = message.address.saturating_add(at as u64);
        let space = shared::body(file, kind::DATASPACE, body, address, self.flags & 2 != 0)?;
        let space = Space::parse(&mut space.fields(file, "dataspace message"), file.sizes())?;
        let place = fields.place();
        let bytes = space.elements().checked_mul(dtype.size as u64).and_then(|n| usize::try_from(n).ok());
        let bytes = bytes.ok_or_else(|| place.corrupt("the values are larger than memory"))?;
        let at = fields.position();
        fields.skip(bytes)?;
        let data = message.body.slice(at..at + bytes);
        Ok(Content { dtype: dtype.into(), named_type, utf8_name: self.utf8_name, space, data })
    }
}

impl Content {
    /// Values with a type of their own.
    pub(crate) fn new(dtype: Type, space: Space, data: impl Into<Bytes>) -> Self {
        Self { dtype: dtype.into(), named_type: None, utf8_name: false, space, data: data.into() }
    }

    /// Encodes the message of an attribute with this name: version 3, or 1 for old-style objects (type version 2).
    pub(crate) fn encode(&self, name: &str, version: TypeVersion, sizes: Sizes) -> Result<Vec<u8>> {
        let old = version < 3;
        let dtype = match self.named_type {
            Some(address) => shared::encode(address, old, sizes)?,
            None => self.dtype.encode(version, sizes)?,
        };
        let space = self.space.encode(if old && !self.space.null { 1 } else { 2 }, sizes)?;
        let mut out = Encoder::new(sizes);
        // Version 1 has no committed types.
        let number = if !old { 3 } else { 1 + u8::from(self.named_type.is_some()) };
        out.u8(number).u8(u8::from(self.named_type.is_some()));
        out.count(name.len() + 1, 2, "bytes of an attribute's name");
        out.count(dtype.len(), 2, "bytes of an attribute's datatype").count(
            space.len(),
            2,
            "bytes of a dataspace",
        );
        let unit = if number == 1 { 8 } else { 1 };
        if !old {
            out.u8(u8::from(self.utf8_name || !name.is_ascii()));
        }
        for part in [&[name.as_bytes(), &[0]].concat(), &dtype, &space] {
            let from = out.len();
            out.put(part).pad(from, unit);
        }
        out.put(&self.data);
        out.finish()
    }
}
