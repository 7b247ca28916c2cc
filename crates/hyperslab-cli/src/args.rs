//! The arguments of every command, a module each. Help, completions and the manual page come from here.

mod append;
mod clean;
mod convert;
mod demo;
mod diff;
mod edit;
mod fragments;
mod hash;
mod info;
mod plot;
mod query;
mod read;
mod references;
mod repair;
#[cfg(feature = "serve")]
mod serve;
mod shell;
mod verify;

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueHint};
use hyperslab::Meter;

pub(crate) use append::AppendArgs;
pub(crate) use clean::CleanArgs;
pub(crate) use convert::ConvertArgs;
pub(crate) use demo::DemoArgs;
pub(crate) use diff::DiffArgs;
pub(crate) use edit::{AttrsArgs, ChangeArgs, RenameArgs, RmArgs};
pub(crate) use fragments::{ConsolidateArgs, DeleteArgs, VacuumArgs};
pub(crate) use hash::HashArgs;
pub(crate) use info::InfoArgs;
pub(crate) use plot::PlotArgs;
pub(crate) use query::{OperationArgs, QueryArgs};
pub(crate) use read::ReadArgs;
pub(crate) use references::ReferencesArgs;
pub(crate) use repair::RepairArgs;
#[cfg(feature = "serve")]
pub(crate) use serve::ServeArgs;
pub(crate) use shell::CompletionsArgs;
pub(crate) use verify::VerifyArgs;

/// One engine for chunked arrays, whatever file they are in.
#[derive(Debug, Parser)]
#[command(name = "tet", version, about, propagate_version = true, max_term_width = 100)]
#[command(before_help = "\
Examples:
  tet demo                                 make samples and walk through everything
  tet info data.h5                         what is in it?
  tet read data.tet /t '[0, 10:20]'        values of a slice
  tet query data.tet /t --mean time        reductions, groups, windows, filters
  tet plot data.tet /t 'time[0]'           a picture of it
  tet convert data.npy data.tet            any format to any other
  tet diff data.npy data.tet               same values?
  tet verify data.tet --deep               is it whole?
  tet serve data.h5 --open                 look at it in a browser")]
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
            Command::Plot(args) => vec![&args.open.path],
            Command::Query(args) => args.target.iter().chain([&args.open.path]).collect(),
            Command::Convert(args) => args.inputs.iter().collect(),
            Command::Attrs(args) => vec![&args.open.path],
            Command::Rename(args) => vec![&args.open.path],
            Command::Rm(args) => vec![&args.open.path],
            Command::Append(args) => args.paths.iter().collect(),
            Command::Diff(args) => vec![&args.a, &args.b],
            Command::Hash(args) => vec![&args.open.path],
            Command::References(args) => vec![&args.open.path],
            Command::Verify(args) => vec![&args.open.path],
            _ => vec![],
        };
        open.into_iter().map(|path| path.display().to_string()).collect()
    }

    /// Is a node named by an option, not by a word behind the path?
    pub(crate) const fn has_node_option(&self) -> bool {
        matches!(self.command, Command::Convert(_))
    }

    /// Where requests to remote storage are counted, when they are to be told.
    pub(crate) fn meter(&self) -> Option<Meter> {
        let storage = match &self.command {
            Command::Info(args) => &args.open.storage,
            Command::Read(args) => &args.open.storage,
            Command::Plot(args) => &args.open.storage,
            Command::Query(args) => &args.open.storage,
            Command::Convert(args) => &args.open.storage,
            Command::Append(args) => &args.storage,
            Command::Diff(args) => &args.storage,
            Command::Hash(args) => &args.open.storage,
            Command::References(args) => &args.open.storage,
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
    /// Draw a line, heatmap, histogram or geometry, in the terminal or as .png or .svg
    Plot(Box<PlotArgs>),
    /// Reduce, group, window and filter values; also runs query documents
    Query(Box<QueryArgs>),
    /// Convert any format to any other
    Convert(Box<ConvertArgs>),
    /// Add files to the end of a store, along a dimension
    Append(AppendArgs),
    /// Show, set and delete attributes
    Attrs(AttrsArgs),
    /// Rename a node
    Rename(RenameArgs),
    /// Remove nodes
    Rm(RmArgs),
    /// Compare two files, whatever their formats and chunks
    Diff(DiffArgs),
    /// Print a hash of the values, the same in every format and chunking
    Hash(HashArgs),
    /// Write references to the chunks of a file, which kerchunk and Zarr readers open
    References(ReferencesArgs),
    /// Check a file for damage
    Verify(VerifyArgs),
    /// Apply the fixes that are safe
    Repair(RepairArgs),
    /// Remove what killed writers left in a folder
    Clean(CleanArgs),
    /// Serve a file, a folder or a URL to browsers and Zarr readers
    #[cfg(feature = "serve")]
    Serve(Box<ServeArgs>),
    /// Merge the fragments of a TileDB array into one
    Consolidate(ConsolidateArgs),
    /// Remove TileDB fragments that consolidation has replaced
    Vacuum(VacuumArgs),
    /// Delete the rows of a sparse TileDB array that meet a condition
    Delete(DeleteArgs),
    /// Create small samples and walk through the commands
    Demo(DemoArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Print the manual page
    Man,
}

/// The store that a command opens, and how.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct OpenArgs {
    /// File, directory or URL (https://…, s3://bucket/…)
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) path: PathBuf,

    #[command(flatten)]
    pub(crate) how: OpenOptionsArgs,
}

impl std::ops::Deref for OpenArgs {
    type Target = OpenOptionsArgs;

    fn deref(&self) -> &OpenOptionsArgs {
        &self.how
    }
}

/// How a store is opened.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct OpenOptionsArgs {
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
