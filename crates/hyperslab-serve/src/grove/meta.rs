//! Responses of `/meta`.

use hyperslab::driver::{StoredFilter, child_path};
use hyperslab::{Attribute, Attributes, Progress};
use serde_json::{Value, json};

use super::data::shown_dtype;
use super::entity::{Entity, GeometryPart, Links, ROOT_MEMBER, members, parts_of};
use super::{json as values, types};
use crate::answer::Failure;
use crate::stores::Opened;

/// Describes an entity and, for a group, its direct members.
pub(crate) fn of(
    opened: &Opened,
    path: &str,
    entity: &Entity,
    links: Links,
    progress: &Progress,
) -> Result<Value, Failure> {
    let mut document = alone(path, entity)?;
    let mut children = Vec::new();
    match entity {
        Entity::Group(_) if opened.has_leaf_root() => {
            let below = child_path("/", ROOT_MEMBER);
            children.push(alone(&below, &Entity::find(opened, &below, links)?)?);
        }
        Entity::Group(_) | Entity::Geometry(_) => {
            let normal = hyperslab::driver::normal_path(path);
            for (name, link) in members(opened, &normal)? {
                progress.check_cancelled()?;
                let below = child_path(&normal, &name);
                let member = Entity::of_link(opened, &below, link.as_ref(), links);
                children.push(match member {
                    Ok(Some(member)) => alone(&below, &member)?,
                    // An unreadable member must not make the others unavailable.
                    Ok(None) => json!({"kind": "other", "name": name}),
                    Err(failure) if links == Links::All && failure.status() == 404 => return Err(failure),
                    Err(_) => json!({"kind": "other", "name": name}),
                });
            }
            if let Entity::Geometry(geometry) = entity {
                for name in parts_of(opened, &normal, geometry) {
                    let part = GeometryPart { geometry: geometry.clone(), name };
                    children.push(alone(&part.name.clone(), &Entity::Part(part))?);
                }
            }
        }
        _ => return Ok(document),
    }
    document["children"] = children.into();
    Ok(document)
}

/// Describes an entity without its members.
fn alone(path: &str, entity: &Entity) -> Result<Value, Failure> {
    let name = path.rsplit('/').next().unwrap_or_default();
    Ok(match entity {
        Entity::Group(attributes) => {
            json!({"attributes": attributes_of(attributes), "kind": "group", "name": name})
        }
        Entity::Geometry(geometry) => {
            json!({"attributes": attributes_of(&geometry.schema().attributes), "kind": "group", "name": name})
        }
        Entity::Array(array) => {
            let schema = array.schema();
            let shape = if schema.stored.no_space { Value::Null } else { json!(schema.shape()) };
            let chunks = if schema.chunked && schema.grid.rank() > 0 {
                json!(schema.grid.chunk_shape())
            } else {
                Value::Null
            };
            let dtype = match (&schema.stored.dtype, shown_dtype(array)) {
                (_, Some(shown)) => types::of_dtype(&shown),
                (Some(stored), None) => types::of_stored(stored),
                (None, None) => types::of_dtype(&schema.dtype),
            };
            json!({
                "attributes": attributes_of(&schema.attributes), "chunks": chunks, "filters": filters_of(array),
                "kind": "dataset", "name": name, "shape": shape, "type": dtype,
            })
        }
        Entity::Table(table) => {
            let rows = table.inner().rows()?;
            json!({
                "attributes": attributes_of(&table.schema().attributes), "chunks": null, "filters": null,
                "kind": "dataset", "name": name, "shape": [rows],
                "type": types::of_columns(&table.schema().columns),
            })
        }
        Entity::Part(part) => {
            let corner = part.geometry.schema().bounds.as_ref().map(|[low, _]| [low.clone(), low.clone()]);
            let sample = part.read(corner)?;
            let mut shape = part.shape();
            shape.truncate(1);
            shape.extend(sample.shape.iter().skip(1));
            json!({
                "attributes": [], "chunks": null, "filters": null, "kind": "dataset", "name": name,
                "shape": shape, "type": types::of_dtype(&sample.dtype),
            })
        }
        Entity::Type(dtype, attributes, stored) => {
            let dtype = match stored {
                Some(stored) => types::of_stored(&stored.dtype),
                None => types::of_dtype(dtype),
            };
            json!({"attributes": attributes_of(attributes), "kind": "datatype", "name": name, "type": dtype})
        }
        Entity::SoftLink(target) => json!({"kind": "soft_link", "name": name, "target_path": target}),
        Entity::ExternalLink(file, target) => {
            json!({"kind": "external_link", "name": name, "target_file": file, "target_path": target})
        }
    })
}

/// Sorted by name, as in h5grove.
fn attributes_of(attributes: &Attributes) -> Value {
    let mut listed: Vec<_> = attributes.iter().collect();
    listed.sort_by_key(|(name, _)| *name);
    let one = |(name, attribute): (&str, &Attribute)| {
        let stored = attributes.stored(name);
        let (shape, dtype) = match attribute {
            Attribute::Values(own) => (json!(own.shape), types::of_dtype(&own.dtype)),
            other => values::type_of_document(other),
        };
        let dtype = stored.map_or(dtype, |stored| types::of_stored(&stored.dtype));
        let shape = if stored.is_some_and(|stored| stored.no_space) { Value::Null } else { shape };
        json!({"name": name, "shape": shape, "type": dtype})
    };
    listed.into_iter().map(one).collect()
}

fn filters_of(array: &hyperslab::ArrayReader) -> Value {
    let schema = array.schema();
    let stored = &schema.stored.filters;
    if !stored.is_empty() {
        let one = |filter: &StoredFilter| json!({"id": filter.id, "name": if filter.name.is_empty() { own_name(filter.id) } else { &filter.name }});
        return stored.iter().map(one).collect();
    }
    if schema.filters.is_empty() {
        return Value::Null;
    }
    // Filter ids are specific to HDF5. Other formats only have names.
    schema.filters.iter().map(|filter| json!({"id": 0, "name": filter.name})).collect()
}

/// libhdf5's name for a built-in filter.
fn own_name(id: u32) -> &'static str {
    match id {
        1 => "deflate",
        2 => "shuffle",
        3 => "fletcher32",
        4 => "szip",
        5 => "nbit",
        6 => "scaleoffset",
        _ => "",
    }
}
