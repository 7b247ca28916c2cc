//! Shared messages: committed types, and messages kept once for the whole file.

use std::sync::Arc;

use bytes::Bytes;
use hyperslab_core::{Fields, Place, Result};

use crate::encode::Encoder;
use crate::file::{File, FileFields, Sizes};
use crate::header::{Header, Message, kind};
use crate::heap::fractal::FractalHeap;

const STRUCTURE: &str = "shared message";

/// The target of a shared message's body.
enum Target {
    /// An object of the file (a committed type).
    Object(u64),
    /// The file's heap of shared messages, under this id.
    Heap([u8; 8]),
}

fn parse(file: &File, body: &[u8], address: u64) -> Result<Target> {
    let mut fields = Fields::new(body, file.place(STRUCTURE, address));
    let target = match fields.version(&[1, 2, 3])? {
        1 => {
            // The start of a symbol table entry: the offset of an unused name, then the address.
            fields.skip(7 + file.sizes().length)?;
            Target::Object(fields.defined(file.sizes())?)
        }
        2 => {
            fields.skip(1)?;
            Target::Object(fields.defined(file.sizes())?)
        }
        _ => match fields.u8()? {
            1 => Target::Heap(fields.array()?),
            _ => Target::Object(fields.defined(file.sizes())?),
        },
    };
    Ok(target)
}

/// The object that this body refers to, if any.
pub(crate) fn object_of(file: &File, body: &[u8], address: u64) -> Option<u64> {
    match parse(file, body, address).ok()? {
        Target::Object(object) => Some(object),
        Target::Heap(_) => None,
    }
}

/// The body of a message that refers to a committed type.
pub(crate) fn encode(object: u64, old: bool, sizes: Sizes) -> Result<Vec<u8>> {
    let mut out = Encoder::new(sizes);
    // Version 2 for libraries before 1.8, which use other kinds.
    out.u8(if old { 2 } else { 3 }).u8(if old { 0 } else { 2 }).address(Some(object));
    out.finish()
}

/// The message that this body refers to.
pub(crate) fn resolve(file: &File, kind: u16, body: &[u8], address: u64) -> Result<Message> {
    match parse(file, body, address)? {
        Target::Object(object) => {
            let header = Header::read(file, object)?;
            let found = header.all(kind).find(|message| message.flags & 2 == 0);
            found.cloned().ok_or_else(|| {
                file.place(STRUCTURE, object).corrupt(format!("the object has no message of type {kind:#x}"))
            })
        }
        Target::Heap(id) => from_heap(file, kind, &id, file.place(STRUCTURE, address)),
    }
}

/// The file's shared message table: one heap per set of message types.
#[derive(Debug)]
pub(crate) struct SharedTable {
    heaps: Vec<(u16, Arc<FractalHeap>)>,
}

impl SharedTable {
    fn heap(&self, kind: u16) -> Option<&FractalHeap> {
        self.heaps.iter().find(|(kinds, _)| holds(*kinds, kind)).map(|(_, heap)| &**heap)
    }

    fn read(file: &File) -> Result<Option<Self>> {
        let Some(extension) = file.superblock.extension else { return Ok(None) };
        let header = Header::read(file, extension)?;
        let Some(message) = header.find(file, kind::SHARED_TABLE)? else { return Ok(None) };
        let mut fields = message.fields(file, "shared message table message");
        fields.version(&[0])?;
        let address = fields.defined(file.sizes())?;
        let count = usize::from(fields.u8()?);
        let sizes = file.sizes();
        let each = 1 + 1 + 2 + 4 + 2 + 2 + 2 + 2 * sizes.address;
        let structure = "shared message table";
        let bytes = file.read_checked(structure, address, (4 + count * each + 4) as u64)?;
        let mut fields = Fields::new(&bytes, file.place(structure, address));
        fields.magic(b"SMTB")?;
        let mut heaps = Vec::with_capacity(count);
        for _ in 0..count {
            // List or tree, version.
            fields.skip(2)?;
            let kinds = fields.u16()?;
            // Smallest message, cut-offs between list and tree, count of messages.
            fields.skip(4 + 2 + 2 + 2)?;
            let _index = fields.address(sizes)?;
            if let Some(heap) = fields.address(sizes)? {
                heaps.push((kinds, Arc::new(FractalHeap::read(file, heap)?)));
            }
        }
        Ok(Some(Self { heaps }))
    }
}

/// Returns true if a heap for this set of types holds messages of a type. Types above 15 are never shared.
fn holds(kinds: u16, kind: u16) -> bool {
    kinds.checked_shr(u32::from(kind)).is_some_and(|kinds| kinds & 1 == 1)
}

fn table(file: &File) -> Result<Option<&SharedTable>> {
    if let Some(table) = file.shared.get() {
        return Ok(table.as_ref());
    }
    let table = SharedTable::read(file)?;
    Ok(file.shared.get_or_init(|| table).as_ref())
}

/// A message body that may be a reference to a shared message, for an attribute's type or space.
pub(crate) fn body(file: &File, kind: u16, body: Bytes, address: u64, shared: bool) -> Result<Message> {
    if shared {
        return resolve(file, kind, &body, address);
    }
    Ok(Message { kind, flags: 0, body, address, order: 0 })
}

/// A message that the file's heap of shared messages holds under this id.
pub(crate) fn from_heap(file: &File, kind: u16, id: &[u8], place: Place<'_>) -> Result<Message> {
    let table = table(file)?.ok_or_else(|| place.corrupt("the file has no shared message table"))?;
    let heap = table.heap(kind).ok_or_else(|| place.corrupt("no heap for messages of its type"))?;
    let (body, address) = heap.object(file, id)?;
    Ok(Message { kind, flags: 0, body, address, order: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_beyond_the_set_are_not_in_it() {
        assert!(holds(1 << kind::DATATYPE, kind::DATATYPE));
        assert!(!holds(1 << kind::DATATYPE, kind::FILL));
        for kind in [16, kind::ATTRIBUTE_INFO, kind::CACHE_IMAGE, u16::MAX] {
            assert!(!holds(u16::MAX, kind));
        }
    }
}
