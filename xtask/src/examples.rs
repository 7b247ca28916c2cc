//! The examples of the README: commands and what they print.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use crate::Outcome;
use crate::run::{root, say, target};

/// How a block of examples begins and ends.
const START: &str = "```console\n";
const END: &str = "```";
const PROMPT: &str = "$ ";
/// The sample that the examples work on.
const SAMPLE: &str = "field.tet";

/// Runs the examples and puts their output into the README; with `--check`, reports whether it has changed. `samples` is the folder
/// of `tet demo`.
pub(crate) fn run(tet: &Path, samples: &Path, check: bool) -> Outcome {
    let page = root().join("README.md");
    let failed = |what: &Path, error: std::io::Error| format!("{}: {error}", what.display());
    let text = std::fs::read_to_string(&page).map_err(|error| failed(&page, error))?;
    let (before, rest) = text.split_once(START).ok_or("README.md has no examples")?;
    let (old, after) = rest.split_once(END).ok_or("the examples of README.md do not end")?;

    let folder = target().join("examples");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(|error| failed(&folder, error))?;
    }
    std::fs::create_dir_all(&folder).map_err(|error| failed(&folder, error))?;
    let sample = samples.join(SAMPLE);
    std::fs::copy(&sample, folder.join(SAMPLE)).map_err(|error| failed(&sample, error))?;
    let mut new = String::new();
    for command in old.lines().filter_map(|line| line.strip_prefix(PROMPT)) {
        let blank = if new.is_empty() { "" } else { "\n" };
        let output = printed(tet, &folder, command)?;
        write!(new, "{blank}{PROMPT}{command}\n{output}").map_err(|error| error.to_string())?;
    }
    if new.is_empty() {
        return Err("README.md has no examples".to_owned());
    }
    if without_speeds(&new) == without_speeds(old) {
        say("the examples of README.md are current");
        return Ok(());
    }
    if check {
        return Err(format!(
            "README.md has other examples than cargo xtask pictures writes; they are now:\n{new}"
        ));
    }
    say("the examples of README.md are new");
    std::fs::write(&page, format!("{before}{START}{new}{END}{after}")).map_err(|error| failed(&page, error))
}

/// What a command prints.
fn printed(tet: &Path, folder: &Path, command: &str) -> Result<String, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let own = tet.parent().map(Path::to_path_buf);
    let paths = std::env::join_paths(own.into_iter().chain(std::env::split_paths(&path)));
    let output = Command::new("sh")
        .args(["-c", &format!("{command} 2>&1")])
        .current_dir(folder)
        .env("PATH", paths.map_err(|error| error.to_string())?)
        .output()
        .map_err(|error| format!("{command}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() { Ok(text) } else { Err(format!("{command}: {text}")) }
}

/// The text without what differs from run to run: `10.6 MiB/s` at the end of a line.
fn without_speeds(text: &str) -> Vec<&str> {
    text.lines()
        .map(|line| match line.rsplit_once(", ") {
            Some((rest, speed)) if speed.ends_with("/s") => rest,
            _ => line,
        })
        .collect()
}
