//! Entry points for fuzzers and tests: every parser and every filter's decoder as a function of arbitrary bytes.
//!
//! The layers around a structure (compression, checksums, names) are skipped, so that every input reaches the parser.
//! A parser must neither panic nor allocate memory out of proportion to its input. Results are dropped.

use std::cell::RefCell;
use std::sync::Arc;

use hyperslab_codec::webp::Pixels;
use hyperslab_core::{Fields, MemoryBlob, Place};

use crate::condition::Delete;
use crate::datatype::{CellValues, Datatype};
use crate::fragment::{Footer, Fragment, RTree, Stats, Totals};
use crate::names::TimedName;
use crate::pipeline::{Filter, Pipeline, WebpOptions};
use crate::schema::{ArrayKind, Attribute, Dimension, Enumeration, Order, Schema};
use crate::tile::{TileChunks, TileCodec};
use crate::{generic, group, metadata};

/// A name and a function that takes arbitrary bytes.
pub type Parser = (&'static str, fn(&[u8]));

thread_local! {
    /// The number of structures read since the patches were set, and the patches.
    static PATCHES: RefCell<(u8, Vec<[u8; 4]>)> = const { RefCell::new((0, Vec::new())) };
}

/// Patches structures that this thread reads from now on, after decompression. Fuzzing builds only. Each patch has
/// four bytes: the structure's number in reading order, a 16-bit offset, and the new value.
pub fn patch_structures(patches: &[[u8; 4]]) {
    PATCHES.with_borrow_mut(|own| *own = (0, patches.to_vec()));
}

/// Applies the patches to a structure. Fuzzing builds only.
#[expect(unexpected_cfgs, reason = "set by cargo-fuzz, but not declared")]
pub(crate) fn patched(mut structure: Vec<u8>) -> Vec<u8> {
    if cfg!(fuzzing) {
        PATCHES.with_borrow_mut(|(number, patches)| {
            for [_, low, high, value] in patches.iter().filter(|patch| patch[0] % 16 == *number % 16) {
                let length = structure.len().max(1);
                if let Some(byte) = structure.get_mut(usize::from(u16::from_le_bytes([*low, *high])) % length)
                {
                    *byte = *value;
                }
            }
            *number = number.wrapping_add(1);
        });
    }
    structure
}

/// The maximum decoded size that a tile may claim here.
const LIMIT: usize = 1 << 16;

fn place() -> Place<'static> {
    Place::new("fuzz", "input", 0)
}

/// Every parser.
pub const PARSERS: &[Parser] = &[
    ("generic tile", |bytes| drop(generic::decode_whole(bytes, None, place()))),
    ("schema", |bytes| drop(Schema::parse(bytes, place()))),
    ("pipeline", |bytes| drop(Pipeline::parse(&mut Fields::new(bytes, place())))),
    ("enumeration", |bytes| drop(Enumeration::parse(bytes, place()))),
    ("footer", |bytes| drop(Footer::parse(bytes, &mut |_| Ok(schema()), place()))),
    ("footer at the end of a file", |bytes| {
        let Some((version, bytes)) = bytes.split_first() else { return };
        let blob = MemoryBlob::new("fuzz", bytes.to_vec());
        drop(Footer::read(&blob, u32::from(*version), &mut |_| Ok(schema())));
    }),
    ("metadata of versions 1 and 2", |bytes| {
        let Ok(tile) = generic::encode(bytes, 1, None) else { return };
        drop(Fragment::parse_legacy(&MemoryBlob::new("fuzz", tile), &schema()));
    }),
    ("R-tree", |bytes| {
        let Some((version, bytes)) = bytes.split_first() else { return };
        drop(RTree::parse(bytes, u32::from(*version), &schema().dimensions, place()));
    }),
    ("statistics", |bytes| {
        let quarter = bytes.len() / 4;
        let part = |index: usize| &bytes[index * quarter..(index + 1) * quarter];
        drop(Stats::parse(part(0), part(1), part(2), part(3), place()));
        drop(Totals::parse(bytes, 4, place()));
    }),
    ("delete condition", |bytes| {
        let Some(name) = TimedName::parse("__1_1_00000000000000000000000000000000_22.del") else { return };
        drop(Delete::parse(name, bytes, place()));
    }),
    ("array metadata", |bytes| drop(metadata::parse(bytes, place()))),
    ("group", |bytes| drop(group::parse(bytes, place()))),
    ("tile", |bytes| drop(TileChunks::parse(bytes, place()))),
    ("filter", filter),
    ("filters of a pipeline", |bytes| {
        let mut fields = Fields::new(bytes, place());
        if let Ok(pipeline) = Pipeline::parse(&mut fields) {
            decode(&pipeline, fields.rest());
        }
    }),
];

/// Decodes through one filter, chosen by the first byte.
fn filter(bytes: &[u8]) {
    let Some((first, bytes)) = bytes.split_first() else { return };
    let filters = [
        Filter::NoOp,
        Filter::Gzip(1),
        Filter::Zstd(1),
        Filter::Lz4(1),
        Filter::Rle(1),
        Filter::Bzip2(1),
        Filter::DoubleDelta(1, None),
        Filter::BitWidthReduction(256),
        Filter::Bitshuffle,
        Filter::Byteshuffle,
        Filter::PositiveDelta(1024),
        Filter::Md5,
        Filter::Sha256,
        Filter::Dictionary(1),
        Filter::FloatScale { scale: 0.5, offset: 1.0, width: 2 },
        Filter::Xor,
        Filter::Delta(1, None),
        Filter::Delta(1, Some(Datatype::UInt16)),
        Filter::Webp(WebpOptions {
            quality: 100.0,
            pixels: Pixels::Rgb,
            lossless: true,
            rows: 4,
            row_bytes: 12,
        }),
    ];
    decode(&Pipeline::of([filters[usize::from(*first) % filters.len()].clone()]), bytes);
}

/// Decodes a tile through a pipeline. The first bytes give its type and cell size.
fn decode(pipeline: &Pipeline, bytes: &[u8]) {
    let [datatype, count, version, tile @ ..] = bytes else { return };
    let Some(datatype) = Datatype::from_code(datatype % 44) else { return };
    let Ok(chunks) = TileChunks::parse(tile, place()) else { return };
    if chunks.total > LIMIT {
        return;
    }
    let cell = datatype.size().max(1) * usize::from(count % 4 + 1);
    let codec = |variable| TileCodec::new(pipeline, datatype, cell, variable, u32::from(version % 24), None);
    drop(codec(false).decode_tile(tile, chunks.total, place()));
    let strings = codec(true);
    if strings.keeps_offsets() {
        drop(strings.decode_strings(tile, chunks.total, usize::from(*count), place()));
    }
}

/// The schema for parsing footers and boxes: a numeric and a text dimension, two attributes.
fn schema() -> Arc<Schema> {
    let dimension = |name: &str, datatype, values, domain: Vec<u8>| Dimension {
        name: name.to_owned(),
        datatype,
        values,
        pipeline: Pipeline::default(),
        extent: None,
        domain,
    };
    let domain = [0_i32.to_le_bytes(), 99_i32.to_le_bytes()].concat();
    Arc::new(Schema {
        version: 22,
        allows_duplicates: false,
        kind: ArrayKind::Sparse,
        tile_order: Order::RowMajor,
        cell_order: Order::RowMajor,
        capacity: 10,
        coords: Pipeline::default(),
        offsets: Pipeline::default(),
        validity: Pipeline::default(),
        dimensions: vec![
            dimension("x", Datatype::Int32, CellValues::Fixed(1), domain),
            dimension("s", Datatype::StringAscii, CellValues::Variable, Vec::new()),
        ],
        attributes: vec![
            Attribute::new("a", Datatype::Float64, CellValues::Fixed(1)),
            Attribute::new("t", Datatype::StringUtf8, CellValues::Variable),
        ],
        labels: Vec::new(),
        enumerations: Vec::new(),
        current_domain: None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        /// Small numbers are plausible counts, lengths and codes, so they reach deeper code than uniform noise.
        #[test]
        fn no_parser_panics(bytes in prop::collection::vec(prop_oneof![3 => 0_u8..4, 1 => any::<u8>()], 0..200)) {
            for (_, parse) in PARSERS {
                parse(&bytes);
            }
        }

        /// Tiles of one chunk with a valid header, so that the input reaches the filter.
        #[test]
        fn no_filter_panics(
            head in prop::array::uniform4(any::<u8>()),
            original in 0_u32..64,
            own in prop::collection::vec(prop_oneof![3 => 0_u8..9, 1 => any::<u8>()], 0..48),
            data in prop::collection::vec(any::<u8>(), 0..64),
        ) {
            let mut bytes = head.to_vec();
            bytes.extend(1_u64.to_le_bytes());
            bytes.extend(original.to_le_bytes());
            bytes.extend((data.len() as u32).to_le_bytes());
            bytes.extend((own.len() as u32).to_le_bytes());
            bytes.extend(&own);
            bytes.extend(&data);
            for first in 0..19 {
                bytes[0] = first;
                filter(&bytes);
            }
        }
    }
}
