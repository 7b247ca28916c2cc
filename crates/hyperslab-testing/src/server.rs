//! A web server with latency, limited bandwidth, faults and a log, for testing remote storage.
//!
//! It serves the files of a folder for `GET` and `HEAD`, with byte ranges, entity tags and conditions. It also
//! understands S3 requests: top-level folders are buckets, `GET /bucket?list-type=2&prefix=…` lists one, and objects
//! can be put, copied, removed and uploaded in parts, with conditions.
//!
//! | module | contents |
//! |---|---|
//! | `behaviour` | [`Behaviour`], [`Fault`]: latency, limits and faults |
//! | `http` | parsing requests and writing responses |
//! | `bucket` | S3 operations: listings, uploads, removals |

mod behaviour;
mod bucket;
mod http;

use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub use behaviour::{Behaviour, FaultRule, WireFault};
use bucket::Uploads;
use http::{Answer, Request, entity_tag, parse_range, percent_decoded, read_request};

/// One request and its response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// `GET`, `HEAD`, `PUT`, `POST` or `DELETE`.
    pub method: String,
    /// The path, with the query.
    pub path: String,
    /// The `Range` header.
    pub range: Option<String>,
    /// The status code.
    pub status: u16,
    /// The number of bytes in the response body.
    pub bytes: u64,
}

/// A function that runs before a request is answered, such as another writer.
type Hook = Box<dyn FnOnce() + Send>;

struct Shared {
    root: PathBuf,
    behaviour: Mutex<Behaviour>,
    log: Mutex<Vec<Answered>>,
    stop: AtomicBool,
    /// The number of requests since the behaviour was set.
    number: AtomicU64,
    /// The number of requests in progress, and its maximum.
    busy: AtomicU64,
    most: AtomicU64,
    uploads: Mutex<Uploads>,
    /// A function to run before the request with this number.
    hook: Mutex<Option<(u64, Hook)>>,
}

/// A running server. It stops when dropped.
pub struct WebServer {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl std::fmt::Debug for WebServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebServer").field("address", &self.address).finish_non_exhaustive()
    }
}

impl WebServer {
    /// Serves a folder on a free port of this machine.
    ///
    /// # Errors
    ///
    /// If no port is available.
    pub fn start(root: impl Into<PathBuf>) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            root: root.into(),
            behaviour: Mutex::default(),
            log: Mutex::default(),
            stop: AtomicBool::new(false),
            number: AtomicU64::new(0),
            busy: AtomicU64::new(0),
            most: AtomicU64::new(0),
            uploads: Mutex::default(),
            hook: Mutex::default(),
        });
        let own = Arc::clone(&shared);
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                if own.stop.load(Ordering::Relaxed) {
                    return;
                }
                let (Ok(connection), own) = (connection, Arc::clone(&own)) else { continue };
                std::thread::spawn(move || {
                    // If a client disconnects, its connection ends.
                    let _ = own.serve(&connection);
                });
            }
        });
        Ok(Self { address, shared })
    }

    /// The URL of a file: `http://127.0.0.1:PORT/KEY`.
    #[must_use]
    pub fn url(&self, key: &str) -> String {
        format!("http://{}/{key}", self.address)
    }

    /// The S3 endpoint.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Changes the behaviour and resets the request counter.
    pub fn behave(&self, behaviour: Behaviour) {
        let mut held = held(&self.shared.behaviour);
        self.shared.number.store(0, Ordering::SeqCst);
        *held = behaviour;
    }

    /// Runs a function once, before the response to the request with this number, counted from the last
    /// [`behave`](Self::behave).
    pub fn before_request(&self, number: u64, hook: impl FnOnce() + Send + 'static) {
        *held(&self.shared.hook) = Some((number, Box::new(hook)));
    }

    /// Takes the requests answered since the last call.
    #[must_use]
    pub fn take_log(&self) -> Vec<Answered> {
        std::mem::take(&mut *held(&self.shared.log))
    }

    /// The maximum number of concurrent requests since the last call.
    #[must_use]
    pub fn take_most_at_once(&self) -> u64 {
        self.shared.most.swap(0, Ordering::Relaxed)
    }

    /// The number of uploads in parts that were neither completed nor aborted.
    #[must_use]
    pub fn open_uploads(&self) -> usize {
        held(&self.shared.uploads).len()
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

/// Makes the end of a connection a reset.
fn reset(connection: &TcpStream) -> io::Result<bool> {
    socket2::SockRef::from(connection).set_linger(Some(Duration::ZERO))?;
    Ok(false)
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

    /// Answers a request. Returns `false` if the connection must be closed.
    fn answer(&self, request: &Request, connection: &TcpStream) -> io::Result<bool> {
        let (behaviour, fault) = {
            let mut behaviour = held(&self.behaviour);
            let number = self.number.fetch_add(1, Ordering::SeqCst);
            let fault = behaviour.fault_of(number, request);
            let hook = held(&self.hook).take_if(|(at, _)| *at == number);
            let copy = behaviour.clone();
            drop(behaviour);
            if let Some((_, hook)) = hook {
                hook();
            }
            (copy, fault)
        };
        std::thread::sleep(behaviour.latency);
        if fault == Some(WireFault::Reset) {
            self.note(request, &Answer::plain(0));
            return reset(connection);
        }
        let mut answer = match fault.and_then(WireFault::refusal) {
            Some(answer) => answer,
            None => self.respond(request, &behaviour)?,
        };
        if fault == Some(WireFault::Lost) {
            self.note(request, &answer);
            return reset(connection);
        }
        if fault == Some(WireFault::Silence) {
            self.note(request, &answer);
            self.wait_for_end();
            return Ok(false);
        }
        if let Some(fault) = fault {
            answer.apply_fault(fault);
        }
        self.note(request, &answer);
        self.send(request, &answer, &behaviour, fault, connection)
    }

    fn note(&self, request: &Request, answer: &Answer) {
        held(&self.log).push(Answered {
            method: request.method.clone(),
            path: request.path.clone(),
            range: request.range.clone(),
            status: answer.status,
            bytes: if request.method == "HEAD" { 0 } else { answer.body.len() as u64 },
        });
    }

    fn send(
        &self,
        request: &Request,
        answer: &Answer,
        behaviour: &Behaviour,
        fault: Option<WireFault>,
        mut connection: &TcpStream,
    ) -> io::Result<bool> {
        connection.write_all(answer.head().as_bytes())?;
        if request.method == "HEAD" {
            return Ok(true);
        }
        let half = matches!(fault, Some(WireFault::Cut | WireFault::Stall));
        let body = if half { &answer.body[..answer.body.len() / 2] } else { &answer.body[..] };
        for piece in body.chunks(64 << 10) {
            connection.write_all(piece)?;
            if behaviour.bandwidth > 0 {
                std::thread::sleep(Duration::from_secs_f64(piece.len() as f64 / behaviour.bandwidth as f64));
            }
        }
        if fault == Some(WireFault::Stall) {
            self.wait_for_end();
        }
        Ok(!half)
    }

    /// Waits until the server stops.
    fn wait_for_end(&self) {
        while !self.stop.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn respond(&self, request: &Request, behaviour: &Behaviour) -> io::Result<Answer> {
        if let Some(elsewhere) = &behaviour.redirect {
            let mut answer = Answer::plain(307);
            answer.headers.push(("Location", format!("{elsewhere}{}", request.path)));
            return Ok(answer);
        }
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        let key = percent_decoded(path.trim_start_matches('/'));
        if query.contains("list-type=2") {
            return if behaviour.no_lists {
                Ok(Answer::error(403, "AccessDenied"))
            } else {
                self.listing(&key, query)
            };
        }
        if !matches!(request.method.as_str(), "GET" | "HEAD") {
            return self.write(&key, query, request);
        }
        let missing = if behaviour.denies_missing { 403 } else { 404 };
        let code = if behaviour.denies_missing { "AccessDenied" } else { "NoSuchKey" };
        if key.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Ok(Answer::error(missing, code));
        }
        let path = self.root.join(&key);
        let Ok(metadata) = std::fs::metadata(&path) else { return Ok(Answer::error(missing, code)) };
        if !metadata.is_file() {
            return Ok(Answer::error(missing, code));
        }
        self.object(&path, &metadata, request, behaviour)
    }

    /// Responds with an object, or a part of it.
    fn object(
        &self,
        path: &std::path::Path,
        metadata: &std::fs::Metadata,
        request: &Request,
        behaviour: &Behaviour,
    ) -> io::Result<Answer> {
        let (tag, size) = (entity_tag(metadata), metadata.len());
        let mut headers = vec![("Accept-Ranges", "bytes".to_owned())];
        if !behaviour.no_tags {
            headers.push(("ETag", if behaviour.weak_tags { format!("W/{tag}") } else { tag.clone() }));
        }
        headers.push(("Last-Modified", http::http_date(metadata)));
        let held = held(&self.uploads).metadata_of(path);
        headers.extend(held);
        // A weak tag never matches.
        if request.if_match.as_ref().is_some_and(|wanted| *wanted != tag || behaviour.weak_tags) {
            return Ok(Answer::plain(412));
        }
        let range = request.range.as_ref().filter(|_| !behaviour.no_ranges);
        let (status, start, end) = match range {
            None => (200, 0, size),
            Some(range) if range.starts_with("bytes=-") && behaviour.no_suffix => {
                return Ok(Answer::plain(400));
            }
            Some(range) => match parse_range(range, size) {
                Some((start, end)) => {
                    headers.push(("Content-Range", format!("bytes {start}-{}/{size}", end - 1)));
                    (206, start, end)
                }
                None => return Ok(Answer::plain(416)),
            },
        };
        let mut body = Vec::new();
        let mut file = std::fs::File::open(path)?;
        file.seek(SeekFrom::Start(start))?;
        file.take(end - start).read_to_end(&mut body)?;
        Ok(Answer { status, headers, body })
    }
}
