//! Locations of stores: local paths and URLs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hyperslab_core::{
    Content, Error, ExternalFiles, FileBlob, LocalStorage, Locations, MappedBlob, OpenContext, Result,
    Storage, url_name,
};

use crate::{Format, OpenOptions, formats};

/// The store found at a location.
#[derive(Debug)]
pub(crate) struct FoundStore {
    /// Its bytes.
    pub(crate) content: Content,
    /// Its format.
    pub(crate) format: Format,
    /// Its local path.
    path: Option<PathBuf>,
    /// The folder that contains a file.
    beside: Option<Arc<dyn Storage>>,
    /// The path, or the URL without secrets.
    pub(crate) name: PathBuf,
}

impl FoundStore {
    /// The context for its driver.
    pub(crate) fn context(&self, options: &OpenOptions) -> OpenContext<'_> {
        OpenContext {
            path: self.path.as_deref(),
            beside: self.beside.clone(),
            external: options.external,
            mapped: options.mapped,
            at: options.at,
            key: options.key.clone(),
            unconsolidated: !options.consolidated,
            locations: elsewhere(options),
        }
    }
}

/// Opens objects at URLs, if a store may refer to any location.
#[cfg(feature = "remote")]
fn elsewhere(options: &OpenOptions) -> Option<Arc<dyn Locations>> {
    #[derive(Debug)]
    struct Urls(hyperslab_remote::RemoteOptions);

    impl Locations for Urls {
        fn open(&self, url: &str) -> Result<Option<Arc<dyn hyperslab_core::Blob>>> {
            let remote = hyperslab_remote::Remote::new(url, &self.0)?;
            match remote.beside() {
                Some((storage, key)) => storage.open(key),
                None => Ok(None),
            }
        }
    }

    (options.external == ExternalFiles::Any)
        .then(|| Arc::new(Urls(options.remote.clone())) as Arc<dyn Locations>)
}

#[cfg(not(feature = "remote"))]
fn elsewhere(_: &OpenOptions) -> Option<Arc<dyn Locations>> {
    None
}

/// Inspects a location and recognises its format.
pub(crate) fn find(location: &Path, options: &OpenOptions) -> Result<FoundStore> {
    match remote_url(location) {
        Some(url) => find_remote(url, options),
        None => find_local(&local_path(location), options),
    }
}

/// Returns true for the URL of remote storage, false for a local path.
///
/// ```
/// use std::path::Path;
/// assert!(hyperslab::is_remote(Path::new("s3://bucket/x.zarr")));
/// assert!(!hyperslab::is_remote(Path::new("data/x.zarr")));
/// assert!(!hyperslab::is_remote(Path::new("file:///data/x.zarr")));
/// ```
#[must_use]
pub fn is_remote(location: &Path) -> bool {
    remote_url(location).is_some()
}

/// The same location, independent of the working directory: a URL unchanged, or an absolute path.
#[must_use]
pub fn absolute_location(location: &Path) -> PathBuf {
    if is_remote(location) {
        return location.to_owned();
    }
    let path = local_path(location);
    std::path::absolute(&path).unwrap_or(path)
}

/// The URL, if the location is one of remote storage.
pub(crate) fn remote_url(location: &Path) -> Option<&str> {
    let text = location.to_str()?;
    let (scheme, _) = text.split_once("://")?;
    let is_scheme = !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (is_scheme && scheme != "file").then_some(text)
}

/// Writes a file or a folder at a location. `work` gets a local path, and whether it may replace what is there.
///
/// For a URL, `work` writes to a temporary folder, and the result is uploaded. It appears complete or not at all, and nothing is
/// replaced that another writer has changed meanwhile. Other objects than stores are only replaced by files.
///
/// ```
/// use hyperslab::{OpenOptions, convert::Progress, write_at};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("notes.txt");
/// // Or s3://bucket/notes.txt.
/// write_at(&path, false, &OpenOptions::default(), &Progress::default(), |path, _| {
///     std::fs::write(path, "notes").map_err(|error| hyperslab::Error::io("notes", error))
/// })?;
/// # Ok::<(), hyperslab::Error>(())
/// ```
///
/// # Errors
///
/// Any error of `work`; [`Exists`](Error::Exists) if there is an object and `replace` is false; [`Io`](Error::Io) if the server denies
/// the upload, or another writer was faster.
pub fn write_at<T>(
    target: &Path,
    replace: bool,
    options: &OpenOptions,
    progress: &hyperslab_core::Progress,
    work: impl FnOnce(&Path, bool) -> Result<T>,
) -> Result<T> {
    #[cfg(feature = "remote")]
    if let Some(url) = remote_url(target) {
        return crate::upload::write_to(url, &options.remote, replace, progress, |local| work(local, false));
    }
    let _ = (options, progress);
    check_local(target, "writing to")?;
    work(&local_path(target), replace)
}

/// The local path of a file to write. Callers with a URL use [`write_at`].
pub(crate) fn local_target(target: &Path) -> Result<PathBuf> {
    check_local(target, "writing this file directly to")?;
    Ok(local_path(target))
}

/// Reads a whole file at a path or a URL.
pub(crate) fn read_file(location: &Path, options: &OpenOptions) -> Result<bytes::Bytes> {
    #[cfg(feature = "remote")]
    if let Some(url) = remote_url(location) {
        let remote = hyperslab_remote::Remote::new(url, &options.remote)?;
        let found = remote.beside().map(|(storage, key)| storage.read(key)).transpose()?.flatten();
        return found.ok_or_else(|| {
            Error::io(remote.url(), std::io::Error::new(std::io::ErrorKind::NotFound, "not found"))
        });
    }
    let _ = options;
    check_local(location, "reading")?;
    let path = local_path(location);
    std::fs::read(&path).map(bytes::Bytes::from).map_err(|source| Error::io(location_name(&path), source))
}

/// Refuses to change a remote store.
pub(crate) fn check_local(location: &Path, operation: &str) -> Result<()> {
    match remote_url(location) {
        Some(url) => Err(Error::unsupported(url_name(url), format!("{operation} remote storage"))),
        None => Ok(()),
    }
}

/// A location for messages: a URL without its user and, of a web server, without its query, both of which may be secret.
///
/// ```
/// use std::path::Path;
/// let url = Path::new("https://me:secret@host/x.h5?signature=abc");
/// assert_eq!(hyperslab::location_name(url), "https://host/x.h5");
/// assert_eq!(hyperslab::location_name(Path::new("data/what?.h5")), "data/what?.h5");
/// ```
#[must_use]
pub fn location_name(location: &Path) -> String {
    remote_url(location).map_or_else(|| location.display().to_string(), url_name)
}

/// The path of a `file://` URL, or the path itself.
pub(crate) fn local_path(location: &Path) -> PathBuf {
    match location.to_str().and_then(|text| text.strip_prefix("file://")) {
        // `file://localhost/data` and `file:///data` are the same.
        Some(path) => PathBuf::from(percent_decoded(path.strip_prefix("localhost").unwrap_or(path))),
        None => location.to_owned(),
    }
}

/// The text with `%20` and the like decoded; unchanged if that is not UTF-8.
fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) if *first == b'%' => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

fn find_local(path: &Path, options: &OpenOptions) -> Result<FoundStore> {
    let name = path.display().to_string();
    let metadata = std::fs::metadata(path).map_err(|source| Error::io(name.as_str(), source))?;
    let local = |path: &Path| {
        let mut storage = LocalStorage::new(path);
        if let Some(folder) = &options.within {
            storage = storage.within(folder);
        }
        if options.mapped { storage } else { storage.unmapped() }
    };
    let mut beside: Option<Arc<dyn Storage>> = None;
    let content = if metadata.is_dir() {
        Content::Directory(Arc::new(local(path)))
    } else {
        if options.external != ExternalFiles::None {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            beside = Some(Arc::new(local(folder.unwrap_or_else(|| Path::new("."))).confined()));
        }
        Content::File(if options.mapped {
            Arc::new(MappedBlob::open(path)?)
        } else {
            Arc::new(FileBlob::open(path)?)
        })
    };
    let form = content.form();
    let format = match options.format {
        Some(format) if !format.info().forms.contains(&form) => {
            return Err(format.info().wrong_form(&name, form));
        }
        Some(format) => format,
        None => formats::recognise(&content)?.ok_or_else(|| formats::unrecognised(path, form))?,
    };
    Ok(FoundStore { content, format, path: Some(path.to_owned()), beside, name: path.to_owned() })
}

#[cfg(not(feature = "remote"))]
fn find_remote(url: &str, _: &OpenOptions) -> Result<FoundStore> {
    Err(Error::unsupported(url_name(url), "remote storage in this build"))
}

#[cfg(feature = "remote")]
fn find_remote(url: &str, options: &OpenOptions) -> Result<FoundStore> {
    use hyperslab_core::{ByteRange, ObjectRange, StoreForm};

    /// The number of bytes read first. Most files have their superblock and root within them.
    const HEAD: u64 = 64 << 10;

    let remote = hyperslab_remote::Remote::new(url, &options.remote)?;
    let name = remote.url();
    let named = Format::from_extension(Path::new(&name));
    let expected = options.format.or(named).map(|format| format.info().forms);
    // The usual form of a format is the first.
    let file_first =
        !url.ends_with('/') && expected.is_none_or(|forms| forms.first() == Some(&StoreForm::File));
    let file = || -> Result<Option<FoundStore>> {
        let Some((storage, key)) = remote.beside() else { return Ok(None) };
        let storage: Arc<dyn Storage> = Arc::new(storage);
        storage.prefetch(&[ObjectRange { key, range: ByteRange::Bounded(0..HEAD) }]);
        let Some(blob) = storage.open(key)? else { return Ok(None) };
        let content = Content::File(blob);
        let format = match options.format {
            Some(format) => Some(format),
            None => formats::recognise_remote(&content, named)?,
        };
        let format = format.ok_or_else(|| formats::unrecognised(Path::new(&name), StoreForm::File))?;
        let beside = (options.external != ExternalFiles::None).then_some(storage);
        Ok(Some(FoundStore { content, format, path: None, beside, name: PathBuf::from(&name) }))
    };
    let directory = || -> Result<Option<FoundStore>> {
        let content = Content::Directory(Arc::new(remote.directory()));
        let format = match options.format {
            Some(format) => Some(format),
            None => formats::recognise_remote(&content, named)?,
        };
        let beside = remote.beside().filter(|_| options.external != ExternalFiles::None);
        let beside = beside.map(|(storage, _)| Arc::new(storage) as Arc<dyn Storage>);
        Ok(format.map(|format| FoundStore {
            content,
            format,
            path: None,
            beside,
            name: PathBuf::from(&name),
        }))
    };
    // If access is denied under one form, try the other: a web server may deny access to a folder.
    let mut refused = None;
    let mut attempt = |attempted: Result<Option<FoundStore>>| match attempted {
        Err(error) if is_denied(&error) => {
            refused.get_or_insert(error);
            Ok(None)
        }
        attempted => attempted,
    };
    let found = match file_first {
        true => attempt(file())?.map_or_else(|| attempt(directory()), |found| Ok(Some(found)))?,
        false => attempt(directory())?.map_or_else(|| attempt(file()), |found| Ok(Some(found)))?,
    };
    let missing = || std::io::Error::new(std::io::ErrorKind::NotFound, "not found: there is no store here");
    found.ok_or_else(|| refused.unwrap_or_else(|| Error::io(name.as_str(), missing())))
}

/// Returns true if the server denied access.
#[cfg(feature = "remote")]
fn is_denied(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied)
}
