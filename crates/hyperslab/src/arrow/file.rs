//! Rows as Arrow (IPC) and Parquet files.

use std::io::Write;

use arrow_ipc::writer::FileWriter;
use arrow_schema::ArrowError;
use hyperslab_core::{Error, Result};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use super::fields::ArrowTarget;
use super::{record_batch_in, schema_in};
use crate::rows::Rows;

/// A row group is closed at this size, so that memory stays bounded whatever the table's size.
const ROW_GROUP_BYTES: usize = 64 << 20;

/// Writes an Arrow file: one batch after another, uncompressed so that the file can be mapped.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) for elements that Arrow cannot hold; [`Io`](Error::Io) if the system reports an error; otherwise
/// any error from a batch.
pub fn write_arrow(rows: Rows<'_>, out: &mut impl Write) -> Result<()> {
    let schema = schema_in(&rows.columns, ArrowTarget::ARROW);
    let mut writer = FileWriter::try_new(out, &schema).map_err(arrow_failed)?;
    for batch in rows.batches {
        let batch = record_batch_in(&rows.columns, batch?, &schema, ArrowTarget::ARROW)?;
        writer.write(&batch).map_err(arrow_failed)?;
    }
    writer.finish().map_err(arrow_failed)
}

/// Writes a Parquet file, compressed with zstd.
///
/// # Errors
///
/// As [`write_arrow`].
pub fn write_parquet(rows: Rows<'_>, out: &mut (impl Write + Send)) -> Result<()> {
    let schema = schema_in(&rows.columns, ArrowTarget::PARQUET);
    let level = ZstdLevel::try_new(3).map_err(parquet_failed)?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(level))
        .set_created_by(concat!("hyperslab ", env!("CARGO_PKG_VERSION")).to_owned())
        .build();
    let mut writer = ArrowWriter::try_new(out, std::sync::Arc::clone(&schema), Some(properties))
        .map_err(parquet_failed)?;
    for batch in rows.batches {
        let batch = record_batch_in(&rows.columns, batch?, &schema, ArrowTarget::PARQUET)?;
        writer.write(&batch).map_err(parquet_failed)?;
        if writer.in_progress_size() > ROW_GROUP_BYTES {
            writer.flush().map_err(parquet_failed)?;
        }
    }
    writer.close().map(drop).map_err(parquet_failed)
}

fn arrow_failed(error: ArrowError) -> Error {
    match error {
        ArrowError::IoError(_, source) => Error::io("output", source),
        other => Error::invalid(format!("cannot write Arrow: {other}")),
    }
}

fn parquet_failed(error: ParquetError) -> Error {
    match error {
        ParquetError::External(source) if source.is::<std::io::Error>() => match source.downcast() {
            Ok(source) => Error::io("output", *source),
            Err(other) => Error::invalid(format!("cannot write Parquet: {other}")),
        },
        other => Error::invalid(format!("cannot write Parquet: {other}")),
    }
}
