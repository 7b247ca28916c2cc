//! Arguments of `tet repair`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueHint};

use super::OpenArgs;

#[derive(Debug, ClapArgs)]
#[command(before_help = "\
Examples:
  tet repair data.tet --dry-run            show the fixes
  tet repair cut.nc --salvage whole.nc     copy what is readable, and list the losses
  tet repair data.tet                      apply the fixes; the file is replaced in one step")]
pub(crate) struct RepairArgs {
    #[command(flatten)]
    pub(crate) open: OpenArgs,

    /// Show the fixes without applying them
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Copy everything readable to this new file; the damaged file stays unchanged
    #[arg(long, value_name = "OUT", value_hint = ValueHint::AnyPath, conflicts_with = "dry_run")]
    pub(crate) salvage: Option<PathBuf>,

    /// Format of the salvaged file [default: from its extension, else that of the damaged file]
    #[arg(long, value_name = "FORMAT", requires = "salvage")]
    pub(crate) to: Option<String>,

    /// Replace OUT if it is a store
    #[arg(long, requires = "salvage")]
    pub(crate) force: bool,

    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
