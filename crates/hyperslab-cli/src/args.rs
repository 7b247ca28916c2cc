//! The arguments of every command, one module each. Help, completions and the manual page are generated from them.

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
use hyperslab::{ExternalFiles, Meter, Result};

pub(crate) use append::AppendArgs;
pub(crate) use clean::CleanArgs;
pub(crate) use convert::ConvertArgs;
pub(crate) use demo::DemoArgs;
pub(crate) use diff::DiffArgs;
pub(crate) use edit::{AttrsArgs, ChangeArgs, RenameArgs, RmArgs};
pub(crate) use fragments::{ConsolidateArgs, DeleteArgs, EvolveArgs, VacuumArgs};
pub(crate) use hash::HashArgs;
pub(crate) use info::InfoArgs;
pub(crate) use plot::PlotArgs;
pub(crate) use query::{OperationArgs, QueryArgs};
pub(crate) use read::ReadArgs;
pub(crate) use references::ReferencesArgs;
pub(crate) use repair::RepairArgs;
#[cfg(feature = "serve")]
pub(crate) use serve::ServeArgs;
pub(crate) use shell::{CompletionsArgs, ManArgs};
pub(crate) use verify::VerifyArgs;

/// One engine for chunked arrays in any file format.
#[derive(Debug, Parser)]
#[command(name = "tet", version, about, propagate_version = true, max_term_width = 100)]
#[command(before_help = "\
Examples:
  tet demo                                 create samples and walk through the commands
  tet info data.h5                         list the contents
  tet read data.tet /t '[0, 10:20]'        print the values of a slice
  tet query data.tet /t --mean time        reduce, group, window and filter
  tet plot data.tet /t 'time[0]'           draw a figure
  tet convert data.npy data.tet            convert between formats
  tet diff data.npy data.tet               compare values
  tet verify data.tet --deep               check for damage
  tet serve data.h5 --open                 view it in a browser")]
pub(crate) struct Args {
    /// Number of threads [default: all cores]
    #[arg(
        long,
        global = true,
        hide_short_help = true,
        value_name = "N",
        env = "HYPERSLAB_NUM_THREADS",
        hide_env = true
    )]
    threads: Option<usize>,

    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Args {
    /// The requested number of threads.
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
            Command::Repair(args) => vec![&args.open.path],
            _ => vec![],
        };
        open.into_iter().map(|path| path.display().to_string()).collect()
    }

    /// Returns true if a node is named by an option and not by a word after the path.
    pub(crate) const fn has_node_option(&self) -> bool {
        matches!(self.command, Command::Convert(_))
    }

    /// The counter for requests to remote storage, if they are to be printed.
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
    /// Compare two files of any format and chunking
    Diff(DiffArgs),
    /// Print a hash of the values, the same in every format and chunking
    Hash(HashArgs),
    /// Write references to a file's chunks, for kerchunk and Zarr readers
    References(ReferencesArgs),
    /// Check a file for damage
    Verify(VerifyArgs),
    /// Apply safe fixes
    Repair(RepairArgs),
    /// Remove leftovers of killed writers from a folder
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
    /// Add fields to a TileDB array, or drop some
    Evolve(EvolveArgs),
    /// Create small samples and walk through the commands
    Demo(DemoArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Print the manual page of tet, or of one of its commands
    Man(ManArgs),
}

/// The store that a command opens, and options for opening it.
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

/// Options for opening a store.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct OpenOptionsArgs {
    /// Override format detection
    #[arg(long, value_name = "FORMAT", hide_short_help = true, help_heading = "Opening")]
    pub(crate) format: Option<String>,

    /// Open the array as of a time: T or FROM:TO, in milliseconds since 1970 or as 2020-01-31T12:00:00Z (TileDB)
    #[arg(long, value_name = "TIME", hide_short_help = true, help_heading = "Opening")]
    pub(crate) at: Option<String>,

    /// Do not memory-map files; safe when another program may truncate them
    #[arg(long, hide_short_help = true, help_heading = "Opening")]
    pub(crate) no_map: bool,

    /// Read each node's own document, not the consolidated one, which may be stale (Zarr)
    #[arg(long, hide_short_help = true, help_heading = "Opening")]
    pub(crate) no_consolidated: bool,

    #[command(flatten)]
    pub(crate) external: ExternalArgs,

    #[command(flatten)]
    pub(crate) storage: StorageArgs,
}

/// The rule for other files that a store refers to.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct ExternalArgs {
    /// Other files that a file may refer to: external data, virtual sources and links of HDF5, targets of references
    #[arg(long, value_name = "RULE", value_parser = ["none", "beside", "any"], default_value = "beside", hide_short_help = true, help_heading = "Opening")]
    external: String,
}

impl ExternalArgs {
    pub(crate) fn rule(&self) -> Result<ExternalFiles> {
        self.external.parse()
    }
}

/// Options for remote storage.
#[derive(Debug, Clone, Default, ClapArgs)]
pub(crate) struct StorageArgs {
    /// Setting of the remote storage, such as endpoint_url=URL or region=NAME (repeatable)
    #[arg(
        long = "storage-option",
        value_name = "KEY=VALUE",
        hide_short_help = true,
        help_heading = "Remote storage"
    )]
    pub(crate) storage_options: Vec<String>,

    /// Send requests to remote storage without credentials
    #[arg(long, hide_short_help = true, help_heading = "Remote storage")]
    pub(crate) anonymous: bool,

    /// Keep metadata of remote stores in this folder, to open them faster the next time
    #[arg(
        long,
        value_name = "DIR",
        env = "HYPERSLAB_CACHE",
        hide_short_help = true,
        help_heading = "Remote storage"
    )]
    pub(crate) cache: Option<PathBuf>,

    /// Print the number of requests and bytes of remote storage to stderr
    #[arg(short, long, hide_short_help = true, help_heading = "Remote storage")]
    pub(crate) verbose: bool,

    /// Counts requests and bytes.
    #[arg(skip)]
    pub(crate) meter: Meter,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    /// The words of a line as a shell has them, up to a comment, a pipe or a file that takes the output.
    fn words(line: &str) -> Vec<String> {
        let line = line.trim().split("   ").next().unwrap_or_default();
        let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
        for letter in line.chars().chain([' ']) {
            match (quote, letter) {
                (Some(end), _) if letter == end => quote = None,
                (Some(_), _) => word.push(letter),
                (None, '\'' | '"') => quote = Some(letter),
                (None, ' ') if !word.is_empty() => words.push(std::mem::take(&mut word)),
                (None, ' ') => {}
                (None, '>' | '|') if word.is_empty() => break,
                (None, _) => word.push(letter),
            }
        }
        words
    }

    /// The examples of the help are also those of the manual pages.
    #[test]
    fn every_example_is_a_command() {
        let all = Args::command();
        let helps = all.get_subcommands().chain([&all]).filter_map(clap::Command::get_before_help);
        let text: Vec<String> = helps.map(ToString::to_string).collect();
        let page = include_str!("../../../README.md");
        let blocks = page
            .split("```")
            .skip(1)
            .step_by(2)
            .filter(|block| block.starts_with("sh\n") || block.starts_with("console\n"));
        let lines = text.iter().flat_map(|text| text.lines()).chain(blocks.flat_map(str::lines));
        let lines = lines.map(|line| line.trim().trim_start_matches("$ "));
        let mut count = 0;
        for line in lines.filter(|line| line.starts_with("tet ")) {
            let line = line.split("  #").next().unwrap_or_default();
            let parsed = Args::try_parse_from(words(line));
            assert!(parsed.is_ok(), "{line}: {:?}", parsed.err().map(|why| why.to_string()));
            count += 1;
        }
        assert!(count > 90, "{count} examples");
    }
}
