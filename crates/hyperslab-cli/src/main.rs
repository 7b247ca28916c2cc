//! `tet`: inspect, slice, check, repair and convert chunked arrays of any format.

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

/// The outcome of a command that ran to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Done.
    Yes,
    /// The answer is no: damage or differences were found.
    No,
}

/// Names, documents and footers are many small allocations, made and freed on several threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args = args::Args::parse();
    #[cfg(unix)]
    truncated::handle();
    if let Some(threads) = args.threads() {
        // Fails only if the pool already exists, which cannot happen here.
        let _ = rayon::ThreadPoolBuilder::new().num_threads(threads).build_global();
    }
    let (stores, meter, node_option) = (args.stores(), args.meter(), args.has_node_option());
    let answer = commands::run(args);
    if let Some(meter) = meter {
        output::print_traffic(meter.traffic());
    }
    match answer {
        Ok(Answer::Yes) => ExitCode::SUCCESS,
        Ok(Answer::No) => ExitCode::from(1),
        Err(error) if output::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::print_error(&error, &stores, node_option);
            ExitCode::from(2)
        }
    }
}
