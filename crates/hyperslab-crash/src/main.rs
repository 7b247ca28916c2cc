//! `cargo xtask crash` and `cargo xtask power`: kills writers, and cuts their power.
//!
//! ```text
//! crash kill --python PYTHON [--kills N] [--seed S] [--only TEXT]
//! crash power [--samples N] [--seed S] [--only TEXT]
//! crash full [--only TEXT]               a file system that is full after 0, 4, 8 … KiB (needs the right to mount)
//! crash calls [--most N] [--only TEXT]   each of the first calls that write, sync, rename, … fails once (needs strace)
//! crash race [--processes N] [--rows N] [--only TEXT]     processes that grow one array concurrently
//! crash load [--processes N] [--threads N] [--seconds S] [--only TEXT]   many readers beside a writer
//! crash differential --python PYTHON [--seconds S] [--seed S] [--only TEXT] [--keep FOLDER]   changed stores, two readers
//! crash write NAME TARGET SOURCES [small]   one writer, to be killed
//! ```

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use hyperslab_crash::differential;
use hyperslab_crash::kill::{self, Campaign, Tally};
use hyperslab_crash::limit::{self, Limit};
use hyperslab_crash::load::{self, Load};
#[cfg(unix)]
use hyperslab_crash::power;
use hyperslab_crash::race;
use hyperslab_crash::writers::{self, Scale};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            let _ = writeln!(std::io::stderr(), "crash: {why}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(words: &[String]) -> Result<(), String> {
    match words.first().map(String::as_str) {
        Some("kill") => kill_writers(&words[1..]),
        #[cfg(unix)]
        Some("power") => cut_power(&words[1..]),
        Some("full") => fill_disk(&words[1..]),
        Some("calls") => fail_calls(&words[1..]),
        Some("race") => run_races(&words[1..]),
        Some("load") => put_under_load(&words[1..]),
        Some("differential") => compare_readers(&words[1..]),
        Some("extend") => match &words[1..] {
            [name, target, process, rows] => {
                let (process, rows) = (parsed(process)? as u32, parsed(rows)? as u32);
                race::extend_rows(name, Path::new(target), process, rows).map(|count| say(&count.to_string()))
            }
            _ => Err("expected extend FORMAT TARGET PROCESS ROWS".to_owned()),
        },
        Some("readers") => match &words[1..] {
            [target, threads, milliseconds, seed] => {
                let duration = Duration::from_millis(parsed(milliseconds)?);
                let reads =
                    load::read_all(Path::new(target), parsed(threads)? as u32, duration, parsed(seed)?);
                reads.map(|(reads, refused)| say(&format!("{reads} {refused}")))
            }
            _ => Err("expected readers TARGET THREADS MILLISECONDS SEED".to_owned()),
        },
        Some("write") => match &words[1..] {
            [name, target, sources, small @ ..] => {
                let scale = if small.is_empty() { Scale::LARGE } else { Scale::SMALL };
                kill::write(name, Path::new(target), Path::new(sources), scale)
            }
            _ => Err("expected write NAME TARGET SOURCES".to_owned()),
        },
        _ => Err("expected kill, power, full, calls, race, load, differential or write".to_owned()),
    }
}

/// The value of an option.
fn option<'a>(words: &'a [String], name: &str) -> Result<Option<&'a str>, String> {
    match words.iter().position(|word| word == name) {
        None => Ok(None),
        Some(at) => words.get(at + 1).map(|word| Some(word.as_str())).ok_or(format!("{name} needs a value")),
    }
}

fn number(words: &[String], name: &str, otherwise: u64) -> Result<u64, String> {
    option(words, name)?.map_or(Ok(otherwise), parsed)
}

fn parsed(word: &str) -> Result<u64, String> {
    word.parse().map_err(|error| format!("{word}: {error}"))
}

fn run_races(words: &[String]) -> Result<(), String> {
    let (processes, rows) = (number(words, "--processes", 8)?, number(words, "--rows", 50)?);
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let only = option(words, "--only")?.unwrap_or_default();
    for race in race::run(&program, processes as u32, rows as u32, only)? {
        say(&format!("{:<14} {:>6} rows, {:>6} times refused", race.name, race.rows, race.refused));
    }
    Ok(())
}

fn put_under_load(words: &[String]) -> Result<(), String> {
    let load = Load {
        processes: number(words, "--processes", 16)? as u32,
        threads: number(words, "--threads", 4)? as u32,
        duration: Duration::from_secs(number(words, "--seconds", 60)?),
    };
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    for tally in load::run(&program, load, option(words, "--only")?.unwrap_or_default())? {
        let load::Tally { name, reads, refused, appends } = tally;
        say(&format!("{name:<14} {reads:>8} reads, {appends:>6} appends, {refused:>6} times opened again"));
    }
    Ok(())
}

fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

fn kill_writers(words: &[String]) -> Result<(), String> {
    let campaign = Campaign {
        kills: number(words, "--kills", 200)?,
        seed: number(words, "--seed", 1)?,
        python: option(words, "--python")?.ok_or("--python is missing")?.into(),
        program: std::env::current_exe().map_err(|error| error.to_string())?,
        only: option(words, "--only")?.map(str::to_owned),
    };
    say(&format!(
        "{:<24} {:>9} {:>6} {:>6} {:>6} {:>9} {:>8}",
        "writer", "time", "kills", "old", "new", "leftovers", "findings"
    ));
    let row = |tally: &Tally| {
        let time = format!("{:.1} ms", tally.duration.as_secs_f64() * 1e3);
        let findings = tally.findings.len();
        say(&format!(
            "{:<24} {time:>9} {:>6} {:>6} {:>6} {:>9} {findings:>8}",
            tally.name, tally.kills, tally.old, tally.new, tally.leftovers
        ));
        tally.findings.iter().take(3).for_each(|finding| say(&format!("  {finding}")));
    };
    let tallies = kill::run(&campaign, &mut |tally| row(tally))?;
    let sum = |of: fn(&Tally) -> u64| tallies.iter().map(of).sum();
    let all = Tally {
        name: format!("all {}, seed {}", tallies.len(), campaign.seed),
        duration: tallies.iter().map(|tally| tally.duration).sum(),
        kills: sum(|tally| tally.kills),
        old: sum(|tally| tally.old),
        new: sum(|tally| tally.new),
        leftovers: sum(|tally| tally.leftovers),
        findings: Vec::new(),
    };
    row(&all);
    match tallies.iter().map(|tally| tally.findings.len()).sum() {
        0_usize => Ok(()),
        findings => Err(format!("{findings} findings")),
    }
}

fn compare_readers(words: &[String]) -> Result<(), String> {
    let campaign = differential::Campaign {
        duration: Duration::from_secs(number(words, "--seconds", 60)?),
        seed: number(words, "--seed", 1)?,
        python: option(words, "--python")?.ok_or("--python is missing")?.into(),
        only: option(words, "--only")?.unwrap_or_default().to_owned(),
        keep: option(words, "--keep")?.map(Into::into),
    };
    let mut errors = Vec::new();
    for (kind, tally) in differential::run(&campaign)? {
        say(&format!(
            "{kind}: {} stores, {} read alike, {} refused by both, {} ended the reference library",
            tally.stores, tally.same, tally.refused, tally.ended
        ));
        tally.differences.iter().for_each(|(class, count)| say(&format!("{count:>8}  {class}")));
        errors.extend(tally.errors().into_iter().map(|class| format!("{kind}: {class}")));
    }
    if errors.is_empty() { Ok(()) } else { Err(errors.join("\n")) }
}

#[cfg(unix)]
fn cut_power(words: &[String]) -> Result<(), String> {
    let (samples, seed) = (number(words, "--samples", 100)?, number(words, "--seed", 1)?);
    let only = option(words, "--only")?.unwrap_or_default();
    let row = |tally: &power::Tally| {
        say(&format!(
            "{:<28} {:>6} {:>5} {:>8} {:>8} {:>8} {:>8} {:>9} {:>8}",
            tally.name,
            tally.steps,
            tally.cuts,
            tally.states,
            tally.old,
            tally.new,
            tally.refused,
            tally.unnoticed,
            tally.findings.len()
        ));
        tally.findings.iter().take(3).for_each(|finding| say(&format!("  {finding}")));
    };
    say(&format!(
        "{:<28} {:>6} {:>5} {:>8} {:>8} {:>8} {:>8} {:>9} {:>8}",
        "writer", "steps", "cuts", "states", "old", "new", "refused", "unnoticed", "findings"
    ));
    let mut all = power::Tally { name: format!("all, seed {seed}"), ..power::Tally::default() };
    let mut findings = 0;
    for writer in writers::all().iter().filter(|writer| writer.name.contains(only)) {
        let tally = power::run(writer, samples as usize, seed).map_err(|why| format!("{writer:?}: {why}"))?;
        row(&tally);
        all.steps += tally.steps;
        all.cuts += tally.cuts;
        all.states += tally.states;
        all.old += tally.old;
        all.new += tally.new;
        all.refused += tally.refused;
        all.unnoticed += tally.unnoticed;
        findings += tally.findings.len();
    }
    row(&all);
    if findings == 0 { Ok(()) } else { Err(format!("{findings} findings")) }
}

fn fill_disk(words: &[String]) -> Result<(), String> {
    let limits: Vec<Limit> = (0..=24).map(|pages| Limit::Room(pages * 4)).collect();
    deny(words, |writer, program| limit::run(writer, &limits, program))
}

fn fail_calls(words: &[String]) -> Result<(), String> {
    let most = number(words, "--most", 20)?;
    deny(words, |writer, program| limit::run_failures(writer, most, program))
}

/// Denies the writers of every format a resource.
fn deny(
    words: &[String],
    run: impl Fn(&writers::Writer, &Path) -> Result<limit::Tally, String>,
) -> Result<(), String> {
    let only = option(words, "--only")?.unwrap_or_default();
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let (mut failed, mut done, mut findings) = (0, 0, 0);
    for writer in writers::all().iter().filter(|writer| writer.name.contains(only)) {
        let tally = run(writer, &program)?;
        say(&format!("{:<28} {:>3} failed, {:>3} done", writer.name, tally.failed, tally.done));
        tally.findings.iter().for_each(|finding| say(&format!("  {finding}")));
        failed += tally.failed;
        done += tally.done;
        findings += tally.findings.len();
    }
    say(&format!("{:<28} {failed:>3} failed, {done:>3} done, {findings} findings", "all"));
    if findings == 0 { Ok(()) } else { Err(format!("{findings} findings")) }
}
