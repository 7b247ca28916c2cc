//! Geometries for Neuroglancer in its precomputed formats: `/neuroglancer/STORE/annotations` and
//! `/neuroglancer/STORE/skeletons`.
//!
//! Every geometry is available as points: its vertices are annotations of type `POINT`, with numeric attributes as
//! properties, in a spatial index of one level whose cells are computed on request. Geometries of lines are also
//! available as skeletons, one per object.
//!
//! | key | content |
//! |---|---|
//! | `annotations/info` | axes, bounds, properties, the grid of cells |
//! | `annotations/spatial0/I_J_K` | the annotations of a cell |
//! | `annotations/by_id/N` | one annotation; its id encodes its cell and its row in the cell |
//! | `skeletons/info` | the attributes of vertices |
//! | `skeletons/ID` | the lines of an object |
//! | `skeletons/properties/info` | the ids of the objects, unless there are too many |

use std::sync::Arc;

use axum::extract::{Path, State as Shared};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use hyperslab::geometry::{GeometryReader, Selected};
use hyperslab::{DType, GeometryQuery};
use serde_json::{Value, json};

use crate::State;
use crate::answer::{Answer, Asked, Failure, answer};
use crate::stores::Opened;
use crate::work::{Held, Job};
use crate::zarr::split;

/// The target for the average number of vertices in an index cell.
const PER_CELL: f64 = 8192.0;
/// The maximum number of cells along an axis.
const MAX_CELLS: f64 = 256.0;
/// The maximum number of vertices in a response.
const MAX_VERTICES: u64 = 4_000_000;
/// The memory per vertex while a response is built.
const VERTEX_BYTES: u64 = 128;

/// Serves any key of a store.
pub(crate) async fn object(
    Shared(state): Shared<Arc<State>>,
    Path(whole): Path<String>,
    headers: HeaderMap,
) -> Response {
    let Some((file, key)) = split(&state, &whole) else {
        return Failure::no_file().into_response();
    };
    let asked = Asked { file, key: format!("neuroglancer {key}"), headers };
    answer(state, asked, move |opened, job| produce(opened, &key, job)).await
}

fn produce(opened: &Opened, key: &str, job: &Job) -> Result<Answer, Failure> {
    let missing = || Failure::no_path(key, &opened.name);
    let (node, kind, rest) = parts(key).ok_or_else(missing)?;
    let geometry = opened.store.geometry(&node)?;
    let scene = Scene::new(&geometry)?;
    match (kind, rest) {
        ("annotations", "info") => scene.annotations(job),
        ("annotations", rest) => {
            let cell = rest.strip_prefix("spatial0/").map(|cell| scene.cell_named(cell));
            match (cell, rest.strip_prefix("by_id/").and_then(|id| id.parse().ok())) {
                (Some(Some(cell)), _) => scene.cell(&cell, job),
                (None, Some(id)) => scene.annotation(id, job)?.ok_or_else(missing),
                _ => Err(missing()),
            }
        }
        (_, "info") => scene.skeletons(job),
        (_, "properties/info") => scene.objects(job)?.ok_or_else(missing),
        (_, id) => scene.skeleton(id.parse().map_err(|_| missing())?, job)?.ok_or_else(missing),
    }
}

/// Splits a key such as `a/b/annotations/info` into node, object type and the rest.
fn parts(key: &str) -> Option<(String, &'static str, &str)> {
    for kind in ["annotations", "skeletons"] {
        let marks = key.match_indices(kind).map(|(at, _)| at);
        for at in marks {
            let after = key[at + kind.len()..].strip_prefix('/');
            let before = &key[..at];
            if let (Some(rest), true) = (after, before.is_empty() || before.ends_with('/')) {
                return Some((format!("/{}", before.trim_end_matches('/')), kind, rest));
            }
        }
    }
    None
}

/// A geometry and the grid of its spatial index.
struct Scene<'a> {
    geometry: &'a GeometryReader,
    low: Vec<f64>,
    high: Vec<f64>,
    cells: Vec<u64>,
    vertices: u64,
}

impl<'a> Scene<'a> {
    fn new(geometry: &'a GeometryReader) -> Result<Self, Failure> {
        let schema = geometry.schema();
        let vertices = geometry.inner().levels()?.first().map_or(0, |level| level.vertices);
        let Some([low, high]) = schema.bounds.clone().filter(|[low, high]| {
            let rank = schema.axes.len();
            let fits = low.len() == rank && high.len() == rank && rank > 0;
            fits && low.iter().chain(high).all(|corner| corner.is_finite())
        }) else {
            return Err(Failure::query("the geometry has no bounds, which the index of annotations needs"));
        };
        let rank = low.len() as f64;
        let parts = (vertices as f64 / PER_CELL).powf(1.0 / rank).ceil().clamp(1.0, MAX_CELLS) as u64;
        let cells = low.iter().zip(&high).map(|(low, high)| if high > low { parts } else { 1 }).collect();
        Ok(Self { geometry, low, high, cells, vertices })
    }

    /// The length of a cell along each axis; one along axes without extent.
    fn sizes(&self) -> Vec<f64> {
        let each = self.low.iter().zip(&self.high).zip(&self.cells);
        each.map(|((low, high), cells)| if high > low { (high - low) / *cells as f64 } else { 1.0 }).collect()
    }

    /// Runs a query after reserving memory for its result.
    fn query(&self, query: &GeometryQuery, most: u64, job: &Job) -> Result<(Selected, Held), Failure> {
        let held = job.reserve(most.min(self.vertices).saturating_mul(VERTEX_BYTES))?;
        let found = self.geometry.query(query)?;
        job.progress.check_cancelled()?;
        let count = found.vertices() as u64;
        if count > MAX_VERTICES {
            let message = format!("{count} vertices, but the limit is {MAX_VERTICES}");
            return Err(Failure::query(message));
        }
        Ok((found, held))
    }

    /// The attributes of the first cell that has vertices.
    fn sample(&self, job: &Job) -> Result<Vec<Property>, Failure> {
        let cell = vec![0; self.cells.len()];
        let (found, _held) = self.in_cell(&cell, job)?;
        Ok(properties(&found))
    }

    fn annotations(&self, job: &Job) -> Result<Answer, Failure> {
        let axes = &self.geometry.schema().axes;
        let dimensions: serde_json::Map<String, Value> =
            axes.iter().map(|axis| (axis.clone(), json!([1, ""]))).collect();
        let properties: Vec<Value> = self.sample(job)?.iter().map(Property::to_json).collect();
        Ok(Answer::json(&json!({
            "@type": "neuroglancer_annotations_v1",
            "dimensions": dimensions,
            "lower_bound": self.low,
            "upper_bound": self.high,
            "annotation_type": "POINT",
            "properties": properties,
            "relationships": [],
            "by_id": {"key": "by_id"},
            "spatial": [{
                "key": "spatial0", "grid_shape": self.cells, "chunk_size": self.sizes(), "limit": MAX_VERTICES,
            }],
        })))
    }

    /// Parses a cell name such as `0_3_1`.
    fn cell_named(&self, name: &str) -> Option<Vec<u64>> {
        let cell: Vec<u64> = name.split('_').map(|at| at.parse().ok()).collect::<Option<_>>()?;
        let inside = cell.len() == self.cells.len() && cell.iter().zip(&self.cells).all(|(at, end)| at < end);
        inside.then_some(cell)
    }

    /// The vertices of a cell. Vertices on its upper faces belong to the next cell.
    fn in_cell(&self, cell: &[u64], job: &Job) -> Result<(Selected, Held), Failure> {
        let sizes = self.sizes();
        let corner = |axis: usize, at: u64| {
            let last = at >= self.cells[axis];
            if last { self.high[axis] } else { self.low[axis] + sizes[axis] * at as f64 }
        };
        // Enlarge the box slightly, because its corners may be rounded. `own_rows` decides which vertices belong to
        // the cell.
        let more = |axis: usize| sizes[axis] * 1e-6;
        let axes = 0..cell.len();
        let region = [
            axes.clone().map(|axis| corner(axis, cell[axis]) - more(axis)).collect(),
            axes.map(|axis| corner(axis, cell[axis] + 1) + more(axis)).collect(),
        ];
        let query = GeometryQuery { region: Some(region), ..self.finest() };
        self.query(&query, MAX_VERTICES, job)
    }

    fn finest(&self) -> GeometryQuery {
        let levels = self.geometry.inner().levels().map_or(1, |levels| levels.len());
        GeometryQuery { level: (levels > 1).then_some(0), ..GeometryQuery::default() }
    }

    /// The rows whose vertices belong to this cell.
    fn own_rows(&self, cell: &[u64], places: &[f64]) -> Vec<usize> {
        let (rank, sizes) = (cell.len(), self.sizes());
        let own = |place: &[f64]| {
            place.iter().enumerate().all(|(axis, at)| {
                let number = ((at - self.low[axis]) / sizes[axis]).floor().max(0.0) as u64;
                number.min(self.cells[axis] - 1) == cell[axis]
            })
        };
        places.chunks_exact(rank).enumerate().filter(|(_, place)| own(place)).map(|(row, _)| row).collect()
    }

    fn number_of(&self, cell: &[u64]) -> u64 {
        cell.iter().zip(&self.cells).fold(0, |number, (at, extent)| number * extent + at)
    }

    fn cell(&self, cell: &[u64], job: &Job) -> Result<Answer, Failure> {
        let (found, held) = self.in_cell(cell, job)?;
        let places = found.coordinates();
        let rows = self.own_rows(cell, &places);
        let properties = properties(&found);
        let mut bytes = (rows.len() as u64).to_le_bytes().to_vec();
        for row in &rows {
            encode(&mut bytes, *row, &places, cell.len(), &properties);
        }
        let first = self.number_of(cell) << 32;
        for row in &rows {
            bytes.extend((first | *row as u64).to_le_bytes());
        }
        Ok(binary(bytes).held(held))
    }

    fn annotation(&self, id: u64, job: &Job) -> Result<Option<Answer>, Failure> {
        let (mut number, row) = (id >> 32, (id & u64::from(u32::MAX)) as usize);
        let mut cell = vec![0; self.cells.len()];
        for (at, extent) in cell.iter_mut().zip(&self.cells).rev() {
            (*at, number) = (number % extent, number / extent);
        }
        if number > 0 {
            return Ok(None);
        }
        let (found, held) = self.in_cell(&cell, job)?;
        let places = found.coordinates();
        if !self.own_rows(&cell, &places).contains(&row) {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        encode(&mut bytes, row, &places, cell.len(), &properties(&found));
        Ok(Some(binary(bytes).held(held)))
    }

    /// Fails unless the geometry has lines in at most three dimensions.
    fn check_lines(&self) -> Result<(), Failure> {
        let schema = self.geometry.schema();
        let unlike = schema.kinds.iter().any(|kind| kind.contains("mesh") || kind.contains("cloud"));
        if unlike || schema.axes.len() > 3 {
            let kinds = schema.kinds.join(", ");
            return Err(Failure::query(format!("{kinds}: skeletons are lines in three dimensions")));
        }
        Ok(())
    }

    fn skeletons(&self, job: &Job) -> Result<Answer, Failure> {
        self.check_lines()?;
        let attributes: Vec<Value> = self
            .sample(job)?
            .iter()
            .map(|own| json!({"id": own.name, "data_type": "float32", "num_components": 1}))
            .collect();
        Ok(Answer::json(&json!({
            "@type": "neuroglancer_skeletons",
            "transform": [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0],
            "vertex_attributes": attributes,
            "segment_properties": "properties",
        })))
    }

    fn objects(&self, job: &Job) -> Result<Option<Answer>, Failure> {
        self.check_lines()?;
        if self.vertices > MAX_VERTICES {
            return Ok(None);
        }
        let query = GeometryQuery { attributes: Some(Vec::new()), ..self.finest() };
        let (found, _held) = self.query(&query, self.vertices, job)?;
        let ids: Vec<String> = found.data.objects.iter().map(|(id, _)| id.to_string()).collect();
        let document = json!({
            "@type": "neuroglancer_segment_properties", "inline": {"ids": ids, "properties": []},
        });
        Ok(Some(Answer::json(&document)))
    }

    fn skeleton(&self, id: i64, job: &Job) -> Result<Option<Answer>, Failure> {
        self.check_lines()?;
        let query = GeometryQuery { objects: vec![id], ..self.finest() };
        let (found, held) = match self.query(&query, MAX_VERTICES, job) {
            Err(failure) if failure.status() != axum::http::StatusCode::PAYLOAD_TOO_LARGE => return Ok(None),
            found => found?,
        };
        if found.vertices() == 0 {
            return Ok(None);
        }
        let (places, rank) = (found.coordinates(), self.low.len());
        let edges: Vec<u32> = found
            .lines()?
            .iter()
            .flat_map(|line| line.windows(2).flat_map(|pair| pair.iter().map(|row| *row as u32)))
            .collect();
        let mut bytes = (found.vertices() as u32).to_le_bytes().to_vec();
        bytes.extend((edges.len() as u32 / 2).to_le_bytes());
        for place in places.chunks_exact(rank) {
            let at = (0..3).map(|axis| place.get(axis).copied().unwrap_or(0.0) as f32);
            bytes.extend(at.flat_map(f32::to_le_bytes));
        }
        bytes.extend(edges.iter().flat_map(|row| row.to_le_bytes()));
        for property in properties(&found) {
            bytes.extend(property.values.iter().flat_map(|value| (*value as f32).to_le_bytes()));
        }
        Ok(Some(binary(bytes).held(held)))
    }
}

fn binary(bytes: Vec<u8>) -> Answer {
    Answer::new("application/octet-stream", bytes.into())
}

/// A numeric attribute of the vertices.
struct Property {
    name: String,
    kind: PropertyKind,
    values: Vec<f64>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum PropertyKind {
    Float32,
    UInt32,
    Int32,
    UInt16,
    Int16,
    UInt8,
    Int8,
}

impl PropertyKind {
    /// The property type for numbers of this type. 64-bit integers become floats.
    const fn of(dtype: &DType) -> Self {
        match dtype {
            DType::UInt32 => Self::UInt32,
            DType::Int32 => Self::Int32,
            DType::UInt16 => Self::UInt16,
            DType::Int16 => Self::Int16,
            DType::UInt8 | DType::Bool => Self::UInt8,
            DType::Int8 => Self::Int8,
            _ => Self::Float32,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Float32 => "float32",
            Self::UInt32 => "uint32",
            Self::Int32 => "int32",
            Self::UInt16 => "uint16",
            Self::Int16 => "int16",
            Self::UInt8 => "uint8",
            Self::Int8 => "int8",
        }
    }
}

impl Property {
    fn to_json(&self) -> Value {
        json!({"id": self.name, "type": self.kind.name()})
    }

    fn encode(&self, row: usize, bytes: &mut Vec<u8>) {
        let value = self.values.get(row).copied().unwrap_or(f64::NAN);
        match self.kind {
            PropertyKind::Float32 => bytes.extend((value as f32).to_le_bytes()),
            PropertyKind::UInt32 => bytes.extend((value as u32).to_le_bytes()),
            PropertyKind::Int32 => bytes.extend((value as i32).to_le_bytes()),
            PropertyKind::UInt16 => bytes.extend((value as u16).to_le_bytes()),
            PropertyKind::Int16 => bytes.extend((value as i16).to_le_bytes()),
            PropertyKind::UInt8 => bytes.push(value as u8),
            PropertyKind::Int8 => bytes.extend((value as i8).to_le_bytes()),
        }
    }
}

/// The attributes with one number per vertex and a name that Neuroglancer accepts. Sorted by decreasing size, as in
/// the encoding.
fn properties(found: &Selected) -> Vec<Property> {
    let named = |name: &str| {
        name.starts_with(|letter: char| letter.is_ascii_lowercase())
            && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    };
    let mut all: Vec<Property> = found
        .data
        .attributes
        .iter()
        .filter(|(name, _)| named(name))
        .filter_map(|(name, values)| {
            let kind = PropertyKind::of(&values.dtype);
            Some(Property { name: name.clone(), kind, values: found.numbers(name)? })
        })
        .collect();
    all.sort_by_key(|property| property.kind);
    all
}

/// Encodes a position and its properties, padded to 4 bytes.
fn encode(bytes: &mut Vec<u8>, row: usize, places: &[f64], rank: usize, properties: &[Property]) {
    let start = bytes.len();
    let place = places.get(row * rank..(row + 1) * rank).unwrap_or_default();
    bytes.extend(place.iter().flat_map(|at| (*at as f32).to_le_bytes()));
    properties.iter().for_each(|property| property.encode(row, bytes));
    let length = bytes.len() - start;
    bytes.resize(start + length.next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_name_a_node_and_a_kind() {
        assert_eq!(parts("annotations/info"), Some(("/".to_owned(), "annotations", "info")));
        assert_eq!(parts("a/b/skeletons/7"), Some(("/a/b".to_owned(), "skeletons", "7")));
        assert_eq!(parts("xannotations/info"), None);
        assert_eq!(parts("annotations"), None);
    }
}
