//! Decodes a long chunk piece by piece, ahead of its consumer.

use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use hyperslab_codec::{CodecError, zstd};

use crate::pipeline::plausible;

/// The unit of decoding: a block …
const BLOCK: usize = 128 << 10;
/// … the unit of hand-over, because the consumer must be woken each time …
const PIECE: usize = 4 * BLOCK;
/// … and the maximum number of waiting pieces.
const WAITING: usize = 12;

/// A byte stream that is handed out in runs.
#[derive(Debug)]
pub(crate) struct Pieces {
    decoder: Decoder,
    piece: Vec<u8>,
    /// The number of bytes already handed out.
    used: usize,
    /// A run that started in another piece.
    joined: Vec<u8>,
}

#[derive(Debug)]
enum Decoder {
    /// Decodes on demand.
    Here(Frames),
    /// Decoded by a separate thread, which ends when the consumer is gone. Used pieces are returned to it.
    Ahead { pieces: Receiver<Result<Vec<u8>, CodecError>>, back: Sender<Vec<u8>>, process: u32 },
}

/// The frames to decode.
#[derive(Debug)]
struct Frames {
    stream: zstd::Stream<Bytes>,
    /// How many more bytes the stored data can plausibly expand to.
    room: usize,
    /// The error to report after the preceding bytes.
    failed: Option<CodecError>,
}

impl Frames {
    /// Fills a piece with the next bytes; empty after the last.
    fn fill(&mut self, piece: &mut Vec<u8>) -> Result<(), CodecError> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        piece.resize(PIECE.min(self.room), 0);
        let mut filled = 0;
        for block in piece.chunks_mut(BLOCK) {
            match self.stream.read(block) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if filled == 0 => return Err(error),
                Err(error) => {
                    self.failed = Some(error);
                    break;
                }
            }
        }
        piece.truncate(filled);
        self.room -= filled;
        Ok(())
    }
}

impl Pieces {
    /// The content of zstd frames. The first piece is decoded at once.
    pub(crate) fn new(stored: Bytes) -> Result<Self, CodecError> {
        let room = plausible(stored.len());
        let mut frames = Frames { stream: zstd::Stream::new(stored)?, room, failed: None };
        let mut piece = Vec::new();
        frames.fill(&mut piece)?;
        // Less than a piece is everything there is, or everything intact.
        let decoder = if piece.len() < PIECE { Decoder::Here(frames) } else { Decoder::ahead(frames) };
        Ok(Self { decoder, piece, used: 0, joined: Vec::new() })
    }

    /// Returns true if nothing more can arrive. Threads do not survive a fork, so a child would wait forever.
    pub(crate) fn is_lost(&self) -> bool {
        matches!(self.decoder, Decoder::Ahead { process, .. } if process != std::process::id())
    }

    /// The next `n` bytes; `None` if fewer are left.
    pub(crate) fn take(&mut self, n: usize) -> Result<Option<&[u8]>, CodecError> {
        if self.piece.len() - self.used < n {
            return self.join(n);
        }
        self.used += n;
        Ok(Some(&self.piece[self.used - n..self.used]))
    }

    /// Assembles a run that does not end in this piece. Lengths are untrusted, so memory grows only with the available bytes.
    fn join(&mut self, n: usize) -> Result<Option<&[u8]>, CodecError> {
        self.joined.clear();
        while self.joined.len() < n {
            if self.is_at_end()? {
                return Ok(None);
            }
            let end = self.piece.len().min(self.used.saturating_add(n - self.joined.len()));
            self.joined.extend_from_slice(&self.piece[self.used..end]);
            self.used = end;
        }
        Ok(Some(&self.joined))
    }

    /// Returns true if nothing is left.
    pub(crate) fn is_at_end(&mut self) -> Result<bool, CodecError> {
        if self.used == self.piece.len() {
            self.used = 0;
            self.decoder.next(&mut self.piece)?;
        }
        Ok(self.piece.is_empty())
    }
}

impl Decoder {
    /// Decodes on a separate thread, if one can be started.
    fn ahead(frames: Frames) -> Self {
        let (sender, pieces) = sync_channel(WAITING);
        let (back, used) = channel();
        // Taken by the thread, or below if no thread could be started.
        let slot = Arc::new(Mutex::new(Some(frames)));
        let take = |slot: &Mutex<Option<_>>| slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        let work = {
            let slot = Arc::clone(&slot);
            move || take(&slot).map_or((), |frames| send_all(frames, &sender, &used))
        };
        let thread = std::thread::Builder::new().name("hyperslab-ahead".to_owned()).spawn(work);
        match thread.err().and_then(|_| take(&slot)) {
            Some(frames) => Self::Here(frames),
            None => Self::Ahead { pieces, back, process: std::process::id() },
        }
    }

    /// Replaces a used piece by the next one; empty after the last.
    fn next(&mut self, piece: &mut Vec<u8>) -> Result<(), CodecError> {
        match self {
            Self::Here(frames) => frames.fill(piece),
            Self::Ahead { pieces, back, .. } => {
                // If the sender is gone, everything has been sent.
                let next = pieces.recv().unwrap_or_else(|_| Ok(Vec::new()))?;
                // Fails if decoding is complete, which is fine.
                let _ = back.send(std::mem::replace(piece, next));
                Ok(())
            }
        }
    }
}

/// Sends pieces until there are no more or the receiver is gone. An error is sent after the preceding pieces.
fn send_all(mut frames: Frames, sender: &SyncSender<Result<Vec<u8>, CodecError>>, used: &Receiver<Vec<u8>>) {
    loop {
        let mut piece = used.try_recv().unwrap_or_default();
        let filled = frames.fill(&mut piece);
        let last = filled.is_err() || piece.is_empty();
        if sender.send(filled.map(|()| piece)).is_err() || last {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(length: usize) -> (Vec<u8>, Vec<u8>) {
        let plain: Vec<u8> = (0..length as u32).map(|i| (i / 7 * 31) as u8).collect();
        let mut stored = Vec::new();
        zstd::encode(&plain, zstd::Options::level(3), &mut stored).unwrap();
        (plain, stored)
    }

    #[test]
    fn runs_of_any_length_are_contiguous() {
        for length in [0, 5, PIECE - 1, PIECE, PIECE + 1, 5 * PIECE, 60 * PIECE + 77] {
            let (plain, stored) = stored(length);
            for run in [1000, PIECE, 3 * PIECE + 1] {
                let mut pieces = Pieces::new(stored.clone().into()).unwrap();
                for part in plain.chunks_exact(run) {
                    assert!(pieces.take(run).unwrap() == Some(part), "{length}, runs of {run}");
                }
                let rest = length % run;
                assert!(pieces.take(rest).unwrap() == Some(&plain[length - rest..]));
                assert!(pieces.is_at_end().unwrap() && pieces.take(1).unwrap().is_none());
                assert_eq!(pieces.take(0).unwrap(), Some(&[][..]));
            }
        }
    }

    #[test]
    fn bytes_before_an_error_arrive_and_claims_take_no_memory() {
        let (plain, mut stored) = stored(5 * PIECE);
        stored.truncate(stored.len() - 5);
        let mut pieces = Pieces::new(stored.into()).unwrap();
        assert_eq!(pieces.take(100).unwrap(), Some(&plain[..100]));
        assert!(pieces.take(usize::MAX).is_err());
        assert!(pieces.joined.len() <= plain.len());
    }
}
