//! Arguments of `tet diff`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueHint};

use super::{ExternalArgs, StorageArgs};

#[derive(Debug, ClapArgs)]
#[command(before_help = "\
Examples:
  tet diff data.h5 data.tet                compare nodes, types, shapes, values, attributes
  tet diff a.npy b.zarr --rtol 1e-6        with a tolerance for floats
  tet diff a.h5 b.h5 /x /y                 compare two nodes

Exit status: 0 same, 1 different, 2 the comparison failed.")]
pub(crate) struct DiffArgs {
    /// First file, directory or URL
    #[arg(value_name = "A", value_hint = ValueHint::AnyPath)]
    pub(crate) a: PathBuf,

    /// Second file, directory or URL
    #[arg(value_name = "B", value_hint = ValueHint::AnyPath)]
    pub(crate) b: PathBuf,

    #[command(flatten)]
    pub(crate) external: ExternalArgs,

    #[command(flatten)]
    pub(crate) storage: StorageArgs,

    /// Restrict to this node and its children
    #[arg(value_name = "NODE")]
    pub(crate) node: Option<String>,

    /// Node of B, if its name differs
    #[arg(value_name = "NODE_B")]
    pub(crate) other_node: Option<String>,

    /// Relative tolerance for floats
    #[arg(long, value_name = "R", default_value_t = 0.0)]
    pub(crate) rtol: f64,

    /// Absolute tolerance for floats
    #[arg(long, value_name = "D", default_value_t = 0.0)]
    pub(crate) atol: f64,

    /// Ignore attributes
    #[arg(long)]
    pub(crate) no_attributes: bool,

    /// Compare only nodes, types, shapes and values
    ///
    /// By default, attributes, links, dimension names, coordinates, fill values, maximum shapes, the names of enumeration values
    /// and null dataspaces are compared as well. Between different formats, properties that one of them cannot express (links or
    /// unlimited axes in Zarr, fill values in npy) are not a difference.
    #[arg(long)]
    pub(crate) values_only: bool,

    /// List every difference
    #[arg(long)]
    pub(crate) full: bool,

    /// Print nothing; only set the exit status
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// Memory limit for data being compared, such as 256MiB
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
