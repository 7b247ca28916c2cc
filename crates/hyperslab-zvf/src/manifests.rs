//! The manifests of one chunk of the object index: decoded as far as requested, and cached in little memory.
//!
//! A block that is stored in 33 bytes (three coordinates of 8 bytes, a mode, a fragment) takes 12 bytes here: most
//! blocks name one fragment or one run, and their chunk has a number in the level's grid. Manifests with any other
//! block are cached as stored.

use std::collections::HashMap;

use hyperslab_core::{Place, Result, product};
use hyperslab_zarr::ElementStream;

use crate::coord::Coord;
use crate::manifest::{self, Block, Fragments};

/// A box of numbered chunks.
#[derive(Debug, Clone)]
pub(crate) struct ChunkBox {
    origin: Coord,
    shape: Vec<u64>,
}

impl ChunkBox {
    /// The chunks starting at `origin`; empty if their number exceeds 32 bits.
    pub(crate) fn new(origin: Coord, shape: &[u64]) -> Self {
        let countable = product(shape).is_some_and(|count| count <= 1 << 32) && origin.len() == shape.len();
        if countable { Self { origin, shape: shape.to_vec() } } else { Self::none(origin.len()) }
    }

    /// An empty box of this rank.
    pub(crate) fn none(rank: usize) -> Self {
        Self { origin: Coord::from_elem(0, rank), shape: vec![0; rank] }
    }

    pub(crate) fn rank(&self) -> usize {
        self.shape.len()
    }

    fn coord(&self, number: u32) -> Coord {
        let mut left = u64::from(number);
        let mut coord = self.origin.clone();
        for (part, extent) in coord.iter_mut().zip(&self.shape).rev() {
            *part = part.wrapping_add_unsigned(left % extent);
            left /= extent;
        }
        coord
    }
}

/// One packed block.
#[derive(Debug, Clone, Copy)]
struct Packed {
    chunk: u32,
    first: u32,
    /// The length of a run; 0 for a single fragment.
    count: u32,
}

/// One manifest.
#[derive(Debug)]
enum Manifest {
    Packed(Box<[Packed]>),
    AsStored(Box<[u8]>),
}

impl Manifest {
    fn new(stored: &[u8], chunks: &ChunkBox) -> Self {
        pack(stored, chunks).map_or_else(|| Self::AsStored(stored.into()), Self::Packed)
    }

    fn blocks(&self, chunks: &ChunkBox, place: Place<'_>) -> Result<Vec<Block>> {
        let packed = match self {
            Self::Packed(packed) => packed,
            Self::AsStored(stored) => return manifest::parse(stored, chunks.rank(), place),
        };
        let block = |packed: &Packed| Block {
            chunk: chunks.coord(packed.chunk),
            fragments: match (u64::from(packed.first), u64::from(packed.count)) {
                (one, 0) => Fragments::One(one),
                (first, count) => Fragments::Run { first, count },
            },
        };
        Ok(packed.iter().map(block).collect())
    }
}

/// The manifests of one chunk of the index.
///
/// The first requests are served in a single pass without caching. A request for an earlier manifest indicates random
/// access, so a second pass caches all of them.
#[derive(Debug)]
pub(crate) struct Manifests {
    chunks: ChunkBox,
    pass: Pass,
    kept: HashMap<usize, Manifest>,
    keeps_all: bool,
}

#[derive(Debug)]
enum Pass {
    /// The source of the next manifests and its number. Without a stream, the chunk was never written, and all
    /// manifests are empty.
    At(usize, Option<ElementStream>),
    /// The reason why no more can be read.
    Broken(String),
}

impl Manifests {
    pub(crate) fn new(stream: Option<ElementStream>, chunks: ChunkBox) -> Self {
        Self { chunks, pass: Pass::At(0, stream), kept: HashMap::new(), keeps_all: false }
    }

    /// The blocks of a manifest. `again` starts a second pass.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](hyperslab_core::Error::Corrupt) for invalid manifests, and for chunks that do not decode that far.
    pub(crate) fn get(
        &mut self,
        row: usize,
        place: Place<'_>,
        again: impl FnOnce() -> Result<Option<ElementStream>>,
    ) -> Result<Vec<Block>> {
        if let Some(manifest) = self.kept.get(&row) {
            return manifest.blocks(&self.chunks, place);
        }
        match &mut self.pass {
            Pass::At(next, elements)
                if *next <= row && !elements.as_ref().is_some_and(ElementStream::is_lost) => {}
            Pass::Broken(problem) if self.keeps_all => return Err(place.corrupt(problem.as_str())),
            pass => {
                *pass = Pass::At(0, again()?);
                self.keeps_all = true;
            }
        }
        while let Pass::At(next, Some(elements)) = &mut self.pass
            && *next <= row
        {
            match elements.next_element() {
                Ok(Some(stored)) => {
                    if self.keeps_all || *next == row {
                        self.kept.insert(*next, Manifest::new(stored, &self.chunks));
                    }
                    *next += 1;
                }
                Ok(None) => break,
                Err(error) => {
                    self.pass = Pass::Broken(error.to_string());
                    return Err(error);
                }
            }
        }
        self.kept.get(&row).map_or_else(|| Ok(Vec::new()), |manifest| manifest.blocks(&self.chunks, place))
    }
}

/// The blocks of a manifest; `None` if one of them cannot be packed.
fn pack(stored: &[u8], chunks: &ChunkBox) -> Option<Box<[Packed]>> {
    if stored.is_empty() {
        return Some(Box::default());
    }
    let (count, mut rest) = stored.split_first_chunk::<4>()?;
    let count = u32::from_le_bytes(*count) as usize;
    let (origin, shape) = (&chunks.origin[..], &chunks.shape[..]);
    // A coordinate, a mode, a fragment.
    let least = 8 * origin.len() + 9;
    if count.checked_mul(least).is_none_or(|least| least > rest.len()) {
        return None;
    }
    let mut blocks = Vec::with_capacity(count);
    for _ in 0..count {
        let (block, after) = rest.split_at_checked(least)?;
        let (words, mode_and_first) = block.split_at(8 * origin.len());
        let (mut chunk, mut inside) = (0_u64, true);
        for ((word, origin), extent) in words.as_chunks::<8>().0.iter().zip(origin).zip(shape) {
            let at = i64::from_le_bytes(*word).wrapping_sub(*origin).cast_unsigned();
            inside &= at < *extent;
            chunk = chunk.wrapping_mul(*extent).wrapping_add(at);
        }
        let (mode, first) = mode_and_first.split_first()?;
        let first = u32::try_from(u64::from_le_bytes(*first.first_chunk::<8>()?)).ok()?;
        rest = after;
        let count = match mode {
            0 => 0,
            1 => {
                let (count, after) = rest.split_first_chunk::<8>()?;
                rest = after;
                u32::try_from(u64::from_le_bytes(*count)).ok().filter(|count| *count > 0)?
            }
            _ => return None,
        };
        if !inside {
            return None;
        }
        // Inside the box, whose chunk numbers fit in 32 bits.
        blocks.push(Packed { chunk: chunk as u32, first, count });
    }
    rest.is_empty().then(|| blocks.into_boxed_slice())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use smallvec::smallvec;

    use super::*;

    fn fragments() -> impl Strategy<Value = Fragments> {
        let number = prop_oneof![0_u64..9, Just(u64::from(u32::MAX)), Just(1 << 40)];
        prop_oneof![
            number.clone().prop_map(Fragments::One),
            (number.clone(), number.clone()).prop_map(|(first, count)| Fragments::Run { first, count }),
            proptest::collection::vec(number, 0..3).prop_map(|list| Fragments::List(list.into())),
        ]
    }

    fn blocks() -> impl Strategy<Value = Vec<Block>> {
        let block = (-4_i64..4, 0_i64..9, fragments())
            .prop_map(|(x, y, fragments)| Block { chunk: smallvec![x, y], fragments });
        proptest::collection::vec(block, 0..4)
    }

    fn chunks() -> ChunkBox {
        ChunkBox::new(smallvec![-3, 0], &[6, 8])
    }

    proptest! {
        #[test]
        fn packed_blocks_round_trip(blocks in blocks()) {
            let place = Place::new("x.zv", "manifest", 0);
            let stored = manifest::encode(&blocks).unwrap();
            prop_assert_eq!(Manifest::new(&stored, &chunks()).blocks(&chunks(), place).unwrap(), blocks);
        }

        #[test]
        fn any_bytes_are_read_as_they_are_parsed(bytes: Vec<u8>) {
            let place = Place::new("x.zv", "manifest", 0);
            let blocks = Manifest::new(&bytes, &chunks()).blocks(&chunks(), place);
            prop_assert_eq!(blocks.ok(), manifest::parse(&bytes, 2, place).ok());
        }
    }

    #[test]
    fn only_chunks_of_the_box_are_packed() {
        for x in -5..5 {
            for y in -2..10 {
                let block = Block { chunk: smallvec![x, y], fragments: Fragments::One(7) };
                let packed = pack(&manifest::encode(&[block]).unwrap(), &chunks());
                let inside = (-3..3).contains(&x) && (0..8).contains(&y);
                assert_eq!(packed.is_some(), inside, "{x} {y}");
                assert!(packed.is_none_or(|packed| chunks().coord(packed[0].chunk)[..] == [x, y]));
            }
        }
        assert_eq!(ChunkBox::new(smallvec![0, 0], &[u64::MAX, 1 << 32]).shape, [0, 0]);
        assert_eq!(ChunkBox::new(smallvec![0, 0], &[1 << 16, 1 << 16]).shape, [1 << 16, 1 << 16]);
    }
}
