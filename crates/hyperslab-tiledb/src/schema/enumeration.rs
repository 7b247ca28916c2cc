//! Enumerations: the values that an attribute's integers stand for.

use hyperslab_core::{DType, Data, Elements, EnumType, Fields, Place, Result, Values, element_to_json};
use serde_json::{Value, json};

use super::{put_text, text};
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
    /// The type of a value.
    pub(crate) datatype: Datatype,
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
        Ok(Self { name, ordered, values: Values::new(dtype, &[count], elements)?, datatype })
    }

    /// The type of an attribute whose integers are of this type; `None` where the values are no texts.
    pub(crate) fn dtype(&self, base: &DType) -> Option<DType> {
        if !base.is_integer()
            || !matches!(self.values.dtype, DType::String | DType::Bytes | DType::FixedBytes(_))
        {
            return None;
        }
        let name = |index| {
            element_to_json(&self.values.dtype, &self.values.elements, index).as_str().map(str::to_owned)
        };
        let names = (0..self.values.len()).map(name).collect::<Option<Vec<_>>>()?;
        Some(EnumType { base: base.clone(), members: names.into_iter().zip(0..).collect() }.into())
    }

    /// The payload of its generic tile.
    pub(crate) fn encode(
        name: &str,
        file: &str,
        datatype: Datatype,
        ordered: bool,
        values: &[String],
    ) -> Vec<u8> {
        let mut out = 0_u32.to_le_bytes().to_vec();
        put_text(name, &mut out);
        put_text(file, &mut out);
        out.push(datatype.code());
        out.extend(CellValues::VARIABLE.to_le_bytes());
        out.push(u8::from(ordered));
        let bytes: usize = values.iter().map(String::len).sum();
        out.extend((bytes as u64).to_le_bytes());
        values.iter().for_each(|value| out.extend(value.as_bytes()));
        out.extend((values.len() as u64 * 8).to_le_bytes());
        let mut offset = 0_u64;
        for value in values {
            out.extend(offset.to_le_bytes());
            offset += value.len() as u64;
        }
        out
    }

    /// As it is shown beside the attribute.
    pub(crate) fn to_json(&self) -> Value {
        let labels: Vec<Value> = (0..self.values.len())
            .map(|index| element_to_json(&self.values.dtype, &self.values.elements, index))
            .collect();
        json!({ "name": self.name, "ordered": self.ordered, "values": labels })
    }
}
