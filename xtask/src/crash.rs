//! Writers that are killed, or whose power is cut.

use std::process::Command;

use crate::run::{cargo, run, target};
use crate::{Outcome, peers};

/// Kills the writers of every format; words go to the campaign.
pub(crate) fn kill(words: &[String]) -> Outcome {
    let python = peers::python()?.display().to_string();
    campaign(&["kill", "--python", &python], words)
}

/// Opens what a power cut can leave of the writers of every format; words go to the campaign.
pub(crate) fn power(words: &[String]) -> Outcome {
    campaign(&["power"], words)
}

/// Processes that grow one array at once; words go to the campaign.
pub(crate) fn race(words: &[String]) -> Outcome {
    campaign(&["race"], words)
}

/// Many readers beside a writer; words go to the campaign.
pub(crate) fn load(words: &[String]) -> Outcome {
    campaign(&["load"], words)
}

/// Built with the features of the tests, so that nothing is built twice.
fn campaign(own: &[&str], words: &[String]) -> Outcome {
    run(cargo().args(["build", "--quiet", "--workspace", "--features", "peers", "--bin", "crash"]))?;
    let crash = target().join("debug").join(if cfg!(windows) { "crash.exe" } else { "crash" });
    run(Command::new(crash).args(own).args(words))
}
