//! Arguments of `tet attrs`, `tet rename` and `tet rm`.

use clap::Args as ClapArgs;

use super::OpenArgs;

/// Options of every change.
#[derive(Debug, ClapArgs)]
pub(crate) struct ChangeArgs {
    /// Check everything and show what would change
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(before_help = "\
Examples:
  tet attrs data.nc /t                           show the attributes of a node
  tet attrs data.nc /t units=K                   set one
  tet attrs data.nc /t units=K --delete history  set one and delete another
  tet attrs data.nc / title='Monthly means'      set an attribute of the file
  tet attrs data.nc /t valid_range=[0,400] --type float32")]
pub(crate) struct AttrsArgs {
    #[command(flatten)]
    pub(crate) open: OpenArgs,

    /// Node; / is the file itself
    #[arg(value_name = "NODE")]
    pub(crate) node: String,

    /// Attributes to set: text, a number, a list of numbers such as [0,1], or "text" in quotation marks
    #[arg(value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,

    /// Attribute to delete; repeatable
    #[arg(long, value_name = "NAME")]
    pub(crate) delete: Vec<String>,

    /// Type of the numbers, such as float32 [default: that of the attribute or array, else int32, int64 or float64]
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) dtype: Option<String>,

    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, ClapArgs)]
#[command(before_help = "\
Examples:
  tet rename data.nc /t /temperature             rename a coordinate together with its dimension
  tet rename data.h5 /run1/t /run2/t             move to another group
  tet rename data.nc /t /temperature --dry-run")]
pub(crate) struct RenameArgs {
    #[command(flatten)]
    pub(crate) open: OpenArgs,

    /// Node to rename
    #[arg(value_name = "OLD")]
    pub(crate) from: String,

    /// New path, from the root; a name without a slash stays in the same group
    #[arg(value_name = "NEW")]
    pub(crate) to: String,

    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, ClapArgs)]
#[command(before_help = "\
Examples:
  tet rm data.nc /t --dry-run                    show what would be removed
  tet rm data.nc /t                              remove an array
  tet rm data.h5 /run1                           remove a group and everything in it")]
pub(crate) struct RmArgs {
    #[command(flatten)]
    pub(crate) open: OpenArgs,

    /// Nodes to remove, with everything below them
    #[arg(value_name = "NODE", required = true)]
    pub(crate) nodes: Vec<String>,

    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}
