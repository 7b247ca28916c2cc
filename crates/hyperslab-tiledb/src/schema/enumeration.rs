//! Enumerations: the values that an attribute's integers represent.

use hyperslab_core::{
    DType, Data, Elements, EnumType, Fields, Place, Result, Values, element_to_json, element_to_text,
};
use serde_json::{Value, json};

use super::{put_text, text};
use crate::datatype::{CellValues, Datatype, Number};

/// One enumeration.
#[derive(Debug, Clone)]
pub struct Enumeration {
    /// Its name.
    pub name: String,
    /// Whether the order of the values is meaningful.
    pub ordered: bool,
    /// The values; integer `i` represents the `i`-th.
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

    /// The type of an attribute with integers of type `base`. Its member names are the values as text. Returns `None`
    /// if the values are neither texts nor numbers.
    pub(crate) fn dtype(&self, base: &DType) -> Option<DType> {
        let dtype = &self.values.dtype;
        let is_text = matches!(dtype, DType::String | DType::Bytes | DType::FixedBytes(_));
        if !base.is_integer() || !(is_text || is_number(self.datatype) && dtype.size().is_some()) {
            return None;
        }
        let names = (0..self.values.len()).map(|index| element_to_text(dtype, &self.values.elements, index));
        Some(EnumType::new(base.clone(), names.zip(0..).collect()).with_ordered(self.ordered).into())
    }

    /// Encodes the payload of its generic tile. Returns `None` if a value does not have the type.
    pub(crate) fn encode(
        name: &str,
        file: &str,
        datatype: Datatype,
        ordered: bool,
        values: &[String],
    ) -> Option<Vec<u8>> {
        let mut out = 0_u32.to_le_bytes().to_vec();
        put_text(name, &mut out);
        put_text(file, &mut out);
        out.push(datatype.code());
        if is_number(datatype) {
            let numbers = values.iter().map(|value| number_bytes(datatype, value));
            let numbers = numbers.collect::<Option<Vec<_>>>()?.concat();
            out.extend(CellValues::Fixed(1).code().to_le_bytes());
            out.push(u8::from(ordered));
            out.extend((numbers.len() as u64).to_le_bytes());
            out.extend(numbers);
            return Some(out);
        }
        if !datatype.is_bytes() {
            return None;
        }
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
        Some(out)
    }

    /// The datatype with this name; UTF-8 text if no name is given.
    pub(crate) fn datatype_named(name: Option<&str>) -> Datatype {
        let all = (0..=u8::MAX).filter_map(Datatype::from_code);
        let named =
            all.into_iter().find(|datatype| name.is_some() && type_name(*datatype).as_deref() == name);
        named.unwrap_or(Datatype::StringUtf8)
    }

    /// The representation shown beside the attribute.
    pub(crate) fn to_json(&self) -> Value {
        let labels: Vec<Value> = (0..self.values.len())
            .map(|index| element_to_json(&self.values.dtype, &self.values.elements, index))
            .collect();
        let mut shown = json!({ "name": self.name, "ordered": self.ordered, "values": labels });
        if let Some(name) = type_name(self.datatype) {
            shown["type"] = name.into();
        }
        shown
    }
}

/// Returns true if a value is a single number.
const fn is_number(datatype: Datatype) -> bool {
    use Datatype::{Float32, Float64, Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64};
    matches!(datatype, Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | UInt64 | Float32 | Float64)
}

/// The name of a type other than UTF-8 text, needed to write the enumeration again.
fn type_name(datatype: Datatype) -> Option<String> {
    match datatype {
        Datatype::StringAscii => Some("ascii".to_owned()),
        Datatype::StringUtf8 => None,
        other => Some(other.dtype(CellValues::Fixed(1)).to_string()),
    }
}

/// Parses a number and returns its bytes.
fn number_bytes(datatype: Datatype, text: &str) -> Option<Vec<u8>> {
    let number = datatype.number();
    Some(match number {
        Number::F32 => text.parse::<f32>().ok()?.to_le_bytes().to_vec(),
        Number::F64 => text.parse::<f64>().ok()?.to_le_bytes().to_vec(),
        _ => {
            let (least, most) = number.limits();
            let value: i128 = text.parse().ok()?;
            super::integer_bytes(number, Some(value).filter(|value| (least..=most).contains(value))?)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_round_trip() -> Result<()> {
        let place = Place::new("x", "enumeration", 0);
        for (datatype, texts) in [
            (Datatype::Int64, vec!["-3", "10", "9007199254740993"]),
            (Datatype::Float32, vec!["0.1", "NaN", "-1e30"]),
            (Datatype::UInt8, vec!["0", "255"]),
            (Datatype::StringAscii, vec!["a", "", "bc"]),
        ] {
            let texts: Vec<String> = texts.into_iter().map(str::to_owned).collect();
            let payload = Enumeration::encode("e", "f", datatype, true, &texts).unwrap_or_default();
            let read = Enumeration::parse(&payload, place)?;
            let Some(DType::Enum(named)) = read.dtype(&DType::Int8) else { panic!("{datatype:?}") };
            assert_eq!(named.members.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>(), texts);
            assert_eq!(Enumeration::datatype_named(read.to_json()["type"].as_str()), datatype);
        }
        assert!(Enumeration::encode("e", "f", Datatype::UInt8, true, &["256".to_owned()]).is_none());
        Ok(())
    }
}
