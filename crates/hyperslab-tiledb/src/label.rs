//! Dimension labels: one-dimensional arrays, shown beside the attributes of the array that they belong to.

use std::sync::Arc;

use hyperslab_core::{Error, Labels, Place, Result, child_path};

use crate::array::OpenArray;
use crate::dense::DenseAttribute;
use crate::schema::{ArrayKind, Dimension, DimensionLabel, Schema};

/// The labels that become nodes, with their positions. Labels whose name is not a valid node name, or is also an
/// attribute's name (which TileDB rejects), are left out.
pub(crate) fn shown(schema: &Schema) -> impl Iterator<Item = (usize, &DimensionLabel)> {
    schema.labels.iter().enumerate().filter(|(index, label)| {
        let taken = schema.attribute(&label.name).is_some()
            || schema.labels[..*index].iter().any(|earlier| earlier.name == label.name);
        let axis = (label.dimension as usize) < schema.dimensions.len();
        let named = !label.name.is_empty() && !label.name.contains('/');
        schema.kind == ArrayKind::Dense && axis && named && !taken
    })
}

/// Opens the array that holds the labels, with the current extent of the labelled dimension. Returns the array and
/// the position of the attribute with the labels.
pub(crate) fn open(array: &OpenArray, label: &DimensionLabel) -> Result<(Arc<OpenArray>, usize)> {
    let uri = label.uri.trim_matches('/');
    if !label.relative || uri.split('/').any(|part| part.is_empty() || part == "." || part == "..") {
        return Err(Error::unsupported(
            Arc::clone(&array.name),
            format!("the labels {:?}, which are in another array: {}", label.name, label.uri),
        ));
    }
    let prefix = format!("{}{uri}/", array.prefix);
    let mut own = OpenArray::open(Arc::clone(&array.directory), prefix, array.options.clone())?;
    let attribute = adopt_dimension(&mut own, array, label)?;
    Ok((Arc::new(own), attribute))
}

/// Gives an array of labels the extent and the name of the labelled dimension.
pub(crate) fn adopt_dimension(
    own: &mut OpenArray,
    array: &OpenArray,
    label: &DimensionLabel,
) -> Result<usize> {
    let name = Arc::clone(&own.name);
    let corrupt = |why: String| Place::new(&name, "dimension label", 0).corrupt(why);
    let axis = label.dimension as usize;
    let Some(dimension) = array.schema.dimensions.get(axis) else {
        return Err(corrupt(format!("labels of dimension {axis}")));
    };
    let alike = matches!(&own.schema.dimensions[..], [only] if only.bounds() == dimension.bounds());
    if own.schema.kind != ArrayKind::Dense || !alike {
        return Err(corrupt(format!("its dimensions are not the dimension {:?}", dimension.name)));
    }
    let found = own.schema.attribute(&label.attribute).map(|(index, _)| index);
    let attribute = found.ok_or_else(|| corrupt(format!("no attribute {:?}", label.attribute)))?;
    let current = array.schema.current_domain.as_ref().and_then(|ranges| ranges.get(axis).cloned());
    let dimensions = vec![Dimension { name: dimension.name.clone(), ..own.schema.dimensions[0].clone() }];
    let current_domain = current.map(|range| vec![range]);
    own.schema = Arc::new(Schema { dimensions, current_domain, ..(*own.schema).clone() });
    own.is_label = true;
    Ok(attribute)
}

/// Labels as an array node of the store.
pub(crate) fn node(array: &OpenArray, label: &DimensionLabel, path: &str) -> Result<DenseAttribute> {
    let (own, attribute) = open(array, label)?;
    let mut node = DenseAttribute::new(own, attribute, path)?;
    node.schema_mut().stored.label = Some(label.label_order());
    node.schema_mut().labels = vec![Labels::Node(path.to_owned())];
    Ok(node)
}

/// The labels along the axes of the attribute at `path`: axes and node paths.
pub(crate) fn coordinates(schema: &Schema, path: &str) -> Vec<(usize, String)> {
    let parent =
        path.rsplit_once('/').map_or("/", |(parent, _)| if parent.is_empty() { "/" } else { parent });
    shown(schema).map(|(_, label)| (label.dimension as usize, child_path(parent, &label.name))).collect()
}
