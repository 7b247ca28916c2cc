//! The environment of the results: the machine and the versions of all contenders.

use std::path::Path;
use std::process::Command;

/// Names and versions, in display order.
pub(crate) fn facts(python: Option<&Path>) -> Vec<(String, String)> {
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let mut facts = vec![("cores".to_owned(), cores.to_string())];
    let mut add = |name: &str, value: Option<String>| {
        facts.extend(value.filter(|value| !value.is_empty()).map(|value| (name.to_owned(), value)));
    };
    add("processor", processor());
    add("system", first_line(Command::new("uname").arg("-sr")));
    add("hyperslab", Some(env!("CARGO_PKG_VERSION").to_owned()));
    add("rustc", first_line(Command::new("rustc").arg("--version")));
    add("gdalmdimtranslate", first_line(Command::new("gdalmdimtranslate").arg("--version")));
    let Some(python) = python else { return facts };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("versions.py");
    if let Ok(output) = Command::new(python).arg(script).output() {
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            if let Some((name, version)) = line.split_once(' ') {
                facts.push((name.to_owned(), version.to_owned()));
            }
        }
    }
    facts
}

fn processor() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn first_line(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    String::from_utf8_lossy(&output.stdout).lines().next().map(str::to_owned)
}
