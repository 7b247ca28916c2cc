//! Queries of remote arrays: the chunks of many tasks are fetched at once, while those before them are folded.
//!
//! A task folds a run of chunks that are seldom neighbours in the file. Its neighbours belong to other tasks, so ranges are
//! merged over a wave of tasks, not within one. The answer does not depend on the waves: tasks are those of a local query.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, mpsc};

use bytes::Bytes;
use hyperslab_core::{Array, ArraySchema, Error, FetchCost, Result, Span};

use super::explain::spans_of_task;
use super::fold::AnyFold;
use super::operand::{Stored, for_stored};
use super::plan::{Geometry, QueryPlan};
use super::unwritten::Written;
use crate::ArrayReader;
use crate::adapt::forward_to;

/// Stored bytes of a wave, unless a single task has more.
const WAVE_BYTES: u64 = 64 << 20;
/// Waves in memory at once: one being folded, one waiting, one in flight. They take at most half of the memory.
const WAVES: u64 = 3;

/// Tasks whose chunks are fetched at once.
#[derive(Debug, Default)]
pub(super) struct Wave {
    pub(super) tasks: Range<u64>,
    pub(super) spans: Vec<Span>,
    bytes: u64,
    most: u64,
    /// The assumed size of an object whose size is unknown.
    chunk: u64,
}

impl Wave {
    pub(super) fn new(reader: &ArrayReader) -> Self {
        let schema = reader.schema();
        let chunk = schema.decoded_bytes(&vec![0; schema.shape().len()]).unwrap_or(1 << 20) as u64;
        let most = WAVE_BYTES.min(reader.memory() / 2 / WAVES).max(1);
        Self { chunk, most, ..Self::default() }
    }

    /// Adds the next task. Returns the wave before it, if the task does not fit into that.
    pub(super) fn add(&mut self, task: u64, spans: Vec<Span>) -> Option<Self> {
        let size = |span: &Span| if span.is_whole() { self.chunk } else { span.length };
        let bytes = spans.iter().map(size).fold(0, u64::saturating_add);
        let full = !self.spans.is_empty() && self.bytes.saturating_add(bytes) > self.most;
        let before = full.then(|| {
            let next = Self { tasks: task..task, chunk: self.chunk, most: self.most, ..Self::default() };
            std::mem::replace(self, next)
        });
        self.tasks.end = task + 1;
        self.bytes = self.bytes.saturating_add(bytes);
        self.spans.extend(spans);
        before
    }

    /// Fetches everything that its tasks need.
    fn fetch(&self, reader: &ArrayReader) -> Result<ArrayReader> {
        let mut spans: Vec<&Span> = self.spans.iter().collect();
        spans.sort_by_cached_key(|span| (span.blob.to_string(), span.offset, span.length));
        spans.dedup();
        let fetched = reader.inner().fetch(&spans)?;
        let stored = spans.into_iter().cloned().zip(fetched).collect();
        Ok(reader.with_array(Arc::new(Fetched { inner: Arc::clone(reader.inner()), stored })))
    }
}

impl QueryPlan {
    /// Calls `work` with waves of tasks, in order, and with an array that has their chunks in memory.
    pub(super) fn in_waves(
        &self,
        reader: &ArrayReader,
        (fold, geometry): (&AnyFold, &Geometry),
        tasks: Range<u64>,
        written: Option<&Written>,
        mut work: impl FnMut(&ArrayReader, Range<u64>) -> Result<()>,
    ) -> Result<()> {
        let stored = Stored::of(&self.dtype, &self.name)?;
        let plan = |task| {
            reader.context().check_cancelled()?;
            for_stored!(stored, spans_of_task(self, reader, (fold, geometry), task, written))
        };
        std::thread::scope(|scope| {
            // Without capacity: a wave is fetched while the one before it is folded and another waits to be taken.
            let (sender, receiver) = mpsc::sync_channel::<Result<(ArrayReader, Range<u64>)>>(0);
            let fetcher = move || {
                let mut wave = Wave { tasks: tasks.start..tasks.start, ..Wave::new(reader) };
                let send = |wave: &Wave| {
                    let fetched = wave.fetch(reader).map(|array| (array, wave.tasks.clone()));
                    let failed = fetched.is_err();
                    // After a failure, no more waves are received.
                    sender.send(fetched).is_ok() && !failed
                };
                for task in tasks {
                    match plan(task) {
                        Err(error) => return drop(sender.send(Err(error))),
                        Ok(spans) => {
                            if wave.add(task, spans).is_some_and(|full| !send(&full)) {
                                return;
                            }
                        }
                    }
                }
                send(&wave);
            };
            std::thread::Builder::new()
                .name("fetch".to_owned())
                .spawn_scoped(scope, fetcher)
                .map_err(|source| Error::io(reader.inner().name(), source))?;
            for wave in receiver {
                let (array, tasks) = wave?;
                work(&array, tasks)?;
            }
            Ok(())
        })
    }
}

/// An array some of whose chunks have been fetched.
#[derive(Debug)]
struct Fetched {
    inner: Arc<dyn Array>,
    stored: HashMap<Span, Option<Bytes>>,
}

impl Array for Fetched {
    forward_to!(
        inner: name, locate, blob, decode, decode_partial, decode_elements, visit_chunks, visits_every_chunk, usage,
        statistics, statistics_are_hints, stored_form,
    );

    fn schema(&self) -> &ArraySchema {
        self.inner.schema()
    }

    fn is_remote(&self) -> bool {
        self.inner.is_remote()
    }

    fn fetch(&self, spans: &[&Span]) -> Result<Vec<Option<Bytes>>> {
        let here: Option<Vec<Option<Bytes>>> =
            spans.iter().map(|span| self.stored.get(*span).cloned()).collect();
        here.map_or_else(|| self.inner.fetch(spans), Ok)
    }

    fn fetch_cost(&self, spans: &[&Span]) -> Result<FetchCost> {
        let missing: Vec<&Span> =
            spans.iter().copied().filter(|span| !self.stored.contains_key(*span)).collect();
        self.inner.fetch_cost(&missing)
    }
}
