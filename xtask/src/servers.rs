//! The servers of the tests of remote storage: real ones, pinned, under the target folder.

use std::path::PathBuf;

use crate::Outcome;
use crate::run::{cargo, root, run, target};
use crate::tools;

/// An S3 server that keeps its objects in a folder. Built without optimisation, which takes a minute once.
const S3: &str = "s3s-fs@0.14.1";

/// The folder with the servers that neither Python nor Debian brings: `bin/s3s-fs`, and azurite and s3rver in
/// `node_modules`. Those from Python are among the peers.
pub(crate) fn folder() -> Result<PathBuf, String> {
    let folder = target().join("servers");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for name in ["package.json", "package-lock.json"] {
        std::fs::copy(root().join("peers/servers").join(name), folder.join(name))
            .map_err(|error| format!("{name}: {error}"))?;
    }
    tools::install_npm(&folder)?;
    install_s3(&folder)?;
    Ok(folder)
}

/// nginx, as Debian builds it.
pub(crate) fn nginx() -> Result<PathBuf, String> {
    tools::debian("NGINX", "nginx-light", &["/usr/sbin/nginx"])
}

fn install_s3(folder: &std::path::Path) -> Outcome {
    let stamp = folder.join("s3s-fs.txt");
    if std::fs::read_to_string(&stamp).is_ok_and(|own| own == S3) {
        return Ok(());
    }
    let build = folder.join("build");
    let mut install = cargo();
    install.args([
        "install",
        S3,
        "--features",
        "binary",
        "--locked",
        "--debug",
        "--force",
        "--quiet",
        "--root",
    ]);
    // Not the target folder of the workspace, whose flags may differ.
    install.arg(folder).arg("--target-dir").arg(&build).env("CARGO_PROFILE_DEV_DEBUG", "0");
    run(&mut install)?;
    let _ = std::fs::remove_dir_all(&build);
    std::fs::write(&stamp, S3).map_err(|error| format!("{}: {error}", stamp.display()))
}
