//! One-dimensional sparse arrays.

use hyperslab_tiledb::{ArrayKind, Attribute, CellValues, Datatype, Dimension, Order, Pipeline, Schema};

/// A schema of `x` from zero to `last` and `v`, both `int32`, with this many cells in a tile.
pub(crate) fn schema(capacity: u64, last: i32) -> Schema {
    Schema {
        version: 22,
        allows_duplicates: false,
        kind: ArrayKind::Sparse,
        tile_order: Order::RowMajor,
        cell_order: Order::RowMajor,
        capacity,
        coords: Pipeline::default(),
        offsets: Pipeline::default(),
        validity: Pipeline::default(),
        dimensions: vec![Dimension {
            name: "x".to_owned(),
            datatype: Datatype::Int32,
            values: CellValues::Fixed(1),
            pipeline: Pipeline::default(),
            domain: [0_i32.to_le_bytes(), last.to_le_bytes()].concat(),
            extent: None,
        }],
        attributes: vec![Attribute::new("v", Datatype::Int32, CellValues::Fixed(1))],
        labels: Vec::new(),
        enumerations: Vec::new(),
        current_domain: None,
    }
}
