//! Conversions into a bucket: the store is built on this machine and uploaded.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hyperslab_core::{Error, Result, StoreForm};
use hyperslab_remote::Remote;

use super::{ConvertOptions, ConvertReport, Progress, convert};
use crate::{Format, OpenOptions, OpenStore};

/// Converts a store into one at a URL.
pub(super) fn convert_to(
    source: &OpenStore,
    url: &str,
    format: Format,
    options: &ConvertOptions,
    progress: &Progress,
) -> Result<ConvertReport> {
    let remote = Remote::new(url, &options.remote)?;
    if options.append {
        return Err(Error::unsupported(remote.url(), "adding to a store in a bucket"));
    }
    let exists = remote.exists()?;
    if exists && !options.replace {
        return Err(Error::Exists { path: remote.url().into() });
    }
    let replaced = exists.then(|| replaceable(url, options)).transpose()?;
    let folder = tempfile::tempdir().map_err(|source| Error::io("the folder for temporary files", source))?;
    let last =
        url.trim_end_matches('/').rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("store");
    // The name matters: some formats keep it.
    let local = folder.path().join(last.split('?').next().unwrap_or(last));
    let options = ConvertOptions { replace: false, sync: false, ..options.clone() };
    let report = convert(source, &local, format, &options, progress)?;
    let stop = Arc::new(AtomicBool::new(false));
    let ended = AtomicBool::new(false);
    let uploaded = std::thread::scope(|scope| {
        // Whoever stops the conversion stops the upload.
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                stop.store(progress.stop.load(Ordering::Relaxed), Ordering::Relaxed);
                std::thread::sleep(std::time::Duration::from_millis(50));
            }
        });
        let uploaded = match format.info().created_form() {
            StoreForm::File => remote.upload_file(&local, exists, &stop),
            StoreForm::Directory => {
                let replaced = replaced.map(|format| format.info().visible_last);
                remote.upload_folder(&local, format.info().visible_last, replaced, &stop)
            }
        };
        ended.store(true, Ordering::Relaxed);
        uploaded
    });
    if progress.stop.load(Ordering::Relaxed) && uploaded.is_err() {
        return Err(Error::Cancelled);
    }
    uploaded.map(|()| report)
}

/// The format of the store at a URL. What is not a store is not replaced.
fn replaceable(url: &str, options: &ConvertOptions) -> Result<Format> {
    let open = OpenOptions { remote: options.remote.clone(), ..OpenOptions::default() };
    match crate::location::find(Path::new(url), &open) {
        Ok(found) => Ok(found.format),
        Err(Error::Io { path, source }) if source.kind() != ErrorKind::NotFound => {
            Err(Error::Io { path, source })
        }
        Err(_) => Err(Error::invalid(format!(
            "{} exists and is not a store, so it is not replaced; remove it or choose another target",
            crate::location::url_name(url)
        ))),
    }
}
