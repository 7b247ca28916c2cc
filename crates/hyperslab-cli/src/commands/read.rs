//! `tet read`: prints the values of a selection, or writes them to a file.

mod geometry;

use std::sync::Arc;

use hyperslab::{ArrayReader, DType, Error, Node, Result, Selection, TableReader, Values, export, rows};

use super::rows::Target;
use crate::args::ReadArgs;
use crate::{Answer, address, output, paint, pretty};

pub(crate) fn run(args: &ReadArgs) -> Result<Answer> {
    let (node, selection) = address::node_and_selection(&args.what)?;
    let mut options = super::open_options(&args.open)?;
    if let Some(memory) = &args.memory {
        options = options.with_memory(pretty::parse_bytes(memory)?);
    }
    let store = hyperslab::open_with(&args.open.path, &options)?;
    let (node, selection) = address::chosen_level(&store, (node, selection), args.level)?;
    let found = store.find(&node)?;
    if !matches!(found, Node::Geometry(_)) && args.is_geometric() {
        return Err(Error::invalid(format!(
            "{node} is {}; --box, --object and --group only apply to a geometry",
            found.kind().one()
        )));
    }
    if let (Node::Array(array), false) = (&found, args.conditions.is_empty())
        && matches!(array.schema().dtype, DType::Struct(_))
    {
        read_rows(args, &store.reader(Arc::clone(array)).table(&selection)?, &Selection::all())?;
        return Ok(Answer::Yes);
    }
    if !matches!(found, Node::Array(_)) && args.explain {
        return Err(Error::invalid(format!("{node} is {}; --explain applies to arrays", found.kind().one())));
    }
    if !matches!(found, Node::Table(_)) && !args.conditions.is_empty() {
        return Err(Error::invalid(format!(
            "{node} is {}; --where only applies to tables and arrays of structs",
            found.kind().one()
        )));
    }
    match found {
        Node::Array(array) => {
            let stored = store.reader(array);
            let reader = reader(args, stored)?;
            if args.explain {
                super::query::show_explanations(args.json, &[("read", reader.explain(&selection)?)])?;
                return Ok(Answer::Yes);
            }
            read_array(args, &reader, &selection)?;
        }
        Node::Table(_) => {
            read_rows(args, &store.table(&node)?, &selection)?;
        }
        Node::Geometry(_) => geometry::put(&store.geometry(&node)?, args, &selection)?,
        other => {
            return Err(Error::invalid(format!(
                "{node} is {}, which has no values of its own",
                other.kind().one()
            )));
        }
    }
    Ok(Answer::Yes)
}

fn read_rows(args: &ReadArgs, table: &TableReader, selection: &Selection) -> Result<()> {
    let condition = super::rows::condition(&args.conditions)?;
    let scan = table.scan_where(selection, args.columns.as_deref(), condition.as_ref())?;
    super::rows::put(table.rows_of(&scan)?, target(args))
}

/// Where the rows go.
fn target(args: &ReadArgs) -> Target<'_> {
    Target {
        output: args.output.as_deref(),
        force: args.force,
        open: &args.open,
        json: args.json,
        full: args.full,
    }
}

fn read_array(args: &ReadArgs, reader: &ArrayReader, selection: &Selection) -> Result<()> {
    if let Some(columns) = &args.columns {
        return super::rows::put(reader.rows(selection)?.project(columns)?, target(args));
    }
    if let Some(path) = args.output.as_deref().filter(|path| rows::as_rows(path, reader)) {
        return super::write_at(path, args.force, &args.open, |path, force| {
            rows::write(reader.rows(selection)?, path, force)
        });
    }
    let mut values = reader.read(selection)?;
    if !is_npy(args) {
        values = reader.mark_missing(values);
        if args.decodes() {
            values = reader.dates(&values).unwrap_or(values);
        }
    }
    match &args.output {
        Some(path) => {
            super::write_at(path, args.force, &args.open, |path, force| export::write(&values, path, force))
        }
        None if args.json => output::print_through(|out| export::write_json(&values, &mut &mut *out)),
        None => show(&values, args.full),
    }
}

/// The array to read: as stored, or decoded by the file's conventions.
fn reader(args: &ReadArgs, stored: ArrayReader) -> Result<ArrayReader> {
    if !args.decodes() {
        return Ok(stored);
    }
    super::warn_of_conventions(&stored)?;
    let as_rows = args.columns.is_some() || args.output.as_deref().is_some_and(rows::takes_decoded);
    // Floats would round long counts of nanoseconds.
    let as_dates = !is_npy(args) && stored.counts_time();
    if as_rows || as_dates { stored.decoded_nullable() } else { stored.decoded() }
}

/// NumPy files have no missing elements; NaN marks them.
fn is_npy(args: &ReadArgs) -> bool {
    args.output.as_ref().and_then(|path| path.extension()).is_some_and(|ending| ending == "npy")
}

fn show(values: &Values, full: bool) -> Result<()> {
    output::print(|out| {
        pretty::write_values(values, full, out)?;
        let about = format!("{} {}", values.dtype, pretty::shape(&values.shape));
        writeln!(out, "{}", paint::dim(about))
    })
}
