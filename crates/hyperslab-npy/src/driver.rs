//! NumPy's files as format drivers.

use std::path::Path;
use std::sync::Arc;

use hyperslab_core::{
    Capabilities, Content, CreateOptions, DType, DamagedStore, FormatDriver, FormatInfo, Glimpse,
    OpenContext, Recognition, Result, Sink, Store, Variant,
};

use crate::header::MAGIC;
use crate::{NpySink, NpyStore, NpzSink, NpzStore};

/// `.npy`: one array.
#[derive(Debug)]
pub struct NpyDriver;

/// `.npz`: several arrays.
#[derive(Debug)]
pub struct NpzDriver;

static NPY: FormatInfo = FormatInfo {
    extensions: &["npy"],
    capabilities: Capabilities { create: true, no_chunks: true, no_filters: true, ..Capabilities::NONE },
    ..FormatInfo::new("npy")
};

static NPZ: FormatInfo = FormatInfo {
    extensions: &["npz"],
    capabilities: Capabilities {
        create: true,
        several_arrays: true,
        reserved_names: true,
        no_chunks: true,
        no_filters: true,
        ..Capabilities::NONE
    },
    ..FormatInfo::new("npz")
};

/// Returns true if NumPy has the type. Arrays inside elements become axes.
fn has_type(dtype: &DType) -> bool {
    match dtype {
        DType::Array(base, _) => has_type(base),
        other => crate::header::encode_header(other, &[]).is_ok(),
    }
}

impl FormatDriver for NpyDriver {
    fn holds(&self, dtype: &DType, _: Option<Variant>) -> bool {
        has_type(dtype)
    }

    fn info(&self) -> &'static FormatInfo {
        &NPY
    }

    fn recognise(&self, glimpse: &Glimpse<'_>) -> Result<Recognition> {
        Ok(glimpse.head().starts_with(MAGIC).into())
    }

    fn open(&self, content: Content, _: &OpenContext<'_>) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(NpyStore::open(content.into_file(&NPY)?)?))
    }

    fn open_damaged(&self, content: Content, _: &OpenContext<'_>) -> Result<Option<DamagedStore>> {
        let (store, cut) = NpyStore::open_truncated(content.into_file(&NPY)?)?;
        let cut = cut.map(|positions| ("/".to_owned(), positions)).into_iter().collect();
        Ok(Some(DamagedStore { store: Arc::new(store), cut, lost: Vec::new() }))
    }

    fn create(&self, target: &Path, options: &CreateOptions) -> Result<Box<dyn Sink>> {
        Ok(Box::new(NpySink::create(target, options.stage())?))
    }
}

impl FormatDriver for NpzDriver {
    fn holds(&self, dtype: &DType, _: Option<Variant>) -> bool {
        has_type(dtype)
    }

    fn info(&self) -> &'static FormatInfo {
        &NPZ
    }

    fn recognise(&self, glimpse: &Glimpse<'_>) -> Result<Recognition> {
        let head = glimpse.head();
        let is_zip = head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06");
        Ok(if is_zip { Recognition::Container } else { Recognition::No })
    }

    fn open(&self, content: Content, _: &OpenContext<'_>) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(NpzStore::open(content.into_file(&NPZ)?)?))
    }

    /// Documents of other programs are zip archives too, so only an archive that contains arrays is a store.
    fn is_store(&self, content: &Content) -> Result<bool> {
        let Content::File(blob) = content else { return Ok(false) };
        if self.recognise(&Glimpse::new(content)?)? == Recognition::No {
            return Ok(false);
        }
        let members = NpzStore::open(Arc::clone(blob)).and_then(|archive| archive.children("/"));
        Ok(members.is_ok_and(|members| !members.is_empty()))
    }

    fn create(&self, target: &Path, options: &CreateOptions) -> Result<Box<dyn Sink>> {
        Ok(Box::new(NpzSink::create(target, options.stage())?))
    }
}
