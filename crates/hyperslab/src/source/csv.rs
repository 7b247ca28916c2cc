//! Comma- or tab-separated text: a header line, then one line per row. If the first line consists of numbers, there is no header, and
//! the columns are called `column_0`, `column_1` and so on.
//!
//! A column's type is one that fits all its values, so the file is read once before its rows are. An empty field is a missing
//! value.

mod quotes;

use std::collections::HashSet;
use std::sync::Arc;

use ::csv::{ReaderBuilder, StringRecord};
use hyperslab_core::{
    Batch, Batches, Blob, Column, DType, Elements, Error, Glimpse, Result, TimeUnit, Validity, date_tick,
};

use super::reader::BlobReader;
use super::{Opened, RowSource};
use crate::rows::plain_column;

/// Rows per batch.
const BATCH_ROWS: usize = 64 << 10;

/// Returns true if the file has the extension of such a file, and contains only text.
pub(super) fn is_named_so(glimpse: &Glimpse<'_>) -> bool {
    let Some(blob) = glimpse.blob() else { return false };
    ending(blob.name()).is_some() && !glimpse.head().contains(&0)
}

/// The character between fields.
fn ending(name: &str) -> Option<u8> {
    let name = name.split(['?', '#']).next().unwrap_or(name).to_ascii_lowercase();
    match name.rsplit('.').next() {
        Some("csv") => Some(b','),
        Some("tsv" | "tab") => Some(b'\t'),
        _ => None,
    }
}

#[derive(Debug)]
struct CsvRows {
    blob: Arc<dyn Blob>,
    delimiter: u8,
    header: bool,
    columns: Vec<Column>,
}

pub(super) fn open(blob: Arc<dyn Blob>) -> Result<Opened> {
    let delimiter = ending(blob.name()).unwrap_or(b',');
    let mut lines = reader(&blob, delimiter, true)?;
    let failed = |error| failure(blob.name(), error);
    let mut names: Vec<String> =
        lines.headers().map_err(failed)?.iter().map(|name| name.trim().to_owned()).collect();
    let header = names.is_empty() || names.iter().any(|name| name.parse::<f64>().is_err());
    if !header {
        names = (0..names.len()).map(|column| format!("column_{column}")).collect();
        lines = reader(&blob, delimiter, false)?;
    }
    let mut seen = HashSet::with_capacity(names.len());
    if let Some((at, name)) = names.iter().enumerate().find(|(_, name)| !seen.insert(name.as_str())) {
        return Err(Error::invalid(format!(
            "{}: column {} has the name {name:?} of an earlier one",
            blob.name(),
            at + 1
        )));
    }
    let mut guesses = vec![Guess::default(); names.len()];
    let (mut record, mut rows, mut last) = (StringRecord::new(), 0, (0, 1));
    while lines.read_record(&mut record).map_err(failed)? {
        last = record.position().map_or(last, |position| (position.byte(), position.line()));
        for (guess, field) in guesses.iter_mut().zip(record.iter()) {
            guess.see(field);
        }
        rows += 1;
    }
    // A quotation mark that is never closed makes everything after it part of the last row.
    if let Some(line) = quotes::unclosed(BlobReader::new(Arc::clone(&blob), last.0)?, last.1, delimiter)
        .map_err(|source| Error::io(blob.name().to_string(), source))?
    {
        return Err(Error::invalid(format!(
            "{}: the quotation mark in line {line} is never closed",
            blob.name()
        )));
    }
    let columns = names.into_iter().zip(&guesses);
    let columns: Vec<Column> =
        columns.map(|(name, guess)| plain_column(name, guess.dtype(), guess.missing)).collect();
    let source = Box::new(CsvRows { blob, delimiter, header, columns: columns.clone() });
    Ok(Opened::new(columns, rows, source))
}

fn reader(blob: &Arc<dyn Blob>, delimiter: u8, header: bool) -> Result<::csv::Reader<BlobReader>> {
    let blob = BlobReader::new(Arc::clone(blob), 0)?;
    // A row with another number of fields than the first is an error.
    Ok(ReaderBuilder::new().delimiter(delimiter).has_headers(header).from_reader(blob))
}

fn failure(name: &str, error: ::csv::Error) -> Error {
    let line = error.position().map(|position| position.line());
    match error.into_kind() {
        ::csv::ErrorKind::Io(source) => Error::io(name.to_owned(), source),
        ::csv::ErrorKind::UnequalLengths { pos, expected_len, len } => {
            let line = pos.map_or(0, |pos| pos.line());
            let fields = if len == 1 { "field" } else { "fields" };
            Error::invalid(format!(
                "{name}: line {line} has {len} {fields}, but the header has {expected_len}"
            ))
        }
        ::csv::ErrorKind::Utf8 { .. } => {
            Error::invalid(format!("{name}: line {} is not UTF-8 text", line.unwrap_or(0)))
        }
        other => Error::invalid(format!("{name}: {other:?}")),
    }
}

/// The types that fit all values of a column.
#[derive(Debug, Clone, Copy)]
struct Guess {
    some: bool,
    missing: bool,
    signed: bool,
    unsigned: bool,
    float: bool,
    boolean: bool,
    day: bool,
    time: bool,
}

impl Default for Guess {
    fn default() -> Self {
        Self {
            some: false,
            missing: false,
            signed: true,
            unsigned: true,
            float: true,
            boolean: true,
            day: true,
            time: true,
        }
    }
}

impl Guess {
    fn see(&mut self, field: &str) {
        let field = field.trim();
        if field.is_empty() {
            self.missing = true;
            return;
        }
        self.some = true;
        self.signed = self.signed && field.parse::<i64>().is_ok();
        self.unsigned = self.unsigned && field.parse::<u64>().is_ok();
        self.float = self.float && field.parse::<f64>().is_ok();
        self.boolean = self.boolean && boolean(field).is_some();
        self.day = self.day && is_date(field) && field.len() == 10 && ticks(field, TimeUnit::Day).is_some();
        self.time = self.time && is_date(field) && ticks(field, TimeUnit::Microsecond).is_some();
    }

    const fn dtype(self) -> DType {
        match self {
            Self { some: false, .. } => DType::String,
            Self { signed: true, .. } => DType::Int64,
            Self { unsigned: true, .. } => DType::UInt64,
            Self { float: true, .. } => DType::Float64,
            Self { boolean: true, .. } => DType::Bool,
            Self { day: true, .. } => DType::DateTime(TimeUnit::Day),
            Self { time: true, .. } => DType::DateTime(TimeUnit::Microsecond),
            _ => DType::String,
        }
    }
}

fn boolean(field: &str) -> Option<bool> {
    match field {
        "true" | "True" | "TRUE" => Some(true),
        "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

/// `2020-01-31`, optionally with a time.
fn is_date(field: &str) -> bool {
    let bytes = field.as_bytes();
    bytes.len() >= 10 && bytes[4] == b'-' && bytes[7] == b'-' && bytes[..4].iter().all(u8::is_ascii_digit)
}

fn ticks(field: &str, unit: TimeUnit) -> Option<i64> {
    let label = field.replacen(' ', "T", 1);
    date_tick(&label, unit, false).and_then(|tick| i64::try_from(tick).ok())
}

impl RowSource for CsvRows {
    fn batches(&self, columns: &[usize]) -> Result<Batches<'_>> {
        let mut lines = reader(&self.blob, self.delimiter, self.header)?;
        let columns = columns.to_vec();
        let mut done = false;
        Ok(Box::new(std::iter::from_fn(move || {
            if done {
                return None;
            }
            let batch = self.batch(&mut lines, &columns);
            done = !matches!(&batch, Ok(batch) if batch.rows == BATCH_ROWS);
            (!matches!(&batch, Ok(batch) if batch.rows == 0)).then_some(batch)
        })))
    }
}

impl CsvRows {
    fn batch(&self, lines: &mut ::csv::Reader<BlobReader>, columns: &[usize]) -> Result<Batch> {
        let mut parts: Vec<BatchColumn> = columns.iter().map(|_| BatchColumn::default()).collect();
        let (mut record, mut rows) = (StringRecord::new(), 0);
        while rows < BATCH_ROWS && lines.read_record(&mut record).map_err(|e| failure(self.blob.name(), e))? {
            for (part, &column) in parts.iter_mut().zip(columns) {
                let field = record.get(column).unwrap_or_default();
                part.push(&self.columns[column].dtype, field).ok_or_else(|| {
                    let line = record.position().map_or(0, ::csv::Position::line);
                    let name = self.blob.name();
                    Error::invalid(format!(
                        "{name}: line {line}: {field:?} was not there before; the file changed"
                    ))
                })?;
            }
            rows += 1;
        }
        let finished = parts.into_iter().zip(columns);
        let columns = finished.map(|(part, &column)| part.finish(&self.columns[column])).collect();
        Ok(Batch { rows, columns })
    }
}

/// A column of a batch.
#[derive(Debug, Default)]
struct BatchColumn {
    bytes: Vec<u8>,
    offsets: Vec<u64>,
    there: Vec<bool>,
}

impl BatchColumn {
    fn push(&mut self, dtype: &DType, field: &str) -> Option<()> {
        let value = field.trim();
        self.there.push(!value.is_empty());
        if *dtype == DType::String {
            self.bytes.extend_from_slice(field.as_bytes());
            self.offsets.push(self.bytes.len() as u64);
            return Some(());
        }
        if value.is_empty() {
            self.bytes.resize(self.bytes.len() + dtype.size()?, 0);
            return Some(());
        }
        match dtype {
            DType::Int64 => self.bytes.extend(value.parse::<i64>().ok()?.to_ne_bytes()),
            DType::UInt64 => self.bytes.extend(value.parse::<u64>().ok()?.to_ne_bytes()),
            DType::Float64 => self.bytes.extend(value.parse::<f64>().ok()?.to_ne_bytes()),
            DType::Bool => self.bytes.push(u8::from(boolean(value)?)),
            DType::DateTime(unit) => self.bytes.extend(ticks(value, *unit)?.to_ne_bytes()),
            _ => return None,
        }
        Some(())
    }

    fn finish(self, column: &Column) -> Elements {
        let validity = column.nullable.then(|| Validity::from_flags(self.there.iter().copied()));
        let elements = if column.dtype == DType::String {
            let offsets = std::iter::once(0).chain(self.offsets).collect();
            Elements {
                data: hyperslab_core::Data::Variable { offsets, bytes: self.bytes.into() },
                validity: None,
            }
        } else {
            Elements::fixed(self.bytes)
        };
        elements.with_validity(validity)
    }
}

#[cfg(test)]
mod tests;
