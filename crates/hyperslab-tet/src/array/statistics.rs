//! The claims of zone maps about a dataset's chunks.

use std::collections::HashMap;

use half::f16;
use hyperslab_core::{ArraySchema, ChunkCoord, ChunkStatistics, DType, Number};

use crate::store::Inner;
use crate::zone::{Statistics, ZoneMaps};

/// By chunk coordinate.
pub(super) type Zones = HashMap<ChunkCoord, ChunkStatistics>;

/// The claims of a file about one dataset; empty if they are absent or unreadable, since nothing depends on them.
pub(super) fn read(file: &Inner, id: usize, schema: &ArraySchema) -> Zones {
    let spill = file.footer.whole().and_then(|footer| footer.zone_maps);
    let maps = spill.and_then(|spill| file.spill::<ZoneMaps>(spill, "zone maps").ok());
    let item = schema.dtype.size().unwrap_or(0);
    let mut zones = Zones::new();
    for zone in maps.iter().flat_map(|maps| &maps.chunks).filter(|zone| zone.dataset_id == id as u64) {
        let chunk = ChunkCoord::from_slice(&zone.chunk_index);
        if !schema.grid.contains(&chunk) {
            continue;
        }
        if let Some(claimed) = Statistics::of_zone(zone, item) {
            let number = |bytes: [u8; 8]| number(&schema.dtype, bytes);
            zones.insert(
                chunk,
                ChunkStatistics {
                    min: claimed.range.and_then(|(low, _)| number(low)),
                    max: claimed.range.and_then(|(_, high)| number(high)),
                    nulls: Some(claimed.nulls),
                    hint: true,
                    ..ChunkStatistics::default()
                },
            );
        }
    }
    zones
}

/// An element from its little-endian bytes.
fn number(dtype: &DType, bytes: [u8; 8]) -> Option<Number> {
    let [a, b, c, d, ..] = bytes;
    let (two, four) = ([a, b], [a, b, c, d]);
    Some(match dtype {
        DType::Float16 => Number::Float(f16::from_le_bytes(two).into()),
        DType::Float32 => Number::Float(f32::from_le_bytes(four).into()),
        DType::Float64 => Number::Float(f64::from_le_bytes(bytes)),
        DType::Int16 => Number::Integer(i16::from_le_bytes(two).into()),
        DType::Int32 => Number::Integer(i32::from_le_bytes(four).into()),
        DType::Int64 => Number::Integer(i64::from_le_bytes(bytes).into()),
        DType::UInt8 => Number::Integer(a.into()),
        DType::UInt16 => Number::Integer(u16::from_le_bytes(two).into()),
        DType::UInt32 => Number::Integer(u32::from_le_bytes(four).into()),
        DType::UInt64 => Number::Integer(u64::from_le_bytes(bytes).into()),
        _ => return None,
    })
}
