//! Metadata of the datasets, within the limits that other readers enforce.
//!
//! If a text has more than 1024 bytes or is empty, or if there are more than 64 attributes or labels, other readers
//! refuse the footer, and with it the file. Such content is stored under our own key, which they ignore.

use hyperslab_core::{ArraySpec, Attributes, Labels};
use serde_json::Value;

use super::attribute_text;
use crate::footer::{CoordAxis, DatasetMetadata, Footer, Metadata, Own, OwnDataset};

/// The limits of other readers.
const MOST_TEXT: usize = 1024;
const MOST_ATTRIBUTES: usize = 64;
const MOST_LABELS: usize = 64;
const MOST_DATASETS: usize = 256;

/// The metadata of one array: within the limits, and beyond.
#[derive(Debug, Clone, Default)]
pub(crate) struct Described {
    pub(crate) metadata: DatasetMetadata,
    pub(crate) own: OwnDataset,
    pub(crate) notes: Vec<String>,
}

/// Returns true if other readers accept this text.
fn fits(text: &str) -> bool {
    (1..=MOST_TEXT).contains(&text.len())
}

/// Divides the metadata of an array into what other readers accept and our own extensions.
pub(crate) fn describe(name: &str, spec: &ArraySpec) -> Described {
    let mut described = Described::default();
    attributes(&spec.attributes, &mut described);
    dimensions(&spec.dimensions, &mut described);
    for (axis, labels) in spec.labels.iter().enumerate() {
        match labels {
            Labels::None | Labels::Domain { first: 0, .. } => {}
            Labels::Texts(texts) => self::labels(axis, texts, &mut described),
            Labels::Node(node) => {
                described.own.label_nodes.insert(axis.to_string(), node.clone());
            }
            Labels::Domain { first, .. } => described
                .notes
                .push(format!("{name}: dimension {axis} counted from {first}, which .tet does not keep")),
        }
    }
    described
}

fn attributes(attributes: &Attributes, described: &mut Described) {
    for (name, value) in attributes.iter() {
        let dtype = value.type_beside_json();
        let value = value.to_json();
        let text = attribute_text(&value);
        let room = described.metadata.attrs.len() < MOST_ATTRIBUTES && fits(name) && fits(&text);
        if !room || !value.is_string() || dtype.is_some() {
            described.own.attributes.insert(name.to_owned(), value);
        }
        if let Some(dtype) = dtype {
            described.own.attribute_types.insert(name.to_owned(), dtype);
        }
        if room {
            described.metadata.attrs.insert(name.to_owned(), text);
        }
    }
}

fn dimensions(names: &[Option<String>], described: &mut Described) {
    if names.iter().all(Option::is_none) {
        return;
    }
    let all: Option<Vec<String>> = names.iter().map(|name| name.clone().filter(|name| fits(name))).collect();
    match all {
        Some(all) => described.metadata.dim_names = Some(all),
        None => described.own.dimensions = names.to_vec(),
    }
}

fn labels(axis: usize, texts: &[String], described: &mut Described) {
    if texts.len() > MOST_LABELS || !texts.iter().all(|text| fits(text)) {
        described.own.labels.insert(axis.to_string(), texts.to_vec());
        return;
    }
    // Use the name of the axis if it is unique, else its number.
    let names = described.metadata.dim_names.as_deref().unwrap_or_default();
    let unique = |name: &&String| names.iter().filter(|other| other == name).count() == 1;
    let key = names.get(axis).filter(unique).cloned().unwrap_or_else(|| axis.to_string());
    let coords = described.metadata.coords.get_or_insert_default();
    coords.insert(key, CoordAxis { labels: texts.to_vec() });
}

impl Described {
    /// Takes the metadata of an array out of a file's metadata.
    pub(crate) fn take_from(name: &str, metadata: &mut Metadata) -> Self {
        Self {
            metadata: metadata.datasets.remove(name).unwrap_or_default(),
            own: metadata.own.as_mut().and_then(|own| own.datasets.remove(name)).unwrap_or_default(),
            notes: Vec::new(),
        }
    }

    /// Sets attributes, replacing those of the same names.
    pub(crate) fn set(&mut self, new: &Attributes) {
        new.iter().for_each(|(name, _)| self.delete(name));
        attributes(new, self);
    }

    pub(crate) fn delete(&mut self, name: &str) {
        self.metadata.attrs.remove(name);
        self.own.attributes.remove(name);
        self.own.attribute_types.remove(name);
    }

    /// Adds this to a file's metadata. Other readers accept metadata of the first 256 datasets only.
    pub(crate) fn add_to(self, name: &str, metadata: &mut Metadata) {
        let Self { metadata: mut plain, mut own, notes } = self;
        let shared = metadata.own.get_or_insert_default();
        shared.notes.extend(notes);
        let is_empty = plain == DatasetMetadata::default();
        if !is_empty && (metadata.datasets.len() >= MOST_DATASETS || !fits(name)) {
            for (key, text) in std::mem::take(&mut plain.attrs) {
                own.attributes.entry(key).or_insert(Value::String(text));
            }
            let rank = plain.dim_names.as_ref().map_or(8, Vec::len);
            for axis in 0..rank {
                let key =
                    plain.dim_names.as_ref().map_or_else(|| axis.to_string(), |names| names[axis].clone());
                let coords = plain.coords.as_mut();
                let found = coords
                    .and_then(|coords| coords.remove(&key).or_else(|| coords.remove(&axis.to_string())));
                if let Some(found) = found {
                    own.labels.insert(axis.to_string(), found.labels);
                }
            }
            if let Some(names) = plain.dim_names.take() {
                own.dimensions = names.into_iter().map(Some).collect();
            }
        } else if !is_empty {
            metadata.datasets.insert(name.to_owned(), plain);
        }
        if !own.is_empty() {
            shared.datasets.insert(name.to_owned(), own);
        }
    }
}

/// Adds a group or sets attributes of it, as one of our own extensions.
pub(crate) fn set_group(path: &str, attributes: &Attributes, own: &mut Own) {
    own.groups.entry(path.to_owned()).or_default().extend(attributes.to_json());
    for (name, value) in attributes.iter() {
        match value.type_beside_json() {
            Some(dtype) => {
                own.group_types.entry(path.to_owned()).or_default().insert(name.to_owned(), dtype);
            }
            None => forget_type(path, name, own),
        }
    }
}

/// Deletes attributes of a group.
pub(crate) fn delete_from_group(path: &str, names: &[String], own: &mut Own) {
    for name in names {
        if let Some(group) = own.groups.get_mut(path) {
            group.remove(name);
        }
        forget_type(path, name, own);
    }
}

fn forget_type(path: &str, name: &str, own: &mut Own) {
    let Some(types) = own.group_types.get_mut(path) else { return };
    types.remove(name);
    if types.is_empty() {
        own.group_types.remove(path);
    }
}

/// Reports content of a footer beyond the limits of other readers.
pub(crate) fn limits(footer: &Footer, problem: &mut dyn FnMut(String)) {
    if footer.metadata.datasets.len() > MOST_DATASETS {
        problem(format!("metadata of {} datasets, {MOST_DATASETS} allowed", footer.metadata.datasets.len()));
    }
    for (name, dataset) in &footer.metadata.datasets {
        if dataset.attrs.len() > MOST_ATTRIBUTES {
            problem(format!("{name}: {} attributes, {MOST_ATTRIBUTES} allowed", dataset.attrs.len()));
        }
        let coords = dataset.coords.iter().flatten();
        for (axis, labels) in coords.clone().filter(|(_, labels)| labels.labels.len() > MOST_LABELS) {
            problem(format!("{name}: {} labels of {axis}, {MOST_LABELS} allowed", labels.labels.len()));
        }
        let attributes = dataset.attrs.iter().flat_map(|(key, text)| [key, text]);
        let texts = attributes.chain(dataset.dim_names.iter().flatten());
        let texts =
            texts.chain(coords.flat_map(|(axis, labels)| std::iter::once(axis).chain(&labels.labels)));
        if let Some(text) = texts.chain([name]).find(|text| !fits(text)) {
            problem(format!("{name}: a text of {} bytes, 1 to {MOST_TEXT} allowed", text.len()));
        }
    }
}
