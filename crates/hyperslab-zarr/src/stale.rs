//! Checks whether consolidated metadata still matches the nodes' own documents. Readers trust it, so stale metadata hides later
//! additions and changes.

use std::collections::BTreeMap;

use hyperslab_core::{Report, Result};
use serde_json::{Map, Value};

use crate::store::{Document, ZarrStore, join};

/// The maximum number of nodes listed.
const MAX_NAMED: usize = 20;
/// The maximum nesting depth of groups.
const MAX_DEPTH: usize = 64;

/// Compares every consolidated document with the node's own, and looks for nodes that are missing from it.
pub(crate) fn check(store: &ZarrStore, report: &mut Report) {
    let Some(gathered) = store.gathered() else { return };
    let stale = match compare(store, gathered) {
        Ok(stale) => stale,
        // The storage cannot list, or a document is damaged, which another check reports.
        Err(error) => {
            return report.note("consolidated_metadata", format!("not compared with the documents: {error}"));
        }
    };
    if stale.is_empty() {
        return report.passed(
            "consolidated_metadata",
            format!("{} documents match those of the nodes", gathered.len()),
        );
    }
    let count = stale.len();
    for (key, what) in stale.into_iter().take(MAX_NAMED) {
        report.warning("consolidated_metadata", format!("stale: {what}"));
        report.at_node(&format!("/{key}"));
    }
    if count > MAX_NAMED {
        report.warning("consolidated_metadata", format!("stale: {} more nodes", count - MAX_NAMED));
    }
    report.recommend(
        "consolidate_metadata",
        "readers trust the consolidated metadata, which is outdated; read with --no-consolidated, and \
         update it with zarr.consolidate_metadata",
        None,
    );
}

/// The nodes with wrong consolidated documents, and how they differ.
fn compare(store: &ZarrStore, gathered: &BTreeMap<String, Document>) -> Result<BTreeMap<String, String>> {
    let mut stale = BTreeMap::new();
    for (key, document) in gathered {
        match store.own_document(key)? {
            None => {
                stale.insert(key.clone(), "it lists a node that does not exist".to_owned());
            }
            Some(own) => stale.extend(difference(document, &own).map(|what| (key.clone(), what))),
        }
    }
    let mut pending = vec![(String::new(), 0)];
    while let Some((group, depth)) = pending.pop() {
        for entry in store.directory().list(&group)?.into_iter().filter(|entry| entry.is_directory) {
            let key = join(&group, &entry.name);
            if !store.has_document(&key)? {
                continue;
            }
            if !gathered.contains_key(&key) {
                stale.insert(key.clone(), "it hides an existing node".to_owned());
            }
            if depth < MAX_DEPTH && store.own_document(&key)?.is_some_and(|own| !own.is_array()) {
                pending.push((key, depth + 1));
            }
        }
    }
    Ok(stale)
}

/// The fields in which two documents of a node differ.
fn difference(gathered: &Document, own: &Document) -> Option<String> {
    let [one, other] = [gathered, own].map(fields);
    let mut names: Vec<&String> = one.keys().chain(other.keys()).collect();
    names.sort();
    names.dedup();
    let differing = names.into_iter().filter(|name| one.get(*name) != other.get(*name));
    let told: Vec<String> = differing
        .map(|name| {
            let short = |value: Option<&Value>| {
                let text = value.map_or_else(|| "nothing".to_owned(), Value::to_string);
                if text.chars().count() > 60 { text.chars().take(59).chain(['…']).collect() } else { text }
            };
            format!(
                "{name} is {} there, but {} in the node's own document",
                short(one.get(name)),
                short(other.get(name))
            )
        })
        .collect();
    (!told.is_empty()).then(|| told.join("; "))
}

/// The normalised content of a document. An empty set of attributes counts as none.
fn fields(document: &Document) -> Map<String, Value> {
    let mut fields = match document {
        Document::V3(object) => object.clone(),
        Document::V2Array(object, attributes) => with_attributes(object.clone(), attributes.as_ref()),
        Document::V2Group(attributes) => with_attributes(Map::new(), attributes.as_ref()),
    };
    fields.shift_remove("consolidated_metadata");
    if fields.get("attributes").is_some_and(|attributes| attributes.as_object().is_some_and(Map::is_empty)) {
        fields.shift_remove("attributes");
    }
    fields
}

fn with_attributes(mut fields: Map<String, Value>, attributes: Option<&Value>) -> Map<String, Value> {
    if let Some(attributes) = attributes {
        fields.insert("attributes".to_owned(), attributes.clone());
    }
    fields
}
