//! In-place changes of an object's header.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashSet};

use hyperslab_core::{Error, Result};

use super::index::Patch;
use super::object::{NewHeader, NewMessage, Style};
use super::output::Output;
use crate::encode::{Encoder, renew_sum};
use crate::file::Sizes;
use crate::header::{Header, Message, kind};

/// For bytes that contain no addresses or lengths.
const ANY: Sizes = Sizes { address: 8, length: 8 };

const MESSAGE: &str = "bytes of an object header message";

/// The pending changes of an object's header.
#[derive(Debug)]
pub(crate) struct HeaderEdit<'a> {
    header: &'a Header,
    output: &'a Output,
    /// Version 2 headers: blocks with checksums, and the first changed byte of each.
    blocks: BTreeMap<u64, (Vec<u8>, usize)>,
    /// Version 1 headers have no checksums.
    plain: Vec<Patch>,
    added: Vec<NewMessage>,
    forgotten: HashSet<u64>,
    /// The final number of messages; version 1 counts them.
    count: usize,
    /// The block that leads to new messages. It is changed first, so that a moved message exists twice and is never missing.
    leads: Option<u64>,
}

impl<'a> HeaderEdit<'a> {
    pub(crate) fn new(header: &'a Header, output: &'a Output) -> Self {
        let (blocks, plain, added, forgotten) = (BTreeMap::new(), Vec::new(), Vec::new(), HashSet::new());
        let count = header.messages.len();
        Self { header, output, blocks, plain, added, forgotten, count, leads: None }
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

    /// Turns a message into a null message.
    pub(crate) fn forget(&mut self, message: &Message) -> Result<()> {
        self.forgotten.insert(message.address);
        let mut bytes = Encoder::new(ANY);
        self.put_head(&mut bytes, kind::NIL, message.body.len(), 0, 0);
        self.replace(message.address - self.head() as u64, &bytes.finish()?)
    }

    /// Replaces a message: in place, in one write, if the new one is not larger; else in a new block.
    pub(crate) fn exchange(&mut self, old: &Message, mut new: NewMessage) -> Result<()> {
        let head = self.head();
        if self.is_old() {
            new.body.resize(new.body.len().next_multiple_of(8), 0);
        }
        let left = old.body.len().checked_sub(new.body.len()).filter(|left| *left == 0 || *left >= head);
        let Some(left) = left else {
            self.forget(old)?;
            self.push(new);
            return Ok(());
        };
        let mut bytes = Encoder::new(ANY);
        self.put_head(&mut bytes, new.kind, new.body.len(), new.flags, new.order);
        bytes.put(&new.body);
        if left > 0 {
            self.put_head(&mut bytes, kind::NIL, left - head, 0, 0);
            bytes.zeros(left - head);
            self.count += 1;
        }
        self.replace(old.address - head as u64, &bytes.finish()?)
    }

    /// Encodes the header of a message.
    fn put_head(&self, out: &mut Encoder, kind: u16, size: usize, flags: u8, order: u16) {
        if self.is_old() {
            out.u16(kind).count(size, 2, MESSAGE).u8(flags).zeros(3);
        } else {
            out.count(kind, 1, "a message's type").count(size, 2, MESSAGE).u8(flags);
            if self.header.ordered {
                out.u16(order);
            }
        }
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
        let Some((start, length)) = self.block_of(address) else {
            return Err(Error::invalid("a message lies outside its header"));
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

    /// The block of a version 2 header that an address is in.
    fn block_of(&self, address: u64) -> Option<(u64, u64)> {
        let inside = |(start, length): &&(u64, u64)| (*start..start + length).contains(&address);
        self.header.blocks.iter().find(inside).copied()
    }

    /// Consecutive messages that can be replaced by a pointer: one, or a few small ones.
    fn victims(&self, pointer: usize) -> Option<&'a [Message]> {
        let (head, messages): (usize, &'a [Message]) = (self.head(), &self.header.messages);
        let together = |run: &&[Message]| {
            run.iter().all(|message| message.kind != kind::CONTINUATION)
                && run
                    .windows(2)
                    .all(|pair| pair[1].address == pair[0].address + (pair[0].body.len() + head) as u64)
        };
        let fits = |run: &&[Message]| room(run) == pointer || room(run) >= pointer + head;
        // Prefer messages that were just removed, so that only one block changes; then free space; then the smallest message that
        // is large enough. Messages that change often come last.
        let rank = |message: &Message| match message.kind {
            _ if self.forgotten.contains(&message.address) => 0,
            kind::NIL => 1,
            kind::LAYOUT | kind::DATASPACE => 3,
            _ => 2,
        };
        (1..=4)
            .flat_map(|count| messages.windows(count))
            .filter(together)
            .filter(fits)
            .min_by_key(|run| (run.iter().map(rank).max(), run.len(), room(run)))
    }

    /// Puts new messages into a new block, together with those that make room for the pointer to it.
    fn extend(&mut self, sizes: Sizes) -> Result<()> {
        let (old, head) = (self.is_old(), self.head());
        let unit = if old { 8 } else { 1 };
        let pointer = (sizes.address + sizes.length).next_multiple_of(unit);
        let Some(run) = self.victims(pointer) else {
            let name = self.output.name().as_ref();
            return Err(Error::unsupported(name, "adding to an object header without room"));
        };
        let (first, room) = (run[0].address, room(run));
        let mut block = NewHeader::new(if old { Style::Old } else { Style::New });
        for message in run {
            if message.kind != kind::NIL && !self.forgotten.contains(&message.address) {
                // The message may have been changed already.
                let body = self.body(message)?;
                let (kind, flags, order) = (message.kind, message.flags, message.order);
                block.messages.push(NewMessage { kind, flags, body, order });
            }
        }
        self.count -= run.len() - 1;
        block.messages.append(&mut self.added);
        self.count += block.messages.len();
        let block = block.encode_continuation(self.header.ordered, sizes)?;
        let address = self.output.append(&block)?;
        let mut changed = Encoder::new(sizes);
        self.put_head(&mut changed, kind::CONTINUATION, pointer, 0, 0);
        changed.address(Some(address)).length(block.len() as u64).pad(head, unit);
        let left = room - pointer;
        if left > 0 {
            self.put_head(&mut changed, kind::NIL, left - head, 0, 0);
            changed.zeros(left - head);
            self.count += 1;
        }
        self.leads = self.block_of(first).map(|(start, _)| start);
        self.replace(first - head as u64, &changed.finish()?)
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

    /// The patches. A block with a checksum is written as one piece, from the first change to the checksum.
    pub(crate) fn finish(mut self, sizes: Sizes) -> Result<Vec<Patch>> {
        if !self.added.is_empty() {
            self.extend(sizes)?;
        }
        if self.is_old() {
            return self.finish_old();
        }
        let mut patches = Vec::new();
        let head = self.head();
        for (start, (mut block, mut first)) in self.blocks {
            let inside = start..start + block.len() as u64;
            let addresses = self.header.messages.iter().map(|message| message.address);
            if let Some(address) = addresses.filter(|address| inside.contains(address)).min() {
                let changed = close_gap(&mut block, (address - start) as usize - head, head);
                first = changed.map_or(first, |at| first.min(at));
            }
            renew_sum(&mut block);
            let patch = Patch { address: start + first as u64, bytes: block.split_off(first) };
            let at = if self.leads == Some(start) { 0 } else { patches.len() };
            patches.insert(at, patch);
        }
        Ok(patches)
    }

    /// The changes of a version 1 header. Those of its first block, which holds the message count, are written as one piece.
    fn finish_old(mut self) -> Result<Vec<Patch>> {
        let start = self.header.address;
        if self.count != self.header.messages.len() {
            let mut count = Encoder::new(ANY);
            count.count(self.count, 2, "messages of an old-style object header");
            self.replace(start + 2, &count.finish()?)?;
        }
        // Version, a byte, the count, links, and at byte 8 the length of the messages from byte 16 on.
        let head = self.output.read(start, 16)?;
        let length = 16 + u64::from(u32::from_le_bytes([head[8], head[9], head[10], head[11]]));
        let inside = |patch: &Patch| {
            patch.address >= start && patch.address + patch.bytes.len() as u64 <= start + length
        };
        let (first, others): (Vec<Patch>, Vec<Patch>) = self.plain.into_iter().partition(inside);
        let low = first.iter().map(|patch| patch.address).min();
        let high = first.iter().map(|patch| patch.address + patch.bytes.len() as u64).max();
        let (Some(low), Some(high)) = (low, high) else { return Ok(others) };
        let mut bytes = self.output.read(low, (high - low) as usize)?;
        for patch in first {
            let at = (patch.address - low) as usize;
            bytes[at..at + patch.bytes.len()].copy_from_slice(&patch.bytes);
        }
        let mut patches = vec![Patch { address: low, bytes }];
        patches.extend(others);
        Ok(patches)
    }
}

/// Assigns the bytes between the last message of a block and its checksum to a null message, if there is one. Returns the offset
/// from which the block has changed. libhdf5: "gaps should only occur in chunks with no null messages"; it refuses others.
fn close_gap(block: &mut [u8], messages: usize, head: usize) -> Option<usize> {
    let end = block.len().checked_sub(4)?;
    let (mut at, mut nothing) = (messages, None);
    // ObjectKind, size, flags, and the creation order if it is tracked.
    while at + head <= end {
        let size = usize::from(u16::from_le_bytes([block[at + 1], block[at + 2]]));
        if u16::from(block[at]) == kind::NIL {
            nothing = Some((at, size));
        }
        at += head + size;
    }
    let gap = end.checked_sub(at).filter(|gap| *gap > 0)?;
    let (start, size) = nothing?;
    let larger = u16::try_from(size + gap).ok()?;
    block[start + 1..start + 3].copy_from_slice(&larger.to_le_bytes());
    let behind = start + head + size;
    block.copy_within(behind..at, behind + gap);
    block[behind..behind + gap].fill(0);
    Some(start)
}

/// The bytes from the first body of a run of messages to the end of the last.
fn room(run: &[Message]) -> usize {
    match (run.first(), run.last()) {
        (Some(first), Some(last)) => (last.address - first.address) as usize + last.body.len(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block of messages of these kinds and sizes, a gap, and room for the checksum.
    fn block(messages: &[(u8, u8)], gap: usize) -> Vec<u8> {
        let mut block = b"OCHK".to_vec();
        for (kind, size) in messages {
            block.extend([*kind, *size, 0, 0]);
            block.extend(vec![*kind; usize::from(*size)]);
        }
        block.extend(vec![0; gap + 4]);
        block
    }

    #[test]
    fn gaps_are_assigned_to_null_messages() {
        let mut gapless = block(&[(5, 3), (0, 6), (7, 2)], 0);
        // The gap is zeros, like the body of a null message.
        let mut open = block(&[(5, 3), (0, 4), (7, 2)], 2);
        assert_eq!(close_gap(&mut open, 4, 4), Some(11));
        gapless[15..21].fill(0);
        open[15..21].fill(0);
        assert_eq!(open, gapless);
        for mut whole in [block(&[(5, 3), (0, 4)], 0), block(&[(5, 3), (6, 4)], 3)] {
            let before = whole.clone();
            assert_eq!(close_gap(&mut whole, 4, 4), None);
            assert_eq!(whole, before);
        }
    }
}
