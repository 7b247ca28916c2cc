//! Array schemas: the files in `__schema/`, in all versions since 1.

mod attribute;
mod dimension;
mod domain;
mod enumeration;
mod label;

use hyperslab_core::{CellOrder, Fields, Place, Result};

pub use attribute::Attribute;
pub use dimension::Dimension;
pub(crate) use dimension::{float, integer, integer_bytes};
pub use domain::Range;
pub(crate) use domain::ranges;
pub use enumeration::Enumeration;
pub use label::DimensionLabel;

use crate::pipeline::Pipeline;

/// The newest format version that is read.
pub(crate) const NEWEST: u32 = 23;
/// The version that is written.
pub(crate) const WRITTEN: u32 = 22;

/// Dense or sparse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArrayKind {
    /// Every cell of the domain exists.
    Dense,
    /// Only the cells that were written exist.
    Sparse,
}

/// The order of cells in a tile, or of tiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The last dimension varies fastest.
    RowMajor,
    /// The first dimension varies fastest.
    ColumnMajor,
    /// Along a Hilbert curve; cells of sparse arrays only.
    Hilbert,
}

impl Order {
    fn parse(fields: &mut Fields<'_>) -> Result<Self> {
        let place = fields.place();
        match fields.u8()? {
            0 => Ok(Self::RowMajor),
            1 => Ok(Self::ColumnMajor),
            4 => Ok(Self::Hilbert),
            other => Err(place.corrupt(format!("order {other}, expected 0, 1 or 4"))),
        }
    }

    const fn code(self) -> u8 {
        match self {
            Self::RowMajor => 0,
            Self::ColumnMajor => 1,
            Self::Hilbert => 4,
        }
    }

    /// The corresponding order of the core.
    #[must_use]
    pub const fn cell_order(self) -> CellOrder {
        match self {
            Self::ColumnMajor => CellOrder::ColumnMajor,
            Self::RowMajor | Self::Hilbert => CellOrder::RowMajor,
        }
    }
}

/// The schema of an array.
#[derive(Debug, Clone)]
pub struct Schema {
    /// The format version.
    pub version: u32,
    /// Whether several cells may have the same coordinates.
    pub allows_duplicates: bool,
    /// Dense or sparse.
    pub kind: ArrayKind,
    /// The order of tiles.
    pub tile_order: Order,
    /// The order of cells in a tile.
    pub cell_order: Order,
    /// The number of cells in a sparse tile.
    pub capacity: u64,
    /// The pipeline for dimensions whose own pipeline is empty.
    pub coords: Pipeline,
    /// The pipeline for the offsets of variable-length fields.
    pub offsets: Pipeline,
    /// The pipeline for validity flags.
    pub validity: Pipeline,
    /// The dimensions.
    pub dimensions: Vec<Dimension>,
    /// The attributes.
    pub attributes: Vec<Attribute>,
    /// Dimension labels, each stored in a separate array.
    pub labels: Vec<DimensionLabel>,
    /// Name and file of each enumeration.
    pub enumerations: Vec<(String, String)>,
    /// The part of the domain in use, one range per dimension.
    pub current_domain: Option<Vec<Range>>,
}

/// Reads text after its `u32` length.
fn text(fields: &mut Fields<'_>) -> Result<String> {
    let length = fields.count_u32(1)?;
    let place = fields.place();
    let bytes = fields.bytes(length)?;
    String::from_utf8(bytes.to_vec()).map_err(|_| place.corrupt("a name that is not UTF-8"))
}

fn put_text(text: &str, out: &mut Vec<u8>) {
    out.extend((text.len() as u32).to_le_bytes());
    out.extend(text.as_bytes());
}

impl Schema {
    /// Parses the payload of a schema's generic tile.
    pub(crate) fn parse(bytes: &[u8], place: Place<'_>) -> Result<Self> {
        let mut fields = Fields::new(bytes, place);
        let version = fields.u32()?;
        if version == 0 || version > NEWEST {
            return Err(place.unsupported(format!("format version {version}")));
        }
        let allows_duplicates = version >= 5 && fields.u8()? != 0;
        let kind_place = fields.place();
        let kind = match fields.u8()? {
            0 => ArrayKind::Dense,
            1 => ArrayKind::Sparse,
            other => return Err(kind_place.corrupt(format!("array type {other}, expected 0 or 1"))),
        };
        let (tile_order, cell_order) = (Order::parse(&mut fields)?, Order::parse(&mut fields)?);
        let capacity = fields.u64()?;
        let (coords, offsets) = (Pipeline::parse(&mut fields)?, Pipeline::parse(&mut fields)?);
        let validity = if version >= 7 { Pipeline::parse(&mut fields)? } else { Pipeline::default() };
        let dimensions = Dimension::parse_all(&mut fields, version, &coords)?;
        let count = fields.count_u32(9)?;
        let attributes =
            (0..count).map(|_| Attribute::parse(&mut fields, version)).collect::<Result<Vec<_>>>()?;
        let mut schema = Self {
            version,
            allows_duplicates,
            kind,
            tile_order,
            cell_order,
            capacity,
            coords,
            offsets,
            validity,
            dimensions,
            attributes,
            labels: Vec::new(),
            enumerations: Vec::new(),
            current_domain: None,
        };
        schema.parse_later(&mut fields)?;
        schema.check(place)?;
        Ok(schema)
    }

    /// Parses the parts that follow the attributes since version 18.
    fn parse_later(&mut self, fields: &mut Fields<'_>) -> Result<()> {
        if self.version >= 18 {
            for _ in 0..fields.count_u32(20)? {
                self.labels.push(DimensionLabel::parse(fields)?);
            }
        }
        if self.version >= 20 {
            for _ in 0..fields.count_u32(8)? {
                self.enumerations.push((text(fields)?, text(fields)?));
            }
        }
        if self.version >= 22 {
            let place = fields.place();
            let (version, empty) = (fields.u32()?, fields.u8()? != 0);
            if version != 0 {
                return Err(place.unsupported(format!("current domain version {version}")));
            }
            if !empty {
                let kind = fields.u8()?;
                if kind != 0 {
                    return Err(place.unsupported(format!("current domain type {kind}")));
                }
                self.current_domain = Some(ranges(fields, &self.dimensions)?);
            }
        }
        Ok(())
    }

    fn check(&self, place: Place<'_>) -> Result<()> {
        if self.dimensions.is_empty() {
            return Err(place.corrupt("a schema without dimensions"));
        }
        match self.kind {
            ArrayKind::Dense => {
                if self.attributes.is_empty() {
                    return Err(place.corrupt("a dense array without attributes"));
                }
                for dimension in &self.dimensions {
                    dimension.check_dense(place)?;
                }
                if self.cell_order == Order::Hilbert {
                    return Err(place.corrupt("Hilbert order in a dense array"));
                }
            }
            ArrayKind::Sparse => {
                if self.capacity == 0 {
                    return Err(place.corrupt("tiles of no cells"));
                }
            }
        }
        Ok(())
    }

    /// Encodes the payload of a schema's generic tile, in version [`WRITTEN`].
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = WRITTEN.to_le_bytes().to_vec();
        out.push(u8::from(self.allows_duplicates));
        out.push(u8::from(self.kind == ArrayKind::Sparse));
        out.push(self.tile_order.code());
        out.push(self.cell_order.code());
        out.extend(self.capacity.to_le_bytes());
        for pipeline in [&self.coords, &self.offsets, &self.validity] {
            pipeline.encode(&mut out);
        }
        out.extend((self.dimensions.len() as u32).to_le_bytes());
        for dimension in &self.dimensions {
            dimension.encode(&mut out);
        }
        out.extend((self.attributes.len() as u32).to_le_bytes());
        for attribute in &self.attributes {
            attribute.encode(&mut out);
        }
        out.extend((self.labels.len() as u32).to_le_bytes());
        for label in &self.labels {
            label.encode(&mut out);
        }
        out.extend((self.enumerations.len() as u32).to_le_bytes());
        for (name, file) in &self.enumerations {
            put_text(name, &mut out);
            put_text(file, &mut out);
        }
        out.extend(0_u32.to_le_bytes());
        match &self.current_domain {
            None => out.push(1),
            Some(ranges) => {
                out.extend([0, 0]);
                for range in ranges {
                    range.encode(&mut out);
                }
            }
        }
        out
    }

    /// The attribute with this name, and its position.
    pub(crate) fn attribute(&self, name: &str) -> Option<(usize, &Attribute)> {
        self.attributes.iter().enumerate().find(|(_, attribute)| attribute.name == name)
    }

    /// The pipeline of a dimension's values: its own, or the coords pipeline if its own is empty.
    pub(crate) fn dimension_pipeline(&self, dimension: usize) -> &Pipeline {
        let own = &self.dimensions[dimension].pipeline;
        if own.filters.is_empty() { &self.coords } else { own }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datatype::{CellValues, Datatype};

    #[test]
    fn labels_are_kept() -> Result<()> {
        let label = DimensionLabel {
            dimension: 0,
            name: "place".to_owned(),
            relative: true,
            uri: "__labels/l0".to_owned(),
            attribute: "label".to_owned(),
            order: 1,
            datatype: Datatype::Int64,
            values: CellValues::Fixed(1),
            external: false,
        };
        let schema = Schema {
            version: WRITTEN,
            allows_duplicates: false,
            kind: ArrayKind::Dense,
            tile_order: Order::RowMajor,
            cell_order: Order::RowMajor,
            capacity: 10,
            coords: Pipeline::default(),
            offsets: Pipeline::default(),
            validity: Pipeline::default(),
            dimensions: vec![Dimension {
                name: "x".to_owned(),
                datatype: Datatype::Int64,
                values: CellValues::Fixed(1),
                pipeline: Pipeline::default(),
                domain: [0_i64.to_le_bytes(), 9_i64.to_le_bytes()].concat(),
                extent: Some(5_i64.to_le_bytes().to_vec()),
            }],
            attributes: vec![Attribute::new("a", Datatype::Int32, CellValues::Fixed(1))],
            labels: vec![label],
            enumerations: vec![("e".to_owned(), "file".to_owned())],
            current_domain: None,
        };
        let read = Schema::parse(&schema.encode(), Place::new("test", "array schema", 0))?;
        assert_eq!(read.labels, schema.labels);
        assert_eq!(read.enumerations, schema.enumerations);
        assert_eq!(read.encode(), schema.encode());
        Ok(())
    }
}
