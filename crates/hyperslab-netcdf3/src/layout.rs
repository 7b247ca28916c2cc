//! The location of variables: each fixed variable is contiguous; then come the records, each of which contains a part of every
//! record variable.

use hyperslab_core::{Grid, Place, Result, product};

use crate::header::{Header, Variable};

/// The approximate size of a chunk of a contiguous variable.
const SLAB_BYTES: u64 = 4 << 20;
/// The approximate size of a chunk of a record variable.
const BLOCK_BYTES: u64 = 256 << 10;
/// The maximum number of records in a chunk, each of which may need a request.
const BLOCK_RECORDS: u64 = 512;

/// The location of one variable's data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VariableLayout {
    /// Elements per dimension; the first is the number of records of a record variable.
    pub(crate) shape: Vec<u64>,
    pub(crate) begin: u64,
    /// The size of a fixed variable, or of one record of a record variable.
    pub(crate) own: u64,
    /// The distance from one record to the next; `None` for a fixed variable.
    pub(crate) stride: Option<u64>,
}

impl VariableLayout {
    /// The end of the data; zero if there is none.
    pub(crate) fn end(&self) -> u64 {
        match self.stride {
            None => self.begin.saturating_add(self.own),
            Some(stride) => match self.shape.first() {
                None | Some(0) => 0,
                Some(records) => {
                    self.begin.saturating_add((records - 1).saturating_mul(stride)).saturating_add(self.own)
                }
            },
        }
    }
}

/// The layout of a whole file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) records: u64,
    /// One per variable, in the file's order.
    pub(crate) variables: Vec<VariableLayout>,
}

/// The distance between records: the sizes of the record variables, each padded to four bytes. If there is only one record
/// variable, it is not padded.
pub(crate) fn record_stride(own: &[u64]) -> Option<u64> {
    match own {
        [single] => Some(*single),
        many => many.iter().try_fold(0_u64, |sum, own| sum.checked_add(own.checked_next_multiple_of(4)?)),
    }
}

impl Layout {
    /// Derives the layout from a header and the length of the file.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](hyperslab_core::Error::Corrupt) if sizes exceed 2^63 or variables overlap.
    pub(crate) fn new(header: &Header, file_length: u64, store: &str) -> Result<Self> {
        let record_dimension = header.record_dimension();
        let is_record = |variable: &Variable| {
            variable.dimensions.first().is_some_and(|first| Some(*first) == record_dimension)
        };
        let mut variables = Vec::with_capacity(header.variables.len());
        for variable in &header.variables {
            let axes = variable.dimensions.iter().map(|number| header.dimensions[*number].length);
            let shape: Vec<u64> = axes.collect();
            let inner = if is_record(variable) { &shape[1..] } else { &shape[..] };
            let own = product(inner).and_then(|cells| cells.checked_mul(variable.kind.size()));
            let own = own.filter(|own| *own < 1 << 63).ok_or_else(|| {
                place(store, variable).corrupt(format!(
                    "variable {:?} of shape {shape:?} and type {} is larger than 2^63 bytes",
                    variable.name,
                    variable.kind.name()
                ))
            })?;
            let stride = is_record(variable).then_some(0);
            variables.push(VariableLayout { shape, begin: variable.begin, own, stride });
        }
        let recorded: Vec<u64> =
            variables.iter().filter(|own| own.stride.is_some()).map(|own| own.own).collect();
        let stride = record_stride(&recorded).filter(|stride| *stride < 1 << 63).ok_or_else(|| {
            Place::new(store, "NetCDF header", 0).corrupt("a record is larger than 2^63 bytes")
        })?;
        for own in variables.iter_mut().filter(|own| own.stride.is_some()) {
            own.stride = Some(stride);
        }
        let records = match header.records {
            Some(records) => records,
            None => variables
                .iter()
                .filter(|own| own.stride.is_some())
                .map(|own| whole_records(own, file_length, stride))
                .min()
                .unwrap_or(0),
        };
        for own in variables.iter_mut().filter(|own| own.stride.is_some()) {
            own.shape[0] = records;
        }
        let layout = Self { records, variables };
        layout.check_overlaps(header, store)?;
        Ok(layout)
    }

    /// Refuses variables that overlap each other or the header.
    fn check_overlaps(&self, header: &Header, store: &str) -> Result<()> {
        // Byte ranges, each with the variable that it belongs to.
        let mut ranges: Vec<(u64, u64, usize)> = Vec::new();
        let mut recorded: Vec<usize> = Vec::new();
        for (number, own) in self.variables.iter().enumerate() {
            match own.stride {
                None => ranges.push((own.begin, own.end(), number)),
                Some(_) if self.records > 0 => recorded.push(number),
                Some(_) => {}
            }
        }
        recorded.sort_by_key(|number| self.variables[*number].begin);
        if let (Some(first), Some(last)) = (recorded.first(), recorded.last()) {
            let (start, last) = (self.variables[*first].begin, &self.variables[*last]);
            let stride = last.stride.unwrap_or(0);
            // Check the first record only; the others have the same layout.
            ranges.extend(recorded.iter().map(|number| {
                let own = &self.variables[*number];
                (own.begin, own.begin.saturating_add(own.own), *number)
            }));
            let end = start.saturating_add(self.records.saturating_mul(stride));
            let next = start.saturating_add(stride);
            if last.begin.saturating_add(last.own) > next {
                let variable = &header.variables[*recorded.last().unwrap_or(first)];
                return Err(place(store, variable).corrupt(format!(
                    "variable {:?} reaches into the next record, which starts at {next:#x}",
                    variable.name
                )));
            }
            if end > next {
                ranges.push((next, end, *first));
            }
        }
        ranges.sort_unstable();
        let mut before = (0, header.length, None);
        for (start, end, number) in ranges {
            let variable = &header.variables[number];
            if start < before.1 {
                let other = match before.2 {
                    None => "the header".to_owned(),
                    Some(other) => {
                        let other: &Variable = &header.variables[other];
                        format!("{:?}", other.name)
                    }
                };
                return Err(place(store, variable).corrupt(format!(
                    "variable {:?} starts at {start:#x}, inside {other}, which ends at {:#x}",
                    variable.name, before.1
                )));
            }
            before = (start, end, Some(number));
        }
        Ok(())
    }
}

/// The number of complete records of a variable in the file.
fn whole_records(own: &VariableLayout, file_length: u64, stride: u64) -> u64 {
    match file_length.checked_sub(own.begin).and_then(|left| left.checked_sub(own.own)) {
        Some(left) if stride > 0 => left / stride + 1,
        _ => 0,
    }
}

fn place<'a>(store: &'a str, variable: &Variable) -> Place<'a> {
    Place::new(store, "NetCDF variable", variable.at)
}

/// Divides a variable into chunks, each of which is one run of bytes, or one run per record.
pub(crate) fn grid(shape: &[u64], item: u64, is_record: bool) -> Grid {
    let (true, Some((records, inner))) = (is_record, shape.split_first()) else {
        return Grid::slabs(shape, item, SLAB_BYTES);
    };
    let own = product(inner).and_then(|cells| cells.checked_mul(item)).unwrap_or(u64::MAX).max(1);
    let mut chunk = Vec::with_capacity(shape.len());
    if own > SLAB_BYTES {
        chunk.push(1);
        chunk.extend_from_slice(Grid::slabs(inner, item, SLAB_BYTES).chunk_shape());
    } else {
        chunk.push((BLOCK_BYTES / own).clamp(1, BLOCK_RECORDS).min((*records).max(1)));
        chunk.extend(inner.iter().map(|extent| (*extent).max(1)));
    }
    // Extents are positive and match the rank, so this cannot fail.
    Grid::new(shape, &chunk).unwrap_or_else(|_| Grid::single(shape))
}
