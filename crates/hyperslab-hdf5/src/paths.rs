//! Maps addresses back to paths, for references.

use std::collections::HashMap;
use std::collections::HashSet;
use std::collections::hash_map::{DefaultHasher, Entry};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use hyperslab_core::child_path;

use crate::file::{File, lock};
use crate::group::Group;
use crate::header::Header;
use crate::message::link::LinkTarget;

/// The paths known so far.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    known: HashMap<u64, String>,
    /// Objects that only one path leads to.
    sure: HashSet<u64>,
    /// Whether the whole tree was walked.
    complete: bool,
}

/// Records the paths of a group's children, without opening them. References mostly lead to neighbours.
pub(crate) fn learn(file: &File, path: &str, group: &Group) {
    let Ok(links) = group.all(file) else { return };
    let mut paths = lock(&file.paths);
    for link in links {
        if let LinkTarget::Hard(address) = link.target {
            let Entry::Vacant(unknown) = paths.known.entry(address) else { continue };
            if file.allocate((path.len() + link.name.len() + 64) as u64, "object paths").is_err() {
                return;
            }
            unknown.insert(child_path(path, &link.name));
        }
    }
}

/// The path of the object at this address; `None` if there is none.
pub(crate) fn path_of(file: &Arc<File>, address: u64) -> Option<String> {
    if address == file.superblock.root {
        return Some("/".to_owned());
    }
    let (known, sure) = {
        let paths = lock(&file.paths);
        (paths.known.get(&address).cloned(), paths.complete || paths.sure.contains(&address))
    };
    // Many references may lead to one object, whose header is read once.
    if known.is_some() && sure {
        return known;
    }
    if known.is_some() && Header::read(file, address).is_ok_and(|header| header.links <= 1) {
        lock(&file.paths).sure.insert(address);
        return known;
    }
    if !lock(&file.paths).complete {
        let walked = walk(file);
        let mut paths = lock(&file.paths);
        paths.known.extend(walked);
        paths.complete = true;
    }
    lock(&file.paths).known.get(&address).cloned()
}

/// All objects, each by its first path: depth first, by name, as in libhdf5. Damaged parts are skipped.
fn walk(file: &Arc<File>) -> HashMap<u64, String> {
    let mut found = HashMap::new();
    let mut pending = vec![(file.superblock.root, "/".to_owned())];
    while let Some((address, path)) = pending.pop() {
        if found.contains_key(&address) {
            continue;
        }
        // Paths in deep trees are long. Objects are left unnamed if their paths are out of proportion to the file.
        if file.allocate(2 * path.len() as u64 + 64, "object paths").is_err() {
            break;
        }
        found.insert(address, path.clone());
        let Ok(group) = Group::open(file, address) else { continue };
        let Ok(mut links) = group.all(file) else { continue };
        links.sort_by(|a, b| b.name.as_bytes().cmp(a.name.as_bytes()));
        for link in links {
            if let LinkTarget::Hard(address) = link.target
                && !found.contains_key(&address)
            {
                pending.push((address, child_path(&path, &link.name)));
            }
        }
    }
    found
}

/// The number of additional paths to groups, and the number per group.
const ALIASES: usize = 1 << 10;
const ALIASES_PER_GROUP: usize = 16;

/// The paths by which callers reached groups.
///
/// Links can lead to one group by many paths: `n` groups with two links each to the next have `2^n` of them. A caller that walks
/// all paths sees the first ones as groups. If there are far more paths than groups, further ones are reported as links.
#[derive(Debug, Default)]
pub(crate) struct Reached {
    /// By the hash of file and address: the hash of the first path.
    first: HashMap<u64, u64>,
    /// The hashes of other paths.
    others: HashSet<u64>,
}

impl Reached {
    /// Records that a path leads to the group at this address of the file. Returns whether it still counts as a group.
    pub(crate) fn reach(&mut self, file: &str, address: u64, path: &str) -> bool {
        let (group, path) = (hash(&(file, address)), hash(&path));
        let first = *self.first.entry(group).or_insert(path);
        if first == path || self.others.contains(&path) {
            return true;
        }
        let most = ALIASES + ALIASES_PER_GROUP * self.first.len();
        self.others.len() < most && self.others.insert(path)
    }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
