//! The field that all contenders read: smooth with a little noise, like measured data.

use std::path::Path;

use hyperslab::{DType, Elements, Values};

use crate::harness::Outcome;

/// The chunk shape of all cases: 64³.
pub(crate) const CHUNK: [u64; 3] = [64, 64, 64];
/// The box size of all cases: 32³.
pub(crate) const BOX: u64 = 32;
/// The number of boxes.
pub(crate) const BOXES: usize = 100;

/// The shape of a field of this many bytes of float32: 512 × 512 planes.
pub(crate) const fn shape(bytes: u64) -> [u64; 3] {
    [bytes / 4 / (512 * 512), 512, 512]
}

/// The field's elements.
pub(crate) fn field(bytes: u64) -> Vec<u8> {
    let [planes, rows, columns] = shape(bytes);
    let mut elements = Vec::with_capacity(bytes as usize);
    let mut noise = 0x9e37_79b9_u32;
    for plane in 0..planes {
        for row in 0..rows {
            let base = (plane as f32 * 0.011).sin() * 40.0 + (row as f32 * 0.017).cos() * 25.0;
            for column in 0..columns {
                noise ^= noise << 13;
                noise ^= noise >> 17;
                noise ^= noise << 5;
                let value = base + (column as f32 * 0.023).sin() * 10.0 + (noise >> 24) as f32 / 256.0;
                elements.extend_from_slice(&value.to_ne_bytes());
            }
        }
    }
    elements
}

/// Writes the field as an `.npy` file, from which the other files are made.
pub(crate) fn write_npy(bytes: u64, path: &Path) -> Outcome {
    let values = Values::new(DType::Float32, &shape(bytes), Elements::fixed(field(bytes)))?;
    hyperslab::export::write(&values, path, true)?;
    Ok(())
}

/// The starts of the boxes: a fixed pseudo-random walk, which the peers' scripts share.
pub(crate) fn boxes(shape: &[u64]) -> Vec<Vec<u64>> {
    let extents: Vec<u64> = shape.iter().map(|extent| extent - BOX).collect();
    walk(BOXES, &extents)
}

/// `count` pseudo-random starts below the extents.
pub(crate) fn walk(count: usize, extents: &[u64]) -> Vec<Vec<u64>> {
    let mut state = 12_345_u64;
    let mut next = |extent: &u64| {
        state = (state * 1_103_515_245 + 12_345) % (1 << 31);
        state % extent
    };
    (0..count).map(|_| extents.iter().map(&mut next).collect()).collect()
}
