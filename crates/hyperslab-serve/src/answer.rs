//! Responses: bodies with length, entity tag and ranges; the response cache; failures.

mod body;
mod cache;
mod failure;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;

pub(crate) use body::{Blocks, HeldBody};
pub(crate) use cache::Answers;
pub(crate) use failure::Failure;

use crate::State;
use crate::stores::Opened;
use crate::work::{Held, Job};

/// The response to a request.
pub(crate) struct Answer {
    pub(crate) content: Content,
    pub(crate) kind: &'static str,
    /// The file name for a browser's download.
    pub(crate) file: Option<&'static str>,
    /// The memory reserved until it is sent.
    pub(crate) held: Option<Held>,
}

/// The body of an answer.
pub(crate) enum Content {
    /// All of it.
    Whole(Bytes),
    /// This many bytes, block by block.
    Blocks(u64, Blocks),
}

impl Answer {
    pub(crate) const fn new(kind: &'static str, body: Bytes) -> Self {
        Self { content: Content::Whole(body), kind, file: None, held: None }
    }

    pub(crate) fn json(document: &serde_json::Value) -> Self {
        Self::new("application/json", document.to_string().into())
    }

    pub(crate) fn held(mut self, held: Held) -> Self {
        self.held = Some(held);
        self
    }

    /// A complete response without a tag or ranges.
    pub(crate) fn plain(self) -> Response {
        let Content::Whole(body) = self.content else { return Failure::internal("a stream").into_response() };
        let mut response = HeldBody::wrap(body, self.held).into_response();
        put(response.headers_mut(), header::CONTENT_TYPE, self.kind);
        put(response.headers_mut(), header::CACHE_CONTROL, "no-cache");
        response
    }

    pub(crate) const fn saved_as(mut self, file: &'static str) -> Self {
        self.file = Some(file);
        self
    }
}

/// The part of a request that determines its response, and its headers.
pub(crate) struct Asked {
    /// The store's name.
    pub(crate) file: String,
    /// Everything else that the response depends on.
    pub(crate) key: String,
    pub(crate) headers: HeaderMap,
}

/// Answers a request from the cache, with "not modified", or by work on the store.
pub(crate) async fn answer(
    state: Arc<State>,
    asked: Asked,
    produce: impl FnOnce(&Opened, &Job) -> Result<Answer, Failure> + Send + 'static,
) -> Response {
    let work = Arc::clone(&state.work);
    let shown = Arc::clone(&state);
    let done = work.run(move |job| answer_now(&state, &asked, job, produce)).await;
    done.unwrap_or_else(|failure| failure.hidden(&shown.root).into_response())
}

fn answer_now(
    state: &State,
    asked: &Asked,
    job: Job,
    produce: impl FnOnce(&Opened, &Job) -> Result<Answer, Failure>,
) -> Result<Response, Failure> {
    let located = state.root.resolve(&asked.file)?;
    let opened = state.stores.open(&located)?;
    // The version of a file changes with its content, so the tag is known without reading it.
    let tag = opened.is_file.then(|| entity_tag(&(opened.version, &asked.key)));
    if let Some(tag) = &tag {
        if matches_tag(&asked.headers, tag) {
            return Ok(not_modified(tag));
        }
        if let Some((kind, file, body)) = state.answers.get(tag) {
            let answer = Answer { content: Content::Whole(body), kind, file, held: None };
            return Ok(respond(answer, Some(tag), &asked.headers, job));
        }
    }
    let answer = match produce(&opened, &job) {
        Ok(answer) => answer,
        Err(failure) => {
            if located.within.is_none() {
                state.stores.forget(&located.name);
            }
            return Err(failure);
        }
    };
    let tag = match (&answer.content, tag) {
        (Content::Whole(body), Some(tag)) => {
            state.answers.keep(&tag, answer.kind, answer.file, body);
            Some(tag)
        }
        (Content::Whole(body), None) => {
            let tag = entity_tag(&body[..]);
            if matches_tag(&asked.headers, &tag) {
                return Ok(not_modified(&tag));
            }
            Some(tag)
        }
        (Content::Blocks(..), tag) => tag,
    };
    Ok(respond(answer, tag.as_deref(), &asked.headers, job))
}

/// A tag that differs if the hashed content does.
pub(crate) fn entity_tag(content: &(impl Hash + ?Sized)) -> String {
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    format!("\"{:016x}\"", hasher.finish())
}

pub(crate) fn matches_tag(headers: &HeaderMap, tag: &str) -> bool {
    let given = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    given.is_some_and(|given| {
        given.split(',').any(|one| one.trim() == "*" || one.trim().trim_start_matches("W/") == tag)
    })
}

pub(crate) fn not_modified(tag: &str) -> Response {
    let mut response = StatusCode::NOT_MODIFIED.into_response();
    put(response.headers_mut(), header::ETAG, tag);
    put(response.headers_mut(), header::CACHE_CONTROL, "no-cache");
    response
}

fn respond(answer: Answer, tag: Option<&str>, headers: &HeaderMap, job: Job) -> Response {
    let (status, length, range, body) = match answer.content {
        Content::Whole(body) => {
            let total = body.len() as u64;
            match wanted_range(headers, tag, total) {
                None => (StatusCode::OK, total, None, HeldBody::wrap(body, answer.held)),
                Some(Ok((start, end))) => {
                    let part = body.slice(start as usize..end as usize);
                    let shown = format!("bytes {start}-{}/{total}", end - 1);
                    (StatusCode::PARTIAL_CONTENT, end - start, Some(shown), HeldBody::wrap(part, answer.held))
                }
                Some(Err(())) => {
                    let shown = format!("bytes */{total}");
                    (StatusCode::RANGE_NOT_SATISFIABLE, 0, Some(shown), Body::empty())
                }
            }
        }
        Content::Blocks(length, blocks) => (StatusCode::OK, length, None, blocks.pump(job)),
    };
    let mut response = (status, body).into_response();
    let out = response.headers_mut();
    put(out, header::CONTENT_TYPE, answer.kind);
    put(out, header::CONTENT_LENGTH, &length.to_string());
    put(out, header::ACCEPT_RANGES, "bytes");
    // A browser revalidates each time and gets "not modified".
    put(out, header::CACHE_CONTROL, "no-cache");
    if let Some(range) = range {
        put(out, header::CONTENT_RANGE, &range);
    }
    if let Some(tag) = tag {
        put(out, header::ETAG, tag);
    }
    if let Some(file) = answer.file {
        put(out, header::CONTENT_DISPOSITION, &format!("attachment; filename=\"{file}\""));
    }
    response
}

pub(crate) fn put(headers: &mut HeaderMap, name: header::HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

/// The first byte of a range and the one past its last; `Err` for a range outside the body. A request for several ranges gets the
/// whole body, which the protocol allows. So does one for a range of another version of the body.
fn wanted_range(headers: &HeaderMap, tag: Option<&str>, total: u64) -> Option<Result<(u64, u64), ()>> {
    if headers.get(header::IF_RANGE).is_some_and(|version| Some(version.as_bytes()) != tag.map(str::as_bytes))
    {
        return None;
    }
    let text = headers.get(header::RANGE)?.to_str().ok()?.strip_prefix("bytes=")?.trim();
    let (first, last) = text.split_once('-')?;
    let number = |text: &str| text.trim().parse::<u64>();
    let range = match (first.trim().is_empty(), last.trim().is_empty()) {
        (true, false) => {
            let count = number(last).ok()?;
            (total.saturating_sub(count), total)
        }
        (false, true) => (number(first).ok()?, total),
        (false, false) => {
            let (first, last) = (number(first).ok()?, number(last).ok()?);
            if last < first {
                return None;
            }
            (first, last.saturating_add(1).min(total))
        }
        (true, true) => return None,
    };
    Some(if range.0 < range.1 { Ok(range) } else { Err(()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_understood() {
        let range = |text: &str| {
            let mut headers = HeaderMap::new();
            put(&mut headers, header::RANGE, text);
            wanted_range(&headers, None, 10)
        };
        assert_eq!(range("bytes=0-3"), Some(Ok((0, 4))));
        assert_eq!(range("bytes=8-"), Some(Ok((8, 10))));
        assert_eq!(range("bytes=-3"), Some(Ok((7, 10))));
        assert_eq!(range("bytes=-30"), Some(Ok((0, 10))));
        assert_eq!(range("bytes=5-99"), Some(Ok((5, 10))));
        assert_eq!(range("bytes=10-"), Some(Err(())));
        assert_eq!(range("bytes=4-2"), None);
        assert_eq!(range("bytes=0-1,3-4"), None);
        assert_eq!(range("items=0-1"), None);
    }
}
