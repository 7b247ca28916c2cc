//! Arrow files, block by block.
//!
//! The reader of `arrow_ipc` trusts the lengths in a file: it panics on buffers outside their block, and allocates whatever a
//! compressed buffer claims. So blocks are read and checked here, and only then decoded.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::reader::{FileDecoder, read_footer_length};
use arrow_ipc::{Block, MessageHeader};
use arrow_schema::SchemaRef;
use hyperslab_core::{Blob, Error, Result, is_plausible};

/// The bytes after the footer: its length and `ARROW1`.
const TAIL: u64 = 10;
/// The length of a compressed buffer's elements, in front of them.
const PREFIX: usize = 8;
/// What precedes a message if it begins with the continuation marker, and otherwise.
const MARKED: usize = 8;
const UNMARKED: usize = 4;

/// An Arrow file whose footer and dictionaries were read.
#[derive(Debug)]
pub(super) struct ArrowFile {
    blob: Arc<dyn Blob>,
    schema: SchemaRef,
    decoder: FileDecoder,
    blocks: Vec<Block>,
}

impl ArrowFile {
    /// Opens a file. Its batches have only these columns, or all.
    pub(super) fn open(blob: &Arc<dyn Blob>, columns: Option<Vec<usize>>) -> Result<Self> {
        let failed = |problem: &dyn std::fmt::Display| failed(blob, problem);
        let length = blob.len()?;
        let footer_end = length.checked_sub(TAIL).ok_or_else(|| failed(&"too short for an Arrow file"))?;
        let tail = blob.read_at(footer_end, TAIL)?;
        let tail = <[u8; TAIL as usize]>::try_from(&*tail).map_err(|_| failed(&"the end is missing"))?;
        let footer_length = read_footer_length(tail).map_err(|error| failed(&error))? as u64;
        let start = footer_end
            .checked_sub(footer_length)
            .ok_or_else(|| failed(&format!("a footer of {footer_length} bytes in a file of {length}")))?;
        let bytes = blob.read_at(start, footer_length)?;
        let footer = arrow_ipc::root_as_footer(&bytes).map_err(|error| failed(&error))?;
        let described = footer.schema().ok_or_else(|| failed(&"the footer has no schema"))?;
        if !described.endianness().equals_to_target_endianness() {
            return Err(Error::unsupported(Arc::clone(blob.name()), "an Arrow file in another byte order"));
        }
        let schema = arrow_ipc::convert::try_fb_to_schema(described).map_err(|error| failed(&error))?;
        let schema = Arc::new(schema);
        let mut decoder = FileDecoder::new(Arc::clone(&schema), footer.version());
        if let Some(columns) = columns {
            decoder = decoder.with_projection(columns);
        }
        for block in footer.dictionaries().into_iter().flatten() {
            let content = checked(blob, block)?;
            decoder.read_dictionary(block, &content).map_err(|error| failed(&error))?;
        }
        let blocks = footer.recordBatches().into_iter().flatten().copied().collect();
        Ok(Self { blob: Arc::clone(blob), schema, decoder, blocks })
    }

    /// The schema of all columns.
    pub(super) fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// The batches of the file.
    pub(super) fn batches(self) -> impl Iterator<Item = Result<RecordBatch>> + Send {
        let Self { blob, decoder, blocks, .. } = self;
        blocks.into_iter().filter_map(move |block| {
            checked(&blob, &block)
                .and_then(|content| {
                    decoder.read_record_batch(&block, &content).map_err(|error| failed(&blob, &error))
                })
                .transpose()
        })
    }
}

fn failed(blob: &Arc<dyn Blob>, problem: &dyn std::fmt::Display) -> Error {
    Error::invalid(format!("{}: {problem}", blob.name()))
}

/// Checks that a block can be decoded without claims beyond its bytes.
pub(crate) fn check_block(blob: &Arc<dyn Blob>, block: &Block) -> Result<()> {
    checked(blob, block).map(|_| ())
}

/// The bytes of a block: a message and its body. The message's buffers lie in the body and claim no more than it can hold.
fn checked(blob: &Arc<dyn Blob>, block: &Block) -> Result<Buffer> {
    let place = format!("block at {:#x}", block.offset());
    let wrong = |problem: String| failed(blob, &format!("{place}: {problem}"));
    let lengths = || {
        let start = u64::try_from(block.offset()).ok()?;
        let head = u64::try_from(block.metaDataLength()).ok()?;
        let body = u64::try_from(block.bodyLength()).ok()?;
        Some((start, head, head.checked_add(body)?))
    };
    let (start, head, length) = lengths().ok_or_else(|| wrong("a negative offset or length".to_owned()))?;
    let bytes = blob.read_at(start, length)?;
    let (message, body) = bytes.split_at(head as usize);
    let marked = message.starts_with(&[0xff; UNMARKED]);
    let message = message
        .get(if marked { MARKED } else { UNMARKED }..)
        .ok_or_else(|| wrong(format!("a message of {head} bytes")))?;
    let message = arrow_ipc::root_as_message(message).map_err(|error| wrong(error.to_string()))?;
    let batch = match message.header_type() {
        MessageHeader::DictionaryBatch => message.header_as_dictionary_batch().and_then(|own| own.data()),
        _ => message.header_as_record_batch(),
    };
    let Some(batch) = batch else { return Ok(Buffer::from(bytes)) };
    let compressed = batch.compression().is_some();
    let mut claimed = 0_u64;
    for buffer in batch.buffers().into_iter().flatten() {
        let stored = stored(body, buffer).ok_or_else(|| {
            wrong(format!("a buffer of {} bytes at {} lies outside", buffer.length(), buffer.offset()))
        })?;
        // -1 stands for a buffer that is stored as it is.
        if let Some(prefix) = stored.first_chunk::<PREFIX>().filter(|_| compressed) {
            claimed = claimed.saturating_add(i64::from_le_bytes(*prefix).max(0).cast_unsigned());
        }
    }
    if !is_plausible(claimed, length) {
        return Err(wrong(format!("{length} stored bytes cannot hold {claimed}")));
    }
    Ok(Buffer::from(bytes))
}

/// The stored bytes of a buffer, if they lie in the body.
fn stored<'a>(body: &'a [u8], buffer: &arrow_ipc::Buffer) -> Option<&'a [u8]> {
    let start = usize::try_from(buffer.offset()).ok()?;
    body.get(start..start.checked_add(usize::try_from(buffer.length()).ok()?)?)
}
