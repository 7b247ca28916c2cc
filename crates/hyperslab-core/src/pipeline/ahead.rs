//! Fetching from remote storage: groups of chunks are requested together, one group ahead of the visitor.

use std::ops::Range;
use std::sync::mpsc;

use bytes::Bytes;

use super::chunk::BlobCache;
use super::{ChunkList, ChunkVisitor, Context, Located, check_fetched, spans_of};
use crate::{Array, ChunkCoord, Error, Result, Span};

/// The target size of a group in stored bytes. A single chunk may be larger.
const GROUP_BYTES: u64 = 8 << 20;
/// Groups in memory at once: one being visited, one waiting, one in flight.
const GROUPS: u64 = 3;

/// A group of chunks and the spans to fetch for each.
struct Group {
    positions: Range<usize>,
    spans: Vec<Vec<Span>>,
}

/// Visits chunks of remote storage.
pub(super) fn visit(
    array: &dyn Array,
    list: &impl ChunkList,
    located: &Located<'_>,
    context: &Context,
    blobs: &mut BlobCache,
    visitor: &mut impl ChunkVisitor,
) -> Result<()> {
    let groups = groups(array, list, located, group_bytes(context))?;
    if let [group] = &groups[..] {
        context.check_cancelled()?;
        for (position, stored) in group.positions.clone().zip(fetch(array, &group.spans)?) {
            visitor.visit(&mut located.fetched_chunk(array, position, stored, blobs))?;
        }
        return Ok(());
    }
    std::thread::scope(|scope| {
        // A channel without capacity: a group is fetched while the one before it is visited and another waits to be taken.
        let (sender, receiver) = mpsc::sync_channel::<Result<Vec<Option<Vec<Bytes>>>>>(0);
        let spans: Vec<&Vec<Vec<Span>>> = groups.iter().map(|group| &group.spans).collect();
        let fetcher = move || {
            for group in spans {
                let fetched = fetch(array, group);
                let failed = fetched.is_err();
                // A visitor that failed takes no more.
                if sender.send(fetched).is_err() || failed {
                    return;
                }
            }
        };
        std::thread::Builder::new()
            .name("fetch".to_owned())
            .spawn_scoped(scope, fetcher)
            .map_err(|source| Error::io(array.name(), source))?;
        for group in &groups {
            context.check_cancelled()?;
            let fetched = receiver.recv().map_err(|_| {
                Error::invalid(format!("{}: the fetching thread ended early", array.name()))
            })??;
            for (position, stored) in group.positions.clone().zip(fetched) {
                visitor.visit(&mut located.fetched_chunk(array, position, stored, blobs))?;
            }
        }
        Ok(())
    })
}

/// Tells the visitor what [`visit`] would fetch.
pub(super) fn list_spans(
    array: &dyn Array,
    list: &impl ChunkList,
    located: &Located<'_>,
    visitor: &mut impl ChunkVisitor,
) -> Result<()> {
    for (number, reference) in located.numbers.iter().zip(located.references) {
        if let Some(reference) = reference {
            visitor.would_fetch(spans_of(array, &list.wanted(*number), reference)?);
        }
    }
    Ok(())
}

/// A round of requests that [`visit`] would send, for the chunks of one group.
#[derive(Debug, Clone, Default)]
pub struct FetchRound {
    /// The spans to fetch.
    pub spans: Vec<Span>,
    /// The decoded size of the chunks whose stored size is unknown.
    pub unknown: u64,
    /// The decoded size of all chunks.
    pub decoded: u64,
    /// The number of chunks that were never written.
    pub unwritten: u64,
}

/// The rounds in which [`visit_chunks`](super::visit_chunks) would fetch these chunks. Locates them, but fetches none.
///
/// # Errors
///
/// As [`locate`](super::locate); [`Cancelled`](Error::Cancelled) if the operation was cancelled.
pub fn fetch_rounds(
    array: &dyn Array,
    list: &impl ChunkList,
    range: Range<u64>,
    context: &Context,
) -> Result<Vec<FetchRound>> {
    let mut rounds = Vec::new();
    let mut start = range.start;
    while start < range.end {
        let end = range.end.min(start.saturating_add(super::batch_of(array)));
        context.check_cancelled()?;
        let numbers: Vec<u64> = (start..end).collect();
        let coords: Vec<ChunkCoord> = numbers.iter().map(|number| list.coord(*number)).collect();
        let references = super::locate(array, &coords)?;
        let located = Located { numbers: &numbers, coords: &coords, references: &references, known: &[] };
        for group in groups(array, list, &located, group_bytes(context))? {
            let mut round = FetchRound::default();
            for (position, spans) in group.positions.zip(group.spans) {
                if references[position].is_none() {
                    round.unwritten += 1;
                    continue;
                }
                let decoded = array.schema().decoded_bytes(&coords[position]).unwrap_or(0) as u64;
                round.decoded = round.decoded.saturating_add(decoded);
                let unknown = spans.iter().filter(|span| span.is_whole()).count() as u64;
                round.unknown = round.unknown.saturating_add(decoded.saturating_mul(unknown));
                round.spans.extend(spans);
            }
            rounds.push(round);
        }
        start = end;
    }
    Ok(rounds)
}

/// The target size of a group in an operation with this context.
fn group_bytes(context: &Context) -> u64 {
    let share = context.memory / GROUPS / context.threads.count().max(1);
    GROUP_BYTES.min(share).max(1)
}

/// Divides the located chunks into groups of about this many stored bytes.
fn groups(array: &dyn Array, list: &impl ChunkList, located: &Located<'_>, most: u64) -> Result<Vec<Group>> {
    let mut groups: Vec<Group> = Vec::new();
    let mut room = 0;
    for (position, reference) in located.references.iter().enumerate() {
        let spans = match reference {
            Some(reference) => spans_of(array, &list.wanted(located.numbers[position]), reference)?,
            None => Vec::new(),
        };
        let bytes = spans.iter().fold(0_u64, |sum, span| {
            // An object of unknown size is assumed to be as large as the decoded chunk.
            let decoded = || array.schema().decoded_bytes(&located.coords[position]).unwrap_or(0) as u64;
            sum.saturating_add(if span.is_whole() { decoded() } else { span.length })
        });
        match groups.last_mut() {
            Some(group) if bytes <= room => {
                group.positions.end = position + 1;
                group.spans.push(spans);
                room -= bytes;
            }
            _ => {
                groups.push(Group { positions: position..position + 1, spans: vec![spans] });
                room = most.saturating_sub(bytes);
            }
        }
    }
    Ok(groups)
}

/// Fetches all spans of a group in one call. Returns `None` for a chunk that turned out never to have been written.
fn fetch(array: &dyn Array, group: &[Vec<Span>]) -> Result<Vec<Option<Vec<Bytes>>>> {
    let all: Vec<&Span> = group.iter().flatten().collect();
    let mut fetched = check_fetched(array, all.len(), array.fetch(&all)?)?.into_iter();
    // Consume all spans of a chunk, even after a missing one.
    let each = group.iter().map(|spans| fetched.by_ref().take(spans.len()).collect::<Vec<_>>());
    Ok(each.map(|stored| stored.into_iter().collect()).collect())
}
