//! The Zarr Vectors format driver.

use std::path::Path;
use std::sync::Arc;

use hyperslab_core::{
    Attributes, Capabilities, Content, CreateOptions, Error, FormatDriver, FormatInfo, GeometryColumn,
    GeometryData, GeometrySink, GeometrySpec, Glimpse, OpenContext, Recognition, Result, Sink, Store,
    StoreForm, Values,
};

use crate::attributes::{AttributeSink, DESCRIBING, OWN};
use crate::{ColumnSpec, GeometryKind, WriteOptions, ZvfWriter};

/// The driver for stores and bare fragment indexes.
#[derive(Debug)]
pub struct ZvfDriver;

static INFO: FormatInfo = FormatInfo {
    extensions: &["zarrvectors", "zv"],
    forms: &[StoreForm::Directory, StoreForm::File],
    capabilities: Capabilities {
        append: true,
        attributes: true,
        json_attributes: true,
        reserved_names: true,
        ..Capabilities::NONE
    },
    geometry_kinds: &["point_cloud", "line", "polyline", "streamline", "graph", "skeleton", "mesh"],
    built_on: Some("zarr"),
    probe_keys: &["zarr.json"],
    visible_last: &["zarr.json"],
    ..FormatInfo::new("zvf")
};

impl FormatDriver for ZvfDriver {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn recognise(&self, glimpse: &Glimpse<'_>) -> Result<Recognition> {
        Ok(match glimpse.directory() {
            Some(directory) => crate::probe(directory)?.into(),
            None => crate::probe_fragment_index(glimpse.head()).into(),
        })
    }

    fn open(&self, content: Content, _: &OpenContext<'_>) -> Result<Arc<dyn Store>> {
        Ok(match content {
            Content::File(blob) => Arc::new(crate::open_fragment_index(&*blob)?),
            Content::Directory(directory) => Arc::new(crate::open(directory)?),
        })
    }

    /// The documents that describe a store, under names that other stores may use too.
    fn bookkeeping<'a>(&self, attributes: &'a Attributes, _: bool) -> Vec<&'a str> {
        let describes = DESCRIBING.iter().any(|name| attributes.get(name).is_some());
        attributes.iter().map(|(name, _)| name).filter(|name| describes && OWN.contains(name)).collect()
    }

    fn takes_column(&self, column: &GeometryColumn) -> bool {
        crate::meta::dtype(&column.dtype.to_string()).is_some()
    }

    fn create_geometry(&self, target: &Path, spec: &GeometrySpec) -> Result<Box<dyn GeometrySink>> {
        let column = |column: &GeometryColumn| ColumnSpec {
            name: column.name.clone(),
            dtype: column.dtype.clone(),
            width: column.width,
        };
        let own = crate::GeometrySpec {
            kind: kind(spec)?,
            rank: spec.rank,
            dtype: spec.dtype.clone(),
            attributes: spec.attributes.iter().map(column).collect(),
            link_width: spec.link_width,
            link_attributes: Vec::new(),
            objects: spec.objects,
        };
        Ok(Box::new(ZvfWriter::create(target, own, write_options(spec))?))
    }

    fn append(&self, target: &Path, _: &CreateOptions) -> Result<Box<dyn Sink>> {
        Ok(Box::new(AttributeSink::open(target)?))
    }

    fn append_geometry(&self, target: &Path, memory: u64) -> Result<Box<dyn GeometrySink>> {
        Ok(Box::new(ZvfWriter::append(target, usize::try_from(memory).unwrap_or(usize::MAX))?))
    }

    fn write_geometry(&self, target: &Path, spec: &GeometrySpec, data: &GeometryData) -> Result<()> {
        crate::write(target, kind(spec)?, data, &write_options(spec))
    }
}

impl GeometrySink for ZvfWriter {
    fn vertices(
        &mut self,
        vertices: &Values,
        attributes: &[(String, Values)],
        objects: &[Option<i64>],
    ) -> Result<()> {
        // In a store with objects, vertices without an id belong to no object.
        let rows = vertices.shape.first().copied().unwrap_or(0) as usize;
        let nobody = vec![None; if objects.is_empty() && self.has_objects() { rows } else { 0 }];
        Self::vertices(self, vertices, attributes, if nobody.is_empty() { objects } else { &nobody })
    }

    fn geometry(&mut self, data: &GeometryData, groups: &[Vec<i64>]) -> Result<()> {
        self.add(data, groups)
    }

    fn links(&mut self, ends: &[u64]) -> Result<()> {
        Self::links(self, ends, &[])
    }

    fn commit(self: Box<Self>) -> Result<()> {
        Self::commit(*self)
    }
}

fn kind(spec: &GeometrySpec) -> Result<GeometryKind> {
    GeometryKind::from_name(&spec.kind).ok_or_else(|| {
        Error::invalid(format!(
            "{:?} is not a kind of geometry; choose one of: {}",
            spec.kind,
            INFO.geometry_kinds.join(", ")
        ))
    })
}

fn write_options(spec: &GeometrySpec) -> WriteOptions {
    let mut options = WriteOptions::new(spec.chunk_shape.clone());
    options.factors = vec![2.0; spec.levels];
    options.memory = usize::try_from(spec.memory).unwrap_or(usize::MAX);
    options.replace = spec.replace;
    options.sync = spec.sync;
    options.axes.clone_from(&spec.axes);
    options.groups.clone_from(&spec.groups);
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_listed() {
        assert_eq!(INFO.geometry_kinds, GeometryKind::ALL.map(GeometryKind::name));
    }
}
