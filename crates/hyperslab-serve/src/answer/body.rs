//! Bodies that hold memory until they are sent, and bodies that are generated while they are sent.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use http_body::{Frame, SizeHint};
use hyperslab::{Progress, Result};

use crate::work::{Held, Job};

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
}

impl Blocks {
    pub(crate) fn new(next: impl FnMut(&Arc<Progress>) -> Option<Result<Bytes>> + Send + 'static) -> Self {
        Self { next: Box::new(next) }
    }

    /// A body filled by a thread. It ends early, and the connection with it, if a block fails or the client stalls for too long.
    pub(crate) fn pump(mut self, job: Job, held: Option<Held>) -> Body {
        let (sender, receiver) = tokio::sync::mpsc::channel::<Result<Bytes>>(1);
        // The job's own flag is set when the request is answered, which happens now.
        let progress = Arc::new(Progress::default());
        let (handle, timeout, slot) = job.into_parts();
        let on = handle.clone();
        handle.spawn_blocking(move || {
            while let Some(block) = (self.next)(&progress) {
                let failed = block.is_err();
                let sent = on.block_on(async { tokio::time::timeout(timeout, sender.send(block)).await });
                if failed || !matches!(sent, Ok(Ok(()))) {
                    progress.stop.store(true, Ordering::Relaxed);
                    break;
                }
            }
            drop((slot, held));
        });
        Body::from_stream(stream::unfold(receiver, |mut receiver| async {
            receiver.recv().await.map(|block| (block, receiver))
        }))
    }
}
