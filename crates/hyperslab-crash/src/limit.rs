//! Runs writers as processes that the system denies a resource: disk space, file handles, or one system call.
//!
//! A writer that fails must report the reason, keep the old content and leave nothing behind.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::content;
use crate::kill::{redo_of, replace_with_copy};
use crate::writers::{Places, Scale, Writer};

/// The resource that is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// The maximum file size in units of the shell's `ulimit -f`: 512 or 1024 bytes.
    FileSize(u64),
    /// The maximum number of file handles.
    Handles(u64),
    /// A file system (tmpfs) with room for this many KiB beyond the existing content. Requires permission to mount.
    Room(u64),
    /// One system call of a kind fails. Requires `strace`.
    Call(FailedCall),
}

/// A system call that fails once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailedCall {
    /// The calls that are counted, in the words of `strace`.
    pub calls: &'static str,
    /// The error.
    pub error: &'static str,
    /// The number of the call that fails, from 1.
    pub number: u64,
}

/// The calls that fail in a campaign, with their error. An interrupted call is repeated, so it must not fail.
pub const FAILURES: [(&str, &str); 7] = [
    ("write,pwrite64,writev,pwritev,copy_file_range,sendfile", "ENOSPC"),
    ("write,pwrite64,writev,pwritev", "EINTR"),
    ("fsync,fdatasync,syncfs,sync_file_range", "EIO"),
    ("rename,renameat,renameat2,link,linkat", "EACCES"),
    ("ftruncate,fallocate", "ENOSPC"),
    ("mkdir,mkdirat,unlink,unlinkat,rmdir", "EACCES"),
    ("read,pread64,preadv", "EIO"),
];

/// The results of one writer.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Runs that failed.
    pub failed: u64,
    /// Runs with sufficient resources.
    pub done: u64,
    /// Runs for which a limit had no effect, as far as known.
    pub unlimited: u64,
    /// Violations.
    pub findings: Vec<String>,
}

/// Runs a writer once under each limit. `program` has the command `write`.
///
/// # Errors
///
/// If the old store cannot be created, or a process cannot be started.
pub fn run(writer: &Writer, limits: &[Limit], program: &Path) -> Result<Tally, String> {
    let to_text = |error: std::io::Error| error.to_string();
    let folder = tempfile::tempdir().map_err(to_text)?;
    let at = |name: &str| folder.path().join(name);
    let (before, work, sources) = (at("before"), at("work"), at("sources"));
    for folder in [&before, &sources] {
        std::fs::create_dir(folder).map_err(to_text)?;
    }
    let old_places = Places { target: before.join(writer.target), sources: sources.clone() };
    (writer.before)(&old_places, Scale::SMALL).map_err(|error| error.to_string())?;
    let places = Places { target: work.join(writer.target), sources };
    let mut tally = Tally::default();
    // A call can fail after the change was committed, such as the last sync.
    let mut committed = None;
    if limits.iter().any(|limit| matches!(limit, Limit::Call(_))) {
        replace_with_copy(&before, &work)?;
        committed = Some(seen(writer, &places, program, Command::new("env"), None)?.content);
    }
    for limit in limits {
        replace_with_copy(&before, &work)?;
        let old = content::of(&places.target);
        let seen = match limit {
            Limit::Room(kib) => inside_mount(*kib, writer, &before, &places, program)?,
            Limit::Call(call) => with_failed_call(*call, writer, &places, program)?,
            _ => under_limit(*limit, writer, &places, program)?,
        };
        let allowed = [Some(old.as_str()), committed.as_deref()];
        check(&seen, &allowed, writer, &format!("{limit:?}"), &mut tally);
    }
    Ok(tally)
}

/// Runs a writer once for each of its first `most` calls of each kind in [`FAILURES`], which fails.
///
/// # Errors
///
/// As [`run`]; also if `strace` is missing.
pub fn run_failures(writer: &Writer, most: u64, program: &Path) -> Result<Tally, String> {
    let mut all = Tally::default();
    for (calls, error) in FAILURES {
        for number in 1..=most {
            let tally = run(writer, &[Limit::Call(FailedCall { calls, error, number })], program)?;
            all.failed += tally.failed;
            all.done += tally.done;
            all.findings.extend(tally.findings);
            // The writer makes no further call of this kind.
            if tally.unlimited > 0 {
                break;
            }
        }
    }
    Ok(all)
}

/// The result of a process.
struct RunResult {
    /// Whether the limit had an effect, as far as known.
    limited: bool,
    succeeded: bool,
    code: Option<i32>,
    said: String,
    content: String,
    beside: Vec<String>,
}

fn check(seen: &RunResult, allowed: &[Option<&str>], writer: &Writer, limit: &str, tally: &mut Tally) {
    let mut find = |text: String| tally.findings.push(format!("{}, {limit}: {text}", writer.name));
    for name in &seen.beside {
        find(format!("{name} was left behind ({})", seen.said.trim()));
    }
    tally.unlimited += u64::from(!seen.limited);
    if seen.succeeded {
        tally.done += 1;
        return;
    }
    tally.failed += 1;
    if !allowed.contains(&Some(seen.content.as_str())) {
        find(format!("failed with {:?}, and left {}", seen.said.trim(), seen.content));
    }
    // Killed by a signal, or a panic.
    if seen.code.is_none_or(|code| code == 101) || seen.said.trim().is_empty() {
        find(format!("ended with {:?} and {:?}", seen.code, seen.said.trim()));
    }
}

/// Runs a writer under `strace`, which lets a call fail.
fn with_failed_call(
    call: FailedCall,
    writer: &Writer,
    places: &Places,
    program: &Path,
) -> Result<RunResult, String> {
    let FailedCall { calls, error, number } = call;
    let log = places.sources.with_file_name("calls");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-e", &format!("trace={calls}"), "-o"]).arg(&log);
    strace.args(["-e", &format!("inject={calls}:error={error}:when={number}")]);
    let mut seen = seen(writer, places, program, strace, None)?;
    let calls = std::fs::read_to_string(&log).map_err(|error| error.to_string())?;
    let failed: Vec<&str> = calls.lines().filter(|line| line.contains("(INJECTED)")).collect();
    seen.limited = !failed.is_empty();
    // Each kind of call is counted on its own, so that a report may fail too.
    if failed.iter().any(|line| line.contains("write(1,") || line.contains("write(2,")) {
        "cannot report".clone_into(&mut seen.said);
    }
    // What cannot be removed remains, and the redo file of a `.tet` file is the commit.
    let redo = redo_of(&places.target.file_name().unwrap_or_default().to_string_lossy());
    seen.beside.retain(|name| !call.calls.contains("unlink") && *name != redo);
    Ok(seen)
}

fn under_limit(limit: Limit, writer: &Writer, places: &Places, program: &Path) -> Result<RunResult, String> {
    let limit = match limit {
        Limit::FileSize(units) => format!("-f {units}"),
        Limit::Handles(count) => format!("-n {count}"),
        Limit::Room(_) | Limit::Call(_) => return Err("no limit of a process".to_owned()),
    };
    // Failed writes return errors instead of ending the process.
    let script = format!("trap '' XFSZ; ulimit {limit} && exec \"$@\"");
    let mut shell = Command::new("sh");
    shell.args(["-c", &script, "sh"]);
    seen(writer, places, program, shell, None)
}

/// The same in a private mount, which ends with the shell.
fn inside_mount(
    kib: u64,
    writer: &Writer,
    before: &Path,
    places: &Places,
    program: &Path,
) -> Result<RunResult, String> {
    let folder = places.target.parent().ok_or("the target has no folder")?;
    let left = folder.with_file_name("left");
    let _ = std::fs::remove_dir_all(&left);
    let pages = kib.div_ceil(4) * 4;
    let script = format!(
        "mount -t tmpfs -o size=64m tmpfs '{work}' && cp -a '{before}/.' '{work}/' && \
         used=$(df -k --output=used '{work}' | tail -1) && \
         mount -o remount,size=$((used + {pages}))k '{work}' || exit 99; \
         \"$@\"; code=$?; cp -a '{work}' '{left}'; exit $code",
        work = folder.display(),
        before = before.display(),
        left = left.display(),
    );
    let mut shell = Command::new("unshare");
    shell.args(["-m", "sh", "-c", &script, "sh"]);
    seen(writer, places, program, shell, Some(left))
}

fn seen(
    writer: &Writer,
    places: &Places,
    program: &Path,
    mut shell: Command,
    left: Option<PathBuf>,
) -> Result<RunResult, String> {
    let ran = shell
        .arg(program)
        .arg("write")
        .arg(&writer.name)
        .args([&places.target, &places.sources])
        .arg("small")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    if ran.status.code() == Some(99) {
        return Err(format!("cannot mount: {said}"));
    }
    let folder = places.target.parent().ok_or("the target has no folder")?;
    if let Some(left) = left {
        replace_with_copy(&left, folder)?;
    }
    Ok(RunResult {
        limited: true,
        succeeded: ran.status.success(),
        code: ran.status.code(),
        said,
        content: content::of(&places.target),
        beside: crate::kill::beside(&places.target)?,
    })
}
