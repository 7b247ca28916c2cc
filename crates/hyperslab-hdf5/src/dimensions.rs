//! Dimension scales as written by HDF5 and NetCDF-4: the names of dimensions, and the arrays that label them.

mod names;

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use hyperslab_core::{ArraySchema, Attribute, DType, Fields, Grid, Labels};

use crate::attributes;
use crate::conversion::Element;
use crate::file::{File, FileFields};
use crate::header::{Header, kind};
use crate::message::attribute::{Content, RawAttribute};
use crate::message::datatype::{Class, DatatypeMessage, ReferenceKind, Type};
use crate::message::link::LinkTarget;
use crate::message::space::Space;
use crate::paths::path_of;
use crate::store::{Resolved, find};

pub(crate) use names::{non_coordinate_path, shown, stored_path};

/// The `NAME` of a NetCDF-4 dimension without a coordinate variable.
pub(crate) const NO_VARIABLE: &str = "This is a netCDF dimension but not a netCDF variable";

/// Sets names and labels of the dimensions of the dataset at `path`. A dimension stays unnamed if its scale cannot be read.
pub(crate) fn read(file: &Arc<File>, raw: &[RawAttribute], path: &str, schema: &mut ArraySchema) {
    let rank = schema.grid.rank();
    let find = |name: &str| {
        raw.iter()
            .find(|attribute| attribute.name == name)
            .and_then(|attribute| attribute.content.as_ref().ok())
    };
    if let Some(labels) = find("DIMENSION_LABELS").and_then(|content| texts(file, content)) {
        for (name, label) in schema.dimensions.iter_mut().zip(labels) {
            *name = Some(label).filter(|label| !label.is_empty());
        }
    }
    if let Some(content) = find("DIMENSION_LIST") {
        for (axis, scale) in scales(file, content).into_iter().enumerate().take(rank) {
            let Some(scale) = scale.and_then(|scale| scale_of(file, scale)) else { continue };
            if schema.dimensions[axis].is_none() {
                schema.dimensions[axis] = Some(scale.name);
            }
            schema.labels[axis] = scale.labels;
            grow(schema, axis, scale.reach);
        }
    } else if let Some(ids) = find("_Netcdf4Coordinates").and_then(|content| integers(file, content)) {
        for (axis, id) in ids.into_iter().enumerate().take(rank) {
            let Some(scale) = dimension(file, path, id).and_then(|scale| scale_of(file, scale)) else {
                continue;
            };
            let own = scale.labels == Labels::Node(path.to_owned());
            schema.dimensions[axis].get_or_insert(scale.name);
            schema.labels[axis] = if own && rank > 1 { Labels::None } else { scale.labels };
            grow(schema, axis, scale.reach);
        }
    } else if rank == 1 && is_scale(file, raw) {
        // A scale is its own coordinate.
        schema.dimensions[0].get_or_insert_with(|| last_part(path).to_owned());
        schema.is_dimension = is_bare(file, raw);
        if schema.is_dimension && raw.iter().any(|attribute| attribute.name == "_Netcdf4Dimid") {
            grow(schema, 0, Some(longest(file, raw)));
        }
        if !schema.is_dimension {
            schema.labels[0] = Labels::Node(path.to_owned());
        }
    }
}

/// Extends an array to the length of its dimension. NetCDF-4 stores a variable only as far as it was written; the rest reads as
/// the fill value.
fn grow(schema: &mut ArraySchema, axis: usize, reach: Option<u64>) {
    let Some(reach) = reach.filter(|reach| *reach > schema.shape()[axis]) else { return };
    if schema.max_shape.get(axis) != Some(&None) || !schema.chunked {
        return;
    }
    let mut shape = schema.shape().to_vec();
    let stored = schema.stored.extent.clone().unwrap_or_else(|| shape.clone());
    shape[axis] = reach;
    if let Ok(grid) = Grid::new(&shape, schema.grid.chunk_shape()) {
        schema.grid = grid;
        schema.stored.extent = Some(stored);
    }
}

fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn text(file: &Arc<File>, raw: &[RawAttribute], name: &str) -> Option<String> {
    let attribute = raw.iter().find(|attribute| attribute.name == name)?;
    attributes::decode(file, std::slice::from_ref(attribute)).get(name).and_then(Attribute::as_text)
}

fn is_scale(file: &Arc<File>, raw: &[RawAttribute]) -> bool {
    text(file, raw, "CLASS").is_some_and(|class| class == "DIMENSION_SCALE")
}

/// Returns true if it is a NetCDF-4 dimension without a variable.
fn is_bare(file: &Arc<File>, raw: &[RawAttribute]) -> bool {
    text(file, raw, "NAME").is_some_and(|name| name.starts_with(NO_VARIABLE))
}

fn texts(file: &Arc<File>, content: &Content) -> Option<Vec<String>> {
    let raw = RawAttribute { name: String::new(), stored_name: Bytes::new(), content: Ok(content.clone()) };
    let document = attributes::decode(file, &[raw]).get("")?.to_json();
    let items = document.as_array()?;
    Some(items.iter().map(|item| item.as_str().unwrap_or_default().to_owned()).collect())
}

fn integers(file: &Arc<File>, content: &Content) -> Option<Vec<i64>> {
    let raw = RawAttribute { name: String::new(), stored_name: Bytes::new(), content: Ok(content.clone()) };
    let document = attributes::decode(file, &[raw]).get("")?.to_json();
    document.as_array()?.iter().map(|number| number.as_i64()).collect()
}

/// The dataset that NetCDF-4 gave this dimension number, in the group of `path` or one above.
fn dimension(file: &Arc<File>, path: &str, id: i64) -> Option<u64> {
    let mut folder = path;
    while let Some((above, _)) = folder.rsplit_once('/') {
        folder = above;
        let Ok(Resolved::Object(group)) = find(file, if above.is_empty() { "/" } else { above }) else {
            continue;
        };
        let numbered = group.file.dimensions(group.address, || numbered(&group.file, group.address));
        if let Some(address) = numbered.get(&id) {
            return Some(*address);
        }
    }
    None
}

/// The scales in a group by NetCDF-4 dimension number. Cached per group, because every variable needs them.
fn numbered(file: &Arc<File>, group: u64) -> HashMap<i64, u64> {
    let links = file.group(group).and_then(|group| group.all(file)).unwrap_or_default();
    let mut numbered = HashMap::new();
    for link in links {
        let LinkTarget::Hard(address) = link.target else { continue };
        let raw = Header::read(file, address).and_then(|header| attributes::raw(file, &header));
        // Writers other than the NetCDF library number every variable, but only a scale defines a dimension.
        let number = raw.ok().filter(|raw| is_scale(file, raw)).and_then(|raw| {
            let attribute = raw.iter().find(|attribute| attribute.name == "_Netcdf4Dimid")?;
            let value = attributes::decode(file, std::slice::from_ref(attribute));
            value.get("_Netcdf4Dimid")?.to_json().as_i64()
        });
        if let Some(number) = number {
            numbered.entry(number).or_insert(address);
        }
    }
    numbered
}

/// The address of the first scale of each dimension: a list of object references per dimension.
fn scales(file: &Arc<File>, content: &Content) -> Vec<Option<u64>> {
    let Class::Sequence(base) = &content.dtype.class else { return Vec::new() };
    if base.class != Class::Reference(ReferenceKind::Object) {
        return Vec::new();
    }
    let one = |stored: &[u8]| -> Option<u64> {
        let mut fields = Fields::new(stored, file.place("dimension list", 0));
        let count = fields.u32().ok()?;
        let address = fields.address(file.sizes()).ok()??;
        let index = fields.u32().ok()?;
        let collection = file.collection(address).ok().filter(|_| count > 0)?;
        let object = collection.object(file, index).ok()?;
        Fields::new(object, file.place("dimension list", 0)).address(file.sizes()).ok()?
    };
    content.data.chunks_exact(content.dtype.size).map(one).collect()
}

/// The properties that a scale gives to a dimension.
#[derive(Debug, Clone)]
pub(crate) struct Scale {
    name: String,
    labels: Labels,
    /// The length of an unlimited dimension of NetCDF-4.
    reach: Option<u64>,
}

impl Scale {
    /// The approximate size in a cache, in bytes.
    pub(crate) fn weight(&self) -> u64 {
        self.name.len() as u64 + 64
    }
}

fn scale_of(file: &Arc<File>, address: u64) -> Option<Scale> {
    file.scale(address, || read_scale(file, address)).map(|scale| (*scale).clone())
}

/// The maximum number of arrays whose lengths are checked for a dimension.
const MOST_USERS: usize = 1 << 16;

/// The length of the longest array along a dimension. NetCDF-4 does not store the length of one without a variable.
fn longest(file: &Arc<File>, raw: &[RawAttribute]) -> u64 {
    let users = raw.iter().find(|attribute| attribute.name == "REFERENCE_LIST");
    let Some(content) = users.and_then(|users| users.content.as_ref().ok()) else { return 0 };
    let Class::Compound { members } = &content.dtype.class else { return 0 };
    let offsets: Vec<usize> = members.iter().map(|member| member.1).collect();
    let &[object, axis] = &offsets[..] else { return 0 };
    let one = |stored: &[u8]| -> Option<u64> {
        let address = Fields::new(stored.get(object..)?, file.place("reference list", 0))
            .address(file.sizes())
            .ok()??;
        let axis = Fields::new(stored.get(axis..)?, file.place("reference list", 0)).u32().ok()? as usize;
        let header = Header::read(file, address).ok()?;
        let space = header.find(file, kind::DATASPACE).ok()??;
        let space = Space::parse(&mut space.fields(file, "dataspace message"), file.sizes()).ok()?;
        space.shape.get(axis).copied()
    };
    let users = content.data.chunks_exact(content.dtype.size.max(1)).take(MOST_USERS);
    users.filter_map(one).max().unwrap_or(0)
}

/// Returns true if a dataset holds single characters.
fn is_characters(file: &Arc<File>, header: &Header) -> Option<bool> {
    let message = header.find(file, kind::DATATYPE).ok()??;
    let dtype = Type::parse(&mut message.fields(file, "datatype message")).ok()?;
    Some(Element::new(&dtype, file.sizes(), &file.name).ok()?.dtype == DType::FixedBytes(1))
}

fn read_scale(file: &Arc<File>, address: u64) -> Option<Scale> {
    let path = path_of(file, address)?;
    let name = last_part(&path).to_owned();
    let header = Header::read(file, address).ok()?;
    let raw = attributes::raw(file, &header).ok()?;
    let space = header.find(file, kind::DATASPACE).ok()??;
    let space = Space::parse(&mut space.fields(file, "dataspace message"), file.sizes()).ok()?;
    // A scale of several dimensions labels none, except for text that is stored as characters along a second dimension.
    let is_coordinate = match space.shape.len() {
        1 => !is_bare(file, &raw),
        2 => is_characters(file, &header).unwrap_or(false),
        _ => false,
    };
    let labels = if is_coordinate { Labels::Node(path) } else { Labels::None };
    let numbered = raw.iter().any(|attribute| attribute.name == "_Netcdf4Dimid");
    let reach = match (&space.shape[..], &space.max_shape[..]) {
        (&[length], [None]) if numbered => Some(longest(file, &raw).max(length)),
        _ => None,
    };
    Some(Scale { name, labels, reach })
}
