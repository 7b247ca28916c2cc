//! Writes files: variables are declared, then filled in any order, in their final places.
//!
//! The layout of a file follows from all of its definitions, so it is fixed when the first values arrive. Variables declared
//! later are kept in a scratch file, and everything is moved once, when the file is committed.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyperslab_core::storage::{LocalFile, StageOptions, StagedFile};
use hyperslab_core::{
    ArraySink, ArraySpec, Attributes, ChunkCoord, Elements, EncodedChunk, Error, Grid, Result, Sink,
    copy_swapped,
};

use crate::layout::grid;
use crate::plan::{Definitions, FilePlan, RowPlace};
use crate::types::Version;

/// The number of bytes of fill values written at once.
const FILL_BYTES: usize = 1 << 20;

/// Writes a NetCDF classic file.
#[derive(Debug)]
pub struct Netcdf3Sink {
    shared: Arc<Mutex<State>>,
}

/// A file being written.
#[derive(Debug)]
struct State {
    /// `None` once it is published.
    staged: Option<StagedFile>,
    options: StageOptions,
    definitions: Definitions,
    /// One per variable.
    data: Vec<VariableData>,
    /// Whether the variables so far have been laid out.
    laid_out: bool,
    /// The scratch file for variables declared later, and its length.
    scratch: Option<(Arc<LocalFile>, u64)>,
}

/// The values of one variable.
#[derive(Debug)]
struct VariableData {
    grid: Grid,
    /// One bit per chunk.
    written: Vec<u64>,
    place: Option<(Arc<LocalFile>, RowPlace)>,
}

impl VariableData {
    /// Marks a chunk as written; `false` if it already was.
    fn mark(&mut self, number: u64) -> bool {
        let (word, bit) = ((number / 64) as usize, 1 << (number % 64));
        let before = self.written[word] & bit != 0;
        self.written[word] |= bit;
        !before
    }

    fn is_written(&self, number: u64) -> bool {
        self.written[(number / 64) as usize] >> (number % 64) & 1 == 1
    }
}

impl Netcdf3Sink {
    /// Starts a file for `target`, in this version or the oldest that can hold everything.
    ///
    /// # Errors
    ///
    /// As [`StagedFile::create`].
    pub(crate) fn create(target: &Path, options: StageOptions, version: Option<Version>) -> Result<Self> {
        let staged = StagedFile::create(target, options)?;
        let definitions =
            Definitions { version, target: target.display().to_string(), ..Definitions::default() };
        let state = State {
            staged: Some(staged),
            options,
            definitions,
            data: Vec::new(),
            laid_out: false,
            scratch: None,
        };
        Ok(Self { shared: Arc::new(Mutex::new(state)) })
    }
}

fn lock(shared: &Mutex<State>) -> MutexGuard<'_, State> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sink for Netcdf3Sink {
    fn group(&mut self, path: &str, attributes: &Attributes) -> Result<()> {
        let mut state = lock(&self.shared);
        if path != "/" {
            let target = state.definitions.target.as_str();
            let what = format!("storing the group {path} in NetCDF classic (which has no groups)");
            return Err(Error::unsupported(target, what));
        }
        state.definitions.attributes = attributes.clone();
        Ok(())
    }

    fn dimension(&mut self, path: &str, length: u64, limit: Option<u64>) -> Result<()> {
        lock(&self.shared).definitions.add_dimension(path, length, limit.is_none())
    }

    fn array(&mut self, path: &str, spec: &ArraySpec) -> Result<Arc<dyn ArraySink>> {
        let mut state = lock(&self.shared);
        let number = state.definitions.add_variable(path, spec)?;
        let variable = &state.definitions.variables[number];
        let unit = variable.kind.size() as usize;
        let is_record = spec.max_shape.first().is_some_and(Option::is_none);
        let grid = grid(spec.grid.shape(), unit as u64, is_record);
        let chunks = grid.chunks().unwrap_or(0);
        let written = vec![0; chunks.div_ceil(64) as usize];
        state.data.push(VariableData { grid: grid.clone(), written, place: None });
        let spec = ArraySpec { grid: grid.clone(), ..spec.clone() };
        Ok(Arc::new(VariableSink { shared: Arc::clone(&self.shared), number, spec, grid, unit }))
    }

    fn attributes(&mut self, path: &str, attributes: &Attributes) -> Result<()> {
        let mut state = lock(&self.shared);
        let definitions = &mut state.definitions;
        let own = if path == "/" {
            &mut definitions.attributes
        } else {
            let name = definitions.name_at(path)?;
            let target = definitions.target.clone();
            match definitions.variables.iter_mut().find(|own| own.name == name) {
                Some(variable) => &mut variable.attributes,
                None => return Err(Error::not_found(target, path)),
            }
        };
        attributes.iter().for_each(|(name, value)| own.set(name, value.clone()));
        Ok(())
    }

    fn changes(&self) -> Vec<(String, String)> {
        lock(&self.shared).definitions.changes()
    }

    fn commit(self: Box<Self>) -> Result<()> {
        let mut state = lock(&self.shared);
        let plan = state.definitions.plan()?;
        let is_final = |own: &VariableData, place: &RowPlace| match &own.place {
            Some((_, own)) => own == place,
            None => true,
        };
        let stays = state.scratch.is_none()
            && state.data.iter().zip(&plan.places).all(|(own, place)| is_final(own, place));
        let mut staged = state.staged.take().ok_or_else(|| state.finished())?;
        if !stays {
            // Definitions came after values, so everything is moved to its final place in a new file.
            let fresh = StagedFile::create(staged.target(), state.options)?;
            state.move_to(&LocalFile::of(&fresh)?, &plan)?;
            staged = fresh;
        }
        state.finish(&staged, &plan)?;
        staged.publish()
    }
}

impl State {
    /// The location of a variable's values, assigned when the first arrive.
    fn place(&mut self, number: usize) -> Result<(Arc<LocalFile>, RowPlace)> {
        let Some(staged) = &self.staged else { return Err(self.finished()) };
        if !self.laid_out {
            let plan = self.definitions.plan()?;
            let file = Arc::new(LocalFile::of(staged)?);
            staged.file().set_len(plan.length).map_err(|source| staged.failed(source))?;
            for (own, place) in self.data.iter_mut().zip(plan.places) {
                own.place = Some((Arc::clone(&file), place));
            }
            self.laid_out = true;
        }
        if let Some(place) = &self.data[number].place {
            return Ok(place.clone());
        }
        let variable = &self.definitions.variables[number];
        let (rows, stride) = (variable.rows(), variable.row_bytes());
        let (file, begin) = match self.scratch.take() {
            Some(scratch) => scratch,
            None => {
                let folder = staged.target().parent().filter(|folder| !folder.as_os_str().is_empty());
                (Arc::new(LocalFile::scratch(folder.unwrap_or_else(|| Path::new(".")))?), 0)
            }
        };
        let end = begin + rows * stride;
        if end > begin {
            file.write_at(&[0], end - 1)?;
        }
        self.scratch = Some((Arc::clone(&file), end));
        let place = (file, RowPlace { begin, stride, rows });
        self.data[number].place = Some(place.clone());
        Ok(place)
    }

    /// Copies written values to the locations of a plan.
    fn move_to(&mut self, file: &LocalFile, plan: &FilePlan) -> Result<()> {
        let variables = self.data.iter_mut().zip(&plan.places).zip(&self.definitions.variables);
        for ((own, place), variable) in variables {
            let Some((from, old)) = own.place.take() else { continue };
            let row = variable.row_bytes();
            let rows = old.rows.min(place.rows);
            if old.stride == row && place.stride == row {
                from.copy_to(old.begin, rows * row, |piece, done| file.write_at(piece, place.begin + done))?;
            } else {
                for number in 0..rows {
                    let to = place.begin + number * place.stride;
                    from.copy_to(old.begin + number * old.stride, row, |piece, done| {
                        file.write_at(piece, to + done)
                    })?;
                }
            }
        }
        Ok(())
    }

    fn finished(&self) -> Error {
        Error::invalid(format!("{} is finished", self.definitions.target))
    }

    /// Writes fill values where nothing was written, and the header.
    fn finish(&self, staged: &StagedFile, plan: &FilePlan) -> Result<()> {
        staged.file().set_len(plan.length).map_err(|source| staged.failed(source))?;
        let file = LocalFile::of(staged)?;
        let variables = self.data.iter().zip(&plan.places).zip(&self.definitions.variables);
        for ((own, place), variable) in variables {
            // Unwritten bytes are zero.
            if variable.fill.iter().all(|byte| *byte == 0) {
                continue;
            }
            let row = variable.row_bytes();
            for number in 0..own.grid.chunks().unwrap_or(0) {
                if own.is_written(number) {
                    continue;
                }
                let part = ChunkRows::of(&own.grid, &own.grid.coord(number), variable.kind.size());
                fill_rows(&file, place, (part.first, part.rows), (part.skip, part.length), &variable.fill)?;
            }
            let missing = place.rows.saturating_sub(variable.rows());
            fill_rows(&file, place, (variable.rows(), missing), (0, row), &variable.fill)?;
        }
        file.write_at(&plan.header, 0)
    }
}

/// Writes an element into `rows.1` rows starting at `rows.0`, in each at byte `run.0` for `run.1` bytes.
pub(crate) fn fill_rows(
    file: &LocalFile,
    place: &RowPlace,
    rows: (u64, u64),
    run: (u64, u64),
    fill: &[u8],
) -> Result<()> {
    let most = (FILL_BYTES / fill.len() * fill.len()) as u64;
    let piece = fill.repeat((run.1.min(most) as usize).div_ceil(fill.len()));
    for row in rows.0..rows.0 + rows.1 {
        let start = place.begin + row * place.stride + run.0;
        let mut done = 0;
        while done < run.1 {
            let now = (run.1 - done).min(most);
            file.write_at(&piece[..now as usize], start + done)?;
            done += now;
        }
    }
    Ok(())
}

/// A chunk as rows of the first axis: whole rows, or a part of one.
pub(crate) struct ChunkRows {
    pub(crate) first: u64,
    pub(crate) rows: u64,
    /// Bytes of a row before the chunk, and in it.
    pub(crate) skip: u64,
    pub(crate) length: u64,
}

impl ChunkRows {
    pub(crate) fn of(grid: &Grid, chunk: &[u64], item: u64) -> Self {
        let region = grid.region(chunk);
        let inner = grid.shape().get(1..).unwrap_or(&[]);
        let mut cell = 0;
        for (start, extent) in region.start.iter().skip(1).zip(inner) {
            cell = cell * extent + start;
        }
        let cells: u64 = region.shape.iter().skip(1).product();
        Self {
            first: region.start.first().copied().unwrap_or(0),
            rows: region.shape.first().copied().unwrap_or(1),
            skip: cell * item,
            length: cells * item,
        }
    }

    /// Writes the rows of an encoded chunk, starting at row `from`.
    pub(crate) fn write(
        &self,
        encoded: &EncodedChunk,
        from: u64,
        place: &RowPlace,
        file: &LocalFile,
    ) -> Result<()> {
        let stored = match encoded.parts.as_slice() {
            [stored] if stored.len() as u64 == self.rows * self.length => stored,
            _ => {
                return Err(Error::invalid(format!(
                    "a chunk of {} bytes was encoded for another array",
                    self.rows * self.length
                )));
            }
        };
        let skipped = from.saturating_sub(self.first).min(self.rows);
        let stored = &stored[(skipped * self.length) as usize..];
        let start = place.begin + (self.first + skipped) * place.stride + self.skip;
        if self.rows - skipped <= 1 || place.stride == self.length {
            return file.write_at(stored, start);
        }
        for (row, bytes) in stored.chunks_exact(self.length.max(1) as usize).enumerate() {
            file.write_at(bytes, start + row as u64 * place.stride)?;
        }
        Ok(())
    }
}

/// Encodes elements in the byte order of the file.
pub(crate) fn encode_elements(unit: usize, elements: &Elements) -> Result<EncodedChunk> {
    let Some(bytes) = elements.as_fixed().filter(|_| elements.validity.is_none()) else {
        return Err(Error::invalid("a NetCDF variable cannot hold variable-length or missing elements"));
    };
    let raw_length = bytes.len() as u64;
    let stored = if unit == 1 || cfg!(target_endian = "big") {
        bytes.clone()
    } else {
        let mut turned = vec![0; bytes.len()];
        copy_swapped(unit, bytes, &mut turned);
        turned.into()
    };
    Ok(EncodedChunk { parts: vec![stored], filter_mask: 0, raw_length, tag: 0 })
}

/// A variable that is being written.
#[derive(Debug)]
struct VariableSink {
    shared: Arc<Mutex<State>>,
    number: usize,
    spec: ArraySpec,
    grid: Grid,
    unit: usize,
}

impl ArraySink for VariableSink {
    fn grid(&self) -> &Grid {
        &self.grid
    }

    fn encode(&self, chunk: &ChunkCoord, elements: &Elements) -> Result<EncodedChunk> {
        self.spec.check_chunk(chunk, elements)?;
        encode_elements(self.unit, elements)
    }

    fn any_order(&self) -> bool {
        true
    }

    fn write(&self, chunk: &ChunkCoord, encoded: EncodedChunk) -> Result<()> {
        let outside =
            || Error::invalid(format!("chunk {chunk:?} is outside the grid {:?}", self.grid.extents()));
        let number = self.grid.linear(chunk).ok_or_else(outside)?;
        let (file, place) = {
            let mut state = lock(&self.shared);
            let place = state.place(self.number)?;
            if !state.data[self.number].mark(number) {
                return Err(Error::invalid(format!("chunk {chunk:?} was already written")));
            }
            place
        };
        ChunkRows::of(&self.grid, chunk, self.unit as u64).write(&encoded, 0, &place, &file)
    }
}
