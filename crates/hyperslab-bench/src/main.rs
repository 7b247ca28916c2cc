//! Us and the peers on the same work in one run, as ratios: machines are noisy, so a second means nothing here.
//!
//! ```text
//! cargo xtask bench [--size MIB] [WORD …]     only the cases whose name has one of the words
//! ```

mod data;
mod harness;
mod hdf5;
mod memory;
mod peers;
mod reads;
mod tet;

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
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some(("hdf5-contender", rest)) =
        arguments.split_first().map(|(first, rest)| (first.as_str(), rest))
    {
        return hdf5::serve(rest);
    }
    let mut bench = Bench::from_arguments(arguments.into_iter())?;
    if tet::LINES.iter().any(|line| bench.wants(line)) {
        tet::run(&mut bench)?;
    }
    hdf5::run(&mut bench)?;
    reads::run(&mut bench)?;
    bench.print()
}
