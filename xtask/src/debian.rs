//! Programs that tests compare with, from Debian's packages.

use std::process::{Command, Stdio};

use crate::Outcome;
use crate::run::say;

/// Installs packages, if that is permitted here. Callers check for the programs.
pub(crate) fn install(packages: &[&str]) {
    say(&format!("installing {} for the tests", packages.join(", ")));
    let apt = |words: &[&str]| {
        let mut command = Command::new("apt-get");
        let _ = command.args(words).env("DEBIAN_FRONTEND", "noninteractive").stdout(Stdio::null()).status();
    };
    // Refresh a missing or old package list first.
    apt(&["update", "-qq"]);
    apt(&[&["install", "-y", "-qq"], packages].concat());
}

/// Ensures that the tools of NetCDF's users are there.
pub(crate) fn netcdf_tools() -> Outcome {
    let is_there = |name: &str| {
        Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
    };
    if !is_there("ncks") || !is_there("cdo") {
        install(&["nco", "cdo"]);
    }
    if is_there("ncks") && is_there("cdo") {
        return Ok(());
    }
    Err("the tests of daily work compare with NCO and CDO: install ncks and cdo".to_owned())
}
