//! Open stores: a geometry and its levels, or a bare fragment index.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use hyperslab_core::{
    Attribute, Attributes, Blob, Depth, Error, LocalStorage, Node, Place, Report, Result, Storage, Store,
    counted, normal_path,
};
use hyperslab_zarr::ZarrStore;
use serde_json::{Map, Value, json};

use crate::fragment::{FragmentIndex, MAGIC};
use crate::geometry::ZvfGeometry;
use crate::level::Level;
use crate::meta::{Root, corrupt};
use crate::verify;

/// The levels of a store, opened on demand.
#[derive(Debug)]
pub(crate) struct Levels {
    pub(crate) zarr: Arc<ZarrStore>,
    pub(crate) root: Arc<Root>,
    opened: Vec<OnceLock<Level>>,
}

impl Levels {
    pub(crate) fn len(&self) -> usize {
        self.opened.len()
    }

    /// The level with this number.
    pub(crate) fn level(&self, number: usize) -> Result<&Level> {
        let named = |name: &String| name.parse() == Ok(number as u32);
        let at = self.root.levels.iter().position(named);
        let Some(at) = at else {
            let name = self.zarr.directory().name();
            return Err(Error::invalid(format!(
                "{name}: there is no level {number}, there are {:?}",
                self.root.levels
            )));
        };
        if let Some(level) = self.opened[at].get() {
            return Ok(level);
        }
        let level = Level::open(&self.zarr, &self.root, &self.root.levels[at])?;
        Ok(self.opened[at].get_or_init(|| level))
    }

    /// The levels that together make up the content of this level, finest first. A level that adds needs the next
    /// coarser one.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](Error::Corrupt) if that level is missing and the store declares additive levels. Without the
    /// declaration, a level with nothing to add to is complete.
    pub(crate) fn chain(&self, number: usize) -> Result<Vec<&Level>> {
        let mut chain = vec![self.level(number)?];
        let mut next = number;
        while chain.last().is_some_and(|level| level.adds) {
            next += 1;
            if self.root.levels.iter().any(|name| name.parse() == Ok(next)) {
                chain.push(self.level(next)?);
            } else if self.root.requires_additive {
                let problem = format!("level {} adds to level {next}, which does not exist", next - 1);
                return Err(corrupt(self.zarr.directory().name(), "zarr.json", problem));
            } else {
                break;
            }
        }
        Ok(chain)
    }
}

/// An opened Zarr Vectors store.
#[derive(Debug)]
pub struct ZvfStore {
    levels: Arc<Levels>,
}

/// Returns true if this directory is a Zarr Vectors store: its root document has the attribute `zarr_vectors`.
///
/// # Errors
///
/// [`Io`](Error::Io) if the directory cannot be read.
pub fn probe(directory: &dyn Storage) -> Result<bool> {
    let Some(bytes) = directory.read("zarr.json")? else { return Ok(false) };
    let document: Option<Value> = serde_json::from_slice(&bytes).ok();
    let attributes = document.as_ref().and_then(|document| document.get("attributes"));
    Ok(attributes.is_some_and(|attributes| attributes.get("zarr_vectors").is_some()))
}

/// Opens the store in this directory.
///
/// # Errors
///
/// [`Corrupt`](Error::Corrupt) if its root is damaged, [`Unsupported`](Error::Unsupported) if it requires an unknown
/// capability.
pub fn open(directory: Arc<dyn Storage>) -> Result<ZvfStore> {
    let zarr = Arc::new(hyperslab_zarr::open(directory)?);
    let root = Arc::new(Root::read(&zarr)?);
    let opened = root.levels.iter().map(|_| OnceLock::new()).collect();
    Ok(ZvfStore { levels: Arc::new(Levels { zarr, root, opened }) })
}

/// Opens the store at this path.
///
/// # Errors
///
/// Like [`open`].
pub fn open_path(path: impl AsRef<Path>) -> Result<ZvfStore> {
    open(Arc::new(LocalStorage::new(path.as_ref())))
}

impl ZvfStore {
    pub(crate) const fn levels(&self) -> &Arc<Levels> {
        &self.levels
    }

    /// The whole geometry.
    ///
    /// # Errors
    ///
    /// Like [`Store::node`].
    pub fn geometry(&self) -> Result<ZvfGeometry> {
        ZvfGeometry::new(&self.levels, None)
    }
}

impl Store for ZvfStore {
    fn format(&self) -> &'static str {
        "zvf"
    }

    fn name(&self) -> &Arc<str> {
        self.levels.zarr.directory().name()
    }

    fn is_remote(&self) -> bool {
        self.levels.zarr.directory().is_remote()
    }

    fn children(&self, path: &str) -> Result<Vec<String>> {
        match normal_path(path).as_str() {
            "/" => Ok(self.levels.root.levels.clone()),
            other => {
                self.node(other)?;
                Ok(Vec::new())
            }
        }
    }

    fn node(&self, path: &str) -> Result<Node> {
        let path = normal_path(path);
        let name = &path[1..];
        if name.is_empty() {
            return Ok(Node::Geometry(Arc::new(self.geometry()?)));
        }
        if self.levels.root.levels.iter().any(|level| level == name) {
            let number = name.parse().map_err(|_| Error::invalid(format!("a level {name:?}")))?;
            return Ok(Node::Geometry(Arc::new(ZvfGeometry::new(&self.levels, Some(number))?)));
        }
        // The underlying Zarr nodes can also be accessed.
        self.levels.zarr.node(&path)
    }

    fn details(&self) -> Result<Map<String, Value>> {
        crate::info::details(&self.levels)
    }

    fn verify(&self, depth: Depth, report: &mut Report) -> Result<()> {
        verify::store(&self.levels, depth, report);
        Ok(())
    }
}

/// Returns true if these bytes start a fragment index.
#[must_use]
pub fn probe_fragment_index(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

/// A bare fragment index, as a store with one node.
#[derive(Debug)]
pub struct FragmentStore {
    name: Arc<str>,
    index: FragmentIndex,
}

/// Opens a bare fragment index.
///
/// # Errors
///
/// [`Corrupt`](Error::Corrupt) if the blob is not one.
pub fn open_fragment_index(blob: &dyn Blob) -> Result<FragmentStore> {
    let bytes = blob.read_at(0, blob.len()?)?;
    let index = FragmentIndex::parse(bytes, Place::new(blob.name(), "fragment index", 0))?;
    Ok(FragmentStore { name: Arc::clone(blob.name()), index })
}

impl FragmentStore {
    /// The index.
    #[must_use]
    pub const fn index(&self) -> &FragmentIndex {
        &self.index
    }
}

impl Store for FragmentStore {
    fn format(&self) -> &'static str {
        "zvf"
    }

    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn children(&self, _: &str) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn node(&self, path: &str) -> Result<Node> {
        if normal_path(path) != "/" {
            return Err(Error::not_found(Arc::clone(&self.name), format!("the node {path}")));
        }
        let (all, ranges) = (self.index.len(), self.index.ranges());
        let attributes =
            [("fragments", all), ("range_fragments", ranges), ("explicit_fragments", all - ranges)];
        let named = attributes.map(|(name, count)| (name, Attribute::Json(json!(count))));
        Ok(Node::Group(Attributes::from_iter(named)))
    }

    fn details(&self) -> Result<Map<String, Value>> {
        let fragments = self.index.iter().map(|fragment| fragment.to_json()).collect();
        Ok(Map::from_iter([("fragments".to_owned(), Value::Array(fragments))]))
    }

    fn verify(&self, _: Depth, report: &mut Report) -> Result<()> {
        // Opening already checks everything that can be checked without the chunk.
        report.passed("fragment_index", counted(self.index.len() as u64, "fragment"));
        Ok(())
    }
}
