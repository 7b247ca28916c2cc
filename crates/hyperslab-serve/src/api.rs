//! The page's own API, beyond h5grove's: stores of a folder, nodes in pages, rows of tables, geometry by box and
//! level.

use std::path::Path;
use std::sync::Arc;

use axum::extract::State as Shared;
use axum::http::{HeaderMap, Uri};
use axum::response::{IntoResponse, Response};
use hyperslab::driver::{child_path, element_to_json, normal_path};
use hyperslab::geometry::parse_box;
use hyperslab::{
    ArrayReader, CatalogNode, DType, Format, GeometryQuery, Node, OpenOptions, Values, format_of_extension,
};
use serde_json::{Map, Value, json};

use crate::State;
use crate::answer::{Answer, Asked, Failure, answer, entity_tag, matches_tag, not_modified, put};
use crate::grove::row_range;
use crate::parameters::Parameters;
use crate::root::inside;
use crate::stores::Opened;
use crate::work::Job;

/// The maximum number of members in a response.
const MAX_MEMBERS: u64 = 1000;
/// The maximum number of folder entries that are examined for a response.
const MAX_FILES: usize = 2000;
/// The maximum number of table rows in a response.
const MAX_ROWS: u64 = 2000;
/// The maximum number of vertices in a response.
const MAX_VERTICES: u64 = 200_000;

/// Describes what is served.
pub(crate) async fn about(Shared(state): Shared<Arc<State>>) -> Response {
    Answer::json(&json!({
        "name": "hyperslab", "version": env!("CARGO_PKG_VERSION"), "store": state.root.only_store(),
    }))
    .plain()
}

/// Lists the stores and folders directly in a folder, from the entry `offset` of its names in order. `next` is the offset of the
/// following response, if there are more entries.
pub(crate) async fn files(Shared(state): Shared<Arc<State>>, uri: Uri, headers: HeaderMap) -> Response {
    let parameters = Parameters::of(&uri);
    let shared = Arc::clone(&state);
    let offset = match parameters.number("offset", 0, u64::MAX) {
        Ok(offset) => usize::try_from(offset).unwrap_or(usize::MAX),
        Err(failure) => return failure.into_response(),
    };
    let listed =
        state.work.run(move |_| list(&shared, parameters.get("folder").unwrap_or_default(), offset)).await;
    match listed {
        Ok(listed) => {
            let tag = entity_tag(&listed.to_string());
            if matches_tag(&headers, &tag) {
                return not_modified(&tag);
            }
            let mut response = Answer::json(&listed).plain();
            put(response.headers_mut(), axum::http::header::ETAG, &tag);
            response
        }
        Err(failure) => failure.hidden(&state.root).into_response(),
    }
}

fn list(state: &State, name: &str, offset: usize) -> Result<Value, Failure> {
    if let Some(only) = state.root.only_store() {
        return Ok(json!({"folder": "", "entries": [{"name": only, "kind": "store"}]}));
    }
    let (Some(root), clean) = (state.root.folder(), name.trim_matches('/')) else {
        return Err(Failure::no_file());
    };
    let folder = if clean.is_empty() { root.to_owned() } else { state.root.resolve(clean)?.path };
    let failed = |source: std::io::Error| match source.kind() {
        std::io::ErrorKind::NotADirectory => Failure::no_file(),
        _ => hyperslab::Error::io(folder.display().to_string(), source).into(),
    };
    let names = std::fs::read_dir(&folder).map_err(failed)?.flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
    names.sort();
    let total = names.len();
    let mut entries = Vec::new();
    for name in names.into_iter().skip(offset).take(MAX_FILES) {
        let relative = if clean.is_empty() { name.clone() } else { format!("{clean}/{name}") };
        // Hide symbolic links that lead out of the folder.
        let Ok(path) = inside(root, &relative) else { continue };
        if let Some((kind, format)) = kind_of(&path, root) {
            let format = format.map(Format::name);
            entries.push(json!({"name": name, "kind": kind, "format": format}));
        }
    }
    let end = offset.saturating_add(MAX_FILES);
    Ok(json!({"folder": clean, "entries": entries, "next": (end < total).then_some(end)}))
}

/// Returns whether a path is a store or a folder; `None` hides it. Recognises files by their content or, if that is damaged, by
/// their extension: several formats share one.
fn kind_of(path: &Path, root: &Path) -> Option<(&'static str, Option<Format>)> {
    let options = OpenOptions::default().with_mapped(false).with_within(root.to_owned());
    let format = hyperslab::detect(path, &options).ok();
    if path.is_dir() {
        return Some((if format.is_some() { "store" } else { "folder" }, format));
    }
    let format = format.or_else(|| format_of_extension(path).map(|(format, _)| format));
    format.map(|format| ("store", Some(format)))
}

async fn respond(
    state: Arc<State>,
    endpoint: &str,
    uri: &Uri,
    headers: HeaderMap,
    produce: impl FnOnce(&Parameters, &Opened, &Job) -> Result<Answer, Failure> + Send + 'static,
) -> Response {
    let parameters = Parameters::of(uri);
    let asked = Asked { file: parameters.file(), key: parameters.key(endpoint), headers };
    answer(state, asked, move |opened, job| produce(&parameters, opened, job)).await
}

/// A node as in `tet info --json`, without the parts that require visiting its chunks.
pub(crate) async fn node(Shared(state): Shared<Arc<State>>, uri: Uri, headers: HeaderMap) -> Response {
    respond(state, "node", &uri, headers, |parameters, opened, _| {
        let path = normal_path(&parameters.path());
        let node = opened.store.node(&path);
        if node.as_ref().is_err_and(hyperslab::Error::is_not_found) {
            return Err(Failure::no_path(&path, &opened.name));
        }
        let decoded = match &node {
            Ok(Node::Array(array)) => decoded_type(&opened.store.reader(Arc::clone(array))),
            _ => None,
        };
        let mut told = CatalogNode { path, node, usage: None, alias: None }.to_json();
        told["format"] = opened.store.format().into();
        if let Some(dtype) = decoded {
            told["decoded"] = dtype.to_string().into();
        }
        Ok(Answer::json(&told))
    })
    .await
}

/// The type of an array's decoded values; `None` if no conventions apply to them.
fn decoded_type(array: &ArrayReader) -> Option<DType> {
    let decoded = array.decoded().ok().filter(ArrayReader::is_decoded)?;
    Some(decoded.schema().dtype.clone())
}

/// Values of an array as in `/data`, decoded by the file's conventions.
pub(crate) async fn data(Shared(state): Shared<Arc<State>>, uri: Uri, headers: HeaderMap) -> Response {
    respond(state, "decoded", &uri, headers, crate::grove::decoded).await
}

/// The members of a group, selected by `offset` and `limit`. Dimensions without a variable are left out, so that there may be fewer
/// than `limit`; `next` is the offset of the following response.
pub(crate) async fn children(Shared(state): Shared<Arc<State>>, uri: Uri, headers: HeaderMap) -> Response {
    respond(state, "children", &uri, headers, |parameters, opened, job| {
        let path = normal_path(&parameters.path());
        let offset = parameters.number("offset", 0, u64::MAX)?;
        let limit = parameters.number("limit", 200, MAX_MEMBERS)?;
        let names = opened.store.children(&path)?;
        let mut members = Vec::new();
        for name in names.iter().skip(usize::try_from(offset).unwrap_or(usize::MAX)).take(limit as usize) {
            job.progress.check_cancelled()?;
            members.extend(member(opened, &child_path(&path, name), name));
        }
        let total = names.len() as u64;
        let next = offset.saturating_add(limit).min(total);
        Ok(Answer::json(&json!({"total": total, "offset": offset, "next": next, "members": members})))
    })
    .await
}

fn member(opened: &Opened, path: &str, name: &str) -> Option<Value> {
    Some(match opened.store.node(path) {
        Ok(Node::Array(array)) if array.schema().is_dimension => return None,
        Ok(Node::Array(array)) => {
            let schema = array.schema();
            json!({"name": name, "kind": "array", "shape": schema.shape(), "dtype": schema.dtype.to_string()})
        }
        Ok(node) => json!({"name": name, "kind": node.kind().to_string()}),
        Err(error) => json!({"name": name, "kind": "damaged", "error": error.to_string()}),
    })
}

/// The rows of a table, selected by `offset` and `limit`; `column` (repeatable) selects columns.
pub(crate) async fn table(Shared(state): Shared<Arc<State>>, uri: Uri, headers: HeaderMap) -> Response {
    respond(state, "table", &uri, headers, |parameters, opened, job| {
        let table = opened.store.table(&parameters.path())?;
        let offset = parameters.number("offset", 0, u64::MAX)?;
        let limit = parameters.number("limit", 100, MAX_ROWS)?;
        let names: Vec<String> = parameters.all("column").map(str::to_owned).collect();
        let chosen = (!names.is_empty()).then_some(names);
        let _held = job.reserve(limit * table.schema().columns.len() as u64 * 64)?;
        let columns: Vec<_> = match &chosen {
            None => table.schema().columns.iter().collect(),
            Some(names) => names
                .iter()
                .map(|name| table.schema().columns.iter().find(|column| column.name == *name))
                .collect::<Option<_>>()
                .ok_or_else(|| Failure::query("there is no such column"))?,
        };
        let batch = row_range(&table, offset..offset.saturating_add(limit), chosen.clone(), job)?;
        let mut told = Map::new();
        for (column, held) in columns.iter().zip(&batch.columns) {
            let cells = (0..batch.rows).map(|row| element_to_json(&column.dtype, held, row)).collect();
            told.insert(column.name.clone(), Value::Array(cells));
        }
        Ok(Answer::json(&json!({
            "total": table.inner().rows()?, "offset": offset, "rows": batch.rows, "columns": told,
        })))
    })
    .await
}

/// The part of a geometry in a box (`box=x0,y0,z0,x1,y1,z1`) at a level. Without a level, the finest that is not too
/// large.
pub(crate) async fn geometry(Shared(state): Shared<Arc<State>>, uri: Uri, headers: HeaderMap) -> Response {
    respond(state, "geometry", &uri, headers, |parameters, opened, job| {
        let geometry = opened.store.geometry(&parameters.path())?;
        let levels = geometry.inner().levels()?;
        let limit = parameters.number("limit", MAX_VERTICES, MAX_VERTICES)?;
        let region = parameters.get("box").map(parse_box).transpose()?;
        let level = match parameters.get("level") {
            Some(_) => usize::try_from(parameters.number("level", 0, u64::MAX)?).ok(),
            None => {
                let fits = levels.iter().position(|level| level.vertices <= limit);
                Some(fits.unwrap_or(levels.len().saturating_sub(1)))
            }
        };
        let number = level.unwrap_or(0).min(levels.len().saturating_sub(1));
        let vertices = levels.get(number).map_or(0, |level| level.vertices);
        // A box selects only part of the level, but its size is unknown before reading.
        let held = job.reserve(vertices.min(limit * 16).saturating_mul(128))?;
        let query = GeometryQuery {
            level: (levels.len() > 1).then_some(number),
            region,
            attributes: Some(Vec::new()),
            ..GeometryQuery::default()
        };
        let found = geometry.query(&query)?;
        if found.vertices() as u64 > limit {
            return Err(Failure::query(format!(
                "{} vertices, but the limit is {limit}; choose a smaller box or a coarser level",
                found.vertices()
            )));
        }
        let told = json!({
            "level": number, "axes": found.axes, "kinds": found.kinds, "bounds": geometry.schema().bounds,
            "levels": levels.iter().map(|level| json!({"vertices": level.vertices, "links": level.links})).collect::<Vec<_>>(),
            "vertices": flat(&found.data.vertices), "links": found.data.links.as_ref().map(|links| json!({
                "each": links.shape.get(1), "rows": flat(links),
            })),
            "objects": found.data.objects.len(),
        });
        Ok(Answer::json(&told).held(held))
    })
    .await
}

/// Flattens numbers into a single list.
fn flat(values: &Values) -> Value {
    (0..values.len()).map(|index| element_to_json(&values.dtype, &values.elements, index)).collect()
}
