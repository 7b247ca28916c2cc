//! Everything that must hold.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::run::{cargo, say};
use crate::{Outcome, crash, features, layers, page, peers, pictures, python, servers};

/// The variable from which proptest takes the seed of its cases.
const SEED: &str = "PROPTEST_RNG_SEED";

/// How many writers are killed.
const KILLS: &str = "200";

/// Runs all tests, those of the Python module last; further words go to Rust's test programs, and only those run then.
///
/// The same tree gives the same verdict: property tests draw their cases from one seed, unless the
/// environment names another. [`soak`] is where new cases are looked for.
pub(crate) fn run(words: &[String]) -> Outcome {
    layers::run()?;
    if words.is_empty() {
        features::run()?;
    }
    let python = peers::python()?;
    let mut test = cargo();
    test.args(["test", "--workspace", "--features", "peers"]).env("HYPERSLAB_PEERS", &python);
    test.env("HYPERSLAB_SERVERS", servers::folder()?).env("NGINX", servers::nginx()?);
    if std::env::var_os(SEED).is_none() {
        test.env(SEED, "20");
    }
    if !words.is_empty() {
        test.arg("--").args(words);
    }
    crate::run::run(&mut test)?;
    if !words.is_empty() {
        return Ok(());
    }
    crash::kill(&["--kills".to_owned(), KILLS.to_owned()])?;
    page::browse()?;
    pictures::run(&["--check".to_owned()])?;
    python::run_tests(&[])
}

/// Runs the offline tests with new random cases, as often as the first word says (10 times by default).
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
