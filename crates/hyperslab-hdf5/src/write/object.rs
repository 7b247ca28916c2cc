//! Writes object headers.

use hyperslab_core::{CreationOrder, Error, Result};

use super::fractal::{self, ATTRIBUTES, NODE};
use super::index::build_btree2;
use super::output::{Output, SECTOR};
use crate::encode::Encoder;
use crate::file::Sizes;
use crate::header::{INDEXED, ORDERED, kind};
use crate::message::attribute::Content;
use hyperslab_codec::checksum::lookup3;

/// An object with more attributes stores them in a heap.
pub(crate) const MOST_COMPACT: usize = 8;
/// A message's size has 16 bits. libhdf5 has the same limit.
const MOST_MESSAGE: usize = 65_535;
/// Attributes are numbered in creation order, with 16 bits.
pub(crate) const MOST_ATTRIBUTES: usize = 65_535;

/// How the encoder's errors name these counts.
const MESSAGE: &str = "bytes of an object header message";
const MESSAGES: &str = "messages of an old-style object header";
const HEADER: &str = "bytes of an object header";

/// Message flag: it never changes.
pub(crate) const CONSTANT: u8 = 1;

/// Whether objects are written for all libraries, or for those since 1.8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Old,
    New,
}

impl Style {
    /// The maximum size of a message. Old-style messages are padded to a multiple of 8 bytes.
    pub(crate) const fn most_message(self) -> usize {
        match self {
            Self::Old => MOST_MESSAGE / 8 * 8,
            Self::New => MOST_MESSAGE,
        }
    }

    /// Refuses a message that is too large for an object header.
    pub(crate) fn check_message(self, what: &str, length: usize) -> Result<()> {
        let most = self.most_message();
        if length <= most {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "{what} takes {length} bytes, but an HDF5 object header message has at most {most}"
        )))
    }

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
    /// For attributes: the creation order.
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
    /// Whether attribute creation order is tracked. Old-style headers cannot.
    pub(crate) order: CreationOrder,
    /// The number of hard links to the object.
    pub(crate) links: u32,
}

impl NewHeader {
    /// A header without messages, with one link to it and tracked attribute order.
    pub(crate) const fn new(style: Style) -> Self {
        Self { style, messages: Vec::new(), order: CreationOrder::Indexed, links: 1 }
    }

    /// Sets the number of links to the object, unless it is one. Version 1 headers have a field for it.
    pub(crate) fn count_links(&mut self, links: u32, sizes: Sizes) -> Result<()> {
        self.links = links;
        if self.style == Style::New && links != 1 {
            let mut body = Encoder::new(sizes);
            body.u8(0).u32(links);
            self.messages.push(NewMessage::new(kind::LINK_COUNT, 0, body.finish()?));
        }
        Ok(())
    }

    const fn is_ordered(&self) -> bool {
        !matches!(self.order, CreationOrder::Untracked)
    }

    /// Adds attributes: in the header while they are few and small, else in a heap. If `write` is false, the heap is not written,
    /// because only the header's size is wanted.
    pub(crate) fn attributes(
        &mut self,
        attributes: &[(String, Content)],
        sizes: Sizes,
        write: Option<&Output>,
    ) -> Result<()> {
        let encoded: Vec<Vec<u8>> = attributes
            .iter()
            .map(|(name, content)| content.encode(name, self.style.types(), sizes))
            .collect::<Result<_>>()?;
        let large = encoded.iter().any(|message| message.len() > self.style.most_message());
        if self.style == Style::Old {
            for ((name, _), message) in attributes.iter().zip(&encoded) {
                self.style.check_message(&format!("attribute {:?}", shortened(name)), message.len())?;
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
                let names = attributes.iter().map(|(name, _)| name.as_bytes());
                let named: Vec<_> = names.zip(encoded.iter().map(Vec::as_slice)).collect();
                Some(dense_attributes(&named, sizes, output)?)
            }
            None => None,
        };
        let [heap, names, orders] = places.map_or([None; 3], |places| places.map(Some));
        let mut info = Encoder::new(sizes);
        info.u8(0).u8(order_flags(self.order));
        if self.is_ordered() {
            info.count(encoded.len(), 2, "attributes of an object");
        }
        info.address(heap).address(names);
        if self.order == CreationOrder::Indexed {
            info.address(orders);
        }
        self.messages.push(NewMessage::new(kind::ATTRIBUTE_INFO, 4, info.finish()?));
        if !dense {
            for (order, body) in (0_u16..).zip(encoded) {
                let message = NewMessage::new(kind::ATTRIBUTE, 0, body);
                self.messages.push(NewMessage { order, ..message });
            }
        }
        Ok(())
    }

    /// The header's bytes.
    pub(crate) fn encode(&self, sizes: Sizes) -> Result<Vec<u8>> {
        match self.style {
            Style::New => self.encode_new(sizes),
            Style::Old => self.encode_old(sizes),
        }
    }

    /// A continuation block. `ordered` tells whether the header tracks attribute order.
    pub(crate) fn encode_continuation(&self, ordered: bool, sizes: Sizes) -> Result<Vec<u8>> {
        match self.style {
            Style::Old => self.old_messages(sizes),
            Style::New => {
                let mut out = Encoder::new(sizes);
                out.put(b"OCHK").put(&self.new_messages(ordered, sizes)?);
                out.summed()
            }
        }
    }

    fn new_messages(&self, ordered: bool, sizes: Sizes) -> Result<Vec<u8>> {
        let mut body = Encoder::new(sizes);
        for message in &self.messages {
            body.count(message.kind, 1, "a message's type")
                .count(message.body.len(), 2, MESSAGE)
                .u8(message.flags);
            if ordered {
                body.u16(message.order);
            }
            body.put(&message.body);
        }
        body.finish()
    }

    fn encode_new(&self, sizes: Sizes) -> Result<Vec<u8>> {
        let body = self.new_messages(self.is_ordered(), sizes)?;
        let mut out = Encoder::magic(sizes, b"OHDR", 2);
        // The size of the messages has 4 bytes.
        let order = match self.order {
            CreationOrder::Untracked => 0,
            CreationOrder::Tracked => ORDERED,
            CreationOrder::Indexed => ORDERED | INDEXED,
        };
        out.u8(2 | order).count(body.len(), 4, HEADER).put(&body);
        out.summed()
    }

    fn old_messages(&self, sizes: Sizes) -> Result<Vec<u8>> {
        let mut body = Encoder::new(sizes);
        for message in &self.messages {
            let size = message.body.len().next_multiple_of(8);
            body.u16(message.kind).count(size, 2, MESSAGE).u8(message.flags).zeros(3);
            let from = body.len();
            body.put(&message.body).pad(from, 8);
        }
        body.finish()
    }

    fn encode_old(&self, sizes: Sizes) -> Result<Vec<u8>> {
        let body = self.old_messages(sizes)?;
        let mut out = Encoder::new(sizes);
        out.u8(1).u8(0).count(self.messages.len(), 2, MESSAGES).u32(self.links).count(body.len(), 4, HEADER);
        out.zeros(4).put(&body);
        out.finish()
    }

    /// A header that only points to a block with all messages of this one.
    pub(crate) fn stub(&self, block: u64, length: u64, sizes: Sizes) -> Result<Vec<u8>> {
        let mut body = Encoder::new(sizes);
        body.address(Some(block)).length(length);
        let only = NewMessage::new(kind::CONTINUATION, 0, body.finish()?);
        let mut bytes = Self { messages: vec![only], ..*self }.encode(sizes)?;
        if self.style == Style::Old {
            // Version 1 headers count the messages of all blocks.
            let mut count = Encoder::new(sizes);
            count.count(self.messages.len() + 1, 2, MESSAGES);
            bytes[2..4].copy_from_slice(&count.finish()?);
        }
        Ok(bytes)
    }

    /// The maximum size of a header that only points to a block.
    pub(crate) fn stub_length(style: Style, sizes: Sizes) -> Result<u64> {
        Ok(Self::new(style).stub(0, 0, sizes)?.len() as u64)
    }

    /// Allocates space for the header. If possible, the parts to be changed in place (the last messages and the checksum after
    /// Allocates space for the header. If possible, the parts that change in place (the last messages and the checksum after
    pub(crate) fn place(&self, sizes: Sizes, output: &Output) -> Result<u64> {
        let length = self.encode(sizes)?.len();
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

/// The flags of messages about attributes and links.
pub(crate) const fn order_flags(order: CreationOrder) -> u8 {
    match order {
        CreationOrder::Untracked => 0,
        CreationOrder::Tracked => 1,
        CreationOrder::Indexed => 3,
    }
}

/// The start of a name, for messages: names can have any length.
pub(crate) fn shortened(name: &str) -> String {
    match name.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

/// Writes attributes, sorted by name, into a heap, with trees by name and by order. Returns their three addresses.
pub(crate) fn dense_attributes(
    attributes: &[(&[u8], &[u8])],
    sizes: Sizes,
    output: &Output,
) -> Result<[u64; 3]> {
    let messages: Vec<&[u8]> = attributes.iter().map(|(_, message)| *message).collect();
    let (heap, ids) = fractal::build(&messages, ATTRIBUTES, sizes, output)?;
    let mut named: Vec<(u32, &[u8], usize)> =
        attributes.iter().enumerate().map(|(order, (name, _))| (lookup3(name, 0), *name, order)).collect();
    named.sort_unstable();
    let mut records = Encoder::new(sizes);
    for (hash, _, order) in &named {
        records.put(&ids[*order]).u8(0).count(*order, 4, "attributes of an object").u32(*hash);
    }
    let names = tree(8, 17, &records.finish()?, sizes, output)?;
    let mut records = Encoder::new(sizes);
    for (order, id) in ids.iter().enumerate() {
        records.put(id).u8(0).count(order, 4, "attributes of an object");
    }
    let orders = tree(9, 13, &records.finish()?, sizes, output)?;
    Ok([heap, names, orders])
}

/// Writes a tree of names, orders or ids. Returns the address of its header.
pub(crate) fn tree(kind: u8, record: usize, records: &[u8], sizes: Sizes, output: &Output) -> Result<u64> {
    let header = build_btree2((kind, NODE, record), records, &mut Vec::new(), sizes, output)?;
    output.append_within(&header, 0..header.len(), SECTOR)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::attributes::c_text;

    const SIZES: Sizes = Sizes { address: 8, length: 8 };

    /// Attributes are numbered, and old-style headers count their messages, in 16 bits.
    #[test]
    fn too_many_attributes_are_refused() {
        for (style, count, good) in [
            (Style::New, 65_535, true),
            (Style::New, 65_536, false),
            (Style::Old, 65_535, true),
            (Style::Old, 65_536, false),
        ] {
            let attributes: Vec<_> = (0..count).map(|number| (number.to_string(), c_text("x"))).collect();
            let mut header = NewHeader::new(style);
            let done = header.attributes(&attributes, SIZES, None).and_then(|()| header.encode(SIZES));
            assert_eq!(done.is_ok(), good, "{style:?} {count}");
        }
    }

    #[test]
    fn too_large_messages_are_refused() {
        for (style, length, good) in [
            (Style::New, 65_535, true),
            (Style::New, 65_536, false),
            (Style::Old, 65_528, true),
            (Style::Old, 65_529, false),
        ] {
            let message = NewMessage::new(kind::DATATYPE, 0, vec![0; length]);
            let header = NewHeader { messages: vec![message], ..NewHeader::new(style) };
            assert_eq!(header.encode(SIZES).is_ok(), good, "{style:?} {length}");
            assert_eq!(header.encode_continuation(true, SIZES).is_ok(), good, "{style:?} {length}");
        }
        let header = |count| {
            let messages = vec![NewMessage::new(kind::NIL, 0, Vec::new()); count];
            NewHeader { messages, ..NewHeader::new(Style::Old) }
        };
        assert!(header(65_534).stub(0, 0, SIZES).is_ok());
        assert!(header(65_535).stub(0, 0, SIZES).is_err());
    }
}
