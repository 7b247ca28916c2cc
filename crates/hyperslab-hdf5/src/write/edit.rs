//! Changes of messages in their places.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use hyperslab_core::{Error, Result};

use super::index::Patch;
use super::output::Output;
use crate::encode::renew_sum;
use crate::header::{Header, Message};

/// What is changed in an object's header.
#[derive(Debug, Default)]
pub(crate) struct HeaderEdit {
    /// Version 2 headers: blocks with sums, and the first byte of each that changed.
    blocks: BTreeMap<u64, (Vec<u8>, usize)>,
    /// Version 1 headers have no sums.
    plain: Vec<Patch>,
}

impl HeaderEdit {
    /// Replaces bytes of a message's body.
    pub(crate) fn set(
        &mut self,
        header: &Header,
        message: &Message,
        at: usize,
        bytes: &[u8],
        output: &Output,
    ) -> Result<()> {
        if message.flags & 2 != 0 || at + bytes.len() > message.body.len() {
            return Err(Error::unsupported(
                output.name().as_ref(),
                format!("changing a message of kind {:#x} that is shared or too small", message.kind),
            ));
        }
        let address = message.address + at as u64;
        if header.blocks.is_empty() {
            self.plain.push(Patch { address, bytes: bytes.to_vec() });
            return Ok(());
        }
        let inside = |(start, length): &&(u64, u64)| (*start..start + length).contains(&address);
        let Some(&(start, length)) = header.blocks.iter().find(inside) else {
            return Err(Error::invalid("a message outside its header"));
        };
        let (block, first) = match self.blocks.entry(start) {
            Entry::Occupied(held) => held.into_mut(),
            Entry::Vacant(free) => free.insert((output.read(start, length as usize)?, length as usize)),
        };
        let at = (address - start) as usize;
        block[at..at + bytes.len()].copy_from_slice(bytes);
        *first = (*first).min(at);
        Ok(())
    }

    /// The patches: of a block with a sum, all from the first change to the sum in one piece.
    pub(crate) fn patches(self) -> Vec<Patch> {
        let mut patches = self.plain;
        for (start, (mut block, first)) in self.blocks {
            renew_sum(&mut block);
            patches.push(Patch { address: start + first as u64, bytes: block.split_off(first) });
        }
        patches
    }
}
