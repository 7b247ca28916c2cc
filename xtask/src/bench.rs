//! Us and the peers on the same work.

use crate::run::{cargo, target};
use crate::{Outcome, peers};

/// Builds the bench with all optimisations and runs it; further words choose the cases.
pub(crate) fn run(words: &[String]) -> Outcome {
    let python = peers::python()?;
    let mut bench = cargo();
    bench.args(["run", "--release", "--package", "hyperslab-bench", "--features", "zarrs", "--"]).args(words);
    bench.env("HYPERSLAB_PEERS", python).env("HYPERSLAB_BENCH_FILES", target().join("bench"));
    crate::run::run(&mut bench)
}
