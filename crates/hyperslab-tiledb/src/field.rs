//! The codecs of one field: values, and for some fields offsets and validity.

use bytes::Bytes;
use hyperslab_core::{Data, Elements, Error, Place, Result};

use crate::cells;
use crate::datatype::{CellValues, Datatype};
use crate::key::Key;
use crate::pipeline::Pipeline;
use crate::schema::Schema;
use crate::tile::TileCodec;
use crate::write::FieldTile;

/// The codecs for the tiles of one field.
#[derive(Debug, Clone)]
pub(crate) struct FieldCodecs {
    pub(crate) datatype: Datatype,
    /// Bytes per cell, or per value if cells have variable length.
    pub(crate) cell: usize,
    pub(crate) values: TileCodec,
    /// The codec of the offsets, for variable-length fields.
    pub(crate) offsets: Option<TileCodec>,
    /// The codec of the validity flags, for nullable attributes.
    pub(crate) validity: Option<TileCodec>,
}

impl FieldCodecs {
    pub(crate) fn attribute(schema: &Schema, index: usize, version: u32, key: Option<&Key>) -> Self {
        let attribute = &schema.attributes[index];
        let cell = attribute.cell_size().unwrap_or(attribute.datatype.size());
        let mut codecs =
            Self::new(schema, &attribute.pipeline, attribute.datatype, attribute.values, cell, version, key);
        if attribute.nullable {
            codecs.validity = Some(TileCodec::new(&schema.validity, Datatype::UInt8, 1, false, version, key));
        }
        codecs
    }

    pub(crate) fn dimension(schema: &Schema, index: usize, version: u32, key: Option<&Key>) -> Self {
        let dimension = &schema.dimensions[index];
        let pipeline = schema.dimension_pipeline(index);
        let size = dimension.datatype.size();
        Self::new(schema, pipeline, dimension.datatype, dimension.values, size, version, key)
    }

    /// The codecs for the write times, delete times and condition numbers of consolidated fragments.
    pub(crate) fn times(schema: &Schema, version: u32, key: Option<&Key>) -> Self {
        Self::new(schema, &schema.coords, Datatype::UInt64, CellValues::Fixed(1), 8, version, key)
    }

    fn new(
        schema: &Schema,
        pipeline: &Pipeline,
        datatype: Datatype,
        values: CellValues,
        cell: usize,
        version: u32,
        key: Option<&Key>,
    ) -> Self {
        let variable = values == CellValues::Variable;
        Self {
            datatype,
            cell,
            values: TileCodec::new(pipeline, datatype, cell, variable, version, key),
            offsets: variable
                .then(|| TileCodec::new(&schema.offsets, Datatype::UInt64, 8, false, version, key)),
            validity: None,
        }
    }

    /// Decodes stored tiles to elements: fixed values or offsets, then values, then validity, as the field requires.
    pub(crate) fn decode(
        &self,
        cells: usize,
        var_size: Option<u64>,
        stored: &[Bytes],
        places: &[Place<'_>],
    ) -> Result<Elements> {
        let place = |index: usize| places.get(index).copied().unwrap_or(Place::new("", "tile", 0));
        let bytes = |index: usize| stored.get(index).map(AsRef::as_ref).unwrap_or_default();
        let too_large = || place(0).corrupt(format!("a tile of {cells} cells is larger than memory"));
        let (elements, next) = if let Some(offsets) = &self.offsets {
            let size = var_size.and_then(|size| usize::try_from(size).ok()).ok_or_else(too_large)?;
            let elements = if self.values.keeps_offsets() {
                let (values, offsets) = self.values.decode_strings(bytes(1), size, cells, place(1))?;
                cells::variable_from(self.datatype, offsets, values, place(1))?
            } else {
                let length = cells.checked_mul(8).ok_or_else(too_large)?;
                let offsets = offsets.decode_tile(bytes(0), length, place(0))?;
                let values = self.values.decode_tile(bytes(1), size, place(1))?;
                cells::variable(self.datatype, &offsets, values, place(0))?
            };
            (elements, 2)
        } else {
            let length = cells.checked_mul(self.cell).ok_or_else(too_large)?;
            let values = self.values.decode_tile(bytes(0), length, place(0))?;
            (Elements { data: Data::Fixed(values.into()), validity: None }, 1)
        };
        let validity = match &self.validity {
            Some(codec) => Some(cells::validity(&codec.decode_tile(bytes(next), cells, place(next))?)),
            None => None,
        };
        Ok(elements.with_validity(validity))
    }
}

impl FieldCodecs {
    /// Encodes cells, in tile order. The inverse of [`decode`](Self::decode).
    pub(crate) fn encode(&self, elements: &Elements, cells: usize) -> Result<FieldTile> {
        let mut tile = FieldTile::default();
        match (&elements.data, &self.offsets) {
            (Data::Fixed(bytes), None) => tile.fixed = self.values.encode_tile(bytes)?.into(),
            (Data::Variable { offsets, bytes }, Some(codec)) => {
                self.encode_variable(offsets, bytes, 1, codec, &mut tile)?;
            }
            (Data::List { offsets, items }, Some(codec)) => {
                let bytes = items.as_fixed().ok_or_else(|| Error::invalid("lists must contain numbers"))?;
                self.encode_variable(offsets, bytes, self.datatype.size() as u64, codec, &mut tile)?;
            }
            _ => return Err(Error::invalid("the layout of the elements does not match the attribute")),
        }
        if let Some(codec) = &self.validity {
            let flags: Vec<u8> = (0..cells).map(|cell| u8::from(!elements.is_missing(cell))).collect();
            tile.validity = Some(codec.encode_tile(&flags)?.into());
        }
        Ok(tile)
    }

    fn encode_variable(
        &self,
        offsets: &[u64],
        bytes: &[u8],
        size: u64,
        codec: &TileCodec,
        tile: &mut FieldTile,
    ) -> Result<()> {
        let first = offsets.first().copied().unwrap_or(0);
        let last = offsets.last().copied().unwrap_or(0);
        let values = bytes
            .get((first * size) as usize..(last * size) as usize)
            .ok_or_else(|| Error::invalid("offsets lie outside the values"))?;
        let starts: Vec<u64> = offsets
            .iter()
            .take(offsets.len().saturating_sub(1))
            .map(|offset| (offset - first) * size)
            .collect();
        tile.fixed = if self.values.keeps_offsets() {
            // The values' filter stores the offsets, so their tile is empty.
            0_u64.to_le_bytes().to_vec().into()
        } else {
            let coded: Vec<u8> = starts.iter().flat_map(|start| start.to_le_bytes()).collect();
            codec.encode_tile(&coded)?.into()
        };
        tile.values = Some((self.values.encode_values(values, &starts)?.into(), values.len() as u64));
        Ok(())
    }
}
