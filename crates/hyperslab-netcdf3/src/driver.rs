//! NetCDF classic as a format driver.

use std::path::Path;
use std::sync::Arc;

use hyperslab_core::{
    Attribute, Capabilities, Content, CreateOptions, DType, DamagedStore, FormatDriver, FormatInfo, Glimpse,
    OpenContext, Recognition, Result, Sink, Store, Variant, VariantInfo,
};

use crate::append::Netcdf3Append;
use crate::types::{NcType, Version};
use crate::{Netcdf3Sink, Netcdf3Store, attributes};

/// NetCDF classic: CDF-1, CDF-2 and CDF-5.
#[derive(Debug)]
pub struct Netcdf3Driver;

static INFO: FormatInfo = FormatInfo {
    extensions: &["nc3", "cdf"],
    variants: &[VariantInfo::new("classic"), VariantInfo::new("64-bit-offset"), VariantInfo::new("cdf5")],
    capabilities: Capabilities {
        create: true,
        append: true,
        grow: true,
        several_arrays: true,
        attributes: true,
        unlimited: true,
        no_groups: true,
        no_chunks: true,
        no_filters: true,
        ..Capabilities::NONE
    },
    character_text: true,
    ..FormatInfo::new("netcdf3")
};

impl FormatDriver for Netcdf3Driver {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn recognise(&self, glimpse: &Glimpse<'_>) -> Result<Recognition> {
        let is_ours = matches!(glimpse.head(), [b'C', b'D', b'F', version, ..] if Version::from_byte(*version).is_some());
        Ok(is_ours.into())
    }

    fn open(&self, content: Content, _: &OpenContext<'_>) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(Netcdf3Store::open(content.into_file(&INFO)?)?))
    }

    fn open_damaged(&self, content: Content, _: &OpenContext<'_>) -> Result<Option<DamagedStore>> {
        let found = Netcdf3Store::open_truncated(content.into_file(&INFO)?)?;
        Ok(found.map(|(store, cut)| DamagedStore { store: Arc::new(store), cut, lost: Vec::new() }))
    }

    fn create(&self, target: &Path, options: &CreateOptions) -> Result<Box<dyn Sink>> {
        let version = options.variant.and_then(|variant| Version::from_variant(variant.name()));
        Ok(Box::new(Netcdf3Sink::create(target, options.stage(), version)?))
    }

    fn append(&self, target: &Path, _: &CreateOptions) -> Result<Box<dyn Sink>> {
        Ok(Box::new(Netcdf3Append::open(target)?))
    }

    /// Includes types that conversions turn into characters, flags or wider numbers.
    fn holds(&self, dtype: &DType, _: Option<Variant>) -> bool {
        let converted = matches!(
            dtype,
            DType::String
                | DType::Bytes
                | DType::FixedText(_)
                | DType::FixedBytes(_)
                | DType::Enum(_)
                | DType::Bool
                | DType::Float16
        );
        converted || NcType::of(dtype).is_some()
    }

    fn attributes_are_utf8(&self) -> bool {
        false
    }

    fn refused_attribute(&self, attribute: &Attribute) -> Option<String> {
        attributes::stored(attribute, true).err()
    }
}
