//! Dataset names as a tree of nodes.
//!
//! A name with `/` is a path, and its groups are implied. The format does not check names: those that cannot be in the tree
//! (empty, duplicate, below another array) are listed under the root as `#` and the dataset's id.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use hyperslab_core::{child_path, normal_path};

use crate::dataset::Dataset;

/// Longer or deeper names are only listed by id, because each part of a path costs memory.
const MOST_NAME: usize = 1024;
const MOST_PARTS: usize = 32;

/// The paths of all datasets.
#[derive(Debug)]
pub(crate) struct Tree {
    arrays: HashMap<String, usize>,
    groups: HashMap<String, Vec<String>>,
    paths: Vec<String>,
}

impl Tree {
    /// The tree of these datasets, and of groups that may be empty.
    pub(crate) fn new<'g>(datasets: &[Dataset], groups: impl Iterator<Item = &'g str>) -> Self {
        let mut tree = Self::of_datasets(datasets);
        for path in groups.filter_map(path_of) {
            // A group is listed like an array, unless it already exists.
            if !tree.arrays.contains_key(&path) && !tree.groups.contains_key(&path) && tree.list(&path) {
                tree.groups.insert(path, Vec::new());
            }
        }
        tree
    }

    fn of_datasets(datasets: &[Dataset]) -> Self {
        let mut arrays = HashMap::new();
        let normal: Vec<Option<String>> = datasets.iter().map(|dataset| path_of(&dataset.name)).collect();
        for (id, path) in normal.iter().enumerate() {
            if let Some(path) = path {
                arrays.entry(path.clone()).or_insert(id);
            }
        }
        let groups = HashMap::from([("/".to_owned(), Vec::new())]);
        let mut tree = Self { arrays, groups, paths: Vec::with_capacity(datasets.len()) };
        for (id, path) in normal.into_iter().enumerate() {
            let path = match path {
                Some(path) if tree.arrays.get(&path) == Some(&id) && tree.list(&path) => path,
                _ => tree.list_by_id(id),
            };
            tree.paths.push(path);
        }
        tree
    }

    /// Lists an array under its groups; `false` if one of them is an array.
    fn list(&mut self, path: &str) -> bool {
        let parents = || path.match_indices('/').skip(1).map(|(end, _)| &path[..end]);
        if parents().any(|parent| self.arrays.contains_key(parent)) {
            return false;
        }
        let (mut above, mut start) = ("/", 1);
        for parent in parents() {
            if let Entry::Vacant(vacant) = self.groups.entry(parent.to_owned()) {
                vacant.insert(Vec::new());
                self.groups.entry(above.to_owned()).or_default().push(parent[start..].to_owned());
            }
            (above, start) = (parent, parent.len() + 1);
        }
        self.groups.entry(above.to_owned()).or_default().push(path[start..].to_owned());
        true
    }

    fn list_by_id(&mut self, id: usize) -> String {
        let mut name = format!("#{id}");
        while self.arrays.contains_key(&child_path("/", &name)) {
            name.insert(0, '#');
        }
        let path = child_path("/", &name);
        self.arrays.insert(path.clone(), id);
        self.groups.entry("/".to_owned()).or_default().push(name);
        path
    }

    /// The dataset at a path. Every dataset is also found as `#` and its id.
    pub(crate) fn array(&self, path: &str) -> Option<usize> {
        let by_id = || path.strip_prefix("/#")?.parse().ok().filter(|id| *id < self.paths.len());
        self.arrays.get(path).copied().or_else(by_id)
    }

    /// The names under a group.
    pub(crate) fn group(&self, path: &str) -> Option<&[String]> {
        self.groups.get(path).map(Vec::as_slice)
    }

    /// The path under which a dataset is listed.
    pub(crate) fn path(&self, id: usize) -> Option<&str> {
        self.paths.get(id).map(String::as_str)
    }
}

/// The path for a name; `None` if it cannot have one.
fn path_of(name: &str) -> Option<String> {
    if name.len() > MOST_NAME || name.matches('/').count() >= MOST_PARTS {
        return None;
    }
    Some(normal_path(name)).filter(|path| path != "/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(names: &[&str]) -> Tree {
        let dataset = |name: &&str| Dataset {
            name: (*name).into(),
            dtype_code: 1,
            shape: [1].as_slice().into(),
            chunk_shape: [1].as_slice().into(),
        };
        Tree::new(&names.iter().map(dataset).collect::<Vec<_>>(), ["g/h", "a/b", "e"].into_iter())
    }

    #[test]
    fn slashes_make_groups() {
        let tree = tree(&["a/b/c", "a/b/d", "e", "a/f"]);
        assert_eq!(tree.group("/").unwrap(), ["a", "e", "g"]);
        assert_eq!(tree.group("/g").unwrap(), ["h"]);
        assert_eq!(tree.group("/g/h").unwrap(), [""; 0]);
        assert_eq!(tree.group("/e"), None);
        assert_eq!(tree.group("/a").unwrap(), ["b", "f"]);
        assert_eq!(tree.group("/a/b").unwrap(), ["c", "d"]);
        assert_eq!(tree.array("/a/b/d"), Some(1));
        assert_eq!(tree.array("/a"), None);
    }

    #[test]
    fn invalid_names_are_listed_by_id() {
        let long = "x".repeat(2000);
        let deep = "y/".repeat(1000);
        let names = ["", "a", "a", "a/b", "/a/", "/", "#0", &long, &deep];
        let tree = tree(&names);
        assert_eq!(
            tree.group("/").unwrap(),
            ["##0", "a", "#2", "#3", "#4", "#5", "#0", "#7", "#8", "g", "e"]
        );
        assert_eq!(tree.array("/a"), Some(1));
        assert_eq!(tree.array("/a/b"), Some(3));
        assert_eq!(tree.array("/#0"), Some(6));
        assert_eq!(tree.array("/##0"), Some(0));
        assert_eq!(tree.array("/#1"), Some(1));
        assert_eq!(tree.array("/#9"), None);
        for id in 0..names.len() {
            assert_eq!(tree.array(tree.path(id).unwrap()), Some(id));
        }
    }
}
