//! Builds the Python module, installs it into its own environment, and tests it.

use std::path::PathBuf;
use std::process::Command;

use crate::run::{root, run};
use crate::{Outcome, peers};

/// The environment of the tests.
const TESTS: &str = "python-tests";

/// The packages that the tests need.
const REQUIREMENTS: &str = "crates/hyperslab-python/requirements-test.txt";

/// Installs the packages that the tests need, without the module.
pub(crate) fn requirements() -> Outcome {
    peers::environment(TESTS, REQUIREMENTS).map(|_| ())
}

/// An environment with the test dependencies and the module, built with a cargo profile.
pub(crate) fn environment(name: &str, profile: &str) -> Result<PathBuf, String> {
    let python = peers::environment(name, REQUIREMENTS)?;
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
    let python = environment(TESTS, "dev")?;
    let folder = root().join("crates/hyperslab-python");
    let mut test = Command::new(&python);
    test.current_dir(&folder).env("HYPERSLAB_REQUIRE_PEERS", "1");
    run(test.args(["-m", "pytest", "tests"]).args(words))
}
