//! What people write beside their data.

use serde_json::{Map, Value};

use crate::Values;

/// One attribute.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Attribute {
    /// A typed value: a scalar or a small array.
    Values(Values),
    /// A document, as formats that keep their attributes in JSON have it.
    Json(Value),
    /// An attribute whose bytes are damaged or of a type that we lack: the reason.
    Unreadable(String),
}

impl Attribute {
    /// As JSON; an unreadable one is an object with the reason.
    #[must_use]
    pub fn to_json(&self) -> Value {
        match self {
            Self::Values(values) => values.to_json(),
            Self::Json(document) => document.clone(),
            Self::Unreadable(reason) => serde_json::json!({ "unreadable": reason }),
        }
    }

    /// The text, when it is one.
    #[must_use]
    pub fn as_text(&self) -> Option<String> {
        self.to_json().as_str().map(str::to_owned)
    }
}

impl From<&str> for Attribute {
    fn from(text: &str) -> Self {
        Self::Values(Values::text(text))
    }
}

impl From<Value> for Attribute {
    fn from(document: Value) -> Self {
        Self::Json(document)
    }
}

impl From<Values> for Attribute {
    fn from(values: Values) -> Self {
        Self::Values(values)
    }
}

/// Attributes by name, in the file's order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Attributes {
    entries: Vec<(String, Attribute)>,
}

impl Attributes {
    /// None.
    #[must_use]
    pub const fn new() -> Self {
        Self { entries: Vec::new() }
    }

    /// Sets an attribute; one of the same name is replaced in its place.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<Attribute>) {
        let (name, value) = (name.into(), value.into());
        match self.entries.iter_mut().find(|(own, _)| *own == name) {
            Some(entry) => entry.1 = value,
            None => self.entries.push((name, value)),
        }
    }

    /// The attribute of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Attribute> {
        self.entries.iter().find(|(own, _)| own == name).map(|(_, value)| value)
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Attribute)> {
        self.entries.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// How many.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.entries.len()
    }

    /// Are there none?
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// As a JSON object.
    #[must_use]
    pub fn to_json(&self) -> Map<String, Value> {
        self.iter().map(|(name, value)| (name.to_owned(), value.to_json())).collect()
    }
}

impl<N: Into<String>, A: Into<Attribute>> FromIterator<(N, A)> for Attributes {
    fn from_iter<I: IntoIterator<Item = (N, A)>>(entries: I) -> Self {
        let mut attributes = Self::new();
        // Names are unique in every format, so nothing is searched for here.
        attributes.entries = entries.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        attributes
    }
}
