//! Arguments of `tet hash`.

use clap::Args as ClapArgs;

use super::OpenArgs;

#[derive(Debug, ClapArgs)]
#[command(before_help = "\
Examples:
  tet hash data.h5                         of all values, and of each node
  tet hash data.tet /t                     the same wherever /t is stored, however it is chunked")]
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
