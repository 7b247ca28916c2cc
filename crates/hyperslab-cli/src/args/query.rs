//! Arguments of `tet query`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueHint};
use hyperslab::query::{OPERATIONS, OperationInfo};

use super::OpenArgs;

#[derive(Debug, ClapArgs)]
#[command(before_help = "\
Examples:
  tet query data.h5 /t --mean              mean of all values
  tet query data.h5 /t --mean time         reduce one axis, by name or number; several as time,0
  tet query data.h5 /t 'x=-5..5' --max --where '> 273, <= 310'
  tet query data.h5 /t --sum --group-by-label station
  tet query data.h5 /t --mean --rolling time:7
  tet query data.h5 /t --mean time --explain
  tet query cells.tiledb --where \"count > 50 and type == 'NK'\" --mean score --by type
  tet query question.json -t data.tet -x   run a query document; without -x, only check it")]
pub(crate) struct QueryArgs {
    #[command(flatten)]
    pub(crate) open: OpenArgs,

    /// Node (optional if the file has only one) and selections
    #[arg(value_name = "NODE | SELECTION")]
    pub(crate) what: Vec<String>,

    /// Multiscale images: level of detail; 0 is the finest
    #[arg(long, value_name = "K", hide_short_help = true)]
    pub(crate) level: Option<usize>,

    #[command(flatten)]
    pub(crate) operations: OperationArgs,

    /// Axes to reduce, for operations whose option takes another value
    #[arg(long, value_name = "AXES", value_delimiter = ',')]
    pub(crate) over: Vec<String>,

    /// Use only values that meet a condition: '> 273', '>= 0, < 1', '!= 0', 'null', 'not null'. Table: use only rows that meet
    /// one: "count > 50 and (type in ('NK', 'B') or score is null)"
    #[arg(long = "where", value_name = "CONDITION", allow_hyphen_values = true)]
    pub(crate) conditions: Vec<String>,

    /// Use only positions with this label: AXIS=LABEL
    #[arg(long, value_name = "AXIS=LABEL", hide_short_help = true)]
    pub(crate) label: Vec<String>,

    /// Ignore NaN
    #[arg(long, hide_short_help = true)]
    pub(crate) skip_nan: bool,

    /// Use stored values; ignore missing-value markers, scale_factor and add_offset
    #[arg(long)]
    pub(crate) raw: bool,

    /// Also ignore values outside valid_min, valid_max or valid_range
    #[arg(long, conflicts_with = "raw", hide_short_help = true)]
    pub(crate) valid: bool,

    /// Return one result per position along these axes
    #[arg(long, value_name = "AXES", value_delimiter = ',', conflicts_with = "group_by_label")]
    pub(crate) group_by: Vec<String>,

    /// Table: return one result per distinct value of these columns
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub(crate) by: Vec<String>,

    /// Return one result per distinct label along these axes
    #[arg(long, value_name = "AXES", value_delimiter = ',')]
    pub(crate) group_by_label: Vec<String>,

    /// Reduce adjacent windows: AXIS:SIZE
    #[arg(long, value_name = "AXIS:SIZE", conflicts_with = "rolling")]
    pub(crate) bins: Option<String>,

    /// Reduce overlapping windows: AXIS:SIZE or AXIS:SIZE:STEP
    #[arg(long, value_name = "AXIS:SIZE[:STEP]")]
    pub(crate) rolling: Option<String>,

    /// Padding for windows that reach outside the array
    #[arg(long, value_name = "VALUE", value_parser = ["none", "0", "nan", "fill"], default_value = "none", hide_short_help = true)]
    pub(crate) pad: String,

    /// Count windows from the end of the axis
    #[arg(long, hide_short_help = true)]
    pub(crate) from_end: bool,

    /// Return nothing for windows with fewer values than this
    #[arg(long, value_name = "N", default_value_t = 1, hide_short_help = true)]
    pub(crate) min_count: u64,

    /// Memory limit for chunks, partial results and the result, such as 256MiB
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,

    /// Trust statistics that are not verified against the values, such as .tet zone maps
    #[arg(long, hide_short_help = true)]
    pub(crate) trust_hints: bool,

    /// Show the chunks, bytes, requests and memory that the query needs, without running it
    #[arg(long)]
    pub(crate) explain: bool,

    /// Write the result to a file: .npy, .json, .csv, .arrow or .parquet, by its extension
    #[arg(short, long, value_name = "OUT", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,

    /// Replace OUT if it exists
    #[arg(long)]
    pub(crate) force: bool,

    /// Print all values instead of a summary
    #[arg(long, hide_short_help = true)]
    pub(crate) full: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// File to query, when PATH is a query document
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::AnyPath, hide_short_help = true)]
    pub(crate) target: Option<PathBuf>,

    /// Run the query document instead of only checking it
    #[arg(short = 'x', long, requires = "target", hide_short_help = true)]
    pub(crate) execute: bool,

    /// Number of values to show, when PATH is a query document
    #[arg(long, value_name = "N", default_value_t = 16, hide_short_help = true)]
    pub(crate) preview: usize,
}

/// The heading of the operations in the help.
const OPERATIONS_HEADING: &str = "Operations";
/// The operations in the short help; `--help` has all.
const COMMON: [&str; 8] = ["count", "sum", "mean", "min", "max", "var", "std", "median"];

/// Operations. Several can be combined; each reduces AXES, or all axes if none are given. For a table, each takes columns.
#[derive(Debug, ClapArgs)]
pub(crate) struct OperationArgs {
    #[command(flatten)]
    pub(crate) reductions: Reductions,
    /// Delta degrees of freedom for --var and --std: 0 for a population, 1 for a sample
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = OPERATIONS_HEADING)]
    pub(crate) ddof: u32,
    /// Quantile, between 0 and 1; choose axes with --over
    #[arg(long, value_name = "Q", help_heading = OPERATIONS_HEADING)]
    pub(crate) quantile: Option<f64>,
    /// Histogram with this many bins; choose axes with --over
    #[arg(long, value_name = "BINS", help_heading = OPERATIONS_HEADING)]
    pub(crate) histogram: Option<usize>,
    /// Range of the histogram: LOW,HIGH
    #[arg(long, value_name = "LOW,HIGH", allow_hyphen_values = true, hide_short_help = true, help_heading = OPERATIONS_HEADING)]
    pub(crate) range: Option<String>,
    /// Covariance with another array of the file
    #[arg(long, value_name = "NODE", conflicts_with = "correlation", hide_short_help = true, help_heading = OPERATIONS_HEADING)]
    pub(crate) covariance: Option<String>,
    /// Correlation with another array of the file
    #[arg(long, value_name = "NODE", hide_short_help = true, help_heading = OPERATIONS_HEADING)]
    pub(crate) correlation: Option<String>,
}

/// The requested reductions, each with its axes: one option per row of the library's table.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reductions(pub(crate) Vec<(&'static OperationInfo, String)>);

impl Reductions {
    fn options() -> impl Iterator<Item = &'static OperationInfo> {
        OPERATIONS.iter().filter(|info| !info.parametric)
    }
}

impl clap::FromArgMatches for Reductions {
    fn from_arg_matches(matches: &clap::ArgMatches) -> Result<Self, clap::Error> {
        // An option that is repeated is one option with all the names.
        let axes = |info: &'static OperationInfo| {
            let given = matches.get_many::<String>(info.flag)?.map(String::as_str);
            Some((info, given.filter(|names| !names.is_empty()).collect::<Vec<_>>().join(",")))
        };
        Ok(Self(Self::options().filter_map(axes).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &clap::ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl ClapArgs for Reductions {
    fn augment_args(command: clap::Command) -> clap::Command {
        Self::options().fold(command, |command, info| {
            let option = clap::Arg::new(info.flag).long(info.flag).value_name("AXES").help(info.summary);
            let option =
                option.help_heading(OPERATIONS_HEADING).hide_short_help(!COMMON.contains(&info.flag));
            command.arg(option.action(clap::ArgAction::Append).num_args(0..=1).default_missing_value(""))
        })
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}
