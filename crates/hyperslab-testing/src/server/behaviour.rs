//! How the server behaves, and what goes wrong.

use std::time::Duration;

use super::http::Answer;

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
    /// An object that is not there is answered with "forbidden", as buckets do that may not be listed.
    pub denies_missing: bool,
    /// Objects have no entity tags.
    pub no_tags: bool,
    /// Entity tags are weak, so that no condition on them holds.
    pub weak_tags: bool,
    /// Every request is redirected to the same path of this server.
    pub redirect: Option<String>,
    /// So many of the next requests are answered with this status.
    pub fail: Option<(u16, u64)>,
    /// So many of the next answers end in the middle of the body.
    pub cut: u64,
    /// The request of this number, and those after it up to a number of faults, meet a fault.
    pub fault: Option<(u64, u64, WireFault)>,
}

impl Behaviour {
    /// A fault at the request of this number, once.
    #[must_use]
    pub fn fault_at(number: u64, fault: WireFault) -> Self {
        Self { fault: Some((number, 1, fault)), ..Self::default() }
    }

    /// A fault at every request from this number on.
    #[must_use]
    pub fn fault_from(number: u64, fault: WireFault) -> Self {
        Self { fault: Some((number, u64::MAX, fault)), ..Self::default() }
    }

    /// The fault of the request of this number, used up.
    pub(super) fn fault_of(&mut self, number: u64) -> Option<WireFault> {
        if let Some((status, left)) = &mut self.fail
            && *left > 0
        {
            *left -= 1;
            return Some(WireFault::Status(*status));
        }
        if self.cut > 0 {
            self.cut -= 1;
            return Some(WireFault::Cut);
        }
        let (first, count, fault) = self.fault?;
        (number >= first && number - first < count).then_some(fault)
    }
}

/// What goes wrong with one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireFault {
    /// It is answered with this status, and nothing is done.
    Status(u16),
    /// As `Status`, with a `Retry-After` header of so many seconds.
    RetryAfter(u16, u64),
    /// It is answered with this status and an error document with this code.
    Error(u16, &'static str),
    /// The connection ends without an answer, and nothing is done.
    Reset,
    /// It is done, and the connection ends without an answer.
    Lost,
    /// The answer ends in the middle.
    Cut,
    /// Nothing more comes after the middle of the answer, and the connection stays open.
    Stall,
    /// The answer has fewer bytes than its range says, and its length agrees with the bytes.
    Short,
    /// The answer has more bytes than its range says, and its length agrees with the bytes.
    Long,
    /// The answer says that it is another range than was asked for.
    Shifted,
}

impl WireFault {
    /// The answer, where nothing is done.
    pub(super) fn refusal(self) -> Option<Answer> {
        match self {
            Self::Status(status) => Some(Answer::plain(status)),
            Self::RetryAfter(status, seconds) => {
                let mut answer = Answer::plain(status);
                answer.headers.push(("Retry-After", seconds.to_string()));
                Some(answer)
            }
            Self::Error(status, code) => Some(Answer::error(status, code)),
            _ => None,
        }
    }
}

impl Answer {
    /// Makes an answer wrong.
    pub(super) fn spoil(&mut self, fault: WireFault) {
        match fault {
            WireFault::Short if self.status < 300 => {
                self.body.pop();
            }
            WireFault::Long if self.status < 300 => self.body.push(0),
            WireFault::Shifted => {
                for (name, value) in &mut self.headers {
                    if *name == "Content-Range" {
                        *value = shifted(value);
                    }
                }
            }
            _ => {}
        }
    }
}

/// A content range that starts and ends a byte later.
fn shifted(range: &str) -> String {
    let parts: Vec<u64> =
        range.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect();
    match parts[..] {
        [start, end, size] => format!("bytes {}-{}/{}", start + 1, end + 1, size + 1),
        _ => range.to_owned(),
    }
}
