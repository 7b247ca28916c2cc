//! H5Web as the page of `tet serve`, and both pages in a real browser.

use std::process::Command;

use crate::Outcome;
use crate::run::{cargo, root, run, say, target};
use crate::tools::{check_node, debian, install_npm, npm};

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

/// Drives H5Web and our own page in Chromium, on a store of every format. Screenshots stay in `target/browser/shots`.
pub(crate) fn browse() -> Outcome {
    check_node()?;
    let python = crate::peers::python()?;
    if !target().join("page/index.html").exists() {
        build()?;
    }
    let browser = debian("CHROMIUM", "chromium", &["/usr/bin/chromium"])?;
    let folder = target().join("browser");
    let source = root().join("peers/browser");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for name in ["package.json", "package-lock.json", "browse.mjs"] {
        std::fs::copy(source.join(name), folder.join(name)).map_err(|error| format!("{name}: {error}"))?;
    }
    install_npm(&folder)?;
    // The features of the tests, so that nothing is built twice.
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
