//! The pages: the built-in one, which needs no build step, and H5Web if it was built.

use std::path::{Component, Path};
use std::sync::Arc;

use axum::extract::{Path as Named, State as Shared};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Redirect, Response};
use bytes::Bytes;

use crate::State;
use crate::answer::{Failure, entity_tag, matches_tag, not_modified, put};

/// A file of a page: its name and content.
type PageFile = (&'static str, &'static [u8]);

/// The files of the built-in page.
const OWN: &[PageFile] = &[
    ("index.html", include_bytes!("../page/index.html")),
    ("style.css", include_bytes!("../page/style.css")),
    ("app.js", include_bytes!("../page/app.js")),
    ("tree.js", include_bytes!("../page/tree.js")),
    ("server.js", include_bytes!("../page/server.js")),
    ("array.js", include_bytes!("../page/array.js")),
    ("draw.js", include_bytes!("../page/draw.js")),
    ("colour.js", include_bytes!("../page/colour.js")),
    ("table.js", include_bytes!("../page/table.js")),
    ("geometry.js", include_bytes!("../page/geometry.js")),
    ("dom.js", include_bytes!("../page/dom.js")),
    ("json.js", include_bytes!("../page/json.js")),
];

/// The files of H5Web, if they were built.
#[cfg(feature = "h5web")]
const BUILT: &[PageFile] = include!(concat!(env!("OUT_DIR"), "/h5web.rs"));
#[cfg(not(feature = "h5web"))]
const BUILT: &[PageFile] = &[];

/// The content security policy of our page: names in files are text, never code.
const POLICY: &str = "default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; \
    script-src 'self'; worker-src 'self' blob:; connect-src 'self' blob: data:; object-src 'none'; base-uri 'none'; frame-ancestors 'self'";

/// Like [`POLICY`], for H5Web, whose array library compiles its loops at run time.
const BUILT_POLICY: &str = "default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; \
    script-src 'self' 'unsafe-eval'; worker-src 'self' blob:; connect-src 'self' blob: data:; object-src 'none'; base-uri 'none'; \
    frame-ancestors 'self'";

/// Refuses a folder without a page.
pub(crate) fn check(folder: &Path) -> hyperslab::Result<()> {
    if folder.join("index.html").is_file() {
        return Ok(());
    }
    Err(hyperslab::Error::invalid(format!(
        "{}: there is no page here: index.html is missing; build one with cargo xtask page",
        folder.display()
    )))
}

/// The page for browsers, `ok` for programs.
pub(crate) async fn root(Shared(state): Shared<Arc<State>>, headers: HeaderMap) -> Response {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !accept.contains("text/html") {
        return "ok".into_response();
    }
    if state.options.page.is_some() || !BUILT.is_empty() {
        return built(&state, "index.html", &headers).await;
    }
    to_own().await
}

pub(crate) async fn to_own() -> Response {
    Redirect::temporary("/view/").into_response()
}

pub(crate) async fn own(headers: HeaderMap) -> Response {
    of(OWN, "index.html", &headers)
}

pub(crate) async fn own_file(Named(name): Named<String>, headers: HeaderMap) -> Response {
    of(OWN, &name, &headers)
}

/// Files of the page at `/`.
pub(crate) async fn other(Shared(state): Shared<Arc<State>>, uri: Uri, headers: HeaderMap) -> Response {
    let name = percent_encoding::percent_decode_str(uri.path().trim_start_matches('/')).decode_utf8();
    match name {
        Ok(name) => built(&state, &name, &headers).await,
        Err(_) => missing(),
    }
}

async fn built(state: &Arc<State>, name: &str, headers: &HeaderMap) -> Response {
    let mut response = built_file(state, name, headers).await;
    if response.headers().contains_key(header::CONTENT_SECURITY_POLICY) {
        put(response.headers_mut(), header::CONTENT_SECURITY_POLICY, BUILT_POLICY);
    }
    response
}

async fn built_file(state: &Arc<State>, name: &str, headers: &HeaderMap) -> Response {
    let Some(folder) = &state.options.page else { return of(BUILT, name, headers) };
    let plain = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
    if !plain || name.contains(['\\', '\0']) {
        return missing();
    }
    let (folder, path) = (folder.clone(), folder.join(name));
    let read = tokio::task::spawn_blocking(move || {
        let inside = path.canonicalize().ok()?.starts_with(folder.canonicalize().ok()?);
        inside.then(|| std::fs::read(path).ok())?
    });
    match read.await {
        Ok(Some(content)) => file(name, content.into(), headers),
        _ => missing(),
    }
}

fn of(files: &'static [PageFile], name: &str, headers: &HeaderMap) -> Response {
    match files.iter().find(|(own, _)| *own == name) {
        Some((_, content)) => file(name, Bytes::from_static(content), headers),
        None => missing(),
    }
}

fn missing() -> Response {
    Failure::new(StatusCode::NOT_FOUND, "there is nothing at this address").into_response()
}

fn file(name: &str, content: Bytes, headers: &HeaderMap) -> Response {
    let tag = entity_tag(&content[..]);
    if matches_tag(headers, &tag) {
        return not_modified(&tag);
    }
    let mut response = content.into_response();
    let out = response.headers_mut();
    put(out, header::CONTENT_TYPE, kind_of(name));
    put(out, header::ETAG, &tag);
    put(out, header::CACHE_CONTROL, "no-cache");
    put(out, header::CONTENT_SECURITY_POLICY, POLICY);
    response
}

fn kind_of(name: &str) -> &'static str {
    match name.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "json" | "map" => "application/json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "woff2" => "font/woff2",
        "wasm" => "application/wasm",
        _ => "application/octet-stream",
    }
}
