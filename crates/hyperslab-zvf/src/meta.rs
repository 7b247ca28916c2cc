//! The metadata documents of a store: root and levels.

use std::sync::Arc;

use hyperslab_core::{Corrupt, DType, Error, Result};
use hyperslab_zarr::ZarrStore;
use serde_json::{Map, Value};

/// The maximum number of dimensions.
const MAX_RANK: usize = 16;

/// The capability of stores with levels that add to the next coarser one.
const ADDITIVE: &str = "additive_levels";

/// An error about a document of a store.
pub(crate) fn corrupt(store: &str, document: &str, problem: impl Into<String>) -> Error {
    Error::Corrupt(Box::new(Corrupt {
        store: Arc::from(store),
        structure: document.to_owned().into(),
        offset: None,
        problem: problem.into(),
    }))
}

/// The root's attributes.
#[derive(Debug, Clone)]
pub(crate) struct Root {
    pub(crate) version: String,
    pub(crate) chunk_shape: Vec<f64>,
    pub(crate) bounds: Option<[Vec<f64>; 2]>,
    pub(crate) kinds: Vec<String>,
    pub(crate) links_convention: String,
    pub(crate) identity_objects: bool,
    /// Whether readers must know levels that add to the next coarser one.
    pub(crate) requires_additive: bool,
    pub(crate) axes: Vec<String>,
    /// Added to stored positions to get world positions.
    pub(crate) offset: Option<Vec<f64>>,
    /// The names of the levels, finest first.
    pub(crate) levels: Vec<String>,
    /// User attributes, and fields that this crate does not interpret.
    pub(crate) attributes: Map<String, Value>,
}

/// How vertices are linked if no links are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Linking {
    /// Not at all: points.
    None,
    /// Consecutive vertices of an object.
    Path,
    /// The parent of a row is the preceding row of its fragment, unless a link says otherwise.
    Tree,
    /// Every link is stored.
    Stored,
}

impl Root {
    pub(crate) fn read(zarr: &ZarrStore) -> Result<Self> {
        let store = zarr.directory().name();
        let wrong = |problem: String| corrupt(store, "zarr.json", problem);
        let attributes = zarr.group("/")?.ok_or_else(|| wrong("no group".to_owned()))?.to_json();
        let own = attributes.get("zarr_vectors").and_then(Value::as_object);
        let own = own.ok_or_else(|| wrong("no attribute \"zarr_vectors\"".to_owned()))?;
        let required = own.get("required_capabilities").and_then(Value::as_array);
        let mut required = required.into_iter().flatten();
        if let Some(token) = required.find(|token| token.as_str() != Some(ADDITIVE)) {
            return Err(Error::unsupported(Arc::clone(store), format!("the required capability {token}")));
        }
        let scale = attributes.get("multiscales").and_then(|list| list.get(0));
        let axes = scale.and_then(|scale| scale.get("axes")).and_then(Value::as_array);
        let axes = axes.ok_or_else(|| wrong("no \"axes\" in \"multiscales\"".to_owned()))?;
        let axes: Vec<String> = axes
            .iter()
            .map(|axis| axis.get("name").unwrap_or(axis).as_str().unwrap_or_default().to_owned())
            .collect();
        let rank = axes.len();
        if rank == 0 || rank > MAX_RANK {
            return Err(wrong(format!("{rank} axes")));
        }
        let chunk_shape =
            sizes(own.get("chunk_shape"), rank).ok_or_else(|| wrong("chunk_shape".to_owned()))?;
        let bounds = own.get("bounds").map(|bounds| {
            let corner = |i: usize| numbers(bounds.get(i)?, rank);
            Some([corner(0)?, corner(1)?])
        });
        let bounds = match bounds {
            None => None,
            Some(None) => return Err(wrong("bounds".to_owned())),
            Some(Some(bounds)) => Some(bounds),
        };
        let text =
            |key: &str, default: &str| own.get(key).and_then(Value::as_str).unwrap_or(default).to_owned();
        let kinds = own.get("geometry_types").and_then(Value::as_array);
        let kinds: Vec<String> =
            kinds.into_iter().flatten().filter_map(|kind| kind.as_str().map(str::to_owned)).collect();
        if kinds.is_empty() {
            return Err(wrong("no geometry_types".to_owned()));
        }
        let offset = own.get("coordinate_offset").and_then(|offset| numbers(offset, rank));
        Ok(Self {
            version: text("zv_version", ""),
            chunk_shape,
            bounds,
            kinds,
            links_convention: text("links_convention", "implicit_sequential"),
            requires_additive: own
                .get("required_capabilities")
                .and_then(Value::as_array)
                .is_some_and(|required| !required.is_empty()),
            identity_objects: own.get("object_index_convention").and_then(Value::as_str) == Some("identity"),
            axes,
            offset: offset.filter(|offset| offset.iter().any(|part| *part != 0.0)),
            levels: level_names(zarr, scale)?,
            attributes,
        })
    }

    pub(crate) fn rank(&self) -> usize {
        self.axes.len()
    }

    /// How vertices are linked if no links are stored.
    pub(crate) fn linking(&self) -> Linking {
        match (self.kinds[0].as_str(), self.links_convention.as_str()) {
            ("point_cloud", _) => Linking::None,
            ("line" | "polyline" | "streamline", _) => Linking::Path,
            ("skeleton", _) | (_, "implicit_sequential_with_branches") => Linking::Tree,
            ("graph" | "mesh", _) | (_, "explicit") => Linking::Stored,
            _ => Linking::Path,
        }
    }
}

/// The levels named by the multiscale metadata, or else the groups with numeric names.
fn level_names(zarr: &ZarrStore, scale: Option<&Value>) -> Result<Vec<String>> {
    use hyperslab_core::Store;
    let named = scale.and_then(|scale| scale.get("datasets")).and_then(Value::as_array);
    let mut names: Vec<String> = match named {
        Some(datasets) => {
            datasets.iter().filter_map(|dataset| dataset.get("path")?.as_str()).map(str::to_owned).collect()
        }
        None => zarr.children("/")?,
    };
    names.retain(|name| name.parse::<u32>().is_ok());
    names.sort_by_key(|name| name.parse::<u32>().unwrap_or(u32::MAX));
    names.dedup();
    Ok(names)
}

fn numbers(value: &Value, rank: usize) -> Option<Vec<f64>> {
    let numbers: Option<Vec<f64>> = value.as_array()?.iter().map(Value::as_f64).collect();
    numbers.filter(|numbers| numbers.len() == rank)
}

/// One positive, finite number per axis.
pub(crate) fn sizes(value: Option<&Value>, rank: usize) -> Option<Vec<f64>> {
    numbers(value?, rank).filter(|sizes| sizes.iter().all(|size| size.is_finite() && *size > 0.0))
}

/// A number type by NumPy's name.
pub(crate) fn dtype(name: &str) -> Option<DType> {
    Some(match name.trim_start_matches(['<', '|', '=']) {
        "bool" | "b1" => DType::Bool,
        "int8" | "i1" => DType::Int8,
        "int16" | "i2" => DType::Int16,
        "int32" | "i4" => DType::Int32,
        "int64" | "i8" => DType::Int64,
        "uint8" | "u1" => DType::UInt8,
        "uint16" | "u2" => DType::UInt16,
        "uint32" | "u4" => DType::UInt32,
        "uint64" | "u8" => DType::UInt64,
        "float16" | "f2" => DType::Float16,
        "float32" | "f4" => DType::Float32,
        "float64" | "f8" => DType::Float64,
        "complex64" | "c8" => DType::Complex64,
        "complex128" | "c16" => DType::Complex128,
        _ => return None,
    })
}
