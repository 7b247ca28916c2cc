//! Parses requests and writes responses.

use std::io::{self, BufRead, Read};

/// A request.
#[derive(Debug, Default)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) range: Option<String>,
    pub(super) if_match: Option<String>,
    pub(super) if_none_match: Option<String>,
    pub(super) copy_source: Option<String>,
    /// Headers that describe an object.
    pub(super) metadata: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

/// A response.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Vec<u8>,
}

impl Answer {
    pub(super) fn plain(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Vec::new() }
    }

    /// An error document, including details that must not appear in messages.
    pub(super) fn error(status: u16, code: &str) -> Self {
        let body = format!(
            "<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>no</Message>\
             <AWSAccessKeyId>told-key</AWSAccessKeyId><StringToSign>told-secret</StringToSign></Error>"
        );
        Self::document(status, body)
    }

    pub(super) fn document(status: u16, body: String) -> Self {
        Self {
            status,
            headers: vec![("Content-Type", "application/xml".to_owned())],
            body: body.into_bytes(),
        }
    }

    /// The status line and the headers.
    pub(super) fn head(&self) -> String {
        let mut head = format!("HTTP/1.1 {} X\r\n", self.status);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("Content-Length: {}\r\n\r\n", self.body.len()));
        head
    }
}

pub(super) fn entity_tag(metadata: &std::fs::Metadata) -> String {
    let changed = metadata.modified().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    format!("\"{:x}-{:x}\"", changed.map_or(0, |at| at.as_nanos()), metadata.len())
}

/// The modification time in HTTP's format.
pub(super) fn http_date(metadata: &std::fs::Metadata) -> String {
    let changed = metadata.modified().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    let seconds = changed.map_or(0, |at| at.as_secs());
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let name = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"][(days % 7) as usize];
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    let month = months[(month - 1) as usize];
    format!("{name}, {day:02} {month} {year} {hour:02}:{minute:02}:{second:02} GMT")
}

/// The year, month and day of a day since 1970.
fn civil(mut day: u64) -> (u64, u64, u64) {
    let leap = |year: u64| year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    let mut year = 1970;
    while day >= 365 + u64::from(leap(year)) {
        day -= 365 + u64::from(leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while day >= lengths[month] {
        day -= lengths[month];
        month += 1;
    }
    (year, month as u64 + 1, day + 1)
}

/// The first byte and the end of the range; `None` if the range cannot be satisfied.
pub(super) fn parse_range(range: &str, size: u64) -> Option<(u64, u64)> {
    let (start, end) = range.strip_prefix("bytes=")?.split_once('-')?;
    if start.is_empty() {
        let length: u64 = end.parse().ok()?;
        return (size > 0 && length > 0).then(|| (size.saturating_sub(length), size));
    }
    let start: u64 = start.parse().ok()?;
    let end = if end.is_empty() { size } else { end.parse::<u64>().ok()?.saturating_add(1).min(size) };
    (start < end).then_some((start, end))
}

pub(super) fn percent_decoded(text: &str) -> String {
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

pub(super) fn read_request(reader: &mut impl BufRead) -> io::Result<Option<Request>> {
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
    let mut length = 0_u64;
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
            "if-none-match" => request.if_none_match = Some(value),
            "x-amz-copy-source" => request.copy_source = Some(value),
            "content-length" => length = value.parse().unwrap_or(0),
            other if other.starts_with("x-amz-meta-") => request.metadata.push((other.to_owned(), value)),
            _ => {}
        }
    }
    reader.take(length).read_to_end(&mut request.body)?;
    Ok(Some(request))
}
