//! Attributes of a schema.

use hyperslab_core::{DType, Data, Elements, Fields, Fill, Result, Validity};

use super::{put_text, text};
use crate::datatype::{CellValues, Datatype};
use crate::pipeline::Pipeline;

/// One attribute: a value in every cell.
#[derive(Debug, Clone)]
pub struct Attribute {
    /// Its name; may be empty.
    pub name: String,
    /// The type of its values.
    pub datatype: Datatype,
    /// The number of values in a cell.
    pub values: CellValues,
    /// The filters for its values.
    pub pipeline: Pipeline,
    /// The bytes of a cell that was never written.
    pub fill: Vec<u8>,
    /// Whether cells may be null.
    pub nullable: bool,
    /// Whether a cell that was never written is valid (1) or null (0).
    pub fill_validity: u8,
    /// The order of the data; used only for labels.
    pub order: u8,
    /// The enumeration that its integers index.
    pub enumeration: Option<String>,
}

impl Attribute {
    /// An attribute without filters, with the default fill value.
    pub fn new(name: impl Into<String>, datatype: Datatype, values: CellValues) -> Self {
        let each = if let CellValues::Fixed(count) = values { count as usize } else { 1 };
        Self {
            name: name.into(),
            datatype,
            values,
            pipeline: Pipeline::default(),
            fill: datatype.default_fill().repeat(each),
            nullable: false,
            fill_validity: 0,
            order: 0,
            enumeration: None,
        }
    }

    pub(super) fn parse(fields: &mut Fields<'_>, version: u32) -> Result<Self> {
        let name = text(fields)?;
        let place = fields.place();
        let datatype = Datatype::parse(fields.u8()?, place)?;
        let values = CellValues::from_code(fields.u32()?);
        if values == CellValues::Fixed(0) {
            return Err(place.corrupt("cells of no values"));
        }
        let mut attribute = Self { pipeline: Pipeline::parse(fields)?, ..Self::bare(name, datatype, values) };
        if version >= 6 {
            let length = fields.count_u64(1)?;
            attribute.fill = fields.bytes(length)?.to_vec();
        } else {
            attribute.fill = Self::new("", datatype, attribute.values_checked(fields)?).fill;
        }
        if version >= 7 {
            attribute.nullable = fields.u8()? != 0;
            attribute.fill_validity = fields.u8()?;
        }
        if version >= 17 {
            attribute.order = fields.u8()?;
        }
        if version >= 20 {
            attribute.enumeration = Some(text(fields)?).filter(|name| !name.is_empty());
        }
        if let Some(cell) = attribute.cell_size()
            && attribute.fill.len() != cell
        {
            return Err(
                place.corrupt(format!("a fill value of {} bytes in cells of {cell}", attribute.fill.len()))
            );
        }
        Ok(attribute)
    }

    /// Creates an attribute without a fill value. The number of values is not checked yet, so it must not size an
    /// allocation.
    const fn bare(name: String, datatype: Datatype, values: CellValues) -> Self {
        Self {
            name,
            datatype,
            values,
            pipeline: Pipeline { max_chunk_size: 65536, filters: Vec::new() },
            fill: Vec::new(),
            nullable: false,
            fill_validity: 0,
            order: 0,
            enumeration: None,
        }
    }

    fn values_checked(&self, fields: &Fields<'_>) -> Result<CellValues> {
        match self.values {
            CellValues::Fixed(count) if count > 1 << 20 => {
                Err(fields.place().unsupported(format!("cells of {count} values")))
            }
            values => Ok(values),
        }
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put_text(&self.name, out);
        out.push(self.datatype.code());
        out.extend(self.values.code().to_le_bytes());
        self.pipeline.encode(out);
        out.extend((self.fill.len() as u64).to_le_bytes());
        out.extend(&self.fill);
        out.extend([u8::from(self.nullable), self.fill_validity, self.order]);
        put_text(self.enumeration.as_deref().unwrap_or(""), out);
    }

    /// The cell size in bytes; `None` if cells differ in length.
    #[must_use]
    pub fn cell_size(&self) -> Option<usize> {
        match self.values {
            CellValues::Fixed(count) => (count as usize).checked_mul(self.datatype.size()),
            CellValues::Variable => None,
        }
    }

    /// The type of a cell.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.datatype.dtype(self.values)
    }

    /// The value of a cell that was never written.
    #[must_use]
    pub fn fill(&self) -> Fill {
        let dtype = self.dtype();
        let validity = self.nullable.then(|| Validity::from_flags([self.fill_validity != 0]));
        let data = match &dtype {
            DType::List(_) => Data::List {
                offsets: vec![0, (self.fill.len() / self.datatype.size()) as u64],
                items: Box::new(Elements::fixed(self.fill.clone())),
            },
            // The default fill value of text is a single zero byte, which readers see as empty text.
            DType::String if self.fill.iter().all(|byte| *byte == 0) => {
                Data::Variable { offsets: vec![0, 0], bytes: bytes::Bytes::new() }
            }
            DType::String | DType::Bytes => {
                Data::Variable { offsets: vec![0, self.fill.len() as u64], bytes: self.fill.clone().into() }
            }
            _ => Data::Fixed(self.fill.clone().into()),
        };
        Fill::Element(Elements { data, validity })
    }
}
