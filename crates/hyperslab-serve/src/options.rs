//! The server's limits and access rules.

use std::path::PathBuf;
use std::time::Duration;

use hyperslab::{ExternalFiles, OpenOptions};

/// The server's limits and access rules.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServeOptions {
    /// Memory for the response cache and for work, in bytes.
    pub memory: u64,
    /// The time limit for the work of a request. A client must read at least 16 KiB per second of this time.
    pub timeout: Duration,
    /// The number of requests processed at once; others wait.
    pub workers: usize,
    /// The number of requests that may wait; further ones are rejected.
    pub waiting: usize,
    /// The number of connections at once; further ones wait.
    pub connections: usize,
    /// The time limit for receiving the headers of a connection's next request. An idle connection is closed after
    /// this time.
    pub header_timeout: Duration,
    /// Reject requests without this token.
    pub token: Option<String>,
    /// Origins whose pages may read responses; `*` for any.
    pub cors: Vec<String>,
    /// Host names under which the server may be accessed, besides `localhost` and IP addresses.
    pub hosts: Vec<String>,
    /// The folder of a page that replaces the embedded one.
    pub page: Option<PathBuf>,
    /// How to open stores. Regardless of these options, external files are never followed and nothing is
    /// memory-mapped.
    pub open: OpenOptions,
}

hyperslab::driver::option_setters! { ServeOptions {
    with_memory = memory: u64,
    with_timeout = timeout: Duration,
    with_workers = workers: usize,
    with_waiting = waiting: usize,
    with_connections = connections: usize,
    with_header_timeout = header_timeout: Duration,
    with_token = token: into Option<String>,
    with_cors = cors: Vec<String>,
    with_hosts = hosts: Vec<String>,
    with_page = page: into Option<PathBuf>,
    with_open = open: OpenOptions,
} }

impl Default for ServeOptions {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Self {
            memory: 1 << 30,
            timeout: Duration::from_secs(60),
            workers: cores.max(2) * 2,
            waiting: 1024,
            connections: 1024,
            header_timeout: Duration::from_secs(10),
            token: None,
            cors: Vec::new(),
            hosts: Vec::new(),
            page: None,
            open: OpenOptions::default(),
        }
    }
}

impl ServeOptions {
    /// The options for opening stores. Nothing is mapped, because a mapped file that changes could crash the process.
    pub(crate) fn open_options(&self, within: Option<PathBuf>) -> OpenOptions {
        self.open
            .clone()
            .with_mapped(false)
            .with_external(ExternalFiles::None)
            .with_memory(self.memory / 2)
            .with_within(within)
    }
}

/// Returns an unguessable token: 128 random bits in hexadecimal.
///
/// # Errors
///
/// [`Io`](hyperslab::Error::Io) if the system has no random numbers.
pub fn random_token() -> hyperslab::Result<String> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| hyperslab::Error::io("random numbers", std::io::Error::other(error.to_string())))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
