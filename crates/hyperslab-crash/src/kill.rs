//! Runs writers as processes and kills them.
//!
//! Each writer first runs to its end a few times, to measure its duration. Then it is started repeatedly on a copy of the old
//! store and killed (`SIGKILL`) at a random instant. Our reader and the reference library read the result: both must find the old
//! content or the new. Finally another writer writes to the same target, and must succeed and leave nothing behind.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::content;
use crate::peer::Peer;
use crate::random::Random;
use crate::writers::{self, Places, Scale, Writer};

/// Options of a campaign.
#[derive(Debug, Clone)]
pub struct Campaign {
    /// The number of processes to kill, over all writers.
    pub kills: u64,
    /// The seed of random numbers.
    pub seed: u64,
    /// The interpreter that has the reference libraries.
    pub python: PathBuf,
    /// The program that runs one writer: this one.
    pub program: PathBuf,
    /// Only writers whose name contains this.
    pub only: Option<String>,
}

/// The results of one writer.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// The writer.
    pub name: String,
    /// Its duration without a kill.
    pub duration: Duration,
    /// The number of kills.
    pub kills: u64,
    /// Kills that left the old content.
    pub old: u64,
    /// Kills that left the new content.
    pub new: u64,
    /// Kills that left something beside the target, which the next writer removed.
    pub leftovers: u64,
    /// Violations.
    pub findings: Vec<String>,
}

/// The error is the reason why a campaign could not continue.
type Outcome<T> = Result<T, String>;

/// Runs a campaign. Returns a tally for each writer.
///
/// # Errors
///
/// If a writer fails without being killed, or the reference libraries do not respond.
pub fn run(campaign: &Campaign, report: &mut dyn FnMut(&Tally)) -> Outcome<Vec<Tally>> {
    let mut peer = Peer::start(&campaign.python).map_err(|error| error.to_string())?;
    let mut random = Random::new(campaign.seed);
    let writers = writers::all();
    let wanted = |writer: &&Writer| campaign.only.as_ref().is_none_or(|only| writer.name.contains(only));
    let writers: Vec<&Writer> = writers.iter().filter(wanted).collect();
    let mut tallies = Vec::new();
    for (number, writer) in writers.iter().enumerate() {
        let count = writers.len() as u64;
        let kills = campaign.kills / count + u64::from((number as u64) < campaign.kills % count);
        let tally = run_writer(writer, kills, campaign, &mut peer, &mut random)
            .map_err(|problem| format!("{}: {problem}", writer.name))?;
        report(&tally);
        tallies.push(tally);
    }
    Ok(tallies)
}

/// The content that both readers find.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Contents {
    ours: String,
    theirs: Vec<String>,
}

/// The allowed contents.
#[derive(Debug)]
struct Expected {
    old: Contents,
    new: Contents,
    /// After [`Writer::again`].
    replaced: Contents,
}

fn read_with_both(writer: &Writer, peer: &mut Peer, target: &Path) -> Outcome<Contents> {
    let theirs = peer.content(writer.peer, target).map_err(|error| error.to_string())?;
    // The reason for a refusal depends on what the library reads first.
    let theirs = theirs
        .into_iter()
        .map(|text| if text.starts_with("refused") { "refused".to_owned() } else { text })
        .collect();
    Ok(Contents { ours: content::of(target), theirs })
}

fn run_writer(
    writer: &Writer,
    kills: u64,
    campaign: &Campaign,
    peer: &mut Peer,
    random: &mut Random,
) -> Outcome<Tally> {
    let mut tally = Tally { name: writer.name.clone(), ..Tally::default() };
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let at = |name: &str| folder.path().join(name);
    let sources = at("sources");
    let (before, work) = (at("before"), at("work"));
    for folder in [&sources, &before] {
        std::fs::create_dir(folder).map_err(|error| error.to_string())?;
    }
    let old_places = Places { target: before.join(writer.target), sources: sources.clone() };
    (writer.before)(&old_places, Scale::LARGE).map_err(|error| error.to_string())?;
    let places = Places { target: work.join(writer.target), sources };
    replace_with_copy(&before, &work)?;
    let old = read_with_both(writer, peer, &places.target)?;
    (writer.again)(&places, Scale::LARGE).map_err(|error| error.to_string())?;
    let replaced = read_with_both(writer, peer, &places.target)?;
    let expected = Expected { old, new: replaced.clone(), replaced };
    // The longest of a few runs, from the first write to the end of the process.
    let mut new = None;
    for _ in 0..3 {
        replace_with_copy(&before, &work)?;
        let (mut child, started) = start(writer, &places, campaign)?;
        let status = child.wait().map_err(|error| error.to_string())?;
        if !status.success() {
            return Err(format!("the writer itself failed: {status}"));
        }
        let duration = started.elapsed();
        tally.duration = if new.is_none() { duration } else { tally.duration.max(duration) };
        let seen = read_with_both(writer, peer, &places.target)?;
        if new.replace(seen.clone()).is_some_and(|other| other != seen) {
            return Err("the writer does not write the same twice".to_owned());
        }
    }
    let expected = Expected { new: new.ok_or("no run")?, ..expected };
    for (side, seen) in [("old", &expected.old), ("new", &expected.new)] {
        let is_damaged = seen.ours.starts_with(content::REFUSED)
            || seen.ours.contains("\ndamage ")
            || seen.theirs.iter().any(|text| text == "refused");
        if is_damaged != (side == "old" && writer.name.starts_with("repair")) {
            return Err(format!("the {side} store is not what it should be: {seen:?}"));
        }
    }
    for _ in 0..kills {
        replace_with_copy(&before, &work)?;
        let delay = tally.duration.mul_f64(random.part() * 1.05);
        let (mut child, started) = start(writer, &places, campaign)?;
        std::thread::sleep((started + delay).saturating_duration_since(Instant::now()));
        child.kill().and_then(|()| child.wait()).map_err(|error| error.to_string())?;
        tally.kills += 1;
        check(writer, &places, &expected, peer, &mut tally, delay)?;
    }
    Ok(tally)
}

/// Checks what a killed writer left, and runs another writer.
fn check(
    writer: &Writer,
    places: &Places,
    expected: &Expected,
    peer: &mut Peer,
    tally: &mut Tally,
    delay: Duration,
) -> Outcome<()> {
    let Expected { old, new, replaced } = expected;
    let mut found = Vec::new();
    let seen = read_with_both(writer, peer, &places.target)?;
    let is_old = seen.ours == old.ours;
    match (is_old, seen.ours == new.ours) {
        (true, _) => tally.old += 1,
        (false, true) => tally.new += 1,
        (false, false) => found.push(format!("our reader finds neither the old nor the new: {}", seen.ours)),
    }
    for (at, theirs) in seen.theirs.iter().enumerate() {
        if old.theirs.get(at) != Some(theirs) && new.theirs.get(at) != Some(theirs) {
            let again = peer.content(writer.peer, &places.target).map_err(|error| error.to_string())?;
            found.push(format!("the reference library finds neither the old nor the new: {again:?}"));
        }
    }
    let beside = beside(&places.target)?;
    // We read a Zarr store by its consolidated metadata, which is written last, so that view must agree with ours. An append to a
    // .tet file is committed by its redo file, which the reference library does not know: it reads the old content until the redo
    // file is applied.
    let has_redo = beside.iter().any(|name| *name == redo_of(writer.target));
    let (theirs, theirs_old, theirs_new) = (seen.theirs.last(), old.theirs.last(), new.theirs.last());
    let differ = old.ours != new.ours && theirs_old != theirs_new;
    if found.is_empty() && differ && !has_redo && (theirs == theirs_old) != is_old {
        let side = if is_old { "old" } else { "new" };
        found.push(format!("we find the {side} content, the reference library does not"));
    }
    tally.leftovers += u64::from(!beside.is_empty());
    for name in beside.iter().filter(|name| !is_named_after(name, writer.target)) {
        found.push(format!("{name} was left behind"));
    }
    // Run the same writer again if it changed nothing, then one that replaces everything.
    if is_old {
        match (writer.write)(places, Scale::LARGE) {
            Err(problem) => found.push(format!("the next writer fails: {problem}")),
            Ok(()) => {
                let seen = read_with_both(writer, peer, &places.target)?;
                if seen != *new {
                    found.push(format!("the next writer does not write the new content: {seen:?}"));
                }
            }
        }
    }
    match (writer.again)(places, Scale::LARGE) {
        Err(problem) => found.push(format!("the target cannot be replaced: {problem}")),
        Ok(()) => {
            let seen = read_with_both(writer, peer, &places.target)?;
            if seen != *replaced {
                found.push(format!("what replaces it is not what was written: {seen:?}"));
            }
        }
    }
    for name in self::beside(&places.target)? {
        found.push(format!("{name} is left after the next writer"));
    }
    let micros = delay.as_micros();
    tally.findings.extend(found.into_iter().map(|text| format!("killed after {micros} µs: {text}")));
    Ok(())
}

/// The entries beside the target.
pub(crate) fn beside(target: &Path) -> Outcome<Vec<String>> {
    let folder = target.parent().ok_or("the target has no folder")?;
    let entries = std::fs::read_dir(folder).map_err(|error| error.to_string())?;
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    Ok(names.filter(|name| Some(name.as_ref()) != target.file_name()).collect())
}

/// The name of the redo file of a `.tet` file.
pub(crate) fn redo_of(target: &str) -> String {
    format!("{target}.redo")
}

/// Returns true for the temporary name of a target, `.NAME.<16 hexadecimal digits>.part`, or the redo file of a `.tet` file.
fn is_named_after(name: &str, target: &str) -> bool {
    let redo = redo_of(target);
    let is_part = |target: &str| {
        let rest = name.strip_prefix('.').and_then(|name| name.strip_prefix(target));
        let digits = rest.and_then(|rest| rest.strip_prefix('.')?.strip_suffix(".part"));
        digits
            .is_some_and(|digits| digits.len() == 16 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
    };
    name == redo || is_part(target) || is_part(&redo)
}

/// Starts the process of a writer, and returns the instant at which it starts writing.
fn start(writer: &Writer, places: &Places, campaign: &Campaign) -> Outcome<(Child, Instant)> {
    let mut child = Command::new(&campaign.program)
        .arg("write")
        .arg(&writer.name)
        .arg(&places.target)
        .arg(&places.sources)
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let output = child.stdout.take().ok_or("the process has no pipe")?;
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line).map_err(|error| error.to_string())?;
    Ok((child, Instant::now()))
}

/// The process that [`run`] kills: one writer.
///
/// # Errors
///
/// If there is no such writer, or it fails.
pub fn write(name: &str, target: &Path, sources: &Path, scale: Scale) -> Outcome<()> {
    let writers = writers::all();
    let writer = writers.iter().find(|writer| writer.name == name).ok_or("no such writer")?;
    let places = Places { target: target.to_owned(), sources: sources.to_owned() };
    let mut out = std::io::stdout();
    writeln!(out, "go").and_then(|()| out.flush()).map_err(|error| error.to_string())?;
    (writer.write)(&places, scale).map_err(|error| error.to_string())
}

/// Makes `to` a copy of the folder `from`.
pub(crate) fn replace_with_copy(from: &Path, to: &Path) -> Outcome<()> {
    fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
        if !from.is_dir() {
            return std::fs::copy(from, to).map(|_| ());
        }
        std::fs::create_dir(to)?;
        for entry in std::fs::read_dir(from)? {
            let entry = entry?;
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
        Ok(())
    }
    match std::fs::remove_dir_all(to) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.to_string()),
        _ => {}
    }
    copy(from, to).map_err(|error| format!("{}: {error}", from.display()))
}
