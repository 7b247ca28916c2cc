//! What can be said on the command line. Help, completions and the manual page come from here.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueHint};
use clap_complete::Shell;

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
    /// Threads to use; all cores when left out.
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

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show what is in a file: nodes, shapes, types, filters, attributes
    Info(InfoArgs),
    /// Print or save the values of a selection
    Read(ReadArgs),
    /// Reduce, group, window and filter values; also runs query documents
    Query(Box<QueryArgs>),
    /// Convert any format to any other
    Convert(ConvertArgs),
    /// Tell whether two files hold the same values, whatever their formats and chunks
    Diff(DiffArgs),
    /// Print a hash of the values, the same in every format and chunking
    Hash(HashArgs),
    /// Check whether a file is whole
    Verify(VerifyArgs),
    /// Mend what can be mended safely
    Repair(RepairArgs),
    /// Put the fragments of a TileDB array together into one
    Consolidate(ConsolidateArgs),
    /// Remove the fragments of a TileDB array that consolidated ones replaced
    Vacuum(VacuumArgs),
    /// Make a small sample and walk through the commands
    Demo(DemoArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Print the manual page
    Man,
}

/// How every command opens a store.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct OpenArgs {
    /// The file or directory
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) path: PathBuf,

    /// Override format detection
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<String>,

    /// As of then: T or FROM:TO, in milliseconds since 1970 or as 2020-01-31T12:00:00Z (TileDB)
    #[arg(long, value_name = "TIME")]
    pub(crate) at: Option<String>,

    /// Read by position instead of mapping the file: safe when another program may cut it short
    #[arg(long)]
    pub(crate) no_map: bool,
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

    /// Also list the chunks
    #[arg(long)]
    pub(crate) chunks: bool,

    /// Chunks to list for each array; 0 for all
    #[arg(short, value_name = "N", default_value_t = 32)]
    pub(crate) n: u64,

    /// Everything: layout, nodes, chunks and history
    #[arg(long)]
    pub(crate) all: bool,

    /// One JSON document
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

    /// NODE (may be left out where there is one) and selections
    #[arg(value_name = "NODE | SELECTION")]
    pub(crate) what: Vec<String>,

    /// Only these columns of a table, members of structs or attributes of a geometry
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) columns: Option<Vec<String>>,

    /// Of a geometry: only what a closed box holds, as x0,y0,z0,x1,y1,z1
    #[arg(long = "box", value_name = "CORNERS", allow_hyphen_values = true)]
    pub(crate) region: Option<String>,

    /// Of a geometry: only this object; several may be given
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    pub(crate) object: Vec<i64>,

    /// Of a geometry: only the objects of this group; several may be given
    #[arg(long, value_name = "G")]
    pub(crate) group: Vec<u64>,

    /// Of a geometry: the level of detail; 0 is the finest
    #[arg(long, value_name = "K")]
    pub(crate) level: Option<usize>,

    /// Write to this file instead of the terminal
    #[arg(short, long, value_name = "OUT", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,

    /// Replace OUT if it exists
    #[arg(long)]
    pub(crate) force: bool,

    /// Decode values by the file's conventions: scale_factor, add_offset, missing values
    #[arg(long)]
    pub(crate) decode: bool,

    /// Print all values, however many
    #[arg(long)]
    pub(crate) full: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// The most memory that the result may take, such as 4GiB
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

    /// NODE (may be left out where there is one) and selections
    #[arg(value_name = "NODE | SELECTION")]
    pub(crate) what: Vec<String>,

    #[command(flatten)]
    pub(crate) operations: OperationArgs,

    /// The axes to reduce, for operations that take another value
    #[arg(long, value_name = "AXES", value_delimiter = ',')]
    pub(crate) over: Vec<String>,

    /// Only values for which this holds: '> 273', '>= 0, < 1', '!= 0', 'null', 'not null'
    #[arg(long = "where", value_name = "CONDITION", allow_hyphen_values = true)]
    pub(crate) conditions: Vec<String>,

    /// Only positions with this label: AXIS=LABEL
    #[arg(long, value_name = "AXIS=LABEL")]
    pub(crate) label: Vec<String>,

    /// Leave out values that are not a number
    #[arg(long)]
    pub(crate) skip_nan: bool,

    /// Use stored values: no missing-value markers, no scale_factor, no add_offset
    #[arg(long)]
    pub(crate) raw: bool,

    /// Leave out values outside valid_min, valid_max or valid_range as well
    #[arg(long, conflicts_with = "raw")]
    pub(crate) valid: bool,

    /// One answer per position along these axes
    #[arg(long, value_name = "AXES", value_delimiter = ',', conflicts_with = "group_by_label")]
    pub(crate) group_by: Vec<String>,

    /// One answer per distinct label along these axes
    #[arg(long, value_name = "AXES", value_delimiter = ',')]
    pub(crate) group_by_label: Vec<String>,

    /// Windows side by side: AXIS:SIZE
    #[arg(long, value_name = "AXIS:SIZE", conflicts_with = "rolling")]
    pub(crate) bins: Option<String>,

    /// Overlapping windows: AXIS:SIZE or AXIS:SIZE:STEP
    #[arg(long, value_name = "AXIS:SIZE[:STEP]")]
    pub(crate) rolling: Option<String>,

    /// What stands for the positions of a window outside the array
    #[arg(long, value_name = "VALUE", value_parser = ["none", "0", "nan", "fill"], default_value = "none")]
    pub(crate) pad: String,

    /// Count windows from the end of the axis
    #[arg(long)]
    pub(crate) from_end: bool,

    /// No answer for windows with fewer values
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) min_count: u64,

    /// The most memory for chunks, partial results and the answer, such as 256MiB
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,

    /// Let answers rest on statistics that nothing ties to the values, such as .tet zone maps
    #[arg(long)]
    pub(crate) trust_hints: bool,

    /// Show chunks, bytes, requests and memory, and read nothing
    #[arg(long)]
    pub(crate) explain: bool,

    /// Write to this file instead of the terminal: .npy, .json, .csv, .arrow, .parquet by the ending
    #[arg(short, long, value_name = "OUT", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,

    /// Replace OUT if it exists
    #[arg(long)]
    pub(crate) force: bool,

    /// Print all values, however many
    #[arg(long)]
    pub(crate) full: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// PATH is a query document: the file to ask
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub(crate) target: Option<PathBuf>,

    /// PATH is a query document: run it, rather than only check it
    #[arg(short = 'x', long, requires = "target")]
    pub(crate) execute: bool,

    /// PATH is a query document: values to show of a result
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub(crate) preview: usize,
}

/// What is made of the values. Several may be asked for; AXES are reduced, all when left out.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Operations")]
pub(crate) struct OperationArgs {
    /// How many
    #[arg(long, value_name = "AXES", num_args = 0..=1, default_missing_value = "")]
    pub(crate) count: Option<String>,
    /// Exact for integers, compensated for floats
    #[arg(long, value_name = "AXES", num_args = 0..=1, default_missing_value = "")]
    pub(crate) sum: Option<String>,
    /// The mean
    #[arg(long, value_name = "AXES", num_args = 0..=1, default_missing_value = "")]
    pub(crate) mean: Option<String>,
    /// The smallest
    #[arg(long, value_name = "AXES", num_args = 0..=1, default_missing_value = "")]
    pub(crate) min: Option<String>,
    /// The largest
    #[arg(long, value_name = "AXES", num_args = 0..=1, default_missing_value = "")]
    pub(crate) max: Option<String>,
    /// The variance
    #[arg(long, value_name = "AXES", num_args = 0..=1, default_missing_value = "")]
    pub(crate) var: Option<String>,
    /// The standard deviation
    #[arg(long, value_name = "AXES", num_args = 0..=1, default_missing_value = "")]
    pub(crate) std: Option<String>,
    /// Degrees of freedom lost in --var and --std: 0 for a population, 1 for a sample
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) ddof: u32,
    /// The product
    #[arg(long, value_name = "AXES", num_args = 0..=1, default_missing_value = "")]
    pub(crate) product: Option<String>,
    /// The sum of magnitudes
    #[arg(long, value_name = "AXES", num_args = 0..=1, default_missing_value = "")]
    pub(crate) norm_l1: Option<String>,
    /// The root of the sum of squares
    #[arg(long, value_name = "AXES", num_args = 0..=1, default_missing_value = "")]
    pub(crate) norm_l2: Option<String>,
    /// Where the smallest is
    #[arg(long, value_name = "AXES", num_args = 0..=1, default_missing_value = "")]
    pub(crate) argmin: Option<String>,
    /// Where the largest is
    #[arg(long, value_name = "AXES", num_args = 0..=1, default_missing_value = "")]
    pub(crate) argmax: Option<String>,
    /// The middle value
    #[arg(long, value_name = "AXES", num_args = 0..=1, default_missing_value = "")]
    pub(crate) median: Option<String>,
    /// The value below which this share lies; axes with --over
    #[arg(long, value_name = "Q")]
    pub(crate) quantile: Option<f64>,
    /// Counts in this many bins; axes with --over
    #[arg(long, value_name = "BINS")]
    pub(crate) histogram: Option<usize>,
    /// From where to where a histogram counts: LOW,HIGH
    #[arg(long, value_name = "LOW,HIGH", allow_hyphen_values = true)]
    pub(crate) range: Option<String>,
    /// The covariance with another array of the store
    #[arg(long, value_name = "NODE", conflicts_with = "correlation")]
    pub(crate) covariance: Option<String>,
    /// The correlation with another array of the store
    #[arg(long, value_name = "NODE")]
    pub(crate) correlation: Option<String>,
    /// Is every value finite?
    #[arg(long, value_name = "AXES", num_args = 0..=1, default_missing_value = "")]
    pub(crate) all_finite: Option<String>,
    /// Is any value not a number?
    #[arg(long, value_name = "AXES", num_args = 0..=1, default_missing_value = "")]
    pub(crate) any_nan: Option<String>,
    /// Is any value infinite?
    #[arg(long, value_name = "AXES", num_args = 0..=1, default_missing_value = "")]
    pub(crate) any_inf: Option<String>,
    /// How many are not a number
    #[arg(long, value_name = "AXES", num_args = 0..=1, default_missing_value = "")]
    pub(crate) nan_count: Option<String>,
    /// How many are infinite
    #[arg(long, value_name = "AXES", num_args = 0..=1, default_missing_value = "")]
    pub(crate) inf_count: Option<String>,
    /// How many are missing
    #[arg(long, value_name = "AXES", num_args = 0..=1, default_missing_value = "")]
    pub(crate) null_count: Option<String>,
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

    /// Output path; the format follows from its extension
    #[arg(value_name = "OUT", value_hint = ValueHint::AnyPath)]
    pub(crate) out: PathBuf,

    /// Output format, such as hdf5, netcdf4, zarr2, zarr3 or tiledb
    #[arg(long, value_name = "FORMAT")]
    pub(crate) to: Option<String>,

    /// Only this node and what is below it
    #[arg(long)]
    pub(crate) node: Option<String>,

    /// Only this part of the array; several may be given
    #[arg(long, value_name = "SELECTION")]
    pub(crate) select: Vec<String>,

    /// The new chunks, such as 64,64,64, or their size, such as 4MiB; of geometry, their sizes in space
    #[arg(long, value_name = "SHAPE")]
    pub(crate) chunks: Option<String>,

    /// Axes that may grow without end, by number or name (HDF5)
    #[arg(long, value_name = "AXES", value_delimiter = ',')]
    pub(crate) unlimited: Vec<String>,

    /// Gather chunks in shards of this shape (Zarr), such as 512,512,512
    #[arg(long, value_name = "SHAPE", value_delimiter = ',')]
    pub(crate) shards: Option<Vec<u64>>,

    /// The new pipeline, such as shuffle,zstd:3; 'none' for no filter; the source's own when left out
    #[arg(long, value_name = "FILTERS")]
    pub(crate) filter: Option<String>,

    /// The kind of geometry, such as point_cloud, streamline or mesh (.zv)
    #[arg(long, value_name = "KIND")]
    pub(crate) geometry: Option<String>,

    /// Coarser levels of the geometry (.zv)
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

    /// Write nothing when the new format cannot hold something
    #[arg(long)]
    pub(crate) strict: bool,

    /// Succeed even when the new format cannot hold something
    #[arg(long, conflicts_with = "strict")]
    pub(crate) skip_unsupported: bool,

    /// Note the source in an attribute of the root
    #[arg(long)]
    pub(crate) provenance: bool,

    /// Memory for values on their way, such as 256MiB
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,

    /// Say nothing but what the new format could not hold
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
    /// The one file or directory
    #[arg(value_name = "A", value_hint = ValueHint::AnyPath)]
    pub(crate) a: PathBuf,

    /// The other
    #[arg(value_name = "B", value_hint = ValueHint::AnyPath)]
    pub(crate) b: PathBuf,

    /// Only this node and what is below it
    #[arg(value_name = "NODE")]
    pub(crate) node: Option<String>,

    /// The node of B, where it has another name
    #[arg(value_name = "NODE_B")]
    pub(crate) other_node: Option<String>,

    /// Floats may be apart by this much of the second's magnitude
    #[arg(long, value_name = "R", default_value_t = 0.0)]
    pub(crate) rtol: f64,

    /// Floats may be apart by this much
    #[arg(long, value_name = "D", default_value_t = 0.0)]
    pub(crate) atol: f64,

    /// Leave attributes aside
    #[arg(long)]
    pub(crate) no_attributes: bool,

    /// List every difference, however many
    #[arg(long)]
    pub(crate) full: bool,

    /// Say nothing: the exit status is the answer
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// Memory for values on their way, such as 256MiB
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,

    /// One JSON document
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

    /// Only this node and what is below it
    #[arg(value_name = "NODE")]
    pub(crate) node: Option<String>,

    /// One JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(before_help = "\
Examples:
  tet verify data.tet                      structures, offsets, counts
  tet verify data.tet --deep               also decode every chunk and compare checksums
  tet verify data.tet --json

Exit status: 0 it is whole, 1 damage was found, 2 it could not be checked.")]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    pub(crate) open: OpenArgs,

    /// Also decode every chunk
    #[arg(long)]
    pub(crate) deep: bool,

    /// Say nothing but the verdict
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// One JSON document
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

    /// Only say what would be done
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
    /// Where to make the samples; a temporary folder when left out
    #[arg(value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) folder: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
#[command(before_help = "\
Examples:
  tet completions bash > ~/.local/share/bash-completion/completions/tet
  tet completions zsh > ~/.zfunc/_tet")]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: Shell,
}
