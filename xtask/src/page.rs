//! Builds H5Web as the page of `tet serve`, and tests both pages in a real browser.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::run::{cargo, root, run, say, target};
use crate::{Outcome, debian};

/// The script that drives the browser, and its lock file.
const DRIVER: &str = "peers/browser";

/// The browser's path on Debian.
const CHROMIUM: &str = "/usr/bin/chromium";

/// Builds the page into `target/page` from `page/` and its lock file.
pub(crate) fn build() -> Outcome {
    let source = root().join("page");
    installed(&source)?;
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
    node()?;
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
    node()?;
    installed(&root().join("page"))?;
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
    installed(&folder)?;
    Ok(folder)
}

/// Installs the packages of a lock file, unless they are installed.
fn installed(folder: &Path) -> Outcome {
    node()?;
    let lock = folder.join("package-lock.json");
    let wanted = std::fs::read_to_string(&lock).map_err(|error| format!("{}: {error}", lock.display()))?;
    let stamp = folder.join("node_modules/.installed");
    if std::fs::read_to_string(&stamp).is_ok_and(|own| own == wanted) {
        return Ok(());
    }
    run(npm(folder).args(["ci", "--no-audit", "--no-fund", "--loglevel", "error"]))?;
    std::fs::write(&stamp, wanted).map_err(|error| format!("{}: {error}", stamp.display()))
}

fn npm(folder: &Path) -> Command {
    let mut npm = Command::new(if cfg!(windows) { "npm.cmd" } else { "npm" });
    npm.current_dir(folder);
    npm
}

fn node() -> Outcome {
    let found = Command::new("node").arg("--version").stdout(Stdio::null()).status();
    match found {
        Ok(status) if status.success() => Ok(()),
        _ => Err("the page and its tests need Node.js 20 or newer with npm on the PATH".to_owned()),
    }
}

/// The browser: `CHROMIUM` from the environment, or Debian's, which is installed if permitted.
fn chromium() -> Result<PathBuf, String> {
    if let Some(own) = std::env::var_os("CHROMIUM") {
        return Ok(own.into());
    }
    if !Path::new(CHROMIUM).exists() {
        debian::install(&["chromium"]);
        if !Path::new(CHROMIUM).exists() {
            return Err("the tests of the pages need Chromium: install it, or name it in CHROMIUM".to_owned());
        }
    }
    Ok(CHROMIUM.into())
}
