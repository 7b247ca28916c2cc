//! The peers, timed inside their own Python process, so that starting it does not count.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use crate::harness::{Bench, Outcome, say};

/// Runs a case of `peers.py` on a file. If the peer fails, the failure is printed and the result is `None`.
pub(crate) fn timed(bench: &Bench, name: &str, case: &str, file: &Path) -> Outcome<Option<(String, f64)>> {
    timed_in(bench, "peers.py", name, case, [file])
}

/// Runs a case of an area's own script, which prints the seconds. If the peer fails, the failure is printed and the
/// result is `None`.
pub(crate) fn timed_in<A: AsRef<OsStr>>(
    bench: &Bench,
    script: &str,
    name: &str,
    case: &str,
    arguments: impl IntoIterator<Item = A>,
) -> Outcome<Option<(String, f64)>> {
    let Some(mut command) = command(bench, script, case) else { return Ok(None) };
    let output = command.args(arguments).output()?;
    if !output.status.success() {
        let reason = String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or_default().to_owned();
        say(&format!("{name}: {case} failed: {reason}"));
        return Ok(None);
    }
    let text = String::from_utf8(output.stdout)?;
    let seconds: f64 = text.lines().last().unwrap_or_default().trim().parse()?;
    Ok(Some((name.to_owned(), seconds)))
}

/// Runs a case of `peers.py` that creates a file from another.
pub(crate) fn make_from(bench: &Bench, case: &str, source: &Path, file: &Path) -> Outcome {
    make_in(bench, "peers.py", case, [source, file])
}

/// Runs a case of an area's own script that creates something.
pub(crate) fn make_in<A: AsRef<OsStr>>(
    bench: &Bench,
    script: &str,
    case: &str,
    arguments: impl IntoIterator<Item = A>,
) -> Outcome {
    let mut command = command(bench, script, case).ok_or("HYPERSLAB_PEERS names no Python with the peers")?;
    let status = command.args(arguments).status()?;
    if status.success() { Ok(()) } else { Err(format!("{script} {case}: {status}").into()) }
}

fn command(bench: &Bench, script: &str, case: &str) -> Option<Command> {
    let mut command = Command::new(bench.python.as_ref()?);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(script)).arg(case);
    Some(command)
}

/// Runs a case of another script, and returns its output.
pub(crate) fn run(bench: &Bench, script: &str, case: &str, arguments: &[&Path]) -> Outcome<String> {
    let python = bench.python.as_ref().ok_or("HYPERSLAB_PEERS names no Python with the peers")?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join(script);
    let output = Command::new(python).arg(&script).arg(case).args(arguments).output()?;
    if !output.status.success() {
        let reason = String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or_default().to_owned();
        return Err(format!("{} {case}: {reason}", script.display()).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}
