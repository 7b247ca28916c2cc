//! Connections: a bounded number at once, each with a deadline for the headers of its next request and a minimum rate at which
//! its client must read.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{Instant, Sleep};

use crate::ServeOptions;

/// The slowest rate, in bytes per second, at which a client may read a response.
pub(crate) const MIN_READ_RATE: u64 = 16 << 10;

/// Answers requests until the process ends.
pub(crate) async fn serve(
    mut listener: TcpListener,
    router: Router,
    options: &ServeOptions,
) -> std::io::Result<()> {
    let places = Arc::new(Semaphore::new(options.connections.max(1)));
    let service = TowerToHyperService::new(router);
    loop {
        let place = Arc::clone(&places).acquire_owned().await.ok();
        // Unlike the listener's own method, this one survives a lack of file descriptors.
        let (stream, _) = axum::serve::Listener::accept(&mut listener).await;
        // Small responses must not wait for the acknowledgement of the previous one.
        let _ = stream.set_nodelay(true);
        let io = TokioIo::new(Connection::new(stream, options.timeout));
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(options.header_timeout);
        let connection = builder.serve_connection(io, service.clone());
        tokio::spawn(async move {
            // Errors of one client's connection must not affect the others.
            let _ = connection.await;
            drop(place);
        });
    }
}

/// A connection that fails if its client reads too slowly.
#[derive(Debug)]
struct Connection<S = TcpStream> {
    stream: S,
    window: Duration,
    /// Set while the client reads more slowly than the server writes.
    blocked: Option<Blocked>,
}

/// The time by which a slow client must have read some bytes.
#[derive(Debug)]
struct Blocked {
    deadline: Pin<Box<Sleep>>,
    /// Bytes that are still to be read by then.
    left: u64,
}

impl<S> Connection<S> {
    const fn new(stream: S, window: Duration) -> Self {
        Self { stream, window, blocked: None }
    }

    /// Accounts for the outcome of a write.
    fn account(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<std::io::Result<usize>>,
    ) -> Poll<std::io::Result<usize>> {
        match written {
            Poll::Ready(Ok(count)) => {
                if let Some(blocked) = &mut self.blocked {
                    blocked.left = blocked.left.saturating_sub(count as u64);
                }
                self.blocked = self.blocked.take().filter(|blocked| blocked.left > 0);
                Poll::Ready(Ok(count))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => {
                let window = self.window;
                let blocked = self.blocked.get_or_insert_with(|| Blocked {
                    deadline: Box::pin(tokio::time::sleep_until(Instant::now() + window)),
                    left: (MIN_READ_RATE * window.as_secs()).max(1),
                });
                ready!(blocked.deadline.as_mut().poll(context));
                let slow = "the client reads too slowly";
                Poll::Ready(Err(std::io::Error::new(std::io::ErrorKind::TimedOut, slow)))
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Connection<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Connection<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.account(context, written)
    }

    /// The server has written all that it had, so it no longer waits for the client.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        self.blocked = None;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.account(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
