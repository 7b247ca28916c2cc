//! Reads: plan → locate → fetch → decode → assemble, in parallel over chunks.

mod view;

use std::sync::Arc;

use rayon::prelude::*;

use hyperslab_core::{
    Array, ArraySchema, Buffer, Elements, Error, Fill, Plan, Positions, Result, Selection, Store, Values,
    Windows, gather_elements, locate, needs_elements, read_chunk, read_chunk_elements, result_bytes,
};

use crate::labels;

/// Chunks that one task locates and reads: enough to share index blocks, few enough to keep all cores busy.
const CHUNKS_PER_TASK: u64 = 32;

/// An array of an open store, ready to be read.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("x.npy");
/// # let values = hyperslab::Values::new(hyperslab::DType::UInt8, &[2, 3], hyperslab::Elements::fixed(vec![0, 1, 2, 3, 4, 5]))?;
/// # hyperslab::export::write_npy(&values, &mut std::fs::File::create(&path)?)?;
/// let store = hyperslab::open(&path)?;
/// let array = store.array("/")?;
/// let column = array.read(&"[:, -1]".parse()?)?;
/// assert_eq!(column.as_slice::<u8>(), Some(&[2, 5][..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct ArrayReader {
    array: Arc<dyn Array>,
    store: Arc<dyn Store>,
    memory: u64,
}

impl ArrayReader {
    pub(crate) fn new(array: Arc<dyn Array>, store: Arc<dyn Store>, memory: u64) -> Self {
        Self { array, store, memory }
    }

    /// What the array is.
    #[must_use]
    pub fn schema(&self) -> &ArraySchema {
        self.array.schema()
    }

    /// The array itself, as its format answers for it.
    #[must_use]
    pub const fn inner(&self) -> &Arc<dyn Array> {
        &self.array
    }

    /// The store that the array is in.
    pub(crate) const fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The most memory that a result may take.
    pub(crate) const fn memory(&self) -> u64 {
        self.memory
    }

    /// The positions that a selection means here: names and labels looked up, bounds checked.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) for what the array does not have.
    pub fn resolve(&self, selection: &Selection) -> Result<Positions> {
        let schema = self.schema();
        let selection = labels::resolve(selection, schema, &*self.store)?;
        selection.resolve(schema.shape(), &schema.dimensions)
    }

    /// The plan of reading a selection: which chunks, which part of each, where it goes.
    ///
    /// # Errors
    ///
    /// As [`resolve`](Self::resolve).
    pub fn plan(&self, selection: &Selection) -> Result<Plan> {
        Plan::new(&self.schema().grid, self.resolve(selection)?)
    }

    /// Reads a selection. A contiguous selection of raw chunks is a view into the mapped file: nothing is
    /// copied.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) for a selection that the array does not have or memory cannot hold; otherwise
    /// whatever the file's bytes give rise to.
    pub fn read(&self, selection: &Selection) -> Result<Values> {
        self.read_positions(self.resolve(selection)?)
    }

    /// As [`read`](Self::read), by resolved positions.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn read_positions(&self, positions: Positions) -> Result<Values> {
        let plan = Plan::new(&self.schema().grid, positions)?;
        let elements = if needs_elements(&*self.array) {
            self.read_elements(&plan)?
        } else if let Some(view) = view::contiguous(&*self.array, &plan)? {
            Elements::fixed(view)
        } else {
            let bytes = self.affordable(&plan)?;
            // Without a fill value a hole is an error: look before taking memory for a claim.
            if self.schema().fill == Fill::Refused && !plan.is_empty() {
                locate(&*self.array, &plan, 0)?;
            }
            let mut buffer = Buffer::zeroed(bytes)?;
            self.fill(&plan, buffer.as_mut_slice())?;
            Elements::fixed(buffer.freeze())
        };
        Values::new(self.schema().dtype.clone(), &plan.positions().shape(), elements)
    }

    /// Reads a selection into the caller's buffer: C order, native byte order, exactly as many bytes as the
    /// result has.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read); [`Invalid`](Error::Invalid) also for a buffer of another size, or elements that
    /// have no fixed size.
    pub fn read_into(&self, selection: &Selection, out: &mut [u8]) -> Result<()> {
        if needs_elements(&*self.array) {
            return Err(Error::invalid(format!(
                "{}: elements of {} cannot be read into a plain buffer",
                self.array.name(),
                self.schema().dtype
            )));
        }
        self.fill(&self.plan(selection)?, out)
    }

    /// Fills `out` with the result of a plan, in parallel over its chunks.
    fn fill(&self, plan: &Plan, out: &mut [u8]) -> Result<()> {
        let item = self.schema().dtype.size().unwrap_or(0);
        let windows = Windows::new(plan, item, out)?;
        let array = &*self.array;
        tasks(plan).try_for_each(|(start, count)| {
            let part: Vec<_> = (start..start + count).filter_map(|index| windows.take(index)).collect();
            let coords: Vec<_> = part.iter().map(|(wanted, _)| wanted.coord.clone()).collect();
            let references = array.locate(&coords)?;
            for ((wanted, mut window), reference) in part.into_iter().zip(&references) {
                read_chunk(array, &wanted, reference.as_ref(), &mut window)?;
            }
            Ok(())
        })
    }

    fn read_elements(&self, plan: &Plan) -> Result<Elements> {
        let array = &*self.array;
        let parts: Vec<Vec<Elements>> = tasks(plan)
            .map(|(start, count)| {
                let coords: Vec<_> = (start..start + count).map(|index| plan.chunk(index).coord).collect();
                let references = array.locate(&coords)?;
                let chunks = coords.iter().zip(&references);
                chunks
                    .map(|(coord, reference)| read_chunk_elements(array, coord, reference.as_ref()))
                    .collect()
            })
            .collect::<Result<_>>()?;
        let chunks: Vec<Elements> = parts.into_iter().flatten().collect();
        gather_elements(array, plan, &chunks)
    }

    /// The result's bytes, refused when they pass the memory that may be used.
    fn affordable(&self, plan: &Plan) -> Result<usize> {
        let bytes = result_bytes(&*self.array, plan)?;
        if bytes as u64 > self.memory {
            return Err(Error::invalid(format!(
                "{}: the result has {bytes} bytes, {} may be used; select less or allow more memory",
                self.array.name(),
                self.memory
            )));
        }
        Ok(bytes)
    }
}

/// A plan's chunks in runs of neighbours: `(first, count)`, in parallel.
fn tasks(plan: &Plan) -> impl IndexedParallelIterator<Item = (u64, u64)> {
    let threads = rayon::current_num_threads() as u64;
    let each = (plan.len() / (threads * 8)).clamp(1, CHUNKS_PER_TASK);
    let runs = usize::try_from(plan.len().div_ceil(each)).unwrap_or(usize::MAX);
    let length = plan.len();
    (0..runs).into_par_iter().with_max_len(1).map(move |run| {
        let start = run as u64 * each;
        (start, each.min(length - start))
    })
}
