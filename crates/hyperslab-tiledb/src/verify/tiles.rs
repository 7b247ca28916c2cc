//! Checks the tiles of one field: decodes them on all cores and compares them with their statistics and boxes.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use hyperslab_core::{Blob, BlobKey, Elements, Place, Result, fetch_ranges, product, touch, with_scratch};
use smallvec::SmallVec;

use super::boxes::Boxes;
use super::statistics::Statistics;
use crate::array::OpenArray;
use crate::field::FieldCodecs;
use crate::fragment::{Field, FieldPart, Fragment, List};
use crate::schema::ArrayKind;
use crate::tile::TileChunks;

/// The result of checking one tile.
#[derive(Default)]
pub(super) struct Seen {
    /// How its statistics differ from its cells.
    pub(super) statistics: Option<String>,
    /// How its cells lie outside its box.
    pub(super) outside: Option<hyperslab_core::Error>,
}

/// The tiles of one field of a fragment.
pub(super) struct Tiles<'a> {
    pub(super) fragment: &'a Fragment,
    pub(super) field: Field,
    codecs: &'a FieldCodecs,
    files: SmallVec<[TileFile; 1]>,
    /// The size of each tile's values, if cells have variable length.
    var_sizes: Option<Arc<[u64]>>,
    statistics: Option<Statistics<'a>>,
    boxes: Option<Boxes<'a>>,
}

/// The blob with one part of the tiles.
struct TileFile {
    part: FieldPart,
    offsets: Arc<[u64]>,
    blob: Arc<dyn Blob>,
}

impl<'a> Tiles<'a> {
    pub(super) fn open(
        array: &OpenArray,
        fragment: &'a Fragment,
        field: Field,
        codecs: &'a FieldCodecs,
        parts: &[FieldPart],
        boxes: Option<Boxes<'a>>,
    ) -> Result<Self> {
        let file = |&part: &FieldPart| {
            Ok(TileFile {
                part,
                offsets: fragment.list(part.offsets(), field)?,
                blob: array.blob(&BlobKey::named(fragment.file(field, part)))?,
            })
        };
        Ok(Self {
            fragment,
            field,
            codecs,
            files: parts.iter().map(file).collect::<Result<_>>()?,
            var_sizes: codecs.offsets.as_ref().map(|_| fragment.list(List::VarSizes, field)).transpose()?,
            statistics: Statistics::of(fragment, field)?,
            boxes,
        })
    }

    /// The approximate decoded size of a tile in bytes.
    pub(super) fn weight(&self) -> u64 {
        cells(self.fragment, 0).saturating_mul(self.codecs.cell) as u64
    }

    /// Returns true if reading tiles one by one takes a round trip each.
    pub(super) fn is_remote(&self) -> bool {
        self.files.iter().any(|file| file.blob.is_remote())
    }

    /// The stored size of a tile; zero if it is unknown.
    pub(super) fn stored_bytes(&self, tile: usize) -> u64 {
        self.files.iter().filter_map(|file| self.range(file, tile)).map(|range| range.end - range.start).sum()
    }

    fn range(&self, file: &TileFile, tile: usize) -> Option<Range<u64>> {
        let (offset, length) = self.fragment.span_among(&file.offsets, self.field, file.part, tile).ok()?;
        Some(offset..offset.checked_add(length)?)
    }

    /// The stored bytes of these tiles, for each of its files. `None` for a tile that cannot be fetched.
    pub(super) fn fetch(&self, tiles: &[usize]) -> Vec<Option<Vec<Bytes>>> {
        let mut all: Vec<Option<Vec<Bytes>>> = vec![Some(Vec::new()); tiles.len()];
        for file in &self.files {
            let ranges: Vec<_> = tiles.iter().map(|tile| self.range(file, *tile)).collect();
            let mut fetched = fetch_ranges(&*file.blob, &ranges);
            fetched.resize(tiles.len(), None);
            for (own, more) in all.iter_mut().zip(fetched) {
                *own = own.take().zip(more).map(|(own, more)| own.into_iter().chain(more).collect());
            }
        }
        all
    }

    /// Checks that the tile decodes and matches its metadata. `fetched` are its stored bytes, for each of its files, if they were
    /// fetched.
    pub(super) fn check(&self, tile: usize, fetched: Option<Vec<Bytes>>) -> Result<Seen> {
        let (mut stored, mut offsets): (SmallVec<[Bytes; 1]>, SmallVec<[u64; 1]>) = Default::default();
        let mut fetched = fetched.map(Vec::into_iter);
        for file in &self.files {
            let (offset, length) = self.fragment.span_among(&file.offsets, self.field, file.part, tile)?;
            stored.push(match fetched.as_mut().and_then(Iterator::next) {
                Some(bytes) => bytes,
                None => file.blob.read_at(offset, length)?,
            });
            offsets.push(offset);
        }
        let places: SmallVec<[Place<'_>; 1]> = self
            .files
            .iter()
            .zip(&offsets)
            .map(|(file, offset)| Place::new(file.blob.name(), "tile", *offset))
            .collect();
        let cells = cells(self.fragment, tile);
        match (stored.as_slice(), places.as_slice()) {
            ([stored], [place]) if self.codecs.offsets.is_none() && self.codecs.validity.is_none() => {
                self.check_fixed(tile, cells, stored, *place)
            }
            _ => {
                let var_size = self.var_sizes.as_ref().and_then(|sizes| sizes.get(tile)).copied();
                let elements = self.codecs.decode(cells, var_size, &stored, &places)?;
                Ok(self.compare(tile, &elements))
            }
        }
    }

    /// Fixed-size cells without nulls need no memory beyond the thread's scratch buffer.
    fn check_fixed(&self, tile: usize, cells: usize, stored: &Bytes, place: Place<'_>) -> Result<Seen> {
        let length = cells
            .checked_mul(self.codecs.cell)
            .ok_or_else(|| place.corrupt(format!("a tile of {cells} cells is larger than memory")))?;
        let chunks = TileChunks::parse_exact(stored, length, place)?;
        let compared = self.boxes.is_some() || self.statistics.is_some();
        if !compared && self.codecs.values.is_plain() {
            // The stored bytes are the cells.
            touch(stored);
            return chunks.check_plain(place).map(|()| Seen::default());
        }
        with_scratch(length, |raw| {
            self.codecs.values.decode_chunks(&chunks, raw, place)?;
            Ok(Seen {
                statistics: self.statistics.as_ref().and_then(|own| own.compare_fixed(tile, raw)),
                outside: self.boxes.as_ref().and_then(|own| own.compare_fixed(tile, raw)),
            })
        })
    }

    fn compare(&self, tile: usize, elements: &Elements) -> Seen {
        Seen {
            statistics: self.statistics.as_ref().and_then(|own| own.compare(tile, elements)),
            outside: self.boxes.as_ref().and_then(|own| own.compare(tile, elements)),
        }
    }
}

/// The number of cells in a tile.
fn cells(fragment: &Fragment, tile: usize) -> usize {
    let cells = match fragment.schema.kind {
        ArrayKind::Sparse => fragment.sparse_cells(tile),
        ArrayKind::Dense => {
            let extents: SmallVec<[u64; 4]> = fragment
                .schema
                .dimensions
                .iter()
                .map(|dimension| dimension.tile_extent().unwrap_or(0))
                .collect();
            product(&extents).unwrap_or(u64::MAX)
        }
    };
    usize::try_from(cells).unwrap_or(usize::MAX)
}
