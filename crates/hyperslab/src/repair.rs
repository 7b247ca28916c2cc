//! Repairs: safe fixes only.

use std::path::Path;

pub use hyperslab_core::Fix;
use hyperslab_core::{Depth, Repairs, Result, Severity};
#[cfg(feature = "remote")]
use hyperslab_core::{Error, Progress};

use crate::verify::verify_path;
use crate::{OpenOptions, open_with};

/// The fixes that were applied, or would be.
#[derive(Debug, Default)]
pub struct Repair {
    /// The fixes, in the order in which they apply.
    pub fixes: Vec<Fix>,
    /// Whether they were applied.
    pub applied: bool,
    /// Damage that no safe fix covers.
    pub remaining: Vec<String>,
}

/// Plans the safe fixes of a file and, unless `dry_run`, applies them. The new file is built beside the old one, which stays
/// until the new one is in place.
///
/// # Errors
///
/// [`Io`](hyperslab_core::Error::Io) if the system reports an error.
pub fn repair_path(path: &Path, options: &OpenOptions, dry_run: bool) -> Result<Repair> {
    #[cfg(feature = "remote")]
    if let Some(url) = crate::location::remote_url(path) {
        return repair_remote(url, options, dry_run);
    }
    crate::location::check_local(path, "repairing")?;
    let opened = || open_with(path, options).ok().and_then(|store| store.driver());
    let found = match options.format.or_else(opened) {
        Some(format) => format.driver().repair(path, &options.context(path), dry_run)?,
        None => Repairs::default(),
    };
    let applied = !dry_run && !found.fixes.is_empty();
    let remaining = found.remaining.map_or_else(|| damage(path, options), Ok)?;
    Ok(Repair { fixes: found.fixes, applied, remaining })
}

/// Repairs the file at a URL: a copy is repaired, and replaces the version that was downloaded.
#[cfg(feature = "remote")]
fn repair_remote(url: &str, options: &OpenOptions, dry_run: bool) -> Result<Repair> {
    use crate::upload::{change_file_if, with_copy};
    let remote = hyperslab_remote::Remote::new(url, &options.remote)?;
    if !remote.is_object()? {
        let what = "repairing a directory store on remote storage (download it, repair the copy, and upload that; or copy what is \
                    readable with --salvage)";
        return Err(Error::unsupported(remote.url(), what));
    }
    let work = |local: &Path| repair_path(local, options, dry_run);
    if dry_run {
        return with_copy(&remote, work);
    }
    remote.check_writable()?;
    change_file_if(&remote, &Progress::default(), work, |repair| repair.applied)
}

/// The damage that a check still reports.
fn damage(path: &Path, options: &OpenOptions) -> Result<Vec<String>> {
    let verified = verify_path(path, options, Depth::Quick)?;
    let errors =
        verified.report.findings.iter().filter(|finding| !finding.ok && finding.severity == Severity::Error);
    Ok(errors
        .map(|finding| format!("{}: {}", finding.check, finding.detail.as_deref().unwrap_or_default()))
        .collect())
}
