//! Several stores as one: arrays that share a dimension are joined along it.
//!
//! [`combine`] opens stores, checks that they agree, and gives a store in which every array that has the dimension is as
//! long as all of them together. Nothing is read ahead: a chunk is read from the stores that hold it when it is asked for,
//! so memory stays within the limit however many there are. [`concat`] converts such a store. [`append_along`] adds stores
//! to the end of one that exists.
//!
//! | module | does |
//! |---|---|
//! | `inputs` | paths and patterns to a list of stores |
//! | `parts` | opens stores when they are needed, and closes those that were not used for longest |
//! | `examine` | compares a store with the first: nodes, types, shapes, units, values that must be the same |
//! | `order` | the order of the stores by their coordinate; gaps and overlaps |
//! | `rebase` | times counted from another date |
//! | `merge` | one set of attributes from several |
//! | `array`, `store` | the joined arrays, and the store that holds them |
//! | `append` | adds to an existing store |

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

use hyperslab_core::{Error, Result};
use rayon::prelude::*;

pub use append::{AppendOptions, AppendReport, append_along};
pub use inputs::expand;
pub use merge::AttributeRule;

use crate::convert::{ConvertOptions, ConvertReport, Progress, convert};
use crate::{Format, OpenOptions, OpenStore};
use examine::{Facts, Model};
use parts::Parts;
use store::CombinedStore;

/// How stores are combined.
#[derive(Debug, Clone, Default)]
pub struct CombineOptions {
    /// How each store is opened.
    pub open: OpenOptions,
    /// What becomes of attributes that are not the same in all stores.
    pub attributes: AttributeRule,
}

/// Several stores as one.
#[derive(Debug)]
pub struct Combination {
    /// The store in which they are one.
    pub store: OpenStore,
    /// The stores, in their order along the dimension.
    pub order: Vec<PathBuf>,
    /// What people should know: gaps, attributes that differ, coordinates that are missing. Node and text.
    pub notes: Vec<(String, String)>,
}

/// Opens several stores as one, joined along a dimension.
///
/// The stores are put in the order of the dimension's coordinate; without one they stay in the order in which they are
/// given. Arrays that do not have the dimension must be the same in all of them.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) when the stores disagree: the message names the store and the difference. Otherwise
/// whatever opening and reading them says.
pub fn combine(paths: &[PathBuf], dimension: &str, options: &CombineOptions) -> Result<Combination> {
    joined(paths, dimension, options, false).map(|joined| joined.0)
}

/// As [`combine`]; with `first_stays`, the first store is in front whatever the coordinate says, and the others must follow it.
fn joined(
    paths: &[PathBuf],
    dimension: &str,
    options: &CombineOptions,
    first_stays: bool,
) -> Result<(Combination, Arc<CombinedStore>)> {
    let Some(first) = paths.first() else {
        return Err(Error::invalid("nothing to combine: no file matches"));
    };
    let parts = Arc::new(Parts::new(paths, &options.open));
    let (model, facts) = Model::new(parts.store(0)?, first, dimension)?;
    let rest: Vec<Result<Facts>> = (1..paths.len())
        .into_par_iter()
        .with_max_len(1)
        .map(|number| model.examine(parts.store(number)?, &paths[number]))
        .collect();
    let mut all = vec![facts];
    for found in rest {
        all.push(found?);
    }
    let mut notes = Vec::new();
    let order = order::sorted(&model, paths, &all, first_stays, &mut notes)?;
    let store = CombinedStore::new(parts, model, &all, &order, paths, options.attributes, &mut notes)?;
    let store = Arc::new(store);
    let path = paths[order[0]].clone();
    let combination = Combination {
        store: OpenStore::from_store(Arc::clone(&store) as Arc<dyn hyperslab_core::Store>, path),
        order: order.iter().map(|number| paths[*number].clone()).collect(),
        notes,
    };
    Ok((combination, store))
}

/// Joins stores along a dimension and converts the result, which appears whole or not at all.
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
        return Err(Error::invalid(format!("{} is one of the sources, or holds it", path.display())));
    }
    let combination = combine(paths, dimension, combining)?;
    let mut report = convert(&combination.store, target, format, options, progress)?;
    report.add_notes(combination.notes);
    Ok(report)
}

#[cfg(test)]
mod tests;
