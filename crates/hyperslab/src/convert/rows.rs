//! Converts one table, array or geometry to a file of rows: Arrow, Parquet, CSV and the like.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hyperslab_core::{
    Array, Attributes, DType, Data, Elements, Error, GeometryQuery, Node, Result, Selection,
};

use super::copy::check_dense;
use super::{ConvertOptions, ConvertReport, Progress};
use crate::conventions::companions;
use crate::open::is_label;
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
/// geometry (one row per vertex). If no node is named, the variables of a data set become the columns of one `.csv`, `.arrow` or
/// `.parquet` file, as in a data frame of xarray. The file appears complete or not at all.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) if no node is named and there are several that do not fit together, for options that only arrays have, and if cancelled;
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
    let mut report = ConvertReport::default();
    let counted = Counted { progress, rows: AtomicU64::new(0), bytes: AtomicU64::new(0) };
    let node = match options.node.clone().map_or_else(|| source.only_node(), Ok) {
        Ok(node) => node,
        Err(error) => {
            let found = if rows::takes_decoded(target) { Variables::find(source)? } else { None };
            let variables = found.ok_or(error)?;
            variables.write(source, target, options, &counted, &mut report)?;
            (report.rows, report.bytes) = (counted.rows.into_inner(), counted.bytes.into_inner());
            return Ok(report);
        }
    };
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

/// The variables of a data set, which become columns of one file.
struct Variables {
    /// The first has the dimensions of all others.
    columns: Vec<(String, Arc<dyn Array>)>,
    /// Paths of variables that describe the columns on other dimensions, such as bounds.
    others: Vec<String>,
}

impl Variables {
    /// `None` if the store holds something other than variables of one group on dimensions of the widest.
    fn find(source: &OpenStore) -> Result<Option<Self>> {
        let mut arrays: Vec<(String, Arc<dyn Array>)> = Vec::new();
        let mut is_other = false;
        source.walk(&mut |path, node| {
            match node {
                Ok(Node::Group(_)) => {}
                Ok(Node::Array(array)) if is_label(path, array.schema()) || array.schema().is_dimension => {}
                Ok(Node::Array(array)) => arrays.push((path.to_owned(), array)),
                _ => is_other = true,
            }
            Ok(())
        })?;
        let described: HashSet<String> =
            arrays.iter().flat_map(|(_, array)| companions(&array.schema().attributes)).collect();
        let is_companion = |path: &str| path.rsplit('/').next().is_some_and(|name| described.contains(name));
        let widest = (0..arrays.len())
            .rev()
            .max_by_key(|&at| (!is_companion(&arrays[at].0), arrays[at].1.schema().grid.rank()));
        let Some(widest) = widest else { return Ok(None) };
        let (first, data) = arrays.remove(widest);
        let group = |path: &str| path.rsplit_once('/').map_or("", |(group, _)| group).to_owned();
        let schema = data.schema();
        let fits = |path: &str, array: &dyn Array| {
            group(path) == group(&first)
                && rows::axes_in(schema, array.schema()).is_some()
                && !matches!(array.schema().dtype, DType::Struct(_))
        };
        let named = rows::axes_in(schema, schema).is_some() && schema.grid.rank() > 0;
        let (mut columns, others): (Vec<_>, Vec<_>) =
            arrays.into_iter().partition(|(path, array)| fits(path, &**array));
        if is_other || !named || others.iter().any(|(path, _)| !is_companion(path)) {
            return Ok(None);
        }
        columns.insert(0, (first, Arc::clone(&data)));
        let others = others.into_iter().map(|(path, _)| path).collect();
        Ok(Some(Self { columns, others }))
    }

    fn write(
        self,
        source: &OpenStore,
        target: &Path,
        options: &ConvertOptions,
        counted: &Counted<'_>,
        report: &mut ConvertReport,
    ) -> Result<()> {
        let mut readers = Vec::new();
        for (path, array) in self.columns {
            let reader = source.reader(array);
            if readers.is_empty() {
                let positions = reader.resolve(&options.selection)?;
                let written = written_chunks(&**reader.inner(), options.memory / 4)?;
                check_dense(&reader, &positions, written.as_deref())?;
            }
            note_attributes(&path, &reader.schema().attributes, options, report)?;
            let reader = if options.raw { reader } else { reader.decoded_nullable()? };
            let name = path.rsplit('/').next().unwrap_or_default().to_owned();
            readers.push((name, reader));
            report.arrays += 1;
        }
        for path in self.others {
            let what = "it has other dimensions than the columns and was left out";
            if options.strict {
                return Err(Error::invalid(format!("{path}: {what}; nothing was written")));
            }
            report.change(&path, what);
        }
        let found = rows::rows_together(readers, &options.selection)?;
        rows::write_staged(counted.through(found), target, options.stage())
    }
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
