//! A store that is being written: accepts batches of vertices and links, in bounded memory.

use std::path::{Path, PathBuf};

use hyperslab_core::{DType, Error, GeometryData, Result, Sink, Values};
use hyperslab_zarr::ZarrSink;

use super::append::Kept;
use super::arrange::{KEY, Layout, NO_OBJECT};
use super::buckets::Buckets;
use super::chunks::ChunkNumbers;
use super::columns::{ColumnSpec, Positions, Rows};
use super::documents::RootDocument;
use super::finish;
use super::links::LinkStream;
use super::objects::{ObjectColumn, ObjectIds};
use super::{GeometryKind, WriteOptions};

/// The content to write: the columns of vertices and links.
#[derive(Debug, Clone)]
pub struct GeometrySpec {
    /// The kind of geometry.
    pub kind: GeometryKind,
    /// The number of coordinates per vertex.
    pub rank: usize,
    /// Their type: 64-bit floats are preserved, all other numbers become 32-bit floats.
    pub dtype: DType,
    /// Attributes of vertices.
    pub attributes: Vec<ColumnSpec>,
    /// The number of vertices per link; `None` if there are no links. Lines link their vertices implicitly.
    pub link_width: Option<usize>,
    /// Attributes of links.
    pub link_attributes: Vec<ColumnSpec>,
    /// Whether vertices belong to objects. Always true for lines.
    pub objects: bool,
}

/// A new store, filled batch by batch. Data beyond the memory budget waits in a file beside the target. Nothing is
/// visible before [`commit`](Self::commit). A dropped writer leaves nothing behind.
///
/// The memory budget does not cover the list of chunks, the ids of objects, and the links of skeletons.
#[derive(Debug)]
pub struct ZvfWriter {
    pub(super) sink: ZarrSink,
    pub(super) name: String,
    pub(super) folder: PathBuf,
    pub(super) spec: GeometrySpec,
    pub(super) options: WriteOptions,
    pub(super) dtype: DType,
    /// The size of a vertex's record in bytes.
    pub(super) record: usize,
    pub(super) layout: Layout,
    pub(super) chunks: ChunkNumbers,
    pub(super) vertices: Buckets,
    pub(super) count: u64,
    pub(super) ids: ObjectIds,
    pub(super) object_attributes: Vec<ObjectColumn>,
    pub(super) links: Option<LinkStream>,
    /// The links of a skeleton, which are walked together at the end.
    pub(super) tree: Vec<u32>,
    pub(super) path: Option<Visiting>,
    /// The number of vertices that already existed. Links count from the vertices after them.
    pub(super) base: u64,
    /// The preserved parts of a store that is being extended.
    pub(super) kept: Option<Kept>,
}

/// The path of the last vertex.
#[derive(Debug, Clone, Copy)]
pub(super) struct Visiting {
    id: i64,
    number: u32,
    visit: u64,
    chunk: u32,
}

impl ZvfWriter {
    /// Starts a new store at `target`.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) if the options do not fit, or if something exists there and must not be replaced.
    pub fn create(target: impl AsRef<Path>, spec: GeometrySpec, options: WriteOptions) -> Result<Self> {
        let target = target.as_ref();
        if spec.rank == 0 || spec.rank > 16 {
            return Err(Error::invalid(format!("vertices of {} coordinates", spec.rank)));
        }
        options.check(spec.rank)?;
        check_spec(&spec)?;
        let dtype = super::columns::stored_dtype(&spec.dtype)?;
        let sink_options = hyperslab_zarr::WriteOptions {
            shard_shape: options.shard_shape.map(|each| vec![each; 1]),
            replace: options.replace,
            sync: options.sync,
            ..Default::default()
        };
        let sink = ZarrSink::create(target, sink_options)?;
        let folder = sink.folder().to_owned();
        let layout = match spec.kind {
            kind if kind.is_path() => Layout::Visits,
            GeometryKind::Skeleton => Layout::Trees(Default::default()),
            GeometryKind::PointCloud if !spec.objects => {
                Layout::bins(&options.chunk_shape, options.base_bin(&spec).unwrap_or(&options.chunk_shape))?
            }
            _ => Layout::Owners,
        };
        let key = if layout.is_keyed() { KEY } else { 0 };
        let payload: usize = spec.attributes.iter().map(ColumnSpec::row_size).sum();
        let record = key + dtype.size().unwrap_or(4) * spec.rank + payload;
        let spilling = |share: usize| Buckets::new(options.memory / share, &folder);
        let links =
            spec.link_width.filter(|_| spec.kind.stores_links() && spec.kind != GeometryKind::Skeleton);
        let links = links.map(|width| LinkStream::new(width, &spec.link_attributes, || spilling(8)));
        let name = target.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        Ok(Self {
            sink,
            name,
            chunks: ChunkNumbers::new(&options.chunk_shape),
            vertices: spilling(2),
            folder,
            spec,
            options,
            dtype,
            record,
            layout,
            count: 0,
            ids: ObjectIds::default(),
            object_attributes: Vec::new(),
            links,
            tree: Vec::new(),
            path: None,
            base: 0,
            kept: None,
        })
    }

    /// Adds vertices: a row of coordinates for each, a row of every attribute, and the id of its object (no ids at
    /// all if the store has no objects). The vertices of a line must be consecutive.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) if the rows do not match the columns, if a position is not finite, or if a line is
    /// not consecutive.
    pub fn vertices(
        &mut self,
        vertices: &Values,
        attributes: &[(String, Values)],
        objects: &[Option<i64>],
    ) -> Result<()> {
        let rows = vertices.shape.first().copied().unwrap_or(0) as usize;
        if u32::try_from(self.count + rows as u64).is_err() && self.spec.kind == GeometryKind::Skeleton {
            return Err(Error::invalid("a skeleton of more than 2^32 vertices"));
        }
        if self.spec.objects == objects.is_empty() && rows > 0 || !objects.is_empty() && objects.len() != rows
        {
            return Err(Error::invalid(format!("{} objects for {rows} vertices", objects.len())));
        }
        let positions = Positions::new(vertices, self.spec.rank, &self.dtype)?;
        let columns = Rows::new(&self.spec.attributes, attributes, rows)?;
        let numbers = self.chunks.of(&positions, rows)?;
        let room = (self.vertices.room() / self.record).max(1);
        let (rank, keyed) = (self.spec.rank, self.layout.is_keyed());
        let mut owner = (None, NO_OBJECT);
        for first in (0..rows).step_by(room) {
            let last = rows.min(first + room);
            self.vertices.expect(&numbers[first..last], self.record);
            for (vertex, chunk) in numbers.iter().copied().enumerate().take(last).skip(first) {
                let key = if keyed { Some(self.key(objects.get(vertex), chunk, &mut owner)?) } else { None };
                let buffer = self.vertices.buffer(chunk as usize);
                if let Some(key) = key {
                    buffer.extend(key[0].to_le_bytes());
                    buffer.extend(key[1].to_le_bytes());
                }
                positions.append(vertex, rank, buffer);
                columns.append(vertex, &self.spec.attributes, buffer);
                self.count += 1;
            }
            self.vertices.settle((last - first) * self.record)?;
        }
        Ok(())
    }

    /// The two numbers that determine the row order in a chunk.
    fn key(
        &mut self,
        object: Option<&Option<i64>>,
        chunk: u32,
        last: &mut (Option<i64>, u64),
    ) -> Result<[u64; 2]> {
        let object = object.copied().flatten();
        if matches!(self.layout, Layout::Visits) {
            let Some(id) = object else {
                return Err(Error::invalid(format!("vertex {} belongs to no line", self.count)));
            };
            return self.visit(id, chunk);
        }
        if object.is_some() && object == last.0 {
            return Ok([last.1, self.count]);
        }
        let number = match object {
            None => NO_OBJECT,
            Some(id) => self.ids.number(id)?.0.into(),
        };
        *last = (object, number);
        Ok([number, self.count])
    }

    fn visit(&mut self, id: i64, chunk: u32) -> Result<[u64; 2]> {
        let path = match &mut self.path {
            Some(path) if path.id == id => {
                path.visit += u64::from(path.chunk != chunk);
                path.chunk = chunk;
                *path
            }
            _ => {
                let (number, new) = self.ids.number(id)?;
                if !new {
                    let problem = if self.base > 0 {
                        "already exists, or is not consecutive"
                    } else {
                        "is not consecutive"
                    };
                    return Err(Error::invalid(format!("the line {id} {problem}")));
                }
                Visiting { id, number, visit: 0, chunk }
            }
        };
        self.path = Some(path);
        Ok([path.number.into(), path.visit])
    }

    /// Declares an object, which may have no vertices.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) if there are too many.
    pub fn object(&mut self, id: i64) -> Result<()> {
        self.ids.number(id).map(|_| ())
    }

    /// Adds links: the numbers of their vertices, in order of arrival, and a row of every attribute.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) if the rows do not match the columns.
    pub fn links(&mut self, links: &[u64], attributes: &[(String, Values)]) -> Result<()> {
        let Some(width) = self.spec.link_width else {
            return Err(Error::invalid("the store was created without links"));
        };
        if !links.len().is_multiple_of(width) {
            return Err(Error::invalid(format!("{} ends of links of {width}", links.len())));
        }
        if self.spec.kind == GeometryKind::Skeleton {
            let rows = links.iter().map(|vertex| u32::try_from(vertex.saturating_add(self.base)));
            let rows = rows.collect::<std::result::Result<Vec<_>, _>>();
            self.tree.extend(rows.map_err(|_| Error::invalid("a link past vertex 2^32"))?);
            return Ok(());
        }
        let rows = Rows::new(&self.spec.link_attributes, attributes, links.len() / width)?;
        match &mut self.links {
            Some(stream) if self.base == 0 => stream.push(links, &rows),
            Some(stream) => {
                let moved: Vec<u64> = links.iter().map(|vertex| vertex.saturating_add(self.base)).collect();
                stream.push(&moved, &rows)
            }
            None => Err(Error::invalid(format!("links in a {}", self.spec.kind.name()))),
        }
    }

    /// Adds a geometry from memory, with its objects and their groups. Its links and objects refer to its own
    /// vertices.
    ///
    /// # Errors
    ///
    /// Like [`vertices`](Self::vertices) and [`links`](Self::links).
    pub fn add(&mut self, data: &GeometryData, groups: &[Vec<i64>]) -> Result<()> {
        super::whole::add(self, data)?;
        self.options.groups.extend_from_slice(groups);
        Ok(())
    }

    /// Returns true if vertices belong to objects.
    #[must_use]
    pub const fn has_objects(&self) -> bool {
        self.spec.objects
    }

    /// Adds an attribute of all objects, in ascending order of their ids.
    pub fn object_attribute(&mut self, name: &str, values: Values) {
        self.object_attributes.push(ObjectColumn { name: name.to_owned(), ids: None, values });
    }

    /// Adds an attribute of these objects. Objects without a value are marked as absent.
    pub(super) fn attribute_of(&mut self, name: &str, ids: Vec<i64>, values: Values) {
        self.object_attributes.push(ObjectColumn { name: name.to_owned(), ids: Some(ids), values });
    }

    /// The metadata for the root.
    pub(super) fn document(&self) -> RootDocument {
        let rank = self.spec.rank;
        let default = |axis: usize| {
            ["x", "y", "z", "w"].get(axis).map_or_else(|| format!("d{axis}"), |name| (*name).to_owned())
        };
        let seen = || {
            let zero = vec![0.0; rank];
            if self.count == 0 {
                [zero.clone(), zero]
            } else {
                [self.chunks.low.clone(), self.chunks.high.clone()]
            }
        };
        RootDocument {
            kind: self.spec.kind,
            name: self.name.clone(),
            axes: self.options.axes.clone().unwrap_or_else(|| (0..rank).map(default).collect()),
            bounds: self.options.bounds.clone().unwrap_or_else(seen),
            chunk_shape: self.options.chunk_shape.clone(),
            bin: self.options.base_bin(&self.spec).cloned(),
        }
    }

    /// Writes everything, with coarser levels if the options request them, and makes it visible at once.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) if the data is inconsistent; [`Io`](Error::Io) if the system reports an error.
    pub fn commit(self) -> Result<()> {
        let sink = finish::finish(self)?;
        let sink: Box<dyn Sink> = Box::new(sink);
        sink.commit()
    }
}

fn check_spec(spec: &GeometrySpec) -> Result<()> {
    if let Some(width) = spec.link_width {
        let fits = match spec.kind {
            GeometryKind::Graph | GeometryKind::Skeleton => width == 2,
            _ => (2..=8).contains(&width),
        };
        if !fits || !spec.kind.stores_links() {
            return Err(Error::invalid(format!("links of {width} vertices in a {}", spec.kind.name())));
        }
    }
    if spec.kind == GeometryKind::Skeleton && !spec.link_attributes.is_empty() {
        return Err(Error::invalid("attributes of the links of a skeleton: most of those are not stored"));
    }
    if spec.link_width.is_none() && !spec.link_attributes.is_empty() {
        return Err(Error::invalid("attributes of links without links"));
    }
    if spec.kind.is_path() && !spec.objects {
        return Err(Error::invalid("lines without objects"));
    }
    for column in spec.attributes.iter().chain(&spec.link_attributes) {
        hyperslab_zarr::NODE_NAMES.name("Zarr Vectors", &column.name)?;
    }
    let mut names: Vec<&str> = spec.attributes.iter().map(|column| column.name.as_str()).collect();
    names.sort_unstable();
    if names.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(Error::invalid("two attributes have the same name"));
    }
    Ok(())
}
