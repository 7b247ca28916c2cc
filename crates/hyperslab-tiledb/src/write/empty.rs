//! Arrays without cells. A TileDB domain has at least one cell along each dimension, so the metadata records which
//! axes have none. The record is valid until the first fragment is written.

use hyperslab_core::{ArraySpec, Attribute, Attributes, DType, Elements, Values};

use crate::metadata::EMPTY_AXES;

/// Records the axes without cells in the metadata of a new array: each followed by 1 if it may grow, otherwise 0.
pub(super) fn record(spec: &ArraySpec, attributes: &mut Attributes) {
    let axes = spec.grid.shape().iter().enumerate().filter(|(_, extent)| **extent == 0);
    let numbers: Vec<i64> =
        axes.flat_map(|(axis, _)| [axis as i64, i64::from(spec.max_shape[axis] != Some(0))]).collect();
    if numbers.is_empty() {
        return;
    }
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
    if let Ok(values) = Values::new(DType::Int64, &[numbers.len() as u64], Elements::fixed(bytes)) {
        attributes.set(EMPTY_AXES, Attribute::Values(values));
    }
}
