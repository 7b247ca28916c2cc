//! Arguments of `tet repair`.

use clap::Args as ClapArgs;

use super::OpenArgs;

#[derive(Debug, ClapArgs)]
#[command(before_help = "\
Examples:
  tet repair data.tet --dry-run            what would be done?
  tet repair data.tet                      do it; the original is kept until the new file is in place")]
pub(crate) struct RepairArgs {
    #[command(flatten)]
    pub(crate) open: OpenArgs,

    /// Show the fixes without applying them
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
