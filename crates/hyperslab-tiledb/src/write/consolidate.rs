//! Consolidation: merges many fragments into one.
//!
//! Dense: keeps the newest value of each cell in the bounding box of all fragments. Sparse: keeps every version of
//! each cell with its write time, so that time travel still works. Only a few tiles are in memory at a time;
//! fragments are merged in runs that fit in memory, until one is left.

use std::path::Path;
use std::sync::Arc;

use hyperslab_core::storage::StagedChange;
use hyperslab_core::{Elements, Error, LocalStorage, Result, join_inside};
use rayon::prelude::*;

use super::fragment::Extra;
use super::sparse::{codecs, range_of};
use super::{FieldTile, FragmentWriter, TileStats, key_in, put_commit, schema_to_write, timed_name};
use crate::array::OpenArray;
use crate::dense::DenseAttribute;
use crate::field::FieldCodecs;
use crate::fragment::{Fragment, RTree};
use crate::key::Key;
use crate::names::TimedName;
use crate::schema::{ArrayKind, Range, Schema, WRITTEN};
use crate::sparse::{SparseTable, VersionRows, VersionTile, join};
use crate::{OpenOptions, TimeWindow};

/// The target size of the tiles in memory.
const GROUP_BYTES: usize = 8 << 20;

/// The limit for all open tiles while sparse fragments are merged.
const MERGE_BYTES: u64 = 16 << 20;

/// The maximum number of tiles in the common box, relative to the tiles that the fragments have.
const MAX_AMPLIFICATION: u64 = 8;

/// How to consolidate.
#[derive(Clone)]
pub struct ConsolidateOptions<'a> {
    /// Only consolidate fragments written in this time window.
    pub at: TimeWindow,
    /// The key of an encrypted array.
    pub key: Option<Key>,
    /// Called from time to time with the stored bytes processed so far and the total. Returns whether to continue.
    pub progress: &'a (dyn Fn(u64, u64) -> bool + Sync),
}

impl Default for ConsolidateOptions<'_> {
    fn default() -> Self {
        Self { at: TimeWindow::default(), key: None, progress: &|_, _| true }
    }
}

impl std::fmt::Debug for ConsolidateOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConsolidateOptions").field("at", &self.at).finish_non_exhaustive()
    }
}

/// Replaces all fragments of an array, or of each array in a group, by one. The old fragments remain, hidden, until
/// [`vacuum`](super::vacuum). Returns the number of replaced fragments.
///
/// The array's content stays intact even if the process or the machine stops at any point.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) if stopped, or if the fragments of a dense array are so far apart that their bounding
/// box would be many times their size.
pub fn consolidate(path: &Path, options: &ConsolidateOptions<'_>) -> Result<usize> {
    let mut replaced = 0;
    for array in arrays(path, options.key.as_ref())? {
        replaced += consolidate_array(path, &array, options)?;
    }
    Ok(replaced)
}

/// The keys of the arrays at a path: an empty key for a single array, or one key per array of a group.
pub(super) fn arrays(path: &Path, key: Option<&Key>) -> Result<Vec<String>> {
    let open = OpenOptions { key: key.cloned(), ..OpenOptions::default() };
    let store = crate::open_path(path, open)?;
    let (mut keys, mut failed) = (Vec::new(), None);
    store.walk("/", 0, &mut |_, array| match array {
        Ok(array) => keys.push(array.prefix.trim_end_matches('/').to_owned()),
        Err(error) => failed = Some(error),
    });
    keys.dedup();
    failed.map_or(Ok(keys), Err)
}

fn consolidate_array(store: &Path, key: &str, options: &ConsolidateOptions<'_>) -> Result<usize> {
    let path = &join_inside(store, key)?;
    let _lock = super::locks::maintaining(path)?;
    let (mut replaced, mut total) = (0, None);
    loop {
        let array = open(path, options.key.as_ref(), TimeWindow::default())?;
        let fragments: Vec<_> =
            array.fragments()?.iter().filter(|own| own.name.inside(options.at)).cloned().collect();
        let total = *total.get_or_insert(fragments.len());
        let Some(runs) = runs(&array.schema, &fragments) else {
            return Ok(if replaced > 0 { total } else { 0 });
        };
        let bytes: Vec<u64> = runs.iter().map(|run| run.iter().map(|own| stored_bytes(own)).sum()).collect();
        let (mut done, all) = (0, bytes.iter().sum());
        for (run, bytes) in runs.iter().zip(&bytes) {
            consolidate_run(&array, (store, key), run, options, &|part, of| {
                let done = done + (*bytes as f64 * part as f64 / of.max(1) as f64) as u64;
                if (options.progress)(done, all) { Ok(()) } else { Err(stopped()) }
            })?;
            done += bytes;
            replaced += run.len();
        }
    }
}

/// Called with the number of processed tiles and their total. Fails to stop the consolidation.
type Step<'a> = &'a dyn Fn(u64, u64) -> Result<()>;

fn stopped() -> Error {
    Error::invalid("stopped; the array is unchanged")
}

fn stored_bytes(fragment: &Fragment) -> u64 {
    let footer = &fragment.footer;
    footer.file_sizes.iter().chain(&footer.var_sizes).chain(&footer.validity_sizes).sum()
}

/// Groups consecutive fragments into runs whose tiles fit in memory. Returns `None` when there is nothing left to do.
///
/// Writes apply in order of their start time. Fragments with the same start time stay in one run, because only the
/// random part of their names orders them.
fn runs<'a>(schema: &Schema, fragments: &'a [Arc<Fragment>]) -> Option<Vec<&'a [Arc<Fragment>]>> {
    if fragments.len() < 2 {
        return None;
    }
    if schema.kind == ArrayKind::Dense {
        return Some(vec![fragments]);
    }
    let (mut runs, mut first, mut bytes) = (Vec::new(), 0, 0);
    for (index, fragment) in fragments.iter().enumerate() {
        let own = open_tile_bytes(fragment);
        let apart = index > 0 && fragments[index - 1].name.start < fragment.name.start;
        if bytes + own > MERGE_BYTES && index - first >= 2 && apart {
            runs.push(&fragments[first..index]);
            (first, bytes) = (index, 0);
        }
        bytes += own;
    }
    runs.push(&fragments[first..]);
    runs.retain(|run| run.len() > 1);
    (!runs.is_empty()).then_some(runs)
}

/// The approximate memory of one open tile of a sparse fragment during a merge.
fn open_tile_bytes(fragment: &Fragment) -> u64 {
    fragment.sparse_rows().min(fragment.schema.capacity).saturating_mul(row_bytes(&fragment.schema))
}

/// The approximate memory of a row: coordinates, the same again as keys, tile numbers, a time, attributes.
fn row_bytes(schema: &Schema) -> u64 {
    let attributes = schema.attributes.iter().map(|attribute| attribute.cell_size().unwrap_or(32) as u64);
    32 * schema.dimensions.len() as u64 + 8 + attributes.sum::<u64>()
}

fn consolidate_run(
    array: &Arc<OpenArray>,
    (store, key): (&Path, &str),
    fragments: &[Arc<Fragment>],
    options: &ConsolidateOptions<'_>,
    step: Step<'_>,
) -> Result<()> {
    let start = fragments.iter().map(|fragment| fragment.name.start).min().unwrap_or(0);
    let end = fragments.iter().map(|fragment| fragment.name.end).max().unwrap_or(0);
    let name = timed_name(start, end, true)?;
    // The new fragment is invisible until it is published. It is removed if this fails.
    let change = StagedChange::open(store)?;
    let folder = change.writer().below(key)?;
    let (schema, schema_name) = schema_to_write(&folder, array, options.key.as_ref())?;
    let extra = extra(array, fragments)?;
    let writer = FragmentWriter::create(&folder, &name, schema, schema_name, extra, options.key.clone())?;
    match array.schema.kind {
        ArrayKind::Dense => dense(array, fragments, writer, options, step),
        ArrayKind::Sparse => sparse(array, fragments, writer, options, step),
    }?;
    let list: String = fragments.iter().map(|own| format!("/{}\n", relative(array, &own.key))).collect();
    let hidden = format!("__commits/{name}.vac");
    if array.schema.allows_duplicates {
        switch(&change, key, &name, fragments)?;
        folder.put(&hidden, list.as_bytes())?;
        return change.place(&key_in(key, &hidden));
    }
    // Commit the new fragment first: reading it together with the old ones gives the same result.
    let commit = put_commit(&folder, &name)?;
    folder.put(&hidden, list.as_bytes())?;
    change.publish(&[key_in(key, &commit), key_in(key, &hidden)])
}

/// The additional fields of the new fragment. Deletes are left to readers, unless a fragment has applied some
/// already; then all are applied now.
fn extra(array: &OpenArray, fragments: &[Arc<Fragment>]) -> Result<Extra> {
    let timestamps = array.schema.kind == ArrayKind::Sparse;
    if !timestamps || fragments.iter().all(|fragment| !fragment.footer.has_deletes) {
        return Ok(Extra { timestamps, deletes: None });
    }
    let mut names: Vec<String> = array.deletes()?.into_iter().map(|delete| delete.name.stem).collect();
    for fragment in fragments {
        // The file of an applied condition may have been removed since.
        for name in fragment.processed_conditions()? {
            let name = name.rsplit('/').next().unwrap_or_default().trim_end_matches(".del").to_owned();
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    Ok(Extra { timestamps, deletes: Some(names) })
}

/// Makes a fragment's key relative to its array.
fn relative<'a>(array: &OpenArray, key: &'a str) -> &'a str {
    key.strip_prefix(array.prefix.as_str()).unwrap_or(key)
}

/// Makes a fragment visible and others invisible in one step. If the array allows duplicates, rows in both would
/// count twice.
///
/// The old commits first move into a consolidated file, which changes nothing. One rename then replaces that file by
/// one that names only the new fragment. Finally, the new fragment gets its own commit.
fn switch(change: &StagedChange, key: &str, name: &str, fragments: &[Arc<Fragment>]) -> Result<()> {
    let line = |own: &Fragment| match own.name.version {
        Some(version) if version < 12 => format!("{}.ok\n", own.name.stem),
        _ => format!("__commits/{}.wrt\n", own.name.stem),
    };
    let before: String = fragments.iter().map(|own| line(own)).collect();
    let (list, commit) = (format!("__commits/{name}.con"), format!("__commits/{name}.wrt"));
    let put = |own: &str, bytes: &[u8]| {
        let own = key_in(key, own);
        change.writer().put(&own, bytes)?;
        change.place(&own)
    };
    change.place_all()?;
    put(&list, before.as_bytes())?;
    change.remove(fragments.iter().flat_map(|own| {
        let stem = &own.name.stem;
        [key_in(key, &format!("__commits/{stem}.wrt")), key_in(key, &format!("{stem}.ok"))]
    }))?;
    put(&list, format!("{commit}\n").as_bytes())?;
    put(&commit, &[])?;
    change.remove([key_in(key, &list)])
}

pub(super) fn open(path: &Path, key: Option<&Key>, at: TimeWindow) -> Result<Arc<OpenArray>> {
    let options = OpenOptions { key: key.cloned(), at, ..OpenOptions::default() };
    OpenArray::open(Arc::new(LocalStorage::new(path)), String::new(), options).map(Arc::new)
}

/// The bounding box of all fragments.
fn common_box(schema: &Schema, fragments: &[Arc<Fragment>]) -> Option<Vec<Range>> {
    let domains = fragments.iter().filter_map(|fragment| fragment.footer.domain.clone());
    domains.reduce(|all, domain| join(schema, &all, &domain))
}

fn dense(
    array: &Arc<OpenArray>,
    fragments: &[Arc<Fragment>],
    mut writer: FragmentWriter,
    options: &ConsolidateOptions<'_>,
    step: Step<'_>,
) -> Result<()> {
    let schema = Arc::clone(&array.schema);
    let domain = common_box(&schema, fragments).ok_or_else(|| Error::invalid("nothing was written yet"))?;
    let mut footer = fragments[0].footer.clone();
    footer.domain = Some(domain.clone());
    let outside = || Error::invalid(format!("{}: a fragment outside the domain", array.name));
    let (tiles, cells) = footer.tile_box(&schema).zip(footer.cell_box(&schema)).ok_or_else(outside)?;
    let count = footer.tiles(&schema);
    let stored = fragments.iter().fold(0_u64, |sum, own| sum.saturating_add(own.footer.tiles(&own.schema)));
    if count > stored.saturating_mul(MAX_AMPLIFICATION) {
        return Err(Error::invalid(format!(
            "{}: the box around all fragments has {count} tiles, they have {stored}",
            array.name
        )));
    }
    let extents: Vec<u64> =
        schema.dimensions.iter().map(|dimension| dimension.tile_extent().unwrap_or(1)).collect();
    let tile_cells = hyperslab_core::product(&extents).unwrap_or(u64::MAX);
    for index in 0..schema.attributes.len() {
        let attribute = DenseAttribute::of_fragments(Arc::clone(array), index, fragments)?;
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
            step(index as u64 * count + next, count.saturating_mul(schema.attributes.len() as u64))?;
        }
    }
    writer.finish(&domain, count, tile_cells, &RTree::default())
}

/// A tile of each field, with its slot.
type Fields = Vec<(usize, FieldTile)>;

fn sparse(
    array: &Arc<OpenArray>,
    fragments: &[Arc<Fragment>],
    mut writer: FragmentWriter,
    options: &ConsolidateOptions<'_>,
    step: Step<'_>,
) -> Result<()> {
    let schema = Arc::clone(&array.schema);
    let table = SparseTable::new(Arc::clone(array), "/")?;
    let mut rows = VersionRows::start(&table, fragments)?;
    let conditions = writer.extra.deletes.clone();
    let codecs = codecs(&schema, options.key.as_ref());
    let times_codec = FieldCodecs::times(&schema, WRITTEN, options.key.as_ref());
    let capacity = usize::try_from(schema.capacity).unwrap_or(usize::MAX);
    // Process a few tiles at a time: merging is single-threaded, but filters run on all cores.
    let each = schema.capacity.saturating_mul(row_bytes(&schema)).max(1);
    let most = (GROUP_BYTES as u64 / each).clamp(1, 2 * rayon::current_num_threads() as u64);
    let cells = fragments.iter().map(|fragment| fragment.sparse_rows()).sum();
    let (mut leaves, mut last) = (Vec::new(), 0);
    loop {
        let mut group = Vec::new();
        while (group.len() as u64) < most {
            let Some(tile) = rows.next_tile(capacity)? else { break };
            group.push(tile);
        }
        if group.is_empty() {
            break;
        }
        let encoded = group
            .par_iter()
            .map(|tile| encode_tile(&schema, &codecs, &times_codec, tile, conditions.as_deref()))
            .collect::<Result<Vec<_>>>()?;
        for ((tiles, leaf), rows) in encoded.into_iter().zip(&group) {
            for (slot, tile) in tiles {
                writer.append(slot, &tile)?;
            }
            leaves.push(leaf);
            last = rows.times.len();
        }
        step(leaves.len() as u64 * schema.capacity, cells)?;
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

/// A tile of each field, with its slot, and the bounding box.
fn encode_tile(
    schema: &Schema,
    codecs: &[FieldCodecs],
    times_codec: &FieldCodecs,
    VersionTile { columns, times, deleted }: &VersionTile,
    conditions: Option<&[String]>,
) -> Result<(Fields, Vec<Range>)> {
    let (rank, attributes, cells) = (schema.dimensions.len(), schema.attributes.len(), times.len());
    let (mut tiles, mut leaf) = (Vec::with_capacity(columns.len() + 1), Vec::with_capacity(rank));
    for (index, (column, codec)) in columns.iter().zip(codecs).enumerate() {
        let mut tile = codec.encode(column, cells)?;
        let slot = match index.checked_sub(rank) {
            Some(attribute) => {
                tile.stats = TileStats::of(&schema.attributes[attribute], column, cells);
                attribute
            }
            None => {
                leaf.push(range_of(&schema.dimensions[index], column, cells)?);
                attributes + 1 + index
            }
        };
        tiles.push((slot, tile));
    }
    let mut words = |numbers: &[u64]| -> Result<()> {
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        // After the dimensions: write time, delete time, condition number.
        let slot = tiles.len() + 1;
        tiles.push((slot, times_codec.encode(&Elements::fixed(bytes), cells)?));
        Ok(())
    };
    words(times)?;
    if let Some(names) = conditions {
        words(deleted)?;
        words(&deleted.iter().map(|time| condition_number(names, *time)).collect::<Vec<_>>())?;
    }
    Ok((tiles, leaf))
}

/// The number of the condition that deleted a cell at `time`; `u64::MAX` for cells that are alive.
fn condition_number(names: &[String], time: u64) -> u64 {
    let found = names.iter().position(|name| TimedName::parse(name).is_some_and(|name| name.start == time));
    found.map_or(u64::MAX, |index| index as u64)
}
