//! Variable-length elements: text, lists, references, and structs with such members.

use std::sync::Arc;

use hyperslab_core::{Data, Elements, Fields, Place, Result};

use super::{Element, MemberStep, Step};
use crate::file::{File, FileFields};
use crate::message::datatype::ReferenceKind;
use crate::references;

/// The heaps of a file. An object may be referenced many times, so memory for elements is drawn from the operation's budget,
/// which all attributes of a node share.
#[derive(Debug)]
pub(crate) struct Heaps<'a> {
    pub(crate) file: &'a Arc<File>,
    place: Place<'a>,
}

impl<'a> Heaps<'a> {
    pub(crate) const fn new(file: &'a Arc<File>, place: Place<'a>) -> Self {
        Self { file, place }
    }

    /// Draws memory for elements before it is allocated.
    fn allocate(&self, bytes: u64) -> Result<()> {
        self.file.allocate(bytes, self.place.structure)
    }

    /// Appends the bytes of a stored variable-length element (count, heap address, heap index). Returns the count. `each` bytes
    /// make one item.
    fn fetch(&self, stored: &[u8], each: usize, out: &mut Vec<u8>) -> Result<u32> {
        let mut fields = Fields::new(stored, self.place);
        let count = fields.u32()?;
        let address = fields.address(self.file.sizes())?.filter(|address| *address != 0);
        let index = fields.u32()?;
        let Some(address) = address.filter(|_| count > 0) else { return Ok(0) };
        let bytes = u64::from(count).saturating_mul(each as u64);
        self.allocate(bytes)?;
        let collection = self.file.collection(address)?;
        let object = collection.object(self.file, index)?;
        match usize::try_from(bytes).ok().and_then(|bytes| object.get(..bytes)) {
            Some(held) => out.extend_from_slice(held),
            None => {
                let problem = format!("{bytes} bytes expected in a heap object of {}", object.len());
                return Err(self.place.corrupt(problem));
            }
        }
        Ok(count)
    }
}

impl Element {
    /// Converts stored elements of any type.
    pub(crate) fn elements(&self, stored: &[u8], heaps: &Heaps<'_>) -> Result<Elements> {
        let count = stored.len() / self.stored;
        if let Some(size) = self.size {
            let bytes = count
                .checked_mul(size)
                .ok_or_else(|| heaps.place.corrupt("the elements are larger than memory"))?;
            let mut out = heaps.file.zeroed(bytes, heaps.place.structure)?;
            if size > 0 {
                self.convert(&stored[..count * self.stored], &mut out, heaps.place)?;
            }
            return Ok(Elements::fixed(out));
        }
        let data = match &self.step {
            Step::Text => self.texts(stored, heaps)?,
            Step::List(base) => self.lists(base, stored, heaps)?,
            Step::Reference(kind) => self.references(*kind, stored, heaps)?,
            Step::Array { count: each, base } => {
                Data::FixedList { each: *each, items: Box::new(base.elements(stored, heaps)?) }
            }
            Step::Struct(members) => {
                let members = members.iter().map(|member| self.member(member, stored, heaps));
                Data::Struct { length: count, members: members.collect::<Result<_>>()? }
            }
            _ => return Err(heaps.place.corrupt(format!("{} has no fixed size", self.dtype))),
        };
        Ok(Elements { data, validity: None })
    }

    fn member(&self, member: &MemberStep, stored: &[u8], heaps: &Heaps<'_>) -> Result<Elements> {
        let bytes = stored.len() / self.stored * member.element.stored;
        heaps.allocate(bytes as u64)?;
        let mut column = Vec::with_capacity(bytes);
        for element in stored.chunks_exact(self.stored) {
            column.extend_from_slice(&element[member.from..member.from + member.element.stored]);
        }
        member.element.elements(&column, heaps)
    }

    /// Reserves the offsets of these elements. The first one is set.
    fn offsets(&self, stored: &[u8], heaps: &Heaps<'_>) -> Result<Vec<u64>> {
        let count = stored.len() / self.stored + 1;
        heaps.allocate(8 * count as u64)?;
        let mut offsets = Vec::with_capacity(count);
        offsets.push(0);
        Ok(offsets)
    }

    fn texts(&self, stored: &[u8], heaps: &Heaps<'_>) -> Result<Data> {
        let (mut offsets, mut bytes) = (self.offsets(stored, heaps)?, Vec::new());
        for element in stored.chunks_exact(self.stored) {
            let before = bytes.len();
            heaps.fetch(element, 1, &mut bytes)?;
            // libhdf5 returns C strings, so bytes after a NUL are ignored.
            if let Some(end) = bytes[before..].iter().position(|byte| *byte == 0) {
                bytes.truncate(before + end);
            }
            offsets.push(bytes.len() as u64);
        }
        Ok(Data::Variable { offsets, bytes: bytes.into() })
    }

    fn lists(&self, base: &Self, stored: &[u8], heaps: &Heaps<'_>) -> Result<Data> {
        let (mut offsets, mut items) = (self.offsets(stored, heaps)?, Vec::new());
        let mut total = 0;
        for element in stored.chunks_exact(self.stored) {
            total += u64::from(heaps.fetch(element, base.stored, &mut items)?);
            offsets.push(total);
        }
        Ok(Data::List { offsets, items: Box::new(base.elements(&items, heaps)?) })
    }

    fn references(&self, kind: ReferenceKind, stored: &[u8], heaps: &Heaps<'_>) -> Result<Data> {
        let (mut offsets, mut bytes) = (self.offsets(stored, heaps)?, Vec::new());
        for element in stored.chunks_exact(self.stored) {
            let text = references::describe(heaps.file, kind, element, heaps.place)?;
            heaps.allocate(text.len() as u64)?;
            bytes.extend_from_slice(text.as_bytes());
            offsets.push(bytes.len() as u64);
        }
        Ok(Data::Variable { offsets, bytes: bytes.into() })
    }
}
