//! One module per command. Commands parse arguments and print results; all logic is in the library.

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
mod rows;
#[cfg(feature = "serve")]
mod serve;
mod shell;
mod verify;

use std::path::Path;

use hyperslab::{ArrayReader, EncryptionKey, Error, OpenOptions, OpenStore, Progress, RemoteOptions, Result};

use crate::args::{Args, Command, OpenArgs, OpenOptionsArgs, StorageArgs};
use crate::{Answer, output, paint, progress};

/// Runs the requested command.
pub(crate) fn run(args: Args) -> Result<Answer> {
    match args.command {
        Command::Info(args) => info::run(&args),
        Command::Read(args) => read::run(&args),
        Command::Plot(args) => plot::run(&args),
        Command::Query(args) => query::run(&args),
        Command::Convert(args) => convert::run(&args),
        Command::Append(args) => append::run(&args),
        Command::Attrs(args) => edit::attrs(&args),
        Command::Rename(args) => edit::rename(&args),
        Command::Rm(args) => edit::remove(&args),
        Command::Clean(args) => clean::run(&args),
        Command::Diff(args) => diff::run(&args),
        Command::Hash(args) => hash::run(&args),
        Command::References(args) => references::run(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Repair(args) => repair::run(&args),
        #[cfg(feature = "serve")]
        Command::Serve(args) => serve::run(&args),
        Command::Consolidate(args) => fragments::consolidate(&args),
        Command::Vacuum(args) => fragments::vacuum(&args),
        Command::Delete(args) => fragments::delete(&args),
        Command::Evolve(args) => fragments::evolve(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Completions(args) => shell::completions(&args),
        Command::Man(args) => shell::manual(&args),
    }
}

/// Default options for opening a store.
fn default_options() -> Result<OpenOptions> {
    Ok(OpenOptions::default().with_key(EncryptionKey::from_environment()?))
}

fn open_options(args: &OpenOptionsArgs) -> Result<OpenOptions> {
    let format = args.format.as_deref().map(str::parse).transpose()?;
    let at = args.at.as_deref().map(crate::times::window).transpose()?;
    let key = EncryptionKey::from_environment()?;
    let (external, remote) = (args.external.rule()?, remote_options(&args.storage)?);
    let (mapped, consolidated) = (!args.no_map, !args.no_consolidated);
    Ok(OpenOptions::default()
        .with_format(format)
        .with_mapped(mapped)
        .with_at(at)
        .with_key(key)
        .with_consolidated(consolidated)
        .with_external(external)
        .with_remote(remote))
}

/// Options for remote storage.
fn remote_options(args: &StorageArgs) -> Result<RemoteOptions> {
    let mut options = RemoteOptions::default().with_anonymous(args.anonymous).with_meter(args.meter.clone());
    if let Some(folder) = &args.cache {
        options = options.with_cache_folder(folder);
    }
    for option in &args.storage_options {
        let (name, value) = option
            .split_once('=')
            // Not repeated: it may be a secret.
            .ok_or_else(|| Error::invalid("--storage-option: expected KEY=VALUE"))?;
        options = options.with_option(name, value);
    }
    Ok(options)
}

/// Writes an output file at a path or a URL. Ctrl-C ends an upload.
fn write_at(
    target: &Path,
    force: bool,
    open: &OpenOptionsArgs,
    work: impl FnOnce(&Path, bool) -> Result<()>,
) -> Result<()> {
    let options = open_options(open)?;
    if !hyperslab::is_remote(target) {
        return hyperslab::write_at(target, force, &options, &Progress::default(), work);
    }
    progress::with_bar(false, |progress| hyperslab::write_at(target, force, &options, progress, work))
}

/// Warns of contradictory or meaningless attributes of an array whose values are decoded.
fn warn_of_conventions(stored: &ArrayReader) -> Result<()> {
    for warning in stored.interpretation().warnings {
        output::report(|err| writeln!(err, "{} {}: {warning}", paint::doubtful("!"), stored.inner().name()))?;
    }
    Ok(())
}

/// Like [`open`], without mapping.
fn open_unmapped(args: &OpenArgs) -> Result<OpenStore> {
    hyperslab::open_with(&args.path, &open_options(args)?.with_mapped(false))
}

fn open(args: &OpenArgs) -> Result<OpenStore> {
    hyperslab::open_with(&args.path, &open_options(args)?)
}
