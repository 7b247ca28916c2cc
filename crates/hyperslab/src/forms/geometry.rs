//! Geometries as groups of arrays, with the names from which they can be restored.

use std::sync::Arc;

use hyperslab_core::{
    Array, ArraySchema, Attributes, DType, Edges, Elements, Geometry, GeometryQuery, Grid, Node, Region,
    Result, Values, child_path,
};

use super::derived::{Cells, Derived};
use crate::convert::{cut, default_chunk_shape};

/// The nodes of a geometry, and a list of the content that they cannot hold.
pub(crate) struct StoredGeometry {
    pub(crate) nodes: Vec<(String, Node)>,
    pub(crate) left_out: Vec<String>,
}

/// Stores a geometry as arrays: `vertices`, `links`, `object_id`, and one per attribute. They are held in memory.
///
/// # Errors
///
/// Any error from reading the geometry.
pub(crate) fn stored_geometry(path: &str, geometry: &dyn Geometry) -> Result<StoredGeometry> {
    let schema = geometry.schema();
    let data = geometry.query(&GeometryQuery::default())?;
    let mut left_out = Vec::new();
    let mut own = vec![("vertices".to_owned(), data.vertices.clone(), ["vertex", "axis"].as_slice())];
    if let Some(links) = data.links {
        own.push(("links".to_owned(), links, &["link", "end"]));
    }
    let vertices = data.vertices.shape.first().map_or(0, |rows| *rows as usize);
    if !data.objects.is_empty() {
        match owners(&data.objects, vertices) {
            Some(owners) => own.push(("object_id".to_owned(), owners?, &["vertex"])),
            None => left_out.push("objects that share vertices".to_owned()),
        }
    }
    for (name, values) in data.attributes {
        if own.iter().any(|(other, ..)| *other == name) || name.contains('/') {
            left_out.push(format!("attribute {name:?}: the name is reserved"));
        } else {
            own.push((name, values, &["vertex"]));
        }
    }
    let beside = data.link_attributes.iter().map(|(name, _)| format!("attribute {name:?} of links"));
    left_out.extend(
        beside.chain(data.object_attributes.iter().map(|(name, _)| format!("attribute {name:?} of objects"))),
    );
    let mut nodes = vec![(path.to_owned(), Node::Group(schema.attributes.clone()))];
    for (name, values, dimensions) in own {
        nodes.push((child_path(path, &name), Node::Array(in_memory(geometry.name(), values, dimensions)?)));
    }
    Ok(StoredGeometry { nodes, left_out })
}

/// The object of each vertex, or -1; `None` if a vertex belongs to several.
fn owners(objects: &[(i64, Vec<u64>)], vertices: usize) -> Option<Result<Values>> {
    let mut owners = vec![-1_i64; vertices];
    let mut taken = vec![false; vertices];
    for (id, rows) in objects {
        for row in rows {
            let row = usize::try_from(*row).ok().filter(|row| *row < vertices)?;
            if std::mem::replace(&mut taken[row], true) {
                return None;
            }
            owners[row] = *id;
        }
    }
    let bytes: Vec<u8> = owners.iter().flat_map(|owner| owner.to_ne_bytes()).collect();
    Some(Values::new(DType::Int64, &[vertices as u64], Elements::fixed(bytes)))
}

/// Values as an array. Axes beyond the named ones have no names.
fn in_memory(name: &str, values: Values, dimensions: &[&str]) -> Result<Arc<dyn Array>> {
    let item = values.dtype.size().unwrap_or(16) as u64;
    let grid = Grid::new(&values.shape, &default_chunk_shape(&values.shape, item))?;
    let mut schema = ArraySchema::new(values.dtype.clone(), grid);
    schema.edges = Edges::Clipped;
    schema.attributes = Attributes::new();
    for (own, name) in schema.dimensions.iter_mut().zip(dimensions) {
        *own = Some((*name).to_owned());
    }
    Ok(Arc::new(Derived::new(name, schema, MemoryCells { values }, true)))
}

/// Cells held in memory.
#[derive(Debug)]
struct MemoryCells {
    values: Values,
}

impl Cells for MemoryCells {
    fn sources(&self) -> &[Arc<dyn Array>] {
        &[]
    }

    fn cells(&self, region: &Region) -> Result<Elements> {
        cut(&self.values.dtype, &self.values, region)
    }
}
