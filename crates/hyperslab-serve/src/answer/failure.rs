//! Failures, as a status and a message. H5Web looks for the phrases "File not found", "Permission denied", "not a valid path" and
//! "Cannot resolve".

use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hyperslab::Error;
use serde_json::json;

use crate::root::Root;

/// A refusal: `{"message": …}`.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    status: StatusCode,
    message: String,
}

impl Failure {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    pub(crate) fn no_file() -> Self {
        Self::new(StatusCode::NOT_FOUND, "File not found!")
    }

    pub(crate) fn no_permission() -> Self {
        Self::new(StatusCode::FORBIDDEN, "Cannot read file: Permission denied!")
    }

    pub(crate) fn no_path(path: &str, file: &str) -> Self {
        let name = file.rsplit('/').next().unwrap_or(file);
        Self::new(StatusCode::NOT_FOUND, format!("{path} is not a valid path in {name}"))
    }

    /// The request itself is invalid.
    pub(crate) fn query(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, message)
    }

    pub(crate) fn busy() -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "the server is busy; try again")
    }

    pub(crate) fn too_slow(limit: Duration) -> Self {
        let message = format!("the request took longer than {} s; select less", limit.as_secs());
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message)
    }

    pub(crate) fn too_large(bytes: u64, limit: u64) -> Self {
        let message = format!("the answer needs {bytes} bytes, but the limit is {limit}; select less");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, message)
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, message)
    }

    pub(crate) const fn status(&self) -> StatusCode {
        self.status
    }

    /// Removes the local path of the served folder from the message.
    pub(crate) fn hidden(mut self, root: &Root) -> Self {
        self.message = root.hide(&self.message);
        self
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        use std::io::ErrorKind;
        let status = match &error {
            Error::NotFound { .. } => StatusCode::NOT_FOUND,
            Error::Invalid(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Error::Unsupported { .. } => StatusCode::NOT_IMPLEMENTED,
            Error::Cancelled => StatusCode::SERVICE_UNAVAILABLE,
            Error::Io { source, .. } => match source.kind() {
                ErrorKind::NotFound => return Self::no_file(),
                ErrorKind::PermissionDenied => return Self::no_permission(),
                _ => StatusCode::INTERNAL_SERVER_ERROR,
            },
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, error.to_string())
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let body = json!({ "message": self.message }).to_string();
        let kind = HeaderValue::from_static("application/json");
        let mut response = (self.status, [(header::CONTENT_TYPE, kind)], body).into_response();
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}
