//! `tet repair`: apply the fixes that are safe.

use hyperslab::Result;
use hyperslab::repair::repair_path;
use serde_json::json;

use crate::args::RepairArgs;
use crate::{Answer, output, paint};

pub(crate) fn run(args: &RepairArgs) -> Result<Answer> {
    let repair = repair_path(&args.open.path, &super::open_options(&args.open)?, args.dry_run)?;
    if args.json {
        let fixes: Vec<_> =
            repair.fixes.iter().map(|fix| json!({ "code": fix.code, "message": fix.message })).collect();
        output::print_json(&json!({
            "path": args.open.path.display().to_string(), "fixes": fixes, "applied": repair.applied,
            "remaining": repair.remaining,
        }))?;
    } else {
        output::print(|out| {
            let (mark, done) = if repair.applied { ("✓", "fixed") } else { ("·", "can be fixed") };
            for fix in &repair.fixes {
                writeln!(out, "  {} {:<22} {}", paint::good(mark), fix.code, paint::dim(&fix.message))?;
            }
            for problem in &repair.remaining {
                writeln!(out, "  {} {problem}", paint::bad("✗"))?;
            }
            let path = args.open.path.display();
            match (repair.fixes.len(), repair.remaining.len()) {
                (0, 0) => writeln!(out, "{}  nothing to fix", paint::strong(path)),
                (fixes, 0) => writeln!(out, "{}  {fixes} {done}", paint::strong(path)),
                (fixes, rest) => {
                    writeln!(out, "{}  {fixes} {done}, {rest} cannot be fixed safely", paint::strong(path))
                }
            }
        })?;
    }
    Ok(if repair.remaining.is_empty() { Answer::Yes } else { Answer::No })
}
