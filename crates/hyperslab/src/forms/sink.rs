//! Changes nodes that are stored in a form: the arrays of the form change together.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use hyperslab_core::{
    ArraySink, ArraySpec, Attributes, ChunkCoord, DType, Elements, EncodedChunk, Error, Grid, LinkTarget,
    Result, Sink, Store, StoredGroup, StoredNamedType,
};

use super::restore::{FormParts, parts_of};
use super::{Form, MASK, MASK_ENDING};

/// Wraps a sink for additions, so that nodes are grown, renamed and removed together with all arrays of their form.
pub(crate) fn formed(inner: Box<dyn Sink>, target: &Path) -> Box<dyn Sink> {
    Box::new(FormedSink { inner, target: target.to_owned(), store: None })
}

#[derive(Debug)]
struct FormedSink {
    inner: Box<dyn Sink>,
    target: PathBuf,
    /// The store before the changes, opened on first use.
    store: Option<Arc<dyn Store>>,
}

impl FormedSink {
    /// The arrays in which a node is stored. If the store cannot be opened there are none; the sink will report the
    /// reason.
    fn parts(&mut self, path: &str) -> Result<Option<FormParts>> {
        let store = match &self.store {
            Some(store) => Arc::clone(store),
            None => match crate::open(&self.target) {
                Ok(opened) => {
                    let store = Arc::clone(opened.as_stored().inner());
                    Arc::clone(self.store.insert(store))
                }
                Err(_) => return Ok(None),
            },
        };
        parts_of(store, path)
    }
}

impl Sink for FormedSink {
    fn group(&mut self, path: &str, attributes: &Attributes) -> Result<()> {
        self.inner.group(path, attributes)
    }

    fn group_as(&mut self, path: &str, attributes: &Attributes, stored: &StoredGroup) -> Result<()> {
        self.inner.group_as(path, attributes, stored)
    }

    fn link(&mut self, path: &str, target: &LinkTarget<String>) -> Result<()> {
        self.inner.link(path, target)
    }

    fn named_type(
        &mut self,
        path: &str,
        dtype: &DType,
        attributes: &Attributes,
        stored: &StoredNamedType,
    ) -> Result<()> {
        self.inner.named_type(path, dtype, attributes, stored)
    }

    fn dimension(&mut self, path: &str, length: u64, limit: Option<u64>) -> Result<()> {
        self.inner.dimension(path, length, limit)
    }

    fn array(&mut self, path: &str, spec: &ArraySpec) -> Result<Arc<dyn ArraySink>> {
        self.inner.array(path, spec)
    }

    fn grow(&mut self, path: &str, shape: &[u64]) -> Result<Arc<dyn ArraySink>> {
        let Some(parts) = self.parts(path)? else { return self.inner.grow(path, shape) };
        let mut grown = |path: &str, behind: &[u64]| self.inner.grow(path, &[shape, behind].concat());
        let mut sinks = Vec::new();
        for ((path, _), (_, leaf)) in parts.arrays.iter().zip(parts.form.leaves()) {
            sinks.push(grown(path, &leaf.axes())?);
        }
        let masked = parts.mask.is_some();
        if let Some((path, _)) = &parts.mask {
            sinks.push(grown(path, &[])?);
        }
        Ok(Arc::new(FormedArray::new(path, parts.form, sinks, masked, shape)?))
    }

    fn attributes(&mut self, path: &str, attributes: &Attributes) -> Result<()> {
        self.inner.attributes(path, attributes)
    }

    fn delete_attributes(&mut self, path: &str, names: &[&str]) -> Result<()> {
        self.inner.delete_attributes(path, names)
    }

    fn rename(&mut self, path: &str, to: &str) -> Result<()> {
        let parts = self.parts(path)?;
        self.inner.rename(path, to)?;
        if let Some((mask, _)) = parts.and_then(|parts| parts.mask) {
            let renamed = format!("{to}{MASK_ENDING}");
            self.inner.rename(&mask, &renamed)?;
            let name = renamed.rsplit('/').next().unwrap_or_default();
            self.inner.attributes(to, &Attributes::from_iter([(MASK, name)]))?;
        }
        Ok(())
    }

    fn remove(&mut self, path: &str) -> Result<()> {
        let parts = self.parts(path)?;
        self.inner.remove(path)?;
        match parts.and_then(|parts| parts.mask) {
            Some((mask, _)) => self.inner.remove(&mask),
            None => Ok(()),
        }
    }

    fn changes(&self) -> Vec<(String, String)> {
        self.inner.changes()
    }

    fn finish(&mut self) -> Result<Vec<(String, String)>> {
        self.inner.finish()
    }

    fn commit(self: Box<Self>) -> Result<()> {
        self.inner.commit()
    }
}

/// An array that is stored in several, each of which gets its part of every chunk.
#[derive(Debug)]
struct FormedArray {
    form: Form,
    /// The sinks of the leaves, then that of the mask.
    sinks: Vec<Arc<dyn ArraySink>>,
    masked: bool,
    grid: Grid,
    grown_from: Option<Vec<u64>>,
}

impl FormedArray {
    fn new(
        path: &str,
        form: Form,
        sinks: Vec<Arc<dyn ArraySink>>,
        masked: bool,
        shape: &[u64],
    ) -> Result<Self> {
        let first = sinks.first().ok_or_else(|| Error::invalid(format!("{path}: a form without arrays")))?;
        let chunk_shape = first.grid().chunk_shape().iter().take(shape.len()).copied().collect::<Vec<_>>();
        let fits = |sink: &Arc<dyn ArraySink>| {
            let (own, chunks) = (sink.grid().chunk_shape(), sink.grid().extents());
            own.starts_with(&chunk_shape) && chunks.iter().skip(shape.len()).all(|count| *count <= 1)
        };
        if !sinks.iter().all(fits) {
            return Err(Error::unsupported(
                path,
                "growing an array that is stored in several arrays with different chunks",
            ));
        }
        let old = |sink: &Arc<dyn ArraySink>| {
            sink.grown_from().map(|old| old.iter().take(shape.len()).copied().collect::<Vec<u64>>())
        };
        let grown_from = old(first);
        Ok(Self { grid: Grid::new(shape, &chunk_shape)?, form, sinks, masked, grown_from })
    }
}

/// The number of little-endian numbers that describe each array's part of a chunk.
const HEADER: usize = 4;

impl ArraySink for FormedArray {
    fn grid(&self) -> &Grid {
        &self.grid
    }

    fn grown_from(&self) -> Option<&[u64]> {
        self.grown_from.as_deref()
    }

    fn encode(&self, chunk: &ChunkCoord, elements: &Elements) -> Result<EncodedChunk> {
        let mut rows = self.form.encode(elements)?;
        if self.masked {
            let cells = self.grid.region(chunk).cells().unwrap_or(0) as usize;
            let flags: Vec<u8> = (0..cells).map(|cell| u8::from(elements.is_missing(cell))).collect();
            rows.push(Elements::fixed(flags));
        }
        let (mut parts, mut header, mut raw_length) = (vec![Bytes::new()], Vec::new(), 0_u64);
        for (sink, row) in self.sinks.iter().zip(&rows) {
            let mut own = chunk.clone();
            own.resize(sink.grid().rank(), 0);
            let encoded = sink.encode(&own, row)?;
            let numbers =
                [encoded.parts.len() as u64, u64::from(encoded.filter_mask), encoded.raw_length, encoded.tag];
            header.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
            raw_length = raw_length.saturating_add(encoded.raw_length);
            parts.extend(encoded.parts);
        }
        parts[0] = header.into();
        Ok(EncodedChunk { parts, filter_mask: 0, raw_length, tag: 0 })
    }

    fn any_order(&self) -> bool {
        self.sinks.iter().all(|sink| sink.any_order())
    }

    fn write(&self, chunk: &ChunkCoord, encoded: EncodedChunk) -> Result<()> {
        let mut parts = encoded.parts.into_iter();
        let header = parts.next().unwrap_or_default();
        let numbers: Vec<u64> =
            header.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
        for (sink, header) in self.sinks.iter().zip(numbers.chunks_exact(HEADER)) {
            let mut own = chunk.clone();
            own.resize(sink.grid().rank(), 0);
            let parts = parts.by_ref().take(header[0] as usize).collect();
            let filter_mask = u32::try_from(header[1]).unwrap_or(u32::MAX);
            let encoded = EncodedChunk { parts, filter_mask, raw_length: header[2], tag: header[3] };
            sink.write(&own, encoded)?;
        }
        Ok(())
    }
}
