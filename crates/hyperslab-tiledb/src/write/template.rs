//! Properties that a copy takes from its source's schema: filters, orders, text types, fill values.
//!
//! The reader exposes its schema in TileDB's own encoding, which other formats ignore.

use hyperslab_core::{Filter as ShownFilter, Place};

use crate::schema::{Attribute, Dimension, Schema};

/// The schema of the source, if it is a TileDB array.
pub(super) fn parse(encoded: Option<&[u8]>) -> Option<Schema> {
    Schema::parse(encoded?, Place::new("tiledb", "array schema", 0)).ok()
}

/// Copies the properties that apply to all fields.
pub(super) fn keep_shared(schema: &mut Schema, source: &Schema) {
    schema.capacity = source.capacity;
    schema.offsets.clone_from(&source.offsets);
    schema.validity.clone_from(&source.validity);
    if schema.dimensions.iter().map(|own| &own.name).eq(source.dimensions.iter().map(|own| &own.name)) {
        schema.coords.clone_from(&source.coords);
    }
}

/// Copies the properties of a dimension, including its filters unless others are requested.
pub(super) fn keep_dimension(own: &mut Dimension, source: &Schema, filters: Option<&[ShownFilter]>) {
    let Some(index) = source.dimensions.iter().position(|other| other.name == own.name) else { return };
    let other = &source.dimensions[index];
    if own.dtype() != other.dtype() {
        return;
    }
    own.datatype = other.datatype;
    if filters.is_none_or(|filters| source.dimension_pipeline(index).shown() == filters) {
        own.pipeline.clone_from(&other.pipeline);
    }
}

/// Copies the properties of an attribute, including its filters unless others are requested.
pub(super) fn keep_attribute(own: &mut Attribute, source: &Schema, filters: &[ShownFilter]) {
    let Some((_, other)) = source.attribute(&own.name) else { return };
    if own.dtype() != other.dtype() || own.nullable != other.nullable {
        return;
    }
    (own.datatype, own.values) = (other.datatype, other.values);
    own.fill.clone_from(&other.fill);
    own.fill_validity = other.fill_validity;
    if other.pipeline.shown() == filters {
        own.pipeline.clone_from(&other.pipeline);
    }
}
