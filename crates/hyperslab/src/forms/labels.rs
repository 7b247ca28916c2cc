//! Stores labels that a format does not support as coordinates: arrays along one dimension, with the dimension's
//! name.

use std::collections::HashMap;
use std::sync::Arc;

use hyperslab_core::{
    Array, ArraySchema, Attributes, DType, Elements, Error, Grid, LabelOrder, Labels, Node, Positions,
    Region, Result, child_path, read_serial,
};

use super::derived::{Cells, Derived};
use super::text;
use super::types::{parse_type, type_text};

/// Set on a coordinate that represents labels which other formats store in the array itself: `domain` or `texts`.
pub(crate) const LABELS: &str = "hyperslab_labels";

/// Set on an array that other formats store as a dimension label: `increasing`, `decreasing` or `unordered`, and the
/// type of the dimension.
const DIMENSION_LABEL: &str = "hyperslab_dimension_label";

const DOMAIN: &str = "domain";
const TEXTS: &str = "texts";

/// The names of the orders of dimension labels.
const ORDERS: [(LabelOrder, &str); 3] = [
    (LabelOrder::Unordered, "unordered"),
    (LabelOrder::Increasing, "increasing"),
    (LabelOrder::Decreasing, "decreasing"),
];

/// Labels of a dimension in a separate array. Some formats store them apart from other arrays; elsewhere, an
/// attribute holds their order and the type of the dimension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DimensionLabels {
    pub(crate) order: LabelOrder,
    pub(crate) dimension: String,
    pub(crate) dtype: Option<DType>,
}

impl DimensionLabels {
    /// Parses the attribute of an array.
    pub(crate) fn parse(schema: &ArraySchema) -> Option<Self> {
        let words = text(&schema.attributes, DIMENSION_LABEL)?;
        let mut words = words.split(' ');
        let own = words.next()?;
        let (order, _) = ORDERS.iter().find(|(_, word)| *word == own)?;
        let ([Some(dimension)], [_]) = (&schema.dimensions[..], schema.shape()) else { return None };
        let dtype = words.next().and_then(parse_type).filter(counts);
        Some(Self { order: *order, dimension: dimension.clone(), dtype })
    }

    /// Sets the attribute.
    pub(crate) fn set(&self, attributes: &mut Attributes) {
        let order =
            ORDERS.iter().find(|(order, _)| *order == self.order).map_or("unordered", |(_, word)| word);
        let dtype = self.dtype.as_ref().and_then(type_text);
        let words: Vec<&str> = [Some(order), dtype.as_deref()].into_iter().flatten().collect();
        attributes.set(DIMENSION_LABEL, words.join(" ").as_str());
    }

    /// The attributes without the one that [`set`](Self::set) adds.
    pub(crate) fn unset(attributes: &Attributes) -> Attributes {
        attributes.filtered(|name, _| name != DIMENSION_LABEL)
    }
}

/// The maximum length of a coordinate. A domain may be as long as its type allows.
const MOST_LABELS: u64 = 1 << 27;
/// The number of cells in a chunk of a coordinate.
const CHUNK: u64 = 1 << 16;

/// The labels that a format can store in its arrays.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeldLabels {
    /// Axes that start at any integer or date.
    pub(crate) domains: bool,
    /// One text per position.
    pub(crate) texts: bool,
}

impl HeldLabels {
    pub(crate) fn holds(self, labels: &Labels) -> bool {
        match labels {
            Labels::None | Labels::Node(_) => true,
            Labels::Domain { .. } => self.domains,
            Labels::Texts(_) => self.texts,
        }
    }
}

/// Coordinates created for a target, by path.
#[derive(Debug, Clone, Default)]
pub(crate) struct CreatedCoordinates {
    pub(crate) nodes: Vec<(String, Node)>,
    /// Labels that cannot be stored, with the arrays that lose them.
    pub(crate) lost: Vec<(String, String)>,
    made: HashMap<String, (Labels, u64)>,
}

impl CreatedCoordinates {
    /// Creates a coordinate for every axis of an array whose labels the target does not support.
    pub(crate) fn add(
        &mut self,
        path: &str,
        array: &dyn Array,
        held: HeldLabels,
        taken: &dyn Fn(&str) -> bool,
    ) -> Result<()> {
        let schema = array.schema();
        for (axis, labels) in schema.labels.iter().enumerate().filter(|(_, labels)| !held.holds(labels)) {
            let extent = schema.shape()[axis];
            let name = schema.dimensions.get(axis).cloned().flatten();
            let (Some(name), Some(place)) = (&name, self.place(path, name.as_deref())) else {
                self.lose(path, axis, name.as_deref(), "the dimension has no name");
                continue;
            };
            match self.made.get(&place) {
                Some(made) if *made == (labels.clone(), extent) => {}
                Some(_) => self.lose(path, axis, Some(name), "other arrays have other labels along it"),
                None if taken(&place) => {
                    self.lose(path, axis, Some(name), &format!("{place} is something else"));
                }
                None if extent > MOST_LABELS => {
                    self.lose(path, axis, Some(name), &format!("there are {extent}"));
                }
                None => {
                    let limit = schema.max_shape[axis];
                    let made = coordinate(array.name(), name, labels, extent, limit)?;
                    self.nodes.push((place.clone(), Node::Array(Arc::new(made))));
                    self.made.insert(place, (labels.clone(), extent));
                }
            }
        }
        Ok(())
    }

    /// The labels of an axis in the target, if a coordinate was created for them.
    pub(crate) fn labels(&self, path: &str, schema: &ArraySchema, axis: usize) -> Option<Labels> {
        let place = self.place(path, schema.dimensions.get(axis)?.as_deref())?;
        let (labels, extent) = self.made.get(&place)?;
        let own = *labels == schema.labels[axis] && *extent == schema.shape()[axis];
        own.then_some(Labels::Node(place))
    }

    fn place(&self, path: &str, name: Option<&str>) -> Option<String> {
        let name =
            name.filter(|name| !name.is_empty() && !name.contains('/') && ![".", ".."].contains(name))?;
        let above = path.rsplit_once('/').map_or("", |(above, _)| above);
        Some(child_path(if above.is_empty() { "/" } else { above }, name))
    }

    fn lose(&mut self, path: &str, axis: usize, name: Option<&str>, why: &str) {
        let dimension = name.map_or_else(|| format!("axis {axis}"), |name| format!("dimension {name}"));
        self.lost.push((path.to_owned(), format!("the labels of {dimension} are left out: {why}")));
    }
}

fn coordinate(
    store: &str,
    name: &str,
    labels: &Labels,
    extent: u64,
    limit: Option<u64>,
) -> Result<Derived<LabelCells>> {
    let (dtype, kind) = match labels {
        Labels::Domain { dtype, .. } => (dtype.clone(), DOMAIN),
        _ => (DType::String, TEXTS),
    };
    let mut schema = ArraySchema::new(dtype, Grid::new(&[extent], &[extent.clamp(1, CHUNK)])?);
    schema.max_shape = vec![limit];
    schema.dimensions = vec![Some(name.to_owned())];
    schema.labels = vec![labels.clone()];
    schema.attributes = Attributes::from_iter([(LABELS, kind)]);
    Ok(Derived::new(store, schema, LabelCells { labels: labels.clone() }, true))
}

#[derive(Debug)]
struct LabelCells {
    labels: Labels,
}

impl Cells for LabelCells {
    fn sources(&self) -> &[Arc<dyn Array>] {
        &[]
    }

    fn cells(&self, region: &Region) -> Result<Elements> {
        let (start, count) = (region.start[0], region.shape[0]);
        match &self.labels {
            Labels::Domain { first, dtype } => {
                let size = dtype.size().unwrap_or(8).min(16);
                let bytes = (start..start + count).flat_map(|at| {
                    let wide = (i128::from(*first) + i128::from(at)).to_le_bytes();
                    let mut narrow = wide[..size].to_vec();
                    if cfg!(target_endian = "big") {
                        narrow.reverse();
                    }
                    narrow
                });
                Ok(Elements::fixed(bytes.collect::<Vec<u8>>()))
            }
            Labels::Texts(texts) => {
                let range = start as usize..(start + count) as usize;
                let texts = texts.get(range).ok_or_else(|| Error::invalid("more positions than labels"))?;
                Ok(Elements::variable(texts.iter().map(String::as_bytes)))
            }
            _ => Err(Error::invalid("a coordinate without labels")),
        }
    }
}

/// The labels that a coordinate represents; `None` if it is an ordinary coordinate.
pub(crate) fn labels_of(array: &Arc<dyn Array>, held: HeldLabels) -> Result<Option<Labels>> {
    let schema = array.schema();
    let Some(kind) = text(&schema.attributes, LABELS) else { return Ok(None) };
    let &[extent] = schema.shape() else { return Ok(None) };
    let attributes = crate::convert::portable_attributes(&schema.attributes, false).len();
    if attributes != 1 || schema.nullable || extent > MOST_LABELS || extent == 0 {
        return Ok(None);
    }
    let values = || read_serial(&**array, Positions::whole(schema.shape()));
    match (kind.as_str(), &schema.dtype) {
        (TEXTS, DType::String) if held.texts => {
            let values = values()?;
            let texts = (0..values.len()).map(|index| {
                let bytes = values.elements.variable_at(index)?;
                String::from_utf8(bytes.to_vec()).ok()
            });
            Ok(texts.collect::<Option<Vec<_>>>().map(|texts| Labels::Texts(texts.into())))
        }
        (DOMAIN, dtype) if held.domains && counts(dtype) => {
            let values = values()?;
            let Some(bytes) = values.elements.as_fixed() else { return Ok(None) };
            let size = dtype.size().unwrap_or(8);
            let numbers = bytes.chunks_exact(size).map(|bytes| integer(bytes, dtype));
            let numbers: Vec<i128> = numbers.collect();
            let Some(first) = numbers.first().and_then(|first| i64::try_from(*first).ok()) else {
                return Ok(None);
            };
            let in_order = numbers.iter().zip(i128::from(first)..).all(|(number, wanted)| *number == wanted);
            Ok(in_order.then(|| Labels::Domain { first, dtype: dtype.clone() }))
        }
        _ => Ok(None),
    }
}

/// Returns true if the positions of an axis can have this type.
const fn counts(dtype: &DType) -> bool {
    matches!(
        dtype,
        DType::Int8
            | DType::Int16
            | DType::Int32
            | DType::Int64
            | DType::UInt8
            | DType::UInt16
            | DType::UInt32
            | DType::UInt64
            | DType::DateTime(_)
    )
}

fn integer(bytes: &[u8], dtype: &DType) -> i128 {
    let mut wide = bytes.to_vec();
    if cfg!(target_endian = "big") {
        wide.reverse();
    }
    let unsigned = matches!(dtype, DType::UInt8 | DType::UInt16 | DType::UInt32 | DType::UInt64);
    let negative = !unsigned && wide.last().is_some_and(|byte| *byte & 0x80 != 0);
    wide.resize(16, if negative { 0xff } else { 0 });
    wide.try_into().map_or(0, i128::from_le_bytes)
}
