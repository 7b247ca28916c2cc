//! Terminal output: data to stdout, messages to stderr.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use hyperslab::driver::closest;
use hyperslab::{Error, Result, Traffic};
use serde::Serialize;

use crate::{paint, pretty};

/// The number of names in a folder that are considered for suggestions.
const MOST_NAMES: usize = 10_000;

/// Writes to stdout through `work`, in colour only on a terminal.
pub(crate) fn print(work: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let mut out = io::BufWriter::new(anstream::AutoStream::auto(io::stdout().lock()));
    work(&mut out).and_then(|()| out.flush()).map_err(|source| Error::io("standard output", source))
}

/// Writes text to stdout unchanged. Terminal graphics handle colour themselves.
pub(crate) fn print_raw(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|source| Error::io("standard output", source))
}

/// Writes to stderr through `work`: a report of what was done, as opposed to requested data.
pub(crate) fn report(work: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let mut err = anstream::stderr();
    work(&mut err).map_err(|source| Error::io("standard error", source))
}

/// Like [`print`], for work that can fail in other ways than writing.
pub(crate) fn print_through(work: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let mut out = io::BufWriter::new(anstream::AutoStream::auto(io::stdout().lock()));
    work(&mut out)?;
    out.flush().map_err(|source| Error::io("standard output", source))
}

/// Prints a JSON document, which may be created while it is written.
pub(crate) fn print_json(document: &impl Serialize) -> Result<()> {
    print(|out| {
        serde_json::to_writer_pretty(&mut *out, document)?;
        writeln!(out)
    })
}

/// Returns true if the reader of our output closed the pipe, which is not an error.
pub(crate) fn is_closed_pipe(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. } if source.kind() == io::ErrorKind::BrokenPipe)
}

/// Prints an error, and the next step if there is an obvious one. With `node_option`, the command has `--node`.
pub(crate) fn print_error(error: &Error, stores: &[String], node_option: bool) {
    // If stderr is closed, there is nothing left to do.
    let mut err = anstream::stderr();
    let _ = writeln!(err, "{}: {}", paint::bad("error"), without_secrets(error.to_string()));
    if let Some(step) = next_step(error, stores, node_option) {
        let _ = writeln!(err, "{}: {}", paint::dim("next"), without_secrets(step));
    }
}

/// Replaces the URLs among the program's arguments by their names, which are without users and signatures.
fn without_secrets(text: String) -> String {
    let arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let urls = arguments.filter(|argument| hyperslab::is_remote(argument));
    urls.fold(text, |text, url| match url.to_str() {
        Some(raw) => text.replace(raw, &hyperslab::location_name(&url)),
        None => text,
    })
}

/// Prints the traffic of remote storage in one line.
pub(crate) fn print_traffic(traffic: Traffic) {
    let received = pretty::bytes(traffic.bytes);
    let sent =
        if traffic.sent > 0 { format!(", {} sent", pretty::bytes(traffic.sent)) } else { String::new() };
    let (requests, rounds) = (traffic.requests, traffic.rounds);
    let line = format!("{requests} requests in {rounds} rounds, {received} received{sent}");
    // If stderr is closed, there is nothing left to do.
    let _ = writeln!(anstream::stderr(), "{}", paint::dim(line));
}

/// `stores` are the stores that the command reads.
fn next_step(error: &Error, stores: &[String], node_option: bool) -> Option<String> {
    // Errors name the node or the file inside a store, but commands take the store.
    let store_of = |name: &str| {
        let own = stores.iter().find(|store| name.starts_with(store.as_str()));
        own.map_or_else(|| name.to_owned(), Clone::clone)
    };
    match error {
        Error::Corrupt(corrupt) => {
            Some(format!("`tet verify {} --deep` lists the damage", store_of(&corrupt.store)))
        }
        Error::Io { path, source } if source.kind() == io::ErrorKind::NotFound => missing_file(path, stores),
        Error::NotFound { store, .. } => Some(format!("`tet info {}` lists the nodes", store_of(store))),
        Error::Exists { .. } => Some("use --force to replace it".to_owned()),
        Error::Unsupported { store, feature } if feature.ends_with("on remote storage") => {
            let url = store_of(store);
            Some(format!(
                "change a copy (`tet convert {url} COPY`), and upload it (`tet convert COPY {url} --force`)"
            ))
        }
        Error::Invalid(message) if message.contains("has several nodes") => {
            Some(if node_option { "name it with --node" } else { "put its name after the path" }.to_owned())
        }
        Error::Invalid(message) if message.contains("allows no duplicates") => {
            Some("use --duplicates to keep both".to_owned())
        }
        _ => None,
    }
}

/// What to try instead of a file that does not exist: a similar name in its folder.
fn missing_file(path: &str, stores: &[String]) -> Option<String> {
    let is_read = stores.iter().any(|store| path.starts_with(store.as_str()));
    let path = Path::new(path);
    if hyperslab::is_remote(path) {
        return None;
    }
    // A folder that is not read is the folder of the output.
    if !is_read && path.extension().is_none() {
        return Some(format!("`mkdir -p {}` creates the folder", path.display()));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Ok(entries) = folder.read_dir() else {
        return Some(format!("check the path; {} is no folder", folder.display()));
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let names: Vec<String> = names.take(MOST_NAMES).filter(|name| !name.starts_with('.')).collect();
    let similar = closest(path.file_name()?.to_str()?, names.iter().map(String::as_str));
    Some(match similar {
        Some(name) => format!("did you mean {}?", path.with_file_name(name).display()),
        None => format!("check the name; `ls {}` lists the folder", folder.display()),
    })
}
