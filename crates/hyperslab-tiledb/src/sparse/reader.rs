//! Reads one sparse fragment: tile by tile, column by column.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use hyperslab_core::{BlobKey, Data, Elements, Error, Fill, Place, Result};

use super::region::{DimensionRange, Relation};
use crate::array::OpenArray;
use crate::datatype::Datatype;
use crate::field::FieldCodecs;
use crate::fragment::{Field, FieldPart, Fragment, List, Stats};
use crate::schema::Attribute;

/// The maximum number of cells in a tile. Larger claims are rejected before memory is allocated.
const MAX_TILE_CELLS: u64 = 1 << 32;

/// A fragment of a sparse array, with the codecs of each column of the table.
#[derive(Debug)]
pub(crate) struct FragmentReader {
    array: Arc<OpenArray>,
    pub(crate) fragment: Arc<Fragment>,
    /// One per column of the table: dimensions, then attributes.
    columns: Vec<ColumnSource>,
    times: FieldCodecs,
    /// The statistics of each column; `None` if there are none or they are unreliable.
    statistics: Vec<OnceLock<Option<Stats>>>,
    /// The delete conditions that are already applied to this fragment.
    processed: OnceLock<Vec<String>>,
}

#[derive(Debug)]
enum ColumnSource {
    Stored {
        field: Field,
        codecs: Box<FieldCodecs>,
    },
    /// One of several dimensions that share a file, before version 5.
    Coordinates(usize),
    /// The fragment's schema lacks the column, so every cell has the fill value.
    Missing(Elements),
}

impl FragmentReader {
    pub(crate) fn new(array: &Arc<OpenArray>, fragment: Arc<Fragment>) -> Result<Self> {
        let (schema, version, key) = (&fragment.schema, fragment.version(), array.options.key.as_ref());
        let mut columns = Vec::new();
        for index in 0..schema.dimensions.len() {
            columns.push(if version < 5 {
                ColumnSource::Coordinates(index)
            } else {
                let codecs = Box::new(FieldCodecs::dimension(schema, index, version, key));
                ColumnSource::Stored { field: Field::Dimension(index), codecs }
            });
        }
        for attribute in &array.schema.attributes {
            columns.push(match schema.attribute(&attribute.name) {
                Some((index, own)) => {
                    if (own.datatype, own.values, own.nullable)
                        != (attribute.datatype, attribute.values, attribute.nullable)
                    {
                        return Err(Error::unsupported(
                            Arc::clone(&array.name),
                            format!("attribute {:?} changing its type between fragments", attribute.name),
                        ));
                    }
                    let codecs = Box::new(FieldCodecs::attribute(schema, index, version, key));
                    ColumnSource::Stored { field: Field::Attribute(index), codecs }
                }
                None => match attribute.fill() {
                    Fill::Element(element) => ColumnSource::Missing(element),
                    _ => ColumnSource::Missing(Elements::zero(&attribute.dtype())),
                },
            });
        }
        let times = FieldCodecs::times(schema, version, key);
        let statistics = std::iter::repeat_with(OnceLock::new).take(columns.len()).collect();
        Ok(Self {
            array: Arc::clone(array),
            fragment,
            columns,
            times,
            statistics,
            processed: OnceLock::new(),
        })
    }

    /// The number of cells in all tiles.
    pub(crate) fn rows(&self) -> u64 {
        self.fragment.sparse_rows()
    }

    /// Returns true if the time window includes every cell and none of them is deleted.
    pub(crate) fn counts_all(&self) -> bool {
        !self.fragment.footer.has_deletes && self.fragment.name.inside(self.array.window())
    }

    /// The tiles that may hold wanted cells, and whether all of their cells are wanted.
    pub(crate) fn tiles(&self, region: &[DimensionRange]) -> Result<Vec<(usize, bool)>> {
        let dimensions = &self.fragment.schema.dimensions;
        let count = usize::try_from(self.fragment.footer.sparse_tiles).unwrap_or(usize::MAX);
        if region.iter().all(|range| *range == DimensionRange::All) {
            // The offset list has one entry per tile, which bounds a false tile count.
            let listed = self.fragment.list(List::TileOffsets, self.first_field())?.len();
            return Ok((0..count.min(listed)).map(|tile| (tile, true)).collect());
        }
        if let Some(domain) = &self.fragment.footer.domain
            && DimensionRange::relation_of(region, dimensions, domain) == Relation::Outside
        {
            return Ok(Vec::new());
        }
        let tree = self.fragment.rtree()?;
        let leaves = tree.leaves();
        let kept = tree
            .search(|ranges| DimensionRange::relation_of(region, dimensions, ranges) != Relation::Outside);
        Ok(kept
            .into_iter()
            .map(|tile| {
                (tile, DimensionRange::relation_of(region, dimensions, &leaves[tile]) == Relation::Inside)
            })
            .collect())
    }

    fn first_field(&self) -> Field {
        if self.fragment.version() < 5 { Field::Coords } else { Field::Dimension(0) }
    }

    pub(crate) fn cells(&self, tile: usize) -> Result<usize> {
        let cells = self.fragment.sparse_cells(tile);
        match usize::try_from(cells) {
            Ok(count) if cells <= MAX_TILE_CELLS => Ok(count),
            _ => Err(self.fragment.place("fragment footer").corrupt(format!("a tile of {cells} cells"))),
        }
    }

    /// Returns a column in one tile. If the fragment lacks the column, returns a single element.
    pub(crate) fn column(&self, column: usize, tile: usize) -> Result<ColumnCells> {
        match self.columns.get(column) {
            Some(ColumnSource::Stored { field, codecs }) => {
                self.decode(*field, codecs, tile).map(ColumnCells::Each)
            }
            Some(ColumnSource::Coordinates(index)) => self.coordinates(*index, tile).map(ColumnCells::Each),
            Some(ColumnSource::Missing(element)) => Ok(ColumnCells::Same(element.clone())),
            None => Err(Error::invalid(format!("{}: no column {column}", self.array.name))),
        }
    }

    /// An attribute's statistics, read once.
    pub(crate) fn statistics(&self, column: usize) -> Result<Option<(&Attribute, &Stats)>> {
        let Some(ColumnSource::Stored { field: Field::Attribute(index), .. }) = self.columns.get(column)
        else {
            return Ok(None);
        };
        let attribute = &self.fragment.schema.attributes[*index];
        let known = match self.statistics[column].get() {
            Some(known) => known,
            None => {
                let stats = if Stats::are_usable(attribute) { self.fragment.stats(*index)? } else { None };
                self.statistics[column].get_or_init(|| stats)
            }
        };
        Ok(known.as_ref().map(|stats| (attribute, stats)))
    }

    fn decode(&self, field: Field, codecs: &FieldCodecs, tile: usize) -> Result<Elements> {
        let mut parts = vec![FieldPart::Fixed];
        let mut var_size = None;
        if codecs.offsets.is_some() {
            parts.push(FieldPart::Values);
            var_size = self.fragment.list(List::VarSizes, field)?.get(tile).copied();
        }
        if codecs.validity.is_some() {
            parts.push(FieldPart::Validity);
        }
        let (mut stored, mut labels) = (Vec::new(), Vec::new());
        for part in parts {
            let (bytes, label, offset) = self.fetch(field, part, tile)?;
            stored.push(bytes);
            labels.push((label, offset));
        }
        let places: Vec<Place<'_>> =
            labels.iter().map(|(label, offset)| Place::new(label, "tile", *offset)).collect();
        codecs.decode(self.cells(tile)?, var_size, &stored, &places)
    }

    fn fetch(&self, field: Field, part: FieldPart, tile: usize) -> Result<(Bytes, Arc<str>, u64)> {
        let (offset, length) = self.fragment.tile_span(field, part, tile)?;
        let blob = self.array.blob(&BlobKey::named(self.fragment.file(field, part)))?;
        Ok((blob.read_at(offset, length)?, Arc::clone(blob.name()), offset))
    }

    /// Extracts one dimension from the shared coordinate file. The file is ordered dimension by dimension or, in
    /// version 1 without filters, cell by cell.
    fn coordinates(&self, index: usize, tile: usize) -> Result<Elements> {
        let (bytes, label, offset) = self.fetch(Field::Coords, FieldPart::Fixed, tile)?;
        let place = Place::new(&label, "tile", offset);
        let schema = &self.fragment.schema;
        let (size, rank) = (schema.dimensions[index].datatype.size(), schema.dimensions.len());
        let cells = self.cells(tile)?;
        let length =
            cells.checked_mul(size * rank).ok_or_else(|| place.corrupt("a tile larger than memory"))?;
        let codec = crate::tile::TileCodec::new(
            &schema.coords,
            schema.dimensions[index].datatype,
            size * rank,
            false,
            self.fragment.version(),
            self.array.options.key.as_ref(),
        );
        let all = codec.decode_tile(&bytes, length, place)?;
        if self.fragment.version() == 1 && schema.coords.is_empty() {
            let own =
                all.chunks_exact(size).skip(index).step_by(rank).flatten().copied().collect::<Vec<u8>>();
            return Ok(Elements::fixed(own));
        }
        Ok(Elements::fixed(Bytes::from(all).slice(index * cells * size..(index + 1) * cells * size)))
    }

    /// The write time of each cell in a tile; `None` if all were written at the fragment's time.
    pub(crate) fn timestamps(&self, tile: usize) -> Result<Option<Vec<u64>>> {
        if !self.fragment.footer.has_timestamps {
            return Ok(None);
        }
        self.words(Field::Timestamps, tile).map(Some)
    }

    /// The delete time of each cell in a tile; `u64::MAX` for never.
    pub(crate) fn delete_times(&self, tile: usize) -> Result<Option<Vec<u64>>> {
        if !self.fragment.footer.has_deletes {
            return Ok(None);
        }
        self.words(Field::DeleteTimestamps, tile).map(Some)
    }

    fn words(&self, field: Field, tile: usize) -> Result<Vec<u64>> {
        let elements = self.decode(field, &self.times, tile)?;
        let Data::Fixed(bytes) = &elements.data else { return Ok(Vec::new()) };
        Ok(bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect())
    }

    /// Returns true if a delete is already applied to this fragment.
    pub(crate) fn has_processed(&self, delete: &str) -> Result<bool> {
        let processed = match self.processed.get() {
            Some(known) => known,
            None => {
                let names = self.fragment.processed_conditions()?;
                self.processed.get_or_init(|| names)
            }
        };
        Ok(processed
            .iter()
            .any(|name| name.rsplit('/').next().and_then(|last| last.split('.').next()) == Some(delete)))
    }

    /// The type of an attribute or dimension column.
    pub(crate) fn datatype(&self, column: usize) -> Datatype {
        let schema = &self.array.schema;
        let dimensions = schema.dimensions.len();
        match column.checked_sub(dimensions) {
            None => schema.dimensions[column].datatype,
            Some(attribute) => schema.attributes[attribute].datatype,
        }
    }
}

/// The cells of a column in one tile.
#[derive(Debug, Clone)]
pub(crate) enum ColumnCells {
    /// One element per cell.
    Each(Elements),
    /// This element in every cell.
    Same(Elements),
}
