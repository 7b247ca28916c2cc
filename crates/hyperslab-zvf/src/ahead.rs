//! Elements one after the other, decoded ahead: who wants more of them finds them there, while what came before is used.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use hyperslab_core::Result;
use hyperslab_zarr::ElementStream;

/// Elements are handed over in batches of at least this many bytes …
const BATCH: usize = 128 << 10;
/// … and so many batches wait at most.
const WAITING: usize = 48;

/// A stream of elements.
#[derive(Debug)]
pub(crate) enum Elements {
    /// Decoded by who asks.
    Here(ElementStream),
    /// Decoded by a thread of its own, which ends when nobody listens any more.
    Ahead { batches: Receiver<Result<Batch>>, batch: Batch, next: usize, process: u32 },
}

/// Some elements.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    bytes: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
}

impl Elements {
    /// Those of a stream, decoded ahead if that is worth a thread and there is one.
    pub(crate) fn new(stream: ElementStream) -> Self {
        if !stream.is_long() {
            return Self::Here(stream);
        }
        let (sender, batches) = sync_channel(WAITING);
        // Taken out by the thread, or by us again when there is no thread.
        let slot = Arc::new(Mutex::new(Some(stream)));
        let take = |slot: &Mutex<Option<_>>| slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        let work = {
            let slot = Arc::clone(&slot);
            move || take(&slot).map_or((), |stream| send_all(stream, &sender))
        };
        let thread = std::thread::Builder::new().name("hyperslab-ahead".to_owned()).spawn(work);
        match thread.err().and_then(|_| take(&slot)) {
            Some(stream) => Self::Here(stream),
            None => Self::Ahead { batches, batch: Batch::default(), next: 0, process: std::process::id() },
        }
    }

    /// Will nothing come any more? Threads do not outlive a fork: a child would wait for ever.
    pub(crate) fn is_lost(&self) -> bool {
        matches!(self, Self::Ahead { process, .. } if *process != std::process::id())
    }

    /// The next element; `None` after the last.
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>> {
        match self {
            Self::Here(stream) => stream.next_element(),
            Self::Ahead { batches, batch, next, .. } => {
                while *next == batch.ends.len() {
                    // A sender that is gone has sent all there is.
                    let Ok(more) = batches.recv() else { return Ok(None) };
                    (*batch, *next) = (more?, 0);
                }
                *next += 1;
                Ok(Some(batch.element(*next - 1)))
            }
        }
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
