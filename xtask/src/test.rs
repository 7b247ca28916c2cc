//! Everything that must hold.

use crate::run::cargo;
use crate::{Outcome, layers, peers};

/// Runs all tests; further words go to the test programs.
pub(crate) fn run(words: &[String]) -> Outcome {
    layers::run()?;
    let python = peers::python()?;
    let mut test = cargo();
    test.args(["test", "--workspace", "--features", "peers"]).env("HYPERSLAB_PEERS", &python);
    if !words.is_empty() {
        test.arg("--").args(words);
    }
    crate::run::run(&mut test)
}
