//! Adds vertices, objects and links to existing stores.
//!
//! Reads the content of the store and writes a new store beside it, with the old and the new content and with
//! regenerated coarser levels. The stores are exchanged in one step, so a reader sees either everything that was
//! added, or nothing.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use hyperslab_core::storage::StoreLock;
use hyperslab_core::{Array, DType, Error, Geometry, GeometryData, GeometryQuery, Result, Storage};
use serde_json::{Map, Value, json};

use super::{ColumnSpec, CrossLevel, GeometryKind, GeometrySpec, WriteOptions, ZvfWriter, whole};
use crate::level::Level;
use crate::meta::{corrupt, sizes};
use crate::objects;
use crate::pyramid::PyramidOptions;
use crate::store::ZvfStore;

/// Attributes of arrays that the writer does not set itself, by the array's path in its level.
pub(crate) type Extras = HashMap<String, Map<String, Value>>;

/// The parts of a store that are preserved when it is extended.
#[derive(Debug)]
pub(super) struct Kept {
    /// The attributes of the root.
    root: Map<String, Value>,
    bounds: Option<[Vec<f64>; 2]>,
    /// The metadata of the finest level.
    level: Map<String, Value>,
    pub(super) extras: Extras,
    /// The options for regenerating the coarser levels.
    pub(super) pyramid: Option<PyramidOptions>,
    /// Held until the new store has replaced the old one.
    _lock: StoreLock,
}

impl Kept {
    /// The attributes of the new root, whose vertices lie between these corners.
    pub(super) fn root(&self, seen: &[Vec<f64>; 2]) -> Value {
        let mut root = Value::Object(self.root.clone());
        let [low, high] = match &self.bounds {
            None => seen.clone(),
            Some([low, high]) => {
                let join = |own: &[f64], seen: &[f64], pick: fn(f64, f64) -> f64| -> Vec<f64> {
                    own.iter().zip(seen).map(|(own, seen)| pick(*own, *seen)).collect()
                };
                [join(low, &seen[0], f64::min), join(high, &seen[1], f64::max)]
            }
        };
        root["zarr_vectors"]["bounds"] = json!([low, high]);
        // In the new store, every object has a row in the index.
        root["zarr_vectors"]["object_index_convention"] = json!("standard");
        let finest = |entry: &Value, key: &str| entry.get(key).and_then(Value::as_str) == Some("0");
        let lists = [("/multiscales/0/datasets", "path"), ("/ome/nodes", "name")];
        for (pointer, key) in lists {
            if let Some(list) = root.pointer_mut(pointer).and_then(Value::as_array_mut) {
                list.retain(|entry| finest(entry, key));
            }
        }
        root
    }

    /// The metadata of the new finest level.
    pub(super) fn level(&self, new: &Value) -> Value {
        let mut level = self.level.clone();
        if let Some(new) = new.get("zarr_vectors_level").and_then(Value::as_object) {
            level.extend(new.clone());
        }
        json!({"zarr_vectors_level": level})
    }
}

impl ZvfWriter {
    /// Opens the store at `target` for additions. New vertices must have the same attributes as the existing ones,
    /// and links refer to new vertices by their number among the additions. Vertices with the id of an existing
    /// object are added to it, except for lines. Coarser levels that were generated from bins are regenerated.
    ///
    /// The existing geometry is read into memory completely, and then buffered like additions: up to `memory` bytes
    /// in memory, the rest in a file. Nothing changes before [`commit`](Self::commit), which replaces the store in
    /// one step.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](Error::Unsupported) for a store with content that would be lost, or with coarser levels that
    /// cannot be regenerated; [`Invalid`](Error::Invalid) if another writer is active.
    pub fn append(target: impl AsRef<Path>, memory: usize) -> Result<Self> {
        let target = target.as_ref();
        let target =
            target.canonicalize().map_err(|source| Error::io(target.display().to_string(), source))?;
        let lock = StoreLock::exclusive(&target, |_| false)?;
        let store = crate::open_path(&target)?;
        let level = store.levels().level(0)?;
        let refuse = |feature: String| {
            Error::unsupported(target.display().to_string(), format!("adding to a store with {feature}"))
        };
        if let Some(feature) = unsupported(&store, level)? {
            return Err(refuse(feature));
        }
        check_names(&target, level).map_err(|name| refuse(format!("{name:?} in it, which would be lost")))?;
        let kind = level.root.kinds.first().and_then(|name| GeometryKind::from_name(name));
        let kind = kind.ok_or_else(|| refuse(format!("the kinds {:?}", level.root.kinds)))?;
        let pyramid = pyramid(&store, memory).map_err(refuse)?;
        let data = store.geometry()?.query(&GeometryQuery { level: Some(0), ..Default::default() })?;
        let (spec, options) = (spec(kind, level, &data)?, options(&store, level, memory)?);
        let mut writer = Self::create(&target, spec, options)?;
        whole::add(&mut writer, &data)?;
        writer.path = None;
        writer.base = writer.count;
        let extras = extras(level)?;
        let (root, bounds) = (level.root.attributes.clone(), level.root.bounds.clone());
        let level = level.metadata.clone();
        writer.kept = Some(Kept { root, bounds, level, extras, pyramid, _lock: lock });
        Ok(writer)
    }
}

/// The first property of a store that would be lost; `None` if there is none.
fn unsupported(store: &ZvfStore, level: &Level) -> Result<Option<String>> {
    let root = &level.root;
    let numbers = 0..store.levels().len();
    let adds = numbers.map(|number| Ok(store.levels().level(number)?.adds)).collect::<Result<Vec<_>>>()?;
    let coded = |cells: &crate::cells::CellArray| cells.attributes.contains_key("categories");
    let links = level.links()?;
    Ok(if level.is_older() {
        Some("the layout before 0.9; convert it first".to_owned())
    } else if adds.contains(&true) {
        Some("levels that add to the next coarser one".to_owned())
    } else if root.kinds.len() > 1 {
        Some(format!("the kinds {:?}", root.kinds))
    } else if root.offset.is_some() {
        Some("a coordinate_offset".to_owned())
    } else if level.leading() > 0 {
        Some("chunks by the values of an attribute".to_owned())
    } else if level.chunk_shape != root.chunk_shape {
        Some("a chunk_shape of its finest level".to_owned())
    } else if let Some((name, _)) = level.attributes()?.iter().find(|(_, cells)| coded(cells)) {
        Some(format!("categories, as of the attribute {name:?}"))
    } else if links.is_some_and(|links| links.directed) {
        Some("directed links".to_owned())
    } else {
        None
    })
}

/// Fails with the first unknown name in the folders of the store and its finest level.
fn check_names(store: &Path, level: &Level) -> std::result::Result<(), String> {
    const LEVEL: [&str; 10] = [
        "zarr.json",
        "vertices",
        "vertex_fragments",
        "vertex_attributes",
        "links",
        "link_fragments",
        "link_attributes",
        "object_index",
        "object_attributes",
        "groups",
    ];
    let known = |name: &str| name == "zarr.json" || level.root.levels.iter().any(|level| level == name);
    let storage = hyperslab_core::LocalStorage::new(store);
    let unknown = |folder: &str, known: &dyn Fn(&str) -> bool| {
        let entries = storage.list(folder).unwrap_or_default();
        entries.into_iter().map(|entry| entry.name).find(|name| !known(name))
    };
    let found = unknown("", &known).or_else(|| unknown("0", &|name| LEVEL.contains(&name)));
    found.map_or(Ok(()), Err)
}

/// The specification of the stored geometry.
fn spec(kind: GeometryKind, level: &Level, data: &GeometryData) -> Result<GeometrySpec> {
    let columns = |columns: &[(String, hyperslab_core::Values)]| {
        columns.iter().map(|(name, values)| ColumnSpec::of(name, values)).collect::<Result<Vec<_>>>()
    };
    let default = if kind == GeometryKind::Mesh { 3 } else { 2 };
    let link_width = level.links()?.map_or(default, |links| links.width);
    let objects = kind.is_path() || level.objects()?.is_some();
    Ok(GeometrySpec {
        kind,
        rank: level.root.rank(),
        dtype: if level.dtype == DType::Float64 { DType::Float64 } else { DType::Float32 },
        attributes: columns(&data.attributes)?,
        link_width: kind.stores_links().then_some(link_width),
        link_attributes: columns(&data.link_attributes)?,
        objects,
    })
}

/// The options for writing the store in the same way.
fn options(store: &ZvfStore, level: &Level, memory: usize) -> Result<WriteOptions> {
    let mut options = WriteOptions::new(level.root.chunk_shape.clone());
    let own = level.root.attributes.get("zarr_vectors");
    options.bin_shape = sizes(own.and_then(|own| own.get("base_bin_shape")), level.root.rank());
    options.axes = Some(level.root.axes.clone());
    options.groups = objects::groups(level)?;
    options.memory = memory;
    options.replace = true;
    if level.vertices.is_raw() {
        options.compression = None;
    }
    options.shard_shape = shard_shape(store)?;
    Ok(options)
}

/// The number of chunks per shard of the vertices, along each axis.
fn shard_shape(store: &ZvfStore) -> Result<Option<u64>> {
    let directory = store.levels().zarr.directory();
    let bytes = directory.read("0/vertices/zarr.json")?.unwrap_or_default();
    let document: Value = serde_json::from_slice(&bytes)
        .map_err(|error| corrupt(directory.name(), "0/vertices/zarr.json", error.to_string()))?;
    let extents = document.pointer("/chunk_grid/configuration/chunk_shape").and_then(Value::as_array);
    let most = extents.and_then(|extents| extents.iter().filter_map(Value::as_u64).max());
    Ok(most.filter(|most| *most > 1))
}

/// The attributes of a level's arrays that the writer does not set itself.
fn extras(level: &Level) -> Result<Extras> {
    const MADE: [&str; 9] = [
        "zv_array",
        "name",
        "dtype",
        "row_shape",
        "shape",
        "fill_sentinel_meaning",
        "nonempty_chunks",
        "chunk_grid_origin",
        "encoding",
    ];
    let mut extras = Extras::new();
    let mut keep = |path: String, attributes: &Map<String, Value>| {
        let mut own = attributes.clone();
        own.retain(|name, _| !MADE.contains(&name.as_str()));
        if !own.is_empty() {
            extras.insert(path, own);
        }
    };
    for (name, cells) in level.attributes()? {
        keep(format!("vertex_attributes/{name}"), &cells.attributes);
    }
    let family = format!("{}/object_attributes", level.path);
    for name in level.members(&family)? {
        let array = level.zarr.array(&format!("{family}/{name}"))?;
        keep(format!("object_attributes/{name}"), &array.schema().attributes.to_json());
    }
    Ok(extras)
}

/// The options for regenerating a store's coarser levels; `None` if there are none. The error describes a level that
/// cannot be regenerated.
fn pyramid(store: &ZvfStore, memory: usize) -> std::result::Result<Option<PyramidOptions>, String> {
    let (levels, root) = (store.levels(), &store.levels().root);
    let mut bins: Vec<Vec<f64>> = Vec::new();
    let mut shared = HashSet::new();
    for name in root.levels.iter().filter(|name| *name != "0") {
        let number = name.parse().unwrap_or(usize::MAX);
        let level =
            levels.level(number).map_err(|error| format!("a level {name} that cannot be read: {error}"))?;
        let method = level.metadata.get("coarsening_method").and_then(Value::as_str).unwrap_or("none");
        let sparsity = level.metadata.get("object_sparsity").and_then(Value::as_f64).unwrap_or(1.0);
        if method != "per_object" || sparsity != 1.0 || number != bins.len() + 1 {
            return Err(format!(
                "a level {name} that cannot be generated again (method {method:?}, object_sparsity {sparsity})"
            ));
        }
        shared.insert(level.metadata.get("shared_fragments").and_then(Value::as_bool).unwrap_or(true));
        let bin = bin_of(&root.attributes, name, root.rank());
        bins.push(bin.ok_or_else(|| format!("a level {name} without the size of its bins"))?);
    }
    let Some(first) = bins.first() else { return Ok(None) };
    let mut factors = vec![1.0];
    for pair in bins.windows(2) {
        let factor = pair[1][0] / pair[0][0];
        let same = pair[1].iter().zip(&pair[0]).all(|(coarse, fine)| (coarse / fine - factor).abs() < 1e-9);
        if !same || factor < 1.0 {
            return Err(format!("bins of {:?} after bins of {:?}", pair[1], pair[0]));
        }
        factors.push(factor);
    }
    let mut options = PyramidOptions::new(factors);
    options.bin_shape = Some(first.clone());
    options.shared_fragments = !shared.contains(&false);
    options.memory = memory;
    let own = root.attributes.get("zarr_vectors");
    let depth = own.and_then(|own| own.get("cross_level_depth")).and_then(Value::as_i64).unwrap_or(1);
    let storage = own.and_then(|own| own.get("cross_level_storage")).and_then(Value::as_str);
    options.cross_level = match storage {
        _ if depth == 0 => CrossLevel::None,
        Some("none") => CrossLevel::None,
        Some("implicit") if depth == 1 => CrossLevel::Up,
        None | Some("explicit") if depth == 1 => CrossLevel::Both,
        other => return Err(format!("cross_level_storage {other:?} of the depth {depth}")),
    };
    Ok(Some(options))
}

/// The bin size of a level: twice the translation of its dataset.
fn bin_of(root: &Map<String, Value>, level: &str, rank: usize) -> Option<Vec<f64>> {
    let datasets = root.get("multiscales")?.get(0)?.get("datasets")?.as_array()?;
    let dataset =
        datasets.iter().find(|dataset| dataset.get("path").and_then(Value::as_str) == Some(level))?;
    let transforms = dataset.get("coordinateTransformations")?.as_array()?;
    let translation = transforms.iter().find_map(|transform| transform.get("translation"));
    Some(sizes(translation, rank)?.iter().map(|half| 2.0 * half).collect())
}
