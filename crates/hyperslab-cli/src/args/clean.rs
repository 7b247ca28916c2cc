//! Arguments of `tet clean`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueHint};

#[derive(Debug, ClapArgs)]
#[command(before_help = "\
Examples:
  tet clean . --dry-run                    list what killed writers left behind
  tet clean data                           remove it")]
pub(crate) struct CleanArgs {
    /// Folder to clean; folders inside it are left alone
    #[arg(value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) folder: PathBuf,

    /// Show what would be removed
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
