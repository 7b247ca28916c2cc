//! Enumerations: the values that an attribute's integers stand for.

use hyperslab_core::{Data, Elements, Fields, Place, Result, Values, element_to_json};
use serde_json::{Value, json};

use super::text;
use crate::datatype::{CellValues, Datatype};

/// One enumeration.
#[derive(Debug, Clone)]
pub struct Enumeration {
    /// Its name.
    pub name: String,
    /// Does the order of its values mean something?
    pub ordered: bool,
    /// The values; integer `i` stands for the `i`-th.
    pub values: Values,
}

impl Enumeration {
    /// Parses the payload of an enumeration's generic tile.
    pub(crate) fn parse(bytes: &[u8], place: Place<'_>) -> Result<Self> {
        let mut fields = Fields::new(bytes, place);
        let version = fields.u32()?;
        if version != 0 {
            return Err(place.unsupported(format!("enumeration version {version}")));
        }
        let name = text(&mut fields)?;
        text(&mut fields)?;
        let type_place = fields.place();
        let datatype = Datatype::parse(fields.u8()?, type_place)?;
        let values = CellValues::from_code(fields.u32()?);
        let ordered = fields.u8()? != 0;
        let length = fields.count_u64(1)?;
        let data = fields.bytes(length)?;
        let dtype = datatype.dtype(values);
        let elements = if values == CellValues::Variable {
            let place = fields.place();
            let bytes = fields.count_u64(1)?;
            let offsets = fields.bytes(bytes)?;
            crate::cells::variable(datatype, offsets, data.to_vec(), place)?
        } else {
            Elements { data: Data::Fixed(data.to_vec().into()), validity: None }
        };
        let count = elements.len(&dtype) as u64;
        Ok(Self { name, ordered, values: Values::new(dtype, &[count], elements)? })
    }

    /// As it is shown beside the attribute.
    pub(crate) fn to_json(&self) -> Value {
        let labels: Vec<Value> = (0..self.values.len())
            .map(|index| element_to_json(&self.values.dtype, &self.values.elements, index))
            .collect();
        json!({ "name": self.name, "ordered": self.ordered, "values": labels })
    }
}
