//! The figures and examples of the README, made by `tet`.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::run::{cargo, root, run as run_shown, say, target};
use crate::{Outcome, examples};

/// A figure, and the arguments of `tet plot`. The first word is a sample of `tet demo`.
const PICTURES: [(&str, &[&str]); 5] = [
    ("map.png", &["climate.nc", "/temperature", "time=2024-07"]),
    ("months.png", &["climate.nc", "/temperature", "--cmap", "magma"]),
    ("line.png", &["climate.nc", "/temperature", "lat~47", "lon~8"]),
    ("histogram.png", &["climate.nc", "/temperature", "--hist", "60"]),
    ("cells.png", &["cells.zv", "--color-by", "z", "--cmap", "viridis"]),
];

/// The size of the figures in the README.
const SIZE: [&str; 4] = ["--size", "560x360", "--scale", "1.5"];

/// Draws the figures into `docs/pictures` and runs the examples; with `--check`, reports those that are outdated.
pub(crate) fn run(words: &[String]) -> Outcome {
    let check = match words {
        [] => false,
        [word] if word == "--check" => true,
        _ => return Err("pictures: expected --check or nothing".to_owned()),
    };
    // Use the features of the tests, so that nothing is built twice.
    run_shown(cargo().args(["build", "--workspace", "--features", "peers", "--bin", "tet"]))?;
    let tet = target().join("debug").join(if cfg!(windows) { "tet.exe" } else { "tet" });
    let samples = target().join("pictures");
    make_samples(&tet, &samples)?;
    examples::run(&tet, &samples, check)?;
    let folder = root().join("docs/pictures");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut stale = Vec::new();
    for (name, plot) in PICTURES {
        let drawn = samples.join(name);
        let mut draw = Command::new(&tet);
        draw.arg("plot").arg(samples.join(plot[0])).args(&plot[1..]).args(SIZE);
        run_quietly(draw.arg("--force").arg("-o").arg(&drawn))?;
        let read = |path: &Path| std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
        let (new, kept) = (read(&drawn)?, read(&folder.join(name)).ok());
        if kept.as_ref() == Some(&new) {
            continue;
        }
        stale.push(name);
        if !check {
            std::fs::write(folder.join(name), new).map_err(|error| format!("{name}: {error}"))?;
        }
    }
    match (stale.is_empty(), check) {
        (true, _) => say("the figures are up to date"),
        (false, false) => say(&format!("redrawn: {}", stale.join(", "))),
        (false, true) => {
            return Err(format!(
                "these figures in docs/pictures are outdated: {}; run cargo xtask pictures and review them",
                stale.join(", ")
            ));
        }
    }
    Ok(())
}

fn make_samples(tet: &Path, folder: &Path) -> Outcome {
    run_quietly(Command::new(tet).arg("demo").arg(folder))
}

/// Runs a command and discards its output.
fn run_quietly(command: &mut Command) -> Outcome {
    run_shown(command.stdout(Stdio::null()).stderr(Stdio::null()))
}
