//! Shapes of shards.

use hyperslab_core::{ArraySpec, Error, Extents, Result};

/// Returns true if the source of an array is a Zarr array with shards.
pub(super) fn has_shards(spec: &ArraySpec) -> bool {
    let codecs = spec.stored.document.as_deref().and_then(|document| document.get("codecs")?.as_array());
    codecs.is_some_and(|codecs| codecs.iter().any(|codec| codec["name"] == "sharding_indexed"))
}

/// Rounds a shard shape up to whole chunks.
pub(super) fn whole_chunks(spec: &ArraySpec, wanted: &[u64]) -> Result<Extents> {
    let chunk = spec.grid.chunk_shape();
    let one_for_all = matches!(wanted, [_]);
    let wanted: Extents = match wanted {
        [all] => chunk.iter().map(|_| *all).collect(),
        each => each.into(),
    };
    if wanted.len() != chunk.len() {
        return Err(Error::invalid(format!(
            "shards of {wanted:?} have {} axes, but the array has {}; give one extent per axis, or one number for all",
            wanted.len(),
            chunk.len()
        )));
    }
    let whole = |(wanted, chunk): (&u64, &u64)| wanted.checked_next_multiple_of(*chunk);
    if wanted.contains(&0) {
        return Err(Error::invalid("the extents of shards must be at least 1"));
    }
    let shape: Option<Extents> = wanted.iter().zip(chunk).map(whole).collect();
    let shape = shape.ok_or_else(|| Error::invalid(format!("shards of {wanted:?} are too large")))?;
    // A chunk that covers its axis may be shorter than requested, as in the coarser levels of an image.
    let extents = spec.grid.shape().iter().zip(chunk);
    let mut given = wanted.iter().zip(&shape).zip(extents);
    if one_for_all || given.all(|((wanted, whole), (extent, chunk))| wanted == whole || chunk >= extent) {
        return Ok(shape);
    }
    Err(Error::invalid(format!(
        "shards of {:?} do not hold whole chunks of {chunk:?}; use {:?}",
        wanted.as_slice(),
        shape.as_slice()
    )))
}
