//! Two builds of `tet` on the same commands, run in turn.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::data;
use crate::harness::{Outcome, clear, say, timed_in_turn_prepared};

/// Bytes of the field.
const BYTES: u64 = 256 << 20;

/// A ratio above this is marked.
const SLOWER: f64 = 1.05;

/// The stores that the commands read, and the options that make them.
const STORES: &[(&str, &[&str])] = &[
    ("raw.tet", &["--chunks", "64,64,64", "--filter", "none"]),
    ("zstd.tet", &["--chunks", "64,64,64", "--filter", "zstd"]),
    ("raw.h5", &["--chunks", "64,64,64", "--filter", "none"]),
    ("gzip.h5", &["--chunks", "64,64,64", "--filter", "shuffle,gzip:4"]),
    ("raw.zarr", &["--chunks", "64,64,64", "--filter", "none"]),
    ("zstd.zarr", &["--chunks", "64,64,64", "--filter", "zstd"]),
    ("zstd.tiledb", &["--chunks", "64,64,64", "--filter", "zstd"]),
    ("small.h5", &["--chunks", "16,16,16", "--filter", "none"]),
];

/// The timed commands. Paths that begin with `OUT` are removed before each run.
const COMMANDS: &[&[&str]] = &[
    &["info", "raw.tet"],
    &["info", "small.h5"],
    &["info", "zstd.zarr"],
    &["query", "raw.tet", "--sum"],
    &["query", "zstd.tet", "--sum"],
    &["query", "raw.h5", "--sum"],
    &["query", "gzip.h5", "--sum"],
    &["query", "raw.zarr", "--sum"],
    &["query", "zstd.zarr", "--sum"],
    &["query", "zstd.tiledb", "--var"],
    &["query", "small.h5", "--sum"],
    &["query", "raw.h5", "--mean", "0"],
    &["query", "gzip.h5", "--mean", "2"],
    &["query", "raw.tet", "--median"],
    &["read", "raw.tet", "-o", "OUT.npy"],
    &["read", "gzip.h5", "-o", "OUT.npy"],
    &["read", "zstd.zarr", "[:, 100:132, ::2]", "-o", "OUT.npy"],
    &["read", "zstd.tiledb", "[10:50, :, 7]", "-o", "OUT.npy"],
    &["convert", "raw.h5", "OUT.zarr", "--filter", "none"],
    &["convert", "zstd.tet", "OUT.zarr"],
    &["convert", "gzip.h5", "OUT.zarr", "--filter", "zstd"],
    &["convert", "raw.zarr", "OUT.h5", "--filter", "shuffle,gzip:1"],
    &["convert", "raw.tet", "OUT.tiledb", "--filter", "none", "--chunks", "1,512,512"],
    &["verify", "raw.tet", "--deep"],
    &["verify", "gzip.h5", "--deep"],
    &["verify", "zstd.zarr", "--deep"],
    &["diff", "raw.tet", "zstd.zarr"],
    &["hash", "zstd.tet"],
];

/// Times the commands with two builds: `BEFORE AFTER [WORD …]`. Words choose commands that contain one of them.
pub(crate) fn run(mut arguments: impl Iterator<Item = String>) -> Outcome {
    let mut program = || arguments.next().map(PathBuf::from).ok_or("--compare needs two programs");
    let (before, after) = (program()?, program()?);
    let words: Vec<String> = arguments.collect();
    let files =
        std::env::var_os("HYPERSLAB_BENCH_FILES").map_or_else(|| "target/bench".into(), PathBuf::from);
    std::fs::create_dir_all(&files)?;
    make_stores(&after, &files)?;
    say(&format!("{:>10} {:>10} {:>6}  command", "before", "after", "ratio"));
    let mut slower = 0_usize;
    for command in COMMANDS {
        let line = command.join(" ");
        if !words.is_empty() && !words.iter().any(|word| line.contains(word.as_str())) {
            continue;
        }
        let mut old = || execute(&before, command, &files);
        let mut new = || execute(&after, command, &files);
        let prepare = || remove_outputs(command, &files);
        match timed_in_turn_prepared(prepare, [("before", &mut old), ("after", &mut new)]).as_deref() {
            Ok([(_, before), (_, after)]) => {
                let ratio = after / before;
                slower += usize::from(ratio > SLOWER);
                let mark = if ratio > SLOWER { "  slower" } else { "" };
                say(&format!("{:>7.1} ms {:>7.1} ms {ratio:>6.2}  {line}{mark}", before * 1e3, after * 1e3));
            }
            Ok(_) => {}
            Err(why) => say(&format!("{:>28}  {line}: {why}", "failed")),
        }
    }
    say(&format!("{slower} slower by more than {:.0} %", (SLOWER - 1.0) * 100.0));
    Ok(())
}

/// Makes the stores that the commands read, once.
fn make_stores(tet: &Path, files: &Path) -> Outcome {
    let source = files.join("field.npy");
    if !source.exists() {
        data::write_npy(BYTES, &source)?;
    }
    for (name, options) in STORES {
        if !files.join(name).exists() {
            say(&format!("making {name}"));
            let command: Vec<&str> =
                ["convert", "field.npy", name].into_iter().chain(options.iter().copied()).collect();
            execute(tet, &command, files)?;
        }
    }
    Ok(())
}

/// Removes what the last run of a command wrote.
fn remove_outputs(command: &[&str], files: &Path) -> Outcome {
    command.iter().filter(|word| word.starts_with("OUT.")).try_for_each(|output| clear(&files.join(output)))
}

/// Runs a command in the folder of the files.
fn execute(tet: &Path, command: &[&str], files: &Path) -> Outcome {
    let mut process = Command::new(tet);
    process.current_dir(files).args(command).stdout(Stdio::null()).stderr(Stdio::null());
    let status = process.status()?;
    if status.success() { Ok(()) } else { Err(status.to_string().into()) }
}
