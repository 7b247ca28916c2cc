//! The peers: the real libraries, pinned, in a virtual environment under the target folder.

use std::path::PathBuf;
use std::process::Command;

use crate::run::{root, run, target};

/// The Python interpreter that has the pinned peers.
pub(crate) fn python() -> Result<PathBuf, String> {
    environment("peers", "peers/requirements.txt")
}

/// A virtual environment under the target folder with the listed packages; recreated if the list has changed.
pub(crate) fn environment(name: &str, list: &str) -> Result<PathBuf, String> {
    let list = root().join(list);
    let wanted = std::fs::read_to_string(&list).map_err(|error| format!("{}: {error}", list.display()))?;
    let environment = target().join(name);
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
