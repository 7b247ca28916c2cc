//! Arguments of `tet demo`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueHint};

#[derive(Debug, ClapArgs)]
#[command(before_help = "\
Examples:
  tet demo
  tet demo ./samples                       keep the samples there")]
pub(crate) struct DemoArgs {
    /// Folder for the samples [default: a temporary folder]
    #[arg(value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) folder: Option<PathBuf>,
}
