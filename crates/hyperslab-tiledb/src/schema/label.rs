//! Dimension labels: a reference to the array that holds them.

use hyperslab_core::{Fields, LabelOrder, Result};

use super::{put_text, text};
use crate::datatype::{CellValues, Datatype};

/// The labels of a dimension, stored in an attribute of a one-dimensional array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DimensionLabel {
    /// The position of the dimension.
    pub dimension: u32,
    /// The label's name.
    pub name: String,
    /// Whether the address is relative to the array.
    pub relative: bool,
    /// The address of the array of labels.
    pub uri: String,
    /// The attribute of that array with the labels.
    pub attribute: String,
    /// 0 for no order, 1 increasing, 2 decreasing.
    pub order: u8,
    /// The type of a label.
    pub datatype: Datatype,
    /// The number of values per label: one, or variable for text.
    pub values: CellValues,
    /// Whether the array was created separately from this one.
    pub external: bool,
}

impl DimensionLabel {
    /// Parses `u32 dimension, u32 len, name, u8 relative, u64 len, uri, u32 len, attribute, u8 order, u8 type, u32
    /// values per cell, u8 external`. All versions with labels use this layout.
    pub(super) fn parse(fields: &mut Fields<'_>) -> Result<Self> {
        let dimension = fields.u32()?;
        let name = text(fields)?;
        let relative = fields.u8()? != 0;
        let length = fields.count_u64(1)?;
        let place = fields.place();
        let uri = String::from_utf8(fields.bytes(length)?.to_vec())
            .map_err(|_| place.corrupt("an address that is not UTF-8"))?;
        let attribute = text(fields)?;
        let place = fields.place();
        let order = fields.u8()?;
        let datatype = Datatype::parse(fields.u8()?, place)?;
        let values = CellValues::from_code(fields.u32()?);
        let external = fields.u8()? != 0;
        Ok(Self { dimension, name, relative, uri, attribute, order, datatype, values, external })
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.dimension.to_le_bytes());
        put_text(&self.name, out);
        out.push(u8::from(self.relative));
        out.extend((self.uri.len() as u64).to_le_bytes());
        out.extend(self.uri.as_bytes());
        put_text(&self.attribute, out);
        out.extend([self.order, self.datatype.code()]);
        out.extend(self.values.code().to_le_bytes());
        out.push(u8::from(self.external));
    }

    /// The corresponding order of the core.
    pub(crate) const fn label_order(&self) -> LabelOrder {
        match self.order {
            1 => LabelOrder::Increasing,
            2 => LabelOrder::Decreasing,
            _ => LabelOrder::Unordered,
        }
    }

    /// The code of a label order.
    pub(crate) const fn order_code(order: LabelOrder) -> u8 {
        match order {
            LabelOrder::Unordered => 0,
            LabelOrder::Increasing => 1,
            LabelOrder::Decreasing => 2,
        }
    }
}
