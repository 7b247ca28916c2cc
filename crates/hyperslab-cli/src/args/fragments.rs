//! Arguments of `tet consolidate`, `tet vacuum`, `tet delete` and `tet evolve`.

use clap::Args as ClapArgs;

use super::OpenArgs;

#[derive(Debug, ClapArgs)]
#[command(before_help = "\
Examples:
  tet consolidate array                    merge fragments; the old ones stay, hidden
  tet consolidate array --at 2020-01-01:2020-02-01
                                           merge only fragments of that time
  tet vacuum array                         remove the old fragments")]
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
  tet vacuum array                         a dense array can no longer be read as of earlier times")]
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
  tet read cells.tiledb --at 2020-01-01    the rows can be read at earlier times")]
pub(crate) struct DeleteArgs {
    #[command(flatten)]
    pub(crate) open: OpenArgs,

    /// Delete rows that meet this condition; if repeated, all must hold. A date means the whole day (or month, or year):
    /// "t == '2020-01-05'" deletes that day
    #[arg(long = "where", value_name = "CONDITION", required = true, allow_hyphen_values = true)]
    pub(crate) conditions: Vec<String>,

    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(before_help = "\
Examples:
  tet evolve cells.tiledb --add quality:int16=-1
                                           existing cells get the fill value
  tet evolve cells.tiledb --add 'note:string?' --drop batch
  tet evolve group.tiledb /temperature --add error:float32 --filter zstd:3
  tet read cells.tiledb --at 2020-01-01    dropped fields can be read at earlier times")]
pub(crate) struct EvolveArgs {
    #[command(flatten)]
    pub(crate) open: OpenArgs,

    /// Array or table of a group
    #[arg(value_name = "NODE", default_value = "/", hide_default_value = true)]
    pub(crate) node: String,

    /// Field to add: NAME:TYPE, NAME:TYPE? for a nullable field, or NAME:TYPE=FILL; repeatable
    #[arg(long, value_name = "FIELD")]
    pub(crate) add: Vec<String>,

    /// Field to drop; repeatable, or separated by commas
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) drop: Vec<String>,

    /// Filters of the new fields, such as shuffle,zstd:3, or 'none' [default: zstd:3]
    #[arg(long, value_name = "FILTERS")]
    pub(crate) filter: Option<String>,

    /// Check everything and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
