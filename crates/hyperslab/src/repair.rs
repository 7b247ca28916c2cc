//! Mending what can be mended safely.

use std::path::Path;

use hyperslab_core::{Depth, Result, Severity};

use crate::OpenOptions;
#[cfg(feature = "tet")]
use crate::open_with;
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
    #[cfg(feature = "tet")]
    if is_tet(path, options) {
        return repair_tet(path, dry_run);
    }
    let _ = dry_run;
    Ok(Repair { remaining: damage(path, options)?, ..Repair::default() })
}

#[cfg(feature = "tet")]
fn is_tet(path: &Path, options: &OpenOptions) -> bool {
    options.format.map_or_else(
        || open_with(path, options).is_ok_and(|store| store.format() == "tet"),
        |format| format == crate::Format::Tet,
    )
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
