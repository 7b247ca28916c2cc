//! `tet attrs`, `tet rename` and `tet rm`: changes to an existing store.

use hyperslab::edit::{Edit, EditOptions, attribute_value, attributes_of, edit, user_attributes};
use hyperslab::{Error, Result};
use serde_json::{Value, json};

use super::info::attribute_text;
use crate::args::{AttrsArgs, ChangeArgs, OpenArgs, RenameArgs, RmArgs};
use crate::{Answer, output, paint, progress};

pub(crate) fn attrs(args: &AttrsArgs) -> Result<Answer> {
    if args.set.is_empty() && args.delete.is_empty() {
        return show(args);
    }
    let store = super::open_unmapped(&args.open)?;
    let mut edits = Vec::new();
    for text in &args.set {
        let (name, value) = text.split_once('=').ok_or_else(|| {
            Error::invalid(format!("{text:?} is not NAME=VALUE; use --delete {text} to delete an attribute"))
        })?;
        let value = attribute_value(&store, &args.node, name, value, args.dtype.as_deref())?;
        edits.push(Edit::SetAttribute { node: args.node.clone(), name: name.to_owned(), value });
    }
    for name in &args.delete {
        edits.push(Edit::DeleteAttribute { node: args.node.clone(), name: name.clone() });
    }
    drop(store);
    apply(&args.open, &edits, &args.change)
}

/// Shows the attributes of a node.
fn show(args: &AttrsArgs) -> Result<Answer> {
    let attributes = attributes_of(&super::open(&args.open)?, &args.node)?;
    if args.change.json {
        output::print_json(&Value::Object(attributes.to_json()))?;
        return Ok(Answer::Yes);
    }
    output::print(|out| {
        for (name, value) in user_attributes(&attributes) {
            writeln!(out, "{} {}", paint::dim(format!("{name}:")), attribute_text(value))?;
        }
        Ok(())
    })?;
    Ok(Answer::Yes)
}

pub(crate) fn rename(args: &RenameArgs) -> Result<Answer> {
    let edits = [Edit::Rename { from: args.from.clone(), to: args.to.clone() }];
    apply(&args.open, &edits, &args.change)
}

pub(crate) fn remove(args: &RmArgs) -> Result<Answer> {
    let edits: Vec<Edit> = args.nodes.iter().map(|node| Edit::Remove { node: node.clone() }).collect();
    apply(&args.open, &edits, &args.change)
}

fn apply(open: &OpenArgs, edits: &[Edit], change: &ChangeArgs) -> Result<Answer> {
    let options = EditOptions::default().with_open(super::open_options(open)?).with_dry_run(change.dry_run);
    let report = progress::with_bar(!change.json, |progress| edit(&open.path, edits, &options, progress))?;
    if change.json {
        let changes: Vec<_> =
            report.changes.iter().map(|(node, what)| json!({ "node": node, "change": what })).collect();
        output::print_json(&json!({
            "path": open.path.display().to_string(), "changes": changes, "in_place": report.in_place,
            "applied": report.applied,
        }))?;
        return Ok(Answer::Yes);
    }
    output::report(|out| {
        let sign = if report.applied { paint::good("✓") } else { paint::dim("·") };
        for (node, what) in &report.changes {
            writeln!(out, "{sign} {node}  {what}")?;
        }
        let how = match (report.applied, report.in_place) {
            (true, true) => "changed in place",
            (true, false) => "rewritten",
            (false, true) => "nothing was changed; without --dry-run, it is changed in place",
            (false, false) => "nothing was changed; without --dry-run, the file is rewritten",
        };
        writeln!(out, "{}", paint::dim(format!("{}  {how}", open.path.display())))
    })?;
    Ok(Answer::Yes)
}
