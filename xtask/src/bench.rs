//! Runs the benchmarks against the peers.

use crate::run::{cargo, target};
use crate::{Outcome, peers, python, servers};

/// Builds the benchmarks with all optimisations and runs them. Further words select cases.
pub(crate) fn run(words: &[String]) -> Outcome {
    let python = peers::python()?;
    let mut bench = cargo();
    bench
        .args(["run", "--profile", "dist", "--package", "hyperslab-bench", "--features", "crates", "--"])
        .args(words);
    bench.env("HYPERSLAB_PEERS", python).env("HYPERSLAB_BENCH_FILES", target().join("bench"));
    // Options come in pairs; all other words select cases.
    let is_option = |at: usize| words[at].starts_with("--") || at > 0 && words[at - 1].starts_with("--");
    let cases: Vec<&String> = (0..words.len()).filter(|at| !is_option(*at)).map(|at| &words[at]).collect();
    if cases.is_empty() || cases.iter().any(|word| word.starts_with("serve")) {
        crate::run::run(cargo().args(["build", "--profile", "dist", "--package", "hyperslab-cli"]))?;
        let tet = if cfg!(windows) { "tet.exe" } else { "tet" };
        bench.env("HYPERSLAB_TET", target().join("dist").join(tet)).env("NGINX", servers::nginx()?);
    }
    if cases.is_empty() || cases.iter().any(|word| word.contains("python")) {
        bench.env("HYPERSLAB_PYTHON", python::environment("python-bench", "dist")?);
    }
    crate::run::run(&mut bench)
}
