//! Hyperslab and its peers on the same work in one run, reported as ratios, because absolute times depend on the
//! machine.
//!
//! ```text
//! cargo xtask bench [--size MIB] [--out FOLDER] [WORD …]     only cases whose name or area matches a word
//! ```
//!
//! An area is a module with its own script for the peers. Results are merged into `bench/results.jsonl`, from which
//! `bench/RESULTS.md` and its chart are generated.

mod compare;
mod convert;
mod data;
mod harness;
mod hdf5;
mod hdf5_write;
mod machine;
mod memory;
mod netcdf3;
mod peers;
mod picture;
mod python;
mod query;
mod reads;
mod remote;
mod report;
mod results;
mod serve;
mod summary;
mod tables;
mod tet;
mod tiledb;
mod verify;
mod zarr;
mod zvf;

use harness::{Bench, Outcome};

/// An area's name and function.
type Area = (&'static str, fn(&mut Bench) -> Outcome);

/// The measured cases, in table order.
const AREAS: &[Area] = &[
    ("tet", tet::run),
    ("hdf5", hdf5::run),
    ("zarr", zarr::run),
    ("zvf", zvf::run),
    ("tiledb", tiledb::run),
    ("tables", tables::run),
    ("netcdf3", netcdf3::run),
    ("query", query::run),
    ("convert", convert::run),
    ("verify", verify::run),
    ("python", python::run),
    ("remote", remote::run),
    ("serve", serve::run),
    ("hdf5_write", hdf5_write::run),
];

/// Names, documents and footers are many small allocations, made and freed on several threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    match run() {
        Ok(true) => std::process::ExitCode::SUCCESS,
        Ok(false) => std::process::ExitCode::FAILURE,
        Err(why) => {
            harness::say(&format!("bench: {why}"));
            std::process::ExitCode::FAILURE
        }
    }
}

/// Runs all areas. Returns true if all succeeded.
fn run() -> Outcome<bool> {
    let mut arguments = std::env::args().skip(1).peekable();
    if arguments.next_if(|word| word == tiledb::CONSOLIDATE).is_some() {
        tiledb::consolidate_here(arguments.next().ok_or("no array to consolidate")?.into())?;
        return Ok(true);
    }
    if arguments.next_if(|word| word == hdf5::CONTENDER).is_some() {
        hdf5::serve(&arguments.collect::<Vec<_>>())?;
        return Ok(true);
    }
    if arguments.next_if(|word| word == "--compare").is_some() {
        compare::run(arguments)?;
        return Ok(true);
    }
    let mut bench = Bench::from_arguments(arguments)?;
    let mut all = true;
    for &(name, run) in AREAS {
        all &= bench.area(name, run);
    }
    bench.finish()?;
    Ok(all)
}
