//! Arguments of `tet verify`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueHint};

use super::OpenArgs;

#[derive(Debug, ClapArgs)]
#[command(before_help = "\
Examples:
  tet verify data.tet                      check structures, offsets and counts
  tet verify data.tet --deep               also decode every chunk and compare checksums
  tet verify data.tet --json
  tet verify data.zarr --record sums.json    record a hash of every stored chunk
  tet verify data.zarr --against sums.json   list what has changed since then

Exit status: 0 no damage, 1 damage found, 2 the check failed.")]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    pub(crate) open: OpenArgs,

    /// Also decode every chunk
    #[arg(long)]
    pub(crate) deep: bool,

    /// Write a hash of every stored chunk and of each node's description to this file (JSON)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "against")]
    pub(crate) record: Option<PathBuf>,

    /// Compare with a file written by --record; changed, missing and new content is an error
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) against: Option<PathBuf>,

    /// Print only the verdict
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
