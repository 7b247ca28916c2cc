//! One level of a store. Its arrays are opened on demand.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use hyperslab_core::{DType, Error, GeometryLevel, Place, Result, Store};
use hyperslab_zarr::ZarrStore;
use serde_json::{Map, Value};

use crate::cells::{CellArray, KEPT_BYTES};
use crate::coord::{Coord, dotted};
use crate::fragment::FragmentIndex;
use crate::links::{LinkAttribute, Links};
use crate::meta::{Linking, Root, corrupt, sizes};
use crate::objects::Objects;

/// One level.
#[derive(Debug)]
pub(crate) struct Level {
    pub(crate) zarr: Arc<ZarrStore>,
    pub(crate) root: Arc<Root>,
    /// Its path: `/0`.
    pub(crate) path: String,
    pub(crate) metadata: Map<String, Value>,
    /// Whether the content of the next coarser level belongs to this one, which stores only the difference.
    pub(crate) adds: bool,
    pub(crate) chunk_shape: Vec<f64>,
    pub(crate) vertices: CellArray,
    pub(crate) fragments: Option<CellArray>,
    /// The type of a coordinate.
    pub(crate) dtype: DType,
    /// Parsed indexes, and their size in bytes.
    indexes: Mutex<(HashMap<Coord, Arc<FragmentIndex>>, usize)>,
    attributes: OnceLock<Vec<(String, CellArray)>>,
    links: OnceLock<Option<Links>>,
    link_attributes: OnceLock<Vec<LinkAttribute>>,
    objects: OnceLock<Option<Objects>>,
}

/// A chunk's vertices.
#[derive(Debug, Clone)]
pub(crate) struct Vertices {
    pub(crate) rows: u64,
    pub(crate) bytes: Bytes,
}

impl Level {
    pub(crate) fn open(zarr: &Arc<ZarrStore>, root: &Arc<Root>, name: &str) -> Result<Self> {
        let path = format!("/{name}");
        let attributes =
            zarr.group(&path)?.ok_or_else(|| Error::not_found(Arc::clone(zarr.name()), path.as_str()))?;
        let metadata = attributes.to_json().shift_remove("zarr_vectors_level");
        let metadata = metadata.and_then(|own| own.as_object().cloned()).unwrap_or_default();
        let adds = match metadata.get("refinement").map(Value::as_str) {
            None | Some(Some("replace")) => false,
            Some(Some("add")) => true,
            Some(_) => {
                let refinement = &metadata["refinement"];
                let feature = format!("the refinement {refinement} of {path}");
                return Err(Error::unsupported(Arc::clone(zarr.name()), feature));
            }
        };
        let vertices_path = format!("{path}/vertices");
        let missing = || Error::not_found(Arc::clone(zarr.name()), vertices_path.as_str());
        let vertices = CellArray::open(zarr, &vertices_path)?.ok_or_else(missing)?;
        let chunk_shape = match metadata.get("chunk_shape") {
            None => root.chunk_shape.clone(),
            own => sizes(own, root.rank()).ok_or_else(|| corrupt(zarr.name(), &path[1..], "chunk_shape"))?,
        };
        // Detect the layout from the stored nodes. The version attribute is unreliable, because writers never checked
        // it.
        let older = vertices.is_per_chunk();
        if older && zarr.group(&format!("{path}/vertex_group_offsets"))?.is_some() {
            let feature = format!("the layout of Zarr Vectors before 0.6 (vertex_group_offsets in {path})");
            return Err(Error::unsupported(Arc::clone(zarr.name()), feature));
        }
        let empty = older && vertices.rank() == 0;
        if !empty && (vertices.rank() < root.rank() || vertices.rank() > root.rank() + 1) {
            let problem = format!("a grid of {} dimensions for {} axes", vertices.rank(), root.rank());
            return Err(corrupt(zarr.name(), &vertices_path[1..], problem));
        }
        let fragments = CellArray::open(zarr, &format!("{path}/vertex_fragments"))?;
        let dtype = vertices.dtype()?;
        if !dtype.is_numeric() || dtype == DType::Float128 {
            return Err(Error::unsupported(vertices.name(), format!("coordinates of {dtype}")));
        }
        Ok(Self {
            zarr: Arc::clone(zarr),
            root: Arc::clone(root),
            path,
            metadata,
            adds,
            chunk_shape,
            vertices,
            fragments,
            dtype,
            indexes: Mutex::default(),
            attributes: OnceLock::new(),
            links: OnceLock::new(),
            link_attributes: OnceLock::new(),
            objects: OnceLock::new(),
        })
    }

    /// The number of grid axes before those of space: one with attribute chunking.
    pub(crate) fn leading(&self) -> usize {
        self.vertices.rank().saturating_sub(self.root.rank())
    }

    /// Returns true for the layout of 0.6 to 0.8.
    pub(crate) const fn is_older(&self) -> bool {
        self.vertices.is_per_chunk()
    }

    /// Bytes of one vertex.
    pub(crate) fn vertex_size(&self) -> usize {
        self.dtype.size().unwrap_or(1) * self.root.rank()
    }

    /// The vertices of a chunk; `None` if it has none.
    pub(crate) fn chunk(&self, chunk: &Coord) -> Result<Option<Vertices>> {
        self.vertices.cell(chunk)?.map(|bytes| self.vertices_of(chunk, bytes)).transpose()
    }

    /// Like `chunk`, without caching, for callers that visit each chunk once.
    pub(crate) fn read_chunk(&self, chunk: &Coord) -> Result<Option<Vertices>> {
        self.vertices.read_cell(chunk)?.map(|bytes| self.vertices_of(chunk, bytes)).transpose()
    }

    fn vertices_of(&self, chunk: &Coord, bytes: Bytes) -> Result<Vertices> {
        let size = self.vertex_size();
        if !bytes.len().is_multiple_of(size) {
            let name = format!("{} chunk {}", self.vertices.name(), dotted(chunk));
            return Err(
                Place::new(&name, "vertices", 0).corrupt(format!("{} bytes of rows of {size}", bytes.len()))
            );
        }
        Ok(Vertices { rows: (bytes.len() / size) as u64, bytes })
    }

    /// The fragments of a chunk of `rows` rows.
    pub(crate) fn fragments(&self, chunk: &Coord, rows: u64) -> Result<Arc<FragmentIndex>> {
        let kept = || self.indexes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = kept().0.get(chunk) {
            return Ok(Arc::clone(index));
        }
        let (index, size) = self.read_fragments(chunk, rows)?;
        let index = Arc::new(index);
        let mut kept = kept();
        if kept.1 >= KEPT_BYTES {
            *kept = Default::default();
        }
        kept.1 += size;
        kept.0.insert(chunk.clone(), Arc::clone(&index));
        Ok(index)
    }

    /// Like `fragments`, without caching; also returns the size of the blob.
    pub(crate) fn read_fragments(&self, chunk: &Coord, rows: u64) -> Result<(FragmentIndex, usize)> {
        let blob = match &self.fragments {
            Some(fragments) => fragments.read_cell(chunk)?,
            None => None,
        };
        let name = format!("{}{}/vertex_fragments chunk {}", self.zarr.name(), self.path, dotted(chunk));
        let place = Place::new(&name, "fragment index", 0);
        let blob = blob.ok_or_else(|| place.corrupt(format!("none, for {rows} vertices")))?;
        let size = blob.len();
        let index = FragmentIndex::parse(blob, place)?;
        index.check_rows(rows, place)?;
        index.check_shared(rows, place)?;
        Ok((index, size))
    }

    /// Returns true if the level claims that in every chunk the fragments are ranges that cover the rows in order.
    pub(crate) fn claims_tiles(&self) -> bool {
        self.metadata.get("fragments_tile").and_then(Value::as_bool).unwrap_or(false)
    }

    /// The names in the group at a path; none if there is no group. Before 0.9, such folders have no document.
    pub(crate) fn members(&self, path: &str) -> Result<Vec<String>> {
        if self.is_older() {
            let entries = match self.zarr.directory().list(&path[1..]) {
                Err(error) if error.is_not_found() => Vec::new(),
                found => found?,
            };
            return Ok(entries
                .into_iter()
                .filter(|entry| entry.is_directory)
                .map(|entry| entry.name)
                .collect());
        }
        if self.zarr.group(path)?.is_none() { Ok(Vec::new()) } else { self.zarr.children(path) }
    }

    /// The vertex attributes, by name.
    pub(crate) fn attributes(&self) -> Result<&[(String, CellArray)]> {
        if let Some(attributes) = self.attributes.get() {
            return Ok(attributes);
        }
        let family = format!("{}/vertex_attributes", self.path);
        let mut attributes = Vec::new();
        for name in self.members(&family)? {
            if let Some(cells) = CellArray::open(&self.zarr, &format!("{family}/{name}"))? {
                attributes.push((name, cells));
            }
        }
        Ok(self.attributes.get_or_init(|| attributes))
    }

    pub(crate) fn links(&self) -> Result<Option<&Links>> {
        if let Some(links) = self.links.get() {
            return Ok(links.as_ref());
        }
        let links = Links::open(self, 0)?;
        Ok(self.links.get_or_init(|| links).as_ref())
    }

    pub(crate) fn link_attributes(&self) -> Result<&[LinkAttribute]> {
        if let Some(attributes) = self.link_attributes.get() {
            return Ok(attributes);
        }
        let attributes = LinkAttribute::open_all(self)?;
        Ok(self.link_attributes.get_or_init(|| attributes))
    }

    pub(crate) fn objects(&self) -> Result<Option<&Objects>> {
        if let Some(objects) = self.objects.get() {
            return Ok(objects.as_ref());
        }
        let mut objects = Objects::open(&self.zarr, &self.path, self.vertices.chunk_box())?;
        if let (None, true, [only]) = (&objects, self.root.identity_objects, self.vertices.chunks()?) {
            let rows = self.chunk(only)?.map_or(0, |vertices| vertices.rows);
            let fragments = self.fragments(only, rows)?.len() as u64;
            objects = Some(Objects::identity(
                &format!("{}{}", self.zarr.name(), self.path),
                only.clone(),
                fragments,
            ));
        }
        Ok(self.objects.get_or_init(|| objects).as_ref())
    }

    /// The summary shown by `info`.
    pub(crate) fn summary(&self) -> Result<GeometryLevel> {
        let vertices = match self.metadata.get("vertex_count").and_then(Value::as_u64) {
            Some(count) => count,
            None => {
                let mut count = 0;
                for chunk in self.vertices.chunks()? {
                    count += self.chunk(chunk)?.map_or(0, |vertices| vertices.rows);
                }
                count
            }
        };
        let objects = self.objects()?.map_or(0, Objects::present);
        let stored = || self.links()?.map_or(Ok(0), Links::total);
        let shared = self.metadata.get("shared_fragments").and_then(Value::as_bool).unwrap_or(false);
        let links = match self.root.linking() {
            Linking::None => 0,
            Linking::Stored => stored()?,
            // A path or tree has one link fewer than vertices.
            Linking::Path | Linking::Tree if !shared && objects > 0 => vertices.saturating_sub(objects),
            Linking::Path | Linking::Tree => self.count_path_links()?,
        };
        Ok(GeometryLevel { path: self.path.clone(), vertices, links, objects })
    }

    /// Counts consecutive vertices of all objects, for shared fragments whose counts do not give the number.
    fn count_path_links(&self) -> Result<u64> {
        let query = hyperslab_core::GeometryQuery { attributes: Some(Vec::new()), ..Default::default() };
        let data = crate::query::run(self, &query)?;
        Ok(data.links.map_or(0, |links| links.shape.first().copied().unwrap_or(0)))
    }
}
