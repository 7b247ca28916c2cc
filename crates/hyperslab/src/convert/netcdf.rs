//! Adapts arrays to NetCDF. Its library has no booleans, half floats or fixed-length text. The classic formats have no text and
//! no enumerations at all.

use std::sync::Arc;

use hyperslab_core::{
    Array, ArraySchema, CellOrder, DType, Elements, EnumType, Fill, Grid, Labels, Result, Values,
};

use super::characters::Characters;
use crate::adapt::{ElementMap, Mapped, Relabelled};

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
            Ok((Arc::new(Characters::new(Arc::clone(array))?), None))
        }
        DType::Enum(named) if classic => {
            let schema = flags(own, named)?;
            let change = "an enumeration is stored as integers with flag_values and flag_meanings";
            Ok((Arc::new(Relabelled::new(Arc::clone(array), schema)), Some(change)))
        }
        DType::Bool => {
            let mut schema = ArraySchema { dtype: DType::Int8, ..own.clone() };
            schema.attributes.set("dtype", "bool");
            Ok((Arc::new(Relabelled::new(Arc::clone(array), schema)), None))
        }
        DType::Float16 => {
            let fill = match &own.fill {
                Fill::Element(element) => Fill::Element(Elements::fixed(
                    element.as_fixed().map(|half| HalfToSingle.mapped(half)).unwrap_or_default(),
                )),
                other => other.clone(),
            };
            let schema = ArraySchema { dtype: DType::Float32, fill, ..own.clone() };
            let mapped = Mapped::new(Arc::clone(array), schema, HalfToSingle);
            Ok((Arc::new(mapped), Some("float16 is stored as float32")))
        }
        DType::FixedBytes(length) if *length > 1 && own.order == CellOrder::RowMajor => {
            match characters(own, *length)? {
                Some(schema) => Ok((Arc::new(Relabelled::new(Arc::clone(array), schema)), None)),
                None => unchanged(),
            }
        }
        _ => unchanged(),
    }
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
