//! Us and the peers on the same work in one run, as ratios: machines are noisy, so a second means nothing here.
//!
//! ```text
//! cargo xtask bench [--size MIB] [WORD …]     only the cases whose name has one of the words
//! ```

mod data;
mod harness;
mod peers;
mod reads;
mod tet;
mod zarr;
mod zvf;

use harness::{Bench, Outcome};

fn main() -> std::process::ExitCode {
    match run() {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(why) => {
            harness::say(&format!("bench: {why}"));
            std::process::ExitCode::FAILURE
        }
    }
}

fn run() -> Outcome {
    let mut bench = Bench::from_arguments(std::env::args().skip(1))?;
    if tet::LINES.iter().any(|line| bench.wants(line)) {
        tet::run(&mut bench)?;
    }
    reads::run(&mut bench)?;
    zarr::run(&mut bench)?;
    zvf::run(&mut bench)?;
    bench.print()
}
