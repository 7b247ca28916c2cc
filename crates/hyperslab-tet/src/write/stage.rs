//! Stages payloads: chunks are written here before the index refers to them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use hyperslab_codec::checksum::crc32c;
use hyperslab_core::{ArraySink, ChunkCoord, Elements, EncodedChunk, Error, Fill, Grid, Result, StoredForm};

use super::rows::{ChunkRecord, Dimensioned, fixed, unpack_chunk};
use crate::dataset::Dataset;
use crate::disk::Disk;
use crate::index::{IndexHeader, Row, RowLookup};
use crate::store::TetStore;
use crate::superblock::DIRECTORY_START;

/// The alignment of payloads.
const ALIGNMENT: u64 = 64;

/// The maximum space reserved for an index. If it needs more, payloads are moved at the end.
const MOST_ROOM: u64 = 1 << 30;

/// A file of payloads, filled from many threads.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) disk: Disk,
    state: Mutex<State>,
}

/// The written chunks, and the allocation of space.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) arrays: Vec<StagedArray>,
    /// The offset of the next payload.
    pub(crate) tail: u64,
    /// Bytes to keep free after the head of a new file.
    pub(crate) reserve: Option<u64>,
    /// The number of writes that have a place but are not complete.
    pending: usize,
    /// Whether the layout is fixed for the arrays known before the first chunk.
    started: bool,
    /// The reason why no more chunks are accepted: it is finished, or a write failed.
    closed: Option<&'static str>,
}

/// An array and its written chunks, by their number in C order.
#[derive(Debug)]
pub(crate) struct StagedArray {
    pub(crate) array: Arc<Dimensioned>,
    /// The value of chunks that are never written.
    pub(crate) fill: Fill,
    /// The start of the array, if its chunks have fixed places.
    base: Option<u64>,
    pub(crate) written: BTreeMap<u64, ChunkRecord>,
    /// If chunks are added to an existing file: the array there.
    pub(crate) old: Option<(TetStore, usize, Grid)>,
}

impl StagedArray {
    pub(crate) fn new(array: Dimensioned, fill: Fill) -> Self {
        Self { array: Arc::new(array), fill, base: None, written: BTreeMap::new(), old: None }
    }

    /// Returns true if the existing file has this chunk with its final size. A chunk that the old edge clipped may be larger
    /// after the array has grown.
    pub(crate) fn has_old(&self, coord: &[u64]) -> bool {
        self.old.as_ref().is_some_and(|(store, id, grid)| {
            grid.region(coord).shape == self.array.grid.region(coord).shape
                && store.file.index.find(*id, grid, coord) != RowLookup::Missing
        })
    }

    /// Returns true if the size of every chunk is known and every chunk will be written.
    fn is_laid_out(&self) -> bool {
        self.array.level.is_none() && self.fill != Fill::Undefined
    }
}

impl Stage {
    pub(crate) fn new(disk: Disk) -> Self {
        Self { disk, state: Mutex::default() }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        // A panic cannot leave the state inconsistent, because each update is completed in one step.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an array. Returns the sink for its chunks.
    pub(crate) fn add(self: &Arc<Self>, array: StagedArray, grid: Grid) -> Arc<dyn ArraySink> {
        let mut state = self.state();
        let id = state.arrays.len();
        let own = Arc::clone(&array.array);
        let old = array.old.as_ref().map(|(_, _, grid)| grid.clone());
        state.arrays.push(array);
        if state.started {
            state.lay_out(id);
        }
        Arc::new(TetArraySink { stage: Arc::clone(self), id, array: own, grid, old })
    }

    /// Ends the writing.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) if a write failed or is in progress.
    pub(crate) fn close(&self) -> Result<MutexGuard<'_, State>> {
        let mut state = self.state();
        state.refuse_closed()?;
        if state.pending > 0 {
            return Err(Error::invalid("chunks are still being written"));
        }
        state.keep_room();
        state.closed = Some("the file is finished");
        Ok(state)
    }

    /// Writes a chunk and records it.
    fn write(&self, id: usize, chunk: &[u64], encoded: EncodedChunk) -> Result<()> {
        let (stored, record) = unpack_chunk(encoded)?;
        let offset = self.state().place(id, chunk, record)?;
        let result = self.disk.write_at(&stored, offset);
        let mut state = self.state();
        state.pending -= 1;
        if result.is_err() {
            state.closed = Some("an earlier write failed");
        }
        result
    }

    /// Writes the missing chunks with the fill value, if there is one.
    pub(crate) fn fill(&self) -> Result<()> {
        self.state().start();
        let count = self.state().arrays.len();
        for id in 0..count {
            let (array, fill, base, missing) = self.state().missing(id);
            let mut made: BTreeMap<u64, EncodedChunk> = BTreeMap::new();
            for number in missing {
                let coord = array.grid.coord(number);
                let cells = array.grid.region(&coord).cells().unwrap_or(0);
                let encoded = match made.get(&cells) {
                    Some(encoded) => encoded.clone(),
                    None => made.entry(cells).or_insert(filled(&array, &coord, &fill, cells)?).clone(),
                };
                if base && fill == Fill::Zero {
                    // A part of the file that was never written reads as zeros.
                    let record = unpack_chunk(encoded)?.1;
                    let mut state = self.state();
                    state.place(id, &coord, record)?;
                    state.pending -= 1;
                } else {
                    self.write(id, &coord, encoded)?;
                }
            }
        }
        Ok(())
    }
}

/// A chunk of fill values.
fn filled(array: &Dimensioned, chunk: &[u64], fill: &Fill, cells: u64) -> Result<EncodedChunk> {
    let item = array.dtype.size().unwrap_or(1);
    let element = match fill {
        Fill::Element(element) => fixed(&array.dataset.name, element)?.to_vec(),
        _ => vec![0; item],
    };
    if element.len() != item {
        return Err(Error::invalid(format!(
            "{}: a fill value of {} bytes",
            array.dataset.name,
            element.len()
        )));
    }
    let cells = usize::try_from(cells).map_err(|_| Error::invalid("a chunk larger than memory"))?;
    array.encode(chunk, &element.repeat(cells).into())
}

impl State {
    fn refuse_closed(&self) -> Result<()> {
        match self.closed {
            None => Ok(()),
            Some(reason) => Err(Error::invalid(format!("nothing can be written: {reason}"))),
        }
    }

    /// Fixes the layout of the arrays known so far, once.
    fn start(&mut self) {
        if !self.started {
            self.keep_room();
            self.started = true;
            (0..self.arrays.len()).for_each(|id| self.lay_out(id));
        }
    }

    /// Assigns fixed places to an array's chunks, if all their sizes are known.
    fn lay_out(&mut self, id: usize) {
        let own = &mut self.arrays[id];
        if own.is_laid_out() {
            let item = own.array.dtype.size().unwrap_or(1) as u64;
            let base = self.tail.next_multiple_of(item);
            own.base = Some(base);
            self.tail = base.saturating_add(own.array.dataset.bytes().unwrap_or(0));
        }
    }

    /// Records a chunk and assigns it a place.
    fn place(&mut self, id: usize, chunk: &[u64], mut record: ChunkRecord) -> Result<u64> {
        self.refuse_closed()?;
        self.start();
        let own = &mut self.arrays[id];
        let (coord, number) = (own.array.coord(chunk), own.array.number(chunk)?);
        if own.has_old(&coord) || own.written.contains_key(&number) {
            return Err(Error::invalid(format!(
                "{}: chunk {chunk:?} is written twice",
                own.array.dataset.name
            )));
        }
        let expected =
            crate::array::chunk_bytes(&own.array.grid, own.array.dtype.size().unwrap_or(1), &coord);
        if expected != Some(record.raw_length) {
            return Err(Error::invalid(format!(
                "{}: {} bytes for chunk {chunk:?} of {expected:?}",
                own.array.dataset.name, record.raw_length
            )));
        }
        record.offset = match own.base {
            Some(base) => base + own.array.raw_before(&coord),
            None => {
                let item = own.array.dtype.size().unwrap_or(1) as u64;
                let raw = record.codec == crate::index::Codec::Raw;
                let offset = if raw { self.tail.next_multiple_of(item) } else { self.tail };
                self.tail = offset + record.stored_length;
                offset
            }
        };
        let offset = record.offset;
        own.written.insert(number, record);
        self.pending += 1;
        Ok(offset)
    }

    /// The information needed to fill an array's missing chunks.
    fn missing(&self, id: usize) -> (Arc<Dimensioned>, Fill, bool, Vec<u64>) {
        let own = &self.arrays[id];
        let chunks = own.array.grid.chunks().unwrap_or(0);
        let missing = if own.fill == Fill::Undefined || own.written.len() as u64 == chunks {
            Vec::new()
        } else {
            (0..chunks).filter(|number| !own.written.contains_key(number)).collect()
        };
        (Arc::clone(&own.array), own.fill.clone(), own.base.is_some(), missing)
    }

    /// Keeps room in a new file for the head of the arrays known by now, and the reserve. Once, before the first payload: there
    /// may be very many arrays.
    fn keep_room(&mut self) {
        let Some(reserve) = self.reserve.filter(|_| !self.started) else { return };
        let head = head_length(self.arrays.iter().map(|own| &own.array.dataset), self.expected_rows());
        let room = head.min(MOST_ROOM).saturating_add(reserve).saturating_add(head.min(MOST_ROOM) / 16);
        self.tail = room.next_multiple_of(ALIGNMENT);
    }

    fn expected_rows(&self) -> u64 {
        let chunks = self.arrays.iter().map(|own| own.array.grid.chunks().unwrap_or(0));
        chunks.fold(0, u64::saturating_add)
    }

    /// The rows of all written chunks with their records, by array and then in C order.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (Row, &ChunkRecord)> {
        self.arrays.iter().enumerate().flat_map(|(id, own)| {
            own.written
                .iter()
                .map(move |(number, record)| (record.row(id, &own.array.grid.coord(*number)), record))
        })
    }
}

/// The end of the index for these datasets and this many rows.
pub(crate) fn head_length<'d>(datasets: impl Iterator<Item = &'d Dataset>, rows: u64) -> u64 {
    let records: u64 = datasets.map(|dataset| dataset.record_length() as u64).sum();
    let index = IndexHeader::index_length(rows).unwrap_or(u64::MAX);
    DIRECTORY_START.saturating_add(records).saturating_add(index)
}

/// One array being written.
#[derive(Debug)]
struct TetArraySink {
    stage: Arc<Stage>,
    id: usize,
    array: Arc<Dimensioned>,
    grid: Grid,
    /// The grid in the existing file.
    old: Option<Grid>,
}

impl ArraySink for TetArraySink {
    fn grid(&self) -> &Grid {
        &self.grid
    }

    fn grown_from(&self) -> Option<&[u64]> {
        self.old.as_ref().map(Grid::shape)
    }

    fn encode(&self, chunk: &ChunkCoord, elements: &Elements) -> Result<EncodedChunk> {
        self.array.number(chunk)?;
        self.array.encode(chunk, fixed(&self.array.dataset.name, elements)?)
    }

    fn adopt(&self, chunk: &ChunkCoord, form: &StoredForm, stored: &Bytes) -> Result<Option<EncodedChunk>> {
        self.array.number(chunk)?;
        self.array.adopt(chunk, form, stored)
    }

    fn write(&self, chunk: &ChunkCoord, encoded: EncodedChunk) -> Result<()> {
        self.stage.write(self.id, chunk, encoded)
    }
}

/// The checksum of the rows as encoded in the index.
pub(crate) fn rows_checksum(head: &[u8], rows: usize) -> u32 {
    crc32c(&head[head.len().saturating_sub(rows * Row::LEN)..])
}
