//! Runs every fuzz target for a while, starting from the golden files.

mod seeds;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Outcome;
use crate::run::{root, say};

/// The memory limit of a target and of a single allocation, in MiB, and the time limit of one input, in seconds.
const LIMITS: [&str; 3] = ["-rss_limit_mb=2048", "-malloc_limit_mb=1024", "-timeout=10"];

/// With a single codegen unit, the default of cargo-fuzz, the build takes several times as long and the targets are
/// hardly faster.
const UNITS: &str = "8";

/// The options of a campaign.
#[derive(Debug)]
struct Campaign<'a> {
    seconds: &'a str,
    sanitizer: &'a str,
    corpus: PathBuf,
    nightly: bool,
}

/// Runs each target for the given number of seconds (60 by default). Further words select targets. `--sanitizer none`
/// disables AddressSanitizer, which makes targets two to three times as fast; `--corpus FOLDER` stores the corpus in
/// another folder.
pub(crate) fn run(words: &[String]) -> Outcome {
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    let sanitizer = option(&mut words, "--sanitizer")?.unwrap_or("address");
    let corpus = option(&mut words, "--corpus")?.map_or_else(|| root().join("fuzz/corpus"), PathBuf::from);
    let (seconds, chosen) = match words.split_first() {
        Some((first, rest)) if first.parse::<u32>().is_ok() => (*first, rest),
        _ => ("60", words.as_slice()),
    };
    let folder = root().join("fuzz/fuzz_targets");
    let entries = std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut targets: Vec<_> = entries
        .flatten()
        .filter_map(|entry| Some(entry.file_name().to_str()?.strip_suffix(".rs")?.to_owned()))
        .filter(|target| chosen.is_empty() || chosen.contains(&target.as_str()))
        .collect();
    targets.sort();
    let campaign = Campaign { seconds, sanitizer, corpus, nightly: has_nightly() };
    let mut counts = Vec::new();
    for target in targets {
        let count = one(&target, &campaign)?;
        counts.push((target, count));
    }
    say(&format!("{:<18} {:>12}", "target", "executions"));
    for (target, count) in &counts {
        say(&format!("{target:<18} {count:>12}"));
    }
    say(&format!("{:<18} {:>12}", "all", counts.iter().map(|(_, count)| count).sum::<u64>()));
    Ok(())
}

/// Removes an option from the words and returns its value.
fn option<'a>(words: &mut Vec<&'a str>, name: &str) -> Result<Option<&'a str>, String> {
    let Some(at) = words.iter().position(|word| *word == name) else { return Ok(None) };
    let value = words.get(at + 1).copied().ok_or(format!("{name} needs a value"))?;
    words.drain(at..at + 2);
    Ok(Some(value))
}

/// Returns true if a nightly compiler is installed. Without one, the stable compiler is told to accept the flags that
/// fuzzing needs.
fn has_nightly() -> bool {
    let mut rustc = Command::new("rustc");
    rustc.args(["+nightly", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    rustc.status().is_ok_and(|status| status.success())
}

/// Runs one target. Returns the number of executions.
fn one(target: &str, campaign: &Campaign<'_>) -> Result<u64, String> {
    let corpus = campaign.corpus.join(target);
    std::fs::create_dir_all(&corpus).map_err(|error| format!("{}: {error}", corpus.display()))?;
    seeds::write_seeds(target, &corpus).map_err(|error| format!("seeds of {target}: {error}"))?;
    let mut fuzz = Command::new("cargo");
    fuzz.current_dir(root());
    if campaign.nightly {
        fuzz.arg("+nightly");
    } else {
        fuzz.env("RUSTC_BOOTSTRAP", "1");
    }
    // Our code has `unsafe` parts: mapped files, SIMD kernels, calls of C codecs.
    // The profile enables debug assertions and overflow checks for our own crates only. Each sanitizer has its own
    // target folder, because switching would rebuild everything.
    let folder = format!("fuzz/target/{}", campaign.sanitizer);
    fuzz.args(["fuzz", "run", "--release", "--codegen-units", UNITS, "--target-dir", &folder]);
    fuzz.args(["--sanitizer", campaign.sanitizer, target]).arg(&corpus);
    fuzz.arg("--").args(LIMITS).arg(format!("-max_total_time={}", campaign.seconds));
    // Threads of a pool live as long as the process, so they are not leaks.
    fuzz.args(["-print_final_stats=1", "-detect_leaks=0", "-len_control=20"]);
    say(&format!("fuzz: {target}"));
    execute(&mut fuzz, &root().join("fuzz/artifacts").join(target))
}

/// Runs the fuzzer, prints its output, and parses the number of executions from it.
fn execute(fuzz: &mut Command, artifacts: &Path) -> Result<u64, String> {
    let mut child = fuzz.stderr(Stdio::piped()).spawn().map_err(|error| format!("cargo fuzz: {error}"))?;
    let mut count = 0;
    let stderr = child.stderr.take().ok_or("cargo fuzz has no pipe")?;
    for line in BufReader::new(stderr).lines().map_while(Result::ok) {
        if let Some(number) = line.strip_prefix("stat::number_of_executed_units:") {
            count = number.trim().parse().unwrap_or(0);
        }
        if !line.starts_with('#') {
            say(&line);
        }
    }
    let status = child.wait().map_err(|error| format!("cargo fuzz: {error}"))?;
    if status.success() {
        return Ok(count);
    }
    Err(format!(
        "cargo fuzz: {status}; the failing inputs are in {}; add a test for each",
        artifacts.display()
    ))
}
