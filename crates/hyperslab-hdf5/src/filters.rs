//! The filter pipeline: decodes chunks, with the kernels in order and with shared buffers.

pub(crate) mod choose;
mod describe;
mod encode;
mod step;

use hyperslab_core::{Place, Result, StoredStep, recycle_scratch, take_scratch};
use smallvec::SmallVec;

pub(crate) use describe::{describe, name_of};
pub(crate) use encode::check;

use crate::message::pipeline::FilterSpec;

/// Filter numbers.
pub(crate) mod id {
    pub(crate) const DEFLATE: u16 = 1;
    pub(crate) const SHUFFLE: u16 = 2;
    pub(crate) const FLETCHER32: u16 = 3;
    pub(crate) const SZIP: u16 = 4;
    pub(crate) const NBIT: u16 = 5;
    pub(crate) const SCALE_OFFSET: u16 = 6;
    pub(crate) const BZIP2: u16 = 307;
    pub(crate) const LZF: u16 = 32000;
    pub(crate) const BLOSC: u16 = 32001;
    pub(crate) const LZ4: u16 = 32004;
    pub(crate) const BITSHUFFLE: u16 = 32008;
    pub(crate) const ZFP: u16 = 32013;
    pub(crate) const ZSTD: u16 = 32015;
    pub(crate) const BLOSC2: u16 = 32026;
}

/// A dataset's filters, in writing order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pipeline {
    pub(crate) specs: Vec<FilterSpec>,
}

impl Pipeline {
    pub(crate) const fn new(specs: Vec<FilterSpec>) -> Self {
        Self { specs }
    }

    /// Returns true if chunks with this mask are stored unfiltered.
    pub(crate) fn is_plain(&self, mask: u32) -> bool {
        (0..self.specs.len()).all(|filter| mask >> filter & 1 == 1)
    }

    /// A format-independent description of the filters applied with this mask; `None` if there is none.
    pub(crate) fn stored_steps(&self, mask: u32) -> Option<Vec<StoredStep>> {
        let used = self.specs.iter().enumerate().filter(|(filter, _)| mask >> filter & 1 == 0);
        used.map(|(_, spec)| {
            Some(match spec.id {
                id::DEFLATE => StoredStep::Zlib,
                id::SHUFFLE => StoredStep::Shuffle(*spec.values.first()? as usize),
                id::FLETCHER32 => StoredStep::Fletcher32,
                id::BZIP2 => StoredStep::Bzip2,
                id::ZSTD => StoredStep::Zstd,
                id::BLOSC => StoredStep::Blosc,
                id => StoredStep::Numbered(id.into()),
            })
        })
        .collect()
    }

    /// The mask for a chunk with exactly these steps; `None` if these filters do not provide them.
    pub(crate) fn mask_of(&self, steps: &[StoredStep]) -> Option<u32> {
        let (mut mask, mut steps) = (0, steps.iter().peekable());
        for filter in 0..self.specs.len() {
            let alone = self.stored_steps(!(1 << filter))?;
            match steps.next_if(|step| alone == [**step]) {
                Some(_) => {}
                None => mask |= 1 << filter,
            }
        }
        steps.next().is_none().then_some(mask)
    }

    /// Undoes the filters that `mask` does not skip, last to first. The last step writes directly into `out`.
    pub(crate) fn decode(&self, mask: u32, stored: &[u8], out: &mut [u8], place: Place<'_>) -> Result<()> {
        let sizes = self.sizes(mask, out.len());
        let used: SmallVec<[usize; 4]> =
            (0..self.specs.len()).filter(|filter| mask >> filter & 1 == 0).collect();
        let Some((&last, before)) = used.split_first() else {
            if stored.len() != out.len() {
                return Err(place.corrupt(format!("{} bytes stored, expected {}", stored.len(), out.len())));
            }
            out.copy_from_slice(stored);
            return Ok(());
        };
        let (mut from, mut to) = (take_scratch(), take_scratch());
        // The number of valid bytes in `from`; `None` before the first step.
        let mut held: Option<usize> = None;
        let result = (|| {
            for &filter in before.iter().rev() {
                let input = held.map_or(stored, |length| &from[..length]);
                let spec = &self.specs[filter];
                let length = match sizes[filter] {
                    Some(length) => {
                        if to.len() < length {
                            to.resize(length, 0);
                        }
                        step::decode(spec, input, &mut to[..length], place)?;
                        length
                    }
                    None => {
                        to.clear();
                        step::decode_vec(spec, input, limit(out.len()), &mut to, place)?;
                        to.len()
                    }
                };
                held = Some(length);
                std::mem::swap(&mut from, &mut to);
            }
            let input = held.map_or(stored, |length| &from[..length]);
            step::decode(&self.specs[last], input, out, place)
        })();
        recycle_scratch(to);
        recycle_scratch(from);
        result
    }

    /// The input size of each filter when the chunk was written, if it can be known.
    fn sizes(&self, mask: u32, chunk: usize) -> SmallVec<[Option<usize>; 4]> {
        let mut size = Some(chunk);
        let mut sizes = SmallVec::new();
        for (filter, spec) in self.specs.iter().enumerate() {
            sizes.push(size);
            if mask >> filter & 1 == 0 {
                size = match spec.id {
                    id::SHUFFLE => size,
                    id::FLETCHER32 => size.and_then(|size| size.checked_add(4)),
                    _ => None,
                };
            }
        }
        sizes
    }
}

/// The maximum output of an intermediate filter: encoders expand incompressible data only slightly.
fn limit(chunk: usize) -> usize {
    chunk.saturating_mul(2).saturating_add(1 << 16)
}
