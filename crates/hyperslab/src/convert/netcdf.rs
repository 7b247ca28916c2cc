//! Arrays in the forms that NetCDF-4 has: its library knows no booleans, no half floats and no fixed-length text.

use std::sync::Arc;

use hyperslab_core::{Array, ArraySchema, CellOrder, DType, Elements, Fill, Grid, Labels, Result};

use crate::adapt::{ElementMap, Mapped, Relabelled};

/// The array in a form that NetCDF-4 has, and how it differs, where it does.
///
/// The forms are those in which xarray writes the same types, so that it reads them back as they were.
pub(super) fn adapted(array: &Arc<dyn Array>) -> Result<(Arc<dyn Array>, Option<&'static str>)> {
    let own = array.schema();
    let unchanged = || Ok((Arc::clone(array), None));
    if own.nullable {
        return unchanged();
    }
    match own.dtype {
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
        DType::FixedBytes(length) if length > 1 && own.order == CellOrder::RowMajor => {
            match characters(own, length)? {
                Some(schema) => Ok((Arc::new(Relabelled::new(Arc::clone(array), schema)), None)),
                None => unchanged(),
            }
        }
        _ => unchanged(),
    }
}

/// Text of a fixed length as characters along one more dimension. `None` where the fill value is not one character
/// repeated.
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

/// Half floats as single floats: every value stays the same.
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
