//! Arguments of `tet info`.

use clap::Args as ClapArgs;

use super::OpenArgs;

#[derive(Debug, ClapArgs)]
#[command(before_help = "\
Examples:
  tet info data.nc                         dimensions, arrays, attributes
  tet info data.nc /t                      one node
  tet info data.h5 --sort stored           largest first
  tet info data.h5 --tree                  groups and arrays as a tree
  tet info data.h5 --totals                sums by group
  tet info data.nc --cdl                   the header as ncdump -h prints it
  tet info folder                          the stores in a folder
  tet info data.tet --chunks -n 0          every chunk with its offset and size
  tet info data.tet --all                  layout, nodes, chunks and history
  tet info data.tet --json | jq .nodes")]
pub(crate) struct InfoArgs {
    #[command(flatten)]
    pub(crate) open: OpenArgs,

    /// Show only this node and its children
    #[arg(value_name = "NODE")]
    pub(crate) node: Option<String>,

    /// Order of the nodes: stored or size (largest first), or name [default: file order]
    #[arg(long, value_name = "ORDER", value_parser = ["stored", "size", "name"])]
    pub(crate) sort: Option<String>,

    /// Show this many levels of groups
    #[arg(long, value_name = "N")]
    pub(crate) depth: Option<usize>,

    /// Show the nodes as a tree
    #[arg(long, conflicts_with_all = ["chunks", "all", "json", "totals", "sort"])]
    pub(crate) tree: bool,

    /// Show totals by group instead of nodes
    #[arg(long, conflicts_with_all = ["chunks", "all"])]
    pub(crate) totals: bool,

    /// Also list the chunks
    #[arg(long)]
    pub(crate) chunks: bool,

    /// Number of chunks to list per array; 0 lists all
    #[arg(short, value_name = "N", default_value_t = 32)]
    pub(crate) n: u64,

    /// Print the header in CDL, like ncdump -h
    #[arg(long, conflicts_with_all = ["sort", "totals", "chunks", "all", "json"])]
    pub(crate) cdl: bool,

    /// Show everything: layout, nodes, chunks and history
    #[arg(long)]
    pub(crate) all: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
