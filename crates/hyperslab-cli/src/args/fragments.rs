//! Arguments of `tet consolidate`, `tet vacuum` and `tet delete`.

use clap::Args as ClapArgs;

use super::OpenArgs;

#[derive(Debug, ClapArgs)]
#[command(before_help = "\
Examples:
  tet consolidate array                    one fragment instead of many; the old ones stay, hidden
  tet consolidate array --at 2020-01-01:2020-02-01
                                           only what was written then
  tet vacuum array                         then remove the old ones")]
pub(crate) struct ConsolidateArgs {
    #[command(flatten)]
    pub(crate) open: OpenArgs,

    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(before_help = "\
Examples:
  tet consolidate array
  tet vacuum array                         earlier times of a dense array cannot be read any more")]
pub(crate) struct VacuumArgs {
    #[command(flatten)]
    pub(crate) open: OpenArgs,

    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(before_help = "\
Examples:
  tet delete cells.tiledb --where \"type == 'NK' and count < 5\"
  tet read cells.tiledb --at 2020-01-01    earlier times still have the rows")]
pub(crate) struct DeleteArgs {
    #[command(flatten)]
    pub(crate) open: OpenArgs,

    /// Delete the rows that meet this condition; repeatable, all must hold
    #[arg(long = "where", value_name = "CONDITION", required = true, allow_hyphen_values = true)]
    pub(crate) conditions: Vec<String>,

    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
