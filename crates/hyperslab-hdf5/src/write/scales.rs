//! Dimension scales: dimension names as stored by HDF5 and NetCDF-4.

use std::sync::Arc;

use hyperslab_core::{ArraySpec, Attribute, DType, Elements, Error, Grid, Labels, Result};

use super::array::{NewArray, Shared};
use super::attributes::{c_text, content, space};
use super::node::{NewKind, NewNode};
use super::options::Hdf5Options;
use super::plan::Plan;
use super::tree::{Tree, group_of, in_enclosing_groups};
use super::types::file_type;
use crate::conversion::Keeper;
use crate::dimensions::{NO_VARIABLE, non_coordinate_path};
use crate::encode::Encoder;
use crate::file::Sizes;
use crate::message::attribute::Content;
use crate::message::datatype::{Class, ReferenceKind, Type};
use hyperslab_core::{Values, child_path};

/// An attribute required by dimension scales.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ScaleAttribute {
    /// Marks the dataset as a scale.
    Class,
    /// The name of the dimension.
    Name(String),
    /// NetCDF-4's number of the dimension.
    Number(usize),
    /// The scale of each dimension of a dataset, if it has one, as node indices.
    List(Vec<Option<usize>>),
    /// NetCDF-4's numbers of the dimensions of a scale that has several.
    Coordinates(Vec<usize>),
    /// The datasets and dimensions that use a scale.
    References(Vec<(usize, usize)>),
    /// Dimension names alone, where there can be no scale.
    Labels(Vec<String>),
}

impl ScaleAttribute {
    pub(crate) fn content(
        &self,
        tree: &Tree,
        sizes: Sizes,
        keeper: &mut dyn Keeper,
    ) -> Result<(String, Content)> {
        let reference = Type { class: Class::Reference(ReferenceKind::Object), size: sizes.address };
        Ok(match self {
            Self::Class => ("CLASS".to_owned(), c_text("DIMENSION_SCALE")),
            Self::Name(name) => ("NAME".to_owned(), c_text(name)),
            Self::Number(number) => {
                let values = Values::new(DType::Int32, &[], Elements::fixed(dimension_number(*number)?))?;
                ("_Netcdf4Dimid".to_owned(), content(&values, sizes, keeper)?)
            }
            Self::Coordinates(numbers) => {
                let bytes =
                    numbers.iter().map(|number| dimension_number(*number)).collect::<Result<Vec<_>>>()?;
                let values =
                    Values::new(DType::Int32, &[numbers.len() as u64], Elements::fixed(bytes.concat()))?;
                ("_Netcdf4Coordinates".to_owned(), content(&values, sizes, keeper)?)
            }
            Self::List(scales) => {
                let mut data = Encoder::new(sizes);
                for scale in scales {
                    let Some(scale) = scale else {
                        data.u32(0).address(Some(0)).u32(0);
                        continue;
                    };
                    let mut address = Encoder::new(sizes);
                    address.address(Some(tree.nodes[*scale].address));
                    let (heap, index) = keeper.keep(&address.finish()?)?;
                    data.u32(1).address(Some(heap)).u32(index);
                }
                let dtype = Type { class: Class::Sequence(Box::new(reference)), size: 8 + sizes.address };
                let content = Content::new(dtype, space(&[scales.len() as u64]), data.finish()?);
                ("DIMENSION_LIST".to_owned(), content)
            }
            Self::References(users) => {
                let mut data = Encoder::new(sizes);
                for (node, axis) in users {
                    let from = data.len();
                    data.address(Some(tree.nodes[*node].address)).count(*axis, 4, "dimensions").pad(from, 16);
                }
                let members = vec![
                    ("dataset".to_owned(), 0, reference),
                    ("dimension".to_owned(), sizes.address, file_type(&DType::Int32, sizes)?),
                ];
                let dtype = Type { class: Class::Compound { members }, size: 16 };
                let content = Content::new(dtype, space(&[users.len() as u64]), data.finish()?);
                ("REFERENCE_LIST".to_owned(), content)
            }
            Self::Labels(names) => {
                let elements = Elements::variable(names);
                let values = Values::new(DType::String, &[names.len() as u64], elements)?;
                ("DIMENSION_LABELS".to_owned(), content(&values, sizes, keeper)?)
            }
        })
    }
}

/// NetCDF-4's number of a dimension.
fn dimension_number(number: usize) -> Result<Vec<u8>> {
    let number = i32::try_from(number)
        .map_err(|_| Error::invalid(format!("{number} dimensions are too many for NetCDF-4")))?;
    Ok(number.to_ne_bytes().to_vec())
}

/// Attaches dimension scales to every dataset with named dimensions, creating missing scales.
pub(crate) fn plan(tree: &mut Tree, shared: &Arc<Shared>, options: &Hdf5Options) -> Result<()> {
    let arrays: Vec<(usize, Arc<NewArray>)> = tree
        .nodes
        .iter()
        .enumerate()
        .filter_map(|(index, node)| match &node.kind {
            NewKind::Array(array) => Some((index, Arc::clone(array))),
            NewKind::Group { .. } | NewKind::Type(_) | NewKind::Existing => None,
        })
        .collect();
    // Dimensions without a variable stay without one.
    for (index, array) in &arrays {
        let name = array.plan.spec.attributes.get("NAME").and_then(Attribute::as_text);
        if let Some(words) = name.filter(|words| words.starts_with(NO_VARIABLE)) {
            let words = words.trim_end_matches('\0').to_owned();
            tree.nodes[*index].scales.push(ScaleAttribute::Name(words));
        }
    }
    let mut users: Vec<(usize, Vec<(usize, usize)>)> = Vec::new();
    let mut coordinates: Vec<(usize, Vec<usize>)> = Vec::new();
    for (index, array) in arrays {
        let spec = &array.plan.spec;
        let names: Vec<String> =
            spec.dimensions.iter().map(|name| name.clone().unwrap_or_default()).collect();
        if names.iter().all(String::is_empty) {
            continue;
        }
        let mut scales = Vec::new();
        if names.iter().all(|name| is_scale_name(name)) {
            for axis in 0..names.len() {
                scales.extend(find_or_make(tree, index, spec, axis, shared, options)?);
            }
        }
        if scales.len() < names.len() {
            attach_some(tree, index, spec, names, &mut users);
            continue;
        }
        // A scale does not list scales of its own, and is not listed among their users.
        let is_scale = scales.first() == Some(&index);
        for (axis, scale) in scales.iter().enumerate() {
            let own = (!is_scale).then_some((index, axis));
            match users.iter_mut().find(|(known, _)| known == scale) {
                Some((_, users)) => users.extend(own),
                None => users.push((*scale, own.into_iter().collect())),
            }
        }
        match scales.len() {
            // The array is its own coordinate and needs nothing more.
            1 if is_scale => {}
            _ if is_scale => coordinates.push((index, scales)),
            _ => {
                let scales = scales.into_iter().map(Some).collect();
                tree.nodes[index].scales.push(ScaleAttribute::List(scales));
            }
        }
    }
    // Declared dimensions that no array uses.
    let bare = |node: &NewNode| node.scales.iter().any(|own| matches!(own, ScaleAttribute::Name(_)));
    for index in (0..tree.nodes.len()).filter(|index| bare(&tree.nodes[*index])) {
        if !users.iter().any(|(scale, _)| *scale == index) {
            users.push((index, Vec::new()));
        }
    }
    let number_of = |scale: &usize| users.iter().position(|(known, _)| known == scale);
    for (index, scales) in coordinates {
        let numbers = scales.iter().filter_map(number_of).collect();
        tree.nodes[index].scales.push(ScaleAttribute::Coordinates(numbers));
    }
    for (number, (scale, users)) in users.into_iter().enumerate() {
        mark(tree, scale, number, users);
    }
    Ok(())
}

/// Attaches the existing scales of some dimensions, and writes the names of the others.
fn attach_some(
    tree: &mut Tree,
    index: usize,
    spec: &ArraySpec,
    mut names: Vec<String>,
    users: &mut Vec<(usize, Vec<(usize, usize)>)>,
) {
    let group = group_of(&tree.nodes[index].path).to_owned();
    let fitting = |path: &str, axis: usize, is_named: bool| {
        let (scale, array) = tree.array(path)?;
        let own = &array.plan.spec;
        let fits = own.grid.rank() == 1 && own.grid.shape()[0] == spec.grid.shape()[axis];
        // A dataset of the same name is a scale only if it lies on the dimension.
        (scale != index && fits && (is_named || own.dimensions[..] == spec.dimensions[axis..=axis]))
            .then_some(scale)
    };
    let scale_of = |axis: usize| match &spec.labels[axis] {
        Labels::Node(path) => fitting(path, axis, true),
        _ if names[axis].is_empty() => None,
        _ => in_enclosing_groups(&group, &names[axis]).find_map(|path| fitting(&path, axis, false)),
    };
    let scales: Vec<Option<usize>> = (0..names.len()).map(scale_of).collect();
    for (axis, scale) in scales.iter().enumerate() {
        let Some(scale) = scale else { continue };
        names[axis].clear();
        match users.iter_mut().find(|(known, _)| known == scale) {
            Some((_, users)) => users.push((index, axis)),
            None => users.push((*scale, vec![(index, axis)])),
        }
    }
    let own = &mut tree.nodes[index].scales;
    if scales.iter().any(Option::is_some) {
        own.push(ScaleAttribute::List(scales));
    }
    if names.iter().any(|name| !name.is_empty()) {
        own.push(ScaleAttribute::Labels(names));
    }
}

/// Returns true if a scale can have this name, which must be valid in a path. Generated names get no dataset.
fn is_scale_name(name: &str) -> bool {
    !name.is_empty() && !name.starts_with("__") && !name.contains('/') && name != "."
}

/// Makes a dataset a scale.
fn mark(tree: &mut Tree, scale: usize, number: usize, users: Vec<(usize, usize)>) {
    let node = &mut tree.nodes[scale];
    let name = node.path.rsplit('/').next().unwrap_or_default().to_owned();
    let bare = node.scales.iter().any(|own| matches!(own, ScaleAttribute::Name(_)));
    let mut own = vec![ScaleAttribute::Class];
    if !bare {
        own.push(ScaleAttribute::Name(name));
    }
    own.append(&mut node.scales);
    own.push(ScaleAttribute::Number(number));
    if !users.is_empty() {
        own.push(ScaleAttribute::References(users));
    }
    node.scales = own;
}

/// Finds or creates the scale of this axis. Returns `None` if the name is taken by something else.
fn find_or_make(
    tree: &mut Tree,
    user: usize,
    spec: &ArraySpec,
    axis: usize,
    shared: &Arc<Shared>,
    options: &Hdf5Options,
) -> Result<Option<usize>> {
    let (extent, most) = (spec.grid.shape()[axis], spec.max_shape[axis]);
    let name = spec.dimensions[axis].clone().unwrap_or_default();
    let group = group_of(&tree.nodes[user].path).to_owned();
    // A scale's first dimension is the one that it describes.
    let lies_on_it =
        |spec: &ArraySpec| spec.dimensions.first().is_some_and(|own| own.as_ref() == Some(&name));
    // Along an unlimited dimension a dataset may be shorter than its scale.
    let is_as_long = |spec: &ArraySpec| match (spec.grid.shape(), &spec.max_shape[..]) {
        ([own, ..], [limit, ..]) => *own == extent || limit.is_none() && most.is_none(),
        _ => false,
    };
    let find = |tree: &Tree, path: &str, fits: &dyn Fn(&ArraySpec) -> bool| {
        let fits = |spec: &ArraySpec| is_as_long(spec) && fits(spec);
        tree.array(path).filter(|(_, array)| fits(&array.plan.spec)).map(|(index, _)| index)
    };
    if let Labels::Node(path) = &spec.labels[axis]
        && let Some(found) = find(tree, path, &|spec| spec.grid.rank() == 1 || lies_on_it(spec))
    {
        return Ok(Some(found));
    }
    let is_unnamed = |spec: &ArraySpec| matches!(spec.dimensions[..], [None]);
    for path in in_enclosing_groups(&group, &name) {
        if let Some(found) = find(tree, &path, &|spec| is_unnamed(spec) || lies_on_it(spec)) {
            return Ok(Some(found));
        }
    }
    let path = child_path(&group, &name);
    if tree.is_taken(&path) {
        let variable = tree.array(&path).filter(|(_, array)| !lies_on_it(&array.plan.spec));
        match (variable.map(|(index, _)| index), non_coordinate_path(&path)) {
            (Some(variable), Some(other)) if options.netcdf_names && !tree.is_taken(&other) => {
                shared.move_node(&path, &other);
                tree.move_node(variable, other);
            }
            _ => return Ok(None),
        }
    }
    make_bare(tree, &path, extent, most, shared, options).map(Some)
}

/// Creates a NetCDF-4 dimension without a variable.
pub(crate) fn make_bare(
    tree: &mut Tree,
    path: &str,
    extent: u64,
    most: Option<u64>,
    shared: &Arc<Shared>,
    options: &Hdf5Options,
) -> Result<usize> {
    let chunk = if most == Some(extent) { extent.max(1) } else { extent.clamp(1, 1024) };
    let mut bare = ArraySpec::new(DType::Float32, Grid::new(&[extent], &[chunk])?);
    bare.max_shape = vec![most];
    let array_name = format!("{}{path}", shared.output.name());
    let array = NewArray::new(Plan::new(array_name, &bare, options, shared)?, shared)?;
    let made = tree.add(path, NewKind::Array(Arc::new(array)), Vec::new())?;
    let words = format!("{}.{extent:>10}", NO_VARIABLE);
    tree.nodes[made].scales.push(ScaleAttribute::Name(words));
    Ok(made)
}
