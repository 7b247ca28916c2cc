//! Lists an array's directory: schemas and committed fragments.

use std::collections::{BTreeMap, HashSet};

use bytes::Bytes;
use hyperslab_core::{Fields, Place, Result, Storage, StorageEntry};

use crate::names::{TimeWindow, TimedName};

/// The relevant names in an array's directory.
#[derive(Debug, Clone, Default)]
pub(crate) struct Listing {
    /// Whether `__array_schema.tdb` is in the root, as before version 10.
    pub(crate) old_schema: bool,
    /// In `__schema/`, oldest first.
    pub(crate) schemas: Vec<TimedName>,
    /// Timestamped names in the root: fragments before version 12, their `.ok` and `.vac` files.
    pub(crate) root: Vec<(TimedName, bool)>,
    /// In `__commits/`.
    pub(crate) commits: Vec<TimedName>,
    /// Directories in `__fragments/`, committed or not.
    pub(crate) fragments: Vec<TimedName>,
    /// In `__fragment_meta/`.
    pub(crate) fragment_metas: Vec<String>,
}

/// The folders of an array that are always listed.
const FOLDERS: [&str; 5] = ["__schema", "__commits", "__fragments", "__fragment_meta", "__meta"];

/// With at most this many objects, an array is listed as a whole, which takes one request.
pub(crate) const MOST_LISTED: usize = 1000;

/// Lists the folders of an array concurrently, for storage where each listing is a round trip.
fn prefetch_folders(directory: &dyn Storage, prefix: &str, entries: &[StorageEntry]) {
    let there = FOLDERS.iter().filter(|folder| entries.iter().any(|entry| entry.name == **folder));
    let keys: Vec<String> = there.map(|folder| format!("{prefix}{folder}")).collect();
    directory.prefetch_lists(&keys.iter().map(String::as_str).collect::<Vec<_>>());
}

/// Lists a folder of an array or group. On remote storage, skips the request if the folder is missing from its
/// parent's listing.
pub(crate) fn list_folder(directory: &dyn Storage, prefix: &str, folder: &str) -> Result<Vec<StorageEntry>> {
    if directory.is_remote() {
        let above = directory.list(prefix.trim_end_matches('/'))?;
        if !above.iter().any(|entry| entry.name == folder) {
            return Ok(Vec::new());
        }
    }
    directory.list(&format!("{prefix}{folder}"))
}

impl Listing {
    pub(crate) fn read(directory: &dyn Storage, prefix: &str) -> Result<Self> {
        let mut listing = Self::default();
        let entries = directory.list(prefix.trim_end_matches('/'))?;
        directory.prefetch_tree(prefix.trim_end_matches('/'), MOST_LISTED);
        prefetch_folders(directory, prefix, &entries);
        for entry in entries {
            if entry.name == "__array_schema.tdb" {
                listing.old_schema = true;
            } else if let Some(name) = TimedName::parse(&entry.name) {
                listing.root.push((name, entry.is_directory));
            }
        }
        let timed = |folder: &str| -> Result<Vec<TimedName>> {
            let entries = list_folder(directory, prefix, folder)?;
            Ok(entries.iter().filter_map(|entry| TimedName::parse(&entry.name)).collect())
        };
        listing.schemas = timed("__schema")?;
        listing.schemas.sort_by(|a, b| a.order().cmp(&b.order()));
        listing.commits = timed("__commits")?;
        listing.fragments = timed("__fragments")?;
        listing.fragment_metas =
            list_folder(directory, prefix, "__fragment_meta")?.into_iter().map(|entry| entry.name).collect();
        Ok(listing)
    }

    /// The schema for a time window: the last one that is not newer, or else the first.
    pub(crate) fn schema_at(&self, window: TimeWindow) -> Option<String> {
        let last = self.schemas.iter().rev().find(|name| name.end <= window.end);
        match last {
            Some(name) => Some(name.stem.clone()),
            None => self.oldest_schema(),
        }
    }

    pub(crate) fn oldest_schema(&self) -> Option<String> {
        if self.old_schema {
            return Some("__array_schema.tdb".to_owned());
        }
        self.schemas.first().map(|name| name.stem.clone())
    }
}

/// The committed objects of an array.
#[derive(Debug, Default)]
pub(crate) struct Commits {
    /// Fragments by name, with their directories relative to the store's root.
    pub(crate) fragments: BTreeMap<String, (TimedName, String)>,
    /// Vacuum lists: the fragments that a consolidated one replaces.
    pub(crate) vacuums: Vec<(TimedName, Vec<String>)>,
    /// Delete conditions, with their bytes if they are in a consolidated commit file.
    pub(crate) deletes: Vec<(TimedName, Option<Bytes>)>,
    /// Fragments committed by consolidated files.
    pub(crate) consolidated: HashSet<String>,
    /// Names listed in ignore files, last path component only.
    pub(crate) ignored: HashSet<String>,
}

/// The last part of a path.
fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

impl Commits {
    pub(crate) fn read(directory: &dyn Storage, prefix: &str, listing: &Listing) -> Result<Self> {
        let mut commits = Self::default();
        commits.read_root(directory, prefix, listing)?;
        let read = |name: &TimedName| -> Result<Bytes> {
            let key = format!("{prefix}__commits/{}.{}", name.stem, name.ending);
            Ok(directory.read(&key)?.unwrap_or_default())
        };
        for name in &listing.commits {
            match name.ending.as_str() {
                "wrt" => commits.add_fragment(name, prefix),
                "del" => commits.deletes.push((name.clone(), None)),
                "vac" => commits.vacuums.push((name.clone(), lines(&read(name)?))),
                "ign" => commits.ignored.extend(lines(&read(name)?)),
                "con" => {
                    let label = format!("{}/{prefix}__commits/{}.con", directory.name(), name.stem);
                    commits.read_consolidated(&read(name)?, prefix, &label)?;
                }
                _ => {}
            }
        }
        let Self { fragments, deletes, ignored, .. } = &mut commits;
        fragments.retain(|stem, _| {
            !ignored.contains(&format!("{stem}.wrt"))
                && !ignored.contains(&format!("{stem}.ok"))
                && !ignored.contains(stem)
        });
        deletes.retain(|(name, _)| !ignored.contains(&format!("{}.del", name.stem)));
        deletes.sort_by(|a, b| (a.0.order(), a.1.is_some()).cmp(&(b.0.order(), b.1.is_some())));
        deletes.dedup_by(|a, b| a.0.stem == b.0.stem);
        Ok(commits)
    }

    /// Returns true if the fragment of a vacuum list exists or was itself replaced. Otherwise, the list hides
    /// fragments without a replacement.
    pub(crate) fn replaces(&self, stem: &str) -> bool {
        self.fragments.contains_key(stem)
            || self
                .vacuums
                .iter()
                .any(|(other, names)| other.stem != stem && names.iter().any(|name| name == stem))
    }

    /// Before version 12: directories in the root, with an `.ok` file from version 5 on.
    fn read_root(&mut self, directory: &dyn Storage, prefix: &str, listing: &Listing) -> Result<()> {
        let ok: HashSet<&str> = listing
            .root
            .iter()
            .filter(|(name, _)| name.ending == "ok")
            .map(|(name, _)| name.stem.as_str())
            .collect();
        for (name, is_directory) in &listing.root {
            if name.ending == "vac" {
                let bytes = directory.read(&format!("{prefix}{}.vac", name.stem))?.unwrap_or_default();
                self.vacuums.push((name.clone(), lines(&bytes)));
            }
            if !*is_directory || !name.ending.is_empty() {
                continue;
            }
            let key = format!("{prefix}{}", name.stem);
            let committed = match name.version {
                Some(_) => ok.contains(name.stem.as_str()),
                None => directory.size(&format!("{key}/__fragment_metadata.tdb"))?.is_some(),
            };
            if committed {
                self.fragments.insert(name.stem.clone(), (name.clone(), key));
            }
        }
        Ok(())
    }

    fn add_fragment(&mut self, name: &TimedName, prefix: &str) {
        let fragment = TimedName { ending: String::new(), ..name.clone() };
        let key = format!("{prefix}__fragments/{}", name.stem);
        self.fragments.entry(name.stem.clone()).or_insert((fragment, key));
    }

    /// Parses the lines of `__commits/NAME.wrt`. A `u64` length and the bytes of the file follow the line of a
    /// delete.
    fn read_consolidated(&mut self, bytes: &Bytes, prefix: &str, label: &str) -> Result<()> {
        let place = Place::new(label, "consolidated commits", 0);
        let mut fields = Fields::new(bytes, place);
        while fields.remaining() > 0 {
            let line_place = fields.place();
            let length = fields.rest().iter().position(|byte| *byte == b'\n').unwrap_or(fields.remaining());
            let line = String::from_utf8_lossy(fields.bytes(length)?).into_owned();
            fields.skip(1.min(fields.remaining()))?;
            let Some(name) = TimedName::parse(last_part(&line)) else {
                return Err(line_place.corrupt(format!("the line {line:?} is not a commit")));
            };
            if matches!(name.ending.as_str(), "wrt" | "ok") {
                self.consolidated.insert(name.stem.clone());
            }
            match name.ending.as_str() {
                "del" | "upd" => {
                    let length = fields.count_u64(1)?;
                    let start = fields.position();
                    fields.skip(length)?;
                    if name.ending == "del" {
                        self.deletes.push((name, Some(bytes.slice(start..start + length))));
                    }
                }
                "ok" => {
                    let key = format!("{prefix}{}", name.stem);
                    let fragment = TimedName { ending: String::new(), ..name.clone() };
                    self.fragments.entry(name.stem.clone()).or_insert((fragment, key));
                }
                _ => self.add_fragment(&name, prefix),
            }
        }
        Ok(())
    }
}

/// The last path components of a list of paths. Lines that do not name a fragment or a commit are ignored, because listed objects
/// may be removed.
fn lines(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let names = text.lines().map(last_part).filter(|name| TimedName::parse(name).is_some());
    names.map(str::to_owned).collect()
}
