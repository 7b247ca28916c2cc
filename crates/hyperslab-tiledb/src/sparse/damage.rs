//! Finds the fragments of sparse arrays that cannot be read.

use std::fmt;
use std::sync::Arc;

use hyperslab_core::{Error, Node, Result, Scan, Store, Table, child_path, is_child_path};

use super::SparseTable;
use super::reader::FragmentReader;
use crate::store::TileDbStore;

/// The maximum number of visited nodes. A limit is needed because a group can contain itself.
const MOST_NODES: usize = 1 << 16;

/// A fragment that cannot be read.
#[derive(Debug)]
pub(crate) struct DamagedFragment {
    /// The node of its array.
    pub(crate) node: String,
    /// Its name.
    pub(crate) name: String,
    /// The number of its rows, if its metadata can be read.
    rows: Option<u64>,
    why: Error,
}

impl fmt::Display for DamagedFragment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rows {
            Some(rows) => write!(f, "the {rows} rows of the fragment {}: {}", self.name, self.why),
            None => write!(f, "the rows of the fragment {}: {}", self.name, self.why),
        }
    }
}

/// The fragments of all sparse arrays that cannot be read. Reads everything.
pub(crate) fn damaged_fragments(store: &TileDbStore) -> Result<Vec<DamagedFragment>> {
    let (mut damaged, mut pending) = (Vec::new(), vec!["/".to_owned()]);
    let mut visited = 0;
    while let Some(node) = pending.pop() {
        visited += 1;
        if visited > MOST_NODES {
            return Err(Error::invalid(format!("{}: more than {MOST_NODES} nodes", store.name())));
        }
        if let Some(table) = store.sparse_table(&node)? {
            damaged.extend(table.damaged(&node)?);
        } else if let Ok(Node::Group(_)) = store.node(&node) {
            let names = store.children(&node).unwrap_or_default();
            pending
                .extend(names.iter().map(|name| child_path(&node, name)).filter(|path| is_child_path(path)));
        }
    }
    Ok(damaged)
}

impl SparseTable {
    fn damaged(&self, node: &str) -> Result<Vec<DamagedFragment>> {
        let mut damaged = Vec::new();
        for (name, key) in self.array.visible()? {
            let stem = name.stem.clone();
            let reader = self
                .array
                .open_fragment(name, key, None)
                .and_then(|fragment| FragmentReader::new(&self.array, Arc::new(fragment)));
            let rows = reader.as_ref().ok().map(FragmentReader::rows);
            if let Err(why) = reader.and_then(|reader| self.read_alone(reader)) {
                damaged.push(DamagedFragment { node: node.to_owned(), name: stem, rows, why });
            }
        }
        Ok(damaged)
    }

    /// Reads all rows of one fragment.
    fn read_alone(&self, reader: FragmentReader) -> Result<()> {
        let alone = Self::new(Arc::clone(&self.array), "/")?;
        let _ = alone.readers.set(vec![Arc::new(reader)]);
        for batch in alone.scan(&Scan::default())? {
            batch?;
        }
        Ok(())
    }
}
