//! Sends every request: counts it, delays it if the server asks for that, and adds conditions that the client library
//! does not support.

use std::collections::HashMap;
use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
    ReqwestConnector,
};
use object_store::path::Path;
use object_store::{ClientOptions, RetryConfig};

use crate::meter::Meter;

/// The maximum delay that a server may request before a retry.
const MAX_WAIT: Duration = Duration::from_secs(60);
/// A read that receives no byte for this long is aborted and retried.
const STALL: Duration = Duration::from_secs(30);
/// The time limit for a request that sends data.
const UPLOAD: Duration = Duration::from_secs(300);
/// The maximum number of idle connections: the same as requests in flight.
const IDLE: usize = 64;

/// The way in which requests to one server or bucket are sent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wire {
    pub(crate) meter: Meter,
    /// No request is sent before this time.
    not_before: Arc<Mutex<Option<Instant>>>,
    conditions: Arc<Mutex<HashMap<String, Condition>>>,
    retries: Option<usize>,
    retry_timeout: Option<Duration>,
}

/// The condition that an object must meet for a multipart upload to complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Condition {
    /// It does not exist.
    Absent,
    /// It has this entity tag.
    Tag(String),
}

impl Wire {
    pub(crate) fn new(meter: Meter, retries: Option<usize>, retry_timeout: Option<Duration>) -> Self {
        Self { meter, retries, retry_timeout, ..Self::default() }
    }

    /// The common client options for all kinds of storage.
    pub(crate) fn client_options() -> ClientOptions {
        ClientOptions::new()
            .with_timeout_disabled()
            .with_read_timeout(STALL)
            .with_pool_max_idle_per_host(IDLE)
    }

    /// The retry policy for failed requests.
    pub(crate) fn retry(&self) -> RetryConfig {
        let mut config = RetryConfig::default();
        config.max_retries = self.retries.unwrap_or(config.max_retries);
        config.retry_timeout = self.retry_timeout.unwrap_or(config.retry_timeout);
        config
    }

    /// Adds a condition to the request that completes the upload of this object. Servers without support ignore it.
    pub(crate) fn expect(&self, path: &Path, condition: Option<Condition>) {
        let mut conditions = self.conditions.lock().unwrap_or_else(PoisonError::into_inner);
        match condition {
            Some(condition) => conditions.insert(path.as_ref().to_owned(), condition),
            None => conditions.remove(path.as_ref()),
        };
    }

    /// The condition for a request.
    fn condition(&self, request: &HttpRequest) -> Option<Condition> {
        let query = request.uri().query().unwrap_or_default();
        let method = request.method().as_str();
        // The requests that complete a multipart upload on S3 and Google, and on Azure.
        let completes = method == "POST" && query.contains("uploadId=")
            || method == "PUT" && query.contains("comp=blocklist");
        if !completes {
            return None;
        }
        let path = Path::from_url_path(request.uri().path()).ok()?;
        let conditions = self.conditions.lock().unwrap_or_else(PoisonError::into_inner);
        let of = |key: &&String| path.as_ref() == **key || path.as_ref().ends_with(&format!("/{key}"));
        conditions.iter().find(|(key, _)| of(key)).map(|(_, condition)| condition.clone())
    }

    /// Waits until requests are allowed again.
    async fn wait(&self) {
        let until = *self.not_before.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(left) = until.and_then(|until| until.checked_duration_since(Instant::now())) {
            tokio::time::sleep(left).await;
        }
    }

    /// Records the delay requested by an overloaded server. It applies to all requests.
    fn hold_back(&self, response: &HttpResponse) {
        if !matches!(response.status().as_u16(), 429 | 503) {
            return;
        }
        let seconds =
            response.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
        let Some(wait) = seconds.map(Duration::from_secs) else { return };
        let until = Instant::now() + wait.min(self.retry_timeout.unwrap_or(MAX_WAIT)).min(MAX_WAIT);
        let mut held = self.not_before.lock().unwrap_or_else(PoisonError::into_inner);
        *held = Some(held.map_or(until, |held| held.max(until)));
    }
}

/// Builds HTTP clients that send requests through a [`Wire`].
#[derive(Debug)]
pub(crate) struct Connector(pub(crate) Wire);

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let plain = ReqwestConnector::default();
        // Nothing is received while data is sent, so the read timeout must not apply.
        let sending = options.clone().with_read_timeout_disabled().with_timeout(UPLOAD);
        let service = Service {
            wire: self.0.clone(),
            reads: plain.connect(options)?,
            writes: plain.connect(&sending)?,
        };
        Ok(HttpClient::new(service))
    }
}

#[derive(Debug)]
struct Service {
    wire: Wire,
    reads: HttpClient,
    writes: HttpClient,
}

impl HttpService for Service {
    fn call<'a, 'b>(
        &'a self,
        mut request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async move {
            let header = match self.wire.condition(&request) {
                Some(Condition::Absent) => "*".parse().ok().map(|value| ("if-none-match", value)),
                Some(Condition::Tag(tag)) => tag.parse().ok().map(|value| ("if-match", value)),
                None => None,
            };
            if let Some((name, value)) = header {
                request.headers_mut().insert(name, value);
            }
            self.wire.wait().await;
            self.wire.meter.request();
            let response = if matches!(request.method().as_str(), "GET" | "HEAD") {
                self.reads.execute(request).await?
            } else {
                self.writes.execute(request).await.map_err(repeatable)?
            };
            self.wire.hold_back(&response);
            Ok(response)
        })
    }
}

/// The error of a writing request, as one after which the client library repeats the request. Every write can be
/// repeated: it has a condition, and a mark that shows whether an earlier attempt succeeded.
fn repeatable(error: HttpError) -> HttpError {
    match error.kind() {
        HttpErrorKind::Interrupted | HttpErrorKind::Timeout => {
            HttpError::new(HttpErrorKind::Request, Cause(error))
        }
        _ => error,
    }
}

/// The cause of an HTTP error.
#[derive(Debug)]
struct Cause(HttpError);

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.source() {
            Some(cause) => write!(f, "{cause}"),
            None => write!(f, "{}", self.0),
        }
    }
}

impl StdError for Cause {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source().and_then(StdError::source)
    }
}
