//! What a server may use, and who may ask it.

use std::path::PathBuf;
use std::time::Duration;

use hyperslab::{ExternalFiles, OpenOptions};

/// What a server may use, and who may ask it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServeOptions {
    /// Memory for answers that are kept and for work, in bytes.
    pub memory: u64,
    /// The longest that the work for a request may take. A client must read at least 16 KiB per second of this time.
    pub timeout: Duration,
    /// Requests that are worked on at once; others wait.
    pub workers: usize,
    /// Requests that may wait; further ones are refused.
    pub waiting: usize,
    /// Connections at once; further ones wait.
    pub connections: usize,
    /// The longest that a connection may take to send the headers of its next request. An idle connection is closed after this
    /// time.
    pub header_timeout: Duration,
    /// Refuse requests without this token.
    pub token: Option<String>,
    /// Origins whose pages may read answers; `*` for any.
    pub cors: Vec<String>,
    /// Names by which the server may be addressed, besides `localhost` and addresses.
    pub hosts: Vec<String>,
    /// The folder of a page that replaces the embedded one.
    pub page: Option<PathBuf>,
    /// How stores are opened. External files are never followed and nothing is mapped, whatever this says.
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
    /// How a store is opened for strangers: files that change underneath must not end the process, so nothing is mapped.
    pub(crate) fn open_options(&self, within: Option<PathBuf>) -> OpenOptions {
        self.open
            .clone()
            .with_mapped(false)
            .with_external(ExternalFiles::None)
            .with_memory(self.memory / 2)
            .with_within(within)
    }
}

/// A token that nobody can guess: 128 random bits in hexadecimal digits.
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
