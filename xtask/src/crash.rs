//! Runs the crash tests: writers that are killed or lose power.

use std::process::Command;

use crate::run::{cargo, run, target};
use crate::{Outcome, peers};

/// Kills the writers of every format. Words are passed to the campaign.
pub(crate) fn kill(words: &[String]) -> Outcome {
    let python = peers::python()?.display().to_string();
    campaign(&["kill", "--python", &python], words)
}

/// Opens the states that a power cut can leave, for the writers of every format. Words are passed to the campaign.
pub(crate) fn power(words: &[String]) -> Outcome {
    campaign(&["power"], words)
}

/// Changes stores and compares what our reader and the reference libraries make of them. Words are passed to the campaign.
pub(crate) fn differential(words: &[String]) -> Outcome {
    let python = peers::python()?.display().to_string();
    campaign(&["differential", "--python", &python], words)
}

/// Runs processes that grow one array concurrently. Words are passed to the campaign.
pub(crate) fn race(words: &[String]) -> Outcome {
    campaign(&["race"], words)
}

/// Runs many readers beside a writer. Words are passed to the campaign.
pub(crate) fn load(words: &[String]) -> Outcome {
    campaign(&["load"], words)
}

/// Builds with the features of the tests, so that nothing is built twice.
fn campaign(own: &[&str], words: &[String]) -> Outcome {
    run(cargo().args(["build", "--quiet", "--workspace", "--features", "peers", "--bin", "crash"]))?;
    let crash = target().join("debug").join(if cfg!(windows) { "crash.exe" } else { "crash" });
    run(Command::new(crash).args(own).args(words))
}
