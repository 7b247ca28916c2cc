//! The list of external files that hold a contiguous dataset's bytes.

use hyperslab_core::{Fields, Result};

use crate::file::{File, FileFields, ones};
use crate::header::Message;
use crate::heap::local::LocalHeap;

/// A part of an external file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) file: String,
    pub(crate) offset: u64,
    /// The number of bytes; `None` for all that are available.
    pub(crate) size: Option<u64>,
}

/// The parts, in the order of the elements.
pub(crate) fn parse(file: &File, message: &Message) -> Result<Vec<Slot>> {
    let mut fields: Fields<'_> = message.fields(file, "external file list message");
    fields.version(&[1])?;
    fields.skip(3 + 2)?;
    let place = fields.place();
    let used = usize::from(fields.u16()?);
    let heap = LocalHeap::read(file, fields.defined(file.sizes())?)?;
    if used > fields.remaining() / (3 * file.sizes().length) {
        return Err(place.corrupt(format!("{used} files")));
    }
    let sizes = file.sizes();
    (0..used)
        .map(|_| {
            let name = heap.name(file, fields.length(sizes)?)?;
            let offset = fields.length(sizes)?;
            let size = fields.length(sizes)?;
            Ok(Slot { file: name, offset, size: (size != ones(sizes.length)).then_some(size) })
        })
        .collect()
}
