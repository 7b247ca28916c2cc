//! A view of a damaged store in which unreadable content is missing.

use std::ops::ControlFlow;
use std::sync::Arc;

use hyperslab_core::{
    Array, ArraySchema, ChunkCoord, ChunkRef, Depth, Error, Fill, Node, Positions, Report, Result, Store,
    StoredGroup, child_path, is_child_path, read_serial,
};

use super::Losses;
use crate::adapt::forward_to;

/// The readable content of a damaged store.
#[derive(Debug)]
pub(super) struct SalvagedStore {
    /// The store as it is, and the store as if it were not truncated. The first one that returns a result is used.
    stores: Vec<Arc<dyn Store>>,
    losses: Losses,
}

impl SalvagedStore {
    /// Fails if even the root cannot be read.
    pub(super) fn new(stores: Vec<Arc<dyn Store>>, losses: Losses) -> Result<Self> {
        let own = Self { stores, losses };
        own.first(|store| store.node("/"))?;
        Ok(own)
    }

    /// The first result, or the first error if all fail.
    fn first<T>(&self, ask: impl Fn(&Arc<dyn Store>) -> Result<T>) -> Result<T> {
        let mut failed = None;
        for store in &self.stores {
            match ask(store) {
                Ok(answer) => return Ok(answer),
                Err(why) => failed = failed.or(Some(why)),
            }
        }
        Err(failed.unwrap_or_else(|| Error::invalid("nothing to salvage")))
    }
}

impl Store for SalvagedStore {
    fn format(&self) -> &'static str {
        self.stores[0].format()
    }

    fn variant(&self) -> Option<&'static str> {
        self.stores[0].variant()
    }

    fn name(&self) -> &Arc<str> {
        self.stores[0].name()
    }

    fn children(&self, path: &str) -> Result<Vec<String>> {
        let names = match self.first(|store| store.children(path)) {
            Ok(names) => names,
            Err(why) => {
                self.losses.note(path, &why);
                return Ok(Vec::new());
            }
        };
        let readable = |name: &String| {
            let below = child_path(path, name);
            let found = if is_child_path(&below) {
                self.first(|store| store.node(&below)).map(|_| ())
            } else {
                Err(Error::invalid("its name is empty or \".\""))
            };
            found.map_err(|why| self.losses.note(&below, &why)).is_ok()
        };
        Ok(names.into_iter().filter(readable).collect())
    }

    fn node(&self, path: &str) -> Result<Node> {
        Ok(match self.first(|store| store.node(path))? {
            Node::Array(array) => Node::Array(Arc::new(SalvagedArray::new(path, array, self.losses.clone()))),
            other => other,
        })
    }

    fn stored_group(&self, path: &str) -> Result<StoredGroup> {
        Ok(self.first(|store| store.stored_group(path)).unwrap_or_default())
    }

    fn verify(&self, depth: Depth, report: &mut Report) -> Result<()> {
        self.stores[0].verify(depth, report)
    }
}

/// An array whose damaged chunks appear as never written.
#[derive(Debug)]
struct SalvagedArray {
    path: String,
    inner: Arc<dyn Array>,
    schema: ArraySchema,
    losses: Losses,
}

impl SalvagedArray {
    fn new(path: &str, inner: Arc<dyn Array>, losses: Losses) -> Self {
        let mut schema = inner.schema().clone();
        // A lost chunk must read as some value.
        if schema.fill == Fill::Undefined {
            schema.fill = Fill::Zero;
        }
        schema.stored.layout = None;
        schema.stored.named_type = None;
        Self { path: path.to_owned(), inner, schema, losses }
    }

    /// Locates a chunk, after reading it once and comparing its checksum.
    fn checked(&self, chunk: &ChunkCoord) -> Result<Option<ChunkRef>> {
        let found = self.inner.locate(std::slice::from_ref(chunk))?.pop().flatten();
        if let Some(reference) = &found {
            self.inner.verify_checksum(chunk, reference)?;
            read_serial(&*self.inner, Positions::region(&self.schema.grid.region(chunk)))?;
        }
        Ok(found)
    }
}

impl Array for SalvagedArray {
    forward_to!(inner: name, blob, decode, decode_elements, visits_every_chunk, stored_form, fetch);

    fn schema(&self) -> &ArraySchema {
        &self.schema
    }

    fn locate(&self, chunks: &[ChunkCoord]) -> Result<Vec<Option<ChunkRef>>> {
        let one = |chunk: &ChunkCoord| {
            self.checked(chunk).unwrap_or_else(|why| {
                let cells = self.schema.grid.region(chunk).cells().unwrap_or(0);
                let bytes = cells.saturating_mul(self.schema.dtype.size().unwrap_or(0) as u64);
                self.losses.note_chunk(&self.path, chunk, bytes, &why);
                None
            })
        };
        Ok(chunks.iter().map(one).collect())
    }

    fn visit_chunks(
        &self,
        visit: &mut dyn FnMut(ChunkCoord, ChunkRef) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let mut refused = None;
        let walked = self.inner.visit_chunks(&mut |chunk, _| {
            let found = self.locate(std::slice::from_ref(&chunk))?.pop().flatten();
            let Some(reference) = found else { return Ok(ControlFlow::Continue(())) };
            visit(chunk, reference).or_else(|why| {
                refused = Some(why);
                Ok(ControlFlow::Break(()))
            })
        });
        match (refused, walked) {
            (Some(why), _) => Err(why),
            (None, Err(why)) => {
                // The rest of the index is lost, with the chunks it refers to.
                self.losses.note(&self.path, &why);
                Ok(())
            }
            (None, Ok(())) => Ok(()),
        }
    }
}
