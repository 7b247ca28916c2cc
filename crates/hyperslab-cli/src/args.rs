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
  tet convert data.npy data.tet            any format to any other
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
    /// Convert any format to any other
    Convert(ConvertArgs),
    /// Check whether a file is whole
    Verify(VerifyArgs),
    /// Mend what can be mended safely
    Repair(RepairArgs),
    /// Make a small sample and walk through the commands
    Demo(DemoArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Print the manual page
    Man,
}

/// How every command opens a store.
#[derive(Debug, ClapArgs)]
pub(crate) struct OpenArgs {
    /// The file or directory
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) path: PathBuf,

    /// The format, where the bytes are not to decide
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
  tet convert data.npy data.tet
  tet convert data.tet data.npz --node /t
  tet convert data.npy data.tet --chunks 64,64,64 --filter zstd:3")]
pub(crate) struct ConvertArgs {
    #[command(flatten)]
    pub(crate) open: OpenArgs,

    /// The new file; its ending tells the format
    #[arg(value_name = "OUT", value_hint = ValueHint::AnyPath)]
    pub(crate) out: PathBuf,

    /// The new file's format, where its ending is not to decide
    #[arg(long, value_name = "FORMAT")]
    pub(crate) to: Option<String>,

    /// Only this node and what is below it
    #[arg(long)]
    pub(crate) node: Option<String>,

    /// Only this part of the array; several may be given
    #[arg(long, value_name = "SELECTION")]
    pub(crate) select: Vec<String>,

    /// The new chunks, such as 64,64,64
    #[arg(long, value_name = "SHAPE", value_delimiter = ',')]
    pub(crate) chunks: Option<Vec<u64>>,

    /// Gather chunks in shards of this shape (Zarr), such as 512,512,512
    #[arg(long, value_name = "SHAPE", value_delimiter = ',')]
    pub(crate) shards: Option<Vec<u64>>,

    /// The new pipeline, such as shuffle,zstd:3; 'none' for no filter
    #[arg(long, value_name = "FILTERS")]
    pub(crate) filter: Option<String>,

    /// Replace OUT if it exists
    #[arg(long)]
    pub(crate) force: bool,

    /// Refuse to go on when the new format cannot hold something
    #[arg(long)]
    pub(crate) strict: bool,

    /// Memory for values on their way, such as 256MiB
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,

    /// Print the report as JSON
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
