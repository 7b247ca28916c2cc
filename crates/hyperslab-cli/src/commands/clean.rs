//! `tet clean`: removes leftovers of killed writers.

use hyperslab::driver::storage::{LeftoverState, clean_leftovers};
use hyperslab::{Error, Result};
use serde_json::json;

use crate::args::CleanArgs;
use crate::{Answer, output, paint, pretty};

pub(crate) fn run(args: &CleanArgs) -> Result<Answer> {
    if hyperslab::is_remote(&args.folder) {
        return Err(Error::unsupported(hyperslab::location_name(&args.folder), "cleaning remote storage"));
    }
    let found = clean_leftovers(&args.folder, args.dry_run)?;
    let word = |state: &LeftoverState| match state {
        LeftoverState::Removed => "removed".to_owned(),
        LeftoverState::Abandoned => "can be removed".to_owned(),
        LeftoverState::InUse => "in use by another process".to_owned(),
        LeftoverState::Failed(why) => format!("not removed: {why}"),
        other => other.name().to_owned(),
    };
    if args.json {
        let leftovers: Vec<_> = found
            .iter()
            .map(|own| {
                json!({ "path": own.path.display().to_string(), "bytes": own.bytes, "state": own.state.name() })
            })
            .collect();
        output::print_json(&json!({ "folder": args.folder.display().to_string(), "leftovers": leftovers }))?;
    } else {
        output::report(|out| {
            for own in &found {
                let about = format!("{}  {}", pretty::bytes(own.bytes), word(&own.state));
                writeln!(out, "  {}  {}", own.path.display(), paint::dim(about))?;
            }
            let count =
                |wanted: fn(&LeftoverState) -> bool| found.iter().filter(|own| wanted(&own.state)).count();
            let removed = count(|state| matches!(state, LeftoverState::Removed));
            let abandoned = count(|state| matches!(state, LeftoverState::Abandoned));
            let summary = match (removed, abandoned) {
                (0, 0) => "nothing to remove".to_owned(),
                (removed, 0) => format!("{removed} removed"),
                (_, abandoned) => format!("{abandoned} can be removed"),
            };
            writeln!(out, "{}  {summary}", paint::strong(args.folder.display()))
        })?;
    }
    let failed = found.iter().any(|own| matches!(own.state, LeftoverState::Failed(_)));
    Ok(if failed { Answer::No } else { Answer::Yes })
}
