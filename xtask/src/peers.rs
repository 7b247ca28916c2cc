//! The peers: the real libraries, pinned, in a virtual environment under the target folder.

use std::path::PathBuf;
use std::process::Command;

use crate::run::{cargo, root, run, target};

/// The Python interpreter that has the pinned peers, installed when the list has changed.
pub(crate) fn python() -> Result<PathBuf, String> {
    let list = root().join("peers/requirements.txt");
    let wanted = std::fs::read_to_string(&list).map_err(|error| format!("{}: {error}", list.display()))?;
    let environment = target().join("peers");
    let python = environment.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    let stamp = environment.join("installed.txt");
    if std::fs::read_to_string(&stamp).ok().as_deref() == Some(&wanted) && python.exists() {
        return Ok(python);
    }
    let base = if cfg!(windows) { "python" } else { "python3" };
    run(Command::new(base).args(["-m", "venv", "--clear"]).arg(&environment))?;
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"];
    run(Command::new(&python).args(pip).arg(&list))?;
    std::fs::write(&stamp, wanted).map_err(|error| format!("{}: {error}", stamp.display()))?;
    Ok(python)
}

/// The program around the tetration crate that the `.tet` tests talk to, built apart from the workspace.
pub(crate) fn tetration() -> Result<Option<PathBuf>, String> {
    let manifest = root().join("peers/tetration/Cargo.toml");
    if !manifest.exists() {
        return Ok(None);
    }
    let folder = target().join("peers-tetration");
    run(cargo()
        .args(["build", "--release", "--quiet", "--locked", "--manifest-path"])
        .arg(&manifest)
        .arg("--target-dir")
        .arg(&folder))?;
    Ok(Some(folder.join("release/tetration-peer")))
}
