//! Every fuzz target for a while.

use std::process::Command;

use crate::Outcome;
use crate::run::root;

/// Runs each target for the given seconds (60 when left out).
pub(crate) fn run(words: &[String]) -> Outcome {
    let seconds = words.first().map_or("60", String::as_str);
    let folder = root().join("fuzz/fuzz_targets");
    let entries = std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut targets: Vec<_> = entries
        .flatten()
        .filter_map(|entry| Some(entry.file_name().to_str()?.strip_suffix(".rs")?.to_owned()))
        .collect();
    targets.sort();
    for target in targets {
        let time = format!("-max_total_time={seconds}");
        one(&target, &time)?;
    }
    Ok(())
}

fn one(target: &str, time: &str) -> Outcome {
    let mut fuzz = Command::new("cargo");
    fuzz.current_dir(root()).args([
        "+nightly",
        "fuzz",
        "run",
        target,
        "--",
        time,
        "-rss_limit_mb=2048",
        "-timeout=20",
    ]);
    crate::run::run(&mut fuzz)
}
