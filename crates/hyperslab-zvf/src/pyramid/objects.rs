//! The objects that use the fragments of each finer chunk.

use std::collections::HashMap;

use hyperslab_core::{Budget, Result};

use crate::coord::{Coord, dotted};
use crate::level::Level;
use crate::meta::corrupt;
use crate::objects::Objects;
use crate::write::buckets::{Buckets, Gathered, record, words};

/// A fragment's position in an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FineUse {
    /// The object's row in the index.
    pub(super) object: u64,
    /// The fragment's position among the object's fragments.
    pub(super) order: u64,
    pub(super) fragment: u32,
}

/// All uses, by chunk.
pub(super) struct FineUses(Gathered);

/// Longer runs of fragments are checked against their chunk before they are expanded.
const LONG_RUN: u64 = 1 << 12;

impl FineUses {
    pub(super) fn gather(
        level: &Level,
        objects: &Objects,
        numbers: &HashMap<Coord, usize>,
        mut buckets: Buckets,
    ) -> Result<Self> {
        let budget = Budget::new(level.zarr.directory().name(), objects.len().saturating_mul(16));
        for object in 0..objects.len() {
            let mut order = 0_u64;
            for block in objects.manifest(object)? {
                let chunk = numbers.get(&block.chunk);
                if block.fragments.len() > LONG_RUN || chunk.is_none() {
                    let rows = level.chunk(&block.chunk)?.map_or(0, |vertices| vertices.rows);
                    let count = if rows == 0 { 0 } else { level.fragments(&block.chunk, rows)?.len() as u64 };
                    if block.fragments.last().is_some_and(|last| last >= count) {
                        let problem = format!(
                            "{} fragments of {count} in chunk {}",
                            block.fragments.len(),
                            dotted(&block.chunk)
                        );
                        let place = format!("manifest of object {}", objects.id(object)?);
                        return Err(corrupt(level.vertices.name(), &place, problem));
                    }
                }
                // Each fragment that is named takes at least a bit of its chunk's index.
                budget.spend(block.fragments.len(), "manifests")?;
                for fragment in block.fragments.iter() {
                    // A number past the last fragment is rejected when the chunk is read.
                    let fragment = fragment.min(u32::MAX.into());
                    if let Some(chunk) = chunk {
                        buckets.push(*chunk, record([object, order, fragment]).as_flattened())?;
                    }
                    order += 1;
                }
            }
        }
        Ok(Self(buckets.gathered()))
    }

    /// The uses of a chunk, by object and order.
    pub(super) fn of(&self, chunk: usize) -> Result<Vec<FineUse>> {
        let one = |bytes: &[u8]| {
            let [object, order, fragment] = words::<3>(bytes);
            FineUse { object, order, fragment: fragment as u32 }
        };
        Ok(self.0.take(chunk)?.chunks_exact(24).map(one).collect())
    }
}
