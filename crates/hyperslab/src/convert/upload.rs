//! Conversions into a bucket: the store is built locally and uploaded.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyperslab_core::storage::StagedChange;
use hyperslab_core::{CreateOptions, Error, Result, Sink, Storage, StoreForm};
use hyperslab_remote::{Present, Remote, RemoteOptions};

use super::{ConvertOptions, ConvertReport, Progress, convert, convert_with};
use crate::{Format, OpenOptions, OpenStore};

/// Converts a store to a store at a URL.
pub(super) fn convert_to(
    source: &OpenStore,
    url: &str,
    format: Format,
    options: &ConvertOptions,
    progress: &Progress,
) -> Result<ConvertReport> {
    let remote = Remote::new(url, &options.remote)?;
    let mut present = remote.present()?;
    if options.append && present.is_there() {
        return add_to(source, &remote, format, options, progress);
    }
    if present.is_there() && !options.replace {
        return Err(Error::Exists { path: remote.url().into() });
    }
    let replaced = present.is_there().then(|| replaceable(url, options)).transpose()?;
    remote.record(&mut present)?;
    let folder = temporary_folder()?;
    let local = folder.path().join(last_name(&remote));
    let options = ConvertOptions { replace: false, append: false, sync: false, ..options.clone() };
    let report = convert(source, &local, format, &options, progress)?;
    let last = format.info().visible_last;
    unless_stopped(progress, |stop| match (format.info().created_form(), replaced) {
        (StoreForm::File, _) => remote.upload_file(&local, &present, stop),
        (StoreForm::Directory, None) => remote.upload_folder(&local, last, stop),
        (StoreForm::Directory, Some(old)) => {
            remote.replace_folder(&local, last, old.info().visible_last, &present, stop)
        }
    })?;
    Ok(report)
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
    let (folder, present) = copy_of(remote)?;
    let local = folder.path().join(last_name(remote));
    let done = work(&local)?;
    unless_stopped(progress, |stop| remote.upload_file(&local, &present, stop))?;
    Ok(done)
}

/// Runs `work` on a local copy of the file at a URL.
pub(crate) fn with_copy<T>(remote: &Remote, work: impl FnOnce(&Path) -> Result<T>) -> Result<T> {
    let (folder, _) = copy_of(remote)?;
    work(&folder.path().join(last_name(remote)))
}

/// A temporary folder with a copy of the file at a URL, under its own name.
fn copy_of(remote: &Remote) -> Result<(tempfile::TempDir, Present)> {
    let folder = temporary_folder()?;
    let present = remote.download(&folder.path().join(last_name(remote)))?;
    Ok((folder, present.ok_or_else(|| Error::not_found(remote.url(), "the object"))?))
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
    let folder = temporary_folder()?;
    let storage = Arc::new(remote.directory());
    let (change, steps) = StagedChange::elsewhere(folder.path())?;
    let objects: Arc<dyn Storage> = Arc::<hyperslab_remote::RemoteStorage>::clone(&storage);
    let sink =
        Box::new(move |options: &CreateOptions| format.driver().append_elsewhere(objects, change, options));
    unless_stopped(progress, |stop| {
        remote.change(&storage, &folder.path().join("content"), stop, || Ok((work(sink)?, steps.take())))
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
fn replaceable(url: &str, options: &ConvertOptions) -> Result<Format> {
    format_at(url, &options.remote).map_err(|error| match error {
        Error::Io { path, source } if source.kind() != ErrorKind::NotFound => Error::Io { path, source },
        _ => Error::invalid(format!(
            "{} exists and is not a store, so it is not replaced; remove it or choose another target",
            hyperslab_core::url_name(url)
        )),
    })
}

/// The format of the store at a URL.
pub(crate) fn format_at(url: &str, remote: &RemoteOptions) -> Result<Format> {
    let open = OpenOptions { remote: remote.clone(), ..OpenOptions::default() };
    crate::location::find(Path::new(url), &open).map(|found| found.format)
}
