//! Reading geometries: what a box, an object or a group selects, and the files that other programs read.

mod files;
mod obj;
mod ply;
mod swc;
mod view;

use std::sync::Arc;

use hyperslab_core::{
    Batch, Column, DType, Elements, Error, Geometry, GeometryData, GeometryQuery, GeometrySchema, Result,
    Validity, Values,
};
use serde_json::{Map, Value, json};

use crate::rows::{Rows, plain_column};

pub(crate) use files::write_staged;
pub use files::{ENDINGS, write};
pub use obj::write_obj;
pub use ply::write_ply;
pub use swc::write_swc;

/// A geometry of an open store, ready to be read.
#[derive(Debug, Clone)]
pub struct GeometryReader {
    geometry: Arc<dyn Geometry>,
}

impl GeometryReader {
    pub(crate) fn new(geometry: Arc<dyn Geometry>) -> Self {
        Self { geometry }
    }

    /// What the geometry is.
    #[must_use]
    pub fn schema(&self) -> &GeometrySchema {
        self.geometry.schema()
    }

    /// The geometry itself, as its format answers for it.
    #[must_use]
    pub const fn inner(&self) -> &Arc<dyn Geometry> {
        &self.geometry
    }

    /// What a query selects, checked: every attribute has a row per vertex, links and objects name rows.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) for a box of another rank than the geometry or with its corners exchanged, and as
    /// [`Geometry::query`].
    pub fn query(&self, query: &GeometryQuery) -> Result<Selected> {
        if let Some([low, high]) = &query.region {
            let rank = self.schema().axes.len();
            if low.len() != rank || high.len() != rank {
                return Err(Error::invalid(format!(
                    "a box of {} numbers; {rank} axes need {}",
                    low.len() + high.len(),
                    2 * rank
                )));
            }
            if low.iter().zip(high).any(|(low, high)| low > high || low.is_nan() || high.is_nan()) {
                return Err(Error::invalid("a box whose first corner is not its lowest"));
            }
        }
        let data = self.geometry.query(query)?;
        let selected =
            Selected { axes: self.schema().axes.clone(), kinds: self.schema().kinds.clone(), data };
        selected.check(self.geometry.name())?;
        Ok(selected)
    }
}

/// A box as people write it: `x0,y0,z0,x1,y1,z1`, the lowest corner and the highest.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) for an odd count or what is not a number.
pub fn parse_box(text: &str) -> Result<[Vec<f64>; 2]> {
    let numbers = text.split(',').map(|part| part.trim().parse::<f64>());
    let numbers = numbers.collect::<std::result::Result<Vec<_>, _>>();
    let numbers = numbers.ok().filter(|numbers| numbers.len() % 2 == 0);
    let numbers =
        numbers.ok_or_else(|| Error::invalid(format!("{text:?} is not a box such as 0,0,0,10,10,10")))?;
    let (low, high) = numbers.split_at(numbers.len() / 2);
    Ok([low.to_vec(), high.to_vec()])
}

/// What a query selected, with the names of its axes.
#[derive(Debug, Clone)]
pub struct Selected {
    /// A name per spatial dimension.
    pub axes: Vec<String>,
    /// Kinds, in the format's own words.
    pub kinds: Vec<String>,
    /// Vertices, attributes, links, objects.
    pub data: GeometryData,
}

impl Selected {
    /// How many vertices.
    #[must_use]
    pub fn vertices(&self) -> usize {
        self.data.vertices.shape.first().map_or(0, |rows| *rows as usize)
    }

    /// How many links.
    #[must_use]
    pub fn links(&self) -> usize {
        self.data.links.as_ref().and_then(|links| links.shape.first()).map_or(0, |rows| *rows as usize)
    }

    fn check(&self, name: &str) -> Result<()> {
        let rows = self.vertices();
        let wrong = |what: &str| Err(Error::invalid(format!("{name}: {what}")));
        if self.data.vertices.shape.len() != 2 || self.data.vertices.shape[1] as usize != self.axes.len() {
            return wrong("vertices that do not have a column per axis");
        }
        if self.data.attributes.iter().any(|(_, values)| values.shape.first().copied() != Some(rows as u64)) {
            return wrong("an attribute that does not have a row per vertex");
        }
        let has = |count: usize| {
            move |(_, values): &(String, Values)| values.shape.first() == Some(&(count as u64))
        };
        if !self.data.link_attributes.iter().all(has(self.links()))
            || !self.data.object_attributes.iter().all(has(self.data.objects.len()))
        {
            return wrong("an attribute that does not have a row per link or object");
        }
        if self.data.objects.iter().any(|(_, members)| members.iter().any(|row| *row >= rows as u64)) {
            return wrong("an object of a vertex that is not there");
        }
        if self.data.links.as_ref().is_some_and(|links| links.shape.len() != 2)
            || view::links(self)?.iter().flatten().any(|row| *row >= rows)
        {
            return wrong("a link to a vertex that is not there");
        }
        Ok(())
    }

    /// `{"vertices": [[…]], "attributes": {…}, "links": [[a, b], …], "objects": {"id": [row, …]}}`, and where there are any,
    /// `link_attributes` (a row a link) and `object_attributes` (a row an object, in the order of `objects`).
    #[must_use]
    pub fn to_json(&self) -> Value {
        let named = |attributes: &[(String, Values)]| -> Map<_, _> {
            attributes.iter().map(|(name, values)| (name.clone(), values.to_json())).collect()
        };
        let attributes = named(&self.data.attributes);
        let objects: Map<_, _> =
            self.data.objects.iter().map(|(id, rows)| (id.to_string(), json!(rows))).collect();
        let mut json = json!({
            "vertices": self.data.vertices.to_json(),
            "attributes": attributes,
            "links": self.data.links.as_ref().map_or_else(|| json!([]), Values::to_json),
            "objects": objects,
        });
        let more = [
            ("link_attributes", &self.data.link_attributes),
            ("object_attributes", &self.data.object_attributes),
        ];
        for (name, attributes) in more.into_iter().filter(|(_, attributes)| !attributes.is_empty()) {
            json[name] = Value::Object(named(attributes));
        }
        json
    }

    /// One row a vertex: a column per axis, one per attribute, and the first object that has the vertex.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) when the vertices are not of a fixed size.
    pub fn rows(&self) -> Result<Rows<'static>> {
        let count = self.vertices();
        let (mut columns, mut elements): (Vec<Column>, Vec<Elements>) = (Vec::new(), Vec::new());
        let vertices = &self.data.vertices;
        for (axis, name) in self.axes.iter().enumerate() {
            let picks: Vec<_> = (0..count).map(|row| (0, row * self.axes.len() + axis)).collect();
            columns.push(Column { dimension: true, ..plain_column(name, vertices.dtype.clone(), false) });
            elements.push(Elements::gather(&vertices.dtype, &[&vertices.elements], &picks)?);
        }
        for (name, values) in &self.data.attributes {
            let (dtype, held) = attribute_column(values);
            columns.push(plain_column(name, dtype, values.elements.validity.is_some()));
            elements.push(held);
        }
        if !self.data.objects.is_empty() {
            let owners = self.owners();
            let ids: Vec<i64> = owners.iter().map(|owner| owner.unwrap_or(0)).collect();
            let validity = Validity::from_flags(owners.iter().map(Option::is_some));
            let validity = (validity.missing() > 0).then_some(validity);
            columns.push(plain_column("object", DType::Int64, true));
            elements.push(Elements::fixed(bytemuck::cast_slice(&ids).to_vec()).with_validity(validity));
        }
        Ok(Rows::once(columns, Batch { rows: count, columns: elements }))
    }

    /// Vertices as numbers, one row a vertex and one column an axis; what is no number is not a number.
    #[must_use]
    pub fn coordinates(&self) -> Vec<f64> {
        view::floats(&self.data.vertices)
    }

    /// An attribute of one number a vertex; `None` where there is none of this name, or it is of another shape or type.
    #[must_use]
    pub fn numbers(&self, attribute: &str) -> Option<Vec<f64>> {
        let (_, values) = self.data.attributes.iter().find(|(name, _)| name == attribute)?;
        view::is_number(values).then(|| view::floats(values))
    }

    /// The lines that connect vertices, each as rows: the links, with faces closed, or the objects where they are lines by
    /// themselves.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) for a link that names no vertex.
    pub fn lines(&self) -> Result<Vec<Vec<usize>>> {
        let mut links = view::links(self)?;
        if links.is_empty() && view::are_lines(self) {
            let rows = |rows: &Vec<u64>| rows.iter().map(|row| *row as usize).collect();
            return Ok(self.data.objects.iter().map(|(_, own)| rows(own)).collect());
        }
        for link in links.iter_mut().filter(|link| link.len() > 2) {
            link.extend_from_within(..1);
        }
        Ok(links)
    }

    /// The first object that has each vertex.
    pub(crate) fn owners(&self) -> Vec<Option<i64>> {
        let mut owners = vec![None; self.vertices()];
        for (id, rows) in &self.data.objects {
            for row in rows {
                if let Some(owner) = owners.get_mut(*row as usize) {
                    owner.get_or_insert(*id);
                }
            }
        }
        owners
    }
}

/// An attribute of several numbers a vertex is a column of small arrays.
fn attribute_column(values: &Values) -> (DType, Elements) {
    let inner: Vec<usize> = values.shape.iter().skip(1).map(|extent| *extent as usize).collect();
    if inner.iter().product::<usize>() == 1 {
        return (values.dtype.clone(), values.elements.clone());
    }
    let dtype = DType::Array(values.dtype.clone().into(), inner.clone());
    if values.dtype.is_fixed() && values.elements.validity.is_none() {
        return (dtype, values.elements.clone());
    }
    let data = hyperslab_core::Data::FixedList {
        each: inner.iter().product(),
        items: values.elements.clone().into(),
    };
    (dtype, Elements { data, validity: None })
}

#[cfg(test)]
mod tests;
