//! Adds records to an existing file.
//!
//! New records are written after the last one, where no reader looks. The number of records in the header is updated last,
//! once everything else is durable. If the process is killed at any instant, the file has its old records or all new ones.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyperslab_core::storage::LocalFile;
use hyperslab_core::{
    ArraySink, ArraySpec, Attributes, ChunkCoord, Elements, EncodedChunk, Error, FileBlob, Fill, Grid,
    Result, Sink,
};

use crate::attributes;
use crate::encode::is_wide;
use crate::header::Header;
use crate::layout::{Layout, grid};
use crate::plan::RowPlace;
use crate::sink::{ChunkRows, encode_elements, fill_rows};
use crate::types::Version;

/// Adds records to a NetCDF classic file.
#[derive(Debug)]
pub(crate) struct Netcdf3Append {
    target: String,
    header: Header,
    layout: Layout,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    file: LocalFile,
    /// The variables being enlarged, by number.
    grown: Mutex<BTreeMap<usize, GrownVariable>>,
}

#[derive(Debug)]
struct GrownVariable {
    records: u64,
    /// The chunks written so far.
    chunks: HashSet<u64>,
    grid: Grid,
}

impl Netcdf3Append {
    /// Opens a file to add records.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](Error::Corrupt) if the contents do not match the header, [`Invalid`](Error::Invalid) if
    /// another writer has locked the file.
    pub(crate) fn open(target: &Path) -> Result<Self> {
        let name = target.display().to_string();
        let file = LocalFile::open_locked(target)?;
        let header = Header::read(&FileBlob::open(target)?)?;
        let length = file.length()?;
        let layout = Layout::new(&header, length, &name)?;
        if header.records.is_none() {
            return Err(Error::unsupported(name, "adding to a file that leaves its number of records open"));
        }
        let cut = layout.variables.iter().zip(&header.variables).find(|(own, _)| own.end() > length);
        if let Some((own, variable)) = cut {
            let place = hyperslab_core::Place::new(&name, "NetCDF variable", variable.at);
            return Err(place.corrupt(format!(
                "variable {:?} ends at {:#x}, the file at {length:#x}",
                variable.name,
                own.end()
            )));
        }
        let shared = Arc::new(Shared { file, grown: Mutex::default() });
        Ok(Self { target: name, header, layout, shared })
    }

    fn unsupported(&self, what: &str) -> Error {
        Error::unsupported(self.target.as_str(), format!("{what} an existing NetCDF classic file"))
    }

    /// The position of a variable's rows for this number of records.
    fn place(&self, number: usize, rows: u64) -> RowPlace {
        let own = &self.layout.variables[number];
        RowPlace { begin: own.begin, stride: own.stride.unwrap_or(own.own), rows }
    }
}

fn lock(shared: &Shared) -> MutexGuard<'_, BTreeMap<usize, GrownVariable>> {
    shared.grown.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sink for Netcdf3Append {
    fn group(&mut self, path: &str, attributes: &Attributes) -> Result<()> {
        match path {
            "/" if attributes.is_empty() => Ok(()),
            "/" => Err(self.unsupported("changing the attributes of")),
            _ => Err(self.unsupported("adding a group to")),
        }
    }

    fn array(&mut self, _: &str, _: &ArraySpec) -> Result<Arc<dyn ArraySink>> {
        Err(self.unsupported("adding a variable to"))
    }

    fn grow(&mut self, path: &str, shape: &[u64]) -> Result<Arc<dyn ArraySink>> {
        let name = path.trim_start_matches('/');
        let number = self.header.variables.iter().position(|own| own.name == name);
        let number = number.ok_or_else(|| Error::not_found(self.target.as_str(), path))?;
        let (variable, own) = (&self.header.variables[number], &self.layout.variables[number]);
        let is_record = own.stride.is_some();
        if shape.len() != own.shape.len() || shape.iter().zip(&own.shape).any(|(new, old)| new < old) {
            return Err(hyperslab_core::cannot_grow(path, &own.shape, shape));
        }
        let grows = |(axis, (new, old)): (usize, (&u64, &u64))| new > old && !(is_record && axis == 0);
        if let Some((axis, _)) = shape.iter().zip(&own.shape).enumerate().find(|both| grows(*both)) {
            let number = variable.dimensions.get(axis);
            let name = number.and_then(|number| self.header.dimensions.get(*number)).map(|own| &*own.name);
            let name = name.unwrap_or("0");
            return Err(Error::invalid(format!(
                "its dimension {name} is fixed, because it is no record dimension"
            )));
        }
        let records = shape.first().copied().unwrap_or(0);
        let end = records.checked_mul(own.stride.unwrap_or(0)).and_then(|bytes| bytes.checked_add(own.begin));
        if is_wide(records) && self.header.version != Version::Data64 || end.is_none_or(|end| end >= 1 << 62)
        {
            return Err(self.unsupported(&format!("{records} records in")));
        }
        let item = variable.kind.size();
        let grid = grid(shape, item, is_record);
        let grown = GrownVariable { records, chunks: HashSet::new(), grid: grid.clone() };
        if lock(&self.shared).insert(number, grown).is_some() {
            return Err(Error::invalid(format!("{path} was already enlarged")));
        }
        Ok(Arc::new(GrownSink {
            shared: Arc::clone(&self.shared),
            number,
            spec: ArraySpec::new(variable.kind.dtype(), grid),
            place: self.place(number, records),
            unit: item as usize,
            old: own.shape.to_vec(),
            kept: if is_record { self.layout.records } else { own.shape.first().copied().unwrap_or(1) },
        }))
    }

    fn commit(self: Box<Self>) -> Result<()> {
        let grown = std::mem::take(&mut *lock(&self.shared));
        let before = self.layout.records;
        let records = grown.values().map(|own| own.records).max().unwrap_or(before).max(before);
        if records == before {
            return Ok(());
        }
        let file = &self.shared.file;
        let variables = self.header.variables.iter().zip(&self.layout.variables).enumerate();
        for (number, (variable, own)) in variables.filter(|(_, (_, own))| own.stride.is_some()) {
            let place = self.place(number, records);
            let size = variable.kind.size();
            let element = match attributes::fill(variable) {
                Fill::Element(element) => element.as_fixed().map(|bytes| bytes.to_vec()).unwrap_or_default(),
                _ => vec![0; size as usize],
            };
            let element = attributes::native(variable.kind, element);
            let mut filled = before;
            if let Some(grown) = grown.get(&number) {
                for chunk in 0..grown.grid.chunks().unwrap_or(0) {
                    if grown.chunks.contains(&chunk) {
                        continue;
                    }
                    let part = ChunkRows::of(&grown.grid, &grown.grid.coord(chunk), size);
                    let first = part.first.max(before);
                    let rows = (part.first + part.rows).saturating_sub(first);
                    fill_rows(file, &place, (first, rows), (part.skip, part.length), &element)?;
                }
                filled = grown.records.max(before);
            }
            // Variables that did not grow have fill values in the new records.
            fill_rows(file, &place, (filled, records - filled), (0, own.own), &element)?;
        }
        self.pad(records)?;
        file.sync()?;
        match self.header.version {
            Version::Data64 => file.write_at(&records.to_be_bytes(), 4)?,
            _ => file.write_at(&(records as u32).to_be_bytes(), 4)?,
        }
        file.sync()
    }
}

impl Netcdf3Append {
    /// Extends the file to the end of its last record, including padding, as the NetCDF library does.
    fn pad(&self, records: u64) -> Result<()> {
        let recorded = || self.layout.variables.iter().filter_map(|own| Some((own.begin, own.stride?)));
        let Some((start, stride)) = recorded().min() else { return Ok(()) };
        let end = start + records * stride;
        if self.shared.file.length()? < end {
            self.shared.file.write_at(&[0], end - 1)?;
        }
        Ok(())
    }
}

/// A variable being enlarged.
#[derive(Debug)]
struct GrownSink {
    shared: Arc<Shared>,
    number: usize,
    spec: ArraySpec,
    place: RowPlace,
    unit: usize,
    /// The number of existing rows, which stay as they are.
    kept: u64,
    /// The shape before it was enlarged.
    old: Vec<u64>,
}

impl ArraySink for GrownSink {
    fn grid(&self) -> &Grid {
        &self.spec.grid
    }

    fn grown_from(&self) -> Option<&[u64]> {
        Some(&self.old)
    }

    fn encode(&self, chunk: &ChunkCoord, elements: &Elements) -> Result<EncodedChunk> {
        self.spec.check_chunk(chunk, elements)?;
        encode_elements(self.unit, elements)
    }

    fn any_order(&self) -> bool {
        true
    }

    fn write(&self, chunk: &ChunkCoord, encoded: EncodedChunk) -> Result<()> {
        let number = self.spec.grid.linear(chunk);
        let number = number.ok_or_else(|| Error::invalid(format!("chunk {chunk:?} is outside the grid")))?;
        let is_new = lock(&self.shared).get_mut(&self.number).map(|grown| grown.chunks.insert(number));
        match is_new {
            Some(true) => {}
            Some(false) => return Err(Error::invalid(format!("chunk {chunk:?} was already written"))),
            None => return Err(Error::invalid("the file is finished")),
        }
        let part = ChunkRows::of(&self.spec.grid, chunk, self.unit as u64);
        // Do not touch the rows that readers can see.
        part.write(&encoded, self.kept, &self.place, &self.shared.file)
    }
}
