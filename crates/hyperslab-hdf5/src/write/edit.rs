//! Changes of an object's header in its place.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashSet};

use hyperslab_core::{Error, Result};

use super::index::Patch;
use super::object::{NewHeader, NewMessage, Style};
use super::output::Output;
use crate::encode::{Encoder, renew_sum};
use crate::file::Sizes;
use crate::header::{Header, Message, kind};

/// What is changed in an object's header.
#[derive(Debug)]
pub(crate) struct HeaderEdit<'a> {
    header: &'a Header,
    output: &'a Output,
    /// Version 2 headers: blocks with sums, and the first byte of each that changed.
    blocks: BTreeMap<u64, (Vec<u8>, usize)>,
    /// Version 1 headers have no sums.
    plain: Vec<Patch>,
    added: Vec<NewMessage>,
    forgotten: HashSet<u64>,
}

impl<'a> HeaderEdit<'a> {
    pub(crate) fn new(header: &'a Header, output: &'a Output) -> Self {
        let (blocks, plain, added, forgotten) = (BTreeMap::new(), Vec::new(), Vec::new(), HashSet::new());
        Self { header, output, blocks, plain, added, forgotten }
    }

    const fn is_old(&self) -> bool {
        self.header.blocks.is_empty()
    }

    /// Bytes before a message's body.
    const fn head(&self) -> usize {
        if self.is_old() {
            8
        } else if self.header.ordered {
            6
        } else {
            4
        }
    }

    /// Replaces bytes of a message's body.
    pub(crate) fn set(&mut self, message: &Message, at: usize, bytes: &[u8]) -> Result<()> {
        if message.flags & 2 != 0 || at + bytes.len() > message.body.len() {
            return Err(Error::unsupported(
                self.output.name().as_ref(),
                format!("changing a message of kind {:#x} that is shared or too small", message.kind),
            ));
        }
        self.replace(message.address + at as u64, bytes)
    }

    /// Makes a message nothing.
    pub(crate) fn forget(&mut self, message: &Message) -> Result<()> {
        self.forgotten.insert(message.address);
        let kind = if self.is_old() { &[0_u8, 0][..] } else { &[0] };
        self.replace(message.address - self.head() as u64, kind)
    }

    /// Adds a message.
    pub(crate) fn push(&mut self, message: NewMessage) {
        self.added.push(message);
    }

    /// Replaces bytes of the header.
    fn replace(&mut self, address: u64, bytes: &[u8]) -> Result<()> {
        if self.is_old() {
            self.plain.push(Patch { address, bytes: bytes.to_vec() });
            return Ok(());
        }
        let inside = |(start, length): &&(u64, u64)| (*start..start + length).contains(&address);
        let Some(&(start, length)) = self.header.blocks.iter().find(inside) else {
            return Err(Error::invalid("a message outside its header"));
        };
        let (block, first) = match self.blocks.entry(start) {
            Entry::Occupied(held) => held.into_mut(),
            Entry::Vacant(free) => free.insert((self.output.read(start, length as usize)?, length as usize)),
        };
        let at = (address - start) as usize;
        block[at..at + bytes.len()].copy_from_slice(bytes);
        *first = (*first).min(at);
        Ok(())
    }

    /// Puts new messages into a new block. One that is there makes room for a pointer to it, and stands in it too.
    fn extend(&mut self, sizes: Sizes) -> Result<()> {
        let (old, head) = (self.is_old(), self.head());
        let unit = if old { 8 } else { 1 };
        let pointer = (sizes.address + sizes.length).next_multiple_of(unit);
        let fits = |message: &&Message| {
            let size = message.body.len();
            message.kind != kind::CONTINUATION
                && (size == pointer || size >= pointer + head)
                && !self.forgotten.contains(&message.address)
        };
        // Space that is free, or else the smallest message that gives enough; those that change often last.
        let rank = |message: &&Message| match message.kind {
            kind::NIL => 0,
            kind::LAYOUT | kind::DATASPACE => 2,
            _ => 1,
        };
        let messages = self.header.messages.iter().filter(fits);
        let victim = messages.min_by_key(|message| (rank(message), message.body.len()));
        let Some(victim) = victim.cloned() else {
            let name = self.output.name().as_ref();
            return Err(Error::unsupported(name, "adding to an object header without room"));
        };
        let mut block = NewHeader { style: if old { Style::Old } else { Style::New }, messages: Vec::new() };
        if victim.kind != kind::NIL {
            let (kind, flags) = (victim.kind, victim.flags);
            // It may have been changed just now.
            let body = self.body(&victim)?;
            block.messages.push(NewMessage { kind, flags, body, order: victim.order });
        }
        let added = std::mem::take(&mut self.added);
        let count = added.len();
        block.messages.extend(added);
        let block = block.encode_continuation(self.header.ordered, sizes);
        let address = self.output.append(&block)?;
        let put = |out: &mut Encoder, kind: u16, size: usize| {
            if old {
                out.u16(kind).u16(size as u16).u32(0);
            } else {
                out.u8(kind as u8).u16(size as u16).u8(0).zeros(head - 4);
            }
        };
        let mut changed = Encoder::new(sizes);
        put(&mut changed, kind::CONTINUATION, pointer);
        changed.address(Some(address)).length(block.len() as u64).pad(head, unit);
        let left = victim.body.len() - pointer;
        if left > 0 {
            put(&mut changed, kind::NIL, left - head);
            changed.zeros(left - head);
        }
        self.replace(victim.address - head as u64, &changed.bytes)?;
        if old {
            // Version 1 headers count their messages, at their third byte.
            let moved = usize::from(victim.kind != kind::NIL);
            let count = self.header.messages.len() + count + moved + usize::from(left > 0);
            self.replace(self.header.address + 2, &(count as u16).to_le_bytes())?;
        }
        Ok(())
    }

    /// A message's body with the changes so far.
    fn body(&self, message: &Message) -> Result<Vec<u8>> {
        let range = message.address..message.address + message.body.len() as u64;
        for (start, (block, _)) in &self.blocks {
            if (*start..start + block.len() as u64).contains(&message.address) {
                let at = (range.start - start) as usize;
                return Ok(block[at..at + message.body.len()].to_vec());
            }
        }
        let mut body = message.body.to_vec();
        for patch in self.plain.iter().filter(|patch| range.contains(&patch.address)) {
            let at = (patch.address - range.start) as usize;
            body[at..at + patch.bytes.len()].copy_from_slice(&patch.bytes);
        }
        Ok(body)
    }

    /// The patches: of a block with a sum, all from the first change to the sum in one piece.
    pub(crate) fn finish(mut self, sizes: Sizes) -> Result<Vec<Patch>> {
        if !self.added.is_empty() {
            self.extend(sizes)?;
        }
        let mut patches = self.plain;
        for (start, (mut block, first)) in self.blocks {
            renew_sum(&mut block);
            patches.push(Patch { address: start + first as u64, bytes: block.split_off(first) });
        }
        Ok(patches)
    }
}
