//! Writes to buckets: stores and files are built in a temporary folder and uploaded.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyperslab_core::storage::StagedChange;
use hyperslab_core::{Corrupt, CreateOptions, Error, Result, Sink, Storage, StoreForm};
use hyperslab_remote::{Present, Remote, RemoteOptions};

use crate::convert::{ConvertOptions, ConvertReport, Progress, convert, convert_with, table};
use crate::{Format, OpenOptions, OpenStore};

/// What a write found at a URL, which it replaces.
#[derive(Debug)]
pub(crate) struct Replaced {
    present: Present,
    /// The format of the store there.
    format: Option<Format>,
}

impl Replaced {
    /// Examines the URL. Nothing is replaced unless `replace` is set. Anything but an object must be a store, and if `only_stores`
    /// is set, so must an object.
    pub(crate) fn at(
        remote: &Remote,
        options: &RemoteOptions,
        replace: bool,
        only_stores: bool,
    ) -> Result<Self> {
        let mut present = remote.present()?;
        if present.is_there() && !replace {
            return Err(Error::Exists { path: remote.url().into() });
        }
        let is_file = present.is_there() && !present.is_directory();
        let must_be_store = present.is_there() && (only_stores || !is_file);
        let format = must_be_store.then(|| replaceable(remote, options)).transpose()?;
        remote.record(&mut present)?;
        Ok(Self { present, format })
    }

    /// Builds a file or a folder with `work`, which gets its local path, and uploads it. `last` names the objects of a folder
    /// that make it visible.
    fn build<T>(
        self,
        remote: &Remote,
        progress: &Progress,
        last: impl FnOnce(&Path) -> Result<&'static [&'static str]>,
        work: impl FnOnce(&Path) -> Result<T>,
    ) -> Result<T> {
        let folder = temporary_folder()?;
        let local = folder.path().join(last_name(remote));
        let done = work(&local).map_err(|error| at_url(error, &local, remote))?;
        let Self { present, format } = self;
        unless_stopped(progress, |stop| {
            if !local.is_dir() {
                return remote.upload_file(&local, &present, stop);
            }
            let last = last(&local)?;
            match format {
                None if !present.is_there() => remote.upload_folder(&local, last, stop),
                None => Err(not_a_store(remote)),
                Some(old) => remote.replace_folder(&local, last, old.info().visible_last, &present, stop),
            }
        })?;
        Ok(done)
    }
}

/// Converts a store to a store at a URL.
pub(crate) fn convert_to(
    source: &OpenStore,
    url: &str,
    format: Format,
    options: &ConvertOptions,
    progress: &Progress,
) -> Result<ConvertReport> {
    let remote = Remote::new(url, &options.remote)?;
    if options.append && remote.present()?.is_there() {
        return add_to(source, &remote, format, options, progress);
    }
    let replaced = Replaced::at(&remote, &options.remote, options.replace, true)?;
    build_store(&remote, replaced, format, options, progress, |local, options| {
        convert(source, local, format, options, progress)
    })
}

/// Builds a store with `work`, and uploads it. With `dry_run`, only the work is done.
pub(crate) fn build_store(
    remote: &Remote,
    replaced: Replaced,
    format: Format,
    options: &ConvertOptions,
    progress: &Progress,
    work: impl FnOnce(&Path, &ConvertOptions) -> Result<ConvertReport>,
) -> Result<ConvertReport> {
    let options = ConvertOptions { replace: false, append: false, sync: false, ..options.clone() };
    if options.dry_run {
        let folder = temporary_folder()?;
        let local = folder.path().join(last_name(remote));
        return work(&local, &options).map_err(|error| at_url(error, &local, remote));
    }
    replaced.build(remote, progress, |_| Ok(format.info().visible_last), |local| work(local, &options))
}

/// Writes a file or a folder to a URL: `work` writes it to a local path. Any object may be replaced by a file, and only a store by
/// a folder.
pub(crate) fn write_to<T>(
    url: &str,
    options: &RemoteOptions,
    replace: bool,
    progress: &Progress,
    work: impl FnOnce(&Path) -> Result<T>,
) -> Result<T> {
    let remote = Remote::new(url, options)?;
    let replaced = Replaced::at(&remote, options, replace, false)?;
    let is_folder = replaced.present.is_directory();
    let last = |local: &Path| {
        let found = crate::location::find(local, &OpenOptions::default())?;
        Ok(found.format.info().visible_last)
    };
    let name = remote.url();
    replaced.build(&remote, progress, last, |local| {
        let done = work(local)?;
        if is_folder && !local.is_dir() {
            return Err(Error::invalid(format!(
                "{name} is a folder, which a file cannot replace; remove it or choose another target"
            )));
        }
        Ok(done)
    })
}

/// Appends a store to a store at a URL.
fn add_to(
    source: &OpenStore,
    remote: &Remote,
    format: Format,
    options: &ConvertOptions,
    progress: &Progress,
) -> Result<ConvertReport> {
    if format.info().created_form() == StoreForm::File {
        let options = ConvertOptions { sync: false, ..options.clone() };
        return change_file(remote, progress, |local| convert(source, local, format, &options, progress));
    }
    if format.writes_geometry() {
        return Err(Error::unsupported(remote.url(), "adding geometry to a store on remote storage"));
    }
    let url = remote.url();
    if format.info().capabilities.tables
        && let Some((rows, selection)) = table::table_of(source, Path::new(&url), options)?
    {
        let options = ConvertOptions { selection, ..options.clone() };
        return change_objects(remote, progress, |storage, change| {
            let place = (Path::new(&url), format);
            table::append_elsewhere(&rows, place, (storage, change), &options, progress)
        });
    }
    change_directory(remote, format, progress, |sink| {
        convert_with(source, Path::new(&url), format, options, progress, sink)
    })
}

/// Changes a single-file store at a URL: downloads it, changes the copy, and replaces the version that was
/// downloaded.
pub(crate) fn change_file<T>(
    remote: &Remote,
    progress: &Progress,
    work: impl FnOnce(&Path) -> Result<T>,
) -> Result<T> {
    change_file_if(remote, progress, work, |_| true)
}

/// Like [`change_file`]. The file is only replaced if the outcome of the work says that it changed.
pub(crate) fn change_file_if<T>(
    remote: &Remote,
    progress: &Progress,
    work: impl FnOnce(&Path) -> Result<T>,
    has_changed: impl FnOnce(&T) -> bool,
) -> Result<T> {
    let (folder, present) = copy_of(remote)?;
    let local = folder.path().join(last_name(remote));
    let done = work(&local).map_err(|error| at_url(error, &local, remote))?;
    if has_changed(&done) {
        unless_stopped(progress, |stop| remote.upload_file(&local, &present, stop))?;
    }
    Ok(done)
}

/// Runs `work` on a local copy of the file at a URL.
pub(crate) fn with_copy<T>(remote: &Remote, work: impl FnOnce(&Path) -> Result<T>) -> Result<T> {
    let (folder, _) = copy_of(remote)?;
    let local = folder.path().join(last_name(remote));
    work(&local).map_err(|error| at_url(error, &local, remote))
}

/// A temporary folder with a copy of the file at a URL, under its own name.
fn copy_of(remote: &Remote) -> Result<(tempfile::TempDir, Present)> {
    let folder = temporary_folder()?;
    let present = remote.download(&folder.path().join(last_name(remote)))?;
    Ok((folder, present.ok_or_else(|| Error::not_found(remote.url(), "the object"))?))
}

/// An error about a local copy, as one about the URL.
fn at_url(error: Error, local: &Path, remote: &Remote) -> Error {
    let (local, url) = (local.display().to_string(), remote.url());
    let text = |text: &str| text.replace(&local, &url);
    let name = |name: Arc<str>| -> Arc<str> { text(&name).into() };
    match error {
        Error::Corrupt(corrupt) => Error::Corrupt(Box::new(Corrupt {
            store: name(corrupt.store),
            problem: text(&corrupt.problem),
            ..*corrupt
        })),
        Error::Unsupported { store, feature } => {
            Error::Unsupported { store: name(store), feature: text(&feature) }
        }
        Error::Invalid(message) => Error::Invalid(text(&message)),
        Error::NotFound { store, what, hint } => {
            Error::NotFound { store: name(store), what: text(&what), hint: text(&hint) }
        }
        Error::Exists { path } => Error::Exists { path: name(path) },
        Error::Io { path, source } => Error::Io { path: name(path), source },
        error => error,
    }
}

/// A function that creates the sink for additions to a store.
type MakeSink = Box<dyn FnOnce(&CreateOptions) -> Result<Box<dyn Sink>>>;

/// Runs `work` with a sink for additions to the directory store at a URL, without publishing them.
pub(crate) fn with_sink<T>(
    remote: &Remote,
    format: Format,
    work: impl FnOnce(MakeSink) -> Result<T>,
) -> Result<T> {
    let folder = temporary_folder()?;
    let (change, _) = StagedChange::elsewhere(folder.path())?;
    let storage: Arc<dyn Storage> = Arc::new(remote.directory());
    work(Box::new(move |options| format.driver().append_elsewhere(storage, change, options)))
}

/// Changes a directory store at a URL: `work` gets a function that creates the sink for the additions, and commits
/// that sink.
pub(crate) fn change_directory<T>(
    remote: &Remote,
    format: Format,
    progress: &Progress,
    work: impl FnOnce(MakeSink) -> Result<T>,
) -> Result<T> {
    change_objects(remote, progress, |storage, change| {
        work(Box::new(move |options| format.driver().append_elsewhere(storage, change, options)))
    })
}

/// Changes a directory store at a URL: `work` gets its objects, and the change to write to and to publish.
fn change_objects<T>(
    remote: &Remote,
    progress: &Progress,
    work: impl FnOnce(Arc<dyn Storage>, StagedChange) -> Result<T>,
) -> Result<T> {
    let folder = temporary_folder()?;
    let storage = Arc::new(remote.directory());
    let (change, steps) = StagedChange::elsewhere(folder.path())?;
    let objects: Arc<dyn Storage> = Arc::<hyperslab_remote::RemoteStorage>::clone(&storage);
    unless_stopped(progress, |stop| {
        let make = || Ok((work(objects, change)?, steps.take()));
        remote.change(&storage, &folder.path().join("content"), stop, make)
    })
}

/// Runs `work` with a flag that is set when the operation is cancelled.
fn unless_stopped<T>(progress: &Progress, work: impl FnOnce(&Arc<AtomicBool>) -> Result<T>) -> Result<T> {
    let stop = Arc::new(AtomicBool::new(false));
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                stop.store(progress.stop.load(Ordering::Relaxed), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let done = work(&stop);
        ended.store(true, Ordering::Relaxed);
        done
    })
}

fn temporary_folder() -> Result<tempfile::TempDir> {
    tempfile::tempdir().map_err(|source| Error::io("the folder for temporary files", source))
}

/// The last part of a URL. Some formats store their file's name.
fn last_name(remote: &Remote) -> String {
    let url = remote.url();
    url.trim_end_matches('/').rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("store").to_owned()
}

/// The format of the store at a URL. Anything that is not a store is not replaced.
fn replaceable(remote: &Remote, options: &RemoteOptions) -> Result<Format> {
    format_at(&remote.url(), options).map_err(|error| match error {
        Error::Io { path, source } if source.kind() != ErrorKind::NotFound => Error::Io { path, source },
        _ => not_a_store(remote),
    })
}

fn not_a_store(remote: &Remote) -> Error {
    Error::invalid(format!(
        "{} exists and is not a store, so it is not replaced; remove it or choose another target",
        remote.url()
    ))
}

/// The format of the store at a URL.
pub(crate) fn format_at(url: &str, remote: &RemoteOptions) -> Result<Format> {
    let open = OpenOptions { remote: remote.clone(), ..OpenOptions::default() };
    crate::location::find(Path::new(url), &open).map(|found| found.format)
}
