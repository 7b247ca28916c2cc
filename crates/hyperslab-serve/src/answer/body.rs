//! Bodies that hold memory until they are sent, and bodies that are generated while they are sent.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use futures_util::future::{Either, select};
use futures_util::stream;
use http_body::{Frame, SizeHint};
use hyperslab::{Error, Progress, Result};
use tokio::sync::mpsc;

use crate::work::{Held, Job, StopOnDrop, Work};

/// Bytes, and the memory accounted for them.
pub(crate) struct HeldBody {
    bytes: Option<Bytes>,
    _held: Held,
}

impl HeldBody {
    /// A body that releases its memory when it is sent or dropped.
    pub(crate) fn wrap(bytes: Bytes, held: Option<Held>) -> Body {
        match held {
            None => Body::from(bytes),
            Some(held) => Body::new(Self { bytes: Some(bytes), _held: held }),
        }
    }
}

impl http_body::Body for HeldBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<std::result::Result<Frame<Bytes>, Self::Error>>> {
        Poll::Ready(self.bytes.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}

/// Generates the next block of a response.
type NextBlock = dyn FnMut(&Arc<Progress>) -> Option<Result<Bytes>> + Send;

/// The blocks of a large response. Each is generated while the previous one is being sent.
pub(crate) struct Blocks {
    next: Box<NextBlock>,
    /// The size of the largest block.
    largest: u64,
}

impl Blocks {
    pub(crate) fn new(
        largest: u64,
        next: impl FnMut(&Arc<Progress>) -> Option<Result<Bytes>> + Send + 'static,
    ) -> Self {
        Self { next: Box::new(next), largest }
    }

    /// A body that is generated block by block. It ends early, and the connection with it, if a block fails or the client reads
    /// too slowly.
    pub(crate) fn pump(self, job: Job) -> Body {
        let (sender, receiver) = mpsc::channel(1);
        let (handle, work) = job.into_parts();
        handle.spawn(self.send_all(work, sender));
        Body::from_stream(stream::unfold(receiver, |mut receiver| async {
            receiver.recv().await.map(|block| (block, receiver))
        }))
    }

    /// Sends all blocks. A thread is occupied only while a block is generated, memory until the last one is sent.
    async fn send_all(self, work: Arc<Work>, sender: mpsc::Sender<Result<Bytes>>) {
        let late = || Err(Error::io("stream", std::io::ErrorKind::TimedOut.into()));
        // One block is being sent, one is waiting.
        let Some(_held) = work.reserve_stream(self.largest * 2).await else {
            let _ = sender.send(late()).await;
            return;
        };
        let progress = Arc::new(Progress::default());
        let _stop = StopOnDrop(Arc::clone(&progress));
        let mut next = self.next;
        loop {
            let time = work.time_to_read(self.largest);
            let Ok(Ok(place)) = tokio::time::timeout(time, sender.reserve()).await else { return };
            let Some(slot) = work.slot().await else { return place.send(late()) };
            let own = Arc::clone(&progress);
            let making = tokio::task::spawn_blocking(move || {
                let block = next(&own);
                drop(slot);
                (next, block)
            });
            let made = match select(making, pin!(sender.closed())).await {
                Either::Left((Ok((following, Some(block))), _)) => {
                    next = following;
                    block
                }
                // It was the last one, or the client disconnected.
                _ => return,
            };
            let failed = made.is_err();
            place.send(made);
            if failed {
                return;
            }
        }
    }
}
