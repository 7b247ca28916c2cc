//! Generates coarser levels, with one vertex per occupied bin, chunk by chunk from the stored data.
//!
//! A bin never crosses a chunk of its level, so each coarser chunk depends only on the finer chunks that it covers.
//! This runs on all cores, with memory independent of the store's size. Positions and floating-point attributes are
//! averaged; of other attributes, the first value is kept. A link connects the bins of its ends, if they differ.
//!
//! With shared fragments, an object is the sequence of its bins, and objects share vertices. Otherwise, each object
//! has its own vertices.

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

/// Options for generating coarser levels.
#[derive(Debug, Clone)]
pub struct PyramidOptions {
    /// The bin size at each new level, as a multiple of the previous level's.
    pub factors: Vec<f64>,
    /// The bins of the finest level. By default, those that the store declares.
    pub bin_shape: Option<Vec<f64>>,
    /// Whether objects may share vertices.
    pub shared_fragments: bool,
    /// Links between levels.
    pub cross_level: CrossLevel,
    /// The Zstandard level; `None` stores cells uncompressed.
    pub compression: Option<i32>,
    /// The memory budget for links and objects, in bytes.
    pub memory: usize,
    /// Whether small cells of an array may be combined in shards.
    pub shards: bool,
}

impl PyramidOptions {
    /// Levels with these factors, with shared fragments and without links between levels.
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

/// Adds coarser levels to a store with a single level. Each level is published complete, and only then listed in the
/// root, so that a reader never sees a partial one.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) for factors that do not fit the chunks, or if the store has coarser levels;
/// [`Corrupt`](Error::Corrupt) if the stored data cannot be read.
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

/// The coarser levels requested by the options of a new store.
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

/// Adds coarser levels to an uncommitted store whose finest level is complete.
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

/// A sink for the links from a level of an existing store to the next, and their path in it.
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

/// The options for adding a level. It is durable before the root lists it. An unlisted level was left by a killed
/// writer and is replaced.
fn durable() -> ZarrOptions {
    ZarrOptions { sync: true, replace: true, ..ZarrOptions::default() }
}

/// The folder beside the store for records that exceed the memory budget.
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

/// The bins of all levels, finest first.
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

/// Lists a new level in the root's document.
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
