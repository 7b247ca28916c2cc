//! The TileDB format driver.

use std::path::Path;
use std::sync::Arc;

use hyperslab_core::storage::StagedChange;
use hyperslab_core::{
    Capabilities, Content, CreateOptions, DType, DamagedStore, FieldChange, Fix, FormatDriver, FormatInfo,
    Glimpse, OpenContext, Recognition, Repairs, Result, RowFilter, Sink, Storage, Store, StoreForm,
    TableSink, TableSpec, Variant,
};

use crate::sparse::damaged_fragments;
use crate::{ConsolidateOptions, Key, OpenOptions, TimeWindow, WriteOptions};

/// The driver for TileDB arrays and groups.
#[derive(Debug)]
pub struct TileDbDriver;

static INFO: FormatInfo = FormatInfo {
    extensions: &["tiledb", "tdb"],
    forms: &[StoreForm::Directory],
    capabilities: Capabilities {
        create: true,
        append: true,
        grow: true,
        several_arrays: true,
        tables: true,
        nullable: true,
        attributes: true,
        fragments: true,
        field_arrays: true,
        reserved_names: true,
        fill_values: true,
        domains: true,
        no_scalars: true,
        ..Capabilities::NONE
    },
    filters: &[
        "gzip",
        "deflate",
        "zlib",
        "zstd",
        "lz4",
        "bzip2",
        "bz2",
        "rle",
        "double_delta",
        "delta",
        "bit_width_reduction",
        "positive_delta",
        "shuffle",
        "byteshuffle",
        "bitshuffle",
        "checksum_md5",
        "checksum_sha256",
        "fletcher32",
        "crc32",
        "crc32c",
        "dictionary",
        "webp",
        "xor",
        "noop",
    ],
    visible_last: &["__commits", "__schema", "__group", "__tiledb_group.tdb"],
    generated_dimension: Some("__dim_"),
    ..FormatInfo::new("tiledb")
};

impl FormatDriver for TileDbDriver {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn recognise(&self, glimpse: &Glimpse<'_>) -> Result<Recognition> {
        Ok(glimpse.directory().map(crate::probe).transpose()?.unwrap_or(false).into())
    }

    fn open(&self, content: Content, context: &OpenContext<'_>) -> Result<Arc<dyn Store>> {
        let directory = content.into_directory(&INFO)?;
        let options = options(context);
        Ok(Arc::new(match context.path {
            // Opening by path also resolves group members with absolute addresses.
            Some(path) if context.mapped => crate::open_path(path, options)?,
            _ => crate::open(directory, options)?,
        }))
    }

    fn open_damaged(&self, content: Content, context: &OpenContext<'_>) -> Result<Option<DamagedStore>> {
        let directory = content.into_directory(&INFO)?;
        let options = options(context);
        let damaged = damaged_fragments(&crate::open(Arc::clone(&directory), options.clone())?)?;
        if damaged.is_empty() {
            return Ok(None);
        }
        let without = Arc::new(damaged.iter().map(|own| own.name.clone()).collect());
        let store = Arc::new(crate::open(directory, OpenOptions { without, ..options })?);
        let lost = damaged.into_iter().map(|own| (own.node.clone(), own.to_string())).collect();
        Ok(Some(DamagedStore { store, cut: Vec::new(), lost }))
    }

    fn create(&self, target: &Path, options: &CreateOptions) -> Result<Box<dyn Sink>> {
        Ok(Box::new(crate::create(target, write_options(options))?))
    }

    fn append(&self, target: &Path, options: &CreateOptions) -> Result<Box<dyn Sink>> {
        Ok(Box::new(crate::append(target, write_options(options))?))
    }

    fn append_elsewhere(
        &self,
        storage: Arc<dyn Storage>,
        change: StagedChange,
        options: &CreateOptions,
    ) -> Result<Box<dyn Sink>> {
        Ok(Box::new(crate::append_elsewhere(storage, change, write_options(options))?))
    }

    fn holds(&self, dtype: &DType, _: Option<Variant>) -> bool {
        // TileDB enumerations number their values from zero.
        let named = !matches!(dtype, DType::Enum(named) if !named.is_numbered());
        // TileDB has UTF-32, but its Python package cannot open arrays of it.
        let wide = matches!(dtype, DType::FixedText(_));
        // A cell has a number of values and no shape: one value is a number, and two floats are a complex number.
        let stored = crate::write::datatype(dtype);
        let comes_back = |(datatype, values): (crate::Datatype, crate::CellValues)| {
            !matches!(dtype, DType::Array(..) | DType::Opaque(_)) || datatype.dtype(values) == *dtype
        };
        named && !wide && stored.is_some_and(comes_back)
    }

    fn create_table(
        &self,
        target: &Path,
        spec: &TableSpec,
        options: &CreateOptions,
    ) -> Result<Box<dyn TableSink>> {
        Ok(Box::new(crate::create_table(target, spec, write_options(options))?))
    }

    fn append_table(
        &self,
        target: &Path,
        memory: u64,
        options: &CreateOptions,
    ) -> Result<Box<dyn TableSink>> {
        Ok(Box::new(crate::append_table(target, memory, write_options(options))?))
    }

    fn append_table_elsewhere(
        &self,
        storage: Arc<dyn Storage>,
        change: StagedChange,
        memory: u64,
        options: &CreateOptions,
    ) -> Result<Box<dyn TableSink>> {
        Ok(Box::new(crate::append_table_elsewhere(storage, change, memory, write_options(options))?))
    }

    fn delete_rows(&self, path: &Path, filter: &RowFilter, context: &OpenContext<'_>) -> Result<()> {
        let options = WriteOptions { key: key(context), ..WriteOptions::default() };
        crate::delete_rows(path, filter, &options)
    }

    fn change_fields(
        &self,
        path: &Path,
        node: &str,
        changes: &[FieldChange],
        context: &OpenContext<'_>,
        dry_run: bool,
    ) -> Result<()> {
        let options = WriteOptions { key: key(context), ..WriteOptions::default() };
        crate::evolve(path, node, changes, &options, dry_run)
    }

    fn repair(&self, path: &Path, context: &OpenContext<'_>, dry_run: bool) -> Result<Repairs> {
        let options = WriteOptions { key: key(context), ..WriteOptions::default() };
        let fixes = crate::repair(path, &options, dry_run)?;
        let fixes = fixes.into_iter().map(|(code, message)| Fix { code: code.to_owned(), message });
        Ok(Repairs { fixes: fixes.collect(), remaining: None })
    }

    fn consolidate(
        &self,
        path: &Path,
        context: &OpenContext<'_>,
        progress: &(dyn Fn(u64, u64) -> bool + Sync),
    ) -> Result<u64> {
        let options = ConsolidateOptions { at: window(context), key: key(context), progress };
        Ok(crate::consolidate(path, &options)? as u64)
    }

    fn vacuum(&self, path: &Path, context: &OpenContext<'_>) -> Result<u64> {
        let options = WriteOptions { key: key(context), ..WriteOptions::default() };
        Ok(crate::vacuum(path, &options)? as u64)
    }
}

fn options(context: &OpenContext<'_>) -> OpenOptions {
    OpenOptions { at: window(context), key: key(context), ..OpenOptions::default() }
}

fn key(context: &OpenContext<'_>) -> Option<Key> {
    context.key.as_ref().map(|key| Key::from(key.secret().clone()))
}

fn window(context: &OpenContext<'_>) -> TimeWindow {
    context.at.map_or_else(TimeWindow::default, |(start, end)| TimeWindow { start, end })
}

fn write_options(options: &CreateOptions) -> WriteOptions {
    WriteOptions {
        force: options.replace,
        sync: options.sync,
        by_name: !options.only_array,
        ..WriteOptions::default()
    }
}
