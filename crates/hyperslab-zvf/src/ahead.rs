//! Elements one after the other, for those who come back for more: decoded ahead while what they got is used.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use hyperslab_core::Result;
use hyperslab_zarr::ElementStream;

/// Elements are handed over in batches of at least this many bytes …
const BATCH: usize = 128 << 10;
/// … and so many batches wait at most.
const WAITING: usize = 48;
/// Who has taken fewer bytes than this has not waited for them.
const WORTH_IT: usize = 512 << 10;

/// A stream of elements.
#[derive(Debug)]
pub(crate) struct Elements {
    source: Source,
    taken: usize,
}

#[derive(Debug)]
enum Source {
    /// Decoded by who asks.
    Here(ElementStream),
    /// Decoded by a thread of its own, which ends when nobody listens any more.
    Ahead { batches: Receiver<Result<Batch>>, batch: Batch, next: usize },
}

/// Some elements.
#[derive(Debug, Default)]
struct Batch {
    bytes: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
}

impl Elements {
    pub(crate) const fn new(stream: ElementStream) -> Self {
        Self { source: Source::Here(stream), taken: 0 }
    }

    /// From here on, elements are decoded ahead, if that is worth a thread and there is one.
    pub(crate) fn go_ahead(&mut self) {
        if self.taken < WORTH_IT || matches!(self.source, Source::Ahead { .. }) {
            return;
        }
        let (sender, batches) = sync_channel(WAITING);
        let ahead = Source::Ahead { batches, batch: Batch::default(), next: 0 };
        let Source::Here(stream) = std::mem::replace(&mut self.source, ahead) else { return };
        // Taken out by the thread, or by us again when there is no thread.
        let slot = Arc::new(Mutex::new(Some(stream)));
        let take = |slot: &Mutex<Option<_>>| slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        let work = {
            let slot = Arc::clone(&slot);
            move || take(&slot).map_or((), |stream| send_all(stream, &sender))
        };
        if std::thread::Builder::new().name("hyperslab-ahead".to_owned()).spawn(work).is_err()
            && let Some(stream) = take(&slot)
        {
            self.source = Source::Here(stream);
        }
    }

    /// The next element; `None` after the last.
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>> {
        let element = match &mut self.source {
            Source::Here(stream) => stream.next_element()?,
            Source::Ahead { batches, batch, next } => {
                while *next == batch.ends.len() {
                    // A sender that is gone has sent all there is.
                    let Ok(more) = batches.recv() else { return Ok(None) };
                    (*batch, *next) = (more?, 0);
                }
                *next += 1;
                Some(batch.element(*next - 1))
            }
        };
        self.taken += element.map_or(0, <[u8]>::len);
        Ok(element)
    }
}

/// Sends batches until there are no more elements, or nobody takes them. An error comes after all that was before it.
fn send_all(mut stream: ElementStream, sender: &SyncSender<Result<Batch>>) {
    loop {
        let mut batch = Batch { bytes: Vec::with_capacity(BATCH + BATCH / 4), ends: Vec::new() };
        let end = loop {
            if batch.bytes.len() >= BATCH || batch.ends.len() >= BATCH {
                break None;
            }
            match stream.next_element() {
                Ok(Some(element)) => {
                    batch.bytes.extend_from_slice(element);
                    batch.ends.push(batch.bytes.len());
                }
                Ok(None) => break Some(Ok(Batch::default())),
                Err(error) => break Some(Err(error)),
            }
        };
        if sender.send(Ok(batch)).is_err() {
            return;
        }
        if let Some(end) = end {
            // Nobody listens, or everybody has all there is.
            let _ = sender.send(end);
            return;
        }
    }
}

impl Batch {
    fn element(&self, number: usize) -> &[u8] {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[number]]
    }
}
