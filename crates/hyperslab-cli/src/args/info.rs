//! Arguments of `tet info`.

use clap::Args as ClapArgs;

use super::OpenArgs;

#[derive(Debug, ClapArgs)]
#[command(before_help = "\
Examples:
  tet info data.tet
  tet info data.tet --chunks -n 0          every chunk: where it is, how large
  tet info data.tet --all                  layout, nodes, chunks and history
  tet info data.tet --json | jq .nodes")]
pub(crate) struct InfoArgs {
    #[command(flatten)]
    pub(crate) open: OpenArgs,

    /// List the chunks as well
    #[arg(long)]
    pub(crate) chunks: bool,

    /// Number of chunks to list for each array; 0 lists all
    #[arg(short, value_name = "N", default_value_t = 32)]
    pub(crate) n: u64,

    /// Show everything: layout, nodes, chunks and history
    #[arg(long)]
    pub(crate) all: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
