//! Element types as text, for the attribute with the original type.
//!
//! A simple type is written as its name. Others are JSON: `{"enum": "int8", "members": [["LAND", 1]]}`, `{"struct": [["a", "int32"]]}`,
//! `{"array": "float32", "shape": [3]}`, `{"opaque": 8, "tag": "…"}`.

use std::sync::Arc;

use hyperslab_core::{DType, EnumType, OpaqueType, StructType, TimeUnit};
use serde_json::{Value, json};

/// The maximum nesting depth of types.
const MAX_DEPTH: usize = 16;
/// The maximum element size in bytes, because the size in a file is untrusted.
const MAX_SIZE: u64 = 1 << 30;

const PLAIN: [DType; 17] = [
    DType::Bool,
    DType::Int8,
    DType::Int16,
    DType::Int32,
    DType::Int64,
    DType::UInt8,
    DType::UInt16,
    DType::UInt32,
    DType::UInt64,
    DType::Float16,
    DType::Float32,
    DType::Float64,
    DType::Float128,
    DType::Complex64,
    DType::Complex128,
    DType::Bytes,
    DType::String,
];

/// A type as text; `None` for lists and references, which have no form.
pub(crate) fn type_text(dtype: &DType) -> Option<String> {
    Some(match to_json(dtype)? {
        Value::String(name) => name,
        other => other.to_string(),
    })
}

/// Parses the text of a type.
pub(crate) fn parse_type(text: &str) -> Option<DType> {
    let value = match text.trim_start().starts_with('{') {
        true => serde_json::from_str(text).ok()?,
        false => Value::from(text),
    };
    from_json(&value, 0)
}

fn to_json(dtype: &DType) -> Option<Value> {
    Some(match dtype {
        DType::Enum(named) => {
            let members: Option<Vec<Value>> = named
                .members
                .iter()
                .map(|(name, value)| {
                    let value = i64::try_from(*value)
                        .map(Value::from)
                        .or_else(|_| u64::try_from(*value).map(Value::from));
                    Some(json!([name, value.ok()?]))
                })
                .collect();
            let mut enumeration = json!({"enum": to_json(&named.base)?, "members": members?});
            if named.ordered {
                enumeration["ordered"] = true.into();
            }
            enumeration
        }
        DType::Struct(fields) => {
            let members: Option<Vec<Value>> = fields
                .members
                .iter()
                .map(|member| Some(json!([member.name, to_json(&member.dtype)?])))
                .collect();
            json!({"struct": members?})
        }
        DType::Array(base, shape) => json!({"array": to_json(base)?, "shape": shape}),
        DType::Opaque(opaque) => json!({"opaque": opaque.size, "tag": opaque.tag}),
        DType::List(_) | DType::Reference => return None,
        plain => Value::from(plain.to_string()),
    })
}

fn from_json(value: &Value, depth: usize) -> Option<DType> {
    if depth > MAX_DEPTH {
        return None;
    }
    let Some(object) = value.as_object() else { return from_name(value.as_str()?) };
    let below = |value: &Value| from_json(value, depth + 1);
    let size = |value: &Value| value.as_u64().filter(|size| *size <= MAX_SIZE).map(|size| size as usize);
    if let Some(base) = object.get("enum") {
        let base = below(base).filter(DType::is_integer)?;
        let members = object.get("members")?.as_array()?.iter().map(|member| {
            let value = member.get(1)?;
            let value = value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from))?;
            Some((member.get(0)?.as_str()?.to_owned(), value))
        });
        let ordered = object.get("ordered").is_some_and(|ordered| *ordered == Value::Bool(true));
        return Some(EnumType::new(base, members.collect::<Option<_>>()?).with_ordered(ordered).into());
    }
    if let Some(members) = object.get("struct") {
        let members = members
            .as_array()?
            .iter()
            .map(|member| Some((member.get(0)?.as_str()?.to_owned(), below(member.get(1)?)?)));
        return Some(StructType::packed(members.collect::<Option<Vec<_>>>()?).into());
    }
    if let Some(base) = object.get("array") {
        let shape: Vec<usize> = object.get("shape")?.as_array()?.iter().map(size).collect::<Option<_>>()?;
        shape
            .iter()
            .try_fold(1_u64, |cells, extent| cells.checked_mul(*extent as u64))
            .filter(|cells| *cells <= MAX_SIZE)?;
        return Some(DType::Array(Arc::new(below(base)?), shape));
    }
    let tag = object.get("tag")?.as_str()?.to_owned();
    Some(DType::Opaque(Arc::new(OpaqueType { size: size(object.get("opaque")?)?, tag })))
}

fn from_name(name: &str) -> Option<DType> {
    if let Some(plain) = PLAIN.into_iter().find(|dtype| dtype.to_string() == name) {
        return Some(plain);
    }
    let (kind, inside) = name.strip_suffix(']')?.split_once('[')?;
    let size = || inside.parse().ok().filter(|size| *size as u64 <= MAX_SIZE / 4);
    match kind {
        "datetime64" => TimeUnit::from_code(inside).map(DType::DateTime),
        "timedelta64" => TimeUnit::from_code(inside).map(DType::Duration),
        "bytes" => size().map(DType::FixedBytes),
        "string" => size().map(DType::FixedText),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_survive_a_round_trip_through_text() {
        let point = StructType::packed([
            ("a", DType::Complex128),
            ("b", DType::Array(Arc::new(DType::Int16), vec![2, 3])),
            (
                "c",
                EnumType::new(DType::UInt64, vec![("HIGH".to_owned(), u64::MAX.into()), ("".to_owned(), 0)])
                    .with_ordered(true)
                    .into(),
            ),
            ("d", DType::String),
        ]);
        let opaque = DType::Opaque(Arc::new(OpaqueType { size: 7, tag: "x\"y".to_owned() }));
        let others = [
            DType::DateTime(TimeUnit::Nanosecond),
            DType::Duration(TimeUnit::Year),
            DType::FixedBytes(12),
            DType::FixedText(0),
            DType::from(point),
            opaque,
        ];
        for dtype in PLAIN.into_iter().chain(others) {
            let text = type_text(&dtype).unwrap();
            assert_eq!(parse_type(&text).as_ref(), Some(&dtype), "{text}");
        }
        assert_eq!(type_text(&DType::List(Arc::new(DType::Int8))), None);
    }

    #[test]
    fn other_texts_name_no_type() {
        let deep = format!("{}\"int8\"{}", "{\"array\": ".repeat(40), ", \"shape\": [1]}".repeat(40));
        for text in [
            "",
            "int",
            "bytes[]",
            "bytes[-1]",
            "bytes[99999999999]",
            "datetime64[x]",
            "{}",
            "{\"enum\": \"float32\", \"members\": []}",
            "{\"struct\": 3}",
            "{\"array\": \"int8\", \"shape\": [4294967296, 4294967296]}",
            "list<int8>",
            &deep,
        ] {
            assert_eq!(parse_type(text), None, "{text}");
        }
    }
}
