//! Reads: visitors of the chunk pipeline that copy cells into a result.

mod dates;
mod explain;
mod numbers;
mod points;
mod rows;
mod view;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

use hyperslab_core::{
    Array, ArraySchema, Buffer, Chunk, ChunkList, Context, DType, Element, Elements, Error, Fill,
    LOCATE_BATCH, Number, OutputSlots, Plan, Positions, Progress, Result, Selection, Store, Threads,
    Validity, Values, gather_elements, locate, needs_elements, prefetch_index, result_bytes, visit_chunks,
};

pub use numbers::RealPart;
pub use points::AxisPick;

use crate::conventions::{Interpretation, as_booleans};
use crate::labels;
use rows::RowCopy;

/// A result of raw chunks below this size is copied on the caller's thread, because waking others takes longer.
const SMALL_RESULT: u64 = 64 << 10;

/// Remote chunks of up to this decoded size are fetched and decoded by more threads than there are cores.
const SMALL_CHUNK: usize = 8 << 20;

/// An array of an open store, ready for reading.
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
    context: Context,
    /// Whether values were decoded by the file's conventions, so that NaN marks a missing one.
    decoded: bool,
    /// The stored integers that mark missing values, if values keep their integer type.
    markers: Arc<[i128]>,
    /// Whether rows of its values hold dates, if they count time.
    dates_in_rows: bool,
}

impl ArrayReader {
    pub(crate) fn new(array: Arc<dyn Array>, store: Arc<dyn Store>, memory: u64) -> Self {
        let mut context = Context::new(memory);
        let chunk = array.schema().decoded_bytes(&vec![0; array.schema().shape().len()]).unwrap_or(1 << 20);
        if array.is_remote() && chunk <= SMALL_CHUNK {
            context.threads = Threads::for_remote();
        }
        Self { array, store, context, decoded: false, markers: Arc::default(), dates_in_rows: false }
    }

    /// The same reader of another array with the same cells.
    pub(crate) fn with_array(&self, array: Arc<dyn Array>) -> Self {
        Self { array, ..self.clone() }
    }

    /// Sets the threads for reads and queries.
    #[must_use]
    pub fn with_threads(mut self, threads: Threads) -> Self {
        self.context.threads = threads;
        self
    }

    /// Sets the progress, through which reads are watched and cancelled.
    #[must_use]
    pub fn with_progress(mut self, progress: Arc<Progress>) -> Self {
        self.context = self.context.with_progress(progress);
        self
    }

    /// Sets the memory limit for a result.
    #[must_use]
    pub const fn with_memory(mut self, memory: u64) -> Self {
        self.context.memory = memory;
        self
    }

    /// The threads and memory limit of operations on this array.
    #[must_use]
    pub const fn context(&self) -> &Context {
        &self.context
    }

    /// How the file's conventions interpret the array's values.
    #[must_use]
    pub fn interpretation(&self) -> Interpretation {
        Interpretation::of(self.schema())
    }

    /// The array with values decoded by the file's conventions: scaled, shifted, and NaN where one is missing. Queries of such an
    /// array leave out missing values. An array without conventions stays unchanged.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](Error::Unsupported) for a type that cannot be decoded.
    pub fn decoded(&self) -> Result<Self> {
        self.decoded_by(&self.interpretation(), false)
    }

    /// Like [`decoded`](Self::decoded), but values outside the valid range given in the file are missing too.
    ///
    /// # Errors
    ///
    /// As [`decoded`](Self::decoded).
    pub fn decoded_valid(&self) -> Result<Self> {
        self.decoded_by(&self.interpretation(), true)
    }

    /// Like [`decoded`](Self::decoded), for results that can mark missing elements: integers that are not packed keep their type,
    /// and those that stand for truth values become such. [`mark_missing`](Self::mark_missing) marks the missing values. In
    /// [rows](Self::rows), times become dates.
    ///
    /// # Errors
    ///
    /// As [`decoded`](Self::decoded).
    pub fn decoded_nullable(&self) -> Result<Self> {
        let mut interpretation = self.interpretation();
        if interpretation.is_packed() || !self.schema().dtype.is_integer() {
            return Ok(Self { dates_in_rows: true, ..self.decoded()? });
        }
        let markers = integers(&std::mem::take(&mut interpretation.missing)).collect();
        let mut own = Self { markers, ..self.decoded_by(&interpretation, false)? };
        own.dates_in_rows = true;
        if interpretation.is_boolean() {
            own.array = as_booleans(&own.array);
        }
        Ok(own)
    }

    /// Marks the values that the file's conventions declare missing, if the reader is
    /// [decoded](Self::decoded_nullable).
    #[must_use]
    pub fn mark_missing(&self, mut values: Values) -> Values {
        if self.decoded {
            return values.with_nan_missing();
        }
        let (Some(bytes), Some(size)) = (values.elements.as_fixed(), values.dtype.size()) else {
            return values;
        };
        if self.markers.is_empty() {
            return values;
        }
        let markers: Vec<_> = self.markers.iter().map(|marker| integer_bytes(*marker, size)).collect();
        let present = bytes.chunks_exact(size.max(1)).enumerate().map(|(index, element)| {
            !values.elements.is_missing(index) && !markers.iter().any(|marker| marker == element)
        });
        values.elements.validity = Some(Validity::from_flags(present));
        values
    }

    /// Returns true if [`mark_missing`](Self::mark_missing) may mark values.
    #[must_use]
    pub fn may_mark_missing(&self) -> bool {
        self.decoded || !self.markers.is_empty()
    }

    /// Like [`decoded`](Self::decoded), for queries: 64-bit integers that count time keep their type, so that answers are exact.
    /// The smallest integer marks a missing time, as in NumPy. With `valid_only`, values outside the valid range given in the
    /// file are missing too.
    ///
    /// # Errors
    ///
    /// As [`decoded`](Self::decoded).
    pub fn decoded_for_query(&self, valid_only: bool) -> Result<Self> {
        let mut interpretation = self.interpretation();
        let schema = self.schema();
        let exact = schema.dtype == DType::Int64
            && interpretation.unsigned.is_none()
            && !interpretation.is_packed()
            && self.counts_time();
        if exact {
            let not_a_time = Number::Integer(i64::MIN.into());
            if !interpretation.missing.contains(&not_a_time) {
                interpretation.missing.push(not_a_time);
            }
            if !valid_only || interpretation.valid == (None, None) {
                return Ok(Self { markers: integers(&interpretation.missing).collect(), ..self.clone() });
            }
        }
        self.decoded_by(&interpretation, valid_only)
    }

    /// The stored integers that mark missing values. Values that are floats have none: NaN marks them.
    pub(crate) fn markers(&self) -> &[i128] {
        &self.markers
    }

    fn decoded_by(&self, interpretation: &Interpretation, valid_only: bool) -> Result<Self> {
        Ok(match interpretation.decode(&self.array, valid_only)? {
            Some(array) => Self { decoded: array.schema().dtype.is_float(), array, ..self.clone() },
            None => self.clone(),
        })
    }

    /// Returns true if NaN marks a missing value.
    #[must_use]
    pub const fn is_decoded(&self) -> bool {
        self.decoded
    }

    /// Values that were read from this array as the texts of dates, if it counts time by its attributes `units` and `calendar`.
    /// `None` otherwise.
    #[must_use]
    pub fn dates(&self, values: &Values) -> Option<Values> {
        let times = self.time_axis()?;
        labels::DateForm::TEXT.apply(values, times).ok()
    }

    /// The array's schema.
    #[must_use]
    pub fn schema(&self) -> &ArraySchema {
        self.array.schema()
    }

    /// The underlying array, as implemented by its format.
    #[must_use]
    pub const fn inner(&self) -> &Arc<dyn Array> {
        &self.array
    }

    /// The store that contains the array.
    pub(crate) const fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The memory limit for a result.
    pub(crate) const fn memory(&self) -> u64 {
        self.context.memory
    }

    /// The working memory: the limit for a result, or less if the store advises less. Advice of almost nothing is ignored.
    pub(crate) fn working_memory(&self) -> u64 {
        const LEAST: u64 = 1 << 20;
        let advised = self.store.advised_memory(crate::memory::process_memory());
        advised.map_or(self.memory(), |advised| self.memory().min(advised.max(LEAST)))
    }

    /// Resolves a selection for this array: looks up names and labels and checks bounds.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) for dimensions, labels or positions that the array does not have.
    pub fn resolve(&self, selection: &Selection) -> Result<Positions> {
        let schema = self.schema();
        let selection = labels::resolve(selection, schema, &self.store)?;
        selection.resolve(schema.shape(), &schema.dimensions)
    }

    /// The axis of a dimension, and the positions of labels along it, in their order. With `nearest`, each label selects the
    /// position with the label nearest to it.
    ///
    /// # Errors
    ///
    /// As [`resolve`](Self::resolve).
    pub fn label_positions(
        &self,
        dimension: &str,
        labels: &[String],
        nearest: bool,
    ) -> Result<(usize, Vec<u64>)> {
        labels::label_positions(self.schema(), dimension, labels, nearest, &self.store)
    }

    /// Plans the read of a selection: the chunks, the part of each, and where it goes in the result.
    ///
    /// # Errors
    ///
    /// As [`resolve`](Self::resolve).
    pub fn plan(&self, selection: &Selection) -> Result<Plan> {
        Plan::new(&self.schema().grid, self.resolve(selection)?)
    }

    /// Reads a selection. A contiguous selection of raw chunks is returned as a view into the mapped file, without a copy.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) for a selection that the array does not have or memory cannot hold; otherwise any error from
    /// reading the file.
    pub fn read(&self, selection: &Selection) -> Result<Values> {
        self.read_positions(self.resolve(selection)?)
    }

    /// Like [`read`](Self::read), for resolved positions.
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
            let mut buffer = Buffer::zeroed(self.result_bytes(&plan)?)?;
            self.fill(&plan, buffer.as_mut_slice())?;
            Elements::fixed(buffer.freeze())
        };
        Values::new(self.schema().dtype.clone(), &plan.positions().shape(), elements)
    }

    /// Reads a selection as numbers of a Rust type, in C order.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read); [`Invalid`](Error::Invalid) if the array has elements of another type.
    pub fn read_vec<T: Element>(&self, selection: &Selection) -> Result<Vec<T>> {
        let schema = self.schema();
        if !T::is(&schema.dtype) || schema.nullable {
            let missing = if schema.nullable { " (nullable)" } else { "" };
            return Err(Error::invalid(format!(
                "{}: elements of type {}{missing} cannot be read as {}",
                self.array.name(),
                schema.dtype,
                T::NAME
            )));
        }
        let plan = self.plan(selection)?;
        let mut numbers = vec![T::zeroed(); self.result_bytes(&plan)? / size_of::<T>()];
        self.fill(&plan, bytemuck::cast_slice_mut(&mut numbers))?;
        Ok(numbers)
    }

    /// Reads a selection into the caller's buffer: C order, native byte order, exactly the size of the result.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read); [`Invalid`](Error::Invalid) also for a buffer of the wrong size, or elements without a fixed
    /// size.
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

    /// The result of a plan as a view into the mapped file, if it is one contiguous run of stored bytes.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn view(&self, plan: &Plan) -> Result<Option<Bytes>> {
        self.check_plan(plan)?;
        if needs_elements(&*self.array) { Ok(None) } else { view::contiguous(&*self.array, plan) }
    }

    /// The size of a plan's result. Fails if it exceeds the memory limit, or if chunks are missing in a format without a fill
    /// value. Call this before allocating memory for a claimed size.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) if it is too large, otherwise any error from locating the chunks.
    pub fn result_bytes(&self, plan: &Plan) -> Result<usize> {
        let bytes = self.checked_size(plan)?;
        if self.schema().fill == Fill::Undefined && !plan.is_empty() && bytes as u64 > SMALL_RESULT {
            let first = (0..plan.len().min(LOCATE_BATCH)).map(|index| plan.coord(index)).collect::<Vec<_>>();
            locate(&*self.array, &first)?;
        }
        Ok(bytes)
    }

    /// Fills `out`, which must have exactly the size of the result, in parallel over the plan's chunks.
    ///
    /// # Errors
    ///
    /// As [`read_into`](Self::read_into); [`Invalid`](Error::Invalid) also for a plan made for another array.
    pub fn fill(&self, plan: &Plan, out: &mut [u8]) -> Result<()> {
        self.check_plan(plan)?;
        let array = &*self.array;
        let item = self.schema().dtype.size().unwrap_or(0);
        let threads = self.read_threads(out.len() as u64);
        if let Some(rows) = RowCopy::new(array, plan, item, &self.context)
            && out.len() == result_bytes(array, plan)?
        {
            return rows.fill(threads, out);
        }
        prefetch_index(array, plan, plan.len())?;
        let slots = OutputSlots::new(plan, item, out)?;
        threads.run(plan.len(), array.is_remote(), |start, count| {
            let mut copy = |chunk: &mut Chunk<'_>| match slots.take(chunk.index()) {
                Some((wanted, mut slot)) => chunk.copy_into(&wanted, &mut slot),
                None => Ok(()),
            };
            visit_chunks(array, plan, start..start + count, &self.context, &mut copy)
        })?;
        Ok(())
    }

    /// The threads for a read with a result of this many bytes.
    fn read_threads(&self, bytes: u64) -> &Threads {
        let is_small = bytes < SMALL_RESULT && self.schema().filters.is_empty();
        if is_small { &Threads::Caller } else { &self.context.threads }
    }

    /// Refuses a plan made for an array with another grid.
    fn check_plan(&self, plan: &Plan) -> Result<()> {
        if *plan.grid() == self.schema().grid {
            return Ok(());
        }
        Err(Error::invalid(format!("{}: the plan was made for another array", self.array.name())))
    }

    fn read_elements(&self, plan: &Plan) -> Result<Elements> {
        let array = &*self.array;
        let budget = ElementBudget::new(self.array.name(), self.memory());
        prefetch_index(array, plan, plan.len())?;
        let parts: Vec<Vec<Elements>> =
            self.context.threads.run(plan.len(), array.is_remote(), |start, count| {
                let mut parts = Vec::new();
                let mut take = |chunk: &mut Chunk<'_>| {
                    let elements = chunk.elements()?;
                    budget.take(&elements)?;
                    parts.push(elements);
                    Ok(())
                };
                visit_chunks(array, plan, start..start + count, &self.context, &mut take)?;
                Ok(parts)
            })?;
        let chunks: Vec<Elements> = parts.into_iter().flatten().collect();
        gather_elements(array, plan, &chunks)
    }

    /// The size of the result. Fails if it exceeds the memory limit.
    fn checked_size(&self, plan: &Plan) -> Result<usize> {
        let bytes = result_bytes(&*self.array, plan)?;
        if bytes as u64 > self.memory() {
            return Err(too_large(self.array.name(), bytes as u64, self.memory()));
        }
        Ok(bytes)
    }
}

/// The integers among these numbers.
fn integers(numbers: &[Number]) -> impl Iterator<Item = i128> {
    numbers.iter().filter_map(|number| match number {
        Number::Integer(value) => Some(*value),
        Number::Float(_) => None,
    })
}

/// The bytes of an integer of this size in memory.
fn integer_bytes(value: i128, size: usize) -> Vec<u8> {
    let bytes = value.to_ne_bytes();
    let part = if cfg!(target_endian = "little") { bytes.get(..size) } else { bytes.get(16 - size..) };
    part.unwrap_or_default().to_vec()
}

fn too_large(name: &str, bytes: u64, limit: u64) -> Error {
    Error::invalid(format!(
        "{name}: the result needs {bytes} bytes, but the limit is {limit}; select less or raise the limit"
    ))
}

/// The memory for variable-length elements, whose size is only known once they are read.
struct ElementBudget<'a> {
    name: &'a str,
    limit: u64,
    used: AtomicU64,
}

impl<'a> ElementBudget<'a> {
    const fn new(name: &'a str, limit: u64) -> Self {
        Self { name, limit, used: AtomicU64::new(0) }
    }

    fn take(&self, elements: &Elements) -> Result<()> {
        let bytes = elements.bytes();
        // They are held twice while the result is assembled.
        let used = self.used.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes).saturating_mul(2);
        if used > self.limit { Err(too_large(self.name, used, self.limit)) } else { Ok(()) }
    }
}
