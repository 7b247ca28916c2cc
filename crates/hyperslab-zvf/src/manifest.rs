//! Manifests: the fragments of an object, in order.
//!
//! Layout: `u32` number of blocks, then for each: `i64` per axis of the chunk's coordinate, `u8` mode, and depending
//! on the mode one fragment (`i64`), a run (`i64` first, `i64` count) or a list (`u32` count, `i64` each). There is
//! no padding. Without blocks, or without any bytes, the object is absent at this level.

use hyperslab_core::{Error, Fields, Place, Result};

use crate::coord::Coord;

/// Fragments of one chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) chunk: Coord,
    pub(crate) fragments: Fragments,
}

/// A selection of a chunk's fragments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fragments {
    One(u64),
    Run { first: u64, count: u64 },
    List(Box<[u64]>),
}

impl Fragments {
    /// Iterates over the fragments in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        let (first, count, list) = match self {
            Self::One(one) => (*one, 1, &[][..]),
            Self::Run { first, count } => (*first, *count, &[][..]),
            Self::List(list) => (0, 0, &list[..]),
        };
        (first..first.saturating_add(count)).chain(list.iter().copied())
    }

    /// The number of fragments.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::One(_) => 1,
            Self::Run { count, .. } => *count,
            Self::List(list) => list.len() as u64,
        }
    }

    /// The largest fragment number; `None` if there are none.
    pub(crate) fn last(&self) -> Option<u64> {
        match self {
            Self::One(one) => Some(*one),
            Self::Run { count: 0, .. } => None,
            Self::Run { first, count } => Some(first.saturating_add(count - 1)),
            Self::List(list) => list.iter().max().copied(),
        }
    }
}

/// Parses the blocks of a manifest. Coordinates have `rank` numbers.
pub(crate) fn parse(bytes: &[u8], rank: usize, place: Place<'_>) -> Result<Vec<Block>> {
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    let mut fields = Fields::new(bytes, place);
    // The shortest block: a coordinate, a mode, and an empty list.
    let count = fields.count_u32(8 * rank + 5)?;
    let mut blocks = Vec::with_capacity(count);
    for _ in 0..count {
        let chunk = (0..rank).map(|_| fields.i64()).collect::<Result<Coord>>()?;
        let at = fields.place();
        let fragments = match fields.u8()? {
            0 => Fragments::One(number(&mut fields)?),
            1 => Fragments::Run { first: number(&mut fields)?, count: number(&mut fields)? },
            2 => {
                let count = fields.count_u32(8)?;
                Fragments::List((0..count).map(|_| number(&mut fields)).collect::<Result<_>>()?)
            }
            mode => return Err(at.corrupt(format!("block mode {mode}"))),
        };
        blocks.push(Block { chunk, fragments });
    }
    fields.end()?;
    Ok(blocks)
}

fn number(fields: &mut Fields<'_>) -> Result<u64> {
    let at = fields.place();
    let number = fields.i64()?;
    u64::try_from(number).map_err(|_| at.corrupt(format!("a fragment or count of {number}")))
}

/// Builds a manifest fragment by fragment.
#[derive(Debug)]
pub(crate) struct Encoder {
    bytes: Vec<u8>,
    blocks: u32,
    /// The chunk's number, and the first and count of the block that may still grow.
    last: Option<(u32, u64, u64)>,
}

impl Default for Encoder {
    fn default() -> Self {
        Self { bytes: vec![0; 4], blocks: 0, last: None }
    }
}

impl Encoder {
    /// Appends a fragment of a chunk. Extends the previous run if the fragment follows it in the same chunk.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) if there are more blocks than a `u32` can count.
    pub(crate) fn add(&mut self, chunk: u32, coord: &Coord, fragment: u64) -> Result<()> {
        if let Some((own, first, count)) = &mut self.last
            && *own == chunk
            && *first + *count == fragment
        {
            *count += 1;
            return Ok(());
        }
        self.end_block();
        let blocks = self.blocks.checked_add(1);
        self.blocks = blocks.ok_or_else(|| Error::invalid("a manifest with more than 2^32 blocks"))?;
        coord.iter().for_each(|part| self.bytes.extend_from_slice(&part.to_le_bytes()));
        self.last = Some((chunk, fragment, 1));
        Ok(())
    }

    fn end_block(&mut self) {
        let Some((_, first, count)) = self.last.take() else { return };
        self.bytes.push(u8::from(count > 1));
        self.bytes.extend_from_slice(&first.to_le_bytes());
        if count > 1 {
            self.bytes.extend_from_slice(&count.to_le_bytes());
        }
    }

    /// Finishes the manifest and returns its bytes.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.end_block();
        self.bytes[..4].copy_from_slice(&self.blocks.to_le_bytes());
        self.bytes
    }
}

/// Encodes blocks of any mode. The writer itself never produces lists.
#[cfg(test)]
pub(crate) fn encode(blocks: &[Block]) -> Result<Vec<u8>> {
    let many = |_| Error::invalid("a manifest with more than 2^32 blocks");
    let mut bytes = Vec::from(u32::try_from(blocks.len()).map_err(many)?.to_le_bytes());
    for block in blocks {
        bytes.extend(block.chunk.iter().flat_map(|part| part.to_le_bytes()));
        match &block.fragments {
            Fragments::One(one) => {
                bytes.push(0);
                bytes.extend(one.to_le_bytes());
            }
            Fragments::Run { first, count } => {
                bytes.push(1);
                bytes.extend(first.to_le_bytes());
                bytes.extend(count.to_le_bytes());
            }
            Fragments::List(list) => {
                bytes.push(2);
                bytes.extend(u32::try_from(list.len()).map_err(many)?.to_le_bytes());
                bytes.extend(list.iter().flat_map(|fragment| fragment.to_le_bytes()));
            }
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use smallvec::smallvec;

    const PLACE: Place<'_> = Place::new("x.zv", "manifest of object 3", 0);

    fn blocks() -> Vec<Block> {
        vec![
            Block { chunk: smallvec![0, -1, 2], fragments: Fragments::One(5) },
            Block { chunk: smallvec![1, 1, 1], fragments: Fragments::Run { first: 2, count: 3 } },
            Block { chunk: smallvec![1, 1, 1], fragments: Fragments::List([9, 0].into()) },
        ]
    }

    #[test]
    fn all_modes_round_trip() -> Result<()> {
        let bytes = encode(&blocks())?;
        assert_eq!(bytes.len(), 4 + 33 + 41 + 45);
        assert_eq!(parse(&bytes, 3, PLACE)?, blocks());
        let all: Vec<u64> =
            blocks().iter().flat_map(|block| block.fragments.iter().collect::<Vec<_>>()).collect();
        assert_eq!(all, [5, 2, 3, 4, 9, 0]);
        assert_eq!(blocks()[1].fragments.last(), Some(4));
        assert!(parse(&[], 3, PLACE)?.is_empty() && parse(&[0; 4], 3, PLACE)?.is_empty());
        Ok(())
    }

    #[test]
    fn fragments_become_runs() -> Result<()> {
        let (a, b): (Coord, Coord) = (smallvec![0, -1, 2], smallvec![1, 1, 1]);
        let mut encoder = Encoder::default();
        for (chunk, coord, fragment) in
            [(0, &a, 5), (1, &b, 2), (1, &b, 3), (1, &b, 4), (1, &b, 9), (0, &a, 10)]
        {
            encoder.add(chunk, coord, fragment)?;
        }
        let block = |chunk: &Coord, fragments| Block { chunk: chunk.clone(), fragments };
        let expected = [
            block(&a, Fragments::One(5)),
            block(&b, Fragments::Run { first: 2, count: 3 }),
            block(&b, Fragments::One(9)),
            block(&a, Fragments::One(10)),
        ];
        let bytes = encoder.finish();
        assert_eq!(bytes, encode(&expected)?);
        assert_eq!(parse(&bytes, 3, PLACE)?, expected);
        assert_eq!(Encoder::default().finish(), [0; 4]);
        Ok(())
    }

    #[test]
    fn invalid_manifests_are_rejected() -> Result<()> {
        let bytes = encode(&blocks())?;
        for length in 1..bytes.len() {
            assert!(parse(&bytes[..length], 3, PLACE).unwrap_err().is_corrupt());
        }
        let mut mode = bytes.clone();
        mode[28] = 3;
        assert!(parse(&mode, 3, PLACE).unwrap_err().to_string().contains("mode 3"));
        let mut negative = bytes.clone();
        negative[36] = 0x80;
        assert!(parse(&negative, 3, PLACE).unwrap_err().is_corrupt());
        let mut longer = bytes;
        longer.push(0);
        assert!(parse(&longer, 3, PLACE).unwrap_err().is_corrupt());
        assert!(parse(&[255; 40], 3, PLACE).unwrap_err().is_corrupt());
        Ok(())
    }
}
