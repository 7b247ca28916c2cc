//! Converts tables to formats with tables: new tables, and more rows for existing ones.

use std::path::Path;
#[cfg(feature = "remote")]
use std::sync::Arc;
use std::sync::atomic::Ordering;

#[cfg(feature = "remote")]
use hyperslab_core::{Storage, storage::StagedChange};

use hyperslab_core::{
    Batch, Bound, Column, DType, Elements, Error, Node, Result, RowOrder, Scan, Selection, TableSink,
    TableSpec,
};

use super::coerce::{coerced, missing_names};
use super::{ConvertOptions, ConvertReport, Progress};
use crate::rows::no_column;
use crate::{Format, OpenStore, TableReader};
use hyperslab_core::CreateOptions;

/// Options for writing a table.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct TableOptions {
    /// The columns that become dimensions; those of the source by default.
    pub dimensions: Vec<String>,
    /// Whether several rows may have the same coordinates; as in the source by default, or else not.
    pub duplicates: Option<bool>,
    /// The order of rows; as in the source by default.
    pub order: Option<RowOrder>,
}

hyperslab_core::option_setters! { TableOptions {
    with_dimensions = dimensions: Vec<String>,
    with_duplicates = duplicates: into Option<bool>,
    with_order = order: into Option<RowOrder>,
} }

impl TableOptions {
    /// Returns true if no option for tables is set.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.dimensions.is_empty() && self.duplicates.is_none() && self.order.is_none()
    }
}

/// The table to convert, and the selection of its rows, if the source's node is one. An array of structs is a table with a column per member if it becomes rows:
/// the options name dimensions, or rows are added to a table.
pub(crate) fn table_of(
    source: &OpenStore,
    target: &Path,
    options: &ConvertOptions,
) -> Result<Option<(TableReader, Selection)>> {
    let node = match &options.node {
        Some(node) => node.clone(),
        None => match source.only_node() {
            Ok(node) => node,
            Err(_) => return Ok(None),
        },
    };
    match source.find(&node)? {
        Node::Table(_) => Ok(Some((source.table(&node)?, options.selection.clone()))),
        Node::Array(array)
            if matches!(array.schema().dtype, DType::Struct(_))
                && (!options.table.dimensions.is_empty() || options.append && is_table(target)) =>
        {
            let table = source.reader(array).table(&options.selection)?;
            Ok(Some((table, Selection::all())))
        }
        _ => Ok(None),
    }
}

fn is_table(target: &Path) -> bool {
    crate::open(target).and_then(|store| store.node("/")).is_ok_and(|node| matches!(node, Node::Table(_)))
}

/// Writes a table to a new store, or adds its rows to an existing one.
pub(super) fn convert(
    (table, selection): (&TableReader, Selection),
    target: &Path,
    format: Format,
    options: &ConvertOptions,
    progress: &Progress,
) -> Result<ConvertReport> {
    let options = &ConvertOptions { selection, ..options.clone() };
    let adds = options.append && target.symlink_metadata().is_ok();
    let sink = if adds {
        let create = CreateOptions::default().with_append(true).with_sync(options.sync);
        add_to(table, target, options, || format.driver().append_table(target, options.memory, &create))?
    } else {
        new(table, target, format, options)?
    };
    write(table, target, options, progress, sink, adds)
}

/// Adds the rows of a table to a store at a URL.
#[cfg(feature = "remote")]
pub(crate) fn append_elsewhere(
    table: &TableReader,
    (url, format): (&Path, Format),
    (storage, change): (Arc<dyn Storage>, StagedChange),
    options: &ConvertOptions,
    progress: &Progress,
) -> Result<ConvertReport> {
    let create = CreateOptions::default().with_append(true);
    let sink = add_to(table, url, options, || {
        format.driver().append_table_elsewhere(storage, change, options.memory, &create)
    })?;
    write(table, url, options, progress, sink, true)
}

/// Writes the rows of a table. If the table exists, `adds` is set.
fn write(
    table: &TableReader,
    target: &Path,
    options: &ConvertOptions,
    progress: &Progress,
    mut sink: Box<dyn TableSink>,
    adds: bool,
) -> Result<ConvertReport> {
    let mut wanted = sink.columns().to_vec();
    let names: Vec<String> = wanted.iter().map(|column| column.name.clone()).collect();
    let own = |name: &String| {
        let found = table.schema().columns.iter().find(|column| column.name == *name);
        found.cloned().ok_or_else(|| {
            let why = no_column(name, &table.schema().columns);
            Error::invalid(format!(
                "{}: {why}; {} has this column",
                table.inner().name(),
                crate::location_name(target)
            ))
        })
    };
    let own = names.iter().map(own).collect::<Result<Vec<Column>>>()?;
    let scan = table.scan(&options.selection, Some(&names))?;
    let mut report = ConvertReport::default();
    for batch in table.rows_of(&scan)?.batches {
        progress.check_cancelled()?;
        let Batch { rows, columns } = batch?;
        if adds {
            extend(&mut *sink, &mut wanted, &own, &columns, rows)?;
        }
        let columns = columns.into_iter().zip(own.iter().zip(&wanted));
        let columns: Vec<Elements> =
            columns.map(|(elements, (from, to))| coerced(elements, rows, from, to)).collect::<Result<_>>()?;
        let bytes: u64 = columns.iter().map(Elements::bytes).sum();
        (report.rows, report.bytes) = (report.rows + rows as u64, report.bytes + bytes);
        for count in [&progress.total, &progress.done] {
            count.fetch_add(bytes, Ordering::Relaxed);
        }
        sink.write(Batch { rows, columns })?;
    }
    sink.commit()?;
    Ok(report)
}

/// Extends the enumerations of an existing table by names that the rows use.
fn extend(
    sink: &mut dyn TableSink,
    wanted: &mut [Column],
    own: &[Column],
    columns: &[Elements],
    rows: usize,
) -> Result<()> {
    for (number, (elements, from)) in columns.iter().zip(own).enumerate() {
        let more = missing_names(elements, rows, from, &wanted[number].dtype);
        if more.is_empty() {
            continue;
        }
        match sink.extend_enumeration(number, &more) {
            Ok(()) => wanted[number] = sink.columns()[number].clone(),
            // The row with the first such name will report it.
            Err(why) if why.is_unsupported() => {}
            Err(why) => return Err(why),
        }
    }
    Ok(())
}

fn new(
    table: &TableReader,
    target: &Path,
    format: Format,
    options: &ConvertOptions,
) -> Result<Box<dyn TableSink>> {
    let schema = table.schema();
    let columns = columns(table, format, options)?;
    let rank = columns.iter().take_while(|column| column.dimension).count();
    let same = schema.columns.iter().filter(|column| column.dimension).map(|column| &column.name);
    let same = same.eq(columns[..rank].iter().map(|column| &column.name));
    let order = options.table.order.or(schema.stored.order).unwrap_or_default();
    let mut domains = vec![None; rank];
    let mut extents = vec![None; rank];
    if same && !schema.stored.domains.is_empty() {
        (domains, extents) = (schema.stored.domains.clone(), schema.stored.extents.clone());
    } else if order == RowOrder::Hilbert {
        // The curve runs through the domain: with the full range of the type, all rows would fall into one place.
        domains = ranges(table, &columns[..rank], options)?;
    }
    let spec = TableSpec {
        columns,
        attributes: schema.attributes.clone(),
        duplicates: options.table.duplicates.or(schema.stored.duplicates).unwrap_or(false),
        order,
        domains,
        extents,
        capacity: schema.stored.capacity,
        encoded: schema.stored.encoded.clone(),
        memory: options.memory,
    };
    let create = CreateOptions::default()
        .with_replace(options.replace)
        .with_sync(options.sync)
        .with_append(options.append);
    crate::formats::create_table(target, format, &spec, &create)
}

fn add_to(
    table: &TableReader,
    target: &Path,
    options: &ConvertOptions,
    open: impl FnOnce() -> Result<Box<dyn TableSink>>,
) -> Result<Box<dyn TableSink>> {
    if !options.table.is_empty() || options.filters.is_some() {
        return Err(Error::invalid(format!(
            "{} already exists; its dimensions, order, duplicates and filters cannot be changed",
            crate::location_name(target)
        )));
    }
    let sink = open()?;
    if let Some(more) =
        table.schema().columns.iter().find(|column| sink.columns().iter().all(|own| own.name != column.name))
    {
        return Err(Error::invalid(format!(
            "{} has no column {}, which {} has; it has {}",
            crate::location_name(target),
            more.name,
            table.inner().name(),
            sink.columns().iter().map(|column| column.name.as_str()).collect::<Vec<_>>().join(", ")
        )));
    }
    Ok(sink)
}

/// The columns of the new table, dimensions first.
fn columns(table: &TableReader, format: Format, options: &ConvertOptions) -> Result<Vec<Column>> {
    let all = &table.schema().columns;
    let own = all.iter().filter(|column| column.dimension).map(|column| column.name.clone());
    let chosen: Vec<String> =
        if options.table.dimensions.is_empty() { own.collect() } else { options.table.dimensions.clone() };
    if chosen.is_empty() {
        let names: Vec<_> = all.iter().map(|column| column.name.as_str()).collect();
        return Err(Error::invalid(format!(
            "choose the columns that become dimensions with --dimensions; there are {}",
            names.join(", ")
        )));
    }
    let mut columns: Vec<Column> = Vec::with_capacity(all.len());
    for name in &chosen {
        let column = all.iter().find(|column| column.name == *name).ok_or_else(|| no_column(name, all))?;
        if columns.iter().any(|own| own.name == *name) {
            return Err(Error::invalid(format!("dimension {name} is named twice")));
        }
        // Coordinates are values, not codes.
        let dtype = match &column.dtype {
            DType::Enum(_) | DType::FixedBytes(_) | DType::FixedText(_) if !column.dimension => DType::String,
            DType::Enum(_) => DType::String,
            other => other.clone(),
        };
        let filters = if column.dimension { column.filters.clone() } else { Vec::new() };
        columns.push(Column { dtype, dimension: true, nullable: false, filters, ..column.clone() });
    }
    let others = all.iter().filter(|column| !chosen.contains(&column.name));
    let holds = |dtype: &DType| format.driver().holds(dtype, None);
    columns.extend(others.map(|column| {
        let is_loose = matches!(column.dtype, DType::FixedText(_)) && !holds(&column.dtype);
        let dtype = if is_loose { DType::String } else { column.dtype.clone() };
        Column { dtype, dimension: false, ..column.clone() }
    }));
    if let Some(filters) = &options.filters {
        columns.iter_mut().for_each(|column| column.filters.clone_from(filters));
    }
    Ok(columns)
}

/// The lowest and highest value of each numeric dimension.
fn ranges(
    table: &TableReader,
    dimensions: &[Column],
    options: &ConvertOptions,
) -> Result<Vec<Option<(Bound, Bound)>>> {
    let names: Vec<String> = dimensions.iter().map(|column| column.name.clone()).collect();
    let scan: Scan = table.scan(&options.selection, Some(&names))?;
    let mut found: Vec<Option<(Bound, Bound)>> = vec![None; dimensions.len()];
    for batch in table.rows_of(&scan)?.batches {
        for ((elements, column), range) in batch?.columns.iter().zip(dimensions).zip(&mut found) {
            let Some((low, high)) = super::coerce::range(&column.dtype, elements) else { continue };
            *range = Some(match range.take() {
                None => (low, high),
                Some((least, most)) => (smaller(least, low), larger(most, high)),
            });
        }
    }
    Ok(found)
}

fn smaller(a: Bound, b: Bound) -> Bound {
    if is_less(&b, &a) { b } else { a }
}

fn larger(a: Bound, b: Bound) -> Bound {
    if is_less(&a, &b) { b } else { a }
}

fn is_less(a: &Bound, b: &Bound) -> bool {
    match (a, b) {
        (Bound::Integer(a), Bound::Integer(b)) => a < b,
        (Bound::Float(a), Bound::Float(b)) => a < b,
        _ => false,
    }
}
