//! Writes tables through the core's sink, as a sparse array. Each fragment has as many rows as fit in memory.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use hyperslab_core::storage::{StageOptions, StageWriter, StagedChange, StagedFolder};
use hyperslab_core::{
    Batch, Bound, Column, DType, Elements, Error, Result, RowOrder, Storage, TableSink, TableSpec,
};

use super::enumeration::{self, NewEnumeration};
use super::fragment::Extra;
use super::{
    FragmentWriter, WriteOptions, metadata, next_time, put_commit, put_schema, schema_to_write, sparse,
};
use super::{template, timed_name, types};
use crate::OpenOptions;
use crate::array::OpenArray;
use crate::datatype::{CellValues, Datatype};
use crate::pipeline::{Filter, Pipeline};
use crate::schema::{ArrayKind, Attribute, Dimension, Order, Schema, WRITTEN, integer_bytes};

/// The table attribute that shows its enumerations.
const ENUMERATIONS: &str = "enumerations";

/// A sink that writes rows to a sparse array.
#[derive(Debug)]
pub struct TileDbTable {
    stage: Stage,
    schema: Arc<Schema>,
    schema_name: String,
    columns: Vec<Column>,
    options: WriteOptions,
    /// The time of the last fragment in milliseconds.
    time: u64,
    pending: Vec<Batch>,
    bytes: u64,
    memory: u64,
    /// The number of rows in the fragments written so far.
    done: usize,
    /// The fragments written so far, with their times.
    fragments: Vec<(u64, String)>,
    /// The array that rows are appended to, and the time for a new schema.
    existing: Option<(Arc<OpenArray>, u64)>,
    /// The columns whose enumerations were extended.
    extended: BTreeSet<usize>,
}

#[derive(Debug)]
enum Stage {
    New(StagedFolder),
    Change(StagedChange),
}

impl Stage {
    const fn writer(&self) -> &StageWriter {
        match self {
            Self::New(folder) => folder.writer(),
            Self::Change(change) => change.writer(),
        }
    }
}

/// Creates a sparse array for one table.
///
/// # Errors
///
/// [`Exists`](Error::Exists) if something exists at the path and `force` is not set; [`Invalid`](Error::Invalid) and
/// [`Unsupported`](Error::Unsupported) for columns that a sparse array cannot have.
pub fn create_table(path: &Path, spec: &TableSpec, options: WriteOptions) -> Result<TileDbTable> {
    let mut schema = schema_of(spec)?;
    let described = spec.attributes.get(ENUMERATIONS).map(hyperslab_core::Attribute::to_json);
    let stage = StageOptions::default().with_replace(options.force).with_sync(options.sync);
    let folder = StagedFolder::create(path, stage)?;
    let time = next_time(options.at, 0);
    let key = options.key.as_ref();
    let rank = schema.dimensions.len();
    let found: Vec<(usize, NewEnumeration)> = spec.columns[rank..]
        .iter()
        .enumerate()
        .filter_map(|(index, column)| {
            let own = described.as_ref().and_then(|all| all.get(&column.name));
            Some((index, NewEnumeration::of(&column.name, &column.dtype, own)?))
        })
        .collect();
    enumeration::put(folder.writer(), &mut schema, found.iter().map(|(index, own)| (*index, own)), key)?;
    let attributes = spec.attributes.filtered(|name, _| name != ENUMERATIONS);
    metadata::put(folder.writer(), &attributes, time, key)?;
    let schema = Arc::new(schema);
    let schema_name = put_schema(folder.writer(), &schema, time, key)?;
    Ok(TileDbTable {
        stage: Stage::New(folder),
        schema,
        schema_name,
        columns: spec.columns.clone(),
        options,
        time,
        pending: Vec::new(),
        bytes: 0,
        memory: spec.memory,
        done: 0,
        fragments: Vec::new(),
        existing: None,
        extended: BTreeSet::new(),
    })
}

/// Starts appending rows to a sparse array.
///
/// # Errors
///
/// [`NotFound`](Error::NotFound) if there is none; [`Invalid`](Error::Invalid) for a dense array.
pub fn append_table(path: &Path, memory: u64, options: WriteOptions) -> Result<TileDbTable> {
    let directory = Arc::new(hyperslab_core::LocalStorage::new(path));
    append_rows(directory, || StagedChange::open(path), memory, options)
}

/// Like [`append_table`], for an array that is not on this machine. Nothing else may change it meanwhile.
///
/// # Errors
///
/// As [`append_table`].
pub fn append_table_elsewhere(
    storage: Arc<dyn Storage>,
    change: StagedChange,
    memory: u64,
    options: WriteOptions,
) -> Result<TileDbTable> {
    append_rows(storage, || Ok(change), memory, options)
}

fn append_rows(
    directory: Arc<dyn Storage>,
    change: impl FnOnce() -> Result<StagedChange>,
    memory: u64,
    options: WriteOptions,
) -> Result<TileDbTable> {
    let open = OpenOptions { key: options.key.clone(), ..OpenOptions::default() };
    let array = Arc::new(OpenArray::open(directory, String::new(), open)?);
    if array.schema.kind != ArrayKind::Sparse {
        return Err(Error::invalid(format!(
            "{} is a dense array; rows are added to sparse ones",
            array.name
        )));
    }
    let columns = crate::sparse::columns(&array);
    // Leave an earlier millisecond for a new schema, which must precede the first fragment.
    let time = super::time_of(&array, &options)?;
    let change = change()?;
    let (schema, schema_name) = schema_to_write(change.writer(), &array, options.key.as_ref())?;
    Ok(TileDbTable {
        stage: Stage::Change(change),
        schema,
        schema_name,
        columns,
        options,
        time,
        pending: Vec::new(),
        bytes: 0,
        memory,
        done: 0,
        fragments: Vec::new(),
        existing: Some((array, time)),
        extended: BTreeSet::new(),
    })
}

impl TileDbTable {
    /// Writes the buffered rows as one fragment.
    fn flush(&mut self) -> Result<()> {
        let batches = std::mem::take(&mut self.pending);
        self.bytes = 0;
        let rows: usize = batches.iter().map(|batch| batch.rows).sum();
        if rows == 0 {
            return Ok(());
        }
        let columns = self
            .columns
            .iter()
            .enumerate()
            .map(|(number, column)| {
                let parts: Vec<&Elements> = batches.iter().map(|batch| &batch.columns[number]).collect();
                Elements::concatenate(&column.dtype, &parts)
            })
            .collect::<Result<Vec<_>>>()?;
        drop(batches);
        // Two fragments must not have the same time.
        self.time = next_time(self.options.at.map(|at| at + self.fragments.len() as u64), self.time);
        let name = timed_name(self.time, self.time, true)?;
        let writer = FragmentWriter::create(
            self.stage.writer(),
            &name,
            Arc::clone(&self.schema),
            self.schema_name.clone(),
            Extra::default(),
            self.options.key.clone(),
        )?;
        sparse::write_rows(writer, &self.schema, &columns, (self.done, rows), &self.options)?;
        self.done += rows;
        self.fragments.push((self.time, name));
        Ok(())
    }
}

impl TileDbTable {
    /// Writes a single file that commits all fragments together. Returns its key.
    fn put_commits(&self) -> Result<Option<String>> {
        let folder = self.stage.writer();
        let ((first, _), (last, _)) = match self.fragments.as_slice() {
            [] => return Ok(None),
            [(_, only)] => return put_commit(folder, only).map(Some),
            [first, .., last] => (first, last),
        };
        let names: String =
            self.fragments.iter().map(|(_, name)| format!("__commits/{name}.wrt\n")).collect();
        let key = format!("__commits/{}.con", timed_name(*first, *last, true)?);
        folder.put(&key, names.as_bytes())?;
        Ok(Some(key))
    }
}

impl TileDbTable {
    /// Writes a schema with the extended enumerations. Returns its key.
    fn put_enumerations(&self) -> Result<Option<String>> {
        let Some((array, at)) = self.existing.as_ref().filter(|_| !self.extended.is_empty()) else {
            return Ok(None);
        };
        let (folder, key) = (self.stage.writer(), self.options.key.as_ref());
        let mut schema = (*self.schema).clone();
        for &column in &self.extended {
            let Column { name, dtype, .. } = &self.columns[column];
            let attribute = schema.attribute(name).and_then(|(_, own)| own.enumeration.clone());
            let Some(enumeration) = attribute else { continue };
            let stored = array.enumeration(&enumeration)?;
            enumeration::put_extended(folder, &mut schema, &stored, dtype, key)?;
        }
        let name = put_schema(folder, &schema, *at, key)?;
        Ok(Some(super::schema_key(&name)))
    }
}

impl TableSink for TileDbTable {
    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn extend_enumeration(&mut self, column: usize, names: &[String]) -> Result<()> {
        let own =
            self.columns.get_mut(column).ok_or_else(|| Error::invalid(format!("no column {column}")))?;
        if self.existing.is_none() {
            return Err(Error::unsupported("tiledb", "more names in an enumeration that is being written"));
        }
        own.dtype = enumeration::extended(&own.dtype, &own.name, names)?;
        self.extended.insert(column);
        Ok(())
    }

    fn write(&mut self, batch: Batch) -> Result<()> {
        if batch.columns.len() != self.columns.len() {
            let (found, expected) = (batch.columns.len(), self.columns.len());
            return Err(Error::invalid(format!("{found} columns given, the array has {expected}")));
        }
        let before = self.done + self.pending.iter().map(|batch| batch.rows).sum::<usize>();
        for (column, elements) in self.columns.iter().zip(&batch.columns) {
            if elements.len(&column.dtype) != batch.rows {
                return Err(Error::invalid(format!("column {}: not {} elements", column.name, batch.rows)));
            }
            let missing = (0..batch.rows).find(|row| elements.is_missing(*row));
            if let (false, Some(row)) = (column.nullable, missing) {
                let kind = if column.dimension { "dimension" } else { "column" };
                let row = before + row + 1;
                return Err(Error::invalid(format!("row {row} has no value for the {kind} {}", column.name)));
            }
        }
        self.bytes += batch.columns.iter().map(Elements::bytes).sum::<u64>();
        self.pending.push(batch);
        // Sorting and encoding each need about as much memory again.
        if self.bytes > self.memory / 3 { self.flush() } else { Ok(()) }
    }

    fn commit(mut self: Box<Self>) -> Result<()> {
        self.flush()?;
        let commit = self.put_commits()?;
        // Publish the names first: rows without them could not be read.
        let schema = self.put_enumerations()?;
        match (self.stage, commit) {
            (Stage::New(folder), _) => folder.publish(),
            (Stage::Change(_), None) => Ok(()),
            (Stage::Change(change), Some(commit)) => {
                change.publish(&schema.into_iter().chain([commit]).collect::<Vec<_>>())
            }
        }
    }
}

/// The schema of a new sparse array.
fn schema_of(spec: &TableSpec) -> Result<Schema> {
    let rank = spec.columns.iter().take_while(|column| column.dimension).count();
    if rank == 0 {
        return Err(Error::invalid("a sparse array needs dimensions; choose columns with --dimensions"));
    }
    if spec.order == RowOrder::Hilbert && rank >= 16 {
        return Err(Error::invalid("Hilbert order needs fewer than 16 dimensions"));
    }
    let cell_order = match spec.order {
        RowOrder::RowMajor => Order::RowMajor,
        RowOrder::ColumnMajor => Order::ColumnMajor,
        RowOrder::Hilbert => Order::Hilbert,
    };
    let mut dimensions = Vec::new();
    for (axis, column) in spec.columns[..rank].iter().enumerate() {
        let domain = spec.domains.get(axis).and_then(Option::as_ref);
        let extent = spec.extents.get(axis).and_then(Option::as_ref);
        dimensions.push(dimension(column, domain, extent)?);
    }
    let attributes = spec.columns[rank..].iter().map(attribute).collect::<Result<Vec<_>>>()?;
    let mut schema = Schema {
        version: WRITTEN,
        allows_duplicates: spec.duplicates,
        kind: ArrayKind::Sparse,
        tile_order: if cell_order == Order::ColumnMajor { Order::ColumnMajor } else { Order::RowMajor },
        cell_order,
        capacity: spec.capacity.unwrap_or(10_000),
        coords: Pipeline::of([Filter::Zstd(3)]),
        offsets: Pipeline::of([Filter::Zstd(3)]),
        validity: Pipeline::of([Filter::Rle(-1)]),
        dimensions,
        attributes,
        labels: Vec::new(),
        enumerations: Vec::new(),
        current_domain: None,
    };
    if let Some(source) = template::parse(spec.encoded.as_deref()) {
        keep_properties(&mut schema, &source, spec);
    }
    Ok(schema)
}

/// Takes over the properties of the source's schema that the spec does not set.
fn keep_properties(schema: &mut Schema, source: &Schema, spec: &TableSpec) {
    template::keep_shared(schema, source);
    if let Some(capacity) = spec.capacity {
        schema.capacity = capacity;
    }
    if schema.cell_order == source.cell_order {
        schema.tile_order = source.tile_order;
    }
    let rank = schema.dimensions.len();
    for (own, column) in schema.dimensions.iter_mut().zip(&spec.columns) {
        template::keep_dimension(own, source, Some(&column.filters));
    }
    for (own, column) in schema.attributes.iter_mut().zip(&spec.columns[rank..]) {
        template::keep_attribute(own, source, &column.filters);
    }
    let same = |(own, other): (&Dimension, &Dimension)| own.name == other.name && own.domain == other.domain;
    if rank == source.dimensions.len() && schema.dimensions.iter().zip(&source.dimensions).all(same) {
        schema.current_domain.clone_from(&source.current_domain);
    }
}

fn attribute(column: &Column) -> Result<Attribute> {
    let refused = || Error::unsupported("tiledb", format!("column {} of type {}", column.name, column.dtype));
    let (datatype, values) = types::datatype(&column.dtype).ok_or_else(refused)?;
    let mut attribute = Attribute::new(column.name.as_str(), datatype, values);
    attribute.nullable = column.nullable;
    attribute.pipeline = match column.filters.as_slice() {
        [] => Pipeline::of([Filter::Zstd(3)]),
        filters => types::pipeline(filters)?,
    };
    Ok(attribute)
}

fn dimension(column: &Column, domain: Option<&(Bound, Bound)>, extent: Option<&Bound>) -> Result<Dimension> {
    let refused = || {
        Error::invalid(format!("column {}: TileDB has no dimensions of type {}", column.name, column.dtype))
    };
    let pipeline =
        if column.filters.is_empty() { Pipeline::default() } else { types::pipeline(&column.filters)? };
    let name = column.name.clone();
    if matches!(column.dtype, DType::String | DType::Bytes) {
        return Ok(Dimension {
            name,
            datatype: Datatype::StringAscii,
            values: CellValues::Variable,
            pipeline,
            domain: Vec::new(),
            extent: None,
        });
    }
    let datatype = match types::datatype(&column.dtype) {
        Some((datatype, CellValues::Fixed(1))) if !datatype.is_bytes() && datatype != Datatype::Bool => {
            datatype
        }
        _ => return Err(refused()),
    };
    let number = datatype.number();
    let bytes = |bound: &Bound| match bound {
        Bound::Integer(value) if !number.is_float() => Some(integer_bytes(number, *value)),
        Bound::Float(value) if number.size() == 4 && number.is_float() => {
            Some((*value as f32).to_le_bytes().to_vec())
        }
        Bound::Float(value) if number.is_float() => Some(value.to_le_bytes().to_vec()),
        _ => None,
    };
    let ends = match domain {
        Some((low, high)) => bytes(low).zip(bytes(high)),
        // The domain is the whole range of the type, but the library requires the end of the last tile to be a valid
        // value.
        None if number.is_float() => {
            let most = if number.size() == 4 { f64::from(f32::MAX) } else { f64::MAX };
            bytes(&Bound::Float(-most)).zip(bytes(&Bound::Float(most)))
        }
        None => {
            let (least, most) = number.limits();
            let room = match extent {
                Some(Bound::Integer(extent)) => *extent,
                _ => 1,
            };
            // The smallest 64-bit integer means "not a time".
            let least = if datatype.is_time() { least + 1 } else { least };
            bytes(&Bound::Integer(least)).zip(bytes(&Bound::Integer(most - room)))
        }
    };
    let (low, high) = ends.ok_or_else(refused)?;
    let extent = extent.and_then(bytes);
    Ok(Dimension {
        name,
        datatype,
        values: CellValues::Fixed(1),
        pipeline,
        domain: [low, high].concat(),
        extent,
    })
}
