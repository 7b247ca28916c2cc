//! Builds the Python module, installs it into its own environment, and tests it.

use std::path::PathBuf;
use std::process::Command;

use crate::run::{root, run};
use crate::{Outcome, peers};

/// An environment with the test dependencies and the module, built with a cargo profile.
pub(crate) fn environment(name: &str, profile: &str) -> Result<PathBuf, String> {
    let python = peers::environment(name, "crates/hyperslab-python/requirements-test.txt")?;
    let install =
        ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--force-reinstall", "--no-deps"];
    run(Command::new(&python)
        .args(install)
        .arg(root().join("crates/hyperslab-python"))
        .env("MATURIN_PEP517_ARGS", format!("--profile {profile}")))?;
    Ok(python)
}

/// Builds and tests the module. Further words are passed to pytest.
pub(crate) fn run_tests(words: &[String]) -> Outcome {
    // Reuse what `cargo test` has built, because tests need no optimised wheel.
    let python = environment("python-tests", "dev")?;
    let folder = root().join("crates/hyperslab-python");
    run(Command::new(&python).current_dir(&folder).args(["-m", "pytest", "tests"]).args(words))
}
