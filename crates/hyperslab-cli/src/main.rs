//! `tet`: look into, slice, check, mend and convert chunked arrays of any format.

#[cfg(unix)]
mod truncated;

mod address;
mod args;
mod commands;
mod output;
mod paint;
mod pretty;
mod progress;
mod times;

use std::process::ExitCode;

use clap::Parser;

/// How a command ended when it could do its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Done.
    Yes,
    /// The answer is no: damage was found, or differences.
    No,
}

/// Names, documents and footers are many small pieces of memory, taken and given back on several threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args = args::Args::parse();
    #[cfg(unix)]
    truncated::handle();
    if let Some(threads) = args.threads() {
        // Fails only when the pool exists already, which nothing before this makes.
        let _ = rayon::ThreadPoolBuilder::new().num_threads(threads).build_global();
    }
    let (stores, meter, node_option) = (args.stores(), args.meter(), args.has_node_option());
    let answer = commands::run(args);
    if let Some(meter) = meter {
        output::tell_traffic(meter.traffic());
    }
    match answer {
        Ok(Answer::Yes) => ExitCode::SUCCESS,
        Ok(Answer::No) => ExitCode::from(1),
        Err(error) if output::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(&error, &stores, node_option);
            ExitCode::from(2)
        }
    }
}
