//! An array in memory that counts calls, local or remote.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::{
    ArraySchema, Blob, BlobKey, DType, Elements, Fill, Grid, MemoryBlob, Positions, Selection, Span, Values,
};

#[derive(Debug)]
struct Numbers {
    schema: ArraySchema,
    blob: Arc<dyn Blob>,
    remote: bool,
    /// The number of spans of each call to `fetch`.
    fetched: Mutex<Vec<usize>>,
    /// Return one location too few.
    short: AtomicBool,
}

impl Numbers {
    /// Chunk `i` holds the bytes `i * 4..i * 4 + 4`; every fifth was never written.
    fn new(chunks: u64, remote: bool) -> Self {
        let mut schema = ArraySchema::new(DType::UInt8, Grid::new(&[chunks * 4], &[4]).unwrap());
        schema.fill = Fill::Element(Elements::fixed(vec![255]));
        let bytes: Vec<u8> = (0..chunks * 4).map(|cell| cell as u8).collect();
        let blob = Arc::new(MemoryBlob::new("numbers", bytes));
        Self { schema, blob, remote, fetched: Mutex::default(), short: AtomicBool::new(false) }
    }

    fn expected(&self) -> Vec<u8> {
        let cells = self.schema.shape()[0];
        (0..cells).map(|cell| if cell / 4 % 5 == 4 { 255 } else { cell as u8 }).collect()
    }
}

impl Array for Numbers {
    fn schema(&self) -> &ArraySchema {
        &self.schema
    }

    fn name(&self) -> &str {
        "numbers"
    }

    fn locate(&self, chunks: &[ChunkCoord]) -> Result<Vec<Option<ChunkRef>>> {
        let mut located: Vec<_> = chunks
            .iter()
            .map(|chunk| (chunk[0] % 5 != 4).then(|| ChunkRef::encoded(BlobKey::Main, chunk[0] * 4, 4, 0)))
            .collect();
        if self.short.load(Ordering::Relaxed) {
            located.pop();
        }
        Ok(located)
    }

    fn blob(&self, _: &BlobKey) -> Result<Arc<dyn Blob>> {
        Ok(Arc::clone(&self.blob))
    }

    fn decode(&self, _: &ChunkCoord, _: &ChunkRef, stored: &[Bytes], out: &mut [u8]) -> Result<()> {
        out.copy_from_slice(&stored[0]);
        Ok(())
    }

    fn visit_chunks(&self, _: &mut dyn FnMut(ChunkCoord, ChunkRef) -> Result<ControlFlow<()>>) -> Result<()> {
        Ok(())
    }

    fn is_remote(&self) -> bool {
        self.remote
    }

    fn fetch(&self, spans: &[&Span]) -> Result<Vec<Option<Bytes>>> {
        self.fetched.lock().unwrap().push(spans.len());
        spans.iter().map(|span| self.blob.read_at(span.offset, span.length).map(Some)).collect()
    }
}

fn read(array: &Numbers, selection: &str) -> Result<Values> {
    let positions = selection.parse::<Selection>()?.resolve(array.schema.shape(), &[])?;
    read_serial(array, positions)
}

#[test]
fn local_and_remote_arrays_give_the_same_cells() {
    for chunks in [1, 7, 300, 1000] {
        let (local, remote) = (Numbers::new(chunks, false), Numbers::new(chunks, true));
        assert_eq!(read(&local, "[:]").unwrap().elements.as_fixed().unwrap()[..], local.expected());
        for selection in ["[:]", "[1:-1]", "[::-1]", "[::3]"] {
            assert_eq!(read(&local, selection).unwrap(), read(&remote, selection).unwrap());
        }
    }
}

#[test]
fn remote_chunks_are_requested_in_groups() {
    let (local, remote) = (Numbers::new(10_000, false), Numbers::new(10_000, true));
    read(&local, "[:]").unwrap();
    read(&remote, "[:]").unwrap();
    // Locally each of the 8,000 written chunks is fetched by itself; remotely, those of a batch together.
    assert_eq!(local.fetched.lock().unwrap().len(), 8000);
    let fetched = remote.fetched.lock().unwrap().clone();
    let batches = 10_000_u64.div_ceil(REMOTE_LOCATE_BATCH);
    assert_eq!((fetched.len() as u64, fetched.iter().sum::<usize>()), (batches, 8000));
}

#[test]
fn little_memory_means_small_groups() {
    let remote = Numbers::new(50, true);
    let plan = Plan::new(&remote.schema.grid, Positions::whole(remote.schema.shape())).unwrap();
    let mut visited = 0;
    let mut count = |_: &mut Chunk<'_>| {
        visited += 1;
        Ok(())
    };
    // A third of it is one group: two chunks of four bytes.
    visit_chunks(&remote, &plan, 0..plan.len(), &Context::new(24), &mut count).unwrap();
    assert_eq!(visited, 50);
    assert!(remote.fetched.lock().unwrap().iter().all(|spans| *spans <= 2));
}

#[test]
fn errors_and_cancellation_end_a_run() {
    for remote in [false, true] {
        let array = Numbers::new(100, remote);
        let plan = Plan::new(&array.schema.grid, Positions::whole(array.schema.shape())).unwrap();
        let mut fail = |chunk: &mut Chunk<'_>| match chunk.index() {
            3 => Err(Error::invalid("enough")),
            _ => Ok(()),
        };
        let error = visit_chunks(&array, &plan, 0..100, &Context::new(12), &mut fail).unwrap_err();
        assert_eq!(error.to_string(), "enough");
        let progress = Arc::new(Progress::default());
        progress.stop.store(true, Ordering::Relaxed);
        let context = Context::new(1 << 20).with_progress(progress);
        let mut take = |_: &mut Chunk<'_>| Ok(());
        let stopped = visit_chunks(&array, &plan, 0..100, &context, &mut take);
        assert!(matches!(stopped, Err(Error::Cancelled)));
        array.short.store(true, Ordering::Relaxed);
        assert!(
            read(&array, "[:]").unwrap_err().to_string().contains("returned 99 locations for 100 chunks")
        );
    }
}
