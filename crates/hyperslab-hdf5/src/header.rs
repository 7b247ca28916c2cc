//! Object headers: the messages that define an object.

use std::collections::{HashSet, VecDeque};

use bytes::Bytes;
use hyperslab_core::{CreationOrder, Fields, Result, StoredObject};

use crate::file::{File, FileFields, check_sum};
use crate::shared;

/// Message types, by their numbers in the file.
pub(crate) mod kind {
    pub(crate) const NIL: u16 = 0x00;
    pub(crate) const DATASPACE: u16 = 0x01;
    pub(crate) const LINK_INFO: u16 = 0x02;
    pub(crate) const DATATYPE: u16 = 0x03;
    pub(crate) const OLD_FILL: u16 = 0x04;
    pub(crate) const FILL: u16 = 0x05;
    pub(crate) const LINK: u16 = 0x06;
    pub(crate) const EXTERNAL_FILES: u16 = 0x07;
    pub(crate) const LAYOUT: u16 = 0x08;
    pub(crate) const GROUP_INFO: u16 = 0x0a;
    pub(crate) const PIPELINE: u16 = 0x0b;
    pub(crate) const ATTRIBUTE: u16 = 0x0c;
    pub(crate) const COMMENT: u16 = 0x0d;
    pub(crate) const SHARED_TABLE: u16 = 0x0f;
    pub(crate) const CONTINUATION: u16 = 0x10;
    pub(crate) const SYMBOL_TABLE: u16 = 0x11;
    pub(crate) const TREE_HALVES: u16 = 0x13;
    pub(crate) const DRIVER: u16 = 0x14;
    pub(crate) const ATTRIBUTE_INFO: u16 = 0x15;
    pub(crate) const LINK_COUNT: u16 = 0x16;
    pub(crate) const FREE_SPACE: u16 = 0x17;
    pub(crate) const CACHE_IMAGE: u16 = 0x18;
}

const STRUCTURE: &str = "object header";

/// Flags of version 2 headers: attribute creation order is tracked, and indexed.
pub(crate) const ORDERED: u8 = 4;
pub(crate) const INDEXED: u8 = 8;

/// Message flag: the body is a reference to a shared message.
pub(crate) const SHARED: u8 = 2;

/// Limits on messages and continuation blocks, beyond what any library writes.
const MAX_MESSAGES: usize = 1 << 20;
const MAX_BLOCKS: usize = 1 << 16;

/// One message.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    pub(crate) kind: u16,
    pub(crate) flags: u8,
    /// Its body, or for a shared message a reference to it.
    pub(crate) body: Bytes,
    /// The address of the body.
    pub(crate) address: u64,
    /// For attributes: their creation order, if the header tracks it.
    pub(crate) order: u16,
}

impl Message {
    pub(crate) fn fields<'a>(&'a self, file: &'a File, structure: &'static str) -> Fields<'a> {
        Fields::new(&self.body, file.place(structure, self.address))
    }
}

/// An object's messages.
#[derive(Debug, Clone)]
pub(crate) struct Header {
    pub(crate) address: u64,
    pub(crate) messages: Vec<Message>,
    /// Whether attribute creation order is tracked.
    pub(crate) ordered: bool,
    /// Whether it is indexed as well.
    pub(crate) indexed: bool,
    /// The number of hard links to the object, according to the header.
    pub(crate) links: u32,
    /// Version 2: the blocks of messages, each with its checksum: address, length.
    pub(crate) blocks: Vec<(u64, u64)>,
}

/// The kind of object, according to its messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ObjectKind {
    Group,
    Dataset,
    Type,
}

impl Header {
    /// Reads the header at `address`, with its continuations.
    pub(crate) fn read(file: &File, address: u64) -> Result<Self> {
        let start = file.read_some(STRUCTURE, address, 16)?;
        let mut reader = Reader {
            file,
            messages: Vec::new(),
            pending: VecDeque::new(),
            seen: HashSet::new(),
            blocks: Vec::new(),
        };
        let (flags, links) = if start.starts_with(b"OHDR") {
            let flags = reader.new_style(address)?;
            (flags, reader.links()?)
        } else {
            (0, reader.old_style(address, &start)?)
        };
        let (ordered, indexed) = (flags & ORDERED != 0, flags & INDEXED != 0);
        Ok(Self { address, messages: reader.messages, ordered, indexed, links, blocks: reader.blocks })
    }

    /// The first message of this kind, resolved if it is shared.
    pub(crate) fn find(&self, file: &File, kind: u16) -> Result<Option<Message>> {
        self.messages
            .iter()
            .find(|message| message.kind == kind)
            .map(|message| self.resolve(file, message))
            .transpose()
    }

    /// All messages of this kind, as stored in the header.
    pub(crate) fn all(&self, kind: u16) -> impl Iterator<Item = &Message> {
        self.messages.iter().filter(move |message| message.kind == kind)
    }

    /// Resolves a message that is stored as a reference.
    pub(crate) fn resolve(&self, file: &File, message: &Message) -> Result<Message> {
        if message.flags & SHARED == 0 {
            return Ok(message.clone());
        }
        shared::resolve(file, message.kind, &message.body, message.address)
    }

    pub(crate) fn has(&self, kind: u16) -> bool {
        self.messages.iter().any(|message| message.kind == kind)
    }

    /// The address of the committed type of the object's elements.
    pub(crate) fn named_type(&self, file: &File) -> Option<u64> {
        let message = self.all(kind::DATATYPE).next().filter(|message| message.flags & SHARED != 0)?;
        shared::object_of(file, &message.body, message.address)
    }

    /// Properties of any object beside its content.
    pub(crate) fn stored_object(&self, file: &File) -> StoredObject {
        let attribute_order = match (self.ordered, self.indexed) {
            (false, _) => CreationOrder::Untracked,
            (true, false) => CreationOrder::Tracked,
            (true, true) => CreationOrder::Indexed,
        };
        let comment = self.find(file, kind::COMMENT).ok().flatten();
        let comment = comment.and_then(|message| message.fields(file, "object comment message").text().ok());
        StoredObject { attribute_order: Some(attribute_order), comment }
    }

    /// The kind of the object.
    pub(crate) fn kind(&self, file: &File) -> Result<ObjectKind> {
        if self.has(kind::SYMBOL_TABLE) || self.has(kind::LINK_INFO) || self.has(kind::GROUP_INFO) {
            Ok(ObjectKind::Group)
        } else if self.has(kind::LAYOUT) || (self.has(kind::DATASPACE) && self.has(kind::DATATYPE)) {
            Ok(ObjectKind::Dataset)
        } else if self.has(kind::DATATYPE) {
            Ok(ObjectKind::Type)
        } else if self.has(kind::LINK) {
            Ok(ObjectKind::Group)
        } else {
            Err(file
                .place(STRUCTURE, self.address)
                .corrupt("no message that makes it a group, dataset or type"))
        }
    }
}

struct Reader<'a> {
    file: &'a File,
    messages: Vec<Message>,
    /// Continuation blocks still to read: address, length.
    pending: VecDeque<(u64, u64)>,
    seen: HashSet<u64>,
    blocks: Vec<(u64, u64)>,
}

/// The layout of a version 2 header's messages.
#[derive(Clone, Copy)]
struct NewStyle {
    ordered: bool,
}

impl Reader<'_> {
    fn old_style(&mut self, address: u64, start: &[u8]) -> Result<u32> {
        let mut fields = Fields::new(start, self.file.place(STRUCTURE, address));
        fields.version(&[1])?;
        fields.skip(1)?;
        // Some writers give too few messages here. Like libhdf5, we read everything in the blocks.
        let _count = fields.u16()?;
        let links = fields.u32()?;
        let length = u64::from(fields.u32()?);
        fields.skip(4)?;
        let first = self.file.read(STRUCTURE, address.saturating_add(16), length)?;
        self.old_messages(&first, address.saturating_add(16))?;
        while let Some((address, length)) = self.next_block()? {
            let block = self.file.read("object header continuation", address, length)?;
            self.old_messages(&block, address)?;
        }
        Ok(links)
    }

    /// Version 2 headers hold the link count in a message, unless it is one.
    fn links(&self) -> Result<u32> {
        let Some(message) = self.messages.iter().find(|message| message.kind == kind::LINK_COUNT) else {
            return Ok(1);
        };
        let mut fields = message.fields(self.file, "reference count message");
        fields.version(&[0])?;
        fields.u32()
    }

    fn old_messages(&mut self, block: &Bytes, address: u64) -> Result<()> {
        let mut fields = Fields::new(block, self.file.place(STRUCTURE, address));
        while fields.remaining() >= 8 {
            let (kind, size, flags) = (fields.u16()?, usize::from(fields.u16()?), fields.u8()?);
            fields.skip(3)?;
            let at = fields.position();
            fields.skip(size)?;
            self.push(kind, flags, block.slice(at..at + size), address.saturating_add(at as u64), 0)?;
        }
        Ok(())
    }

    /// Reads a version 2 header. Returns its flags.
    fn new_style(&mut self, address: u64) -> Result<u8> {
        let prefix = self.file.read_some(STRUCTURE, address, 64)?;
        let mut fields = Fields::new(&prefix, self.file.place(STRUCTURE, address));
        fields.magic(b"OHDR")?;
        fields.version(&[2])?;
        let flags = fields.u8()?;
        if flags & 0x20 != 0 {
            fields.skip(16)?;
        }
        if flags & 0x10 != 0 {
            fields.skip(4)?;
        }
        let length = fields.uint(1 << (flags & 3))?;
        let start = fields.position();
        let style = NewStyle { ordered: flags & ORDERED != 0 };
        let whole = length.saturating_add(start as u64 + 4);
        let block = self.file.read_checked(STRUCTURE, address, whole)?;
        self.blocks.push((address, whole));
        self.new_messages(&block, start, address, style)?;
        while let Some((address, length)) = self.next_block()? {
            let structure = "object header continuation";
            let block = self.file.read(structure, address, length)?;
            let place = self.file.place(structure, address);
            Fields::new(&block, place).magic(b"OCHK")?;
            let end = check_sum(&block, place)?;
            self.blocks.push((address, length));
            self.new_messages(&block.slice(..end), 4, address, style)?;
        }
        Ok(flags)
    }

    fn new_messages(&mut self, block: &Bytes, start: usize, address: u64, style: NewStyle) -> Result<()> {
        let mut fields = Fields::new(block, self.file.place(STRUCTURE, address));
        fields.skip(start)?;
        let least = if style.ordered { 6 } else { 4 };
        // Fewer bytes than a message header are a gap.
        while fields.remaining() >= least {
            let (kind, size, flags) = (u16::from(fields.u8()?), usize::from(fields.u16()?), fields.u8()?);
            let order = if style.ordered { fields.u16()? } else { 0 };
            let at = fields.position();
            fields.skip(size)?;
            self.push(kind, flags, block.slice(at..at + size), address.saturating_add(at as u64), order)?;
        }
        Ok(())
    }

    fn push(&mut self, kind: u16, flags: u8, body: Bytes, address: u64, order: u16) -> Result<()> {
        if self.messages.len() >= MAX_MESSAGES {
            return Err(self.file.place(STRUCTURE, address).corrupt("too many messages"));
        }
        if kind == kind::CONTINUATION {
            let mut fields = Fields::new(&body, self.file.place("continuation message", address));
            let target = (fields.defined(self.file.sizes())?, fields.length(self.file.sizes())?);
            self.pending.push_back(target);
        }
        self.messages.push(Message { kind, flags, body, address, order });
        Ok(())
    }

    fn next_block(&mut self) -> Result<Option<(u64, u64)>> {
        let Some((address, length)) = self.pending.pop_front() else { return Ok(None) };
        if !self.seen.insert(address) || self.seen.len() > MAX_BLOCKS {
            return Err(self.file.place(STRUCTURE, address).corrupt("continuation blocks form a cycle"));
        }
        Ok(Some((address, length)))
    }
}
