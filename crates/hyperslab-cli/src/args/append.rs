//! Arguments of `tet append`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueHint};

use super::{ExternalArgs, StorageArgs};

#[derive(Debug, ClapArgs)]
#[command(before_help = "\
Examples:
  tet append month2.nc all.zarr --along time
  tet append 'data/2021-*.nc' all.zarr --along time
  tet append month2.nc all.zarr --along time --dry-run
  tet append more.npz points.zv --along vertex")]
pub(crate) struct AppendArgs {
    /// Files to add, then the store to add them to; quoted patterns such as 'data/*.nc' are expanded
    #[arg(value_name = "PATH", num_args = 2.., required = true, value_hint = ValueHint::AnyPath)]
    pub(crate) paths: Vec<PathBuf>,

    /// Dimension to append along; every array that has it grows. Geometry grows along `vertex`
    #[arg(long, value_name = "DIMENSION")]
    pub(crate) along: String,

    /// Leave out this node of the files and do not compare it; repeatable, or separated by commas
    #[arg(long, value_name = "NODE", value_delimiter = ',')]
    pub(crate) drop: Vec<String>,

    /// Check everything and show what would be added
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Memory limit for data being copied, such as 256MiB
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,

    /// Print only warnings
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) external: ExternalArgs,

    #[command(flatten)]
    pub(crate) storage: StorageArgs,
}
