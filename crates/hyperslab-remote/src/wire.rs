//! Every request as it is sent: counted, held back while the server asks for it, and with conditions that the client
//! library has no word for.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpService, ReqwestConnector,
};
use object_store::path::Path;
use object_store::{ClientOptions, RetryConfig};

use crate::meter::Meter;

/// The longest that a server may ask us to wait before a request is sent again.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// A read without a byte for so long is given up, and tried again.
const STALL: Duration = Duration::from_secs(30);
/// A request that brings bytes is given up after so long.
const UPLOAD: Duration = Duration::from_secs(300);
/// Idle connections that are kept: as many as there are requests in flight.
const IDLE: usize = 64;

/// How requests of one server or bucket are sent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wire {
    pub(crate) meter: Meter,
    /// No request is sent before this.
    not_before: Arc<Mutex<Option<Instant>>>,
    conditions: Arc<Mutex<HashMap<String, Condition>>>,
    retries: Option<usize>,
    retry_timeout: Option<Duration>,
}

/// What must hold of an object before an upload in parts becomes that object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Condition {
    /// There is none.
    Absent,
    /// It has this entity tag.
    Tag(String),
}

impl Wire {
    pub(crate) fn new(meter: Meter, retries: Option<usize>, retry_timeout: Option<Duration>) -> Self {
        Self { meter, retries, retry_timeout, ..Self::default() }
    }

    /// The client options that all kinds of storage start from.
    pub(crate) fn client_options() -> ClientOptions {
        ClientOptions::new()
            .with_timeout_disabled()
            .with_read_timeout(STALL)
            .with_pool_max_idle_per_host(IDLE)
    }

    /// How failed requests are sent again.
    pub(crate) fn retry(&self) -> RetryConfig {
        let mut config = RetryConfig::default();
        config.max_retries = self.retries.unwrap_or(config.max_retries);
        config.retry_timeout = self.retry_timeout.unwrap_or(config.retry_timeout);
        config
    }

    /// Puts a condition on the request that completes the upload of this object. Servers that do not know it ignore it.
    pub(crate) fn expect(&self, path: &Path, condition: Option<Condition>) {
        let mut conditions = self.conditions.lock().unwrap_or_else(PoisonError::into_inner);
        match condition {
            Some(condition) => conditions.insert(path.as_ref().to_owned(), condition),
            None => conditions.remove(path.as_ref()),
        };
    }

    /// The condition on a request.
    fn condition(&self, request: &HttpRequest) -> Option<Condition> {
        let query = request.uri().query().unwrap_or_default();
        let method = request.method().as_str();
        // How S3 and Google, and how Azure complete an upload in parts.
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

    /// Waits until the server wants to hear from us.
    async fn wait(&self) {
        let until = *self.not_before.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(left) = until.and_then(|until| until.checked_duration_since(Instant::now())) {
            tokio::time::sleep(left).await;
        }
    }

    /// Notes what a server that has too much to do says about when to come back. All requests wait for it.
    fn hold_back(&self, response: &HttpResponse) {
        if !matches!(response.status().as_u16(), 429 | 503) {
            return;
        }
        let seconds =
            response.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
        let Some(wait) = seconds.map(Duration::from_secs) else { return };
        let until = Instant::now() + wait.min(LONGEST_WAIT);
        let mut held = self.not_before.lock().unwrap_or_else(PoisonError::into_inner);
        *held = Some(held.map_or(until, |held| held.max(until)));
    }
}

/// Makes clients whose requests go through a [`Wire`].
#[derive(Debug)]
pub(crate) struct Connector(pub(crate) Wire);

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let plain = ReqwestConnector::default();
        // While bytes are sent nothing is read, so that is no stall.
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
            let reads = matches!(request.method().as_str(), "GET" | "HEAD");
            let response = if reads { &self.reads } else { &self.writes }.execute(request).await?;
            self.wire.hold_back(&response);
            Ok(response)
        })
    }
}
