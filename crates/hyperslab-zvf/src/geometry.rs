//! The geometry of a store: all its levels, or one.

use std::sync::Arc;

use hyperslab_core::{
    Attribute, Attributes, Error, Geometry, GeometryData, GeometryLevel, GeometryQuery, GeometrySchema,
    Result,
};

use crate::chain;
use crate::level::Level;
use crate::store::Levels;

/// A geometry of a Zarr Vectors store.
#[derive(Debug)]
pub struct ZvfGeometry {
    name: String,
    schema: GeometrySchema,
    levels: Arc<Levels>,
    /// The level, if the node is a single level.
    only: Option<usize>,
}

impl ZvfGeometry {
    pub(crate) fn new(levels: &Arc<Levels>, only: Option<usize>) -> Result<Self> {
        let root = &levels.root;
        let mut attributes = Attributes::new();
        let name = match only {
            None => {
                for (key, value) in &root.attributes {
                    attributes.set(key.as_str(), Attribute::Json(value.clone()));
                }
                levels.zarr.directory().name().to_string()
            }
            Some(number) => {
                let level = levels.level(number)?;
                for (key, value) in &level.metadata {
                    attributes.set(key.as_str(), Attribute::Json(value.clone()));
                }
                format!("{}{}", levels.zarr.directory().name(), level.path)
            }
        };
        let schema = GeometrySchema {
            kinds: root.kinds.clone(),
            axes: root.axes.clone(),
            bounds: root.bounds.clone(),
            attributes,
        };
        Ok(Self { name, schema, levels: Arc::clone(levels), only })
    }

    /// The level that a query requests, and those that it adds to.
    fn chain(&self, wanted: Option<usize>) -> Result<Vec<&Level>> {
        match (self.only, wanted) {
            (Some(only), Some(wanted)) if wanted != only => Err(Error::invalid(format!(
                "{}: the node is level {only} and has no level {wanted}",
                self.name
            ))),
            (only, wanted) => self.levels.chain(only.or(wanted).unwrap_or(0)),
        }
    }
}

impl Geometry for ZvfGeometry {
    fn schema(&self) -> &GeometrySchema {
        &self.schema
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn levels(&self) -> Result<Vec<GeometryLevel>> {
        let all = 0..self.levels.len();
        let numbers = all.filter(|number| self.only.is_none_or(|only| only == *number));
        numbers.map(|number| chain::summary(&self.levels.chain(number)?)).collect()
    }

    fn query(&self, wanted: &GeometryQuery) -> Result<GeometryData> {
        chain::query(&self.chain(wanted.level)?, wanted)
    }
}
