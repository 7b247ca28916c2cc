//! Restores nodes that are stored in a form.
//!
//! If the marks do not match the content (a mask of another shape, a type that does not fit the stored elements), the
//! node is shown as stored, with its attributes.

use std::collections::HashSet;
use std::sync::Arc;

use hyperslab_core::{
    Array, ArraySchema, Attributes, CellOrder, DType, Depth, Edges, Elements, Error, Fill, Grid, Link, Node,
    ObjectId, Positions, Region, Report, Result, Store, StoredArray, StoredGroup, StoredNamedType, Validity,
    child_path, read_serial,
};
use serde_json::{Map, Value};

use super::array::time_marks;
use super::derived::{Cells, Derived};
use super::types::parse_type;
use super::{Form, KIND, MASK, MASK_ENDING, RestoredTable, SHAPE, TABLE, TYPE, is_mask_name, text, unmarked};

/// Wraps a store so that its forms are restored.
pub(crate) fn restored(inner: Arc<dyn Store>) -> Arc<dyn Store> {
    Arc::new(Restored { inner })
}

/// A store that shows the original nodes in place of their forms.
#[derive(Debug)]
struct Restored {
    inner: Arc<dyn Store>,
}

/// An array and its path in the store.
type NamedArray = (String, Arc<dyn Array>);

impl Restored {
    /// The original of a stored array; `None` if it is not in a form.
    fn array(&self, path: &str, stored: &Arc<dyn Array>) -> Result<Option<Arc<dyn Array>>> {
        match self.array_parts(path, stored)? {
            Some(parts) => restored_array(parts, &stored.schema().attributes),
            None => Ok(None),
        }
    }

    fn array_parts(&self, path: &str, stored: &Arc<dyn Array>) -> Result<Option<FormParts>> {
        let attributes = &stored.schema().attributes;
        let (dtype, mask) = (text(attributes, TYPE), text(attributes, MASK));
        if dtype.is_none() && mask.is_none() && attributes.get(SHAPE).is_none() {
            return Ok(None);
        }
        let form = match &dtype {
            Some(text) => parse_type(text).and_then(|dtype| form_of(&dtype, &[stored])),
            None => Form::new(&stored.schema().dtype, &|_| true).filter(|_| !stored.schema().nullable),
        };
        let Some(form) = form else { return Ok(None) };
        let Some(mask) = self.mask(path, mask.as_deref())? else { return Ok(None) };
        Ok(Some(FormParts { form, arrays: vec![(path.to_owned(), Arc::clone(stored))], mask }))
    }

    /// The mask of a node: `Some(None)` if no mask is named, `None` if the named mask does not exist.
    fn mask(&self, path: &str, name: Option<&str>) -> Result<Option<Option<NamedArray>>> {
        let Some(name) = name else { return Ok(Some(None)) };
        let Some((above, own)) = path.rsplit_once('/') else { return Ok(None) };
        if name.is_empty() || name.contains('/') || name == own || [".", ".."].contains(&name) {
            return Ok(None);
        }
        let place = child_path(if above.is_empty() { "/" } else { above }, name);
        match self.inner.node(&place) {
            Ok(Node::Array(mask)) => Ok(Some(Some((place, mask)))),
            Ok(_) | Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The original of a stored group; `None` if it is an ordinary group.
    fn group(&self, path: &str, attributes: &Attributes) -> Result<Option<Node>> {
        if text(attributes, KIND).as_deref() == Some(TABLE) {
            let mut columns = Vec::new();
            for name in self.children(path)? {
                if let Node::Array(array) = self.inner.node(&child_path(path, &name))? {
                    let stored = array.schema().attributes.clone();
                    let own = self.array(&child_path(path, &name), &array)?.unwrap_or(array);
                    columns.push((name, own, stored));
                } else if let Node::Group(stored) = self.inner.node(&child_path(path, &name))?
                    && let Some(array) = self.struct_array(&child_path(path, &name), &stored)?
                {
                    columns.push((name, array, stored));
                }
            }
            let name = format!("{}{path}", self.inner.name());
            let table = RestoredTable::new(name, columns, attributes.clone());
            return Ok(table.map(|table| Node::Table(Arc::new(table))));
        }
        Ok(self.struct_array(path, attributes)?.map(Node::Array))
    }

    /// The array of structs that a group represents.
    fn struct_array(&self, path: &str, attributes: &Attributes) -> Result<Option<Arc<dyn Array>>> {
        match self.struct_parts(path, attributes)? {
            Some(parts) => restored_array(parts, attributes),
            None => Ok(None),
        }
    }

    /// The parts of the array of structs that a group represents. Nested groups are visited only as deep as the type
    /// is nested.
    fn struct_parts(&self, path: &str, attributes: &Attributes) -> Result<Option<FormParts>> {
        let dtype = text(attributes, TYPE).and_then(|text| parse_type(&text));
        let Some(dtype @ DType::Struct(_)) = dtype else { return Ok(None) };
        let Some(arrays) = self.leaves(path, &dtype)? else { return Ok(None) };
        let stored: Vec<_> = arrays.iter().map(|(_, array)| array).collect();
        let Some(form) = form_of(&dtype, &stored) else { return Ok(None) };
        let mask = text(attributes, MASK);
        let Some(mask) = self.mask(path, mask.as_deref())? else { return Ok(None) };
        Ok(Some(FormParts { form, arrays, mask }))
    }

    /// The arrays of a struct's members, in their order.
    fn leaves(&self, path: &str, dtype: &DType) -> Result<Option<Vec<NamedArray>>> {
        let DType::Struct(fields) = dtype else { return Ok(None) };
        let mut arrays = Vec::new();
        for member in &fields.members {
            if member.name.is_empty()
                || member.name.contains('/')
                || [".", ".."].contains(&member.name.as_str())
            {
                return Ok(None);
            }
            let place = child_path(path, &member.name);
            match self.inner.node(&place) {
                Ok(Node::Array(array)) => arrays.push((place, array)),
                Ok(Node::Group(_)) => match self.leaves(&place, &member.dtype)? {
                    Some(below) => arrays.extend(below),
                    None => return Ok(None),
                },
                Ok(_) | Err(Error::NotFound { .. }) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        Ok(Some(arrays))
    }

    /// Returns true if this child is the mask of a sibling. Nodes are only opened if their name could be that of a
    /// mask.
    fn is_mask(&self, path: &str, name: &str, siblings: &HashSet<String>) -> bool {
        let Some(stem) = name.trim_end_matches('_').strip_suffix(MASK_ENDING) else { return false };
        if !siblings.contains(stem) {
            return false;
        }
        let place = child_path(path, stem);
        let named = |attributes: &Attributes| text(attributes, MASK).as_deref() == Some(name);
        match self.inner.node(&place) {
            Ok(Node::Array(array)) if named(&array.schema().attributes) => {
                matches!(self.array(&place, &array), Ok(Some(_)))
            }
            Ok(Node::Group(attributes)) if named(&attributes) => {
                matches!(self.struct_array(&place, &attributes), Ok(Some(_)))
            }
            _ => false,
        }
    }
}

/// The form in which these arrays hold elements of a type; `None` if they do not match.
fn form_of(dtype: &DType, arrays: &[&Arc<dyn Array>]) -> Option<Form> {
    let plain: Vec<&DType> = arrays.iter().map(|array| &array.schema().dtype).collect();
    // Apply conversion steps until the types match the stored ones. The whole struct is never stored as a struct here, but
    // its members may be structs.
    let is_whole = |own: &DType| matches!(own, DType::Struct(_)) && own == dtype;
    let mut form = Form::new(dtype, &|own| plain.contains(&own) && !is_whole(own))?;
    if form.leaves().len() != arrays.len() {
        return None;
    }
    let rank = arrays[0].schema().grid.rank().checked_sub(form.leaves()[0].1.axes().len())?;
    for (number, array) in arrays.iter().enumerate() {
        let schema = array.schema();
        let axes = form.leaves()[number].1.axes();
        if schema.nullable
            || schema.grid.rank() != rank + axes.len()
            || schema.shape()[..rank] != arrays[0].schema().shape()[..rank]
        {
            return None;
        }
        // The length of text is the length of its axis.
        if let ([_], [extent]) = (&axes[..], &schema.shape()[rank..]) {
            form.set_text_length(number, *extent);
        }
        let (_, leaf) = form.leaves().swap_remove(number);
        if leaf.dtype != schema.dtype || leaf.axes() != schema.shape()[rank..] {
            return None;
        }
    }
    Some(form)
}

/// The arrays that together represent one array, with their paths.
#[derive(Debug)]
pub(super) struct FormParts {
    pub(super) form: Form,
    /// The arrays of the leaves.
    pub(super) arrays: Vec<(String, Arc<dyn Array>)>,
    pub(super) mask: Option<(String, Arc<dyn Array>)>,
}

/// The arrays in which a node of this store is stored; `None` if it is not in a form.
pub(super) fn parts_of(store: Arc<dyn Store>, path: &str) -> Result<Option<FormParts>> {
    let restored = Restored { inner: store };
    let (parts, attributes) = match restored.inner.node(path) {
        Ok(Node::Array(array)) => (restored.array_parts(path, &array)?, array.schema().attributes.clone()),
        Ok(Node::Group(attributes)) => (restored.struct_parts(path, &attributes)?, attributes),
        Ok(_) | Err(Error::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let Some(parts) = parts else { return Ok(None) };
    let again =
        FormParts { form: parts.form.clone(), arrays: parts.arrays.clone(), mask: parts.mask.clone() };
    Ok(restored_array(again, &attributes)?.map(|_| parts))
}

/// The path of the mask of a node of this store; `None` if it has none.
pub(crate) fn mask_of(store: &Arc<dyn Store>, path: &str) -> Result<Option<String>> {
    let parts = parts_of(Arc::clone(store), path)?;
    Ok(parts.and_then(|parts| parts.mask).map(|(mask, _)| mask))
}

/// The array that these parts represent.
fn restored_array(parts: FormParts, attributes: &Attributes) -> Result<Option<Arc<dyn Array>>> {
    let form = parts.form;
    let arrays: Vec<Arc<dyn Array>> = parts.arrays.into_iter().map(|(_, array)| array).collect();
    let mask = parts.mask.map(|(_, mask)| mask);
    let first = arrays[0].schema();
    let dtype = match &form {
        Form::Leaf(leaf) => leaf.from.clone(),
        Form::Struct(fields, _) => DType::Struct(Arc::clone(fields)),
    };
    let rank = first.grid.rank() - form.leaves()[0].1.axes().len();
    if let Some(mask) = &mask {
        let schema = mask.schema();
        let flags = matches!(schema.dtype, DType::Bool | DType::Int8 | DType::UInt8);
        if !flags || schema.nullable || schema.shape() != &first.shape()[..rank] {
            return Ok(None);
        }
    }
    let Some(shape) = original_shape(attributes, &first.shape()[..rank]) else { return Ok(None) };
    let rank = shape.len();
    let mut own = unmarked(attributes);
    let marks = time_marks(&dtype);
    if marks.first().is_some_and(|(name, units)| text(&own, name).as_ref() == Some(units)) {
        let added = |name: &str| {
            marks.iter().any(|(own, mark)| *own == name && text(attributes, name).as_ref() == Some(mark))
        };
        own = own.filtered(|name, _| !added(name));
    }
    let (fill, dense) = restored_fill(&form, &arrays, mask.as_ref())?;
    let schema = ArraySchema {
        grid: if rank == 0 {
            Grid::single(&[])
        } else {
            Grid::new(&shape, &first.grid.chunk_shape()[..rank])?
        },
        max_shape: first.max_shape[..rank].to_vec(),
        dimensions: first.dimensions[..rank].to_vec(),
        labels: first.labels[..rank].to_vec(),
        order: CellOrder::RowMajor,
        edges: Edges::Clipped,
        nullable: mask.is_some(),
        attributes: own,
        fill,
        stored: if form.is_identity() { first.stored.clone() } else { StoredArray::default() },
        dtype,
        ..first.clone()
    };
    let name = arrays[0].name().to_owned();
    let masked = mask.is_some();
    let sources = arrays.into_iter().chain(mask).collect();
    let cells = RestoredCells { sources, form, masked };
    Ok(Some(Arc::new(Derived::new(&name, schema, cells, dense))))
}

/// The original shape of an array; `None` if the attribute does not match the stored shape.
fn original_shape(attributes: &Attributes, stored: &[u64]) -> Option<Vec<u64>> {
    let Some(mark) = text(attributes, SHAPE) else { return Some(stored.to_vec()) };
    let shape: Vec<u64> = serde_json::from_str(&mark).ok()?;
    let scalar = shape.is_empty() && *stored == [1];
    let empty = shape.contains(&0)
        && shape.len() == stored.len()
        && shape.iter().zip(stored).all(|(own, stored)| (*own).max(1) == *stored);
    (scalar || empty).then_some(shape)
}

/// The fill value of the restored array, and whether the format rejects cells that were never written.
fn restored_fill(
    form: &Form,
    arrays: &[Arc<dyn Array>],
    mask: Option<&Arc<dyn Array>>,
) -> Result<(Fill, bool)> {
    let one = |schema: &ArraySchema| match &schema.fill {
        Fill::Undefined => None,
        Fill::Zero => Some(Elements::zero(&schema.dtype)),
        Fill::Element(element) => Some(element.clone()),
    };
    let mut leaves = Vec::new();
    for (array, (_, leaf)) in arrays.iter().zip(form.leaves()) {
        let Some(element) = one(array.schema()) else { return Ok((Fill::Undefined, true)) };
        leaves.push(Elements::gather(&leaf.dtype, &[&element], &vec![(0, 0); leaf.each()])?);
    }
    let element = form.decode(&mut leaves.into_iter(), 1)?;
    let missing = match mask.map(|mask| one(mask.schema())) {
        None => return Ok((Fill::Element(element), false)),
        Some(None) => return Ok((Fill::Undefined, true)),
        Some(Some(flag)) => flag.as_fixed().is_some_and(|flag| flag.first().is_some_and(|flag| *flag != 0)),
    };
    Ok((Fill::Element(element.with_validity(Some(Validity::from_flags([!missing])))), false))
}

/// Assembles cells from those of the leaves and the mask.
#[derive(Debug)]
struct RestoredCells {
    sources: Vec<Arc<dyn Array>>,
    form: Form,
    masked: bool,
}

impl Cells for RestoredCells {
    fn sources(&self) -> &[Arc<dyn Array>] {
        &self.sources
    }

    fn cells(&self, region: &Region) -> Result<Elements> {
        let count = region.cells().and_then(|cells| usize::try_from(cells).ok());
        let count = count.ok_or_else(|| Error::invalid("a region larger than memory"))?;
        let mut rows = Vec::with_capacity(self.sources.len());
        for source in &self.sources {
            let behind = &source.schema().shape()[region.shape.len()..];
            let (mut start, mut shape) = (region.start.clone(), region.shape.clone());
            start.extend(behind.iter().map(|_| 0));
            shape.extend_from_slice(behind);
            rows.push(read_serial(&**source, Positions::region(&Region { start, shape }))?.elements);
        }
        let mask = if self.masked { rows.pop() } else { None };
        let elements = self.form.decode(&mut rows.into_iter(), count)?;
        let validity = mask
            .as_ref()
            .and_then(Elements::as_fixed)
            .map(|flags| Validity::from_flags(flags.iter().map(|flag| *flag == 0)));
        Ok(elements.with_validity(validity))
    }
}

impl Store for Restored {
    fn format(&self) -> &'static str {
        self.inner.format()
    }

    fn variant(&self) -> Option<&'static str> {
        self.inner.variant()
    }

    fn name(&self) -> &Arc<str> {
        self.inner.name()
    }

    fn is_remote(&self) -> bool {
        self.inner.is_remote()
    }

    fn children(&self, path: &str) -> Result<Vec<String>> {
        let mut names = self.inner.children(path)?;
        if names.iter().any(|name| is_mask_name(name)) {
            let siblings: HashSet<String> = names.iter().cloned().collect();
            names.retain(|name| !self.is_mask(path, name, &siblings));
        }
        Ok(names)
    }

    fn node(&self, path: &str) -> Result<Node> {
        let node = self.inner.node(path)?;
        let meant = match &node {
            Node::Array(array) => self.array(path, array)?.map(Node::Array),
            Node::Group(attributes) => self.group(path, attributes)?,
            _ => None,
        };
        Ok(meant.unwrap_or(node))
    }

    fn links(&self, path: &str) -> Result<Option<Vec<Link>>> {
        let Some(mut links) = self.inner.links(path)? else { return Ok(None) };
        let names: HashSet<String> = links.iter().map(|link| link.name.clone()).collect();
        links.retain(|link| !self.is_mask(path, &link.name, &names));
        Ok(Some(links))
    }

    fn identity(&self, path: &str) -> Result<Option<ObjectId>> {
        self.inner.identity(path)
    }

    fn stored_group(&self, path: &str) -> Result<StoredGroup> {
        self.inner.stored_group(path)
    }

    fn stored_type(&self, path: &str) -> Result<Option<StoredNamedType>> {
        self.inner.stored_type(path)
    }

    fn preamble(&self) -> Result<Option<bytes::Bytes>> {
        self.inner.preamble()
    }

    fn page_size(&self) -> Result<Option<u64>> {
        self.inner.page_size()
    }

    fn details(&self) -> Result<Map<String, Value>> {
        self.inner.details()
    }

    fn advised_memory(&self, machine: u64) -> Option<u64> {
        self.inner.advised_memory(machine)
    }

    fn keeps_checksums(&self) -> bool {
        self.inner.keeps_checksums()
    }

    fn verify(&self, depth: Depth, report: &mut Report) -> Result<()> {
        self.inner.verify(depth, report)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// Groups marked as tables, nested `depth` levels, with several paths from each to the next, and names that lead
    /// nowhere.
    #[derive(Debug)]
    struct Maze {
        name: Arc<str>,
        depth: usize,
        looks: AtomicU64,
    }

    impl Store for Maze {
        fn format(&self) -> &'static str {
            "maze"
        }

        fn name(&self) -> &Arc<str> {
            &self.name
        }

        fn children(&self, path: &str) -> Result<Vec<String>> {
            let deepest = path.matches('/').count() >= self.depth;
            Ok(if deepest { Vec::new() } else { ["", ".", "a", "b", "b_mask"].map(str::to_owned).to_vec() })
        }

        fn node(&self, _: &str) -> Result<Node> {
            assert!(self.looks.fetch_add(1, Ordering::Relaxed) < 10_000, "the walk does not end");
            let mut attributes = Attributes::new();
            attributes.set(KIND, TABLE);
            attributes.set(MASK, "b_mask");
            Ok(Node::Group(attributes))
        }

        fn verify(&self, _: Depth, _: &mut Report) -> Result<()> {
            Ok(())
        }
    }

    fn maze(depth: usize) -> Arc<dyn Store> {
        Arc::new(Maze { name: "maze".into(), depth, looks: AtomicU64::new(0) })
    }

    #[test]
    fn tables_in_tables_are_not_followed() {
        let store = restored(maze(40));
        assert!(store.node("/").is_ok());
        assert!(store.children("/").is_ok());
    }

    #[test]
    fn names_that_lead_back_to_their_group_are_not_followed() {
        let store = crate::OpenStore::from_store(maze(3), "maze");
        let mut errors = 0;
        store
            .walk(&mut |_, node| {
                errors += u64::from(node.is_err());
                Ok(())
            })
            .unwrap();
        assert!(errors >= 2, "{errors} errors");
    }
}
