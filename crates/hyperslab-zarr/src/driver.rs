//! The Zarr format drivers.

use std::path::Path;
use std::sync::Arc;

use hyperslab_core::storage::StagedChange;
use hyperslab_core::{
    Capabilities, Content, CreateOptions, DType, FormatDriver, FormatInfo, Glimpse, OpenContext, Recognition,
    Result, Sink, Storage, Store, StoreForm, Variant, VariantInfo,
};

use crate::zip::ZipStorage;
use crate::{WriteOptions, ZarrAppend, ZarrFormat, ZarrSink};

/// Zarr v2 and v3 stores in zip archives.
#[derive(Debug)]
pub struct ZarrZipDriver;

static ZIP: FormatInfo = FormatInfo {
    extensions: &["zip"],
    variants: &[VariantInfo::new("zarr2-zip"), VariantInfo::new("zarr3-zip")],
    forms: &[StoreForm::File],
    capabilities: Capabilities { append: false, grow: false, ..INFO.capabilities },
    ..FormatInfo::new("zarr-zip")
};

impl FormatDriver for ZarrZipDriver {
    fn info(&self) -> &'static FormatInfo {
        &ZIP
    }

    fn recognise(&self, glimpse: &Glimpse<'_>) -> Result<Recognition> {
        let head = glimpse.head();
        if !head.starts_with(b"PK\x03\x04") {
            return Ok(Recognition::No);
        }
        let Some(blob) = glimpse.file() else { return Ok(Recognition::No) };
        // Other archives are recognised by their members. A Zarr archive with an invalid member is rejected when it
        // is opened.
        let found = match ZipStorage::open(Arc::clone(blob)) {
            Ok(members) => crate::probe(&members)?,
            Err(_) => crate::zip::contains_a_store(&**blob),
        };
        Ok(if found { Recognition::Yes } else { Recognition::No })
    }

    fn open(&self, content: Content, context: &OpenContext<'_>) -> Result<Arc<dyn Store>> {
        let members = ZipStorage::open(content.into_file(&ZIP)?)?;
        let store = crate::open_with(Arc::new(members), !context.unconsolidated)?;
        Ok(Arc::new(store.named(ZIP.name)))
    }

    fn create(&self, target: &Path, options: &CreateOptions) -> Result<Box<dyn Sink>> {
        let zarr = WriteOptions { archive: true, ..write_options(options, "zarr2-zip") };
        Ok(Box::new(ZarrSink::create(target, zarr)?))
    }

    fn append(&self, target: &Path, _: &CreateOptions) -> Result<Box<dyn Sink>> {
        Err(crate::zip::no_append(target))
    }
}

/// The options for writing a store; `v2` is the name of the version 2 variant.
fn write_options(options: &CreateOptions, v2: &str) -> WriteOptions {
    let is_v2 = options.variant.is_some_and(|variant| variant.name() == v2);
    WriteOptions {
        replace: options.replace,
        sync: options.sync,
        shard_shape: options.shard_shape.clone(),
        format: if is_v2 { ZarrFormat::V2 } else { ZarrFormat::V3 },
        consolidated: true,
        archive: false,
    }
}

/// Zarr v2 and v3 directories.
#[derive(Debug)]
pub struct ZarrDriver;

static INFO: FormatInfo = FormatInfo {
    extensions: &["zarr"],
    variants: &[VariantInfo::new("zarr2"), VariantInfo::new("zarr3")],
    forms: &[StoreForm::Directory],
    capabilities: Capabilities {
        create: true,
        append: true,
        grow: true,
        several_arrays: true,
        attributes: true,
        json_attributes: true,
        reserved_names: true,
        fill_values: true,
        multiscales: true,
        shards: true,
        ..Capabilities::NONE
    },
    probe_keys: &["zarr.json"],
    visible_last: &[".zattrs", ".zarray", ".zgroup", ".zmetadata", "zarr.json"],
    ..FormatInfo::new("zarr")
};

impl FormatDriver for ZarrDriver {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn recognise(&self, glimpse: &Glimpse<'_>) -> Result<Recognition> {
        let is_zarr = glimpse.directory().map(crate::probe).transpose()?.unwrap_or(false);
        Ok(if is_zarr { Recognition::Container } else { Recognition::No })
    }

    fn open(&self, content: Content, context: &OpenContext<'_>) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(crate::open_with(content.into_directory(&INFO)?, !context.unconsolidated)?))
    }

    /// Zarr has no data type for enumerations, so their names would be lost.
    fn holds(&self, dtype: &DType, variant: Option<Variant>) -> bool {
        let is_v2 = variant.is_some_and(|variant| variant.name() == "zarr2");
        let format = if is_v2 { ZarrFormat::V2 } else { ZarrFormat::V3 };
        !matches!(dtype, DType::Enum(_)) && crate::sink::has_type(dtype, format)
    }

    fn create(&self, target: &Path, options: &CreateOptions) -> Result<Box<dyn Sink>> {
        Ok(Box::new(ZarrSink::create(target, write_options(options, "zarr2"))?))
    }

    fn append(&self, target: &Path, options: &CreateOptions) -> Result<Box<dyn Sink>> {
        Ok(Box::new(ZarrAppend::open(target, options.shard_shape.clone())?))
    }

    fn append_elsewhere(
        &self,
        storage: Arc<dyn Storage>,
        change: StagedChange,
        options: &CreateOptions,
    ) -> Result<Box<dyn Sink>> {
        Ok(Box::new(ZarrAppend::elsewhere(storage, change, options.shard_shape.clone())?))
    }
}
