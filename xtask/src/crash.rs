//! Writers that are killed, or whose power is cut.

use crate::run::{cargo, run};
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
    let mut crash = cargo();
    crash.args(["run", "--quiet", "--workspace", "--features", "peers", "--bin", "crash", "--"]);
    run(crash.args(own).args(words))
}
