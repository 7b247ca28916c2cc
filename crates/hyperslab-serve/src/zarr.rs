//! Zarr over HTTP: `/zarr/STORE/KEY`.

use std::sync::Arc;

use axum::extract::{Path, State as Shared};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use hyperslab::Error;
use hyperslab::zarr_view::{CodecSet, ZarrObject};

use crate::State;
use crate::answer::{Answer, Asked, Failure, answer};

/// Serves Zarr v3 with the codecs of the specification.
pub(crate) async fn core(state: Shared<Arc<State>>, key: Path<String>, headers: HeaderMap) -> Response {
    object(state, key, headers, CodecSet::Core).await
}

/// Serves Zarr v3 and also uses the codecs of numcodecs.
pub(crate) async fn numcodecs(state: Shared<Arc<State>>, key: Path<String>, headers: HeaderMap) -> Response {
    object(state, key, headers, CodecSet::Numcodecs).await
}

/// Serves Zarr v2.
pub(crate) async fn v2(state: Shared<Arc<State>>, key: Path<String>, headers: HeaderMap) -> Response {
    object(state, key, headers, CodecSet::V2).await
}

async fn object(
    Shared(state): Shared<Arc<State>>,
    Path(whole): Path<String>,
    headers: HeaderMap,
    codecs: CodecSet,
) -> Response {
    let Some((file, key)) = split(&state, &whole) else {
        return Failure::no_file().into_response();
    };
    let asked = Asked { file, key: format!("zarr {codecs:?} {key}"), headers };
    answer(state, asked, move |opened, job| {
        let object = opened.zarr(codecs).object(&key, &job.progress).map_err(|error| match error {
            // Readers would interpret "not found" as a chunk of fill values.
            Error::NotFound { .. } => Failure::internal(error.to_string()),
            error => error.into(),
        })?;
        match object {
            Some(ZarrObject::Document(document)) => Ok(Answer::json(&document)),
            Some(ZarrObject::Chunk { bytes, .. }) => {
                let held = job.reserve(bytes.len() as u64)?;
                Ok(Answer::new("application/octet-stream", bytes).held(held))
            }
            // The chunk holds the fill value.
            _ => Err(Failure::no_path(&key, &opened.name)),
        }
    })
    .await
}

/// Splits a path into the store and the key in it. In a folder, the store ends at the first part that is not a plain
/// folder.
pub(crate) fn split(state: &State, whole: &str) -> Option<(String, String)> {
    let cut = |at: usize| {
        let (file, key) = (whole[..at].to_owned(), whole[at..].trim_start_matches('/').to_owned());
        (!key.is_empty()).then_some((file, key))
    };
    let root = &state.root;
    match root.folder() {
        None => {
            let name = root.only_store()?;
            cut(whole.strip_prefix(name).filter(|rest| rest.starts_with('/')).map(|_| name.len())?)
        }
        Some(_) => whole
            .match_indices('/')
            .map(|(at, _)| at)
            .find(|&at| {
                // An open store needs no second check.
                state.stores.knows(&whole[..at])
                    || root.resolve(&whole[..at]).is_ok_and(|located| is_store(&located.path))
            })
            .and_then(cut),
    }
}

/// A file is always a store. A folder is one if a format recognises it.
fn is_store(path: &std::path::Path) -> bool {
    path.is_file() || hyperslab::detect(path, &hyperslab::OpenOptions::default().with_mapped(false)).is_ok()
}
