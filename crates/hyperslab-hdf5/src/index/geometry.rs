//! The geometry of the extensible array: pure functions from its five parameters.
//!
//! The first elements are in the index block, the others in *data blocks*, which are grouped in *super blocks*. Super block `u`
//! has `2^(u/2)` data blocks of `data_min * 2^((u+1)/2)` elements each (integer divisions), so that sizes and counts
//! double in turn. The first super blocks have no structure of their own: the index block points to their data blocks.

/// The parameters of an extensible array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Geometry {
    /// log2 of the maximum number of elements.
    pub(crate) max_bits: u32,
    /// Elements in the index block.
    pub(crate) index_elements: u64,
    /// Elements in the smallest data block.
    pub(crate) data_min: u64,
    /// Data block pointers in the smallest super block that has a structure of its own.
    pub(crate) super_min: u64,
    /// log2 of the elements in a page.
    pub(crate) page_bits: u32,
}

/// The location of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spot {
    /// In the index block.
    Index(u64),
    /// In the data block to which the index block's slot points.
    Direct { slot: u64, block: DataBlock },
    /// In a data block to which a super block's slot points.
    Super { block: DataBlock },
}

/// A data block, and an element in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DataBlock {
    /// Its super block.
    pub(crate) super_block: u32,
    /// Its number in the super block.
    pub(crate) number: u64,
    /// The element in it.
    pub(crate) element: u64,
}

impl Geometry {
    /// Returns true if the parameters define everything below within 64 bits.
    pub(crate) fn is_valid(&self) -> bool {
        self.data_min.is_power_of_two()
            && self.super_min.is_power_of_two()
            && (1..=60).contains(&self.max_bits)
            && self.data_min.ilog2() <= self.max_bits
            && self.page_bits < 32
            && self.direct_super_blocks() <= self.super_blocks()
            // Blocks that the index block points to are never paged.
            && (0..self.direct_super_blocks()).all(|u| !self.is_paged(u))
    }

    /// The total number of super blocks.
    pub(crate) const fn super_blocks(&self) -> u32 {
        1 + self.max_bits - self.data_min.ilog2()
    }

    /// The number of super blocks whose data blocks the index block points to.
    pub(crate) const fn direct_super_blocks(&self) -> u32 {
        2 * self.super_min.ilog2()
    }

    /// The number of data blocks that the index block points to.
    pub(crate) const fn direct_blocks(&self) -> u64 {
        2 * (self.super_min - 1)
    }

    /// Data blocks of a super block.
    pub(crate) const fn blocks(u: u32) -> u64 {
        1 << (u / 2)
    }

    /// Elements of each data block of a super block.
    pub(crate) const fn elements(&self, u: u32) -> u64 {
        self.data_min << u.div_ceil(2)
    }

    /// The first element of a super block, counted after the index block's elements.
    pub(crate) const fn start_element(&self, u: u32) -> u64 {
        self.data_min * ((1 << u) - 1)
    }

    /// The first data block of a super block, counted from the start of the array.
    pub(crate) const fn start_block(u: u32) -> u64 {
        let k = u / 2;
        if u.is_multiple_of(2) { 2 * ((1 << k) - 1) } else { 3 * (1 << k) - 2 }
    }

    /// The capacity of the whole array in elements.
    pub(crate) const fn capacity(&self) -> u64 {
        self.index_elements.saturating_add(self.data_min.saturating_mul((1 << self.super_blocks()) - 1))
    }

    /// Elements in a page.
    pub(crate) const fn page(&self) -> u64 {
        1 << self.page_bits
    }

    /// Returns true if the data blocks of this super block are divided into pages.
    pub(crate) const fn is_paged(&self, u: u32) -> bool {
        self.elements(u) > self.page()
    }

    /// Pages of each data block of a super block.
    pub(crate) const fn pages(&self, u: u32) -> u64 {
        if self.is_paged(u) { self.elements(u) >> self.page_bits } else { 0 }
    }

    /// Bytes of a super block's page bitmap: reserved per block, although its bits form one string.
    pub(crate) const fn bitmap_bytes(&self, u: u32) -> u64 {
        Self::blocks(u) * self.pages(u).div_ceil(8)
    }

    /// Bytes of a block offset.
    pub(crate) const fn offset_bytes(&self) -> usize {
        (self.max_bits as usize).div_ceil(8)
    }

    /// The location of an element; `None` after the last.
    pub(crate) fn locate(&self, index: u64) -> Option<Spot> {
        if index >= self.capacity() {
            return None;
        }
        let Some(element) = index.checked_sub(self.index_elements) else { return Some(Spot::Index(index)) };
        let u = (element / self.data_min + 1).ilog2();
        let within = element - self.start_element(u);
        let (number, element) = (within / self.elements(u), within % self.elements(u));
        let block = DataBlock { super_block: u, number, element };
        if u < self.direct_super_blocks() {
            return Some(Spot::Direct { slot: Self::start_block(u) + number, block });
        }
        Some(Spot::Super { block })
    }

    /// The first element of a data block, where a visitor starts.
    pub(crate) const fn first(&self, u: u32, number: u64) -> u64 {
        self.index_elements + self.start_element(u) + number * self.elements(u)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// libhdf5's defaults.
    const DEFAULT: Geometry =
        Geometry { max_bits: 32, index_elements: 4, data_min: 16, super_min: 4, page_bits: 10 };

    #[test]
    fn the_table_of_default_parameters() {
        // Per super block: blocks, elements, first element, first block, first chunk.
        let table = [
            (0, 1, 16, 0, 0, 4),
            (1, 1, 32, 16, 1, 20),
            (2, 2, 32, 48, 2, 52),
            (3, 2, 64, 112, 4, 116),
            (4, 4, 64, 240, 6, 244),
            (5, 4, 128, 496, 10, 500),
            (6, 8, 128, 1008, 14, 1012),
            (7, 8, 256, 2032, 22, 2036),
            (8, 16, 256, 4080, 30, 4084),
            (9, 16, 512, 8176, 46, 8180),
            (10, 32, 512, 16368, 62, 16372),
            (11, 32, 1024, 32752, 94, 32756),
            (12, 64, 1024, 65520, 126, 65524),
            (13, 64, 2048, 131_056, 190, 131_060),
        ];
        for (u, blocks, elements, start, block, first) in table {
            assert_eq!(Geometry::blocks(u), blocks);
            assert_eq!(DEFAULT.elements(u), elements);
            assert_eq!(DEFAULT.start_element(u), start);
            assert_eq!(Geometry::start_block(u), block);
            assert_eq!(DEFAULT.first(u, 0), first);
            assert_eq!(DEFAULT.is_paged(u), u >= 13);
        }
        assert_eq!(DEFAULT.super_blocks(), 29);
        assert_eq!(DEFAULT.direct_super_blocks(), 4);
        assert_eq!(DEFAULT.direct_blocks(), 6);
        assert_eq!(DEFAULT.capacity(), 8_589_934_580);
        assert_eq!(DEFAULT.bitmap_bytes(13), 64);
        assert_eq!(DEFAULT.offset_bytes(), 4);
        assert!(DEFAULT.is_valid());
    }

    fn geometries() -> impl Strategy<Value = Geometry> {
        (8_u32..48, 0_u64..300, 0_u32..7, 1_u32..5, 3_u32..14)
            .prop_map(|(max_bits, index_elements, data, sup, page_bits)| Geometry {
                max_bits,
                index_elements,
                data_min: 1 << data,
                super_min: 1 << sup,
                page_bits,
            })
            .prop_filter("valid", Geometry::is_valid)
    }

    proptest! {
        /// Super blocks are adjacent, in elements and in blocks.
        #[test]
        fn super_blocks_tile(geometry in geometries()) {
            for u in 0..geometry.super_blocks() {
                let next = geometry.start_element(u) + Geometry::blocks(u) * geometry.elements(u);
                prop_assert_eq!(geometry.start_element(u + 1), next);
                prop_assert_eq!(Geometry::start_block(u + 1), Geometry::start_block(u) + Geometry::blocks(u));
            }
            prop_assert_eq!(
                geometry.direct_blocks(),
                (0..geometry.direct_super_blocks()).map(Geometry::blocks).sum::<u64>()
            );
        }

        /// Locating is the inverse of enumerating.
        #[test]
        fn locate_is_the_inverse_of_first(geometry in geometries(), pick: u64) {
            let index = pick % geometry.capacity();
            let (block, direct) = match geometry.locate(index).unwrap() {
                Spot::Index(at) => {
                    prop_assert_eq!(at, index);
                    return Ok(());
                }
                Spot::Direct { slot, block } => {
                    prop_assert!(slot < geometry.direct_blocks());
                    (block, true)
                }
                Spot::Super { block } => (block, false),
            };
            prop_assert_eq!(direct, block.super_block < geometry.direct_super_blocks());
            prop_assert!(block.number < Geometry::blocks(block.super_block));
            prop_assert!(block.element < geometry.elements(block.super_block));
            prop_assert_eq!(geometry.first(block.super_block, block.number) + block.element, index);
        }

        #[test]
        fn locate_finds_nothing_beyond_the_capacity(geometry in geometries(), beyond: u64) {
            prop_assert_eq!(geometry.locate(geometry.capacity().saturating_add(beyond)), None);
        }
    }
}
