//! Links: names in a group.

use hyperslab_core::{Fields, Place, Result};

use crate::encode::Encoder;
use crate::file::{FileFields, Sizes};
use crate::message::datatype::width;

/// A link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) name: String,
    pub(crate) target: LinkTarget,
    /// The creation order, if it is tracked.
    pub(crate) order: Option<i64>,
    /// Whether the name is marked as UTF-8.
    pub(crate) utf8: bool,
}

/// The target of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LinkTarget {
    /// To the object header at this address.
    Hard(u64),
    /// To a path.
    Soft(String),
    /// To a path in another file.
    External { file: String, path: String },
    /// A kind known only to the writing program.
    Other(u8),
}

/// Refuses names that cannot occur in a path. They could lead back to the group itself, in an endless cycle.
pub(crate) fn check_name(name: &str, place: Place<'_>) -> Result<()> {
    if name.is_empty() || name == "." || name.contains('/') {
        return Err(place.corrupt(format!("invalid link name {name:?}")));
    }
    Ok(())
}

/// A stored link. Its name may not be UTF-8, and its target may be of a kind known only to the writer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredLink {
    pub(crate) name: Vec<u8>,
    /// The creation order, if it is tracked.
    pub(crate) order: Option<i64>,
    /// The whole message.
    pub(crate) message: Vec<u8>,
}

impl StoredLink {
    /// The link in this message, byte for byte, without padding.
    pub(crate) fn parse(message: &[u8], place: Place<'_>, sizes: Sizes) -> Result<Self> {
        let mut fields = Fields::new(message, place);
        let (link, name) = Link::parse_named(&mut fields, sizes)?;
        let message = message[..fields.position()].to_vec();
        Ok(Self { name: name.to_vec(), order: link.order, message })
    }

    /// A new link.
    pub(crate) fn new(link: &Link, sizes: Sizes) -> Result<Self> {
        Ok(Self { name: link.name.clone().into(), order: link.order, message: link.encode(sizes)? })
    }
}

impl Link {
    pub(crate) fn parse(fields: &mut Fields<'_>, sizes: Sizes) -> Result<Self> {
        Ok(Self::parse_named(fields, sizes)?.0)
    }

    /// The link, and its stored name.
    fn parse_named<'a>(fields: &mut Fields<'a>, sizes: Sizes) -> Result<(Self, &'a [u8])> {
        fields.version(&[1])?;
        let flags = fields.u8()?;
        let kind = if flags & 8 != 0 { fields.u8()? } else { 0 };
        let order = if flags & 4 != 0 { Some(fields.i64()?) } else { None };
        let utf8 = flags & 16 != 0 && fields.u8()? == 1;
        let length = fields.uint(1 << (flags & 3))?;
        let place = fields.place();
        let length = usize::try_from(length).ok().filter(|length| *length <= fields.remaining());
        let length = length.ok_or_else(|| place.corrupt("a name is longer than the message"))?;
        let stored = fields.bytes(length)?;
        let name = String::from_utf8_lossy(stored).into_owned();
        check_name(&name, place)?;
        let target = match kind {
            0 => LinkTarget::Hard(fields.defined(sizes)?),
            1 => {
                let length = usize::from(fields.u16()?);
                LinkTarget::Soft(String::from_utf8_lossy(fields.bytes(length)?).into_owned())
            }
            64 => {
                // Length, then a byte of version and flags.
                fields.skip(3)?;
                LinkTarget::External { file: fields.text()?, path: fields.text()? }
            }
            other => {
                let length = usize::from(fields.u16()?);
                fields.skip(length)?;
                LinkTarget::Other(other)
            }
        };
        Ok((Self { name, target, order, utf8 }, stored))
    }
}

impl Link {
    /// The message.
    pub(crate) fn encode(&self, sizes: Sizes) -> Result<Vec<u8>> {
        let mut out = Encoder::new(sizes);
        let length = self.name.len() as u64;
        // The width of the name's length is a power of two.
        let exponent = match width(length) {
            1 => 0,
            2 => 1,
            3 | 4 => 2,
            _ => 3,
        };
        let (kind, utf8) = (self.target.kind(), self.utf8 || !self.name.is_ascii());
        let flags =
            exponent | u8::from(self.order.is_some()) << 2 | u8::from(kind != 0) << 3 | u8::from(utf8) << 4;
        out.u8(1).u8(flags);
        if kind != 0 {
            out.u8(kind);
        }
        if let Some(order) = self.order {
            out.put(&order.to_le_bytes());
        }
        if utf8 {
            out.u8(1);
        }
        out.uint(length, 1 << exponent).put(self.name.as_bytes());
        match &self.target {
            LinkTarget::Hard(address) => {
                out.address(Some(*address));
            }
            LinkTarget::Soft(path) => {
                out.count(path.len(), 2, "bytes of a soft link's target").put(path.as_bytes());
            }
            LinkTarget::External { file, path } => {
                out.count(file.len() + path.len() + 3, 2, "bytes of an external link's target").u8(0);
                out.put(file.as_bytes()).u8(0).put(path.as_bytes()).u8(0);
            }
            LinkTarget::Other(kind) => {
                out.refuse(&format!(
                    "a link of kind {kind}, whose target is known only to the program that wrote it"
                ));
            }
        }
        out.finish()
    }
}

impl LinkTarget {
    const fn kind(&self) -> u8 {
        match self {
            Self::Hard(_) => 0,
            Self::Soft(_) => 1,
            Self::External { .. } => 64,
            Self::Other(kind) => *kind,
        }
    }
}
