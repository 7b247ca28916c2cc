//! Arguments of `tet verify`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueHint};

use super::OpenArgs;

#[derive(Debug, ClapArgs)]
#[command(before_help = "\
Examples:
  tet verify data.tet                      structures, offsets, counts
  tet verify data.tet --deep               also decode every chunk and compare checksums
  tet verify data.tet --json
  tet verify data.zarr --record sums.json    keep a hash of every stored chunk
  tet verify data.zarr --against sums.json   what changed, is missing or is new since then?

Exit status: 0 it is whole, 1 damage was found, 2 it could not be checked.")]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    pub(crate) open: OpenArgs,

    /// Also decode every chunk
    #[arg(long)]
    pub(crate) deep: bool,

    /// Write a hash of every stored chunk and of each node's description to this file (JSON)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "against")]
    pub(crate) record: Option<PathBuf>,

    /// Compare with what --record wrote: whatever changed, is missing or is new is an error
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) against: Option<PathBuf>,

    /// Print only the verdict
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
