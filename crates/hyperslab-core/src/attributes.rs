//! Attributes: small named values of a node.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};

use crate::{StoredAttribute, Values};

/// One attribute.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Attribute {
    /// A typed value: a scalar or a small array.
    Values(Values),
    /// A document, as formats that keep their attributes in JSON have it.
    Json(Value),
    /// An attribute whose bytes are damaged or of an unsupported type: the reason.
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

/// From this many attributes on, names are looked up in a map.
const INDEXED_FROM: usize = 64;

/// Attributes by name, in the file's order.
#[derive(Debug, Clone, Default)]
pub struct Attributes {
    entries: Vec<(String, Attribute)>,
    /// The position of each name in `entries`; built once there are many.
    index: Option<HashMap<String, usize>>,
    /// How attributes were stored, where their format keeps more than their values.
    stored: BTreeMap<String, StoredAttribute>,
}

impl PartialEq for Attributes {
    fn eq(&self, other: &Self) -> bool {
        self.entries == other.entries
    }
}

impl Attributes {
    /// None.
    #[must_use]
    pub const fn new() -> Self {
        Self { entries: Vec::new(), index: None, stored: BTreeMap::new() }
    }

    /// Sets an attribute; one of the same name is replaced in its place.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<Attribute>) {
        let (name, value) = (name.into(), value.into());
        self.stored.remove(&name);
        if self.index.is_none() && self.entries.len() >= INDEXED_FROM {
            // The first of a name counts, as in a search from the front.
            let names = self.entries.iter().enumerate().rev();
            self.index = Some(names.map(|(at, (name, _))| (name.clone(), at)).collect());
        }
        match self.position(&name) {
            Some(at) => self.entries[at].1 = value,
            None => {
                if let Some(index) = &mut self.index {
                    index.insert(name.clone(), self.entries.len());
                }
                self.entries.push((name, value));
            }
        }
    }

    fn position(&self, name: &str) -> Option<usize> {
        match &self.index {
            Some(index) => index.get(name).copied(),
            None => self.entries.iter().position(|(own, _)| own == name),
        }
    }

    /// The attribute of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Attribute> {
        self.position(name).map(|at| &self.entries[at].1)
    }

    /// How an attribute was stored, where its format keeps more than its values.
    #[must_use]
    pub fn stored(&self, name: &str) -> Option<&StoredAttribute> {
        self.stored.get(name)
    }

    /// Notes how an attribute was stored. [`set`](Self::set) forgets it.
    pub fn set_stored(&mut self, name: impl Into<String>, stored: StoredAttribute) {
        self.stored.insert(name.into(), stored);
    }

    /// Those that `keep` chooses, as they are stored.
    #[must_use]
    pub fn filtered(&self, mut keep: impl FnMut(&str, &Attribute) -> bool) -> Self {
        let mut kept: Self = self
            .iter()
            .filter(|(name, value)| keep(name, value))
            .map(|(name, value)| (name, value.clone()))
            .collect();
        for (name, _) in &kept.entries {
            if let Some(stored) = self.stored.get(name) {
                kept.stored.insert(name.clone(), stored.clone());
            }
        }
        kept
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A few attributes are searched, many are looked up: both give the same result and keep the order.
    #[test]
    fn many_attributes_are_as_few() {
        let mut attributes = Attributes::new();
        for number in 0..200 {
            attributes.set(format!("a{number}"), Value::from(number));
            assert_eq!(attributes.len(), number + 1);
        }
        attributes.set("a3", Value::from(-3));
        attributes.set("a150", Value::from(-150));
        assert_eq!(attributes.len(), 200);
        assert_eq!(attributes.get("a3").map(Attribute::to_json), Some(Value::from(-3)));
        assert_eq!(attributes.get("a150").map(Attribute::to_json), Some(Value::from(-150)));
        assert!(attributes.get("a200").is_none());
        assert!(attributes.iter().map(|(name, _)| name.to_owned()).eq((0..200).map(|n| format!("a{n}"))));
        let copied: Attributes = attributes.iter().map(|(name, value)| (name, value.clone())).collect();
        assert_eq!(copied, attributes);
        assert_eq!(copied.get("a150"), attributes.get("a150"));
    }
}
