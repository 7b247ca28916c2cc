//! The manifests of one chunk of the object index: decoded as far as somebody asked, and kept in little memory.
//!
//! A block that is stored in 33 bytes (three coordinates of 8 bytes, a mode, a fragment) takes 12 here: most name one
//! fragment, or one run, of a chunk that has a number in the level's grid. Manifests with any other block are kept as
//! they are stored.

use std::collections::HashMap;

use hyperslab_core::{Place, Result};
use hyperslab_zarr::ElementStream;

use crate::coord::Coord;
use crate::manifest::{self, Block, Fragments};

/// A box of chunks, in which each has a number.
#[derive(Debug, Clone)]
pub(crate) struct ChunkBox {
    pub(crate) origin: Coord,
    pub(crate) shape: Vec<u64>,
}

impl ChunkBox {
    /// No chunks, of coordinates of so many numbers.
    pub(crate) fn none(rank: usize) -> Self {
        Self { origin: Coord::from_elem(0, rank), shape: vec![0; rank] }
    }

    /// The number of the chunk whose coordinate these bytes are.
    fn number(&self, coord: &[u8]) -> Option<u32> {
        let mut number = 0_u64;
        for ((part, origin), extent) in coord.as_chunks::<8>().0.iter().zip(&self.origin).zip(&self.shape) {
            let at = i64::from_le_bytes(*part).wrapping_sub(*origin).cast_unsigned();
            if at >= *extent {
                return None;
            }
            // Below 2^32 before, the product of two such numbers fits.
            number = number * u64::from(u32::try_from(*extent).ok()?) + at;
            u32::try_from(number).ok()?;
        }
        u32::try_from(number).ok()
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

/// One block in few bytes.
#[derive(Debug, Clone, Copy)]
struct Packed {
    chunk: u32,
    first: u32,
    /// Of a run; 0: a single fragment.
    count: u32,
}

/// The manifests of one chunk of the index.
#[derive(Debug)]
pub(crate) struct Manifests {
    /// Where the next come from; `None` when the chunk was never written: all are empty.
    stream: Option<ElementStream>,
    chunks: ChunkBox,
    /// The number of blocks up to the end of each manifest.
    ends: Vec<usize>,
    blocks: Vec<Packed>,
    others: HashMap<usize, Box<[u8]>>,
    /// Why no more can be read.
    broken: Option<String>,
}

impl Manifests {
    pub(crate) fn new(stream: Option<ElementStream>, chunks: ChunkBox) -> Self {
        Self { stream, chunks, ends: Vec::new(), blocks: Vec::new(), others: HashMap::new(), broken: None }
    }

    /// The blocks of a manifest.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](hyperslab_core::Error::Corrupt) for false manifests, and for chunks that do not decode up to there.
    pub(crate) fn get(&mut self, row: usize, place: Place<'_>) -> Result<Vec<Block>> {
        let rank = self.chunks.origin.len();
        while self.ends.len() <= row {
            if let Some(problem) = &self.broken {
                return Err(place.corrupt(problem.as_str()));
            }
            let Some(stream) = &mut self.stream else { return Ok(Vec::new()) };
            let manifest = match stream.next_element() {
                Ok(Some(manifest)) => manifest,
                Ok(None) => return Ok(Vec::new()),
                Err(error) => {
                    self.broken = Some(error.to_string());
                    return Err(error);
                }
            };
            let before = self.blocks.len();
            if pack(manifest, &self.chunks, &mut self.blocks).is_none() {
                self.blocks.truncate(before);
                self.others.insert(self.ends.len(), manifest.into());
            }
            self.ends.push(self.blocks.len());
        }
        if let Some(manifest) = self.others.get(&row) {
            return manifest::parse(manifest, rank, place);
        }
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        let block = |packed: &Packed| Block {
            chunk: self.chunks.coord(packed.chunk),
            fragments: match (u64::from(packed.first), u64::from(packed.count)) {
                (one, 0) => Fragments::One(one),
                (first, count) => Fragments::Run { first, count },
            },
        };
        Ok(self.blocks[start..self.ends[row]].iter().map(block).collect())
    }
}

/// Appends the blocks of a manifest; `None` when one does not fit, and the blocks before it were appended.
fn pack(manifest: &[u8], chunks: &ChunkBox, blocks: &mut Vec<Packed>) -> Option<()> {
    if manifest.is_empty() {
        return Some(());
    }
    let (count, mut rest) = manifest.split_first_chunk::<4>()?;
    for _ in 0..u32::from_le_bytes(*count) {
        let (coord, after) = rest.split_at_checked(8 * chunks.origin.len())?;
        let chunk = chunks.number(coord)?;
        let (mode, after) = after.split_first()?;
        let (first, after) = number(after)?;
        let (count, after) = match mode {
            0 => (0, after),
            1 => number(after).filter(|(count, _)| *count > 0)?,
            _ => return None,
        };
        blocks.push(Packed { chunk, first, count });
        rest = after;
    }
    rest.is_empty().then_some(())
}

/// A number below 2^32, and what follows it.
fn number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = bytes.split_first_chunk::<8>()?;
    Some((u32::try_from(u64::from_le_bytes(*number)).ok()?, rest))
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

    /// What is packed, one manifest after the other.
    fn packed(manifests: &[Vec<u8>]) -> Manifests {
        let mut all = Manifests::new(None, ChunkBox { origin: smallvec![-3, 0], shape: vec![6, 8] });
        for manifest in manifests {
            let before = all.blocks.len();
            if pack(manifest, &all.chunks, &mut all.blocks).is_none() {
                all.blocks.truncate(before);
                all.others.insert(all.ends.len(), manifest.as_slice().into());
            }
            all.ends.push(all.blocks.len());
        }
        all
    }

    proptest! {
        #[test]
        fn what_is_packed_comes_back(manifests in proptest::collection::vec(blocks(), 1..5)) {
            let place = Place::new("x.zv", "manifest", 0);
            let stored: Vec<Vec<u8>> = manifests.iter().map(|own| manifest::encode(own).unwrap()).collect();
            let mut all = packed(&stored);
            for (row, blocks) in manifests.iter().enumerate() {
                prop_assert_eq!(&all.get(row, place).unwrap(), blocks);
            }
        }

        #[test]
        fn any_bytes_are_read_as_they_are_parsed(bytes: Vec<u8>) {
            let place = Place::new("x.zv", "manifest", 0);
            let (ours, parsed) = (packed(std::slice::from_ref(&bytes)).get(0, place), manifest::parse(&bytes, 2, place));
            prop_assert_eq!(ours.ok(), parsed.ok());
        }
    }

    #[test]
    fn numbers_of_chunks() {
        let chunks = ChunkBox { origin: smallvec![-3, 0], shape: vec![6, 8] };
        let number = |coord: [i64; 2]| chunks.number(&coord.map(i64::to_le_bytes).concat());
        for x in -5..5 {
            for y in -2..10 {
                let inside = (-3..3).contains(&x) && (0..8).contains(&y);
                let found = number([x, y]);
                assert_eq!(found.is_some(), inside);
                assert!(found.is_none_or(|found| chunks.coord(found)[..] == [x, y]));
            }
        }
        assert_eq!(number([i64::MIN, i64::MAX]), None);
        let huge = ChunkBox { origin: smallvec![0, 0], shape: vec![u64::MAX, 1 << 32] };
        assert_eq!(huge.number(&[[5_i64; 2].map(i64::to_le_bytes).concat()].concat()), None);
    }
}
