//! Changes to a store at a URL.

use std::path::Path;

use hyperslab_core::{CreateOptions, Result, StoreForm};
use hyperslab_remote::Remote;

use super::{
    Edit, EditOptions, EditReport, Plan, apply, check_rewritable, edited, rewrite_options, with_advice,
};
use crate::convert::{Progress, convert_into};
use crate::upload::{Replaced, build_store, change_directory, change_file, format_at, with_copy, with_sink};

pub(super) fn edit(
    url: &str,
    edits: &[Edit],
    options: &EditOptions,
    progress: &Progress,
) -> Result<EditReport> {
    let remote = Remote::new(url, &options.open.remote)?;
    remote.check_writable()?;
    let format = match options.open.format {
        Some(format) => format,
        None => format_at(url, &options.open.remote)?,
    };
    if format.info().created_form() == StoreForm::File {
        let work = |local: &Path| super::edit(local, edits, options, progress);
        return if options.dry_run { with_copy(&remote, work) } else { change_file(&remote, progress, work) };
    }
    // The objects are recorded before the store is read, so that a change by another writer is noticed.
    let replaced = Replaced::at(&remote, &options.open.remote, true, true)?;
    let Plan { stored, format, edits, changes, mut report } = {
        let plan = Plan::new(Path::new(url), edits, options)?;
        plan.check_format(Path::new(url))?;
        plan
    };
    let create = CreateOptions::default().with_append(true);
    let changed = if !format.info().capabilities.append {
        Err(format.driver().unsupported(Path::new(url), "editing in place"))
    } else if options.dry_run {
        with_sink(&remote, format, |sink| apply(sink(&create)?, &edits, true))
    } else {
        change_directory(&remote, format, progress, |sink| apply(sink(&create)?, &edits, false))
    };
    match changed {
        Ok(()) => report.in_place = true,
        Err(why) if why.is_unsupported() => {
            check_rewritable(&stored, format, StoreForm::Directory)?;
            let convert_options = rewrite_options(&changes, options);
            let view = edited(&stored, changes);
            let built =
                build_store(&remote, replaced, format, &convert_options, progress, |local, options| {
                    convert_into(&view, local, format, options, progress)
                });
            built.map_err(with_advice)?;
        }
        Err(why) => return Err(why),
    }
    report.applied = !options.dry_run && !edits.is_empty();
    Ok(report)
}
