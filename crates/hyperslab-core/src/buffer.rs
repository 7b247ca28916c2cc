//! Memory for results: zeroed, aligned for every element type, backed by huge pages where that is faster.

use bytes::Bytes;
use memmap2::MmapMut;

use crate::{Error, Result};

/// Results of at least this size are memory-mapped so that the system can use huge pages: a gigabyte then takes 512 page faults
/// instead of 262,144.
const MAPPED_FROM: usize = 4 << 20;

/// A zeroed buffer, aligned to at least 8 bytes. It converts to [`Bytes`] without a copy.
#[derive(Debug)]
pub struct Buffer {
    memory: Memory,
    length: usize,
}

#[derive(Debug)]
enum Memory {
    Words(Vec<u64>),
    Mapped(MmapMut),
}

impl Buffer {
    /// Allocates `length` zero bytes.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) if the system cannot provide the memory.
    pub fn zeroed(length: usize) -> Result<Self> {
        let memory = if length < MAPPED_FROM {
            Memory::Words(vec![0; length.div_ceil(8)])
        } else {
            let mapped = MmapMut::map_anon(length)
                .map_err(|source| Error::invalid(format!("cannot allocate {length} bytes: {source}")))?;
            // Advice only: a system without huge pages uses ordinary ones.
            #[cfg(target_os = "linux")]
            let _ = mapped.advise(memmap2::Advice::HugePage);
            Memory::Mapped(mapped)
        };
        Ok(Self { memory, length })
    }

    /// The bytes, for writing.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        match &mut self.memory {
            Memory::Words(words) => &mut bytemuck::cast_slice_mut(words)[..self.length],
            Memory::Mapped(mapped) => &mut mapped[..self.length],
        }
    }

    /// Freezes the buffer into shared, read-only bytes.
    #[must_use]
    pub fn freeze(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        match &self.memory {
            Memory::Words(words) => &bytemuck::cast_slice(words)[..self.length],
            Memory::Mapped(mapped) => &mapped[..self.length],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_and_large_are_zeroed_and_aligned() -> Result<()> {
        for length in [0, 1, 13, MAPPED_FROM - 1, MAPPED_FROM + 5] {
            let mut buffer = Buffer::zeroed(length)?;
            assert!(buffer.as_ref().iter().all(|byte| *byte == 0));
            if let Some(last) = buffer.as_mut_slice().last_mut() {
                *last = 7;
            }
            let bytes = buffer.freeze();
            assert_eq!((bytes.len(), bytes.last().copied().unwrap_or(7)), (length, 7));
            assert_eq!(bytes.as_ptr().align_offset(8), 0);
        }
        Ok(())
    }
}
