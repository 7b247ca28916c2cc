//! Options for writing a store.

use hyperslab_core::{Error, Result};

use super::{GeometryKind, GeometrySpec};

/// The links between adjacent levels to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CrossLevel {
    /// None.
    #[default]
    None,
    /// From every vertex to the vertex that represents it at the next coarser level.
    Up,
    /// In both directions.
    Both,
}

impl CrossLevel {
    /// The format's name for it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Up => "implicit",
            Self::Both => "explicit",
        }
    }
}

/// Options for writing a store.
#[derive(Debug, Clone)]
pub struct WriteOptions {
    /// The size of a chunk, per axis.
    pub chunk_shape: Vec<f64>,
    /// The bin size per axis, which must divide the chunk. Points without objects are ordered by bins, and coarser levels start
    /// from them.
    pub bin_shape: Option<Vec<f64>>,
    /// The lowest and highest corner; those of the vertices by default.
    pub bounds: Option<[Vec<f64>; 2]>,
    /// The Zstandard level; `None` stores cells uncompressed.
    pub compression: Option<i32>,
    /// Chunks per axis of a shard; `None` stores every chunk as a separate object.
    pub shard_shape: Option<u64>,
    /// The size of a bin at each coarser level, as a multiple of the level before.
    pub factors: Vec<f64>,
    /// Whether objects may share vertices at coarser levels. Otherwise each has its own.
    pub shared_fragments: bool,
    /// Links between levels.
    pub cross_level: CrossLevel,
    /// Groups of objects, by id.
    pub groups: Vec<Vec<i64>>,
    /// Names of the axes; x, y, z, w by default.
    pub axes: Option<Vec<String>>,
    /// The memory budget for vertices, links and objects, in bytes.
    pub memory: usize,
    /// Replace an existing store at the target.
    pub replace: bool,
    /// Make a new store durable before it is committed. A replacement always is.
    pub sync: bool,
}

/// The number of bins per chunk and axis of the finest level, for a pyramid without a given bin size.
const BINS_PER_CHUNK: f64 = 4.0;

impl WriteOptions {
    /// Options for compressed chunks of this size, without bins or coarser levels.
    #[must_use]
    pub fn new(chunk_shape: Vec<f64>) -> Self {
        Self {
            chunk_shape,
            bin_shape: None,
            bounds: None,
            compression: Some(0),
            shard_shape: None,
            factors: Vec::new(),
            shared_fragments: true,
            cross_level: CrossLevel::None,
            groups: Vec::new(),
            axes: None,
            memory: 512 << 20,
            replace: false,
            sync: false,
        }
    }

    /// The bins that the store declares. Other readers interpret them as fragment numbers at every level, so they are
    /// declared only for points without objects and without coarser levels.
    pub(crate) fn base_bin(&self, spec: &GeometrySpec) -> Option<&Vec<f64>> {
        let plain = self.factors.is_empty() && !spec.objects && spec.kind == GeometryKind::PointCloud;
        self.bin_shape.as_ref().filter(|_| plain)
    }

    /// The bin size from which the coarser levels are derived.
    pub(crate) fn first_bin(&self) -> Vec<f64> {
        let default = || self.chunk_shape.iter().map(|size| size / BINS_PER_CHUNK).collect();
        self.bin_shape.clone().unwrap_or_else(default)
    }

    pub(crate) fn check(&self, rank: usize) -> Result<()> {
        let sizes = |what: &str, sizes: &[f64]| {
            if sizes.len() == rank && sizes.iter().all(|size| size.is_finite() && *size > 0.0) {
                return Ok(());
            }
            Err(Error::invalid(format!("{what} {sizes:?} does not fit {rank} axes")))
        };
        sizes("a chunk shape", &self.chunk_shape)?;
        if let Some(bin) = &self.bin_shape {
            sizes("a bin shape", bin)?;
            for (chunk, bin) in self.chunk_shape.iter().zip(bin) {
                if ((chunk / bin).round() - chunk / bin).abs() > 1e-9 {
                    return Err(Error::invalid(format!("bins of {bin} do not divide chunks of {chunk}")));
                }
            }
        }
        if self.factors.iter().any(|factor| !(factor.is_finite() && *factor >= 1.0)) {
            return Err(Error::invalid(format!("invalid level factors {:?}", self.factors)));
        }
        if self.axes.as_ref().is_some_and(|axes| axes.len() != rank) {
            return Err(Error::invalid(format!("the axes {:?} do not match {rank} columns", self.axes)));
        }
        Ok(())
    }
}
