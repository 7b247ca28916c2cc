//! Developer tasks.
//!
//! ```text
//! cargo xtask test      all tests: unit, golden, property, peer, documentation and Python tests, and the layers
//! cargo xtask crash     kill every writer many times; `--kills N`, `--seed S`, `--only TEXT`
//! cargo xtask power     open the states that power cuts can leave of every writer; `--samples N`, `--seed S`, `--only TEXT`
//! cargo xtask race      processes that grow one array concurrently; `--processes N`, `--rows N`, `--only TEXT`
//! cargo xtask load      readers beside a writer; `--processes N`, `--threads N`, `--seconds S`, `--only TEXT`
//! cargo xtask differential   change stores, and compare our reader with the reference libraries; `--seconds S`, `--seed S`, `--keep FOLDER`
//! cargo xtask soak      repeat the offline tests with new random cases
//! cargo xtask peers     only install the peers and the servers, under target/peers and target/servers
//! cargo xtask python    the Python module: build the wheel, install it, run its tests
//! cargo xtask page      build H5Web as the page of `tet serve`, into target/page (needs Node.js)
//! cargo xtask browse    test both pages in headless Chromium, on a store of every format
//! cargo xtask pictures  redraw the figures and rerun the examples of the README; `--check` reports outdated ones
//! cargo xtask bench     compare the speed with that of the peers
//! cargo xtask compare   compare the speed with that of an earlier revision
//! cargo xtask layers    check that dependencies between crates point down
//! cargo xtask features  check that every feature set and the fuzz targets compile
//! cargo xtask fuzz      run every fuzz target for a while (needs cargo-fuzz)
//! ```

mod bench;
mod compare;
mod crash;
mod examples;
mod features;
mod fuzz;
mod layers;
mod page;
mod peers;
mod pictures;
mod python;
mod run;
mod servers;
mod test;
mod tools;

use std::process::ExitCode;

/// The error says why a task failed.
type Outcome = Result<(), String>;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match words.first().map(String::as_str) {
        Some("test") => test::run(&words[1..]),
        Some("crash") => crash::kill(&words[1..]),
        Some("power") => crash::power(&words[1..]),
        Some("race") => crash::race(&words[1..]),
        Some("load") => crash::load(&words[1..]),
        Some("differential") => crash::differential(&words[1..]),
        Some("soak") => test::soak(&words[1..]),
        Some("peers") => peers::python().and_then(|_| servers::folder()).map(|_| ()),
        Some("bench") => bench::run(&words[1..]),
        Some("compare") => compare::run_against(&words[1..]),
        Some("page") => page::build(),
        Some("browse") => page::browse(),
        Some("pictures") => pictures::run(&words[1..]),
        Some("python") => python::run_tests(&words[1..]),
        Some("layers") => layers::run(),
        Some("features") => features::run(),
        Some("fuzz") => fuzz::run(&words[1..]),
        other => Err(format!(
            "{}: expected test, crash, power, race, load, differential, soak, peers, page, browse, pictures, python, bench, compare, layers, features or fuzz",
            other.unwrap_or("no chore")
        )),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            run::say(&format!("xtask: {why}"));
            ExitCode::FAILURE
        }
    }
}
