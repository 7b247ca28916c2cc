//! Runs all tests.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::run::{cargo, say};
use crate::{Outcome, crash, features, layers, page, peers, pictures, python, servers, tools};

/// The variable with the seed of proptest's cases.
const SEED: &str = "PROPTEST_RNG_SEED";

/// The number of writers to kill.
const KILLS: &str = "200";

/// The time for stores that are changed and read by us and by the reference libraries.
const DIFFERENTIAL_SECONDS: &str = "20";

/// Runs all tests, those of the Python module last. Further words are passed to Rust's test programs, and only those
/// run then.
///
/// Runs are reproducible: property tests draw their cases from a fixed seed, unless the environment sets another.
/// [`soak`] searches for new cases.
pub(crate) fn run(words: &[String]) -> Outcome {
    layers::run()?;
    let python = if words.is_empty() { check_while_installing()? } else { peers::python()? };
    let mut test = cargo();
    test.args(["test", "--workspace", "--features", "peers"]).env("HYPERSLAB_PEERS", &python);
    test.env("HYPERSLAB_SERVERS", servers::folder()?).env("NGINX", servers::nginx()?);
    if std::env::var_os(SEED).is_none() {
        test.env(SEED, "20");
    }
    if !words.is_empty() {
        test.arg("--").args(words);
    }
    if !words.is_empty() {
        return crate::run::run(&mut test);
    }
    // One run reports all failures.
    let outcomes = [
        crate::run::run(test.arg("--no-fail-fast")),
        crash::kill(&["--kills".to_owned(), KILLS.to_owned()]),
        crash::differential(&["--seconds".to_owned(), DIFFERENTIAL_SECONDS.to_owned()]),
        page::browse(),
        pictures::run(&["--check".to_owned()]),
        python::run_tests(&[]),
    ];
    let failures: Vec<String> = outcomes.into_iter().filter_map(Result::err).collect();
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}

/// Checks the sets of features while the peers, the packages of the Python tests and those of the pages are installed.
/// Returns the interpreter of the peers.
fn check_while_installing() -> Result<PathBuf, String> {
    std::thread::scope(|scope| {
        let peers = scope.spawn(peers::python);
        let others = scope.spawn(|| {
            python::requirements()?;
            tools::netcdf_tools()?;
            servers::nginx()?;
            page::install()
        });
        features::run()?;
        joined(others.join())?;
        joined(peers.join())
    })
}

/// The outcome of a thread.
fn joined<T>(outcome: std::thread::Result<Result<T, String>>) -> Result<T, String> {
    outcome.map_err(|_| "an installation panicked".to_owned())?
}

/// Repeats the offline tests with new random cases. The first word is the number of rounds (10 by default).
pub(crate) fn soak(words: &[String]) -> Outcome {
    let rounds = words.first().map_or("10", String::as_str);
    let rounds: u64 = rounds.parse().map_err(|error| format!("{rounds}: {error}"))?;
    let start = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    for round in 0..rounds {
        let seed = (start + round).to_string();
        say(&format!("round {} of {rounds}, {SEED}={seed}", round + 1));
        crate::run::run(
            cargo().args(["test", "--quiet", "--workspace", "--lib", "--bins", "--tests"]).env(SEED, &seed),
        )?;
    }
    Ok(())
}
