//! Changes to the attributes of existing arrays and groups.

use std::collections::BTreeMap;

use hyperslab_core::Attributes;

use crate::footer::{MISSING_MARKERS, Metadata};
use crate::write::{Described, delete_from_group, set_group};

#[derive(Debug)]
enum Change {
    Set(Attributes),
    Delete(Vec<String>),
}

/// Changes in the order in which they apply.
#[derive(Debug, Default)]
pub(super) struct AttributeChanges {
    /// By the names of the datasets.
    arrays: BTreeMap<String, Vec<Change>>,
    /// By the paths of the groups.
    groups: BTreeMap<String, Vec<Change>>,
}

/// An array by the name of its dataset, or a group by its path.
#[derive(Debug)]
pub(super) enum Owner {
    Array(String),
    Group(String),
}

impl AttributeChanges {
    pub(super) fn is_empty(&self) -> bool {
        self.arrays.is_empty() && self.groups.is_empty()
    }

    fn of(&mut self, owner: Owner) -> &mut Vec<Change> {
        match owner {
            Owner::Array(name) => self.arrays.entry(name).or_default(),
            Owner::Group(path) => self.groups.entry(path).or_default(),
        }
    }

    pub(super) fn set(&mut self, owner: Owner, attributes: &Attributes) {
        self.of(owner).push(Change::Set(attributes.clone()));
    }

    pub(super) fn delete(&mut self, owner: Owner, names: &[&str]) {
        self.of(owner).push(Change::Delete(names.iter().map(|name| (*name).to_owned()).collect()));
    }

    /// Returns true if an array gets another marker of missing values, which zone maps depend on.
    pub(super) fn change_markers(&self) -> bool {
        let is_marker = |name: &str| MISSING_MARKERS.contains(&name);
        self.arrays.values().flatten().any(|change| match change {
            Change::Set(attributes) => attributes.iter().any(|(name, _)| is_marker(name)),
            Change::Delete(names) => names.iter().any(|name| is_marker(name)),
        })
    }

    pub(super) fn apply(&self, metadata: &mut Metadata) {
        for (name, changes) in &self.arrays {
            let mut described = Described::take_from(name, metadata);
            for change in changes {
                match change {
                    Change::Set(attributes) => described.set(attributes),
                    Change::Delete(names) => names.iter().for_each(|name| described.delete(name)),
                }
            }
            described.add_to(name, metadata);
        }
        let own = metadata.own.get_or_insert_default();
        for (path, changes) in &self.groups {
            for change in changes {
                match change {
                    Change::Set(attributes) => set_group(path, attributes, own),
                    Change::Delete(names) => delete_from_group(path, names, own),
                }
            }
        }
    }
}
