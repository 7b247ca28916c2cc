//! Adapts arrays and attributes to NetCDF. Its library has no booleans, half floats or fixed-length text. The classic formats have
//! no text and no enumerations at all.

use std::sync::Arc;

use hyperslab_core::{
    Array, ArraySchema, Attribute, Attributes, CellOrder, DType, Elements, EnumType, Extents, Fill, Grid,
    Labels, Result, Values,
};

use super::characters::Characters;
use crate::adapt::{Described, ElementMap, Mapped, Relabelled};

/// The attributes that mark missing values.
const MARKERS: [&str; 2] = ["_FillValue", "missing_value"];

/// The array in a form that NetCDF-4 or NetCDF classic has, and a description of the change, if any.
///
/// The forms are those in which xarray writes the same types, so that xarray reads them back unchanged.
pub(super) fn adapted(
    array: &Arc<dyn Array>,
    classic: bool,
) -> Result<(Arc<dyn Array>, Option<&'static str>)> {
    let own = array.schema();
    let unchanged = || Ok((Arc::clone(array), None));
    if own.nullable {
        return unchanged();
    }
    match &own.dtype {
        DType::String | DType::Bytes | DType::FixedText(_) if classic => {
            let (texts, change) = without_text_markers(array);
            Ok((Arc::new(Characters::new(texts)?), change))
        }
        DType::Enum(named) if classic => {
            let schema = flags(own, named)?;
            let change = "an enumeration is stored as integers with flag_values and flag_meanings";
            Ok((Arc::new(Relabelled::new(Arc::clone(array), schema)), Some(change)))
        }
        DType::Bool => {
            // A marker would make every false or every true a missing value.
            let attributes = without_markers(&own.attributes);
            let mut schema = ArraySchema { dtype: DType::Int8, attributes, ..own.clone() };
            schema.attributes.set("dtype", "bool");
            // Zarr 2 marks every array with its fill value, which is false unless another was chosen.
            let marks = |name: &str| own.attributes.get(name).is_some_and(|value| !is_false(value));
            let change = MARKERS.into_iter().any(marks).then_some(
                "the missing-value marker is left out: every false or every true would be missing",
            );
            Ok((Arc::new(Relabelled::new(Arc::clone(array), schema)), change))
        }
        DType::Float16 => {
            let fill = match &own.fill {
                Fill::Element(element) => Fill::Element(Elements::fixed(
                    element.as_fixed().map(|half| HalfToSingle.mapped(half)).unwrap_or_default(),
                )),
                other => other.clone(),
            };
            let mut schema = ArraySchema { dtype: DType::Float32, fill, ..own.clone() };
            for (name, value) in own.attributes.iter() {
                if let Some(single) = single_precision(value) {
                    schema.attributes.set(name, single);
                }
            }
            let mapped = Mapped::new(Arc::clone(array), schema, HalfToSingle);
            Ok((Arc::new(mapped), Some("float16 is stored as float32")))
        }
        DType::FixedBytes(length) if *length > 1 && own.order == CellOrder::RowMajor => {
            let (texts, change) = without_text_markers(array);
            match characters(texts.schema(), *length)? {
                Some(schema) => Ok((Arc::new(Relabelled::new(texts, schema)), change)),
                None => unchanged(),
            }
        }
        DType::Complex64 | DType::Complex128 if !classic && has_markers(&own.attributes) => {
            let schema = ArraySchema { attributes: without_markers(&own.attributes), ..own.clone() };
            let change = "the missing-value marker is left out: NetCDF has none for complex numbers";
            Ok((Arc::new(Described::new(Arc::clone(array), schema)), Some(change)))
        }
        _ => unchanged(),
    }
}

/// The array in the form of NetCDF classic, with which arrays in that form can be compared.
pub(crate) fn netcdf_form_of(array: &Arc<dyn Array>) -> Result<Arc<dyn Array>> {
    Ok(adapted(array, true)?.0)
}

/// Returns true if elements of this type are [adapted](adapted).
pub(super) fn adapts(dtype: &DType, classic: bool) -> bool {
    match dtype {
        DType::Bool | DType::Float16 => true,
        DType::FixedBytes(length) => *length > 1,
        DType::String | DType::Bytes | DType::FixedText(_) | DType::Enum(_) => classic,
        _ => false,
    }
}

/// Returns true if arrays of this type can have a fill value. The NetCDF-4 library crashes on that of fixed-length text; cells
/// that hold it are written instead.
pub(super) fn has_fill(dtype: &DType) -> bool {
    !matches!(dtype, DType::FixedText(_)) && !matches!(dtype, DType::FixedBytes(length) if *length > 1)
}

/// An attribute in a form that the NetCDF-4 library has, and a description of the change; `None` if nothing changes.
pub(super) fn adapted_attribute(attribute: &Attribute) -> Option<(Attribute, String)> {
    let mut values = attribute.to_values()?;
    let mut changes = Vec::new();
    let is_document = matches!(attribute, Attribute::Json(document) if !document.is_string());
    if is_document && values.dtype == DType::String && values.shape.is_empty() {
        changes.push("is stored as the text of its JSON".to_owned());
    }
    if values.dtype == DType::Bytes
        && let ([], Some(bytes)) = (&values.shape[..], values.elements.variable_at(0))
    {
        values = Values::new(DType::UInt8, &[bytes.len() as u64], Elements::fixed(bytes.to_vec())).ok()?;
        changes.push("is stored as unsigned bytes".to_owned());
    }
    if values.dtype == DType::Bool {
        values.dtype = DType::Int8;
        changes.push("is stored as int8".to_owned());
    }
    if let Some(single) = single_precision(&Attribute::Values(values.clone())) {
        values = single;
        changes.push("is stored as float32".to_owned());
    }
    // The library cannot list the attributes of a file with one of several dimensions.
    if values.shape.len() > 1 {
        changes.push(format!("of shape {:?} is stored as a plain list", values.shape.as_slice()));
        values.shape = Extents::from_slice(&[values.len() as u64]);
    }
    let is_text = matches!(values.dtype, DType::String | DType::FixedBytes(_) | DType::FixedText(_));
    let is_number = values.dtype.is_integer() || values.dtype.is_float();
    if !is_text && !is_number || values.dtype == DType::Float128 {
        changes.push(format!("of type {} is not shown by the NetCDF library", values.dtype));
    }
    (!changes.is_empty()).then(|| (Attribute::Values(values), changes.join(" and ")))
}

/// Half floats of an attribute as single floats; `None` if it has none.
fn single_precision(attribute: &Attribute) -> Option<Values> {
    let Attribute::Values(values) = attribute else { return None };
    let halves = values.elements.as_fixed().filter(|_| values.dtype == DType::Float16)?;
    Values::new(DType::Float32, &values.shape, Elements::fixed(HalfToSingle.mapped(halves))).ok()
}

fn has_markers(attributes: &Attributes) -> bool {
    MARKERS.iter().any(|name| attributes.get(name).is_some())
}

/// Returns true for `false` and 0.
fn is_false(value: &Attribute) -> bool {
    let document = value.to_json();
    document == false || document.as_f64() == Some(0.0)
}

fn without_markers(attributes: &Attributes) -> Attributes {
    attributes.filtered(|name, _| !MARKERS.contains(&name))
}

/// An array of texts without missing-value markers, and a description of the change, if any. A marker of characters is one
/// character, so it cannot mark a text.
fn without_text_markers(array: &Arc<dyn Array>) -> (Arc<dyn Array>, Option<&'static str>) {
    let own = array.schema();
    if !has_markers(&own.attributes) {
        return (Arc::clone(array), None);
    }
    let schema = ArraySchema { attributes: without_markers(&own.attributes), ..own.clone() };
    let change = "the missing-value marker is left out: NetCDF has none for texts of characters";
    (Arc::new(Described::new(Arc::clone(array), schema)), Some(change))
}

/// Named integers in the form of the CF conventions.
fn flags(own: &ArraySchema, named: &EnumType) -> Result<ArraySchema> {
    let mut schema = ArraySchema { dtype: named.base.clone(), ..own.clone() };
    let size = named.base.size().unwrap_or(0);
    // The low bytes of a wide integer are the narrow one.
    let bytes = |value: &i128| {
        let wide = value.to_le_bytes();
        let mut narrow = wide[..size.min(wide.len())].to_vec();
        if cfg!(target_endian = "big") {
            narrow.reverse();
        }
        narrow
    };
    let values: Vec<u8> = named.members.iter().flat_map(|(_, value)| bytes(value)).collect();
    let values = Values::new(named.base.clone(), &[named.members.len() as u64], Elements::fixed(values))?;
    let meanings: Vec<String> = named.members.iter().map(|(name, _)| name.replace(' ', "_")).collect();
    if !named.members.is_empty() && schema.attributes.get("flag_values").is_none() {
        schema.attributes.set("flag_values", values);
        schema.attributes.set("flag_meanings", meanings.join(" ").as_str());
    }
    Ok(schema)
}

/// Fixed-length text as characters along an extra dimension. `None` if the fill value is not one repeated character.
fn characters(own: &ArraySchema, length: usize) -> Result<Option<ArraySchema>> {
    let fill = match &own.fill {
        Fill::Element(element) => match element.as_fixed().and_then(|bytes| bytes.split_first()) {
            Some((first, rest)) if rest.iter().all(|byte| byte == first) => {
                Fill::Element(Elements::fixed(vec![*first]))
            }
            _ => return Ok(None),
        },
        other => other.clone(),
    };
    let with = |extents: &[u64]| extents.iter().copied().chain([length as u64]).collect::<Vec<_>>();
    let grid = Grid::new(&with(own.shape()), &with(own.grid.chunk_shape()))?;
    let mut schema = ArraySchema { dtype: DType::FixedBytes(1), grid, fill, ..own.clone() };
    schema.max_shape.push(Some(length as u64));
    schema.dimensions.push(Some(format!("string{length}")));
    schema.labels.push(Labels::None);
    Ok(Some(schema))
}

/// Half floats as single floats. Every value is preserved.
#[derive(Debug)]
struct HalfToSingle;

impl HalfToSingle {
    fn mapped(&self, from: &[u8]) -> Vec<u8> {
        let mut to = vec![0; from.len() * 2];
        self.map(from, &mut to);
        to
    }
}

impl ElementMap for HalfToSingle {
    fn map(&self, from: &[u8], to: &mut [u8]) {
        for (half, single) in from.as_chunks::<2>().0.iter().zip(to.as_chunks_mut::<4>().0) {
            *single = half::f16::from_ne_bytes(*half).to_f32().to_ne_bytes();
        }
    }
}
