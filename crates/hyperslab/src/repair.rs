//! Mending what can be mended safely.

use std::path::Path;

use hyperslab_core::{Depth, Result, Severity};

use crate::verify::verify_path;
use crate::{OpenOptions, open_with};

/// What was mended, or would be.
#[derive(Debug, Default)]
pub struct Repair {
    /// The fixes, in the order in which they apply.
    pub fixes: Vec<Fix>,
    /// Were they applied?
    pub applied: bool,
    /// Damage that no safe fix covers.
    pub remaining: Vec<String>,
}

/// One fix.
#[derive(Debug, Clone)]
pub struct Fix {
    /// Its stable name.
    pub code: String,
    /// What it does.
    pub message: String,
}

/// Plans the safe fixes of a file and, unless `dry_run`, applies them: the new file is built beside the old one, which
/// stays until the new one is in place.
///
/// # Errors
///
/// [`Io`](hyperslab_core::Error::Io) when the system refuses.
pub fn repair_path(path: &Path, options: &OpenOptions, dry_run: bool) -> Result<Repair> {
    match recognised(path, options) {
        #[cfg(feature = "tet")]
        Some("tet") => repair_tet(path, dry_run),
        #[cfg(feature = "tiledb")]
        Some("tiledb") => repair_tiledb(path, options, dry_run),
        _ => {
            let _ = dry_run;
            Ok(Repair { remaining: damage(path, options)?, ..Repair::default() })
        }
    }
}

/// The format, when it can be told.
fn recognised(path: &Path, options: &OpenOptions) -> Option<&'static str> {
    let opened = || open_with(path, options).ok().map(|store| store.format());
    options.format.map(crate::Format::name).or_else(opened)
}

#[cfg(feature = "tiledb")]
fn repair_tiledb(path: &Path, options: &OpenOptions, dry_run: bool) -> Result<Repair> {
    let key = options.key.as_ref().map(crate::EncryptionKey::to_tiledb);
    let tiledb = hyperslab_tiledb::WriteOptions { key, ..hyperslab_tiledb::WriteOptions::default() };
    let fixes = hyperslab_tiledb::repair(path, &tiledb, dry_run)?;
    let fixes: Vec<Fix> =
        fixes.into_iter().map(|(code, message)| Fix { code: code.to_owned(), message }).collect();
    let applied = !dry_run && !fixes.is_empty();
    Ok(Repair { fixes, applied, remaining: damage(path, options)? })
}

#[cfg(feature = "tet")]
fn repair_tet(path: &Path, dry_run: bool) -> Result<Repair> {
    let plan = hyperslab_tet::plan_repair(path, Depth::Quick)?;
    let fixes = plan
        .fixes
        .iter()
        .map(|fix| Fix { code: fix.code.to_owned(), message: fix.message.clone() })
        .collect();
    let applied = !dry_run && !plan.is_empty();
    if applied {
        plan.apply()?;
    }
    Ok(Repair { fixes, applied, remaining: plan.left })
}

/// What a check still calls damage.
fn damage(path: &Path, options: &OpenOptions) -> Result<Vec<String>> {
    let verified = verify_path(path, options, Depth::Quick)?;
    let errors =
        verified.report.findings.iter().filter(|finding| !finding.ok && finding.severity == Severity::Error);
    Ok(errors
        .map(|finding| format!("{}: {}", finding.check, finding.detail.as_deref().unwrap_or_default()))
        .collect())
}
