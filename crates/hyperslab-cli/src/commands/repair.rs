//! `tet repair`: applies safe fixes.

use std::path::Path;

use hyperslab::convert::ConvertOptions;
use hyperslab::repair::repair_path;
use hyperslab::salvage::{Lost, salvage};
use hyperslab::{Result, format_named, format_of_extension};
use serde_json::json;

use crate::args::RepairArgs;
use crate::{Answer, output, paint, pretty, progress};

/// The maximum number of lost chunks listed per node; JSON has all.
const MOST_LISTED: usize = 20;

pub(crate) fn run(args: &RepairArgs) -> Result<Answer> {
    if let Some(target) = &args.salvage {
        return save(args, target);
    }
    let repair = repair_path(&args.open.path, &super::open_options(&args.open)?, args.dry_run)?;
    if args.json {
        let fixes: Vec<_> =
            repair.fixes.iter().map(|fix| json!({ "code": fix.code, "message": fix.message })).collect();
        output::print_json(&json!({
            "path": args.open.path.display().to_string(), "fixes": fixes, "applied": repair.applied,
            "remaining": repair.remaining,
        }))?;
    } else {
        output::report(|out| {
            let (mark, done) = if repair.applied { ("✓", "fixed") } else { ("·", "can be fixed") };
            for fix in &repair.fixes {
                writeln!(out, "  {} {:<22} {}", paint::good(mark), fix.code, paint::dim(&fix.message))?;
            }
            for problem in &repair.remaining {
                writeln!(out, "  {} {problem}", paint::bad("✗"))?;
            }
            let path = args.open.path.display();
            match (repair.fixes.len(), repair.remaining.len()) {
                (0, 0) => {
                    let rest = format!("(chunks were not read; `tet verify {path} --deep` checks them)");
                    writeln!(out, "{}  nothing to fix {}", paint::strong(path), paint::dim(rest))
                }
                (fixes, 0) => writeln!(out, "{}  {fixes} {done}", paint::strong(path)),
                (fixes, rest) => {
                    writeln!(out, "{}  {fixes} {done}, {rest} cannot be fixed safely", paint::strong(path))
                }
            }
        })?;
    }
    Ok(if repair.remaining.is_empty() { Answer::Yes } else { Answer::No })
}

/// Copies everything readable to a new file. The answer is no if something was lost.
fn save(args: &RepairArgs, target: &Path) -> Result<Answer> {
    let chosen = match &args.to {
        Some(name) => Some(format_named(name)?),
        None => format_of_extension(target),
    };
    let (format, variant) = chosen.map_or((None, None), |(format, variant)| (Some(format), variant));
    let options = ConvertOptions::default().with_replace(args.force).with_variant(variant);
    let open = super::open_options(&args.open)?;
    let report = progress::with_bar(!args.json, |progress| {
        salvage(&args.open.path, target, format, &open, &options, progress)
    })?;
    let complete = report.lost.is_empty() && report.written.dropped().next().is_none();
    let answer = if complete { Answer::Yes } else { Answer::No };
    if args.json {
        output::print_json(&json!({
            "path": args.open.path.display().to_string(), "salvaged": target.display().to_string(),
            "arrays": report.written.arrays, "bytes": report.written.bytes, "lost": report.lost,
            "losses": report.written.losses,
        }))?;
        return Ok(answer);
    }
    output::report(|out| {
        for of_node in report.lost.chunk_by(|one, other| one.node == other.node) {
            list_losses_of_node(of_node, out)?;
        }
        for loss in &report.written.losses {
            writeln!(out, "  {} {loss}", paint::doubtful("!"))?;
        }
        let content = match (report.written.arrays, report.written.rows) {
            (0, rows) if rows > 0 => pretty::counted(rows, "row"),
            (arrays, _) => pretty::counted(arrays, "array"),
        };
        let (all, lost) = (report.written.bytes, report.lost.iter().map(|own| own.bytes).sum::<u64>());
        let saved = match lost {
            0 => pretty::bytes(all),
            lost => format!("{} of {}", pretty::bytes(all.saturating_sub(lost)), pretty::bytes(all)),
        };
        let sign = if complete { paint::good("✓") } else { paint::doubtful("!") };
        let about = format!("{content}, {saved} saved, {}", describe_losses(&report.lost));
        writeln!(out, "{sign} {}  {}", target.display(), paint::dim(about))
    })?;
    Ok(answer)
}

/// The number of losses, by kind: `12 chunks lost`.
fn describe_losses(lost: &[Lost]) -> String {
    let chunks = lost.iter().filter(|own| own.chunk.is_some()).count();
    let shorter = lost.iter().filter(|own| own.positions.is_some()).count();
    let losses: Vec<String> = [
        (lost.len() - chunks - shorter, "node", "lost"),
        (shorter, "array", "shortened"),
        (chunks, "chunk", "lost"),
    ]
    .into_iter()
    .filter(|(number, ..)| *number > 0)
    .map(|(number, thing, what)| format!("{} {what}", pretty::counted(number as u64, thing)))
    .collect();
    if losses.is_empty() { "nothing lost".to_owned() } else { losses.join(", ") }
}

fn list_losses_of_node(lost: &[Lost], out: &mut dyn std::io::Write) -> std::io::Result<()> {
    for own in lost.iter().take(MOST_LISTED) {
        let place = own.chunk.as_ref().map_or_else(String::new, |chunk| {
            let place: Vec<String> = chunk.iter().map(u64::to_string).collect();
            format!(" chunk ({})", place.join(", "))
        });
        writeln!(out, "  {} {}{place}  {}", paint::bad("✗"), own.node, paint::dim(&own.reason))?;
    }
    if lost.len() > MOST_LISTED {
        let more = format!("… {} more of {}; --json lists all", lost.len() - MOST_LISTED, lost[0].node);
        writeln!(out, "    {}", paint::dim(more))?;
    }
    Ok(())
}
