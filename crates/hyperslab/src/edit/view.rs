//! A view of a store with changes applied: nodes renamed or left out, attributes changed. Nothing is written.

use std::sync::Arc;

use hyperslab_core::{
    Array, Depth, Error, Link, LinkTarget, Node, ObjectId, Report, Result, Store, StoredGroup,
    StoredNamedType, child_path, normal_path,
};
use serde_json::{Map, Value};

use super::changes::{Changes, base, parent};
use crate::OpenStore;
use crate::adapt::Described;

/// A view of the store with the changes applied.
pub(crate) fn edited(store: &OpenStore, changes: Changes) -> OpenStore {
    let view = EditedStore { inner: Arc::clone(store.inner()), changes };
    OpenStore::from_store(Arc::new(view), store.path())
}

/// A view of a store with changes applied.
#[derive(Debug)]
struct EditedStore {
    inner: Arc<dyn Store>,
    changes: Changes,
}

impl EditedStore {
    /// The path of a node in the source.
    fn source_path(&self, path: &str) -> Result<String> {
        let old = self.changes.to_old(path);
        if self.changes.to_new(&old) != path || self.changes.is_hidden(&old) {
            return Err(Error::not_found(Arc::clone(self.inner.name()), path));
        }
        Ok(old)
    }

    /// The children of a group with the changes applied: their paths in the source and their new names.
    fn members(&self, path: &str, names: Vec<String>) -> Result<Vec<(String, String)>> {
        let old = self.source_path(path)?;
        let own = names.into_iter().map(|name| child_path(&old, &name));
        let arrived = self.changes.renames.iter().map(|(from, _)| from.clone());
        let arrived = arrived.filter(|from| parent(from) != old);
        let members = own.chain(arrived).filter(|old| !self.changes.is_hidden(old));
        Ok(members
            .map(|old| (self.changes.to_new(&old), old))
            .filter(|(new, _)| parent(new) == path)
            .map(|(new, old)| (old, base(&new).to_owned()))
            .collect())
    }
}

impl Store for EditedStore {
    fn format(&self) -> &'static str {
        self.inner.format()
    }

    fn variant(&self) -> Option<&'static str> {
        self.inner.variant()
    }

    fn name(&self) -> &Arc<str> {
        self.inner.name()
    }

    fn is_remote(&self) -> bool {
        self.inner.is_remote()
    }

    fn children(&self, path: &str) -> Result<Vec<String>> {
        let names = self.inner.children(&self.source_path(path)?)?;
        Ok(self.members(path, names)?.into_iter().map(|(_, name)| name).collect())
    }

    fn node(&self, path: &str) -> Result<Node> {
        let old = self.source_path(path)?;
        let inner = &*self.inner;
        let attributes = |group: &str, own| self.changes.attributes(inner, (&old, group), own);
        Ok(match inner.node(&old)? {
            Node::Group(own) => Node::Group(attributes(&old, &own)?),
            Node::Type(dtype, own) => Node::Type(dtype, attributes(parent(&old), &own)?),
            Node::Array(array) => {
                let schema = self.changes.schema(inner, &old, array.schema())?;
                Node::Array(Arc::new(Described::new(array, schema)) as Arc<dyn Array>)
            }
            other if self.changes.edits_attributes_of(inner, &old)? => {
                let what = format!("editing the attributes of {}", other.kind().one());
                return Err(Error::unsupported(Arc::clone(self.inner.name()), what));
            }
            other => other,
        })
    }

    fn links(&self, path: &str) -> Result<Option<Vec<Link>>> {
        let Some(links) = self.inner.links(&self.source_path(path)?)? else { return Ok(None) };
        let names = links.iter().map(|link| link.name.clone()).collect();
        let mut found = Vec::new();
        for (old, name) in self.members(path, names)? {
            let Some(all) = self.inner.links(parent(&old))? else { return Ok(None) };
            let Some(mut link) = all.into_iter().find(|link| link.name == base(&old)) else { continue };
            link.utf8 |= !name.is_ascii();
            link.name = name;
            if let LinkTarget::Soft(to) = &mut link.target
                && to.starts_with('/')
            {
                *to = self.changes.to_new(&normal_path(to));
            }
            found.push(link);
        }
        Ok(Some(found))
    }

    fn identity(&self, path: &str) -> Result<Option<ObjectId>> {
        self.inner.identity(&self.source_path(path)?)
    }

    fn stored_group(&self, path: &str) -> Result<StoredGroup> {
        self.inner.stored_group(&self.source_path(path)?)
    }

    fn stored_type(&self, path: &str) -> Result<Option<StoredNamedType>> {
        self.inner.stored_type(&self.source_path(path)?)
    }

    fn preamble(&self) -> Result<Option<bytes::Bytes>> {
        self.inner.preamble()
    }

    fn page_size(&self) -> Result<Option<u64>> {
        self.inner.page_size()
    }

    fn details(&self) -> Result<Map<String, Value>> {
        self.inner.details()
    }

    fn verify(&self, depth: Depth, report: &mut Report) -> Result<()> {
        self.inner.verify(depth, report)
    }
}
