//! Arrays in forms that the target can hold.

use std::ops::ControlFlow;
use std::sync::Arc;

use hyperslab_core::{
    Array, ArraySchema, Attributes, CellOrder, DType, Edges, Elements, Error, Fill, Grid, Labels, Node,
    Positions, Region, Result, StoredArray, TimeUnit, Values, child_path, read_serial,
};

use super::derived::{Cells, Derived};
use super::{Form, Leaf, MASK, MASK_ENDING, NativeSupport, SHAPE, TYPE, type_text};

/// Beyond a gibibyte, padded texts may take at most this many times the bytes of the texts.
const MOST_PADDING: u64 = 64;

/// How an array is stored: the form of its elements, and whether a mask accompanies it.
#[derive(Debug)]
pub(crate) struct ArrayForm {
    pub(crate) form: Form,
    pub(crate) masked: bool,
}

impl ArrayForm {
    /// The form of elements of a type in a target; `None` if they are stored unchanged.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](Error::Unsupported) if the target has no form for them.
    pub(crate) fn new(
        name: &str,
        dtype: &DType,
        nullable: bool,
        holds: &NativeSupport<'_>,
    ) -> Result<Option<Self>> {
        let masked = nullable && !holds.nullable;
        if !masked && (holds.dtype)(dtype) {
            return Ok(None);
        }
        let form =
            Form::new(dtype, holds.dtype).filter(|form| form.is_identity() || type_text(dtype).is_some());
        let form = form.ok_or_else(|| {
            Error::unsupported(name, format!("storing elements of type {dtype} in the target"))
        })?;
        Ok(Some(Self { form, masked }))
    }

    /// A description for the report.
    pub(crate) fn words(&self, dtype: &DType) -> String {
        let mut words = match &self.form {
            Form::Struct(..) => "structs are stored as a group of their members".to_owned(),
            Form::Leaf(_) if self.form.is_identity() => String::new(),
            Form::Leaf(leaf) => {
                let axes = if leaf.axes().is_empty() { "" } else { " along one more axis" };
                format!("{dtype} is stored as {}{axes}", leaf.dtype)
            }
        };
        if self.masked {
            words += if words.is_empty() { "" } else { "; " };
            words += "a separate mask marks the missing elements";
        }
        words
    }

    /// Sets the attributes that mark the form.
    pub(crate) fn mark(&self, dtype: &DType, mask: &str, attributes: &mut Attributes) {
        if !self.form.is_identity() {
            attributes.set(TYPE, type_text(dtype).unwrap_or_default().as_str());
            if let (Form::Leaf(_), true) = (&self.form, attributes.get("units").is_none()) {
                for (name, text) in time_marks(dtype) {
                    attributes.set(name, text.as_str());
                }
            }
        }
        if self.masked {
            attributes.set(MASK, mask);
        }
    }
}

/// The attributes by which programs without a date type know ticks: CF's for dates, xarray's for spans. None for other types.
pub(super) fn time_marks(dtype: &DType) -> Vec<(&'static str, String)> {
    let (DType::DateTime(unit) | DType::Duration(unit)) = dtype else { return Vec::new() };
    // The second names the type of spans in xarray, which has none of whole minutes.
    let (name, resolution) = match unit {
        TimeUnit::Day => ("days", "s"),
        TimeUnit::Hour => ("hours", "s"),
        TimeUnit::Minute => ("minutes", "s"),
        TimeUnit::Second => ("seconds", "s"),
        TimeUnit::Millisecond => ("milliseconds", "ms"),
        TimeUnit::Microsecond => ("microseconds", "us"),
        TimeUnit::Nanosecond => ("nanoseconds", "ns"),
        _ => return Vec::new(),
    };
    if matches!(dtype, DType::Duration(_)) {
        return vec![("units", name.to_owned()), ("dtype", format!("timedelta64[{resolution}]"))];
    }
    // The calendar of NumPy's dates.
    let calendar = "proleptic_gregorian".to_owned();
    vec![("units", format!("{name} since 1970-01-01")), ("calendar", calendar)]
}

/// The path of an array's mask, unused by its siblings.
pub(crate) fn mask_path(path: &str, taken: &dyn Fn(&str) -> bool) -> String {
    let mut mask = format!("{path}{MASK_ENDING}");
    while taken(&mask) {
        mask.push('_');
    }
    mask
}

/// Nodes by path, parents first, and a description of the change.
pub(crate) type StoredNodes = (Vec<(String, Node)>, String);

/// The nodes that represent an array in a target; `None` if the array is stored unchanged. `taken` returns true for paths in use.
///
/// # Errors
///
/// [`Unsupported`](Error::Unsupported) if the target has no form for it; otherwise any error from measuring texts.
pub(crate) fn stored_arrays(
    path: &str,
    array: &Arc<dyn Array>,
    holds: &NativeSupport<'_>,
    taken: &dyn Fn(&str) -> bool,
) -> Result<Option<StoredNodes>> {
    let own = array.schema();
    let Some(mut form) = ArrayForm::new(array.name(), &own.dtype, own.nullable, holds)? else {
        if holds.shape(own.shape()) {
            return Ok(None);
        }
        return reshaped(path, array).map(Some);
    };
    if path == "/" && (form.masked || matches!(form.form, Form::Struct(..))) {
        return Err(Error::unsupported(
            array.name(),
            format!("elements of type {} at the root of the target", own.dtype),
        ));
    }
    if form.form.has_text() {
        measure(&mut form.form, array)?;
    }
    let words = form.words(&own.dtype);
    let mask = mask_path(path, taken);
    let mask_name = mask.rsplit('/').next().unwrap_or_default().to_owned();
    let mut attributes = own.attributes.clone();
    form.mark(&own.dtype, &mask_name, &mut attributes);
    let shared = Arc::new(form.form);
    let mut nodes = Vec::new();
    let structs = matches!(*shared, Form::Struct(..));
    if structs {
        nodes.push((path.to_owned(), Node::Group(attributes.clone())));
    }
    for (number, (members, leaf)) in shared.leaves().iter().enumerate() {
        let mut place = path.to_owned();
        for (depth, member) in members.iter().enumerate() {
            if member.is_empty() || member.contains('/') {
                return Err(Error::unsupported(
                    array.name(),
                    format!("a member {member:?} as a name in the target"),
                ));
            }
            place = child_path(&place, member);
            let is_group = depth + 1 < members.len();
            if is_group && !nodes.iter().any(|(other, _)| *other == place) {
                nodes.push((place.clone(), Node::Group(Attributes::new())));
            }
        }
        let attributes = if structs { Attributes::new() } else { attributes.clone() };
        let cells = LeafCells { source: [Arc::clone(array)], form: Arc::clone(&shared), leaf: number };
        let (schema, dense) = leaf_schema(own, &shared, number, leaf, attributes)?;
        nodes.push((place, Node::Array(Arc::new(Derived::new(array.name(), schema, cells, dense)))));
    }
    if form.masked {
        let cells = MaskCells { source: [Arc::clone(array)] };
        nodes.push((
            mask,
            Node::Array(Arc::new(Derived::new(array.name(), mask_schema(own, path), cells, false))),
        ));
    }
    Ok(Some((nodes, words)))
}

/// Adds elements to an array without dimensions or without elements.
fn reshaped(path: &str, array: &Arc<dyn Array>) -> Result<StoredNodes> {
    let own = array.schema();
    let mut schema = own.clone();
    schema.attributes.set(SHAPE, format!("{:?}", own.shape()).as_str());
    if own.shape().is_empty() {
        schema.grid = Grid::single(&[1]);
        schema.max_shape = vec![Some(1)];
        // The name tells other programs that the axis is not one of their dimensions.
        schema.dimensions = vec![Some(SCALAR.to_owned())];
        schema.labels = vec![Labels::None];
    } else {
        let shape: Vec<u64> = own.shape().iter().map(|extent| (*extent).max(1)).collect();
        let chunk_shape: Vec<u64> = own.grid.chunk_shape().iter().map(|extent| (*extent).max(1)).collect();
        schema.grid = Grid::new(&shape, &chunk_shape)?;
        let limits = own.max_shape.iter().zip(&shape);
        schema.max_shape = limits.map(|(limit, extent)| limit.map(|limit| limit.max(*extent))).collect();
    }
    (schema.order, schema.edges) = (CellOrder::RowMajor, Edges::Clipped);
    let cells = ReshapedCells { source: Arc::clone(array) };
    let stored: Arc<dyn Array> = Arc::new(Derived::new(array.name(), schema, cells, true));
    let words = if own.shape().is_empty() {
        "an array without dimensions is stored as one of one element".to_owned()
    } else {
        format!("an array of shape {:?} is stored with an element along each axis that has none", own.shape())
    };
    Ok((vec![(path.to_owned(), Node::Array(stored))], words))
}

/// The dimension of an array that has none.
const SCALAR: &str = "scalar";

/// The one element of an array without dimensions, or fill values for an array without elements.
#[derive(Debug)]
struct ReshapedCells {
    source: Arc<dyn Array>,
}

impl Cells for ReshapedCells {
    fn sources(&self) -> &[Arc<dyn Array>] {
        &[]
    }

    fn cells(&self, region: &Region) -> Result<Elements> {
        let own = self.source.schema();
        if own.shape().is_empty() {
            return Ok(read_serial(&*self.source, Positions::whole(&[]))?.elements);
        }
        let zero = match &own.fill {
            Fill::Element(element) => element.clone(),
            _ => Elements::zero(&own.dtype),
        };
        let count = region.cells().and_then(|cells| usize::try_from(cells).ok()).unwrap_or(0);
        Elements::gather(&own.dtype, &[&zero], &vec![(0, 0); count])
    }
}

/// Reads all texts that are stored, to find the longest.
fn measure(form: &mut Form, array: &Arc<dyn Array>) -> Result<()> {
    let own = array.schema();
    if let Fill::Element(element) = &own.fill {
        form.measure(element)?;
    }
    let mut texts = 0_u64;
    array.visit_chunks(&mut |chunk, _| {
        let values = read_serial(&**array, Positions::region(&own.grid.region(&chunk)))?;
        texts = texts.saturating_add(values.elements.bytes());
        form.measure(&values.elements)?;
        Ok(ControlFlow::Continue(()))
    })?;
    let cells = hyperslab_core::product(own.shape()).unwrap_or(u64::MAX);
    let longest = form.leaves().iter().map(|(_, leaf)| leaf.each() as u64).max().unwrap_or(0);
    if cells.saturating_mul(longest) > texts.saturating_mul(MOST_PADDING).saturating_add(1 << 30) {
        return Err(Error::unsupported(
            array.name(),
            format!("padding {cells} texts to the longest, which has {longest} bytes,"),
        ));
    }
    form.fill_empty_text();
    Ok(())
}

/// The schema of a leaf, and whether its fill value is not expressible.
fn leaf_schema(
    own: &ArraySchema,
    form: &Form,
    number: usize,
    leaf: &Leaf,
    attributes: Attributes,
) -> Result<(ArraySchema, bool)> {
    let axes = leaf.axes();
    let with = |extents: &[u64]| extents.iter().chain(&axes).copied().collect::<Vec<u64>>();
    let chunk_shape: Vec<u64> = with(own.grid.chunk_shape()).iter().map(|extent| (*extent).max(1)).collect();
    let (fill, dense) = leaf_fill(own, form, number, leaf)?;
    let mut schema = ArraySchema {
        dtype: leaf.dtype.clone(),
        grid: Grid::new(&with(own.shape()), &chunk_shape)?,
        order: CellOrder::RowMajor,
        edges: Edges::Clipped,
        nullable: false,
        fill,
        attributes,
        ..own.clone()
    };
    if !form.is_identity() {
        schema.stored = StoredArray { dtype: leaf.stored_type(), ..StoredArray::default() };
    }
    // New axes get names only if all existing axes have names.
    let named = own.dimensions.iter().all(Option::is_some);
    schema.dimensions.extend(leaf.axis_names().into_iter().map(|name| Some(name).filter(|_| named)));
    schema.labels.extend(axes.iter().map(|_| Labels::None));
    schema.max_shape.extend(axes.iter().map(|extent| Some(*extent)));
    Ok((schema, dense))
}

/// The fill value of a leaf. The flag is true if a single value cannot express it.
fn leaf_fill(own: &ArraySchema, form: &Form, number: usize, leaf: &Leaf) -> Result<(Fill, bool)> {
    let element = match &own.fill {
        Fill::Element(element) => element,
        other => return Ok((other.clone(), false)),
    };
    let stored = form.encode(element)?.into_iter().nth(number);
    let size = leaf.dtype.size().unwrap_or(0);
    match stored.as_ref().and_then(Elements::as_fixed) {
        Some(bytes)
            if size > 0 && bytes.len() >= size && bytes.chunks(size).all(|one| *one == bytes[..size]) =>
        {
            Ok((Fill::Element(Elements::fixed(bytes.slice(..size))), false))
        }
        None => Ok((stored.map_or(Fill::Zero, Fill::Element), false)),
        Some(_) => Ok((Fill::Zero, true)),
    }
}

fn mask_schema(own: &ArraySchema, path: &str) -> ArraySchema {
    let missing = matches!(&own.fill, Fill::Element(element) if element.is_missing(0));
    let name = path.rsplit('/').next().unwrap_or_default();
    let attributes = Attributes::from_iter([("long_name", format!("1 where {name} is missing").as_str())]);
    ArraySchema {
        dtype: DType::Bool,
        order: CellOrder::RowMajor,
        edges: Edges::Clipped,
        nullable: false,
        fill: match &own.fill {
            Fill::Undefined => Fill::Undefined,
            _ => Fill::Element(Elements::fixed(vec![u8::from(missing)])),
        },
        attributes,
        stored: StoredArray::default(),
        ..own.clone()
    }
}

/// The cells of a leaf.
#[derive(Debug)]
struct LeafCells {
    source: [Arc<dyn Array>; 1],
    form: Arc<Form>,
    leaf: usize,
}

impl Cells for LeafCells {
    fn sources(&self) -> &[Arc<dyn Array>] {
        &self.source
    }

    fn cells(&self, region: &Region) -> Result<Elements> {
        let values = read_leading(&*self.source[0], region)?;
        let leaf = self.form.encode(&values.elements)?.into_iter().nth(self.leaf);
        leaf.ok_or_else(|| Error::invalid("a form lacks one of its leaves"))
    }
}

/// A mask of missing cells.
#[derive(Debug)]
struct MaskCells {
    source: [Arc<dyn Array>; 1],
}

impl Cells for MaskCells {
    fn sources(&self) -> &[Arc<dyn Array>] {
        &self.source
    }

    fn cells(&self, region: &Region) -> Result<Elements> {
        let values = read_leading(&*self.source[0], region)?;
        let flags: Vec<u8> =
            (0..values.len()).map(|index| u8::from(values.elements.is_missing(index))).collect();
        Ok(Elements::fixed(flags))
    }
}

/// The cells of an array in the leading axes of a region.
fn read_leading(array: &dyn Array, region: &Region) -> Result<Values> {
    let rank = array.schema().grid.rank();
    let own = Region::new(&region.start[..rank], &region.shape[..rank]);
    read_serial(array, Positions::region(&own))
}
