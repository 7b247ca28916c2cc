//! Several stores as one, joined along a shared dimension.
//!
//! [`combine`] opens stores, checks that they agree, and returns a store in which every array with the dimension is as long as
//! all of them together. Nothing is read ahead: chunks are read from the underlying stores on demand, so memory stays within the
//! limit however many stores there are. [`concat`] converts such a store. [`append_along`] adds stores to the end of an existing
//! one.
//!
//! | module | does |
//! |---|---|
//! | `inputs` | paths and patterns to a list of stores |
//! | `parts` | opens stores on demand and closes the least recently used ones |
//! | `examine` | compares a store with the first: nodes, types, shapes, units, values that must be equal |
//! | `order` | the order of the stores by their coordinate; gaps and overlaps |
//! | `rebase` | times that count from another date |
//! | `merge` | merges attributes |
//! | `array`, `store` | the joined arrays, and the store that holds them |
//! | `append` | appends to an existing store |

mod append;
mod array;
mod examine;
mod inputs;
mod merge;
mod order;
mod parts;
mod rebase;
mod store;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hyperslab_core::{Error, Result, url_name};
use rayon::prelude::*;

pub use append::{AppendOptions, AppendReport, append_along};
pub use inputs::expand;
pub use merge::AttributeRule;

use crate::convert::{ConvertOptions, ConvertReport, Progress, convert};
use crate::location::remote_url;
use crate::{Format, OpenOptions, OpenStore, location_name};
use examine::{Model, StoreFacts};
use parts::PartStores;
use store::CombinedStore;

/// Options for combining stores.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct CombineOptions {
    /// How each store is opened.
    pub open: OpenOptions,
    /// How to treat attributes that differ between stores.
    pub attributes: AttributeRule,
    /// Nodes to leave out of every store that has them, with everything below them. They are not compared.
    pub drop: Vec<String>,
    /// Use only these nodes of every store, with everything below them and the arrays that describe them. Empty for all.
    pub keep: Vec<String>,
}

hyperslab_core::option_setters! { CombineOptions {
    with_open = open: OpenOptions,
    with_attributes = attributes: AttributeRule,
    with_drop = drop: Vec<String>,
    with_keep = keep: Vec<String>,
} }

/// Several stores combined into one.
#[derive(Debug)]
pub struct Combination {
    /// The combined store.
    pub store: OpenStore,
    /// The stores, in their order along the dimension.
    pub order: Vec<PathBuf>,
    /// Notes for the user (gaps, differing attributes, missing coordinates): node and text.
    pub notes: Vec<(String, String)>,
}

/// Opens several stores as one, joined along a dimension.
///
/// The stores are sorted by the dimension's coordinate. Without a coordinate they stay in the given order. Arrays without the
/// dimension must be equal in all stores. Units of time and differing attributes are those of the earliest store.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) if the stores disagree; the message names the store and the difference. Otherwise any error from
/// opening and reading them.
pub fn combine(paths: &[PathBuf], dimension: &str, options: &CombineOptions) -> Result<Combination> {
    let (found, _) = joined(paths, dimension, options, false)?;
    if found.order.first() == paths.first() {
        return Ok(found);
    }
    // The earliest store gives units and attributes, in whatever order the stores are named.
    joined(&found.order, dimension, options, false).map(|joined| joined.0)
}

/// Like [`combine`]. With `first_stays`, the first store stays in front whatever its coordinate, and the others must follow it.
fn joined(
    paths: &[PathBuf],
    dimension: &str,
    options: &CombineOptions,
    first_stays: bool,
) -> Result<(Combination, Arc<CombinedStore>)> {
    if paths.is_empty() {
        return Err(Error::invalid("nothing to combine: no input files"));
    }
    let parts = Arc::new(PartStores::new(paths, options));
    // For messages, attributes and the history.
    let name = |path: &PathBuf| remote_url(path).map_or_else(|| path.clone(), |url| url_name(url).into());
    let names: Vec<PathBuf> = paths.iter().map(name).collect();
    let (model, facts) = Model::new(parts.store(0)?, &names[0], dimension)?;
    let rest: Vec<Result<StoreFacts>> = (1..paths.len())
        .into_par_iter()
        .with_max_len(1)
        .map(|number| model.examine(parts.store(number)?, &names[number]))
        .collect();
    let mut all = vec![facts];
    for found in rest {
        all.push(found?);
    }
    parts.check_dropped()?;
    let mut notes = Vec::new();
    let order = order::sorted(&model, &names, &all, first_stays, &mut notes)?;
    let store = CombinedStore::new(parts, model, &all, &order, &names, options.attributes, &mut notes)?;
    let store = Arc::new(store);
    let path = names[order[0]].clone();
    let combination = Combination {
        store: OpenStore::from_store(Arc::clone(&store) as Arc<dyn hyperslab_core::Store>, path),
        order: order.iter().map(|number| paths[*number].clone()).collect(),
        notes,
    };
    Ok((combination, store))
}

/// Joins stores along a dimension and converts the result. The target appears complete or not at all. Nodes that the conversion
/// leaves out are not compared.
///
/// # Errors
///
/// As [`combine`] and [`convert`].
pub fn concat(
    paths: &[PathBuf],
    dimension: &str,
    (target, format): (&Path, Format),
    combining: &CombineOptions,
    options: &ConvertOptions,
    progress: &Progress,
) -> Result<ConvertReport> {
    if let Some(path) = paths.iter().find(|path| crate::convert::same_file(path, target)) {
        return Err(Error::invalid(format!(
            "{} is one of the sources, or contains one; choose another target",
            location_name(path)
        )));
    }
    // Nodes that are not converted need not agree.
    let combining = CombineOptions {
        drop: [&combining.drop[..], &options.drop].concat(),
        keep: [&combining.keep[..], &options.keep].concat(),
        ..combining.clone()
    };
    let combination = combine(paths, dimension, &combining)?;
    let options = ConvertOptions { drop: Vec::new(), keep: Vec::new(), ..options.clone() };
    let mut report = convert(&combination.store, target, format, &options, progress)?;
    report.add_notes(combination.notes);
    Ok(report)
}

#[cfg(test)]
mod tests;
