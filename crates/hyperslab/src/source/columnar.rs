//! Parquet and Arrow files, and Arrow's record batches in memory.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, SchemaRef};
use bytes::Bytes;
use hyperslab_core::{Attribute, Attributes, Batch, Batches, Blob, Column, DType, EnumType, Error, Result};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::reader::{ChunkReader, Length};

use super::from_arrow::{dtype_of, elements, names};
use super::ipc::ArrowFile;
use super::reader::BlobReader;
use super::{Opened, RowSource};
use crate::rows::plain_column;

/// Rows per batch.
const BATCH_ROWS: usize = 64 << 10;

/// Rows whose columns are Arrow arrays.
#[derive(Debug)]
struct ArrowRows {
    name: Arc<str>,
    origin: Origin,
    columns: Vec<Column>,
    /// For each enumeration, the codes of its names.
    codes: Vec<HashMap<String, usize>>,
}

#[derive(Debug)]
enum Origin {
    Parquet(Arc<dyn Blob>),
    Arrow(Arc<dyn Blob>),
    Memory(Vec<RecordBatch>),
}

type RecordBatches<'a> = Box<dyn Iterator<Item = Result<RecordBatch>> + Send + 'a>;

pub(crate) fn open_parquet(blob: Arc<dyn Blob>) -> Result<Opened> {
    let builder = parquet_builder(&blob)?;
    let rows = u64::try_from(builder.metadata().file_metadata().num_rows()).unwrap_or(0);
    let schema = Arc::clone(builder.schema());
    opened(Arc::clone(blob.name()), Origin::Parquet(blob), &schema, Some(rows))
}

pub(super) fn open_arrow(blob: Arc<dyn Blob>) -> Result<Opened> {
    let schema = ArrowFile::open(&blob, None)?.schema();
    opened(Arc::clone(blob.name()), Origin::Arrow(blob), &schema, None)
}

pub(super) fn open_batches(name: &Arc<str>, schema: &SchemaRef, batches: Vec<RecordBatch>) -> Result<Opened> {
    let rows = batches.iter().map(|batch| batch.num_rows() as u64).sum();
    opened(Arc::clone(name), Origin::Memory(batches), schema, Some(rows))
}

fn opened(name: Arc<str>, origin: Origin, schema: &SchemaRef, rows: Option<u64>) -> Result<Opened> {
    let mut columns = Vec::new();
    let mut enumerations = Vec::new();
    for (at, field) in schema.fields().iter().enumerate() {
        let dtype = dtype_of(field).ok_or_else(|| {
            let what = format!("column {} of Arrow's type {}", field.name(), field.data_type());
            Error::unsupported(Arc::clone(&name), what)
        })?;
        if matches!(field.data_type(), DataType::Dictionary(..)) && dtype == DType::String {
            enumerations.push(at);
        }
        columns.push(plain_column(field.name().as_str(), dtype, field.is_nullable()));
    }
    let codes = vec![HashMap::new(); columns.len()];
    let mut source = ArrowRows { name, origin, columns, codes };
    // Dictionaries may differ between the parts of a file, so their names are collected first.
    let mut counted = 0;
    if !enumerations.is_empty() || rows.is_none() {
        let mut codes = std::mem::take(&mut source.codes);
        for &column in &enumerations {
            codes[column] = described_names(schema.field(column));
        }
        for batch in source.record_batches(&enumerations)? {
            let batch = batch?;
            counted += batch.num_rows() as u64;
            for (&column, array) in enumerations.iter().zip(batch.columns()) {
                for name in names(array)? {
                    let next = codes[column].len();
                    codes[column].entry(name).or_insert(next);
                }
            }
        }
        for &column in &enumerations {
            let field = schema.field(column);
            let ordered =
                field.dict_is_ordered() == Some(true) || field.metadata().contains_key(crate::arrow::ORDERED);
            source.columns[column].dtype = enumeration(&codes[column], ordered);
        }
        source.codes = codes;
    }
    Ok(Opened {
        columns: source.columns.clone(),
        rows: rows.unwrap_or(counted),
        source: Box::new(source),
        attributes: attributes_of(schema),
    })
}

/// The metadata that people gave the table, and the time zones of its columns, which hold UTC.
fn attributes_of(schema: &SchemaRef) -> Attributes {
    let mut attributes = Attributes::new();
    let mut entries: Vec<_> = schema.metadata().iter().collect();
    entries.sort_unstable();
    // These repeat the schema.
    let own = |name: &str| matches!(name, "pandas" | "ARROW:schema");
    for (name, text) in entries.into_iter().filter(|(name, _)| !own(name)) {
        attributes.set(name, text.as_str());
    }
    let zone = |field: &Arc<Field>| match field.data_type() {
        DataType::Timestamp(_, Some(zone)) => Some((field.name().clone(), serde_json::json!(&**zone))),
        _ => None,
    };
    let zones: serde_json::Map<_, _> = schema.fields().iter().filter_map(zone).collect();
    if !zones.is_empty() {
        attributes.set("time_zones", Attribute::Json(zones.into()));
    }
    attributes
}

/// The names that the writer lists beside the rows, which need not use all of them.
fn described_names(field: &Field) -> HashMap<String, usize> {
    let text = field.metadata().get(crate::arrow::NAMES);
    let names: HashMap<String, usize> =
        text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let mut codes: Vec<usize> = names.values().copied().collect();
    codes.sort_unstable();
    if codes.into_iter().eq(0..names.len()) { names } else { HashMap::new() }
}

fn enumeration(codes: &HashMap<String, usize>, ordered: bool) -> DType {
    let mut members: Vec<(String, i128)> =
        codes.iter().map(|(name, code)| (name.clone(), *code as i128)).collect();
    members.sort_by_key(|(_, code)| *code);
    let base = match members.len() {
        0..=127 => DType::Int8,
        128..=32_767 => DType::Int16,
        _ => DType::Int32,
    };
    EnumType::new(base, members).with_ordered(ordered).into()
}

impl ArrowRows {
    fn failed(&self, problem: impl std::fmt::Display) -> Error {
        failed(&self.name, problem)
    }

    fn record_batches(&self, columns: &[usize]) -> Result<RecordBatches<'_>> {
        match &self.origin {
            Origin::Parquet(blob) => {
                let builder = parquet_builder(blob)?;
                let mask = ProjectionMask::roots(builder.parquet_schema(), columns.iter().copied());
                let reader = builder.with_projection(mask).with_batch_size(BATCH_ROWS).build();
                let reader = reader.map_err(|error| self.failed(error))?;
                Ok(Box::new(reader.map(|batch| batch.map_err(|error| self.failed(error)))))
            }
            Origin::Arrow(blob) => Ok(Box::new(ArrowFile::open(blob, Some(columns.to_vec()))?.batches())),
            Origin::Memory(batches) => {
                let columns = columns.to_vec();
                let part =
                    move |batch: &RecordBatch| batch.project(&columns).map_err(|error| self.failed(error));
                Ok(Box::new(batches.iter().map(part)))
            }
        }
    }
}

fn failed(name: &str, problem: impl std::fmt::Display) -> Error {
    Error::invalid(format!("{name}: {problem}"))
}

fn parquet_builder(blob: &Arc<dyn Blob>) -> Result<ParquetRecordBatchReaderBuilder<Chunks>> {
    let chunks = Chunks { blob: Arc::clone(blob), length: blob.len()? };
    ParquetRecordBatchReaderBuilder::try_new(chunks).map_err(|error| failed(blob.name(), error))
}

impl RowSource for ArrowRows {
    fn batches(&self, columns: &[usize]) -> Result<Batches<'_>> {
        let columns = columns.to_vec();
        let batches = self.record_batches(&columns)?;
        Ok(Box::new(batches.map(move |batch| {
            let batch = batch?;
            let parts = columns.iter().zip(batch.columns());
            let parts = parts.map(|(&column, array)| {
                let own = &self.columns[column];
                elements(&own.dtype, array, &self.codes[column])
                    .map_err(|error| self.failed(format!("column {}: {error}", own.name)))
            });
            Ok(Batch { rows: batch.num_rows(), columns: parts.collect::<Result<_>>()? })
        })))
    }
}

/// A blob in the form that the Parquet reader requires.
#[derive(Debug)]
struct Chunks {
    blob: Arc<dyn Blob>,
    length: u64,
}

impl Length for Chunks {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for Chunks {
    type T = BlobReader;

    fn get_read(&self, start: u64) -> parquet::errors::Result<BlobReader> {
        BlobReader::new(Arc::clone(&self.blob), start).map_err(|error| external(error.to_string()))
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        self.blob.read_at(start, length as u64).map_err(|error| external(error.to_string()))
    }
}

fn external(problem: String) -> parquet::errors::ParquetError {
    parquet::errors::ParquetError::General(problem)
}
