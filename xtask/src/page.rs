//! Builds H5Web as the page of `tet serve`, and tests both pages in a real browser.

use std::path::PathBuf;
use std::process::Command;

use crate::Outcome;
use crate::run::{cargo, root, run, say, target};
use crate::tools::{check_node, debian, install_npm, npm};

/// The script that drives the browser, and its lock file.
const DRIVER: &str = "peers/browser";

/// Builds the page into `target/page` from `page/` and its lock file.
pub(crate) fn build() -> Outcome {
    let source = root().join("page");
    install_npm(&source)?;
    let out = target().join("page");
    run(npm(&source)
        .args(["exec", "--", "vite", "build", "--logLevel", "warn", "--emptyOutDir", "--outDir"])
        .arg(&out))?;
    say(&format!(
        "the page is in {}: tet serve --page {0}, or build tet with the feature h5web",
        out.display()
    ));
    Ok(())
}

/// Tests H5Web and our own page in Chromium, on a store of every format. Screenshots are stored in
/// `target/browser/shots`.
pub(crate) fn browse() -> Outcome {
    check_node()?;
    let python = crate::peers::python()?;
    if !target().join("page/index.html").exists() {
        build()?;
    }
    let browser = chromium()?;
    let folder = installed_driver()?;
    let source = root().join(DRIVER);
    // Use the features of the tests, so that nothing is built twice.
    run(cargo().args(["build", "--quiet", "--workspace", "--features", "peers", "--bin", "tet"]))?;
    let tet = target().join("debug").join(if cfg!(windows) { "tet.exe" } else { "tet" });
    let samples = folder.join("samples");
    run(Command::new(&python).arg(source.join("samples.py")).arg(&samples).arg(&tet))?;
    run(Command::new("node")
        .current_dir(&folder)
        .arg("browse.mjs")
        .arg(&tet)
        .arg(&samples)
        .arg(target().join("page"))
        .arg(folder.join("shots"))
        .env("CHROMIUM", browser))
}

/// Installs what the page and its tests need: the packages of both, and the browser.
pub(crate) fn install() -> Outcome {
    install_npm(&root().join("page"))?;
    installed_driver()?;
    chromium().map(|_| ())
}

/// Copies the script that drives the browser into the target folder and installs its packages; returns the folder.
fn installed_driver() -> Result<PathBuf, String> {
    let (source, folder) = (root().join(DRIVER), target().join("browser"));
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for name in ["package.json", "package-lock.json", "browse.mjs"] {
        std::fs::copy(source.join(name), folder.join(name)).map_err(|error| format!("{name}: {error}"))?;
    }
    install_npm(&folder)?;
    Ok(folder)
}

fn chromium() -> Result<PathBuf, String> {
    debian("CHROMIUM", "chromium", &["/usr/bin/chromium"])
}
