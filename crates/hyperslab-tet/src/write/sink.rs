//! The sink that creates a new file.

use std::path::Path;
use std::sync::Arc;

use hyperslab_core::storage::{StageOptions, StagedFile};
use hyperslab_core::{ArraySink, ArraySpec, Attributes, Error, Result, Sink, normal_path};

use super::finish::{encode_footer, encode_head, now};
use super::metadata::{Described, describe, set_group};
use super::names::Names;
use super::rows::Dimensioned;
use super::stage::{Stage, StagedArray, State, head_length, rows_checksum};
use crate::checksums::Checksums;
use crate::dataset::Dataset;
use crate::disk::Disk;
use crate::footer::{FileMetadata, HistoryRow, Metadata, Own};
use crate::index::IndexHeader;
use crate::zone::ZoneMaps;

/// Zone maps are stored as text, so they are limited to this many chunks.
pub(crate) const MOST_ZONES: u64 = 16_384;

/// Options for writing a file.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TetOptions {
    /// Replace an existing file at the path.
    pub overwrite: bool,
    /// Sync a new file before [`commit`](Sink::commit) returns. A file that replaces or changes another is always synced.
    pub sync: bool,
    /// The name of the program, for the metadata.
    pub tool: String,
    /// The history. If empty, a single row `write` is stored.
    pub history: Vec<HistoryRow>,
    /// Store statistics of every chunk, unless there are too many chunks.
    pub zone_maps: bool,
    /// Store a checksum of every chunk.
    pub checksums: bool,
    /// The number of bytes to reserve after the index, so that later appends need not move payloads.
    pub reserve: u64,
    /// The recommended memory budget, in hundredths of a percent of the machine's memory; 0 for none.
    pub memory_budget_bps: u16,
    /// The recommended memory budget in bytes; 0 for none.
    pub memory_budget_bytes: u32,
}

impl Default for TetOptions {
    fn default() -> Self {
        Self {
            overwrite: false,
            sync: false,
            tool: "hyperslab".to_owned(),
            history: Vec::new(),
            zone_maps: true,
            checksums: true,
            reserve: 4096,
            memory_budget_bps: 0,
            memory_budget_bytes: 0,
        }
    }
}

/// A new `.tet` file. It is written beside its path and moved there by [`commit`](Sink::commit). Dropping it leaves no file.
///
/// Chunks may be written in any order from any thread. The file holds the chunks of a raw array in C order, and
/// compressed chunks in the order of the writes.
#[derive(Debug)]
pub struct TetSink {
    stage: Arc<Stage>,
    staged: StagedFile,
    options: TetOptions,
    /// The metadata of each array, by name.
    described: Vec<(String, Described)>,
    names: Names,
    own: Own,
}

impl TetSink {
    /// Creates a file at `path`, where it appears at the commit.
    ///
    /// # Errors
    ///
    /// [`Exists`](Error::Exists) if the path exists and must not be replaced, [`Io`](Error::Io) if the folder cannot be
    /// written to.
    pub fn create(path: &Path, options: TetOptions) -> Result<Self> {
        if !options.overwrite && path.symlink_metadata().is_ok() {
            return Err(Error::exists(path));
        }
        // If the path is a symbolic link, replace its target.
        let path = &path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let stage_options = StageOptions::default().with_replace(options.overwrite).with_sync(options.sync);
        let staged = StagedFile::create(path, stage_options)?;
        let stage = Arc::new(Stage::new(Disk::of(&staged)?));
        let (described, names) = (Vec::new(), Names::default());
        Ok(Self { stage, staged, options, described, names, own: Own::default() })
    }

    fn store_name(&self) -> String {
        self.staged.target().display().to_string()
    }

    fn finish(mut self) -> Result<()> {
        let stage = Arc::clone(&self.stage);
        stage.fill()?;
        let mut state = stage.close()?;
        let datasets: Vec<Dataset> = state.arrays.iter().map(|own| own.array.dataset.clone()).collect();
        let rows: usize = state.arrays.iter().map(|own| own.written.len()).sum();
        let head_length = head_length(datasets.iter(), rows as u64);
        make_room(&stage.disk, &mut state, head_length)?;
        let header = IndexHeader {
            rows: 0,
            memory_budget_bps: self.options.memory_budget_bps.min(10_000),
            memory_budget_bytes: self.options.memory_budget_bytes,
        };
        let encoded: Vec<_> = state.rows().map(|(row, _)| row).collect();
        let head = encode_head(&datasets, encoded.into_iter(), header, true)?;
        let mut metadata = self.metadata(&datasets);
        if self.options.checksums && rows > 0 {
            let sums: Vec<u32> = state.rows().map(|(_, record)| record.checksum).collect();
            let own = metadata.own.get_or_insert_default();
            own.checksums = Some(Checksums::new(&sums, rows_checksum(&head, rows)));
        }
        let mut history = std::mem::take(&mut self.options.history);
        if history.is_empty() {
            history.push(HistoryRow {
                op: "write".to_owned(),
                source: self.staged.target().file_name().unwrap_or_default().to_string_lossy().into_owned(),
                at: now(),
                ..HistoryRow::default()
            });
        }
        let end = state.tail.max(head.len() as u64);
        let footer = encode_footer(history, metadata, zone_maps(&state, rows).as_ref(), end)?;
        let disk = &stage.disk;
        disk.write_at(&footer, end)?;
        disk.write_at(&head, 0)?;
        drop(state);
        let target = self.staged.target().to_owned();
        self.staged.publish()?;
        // A redo file would belong to the replaced file, whose append was interrupted after its commit.
        crate::append::discard_redo(&target)
    }

    fn metadata(&mut self, datasets: &[Dataset]) -> Metadata {
        let file = FileMetadata {
            tool: Some(self.options.tool.clone()).filter(|tool| !tool.is_empty()),
            library_version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            created_at: Some(now()),
        };
        let own = Some(std::mem::take(&mut self.own));
        let mut metadata = Metadata { file: Some(file), own, ..Metadata::default() };
        for (dataset, (_, described)) in datasets.iter().zip(std::mem::take(&mut self.described)) {
            described.add_to(&dataset.name, &mut metadata);
        }
        metadata
    }
}

/// The zone maps of all chunks, if every chunk has statistics.
fn zone_maps(state: &State, rows: usize) -> Option<ZoneMaps> {
    let mut zones = Vec::with_capacity(rows);
    for (id, own) in state.arrays.iter().enumerate() {
        let item = own.array.dtype.size().unwrap_or(1);
        for (number, record) in &own.written {
            let statistics = record.zone.as_ref()?;
            zones.push(statistics.zone(id, &own.array.grid.coord(*number), item));
        }
    }
    Some(zones).filter(|zones| !zones.is_empty()).map(ZoneMaps::standalone)
}

/// Moves payloads in the way of the head to the end of the file.
fn make_room(disk: &Disk, state: &mut State, head_length: u64) -> Result<()> {
    let State { arrays, tail, .. } = state;
    *tail = (*tail).max(head_length);
    for own in arrays.iter_mut() {
        let item = own.array.dtype.size().unwrap_or(1) as u64;
        for record in own.written.values_mut().filter(|record| record.offset < head_length) {
            let to = tail.next_multiple_of(item);
            disk.copy_from(disk, record.offset, to, record.stored_length)?;
            record.offset = to;
            *tail = to + record.stored_length;
        }
    }
    Ok(())
}

impl Sink for TetSink {
    fn group(&mut self, path: &str, attributes: &Attributes) -> Result<()> {
        let path = self.names.group(path)?;
        if path != "/" || !attributes.is_empty() {
            set_group(&path, attributes, &mut self.own);
        }
        Ok(())
    }

    /// An array at `/` is named `data`, since a dataset needs a name. A single value is stored as an array of one
    /// element.
    fn array(&mut self, path: &str, spec: &ArraySpec) -> Result<Arc<dyn ArraySink>> {
        // An array that is refused does not take its name.
        let mut array = Dimensioned::new(&self.store_name(), &Names::array_name(path), spec)?;
        let name = self.names.array(path)?;
        array.zones =
            self.options.zone_maps && array.grid.chunks().is_some_and(|chunks| chunks <= MOST_ZONES);
        self.described.push((name.clone(), describe(&name, spec)));
        let sink = self.stage.add(StagedArray::new(array, spec.fill.clone()), spec.grid.clone());
        self.stage.state().reserve = Some(self.options.reserve);
        Ok(sink)
    }

    fn attributes(&mut self, path: &str, attributes: &Attributes) -> Result<()> {
        let path = normal_path(path);
        let name = Names::array_name(&path);
        let array = self.described.iter_mut().find(|(own, _)| path != "/" && *own == name);
        if let Some((_, own)) = array {
            own.set(attributes);
        } else if path == "/" || self.own.groups.contains_key(&path) {
            set_group(&path, attributes, &mut self.own);
        } else {
            return Err(Error::not_found(self.store_name(), path));
        }
        Ok(())
    }

    fn commit(self: Box<Self>) -> Result<()> {
        self.finish()
    }
}
