//! Reads geometries by box, object or group, and exports them.

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

/// A geometry of an open store, ready for reading.
#[derive(Debug, Clone)]
pub struct GeometryReader {
    geometry: Arc<dyn Geometry>,
}

impl GeometryReader {
    pub(crate) fn new(geometry: Arc<dyn Geometry>) -> Self {
        Self { geometry }
    }

    /// The geometry's schema.
    #[must_use]
    pub fn schema(&self) -> &GeometrySchema {
        self.geometry.schema()
    }

    /// The underlying geometry, as implemented by its format.
    #[must_use]
    pub const fn inner(&self) -> &Arc<dyn Geometry> {
        &self.geometry
    }

    /// Runs a query and checks the result: every attribute has one row per vertex, links and objects refer to existing rows.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) for a box whose rank differs from the geometry's or whose corners are swapped; also as
    /// [`Geometry::query`].
    pub fn query(&self, query: &GeometryQuery) -> Result<Selected> {
        if let Some([low, high]) = &query.region {
            let rank = self.schema().axes.len();
            if low.len() != rank || high.len() != rank {
                return Err(Error::invalid(format!(
                    "the box has {} numbers, but {rank} axes need {}",
                    low.len() + high.len(),
                    2 * rank
                )));
            }
            if low.iter().zip(high).any(|(low, high)| low > high || low.is_nan() || high.is_nan()) {
                return Err(Error::invalid("the first corner of a box must be its lowest"));
            }
        }
        let data = self.geometry.query(query)?;
        let selected =
            Selected { axes: self.schema().axes.clone(), kinds: self.schema().kinds.clone(), data };
        selected.check(self.geometry.name())?;
        Ok(selected)
    }
}

/// Parses a box: `x0,y0,z0,x1,y1,z1`, the lowest corner and the highest.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) for an odd count or an invalid number.
pub fn parse_box(text: &str) -> Result<[Vec<f64>; 2]> {
    let numbers = text.split(',').map(|part| part.trim().parse::<f64>());
    let numbers = numbers.collect::<std::result::Result<Vec<_>, _>>();
    let numbers = numbers.ok().filter(|numbers| numbers.len() % 2 == 0);
    let numbers =
        numbers.ok_or_else(|| Error::invalid(format!("{text:?} is not a box such as 0,0,0,10,10,10")))?;
    let (low, high) = numbers.split_at(numbers.len() / 2);
    Ok([low.to_vec(), high.to_vec()])
}

/// The result of a query, with the names of its axes.
#[derive(Debug, Clone)]
pub struct Selected {
    /// One name per spatial dimension.
    pub axes: Vec<String>,
    /// The kinds, in the format's own terms.
    pub kinds: Vec<String>,
    /// Vertices, attributes, links and objects.
    pub data: GeometryData,
}

impl Selected {
    /// The number of vertices.
    #[must_use]
    pub fn vertices(&self) -> usize {
        self.data.vertices.shape.first().map_or(0, |rows| *rows as usize)
    }

    /// The number of links.
    #[must_use]
    pub fn links(&self) -> usize {
        self.data.links.as_ref().and_then(|links| links.shape.first()).map_or(0, |rows| *rows as usize)
    }

    fn check(&self, name: &str) -> Result<()> {
        let rows = self.vertices();
        let wrong = |what: &str| Err(Error::invalid(format!("{name}: {what}")));
        if self.data.vertices.shape.len() != 2 || self.data.vertices.shape[1] as usize != self.axes.len() {
            return wrong("the vertices do not have one column per axis");
        }
        if self.data.attributes.iter().any(|(_, values)| values.shape.first().copied() != Some(rows as u64)) {
            return wrong("an attribute does not have one row per vertex");
        }
        let has = |count: usize| {
            move |(_, values): &(String, Values)| values.shape.first() == Some(&(count as u64))
        };
        if !self.data.link_attributes.iter().all(has(self.links()))
            || !self.data.object_attributes.iter().all(has(self.data.objects.len()))
        {
            return wrong("an attribute does not have one row per link or object");
        }
        if self.data.objects.iter().any(|(_, members)| members.iter().any(|row| *row >= rows as u64)) {
            return wrong("an object refers to a vertex that does not exist");
        }
        if self.data.links.as_ref().is_some_and(|links| links.shape.len() != 2)
            || view::links(self)?.iter().flatten().any(|row| *row >= rows)
        {
            return wrong("a link refers to a vertex that does not exist");
        }
        Ok(())
    }

    /// `{"vertices": [[…]], "attributes": {…}, "links": [[a, b], …], "objects": {"id": [row, …]}}`; and if present,
    /// `link_attributes` (one row per link) and `object_attributes` (one row per object, in the order of `objects`).
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

    /// One row per vertex: one column per axis, one per attribute, and the first object that contains the vertex.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) if the vertices have no fixed size.
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

    /// Vertex coordinates as numbers, one row per vertex and one column per axis. Values that are not numbers become NaN.
    #[must_use]
    pub fn coordinates(&self) -> Vec<f64> {
        view::floats(&self.data.vertices)
    }

    /// An attribute with one number per vertex; `None` if it does not exist or has another shape or type.
    #[must_use]
    pub fn numbers(&self, attribute: &str) -> Option<Vec<f64>> {
        let (_, values) = self.data.attributes.iter().find(|(name, _)| name == attribute)?;
        view::is_number(values).then(|| view::floats(values))
    }

    /// The lines between vertices, each as a list of rows: the links, with faces closed, or the objects if they are lines
    /// themselves.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) for a link to a vertex that does not exist.
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

    /// The first object that contains each vertex.
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

/// An attribute with several numbers per vertex becomes a column of fixed-size arrays.
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
