//! Attributes of an existing store: they are those of its Zarr groups. The ones that describe the store itself are kept.

use std::path::Path;
use std::sync::Arc;

use hyperslab_core::{ArraySink, ArraySpec, Attributes, Error, Result, Sink};
use hyperslab_zarr::ZarrAppend;

/// The attributes without which the store cannot be read.
pub(crate) const OWN: [&str; 4] = ["zarr_vectors", "zarr_vectors_level", "multiscales", "ome"];

/// Those of them that only Zarr Vectors stores have.
pub(crate) const DESCRIBING: [&str; 2] = ["zarr_vectors", "zarr_vectors_level"];

/// Changes attributes, and nothing else.
#[derive(Debug)]
pub(crate) struct AttributeSink {
    name: String,
    zarr: ZarrAppend,
}

impl AttributeSink {
    pub(crate) fn open(target: &Path) -> Result<Self> {
        Ok(Self { name: target.display().to_string(), zarr: ZarrAppend::open(target, None)? })
    }

    fn check(&self, name: &str) -> Result<()> {
        if OWN.contains(&name) {
            return Err(Error::invalid(format!(
                "{}: the attribute {name} describes the store itself",
                self.name
            )));
        }
        Ok(())
    }
}

impl Sink for AttributeSink {
    fn group(&mut self, path: &str, _: &Attributes) -> Result<()> {
        Err(Error::unsupported(path, "groups in a Zarr Vectors store"))
    }

    fn array(&mut self, path: &str, _: &ArraySpec) -> Result<Arc<dyn ArraySink>> {
        Err(Error::unsupported(path, "arrays in a Zarr Vectors store"))
    }

    fn attributes(&mut self, path: &str, attributes: &Attributes) -> Result<()> {
        attributes.iter().try_for_each(|(name, _)| self.check(name))?;
        self.zarr.attributes(path, attributes)
    }

    fn delete_attributes(&mut self, path: &str, names: &[&str]) -> Result<()> {
        names.iter().try_for_each(|name| self.check(name))?;
        self.zarr.delete_attributes(path, names)
    }

    fn commit(self: Box<Self>) -> Result<()> {
        Box::new(self.zarr).commit()
    }
}
