//! Chooses the nodes to convert, and their names. The columns of a table are chosen in the same way.

mod columns;

use hyperslab_core::{ArraySchema, Error, Node, Result, did_you_mean};

use super::subset::Subset;
use super::{ConvertOptions, nodes};
use crate::OpenStore;
use crate::edit::{Changes, edited};

/// The source with nodes and columns renamed and left out by the options, and the remaining options; `None` if the options do
/// neither.
pub(super) fn view(
    source: &OpenStore,
    options: &ConvertOptions,
) -> Result<Option<(OpenStore, ConvertOptions)>> {
    if options.rename.is_empty() && options.drop.is_empty() && options.keep.is_empty() {
        return Ok(None);
    }
    if let Some((chosen, left)) = columns::view(source, options)? {
        return Ok(Some(view(&chosen, &left)?.unwrap_or((chosen, left))));
    }
    let mut changes = Changes::default();
    if !options.keep.is_empty() {
        for node in &options.keep {
            source.find(node)?;
        }
        changes.keep(Subset::with_companions(source, &options.keep)?);
    }
    for node in &options.drop {
        changes.remove(source, node)?;
    }
    for (from, to) in &options.rename {
        if source.node(from).is_ok() {
            changes.rename(source, from, to)?;
        } else {
            check_dimension(source, from)?;
            changes.rename_dimension(from, to);
        }
    }
    let left = ConvertOptions {
        rename: Vec::new(),
        drop: Vec::new(),
        keep: Vec::new(),
        keep_bookkeeping: false,
        ..options.clone()
    };
    Ok(Some((edited(source, changes), left)))
}

/// The source with only these nodes, and without those. Empty lists change nothing.
pub(crate) fn restricted(source: OpenStore, keep: &[String], drop: &[String]) -> Result<OpenStore> {
    let options = ConvertOptions::default().with_keep(keep.to_vec()).with_drop(drop.to_vec());
    Ok(view(&source, &options)?.map_or(source, |(view, _)| view))
}

/// Refuses a name that neither a node nor a dimension has.
fn check_dimension(source: &OpenStore, name: &str) -> Result<()> {
    let mut names: Vec<String> = Vec::new();
    let mut found = false;
    for (path, node) in nodes::by_path(source, &[])?.into_nodes() {
        let Node::Array(array) = node else { continue };
        let schema: &ArraySchema = array.schema();
        found |= schema.dimensions.iter().flatten().any(|own| own == name);
        names.extend(schema.dimensions.iter().flatten().cloned());
        names.push(path.trim_start_matches('/').to_owned());
    }
    names.sort();
    names.dedup();
    let hint = did_you_mean(name, names.iter().map(String::as_str));
    let path = source.path().display();
    if found { Ok(()) } else { Err(Error::invalid(format!("{path}: no node or dimension {name}{hint}"))) }
}
