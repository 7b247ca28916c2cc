//! URLs of stores, and the clients that reach them.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use hyperslab_core::storage::ChangeStep;
use hyperslab_core::{Error, Result, Storage, url_name};
use url::Url;

use crate::client::{Build, Client};
use crate::cost::Cost;
use crate::meter::Meter;
use crate::storage::{Cache, RemoteStorage};
use crate::upload::{Present, Upload};
use crate::wire::Wire;

/// Options for remote storage.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RemoteOptions {
    /// Credentials, endpoints and the like, by the names that the storage's own tools use. An unknown name is an
    /// error.
    pub options: BTreeMap<String, String>,
    /// Send requests without credentials.
    pub anonymous: bool,
    /// The memory limit for cached structures and documents of an open store, in bytes.
    pub cache: u64,
    /// The folder of the disk cache for structures and documents; `None` disables it. The storage option `cache` sets
    /// it too.
    pub cache_folder: Option<PathBuf>,
    /// Counts the requests, if set.
    pub meter: Option<Meter>,
}

impl Default for RemoteOptions {
    fn default() -> Self {
        Self { options: BTreeMap::new(), anonymous: false, cache: 128 << 20, cache_folder: None, meter: None }
    }
}

impl fmt::Debug for RemoteOptions {
    /// Shows only the names of options: values may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteOptions")
            .field("options", &self.options.keys())
            .field("anonymous", &self.anonymous)
            .field("cache", &self.cache)
            .finish_non_exhaustive()
    }
}

impl RemoteOptions {
    /// Adds an option.
    #[must_use]
    pub fn with_option(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.options.insert(name.into(), value.into());
        self
    }

    /// Sets the folder of the disk cache.
    ///
    /// ```
    /// use hyperslab_remote::RemoteOptions;
    /// let options = RemoteOptions::default().with_cache_folder("cache");
    /// assert_eq!(options.cache_folder.as_deref(), Some("cache".as_ref()));
    /// ```
    #[must_use]
    pub fn with_cache_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.cache_folder = Some(folder.into());
        self
    }

    /// Counts the requests with this meter.
    #[must_use]
    pub fn with_meter(mut self, meter: Meter) -> Self {
        self.meter = Some(meter);
        self
    }

    /// Sends requests without credentials if `anonymous` is true.
    #[must_use]
    pub const fn with_anonymous(mut self, anonymous: bool) -> Self {
        self.anonymous = anonymous;
        self
    }

    /// Splits off the options that are the same for all kinds of storage, and returns the resulting settings.
    fn split_common_options(&self) -> Result<(Self, Wire, Cost)> {
        let mut rest = self.clone();
        let wrong = |name: &str| {
            Error::invalid(format!("storage option {name}: expected a number, or a time such as 30s"))
        };
        let retries = rest.options.remove("max_retries");
        let retries = retries.map(|text| text.parse().map_err(|_| wrong("max_retries"))).transpose()?;
        let timeout = rest.options.remove("retry_timeout");
        let timeout = timeout.map(|text| seconds(&text).ok_or_else(|| wrong("retry_timeout"))).transpose()?;
        let gap = rest.options.remove("merge_gap");
        let gap = gap.map(|text| text.parse().map_err(|_| wrong("merge_gap"))).transpose()?;
        if let Some(folder) = rest.options.remove("cache") {
            rest.cache_folder = Some(folder.into());
        }
        let wire = Wire::new(self.meter.clone().unwrap_or_default(), retries, timeout);
        Ok((rest, wire, Cost::new(gap)))
    }
}

/// Parses `30s`, `500ms`, `2m`, or a number of seconds.
fn seconds(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().ok()?;
    match text[digits..].trim() {
        "" | "s" | "seconds" => Some(Duration::from_secs(number)),
        "ms" => Some(Duration::from_millis(number)),
        "m" | "minutes" => Some(Duration::from_secs(number.checked_mul(60)?)),
        _ => None,
    }
}

/// A location on remote storage.
#[derive(Debug, Clone)]
pub struct Remote {
    client: Arc<Client>,
    /// The part of URLs before the key: `s3://bucket`.
    base: String,
    /// The key in the bucket or on the server.
    key: String,
    cache: Cache,
}

impl Remote {
    /// Builds the client for a URL. Sends no request.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) for an invalid URL, or for options that do not fit it;
    /// [`Unsupported`](Error::Unsupported) for a kind of storage that this build does not support.
    pub fn new(url: &str, options: &RemoteOptions) -> Result<Self> {
        let name = url_name(url);
        let (place, key) = split_url(url);
        let parsed =
            Url::parse(place).map_err(|error| Error::invalid(format!("{name}: not a URL: {error}")))?;
        let (options, wire, cost) = options.split_common_options()?;
        let options = &options;
        let (build, lists): (Box<Build>, bool) = match parsed.scheme() {
            #[cfg(feature = "http")]
            "http" | "https" => (crate::http::build(&parsed, options, &wire)?, false),
            #[cfg(feature = "s3")]
            "s3" | "s3a" => (crate::s3::build(&parsed, options, &wire)?, true),
            #[cfg(feature = "gcs")]
            "gs" | "gcs" => (crate::gcs::build(&parsed, options, &wire)?, true),
            #[cfg(feature = "azure")]
            "az" | "azure" | "abfs" | "abfss" | "adl" => {
                (crate::azure::build(&parsed, options, &wire)?, true)
            }
            scheme => {
                return Err(Error::unsupported(name.as_str(), missing_storage(scheme)));
            }
        };
        let path = match key {
            Some(key) => object_store::path::Path::parse(key.trim_matches('/')),
            None => object_store::path::Path::from_url_path(parsed.path()),
        };
        let key =
            path.map_err(|_| Error::invalid(format!("{name}: a path that is not the name of an object")))?;
        let host = parsed.host_str().unwrap_or_default();
        let authority = match parsed.port() {
            Some(port) => format!("{host}:{port}"),
            // The container of an account; of other URLs, what stands there may be secret.
            None if parsed.scheme().starts_with("abfs") && !parsed.username().is_empty() => {
                format!("{}@{host}", parsed.username())
            }
            None => host.to_owned(),
        };
        Ok(Self {
            client: Arc::new(Client::new(lists, build, wire, cost)),
            base: format!("{}://{authority}", parsed.scheme()),
            key: key.as_ref().to_owned(),
            cache: Cache { memory: options.cache, folder: options.cache_folder.clone() },
        })
    }

    /// The URL without secrets.
    #[must_use]
    pub fn url(&self) -> String {
        self.url_of(&self.key)
    }

    fn url_of(&self, key: &str) -> String {
        if key.is_empty() { self.base.clone() } else { format!("{}/{key}", self.base) }
    }

    /// The objects below the URL.
    #[must_use]
    pub fn directory(&self) -> RemoteStorage {
        RemoteStorage::new(Arc::clone(&self.client), self.key.clone(), self.url().into(), self.cache.clone())
    }

    /// The objects in the same folder as the one at the URL, and its own name there; `None` for the root of a bucket
    /// or server.
    #[must_use]
    pub fn beside(&self) -> Option<(RemoteStorage, &str)> {
        if self.key.is_empty() {
            return None;
        }
        let (folder, name) = self.key.rsplit_once('/').unwrap_or(("", &self.key));
        let storage = RemoteStorage::new(
            Arc::clone(&self.client),
            folder.to_owned(),
            self.url_of(folder).into(),
            self.cache.clone(),
        );
        Some((storage, name))
    }

    /// Returns true if there is an object with exactly this URL, as opposed to objects below it.
    ///
    /// # Errors
    ///
    /// [`Io`](Error::Io) if the request fails.
    pub fn is_object(&self) -> Result<bool> {
        let Some((storage, name)) = self.beside() else { return Ok(false) };
        Ok(storage.stat(name)?.is_some())
    }

    /// Queries the objects at the URL, before writing there.
    ///
    /// # Errors
    ///
    /// [`Io`](Error::Io) if the request fails.
    pub fn present(&self) -> Result<Present> {
        self.check_writable()?;
        let mut present = Present { directory: !self.directory().list("")?.is_empty(), ..Present::default() };
        if let Some((storage, name)) = self.beside() {
            present.object = match storage.find_version(name) {
                // Some servers that keep objects in folders fail when a folder is taken for an object. If there is an
                // object after all, the conditions of the requests that write keep it.
                Err(_) if present.directory => None,
                found => found?,
            };
        }
        Ok(present)
    }

    /// Records the objects below the URL, before their replacement is prepared: it fails if any of them changes
    /// meanwhile.
    ///
    /// # Errors
    ///
    /// [`Io`](Error::Io) if the request fails.
    pub fn record(&self, present: &mut Present) -> Result<()> {
        if present.directory {
            present.fingerprint = Some(self.upload().fingerprint()?);
        }
        Ok(())
    }

    /// Uploads a local file to the URL, replacing only the given objects. The object appears complete or not at all.
    ///
    /// # Errors
    ///
    /// [`Exists`](Error::Exists) if there is an object that was not present before; [`Io`](Error::Io) if the server
    /// denies the upload, or another writer was faster.
    pub fn upload_file(&self, file: &Path, present: &Present, stop: &Arc<AtomicBool>) -> Result<()> {
        self.check_writable()?;
        self.upload().file(file, present, stop)
    }

    /// Uploads a local folder to the URL, where nothing must exist. Files whose first path component is in `last` are
    /// uploaded last, in that order, because they make the store visible.
    ///
    /// # Errors
    ///
    /// Like [`upload_file`](Self::upload_file).
    pub fn upload_folder(&self, folder: &Path, last: &[&str], stop: &Arc<AtomicBool>) -> Result<()> {
        self.check_writable()?;
        self.upload().new_folder(folder, last, stop)
    }

    /// Uploads a local folder to the URL, replacing the given objects. `replaced` names the objects that make the old
    /// store visible. The old store remains until the new one is complete beside it.
    ///
    /// # Errors
    ///
    /// Like [`upload_file`](Self::upload_file).
    pub fn replace_folder(
        &self,
        folder: &Path,
        last: &[&str],
        replaced: &[&str],
        present: &Present,
        stop: &Arc<AtomicBool>,
    ) -> Result<()> {
        self.check_writable()?;
        self.upload().replace_folder(folder, last, replaced, present, stop)
    }

    /// Changes the directory store at the URL under a claim that excludes other writers. `make` reads it through
    /// `storage`, writes objects into `folder`, and returns the order in which to upload them. Objects that were read
    /// are only replaced if they are still the same.
    ///
    /// # Errors
    ///
    /// Any error of `make`; [`Io`](Error::Io) if the server denies a request, or another writer was faster.
    pub fn change<T>(
        &self,
        storage: &RemoteStorage,
        folder: &Path,
        stop: &Arc<AtomicBool>,
        make: impl FnOnce() -> Result<(T, Vec<ChangeStep>)>,
    ) -> Result<T> {
        self.check_writable()?;
        self.upload().change(storage, make, folder, stop)
    }

    /// Downloads the object at the URL into a local file; `None` if there is none. The result identifies the version
    /// of the object.
    ///
    /// # Errors
    ///
    /// [`Io`](Error::Io) if the server or the system reports an error.
    pub fn download(&self, file: &Path) -> Result<Option<Present>> {
        let Some((storage, name)) = self.beside() else { return Ok(None) };
        let Some(version) = storage.find_version(name)? else { return Ok(None) };
        storage.copy_to(name, version.size, file)?;
        Ok(Some(Present { object: Some(version), ..Present::default() }))
    }

    fn upload(&self) -> Upload {
        Upload { client: Arc::clone(&self.client), key: self.key.clone(), url: self.url() }
    }

    /// Fails for read-only storage.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](Error::Unsupported) for a web server.
    pub fn check_writable(&self) -> Result<()> {
        if self.client.lists {
            return Ok(());
        }
        Err(Error::unsupported(
            self.url(),
            "writing to a web server (write to a bucket, or to a local path and upload that)",
        ))
    }

    /// The traffic so far.
    #[must_use]
    pub fn traffic(&self) -> crate::Traffic {
        self.client.traffic()
    }
}

/// Splits the URL of a bucket into the bucket and the key. The key is taken literally, as by the cloud providers' tools: `?`,
/// `#` and `%` are parts of it. URLs of web servers have no key: their path is encoded, and a query may follow.
fn split_url(url: &str) -> (&str, Option<&str>) {
    let Some((scheme, rest)) = url.split_once("://").filter(|(scheme, _)| !scheme.starts_with("http")) else {
        return (url, None);
    };
    let bucket = rest.find('/').unwrap_or(rest.len());
    let (place, key) = url.split_at(scheme.len() + 3 + bucket);
    (place, Some(key))
}

/// Describes the kind of storage that this build does not support.
fn missing_storage(scheme: &str) -> String {
    match scheme {
        "gs" | "gcs" => "gs:// storage (build with the feature gcs)".to_owned(),
        "az" | "azure" | "abfs" | "abfss" | "adl" => {
            format!("{scheme}:// storage (build with the feature azure)")
        }
        _ => format!("{scheme}:// storage"),
    }
}

/// Returns true if the value of an option means "on".
pub(crate) fn is_true(value: &str) -> bool {
    matches!(value.to_ascii_lowercase().as_str(), "1" | "true" | "yes" | "on")
}

/// The error for an unknown option.
pub(crate) fn unknown_option(name: &str, scheme: &str, known: &[&str]) -> Error {
    Error::invalid(format!(
        "unknown storage option {name:?} for {scheme}; known: {}, cache, merge_gap",
        known.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_parsed() {
        let remote =
            Remote::new("https://user:word@host:81/a/b%20c.h5?sig=1", &RemoteOptions::default()).unwrap();
        assert_eq!(remote.url(), "https://host:81/a/b c.h5");
        let (storage, name) = remote.beside().unwrap();
        assert_eq!((hyperslab_core::Storage::name(&storage).as_ref(), name), ("https://host:81/a", "b c.h5"));
        assert!(Remote::new("https://host", &RemoteOptions::default()).unwrap().beside().is_none());
        #[cfg(feature = "s3")]
        for key in ["what?.h5", "dir#1/x.h5", "100%25.h5", "a b"] {
            let options = RemoteOptions::default().with_anonymous(true);
            let remote = Remote::new(&format!("s3://bucket/{key}"), &options).unwrap();
            assert_eq!((remote.key.as_str(), remote.base.as_str()), (key, "s3://bucket"));
        }
        for url in ["http://h h/a?sig=hush", "http://me:hush@h h/a", "http://[/a?b=\"c)hush"] {
            let error = Remote::new(url, &RemoteOptions::default()).unwrap_err().to_string();
            assert!(!error.contains("hush") && error.contains("not a URL"), "{error}");
        }
        let unknown = Remote::new("ftp://host/a", &RemoteOptions::default()).unwrap_err();
        assert!(unknown.is_unsupported(), "{unknown}");
        let options = RemoteOptions::default().with_option("nonsense", "1");
        assert!(Remote::new("https://host/a", &options).is_err());
    }

    #[test]
    fn options_are_shown_without_values() {
        let options = RemoteOptions::default().with_option("secret", "hush");
        let shown = format!("{options:?}");
        assert!(shown.contains("secret") && !shown.contains("hush"), "{shown}");
    }
}
