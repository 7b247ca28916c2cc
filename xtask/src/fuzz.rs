//! Every fuzz target for a while, from the golden files on.

mod seeds;

use std::process::{Command, Stdio};

use crate::Outcome;
use crate::run::root;

/// Runs each target for the given seconds (60 when left out); further words choose targets.
pub(crate) fn run(words: &[String]) -> Outcome {
    let (seconds, chosen) = match words.split_first() {
        Some((first, rest)) if first.parse::<u32>().is_ok() => (first.as_str(), rest),
        _ => ("60", words),
    };
    let folder = root().join("fuzz/fuzz_targets");
    let entries = std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut targets: Vec<_> = entries
        .flatten()
        .filter_map(|entry| Some(entry.file_name().to_str()?.strip_suffix(".rs")?.to_owned()))
        .filter(|target| chosen.is_empty() || chosen.contains(target))
        .collect();
    targets.sort();
    let nightly = has_nightly();
    for target in targets {
        one(&target, seconds, nightly)?;
    }
    Ok(())
}

/// Is there a nightly compiler? Without one the stable compiler is told to accept what fuzzing needs.
fn has_nightly() -> bool {
    let mut rustc = Command::new("rustc");
    rustc.args(["+nightly", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    rustc.status().is_ok_and(|status| status.success())
}

fn one(target: &str, seconds: &str, nightly: bool) -> Outcome {
    let corpus = root().join("fuzz/corpus").join(target);
    std::fs::create_dir_all(&corpus).map_err(|error| format!("{}: {error}", corpus.display()))?;
    seeds::plant(target, &corpus).map_err(|error| format!("seeds of {target}: {error}"))?;
    let mut fuzz = Command::new("cargo");
    fuzz.current_dir(root());
    if nightly {
        fuzz.arg("+nightly");
    } else {
        fuzz.env("RUSTC_BOOTSTRAP", "1");
    }
    // Our own code is safe Rust: what a sanitizer would find is in the C codecs, which have fuzzers of their own.
    fuzz.args(["fuzz", "run", "--sanitizer", "none", target]).arg(corpus);
    fuzz.args(["--", &format!("-max_total_time={seconds}"), "-rss_limit_mb=2048", "-timeout=10"]);
    crate::run::run(&mut fuzz)
}
