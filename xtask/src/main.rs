//! The developer's chores.
//!
//! ```text
//! cargo xtask test      everything: unit, golden, property, peer, documentation and Python tests, the layers of the house
//! cargo xtask crash     every writer, killed again and again; `--kills N`, `--seed S`, `--only TEXT`
//! cargo xtask power     what a power cut can leave of every writer; `--samples N`, `--seed S`, `--only TEXT`
//! cargo xtask race      processes that grow one array at once; `--processes N`, `--rows N`, `--only TEXT`
//! cargo xtask load      readers beside a writer; `--processes N`, `--threads N`, `--seconds S`, `--only TEXT`
//! cargo xtask soak      the offline tests again and again, each time with new random cases
//! cargo xtask peers     only make the Python environment of the peers and the servers, under target/peers and target/servers
//! cargo xtask python    the Python module: build the wheel, install it, run its tests
//! cargo xtask page      build H5Web as the page of `tet serve`, into target/page (needs Node.js)
//! cargo xtask browse    both pages in headless Chromium, on a store of every format
//! cargo xtask pictures  the pictures of the README, drawn anew; `--check`: are they current?
//! cargo xtask bench     us and the peers on the same work, as ratios
//! cargo xtask layers    do the crates depend on each other in one direction only?
//! cargo xtask features  does every set of features compile, and do the fuzz targets?
//! cargo xtask fuzz      every fuzz target for a while (needs cargo-fuzz)
//! ```

mod bench;
mod crash;
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

/// Why a chore failed.
type Outcome = Result<(), String>;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match words.first().map(String::as_str) {
        Some("test") => test::run(&words[1..]),
        Some("crash") => crash::kill(&words[1..]),
        Some("power") => crash::power(&words[1..]),
        Some("race") => crash::race(&words[1..]),
        Some("load") => crash::load(&words[1..]),
        Some("soak") => test::soak(&words[1..]),
        Some("peers") => peers::python().and_then(|_| servers::folder()).map(|_| ()),
        Some("bench") => bench::run(&words[1..]),
        Some("page") => page::build(),
        Some("browse") => page::browse(),
        Some("pictures") => pictures::run(&words[1..]),
        Some("python") => python::run_tests(&words[1..]),
        Some("layers") => layers::run(),
        Some("features") => features::run(),
        Some("fuzz") => fuzz::run(&words[1..]),
        other => Err(format!(
            "{}: expected test, crash, power, race, load, soak, peers, page, browse, pictures, python, bench, layers, features or fuzz",
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
