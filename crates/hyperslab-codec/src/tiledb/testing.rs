//! Tiles that libtiledb wrote.

use super::Integer;
use crate::testing::data;

/// The metadata and the data of the only chunk of a tile, and the values.
pub(super) fn tile(name: &str) -> (Vec<u8>, Vec<u8>, Vec<u8>) {
    let tile = data(&format!("tiledb.{name}.tdb"));
    let word = |at: usize| u32::from_le_bytes(tile[at..at + 4].try_into().unwrap()) as usize;
    assert_eq!(word(0), 1, "{name}: one chunk");
    let (filtered, metadata) = (word(12), word(16));
    let (metadata, rest) = tile[20..].split_at(metadata);
    assert_eq!(rest.len(), filtered, "{name}");
    (metadata.to_vec(), rest.to_vec(), data(&format!("tiledb.{name}.raw")))
}

pub(super) const INTEGERS: [(&str, Integer); 4] =
    [("i2", Integer::I16), ("u4", Integer::U32), ("i8", Integer::I64), ("u8", Integer::U64)];
