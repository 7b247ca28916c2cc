//! Object headers that are being written.

use hyperslab_core::{Error, Result};

use super::fractal::{self, ATTRIBUTES, NODE};
use super::index::build_btree2;
use super::output::{Output, SECTOR};
use crate::encode::Encoder;
use crate::file::Sizes;
use crate::header::kind;
use crate::message::attribute::Content;
use hyperslab_codec::checksum::lookup3;

/// With more attributes than this an object keeps them in a heap.
pub(crate) const MOST_COMPACT: usize = 8;
/// A message's size has 16 bits.
pub(crate) const MOST_MESSAGE: usize = 65_000;

/// Message flag: it never changes.
pub(crate) const CONSTANT: u8 = 1;

/// Whether objects are written as libraries of any age read them, or as those since 1.8 do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Old,
    New,
}

impl Style {
    /// The version of types inside messages.
    pub(crate) const fn types(self) -> u8 {
        match self {
            Self::Old => 2,
            Self::New => 3,
        }
    }
}

/// One message.
#[derive(Debug, Clone)]
pub(crate) struct NewMessage {
    pub(crate) kind: u16,
    pub(crate) flags: u8,
    pub(crate) body: Vec<u8>,
    /// Attributes: the order of creation.
    pub(crate) order: u16,
}

impl NewMessage {
    pub(crate) const fn new(kind: u16, flags: u8, body: Vec<u8>) -> Self {
        Self { kind, flags, body, order: 0 }
    }
}

/// The messages of an object.
#[derive(Debug, Clone)]
pub(crate) struct NewHeader {
    pub(crate) style: Style,
    pub(crate) messages: Vec<NewMessage>,
}

impl NewHeader {
    /// Adds attributes: in the header while they are few and small, else in a heap. `write` says whether that heap is
    /// written, or only the header's size is wanted.
    pub(crate) fn attributes(
        &mut self,
        attributes: &[(String, Content)],
        sizes: Sizes,
        write: Option<&Output>,
    ) -> Result<()> {
        let encoded: Vec<Vec<u8>> = attributes
            .iter()
            .map(|(name, content)| content.encode(name, self.style.types(), sizes))
            .collect();
        let large = encoded.iter().any(|message| message.len() > MOST_MESSAGE);
        if self.style == Style::Old {
            if large {
                return Err(Error::invalid("an attribute of more than 64 KiB in an old-style file"));
            }
            self.messages.extend(encoded.into_iter().map(|body| NewMessage::new(kind::ATTRIBUTE, 0, body)));
            return Ok(());
        }
        if encoded.is_empty() {
            return Ok(());
        }
        let dense = large || encoded.len() > MOST_COMPACT;
        let places = match write.filter(|_| dense) {
            Some(output) => {
                let names: Vec<String> = attributes.iter().map(|(name, _)| name.clone()).collect();
                Some(dense_attributes(&names, &encoded, sizes, output)?)
            }
            None => None,
        };
        let [heap, names, orders] = places.map_or([None; 3], |places| places.map(Some));
        let mut info = Encoder::new(sizes);
        // The order of creation is kept and indexed.
        info.u8(0).u8(3).u16(encoded.len() as u16).address(heap).address(names).address(orders);
        self.messages.push(NewMessage::new(kind::ATTRIBUTE_INFO, 4, info.bytes));
        if !dense {
            for (order, body) in encoded.into_iter().enumerate() {
                let message = NewMessage::new(kind::ATTRIBUTE, 0, body);
                self.messages.push(NewMessage { order: order as u16, ..message });
            }
        }
        Ok(())
    }

    /// The header's bytes.
    pub(crate) fn encode(&self, sizes: Sizes) -> Vec<u8> {
        match self.style {
            Style::New => self.encode_new(sizes),
            Style::Old => self.encode_old(sizes),
        }
    }

    /// A block of more messages. `ordered`: does the header keep the order of attributes?
    pub(crate) fn encode_continuation(&self, ordered: bool, sizes: Sizes) -> Vec<u8> {
        match self.style {
            Style::Old => self.old_messages(sizes).bytes,
            Style::New => {
                let mut out = Encoder::new(sizes);
                out.put(b"OCHK").put(&self.new_messages(ordered, sizes).bytes);
                out.summed()
            }
        }
    }

    fn new_messages(&self, ordered: bool, sizes: Sizes) -> Encoder {
        let mut body = Encoder::new(sizes);
        for message in &self.messages {
            body.u8(message.kind as u8).u16(message.body.len() as u16).u8(message.flags);
            if ordered {
                body.u16(message.order);
            }
            body.put(&message.body);
        }
        body
    }

    fn encode_new(&self, sizes: Sizes) -> Vec<u8> {
        let body = self.new_messages(true, sizes);
        let mut out = Encoder::magic(sizes, b"OHDR", 2);
        // The size of the messages has 4 bytes; the order of attributes is kept and indexed.
        out.u8(2 | 4 | 8).u32(body.bytes.len() as u32).put(&body.bytes);
        out.summed()
    }

    fn old_messages(&self, sizes: Sizes) -> Encoder {
        let mut body = Encoder::new(sizes);
        for message in &self.messages {
            let size = message.body.len().next_multiple_of(8);
            body.u16(message.kind).u16(size as u16).u8(message.flags).zeros(3);
            let from = body.bytes.len();
            body.put(&message.body).pad(from, 8);
        }
        body
    }

    fn encode_old(&self, sizes: Sizes) -> Vec<u8> {
        let body = self.old_messages(sizes);
        let mut out = Encoder::new(sizes);
        out.u8(1).u8(0).u16(self.messages.len() as u16).u32(1).u32(body.bytes.len() as u32).zeros(4);
        out.put(&body.bytes);
        out.bytes
    }

    /// A header that only leads to a block with all its messages.
    pub(crate) fn stub(block: u64, length: u64, messages: usize, style: Style, sizes: Sizes) -> Vec<u8> {
        let mut body = Encoder::new(sizes);
        body.address(Some(block)).length(length);
        let only = NewMessage::new(kind::CONTINUATION, 0, body.bytes);
        let mut bytes = Self { style, messages: vec![only] }.encode(sizes);
        if style == Style::Old {
            // Version 1 headers count the messages of all blocks.
            bytes[2..4].copy_from_slice(&(messages as u16 + 1).to_le_bytes());
        }
        bytes
    }

    /// Takes space for the header. What will be changed in its place (the last messages, and the sum behind them)
    /// stands inside one sector if it can.
    pub(crate) fn place(&self, sizes: Sizes, output: &Output) -> Result<u64> {
        let length = self.encode(sizes).len();
        let changing = self
            .messages
            .iter()
            .rev()
            .take_while(|message| matches!(message.kind, kind::LAYOUT | kind::DATASPACE))
            .map(|message| message.body.len() + 8)
            .sum::<usize>();
        output.allocate_within(length as u64, length - (changing + 4).min(length)..length, SECTOR)
    }
}

/// Writes attributes into a heap, with trees by name and by order; answers where the three are.
pub(crate) fn dense_attributes(
    attributes: &[String],
    encoded: &[Vec<u8>],
    sizes: Sizes,
    output: &Output,
) -> Result<[u64; 3]> {
    let (heap, ids) = fractal::build(encoded, ATTRIBUTES, sizes, output)?;
    let mut named: Vec<(u32, &str, usize)> = attributes
        .iter()
        .enumerate()
        .map(|(order, name)| (lookup3(name.as_bytes(), 0), name.as_str(), order))
        .collect();
    named.sort_unstable();
    let mut records = Encoder::new(sizes);
    for (hash, _, order) in &named {
        records.put(&ids[*order]).u8(0).u32(*order as u32).u32(*hash);
    }
    let names = tree(8, 17, &records.bytes, sizes, output)?;
    let mut records = Encoder::new(sizes);
    for (order, id) in ids.iter().enumerate() {
        records.put(id).u8(0).u32(order as u32);
    }
    let orders = tree(9, 13, &records.bytes, sizes, output)?;
    Ok([heap, names, orders])
}

/// Writes a tree of names, orders or ids; answers where its header is.
pub(crate) fn tree(kind: u8, record: usize, records: &[u8], sizes: Sizes, output: &Output) -> Result<u64> {
    let header = build_btree2((kind, NODE, record), records, &mut Vec::new(), sizes, output)?;
    output.append_within(&header, 0..header.len(), SECTOR)
}
