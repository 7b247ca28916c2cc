//! References: a Zarr store whose chunks are byte ranges of other files, in kerchunk's JSON format.
//!
//! A document maps each key of the store to inline bytes, or to a byte range of a file. Files are opened by the
//! caller's policy for external files: by default, only those in the document's folder.

mod export;

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use hyperslab_core::{
    Blob, BlobPart, Budget, ByteRange, Capabilities, Content, Error, ExternalFiles, Externals, FormatDriver,
    FormatInfo, Glimpse, Locations, MemoryBlob, ObjectRange, ObjectStat, OpenContext, Place, Recognition,
    Result, Storage, StorageEntry, Store,
};
use serde_json::{Map, Value};

use crate::ZarrStore;
use crate::fill::decode_base64;
use crate::json::Doc;
pub use export::{ExportOptions, array_references, group_references, to_json as references_to_json};

/// The number of leading bytes of a JSON file that are searched for references.
const DETECTION_BYTES: u64 = 64 << 10;

/// The cost of each byte of an expanded template in the document's budget. Paths are short, so this only limits
/// abuse.
const EXPANSION_COST: u64 = 8;

/// The content of one key of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// Inline bytes.
    Inline(Bytes),
    /// A byte range of another file, or the whole file.
    Target {
        /// A path or a URL.
        url: Arc<str>,
        /// Offset and length; `None` for the whole file.
        range: Option<(u64, u64)>,
    },
}

impl Reference {
    /// Returns true if the target is on another machine.
    #[must_use]
    pub fn is_remote(&self) -> bool {
        matches!(self, Self::Target { url, .. } if local_path(url).is_none())
    }
}

/// The source of a store's references.
pub trait ReferenceTable: Send + Sync + std::fmt::Debug {
    /// Returns the reference of a key; `None` if there is no such key.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](Error::Corrupt) if the references cannot be read.
    fn get(&self, key: &str) -> Result<Option<Reference>>;

    /// Lists the names below a key, and whether each is a folder.
    ///
    /// # Errors
    ///
    /// Like [`get`](Self::get).
    fn list(&self, key: &str) -> Result<Vec<(String, bool)>>;

    /// Returns true if any target is on another machine.
    ///
    /// # Errors
    ///
    /// Like [`get`](Self::get).
    fn is_remote(&self) -> Result<bool>;
}

impl ReferenceTable for BTreeMap<String, Reference> {
    fn get(&self, key: &str) -> Result<Option<Reference>> {
        Ok(self.get(key).cloned())
    }

    fn list(&self, key: &str) -> Result<Vec<(String, bool)>> {
        let prefix = if key.is_empty() { String::new() } else { format!("{key}/") };
        let mut entries: BTreeMap<&str, bool> = BTreeMap::new();
        let below = self.range(prefix.clone()..).take_while(|(own, _)| own.starts_with(&prefix));
        for (own, _) in below {
            let rest = &own[prefix.len()..];
            let (name, is_directory) =
                rest.split_once('/').map_or((rest, false), |(folder, _)| (folder, true));
            *entries.entry(name).or_default() |= is_directory;
        }
        Ok(entries.into_iter().map(|(name, is_directory)| (name.to_owned(), is_directory)).collect())
    }

    fn is_remote(&self) -> Result<bool> {
        Ok(self.values().any(Reference::is_remote))
    }
}

/// Opens the Zarr store that references describe. The context's policy for external files applies to their targets.
///
/// # Errors
///
/// Like [`open`](crate::open).
pub fn open_references(
    name: Arc<str>,
    table: Arc<dyn ReferenceTable>,
    context: &OpenContext<'_>,
) -> Result<ZarrStore> {
    let storage = ReferenceStorage::new(name, table, context)?;
    Ok(crate::open_with(Arc::new(storage), !context.unconsolidated)?.named(INFO.name))
}

/// References, and the policy for opening their targets.
#[derive(Debug)]
pub(crate) struct ReferenceStorage {
    name: Arc<str>,
    references: Arc<dyn ReferenceTable>,
    externals: Arc<dyn Externals>,
    locations: Option<Arc<dyn Locations>>,
    rule: ExternalFiles,
    opened: Mutex<HashMap<Arc<str>, Arc<dyn Blob>>>,
    /// Whether any target may be on another machine.
    remote: bool,
}

impl ReferenceStorage {
    pub(crate) fn new(
        name: Arc<str>,
        references: Arc<dyn ReferenceTable>,
        context: &OpenContext<'_>,
    ) -> Result<Self> {
        // A relative target is beside the references.
        let is_beside_remote = context.beside.as_ref().is_some_and(|storage| storage.is_remote());
        let remote = is_beside_remote || references.is_remote()?;
        let (externals, locations) = (context.externals(), context.locations.clone());
        let (rule, opened) = (context.external, Mutex::default());
        Ok(Self { name, references, externals, locations, rule, opened, remote })
    }

    /// The file of a reference, opened once.
    fn target(&self, url: &Arc<str>) -> Result<Arc<dyn Blob>> {
        let opened = || self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(blob) = opened().get(url) {
            return Ok(Arc::clone(blob));
        }
        let found = match (local_path(url), &self.locations) {
            (Some(path), _) => self.externals.open(path)?.map(|external| external.blob),
            (None, Some(locations)) => locations.open(url)?,
            (None, None) => None,
        };
        let blob = found.ok_or_else(|| self.no_target(url))?;
        opened().insert(Arc::clone(url), Arc::clone(&blob));
        Ok(blob)
    }
}

impl ReferenceStorage {
    fn no_target(&self, url: &str) -> Error {
        match self.rule {
            ExternalFiles::None => {
                let what = format!("{url} may not be opened: references to other files are not followed");
                Error::invalid(format!("{}: {what}", self.name))
            }
            ExternalFiles::Beside => {
                let what = format!(
                    "the target {url} does not exist, or may not be opened because it is not in the folder of the references; \
                     --external any allows it"
                );
                Error::invalid(format!("{}: {what}", self.name))
            }
            ExternalFiles::Any => Error::not_found(Arc::clone(&self.name), format!("the target {url}")),
        }
    }

    /// Rejects a range past the end of its file.
    fn check_range(&self, key: &str, url: &str, target: &dyn Blob, offset: u64, length: u64) -> Result<()> {
        let size = target.len()?;
        if offset.checked_add(length).is_some_and(|end| end <= size) {
            return Ok(());
        }
        let place = Place::new(&self.name, "reference", offset);
        Err(place.corrupt(format!("{key} is {length} bytes from byte {offset} of {url}, which has {size}")))
    }
}

/// A range inside a reference, as a range of its target; `None` if it reaches past the end.
fn part_of(offset: u64, length: u64, range: &ByteRange) -> Option<Range<u64>> {
    let (start, end) = match range {
        ByteRange::Whole => (0, length),
        ByteRange::Bounded(range) => (range.start, range.end),
        ByteRange::Suffix(count) => (length.saturating_sub(*count), length),
    };
    let is_inside = start <= end && end <= length;
    is_inside.then_some(()).and_then(|()| Some(offset.checked_add(start)?..offset.checked_add(end)?))
}

/// The path of a local target; `None` for a URL of other storage.
fn local_path(url: &str) -> Option<&str> {
    match url.split_once("://") {
        Some(("file" | "local", path)) => Some(path),
        Some(_) => None,
        None => Some(url),
    }
}

impl Storage for ReferenceStorage {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn open(&self, key: &str) -> Result<Option<Arc<dyn Blob>>> {
        Ok(match self.references.get(key)? {
            None => None,
            Some(Reference::Inline(bytes)) => {
                let name = format!("{}/{key}", self.name);
                Some(Arc::new(MemoryBlob::new(name.as_str(), bytes)))
            }
            Some(Reference::Target { url, range: None }) => Some(self.target(&url)?),
            Some(Reference::Target { url, range: Some((offset, length)) }) => {
                let target = self.target(&url)?;
                self.check_range(key, &url, &*target, offset, length)?;
                let name = format!("{}/{key}", self.name);
                Some(Arc::new(BlobPart::new(name, target, offset, length)?))
            }
        })
    }

    fn stat(&self, key: &str) -> Result<Option<ObjectStat>> {
        let size = match self.references.get(key)? {
            None => return Ok(None),
            Some(Reference::Inline(bytes)) => bytes.len() as u64,
            Some(Reference::Target { range: Some((_, length)), .. }) => length,
            Some(Reference::Target { url, range: None }) => self.target(&url)?.len()?,
        };
        Ok(Some(ObjectStat { size, version: 0 }))
    }

    fn list(&self, key: &str) -> Result<Vec<StorageEntry>> {
        let entry = |(name, is_directory)| StorageEntry { name, is_directory, size: None };
        Ok(self.references.list(key)?.into_iter().map(entry).collect())
    }

    /// Reads all ranges of a target in one call.
    fn read_many(&self, requests: &[ObjectRange<'_>]) -> Result<Vec<Option<Bytes>>> {
        let mut found: Vec<Option<Bytes>> = vec![None; requests.len()];
        let mut by_target: BTreeMap<Arc<str>, Vec<(usize, Range<u64>)>> = BTreeMap::new();
        for (number, request) in requests.iter().enumerate() {
            let reference = self.references.get(request.key)?;
            let part = match &reference {
                Some(Reference::Target { url, range: Some((offset, length)) }) => {
                    part_of(*offset, *length, &request.range).map(|range| (Arc::clone(url), range))
                }
                _ => None,
            };
            match part {
                Some((url, range)) => by_target.entry(url).or_default().push((number, range)),
                None => found[number] = self.read_one(request)?,
            }
        }
        for (url, wanted) in by_target {
            let target = self.target(&url)?;
            // The length of a local file is free to query. A server reports an invalid range itself.
            if local_path(&url).is_some() {
                for (number, range) in &wanted {
                    let length = range.end - range.start;
                    self.check_range(requests[*number].key, &url, &*target, range.start, length)?;
                }
            }
            let ranges: Vec<_> = wanted.iter().map(|(_, range)| range.clone()).collect();
            for ((number, _), bytes) in wanted.into_iter().zip(target.read(&ranges)?) {
                found[number] = Some(bytes);
            }
        }
        Ok(found)
    }

    fn is_remote(&self) -> bool {
        self.remote
    }
}

/// Parses the references of a JSON document, version 0 or 1.
pub(crate) fn parse(text: &[u8], doc: Doc<'_>) -> Result<BTreeMap<String, Reference>> {
    let value: Value = serde_json::from_slice(text).map_err(|error| doc.corrupt(error.to_string()))?;
    let document = doc.object(&value, "references")?;
    let templates = document.get("templates").and_then(Value::as_object);
    if document.get("gen").and_then(Value::as_array).is_some_and(|list| !list.is_empty()) {
        return Err(doc.unsupported("generated references (\"gen\")"));
    }
    let references = match document.get("version") {
        None => document,
        Some(version) if version.as_u64() == Some(1) => doc.object(doc.field(document, "refs")?, "refs")?,
        Some(other) => return Err(doc.unsupported(format!("references of version {other}"))),
    };
    // Templates that repeat themselves must not expand a document to a multiple of its size.
    let budget = Budget::new(&doc.store.into(), text.len() as u64);
    let templates = Templates { texts: templates, budget, doc };
    let one = |(key, value): (&String, &Value)| {
        if !crate::zip::is_inside(key) {
            return Err(doc.corrupt(format!("the key {key:?} is not inside the store")));
        }
        Ok((key.clone(), reference(key, value, &templates, doc)?))
    };
    references.iter().map(one).collect()
}

fn reference(key: &str, value: &Value, templates: &Templates<'_>, doc: Doc<'_>) -> Result<Reference> {
    let wrong = || doc.corrupt(format!("the reference {key:?} is {value}"));
    Ok(match value {
        Value::String(text) => Reference::Inline(match text.strip_prefix("base64:") {
            Some(digits) => decode_base64(digits).ok_or_else(wrong)?.into(),
            None => templates.expand(text)?.into(),
        }),
        Value::Array(parts) => match parts.as_slice() {
            [Value::String(url)] => Reference::Target { url: templates.expand(url)?.into(), range: None },
            [Value::String(url), offset, length] => {
                let range = offset.as_u64().zip(length.as_u64()).ok_or_else(wrong)?;
                Reference::Target { url: templates.expand(url)?.into(), range: Some(range) }
            }
            _ => return Err(wrong()),
        },
        // Metadata documents may be given as JSON objects.
        Value::Object(_) => Reference::Inline(value.to_string().into()),
        _ => return Err(wrong()),
    })
}

/// Templates: names and their replacements in references.
struct Templates<'a> {
    texts: Option<&'a Map<String, Value>>,
    budget: Budget,
    doc: Doc<'a>,
}

impl Templates<'_> {
    /// Replaces the `{{names}}` in a text.
    fn expand(&self, text: &str) -> Result<String> {
        let Some(texts) = self.texts.filter(|_| text.contains("{{")) else { return Ok(text.to_owned()) };
        let (mut out, mut rest) = (String::with_capacity(text.len()), text);
        while let Some((before, after)) = rest.split_once("{{") {
            let Some((name, after)) = after.split_once("}}") else { break };
            let value = texts.get(name.trim()).and_then(Value::as_str);
            let value = value.ok_or_else(|| self.doc.unsupported(format!("the template {name:?}")))?;
            self.budget.allocate(value.len() as u64 * EXPANSION_COST, "templates")?;
            out.push_str(before);
            out.push_str(value);
            rest = after;
        }
        out.push_str(rest);
        Ok(out)
    }
}

/// The format driver for kerchunk references.
#[derive(Debug)]
pub struct ReferencesDriver;

static INFO: FormatInfo = FormatInfo {
    capabilities: Capabilities {
        several_arrays: true,
        attributes: true,
        fill_values: true,
        ..Capabilities::NONE
    },
    ..FormatInfo::new("references")
};

impl FormatDriver for ReferencesDriver {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn recognise(&self, glimpse: &Glimpse<'_>) -> Result<Recognition> {
        let is_json = glimpse.head().trim_ascii_start().starts_with(b"{");
        let Some(blob) = glimpse.blob().filter(|_| is_json) else { return Ok(Recognition::No) };
        let head = blob.read_range(0..blob.len()?.min(DETECTION_BYTES))?;
        let has = |text: &str| head.windows(text.len()).any(|window| window == text.as_bytes());
        let names = [".zgroup\"", ".zarray\"", "zarr.json\"", ".zmetadata\""];
        Ok(names.iter().any(|name| has(name)).into())
    }

    fn open(&self, content: Content, context: &OpenContext<'_>) -> Result<Arc<dyn Store>> {
        let blob = content.into_file(&INFO)?;
        let name = Arc::clone(blob.name());
        let text = blob.read_range(0..blob.len()?)?;
        let references = parse(&text, Doc { store: &name, key: "references" })?;
        Ok(Arc::new(open_references(name, Arc::new(references), context)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOC: Doc<'_> = Doc { store: "r.json", key: "references" };

    #[test]
    fn every_form_of_a_reference_is_parsed() -> Result<()> {
        let text = r#"{"version": 1, "templates": {"u": "data/x.bin"}, "refs": {
            ".zgroup": "{\"zarr_format\": 2}", "t/.zarray": {"zarr_format": 2}, "t/0": ["{{u}}", 4, 5],
            "t/1": ["s3://b/k"], "t/2": "base64:aGk="}}"#;
        let references = parse(text.as_bytes(), DOC)?;
        let target = |url: &str, range| Reference::Target { url: url.into(), range };
        assert_eq!(references["t/0"], target("data/x.bin", Some((4, 5))));
        assert_eq!(references["t/1"], target("s3://b/k", None));
        assert_eq!(references["t/2"], Reference::Inline("hi".into()));
        assert_eq!(references[".zgroup"], Reference::Inline("{\"zarr_format\": 2}".into()));
        assert_eq!(parse(br#"{".zgroup": "{}"}"#, DOC)?.len(), 1);
        let storage = ReferenceStorage::new("r".into(), Arc::new(references), &OpenContext::default())?;
        assert!(storage.is_remote());
        let names: Vec<_> =
            storage.list("")?.into_iter().map(|entry| (entry.name, entry.is_directory)).collect();
        assert_eq!(names, [(".zgroup".to_owned(), false), ("t".to_owned(), true)]);
        assert!(storage.open("t/0").unwrap_err().to_string().contains("data/x.bin"));
        Ok(())
    }

    #[test]
    fn repeated_templates_are_limited() {
        let (template, uses) = ("x".repeat(100_000), "{{u}}".repeat(2_000));
        let text =
            format!(r#"{{"version": 1, "templates": {{"u": "{template}"}}, "refs": {{"a": ["{uses}"]}}}}"#);
        let error = parse(text.as_bytes(), DOC).unwrap_err();
        assert!(error.is_corrupt() && error.to_string().contains("templates"), "{error}");
    }

    #[test]
    fn invalid_documents_are_rejected() {
        for text in [
            "[]",
            r#"{"version": 1}"#,
            r#"{"version": 1, "refs": {"a": 1}}"#,
            r#"{"version": 1, "refs": {"a": ["x", -1, 3]}}"#,
            r#"{"version": 1, "refs": {"a": ["x", 1]}}"#,
            r#"{"a": "base64:*"}"#,
            r#"{"a//.zgroup": "{}"}"#,
            r#"{"/.zgroup": "{}"}"#,
            r#"{"../a/.zgroup": "{}"}"#,
            "{",
        ] {
            assert!(parse(text.as_bytes(), DOC).unwrap_err().is_corrupt(), "{text}");
        }
        for text in [
            r#"{"version": 2, "refs": {}}"#,
            r#"{"version": 1, "gen": [1], "refs": {}}"#,
            r#"{"version": 1, "templates": {}, "refs": {"a": ["{{f(c=1)}}"]}}"#,
        ] {
            assert!(parse(text.as_bytes(), DOC).unwrap_err().is_unsupported(), "{text}");
        }
    }
}
