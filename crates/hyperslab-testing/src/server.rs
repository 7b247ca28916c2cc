//! A web server with a latency, a bandwidth, faults and a log: what remote storage is measured against.
//!
//! It serves the files of a folder to `GET` and `HEAD` with byte ranges, entity tags and conditions. Asked for a listing in
//! the language of S3 (`GET /bucket?list-type=2&prefix=…`), it answers as a bucket would: its first folders are buckets.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How the server behaves.
#[derive(Debug, Clone, Default)]
pub struct Behaviour {
    /// Before each answer.
    pub latency: Duration,
    /// Bytes a second on each connection; zero is as fast as it goes.
    pub bandwidth: u64,
    /// Ranges are ignored: every answer is the whole object.
    pub no_ranges: bool,
    /// Suffix ranges are refused.
    pub no_suffix: bool,
    /// Listings are refused.
    pub no_lists: bool,
    /// So many of the next requests are answered with this status.
    pub fail: Option<(u16, u64)>,
    /// So many of the next answers end in the middle of the body.
    pub cut: u64,
}

/// One request, as it was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// `GET` or `HEAD`.
    pub method: String,
    /// The path, with the query.
    pub path: String,
    /// The range header.
    pub range: Option<String>,
    /// The status.
    pub status: u16,
    /// Bytes of the body.
    pub bytes: u64,
}

#[derive(Debug)]
struct Shared {
    root: PathBuf,
    behaviour: Mutex<Behaviour>,
    log: Mutex<Vec<Answered>>,
    stop: AtomicBool,
    /// Requests that are being answered, and the most there ever were at once.
    busy: AtomicU64,
    most: AtomicU64,
}

/// A running server. Stops when it is dropped.
#[derive(Debug)]
pub struct WebServer {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl WebServer {
    /// Serves a folder on a free port of this machine.
    ///
    /// # Errors
    ///
    /// When no port is to be had.
    pub fn start(root: impl Into<PathBuf>) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            root: root.into(),
            behaviour: Mutex::default(),
            log: Mutex::default(),
            stop: AtomicBool::new(false),
            busy: AtomicU64::new(0),
            most: AtomicU64::new(0),
        });
        let own = Arc::clone(&shared);
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                if own.stop.load(Ordering::Relaxed) {
                    return;
                }
                let (Ok(connection), own) = (connection, Arc::clone(&own)) else { continue };
                std::thread::spawn(move || {
                    // A client that goes away ends its connection.
                    let _ = own.serve(&connection);
                });
            }
        });
        Ok(Self { address, shared })
    }

    /// The address of a file: `http://127.0.0.1:PORT/KEY`.
    #[must_use]
    pub fn url(&self, key: &str) -> String {
        format!("http://{}/{key}", self.address)
    }

    /// The address of the server, for those who take it for S3.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Changes how it behaves.
    pub fn behave(&self, behaviour: Behaviour) {
        *held(&self.shared.behaviour) = behaviour;
    }

    /// What was answered since the last time.
    #[must_use]
    pub fn take_log(&self) -> Vec<Answered> {
        std::mem::take(&mut *held(&self.shared.log))
    }

    /// The most requests that were being answered at once, since the last time.
    #[must_use]
    pub fn take_most_at_once(&self) -> u64 {
        self.shared.most.swap(0, Ordering::Relaxed)
    }
}

impl Drop for WebServer {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        // Wakes the thread that waits for connections.
        let _ = TcpStream::connect(self.address);
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A request's head.
#[derive(Debug, Default)]
struct Request {
    method: String,
    path: String,
    range: Option<String>,
    if_match: Option<String>,
    length: usize,
}

/// What is sent back.
#[derive(Debug)]
struct Answer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

impl Answer {
    fn plain(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Vec::new() }
    }
}

impl Shared {
    fn serve(&self, connection: &TcpStream) -> io::Result<()> {
        connection.set_nodelay(true)?;
        let mut reader = BufReader::new(connection);
        while let Some(request) = read_request(&mut reader)? {
            if self.stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            let now = self.busy.fetch_add(1, Ordering::Relaxed) + 1;
            self.most.fetch_max(now, Ordering::Relaxed);
            let answered = self.answer(&request, connection);
            self.busy.fetch_sub(1, Ordering::Relaxed);
            if !answered? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Answers a request; `false` when the connection is to be cut.
    fn answer(&self, request: &Request, mut connection: &TcpStream) -> io::Result<bool> {
        let (behaviour, cut, failing) = {
            let mut behaviour = held(&self.behaviour);
            let failing = match &mut behaviour.fail {
                Some((status, left)) if *left > 0 => {
                    *left -= 1;
                    Some(*status)
                }
                _ => None,
            };
            let cut = failing.is_none() && behaviour.cut > 0;
            behaviour.cut = behaviour.cut.saturating_sub(u64::from(cut));
            (behaviour.clone(), cut, failing)
        };
        std::thread::sleep(behaviour.latency);
        let answer = match failing {
            Some(status) => Answer::plain(status),
            None => self.respond(request, &behaviour)?,
        };
        let head_only = request.method == "HEAD";
        held(&self.log).push(Answered {
            method: request.method.clone(),
            path: request.path.clone(),
            range: request.range.clone(),
            status: answer.status,
            bytes: if head_only { 0 } else { answer.body.len() as u64 },
        });
        let mut head = format!("HTTP/1.1 {} X\r\n", answer.status);
        for (name, value) in &answer.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("Content-Length: {}\r\n\r\n", answer.body.len()));
        connection.write_all(head.as_bytes())?;
        if head_only {
            return Ok(true);
        }
        let body = if cut { &answer.body[..answer.body.len() / 2] } else { &answer.body[..] };
        for piece in body.chunks(64 << 10) {
            connection.write_all(piece)?;
            if behaviour.bandwidth > 0 {
                std::thread::sleep(Duration::from_secs_f64(piece.len() as f64 / behaviour.bandwidth as f64));
            }
        }
        Ok(!cut)
    }

    fn respond(&self, request: &Request, behaviour: &Behaviour) -> io::Result<Answer> {
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        let key = percent_decoded(path.trim_start_matches('/'));
        if query.contains("list-type=2") {
            return if behaviour.no_lists { Ok(Answer::plain(403)) } else { self.listing(&key, query) };
        }
        if key.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Ok(Answer::plain(404));
        }
        let path = self.root.join(&key);
        let Ok(metadata) = std::fs::metadata(&path) else { return Ok(Answer::plain(404)) };
        if !metadata.is_file() {
            return Ok(Answer::plain(404));
        }
        let tag = entity_tag(&metadata);
        let body = std::fs::read(&path)?;
        let mut headers = vec![
            ("ETag", tag.clone()),
            ("Last-Modified", "Wed, 18 Nov 2026 00:00:00 GMT".to_owned()),
            ("Accept-Ranges", "bytes".to_owned()),
        ];
        if request.if_match.as_ref().is_some_and(|wanted| *wanted != tag) {
            return Ok(Answer::plain(412));
        }
        let Some(range) = request.range.as_ref().filter(|_| !behaviour.no_ranges) else {
            return Ok(Answer { status: 200, headers, body });
        };
        let suffix = range.starts_with("bytes=-");
        if suffix && behaviour.no_suffix {
            return Ok(Answer::plain(400));
        }
        let Some((start, end)) = parse_range(range, body.len()) else { return Ok(Answer::plain(416)) };
        headers.push(("Content-Range", format!("bytes {start}-{}/{}", end - 1, body.len())));
        Ok(Answer { status: 206, headers, body: body[start..end].to_vec() })
    }

    /// A listing in the language of S3.
    fn listing(&self, bucket: &str, query: &str) -> io::Result<Answer> {
        let value = |name: &str| {
            let of = |pair: &str| {
                pair.split_once('=').filter(|(own, _)| *own == name).map(|(_, value)| percent_decoded(value))
            };
            query.split('&').find_map(of).unwrap_or_default()
        };
        let (prefix, delimiter) = (value("prefix"), value("delimiter"));
        let root = self.root.join(bucket.trim_end_matches('/'));
        let mut keys = Vec::new();
        collect(&root, "", &mut keys)?;
        keys.sort();
        let mut folders: Vec<String> = Vec::new();
        let mut xml =
            String::from("<?xml version=\"1.0\"?><ListBucketResult><IsTruncated>false</IsTruncated>");
        for (key, size) in keys.iter().filter(|(key, _)| key.starts_with(&prefix)) {
            if !delimiter.is_empty()
                && let Some(end) = key[prefix.len()..].find(&delimiter)
            {
                let folder = key[..prefix.len() + end + delimiter.len()].to_owned();
                if folders.last() != Some(&folder) {
                    folders.push(folder);
                }
                continue;
            }
            xml.push_str(&format!(
                "<Contents><Key>{key}</Key><LastModified>2026-11-18T00:00:00.000Z</LastModified><ETag>\"x\"</ETag><Size>{size}</Size></Contents>"
            ));
        }
        for folder in folders {
            xml.push_str(&format!("<CommonPrefixes><Prefix>{folder}</Prefix></CommonPrefixes>"));
        }
        xml.push_str("</ListBucketResult>");
        let headers = vec![("Content-Type", "application/xml".to_owned())];
        Ok(Answer { status: 200, headers, body: xml.into_bytes() })
    }
}

fn collect(folder: &Path, prefix: &str, keys: &mut Vec<(String, u64)>) -> io::Result<()> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(()) };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let key = format!("{prefix}{name}");
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), &format!("{key}/"), keys)?;
        } else {
            keys.push((key, entry.metadata()?.len()));
        }
    }
    Ok(())
}

fn entity_tag(metadata: &std::fs::Metadata) -> String {
    let changed = metadata.modified().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    format!("\"{:x}-{:x}\"", changed.map_or(0, |at| at.as_nanos()), metadata.len())
}

/// The first byte and the one after the last; `None` when the range cannot be satisfied.
fn parse_range(range: &str, size: usize) -> Option<(usize, usize)> {
    let (start, end) = range.strip_prefix("bytes=")?.split_once('-')?;
    if start.is_empty() {
        let length: usize = end.parse().ok()?;
        return (size > 0 && length > 0).then(|| (size.saturating_sub(length), size));
    }
    let start: usize = start.parse().ok()?;
    let end = if end.is_empty() { size } else { end.parse::<usize>().ok()?.saturating_add(1).min(size) };
    (start < end).then_some((start, end))
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let coded = tail.get(..2).filter(|_| *first == b'%').and_then(|code| std::str::from_utf8(code).ok());
        match coded.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn read_request(reader: &mut impl BufRead) -> io::Result<Option<Request>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let mut request = Request {
        method: words.next().unwrap_or_default().to_owned(),
        path: words.next().unwrap_or_default().to_owned(),
        ..Request::default()
    };
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        let Some((name, value)) = line.split_once(':') else { continue };
        let value = value.trim().to_owned();
        match name.to_ascii_lowercase().as_str() {
            "range" => request.range = Some(value),
            "if-match" => request.if_match = Some(value),
            "content-length" => request.length = value.parse().unwrap_or(0),
            _ => {}
        }
    }
    io::copy(&mut reader.take(request.length as u64), &mut io::sink())?;
    Ok(Some(request))
}
