//! The behaviour of the server, including faults.

use std::time::Duration;

use super::http::{Answer, Request};

/// The behaviour of the server.
#[derive(Debug, Clone, Default)]
pub struct Behaviour {
    /// The delay before each response.
    pub latency: Duration,
    /// Bytes per second on each connection; zero for no limit.
    pub bandwidth: u64,
    /// Ignore ranges: every response is the whole object.
    pub no_ranges: bool,
    /// Reject suffix ranges.
    pub no_suffix: bool,
    /// Reject listings.
    pub no_lists: bool,
    /// Respond to missing objects with "forbidden", like buckets without permission to list.
    pub denies_missing: bool,
    /// Send no entity tags.
    pub no_tags: bool,
    /// Send weak entity tags, which never satisfy a condition.
    pub weak_tags: bool,
    /// Redirect every request to the same path on this server.
    pub redirect: Option<String>,
    /// Respond with this status to this many of the next requests.
    pub fail: Option<(u16, u64)>,
    /// End this many of the next responses in the middle of the body.
    pub cut: u64,
    /// A fault for requests from this number on: the first number, the number of faults, and the fault.
    pub fault: Option<(u64, u64, WireFault)>,
    /// Faults for some requests.
    pub rules: Vec<FaultRule>,
}

/// Faults of requests with a method and a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaultRule {
    method: &'static str,
    path: String,
    skip: u64,
    left: u64,
    fault: WireFault,
}

impl FaultRule {
    /// A fault of every request with this method (empty for any) and this part of the path and query.
    #[must_use]
    pub fn new(method: &'static str, path: impl Into<String>, fault: WireFault) -> Self {
        Self { method, path: path.into(), skip: 0, left: u64::MAX, fault }
    }

    /// Limits the number of faults.
    #[must_use]
    pub fn times(mut self, count: u64) -> Self {
        self.left = count;
        self
    }

    /// Lets this many requests through first.
    #[must_use]
    pub fn after(mut self, count: u64) -> Self {
        self.skip = count;
        self
    }

    /// Returns true if the rule applies to a request, and counts it.
    fn take(&mut self, request: &Request) -> bool {
        let is_meant =
            (self.method.is_empty() || self.method == request.method) && request.path.contains(&self.path);
        if !is_meant || self.left == 0 {
            return false;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        self.left -= 1;
        true
    }
}

impl Behaviour {
    /// A fault at the request with this number, once.
    #[must_use]
    pub fn fault_at(number: u64, fault: WireFault) -> Self {
        Self { fault: Some((number, 1, fault)), ..Self::default() }
    }

    /// A fault at every request from this number on.
    #[must_use]
    pub fn fault_from(number: u64, fault: WireFault) -> Self {
        Self { fault: Some((number, u64::MAX, fault)), ..Self::default() }
    }

    /// Faults by method and path.
    #[must_use]
    pub fn with_rules(rules: impl IntoIterator<Item = FaultRule>) -> Self {
        Self { rules: rules.into_iter().collect(), ..Self::default() }
    }

    /// Takes the fault for the request with this number.
    pub(super) fn fault_of(&mut self, number: u64, request: &Request) -> Option<WireFault> {
        let by_rule = self.rules.iter_mut().find_map(|rule| rule.take(request).then_some(rule.fault));
        if by_rule.is_some() {
            return by_rule;
        }
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

/// A fault of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireFault {
    /// Responds with this status. The request has no effect.
    Status(u16),
    /// Like `Status`, with a `Retry-After` header in seconds.
    RetryAfter(u16, u64),
    /// Responds with this status and an error document with this code.
    Error(u16, &'static str),
    /// Resets the connection without a response. The request has no effect.
    Reset,
    /// Processes the request, then resets the connection without a response.
    Lost,
    /// Processes the request, but never responds. Keeps the connection open.
    Silence,
    /// Ends the response in the middle.
    Cut,
    /// Stops in the middle of the response and keeps the connection open.
    Stall,
    /// The response has fewer bytes than requested, with a matching length.
    Short,
    /// The response has more bytes than requested, with a matching length.
    Long,
    /// The response states another range than the requested one.
    Shifted,
}

impl WireFault {
    /// The response, if the request has no effect.
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
    /// Makes a response wrong.
    pub(super) fn apply_fault(&mut self, fault: WireFault) {
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
