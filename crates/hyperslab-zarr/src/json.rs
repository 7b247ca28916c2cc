//! Metadata documents: JSON as Zarr writers really write it, and errors that name the document.

use std::sync::Arc;

use hyperslab_core::{Corrupt, Error, Result};
use serde_json::{Map, Value};

/// Where a document stands, for messages: the store's name and the document's key.
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
    /// Python's writers put bare `NaN` and `Infinity` into attributes, which JSON does not know: where strict
    /// parsing fails, they are read as the strings of the same name.
    pub(crate) fn parse(&self, bytes: &[u8]) -> Result<Value> {
        match serde_json::from_slice(bytes) {
            Ok(value) => Ok(value),
            Err(strict) => {
                serde_json::from_slice(&quote_non_finite(bytes)).map_err(|_| self.corrupt(strict.to_string()))
            }
        }
    }

    /// A field that must be there.
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

/// Puts quotes around `NaN`, `Infinity` and `-Infinity` outside strings.
fn quote_non_finite(bytes: &[u8]) -> Vec<u8> {
    let mut quoted = Vec::with_capacity(bytes.len() + 16);
    let (mut at, mut inside) = (0, false);
    while at < bytes.len() {
        let rest = &bytes[at..];
        let word = ["-Infinity", "Infinity", "NaN"].iter().find(|word| rest.starts_with(word.as_bytes()));
        if let (false, Some(word)) = (inside, word) {
            quoted.push(b'"');
            quoted.extend_from_slice(word.as_bytes());
            quoted.push(b'"');
            at += word.len();
            continue;
        }
        quoted.push(bytes[at]);
        match bytes[at] {
            b'\\' if inside => {
                quoted.extend(bytes.get(at + 1));
                at += 1;
            }
            b'"' => inside = !inside,
            _ => {}
        }
        at += 1;
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_non_finite_numbers_are_read_as_text() -> Result<()> {
        let doc = Doc { store: "x.zarr", key: ".zattrs" };
        let value = doc.parse(br#"{"a": NaN, "b": [-Infinity, Infinity], "c": "a NaN \" NaN"}"#)?;
        assert_eq!(
            value,
            serde_json::json!({"a": "NaN", "b": ["-Infinity", "Infinity"], "c": "a NaN \" NaN"})
        );
        let error = doc.parse(b"{\"a\": nope}").unwrap_err();
        assert!(error.to_string().starts_with("x.zarr: .zattrs: "), "{error}");
        Ok(())
    }
}
