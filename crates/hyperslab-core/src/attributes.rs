//! Attributes: small named values of a node.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};

use crate::{DType, Elements, StoredAttribute, Values};

/// One attribute.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Attribute {
    /// A typed value: a scalar or a small array.
    Values(Values),
    /// A JSON document, from formats that store attributes as JSON.
    Json(Value),
    /// An attribute that is damaged or has an unsupported type, with the reason.
    Unreadable(String),
}

impl Attribute {
    /// Converts to JSON. An unreadable attribute becomes an object that holds the reason.
    #[must_use]
    pub fn to_json(&self) -> Value {
        match self {
            Self::Values(values) => values.to_json(),
            Self::Json(document) => document.clone(),
            Self::Unreadable(reason) => serde_json::json!({ "unreadable": reason }),
        }
    }

    /// The text, if the attribute is a text.
    #[must_use]
    pub fn as_text(&self) -> Option<String> {
        self.to_json().as_str().map(str::to_owned)
    }
}

impl Attribute {
    /// Characters that are not UTF-8, read as Latin-1, for formats whose text is UTF-8. `None` for everything else.
    #[must_use]
    pub fn from_latin_1(&self) -> Option<Self> {
        let Self::Values(values) = self else { return None };
        let bytes = values.elements.as_fixed().filter(|_| matches!(values.dtype, DType::FixedBytes(_)))?;
        if values.len() != 1 || std::str::from_utf8(bytes).is_ok() {
            return None;
        }
        let text: String = bytes.iter().map(|byte| char::from(*byte)).collect();
        Some(Self::from(text.trim_end_matches('\0')))
    }

    /// Converts to typed values. A JSON document becomes the nearest typed value: numbers become 64-bit integers or floats, and
    /// values without a matching type become text. `None` for an unreadable attribute.
    #[must_use]
    pub fn to_values(&self) -> Option<Values> {
        match self {
            Self::Values(values) => Some(values.clone()),
            Self::Json(document) => Some(from_document(document)),
            Self::Unreadable(_) => None,
        }
    }

    /// The name of the type, if the JSON of this attribute does not imply it. Formats that store attributes as JSON store the
    /// name separately and pass it to [`from_json_of_type`](Self::from_json_of_type). `None` for documents and
    /// for text.
    #[must_use]
    pub fn type_beside_json(&self) -> Option<String> {
        let Self::Values(values) = self else { return None };
        let is_text = values.dtype == DType::String && values.shape.is_empty();
        let name = values.dtype.to_string();
        let again = Self::from_json_of_type(&self.to_json(), &name);
        // NaN is not equal to itself, so compare the JSON.
        let same = |again: &Self| matches!(again, Self::Values(own) if own.dtype == values.dtype && own.shape == values.shape);
        (!is_text && again.is_some_and(|again| same(&again))).then_some(name)
    }

    /// Restores an attribute from its JSON and its [type](Self::type_beside_json); `None` if they do not match.
    #[must_use]
    pub fn from_json_of_type(document: &Value, name: &str) -> Option<Self> {
        let dtype = TYPES_BESIDE.into_iter().find(|dtype| dtype.to_string() == name)?;
        let (mut shape, mut level) = (Vec::new(), document);
        while let Value::Array(items) = level {
            shape.push(items.len() as u64);
            match items.first() {
                Some(first) => level = first,
                None => break,
            }
        }
        if matches!(dtype, DType::Complex64 | DType::Complex128) {
            shape.pop();
        }
        let mut leaves = Vec::new();
        flatten(document, &mut leaves);
        let elements = if dtype == DType::String {
            Elements::variable(leaves.iter().map(|leaf| leaf.as_str()).collect::<Option<Vec<_>>>()?)
        } else {
            let bytes = leaves.iter().map(|leaf| number_bytes(leaf, &dtype)).collect::<Option<Vec<_>>>()?;
            Elements::fixed(bytes.concat())
        };
        Values::new(dtype, &shape, elements).ok().map(Self::Values)
    }
}

/// The types of attributes that JSON does not imply.
const TYPES_BESIDE: [DType; 15] = [
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
    DType::Complex64,
    DType::Complex128,
    DType::String,
];

fn flatten<'v>(document: &'v Value, leaves: &mut Vec<&'v Value>) {
    match document {
        Value::Array(items) => items.iter().for_each(|item| flatten(item, leaves)),
        leaf => leaves.push(leaf),
    }
}

/// The bytes of one number, or of one part of a complex number.
fn number_bytes(value: &Value, dtype: &DType) -> Option<Vec<u8>> {
    let float = || match value {
        Value::String(text) => text.replace("Infinity", "inf").parse::<f64>().ok(),
        number => number.as_f64(),
    };
    macro_rules! integer {
        ($type:ty) => {{
            let wide = value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from))?;
            <$type>::try_from(wide).ok()?.to_ne_bytes().to_vec()
        }};
    }
    Some(match dtype {
        DType::Bool => vec![u8::from(value.as_bool()?)],
        DType::Int8 => integer!(i8),
        DType::Int16 => integer!(i16),
        DType::Int32 => integer!(i32),
        DType::Int64 => integer!(i64),
        DType::UInt8 => integer!(u8),
        DType::UInt16 => integer!(u16),
        DType::UInt32 => integer!(u32),
        DType::UInt64 => integer!(u64),
        DType::Float16 => half::f16::from_f64(float()?).to_ne_bytes().to_vec(),
        DType::Float32 | DType::Complex64 => (float()? as f32).to_ne_bytes().to_vec(),
        DType::Float64 | DType::Complex128 => float()?.to_ne_bytes().to_vec(),
        _ => return None,
    })
}

/// Converts a document to the nearest typed value, or else to its JSON text.
fn from_document(document: &Value) -> Values {
    let of = |name: &str| match Attribute::from_json_of_type(document, name) {
        Some(Attribute::Values(values)) => Some(values),
        _ => None,
    };
    let typed = match document {
        Value::String(text) => Some(Values::text(text)),
        Value::Bool(_) => of("bool"),
        Value::Number(number) if number.is_u64() && number.as_i64().is_none() => of("uint64"),
        Value::Number(number) if number.is_i64() => of("int64"),
        Value::Number(_) => of("float64"),
        Value::Object(fields) if fields.len() == 1 => fields.get("hex").and_then(bytes_of_digits),
        Value::Array(items) if !items.is_empty() && items.iter().all(|item| !item.is_array()) => {
            if items.iter().all(Value::is_string) {
                of("string")
            } else if items.iter().all(Value::is_number) {
                of("int64").or_else(|| of("float64"))
            } else {
                None
            }
        }
        _ => None,
    };
    typed.unwrap_or_else(|| Values::text(&document.to_string()))
}

/// Bytes from their hexadecimal digits, as bytes that are no text have them in JSON.
fn bytes_of_digits(digits: &Value) -> Option<Values> {
    let digits = digits.as_str()?.as_bytes();
    let digit = |at: usize| char::from(digits[at]).to_digit(16);
    if digits.len() % 2 != 0 {
        return None;
    }
    let byte = |at: usize| u8::try_from(digit(2 * at)? * 16 + digit(2 * at + 1)?).ok();
    let bytes = (0..digits.len() / 2).map(byte).collect::<Option<Vec<u8>>>()?;
    Values::scalar(DType::Bytes, Elements::variable([bytes])).ok()
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

/// With this many attributes or more, lookups go through a hash map.
const INDEXED_FROM: usize = 64;

/// Attributes by name, in the file's order.
#[derive(Debug, Clone, Default)]
pub struct Attributes {
    entries: Vec<(String, Attribute)>,
    /// The position of each name in `entries`; built once there are many.
    index: Option<HashMap<String, usize>>,
    /// How attributes were stored, for formats that keep more than the value.
    stored: BTreeMap<String, StoredAttribute>,
}

impl PartialEq for Attributes {
    fn eq(&self, other: &Self) -> bool {
        self.entries == other.entries
    }
}

impl Attributes {
    /// An empty set of attributes.
    #[must_use]
    pub const fn new() -> Self {
        Self { entries: Vec::new(), index: None, stored: BTreeMap::new() }
    }

    /// Sets an attribute. An existing attribute of the same name is replaced and keeps its position.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<Attribute>) {
        let (name, value) = (name.into(), value.into());
        self.stored.remove(&name);
        self.build_index();
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

    /// Indexes the names if there are many.
    fn build_index(&mut self) {
        if self.index.is_none() && self.entries.len() >= INDEXED_FROM {
            // If a name occurs twice, the first one wins, as in a search from the front.
            let names = self.entries.iter().enumerate().rev();
            self.index = Some(names.map(|(at, (name, _))| (name.clone(), at)).collect());
        }
    }

    fn position(&self, name: &str) -> Option<usize> {
        match &self.index {
            Some(index) => index.get(name).copied(),
            None => self.entries.iter().position(|(own, _)| own == name),
        }
    }

    /// The attribute with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Attribute> {
        self.position(name).map(|at| &self.entries[at].1)
    }

    /// How an attribute was stored, for formats that keep more than the value.
    #[must_use]
    pub fn stored(&self, name: &str) -> Option<&StoredAttribute> {
        self.stored.get(name)
    }

    /// Records how an attribute was stored. [`set`](Self::set) discards this.
    pub fn set_stored(&mut self, name: impl Into<String>, stored: StoredAttribute) {
        self.stored.insert(name.into(), stored);
    }

    /// The attributes that `keep` accepts, including how they were stored.
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

    /// Iterates over all attributes, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Attribute)> {
        self.entries.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// The number of attributes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if there are no attributes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Converts to a JSON object.
    #[must_use]
    pub fn to_json(&self) -> Map<String, Value> {
        self.iter().map(|(name, value)| (name.to_owned(), value.to_json())).collect()
    }
}

impl<N: Into<String>, A: Into<Attribute>> FromIterator<(N, A)> for Attributes {
    fn from_iter<I: IntoIterator<Item = (N, A)>>(entries: I) -> Self {
        let mut attributes = Self::new();
        // Names are unique in every format, so duplicates are not checked here.
        attributes.entries = entries.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        attributes.build_index();
        attributes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Small sets are searched and large ones looked up; both give the same result and keep the order.
    #[test]
    fn large_sets_behave_like_small_ones() {
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
        assert!(copied.index.is_some());
        assert_eq!(copied.get("a150"), attributes.get("a150"));
    }
}
