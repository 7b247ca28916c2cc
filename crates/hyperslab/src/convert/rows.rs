//! Converts one table, array or geometry to a file of rows: Arrow, Parquet, CSV and the like.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use hyperslab_core::{Attributes, Data, Elements, Error, GeometryQuery, Node, Result, Selection};

use super::copy::check_dense;
use super::{ConvertOptions, ConvertReport, Progress};
use crate::rows::{self, Rows};
use crate::written::written_chunks;
use crate::{Format, OpenStore, export, geometry};

/// Returns true if the extension is that of a file of rows or geometry, and not of a store format.
#[must_use]
pub fn is_file_of_rows(target: &Path) -> bool {
    let ending = rows::ending(target);
    Format::from_extension(target).is_none()
        && (rows::writes(target) || geometry::ENDINGS.contains(&ending.as_str()))
}

/// Converts one node to a file in the format given by its extension: a table, an array (one row per element or struct) or a
/// geometry (one row per vertex). The file appears complete or not at all.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) if no node is named and there are several, for options that only arrays have, and if cancelled;
/// otherwise any error from reading or writing.
pub fn convert_to_rows(
    source: &OpenStore,
    target: &Path,
    options: &ConvertOptions,
    progress: &Progress,
) -> Result<ConvertReport> {
    crate::location::check_local(target, "writing rows to")?;
    if options.shapes_arrays() || options.append {
        return Err(Error::invalid(format!(
            "{} is a file of rows: chunks, shards, filters and appending do not apply to it",
            target.display()
        )));
    }
    let node = match &options.node {
        Some(node) => node.clone(),
        None => source.only_node()?,
    };
    let mut report = ConvertReport::default();
    let counted = Counted { progress, rows: AtomicU64::new(0), bytes: AtomicU64::new(0) };
    match source.find(&node)? {
        Node::Table(_) => {
            let table = source.table(&node)?;
            note_attributes(&node, &table.schema().attributes, options, &mut report)?;
            let found = table.rows(&options.selection, None)?;
            rows::write_staged(counted.through(found), target, options.stage())?;
        }
        Node::Array(array) => {
            let reader = source.reader(array);
            let positions = reader.resolve(&options.selection)?;
            let written = written_chunks(&**reader.inner(), options.memory / 4)?;
            check_dense(&reader, &positions, written.as_deref())?;
            note_attributes(&node, &reader.schema().attributes, options, &mut report)?;
            let decode = rows::takes_decoded(target) && !options.raw;
            let reader = if decode { reader.decoded_nullable()? } else { reader };
            if !rows::as_rows(target, &reader) {
                let values = reader.mark_missing(reader.read(&options.selection)?);
                counted.add(values.len() as u64, &values.elements);
                export::write_staged(&values, target, options.stage())?;
            } else {
                let found = reader.rows(&options.selection)?;
                rows::write_staged(counted.through(found), target, options.stage())?;
            }
            report.arrays = 1;
        }
        Node::Geometry(_) => {
            if options.selection != Selection::all() {
                return Err(Error::invalid(format!("{node} is a geometry; tet read selects parts of it")));
            }
            let reader = source.geometry(&node)?;
            note_attributes(&node, &reader.schema().attributes, options, &mut report)?;
            let selected = reader.query(&GeometryQuery::default())?;
            counted.add(selected.vertices() as u64, &selected.data.vertices.elements);
            geometry::write_staged(&selected, target, options.stage())?;
        }
        other => {
            return Err(Error::invalid(format!("{node} is {}, which has no rows", other.kind().one())));
        }
    }
    (report.rows, report.bytes) = (counted.rows.into_inner(), counted.bytes.into_inner());
    Ok(report)
}

/// Returns true if all attributes were written by the format itself.
pub(super) fn own_attributes(attributes: &Attributes) -> bool {
    // Documents of Zarr Vectors, which are stored among user attributes.
    const OWN: [&str; 3] = ["zarr_vectors", "multiscales", "ome"];
    attributes.iter().all(|(name, _)| OWN.contains(&name))
}

fn note_attributes(
    node: &str,
    attributes: &Attributes,
    options: &ConvertOptions,
    report: &mut ConvertReport,
) -> Result<()> {
    if own_attributes(attributes) {
        return Ok(());
    }
    let what = "a file of rows cannot hold its attributes";
    if options.strict {
        return Err(Error::invalid(format!("{node}: {what}; nothing was written")));
    }
    report.change(node, what);
    Ok(())
}

/// Counts rows and checks for cancellation.
struct Counted<'a> {
    progress: &'a Progress,
    rows: AtomicU64,
    bytes: AtomicU64,
}

impl Counted<'_> {
    fn through<'r>(&'r self, rows: Rows<'r>) -> Rows<'r> {
        let Rows { columns, batches } = rows;
        let counted = batches.map(|batch| {
            let batch = batch?;
            self.progress.check_cancelled()?;
            self.rows.fetch_add(batch.rows as u64, Ordering::Relaxed);
            batch.columns.iter().for_each(|column| self.add(0, column));
            Ok(batch)
        });
        Rows { columns, batches: Box::new(counted) }
    }

    fn add(&self, rows: u64, elements: &Elements) {
        let bytes = bytes_of(elements);
        self.rows.fetch_add(rows, Ordering::Relaxed);
        for count in [&self.bytes, &self.progress.total, &self.progress.done] {
            count.fetch_add(bytes, Ordering::Relaxed);
        }
    }
}

fn bytes_of(elements: &Elements) -> u64 {
    match &elements.data {
        Data::Fixed(bytes) | Data::Variable { bytes, .. } => bytes.len() as u64,
        Data::List { items, .. } | Data::FixedList { items, .. } => bytes_of(items),
        Data::Struct { members, .. } => members.iter().map(bytes_of).sum(),
    }
}
