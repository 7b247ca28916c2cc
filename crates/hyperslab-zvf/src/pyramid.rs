//! Coarser levels: one vertex for each occupied bin, made from what is stored, chunk by chunk.
//!
//! A bin never crosses a chunk of its level, so each chunk of a coarser level is made from its own chunks of the finer one and nothing
//! else: on all cores, in memory that does not grow with the store. Positions and floating-point attributes become means, of other
//! attributes the first is kept. A link becomes the link of its bins where those differ.
//!
//! With shared fragments an object is the sequence of its bins, and objects share vertices; without, every object has vertices
//! of its own.

mod aggregate;
mod level;
mod links;
mod objects;

use std::path::Path;
use std::sync::Arc;

use hyperslab_core::storage::{StageOptions, StagedFile, StoreLock};
use hyperslab_core::{Error, LocalStorage, Result, Sink, Storage, Store};
use hyperslab_zarr::{WriteOptions as ZarrOptions, ZarrSink};
use serde_json::{Map, Value, json};

use crate::store::{self, ZvfStore};
use crate::write::cells::{LevelSink, json_attributes};
use crate::write::{CrossLevel, WriteOptions, documents};
use level::Coarsening;

/// How to make coarser levels.
#[derive(Debug, Clone)]
pub struct PyramidOptions {
    /// The size of a bin at each new level, as a multiple of the level before.
    pub factors: Vec<f64>,
    /// The bins of the finest level; those that the store declares when left out.
    pub bin_shape: Option<Vec<f64>>,
    /// May objects share vertices?
    pub shared_fragments: bool,
    /// Links between levels.
    pub cross_level: CrossLevel,
    /// Zstandard's level; `None` stores cells as they are.
    pub compression: Option<i32>,
    /// Bytes of links and objects that may wait in memory.
    pub memory: usize,
    /// May the small cells of an array be put together in shards?
    pub shards: bool,
}

impl PyramidOptions {
    /// Levels with these factors, shared fragments, no links between levels.
    #[must_use]
    pub const fn new(factors: Vec<f64>) -> Self {
        Self {
            factors,
            bin_shape: None,
            shared_fragments: true,
            cross_level: CrossLevel::None,
            compression: Some(0),
            memory: 512 << 20,
            shards: true,
        }
    }
}

/// Adds coarser levels to a store that has one level. Each level appears whole; the root names it afterwards, so that a
/// reader never sees a part of one.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) for factors that do not fit the chunks, or when the store has coarser levels;
/// [`Corrupt`](Error::Corrupt) if what is stored cannot be read.
pub fn build_pyramid(store: impl AsRef<Path>, options: &PyramidOptions) -> Result<()> {
    let folder = store.as_ref();
    let _lock = StoreLock::exclusive(folder, |_| false)?;
    let opened = store::open_path(folder)?;
    let mut root = root_document(folder)?;
    let bins = bins(&opened, &root, options)?;
    for number in 1..bins.len() {
        let opened = store::open(Arc::new(LocalStorage::new(folder)))?;
        let mut sink = ZarrSink::create(folder.join(number.to_string()), durable())?;
        let temporary = temporary_folder(folder);
        let mut level = LevelSink {
            sink: &mut sink,
            path: String::new(),
            rank: opened.levels().level(number - 1)?.vertices.rank(),
            compression: options.compression,
            shards: options.shards,
            folder: &temporary,
            extras: None,
        };
        let coarsening = Coarsening { number, bin: &bins[number], options };
        let upward = coarsening.run(opened.levels(), &mut level)?;
        let sink: Box<dyn Sink> = Box::new(sink);
        sink.commit()?;
        if let Some((mut sink, prefix)) = cross_sink(folder, number - 1, options, &opened)? {
            let mut fine = LevelSink {
                sink: &mut sink,
                path: String::new(),
                rank: upward.rank,
                compression: options.compression,
                shards: options.shards,
                folder: &temporary_folder(folder),
                extras: None,
            };
            if !prefix.is_empty() {
                fine.group("", &Value::Null)?;
            }
            upward.write(&mut fine, prefix)?;
            let sink: Box<dyn Sink> = Box::new(sink);
            sink.commit()?;
        }
        add_level(&mut root, number, &bins, options);
        write_document(&folder.join("zarr.json"), &root)?;
    }
    Ok(())
}

/// The coarser levels that the options of a new store ask for.
pub(crate) fn generated(options: &WriteOptions) -> PyramidOptions {
    PyramidOptions {
        factors: options.factors.clone(),
        bin_shape: Some(options.first_bin()),
        shared_fragments: options.shared_fragments,
        cross_level: options.cross_level,
        compression: options.compression,
        memory: options.memory,
        shards: true,
    }
}

/// Adds coarser levels to a store whose finest level is settled and that is not committed.
pub(crate) fn add_to(sink: &mut ZarrSink, own: &PyramidOptions) -> Result<()> {
    let folder = sink.folder().to_owned();
    let opened = store::open_path(&folder)?;
    let mut root = root_document(&folder)?;
    let bins = bins(&opened, &root, own)?;
    for number in 1..bins.len() {
        let opened = store::open_path(&folder)?;
        let rank = opened.levels().level(number - 1)?.vertices.rank();
        let coarsening = Coarsening { number, bin: &bins[number], options: own };
        let mut level = LevelSink {
            sink,
            path: format!("/{number}"),
            rank,
            compression: own.compression,
            shards: own.shards,
            folder: &folder,
            extras: None,
        };
        let upward = coarsening.run(opened.levels(), &mut level)?;
        if own.cross_level != CrossLevel::None {
            level.path = format!("/{}", number - 1);
            upward.write(&mut level, "links/+1")?;
        }
        add_level(&mut root, number, &bins, own);
        let attributes = root.get("attributes").cloned().unwrap_or_default();
        sink.rewrite_group("/", &json_attributes(&attributes))?;
        sink.settle()?;
    }
    Ok(())
}

/// A sink for the links from a level of an existing store to the next, and the path of the family in it.
fn cross_sink(
    folder: &Path,
    fine: usize,
    options: &PyramidOptions,
    opened: &ZvfStore,
) -> Result<Option<(ZarrSink, &'static str)>> {
    if options.cross_level == CrossLevel::None {
        return Ok(None);
    }
    let there = opened.levels().zarr.group(&format!("/{fine}/links"))?.is_some();
    let (target, path) = if there { ("links/+1", "") } else { ("links", "+1") };
    let target = folder.join(fine.to_string()).join(target);
    Ok(Some((ZarrSink::create(target, durable())?, path)))
}

/// What is added to a store is durable before the root names it. A level that the root does not name was left by a killed
/// writer and is replaced.
fn durable() -> ZarrOptions {
    ZarrOptions { sync: true, replace: true, ..ZarrOptions::default() }
}

/// Where records wait that are too many for memory: beside the store.
fn temporary_folder(store: &Path) -> std::path::PathBuf {
    match store.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => ".".into(),
    }
}

fn root_document(folder: &Path) -> Result<Map<String, Value>> {
    let directory = LocalStorage::new(folder);
    let bytes = directory
        .read("zarr.json")?
        .ok_or_else(|| Error::not_found(Arc::clone(directory.name()), "zarr.json"))?;
    let document: Option<Value> = serde_json::from_slice(&bytes).ok();
    let object = document.and_then(|document| document.as_object().cloned());
    object.ok_or_else(|| crate::meta::corrupt(&folder.display().to_string(), "zarr.json", "not an object"))
}

fn write_document(path: &Path, document: &Map<String, Value>) -> Result<()> {
    let staged = StagedFile::create(path, StageOptions::default().with_replace(true))?;
    let mut text =
        serde_json::to_vec_pretty(document).map_err(|problem| Error::invalid(problem.to_string()))?;
    text.push(b'\n');
    staged.write_at(&text, 0)?;
    staged.publish()
}

/// The bins of all levels, the finest first.
fn bins(store: &ZvfStore, root: &Map<String, Value>, options: &PyramidOptions) -> Result<Vec<Vec<f64>>> {
    let levels = store.levels();
    if levels.len() != 1 {
        return Err(Error::invalid(format!("{} has {} levels, expected one", store.name(), levels.len())));
    }
    let own = root.get("attributes").and_then(|attributes| attributes.get("zarr_vectors"));
    let declared = own.and_then(|own| own.get("base_bin_shape"));
    let rank = levels.root.rank();
    let declared = crate::meta::sizes(declared, rank);
    let first = options.bin_shape.clone().or(declared);
    let first = first.unwrap_or_else(|| levels.root.chunk_shape.iter().map(|size| size / 4.0).collect());
    let fits = |bin: &[f64]| bin.len() == rank && bin.iter().all(|size| size.is_finite() && *size > 0.0);
    if !fits(&first) || options.factors.iter().any(|factor| !(factor.is_finite() && *factor >= 1.0)) {
        return Err(Error::invalid(format!("bins of {first:?} and factors {:?}", options.factors)));
    }
    let mut bins = vec![first];
    for factor in &options.factors {
        let last = &bins[bins.len() - 1];
        bins.push(last.iter().map(|size| size * factor).collect());
    }
    Ok(bins)
}

/// Names a new level in the root's document.
fn add_level(root: &mut Map<String, Value>, number: usize, bins: &[Vec<f64>], options: &PyramidOptions) {
    let Some(attributes) = root.get_mut("attributes") else { return };
    let own = &mut attributes["zarr_vectors"];
    own["cross_level_storage"] = json!(options.cross_level.name());
    own["cross_level_depth"] = json!(if options.cross_level == CrossLevel::None { 0 } else { 1 });
    let mut tokens: Vec<String> = own["format_capabilities"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|token| token.as_str().map(str::to_owned))
        .collect();
    let wanted = [
        ("preserved_object_ids", true),
        ("shared_fragments", options.shared_fragments),
        ("multiscale_links", options.cross_level != CrossLevel::None),
    ];
    for (token, wanted) in wanted {
        if wanted && !tokens.iter().any(|own| own == token) {
            tokens.push(token.to_owned());
        }
    }
    own["format_capabilities"] = json!(tokens);
    let base = own.get("base_bin_shape").or_else(|| own.get("chunk_shape")).cloned();
    let base = crate::meta::sizes(base.as_ref(), bins[0].len()).unwrap_or_else(|| bins[0].clone());
    let dataset = documents::dataset(number, &bins[number], &base);
    if let Some(datasets) = attributes["multiscales"][0]["datasets"].as_array_mut() {
        datasets.push(dataset);
    }
    if let Some(nodes) = attributes.get_mut("ome").and_then(|ome| ome.get_mut("nodes")?.as_array_mut()) {
        nodes.push(documents::node(number));
    }
}
