//! What can be said on the command line. Help, completions and the manual page come from here.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueHint};
use clap_complete::Shell;
use hyperslab::Meter;
use hyperslab::query::{OPERATIONS, OperationInfo};

/// One engine for chunked arrays, whatever file they are in.
#[derive(Debug, Parser)]
#[command(name = "tet", version, about, propagate_version = true, max_term_width = 100)]
#[command(before_help = "\
Examples:
  tet demo                                 make samples and walk through everything
  tet info data.h5                         what is in it?
  tet read data.tet /t '[0, 10:20]'        values of a slice
  tet query data.tet /t --mean time        reductions, groups, windows, filters
  tet convert data.npy data.tet            any format to any other
  tet diff data.npy data.tet               same values?
  tet verify data.tet --deep               is it whole?")]
pub(crate) struct Args {
    /// Number of threads [default: all cores]
    #[arg(long, global = true, value_name = "N", env = "HYPERSLAB_NUM_THREADS", hide_env = true)]
    threads: Option<usize>,

    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Args {
    /// How many threads were asked for.
    pub(crate) const fn threads(&self) -> Option<usize> {
        self.threads
    }
}

impl Args {
    /// The stores that the command reads, for hints.
    pub(crate) fn stores(&self) -> Vec<String> {
        let open: Vec<&PathBuf> = match &self.command {
            Command::Info(args) => vec![&args.open.path],
            Command::Read(args) => vec![&args.open.path],
            Command::Query(args) => args.target.iter().chain([&args.open.path]).collect(),
            Command::Convert(args) => vec![&args.open.path],
            Command::Diff(args) => vec![&args.a, &args.b],
            Command::Hash(args) => vec![&args.open.path],
            Command::Verify(args) => vec![&args.open.path],
            _ => vec![],
        };
        open.into_iter().map(|path| path.display().to_string()).collect()
    }

    /// Where requests to remote storage are counted, when they are to be told.
    pub(crate) fn meter(&self) -> Option<Meter> {
        let storage = match &self.command {
            Command::Info(args) => &args.open.storage,
            Command::Read(args) => &args.open.storage,
            Command::Query(args) => &args.open.storage,
            Command::Convert(args) => &args.open.storage,
            Command::Diff(args) => &args.storage,
            Command::Hash(args) => &args.open.storage,
            Command::Verify(args) => &args.open.storage,
            _ => return None,
        };
        storage.verbose.then(|| storage.meter.clone())
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show nodes, shapes, types, filters and attributes
    Info(InfoArgs),
    /// Print or save the values of a selection
    Read(ReadArgs),
    /// Reduce, group, window and filter values; also runs query documents
    Query(Box<QueryArgs>),
    /// Convert any format to any other
    Convert(ConvertArgs),
    /// Compare two files, whatever their formats and chunks
    Diff(DiffArgs),
    /// Print a hash of the values, the same in every format and chunking
    Hash(HashArgs),
    /// Check a file for damage
    Verify(VerifyArgs),
    /// Apply the fixes that are safe
    Repair(RepairArgs),
    /// Merge the fragments of a TileDB array into one
    Consolidate(ConsolidateArgs),
    /// Remove TileDB fragments that consolidation has replaced
    Vacuum(VacuumArgs),
    /// Create small samples and walk through the commands
    Demo(DemoArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Print the manual page
    Man,
}

/// How every command opens a store.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct OpenArgs {
    /// File, directory or URL (https://…, s3://bucket/…)
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) path: PathBuf,

    /// Override format detection
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<String>,

    /// Open the array as of a time: T or FROM:TO, in milliseconds since 1970 or as 2020-01-31T12:00:00Z (TileDB)
    #[arg(long, value_name = "TIME")]
    pub(crate) at: Option<String>,

    /// Do not memory-map files; safe when another program may truncate them
    #[arg(long)]
    pub(crate) no_map: bool,

    /// Read each node's own document, not the consolidated one, which may be stale (Zarr)
    #[arg(long)]
    pub(crate) no_consolidated: bool,

    /// Which other files an HDF5 file may lead to: external data, virtual sources and links
    #[arg(long, value_name = "RULE", value_parser = ["none", "beside", "any"], default_value = "beside")]
    pub(crate) external: String,

    #[command(flatten)]
    pub(crate) storage: StorageArgs,
}

/// How remote storage is reached.
#[derive(Debug, Clone, Default, ClapArgs)]
pub(crate) struct StorageArgs {
    /// Setting of the remote storage, such as endpoint_url=URL or region=NAME (repeatable)
    #[arg(long = "storage-option", value_name = "KEY=VALUE")]
    pub(crate) storage_options: Vec<String>,

    /// Send requests to remote storage without credentials
    #[arg(long)]
    pub(crate) anonymous: bool,

    /// Tell on stderr how many requests and bytes remote storage took
    #[arg(short, long)]
    pub(crate) verbose: bool,

    /// Counts them.
    #[arg(skip)]
    pub(crate) meter: Meter,
}

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

#[derive(Debug, ClapArgs)]
#[command(before_help = "\
Examples:
  tet read data.tet                        the only array
  tet read data.tet /t '[0, 10:20, ::2]'   by position, as in NumPy
  tet read data.tet /t 'time[3:7]'         along a named dimension
  tet read data.tet /t 'x=-5..5'           by coordinate label, both ends included
  tet read data.tet /t -o out.npy          .npy, .json, .csv, .arrow or .parquet by the ending
  tet read trades.tdb 'day=2020-01..2020-02' --columns price,volume
  tet read cells.zv --box 0,0,0,10,10,10 -o part.ply")]
pub(crate) struct ReadArgs {
    #[command(flatten)]
    pub(crate) open: OpenArgs,

    /// Node (optional if the file has only one) and selections
    #[arg(value_name = "NODE | SELECTION")]
    pub(crate) what: Vec<String>,

    /// Columns of a table, members of structs or attributes of a geometry to read
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) columns: Option<Vec<String>>,

    /// Geometry: read only this closed box, as x0,y0,z0,x1,y1,z1
    #[arg(long = "box", value_name = "CORNERS", allow_hyphen_values = true)]
    pub(crate) region: Option<String>,

    /// Geometry: read only this object; repeatable
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    pub(crate) object: Vec<i64>,

    /// Geometry: read only the objects of this group; repeatable
    #[arg(long, value_name = "G")]
    pub(crate) group: Vec<u64>,

    /// Geometry: level of detail; 0 is the finest
    #[arg(long, value_name = "K")]
    pub(crate) level: Option<usize>,

    /// Write to a file: .npy, .json, .csv, .arrow or .parquet, by its extension
    #[arg(short, long, value_name = "OUT", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,

    /// Replace OUT if it exists
    #[arg(long)]
    pub(crate) force: bool,

    /// Decode values by the file's conventions: scale_factor, add_offset, missing values
    #[arg(long)]
    pub(crate) decode: bool,

    /// Print all values instead of a summary
    #[arg(long)]
    pub(crate) full: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Memory limit for the result, such as 4GiB
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,
}

impl ReadArgs {
    /// Was something said that only a geometry understands?
    pub(crate) const fn is_geometric(&self) -> bool {
        self.region.is_some() || !self.object.is_empty() || !self.group.is_empty() || self.level.is_some()
    }
}

#[derive(Debug, ClapArgs)]
#[command(before_help = "\
Examples:
  tet query data.h5 /t --mean              of all values
  tet query data.h5 /t --mean time         over one axis, by name or number; several as time,0
  tet query data.h5 /t 'x=-5..5' --max --where '> 273, <= 310'
  tet query data.h5 /t --sum --group-by-label station
  tet query data.h5 /t --mean --rolling time:7
  tet query data.h5 /t --mean time --explain
  tet query question.json -t data.tet -x   a query document; without -x it is only checked")]
pub(crate) struct QueryArgs {
    #[command(flatten)]
    pub(crate) open: OpenArgs,

    /// Node (optional if the file has only one) and selections
    #[arg(value_name = "NODE | SELECTION")]
    pub(crate) what: Vec<String>,

    #[command(flatten)]
    pub(crate) operations: OperationArgs,

    /// Axes to reduce, for operations whose option takes another value
    #[arg(long, value_name = "AXES", value_delimiter = ',')]
    pub(crate) over: Vec<String>,

    /// Use only values that meet a condition: '> 273', '>= 0, < 1', '!= 0', 'null', 'not null'
    #[arg(long = "where", value_name = "CONDITION", allow_hyphen_values = true)]
    pub(crate) conditions: Vec<String>,

    /// Use only positions with this label: AXIS=LABEL
    #[arg(long, value_name = "AXIS=LABEL")]
    pub(crate) label: Vec<String>,

    /// Ignore NaN
    #[arg(long)]
    pub(crate) skip_nan: bool,

    /// Use stored values; ignore missing-value markers, scale_factor and add_offset
    #[arg(long)]
    pub(crate) raw: bool,

    /// Also ignore values outside valid_min, valid_max or valid_range
    #[arg(long, conflicts_with = "raw")]
    pub(crate) valid: bool,

    /// Return one result per position along these axes
    #[arg(long, value_name = "AXES", value_delimiter = ',', conflicts_with = "group_by_label")]
    pub(crate) group_by: Vec<String>,

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
    #[arg(long, value_name = "VALUE", value_parser = ["none", "0", "nan", "fill"], default_value = "none")]
    pub(crate) pad: String,

    /// Count windows from the end of the axis
    #[arg(long)]
    pub(crate) from_end: bool,

    /// Return nothing for windows with fewer values than this
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) min_count: u64,

    /// Memory limit for chunks, partial results and the result, such as 256MiB
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,

    /// Trust statistics that no checksum protects, such as .tet zone maps
    #[arg(long)]
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
    #[arg(long)]
    pub(crate) full: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// File to query, when PATH is a query document
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub(crate) target: Option<PathBuf>,

    /// Run the query document instead of only checking it
    #[arg(short = 'x', long, requires = "target")]
    pub(crate) execute: bool,

    /// Number of values to show, when PATH is a query document
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub(crate) preview: usize,
}

/// Operations. Several can be combined; each reduces AXES, or all axes if none are given.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Operations")]
pub(crate) struct OperationArgs {
    #[command(flatten)]
    pub(crate) reductions: Reductions,
    /// Degrees of freedom lost in --var and --std: 0 for a population, 1 for a sample
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) ddof: u32,
    /// Quantile, between 0 and 1; choose axes with --over
    #[arg(long, value_name = "Q")]
    pub(crate) quantile: Option<f64>,
    /// Histogram with this many bins; choose axes with --over
    #[arg(long, value_name = "BINS")]
    pub(crate) histogram: Option<usize>,
    /// Range of the histogram: LOW,HIGH
    #[arg(long, value_name = "LOW,HIGH", allow_hyphen_values = true)]
    pub(crate) range: Option<String>,
    /// Covariance with another array of the file
    #[arg(long, value_name = "NODE", conflicts_with = "correlation")]
    pub(crate) covariance: Option<String>,
    /// Correlation with another array of the file
    #[arg(long, value_name = "NODE")]
    pub(crate) correlation: Option<String>,
}

/// The reductions that are asked for, each with its axes: one option for each row of the library's table.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reductions(pub(crate) Vec<(&'static OperationInfo, String)>);

impl Reductions {
    fn options() -> impl Iterator<Item = &'static OperationInfo> {
        OPERATIONS.iter().filter(|info| !info.parametric)
    }
}

impl clap::FromArgMatches for Reductions {
    fn from_arg_matches(matches: &clap::ArgMatches) -> Result<Self, clap::Error> {
        let axes = |info: &'static OperationInfo| Some((info, matches.get_one::<String>(info.flag)?.clone()));
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
            command.arg(option.num_args(0..=1).default_missing_value(""))
        })
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

#[derive(Debug, ClapArgs)]
#[command(before_help = "\
Examples:
  tet convert data.npy data.tet
  tet convert data.tet data.npz --node /t
  tet convert data.npy data.tet --chunks 64,64,64 --filter zstd:3
  tet convert table.tiledb table.parquet                      a table to .parquet, .arrow or .csv
  tet convert points.npz points.zv --chunks 100 --levels 2    arrays to geometry")]
pub(crate) struct ConvertArgs {
    #[command(flatten)]
    pub(crate) open: OpenArgs,

    /// Output path, or URL of a bucket; the format follows from its extension
    #[arg(value_name = "OUT", value_hint = ValueHint::AnyPath)]
    pub(crate) out: PathBuf,

    /// Output format, such as hdf5, netcdf4, netcdf3, zarr2, zarr3 or tiledb
    #[arg(long, value_name = "FORMAT")]
    pub(crate) to: Option<String>,

    /// Restrict to this node and its children
    #[arg(long)]
    pub(crate) node: Option<String>,

    /// Convert only this part; repeatable
    ///
    /// Every array is cut along the dimensions that are named (`time[3:7]`, `lat=30..60`); arrays without them are copied
    /// whole. An index such as `time[3]` drops the dimension, and its coordinate becomes a scalar. With --node, the node's
    /// coordinates, bounds, grid mapping, ancillary variables and cell measures come along. A selection by position
    /// (`[0, 10:20]`) needs one array, or arrays of the same dimensions; coordinates and the like do not count.
    #[arg(long, value_name = "SELECTION")]
    pub(crate) select: Vec<String>,

    /// Chunk shape, such as 64,64,64, or chunk size, such as 4MiB; for geometry, the extents of a chunk in space
    #[arg(long, value_name = "SHAPE")]
    pub(crate) chunks: Option<String>,

    /// Unlimited axes, by number or name (HDF5, NetCDF), of every array that has them
    #[arg(long, value_name = "AXES", value_delimiter = ',')]
    pub(crate) unlimited: Vec<String>,

    /// Shard shape (Zarr), such as 512,512,512; a single number applies to all axes, rounded up to whole chunks
    #[arg(long, value_name = "SHAPE", value_delimiter = ',')]
    pub(crate) shards: Option<Vec<u64>>,

    /// Filters, such as shuffle,zstd:3, or 'none' [default: those of the source]
    #[arg(long, value_name = "FILTERS")]
    pub(crate) filter: Option<String>,

    /// Kind of geometry, such as point_cloud, streamline or mesh (.zv)
    #[arg(long, value_name = "KIND")]
    pub(crate) geometry: Option<String>,

    /// Number of coarser levels of the geometry (.zv)
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub(crate) levels: usize,

    /// Replace OUT if it is a store or an empty folder; other folders and symbolic links are kept
    #[arg(long)]
    pub(crate) force: bool,

    /// Wait until OUT is on the disk, so that it survives a power cut; what replaces or changes a store always does
    #[arg(long)]
    pub(crate) sync: bool,

    /// Add to OUT if it exists (.tet, HDF5, Zarr: new arrays; TileDB: a new fragment over the same arrays)
    #[arg(long, conflicts_with = "force")]
    pub(crate) append: bool,

    /// Fail if the output format cannot hold everything; write nothing
    #[arg(long)]
    pub(crate) strict: bool,

    /// Exit with 0 even if the output format cannot hold everything
    #[arg(long, conflicts_with = "strict")]
    pub(crate) skip_unsupported: bool,

    /// Copy the values of virtual arrays instead of keeping them virtual
    #[arg(long)]
    pub(crate) materialise: bool,

    /// Record the source in an attribute of the root
    #[arg(long)]
    pub(crate) provenance: bool,

    /// Memory limit for values in transit, such as 256MiB
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,

    /// Print only warnings
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(before_help = "\
Examples:
  tet diff data.h5 data.tet                same nodes, types, shapes, values, attributes?
  tet diff a.npy b.zarr --rtol 1e-6        floats may be a little apart
  tet diff a.h5 b.h5 /x /y                 these two nodes

Exit status: 0 they are the same, 1 they differ, 2 they could not be compared.")]
pub(crate) struct DiffArgs {
    /// First file, directory or URL
    #[arg(value_name = "A", value_hint = ValueHint::AnyPath)]
    pub(crate) a: PathBuf,

    /// Second file, directory or URL
    #[arg(value_name = "B", value_hint = ValueHint::AnyPath)]
    pub(crate) b: PathBuf,

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
    /// Without it, attributes, links, names of dimensions, coordinates, fill values, how far axes may grow, the names of an
    /// enumeration's values and null dataspaces are compared as well. Between different formats, what one of them cannot say
    /// (links or unlimited axes in Zarr, fill values in npy) is no difference.
    #[arg(long)]
    pub(crate) values_only: bool,

    /// List every difference
    #[arg(long)]
    pub(crate) full: bool,

    /// Print nothing; only set the exit status
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// Memory limit for values in transit, such as 256MiB
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

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

#[derive(Debug, ClapArgs)]
#[command(before_help = "\
Examples:
  tet verify data.tet                      structures, offsets, counts
  tet verify data.tet --deep               also decode every chunk and compare checksums
  tet verify data.tet --json
  tet verify data.zarr --record sums.json    keep a hash of every stored chunk
  tet verify data.zarr --against sums.json   what changed, is missing or is new since then?

Exit status: 0 it is whole, 1 damage was found, 2 it could not be checked.")]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    pub(crate) open: OpenArgs,

    /// Also decode every chunk
    #[arg(long)]
    pub(crate) deep: bool,

    /// Write a hash of every stored chunk and of each node's description to this file (JSON)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "against")]
    pub(crate) record: Option<PathBuf>,

    /// Compare with what --record wrote: whatever changed, is missing or is new is an error
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) against: Option<PathBuf>,

    /// Print only the verdict
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(before_help = "\
Examples:
  tet repair data.tet --dry-run            what would be done?
  tet repair data.tet                      do it; the original is kept until the new file is in place")]
pub(crate) struct RepairArgs {
    #[command(flatten)]
    pub(crate) open: OpenArgs,

    /// Show the fixes without applying them
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

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
  tet demo
  tet demo ./samples                       keep the samples there")]
pub(crate) struct DemoArgs {
    /// Folder for the samples [default: a temporary folder]
    #[arg(value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) folder: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
#[command(before_help = "\
Examples:
  tet completions bash > ~/.local/share/bash-completion/completions/tet
  tet completions zsh > ~/.zfunc/_tet")]
pub(crate) struct CompletionsArgs {
    /// Shell
    pub(crate) shell: Shell,
}
