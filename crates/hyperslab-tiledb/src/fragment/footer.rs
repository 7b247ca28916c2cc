//! The footer of fragment metadata, from version 3 on.

use std::collections::HashMap;
use std::sync::Arc;

use hyperslab_core::{Blob, Fields, Place, Result, product};

use super::List;
use crate::schema::{Range, Schema, ranges};

/// The content of a fragment footer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Footer {
    pub(crate) version: u32,
    pub(crate) dense: bool,
    /// The non-empty domain, one range per dimension; `None` if nothing was written.
    pub(crate) domain: Option<Vec<Range>>,
    pub(crate) sparse_tiles: u64,
    pub(crate) last_cells: u64,
    pub(crate) has_timestamps: bool,
    pub(crate) has_deletes: bool,
    pub(crate) file_sizes: Vec<u64>,
    pub(crate) var_sizes: Vec<u64>,
    pub(crate) validity_sizes: Vec<u64>,
    pub(crate) rtree_offset: u64,
    /// The offset of each field's list.
    pub(crate) lists: HashMap<List, Vec<u64>>,
    pub(crate) stats: Option<StatsOffsets>,
    pub(crate) totals_offset: Option<u64>,
    pub(crate) conditions_offset: Option<u64>,
}

/// The offsets of each field's statistics.
#[derive(Debug, Clone, Default)]
pub(crate) struct StatsOffsets {
    pub(crate) mins: Vec<u64>,
    pub(crate) maxes: Vec<u64>,
    pub(crate) sums: Vec<u64>,
    pub(crate) null_counts: Vec<u64>,
}

type Schemas<'a> = &'a mut dyn FnMut(Option<&str>) -> Result<Arc<Schema>>;

impl Footer {
    /// Reads the footer at the end of a metadata file.
    pub(crate) fn read(blob: &dyn Blob, version: u32, schemas: Schemas<'_>) -> Result<(Self, Arc<Schema>)> {
        let length = blob.len()?;
        let place = Place::new(blob.name(), "fragment footer", length);
        // Since version 10, and for variable-length dimensions in any version, the last 8 bytes are the footer's
        // length.
        let (known, with_length) = if version >= 10 {
            (None, true)
        } else {
            let schema = schemas(None)?;
            let text = schema.dimensions.iter().any(crate::schema::Dimension::is_text);
            (Some(Self::computed_length(version, &schema)), text)
        };
        let footer_length = if with_length {
            let tail = blob.read_at(length.saturating_sub(8), 8.min(length))?;
            let stated = Fields::new(&tail, place).u64()?;
            length.checked_sub(8).filter(|room| stated <= *room).map(|room| (room - stated, stated))
        } else {
            known.and_then(|known| length.checked_sub(known).map(|start| (start, known)))
        };
        let (start, footer_length) =
            footer_length.ok_or_else(|| place.corrupt("a footer longer than the file"))?;
        let bytes = blob.read_at(start, footer_length)?;
        Self::parse(&bytes, schemas, Place::new(blob.name(), "fragment footer", start))
    }

    /// The footer's length before version 10, for fixed-size dimensions.
    fn computed_length(version: u32, schema: &Schema) -> u64 {
        let ranges: usize = schema.dimensions.iter().map(|dimension| 2 * dimension.datatype.size()).sum();
        let (attributes, dimensions) = (schema.attributes.len(), schema.dimensions.len());
        let words = if version < 5 {
            // File sizes, sizes of variable-length files, R-tree, offsets of tiles and of variable-length tiles,
            // their sizes.
            2 * (attributes + 1) + 3 * attributes + 1
        } else {
            let slots = attributes + 1 + dimensions;
            let lists = if version >= 7 { 7 } else { 5 };
            lists * slots + 1
        };
        (4 + 1 + 1 + ranges + 16 + 8 * words) as u64
    }

    /// Parses a footer without the length that follows it.
    pub(crate) fn parse(bytes: &[u8], schemas: Schemas<'_>, place: Place<'_>) -> Result<(Self, Arc<Schema>)> {
        let mut fields = Fields::new(bytes, place);
        let version = fields.u32()?;
        if !(3..=crate::schema::NEWEST).contains(&version) {
            return Err(place.unsupported(format!("fragment format version {version}")));
        }
        let schema = if version >= 10 {
            let length = fields.count_u64(1)?;
            let name = String::from_utf8_lossy(fields.bytes(length)?).into_owned();
            schemas(Some(&name))?
        } else {
            schemas(None)?
        };
        let dense = fields.u8()? != 0;
        let no_domain = fields.u8()? != 0;
        let domain = ranges(&mut fields, &schema.dimensions)?;
        let mut footer = Self {
            version,
            dense,
            domain: Some(domain).filter(|_| !no_domain),
            sparse_tiles: fields.u64()?,
            last_cells: fields.u64()?,
            has_timestamps: version >= 14 && fields.u8()? != 0,
            has_deletes: version >= 15 && fields.u8()? != 0,
            ..Self::default()
        };
        footer.parse_lists(&mut fields, &schema)?;
        Ok((footer, schema))
    }

    fn parse_lists(&mut self, fields: &mut Fields<'_>, schema: &Schema) -> Result<()> {
        let slots = self.slots(schema);
        // Before version 5, coordinates have a fixed length and no entry in these lists.
        let var_slots = if self.version < 5 { schema.attributes.len() } else { slots };
        let mut numbers = |count: usize| (0..count).map(|_| fields.u64()).collect::<Result<Vec<u64>>>();
        self.file_sizes = numbers(slots)?;
        self.var_sizes = numbers(var_slots)?;
        if self.version >= 7 {
            self.validity_sizes = numbers(slots)?;
        }
        self.rtree_offset = numbers(1)?[0];
        self.lists.insert(List::TileOffsets, numbers(slots)?);
        self.lists.insert(List::VarOffsets, numbers(var_slots)?);
        self.lists.insert(List::VarSizes, numbers(var_slots)?);
        if self.version >= 7 {
            self.lists.insert(List::ValidityOffsets, numbers(slots)?);
        }
        if self.version >= 11 {
            self.stats = Some(StatsOffsets {
                mins: numbers(slots)?,
                maxes: numbers(slots)?,
                sums: numbers(slots)?,
                null_counts: numbers(slots)?,
            });
        }
        // Version 11 has per-tile statistics, but none for the whole fragment.
        if self.version >= 12 {
            self.totals_offset = Some(numbers(1)?[0]);
        }
        if self.version >= 16 {
            self.conditions_offset = Some(numbers(1)?[0]);
        }
        Ok(())
    }

    /// The number of entries in each per-field list: attributes, one unused slot (formerly the coordinates),
    /// dimensions, and the additional fields of consolidated fragments.
    pub(crate) fn slots(&self, schema: &Schema) -> usize {
        let (attributes, dimensions) = (schema.attributes.len(), schema.dimensions.len());
        if self.version < 5 {
            return attributes + 1;
        }
        attributes + 1 + dimensions + usize::from(self.has_timestamps) + 2 * usize::from(self.has_deletes)
    }

    /// The number of tiles of each field.
    pub(crate) fn tiles(&self, schema: &Schema) -> u64 {
        if !self.dense {
            return self.sparse_tiles;
        }
        self.tile_box(schema).map_or(0, |tiles| {
            let extents: Vec<u64> = tiles.iter().map(|(low, high)| (high - low).saturating_add(1)).collect();
            product(&extents).unwrap_or(u64::MAX)
        })
    }

    /// The first and the last tile of a dense fragment along each dimension, in the array's grid.
    pub(crate) fn tile_box(&self, schema: &Schema) -> Option<Vec<(u64, u64)>> {
        let cells = self.cell_box(schema)?;
        let tiles = cells.iter().zip(&schema.dimensions).map(|((low, high), dimension)| {
            let extent = dimension.tile_extent().filter(|extent| *extent > 0)?;
            Some((low / extent, high / extent))
        });
        tiles.collect()
    }

    /// The first and the last cell of a dense fragment along each dimension, counted from the domain's start. Returns
    /// `None` if nothing was written or the box lies outside the domain.
    pub(crate) fn cell_box(&self, schema: &Schema) -> Option<Vec<(u64, u64)>> {
        let domain = self.domain.as_ref()?;
        let cells = domain.iter().zip(&schema.dimensions).map(|(range, dimension)| {
            let number = dimension.datatype.number();
            let (low, high) = dimension.bounds()?;
            let first = crate::schema::integer(number, &range.low);
            let last = crate::schema::integer(number, &range.high);
            if first < low || last > high || first > last {
                return None;
            }
            Some((u64::try_from(first - low).ok()?, u64::try_from(last - low).ok()?))
        });
        cells.collect()
    }
}
