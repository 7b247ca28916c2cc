//! `tet consolidate` and `tet vacuum`: merge fragments and remove the old ones; `tet delete`: deletes rows by condition; `tet
//! evolve`: adds and drops fields.

use hyperslab::fragments::{
    FieldChange, FieldSpec, change_fields, consolidate_path, delete_rows, parse_field, vacuum_path,
};
use hyperslab::{Error, Filter, Result};
use serde_json::json;

use crate::args::{ConsolidateArgs, DeleteArgs, EvolveArgs, OpenArgs, VacuumArgs};
use crate::{Answer, output, paint, progress};

pub(crate) fn consolidate(args: &ConsolidateArgs) -> Result<Answer> {
    let options = super::open_options(&args.open)?;
    let replaced =
        progress::with_bar(true, |progress| consolidate_path(&args.open.path, &options, progress))?;
    let message = match replaced {
        0 => "nothing to merge".to_owned(),
        count => format!("{count} fragments merged; tet vacuum removes the old ones"),
    };
    answer(&args.open, args.json, "replaced", replaced, &message)
}

pub(crate) fn vacuum(args: &VacuumArgs) -> Result<Answer> {
    let removed = vacuum_path(&args.open.path, &super::open_options(&args.open)?)?;
    let message = match removed {
        0 => "nothing to remove".to_owned(),
        1 => "1 fragment removed".to_owned(),
        count => format!("{count} fragments removed"),
    };
    answer(&args.open, args.json, "removed", removed, &message)
}

pub(crate) fn delete(args: &DeleteArgs) -> Result<Answer> {
    let condition = super::rows::condition(&args.conditions)?;
    let condition = condition.ok_or_else(|| Error::invalid("--where is missing"))?;
    let deleted = delete_rows(&args.open.path, &condition, &super::open_options(&args.open)?)?;
    let message = match deleted {
        0 => "no row meets the condition".to_owned(),
        1 => "1 row deleted".to_owned(),
        count => format!("{count} rows deleted"),
    };
    answer(&args.open, args.json, "deleted", deleted, &message)
}

pub(crate) fn evolve(args: &EvolveArgs) -> Result<Answer> {
    if args.add.is_empty() && args.drop.is_empty() {
        return Err(Error::invalid("nothing to change: give --add or --drop"));
    }
    let filters = Filter::parse_list(args.filter.as_deref().unwrap_or("zstd:3"))?;
    let mut changes: Vec<FieldChange> = args.drop.iter().cloned().map(FieldChange::Drop).collect();
    for text in &args.add {
        let field = parse_field(text)?;
        changes.push(FieldChange::Add(FieldSpec { filters: filters.clone(), ..field }));
    }
    change_fields(&args.open.path, &args.node, &changes, &super::open_options(&args.open)?, args.dry_run)?;
    let added: Vec<&str> = args.add.iter().map(|text| text.split(':').next().unwrap_or_default()).collect();
    if args.json {
        output::print_json(&json!({
            "path": args.open.path.display().to_string(), "node": args.node, "added": added, "dropped": args.drop,
            "applied": !args.dry_run,
        }))?;
        return Ok(Answer::Yes);
    }
    let (sign, would) = if args.dry_run { ("·", "would be ") } else { ("✓", "") };
    let dropped: Vec<&str> = args.drop.iter().map(String::as_str).collect();
    let message: Vec<String> = [(added, "added"), (dropped, "dropped")]
        .iter()
        .filter(|(names, _)| !names.is_empty())
        .map(|(names, word)| format!("{} {would}{word}", names.join(", ")))
        .collect();
    output::report(|out| {
        let path = args.open.path.display();
        writeln!(out, "{} {path}  {}", paint::good(sign), paint::dim(message.join("; ")))
    })?;
    Ok(Answer::Yes)
}

fn answer(open: &OpenArgs, as_json: bool, word: &str, count: u64, message: &str) -> Result<Answer> {
    if as_json {
        output::print_json(&json!({ "path": open.path.display().to_string(), word: count }))?;
    } else {
        output::report(|out| {
            writeln!(out, "{} {}  {}", paint::good("✓"), open.path.display(), paint::dim(message))
        })?;
    }
    Ok(Answer::Yes)
}
