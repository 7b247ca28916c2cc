//! The Python module: built, installed into an environment of its own, tested.

use std::process::Command;

use crate::run::{root, run};
use crate::{Outcome, peers};

/// Builds and tests the module; further words go to pytest.
pub(crate) fn run_tests(words: &[String]) -> Outcome {
    let folder = root().join("crates/hyperslab-python");
    let python = peers::environment("python-tests", "crates/hyperslab-python/requirements-test.txt")?;
    let install =
        ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--force-reinstall", "--no-deps"];
    // What `cargo test` has built already is taken as it is: tests need no optimised wheel.
    run(Command::new(&python).args(install).arg(&folder).env("MATURIN_PEP517_ARGS", "--profile dev"))?;
    run(Command::new(&python).current_dir(&folder).args(["-m", "pytest", "tests"]).args(words))
}
