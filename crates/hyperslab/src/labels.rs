//! Selections by label: `time=2020-01-01..2020-02-01` to positions, both ends included.
//!
//! A [`Coordinate`] is read once and decoded by the conventions of the file. Selections, groups by label and columns of rows all
//! use its decoded labels: numbers, dates or text.

mod coordinate;
mod dates;
mod select;

use std::sync::Arc;

use hyperslab_core::{
    Array, ArraySchema, AxisSelection, Error, Labels, Node, Result, Selection, SelectionItem, Store,
    TimeAxis, Values, dimension_axis, element_to_json,
};

pub(crate) use coordinate::Coordinate;
pub(crate) use dates::DateForm;
use select::Ends;

/// The selection with every label replaced by positions.
pub(crate) fn resolve(
    selection: &Selection,
    schema: &ArraySchema,
    store: &Arc<dyn Store>,
) -> Result<Selection> {
    let items = selection
        .items
        .iter()
        .map(|item| match item {
            SelectionItem::Labels { dimension, .. } | SelectionItem::Nearest { dimension, .. } => {
                let (axis, labels) = labels_of(schema, dimension)?;
                let along = along(item, &labels, schema.shape()[axis], store)?;
                let name = schema.dimensions.get(axis).cloned().flatten();
                let name = name.unwrap_or_else(|| dimension.clone());
                Ok(SelectionItem::Named(name, along.unwrap_or(AxisSelection::ALL)))
            }
            other => Ok(other.clone()),
        })
        .collect::<Result<_>>()?;
    Ok(Selection { items })
}

/// The axis of a dimension and its labels. The name may also be that of an array that labels the axis.
fn labels_of(schema: &ArraySchema, dimension: &str) -> Result<(usize, Labels)> {
    Ok(match coordinate_of(schema, dimension) {
        Some((axis, node)) => (axis, Labels::Node(node.to_owned())),
        None => {
            let axis = dimension_axis(&schema.dimensions, dimension)?;
            (axis, schema.labels.get(axis).cloned().unwrap_or(Labels::None))
        }
    })
}

/// The axis of a dimension, and the positions of labels along it, in their order.
pub(crate) fn label_positions(
    schema: &ArraySchema,
    dimension: &str,
    labels: &[String],
    nearest: bool,
    store: &Arc<dyn Store>,
) -> Result<(usize, Vec<u64>)> {
    let (axis, own) = labels_of(schema, dimension)?;
    let extent = schema.shape()[axis];
    let coordinate = Coordinate::read(&own, extent, dimension, store)?;
    let coordinate = coordinate.unwrap_or_else(|| Coordinate::positions(extent));
    let mut positions = Vec::with_capacity(labels.len());
    for label in labels {
        if nearest {
            positions.push(coordinate.nearest(label, dimension)?);
        } else {
            positions.extend(coordinate.positions_of(Ends::one(label), dimension)?);
        }
    }
    Ok((axis, positions))
}

/// The axis and label array for a name that is not a dimension but that of an array that labels an axis.
pub(crate) fn coordinate_of<'a>(schema: &'a ArraySchema, name: &str) -> Option<(usize, &'a str)> {
    if schema.dimensions.iter().flatten().any(|own| own == name) {
        return None;
    }
    let nodes = schema.labels.iter().enumerate().filter_map(|(axis, labels)| match labels {
        Labels::Node(node) => Some((axis, node.as_str())),
        _ => None,
    });
    let more = schema.stored.coordinates.iter().map(|(axis, node)| (*axis, node.as_str()));
    let mut found = more.chain(nodes).filter(|(axis, _)| *axis < schema.dimensions.len());
    found.find(|(_, node)| node.rsplit('/').next() == Some(name))
}

/// The selection of an item along a dimension of this length and these labels; `None` for an item by position, which names no
/// dimension.
pub(crate) fn along(
    item: &SelectionItem,
    labels: &Labels,
    extent: u64,
    store: &Arc<dyn Store>,
) -> Result<Option<AxisSelection>> {
    // A dimension without labels is labelled by its positions, as in xarray.
    let coordinate = |dimension: &str| {
        let own = Coordinate::read(labels, extent, dimension, store)?;
        Ok::<_, Error>(own.unwrap_or_else(|| Coordinate::positions(extent)))
    };
    Ok(Some(match item {
        SelectionItem::Positions { .. } => return Ok(None),
        SelectionItem::Named(_, selection) => *selection,
        SelectionItem::Labels { dimension, from, to, single } => {
            let ends = Ends { from: from.as_deref(), to: to.as_deref(), single: *single };
            let coordinate = coordinate(dimension)?;
            let range = coordinate.positions_of(ends, dimension)?;
            let is_period = from.as_deref().is_some_and(|label| coordinate.is_period(label));
            if *single && range.end - range.start == 1 && !is_period {
                AxisSelection::Index(range.start.cast_signed())
            } else {
                AxisSelection::range(range.start.cast_signed(), range.end.cast_signed())
            }
        }
        SelectionItem::Nearest { dimension, label } => {
            AxisSelection::Index(coordinate(dimension)?.nearest(label, dimension)?.cast_signed())
        }
    }))
}

/// The time axis of an array, from its attributes.
pub(crate) fn time_axis(schema: &ArraySchema) -> Option<TimeAxis> {
    let text = |name: &str| schema.attributes.get(name).and_then(|value| value.as_text());
    TimeAxis::parse(&text("units")?, &text("calendar").unwrap_or_default())
}

/// The time axis of the array at a path, from its attributes or, if it holds the bounds of a coordinate, from the coordinate's.
pub(crate) fn time_axis_of(array: &dyn Array, store: &dyn Store) -> Option<TimeAxis> {
    let schema = array.schema();
    let own = time_axis(schema);
    if own.is_some() || schema.attributes.get("units").is_some() || schema.shape().len() < 2 {
        return own;
    }
    let name = array.name().rsplit('/').next()?;
    let Labels::Node(path) = schema.labels.first()? else { return None };
    let Ok(Node::Array(coordinate)) = store.node(path) else { return None };
    let bounds = coordinate.schema().attributes.get("bounds")?.as_text()?;
    (bounds == name).then(|| time_axis(coordinate.schema()))?
}

/// The numbers of a coordinate; `None` if it is not numeric.
pub(crate) fn numbers_of(values: &Values) -> Option<Vec<f64>> {
    let number = |index| element_to_json(&values.dtype, &values.elements, index).as_f64();
    (0..values.len()).map(number).collect()
}

#[cfg(test)]
mod tests;
