//! Converts one table, array or geometry to a file of rows: Arrow, Parquet, CSV and the like.

mod attributes;

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hyperslab_core::{Array, DType, Data, Elements, Error, GeometryQuery, Node, Result, Selection};

use super::copy::check_dense;
use super::{ConvertOptions, ConvertReport, Progress, chosen};
use crate::conventions::companions;
use crate::open::is_label;
use crate::rows::{self, Rows};
use crate::written::written_chunks;
use crate::{Format, OpenStore, export, geometry};
use attributes::LostAttributes;
pub(super) use attributes::own_attributes;

/// Returns true if the extension is that of a file of rows or geometry, and not of a store format.
#[must_use]
pub fn is_file_of_rows(target: &Path) -> bool {
    let ending = rows::ending(target);
    Format::from_extension(target).is_none()
        && (rows::writes(target) || geometry::ENDINGS.contains(&ending.as_str()))
}

/// Converts one node to a file in the format given by its extension: a table, an array (one row per element or struct) or a
/// geometry (one row per vertex). If no node is named, the variables of a data set become the columns of one `.csv`, `.arrow` or
/// `.parquet` file under their names, as in a data frame of xarray. The file appears complete or not at all.
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
    if options.shapes_arrays() || options.append {
        return Err(Error::invalid(format!(
            "{} is a file of rows: chunks, shards, filters and appending do not apply to it",
            crate::location_name(target)
        )));
    }
    #[cfg(feature = "remote")]
    if let Some(url) = crate::location::remote_url(target) {
        let local_options = ConvertOptions { replace: false, sync: false, ..options.clone() };
        return crate::upload::write_to(url, &options.remote, options.replace, progress, |local| {
            convert_to_rows(source, local, &local_options, progress)
        });
    }
    crate::location::check_local(target, "writing rows to")?;
    if let Some((view, options)) = chosen::view(source, options)? {
        return convert_to_rows(&view, target, &options, progress);
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
    let mut lost = LostAttributes::new(rows::takes_decoded(target), options, &mut report);
    match source.find(&node)? {
        Node::Table(_) => {
            let table = source.table(&node)?;
            lost.add_node(source, &node, &table.schema().attributes)?;
            let found = table.rows(&options.selection, None)?;
            rows::write_staged(counted.through(found), target, options.stage())?;
        }
        Node::Array(array) => {
            let reader = source.reader(array);
            let positions = reader.resolve(&options.selection)?;
            let written = written_chunks(&**reader.inner(), options.memory / 4)?;
            check_dense(&reader, &positions, written.as_deref())?;
            lost.add_array(source, &node, reader.schema())?;
            let decode = rows::takes_decoded(target) && !options.raw;
            lost.add_warnings(&node, &reader);
            let reader = if decode { reader.decoded_nullable()? } else { reader };
            if !rows::as_rows(target, &reader) {
                let values = reader.mark_missing(reader.read(&options.selection)?);
                counted.add(values.len() as u64, &values.elements);
                export::write_staged(&values, target, options.stage())?;
            } else {
                // The only variable of a data set keeps its name, as several do.
                let variable = options.node.is_none() && rows::takes_decoded(target);
                let name = variable.then(|| base(&node)).filter(|name| !name.is_empty());
                let found = reader.rows_named(&options.selection, name.unwrap_or("value"))?;
                rows::write_staged(counted.through(found), target, options.stage())?;
            }
            report.arrays = 1;
        }
        Node::Geometry(_) => {
            if options.selection != Selection::all() {
                return Err(Error::invalid(format!("{node} is a geometry; tet read selects parts of it")));
            }
            let reader = source.geometry(&node)?;
            lost.add_node(source, &node, &reader.schema().attributes)?;
            let selected = reader.query(&GeometryQuery::default())?;
            counted.add(selected.vertices() as u64, &selected.data.vertices.elements);
            if rows::writes(target) && selected.links() > 0 && rows::ending(target) != "json" {
                lost.drop(
                    &node,
                    format!("its {} links are left out: a row holds a vertex", selected.links()),
                )?;
            }
            geometry::write_staged(&selected, target, options.stage())?;
        }
        other => {
            return Err(Error::invalid(format!("{node} is {}, which has no rows", other.kind().one())));
        }
    }
    (report.rows, report.bytes) = (counted.rows.into_inner(), counted.bytes.into_inner());
    Ok(report)
}

/// The last part of a path.
fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
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
        // A coordinate names its bounds.
        let (mut described, mut is_other): (HashSet<String>, _) = (HashSet::new(), false);
        source.walk(&mut |path, node| {
            match node {
                Ok(Node::Group(_)) => {}
                Ok(Node::Array(array)) => {
                    let schema = array.schema();
                    described.extend(companions(&schema.attributes));
                    if !is_label(path, schema) && !schema.is_dimension {
                        arrays.push((path.to_owned(), array));
                    }
                }
                _ => is_other = true,
            }
            Ok(())
        })?;
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
        let (mut readers, mut arrays) = (Vec::new(), 0);
        let mut lost = LostAttributes::new(true, options, report);
        for (path, array) in self.columns {
            let reader = source.reader(array);
            if readers.is_empty() {
                let positions = reader.resolve(&options.selection)?;
                let written = written_chunks(&**reader.inner(), options.memory / 4)?;
                check_dense(&reader, &positions, written.as_deref())?;
            }
            lost.add_array(source, &path, reader.schema())?;
            lost.add_warnings(&path, &reader);
            let reader = if options.raw { reader } else { reader.decoded_nullable()? };
            readers.push((base(&path).to_owned(), reader));
            arrays += 1;
        }
        for path in self.others {
            let what = "it has other dimensions than the columns and was left out";
            lost.drop(&path, what.to_owned())?;
        }
        report.arrays = arrays;
        let found = rows::rows_together(readers, &options.selection)?;
        rows::write_staged(counted.through(found), target, options.stage())
    }
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
