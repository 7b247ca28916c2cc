//! The peers, timed inside their own Python process: starting it does not count.

use std::path::Path;
use std::process::Command;

use crate::harness::{Bench, Outcome, say};

/// Runs a case of `peers.py` on a file; `None` when the peer failed, which is said.
pub(crate) fn timed(bench: &Bench, name: &str, case: &str, file: &Path) -> Outcome<Option<(String, f64)>> {
    let Some(python) = &bench.python else { return Ok(None) };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers.py");
    let output = Command::new(python).arg(script).arg(case).arg(file).output()?;
    if !output.status.success() {
        let told = String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or_default().to_owned();
        say(&format!("{name}: {case} failed: {told}"));
        return Ok(None);
    }
    let seconds: f64 = String::from_utf8(output.stdout)?.trim().parse()?;
    Ok(Some((name.to_owned(), seconds)))
}

/// Runs a case that makes a file out of another.
pub(crate) fn make_from(bench: &Bench, case: &str, source: &Path, file: &Path) -> Outcome {
    let python = bench.python.as_ref().ok_or("HYPERSLAB_PEERS names no Python with the peers")?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers.py");
    let status = Command::new(python).arg(script).arg(case).arg(source).arg(file).status()?;
    if status.success() { Ok(()) } else { Err(format!("peers.py {case}: {status}").into()) }
}

/// Runs a case of another script, and hands back what it prints.
pub(crate) fn run(bench: &Bench, script: &str, case: &str, arguments: &[&Path]) -> Outcome<String> {
    let python = bench.python.as_ref().ok_or("HYPERSLAB_PEERS names no Python with the peers")?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join(script);
    let output = Command::new(python).arg(&script).arg(case).args(arguments).output()?;
    if !output.status.success() {
        let told = String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or_default().to_owned();
        return Err(format!("{} {case}: {told}", script.display()).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}
