//! The metadata documents of the root and the levels.

use serde_json::{Value, json};

use super::GeometryKind;

/// The root's metadata, with the finest level.
#[derive(Debug)]
pub(crate) struct RootDocument {
    pub(crate) kind: GeometryKind,
    pub(crate) name: String,
    pub(crate) axes: Vec<String>,
    pub(crate) bounds: [Vec<f64>; 2],
    pub(crate) chunk_shape: Vec<f64>,
    /// The bins of points without objects.
    pub(crate) bin: Option<Vec<f64>>,
}

pub(crate) fn root(own: &RootDocument) -> Value {
    let axes: Vec<Value> = own.axes.iter().map(|name| json!({"name": name, "type": "space"})).collect();
    let [low, high] = &own.bounds;
    let mut zarr_vectors = json!({
        "zv_version": "0.9.2", "format_capabilities": [], "chunk_shape": own.chunk_shape,
        "bounds": [low, high], "geometry_types": [own.kind.name()], "links_convention": own.kind.links_convention(),
        "object_index_convention": "standard", "cross_chunk_strategy": "explicit_links",
    });
    if let Some(bin) = &own.bin {
        zarr_vectors["base_bin_shape"] = json!(bin);
    }
    let bin = own.bin.as_ref().unwrap_or(&own.chunk_shape);
    json!({
        "zarr_vectors": zarr_vectors,
        "multiscales": [{"version": "0.4", "name": "default", "axes": axes, "datasets": [dataset(0, bin, bin)],
            "metadata": {"format": "zarr_vectors"}}],
        "ome": {"version": "0.6", "type": "collection", "name": own.name, "attributes": {"scene": {
            "coordinateSystems": [{"name": "world", "axes": axes}], "coordinateTransformations": []}},
            "nodes": [node(0)]},
    })
}

/// The multiscale entry of a level: its scale is relative to the finest level, its translation is half a bin.
pub(crate) fn dataset(level: usize, bin: &[f64], base: &[f64]) -> Value {
    let scale: Vec<f64> = bin.iter().zip(base).map(|(own, base)| own / base).collect();
    let half: Vec<f64> = bin.iter().map(|size| size / 2.0).collect();
    json!({"path": level.to_string(), "coordinateTransformations": [
        {"type": "scale", "scale": scale}, {"type": "translation", "translation": half},
    ]})
}

pub(crate) fn node(level: usize) -> Value {
    json!({"type": "zv:level", "name": level.to_string()})
}

/// The metadata of a level.
#[derive(Debug, Default)]
pub(crate) struct LevelDocument {
    pub(crate) level: usize,
    pub(crate) vertices: u64,
    pub(crate) attributes: bool,
    pub(crate) links: bool,
    pub(crate) objects: Option<u64>,
    /// Set if it differs from the root's.
    pub(crate) chunk_shape: Option<Vec<f64>>,
    pub(crate) shared: bool,
}

impl LevelDocument {
    pub(crate) fn to_json(&self) -> Value {
        let mut present = vec!["vertices", "vertex_fragments"];
        for (there, name) in [
            (self.attributes, "vertex_attributes"),
            (self.links, "links"),
            (self.objects.is_some(), "object_index"),
        ] {
            if there {
                present.push(name);
            }
        }
        let mut own = json!({
            "level": self.level, "object_sparsity": 1.0, "vertex_count": self.vertices,
            "coarsening_method": if self.level == 0 { "none" } else { "per_object" },
            "parent_level": self.level.checked_sub(1), "arrays_present": present, "fragments_tile": true,
        });
        if let Some(shape) = &self.chunk_shape {
            own["chunk_shape"] = json!(shape);
        }
        if let Some(objects) = self.objects.filter(|_| self.level > 0) {
            own["preserves_object_ids"] = json!(true);
            own["inherited_num_objects"] = json!(objects);
            own["shared_fragments"] = json!(self.shared);
        }
        json!({"zarr_vectors_level": own})
    }
}
