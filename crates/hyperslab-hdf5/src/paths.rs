//! From addresses back to paths, for references.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use hyperslab_core::child_path;

use crate::file::{File, lock};
use crate::group::Group;
use crate::header::{Header, Kind};
use crate::message::link::LinkTarget;

/// The paths that are known so far.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    known: HashMap<u64, String>,
    /// Was the whole tree walked?
    complete: bool,
}

/// Remembers the paths of a group's children: references mostly lead to neighbours, and none of these is opened.
pub(crate) fn learn(file: &File, path: &str, group: &Group) {
    let Ok(links) = group.all(file) else { return };
    let mut paths = lock(&file.paths);
    for link in links {
        if let LinkTarget::Hard(address) = link.target {
            paths.known.entry(address).or_insert_with(|| child_path(path, &link.name));
        }
    }
}

/// The path of the object at this address; `None` when nothing leads there.
pub(crate) fn path_of(file: &Arc<File>, address: u64) -> Option<String> {
    if address == file.superblock.root {
        return Some("/".to_owned());
    }
    {
        let paths = lock(&file.paths);
        if let Some(path) = paths.known.get(&address) {
            return Some(path.clone());
        }
        if paths.complete {
            return None;
        }
    }
    let walked = walk(file);
    let mut paths = lock(&file.paths);
    for (address, path) in walked {
        paths.known.entry(address).or_insert(path);
    }
    paths.complete = true;
    paths.known.get(&address).cloned()
}

/// All objects, each by the shortest path to it. What is damaged is passed over.
fn walk(file: &Arc<File>) -> HashMap<u64, String> {
    let mut found = HashMap::from([(file.superblock.root, "/".to_owned())]);
    let mut groups = VecDeque::from([(file.superblock.root, "/".to_owned())]);
    while let Some((address, path)) = groups.pop_front() {
        let Ok(links) = Group::open(file, address).and_then(|group| group.all(file)) else { continue };
        for link in links {
            let LinkTarget::Hard(address) = link.target else { continue };
            if found.contains_key(&address) {
                continue;
            }
            let path = child_path(&path, &link.name);
            found.insert(address, path.clone());
            let kind = Header::read(file, address).and_then(|header| header.kind(file));
            if matches!(kind, Ok(Kind::Group)) {
                groups.push_back((address, path));
            }
        }
    }
    found
}
