//! Converts elements in memory to stored bytes: the inverse of reading.

use hyperslab_core::{DType, Data, Elements, Error, Result, swap_bytes};

use super::{Element, MemberStep, Step};
use crate::message::datatype::{Padding, ReferenceKind};
use crate::references;

/// Stores variable-length elements.
pub(crate) trait Keeper {
    /// Stores these bytes. Returns the heap collection's address and the object's number in it.
    fn keep(&mut self, bytes: &[u8]) -> Result<(u64, u32)>;

    /// The address of the object at this path.
    fn object(&mut self, path: &str) -> Result<u64>;

    /// Returns true if there is an object at this path.
    fn has_object(&mut self, path: &str) -> bool;
}

impl Element {
    /// Why elements of this type can be read but not written; `None` if they can be.
    pub(crate) fn unstorable(&self) -> Option<String> {
        match &self.step {
            Step::Copy
            | Step::Swap(_)
            | Step::Trim(_)
            | Step::Text
            | Step::Integer(_)
            | Step::Float(_)
            | Step::Reference(ReferenceKind::Object | ReferenceKind::Region) => None,
            Step::Reference(ReferenceKind::Revised) => Some("references in the form of HDF5 1.12".to_owned()),
            Step::Struct(members) => members.iter().find_map(|member| member.element.unstorable()),
            Step::Array { base, .. } | Step::List(base) => base.unstorable(),
        }
    }

    /// Appends the stored bytes of these elements.
    pub(crate) fn store(
        &self,
        elements: &Elements,
        keeper: &mut dyn Keeper,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        if elements.validity.as_ref().is_some_and(|validity| validity.missing() > 0) {
            return Err(Error::invalid("HDF5 cannot hold missing elements"));
        }
        match (&self.step, &elements.data) {
            (_, Data::Fixed(bytes)) => self.store_fixed(bytes, out),
            (Step::Text, Data::Variable { offsets, bytes }) => {
                self.variable(offsets, 1, bytes, keeper, out, &|text| match text.contains(&0) {
                    true => Err(Error::invalid("HDF5 text cannot contain a NUL character")),
                    false => Ok(()),
                })
            }
            (Step::Reference(ReferenceKind::Object), Data::Variable { offsets, bytes }) => {
                for pair in offsets.windows(2) {
                    let path = String::from_utf8_lossy(&bytes[pair[0] as usize..pair[1] as usize]);
                    let address = if path.is_empty() { 0 } else { keeper.object(&path)? };
                    out.extend_from_slice(&address.to_le_bytes()[..self.stored.min(8)]);
                }
                Ok(())
            }
            (Step::Reference(ReferenceKind::Region), Data::Variable { offsets, bytes }) => {
                for pair in offsets.windows(2) {
                    let text = String::from_utf8_lossy(&bytes[pair[0] as usize..pair[1] as usize]);
                    references::store_region(&text, self.stored, keeper, out)?;
                }
                Ok(())
            }
            // Variable-length bytes are stored as lists of unsigned bytes.
            (Step::List(base), Data::Variable { offsets, bytes }) if base.dtype == DType::UInt8 => {
                self.variable(offsets, 1, bytes, keeper, out, &|_| Ok(()))
            }
            (Step::List(base), Data::List { offsets, items }) => {
                let mut stored = Vec::new();
                base.store(items, keeper, &mut stored)?;
                self.variable(offsets, base.stored, &stored, keeper, out, &|_| Ok(()))
            }
            (Step::Array { base, .. }, Data::FixedList { items, .. }) => base.store(items, keeper, out),
            (Step::Struct(steps), Data::Struct { length, members }) => {
                self.columns(steps, *length, members, keeper, out)
            }
            _ => Err(Error::invalid(format!("the elements do not have the layout of {}", self.dtype))),
        }
    }

    /// Elements of fixed size.
    fn store_fixed(&self, bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let from = out.len();
        match &self.step {
            Step::Copy => out.extend_from_slice(bytes),
            Step::Swap(unit) => {
                out.extend_from_slice(bytes);
                swap_bytes(*unit, &mut out[from..]);
            }
            Step::Trim(padding) => {
                out.extend_from_slice(bytes);
                out[from..].chunks_exact_mut(self.stored).for_each(|text| pad(*padding, text));
            }
            Step::Struct(members) => {
                let size = self.size.unwrap_or(0).max(1);
                for element in bytes.chunks_exact(size) {
                    let at = out.len();
                    out.resize(at + self.stored, 0);
                    for member in members {
                        let length = member.element.size.unwrap_or(0);
                        let mut part = Vec::with_capacity(member.element.stored);
                        member.element.store_fixed(&element[member.to..member.to + length], &mut part)?;
                        out[at + member.from..][..part.len()].copy_from_slice(&part);
                    }
                }
            }
            Step::Array { base, .. } => base.store_fixed(bytes, out)?,
            Step::Integer(plan) => plan.store(bytes, self.size.unwrap_or(0), out),
            Step::Float(plan) => plan.store(bytes, self.size.unwrap_or(0), out),
            _ => return Err(Error::invalid(format!("{} cannot be written", self.dtype))),
        }
        Ok(())
    }

    fn variable(
        &self,
        offsets: &[u64],
        each: usize,
        bytes: &[u8],
        keeper: &mut dyn Keeper,
        out: &mut Vec<u8>,
        check: &dyn Fn(&[u8]) -> Result<()>,
    ) -> Result<()> {
        for pair in offsets.windows(2) {
            let (start, end) = (pair[0] as usize * each, pair[1] as usize * each);
            let item =
                bytes.get(start..end).ok_or_else(|| Error::invalid("the offsets reach past the elements"))?;
            check(item)?;
            let count = u32::try_from(pair[1] - pair[0])
                .map_err(|_| Error::invalid("an element of more than 2^32 items"))?;
            let (address, index) = if item.is_empty() { (0, 0) } else { keeper.keep(item)? };
            out.extend_from_slice(&count.to_le_bytes());
            out.extend_from_slice(&address.to_le_bytes()[..(self.stored - 8).min(8)]);
            out.extend_from_slice(&index.to_le_bytes());
        }
        Ok(())
    }

    fn columns(
        &self,
        steps: &[MemberStep],
        length: usize,
        members: &[Elements],
        keeper: &mut dyn Keeper,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        if steps.len() != members.len() {
            return Err(Error::invalid(format!("{} members, {} expected", members.len(), steps.len())));
        }
        let from = out.len();
        out.resize(from + length * self.stored, 0);
        for (step, member) in steps.iter().zip(members) {
            let (each, mut column) = (step.element.stored, Vec::new());
            step.element.store(member, keeper, &mut column)?;
            if column.len() != length * each {
                return Err(Error::invalid("the members differ in length"));
            }
            for (row, part) in column.chunks_exact(each).enumerate() {
                out[from + row * self.stored + step.from..][..each].copy_from_slice(part);
            }
        }
        Ok(())
    }
}

/// Converts NUL-padded text to the padding of the file.
fn pad(padding: Padding, text: &mut [u8]) {
    if padding == Padding::Space {
        let end = text.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        text[end..].fill(b' ');
    }
}

/// Fixed-length UTF-32 text as UTF-8 with four bytes per code point, padded with NULs.
pub(crate) fn utf8_of(elements: &Elements, points: usize) -> Result<Elements> {
    let Some(bytes) = elements.as_fixed() else {
        return Err(Error::invalid(format!(
            "the elements do not have the layout of {}",
            DType::FixedText(points)
        )));
    };
    let mut out = Vec::with_capacity(bytes.len());
    for text in bytes.chunks_exact((4 * points).max(1)) {
        let from = out.len();
        for point in text.chunks_exact(4) {
            let point = u32::from_ne_bytes([point[0], point[1], point[2], point[3]]);
            let letter = char::from_u32(point)
                .ok_or_else(|| Error::invalid(format!("{point:#x} is not a Unicode character")))?;
            if letter != '\0' {
                out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
        out.resize(from + 4 * points, 0);
    }
    Ok(Elements::fixed(out))
}
