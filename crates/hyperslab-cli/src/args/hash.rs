//! Arguments of `tet hash`.

use clap::Args as ClapArgs;

use super::OpenArgs;

#[derive(Debug, ClapArgs)]
#[command(before_help = "\
Examples:
  tet hash data.h5                         hash all values, and each node
  tet hash data.tet /t                     the same in every format and chunking")]
pub(crate) struct HashArgs {
    #[command(flatten)]
    pub(crate) open: OpenArgs,

    /// Restrict to this node and its children
    #[arg(value_name = "NODE")]
    pub(crate) node: Option<String>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
