//! Finds or installs the programs that the tests need beside Rust and Python.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Outcome;
use crate::run::{run, say};

/// Installs the npm packages of the lock file in a folder, unless that was done.
pub(crate) fn install_npm(folder: &Path) -> Outcome {
    check_node()?;
    let lock = folder.join("package-lock.json");
    let wanted = std::fs::read_to_string(&lock).map_err(|error| format!("{}: {error}", lock.display()))?;
    let stamp = folder.join("node_modules/.installed");
    if std::fs::read_to_string(&stamp).is_ok_and(|own| own == wanted) {
        return Ok(());
    }
    run(npm(folder).args(["ci", "--no-audit", "--no-fund", "--loglevel", "error"]))?;
    std::fs::write(&stamp, wanted).map_err(|error| format!("{}: {error}", stamp.display()))
}

/// npm in a folder.
pub(crate) fn npm(folder: &Path) -> Command {
    let mut npm = Command::new(if cfg!(windows) { "npm.cmd" } else { "npm" });
    npm.current_dir(folder);
    npm
}

/// Fails if Node.js is missing.
pub(crate) fn check_node() -> Outcome {
    let found = Command::new("node").arg("--version").stdout(Stdio::null()).status();
    match found {
        Ok(status) if status.success() => Ok(()),
        _ => {
            Err("the tests of the pages and of Azure need Node.js 20 or newer with npm on the PATH"
                .to_owned())
        }
    }
}

/// Finds or installs the tools of NetCDF users with which tests compare: NCO and CDO.
pub(crate) fn netcdf_tools() -> Outcome {
    debian("NCKS", "nco", &["/usr/bin/ncks"])?;
    debian("CDO", "cdo", &["/usr/bin/cdo"]).map(|_| ())
}

/// A program of a Debian package: the path in `variable`, or one of `places`. A missing package is installed if permitted.
pub(crate) fn debian(variable: &str, package: &str, places: &[&str]) -> Result<PathBuf, String> {
    if let Some(own) = std::env::var_os(variable) {
        return Ok(own.into());
    }
    let find = || places.iter().map(PathBuf::from).find(|place| place.exists());
    if let Some(found) = find() {
        return Ok(found);
    }
    say(&format!("installing {package} for the tests"));
    // Refresh a missing or old package list first; the next step shows whether that worked.
    let _ = Command::new("apt-get").args(["update", "-qq"]).stdout(Stdio::null()).status();
    let mut install = Command::new("apt-get");
    install.args(["install", "-y", "-qq", package]).env("DEBIAN_FRONTEND", "noninteractive");
    let install = install.stdout(Stdio::null()).status();
    find()
        .filter(|_| matches!(install, Ok(status) if status.success()))
        .ok_or_else(|| format!("the tests need {package}: install it, or name the program in {variable}"))
}
