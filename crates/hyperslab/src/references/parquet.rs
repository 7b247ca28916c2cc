//! References in Parquet files, as kerchunk and fsspec store them: for documents too large to be read as a whole.
//!
//! A directory holds `.zmetadata`, with the documents of all groups and arrays and the number of rows per file, and
//! files `refs.0.parq`, `refs.1.parq` and so on for each array. Row `i` of file `k` is chunk `k * record_size + i` of
//! the array's grid, in C order. Its columns are `path`, `offset` and `size`, or `raw` with the bytes themselves. If
//! both `path` and `raw` are null, the chunk was never written.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use hyperslab_core::storage::{StageOptions, StagedFolder};
use hyperslab_core::{
    Batch, Capabilities, Column, Content, DType, Elements, Error, FormatDriver, FormatInfo, Glimpse,
    LocalStorage, OpenContext, Place, Recognition, Result, Storage, Store, StoreForm, Validity,
    element_to_text,
};
use hyperslab_zarr::{Reference, ReferenceTable, open_references};
use serde_json::{Map, Value, json};

use crate::rows::{Rows, plain_column};
use crate::source::{Opened, open_parquet};

/// The number of rows per written file.
const RECORD_SIZE: u64 = 10_000;
/// The maximum number of rows that a file may claim to have.
const MOST_RECORDS: u64 = 1 << 24;

/// The format driver for references in Parquet files.
#[derive(Debug)]
pub struct ParquetReferencesDriver;

static INFO: FormatInfo = FormatInfo {
    forms: &[StoreForm::Directory],
    capabilities: Capabilities {
        several_arrays: true,
        attributes: true,
        fill_values: true,
        ..Capabilities::NONE
    },
    built_on: Some("zarr"),
    ..FormatInfo::new("parquet-references")
};

impl FormatDriver for ParquetReferencesDriver {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn recognise(&self, glimpse: &Glimpse<'_>) -> Result<Recognition> {
        let Some(directory) = glimpse.directory() else { return Ok(Recognition::No) };
        // Not a request for each Zarr store on remote storage.
        for key in ["zarr.json", ".zarray"] {
            if directory.is_remote() && directory.remembers(key) && directory.size(key)?.is_some() {
                return Ok(Recognition::No);
            }
        }
        let Some(text) = directory.read(".zmetadata")? else { return Ok(Recognition::No) };
        let has = |word: &[u8]| text.windows(word.len()).any(|window| window == word);
        Ok(has(b"\"record_size\"").into())
    }

    fn open(&self, content: Content, context: &OpenContext<'_>) -> Result<Arc<dyn Store>> {
        let directory = content.into_directory(&INFO)?;
        let name = Arc::clone(directory.name());
        let table = ParquetTable::open(directory)?;
        let mut context = context.clone();
        // Targets are relative to the folder that contains the directory.
        if let (None, Some(path)) = (&context.beside, context.path) {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            let storage = LocalStorage::new(folder.unwrap_or_else(|| Path::new(".")));
            let storage = if context.mapped { storage } else { storage.unmapped() };
            context.beside = Some(Arc::new(storage.confined()));
        }
        Ok(Arc::new(open_references(name, Arc::new(table), &context)?.named_as(INFO.name)))
    }
}

/// The content of a chunk's row.
#[derive(Debug, Clone)]
enum Row {
    Absent,
    Raw(Bytes),
    Target { url: u32, offset: u64, size: u64 },
}

/// The rows of one file, and the URLs that they refer to.
#[derive(Debug)]
struct Record {
    rows: Vec<Row>,
    urls: Vec<Arc<str>>,
}

/// An array of the store: its number of chunks along each axis.
#[derive(Debug)]
struct Field {
    chunks: Vec<u64>,
}

/// The Parquet files that were read, by array and number; `None` for a file that does not exist.
type Records = HashMap<(String, u64), Option<Arc<Record>>>;

/// References that are read from their files on demand.
#[derive(Debug)]
struct ParquetTable {
    directory: Arc<dyn Storage>,
    record_size: u64,
    /// Documents by key.
    documents: BTreeMap<String, Value>,
    /// Arrays by path.
    fields: BTreeMap<String, Field>,
    records: Mutex<Records>,
}

impl ParquetTable {
    fn open(directory: Arc<dyn Storage>) -> Result<Self> {
        let name = Arc::clone(directory.name());
        let place = Place::new(&name, ".zmetadata", 0);
        let text =
            directory.read(".zmetadata")?.ok_or_else(|| Error::not_found(Arc::clone(&name), ".zmetadata"))?;
        let value: Value = serde_json::from_slice(&text).map_err(|error| place.corrupt(error.to_string()))?;
        let record_size = value.get("record_size").and_then(Value::as_u64).unwrap_or(0);
        if !(1..=MOST_RECORDS).contains(&record_size) {
            return Err(place.corrupt(format!("record_size {record_size}")));
        }
        let documents = value.get("metadata").and_then(Value::as_object);
        let documents = documents.ok_or_else(|| place.corrupt("no metadata"))?;
        let mut fields = BTreeMap::new();
        for (key, document) in documents {
            if let Some(path) = key.strip_suffix(".zarray") {
                let field =
                    Field::parse(document).ok_or_else(|| place.corrupt(format!("{key}: {document}")))?;
                fields.insert(path.trim_end_matches('/').to_owned(), field);
            } else if key.ends_with("zarr.json") {
                return Err(place.unsupported(format!("Parquet references to Zarr version 3 ({key})")));
            }
        }
        let documents = documents.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        Ok(Self { directory, record_size, documents, fields, records: Mutex::default() })
    }

    /// The array of a chunk's key, and the number of the chunk.
    fn chunk(&self, key: &str) -> Option<(&str, u64)> {
        let (path, name) = key.rsplit_once('/').unwrap_or(("", key));
        let (path, field) = self.fields.get_key_value(path)?;
        Some((path, field.number(name)?))
    }

    /// A file with rows of an array; `None` if it does not exist.
    fn record(&self, field: &str, number: u64) -> Result<Option<Arc<Record>>> {
        let held = || self.records.lock().unwrap_or_else(PoisonError::into_inner);
        let known = (field.to_owned(), number);
        if let Some(found) = held().get(&known) {
            return Ok(found.clone());
        }
        let key = if field.is_empty() {
            format!("refs.{number}.parq")
        } else {
            format!("{field}/refs.{number}.parq")
        };
        let found = match self.directory.open(&key)? {
            Some(blob) => Some(Arc::new(Record::read(open_parquet(blob)?, self.record_size, &key)?)),
            None => None,
        };
        held().insert(known, found.clone());
        Ok(found)
    }
}

impl Field {
    fn parse(document: &Value) -> Option<Self> {
        let list = |name: &str| -> Option<Vec<u64>> {
            document.get(name)?.as_array()?.iter().map(Value::as_u64).collect()
        };
        let (shape, chunks) = (list("shape")?, list("chunks")?);
        let per_axis = |(extent, chunk): (&u64, &u64)| (*chunk > 0).then(|| extent.div_ceil(*chunk));
        let counts = shape.iter().zip(&chunks).map(per_axis).collect::<Option<Vec<u64>>>()?;
        (shape.len() == chunks.len()).then_some(Self { chunks: counts })
    }

    /// The name of a chunk.
    fn name(&self, mut number: u64) -> String {
        let mut parts: Vec<String> = Vec::with_capacity(self.chunks.len());
        for chunks in self.chunks.iter().rev() {
            parts.push((number % chunks.max(&1)).to_string());
            number /= chunks.max(&1);
        }
        parts.reverse();
        if parts.is_empty() { "0".to_owned() } else { parts.join(".") }
    }
}

impl Record {
    fn read(opened: Opened, record_size: u64, key: &str) -> Result<Self> {
        let place = |name: &str| opened.columns.iter().position(|column| column.name == name);
        let wanted: Vec<(&str, usize)> = ["path", "offset", "size", "raw"]
            .into_iter()
            .filter_map(|name| Some((name, place(name)?)))
            .collect();
        let mut numbers: Vec<usize> = wanted.iter().map(|(_, column)| *column).collect();
        numbers.sort_unstable();
        let mut own = Self { rows: Vec::new(), urls: Vec::new() };
        let mut known: HashMap<String, u32> = HashMap::new();
        for batch in opened.source.batches(&numbers)? {
            let batch = batch?;
            if own.rows.len() as u64 + batch.rows as u64 > record_size {
                return Err(Error::invalid(format!("{key}: more than {record_size} rows")));
            }
            let column = |name: &str| -> Option<(&DType, &Elements)> {
                let (_, column) = wanted.iter().find(|(own, _)| *own == name)?;
                let at = numbers.iter().position(|number| number == column)?;
                Some((&opened.columns[*column].dtype, &batch.columns[at]))
            };
            let number = |name: &str, row: usize| -> Result<u64> {
                let Some((dtype, elements)) = column(name).filter(|(_, own)| !own.is_missing(row)) else {
                    return Ok(0);
                };
                // A column with nulls may have been converted to floats.
                let text = element_to_text(dtype, elements, row);
                let whole = text.parse::<u64>().ok().or_else(|| {
                    let number: f64 = text.parse().ok()?;
                    (number >= 0.0 && number.fract() == 0.0 && number < 9e15).then_some(number as u64)
                });
                whole.ok_or_else(|| Error::invalid(format!("{key}: {name} {text} in row {row}")))
            };
            for row in 0..batch.rows {
                let raw = column("raw").filter(|(_, elements)| !elements.is_missing(row));
                if let Some(bytes) = raw.and_then(|(_, elements)| elements.variable_at(row)) {
                    own.rows.push(Row::Raw(Bytes::copy_from_slice(bytes)));
                    continue;
                }
                let Some((dtype, elements)) = column("path").filter(|(_, own)| !own.is_missing(row)) else {
                    own.rows.push(Row::Absent);
                    continue;
                };
                let url = element_to_text(dtype, elements, row);
                let next = own.urls.len() as u32;
                let url = *known.entry(url).or_insert_with_key(|url| {
                    own.urls.push(url.as_str().into());
                    next
                });
                own.rows.push(Row::Target {
                    url,
                    offset: number("offset", row)?,
                    size: number("size", row)?,
                });
            }
        }
        Ok(own)
    }

    fn get(&self, row: u64) -> Option<Reference> {
        match self.rows.get(usize::try_from(row).ok()?)? {
            Row::Absent => None,
            Row::Raw(bytes) => Some(Reference::Inline(bytes.clone())),
            Row::Target { url, offset, size } => Some(Reference::Target {
                url: Arc::clone(self.urls.get(*url as usize)?),
                range: (*offset != 0 || *size != 0).then_some((*offset, *size)),
            }),
        }
    }
}

impl ReferenceTable for ParquetTable {
    fn get(&self, key: &str) -> Result<Option<Reference>> {
        if let Some(document) = self.documents.get(key) {
            return Ok(Some(Reference::Inline(document.to_string().into())));
        }
        let Some((field, chunk)) = self.chunk(key) else { return Ok(None) };
        let record = self.record(field, chunk / self.record_size)?;
        Ok(record.and_then(|record| record.get(chunk % self.record_size)))
    }

    fn list(&self, key: &str) -> Result<Vec<(String, bool)>> {
        let prefix = if key.is_empty() { String::new() } else { format!("{key}/") };
        let mut names: BTreeMap<String, bool> = BTreeMap::new();
        for own in self.documents.range(prefix.clone()..).map(|(own, _)| own) {
            let Some(rest) = own.strip_prefix(&prefix) else { break };
            let (name, is_folder) = rest.split_once('/').map_or((rest, false), |(folder, _)| (folder, true));
            *names.entry(name.to_owned()).or_default() |= is_folder;
        }
        if let Some(field) = self.fields.get(key) {
            let count = field.chunks.iter().try_fold(1_u64, |all, chunks| all.checked_mul(*chunks));
            let files = self.files(key)?;
            for file in
                files.into_iter().filter(|file| count.is_none_or(|count| file * self.record_size < count))
            {
                let Some(record) = self.record(key, file)? else { continue };
                for (row, _) in record.rows.iter().enumerate().filter(|(_, row)| !matches!(row, Row::Absent))
                {
                    names.insert(field.name(file * self.record_size + row as u64), false);
                }
            }
        }
        Ok(names.into_iter().collect())
    }

    fn is_remote(&self) -> Result<bool> {
        // Only check the files of one array: checking all of them would be as much work as reading the store.
        for field in self.fields.keys() {
            if let Some(record) = self.record(field, 0)?
                && !record.urls.is_empty()
            {
                let remote =
                    |url: &Arc<str>| Reference::Target { url: Arc::clone(url), range: None }.is_remote();
                return Ok(record.urls.iter().any(remote));
            }
        }
        Ok(false)
    }
}

impl ParquetTable {
    /// The numbers of an array's files.
    fn files(&self, field: &str) -> Result<BTreeSet<u64>> {
        let number = |name: &str| name.strip_prefix("refs.")?.strip_suffix(".parq")?.parse().ok();
        Ok(self.directory.list(field)?.iter().filter_map(|entry| number(&entry.name)).collect())
    }
}

/// Writes references to a directory of Parquet files, which appears complete or not at all.
pub(super) fn write(references: &BTreeMap<String, Reference>, target: &Path, replace: bool) -> Result<()> {
    let staged = StagedFolder::create(target, StageOptions::default().with_replace(replace))?;
    let mut documents = Map::new();
    let mut fields = BTreeMap::new();
    for (key, reference) in references {
        let name = key.rsplit('/').next().unwrap_or_default();
        let Reference::Inline(bytes) = reference else { continue };
        if !name.starts_with(".z") {
            continue;
        }
        let document: Value = serde_json::from_slice(bytes)
            .map_err(|error| Error::invalid(format!("{key} is not a JSON document: {error}")))?;
        if let (Some(path), Some(field)) = (key.strip_suffix(".zarray"), Field::parse(&document)) {
            fields.insert(path.trim_end_matches('/').to_owned(), field);
        }
        documents.insert(key.clone(), document);
    }
    let metadata = json!({ "metadata": documents, "record_size": RECORD_SIZE });
    staged.writer().put(".zmetadata", metadata.to_string().as_bytes())?;
    for (path, field) in &fields {
        write_field(references, path, field, &staged)?;
    }
    staged.publish()
}

/// Writes the files of one array. Files without rows are left out.
fn write_field(
    references: &BTreeMap<String, Reference>,
    path: &str,
    field: &Field,
    staged: &StagedFolder,
) -> Result<()> {
    let prefix = if path.is_empty() { String::new() } else { format!("{path}/") };
    let count = field.chunks.iter().try_fold(1_u64, |all, chunks| all.checked_mul(*chunks));
    let count = count.ok_or_else(|| Error::invalid(format!("{path}: more chunks than can be counted")))?;
    let mut files: BTreeMap<u64, Vec<Option<&Reference>>> = BTreeMap::new();
    let own = references.range(prefix.clone()..).take_while(|(key, _)| key.starts_with(&prefix));
    for (key, reference) in own {
        let name = &key[prefix.len()..];
        let Some(number) = field.number(name) else { continue };
        let rows = files.entry(number / RECORD_SIZE).or_insert_with(|| vec![None; RECORD_SIZE as usize]);
        rows[(number % RECORD_SIZE) as usize] = Some(reference);
    }
    for (file, rows) in files.into_iter().filter(|(file, _)| file * RECORD_SIZE < count.max(1)) {
        let mut out = Vec::new();
        crate::arrow::write_parquet(reference_rows(&rows)?, &mut out)?;
        staged.writer().put(&format!("{prefix}refs.{file}.parq"), &out)?;
    }
    Ok(())
}

impl Field {
    /// The number of a chunk, from its name.
    fn number(&self, name: &str) -> Option<u64> {
        let mut parts = name.split('.');
        if self.chunks.is_empty() {
            return (name == "0").then_some(0);
        }
        let mut number = 0_u64;
        for chunks in &self.chunks {
            let at: u64 = parts.next()?.parse().ok()?;
            number = number.checked_mul(*chunks)?.checked_add(at).filter(|_| at < *chunks)?;
        }
        parts.next().is_none().then_some(number)
    }
}

/// Rows as a table with kerchunk's columns.
fn reference_rows<'a>(rows: &[Option<&Reference>]) -> Result<Rows<'a>> {
    let parts = |row: &Option<&Reference>| match row {
        Some(Reference::Target { url, range }) => (Some(url.to_string()), range.unwrap_or((0, 0)), None),
        Some(Reference::Inline(bytes)) => (None, (0, 0), Some(bytes.clone())),
        None => (None, (0, 0), None),
    };
    let all: Vec<_> = rows.iter().map(parts).collect();
    let signed =
        |value: u64| i64::try_from(value).map_err(|_| Error::invalid("an offset of more than 63 bits"));
    let numbers = |pick: fn(&(u64, u64)) -> u64| -> Result<Elements> {
        let mut bytes = Vec::with_capacity(all.len() * 8);
        for (_, range, _) in &all {
            bytes.extend(signed(pick(range))?.to_ne_bytes());
        }
        Ok(Elements::fixed(bytes))
    };
    let paths = Elements::variable(all.iter().map(|(path, ..)| path.as_deref().unwrap_or_default()))
        .with_validity(Some(Validity::from_flags(all.iter().map(|(path, ..)| path.is_some()))));
    let raw = Elements::variable(all.iter().map(|(.., raw)| raw.as_deref().unwrap_or_default()))
        .with_validity(Some(Validity::from_flags(all.iter().map(|(.., raw)| raw.is_some()))));
    let columns: Vec<Column> = vec![
        plain_column("path", DType::String, true),
        plain_column("offset", DType::Int64, false),
        plain_column("size", DType::Int64, false),
        plain_column("raw", DType::Bytes, true),
    ];
    let columns_of = vec![paths, numbers(|range| range.0)?, numbers(|range| range.1)?, raw];
    Ok(Rows::once(columns, Batch { rows: rows.len(), columns: columns_of }))
}
