//! The footer's JSON, as types. Unknown keys are ignored, as the format requires.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::own::Own;

/// The maximum number of entries read from a list or map: far more than writers may write, and few enough to bound memory.
const MOST: usize = 65_536;

/// The attributes that mark missing values. The first one present applies.
pub(crate) const MISSING_MARKERS: [&str; 3] = ["_FillValue", "missing_value", "fill_value"];

/// An operation on the file.
///
/// Older writers store the first three fields as an array, which is read as well.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HistoryRow {
    /// The operation: `convert`, `write`, `append`, `repair` …
    pub op: String,
    /// Its source: a format or a path.
    pub source: String,
    /// Its time: seconds since 1970, as decimal text.
    pub at: String,
    /// The sources it was made from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parents: Vec<String>,
    /// Its settings.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, String>,
    /// The agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The activity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<String>,
    /// The entity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entity: Option<String>,
}

/// The creator of the file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FileMetadata {
    /// The program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The version of the library.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub library_version: Option<String>,
    /// The creation time: seconds since 1970, as decimal text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
}

/// Labels along one axis.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CoordAxis {
    /// One text per position.
    pub labels: Vec<String>,
}

/// The metadata of one dataset.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DatasetMetadata {
    /// Attributes: text only.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "few_entries")]
    pub attrs: BTreeMap<String, String>,
    /// Dimension names. Neither their number nor uniqueness is guaranteed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dim_names: Option<Vec<String>>,
    /// Labels, by the name or number of the axis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coords: Option<BTreeMap<String, CoordAxis>>,
}

impl DatasetMetadata {
    /// The dimension names, if there is one for each dimension.
    #[must_use]
    pub fn dimensions(&self, rank: usize) -> Vec<Option<String>> {
        match &self.dim_names {
            Some(names) if names.len() == rank => {
                names.iter().map(|name| Some(name.clone()).filter(|name| !name.is_empty())).collect()
            }
            _ => vec![None; rank],
        }
    }

    /// The labels of an axis: those under its name, else under its number, else the only ones that match its extent.
    #[must_use]
    pub fn labels(&self, axis: usize, extent: u64) -> Option<&[String]> {
        let coords = self.coords.as_ref()?;
        let name = self.dim_names.as_ref().and_then(|names| names.get(axis));
        let named = name.and_then(|name| coords.get(name)).or_else(|| coords.get(&axis.to_string()));
        let fits = |labels: &&CoordAxis| labels.labels.len() as u64 == extent;
        // Labels that name their axis are not given to another.
        let is_other = |key: &str| {
            let named = self.dim_names.as_ref().is_some_and(|names| names.iter().any(|name| name == key));
            named || key.parse::<usize>().is_ok()
        };
        let found = match named {
            Some(labels) => Some(labels).filter(fits),
            None => {
                let free = coords.iter().filter(|(key, _)| !is_other(key)).map(|(_, labels)| labels);
                let mut fitting = free.filter(fits);
                fitting.next().filter(|_| fitting.next().is_none())
            }
        };
        found.map(|axis| axis.labels.as_slice())
    }

    /// The text of the missing-value marker, if an attribute gives one.
    #[must_use]
    pub fn missing_value(&self) -> Option<&str> {
        MISSING_MARKERS.iter().find_map(|name| self.attrs.get(*name)).map(String::as_str)
    }
}

/// The footer's `metadata`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Metadata {
    /// The creator of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<FileMetadata>,
    /// Metadata by dataset name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "few_entries")]
    pub datasets: BTreeMap<String, DatasetMetadata>,
    /// Our own extensions. They are parsed separately, so that damage to them costs nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none", skip_deserializing, rename = "hyperslab")]
    pub own: Option<Own>,
}

/// The location of a part of the footer that was too large for its JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpillRef {
    /// The offset in the file.
    pub offset: u64,
    /// The length in bytes.
    pub len: u64,
}

/// The JSON at the end of the file, with its key order.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct FooterJson {
    #[serde(default, deserialize_with = "few_items")]
    pub(crate) history: Vec<HistoryRow>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) metadata: Option<Metadata>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) metadata_ref: Option<SpillRef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) zone_maps_ref: Option<SpillRef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) secondary_index_ref: Option<SpillRef>,
}

/// A list that must not have more than [`MOST`] items.
pub(crate) fn few_items<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    struct Items<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for Items<T> {
        type Value = Vec<T>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
            let mut items = Vec::new();
            while let Some(item) = list.next_element()? {
                if items.len() == MOST {
                    return Err(A::Error::custom(format!("a list of more than {MOST} items")));
                }
                items.push(item);
            }
            Ok(items)
        }
    }
    deserializer.deserialize_seq(Items(PhantomData))
}

/// A map with at most [`MOST`] entries. If a key occurs twice, the last one wins.
pub(crate) fn few_entries<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, T>, D::Error> {
    struct Entries<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for Entries<T> {
        type Value = BTreeMap<String, T>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a map")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut entries = BTreeMap::new();
            while let Some((key, value)) = map.next_entry()? {
                if entries.len() == MOST {
                    return Err(A::Error::custom(format!("a map of more than {MOST} entries")));
                }
                entries.insert(key, value);
            }
            Ok(entries)
        }
    }
    deserializer.deserialize_map(Entries(PhantomData))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn history_rows_are_objects_or_arrays() {
        let text = r#"{"history":[["convert","npy","1"],{"op":"write","source":"x","at":"2","params":{"a":"b"},"new":[1]}]}"#;
        let footer: FooterJson = serde_json::from_str(text).unwrap();
        assert_eq!(footer.history[0].at, "1");
        assert_eq!(footer.history[1].params["a"], "b");
        assert!(serde_json::from_str::<FooterJson>(r#"{"history":null}"#).is_err());
        assert!(serde_json::from_str::<FooterJson>(r#"{"history":[["a","b"]]}"#).is_err());
    }

    #[test]
    fn labels_are_found_by_name_then_number_then_length() {
        let axis = |n: usize| CoordAxis { labels: (0..n).map(|i| i.to_string()).collect() };
        let mut metadata = DatasetMetadata {
            dim_names: Some(vec!["t".into(), "x".into(), "y".into()]),
            coords: Some([("t".into(), axis(2)), ("1".into(), axis(3)), ("other".into(), axis(4))].into()),
            ..DatasetMetadata::default()
        };
        assert_eq!(metadata.labels(0, 2).map(<[_]>::len), Some(2));
        assert_eq!(metadata.labels(0, 3), None);
        assert_eq!(metadata.labels(2, 2), None);
        assert_eq!(metadata.labels(1, 3).map(<[_]>::len), Some(3));
        assert_eq!(metadata.labels(2, 4).map(<[_]>::len), Some(4));
        metadata.coords.as_mut().unwrap().insert("more".into(), axis(4));
        assert_eq!(metadata.labels(2, 4), None);
    }

    #[test]
    fn endless_lists_are_refused() {
        let rows = r#"["","",""],"#.repeat(MOST);
        assert!(serde_json::from_str::<FooterJson>(&format!(r#"{{"history":[{rows}["","",""]]}}"#)).is_err());
    }
}
