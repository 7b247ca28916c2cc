//! Writes global heap collections.

use hyperslab_core::{Error, Result};

use super::output::Output;
use crate::encode::Encoder;
use crate::file::Sizes;

/// libhdf5's minimum size of a collection.
const LEAST: usize = 4096;
/// Collections grow up to this size as more objects arrive.
const USUAL: usize = 64 << 10;

/// Collects objects of any size in heap collections.
#[derive(Debug)]
pub(crate) struct HeapWriter {
    sizes: Sizes,
    open: Option<Collection>,
    /// Bytes of the next collection.
    next: usize,
}

#[derive(Debug)]
struct Collection {
    address: u64,
    size: usize,
    objects: Encoder,
    count: u16,
}

impl HeapWriter {
    pub(crate) const fn new(sizes: Sizes) -> Self {
        Self { sizes, open: None, next: LEAST }
    }

    /// The length of the header of a collection or of an object.
    fn head(&self) -> usize {
        (8 + self.sizes.length).next_multiple_of(8)
    }

    /// Stores an object. Returns its collection's address and its number there.
    pub(crate) fn keep(&mut self, output: &Output, object: &[u8]) -> Result<(u64, u32)> {
        let needed = self.head() + object.len().next_multiple_of(8);
        let fits = |open: &Collection| open.count < u16::MAX && open.objects.len() + needed <= open.size;
        if !self.open.as_ref().is_some_and(fits) {
            self.start(output, needed)?;
        }
        let head = self.head();
        let Some(open) = &mut self.open else { return Err(Error::invalid("no heap collection")) };
        open.count += 1;
        let out = &mut open.objects;
        let from = out.len();
        out.u16(open.count).u16(0).u32(0).length(object.len() as u64).pad(from, head);
        out.put(object).pad(from, 8);
        Ok((open.address, u32::from(open.count)))
    }

    fn start(&mut self, output: &Output, needed: usize) -> Result<()> {
        self.close(output)?;
        let size = self.next.max(self.head() + needed);
        self.next = (2 * self.next).min(USUAL);
        let address = output.allocate(size as u64)?;
        let mut objects = Encoder::magic(self.sizes, b"GCOL", 1);
        objects.zeros(3).length(size as u64).pad(0, self.head());
        self.open = Some(Collection { address, size, objects, count: 0 });
        Ok(())
    }

    /// Writes the open collection. Later objects go into another one, so references to this one stay valid.
    pub(crate) fn close(&mut self, output: &Output) -> Result<()> {
        let Some(mut open) = self.open.take() else { return Ok(()) };
        let left = open.size - open.objects.len();
        // Free space includes its own header; less than a header is not described.
        if left >= self.head() {
            open.objects.u64(0).length(left as u64);
        }
        open.objects.fill(open.size);
        output.write_at(open.address, &open.objects.finish()?)
    }

    /// Like [`close`](Self::close), at a flush: the next collection starts small again.
    pub(crate) fn flush(&mut self, output: &Output) -> Result<()> {
        self.next = LEAST;
        self.close(output)
    }
}
