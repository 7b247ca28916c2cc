//! Amazon S3 and compatible servers.
//!
//! Credentials come from options, then from the environment (`AWS_ACCESS_KEY_ID` …), then from the profile files of the AWS
//! tools. The metadata service of a cloud machine is only queried if the option `ambient_credentials` is set.

use std::collections::BTreeMap;
use std::sync::Arc;

use hyperslab_core::{Error, Result, url_name};
use object_store::ObjectStore;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use url::Url;

use crate::client::Build;
use crate::location::{RemoteOptions, is_true, unknown_option};
use crate::wire::{Connector, Wire};
use crate::{profile, tls};

const KNOWN: &[&str] = &[
    "access_key_id",
    "secret_access_key",
    "session_token",
    "region",
    "endpoint_url",
    "profile",
    "anon",
    "allow_http",
    "virtual_hosted_style_request",
    "request_payer",
    "ambient_credentials",
    "timeout",
    "connect_timeout",
    "read_timeout",
    "max_retries",
    "retry_timeout",
    "proxy_url",
];

/// Converts the names that fsspec and botocore use.
fn usual_name(name: &str) -> &str {
    match name {
        "key" => "access_key_id",
        "secret" => "secret_access_key",
        "aws_session_token" | "token" => "session_token",
        "region_name" => "region",
        "requester_pays" => "request_payer",
        other => other,
    }
}

/// The settings of a bucket, by the client library's names.
type Settings = BTreeMap<String, (AmazonS3ConfigKey, String)>;

/// Builds the client for the bucket of a URL.
pub(crate) fn build(url: &Url, options: &RemoteOptions, wire: &Wire) -> Result<Box<Build>> {
    use AmazonS3ConfigKey as Key;
    let wire = wire.clone();
    let name = url_name(url.as_str());
    let bucket = url.host_str().unwrap_or_default().to_owned();
    let mut own = Settings::new();
    let (mut anonymous, mut ambient, mut profile_name) = (options.anonymous, false, None);
    for (name, value) in &options.options {
        match usual_name(name) {
            "anon" | "anonymous" => anonymous |= is_true(value),
            "ambient_credentials" => ambient = is_true(value),
            "profile" => profile_name = Some(value.as_str()),
            usual => set(&mut own, usual, value).ok_or_else(|| unknown_option(name, "s3", KNOWN))?,
        }
    }
    let mut settings = from_environment();
    if let Some(name) = profile_name {
        supersede(&mut settings, from_profile(Some(name))?);
    }
    supersede(&mut settings, own);
    if !anonymous && profile_name.is_none() && !given(&settings, AmazonS3ConfigKey::AccessKeyId) {
        for (name, setting) in from_profile(None)? {
            settings.entry(name).or_insert(setting);
        }
    }
    if anonymous {
        let credentials = [Key::AccessKeyId, Key::SecretAccessKey, Key::Token];
        settings.retain(|_, (key, _)| !credentials.contains(key));
    }
    let from_service = [
        AmazonS3ConfigKey::WebIdentityTokenFile,
        AmazonS3ConfigKey::ContainerCredentialsRelativeUri,
        AmazonS3ConfigKey::ContainerCredentialsFullUri,
    ];
    let has_credentials = given(&settings, AmazonS3ConfigKey::AccessKeyId)
        || from_service.iter().any(|key| given(&settings, *key))
        || settings.values().any(|(key, value)| *key == AmazonS3ConfigKey::SkipSignature && is_true(value));
    if !anonymous && !ambient && !has_credentials {
        return Err(Error::invalid(format!(
            "{name}: no credentials. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or a profile, read anonymously, \
             or allow the storage option ambient_credentials=true on a cloud machine"
        )));
    }
    let plain_endpoint = settings.values().any(|(key, value)| {
        matches!(key, AmazonS3ConfigKey::Endpoint | AmazonS3ConfigKey::S3Endpoint)
            && value.starts_with("http://")
    });
    Ok(Box::new(move || {
        tls::install();
        let mut builder = AmazonS3Builder::new()
            .with_client_options(Wire::client_options())
            .with_retry(wire.retry())
            .with_http_connector(Connector(wire.clone()))
            .with_bucket_name(&bucket);
        for (key, value) in settings.values() {
            builder = builder.with_config(*key, value);
        }
        if plain_endpoint {
            builder = builder.with_allow_http(true);
        }
        if anonymous {
            builder = builder.with_skip_signature(true);
        }
        let store = builder.build().map_err(|error| Error::invalid(format!("s3://{bucket}: {error}")))?;
        Ok(Arc::new(store) as Arc<dyn ObjectStore>)
    }))
}

fn given(settings: &Settings, key: AmazonS3ConfigKey) -> bool {
    settings.values().any(|(own, _)| *own == key)
}

/// Overrides settings with more explicit ones. A key is never combined with the secret or token of another key.
fn supersede(settings: &mut Settings, explicit: Settings) {
    use AmazonS3ConfigKey as Key;
    if given(&explicit, Key::AccessKeyId) {
        let credentials = [
            Key::SecretAccessKey,
            Key::Token,
            Key::WebIdentityTokenFile,
            Key::ContainerCredentialsRelativeUri,
            Key::ContainerCredentialsFullUri,
            Key::SkipSignature,
        ];
        settings.retain(|_, (key, _)| !credentials.contains(key));
    }
    if given(&explicit, Key::Endpoint) {
        settings.retain(|_, (key, _)| *key != Key::S3Endpoint);
    }
    if given(&explicit, Key::Region) {
        settings.retain(|_, (key, _)| *key != Key::DefaultRegion);
    }
    settings.extend(explicit);
}

fn set(settings: &mut Settings, name: &str, value: &str) -> Option<()> {
    let key: AmazonS3ConfigKey = name.to_ascii_lowercase().parse().ok()?;
    settings.insert(key.as_ref().to_owned(), (key, value.to_owned()));
    Some(())
}

/// The settings from the environment variables of the AWS tools.
fn from_environment() -> Settings {
    let mut settings = Settings::new();
    for (name, value) in std::env::vars() {
        if name.starts_with("AWS_") {
            // Many variables belong to other tools.
            let _ = set(&mut settings, &name, &value);
        }
    }
    settings
}

/// The settings of a profile of the AWS tools.
fn from_profile(name: Option<&str>) -> Result<Settings> {
    let lines = profile::read(name)?.into_iter();
    let known = lines.filter_map(|(name, value)| {
        let key = profile_key(&name)?;
        Some((key.as_ref().to_owned(), (key, value)))
    });
    Ok(known.collect())
}

/// The setting for a name in a profile file.
fn profile_key(name: &str) -> Option<AmazonS3ConfigKey> {
    match name {
        "aws_access_key_id" => Some(AmazonS3ConfigKey::AccessKeyId),
        "aws_secret_access_key" => Some(AmazonS3ConfigKey::SecretAccessKey),
        "aws_session_token" => Some(AmazonS3ConfigKey::Token),
        "region" => Some(AmazonS3ConfigKey::Region),
        "endpoint_url" => Some(AmazonS3ConfigKey::Endpoint),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(pairs: &[(&str, &str)]) -> Settings {
        let mut settings = Settings::new();
        for (name, value) in pairs {
            set(&mut settings, name, value).unwrap();
        }
        settings
    }

    #[test]
    fn keys_and_tokens_are_not_mixed() {
        let mut environment = settings(&[
            ("aws_access_key_id", "a"),
            ("aws_secret_access_key", "b"),
            ("aws_session_token", "c"),
            ("aws_endpoint_url_s3", "http://one"),
            ("aws_region", "r"),
        ]);
        let own = [("access_key_id", "x"), ("secret_access_key", "y"), ("endpoint_url", "http://two")];
        supersede(&mut environment, settings(&own));
        assert_eq!(environment, settings(&[own[0], own[1], own[2], ("aws_region", "r")]));
    }

    #[test]
    fn options_accept_fsspec_names() {
        let url = Url::parse("s3://bucket/x").unwrap();
        let options = |pairs: &[(&str, &str)]| {
            pairs
                .iter()
                .fold(RemoteOptions::default(), |options, (name, value)| options.with_option(*name, *value))
        };
        let words =
            [("key", "a"), ("secret", "b"), ("token", "c"), ("region_name", "r"), ("requester_pays", "true")];
        assert!(build(&url, &options(&words), &Wire::default()).is_ok());
        // A part of the credentials does not matter to anonymous requests.
        let anonymous = build(&url, &options(&[("secret", "b"), ("anon", "true")]), &Wire::default());
        assert!(anonymous.is_ok_and(|build| build().is_ok()));
        let Err(unknown) =
            build(&url, &options(&[("key", "a"), ("cache_regions", "true")]), &Wire::default())
        else {
            panic!("an unknown option is refused")
        };
        let unknown = unknown.to_string();
        assert!(unknown.contains("\"cache_regions\"") && unknown.contains("endpoint_url"), "{unknown}");
    }
}
