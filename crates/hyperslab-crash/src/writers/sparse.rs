//! Writers that add rows to sparse TileDB arrays.

use std::path::Path;

use hyperslab::{Elements, Error, Result};
use hyperslab_tiledb::{
    ArrayKind, Attribute, CellValues, Datatype, Dimension, Order, Pipeline, Schema, WriteOptions,
    create_sparse, write_sparse,
};

use super::{Places, Scale, Work, Writer};

/// A dimension `x` and an attribute `v`, both `int32`.
fn schema() -> Schema {
    Schema {
        version: 22,
        allows_duplicates: false,
        kind: ArrayKind::Sparse,
        tile_order: Order::RowMajor,
        cell_order: Order::RowMajor,
        capacity: 1000,
        coords: Pipeline::default(),
        offsets: Pipeline::default(),
        validity: Pipeline::default(),
        dimensions: vec![Dimension {
            name: "x".to_owned(),
            datatype: Datatype::Int32,
            values: CellValues::Fixed(1),
            pipeline: Pipeline::default(),
            domain: [0_i32.to_le_bytes(), 99_999_999_i32.to_le_bytes()].concat(),
            extent: None,
        }],
        attributes: vec![Attribute::new("v", Datatype::Int32, CellValues::Fixed(1))],
        labels: Vec::new(),
        enumerations: Vec::new(),
        current_domain: None,
    }
}

/// Adds rows from `first` on.
fn add(path: &Path, scale: Scale, first: i32) -> Result<()> {
    // Enough rows to take some time, because rows are small.
    let count = i32::try_from(scale.rows * 20).map_err(|_| Error::invalid("too many rows"))?;
    let column = |offset: i32| {
        let bytes: Vec<u8> = (first..first + count).flat_map(|row| (row + offset).to_le_bytes()).collect();
        Elements::fixed(bytes)
    };
    write_sparse(path, &[column(0), column(7)], &WriteOptions::default())
}

fn make(places: &Places, scale: Scale, first: i32, force: bool) -> Result<()> {
    create_sparse(&places.target, &schema(), &WriteOptions { force, ..WriteOptions::default() })?;
    add(&places.target, scale, first)
}

/// Adds rows to an array that has some.
pub(super) fn append() -> Writer {
    let before: Work = Box::new(|places, scale| make(places, scale, 0, false));
    Writer {
        name: "append tiledb sparse".to_owned(),
        target: "x.tdb",
        peer: "tiledb",
        before,
        write: Box::new(|places, scale| add(&places.target, scale, 1_000_000)),
        // Two steps: an empty array replaces the existing one, then its rows are added.
        again: Box::new(|places, scale| make(places, scale, 50, true)),
        is_new: false,
    }
}
