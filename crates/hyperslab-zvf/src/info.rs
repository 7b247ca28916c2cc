//! Details for `info`: the levels, with statistics of their chunks and fragments.

use hyperslab_core::Result;
use rayon::prelude::*;
use serde_json::{Map, Value, json};

use crate::coord::Coord;
use crate::level::Level;
use crate::links::Links;
use crate::objects::Objects;
use crate::store::Levels;

/// Statistics are left out for levels with more chunks, because they require reading them.
const MAX_CHUNKS: usize = 1 << 14;

/// The details beyond the catalog.
pub(crate) fn details(levels: &Levels) -> Result<Map<String, Value>> {
    let root = &levels.root;
    let mut shown = Vec::new();
    for number in &root.levels {
        shown.push(level_details(levels.level(number.parse().unwrap_or(0))?)?);
    }
    Ok(Map::from_iter([
        ("zv_version".to_owned(), json!(root.version)),
        ("chunk_shape".to_owned(), json!(root.chunk_shape)),
        ("bounds".to_owned(), json!(root.bounds)),
        ("links_convention".to_owned(), json!(root.links_convention)),
        ("levels".to_owned(), Value::Array(shown)),
    ]))
}

fn level_details(level: &Level) -> Result<Value> {
    let attributes: Vec<&str> = level.attributes()?.iter().map(|(name, _)| name.as_str()).collect();
    let link_attributes: Vec<&str> =
        level.link_attributes()?.iter().map(|attribute| attribute.name.as_str()).collect();
    let cross: Vec<i64> = Links::deltas(level)?.into_iter().filter(|delta| *delta != 0).collect();
    let groups = crate::objects::group_count(level)?;
    let chunks = level.vertices.chunks()?;
    let mut shown = json!({
        "path": level.path, "chunks": chunks.len(), "chunk_shape": level.chunk_shape,
        "dtype": level.dtype.to_string(), "vertex_attributes": attributes, "link_attributes": link_attributes,
        "objects": level.objects()?.map_or(0, Objects::len), "groups": groups, "cross_level_links": cross,
    });
    if chunks.len() <= MAX_CHUNKS {
        let all = chunks.par_iter().map(|chunk| one(level, chunk)).collect::<Result<Vec<Chunk>>>()?;
        shown["vertices_per_chunk"] = spread(all.iter().map(|chunk| chunk.rows));
        let sum = |of: fn(&Chunk) -> u64| all.iter().map(of).sum::<u64>();
        shown["fragments"] = json!({
            "count": sum(|chunk| chunk.fragments), "ranges": sum(|chunk| chunk.ranges),
            "lists": sum(|chunk| chunk.fragments - chunk.ranges), "empty": sum(|chunk| chunk.empty),
            "rows": sum(|chunk| chunk.named), "index_bytes": sum(|chunk| chunk.bytes),
            "per_chunk": spread(all.iter().map(|chunk| chunk.fragments)),
        });
    }
    Ok(shown)
}

/// Statistics of one chunk.
struct Chunk {
    rows: u64,
    fragments: u64,
    ranges: u64,
    empty: u64,
    /// The number of rows named by fragments, counting repetitions.
    named: u64,
    bytes: u64,
}

fn one(level: &Level, chunk: &Coord) -> Result<Chunk> {
    let rows = level.chunk(chunk)?.map_or(0, |vertices| vertices.rows);
    if rows == 0 {
        return Ok(Chunk { rows, fragments: 0, ranges: 0, empty: 0, named: 0, bytes: 0 });
    }
    let index = level.fragments(chunk, rows)?;
    let (mut empty, mut named) = (0, 0);
    for own in (0..index.len()).filter_map(|fragment| index.rows(fragment)) {
        empty += u64::from(own.len() == 0);
        named += own.len() as u64;
    }
    let (fragments, ranges) = (index.len() as u64, index.ranges() as u64);
    Ok(Chunk { rows, fragments, ranges, empty, named, bytes: index.size() as u64 })
}

/// The minimum, mean and maximum.
fn spread(counts: impl Iterator<Item = u64> + Clone) -> Value {
    let number = counts.clone().count();
    if number == 0 {
        return Value::Null;
    }
    let mean = counts.clone().sum::<u64>() as f64 / number as f64;
    json!({"least": counts.clone().min(), "mean": mean, "most": counts.max()})
}
