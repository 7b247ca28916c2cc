//! Many fragments into one, and removal of what was replaced.
//!
//! Dense: the newest value of every cell of the box around all fragments. Sparse: every version of every cell with the time
//! at which it was written, so that looking at an earlier time still works. Tiles are made a few at a time, whatever the
//! array's size.

use std::path::Path;
use std::sync::Arc;

use hyperslab_core::{Elements, Error, LocalDirectory, Result};
use rayon::prelude::*;

use super::sparse::{codecs, range_of};
use super::{FieldTile, FragmentWriter, TileStats, WriteOptions, io, put_commit, put_file, timed_name};
use crate::OpenOptions;
use crate::array::OpenArray;
use crate::dense::DenseAttribute;
use crate::field::FieldCodecs;
use crate::fragment::{Fragment, RTree};
use crate::schema::{ArrayKind, Range, Schema, WRITTEN};
use crate::sparse::{SparseTable, VersionRows, join};

/// Tiles in memory at a time, in bytes.
const GROUP_BYTES: usize = 16 << 20;

/// A box may hold this many times the tiles that its fragments have.
const MOST_AMPLIFICATION: u64 = 8;

/// Replaces all fragments of an array by one. The old ones stay, hidden, until [`vacuum`]. Returns how many were replaced.
///
/// # Errors
///
/// [`Unsupported`](Error::Unsupported) for fragments that hold deleted cells, [`Invalid`](Error::Invalid) when the fragments of
/// a dense array lie so far apart that their common box would be many times their size.
pub fn consolidate(path: &Path, options: &WriteOptions) -> Result<usize> {
    let array = open(path, options)?;
    let fragments = array.fragments()?.to_vec();
    let (Some(first), true) = (fragments.first(), fragments.len() > 1) else { return Ok(0) };
    let start = fragments.iter().map(|fragment| fragment.name.start).min().unwrap_or(first.name.start);
    let end = fragments.iter().map(|fragment| fragment.name.end).max().unwrap_or(first.name.end);
    let name = timed_name(start, end, true)?;
    let folder = path.join("__fragments").join(&name);
    let written = match array.schema.kind {
        ArrayKind::Dense => dense(&array, &fragments, &folder, options),
        ArrayKind::Sparse => sparse(&array, &fragments, &folder, options),
    };
    if written.is_err() {
        let _ = std::fs::remove_dir_all(&folder);
    }
    written?;
    // The new one first: read together with the old ones it changes nothing.
    put_commit(path, &name)?;
    let lines: String = fragments.iter().map(|fragment| format!("/{}\n", fragment.key)).collect();
    put_file(&path.join("__commits").join(format!("{name}.vac")), lines.as_bytes())?;
    Ok(fragments.len())
}

/// Removes the fragments that consolidated ones replaced. Returns how many.
///
/// # Errors
///
/// [`Io`](Error::Io) when the system refuses.
pub fn vacuum(path: &Path, options: &WriteOptions) -> Result<usize> {
    let array = open(path, options)?;
    let commits = array.commits()?;
    let mut removed = 0;
    for (vac, names) in &commits.vacuums {
        let mut ignored = String::new();
        for name in names {
            let Some((_, key)) = commits.fragments.get(name) else { continue };
            let commit = path.join("__commits").join(format!("{name}.wrt"));
            let old = path.join(format!("{name}.ok"));
            // Invisible first, then gone.
            if commit.exists() {
                std::fs::remove_file(&commit).map_err(|error| io(&commit, error))?;
            } else if old.exists() {
                std::fs::remove_file(&old).map_err(|error| io(&old, error))?;
            } else {
                ignored.push_str(&format!("__commits/{name}.wrt\n"));
            }
            removed += 1;
            if ignored.is_empty() {
                remove_folder(&path.join(key))?;
            }
        }
        if !ignored.is_empty() {
            // Their commits stand in a consolidated file, which stays: a list says that they no longer count.
            let list = format!("{}.ign", timed_name(vac.start, vac.end, true)?);
            put_file(&path.join("__commits").join(list), ignored.as_bytes())?;
            for name in names {
                if let Some((_, key)) = commits.fragments.get(name) {
                    remove_folder(&path.join(key))?;
                }
            }
        }
        for file in
            [path.join("__commits").join(format!("{}.vac", vac.stem)), path.join(format!("{}.vac", vac.stem))]
        {
            if file.exists() {
                std::fs::remove_file(&file).map_err(|error| io(&file, error))?;
            }
        }
    }
    Ok(removed)
}

fn remove_folder(folder: &Path) -> Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(io(folder, error)),
        _ => Ok(()),
    }
}

fn open(path: &Path, options: &WriteOptions) -> Result<Arc<OpenArray>> {
    let open = OpenOptions { key: options.key.clone(), ..OpenOptions::default() };
    OpenArray::open(Arc::new(LocalDirectory::new(path)), String::new(), open).map(Arc::new)
}

fn writer(array: &OpenArray, folder: &Path, times: bool, options: &WriteOptions) -> Result<FragmentWriter> {
    let schema_name = array
        .listing
        .schema_at(array.window())
        .ok_or_else(|| Error::not_found(Arc::clone(&array.name), "a schema"))?;
    FragmentWriter::create(
        folder.to_owned(),
        Arc::clone(&array.schema),
        schema_name,
        times,
        options.key.clone(),
    )
}

/// The box around all fragments.
fn common_box(schema: &Schema, fragments: &[Arc<Fragment>]) -> Option<Vec<Range>> {
    let domains = fragments.iter().filter_map(|fragment| fragment.footer.domain.clone());
    domains.reduce(|all, domain| join(schema, &all, &domain))
}

fn dense(
    array: &Arc<OpenArray>,
    fragments: &[Arc<Fragment>],
    folder: &Path,
    options: &WriteOptions,
) -> Result<()> {
    let schema = Arc::clone(&array.schema);
    let domain = common_box(&schema, fragments).ok_or_else(|| Error::invalid("nothing was written yet"))?;
    let mut footer = fragments[0].footer.clone();
    footer.domain = Some(domain.clone());
    let outside = || Error::invalid(format!("{}: a fragment outside the domain", array.name));
    let (tiles, cells) = footer.tile_box(&schema).zip(footer.cell_box(&schema)).ok_or_else(outside)?;
    let count = footer.tiles(&schema);
    let stored = fragments.iter().fold(0_u64, |sum, own| sum.saturating_add(own.footer.tiles(&own.schema)));
    if count > stored.saturating_mul(MOST_AMPLIFICATION) {
        return Err(Error::invalid(format!(
            "{}: the box around all fragments has {count} tiles, they have {stored}",
            array.name
        )));
    }
    let mut writer = writer(array, folder, false, options)?;
    let extents: Vec<u64> =
        schema.dimensions.iter().map(|dimension| dimension.tile_extent().unwrap_or(1)).collect();
    let tile_cells = hyperslab_core::product(&extents).unwrap_or(u64::MAX);
    for index in 0..schema.attributes.len() {
        let attribute = DenseAttribute::new(Arc::clone(array), index, "/")?;
        let codecs = FieldCodecs::attribute(&schema, index, WRITTEN, options.key.as_ref());
        let each =
            schema.attributes[index].cell_size().unwrap_or(32).saturating_mul(tile_cells as usize).max(1);
        let group = (GROUP_BYTES / each).clamp(1, 64) as u64;
        let mut next = 0;
        while next < count {
            let end = next.saturating_add(group).min(count);
            let encoded = (next..end)
                .into_par_iter()
                .map(|tile| -> Result<FieldTile> {
                    let (elements, own) = attribute.merged_tile(tile, &tiles, &cells)?;
                    let mut coded = codecs.encode(&elements, tile_cells as usize)?;
                    let rows = own.len(&schema.attributes[index].dtype());
                    coded.stats = TileStats::of(&schema.attributes[index], &own, rows);
                    Ok(coded)
                })
                .collect::<Result<Vec<_>>>()?;
            for tile in &encoded {
                writer.append(index, tile)?;
            }
            next = end;
        }
    }
    writer.finish(&domain, count, tile_cells, &RTree::default())
}

fn sparse(
    array: &Arc<OpenArray>,
    fragments: &[Arc<Fragment>],
    folder: &Path,
    options: &WriteOptions,
) -> Result<()> {
    if fragments.iter().any(|fragment| fragment.footer.has_deletes) {
        return Err(Error::unsupported(
            Arc::clone(&array.name),
            "consolidating fragments that hold deleted cells",
        ));
    }
    let schema = Arc::clone(&array.schema);
    let rank = schema.dimensions.len();
    let table = SparseTable::new(Arc::clone(array), "/")?;
    let mut rows = VersionRows::start(&table)?;
    let mut writer = writer(array, folder, true, options)?;
    let codecs = codecs(&schema, options);
    let times_codec = FieldCodecs::times(&schema, WRITTEN, options.key.as_ref());
    let capacity = usize::try_from(schema.capacity).unwrap_or(usize::MAX);
    let (mut leaves, mut last) = (Vec::new(), 0);
    while let Some((columns, times)) = rows.next_tile(capacity)? {
        last = times.len();
        let mut leaf = Vec::with_capacity(rank);
        for (index, (column, codec)) in columns.iter().zip(&codecs).enumerate() {
            let mut tile = codec.encode(column, last)?;
            let slot = match index.checked_sub(rank) {
                Some(attribute) => {
                    tile.stats = TileStats::of(&schema.attributes[attribute], column, last);
                    attribute
                }
                None => {
                    leaf.push(range_of(&schema.dimensions[index], column, last)?);
                    schema.attributes.len() + 1 + index
                }
            };
            writer.append(slot, &tile)?;
        }
        let words: Vec<u8> = times.iter().flat_map(|time| time.to_le_bytes()).collect();
        let slot = schema.attributes.len() + 1 + rank;
        writer.append(slot, &times_codec.encode(&Elements::fixed(words), last)?)?;
        leaves.push(leaf);
    }
    let Some(first) = leaves.first().cloned() else { return Err(Error::invalid("nothing was written yet")) };
    let domain = leaves.iter().skip(1).fold(first, |all, leaf| join(&schema, &all, leaf));
    let count = leaves.len() as u64;
    let join_all = |boxes: &[Vec<Range>]| {
        boxes.iter().skip(1).fold(boxes[0].clone(), |all, leaf| join(&schema, &all, leaf))
    };
    let rtree = RTree::build(leaves, join_all);
    writer.finish(&domain, count, last as u64, &rtree)
}
