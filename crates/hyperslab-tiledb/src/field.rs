//! The codecs of one field: values, and for some fields offsets and validity.

use bytes::Bytes;
use hyperslab_core::{Data, Elements, Place, Result};

use crate::cells;
use crate::datatype::{CellValues, Datatype};
use crate::key::Key;
use crate::pipeline::Pipeline;
use crate::schema::Schema;
use crate::tile::TileCodec;

/// How the tiles of one field are decoded.
#[derive(Debug, Clone)]
pub(crate) struct FieldCodecs {
    pub(crate) datatype: Datatype,
    /// Bytes of a cell; of a value, when cells have variable length.
    pub(crate) cell: usize,
    pub(crate) values: TileCodec,
    /// For fields of variable length.
    pub(crate) offsets: Option<TileCodec>,
    /// For nullable attributes.
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

    /// Write times, delete times and condition numbers of consolidated fragments.
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

    /// Stored tiles (fixed or offsets; values; validity, in that order, as far as the field has them) to elements.
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
