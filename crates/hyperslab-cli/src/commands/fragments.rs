//! `tet consolidate` and `tet vacuum`: many writes into one, and the old ones removed; `tet delete`: rows by condition.

use hyperslab::fragments::{consolidate_path, delete_rows, vacuum_path};
use hyperslab::{Error, Result};
use serde_json::json;

use crate::args::{ConsolidateArgs, DeleteArgs, OpenArgs, VacuumArgs};
use crate::{Answer, output, paint, progress};

pub(crate) fn consolidate(args: &ConsolidateArgs) -> Result<Answer> {
    let options = super::open_options(&args.open)?;
    let replaced =
        progress::with_bar(true, |progress| consolidate_path(&args.open.path, &options, progress))?;
    let told = match replaced {
        0 => "nothing to put together".to_owned(),
        count => format!("{count} fragments put together; tet vacuum removes the old ones"),
    };
    answer(&args.open, args.json, "replaced", replaced, &told)
}

pub(crate) fn vacuum(args: &VacuumArgs) -> Result<Answer> {
    let removed = vacuum_path(&args.open.path, &super::open_options(&args.open)?)?;
    let told = match removed {
        0 => "nothing to remove".to_owned(),
        1 => "1 fragment removed".to_owned(),
        count => format!("{count} fragments removed"),
    };
    answer(&args.open, args.json, "removed", removed, &told)
}

pub(crate) fn delete(args: &DeleteArgs) -> Result<Answer> {
    let condition = super::rows::condition(&args.conditions)?;
    let condition = condition.ok_or_else(|| Error::invalid("--where is missing"))?;
    let deleted = delete_rows(&args.open.path, &condition, &super::open_options(&args.open)?)?;
    let told = match deleted {
        0 => "no row meets the condition".to_owned(),
        1 => "1 row deleted".to_owned(),
        count => format!("{count} rows deleted"),
    };
    answer(&args.open, args.json, "deleted", deleted, &told)
}

fn answer(open: &OpenArgs, as_json: bool, word: &str, count: u64, told: &str) -> Result<Answer> {
    if as_json {
        output::print_json(&json!({ "path": open.path.display().to_string(), word: count }))?;
    } else {
        output::print(|out| {
            writeln!(out, "{} {}  {}", paint::good("✓"), open.path.display(), paint::dim(told))
        })?;
    }
    Ok(Answer::Yes)
}
