//! Metadata of arrays and groups: keys and small typed values.

use std::collections::{BTreeMap, HashSet};

use hyperslab_core::{
    Attribute, Attributes, Data, Elements, Fields, ObjectRange, Place, Result, Storage, Values,
};

use crate::datatype::{CellValues, Datatype};
use crate::generic;
use crate::key::Key;
use crate::listing::list_folder;
use crate::names::{TimeWindow, TimedName};

/// By the TileDB-CF convention, keys with this prefix, an attribute's name and a dot belong to that attribute.
pub(crate) const ATTRIBUTE_PREFIX: &str = "__tiledb_attr.";

/// The metadata key that lists the axes without cells, each followed by 1 if it may grow, otherwise 0.
pub(crate) const EMPTY_AXES: &str = "__hyperslab.empty_axes";
/// A key with this prefix names the type of another key's value that is stored as JSON.
pub(crate) const TYPE_PREFIX: &str = "hyperslab_type.";

/// A change to one key.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) key: String,
    /// The new value; `None` deletes the key.
    pub(crate) value: Option<(Datatype, u32, Vec<u8>)>,
}

impl Entry {
    /// `u32 len, key; u8 deleted; if 0: u8 type, u32 count, values`.
    fn parse(fields: &mut Fields<'_>) -> Result<Self> {
        let length = fields.count_u32(1)?;
        let key = String::from_utf8_lossy(fields.bytes(length)?).into_owned();
        if fields.u8()? != 0 {
            return Ok(Self { key, value: None });
        }
        let place = fields.place();
        let datatype = Datatype::parse(fields.u8()?, place)?;
        let count = fields.count_u32(datatype.size())?;
        let bytes = fields.bytes(count * datatype.size())?.to_vec();
        Ok(Self { key, value: Some((datatype, count as u32, bytes)) })
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend((self.key.len() as u32).to_le_bytes());
        out.extend(self.key.as_bytes());
        match &self.value {
            None => out.push(1),
            Some((datatype, count, bytes)) => {
                out.extend([0, datatype.code()]);
                out.extend(count.to_le_bytes());
                out.extend(bytes);
            }
        }
    }

    /// Converts a value to an attribute: text, a number, or a list of numbers.
    fn attribute(datatype: Datatype, count: u32, bytes: &[u8]) -> Attribute {
        if datatype.is_bytes() {
            let text = CellValues::Variable;
            let data = Data::Variable { offsets: vec![0, bytes.len() as u64], bytes: bytes.to_vec().into() };
            return Values::scalar(datatype.dtype(text), Elements { data, validity: None })
                .map_or_else(|error| Attribute::Unreadable(error.to_string()), Attribute::Values);
        }
        let dtype = datatype.dtype(CellValues::Fixed(1));
        let elements = Elements::fixed(bytes.to_vec());
        let values = match count {
            1 => Values::scalar(dtype, elements),
            count => Values::new(dtype, &[u64::from(count)], elements),
        };
        values.map_or_else(|error| Attribute::Unreadable(error.to_string()), Attribute::Values)
    }
}

/// Parses the payload of a metadata file.
pub(crate) fn parse(bytes: &[u8], place: Place<'_>) -> Result<Vec<Entry>> {
    let mut fields = Fields::new(bytes, place);
    let mut entries = Vec::new();
    while fields.remaining() > 0 {
        entries.push(Entry::parse(&mut fields)?);
    }
    Ok(entries)
}

/// The metadata files in the time window, oldest first.
pub(crate) fn visible(directory: &dyn Storage, prefix: &str, window: TimeWindow) -> Result<Vec<TimedName>> {
    let names: Vec<TimedName> = list_folder(directory, prefix, "__meta")?
        .iter()
        .filter_map(|entry| TimedName::parse(&entry.name))
        .filter(|name| name.inside(window))
        .collect();
    let mut replaced = HashSet::new();
    for name in names.iter().filter(|name| name.ending == "vac") {
        let bytes = directory.read(&format!("{prefix}__meta/{}.vac", name.stem))?.unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        replaced.extend(text.lines().filter_map(|line| line.rsplit('/').next().map(str::to_owned)));
    }
    let mut files: Vec<TimedName> =
        names.into_iter().filter(|name| name.ending.is_empty() && !replaced.contains(&name.stem)).collect();
    files.sort_by(|a, b| a.order().cmp(&b.order()));
    Ok(files)
}

/// The name under which damaged metadata is shown.
const DAMAGED: &str = "__meta";

/// Replaces damaged metadata by one unreadable attribute with the reason, because values can be read without it.
pub(crate) fn or_unreadable(read: Result<Attributes>) -> Result<Attributes> {
    match read {
        Err(error) if error.is_corrupt() => {
            Ok(Attributes::from_iter([(DAMAGED.to_owned(), Attribute::Unreadable(error.to_string()))]))
        }
        read => read,
    }
}

/// Merges all keys from the files of the time window. Sorted by name, as in the library.
pub(crate) fn read(
    directory: &dyn Storage,
    prefix: &str,
    window: TimeWindow,
    key: Option<&Key>,
) -> Result<BTreeMap<String, Attribute>> {
    let mut current = BTreeMap::new();
    let files = visible(directory, prefix, window)?;
    let keys: Vec<String> = files.iter().map(|name| format!("{prefix}__meta/{}", name.stem)).collect();
    directory.prefetch(&keys.iter().map(|key| ObjectRange::whole(key)).collect::<Vec<_>>());
    for name in files {
        let file = format!("{prefix}__meta/{}", name.stem);
        let Some(bytes) = directory.read(&file)? else { continue };
        let label = format!("{}/{file}", directory.name());
        let place = Place::new(&label, "array metadata", 0);
        for entry in parse(&generic::decode_whole(&bytes, key, place)?, place)? {
            match entry.value {
                Some((datatype, count, bytes)) => {
                    current.insert(entry.key, Entry::attribute(datatype, count, &bytes))
                }
                None => current.remove(&entry.key),
            };
        }
    }
    restore_types(&mut current);
    Ok(current)
}

/// Restores the types of values that are stored as JSON because the format lacks their type.
fn restore_types(current: &mut BTreeMap<String, Attribute>) {
    let types: Vec<String> = current.keys().filter(|key| key.starts_with(TYPE_PREFIX)).cloned().collect();
    for key in types {
        let name = current.get(&key).and_then(Attribute::as_text);
        let held = current.get_mut(&key[TYPE_PREFIX.len()..]);
        if let (Some(name), Some(held)) = (name, held) {
            let document = held.as_text();
            let document = document.and_then(|text| serde_json::from_str::<serde_json::Value>(&text).ok());
            if let Some(typed) = document.and_then(|document| Attribute::from_json_of_type(&document, &name))
            {
                *held = typed;
            }
            current.remove(&key);
        }
    }
}
