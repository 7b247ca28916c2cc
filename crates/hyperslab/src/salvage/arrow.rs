//! Restores the footer of a truncated or damaged Arrow file from its messages.

use std::sync::Arc;

use arrow_ipc::{Block, MessageHeader};
use bytes::{BufMut, BytesMut};
use hyperslab_core::{Blob, Result};

use super::joined::Joined;
use crate::source::check_arrow_block;

const MARK: &[u8] = b"ARROW1";
/// The mark and its shortest padding, before the first message.
const HEAD: u64 = 8;
const LARGEST_ALIGNMENT: u64 = 64;
/// What precedes a message: the continuation marker, except in old files, and the length.
const CONTINUATION: [u8; 4] = [0xff; 4];

/// The intact batches of an Arrow file.
#[derive(Debug)]
pub(super) struct RestoredArrow {
    /// The file with a new footer.
    pub(super) blob: Arc<dyn Blob>,
    /// Why batches are missing, if any are.
    pub(super) lost: Vec<String>,
}

/// A message and the position after it.
struct Message {
    metadata: bytes::Bytes,
    kind: MessageHeader,
    block: Block,
    end: u64,
}

/// The intact batches of an Arrow file; `None` for other files, and if the schema is lost.
pub(super) fn restored(inner: &Arc<dyn Blob>) -> Result<Option<RestoredArrow>> {
    let length = inner.len()?;
    if length < HEAD || !inner.read_at(0, HEAD)?.starts_with(MARK) {
        return Ok(None);
    }
    let (mut schema, mut dictionaries, mut batches) = (None, Vec::new(), Vec::new());
    let (mut at, mut lost) = (HEAD, Vec::new());
    // The mark is padded to the alignment of the writer.
    while at < LARGEST_ALIGNMENT && at + 4 <= length && *inner.read_at(at, 4)? == [0; 4] {
        at += HEAD;
    }
    loop {
        let message = match message(inner, at, length) {
            Ok(Some(message)) => message,
            Ok(None) => break,
            Err(why) => {
                lost.push(format!("the batches from byte {at:#x} on: {why}"));
                break;
            }
        };
        match (message.kind, check_arrow_block(inner, &message.block)) {
            (MessageHeader::Schema, _) => schema = Some(message.metadata),
            (MessageHeader::DictionaryBatch, Ok(())) => dictionaries.push(message.block),
            (MessageHeader::RecordBatch, Ok(())) => batches.push(message.block),
            (_, Ok(())) => {}
            (_, Err(why)) => lost.push(format!("the batch at byte {at:#x}: {why}")),
        }
        at = message.end;
    }
    let Some(footer) = schema.and_then(|schema| footer(&schema, &dictionaries, &batches)) else {
        return Ok(None);
    };
    Ok(Some(RestoredArrow { blob: Arc::new(Joined::new(inner, at, footer.freeze())), lost }))
}

/// The message at a position; `None` at the end of the messages.
fn message(inner: &Arc<dyn Blob>, at: u64, length: u64) -> std::result::Result<Option<Message>, String> {
    let read = |start: u64, bytes: u64| {
        let end = start.checked_add(bytes).filter(|end| *end <= length).ok_or("the file ends here")?;
        inner.read_range(start..end).map_err(|error| error.to_string())
    };
    let number = |bytes: &[u8]| bytes.first_chunk::<4>().map_or(0, |bytes| i32::from_le_bytes(*bytes));
    let first = read(at, 4)?;
    let (prefix, size) =
        if *first == CONTINUATION { (8, number(&read(at + 4, 4)?)) } else { (4, number(&first)) };
    let size = u64::try_from(size).map_err(|_| "a negative length".to_owned())?;
    if size == 0 {
        return Ok(None);
    }
    let metadata = read(at + prefix, size)?;
    let parsed = arrow_ipc::root_as_message(&metadata).map_err(|error| error.to_string())?;
    let body = u64::try_from(parsed.bodyLength()).map_err(|_| "a negative length".to_owned())?;
    let start = at + prefix + size;
    let end = start.checked_add(body).filter(|end| *end <= length).ok_or("the file ends in this batch")?;
    let short = |number: u64| i32::try_from(number).map_err(|_| "a message of more than 2 GiB".to_owned());
    let block = Block::new(at.cast_signed(), short(prefix + size)?, body.cast_signed());
    let kind = parsed.header_type();
    Ok(Some(Message { metadata, kind, block, end }))
}

/// A footer, its length and the mark. Offsets in flat buffers are relative, so the message with the schema is a part of the footer as
/// it is.
fn footer(schema: &[u8], dictionaries: &[Block], batches: &[Block]) -> Option<BytesMut> {
    const TABLE: u32 = 16;
    let message = arrow_ipc::root_as_message(schema).ok()?;
    let schema_table = u32::try_from(message.header_as_schema()?._tab.loc()).ok()?;
    let vector = |blocks: &[Block]| u32::try_from(8 + 24 * blocks.len()).ok();
    let dictionaries_at = TABLE + 20;
    let batches_at = dictionaries_at.checked_add(vector(dictionaries)?)?;
    let schema_at = batches_at.checked_add(vector(batches)?)?.checked_add(schema_table)?.checked_sub(4)?;
    let mut bytes = BytesMut::new();
    bytes.put_u32_le(TABLE);
    // The vtable: its size, the size of the table, and the offsets of the fields.
    for number in [12, 20, 16, 4, 8, 12] {
        bytes.put_u16_le(number);
    }
    // The table: the offsets of the vtable and of the fields, the version, padding.
    bytes.put_u32_le(TABLE - 4);
    bytes.put_u32_le(schema_at - (TABLE + 4));
    bytes.put_u32_le(dictionaries_at - (TABLE + 8));
    bytes.put_u32_le(batches_at - (TABLE + 12));
    bytes.put_i16_le(message.version().0);
    bytes.put_u16_le(0);
    for blocks in [dictionaries, batches] {
        bytes.put_u32_le(u32::try_from(blocks.len()).ok()?);
        blocks.iter().for_each(|block| bytes.put_slice(&block.0));
        bytes.put_u32_le(0);
    }
    // The padding after the batches aligns the schema only together with these bytes.
    bytes.truncate(bytes.len() - 4);
    bytes.put_slice(schema);
    let length = i32::try_from(bytes.len()).ok()?;
    bytes.put_i32_le(length);
    bytes.put_slice(MARK);
    Some(bytes)
}
