//! Converts nodes to forms that the target can hold.

use std::collections::HashSet;
use std::sync::Arc;

use hyperslab_core::{DType, Error, Node, Result, normal_path};

use super::ConvertReport;
use super::nodes::Item;
use crate::Format;
use crate::forms::{NativeSupport, stored_arrays, stored_geometry};
use hyperslab_core::Variant;

/// A node to create in the target.
pub(super) struct PlannedNode {
    pub(super) path: String,
    /// The path of the source node that it represents.
    pub(super) origin: String,
    pub(super) item: Item,
}

/// Places the nodes of one group in the root, for a target without groups. Arrays of the groups above it that they need stay, unless
/// the group has one of the same name.
pub(super) fn place_in_root(nodes: &mut Vec<PlannedNode>, group: &str) {
    let group = normal_path(group);
    let below = format!("{group}/");
    let mut placed = HashSet::new();
    for node in nodes.iter_mut() {
        let path = match node.path.strip_prefix(&below) {
            Some(inside) => format!("/{inside}"),
            None if node.path == group => "/".to_owned(),
            None => continue,
        };
        node.path.clone_from(&path);
        placed.insert((path, node.origin.clone()));
    }
    let taken: HashSet<&str> = placed.iter().map(|(path, _)| path.as_str()).collect();
    nodes.retain(|node| {
        placed.contains(&(node.path.clone(), node.origin.clone())) || !taken.contains(node.path.as_str())
    });
}

/// The nodes to create in the target, parents first. A node that the target cannot hold in any form is reported, and the first
/// error is returned, unless it is the only node of the source, given as `alone`.
pub(super) fn planned(
    items: Vec<(String, Item)>,
    (format, variant): (Format, Option<Variant>),
    alone: bool,
    report: &mut ConvertReport,
) -> Result<(Vec<PlannedNode>, Option<Error>)> {
    let mut taken: HashSet<String> = items.iter().map(|(path, _)| path.clone()).collect();
    let dtype = |dtype: &_| format.driver().holds(dtype, variant);
    let capabilities = format.info().capabilities;
    let holds = NativeSupport::new(&dtype, capabilities);
    let (mut planned, mut refused) = (Vec::with_capacity(items.len()), None);
    for (path, item) in items {
        let mut pending = vec![(path.clone(), item)];
        while let Some((own, item)) = pending.pop() {
            let formed = match &item {
                Item::Node(Node::Array(array)) if !array.schema().is_dimension => {
                    stored_arrays(&own, array, &holds, &|path| taken.contains(path)).and_then(|formed| {
                        match &formed {
                            Some((nodes, _)) if nodes.len() > 1 && !capabilities.several_arrays => {
                                Err(Error::unsupported(
                                    array.name(),
                                    format!("more than one array in {}", format.name()),
                                ))
                            }
                            _ => Ok(formed),
                        }
                    })
                }
                Item::Node(Node::Geometry(geometry)) if capabilities.several_arrays => {
                    stored_geometry(&own, &**geometry).map(|stored| {
                        for what in stored.left_out {
                            report.drop(&own, format!("{what}: cannot be stored in arrays"));
                        }
                        let words =
                            "a geometry is stored as arrays of its vertices, links, objects and attributes";
                        Some((stored.nodes, words.to_owned()))
                    })
                }
                _ => Ok(None),
            };
            match formed {
                Ok(None) => planned.push(PlannedNode { path: own, origin: path.clone(), item }),
                Ok(Some((nodes, words))) => {
                    report.change(&own, words);
                    taken.extend(nodes.iter().map(|(path, _)| path.clone()));
                    // The nodes of a form may need a form in turn: a mask consists of booleans.
                    pending.extend(nodes.into_iter().rev().map(|(path, node)| (path, Item::Node(node))));
                }
                Err(why) if why.is_unsupported() && !alone => {
                    report.drop(&own, format!("not converted: {why}"));
                    refused.get_or_insert(why);
                }
                Err(why) => return Err(why),
            }
        }
    }
    Ok((planned, refused))
}

/// Returns true if the target can store elements of this type without adapting them.
pub(super) fn holds_as_is(dtype: &DType, format: Format, variant: Option<Variant>) -> bool {
    let classic = format.info().character_text;
    let netcdf = classic || variant.is_some_and(|variant| variant.info().netcdf_types);
    format.driver().holds(dtype, variant) && !(netcdf && super::netcdf::adapts(dtype, classic))
}

/// Returns true if arrays and attributes must have types that the NetCDF-4 library knows.
pub(super) fn needs_netcdf4_types(variant: Option<Variant>, verbatim: bool) -> bool {
    !verbatim && variant.is_some_and(|variant| variant.info().netcdf_types)
}

/// The array in a form that NetCDF has, if the target is NetCDF.
pub(super) fn netcdf_form(
    array: &Arc<dyn hyperslab_core::Array>,
    format: Format,
    variant: Option<Variant>,
    verbatim: bool,
) -> Result<(Arc<dyn hyperslab_core::Array>, Option<&'static str>)> {
    match variant {
        _ if format.info().character_text => super::netcdf::adapted(array, true),
        _ if needs_netcdf4_types(variant, verbatim) => super::netcdf::adapted(array, false),
        _ => Ok((Arc::clone(array), None)),
    }
}
