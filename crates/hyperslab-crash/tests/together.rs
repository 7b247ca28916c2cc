//! Writers and readers of one store at the same time, as processes.
#![cfg(unix)]

use std::path::Path;
use std::time::Duration;

use hyperslab_crash::load::{self, Load};
use hyperslab_crash::race;

#[test]
fn rows_of_processes_that_grow_one_array_are_all_there() {
    let races = race::run(Path::new(env!("CARGO_BIN_EXE_crash")), 4, 8, "").unwrap();
    assert!(races.len() >= 7, "{races:?}");
    assert!(races.iter().any(|race| race.refused > 0), "no two writers ever met: {races:?}");
}

#[test]
fn readers_beside_a_writer_find_what_was_written() {
    let load = Load { processes: 3, threads: 6, duration: Duration::from_millis(700) };
    let tallies = load::run(Path::new(env!("CARGO_BIN_EXE_crash")), load, "").unwrap();
    assert!(
        tallies.len() >= 7 && tallies.iter().all(|tally| tally.reads > 0 && tally.appends > 0),
        "{tallies:?}"
    );
}
