//! A client of HTTP/1.1 that keeps its connections and discards what it receives.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::harness::Outcome;

/// How long a server may say nothing.
const PATIENCE: Duration = Duration::from_secs(60);

/// One connection.
#[derive(Debug)]
struct Connection {
    stream: BufReader<TcpStream>,
    buffer: Vec<u8>,
}

impl Connection {
    fn new(port: u16) -> Outcome<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { stream: BufReader::with_capacity(1 << 16, stream), buffer: vec![0; 1 << 16] })
    }

    /// Sends a request and receives the response; the bytes of its body.
    fn get(&mut self, path: &str) -> Outcome<u64> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
        self.stream.get_mut().write_all(request.as_bytes())?;
        let status = self.line()?;
        let (mut length, mut chunked) = (0, false);
        loop {
            let line = self.line()?.to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse()?;
            }
            chunked |= line.starts_with("transfer-encoding:") && line.ends_with("chunked");
        }
        let received = if chunked { self.discard_chunks()? } else { self.discard(length)? };
        match status.split(' ').nth(1) {
            Some("200") => Ok(received),
            _ => Err(format!("{path}: {status}").into()),
        }
    }

    fn line(&mut self) -> Outcome<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err("the server closed the connection".into());
        }
        Ok(line.trim_end().to_owned())
    }

    fn discard(&mut self, length: u64) -> Outcome<u64> {
        let mut left = length;
        while left > 0 {
            let most = self.buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            let read = self.stream.read(&mut self.buffer[..most])?;
            if read == 0 {
                return Err("the server closed the connection".into());
            }
            left -= read as u64;
        }
        Ok(length)
    }

    fn discard_chunks(&mut self) -> Outcome<u64> {
        let mut received = 0;
        loop {
            let size = u64::from_str_radix(self.line()?.trim(), 16)?;
            received += self.discard(size)?;
            self.line()?;
            if size == 0 {
                return Ok(received);
            }
        }
    }
}

/// One request on a connection of its own.
pub(super) fn fetch(port: u16, path: &str) -> Outcome {
    Connection::new(port)?.get(path).map(drop)
}

/// What many connections got in a while.
#[derive(Debug)]
pub(super) struct Load {
    pub(super) requests: u64,
    pub(super) errors: u64,
    bytes: u64,
    elapsed: f64,
    /// The time within which 99 of 100 responses were there.
    slow: f64,
}

impl Load {
    /// Sends one request after the other on each connection. `path` tells the path of a request by its number.
    pub(super) fn run(
        port: u16,
        connections: usize,
        time: Duration,
        path: impl Fn(u64) -> String + Sync,
    ) -> Outcome<Self> {
        let (number, errors, bytes) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        let start = Instant::now();
        let work = || {
            let (mut connection, mut times) = (Connection::new(port), Vec::new());
            while start.elapsed() < time {
                let path = path(number.fetch_add(1, Ordering::Relaxed));
                let begun = Instant::now();
                let answer = connection.as_mut().map_err(|error| error.to_string());
                match answer.and_then(|own| own.get(&path).map_err(|error| error.to_string())) {
                    Ok(received) => {
                        bytes.fetch_add(received, Ordering::Relaxed);
                        times.push(begun.elapsed().as_secs_f64());
                    }
                    Err(_) => {
                        errors.fetch_add(1, Ordering::Relaxed);
                        // A server that refuses is not asked as fast as possible.
                        std::thread::sleep(Duration::from_millis(10));
                        connection = Connection::new(port);
                    }
                }
            }
            times
        };
        let mut times: Vec<f64> = std::thread::scope(|scope| {
            let all: Vec<_> = (0..connections).map(|_| scope.spawn(work)).collect();
            all.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
        });
        let elapsed = start.elapsed().as_secs_f64();
        times.sort_by(f64::total_cmp);
        let slow = times.get(times.len() * 99 / 100).copied().ok_or("no request succeeded")?;
        let (errors, bytes) = (errors.into_inner(), bytes.into_inner());
        Ok(Self { requests: times.len() as u64, errors, bytes, elapsed, slow })
    }

    /// The time of the whole divided by the number of requests.
    pub(super) fn seconds_a_request(&self) -> f64 {
        self.elapsed / self.requests as f64
    }

    pub(super) fn text(&self) -> String {
        let Self { requests, errors, bytes, elapsed, slow } = self;
        let rate = *bytes as f64 / elapsed / 1e6;
        format!("{requests} requests, {errors} errors, {rate:.0} MB/s, 99 % within {:.0} ms", slow * 1e3)
    }
}
