//! Repairs: safe fixes only.

use std::path::Path;

pub use hyperslab_core::Fix;
use hyperslab_core::{Depth, Repairs, Result, Severity};

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

/// The damage that a check still reports.
fn damage(path: &Path, options: &OpenOptions) -> Result<Vec<String>> {
    let verified = verify_path(path, options, Depth::Quick)?;
    let errors =
        verified.report.findings.iter().filter(|finding| !finding.ok && finding.severity == Severity::Error);
    Ok(errors
        .map(|finding| format!("{}: {}", finding.check, finding.detail.as_deref().unwrap_or_default()))
        .collect())
}
