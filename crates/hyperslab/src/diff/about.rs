//! Compares the descriptions of two arrays: dimensions, coordinates, fill values, maximum shapes, names of values.

use std::sync::Arc;

use hyperslab_core::{
    ArraySchema, Attribute, Attributes, DType, EnumType, Fill, Labels, StructType, element_to_json,
};
use serde_json::Value;

use super::{DiffReport, Shared};
use crate::hash::canonical::type_name;
use crate::written::fill_element;

/// Compares the descriptions of two arrays, as far as both formats can express them. `roots` are the compared paths, below which
/// coordinates have the same names.
pub(super) fn arrays(
    report: &mut DiffReport,
    path: &str,
    [a, b]: [&ArraySchema; 2],
    shared: Shared,
    roots: [&str; 2],
) {
    let same_name = |(one, other): (&Option<String>, &Option<String>)| {
        one == other || !shared.format && (one.is_none() || other.is_none())
    };
    if !a.dimensions.iter().zip(&b.dimensions).all(same_name) {
        let names = |schema: &ArraySchema| -> String {
            let names: Vec<&str> =
                schema.dimensions.iter().map(|name| name.as_deref().unwrap_or("?")).collect();
            format!("({})", names.join(", "))
        };
        report.add(path, "dimensions", format!("{} ≠ {}", names(a), names(b)));
    }
    for axis in 0..a.labels.len().min(b.labels.len()) {
        let [one, other] =
            [(a, roots[0]), (b, roots[1])].map(|(schema, root)| labels(&schema.labels[axis], root));
        let stated = one.is_some() && other.is_some();
        if one != other && (shared.format || stated && comparable(&a.labels[axis], &b.labels[axis])) {
            let [one, other] = [one, other].map(|labels| labels.unwrap_or_else(|| "none".to_owned()));
            report.add(path, "coordinates", format!("axis {axis}: {one} ≠ {other}"));
        }
    }
    if shared.growth && a.shape() == b.shape() {
        let [one, other] = [a, b]
            .map(|schema| (0..schema.shape().len()).map(|axis| limit(schema, axis)).collect::<Vec<_>>());
        if one != other {
            report.add(path, "growth", format!("({}) ≠ ({})", one.join(", "), other.join(", ")));
        }
    }
    if a.stored.no_space != b.stored.no_space && shared.format {
        let word = |schema: &ArraySchema| if schema.stored.no_space { "no dataspace" } else { "a dataspace" };
        report.add(path, "null", format!("{} ≠ {}", word(a), word(b)));
    }
    let stated = a.stored.states_fill() && b.stored.states_fill();
    if shared.fill && stated && same_type(&a.dtype, &b.dtype, shared) {
        let [one, other] = [a, b].map(fill);
        if one != other {
            report.add(path, "fill", format!("{one} ≠ {other}"));
        }
    }
    if let Some(detail) = enumerations(&a.dtype, &b.dtype) {
        report.add(path, "enumeration", detail);
    }
}

/// Attributes without a value, which JSON does not distinguish from empty ones.
pub(super) fn null_attributes(report: &mut DiffReport, path: &str, a: &Attributes, b: &Attributes) {
    let is_null =
        |attributes: &Attributes, name: &str| attributes.stored(name).is_some_and(|stored| stored.no_space);
    for (name, _) in a.iter().filter(|(name, _)| b.get(name).is_some_and(is_readable)) {
        match (is_null(a, name), is_null(b, name)) {
            (true, false) => {
                report.add(path, "null", format!("attribute {name}: no dataspace ≠ a dataspace"))
            }
            (false, true) => {
                report.add(path, "null", format!("attribute {name}: a dataspace ≠ no dataspace"))
            }
            _ => {}
        }
    }
}

const fn is_readable(attribute: &Attribute) -> bool {
    !matches!(attribute, Attribute::Unreadable(_))
}

/// The maximum extent of an axis, as text.
fn limit(schema: &ArraySchema, axis: usize) -> String {
    match schema.max_shape.get(axis).copied().flatten() {
        None => "unlimited".to_owned(),
        Some(limit) if limit == schema.shape()[axis] => "fixed".to_owned(),
        Some(limit) => format!("up to {limit}"),
    }
}

/// The fill value, as text.
fn fill(schema: &ArraySchema) -> Value {
    match schema.fill {
        Fill::Undefined => Value::from("none"),
        _ => element_to_json(&schema.dtype, &fill_element(schema), 0),
    }
}

/// The labels of an axis, as text. Nodes are named by their paths below the root.
fn labels(labels: &Labels, root: &str) -> Option<String> {
    match labels {
        Labels::None => None,
        Labels::Node(path) => Some(match path.strip_prefix(root.trim_end_matches('/')) {
            Some(below) if below.starts_with('/') => below.to_owned(),
            _ => path.clone(),
        }),
        Labels::Texts(texts) => Some(format!("{:?}", &texts[..])),
        Labels::Domain { first, dtype } => Some(format!("{dtype} from {first}")),
    }
}

/// Returns true if both labels are of one kind. Formats differ in the kinds that they have.
const fn comparable(a: &Labels, b: &Labels) -> bool {
    matches!((a, b), (Labels::Node(_), Labels::Node(_)) | (Labels::Texts(_), Labels::Texts(_)))
}

/// Returns true if two types are equal except for the names of values. Between formats, one type may also have no names at all.
pub(super) fn same_type(a: &DType, b: &DType, shared: Shared) -> bool {
    let spelled = |dtype: &DType, keep: bool| type_name(&without_names(dtype, keep));
    spelled(a, true) == spelled(b, true) || !shared.format && spelled(a, false) == spelled(b, false)
}

/// The type without the names of values. With `keep`, an enumeration stays one.
fn without_names(dtype: &DType, keep: bool) -> DType {
    match dtype {
        DType::Enum(named) if keep => DType::Enum(Arc::new(EnumType::new(named.base.clone(), Vec::new()))),
        DType::Enum(named) => named.base.clone(),
        DType::Struct(fields) => {
            let mut fields: StructType = (**fields).clone();
            fields.members.iter_mut().for_each(|member| member.dtype = without_names(&member.dtype, keep));
            DType::Struct(Arc::new(fields))
        }
        DType::List(base) => DType::List(Arc::new(without_names(base, keep))),
        DType::Array(base, shape) => DType::Array(Arc::new(without_names(base, keep)), shape.clone()),
        plain => plain.clone(),
    }
}

/// How the names of values differ, if both types have names.
fn enumerations(a: &DType, b: &DType) -> Option<String> {
    match (a, b) {
        (DType::Enum(one), DType::Enum(other)) => names(one, other),
        (DType::Struct(one), DType::Struct(other)) => {
            one.members.iter().zip(&other.members).find_map(|(one, other)| {
                Some(format!("{}: {}", one.name, enumerations(&one.dtype, &other.dtype)?))
            })
        }
        (DType::List(one), DType::List(other)) => enumerations(one, other),
        (DType::Array(one, _), DType::Array(other, _)) => enumerations(one, other),
        _ => None,
    }
}

fn names(a: &EnumType, b: &EnumType) -> Option<String> {
    let differs = |one: &EnumType, other: &EnumType| {
        one.members.iter().find(|member| !other.members.contains(member)).cloned()
    };
    let describe = |member: &Option<(String, i128)>| {
        member.as_ref().map_or_else(|| "nothing".to_owned(), |(name, value)| format!("{name} = {value}"))
    };
    match (differs(a, b), differs(b, a)) {
        (None, None) => None,
        (one, other) => Some(format!("{} ≠ {}", describe(&one), describe(&other))),
    }
}
