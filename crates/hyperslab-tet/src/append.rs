//! Adds chunks and datasets to an existing file without rewriting its payloads.
//!
//! The index comes before the payloads, so it cannot grow without overwriting some of them. Payloads in the way are
//! copied to the end; all others stay in place. The design note `docs/notes/0001-tet-append.md` explains the order of
//! the steps, and what readers see between them.

mod completed;
mod edits;
mod redo;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use hyperslab_core::storage::{LocalFile, StageOptions, StagedFile};
use hyperslab_core::{
    Array, ArraySink, ArraySpec, Attributes, Error, Extents, FileBlob, Fill, Filter, Grid, Result, Sink,
    Store, normal_path,
};

pub(crate) use self::completed::completed;
use self::edits::{AttributeChanges, Owner};
use self::redo::{Redo, redo_path};
use crate::checksums::Checksums;
use crate::dataset::Dataset;
use crate::disk::Disk;
use crate::footer::{FooterState, HistoryRow, Metadata, Own};
use crate::index::{Codec, Row, RowLookup};
use crate::store::TetStore;
use crate::write::{
    Described, Dimensioned, MOST_ZONES, Names, Stage, StagedArray, TetOptions, describe, encode_footer,
    encode_head, head_length, now, rows_checksum, set_group,
};
use crate::zone::{Zone, ZoneMaps};

/// When payloads must be moved, free this many extra bytes, so that the next appends need not move any.
const FREED: u64 = 64 << 10;

/// The alignment of payloads.
const ALIGNMENT: u64 = 64;

/// An existing file to which data is added. Nothing changes before [`commit`](Sink::commit).
///
/// New payloads are collected in a file beside the target. If the process is killed at any instant, the target is the old
/// file or the new one. An append that was interrupted after its commit is read from its redo file, and is completed by the
/// next append or a repair.
#[derive(Debug)]
pub struct TetAppend {
    old: TetStore,
    target: Disk,
    stage: Arc<Stage>,
    /// Becomes the redo file.
    staged: StagedFile,
    options: TetOptions,
    /// The dataset of each staged array.
    ids: Vec<usize>,
    /// The descriptions of new datasets, by name.
    described: BTreeMap<String, Described>,
    names: Names,
    own: Own,
    /// Changes to the attributes of existing nodes.
    changes: AttributeChanges,
}

impl TetAppend {
    /// Opens a file for appending, and keeps other appends away from it.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) if another append is running or the footer is damaged; otherwise as
    /// [`open_path`](crate::open_path).
    pub fn open(path: &Path, options: TetOptions) -> Result<Self> {
        recover(path)?;
        // The redo file is beside the real file, even if the path is a link.
        let path = &real_path(path);
        let target = Disk::open_locked(path)?;
        let old = crate::store::open(Arc::new(hyperslab_core::MappedBlob::open(path)?))?;
        if let FooterState::Damaged { error, .. } = old.footer_state() {
            return Err(Error::invalid(format!("{error}; repair the file before appending to it")));
        }
        // The redo file must be durable before it is valid. Tests need not wait for the disk.
        let stage_options = StageOptions::default().with_replace(true).with_sync(!cfg!(test));
        let staged = StagedFile::create(&redo_path(path), stage_options)?;
        let stage = Arc::new(Stage::new(Disk::of(&staged)?));
        let mut names = Names::default();
        collect_names(&old, "/", &mut names);
        Ok(Self {
            old,
            target,
            stage,
            staged,
            options,
            ids: Vec::new(),
            described: BTreeMap::new(),
            names,
            own: Own::default(),
            changes: AttributeChanges::default(),
        })
    }

    /// Returns a sink for the missing chunks of an existing array.
    ///
    /// # Errors
    ///
    /// As [`Store::node`].
    pub fn existing(&mut self, path: &str) -> Result<Arc<dyn ArraySink>> {
        let shape = self.find(path)?.1.shape().to_vec();
        self.grow(path, &shape)
    }

    fn find(&self, path: &str) -> Result<(usize, Grid)> {
        let path = normal_path(path);
        let id = self.old.file.tree.array(&path);
        let id = id.ok_or_else(|| Error::not_found(self.old.name().as_ref(), path))?;
        Ok((id, self.old.dataset(id)?.schema().grid.clone()))
    }

    /// The existing node at a path.
    fn owner(&self, path: &str) -> Result<Owner> {
        let path = normal_path(path);
        if let Some(id) = self.old.file.tree.array(&path) {
            return Ok(Owner::Array(self.old.datasets()[id].name.to_string()));
        }
        match self.old.file.tree.group(&path) {
            Some(_) => Ok(Owner::Group(path)),
            None => Err(Error::not_found(self.old.name().as_ref(), path)),
        }
    }

    fn name(&self) -> String {
        self.target.path().display().to_string()
    }

    fn has_zones(&self) -> bool {
        let old = self.old.footer().is_some_and(|footer| footer.zone_maps.is_some());
        self.options.zone_maps && (old || self.old.index_header().rows == 0)
    }

    fn finish(self) -> Result<()> {
        let stage = Arc::clone(&self.stage);
        stage.fill()?;
        let state = stage.close()?;
        let datasets = self.datasets(&state.arrays);
        let mut chunks = self.old_chunks(&state.arrays)?;
        for (staged, id) in state.arrays.iter().zip(&self.ids) {
            chunks.extend(new_chunks(staged, *id));
        }
        chunks.sort_by_key(|chunk| (chunk.row.dataset, chunk.row.coord));
        let head_length = head_length(datasets.iter(), chunks.len() as u64);
        let (freed, mut end) = (self.freed(&chunks, head_length), state.tail);
        for chunk in chunks.iter_mut().filter(|chunk| chunk.is_displaced(&self.old, freed)) {
            let at = end.next_multiple_of(8);
            stage.disk.copy_from(&self.target, chunk.row.offset, at, chunk.row.stored_length)?;
            (chunk.row.offset, chunk.staged) = (at, true);
            end = at + chunk.row.stored_length;
        }
        let places = [self.old.file.payload_end, self.old.file_length()];
        let lengthened = self.lengthened(&datasets, &chunks, &stage.disk)?;
        let lengthened = lengthened.filter(|place| *place >= freed.max(head_length));
        let mut tail = None;
        // The tail replaces the old footer, and a payload before it that only becomes longer, unless that would shorten the file.
        for place in lengthened.into_iter().chain(places) {
            let start = place.max(freed).max(head_length).next_multiple_of(ALIGNMENT);
            let rows = chunks.iter().map(|chunk| chunk.placed(start));
            let head = encode_head(&datasets, rows, *self.old.index_header(), true)?;
            let footer = self.footer(&chunks, &head, start + end)?;
            let length = start + end + footer.len() as u64;
            tail = Some((start, head, footer));
            if length >= self.old.file_length() {
                break;
            }
        }
        let Some((tail_start, head, footer)) = tail else {
            return Err(Error::invalid(format!("{}: no place was found for the tail", self.name())));
        };
        stage.disk.write_at(&footer, end)?;
        let tail = (tail_start, end + footer.len() as u64, footer.len() as u64);
        Redo::write(&stage.disk, &self.target, tail, &head)?;
        stage.disk.step()?;
        self.staged.publish()?;
        // From here on the append is committed.
        apply(&stage.disk, &redo_path(self.target.path()), &self.target)
    }

    /// The offset of the last payload, if the tail starts with a longer version of it: a raw chunk with more rows. Its first bytes
    /// stay the same, so nothing changes for readers with the old head, and the old payload leaves no gap.
    fn lengthened(&self, datasets: &[Dataset], chunks: &[Chunk], stage: &Disk) -> Result<Option<u64>> {
        let is_first = |chunk: &&Chunk| chunk.staged && chunk.row.offset == 0 && chunk.row.stored_length > 0;
        let Some(Chunk { row: new, .. }) = chunks.iter().find(is_first) else { return Ok(None) };
        let id = new.dataset as usize;
        let grids = [self.old.datasets(), datasets].map(|datasets| datasets.get(id).and_then(Dataset::grid));
        let [Some(before), Some(after)] = grids else { return Ok(None) };
        let coord = new.coord(before.rank());
        let RowLookup::Row(number) = self.old.file.index.find(id, &before, &coord) else { return Ok(None) };
        let Some(old) = self.old.rows().nth(number as usize) else { return Ok(None) };
        let (shape, longer) = (before.region(&coord).shape, after.region(&coord).shape);
        let only_rows = shape.get(1..) == longer.get(1..) && old.stored_length < new.stored_length;
        let is_raw = [&old, new].map(|row| row.codec == Codec::Raw.number()) == [true; 2];
        let end = old.end().unwrap_or(u64::MAX);
        let is_last = (end..end.saturating_add(ALIGNMENT)).contains(&self.old.file.payload_end);
        let others = self.old.rows().filter(|row| row.end().is_none_or(|end| end > old.offset)).count();
        if !(only_rows && is_raw && is_last && others == 1 && old.offset.is_multiple_of(ALIGNMENT)) {
            return Ok(None);
        }
        let mut stored = [vec![0; old.stored_length as usize], vec![0; old.stored_length as usize]];
        self.target.read_at(&mut stored[0], old.offset)?;
        stage.read_at(&mut stored[1], 0)?;
        Ok((stored[0] == stored[1]).then_some(old.offset))
    }

    /// All dataset records: the old ones, some of them grown, then the new ones.
    fn datasets(&self, staged: &[StagedArray]) -> Vec<Dataset> {
        let mut datasets = self.old.datasets().to_vec();
        for (own, id) in staged.iter().zip(&self.ids) {
            match datasets.get_mut(*id) {
                Some(dataset) => dataset.shape.clone_from(&own.array.dataset.shape),
                None => datasets.push(own.array.dataset.clone()),
            }
        }
        datasets
    }

    /// The rows of the old index, without those of chunks that are written again.
    fn old_chunks(&self, staged: &[StagedArray]) -> Result<Vec<Chunk>> {
        let sums = self.old_sums();
        let zones = self.old_zones()?;
        let mut chunks = Vec::with_capacity(self.old.rows().len());
        for (number, row) in self.old.rows().enumerate() {
            let own = self.ids.iter().position(|id| *id as u64 == row.dataset).map(|at| &staged[at]);
            let coord = row.coord(own.map_or(0, |own| own.array.grid.rank()));
            if let Some(own) = own.filter(|own| own.array.grid.contains(&coord) && !own.has_old(&coord)) {
                // The old edge clipped this chunk, and the new one does not.
                if own.array.grid.linear(&coord).is_none_or(|chunk| !own.written.contains_key(&chunk)) {
                    let name = &own.array.dataset.name;
                    return Err(Error::invalid(format!(
                        "{name}: chunk {:?} has become larger and must be written again",
                        coord.as_slice()
                    )));
                }
                continue;
            }
            let rank = self.old.datasets().get(row.dataset as usize).map_or(0, |dataset| dataset.shape.len());
            let zone = zones.get(&(row.dataset, row.coord(rank))).cloned();
            let checksum = sums.as_ref().and_then(|sums| sums.get(number).copied());
            chunks.push(Chunk { row, checksum, zone, staged: false });
        }
        Ok(chunks)
    }

    /// One checksum per row, if the file has checksums.
    fn old_sums(&self) -> Option<Vec<u32>> {
        if self.old.rows().len() == 0 {
            return Some(Vec::new());
        }
        let own = self.old.footer()?.metadata.own.as_ref()?;
        let table = own.checksums.as_ref().filter(|table| table.rows_each == 1)?;
        let current = table.index == hyperslab_codec::checksum::crc32c(self.old.file.index.bytes());
        table.sums(self.old.index_header().rows).filter(|_| current)
    }

    fn old_zones(&self) -> Result<HashMap<(u64, Extents), Zone>> {
        if !self.has_zones() {
            return Ok(HashMap::new());
        }
        let zones = self.old.zone_maps()?.map(|zones| zones.chunks).unwrap_or_default();
        Ok(zones
            .into_iter()
            .map(|zone| ((zone.dataset_id, zone.chunk_index.as_slice().into()), zone))
            .collect())
    }

    /// Payloads before this byte are moved. If the new head overlaps no payload, nothing is moved.
    fn freed(&self, chunks: &[Chunk], head_length: u64) -> u64 {
        if chunks.iter().any(|chunk| chunk.is_displaced(&self.old, head_length)) {
            head_length.saturating_add(FREED.max(head_length / 2))
        } else {
            head_length
        }
    }

    fn footer(&self, chunks: &[Chunk], head: &[u8], at: u64) -> Result<Vec<u8>> {
        let footer = self.old.footer();
        let mut metadata = footer.map_or_else(Metadata::default, |footer| footer.metadata.clone());
        let mut history = self.old.history().to_vec();
        let mut own = metadata.own.take().unwrap_or_default();
        own.groups.extend(self.own.groups.clone());
        own.group_types.extend(self.own.group_types.clone());
        let sums: Option<Vec<u32>> = chunks.iter().map(|chunk| chunk.checksum).collect();
        own.checksums = sums
            .filter(|sums| self.options.checksums && !sums.is_empty())
            .map(|sums| Checksums::new(&sums, rows_checksum(head, sums.len())));
        metadata.own = Some(own);
        for (name, described) in &self.described {
            described.clone().add_to(name, &mut metadata);
        }
        self.changes.apply(&mut metadata);
        let zones: Option<Vec<Zone>> = chunks.iter().map(|chunk| chunk.zone.clone()).collect();
        let zones = zones.filter(|_| !self.changes.change_markers());
        let zones = zones.filter(|zones| !zones.is_empty() && zones.len() as u64 <= MOST_ZONES);
        if self.options.history.is_empty() {
            let source = self.options.tool.clone();
            let only_edits = self.ids.is_empty() && self.own.groups.is_empty() && !self.changes.is_empty();
            let op = if only_edits { "edit" } else { "append" };
            history.push(HistoryRow { op: op.to_owned(), source, at: now(), ..HistoryRow::default() });
        }
        history.extend(self.options.history.iter().cloned());
        encode_footer(history, metadata, zones.map(ZoneMaps::standalone).as_ref(), at)
    }
}

/// A row of the new index, with facts about its chunk.
#[derive(Debug)]
struct Chunk {
    row: Row,
    checksum: Option<u32>,
    zone: Option<Zone>,
    /// The offset is relative to the stage, not to the target.
    staged: bool,
}

impl Chunk {
    /// The row, if the stage is written at this byte of the target.
    fn placed(&self, tail_start: u64) -> Row {
        let offset = if self.staged { self.row.offset + tail_start } else { self.row.offset };
        Row { offset, ..self.row }
    }

    /// Returns true if the payload starts before this byte and must move. Rows that were never readable stay as they are.
    fn is_displaced(&self, old: &TetStore, end: u64) -> bool {
        !self.staged
            && self.row.offset < end
            && self.row.stored_length > 0
            && old.file.check_span(0, &self.row).is_ok()
    }
}

fn new_chunks(staged: &StagedArray, id: usize) -> impl Iterator<Item = Chunk> {
    let item = staged.array.dtype.size().unwrap_or(1);
    staged.written.iter().map(move |(number, record)| {
        let coord = staged.array.grid.coord(*number);
        let zone = record.zone.as_ref().map(|zone| zone.zone(id, &coord, item));
        Chunk { row: record.row(id, &coord), checksum: Some(record.checksum), zone, staged: true }
    })
}

/// Registers the names in the file, which may contain duplicates.
fn collect_names(store: &TetStore, group: &str, names: &mut Names) {
    for child in store.file.tree.group(group).into_iter().flatten() {
        let path = hyperslab_core::child_path(group, child);
        if store.file.tree.array(&path).is_some() {
            let _ = names.array(&path);
        } else {
            let _ = names.group(&path);
            collect_names(store, &path, names);
        }
    }
}

/// Completes an append that was interrupted after its commit. Returns `true` if there was one.
///
/// # Errors
///
/// [`Io`](Error::Io) if the file cannot be written. It can still be read, because readers take the missing parts from the
/// redo file.
pub fn recover(path: &Path) -> Result<bool> {
    let path = &real_path(path);
    let redo = redo_path(path);
    if !redo.exists() {
        return Ok(false);
    }
    let target = Disk::open(path)?;
    // The process that holds the lock is completing the append.
    if !target.try_lock()? {
        return Ok(false);
    }
    let source = Disk::open(&redo)?;
    // Ignore a file that is not a redo file, or belongs to another target.
    let Ok((trailer, head, old_head)) = Redo::read(&FileBlob::open(&redo)?) else { return Ok(false) };
    if !trailer.belongs_to(&FileBlob::open(path)?, &head, &old_head)? {
        return Ok(false);
    }
    apply(&source, &redo, &target)?;
    Ok(true)
}

/// Removes the redo file of a target that was replaced: it holds an append to the old file. A file that is not a redo file stays.
pub(crate) fn discard_redo(path: &Path) -> Result<()> {
    let redo = redo_path(path);
    match FileBlob::open(&redo) {
        Ok(blob) if Redo::read(&blob).is_ok() => LocalFile::remove(&redo),
        _ => Ok(()),
    }
}

fn real_path(path: &Path) -> std::path::PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Applies a redo file.
///
/// The footer is written first: the file is then the old one with a newer footer at its end, which the old head
/// accepts. The payloads before it overwrite the old footer. The head comes last and refers to them.
fn apply(source: &Disk, redo: &Path, target: &Disk) -> Result<()> {
    let (trailer, head, _) = Redo::read(&FileBlob::open(redo)?)?;
    let payloads = trailer.tail_length - trailer.footer_length;
    let footer_at = trailer.tail_start + payloads;
    let mut footer = vec![0; trailer.footer_length as usize];
    source.read_at(&mut footer, payloads)?;
    target.write_at(&footer, footer_at)?;
    target.copy_from(source, 0, trailer.tail_start, payloads)?;
    target.sync()?;
    target.write_at(&head, 0)?;
    target.sync()?;
    target.remove(redo)
}

impl Sink for TetAppend {
    fn group(&mut self, path: &str, attributes: &Attributes) -> Result<()> {
        // An existing group stays as it is: it only gets new members.
        if self.old.file.tree.group(&normal_path(path)).is_some() {
            return Ok(());
        }
        let path = self.names.group(path)?;
        set_group(&path, attributes, &mut self.own);
        Ok(())
    }

    fn array(&mut self, path: &str, spec: &ArraySpec) -> Result<Arc<dyn ArraySink>> {
        // An array that is refused does not take its name.
        let mut array = Dimensioned::new(&self.name(), &Names::array_name(path), spec)?;
        let name = self.names.array(path)?;
        array.zones = self.has_zones() && array.grid.chunks().is_some_and(|chunks| chunks <= MOST_ZONES);
        let next = self.ids.iter().filter(|id| **id >= self.old.datasets().len()).count();
        self.ids.push(self.old.datasets().len() + next);
        self.described.insert(name.clone(), describe(&name, spec));
        Ok(self.stage.add(StagedArray::new(array, spec.fill.clone()), spec.grid.clone()))
    }

    fn grow(&mut self, path: &str, shape: &[u64]) -> Result<Arc<dyn ArraySink>> {
        let (id, old) = self.find(path)?;
        if self.ids.contains(&id) {
            return Err(Error::invalid(format!("{path} is already being appended to")));
        }
        if shape.len() != old.rank() || shape.iter().zip(old.shape()).any(|(new, old)| new < old) {
            return Err(hyperslab_core::cannot_grow(path, old.shape(), shape));
        }
        let schema = self.old.dataset(id)?;
        let schema = schema.schema();
        let grid = Grid::new(shape, old.chunk_shape())?;
        let mut spec = ArraySpec::new(schema.dtype.clone(), grid.clone());
        spec.attributes = schema.attributes.clone();
        spec.filters = schema.filters.iter().map(|filter| Filter::new(filter.name.as_str())).collect();
        let mut array = Dimensioned::new(&self.name(), &self.old.datasets()[id].name, &spec)?;
        array.zones = self.has_zones();
        let mut staged = StagedArray::new(array, Fill::Undefined);
        staged.old = Some((self.old.clone(), id, old));
        self.ids.push(id);
        Ok(self.stage.add(staged, grid))
    }

    fn attributes(&mut self, path: &str, attributes: &Attributes) -> Result<()> {
        let path = normal_path(path);
        if let Some(described) = self.described.get_mut(&Names::array_name(&path)).filter(|_| path != "/") {
            described.set(attributes);
        } else if self.own.groups.contains_key(&path) {
            set_group(&path, attributes, &mut self.own);
        } else {
            let owner = self.owner(&path)?;
            self.changes.set(owner, attributes);
        }
        Ok(())
    }

    fn delete_attributes(&mut self, path: &str, names: &[&str]) -> Result<()> {
        let owner = self.owner(path)?;
        self.changes.delete(owner, names);
        Ok(())
    }

    fn commit(self: Box<Self>) -> Result<()> {
        self.finish()
    }
}

#[cfg(test)]
mod tests;
