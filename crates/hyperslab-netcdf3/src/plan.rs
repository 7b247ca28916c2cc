//! The layout of a new file: definitions are collected first, then laid out at once.

use hyperslab_core::{ArraySpec, Attribute, Attributes, Error, Fill, Result, normal_path, product};

use crate::attributes::{self, FILL_VALUE};
use crate::encode::{encode, is_wide, sizes_fit};
use crate::header::{Dimension, Header, RawAttribute, Variable};
use crate::layout::record_stride;
use crate::types::{NcType, Version};

/// The definitions of a new file.
#[derive(Debug, Default)]
pub(crate) struct Definitions {
    /// The requested version; by default the oldest that can hold everything.
    pub(crate) version: Option<Version>,
    pub(crate) target: String,
    pub(crate) attributes: Attributes,
    pub(crate) dimensions: Vec<NewDimension>,
    pub(crate) variables: Vec<NewVariable>,
}

/// A dimension of a new file.
#[derive(Debug, Clone)]
pub(crate) struct NewDimension {
    name: String,
    length: u64,
    /// Whether it may grow without limit, if the format allows it.
    unlimited: bool,
    /// Whether it only occurs as the first axis.
    first_only: bool,
}

/// A variable of a new file.
#[derive(Debug)]
pub(crate) struct NewVariable {
    pub(crate) name: String,
    pub(crate) kind: NcType,
    axes: Vec<usize>,
    /// Elements per dimension. Other variables may be longer along a growing dimension.
    pub(crate) shape: Vec<u64>,
    pub(crate) attributes: Attributes,
    /// One stored element, for cells that are never written.
    pub(crate) fill: Vec<u8>,
}

impl NewVariable {
    /// Bytes of one step along the first axis.
    pub(crate) fn row_bytes(&self) -> u64 {
        let inner = self.shape.get(1..).unwrap_or(&[]);
        product(inner).unwrap_or(0).saturating_mul(self.kind.size())
    }

    /// Steps along the first axis.
    pub(crate) fn rows(&self) -> u64 {
        self.shape.first().copied().unwrap_or(1)
    }
}

/// The location of a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RowPlace {
    pub(crate) begin: u64,
    /// Bytes from one step along the first axis to the next.
    pub(crate) stride: u64,
    /// Steps along the first axis.
    pub(crate) rows: u64,
}

/// The header and the locations of all variables.
#[derive(Debug)]
pub(crate) struct FilePlan {
    pub(crate) header: Vec<u8>,
    pub(crate) places: Vec<RowPlace>,
    /// Bytes of the whole file.
    pub(crate) length: u64,
}

impl Definitions {
    fn unsupported(&self, feature: impl Into<String>) -> Error {
        Error::unsupported(self.target.as_str(), format!("{} in NetCDF classic", feature.into()))
    }

    /// The name of a variable at this path.
    pub(crate) fn name_at(&self, path: &str) -> Result<String> {
        match normal_path(path).trim_start_matches('/') {
            // A store of one array has it at the root.
            "" => Ok("data".to_owned()),
            nested if nested.contains('/') => Err(self.unsupported(format!("{path} inside a group"))),
            name => Ok(name.to_owned()),
        }
    }

    /// Declares a dimension that may have no variable.
    pub(crate) fn add_dimension(&mut self, path: &str, length: u64, unlimited: bool) -> Result<()> {
        let name = self.name_at(path)?;
        match self.find(&name) {
            Some(known) if self.dimensions[known].length == length => {
                self.dimensions[known].unlimited |= unlimited;
            }
            Some(known) => {
                let own = &mut self.dimensions[known];
                if !(own.unlimited && unlimited) {
                    let lengths = format!("a dimension {name} of lengths {} and {length}", own.length);
                    return Err(self.unsupported(lengths));
                }
                own.length = own.length.max(length);
            }
            None => {
                self.check_empty(&name, 0, length)?;
                self.dimensions.push(NewDimension { name, length, unlimited, first_only: true });
            }
        }
        Ok(())
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.dimensions.iter().position(|own| own.name == name)
    }

    /// Only the record dimension can be empty.
    fn check_empty(&self, name: &str, axis: usize, length: u64) -> Result<()> {
        if length > 0 {
            return Ok(());
        }
        if axis > 0 {
            return Err(self.unsupported(format!("dimension {name} of length zero after another")));
        }
        match self.dimensions.iter().find(|own| own.length == 0 && own.name != name) {
            Some(other) => {
                Err(self
                    .unsupported(format!("a second dimension of length zero, {name} beside {}", other.name)))
            }
            None => Ok(()),
        }
    }

    /// Declares a variable and returns its number.
    pub(crate) fn add_variable(&mut self, path: &str, spec: &ArraySpec) -> Result<usize> {
        let name = self.name_at(path)?;
        if self.variables.iter().any(|own| own.name == name) {
            return Err(Error::invalid(format!("{}: {name} already exists", self.target)));
        }
        if let Some(filter) = spec.filters.first() {
            return Err(self.unsupported(format!("filter {}", filter.name)));
        }
        if spec.nullable {
            return Err(self.unsupported(format!("{name} with missing elements")));
        }
        let kind = NcType::of(&spec.dtype)
            .ok_or_else(|| self.unsupported(format!("{name} of type {}", spec.dtype)))?;
        if let Some(version) =
            self.version.filter(|version| kind.is_extended() && *version != Version::Data64)
        {
            return Err(self.unsupported(format!(
                "{name} of type {} (CDF-5 has it, {} has not)",
                spec.dtype,
                version.variant()
            )));
        }
        let size = product(spec.grid.shape()).and_then(|cells| cells.checked_mul(kind.size()));
        if size.is_none_or(|size| size >= 1 << 62) {
            return Err(self.unsupported(format!("{name} of shape {:?}", spec.grid.shape())));
        }
        for (own, attribute) in spec.attributes.iter() {
            attributes::stored(attribute, true).map_err(|why| {
                Error::unsupported(self.target.as_str(), format!("{name}: attribute {own}: {why}"))
            })?;
        }
        let axes = self.resolve_axes(&name, spec)?;
        let fill = self.fill_of(kind, spec);
        self.variables.push(NewVariable {
            name,
            kind,
            axes,
            shape: spec.grid.shape().to_vec(),
            attributes: spec.attributes.clone(),
            fill,
        });
        Ok(self.variables.len() - 1)
    }

    /// The dimensions of a variable, created if they are new. Nothing changes if one is refused.
    fn resolve_axes(&mut self, variable: &str, spec: &ArraySpec) -> Result<Vec<usize>> {
        let before = self.dimensions.clone();
        let mut axes = Vec::new();
        for (axis, (&extent, name)) in spec.grid.shape().iter().zip(&spec.dimensions).enumerate() {
            let unlimited = spec.max_shape[axis].is_none();
            match self.resolve_axis(axis, extent, name.as_deref(), unlimited) {
                Ok(number) => axes.push(number),
                Err(why) => {
                    self.dimensions = before;
                    return Err(match why {
                        Error::Unsupported { store, feature } => {
                            Error::unsupported(store, format!("{variable}: {feature}"))
                        }
                        other => other,
                    });
                }
            }
        }
        Ok(axes)
    }

    fn resolve_axis(
        &mut self,
        axis: usize,
        extent: u64,
        name: Option<&str>,
        unlimited: bool,
    ) -> Result<usize> {
        let mut name = match name.map(|name| name.rsplit('/').next().unwrap_or(name)) {
            Some(name) if !name.is_empty() => name.to_owned(),
            // Axes of the same length share a generated name.
            _ => {
                let mut made = format!("dim_{extent}");
                while self.find(&made).is_some_and(|known| self.dimensions[known].length != extent) {
                    made.push('_');
                }
                made
            }
        };
        self.check_empty(&name, axis, extent)?;
        let Some(number) = self.find(&name) else {
            let name = std::mem::take(&mut name);
            self.dimensions.push(NewDimension { name, length: extent, unlimited, first_only: axis == 0 });
            return Ok(self.dimensions.len() - 1);
        };
        let known = &self.dimensions[number];
        let (length, grows) = (known.length, known.unlimited && unlimited && axis == 0 && known.first_only);
        if axis > 0 && length == 0 || length != extent && !grows {
            return Err(self.unsupported(format!("a dimension {name} of lengths {length} and {extent}")));
        }
        let known = &mut self.dimensions[number];
        known.length = length.max(extent);
        known.unlimited |= unlimited;
        known.first_only &= axis == 0;
        Ok(number)
    }

    /// The value of unwritten cells: the missing-value marker, the array's fill value, or the default.
    fn fill_of(&self, kind: NcType, spec: &ArraySpec) -> Vec<u8> {
        let marker = spec.attributes.get(FILL_VALUE).and_then(|marker| element_of(marker, kind));
        let of_fill = |fill: &Fill| match fill {
            Fill::Element(element) => {
                let bytes = element.as_fixed().filter(|bytes| bytes.len() as u64 == kind.size());
                bytes.map(|bytes| attributes::native(kind, bytes.to_vec()))
            }
            Fill::Zero => Some(vec![0; kind.size() as usize]),
            Fill::Undefined => None,
        };
        marker
            .or_else(|| of_fill(&spec.fill))
            .or_else(|| of_fill(&kind.default_fill()))
            .unwrap_or_else(|| vec![0; kind.size() as usize])
    }

    /// The growing dimension: an empty one, or the first that may grow.
    fn record_dimension(&self) -> Option<usize> {
        let empty = self.dimensions.iter().position(|own| own.length == 0);
        empty.or_else(|| self.dimensions.iter().position(|own| own.unlimited && own.first_only))
    }

    /// Nodes stored in another form than declared: path and description.
    pub(crate) fn changes(&self) -> Vec<(String, String)> {
        let record = self.record_dimension();
        let lost = |(number, own): (usize, &NewDimension)| {
            let why = match record {
                _ if !own.unlimited || record == Some(number) => return None,
                Some(record) if own.first_only => {
                    format!(
                        "NetCDF classic has one unlimited dimension, which is {}",
                        self.dimensions[record].name
                    )
                }
                _ => "in NetCDF classic only the first dimension grows".to_owned(),
            };
            Some(("/".to_owned(), format!("dimension {} is stored with a fixed length: {why}", own.name)))
        };
        self.dimensions.iter().enumerate().filter_map(lost).collect()
    }

    /// Lays out the file, in the requested version or the oldest that can hold it.
    pub(crate) fn plan(&self) -> Result<FilePlan> {
        let versions = match self.version {
            Some(version) => vec![version],
            None => vec![Version::Classic, Version::Offset64, Version::Data64],
        };
        let mut refused = None;
        for version in versions {
            match self.plan_as(version)? {
                Ok(plan) => return Ok(plan),
                Err(why) => refused = Some((version, why)),
            }
        }
        let (version, why) = refused.unwrap_or((Version::Data64, "nothing was tried".to_owned()));
        Err(Error::unsupported(
            self.target.as_str(),
            format!("{why} in a file of the variant {}", version.variant()),
        ))
    }

    /// The plan in one version, or why it does not fit.
    fn plan_as(&self, version: Version) -> Result<Result<FilePlan, String>> {
        let record = self.record_dimension();
        let records = record.map_or(0, |record| self.dimensions[record].length);
        let extended = version == Version::Data64;
        if !extended && let Some(long) = self.dimensions.iter().find(|own| is_wide(own.length)) {
            return Ok(Err(format!("dimension {} of length {}", long.name, long.length)));
        }
        let attributes = match raw_attributes(&self.attributes, version, None) {
            Ok(attributes) => attributes,
            Err(why) => return Ok(Err(why)),
        };
        let mut variables = Vec::new();
        for own in &self.variables {
            if own.kind.is_extended() && !extended {
                return Ok(Err(format!("{} of type {}", own.name, own.kind.name())));
            }
            let attributes = match raw_attributes(&own.attributes, version, Some(own.kind)) {
                Ok(attributes) => attributes,
                Err(why) => return Ok(Err(format!("{}: {why}", own.name))),
            };
            variables.push(Variable {
                name: own.name.clone(),
                dimensions: own.axes.clone(),
                attributes,
                kind: own.kind,
                noted_size: 0,
                begin: 0,
                at: 0,
            });
        }
        let dimensions = self.dimensions.iter().enumerate().map(|(number, own)| Dimension {
            name: own.name.clone(),
            length: if record == Some(number) { 0 } else { own.length },
        });
        let mut header = Header {
            version,
            records: Some(records),
            dimensions: dimensions.collect(),
            attributes,
            variables,
            length: 0,
        };
        let start = encode(&header)?.len() as u64;
        let (places, length) = self.places(start, record)?;
        let is_record = |own: &NewVariable| own.axes.first().is_some_and(|first| Some(*first) == record);
        let recorded = self.variables.iter().filter(|own| is_record(own)).count();
        let mut sizes = Vec::new();
        for ((own, place), variable) in self.variables.iter().zip(&places).zip(&mut header.variables) {
            let size = if is_record(own) { own.row_bytes() } else { own.row_bytes() * place.rows };
            sizes.push((size, is_record(own)));
            // For a single record variable, readers expect the size without padding.
            variable.noted_size =
                if is_record(own) && recorded == 1 { size } else { size.next_multiple_of(4) };
            variable.begin = place.begin;
        }
        let last = places.iter().map(|place| place.begin).max().unwrap_or(0);
        if !sizes_fit(version, &sizes, last) {
            return Ok(Err(format!("a file of {length} bytes with variables that are this large")));
        }
        Ok(Ok(FilePlan { header: encode(&header)?, places, length }))
    }

    /// Fixed variables after the header, then the records.
    fn places(&self, start: u64, record: Option<usize>) -> Result<(Vec<RowPlace>, u64)> {
        let too_large = || self.unsupported("more than 2^63 bytes");
        let sum = |a: u64, b: u64| a.checked_add(b).filter(|sum| *sum < 1 << 63).ok_or_else(too_large);
        let is_record = |own: &&NewVariable| own.axes.first().is_some_and(|first| Some(*first) == record);
        let own: Vec<u64> = self.variables.iter().filter(is_record).map(NewVariable::row_bytes).collect();
        let stride = record_stride(&own).ok_or_else(too_large)?;
        let mut places = vec![RowPlace { begin: 0, stride: 0, rows: 0 }; self.variables.len()];
        let mut at = start;
        for (own, place) in self.variables.iter().zip(&mut places).filter(|(own, _)| !is_record(own)) {
            let rows = own.axes.first().map_or(1, |first| self.dimensions[*first].length);
            let size = own.row_bytes().checked_mul(rows).ok_or_else(too_large)?;
            *place = RowPlace { begin: at, stride: own.row_bytes(), rows };
            at = sum(at, size.next_multiple_of(4))?;
        }
        let records = record.map_or(0, |record| self.dimensions[record].length);
        let end = sum(at, records.checked_mul(stride).ok_or_else(too_large)?)?;
        for (own, place) in self.variables.iter().zip(&mut places).filter(|(own, _)| is_record(own)) {
            *place = RowPlace { begin: at, stride, rows: records };
            at = sum(at, own.row_bytes().next_multiple_of(4))?;
        }
        Ok((places, end))
    }
}

/// The stored form of attributes. `kind` is the type of their variable.
fn raw_attributes(
    attributes: &Attributes,
    version: Version,
    kind: Option<NcType>,
) -> Result<Vec<RawAttribute>, String> {
    let mut raw = Vec::with_capacity(attributes.len());
    for (name, attribute) in attributes.iter() {
        let marker = kind.filter(|_| name == FILL_VALUE);
        let marker = marker.and_then(|kind| Some((kind, element_of(attribute, kind)?)));
        let (kind, bytes) = match marker {
            Some(marker) => marker,
            None => attributes::stored(attribute, version == Version::Data64)?,
        };
        if kind.is_extended() && version != Version::Data64 {
            return Err(format!("attribute {name} of type {}", kind.name()));
        }
        raw.push(RawAttribute { name: name.to_owned(), kind, bytes });
    }
    Ok(raw)
}

/// The single value of an attribute as a stored element of this type; `None` if that would change it.
fn element_of(attribute: &Attribute, kind: NcType) -> Option<Vec<u8>> {
    if let Attribute::Values(values) = attribute
        && values.dtype == kind.dtype()
        && values.len() == 1
    {
        return Some(attributes::native(kind, values.elements.as_fixed()?.to_vec()));
    }
    let document = match attribute.to_json() {
        serde_json::Value::Array(mut items) if items.len() == 1 => items.remove(0),
        single => single,
    };
    if kind == NcType::Char {
        let text = document.as_str()?;
        return match text.len() {
            0 => Some(vec![0]),
            1 => Some(text.as_bytes().to_vec()),
            _ => None,
        };
    }
    let integer = || {
        document.as_i64().map(i128::from).or(document.as_u64().map(i128::from)).or_else(|| {
            let float = document.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 9e15)?;
            Some(float as i128)
        })
    };
    macro_rules! fitted {
        ($type:ty) => {
            <$type>::try_from(integer()?).ok()?.to_be_bytes().to_vec()
        };
    }
    Some(match kind {
        NcType::Char => return None,
        NcType::Byte => fitted!(i8),
        NcType::Short => fitted!(i16),
        NcType::Int => fitted!(i32),
        NcType::UByte => fitted!(u8),
        NcType::UShort => fitted!(u16),
        NcType::UInt => fitted!(u32),
        NcType::Int64 => fitted!(i64),
        NcType::UInt64 => fitted!(u64),
        NcType::Double => document.as_f64()?.to_be_bytes().to_vec(),
        NcType::Float => {
            let float = document.as_f64()?;
            let single = float as f32;
            if f64::from(single) != float && !is_nearest(attribute) {
                return None;
            }
            single.to_be_bytes().to_vec()
        }
    })
}

/// Returns true if the attribute is a JSON number, which has no single precision.
fn is_nearest(attribute: &Attribute) -> bool {
    matches!(attribute, Attribute::Json(_))
}

#[cfg(test)]
mod tests {
    use hyperslab_core::{DType, Grid};
    use serde_json::json;

    use super::*;

    /// The version of a file with variables of these types and shapes.
    fn version(variables: &[(DType, &[u64])], attributes: &[(&str, serde_json::Value)]) -> u8 {
        let mut definitions = Definitions { target: "x.nc".to_owned(), ..Definitions::default() };
        for (number, (dtype, shape)) in variables.iter().enumerate() {
            let spec = ArraySpec::new(dtype.clone(), Grid::single(shape));
            definitions.add_variable(&format!("/v{number}"), &spec).unwrap();
        }
        for (name, value) in attributes {
            definitions.attributes.set(*name, value.clone());
        }
        definitions.plan().unwrap().header[3]
    }

    #[test]
    fn the_oldest_version_that_holds_everything_is_chosen() {
        assert_eq!(version(&[(DType::Int32, &[5])], &[("n", json!(7))]), 1);
        assert_eq!(version(&[(DType::Int64, &[5])], &[]), 5);
        assert_eq!(version(&[(DType::Int32, &[5])], &[("n", json!(1_u64 << 40))]), 5);
        assert_eq!(version(&[(DType::Int8, &[2, 1 << 30]), (DType::Int8, &[4])], &[]), 2);
        assert_eq!(version(&[(DType::Int8, &[4, 1 << 30]), (DType::Int8, &[4])], &[]), 5);
        assert_eq!(version(&[(DType::Int8, &[1 << 31])], &[]), 5);
    }

    #[test]
    fn markers_have_the_type_of_their_variable() {
        let element = |document, kind| element_of(&Attribute::Json(document), kind);
        assert_eq!(element(json!(-1), NcType::Short), Some(vec![0xff, 0xff]));
        assert_eq!(element(json!(-1.0), NcType::Short), Some(vec![0xff, 0xff]));
        assert_eq!(element(json!(1e9), NcType::Short), None);
        assert_eq!(element(json!(0.1), NcType::Float), Some(0.1_f32.to_be_bytes().to_vec()));
        assert_eq!(element(json!("x"), NcType::Char), Some(vec![b'x']));
        assert_eq!(element(json!("xy"), NcType::Char), None);
    }
}
