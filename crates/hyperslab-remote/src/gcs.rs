//! Google Cloud Storage.
//!
//! Credentials come from options, then from the environment (`GOOGLE_APPLICATION_CREDENTIALS`, `GOOGLE_SERVICE_ACCOUNT` …).
//! The metadata service of a cloud machine is only queried if the option `ambient_credentials` is set.

use std::collections::BTreeMap;
use std::sync::Arc;

use hyperslab_core::{Error, Result};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::{ClientConfigKey, ObjectStore};
use url::Url;

use crate::client::Build;
use crate::location::{RemoteOptions, is_true, unknown_option};
use crate::tls;
use crate::wire::{Connector, Wire};

const KNOWN: &[&str] = &[
    "service_account",
    "service_account_key",
    "application_credentials",
    "bearer_token",
    "base_url",
    "allow_http",
    "anon",
    "ambient_credentials",
    "timeout",
    "connect_timeout",
    "read_timeout",
    "max_retries",
    "retry_timeout",
    "proxy_url",
];

/// Builds the client for the bucket of a URL.
pub(crate) fn build(url: &Url, options: &RemoteOptions, wire: &Wire) -> Result<Box<Build>> {
    let wire = wire.clone();
    let bucket = url.host_str().unwrap_or_default().to_owned();
    let mut settings: BTreeMap<String, (GoogleConfigKey, String)> = BTreeMap::new();
    let mut set = |name: &str, value: &str| -> Option<()> {
        let key: GoogleConfigKey = name.to_ascii_lowercase().parse().ok()?;
        settings.insert(key.as_ref().to_owned(), (key, value.to_owned()));
        Some(())
    };
    for (name, value) in std::env::vars() {
        if name.starts_with("GOOGLE_") {
            // Many variables belong to other tools.
            let _ = set(&name, &value);
        }
    }
    let (mut anonymous, mut ambient) = (options.anonymous, false);
    for (name, value) in &options.options {
        match name.as_str() {
            "anon" | "anonymous" => anonymous |= is_true(value),
            "ambient_credentials" => ambient = is_true(value),
            // The name that fsspec uses.
            "token" => set("bearer_token", value).ok_or_else(|| unknown_option(name, "gs", KNOWN))?,
            name => set(name, value).ok_or_else(|| unknown_option(name, "gs", KNOWN))?,
        }
    }
    let has_credentials = settings.values().any(|(key, _)| {
        matches!(
            key,
            GoogleConfigKey::ServiceAccount
                | GoogleConfigKey::ServiceAccountKey
                | GoogleConfigKey::ApplicationCredentials
                | GoogleConfigKey::BearerToken
                | GoogleConfigKey::SkipSignature
        )
    });
    if !anonymous && !ambient && !has_credentials {
        return Err(Error::invalid(format!(
            "gs://{bucket}: no credentials. Set GOOGLE_APPLICATION_CREDENTIALS, read anonymously, or allow the storage option \
             ambient_credentials=true on a cloud machine"
        )));
    }
    let plain_endpoint = settings.values().any(|(key, value)| is_plain_endpoint(key, value));
    Ok(Box::new(move || {
        tls::install();
        let mut builder = GoogleCloudStorageBuilder::new()
            .with_client_options(Wire::client_options())
            .with_retry(wire.retry())
            .with_http_connector(Connector(wire.clone()))
            .with_bucket_name(&bucket);
        for (key, value) in settings.values() {
            builder = builder.with_config(*key, value);
        }
        if plain_endpoint {
            builder = builder.with_config(GoogleConfigKey::Client(ClientConfigKey::AllowHttp), "true");
        }
        if anonymous {
            builder = builder.with_skip_signature(true);
        }
        let store = builder.build().map_err(|error| Error::invalid(format!("gs://{bucket}: {error}")))?;
        Ok(Arc::new(store) as Arc<dyn ObjectStore>)
    }))
}

/// Does a setting name an endpoint without TLS? A service account may name one too.
fn is_plain_endpoint(key: &GoogleConfigKey, value: &str) -> bool {
    let names_one = |text: &str| {
        let account: Option<serde_json::Value> = serde_json::from_str(text).ok();
        let endpoint = account.as_ref().and_then(|account| account["gcs_base_url"].as_str());
        endpoint.is_some_and(|endpoint| endpoint.starts_with("http://"))
    };
    match key {
        GoogleConfigKey::BaseUrl => value.starts_with("http://"),
        GoogleConfigKey::ServiceAccountKey => names_one(value),
        GoogleConfigKey::ServiceAccount => std::fs::read_to_string(value).is_ok_and(|text| names_one(&text)),
        _ => false,
    }
}
