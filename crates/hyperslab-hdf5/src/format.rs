//! HDF5 as a format of the engine. (`driver` handles libhdf5's file drivers.)

use std::path::Path;
use std::sync::Arc;

use hyperslab_core::{
    Attributes, Capabilities, Content, CreateOptions, DType, FormatDriver, FormatInfo, Glimpse, OpenContext,
    Recognition, Result, Sink, Store, Variant, VariantInfo,
};

use crate::{AppendOptions, Compatibility, Hdf5Append, Hdf5Options, Hdf5Sink};

/// HDF5, and NetCDF-4 on top of it.
#[derive(Debug)]
pub struct Hdf5Driver;

/// The variant for libraries of all versions.
const EARLIEST: &str = "hdf5-earliest";
/// The variant for libhdf5 2.0 and later.
const V200: &str = "hdf5-2.0";

static INFO: FormatInfo = FormatInfo {
    extensions: &["h5", "hdf5", "he5", "nc", "nc4"],
    variants: &[
        VariantInfo { extensions: &["nc", "nc4"], netcdf_types: true, ..VariantInfo::new("netcdf4") },
        VariantInfo::new(EARLIEST),
        VariantInfo::new(V200),
    ],
    filters: &crate::filters::choose::NAMES,
    standard_filters: &["gzip", "zlib", "shuffle", "fletcher32", "szip", "nbit", "scaleoffset"],
    capabilities: Capabilities {
        create: true,
        append: true,
        grow: true,
        several_arrays: true,
        attributes: true,
        links: true,
        pages: true,
        preamble: true,
        fill_values: true,
        unlimited: true,
        ..Capabilities::NONE
    },
    ..FormatInfo::new("hdf5")
};

impl FormatDriver for Hdf5Driver {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn recognise(&self, glimpse: &Glimpse<'_>) -> Result<Recognition> {
        Ok(glimpse.blob().map(crate::probe).transpose()?.unwrap_or(false).into())
    }

    fn open(&self, content: Content, context: &OpenContext<'_>) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(crate::open(content.into_file(&INFO)?, context.externals())?))
    }

    fn create(&self, target: &Path, options: &CreateOptions) -> Result<Box<dyn Sink>> {
        let compatibility = match options.variant.map(Variant::name) {
            Some(EARLIEST) => Compatibility::Earliest,
            Some(V200) => Compatibility::V200,
            _ => Compatibility::default(),
        };
        let netcdf = !options.verbatim && options.variant.is_some_and(|variant| variant.info().netcdf_types);
        let hdf5 = Hdf5Options {
            compatibility,
            replace: options.replace,
            sync: options.sync,
            dimension_scales: !options.verbatim,
            commit_types: netcdf,
            netcdf_names: netcdf,
            verbatim: options.verbatim,
            all_declared: options.source.is_some(),
            user_block: options.preamble.clone().unwrap_or_default(),
            page_size: options.page_size,
            ..Hdf5Options::default()
        };
        Ok(Box::new(Hdf5Sink::create(target, hdf5)?))
    }

    fn append(&self, target: &Path, _: &CreateOptions) -> Result<Box<dyn Sink>> {
        Ok(Box::new(Hdf5Append::open(target, AppendOptions::default())?))
    }

    /// The NetCDF-4 library has no dates, and fails on floats of more than eight bytes.
    fn holds(&self, dtype: &DType, variant: Option<Variant>) -> bool {
        // Bytes of any length are lists of unsigned bytes, and read as such.
        if *dtype == DType::Bytes {
            return false;
        }
        let netcdf = variant.is_some_and(|variant| variant.info().netcdf_types);
        // Text of a fixed length is UTF-8 in bytes, whose number of code points is not stored.
        if !netcdf && matches!(dtype, DType::FixedText(_)) {
            return false;
        }
        !netcdf || !matches!(dtype, DType::DateTime(_) | DType::Duration(_) | DType::Float128)
    }

    /// The attributes of dimension scales and, for other formats, those of the NetCDF-4 library.
    fn attributes_are_utf8(&self) -> bool {
        false
    }

    fn bookkeeping<'a>(&self, attributes: &'a Attributes, elsewhere: bool) -> Vec<&'a str> {
        let mut content = crate::set_by_people(attributes).map(|(name, _)| name).peekable();
        let mut bookkeeping = Vec::new();
        for (name, _) in attributes.iter() {
            let is_content = content.next_if_eq(&name).is_some();
            if !is_content || elsewhere && matches!(name, "_NCProperties" | "_nc3_strict") {
                bookkeeping.push(name);
            }
        }
        bookkeeping
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bookkeeping_differs_from_content() {
        let mut attributes = Attributes::new();
        for name in ["units", "_Netcdf4Dimid", "NAME", "CLASS", "_NCProperties"] {
            attributes.set(name, "x");
        }
        assert_eq!(Hdf5Driver.bookkeeping(&attributes, false), ["_Netcdf4Dimid"]);
        assert_eq!(Hdf5Driver.bookkeeping(&attributes, true), ["_Netcdf4Dimid", "_NCProperties"]);
        attributes.set("CLASS", "DIMENSION_SCALE");
        assert_eq!(Hdf5Driver.bookkeeping(&attributes, false), ["_Netcdf4Dimid", "NAME", "CLASS"]);
    }
}
