//! Labels of the dimensions of new arrays: a one-dimensional array each, in a folder of the labelled array.

use std::sync::Arc;

use hyperslab_core::storage::StageWriter;
use hyperslab_core::{Attributes, Result};

use super::WriteOptions;
use super::dense::DenseSink;
use super::tree::put_fields;
use crate::datatype::Datatype;
use crate::schema::{Attribute, Dimension, DimensionLabel, Schema};

/// The library's name for the attribute of an array of labels.
const ATTRIBUTE: &str = "label";
/// The library's name for its dimension.
const DIMENSION: &str = "index";

/// Labels of a new array.
#[derive(Debug)]
pub(super) struct LabelSink {
    name: String,
    axis: usize,
    sink: Arc<DenseSink>,
}

/// Separates the labels from the arrays of values. Labels that match no dimension count as values.
pub(super) fn split_labels(
    own: &[(String, Arc<DenseSink>)],
) -> (Vec<(String, Arc<DenseSink>)>, Vec<LabelSink>) {
    let is_label = |sink: &DenseSink| sink.spec.stored.label.is_some();
    let Some((_, first)) = own.iter().find(|(_, sink)| !is_label(sink)) else {
        return (own.to_vec(), Vec::new());
    };
    let (mut values, mut labels) = (Vec::new(), Vec::new());
    for (name, sink) in own {
        match axis_of(sink, first).filter(|_| is_label(sink)) {
            Some(axis) => labels.push(LabelSink { name: name.clone(), axis, sink: Arc::clone(sink) }),
            None => values.push((name.clone(), Arc::clone(sink))),
        }
    }
    (values, labels)
}

/// The axis of an array that another, one-dimensional array labels.
fn axis_of(label: &DenseSink, array: &DenseSink) -> Option<usize> {
    let ([Some(name)], &[extent], &[limit]) =
        (&label.spec.dimensions[..], label.spec.grid.shape(), &label.spec.max_shape[..])
    else {
        return None;
    };
    let axis = array.spec.dimensions.iter().position(|own| own.as_ref() == Some(name))?;
    let alike = array.spec.grid.shape()[axis] == extent && array.spec.max_shape[axis] == limit;
    (alike && extent > 0 && !label.spec.nullable).then_some(axis)
}

/// Writes labels into the folder of their array. Returns the entry for the array's schema.
pub(super) fn put(
    folder: &StageWriter,
    schema: &Schema,
    labels: &[LabelSink],
    at: u64,
    options: &WriteOptions,
) -> Result<Vec<DimensionLabel>> {
    let mut described = Vec::new();
    for (number, LabelSink { name, axis, sink }) in labels.iter().enumerate() {
        let uri = format!("__labels/l{number}");
        let order = sink.spec.stored.label.map_or(0, DimensionLabel::order_code);
        // TileDB supports text labels only in ASCII.
        let datatype = match sink.attribute.datatype {
            Datatype::StringUtf8 | Datatype::Char => Datatype::StringAscii,
            other => other,
        };
        let attribute = Attribute { name: ATTRIBUTE.to_owned(), order, datatype, ..sink.attribute.clone() };
        let values = attribute.values;
        // The same domain, but with a tile extent of its own.
        let dimension = Dimension {
            name: DIMENSION.to_owned(),
            extent: sink.schema.dimensions[0]
                .extent
                .as_ref()
                .and(Some(tile_bytes(&schema.dimensions[*axis], sink.tile_shape[0]))),
            ..schema.dimensions[*axis].clone()
        };
        let own = Schema {
            dimensions: vec![dimension],
            attributes: vec![attribute],
            current_domain: None,
            ..sink.schema.clone()
        };
        put_fields(&folder.below(&uri)?, own, &[&**sink], &Attributes::new(), at, options)?;
        described.push(DimensionLabel {
            dimension: *axis as u32,
            name: name.clone(),
            relative: true,
            uri,
            attribute: ATTRIBUTE.to_owned(),
            order,
            datatype,
            values,
            external: false,
        });
    }
    Ok(described)
}

fn tile_bytes(dimension: &Dimension, tile: u64) -> Vec<u8> {
    crate::schema::integer_bytes(dimension.datatype.number(), i128::from(tile))
}
