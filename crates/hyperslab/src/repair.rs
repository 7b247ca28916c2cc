//! Mending what can be mended safely.

use std::path::Path;

use hyperslab_core::{Depth, Result, Severity};

use crate::{OpenOptions, open_with};
use crate::verify::verify_path;

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
    let fixes = fixes(path, options, dry_run)?;
    let applied = !dry_run && !fixes.is_empty();
    Ok(Repair { fixes, applied, remaining: damage(path, options)? })
}

/// Plans the fixes that the path's format has, and applies them unless it is a dry run.
fn fixes(path: &Path, options: &OpenOptions, dry_run: bool) -> Result<Vec<Fix>> {
    let Ok(store) = open_with(path, options) else { return Ok(Vec::new()) };
    match store.format() {
        #[cfg(feature = "tet")]
        "tet" => {
            drop(store);
            let plan = hyperslab_tet::plan_repair(path, Depth::Deep)?;
            if !dry_run {
                plan.apply()?;
            }
            let fix = |fix: &hyperslab_tet::Fix| Fix { code: fix.code.to_owned(), message: fix.message.clone() };
            Ok(plan.fixes.iter().map(fix).collect())
        }
        _ => Ok(Vec::new()),
    }
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
