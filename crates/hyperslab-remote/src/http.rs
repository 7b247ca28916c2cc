//! Web servers.

use std::sync::Arc;

use hyperslab_core::{Error, Result};
use object_store::http::HttpBuilder;
use object_store::{ClientConfigKey, ObjectStore};
use url::Url;

use crate::client::Build;
use crate::location::{RemoteOptions, unknown_option};
use crate::tls;
use crate::wire::{Connector, Wire};

const KNOWN: &[&str] = &[
    "timeout",
    "connect_timeout",
    "proxy_url",
    "user_agent",
    "allow_invalid_certificates",
    "read_timeout",
    "max_retries",
    "retry_timeout",
];

/// Builds the client for the server of a URL. The URL's query is sent with every request, because it may be a
/// signature.
pub(crate) fn build(url: &Url, options: &RemoteOptions, wire: &Wire) -> Result<Box<Build>> {
    let wire = wire.clone();
    let mut root = url.clone();
    root.set_path("/");
    root.set_fragment(None);
    let mut settings = Vec::new();
    for (name, value) in &options.options {
        let key: ClientConfigKey = name.parse().map_err(|_| unknown_option(name, url.scheme(), KNOWN))?;
        settings.push((key, value.clone()));
    }
    let name = format!("{}://{}", url.scheme(), url.host_str().unwrap_or_default());
    Ok(Box::new(move || {
        tls::install();
        let mut builder = HttpBuilder::new()
            .with_client_options(Wire::client_options())
            .with_retry(wire.retry())
            .with_http_connector(Connector(wire.clone()))
            .with_url(root.as_str())
            .with_config(ClientConfigKey::AllowHttp, "true");
        for (key, value) in &settings {
            builder = builder.with_config(*key, value);
        }
        let store = builder.build().map_err(|error| Error::invalid(format!("{name}: {error}")))?;
        Ok(Arc::new(store) as Arc<dyn ObjectStore>)
    }))
}
