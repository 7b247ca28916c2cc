//! Azure Blob Storage.
//!
//! Credentials come from options, then from the environment (`AZURE_STORAGE_ACCOUNT_NAME`, `AZURE_STORAGE_ACCOUNT_KEY`,
//! `AZURE_STORAGE_CONNECTION_STRING` …).
//! The metadata service of a cloud machine is only queried if the option `ambient_credentials` is set.

use std::collections::BTreeMap;
use std::sync::Arc;

use hyperslab_core::{Error, Result};
use object_store::ObjectStore;
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use url::Url;

use crate::client::Build;
use crate::location::{RemoteOptions, is_true, unknown_option};
use crate::tls;
use crate::wire::{Connector, Wire};

const KNOWN: &[&str] = &[
    "connection_string",
    "account_name",
    "account_key",
    "sas_token",
    "bearer_token",
    "client_id",
    "client_secret",
    "tenant_id",
    "endpoint",
    "use_emulator",
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

/// The settings in a connection string, as Azure's portal shows it. Parts about other services than blobs are left out.
fn connection_string(text: &str) -> Vec<(&'static str, String)> {
    let parts: BTreeMap<&str, &str> =
        text.split(';').filter_map(|part| part.trim().split_once('=')).collect();
    let mut settings = Vec::new();
    for (part, name) in [
        ("AccountName", "account_name"),
        ("AccountKey", "account_key"),
        ("SharedAccessSignature", "sas_token"),
        ("BlobEndpoint", "endpoint"),
        ("UseDevelopmentStorage", "use_emulator"),
    ] {
        settings.extend(parts.get(part).map(|value| (name, (*value).to_owned())));
    }
    if let (Some(suffix), Some(account), None) =
        (parts.get("EndpointSuffix"), parts.get("AccountName"), parts.get("BlobEndpoint"))
    {
        let protocol = parts.get("DefaultEndpointsProtocol").unwrap_or(&"https");
        settings.push(("endpoint", format!("{protocol}://{account}.blob.{suffix}")));
    }
    settings
}

/// Builds the client for the container of a URL.
pub(crate) fn build(url: &Url, options: &RemoteOptions, wire: &Wire) -> Result<Box<Build>> {
    let wire = wire.clone();
    let address = url.clone();
    let name = format!("{}://{}", url.scheme(), url.host_str().unwrap_or_default());
    let mut settings: BTreeMap<String, (AzureConfigKey, String)> = BTreeMap::new();
    let mut set = |name: &str, value: &str| -> Option<()> {
        let key: AzureConfigKey = name.to_ascii_lowercase().parse().ok()?;
        settings.insert(key.as_ref().to_owned(), (key, value.to_owned()));
        Some(())
    };
    if let Ok(text) = std::env::var("AZURE_STORAGE_CONNECTION_STRING") {
        for (name, value) in connection_string(&text) {
            let _ = set(name, &value);
        }
    }
    for (name, value) in std::env::vars() {
        if name.starts_with("AZURE_") {
            // Many variables belong to other tools.
            let _ = set(&name, &value);
        }
    }
    let (mut anonymous, mut ambient) = (options.anonymous, false);
    for (name, value) in &options.options {
        match name.as_str() {
            "anon" | "anonymous" => anonymous |= is_true(value),
            "ambient_credentials" => ambient = is_true(value),
            "connection_string" => {
                for (name, value) in connection_string(value) {
                    let _ = set(name, &value);
                }
            }
            name => set(name, value).ok_or_else(|| unknown_option(name, "az", KNOWN))?,
        }
    }
    let has_credentials = settings.values().any(|(key, _)| {
        matches!(
            key,
            AzureConfigKey::AccessKey
                | AzureConfigKey::SasKey
                | AzureConfigKey::Token
                | AzureConfigKey::ClientSecret
                | AzureConfigKey::FederatedTokenFile
                | AzureConfigKey::UseEmulator
                | AzureConfigKey::UseAzureCli
                | AzureConfigKey::SkipSignature
        )
    });
    if !anonymous && !ambient && !has_credentials {
        return Err(Error::invalid(format!(
            "{name}: no credentials. Set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, read anonymously, or allow \
             the storage option ambient_credentials=true on a cloud machine"
        )));
    }
    // An endpoint without TLS is one that the user named.
    let plain_endpoint = settings
        .values()
        .any(|(key, value)| matches!(key, AzureConfigKey::Endpoint) && value.starts_with("http://"));
    Ok(Box::new(move || {
        tls::install();
        let mut builder = MicrosoftAzureBuilder::new()
            .with_client_options(Wire::client_options())
            .with_retry(wire.retry())
            .with_http_connector(Connector(wire.clone()))
            .with_url(address.as_str());
        for (key, value) in settings.values() {
            builder = builder.with_config(*key, value);
        }
        if plain_endpoint {
            builder = builder.with_allow_http(true);
        }
        if anonymous {
            builder = builder.with_skip_signature(true);
        }
        let store = builder.build().map_err(|error| Error::invalid(format!("{name}: {error}")))?;
        Ok(Arc::new(store) as Arc<dyn ObjectStore>)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_strings_are_taken_apart() {
        let text = "DefaultEndpointsProtocol=https;AccountName=me;AccountKey=a+b/c==;EndpointSuffix=core.windows.net";
        let expected = [
            ("account_name", "me".to_owned()),
            ("account_key", "a+b/c==".to_owned()),
            ("endpoint", "https://me.blob.core.windows.net".to_owned()),
        ];
        assert_eq!(connection_string(text), expected);
        let text = "BlobEndpoint=http://127.0.0.1:10000/me; SharedAccessSignature=sv=1&sig=x%3D;QueueEndpoint=http://q";
        let expected =
            [("sas_token", "sv=1&sig=x%3D".to_owned()), ("endpoint", "http://127.0.0.1:10000/me".to_owned())];
        assert_eq!(connection_string(text), expected);
        assert_eq!(connection_string("nonsense"), []);
    }
}
