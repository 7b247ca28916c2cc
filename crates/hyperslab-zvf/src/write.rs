//! New stores: geometry cut into chunks, and coarser levels of it, whole or not at all.

mod arrays;
mod coarsen;
mod links;
mod place;
mod source;

use std::path::Path;

use hyperslab_core::{Attribute, Attributes, Error, GeometryData, Result, Sink};
use hyperslab_zarr::ZarrSink;
use serde_json::{Value, json};

use arrays::LevelWriter;
use source::Source;

/// What kind of geometry to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the format's own")]
pub enum Kind {
    PointCloud,
    Line,
    Polyline,
    Streamline,
    Graph,
    Skeleton,
    Mesh,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 7] = [
        Self::PointCloud,
        Self::Line,
        Self::Polyline,
        Self::Streamline,
        Self::Graph,
        Self::Skeleton,
        Self::Mesh,
    ];

    /// The format's name of it: `point_cloud`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::PointCloud => "point_cloud",
            Self::Line => "line",
            Self::Polyline => "polyline",
            Self::Streamline => "streamline",
            Self::Graph => "graph",
            Self::Skeleton => "skeleton",
            Self::Mesh => "mesh",
        }
    }

    /// The kind with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    const fn is_path(self) -> bool {
        matches!(self, Self::Line | Self::Polyline | Self::Streamline)
    }

    const fn links_convention(self) -> &'static str {
        match self {
            Self::Graph | Self::Mesh => "explicit",
            Self::Skeleton => "implicit_sequential_with_branches",
            _ => "implicit_sequential",
        }
    }
}

/// How to write a store.
#[derive(Debug, Clone)]
pub struct WriteOptions {
    /// The size of a chunk, per axis.
    pub chunk_shape: Vec<f64>,
    /// The size of a bin, per axis, which must divide the chunk: points without objects are ordered by bins.
    pub bin_shape: Option<Vec<f64>>,
    /// The lowest and highest corner; those of the vertices when left out.
    pub bounds: Option<[Vec<f64>; 2]>,
    /// Zstandard's level; `None` stores cells as they are.
    pub compression: Option<i32>,
    /// Chunks of a shard per axis; `None` gives every chunk its own object.
    pub shard_shape: Option<u64>,
    /// The size of a bin at each coarser level, as a multiple of the level before; the first of the `first_bin`.
    pub factors: Vec<f64>,
    /// Groups of objects, by id.
    pub groups: Vec<Vec<i64>>,
    /// Names of the axes; x, y, z, w when left out.
    pub axes: Option<Vec<String>>,
    /// Replace what stands at the target.
    pub replace: bool,
}

impl WriteOptions {
    /// Compressed chunks of this size, no bins, no coarser levels.
    #[must_use]
    pub fn new(chunk_shape: Vec<f64>) -> Self {
        Self {
            chunk_shape,
            bin_shape: None,
            bounds: None,
            compression: Some(0),
            shard_shape: None,
            factors: Vec::new(),
            groups: Vec::new(),
            axes: None,
            replace: false,
        }
    }
}

/// Bins of the finest level per chunk and axis, where a pyramid is wanted and no bin size is given.
const BINS_PER_CHUNK: f64 = 4.0;

/// Writes a geometry as a new store.
///
/// For lines, an object's rows are its path, and `links` is not read. Vertices of points, graphs and meshes belong to
/// at most one object.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) when the data contradict themselves or the options; [`Io`](Error::Io) when the
/// system refuses. Nothing is left behind then.
pub fn write(
    target: impl AsRef<Path>,
    kind: Kind,
    data: &GeometryData,
    options: &WriteOptions,
) -> Result<()> {
    let source = Source::new(kind, data)?;
    check_options(&source, options)?;
    let rank = source.rank;
    let sink_options = hyperslab_zarr::WriteOptions {
        shard_shape: options.shard_shape.map(|each| vec![each; 1]),
        replace: options.replace,
        ..Default::default()
    };
    let target = target.as_ref();
    let mut sink: Box<dyn Sink> = Box::new(ZarrSink::create(target, sink_options)?);
    let base = options.bin_shape.clone().filter(|_| options.factors.is_empty() && source.objects.is_empty());
    let finest = options.bin_shape.clone().unwrap_or_else(|| {
        options
            .chunk_shape
            .iter()
            .map(|size| if options.factors.is_empty() { *size } else { size / BINS_PER_CHUNK })
            .collect()
    });
    let mut bins = vec![base.clone().unwrap_or_else(|| options.chunk_shape.clone())];
    let mut size = finest;
    for factor in &options.factors {
        size = size.iter().map(|size| size * factor).collect();
        bins.push(size.clone());
    }
    let name = target.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    sink.group("/", &root_attributes(kind, &source, options, base.as_deref(), &bins, &name))?;
    LevelWriter { sink: &mut *sink, options, kind, level: 0, rank, objects: source.objects.len() }
        .write(&source, &place::base(&source, options, base.as_deref())?)?;
    let mut level = source;
    for (number, bin) in bins.iter().enumerate().skip(1) {
        level = coarsen::coarsen(&level, bin);
        LevelWriter { sink: &mut *sink, options, kind, level: number, rank, objects: level.objects.len() }
            .write(&level, &place::coarse(&level, options)?)?;
    }
    sink.commit()
}

fn check_options(source: &Source, options: &WriteOptions) -> Result<()> {
    let rank = source.rank;
    let sizes = |what: &str, sizes: &[f64]| {
        if sizes.len() == rank && sizes.iter().all(|size| size.is_finite() && *size > 0.0) {
            return Ok(());
        }
        Err(Error::invalid(format!("{what} {sizes:?} for {rank} axes")))
    };
    sizes("a chunk shape", &options.chunk_shape)?;
    if let Some(bin) = &options.bin_shape {
        sizes("a bin shape", bin)?;
        for (chunk, bin) in options.chunk_shape.iter().zip(bin) {
            if ((chunk / bin).round() - chunk / bin).abs() > 1e-9 {
                return Err(Error::invalid(format!("bins of {bin} do not divide chunks of {chunk}")));
            }
        }
    }
    if options.factors.iter().any(|factor| !(factor.is_finite() && *factor >= 1.0)) {
        return Err(Error::invalid(format!("level factors {:?}", options.factors)));
    }
    if options.axes.as_ref().is_some_and(|axes| axes.len() != rank) {
        return Err(Error::invalid(format!("axes {:?} for {rank} columns", options.axes)));
    }
    let known: std::collections::HashSet<i64> = source.objects.iter().map(|(id, _)| *id).collect();
    match options.groups.iter().flatten().find(|id| !known.contains(id)) {
        Some(id) => Err(Error::invalid(format!("a group names the object {id}, which is not there"))),
        None => Ok(()),
    }
}

fn root_attributes(
    kind: Kind,
    source: &Source,
    options: &WriteOptions,
    base_bin: Option<&[f64]>,
    bins: &[Vec<f64>],
    name: &str,
) -> Attributes {
    let axes: Vec<Value> = (0..source.rank)
        .map(|axis| {
            let default =
                ["x", "y", "z", "w"].get(axis).map_or_else(|| format!("d{axis}"), |name| (*name).to_owned());
            let name = options.axes.as_ref().map_or(default, |axes| axes[axis].clone());
            json!({"name": name, "type": "space"})
        })
        .collect();
    let [low, high] = options.bounds.clone().unwrap_or_else(|| source.bounds());
    let shared = bins.len() > 1 && !source.objects.is_empty();
    let capabilities: &[&str] = if shared { &["preserved_object_ids", "shared_fragments"] } else { &[] };
    let mut own = json!({
        "zv_version": "0.9.2", "format_capabilities": capabilities, "chunk_shape": options.chunk_shape,
        "bounds": [low, high], "geometry_types": [kind.name()], "links_convention": kind.links_convention(),
        "object_index_convention": "standard", "cross_chunk_strategy": "explicit_links",
    });
    if let Some(bin) = base_bin {
        own["base_bin_shape"] = json!(bin);
    }
    if bins.len() > 1 {
        own["cross_level_storage"] = json!("none");
    }
    let datasets: Vec<Value> = bins
        .iter()
        .enumerate()
        .map(|(level, bin)| {
            let scale: Vec<f64> = bin.iter().zip(&bins[0]).map(|(own, base)| own / base).collect();
            let half: Vec<f64> = bin.iter().map(|size| size / 2.0).collect();
            json!({"path": level.to_string(), "coordinateTransformations": [
                {"type": "scale", "scale": scale}, {"type": "translation", "translation": half},
            ]})
        })
        .collect();
    let nodes: Vec<Value> =
        (0..bins.len()).map(|level| json!({"type": "zv:level", "name": level.to_string()})).collect();
    Attributes::from_iter([
        ("zarr_vectors", Attribute::Json(own)),
        (
            "multiscales",
            Attribute::Json(json!([{"version": "0.4", "name": "default", "axes": axes, "datasets": datasets,
                "metadata": {"format": "zarr_vectors"}}])),
        ),
        (
            "ome",
            Attribute::Json(
                json!({"version": "0.6", "type": "collection", "name": name, "attributes": {"scene": {
                "coordinateSystems": [{"name": "world", "axes": axes}], "coordinateTransformations": []}},
                "nodes": nodes}),
            ),
        ),
    ])
}
