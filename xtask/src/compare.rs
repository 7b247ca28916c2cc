//! This tree and an earlier revision on the same commands.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Outcome;
use crate::run::{cargo, root, run, target};

/// Builds `tet` of a revision and of this tree, and times the same commands with both in turn.
///
/// The first word names the revision; further words choose commands that contain one of them.
pub(crate) fn run_against(words: &[String]) -> Outcome {
    let (revision, chosen) = words.split_first().ok_or("compare needs a revision")?;
    let folder = target().join("compare");
    let before = build_revision(revision, &folder)?;
    let after = build(&root(), &target())?;
    let mut compare = cargo();
    compare.args(["run", "--quiet", "--release", "--package", "hyperslab-bench", "--", "--compare"]);
    compare.env("HYPERSLAB_BENCH_FILES", folder.join("files"));
    run(compare.arg(before).arg(after).args(chosen))
}

/// Builds `tet` of a revision in a work tree of its own; returns the program.
fn build_revision(revision: &str, folder: &Path) -> Result<PathBuf, String> {
    let tree = folder.join(format!("tree-{revision}"));
    if !tree.exists() {
        let mut add = Command::new("git");
        add.current_dir(root()).args(["worktree", "add", "--detach"]).arg(&tree).arg(revision);
        run(&mut add)?;
    }
    build(&tree, &folder.join(format!("target-{revision}")))
}

/// Builds `tet` of a tree without link-time optimisation, whatever its release profile says.
fn build(tree: &Path, target: &Path) -> Result<PathBuf, String> {
    let mut build = cargo();
    build.current_dir(tree).env("CARGO_PROFILE_RELEASE_LTO", "off").env("CARGO_TARGET_DIR", target);
    run(build.args(["build", "--release", "--package", "hyperslab-cli"]))?;
    Ok(target.join("release").join(if cfg!(windows) { "tet.exe" } else { "tet" }))
}
