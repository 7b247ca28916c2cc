//! The API of h5grove 4, for every format.
//!
//! Response bodies equal those of h5grove for HDF5 files, with the following exceptions. The test `peers_h5grove`
//! compares them.
//!
//! | case | h5grove | Hyperslab |
//! |---|---|---|
//! | external links, external and virtual sources in other files | followed | never followed: `external_link`; 422, `message` |
//! | a store whose root is an array or a table | does not occur in HDF5 | a group with the member `data`; `/data` and `/stats` also accept `/` for it |
//! | an empty `path` | 404 | the root |
//! | `/data` and `/stats` of a group, a bad selection, too many axes | 500, text | 422, `message` |
//! | `/stats` of `float16` and `float32` | sums in the precision of the type, `null` where they overflow | sums in double precision |
//! | `/stats` of 64-bit integers | exact extremes | extremes as doubles |
//! | `/stats` of an array type | over all its elements | 422, `message` |
//! | `/stats` of complex numbers | over their real parts | 422, `message` |
//! | `float16` in JSON | the last digit rounded to even | the last digit rounded up |
//! | `float32` inside a compound in JSON | the shortest text of a single | the shortest text of a double |
//! | a link to a group that contains it | the group again | `soft_link`; 422 from `/attr` |
//! | `resolve_links=none` | links as links | valid links as their targets |
//! | the message about a wrong `resolve_links` | Python's names | the values |
//! | object and region references in JSON | `<HDF5 object reference>` | the path that they refer to; empty for null |
//! | dates, which h5py stores in opaque types, as `bin`, `npy`, `csv` | 422 | integers, in NumPy's date type, as numbers |
//! | `npy` of big-endian data | big-endian | little-endian, same values |
//! | `tiff` of `float16` | half precision | single precision |
//! | `tiff` of more than two dimensions | the shape in a description | a page per image |
//! | `tiff` of an array without elements | a page without pixels | 422, `message` |
//! | opaque and text bytes that are not UTF-8 in JSON | 500 | replacement characters |
//! | string types | `strpad` | also `strPad`, which H5Web reads |
//! | damaged and unsupported nodes of a group | the whole request fails | kind `other` |
//!
//! Tables appear as datasets of a compound type. Geometries appear as groups of `vertices`, `links` and attributes,
//! by level.

mod csv;
mod data;
mod entity;
mod json;
mod meta;
mod slabs;
mod stats;
mod tiff;
mod types;

use std::sync::Arc;

use axum::extract::State as Shared;
use axum::http::{HeaderMap, Uri};
use axum::response::{IntoResponse, Response};

use crate::State;
use crate::answer::{Answer, Asked, Failure, answer};
use crate::parameters::Parameters;
use crate::stores::Opened;
use crate::work::Job;
pub(crate) use data::{decoded, row_range};
use entity::{Entity, Links};

async fn respond(
    state: Arc<State>,
    endpoint: &str,
    uri: &Uri,
    headers: HeaderMap,
    produce: impl FnOnce(&Parameters, &Opened, &Job) -> Result<Answer, Failure> + Send + 'static,
) -> Response {
    let parameters = Parameters::of(uri);
    if parameters.get("file").is_none() && state.root.only_store().is_none() {
        return Failure::query("the parameter file is missing").into_response();
    }
    let asked = Asked { file: parameters.file(), key: parameters.key(endpoint), headers };
    answer(state, asked, move |opened, job| produce(&parameters, opened, job)).await
}

/// The description of a node, and the members of a group.
pub(crate) async fn meta(Shared(state): Shared<Arc<State>>, uri: Uri, headers: HeaderMap) -> Response {
    respond(state, "meta", &uri, headers, |parameters, opened, job| {
        let links = Links::parse(parameters.get("resolve_links"))?;
        let path = parameters.path();
        let entity = Entity::find(opened, &path, links)?;
        Ok(Answer::json(&meta::of(opened, &path, &entity, links, &job.progress)?))
    })
    .await
}

/// The values of attributes.
pub(crate) async fn attr(Shared(state): Shared<Arc<State>>, uri: Uri, headers: HeaderMap) -> Response {
    respond(state, "attr", &uri, headers, |parameters, opened, _| {
        let path = parameters.path();
        let entity = Entity::find(opened, &path, Links::OnlyValid)?;
        let attributes = entity.attributes().ok_or_else(|| Failure::query(format!("{path} is a link")))?;
        let keys: Vec<&str> = parameters.all("attr_keys").collect();
        Ok(Answer::new("application/json", json::attributes(attributes, &keys)?.into()))
    })
    .await
}

/// The values of a dataset.
pub(crate) async fn data(Shared(state): Shared<Arc<State>>, uri: Uri, headers: HeaderMap) -> Response {
    respond(state, "data", &uri, headers, data::data).await
}

/// The paths of everything below a group.
pub(crate) async fn paths(Shared(state): Shared<Arc<State>>, uri: Uri, headers: HeaderMap) -> Response {
    respond(state, "paths", &uri, headers, |parameters, opened, job| {
        Links::parse(parameters.get("resolve_links"))?;
        let found = entity::paths(opened, &parameters.path(), &job.progress)?;
        Ok(Answer::json(&serde_json::json!(found)))
    })
    .await
}

/// The minimum, maximum and mean of a dataset.
pub(crate) async fn stats(Shared(state): Shared<Arc<State>>, uri: Uri, headers: HeaderMap) -> Response {
    respond(state, "stats", &uri, headers, |parameters, opened, job| {
        let path = parameters.path();
        let entity = Entity::find_dataset(opened, &path)?;
        Ok(Answer::json(&stats::of(&path, &entity, parameters.get("selection"), job)?))
    })
    .await
}
