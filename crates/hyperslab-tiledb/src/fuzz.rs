//! Every parser as a function of arbitrary bytes, for fuzzers and for the tests of this crate.
//!
//! What stands inside a generic tile is compressed in a file: here it is given plainly, so that a fuzzer reaches it.
//! Results are thrown away; none may panic or take memory out of proportion to its bytes.

use std::sync::Arc;

use hyperslab_core::{Fields, Place};

use crate::condition::Delete;
use crate::datatype::Datatype;
use crate::fragment::{Footer, RTree, Stats, Totals};
use crate::names::TimedName;
use crate::pipeline::Pipeline;
use crate::schema::{Enumeration, Schema};
use crate::tile::TileCodec;
use crate::{generic, metadata};

/// A name, and a function of arbitrary bytes.
pub type Parser = (&'static str, fn(&[u8]));

/// Every parser.
pub const PARSERS: &[Parser] = &[
    ("generic tile", |bytes| drop(generic::decode(bytes, None, place()))),
    ("schema", |bytes| drop(Schema::parse(bytes, place()))),
    ("enumeration", |bytes| drop(Enumeration::parse(bytes, place()))),
    ("metadata", |bytes| drop(metadata::parse(bytes, place()))),
    ("delete condition", |bytes| {
        if let Some(name) = TimedName::parse("__1_1_00000000000000000000000000000000_22.del") {
            drop(Delete::parse(name, bytes, place()));
        }
    }),
    ("fragment metadata", fragment),
    ("tile", tile),
];

const fn place() -> Place<'static> {
    Place::new("fuzz", "fuzz", 0)
}

/// Two parts of the bytes: the first has the length that a `u16` gives.
fn split(bytes: &[u8]) -> (&[u8], &[u8]) {
    match bytes {
        [a, b, rest @ ..] => rest.split_at(usize::from(u16::from_le_bytes([*a, *b])).min(rest.len())),
        _ => (&[], &[]),
    }
}

/// A schema, then the parts of a fragment's metadata of an array of that schema.
fn fragment(bytes: &[u8]) {
    let (schema, rest) = split(bytes);
    let Ok(schema) = Schema::parse(schema, place()) else { return };
    let schema = Arc::new(schema);
    let (footer, rest) = split(rest);
    if let Ok((footer, schema)) = Footer::parse(footer, &mut |_| Ok(Arc::clone(&schema)), place()) {
        let _ = (footer.tiles(&schema), footer.tile_box(&schema), footer.cell_box(&schema));
        drop(
            RTree::parse(rest, footer.version, &schema.dimensions, place()).map(|tree| tree.search(|_| true)),
        );
        drop(Totals::parse(rest, footer.slots(&schema), place()));
        drop(Stats::parse(rest, rest, rest, rest, place()));
    }
}

/// A type, a cell's size, the decoded length, a pipeline and a tile: the decoders of all filters.
fn tile(bytes: &[u8]) {
    let (parameters, tile) = split(bytes);
    let [code, cell, low, high, flags, pipeline @ ..] = parameters else { return };
    let Ok(datatype) = Datatype::parse(*code, place()) else { return };
    let Ok(pipeline) = Pipeline::parse(&mut Fields::new(pipeline, place())) else { return };
    let (variable, version) = (flags & 1 != 0, u32::from(flags >> 1).min(crate::schema::NEWEST));
    let codec = TileCodec::new(&pipeline, datatype, usize::from(*cell).max(1), variable, version, None);
    let expected = usize::from(u16::from_le_bytes([*low, *high]));
    drop(codec.decode_tile(tile, expected, place()));
    if variable {
        drop(codec.decode_strings(tile, expected, expected, place()));
    }
}
