//! `tet append`: appends files to a store, along a dimension.

use hyperslab::combine::{AppendOptions, CombineOptions, append_along, expand};
use hyperslab::{Error, Result, location_name};
use serde_json::json;

use crate::args::AppendArgs;
use crate::{Answer, output, paint, pretty, progress};

pub(crate) fn run(args: &AppendArgs) -> Result<Answer> {
    let Some((target, sources)) = args.paths.split_last() else {
        return Err(Error::invalid("append needs at least one input file and the store to add it to"));
    };
    let open = super::default_options()?
        .with_remote(super::remote_options(&args.storage)?)
        .with_external(args.external.rule()?);
    let mut options = AppendOptions::default()
        .with_combine(CombineOptions::default().with_open(open).with_drop(args.drop.clone()))
        .with_dry_run(args.dry_run);
    if let Some(memory) = &args.memory {
        options.memory = pretty::parse_bytes(memory)?;
    }
    let sources = expand(sources)?;
    let report = progress::with_bar(!args.quiet, |progress| {
        append_along(target, &sources, &args.along, &options, progress)
    })?;
    if args.json {
        let notes: Vec<_> =
            report.notes.iter().map(|(node, note)| json!({ "node": node, "note": note })).collect();
        output::print_json(&json!({
            "path": location_name(target), "dimension": args.along, "before": report.before,
            "after": report.after, "arrays": report.arrays, "bytes": report.bytes, "applied": !args.dry_run,
            "notes": notes,
        }))?;
        return Ok(Answer::Yes);
    }
    output::report(|out| {
        let (sign, would) = if args.dry_run { ("·", "would grow: ") } else { ("✓", "") };
        let about = format!(
            "{would}{} {} → {}, {}, {}",
            args.along,
            report.before,
            report.after,
            pretty::counted(report.arrays, "array"),
            pretty::bytes(report.bytes)
        );
        if !args.quiet {
            writeln!(out, "{} {}  {}", paint::good(sign), location_name(target), paint::dim(about))?;
        }
        for (node, note) in &report.notes {
            writeln!(out, "{} {node}: {note}", paint::doubtful("!"))?;
        }
        Ok(())
    })?;
    Ok(Answer::Yes)
}
