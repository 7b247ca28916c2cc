//! Records the stored content: a hash of every chunk's stored bytes and of each node's description. Compared later, the record
//! shows changes, losses and additions, even if the format has no checksums.

use std::collections::BTreeMap;
use std::path::Path;

use bytes::Bytes;
use hyperslab_core::storage::{StageOptions, StagedFile};
use hyperslab_core::{Array, ChunkCoord, ChunkRef, Error, Node, Report, Result, check_chunks_in_order};
use serde::{Deserialize, Serialize};

use crate::{OpenOptions, OpenStore, hash};

/// The version of the document.
const VERSION: u32 = 1;
/// The maximum number of differences listed.
const MOST_NAMED: usize = 100;

/// A record of the content of a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The version of the document: 1.
    pub version: u32,
    /// The format of the store.
    pub format: String,
    /// The hash function: `blake3`.
    pub hash: String,
    /// Every node, by path.
    pub nodes: Vec<RecordedNode>,
    /// Every stored chunk, by node and coordinate.
    pub chunks: Vec<RecordedChunk>,
}

/// A node and the hash of its description.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedNode {
    /// Its path.
    pub node: String,
    /// `group`, `array`, `table`, `geometry`, `link` or `type`.
    pub kind: String,
    /// The hash of its description: type, shape, chunks, filters, fill value, dimensions and attributes. For a table or geometry,
    /// it includes the values.
    pub hash: String,
}

/// A stored chunk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedChunk {
    /// The array.
    pub node: String,
    /// The coordinate in the grid.
    pub chunk: Vec<u64>,
    /// The number of stored bytes.
    pub bytes: u64,
    /// The hash of these bytes.
    pub hash: String,
}

impl Record {
    /// Reads all stored bytes of a store.
    ///
    /// # Errors
    ///
    /// Any error from reading: content that cannot be read cannot be recorded.
    pub fn of(store: &OpenStore) -> Result<Self> {
        let (mut nodes, mut chunks) = (Vec::new(), Vec::new());
        store.walk(&mut |path, node| {
            let node = node?;
            nodes.push(RecordedNode {
                node: path.to_owned(),
                kind: node.kind().to_string(),
                hash: described(store, path, &node)?,
            });
            if let Node::Array(array) = &node {
                stored_chunks(&**array, path, &mut chunks)?;
            }
            Ok(())
        })?;
        nodes.sort_by(|one, other| one.node.cmp(&other.node));
        chunks.sort_by(|one, other| (&one.node, &one.chunk).cmp(&(&other.node, &other.chunk)));
        Ok(Self {
            version: VERSION,
            format: store.format().to_owned(),
            hash: "blake3".to_owned(),
            nodes,
            chunks,
        })
    }

    /// Reads a record from a local file.
    ///
    /// # Errors
    ///
    /// [`Io`](Error::Io) if it cannot be read, [`Invalid`](Error::Invalid) if it is not a record.
    pub fn read(path: &Path) -> Result<Self> {
        Self::read_at(path, &OpenOptions::default())
    }

    /// Like [`read`](Self::read), for a path or a URL.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn read_at(location: &Path, options: &OpenOptions) -> Result<Self> {
        let name = crate::location_name(location);
        let bytes = crate::location::read_file(location, options)?;
        let record: Self = serde_json::from_slice(&bytes)
            .map_err(|why| Error::invalid(format!("{name} is not a record of checksums: {why}")))?;
        if record.version != VERSION || record.hash != "blake3" {
            return Err(Error::invalid(format!(
                "{name}: the record has version {} with {} hashes, expected {VERSION} with blake3",
                record.version, record.hash
            )));
        }
        Ok(record)
    }

    /// Writes the record to a file, which appears complete. An existing file is replaced.
    ///
    /// # Errors
    ///
    /// [`Io`](Error::Io) if the system reports an error.
    pub fn write(&self, path: &Path) -> Result<()> {
        let path = &*crate::location::local_target(path)?;
        let name = path.display().to_string();
        let mut text = serde_json::to_vec_pretty(self)
            .map_err(|why| Error::invalid(format!("{name}: cannot write the record: {why}")))?;
        text.push(b'\n');
        let staged = StagedFile::create(path, StageOptions::default().with_replace(true))?;
        staged.write_at(&text, 0)?;
        staged.publish()
    }

    /// Adds the differences between this record and a later one to the report. Every difference is an error.
    pub fn compare(&self, later: &Self, report: &mut Report) {
        let nodes = |record: &Self| -> BTreeMap<String, String> {
            record
                .nodes
                .iter()
                .map(|node| (node.node.clone(), format!("{} {}", node.kind, node.hash)))
                .collect()
        };
        let chunks = |record: &Self| -> BTreeMap<(String, Vec<u64>), String> {
            let entry = |own: &RecordedChunk| {
                ((own.node.clone(), own.chunk.clone()), format!("{} {}", own.bytes, own.hash))
            };
            record.chunks.iter().map(entry).collect()
        };
        let before = report.findings.len();
        let path = |node: &String| (node.clone(), "its description".to_owned());
        tell(&nodes(self), &nodes(later), path, report);
        let chunk = |(node, chunk): &(String, Vec<u64>)| (node.clone(), format!("chunk {chunk:?}"));
        tell(&chunks(self), &chunks(later), chunk, report);
        if report.findings.len() == before {
            let detail =
                format!("{} nodes and {} chunks are as recorded", self.nodes.len(), self.chunks.len());
            report.passed("record", detail);
        }
    }
}

fn tell<K: Ord>(
    before: &BTreeMap<K, String>,
    after: &BTreeMap<K, String>,
    name: impl Fn(&K) -> (String, String),
    report: &mut Report,
) {
    let mut differences: Vec<(&'static str, String, String)> = Vec::new();
    for (key, held) in before {
        let (node, what) = name(key);
        match after.get(key) {
            None => differences.push((
                "record_missing",
                node,
                format!("{what} was recorded but no longer exists"),
            )),
            Some(now) if now != held => {
                differences.push(("record_changed", node, format!("{what} differs from the record")))
            }
            Some(_) => {}
        }
    }
    for key in after.keys().filter(|key| !before.contains_key(*key)) {
        let (node, what) = name(key);
        differences.push(("record_new", node, format!("{what} exists but was not recorded")));
    }
    let count = differences.len();
    for (check, node, detail) in differences.into_iter().take(MOST_NAMED) {
        report.error(check, detail);
        report.at_node(&node);
    }
    if count > MOST_NAMED {
        report.error("record", format!("{} more differences", count - MOST_NAMED));
    }
}

/// The hash of a node's description.
fn described(store: &OpenStore, path: &str, node: &Node) -> Result<String> {
    let text = match node {
        Node::Group(attributes) => serde_json::json!(attributes.to_json()),
        Node::Array(array) => {
            let schema = array.schema();
            let filters: Vec<_> =
                schema.filters.iter().map(|filter| (&filter.name, &filter.parameters)).collect();
            serde_json::json!({
                "type": hash::canonical::type_name(&schema.dtype), "shape": schema.shape(),
                "chunks": schema.grid.chunk_shape(), "max_shape": schema.max_shape, "dimensions": schema.dimensions,
                "fill": format!("{:?}", schema.fill), "filters": filters, "attributes": schema.attributes.to_json(),
            })
        }
        Node::Table(table) => serde_json::json!({
            "values": hash::table(&store.table(path)?)?.to_hex().to_string(),
            "attributes": table.schema().attributes.to_json(),
        }),
        Node::Geometry(geometry) => serde_json::json!({
            "values": hash::geometry(&store.geometry(path)?)?.to_hex().to_string(),
            "attributes": geometry.schema().attributes.to_json(),
        }),
        Node::Link(target) => serde_json::json!(target),
        Node::Type(dtype, attributes) => {
            serde_json::json!([hash::canonical::type_name(dtype), attributes.to_json()])
        }
        other => return Err(Error::unsupported(path, format!("recording {}", other.kind().one()))),
    };
    Ok(blake3::hash(text.to_string().as_bytes()).to_hex().to_string())
}

/// The stored chunks of an array, hashed on all cores.
fn stored_chunks(array: &dyn Array, path: &str, chunks: &mut Vec<RecordedChunk>) -> Result<()> {
    let walk = |put: &mut dyn FnMut((ChunkCoord, ChunkRef))| {
        array.visit_chunks(&mut |chunk, reference| {
            put((chunk, reference));
            Ok(std::ops::ControlFlow::Continue(()))
        })
    };
    let check = |(chunk, reference): (ChunkCoord, ChunkRef), fetched| -> Result<Option<RecordedChunk>> {
        let stored: Option<Vec<Bytes>> = match fetched {
            Some(stored) => Some(stored),
            None => array.fetch(&reference.spans().collect::<Vec<_>>())?.into_iter().collect(),
        };
        // The object disappeared after it was listed.
        let Some(stored) = stored else { return Ok(None) };
        let mut hasher = blake3::Hasher::new();
        let mut bytes = 0;
        for stored in stored {
            hasher.update(&stored);
            bytes += stored.len() as u64;
        }
        let hash = hasher.finalize().to_hex().to_string();
        Ok(Some(RecordedChunk { node: path.to_owned(), chunk: chunk.to_vec(), bytes, hash }))
    };
    let mut failed = None;
    check_chunks_in_order(
        array,
        walk,
        |item| Some(&item.1),
        check,
        |outcome| match outcome {
            Ok(recorded) => chunks.extend(recorded),
            Err(why) => {
                failed.get_or_insert(why);
            }
        },
    )?;
    failed.map_or(Ok(()), Err)
}
