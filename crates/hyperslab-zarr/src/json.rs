//! Metadata documents: JSON as real Zarr writers produce it, with errors that name the document.

use std::sync::Arc;

use hyperslab_core::{Corrupt, Error, Result};
use serde_json::{Map, Value};

/// The location of a document, for messages: the store's name and the document's key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Doc<'a> {
    pub(crate) store: &'a str,
    pub(crate) key: &'a str,
}

impl Doc<'_> {
    pub(crate) fn corrupt(&self, problem: impl Into<String>) -> Error {
        Error::Corrupt(Box::new(Corrupt {
            store: Arc::from(self.store),
            structure: self.key.to_owned().into(),
            offset: None,
            problem: problem.into(),
        }))
    }

    pub(crate) fn unsupported(&self, feature: impl Into<String>) -> Error {
        Error::unsupported(format!("{}/{}", self.store, self.key), feature)
    }

    /// The bytes of a document as JSON.
    ///
    /// Python writers put bare `NaN` and `Infinity` into attributes, which JSON does not have. If strict parsing fails, they
    /// become marked strings, which [`non_finite`] recognises.
    pub(crate) fn parse(&self, bytes: &[u8]) -> Result<Value> {
        match serde_json::from_slice(bytes) {
            Ok(value) => Ok(value),
            Err(strict) => {
                serde_json::from_slice(&mark_non_finite(bytes)).map_err(|_| self.corrupt(strict.to_string()))
            }
        }
    }

    /// A required field.
    pub(crate) fn field<'v>(&self, object: &'v Map<String, Value>, name: &str) -> Result<&'v Value> {
        object.get(name).ok_or_else(|| self.corrupt(format!("no {name:?}")))
    }

    /// An object.
    pub(crate) fn object<'v>(&self, value: &'v Value, what: &str) -> Result<&'v Map<String, Value>> {
        value.as_object().ok_or_else(|| self.corrupt(format!("{what} is {value}, expected an object")))
    }

    /// A list.
    pub(crate) fn list<'v>(&self, value: &'v Value, what: &str) -> Result<&'v Vec<Value>> {
        value.as_array().ok_or_else(|| self.corrupt(format!("{what} is {value}, expected a list")))
    }

    /// A text.
    pub(crate) fn text<'v>(&self, value: &'v Value, what: &str) -> Result<&'v str> {
        value.as_str().ok_or_else(|| self.corrupt(format!("{what} is {value}, expected a string")))
    }

    /// A list of sizes.
    pub(crate) fn extents(&self, value: &Value, what: &str) -> Result<Vec<u64>> {
        self.list(value, what)?
            .iter()
            .map(|extent| {
                extent.as_u64().ok_or_else(|| self.corrupt(format!("{what} is {value}, expected sizes")))
            })
            .collect()
    }
}

/// Bare numbers that JSON does not have, as Python writes them.
const NON_FINITE: [(&str, f64); 3] =
    [("-Infinity", f64::NEG_INFINITY), ("Infinity", f64::INFINITY), ("NaN", f64::NAN)];
/// The prefix of such a number in a string; a character that documents have no reason to use.
const MARK: char = '\u{f8ff}';

/// The number that a bare `NaN` or `Infinity` represents.
pub(crate) fn non_finite(value: &Value) -> Option<f64> {
    let name = value.as_str()?.strip_prefix(MARK)?;
    NON_FINITE.iter().find(|(own, _)| *own == name).map(|(_, number)| *number)
}

/// The value that becomes a bare `NaN` or `Infinity` in [`to_text`]; `None` for a finite number.
pub(crate) fn mark(number: f64) -> Option<Value> {
    let name = match number {
        nan if nan.is_nan() => "NaN",
        f64::INFINITY => "Infinity",
        f64::NEG_INFINITY => "-Infinity",
        _ => return None,
    };
    Some(format!("{MARK}{name}").into())
}

/// The document with bare numbers as plain strings, for code that expects those.
pub(crate) fn without_marks(value: &Value) -> Value {
    match value {
        Value::String(text) => text.strip_prefix(MARK).unwrap_or(text).into(),
        Value::Array(items) => items.iter().map(without_marks).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(name, field)| (name.clone(), without_marks(field))).collect()
        }
        other => other.clone(),
    }
}

/// The bytes of a document; the counterpart of [`Doc::parse`].
pub(crate) fn to_text(key: &str, document: &Value) -> Result<Vec<u8>> {
    let mut text = serde_json::to_string_pretty(document)
        .map_err(|problem| Error::invalid(format!("{key}: {problem}")))?;
    if text.contains(MARK) {
        for (name, _) in NON_FINITE {
            text = text.replace(&format!("\"{MARK}{name}\""), name);
        }
    }
    text.push('\n');
    Ok(text.into_bytes())
}

/// Turns bare `NaN`, `Infinity` and `-Infinity` into marked strings.
fn mark_non_finite(bytes: &[u8]) -> Vec<u8> {
    let mut marked = Vec::with_capacity(bytes.len() + 16);
    let (mut at, mut inside) = (0, false);
    while at < bytes.len() {
        let rest = &bytes[at..];
        let word = NON_FINITE.iter().find(|(word, _)| rest.starts_with(word.as_bytes()));
        if let (false, Some((word, _))) = (inside, word) {
            marked.extend_from_slice(format!("\"{MARK}{word}\"").as_bytes());
            at += word.len();
            continue;
        }
        marked.push(bytes[at]);
        match bytes[at] {
            b'\\' if inside => {
                marked.extend(bytes.get(at + 1));
                at += 1;
            }
            b'"' => inside = !inside,
            _ => {}
        }
        at += 1;
    }
    marked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_non_finite_numbers_round_trip() -> Result<()> {
        let doc = Doc { store: "x.zarr", key: ".zattrs" };
        let value = doc.parse(br#"{"a": NaN, "b": [-Infinity, Infinity], "c": "a NaN \" NaN"}"#)?;
        assert!(non_finite(&value["a"]).is_some_and(f64::is_nan));
        assert_eq!(non_finite(&value["b"][0]), Some(f64::NEG_INFINITY));
        assert_eq!(non_finite(&value["c"]), None);
        assert_eq!(
            without_marks(&value),
            serde_json::json!({"a": "NaN", "b": ["-Infinity", "Infinity"], "c": "a NaN \" NaN"})
        );
        assert_eq!(mark(f64::NEG_INFINITY), Some(value["b"][0].clone()));
        assert_eq!(mark(1.0), None);
        let text = String::from_utf8(to_text("k", &value)?).unwrap();
        assert!(text.contains("\"a\": NaN,"), "{text}");
        assert_eq!(doc.parse(text.as_bytes())?, value);
        let error = doc.parse(b"{\"a\": nope}").unwrap_err();
        assert!(error.to_string().starts_with("x.zarr: .zattrs: "), "{error}");
        Ok(())
    }
}
