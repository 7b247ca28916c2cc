//! Concurrent writers and readers of one store, as processes.
#![cfg(unix)]

use std::path::Path;
use std::time::Duration;

use hyperslab_crash::load::{self, Load};
use hyperslab_crash::race;

#[test]
fn concurrent_appends_lose_no_rows() {
    let races = race::run(Path::new(env!("CARGO_BIN_EXE_crash")), 4, 8, "").unwrap();
    assert!(races.len() >= 7, "{races:?}");
    assert!(races.iter().any(|race| race.refused > 0), "no two writers ever met: {races:?}");
}

#[test]
fn readers_beside_a_writer_get_correct_values() {
    let load = Load { processes: 3, threads: 6, duration: Duration::from_millis(700) };
    let tallies = load::run(Path::new(env!("CARGO_BIN_EXE_crash")), load, "").unwrap();
    assert!(
        tallies.len() >= 7 && tallies.iter().all(|tally| tally.reads > 0 && tally.appends > 0),
        "{tallies:?}"
    );
}
