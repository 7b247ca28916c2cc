//! Converts tables to formats without tables: a group with one array per column.
//!
//! Rows are scanned twice if their number or the length of texts is not known in advance.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use hyperslab_core::{
    ArraySink, ArraySpec, Attribute, Attributes, Batch, ChunkCoord, Column, DType, Elements, Error, Grid,
    Result, Scan, Sink, Values, child_path, product,
};

use super::spec::{FilterChoice, create, default_chunk_shape};
use super::{ConvertOptions, ConvertReport, Progress};
use crate::TableReader;
use crate::forms::{ArrayForm, COLUMN, DIMENSION, DUPLICATES, Form, KIND, NativeSupport, ROW, TABLE};

/// The copy of a table.
pub(super) struct TableCopy {
    reader: TableReader,
    scan: Scan,
    columns: Vec<ColumnCopy>,
    rows: u64,
}

/// The copy of a column: its form, and a sink for each of its parts.
struct ColumnCopy {
    form: ArrayForm,
    parts: Vec<PartCopy>,
}

/// The array of one part of a column. Elements are collected until they fill a chunk.
struct PartCopy {
    dtype: DType,
    sink: Arc<dyn ArraySink>,
    /// Elements per row.
    each: usize,
    chunk: u64,
    waiting: Vec<Elements>,
    elements: usize,
}

/// Context for declaring a table.
pub(super) struct Declaration<'a, 'h> {
    pub(super) holds: &'a NativeSupport<'h>,
    pub(super) options: &'a ConvertOptions,
    pub(super) filter_choice: FilterChoice<'a>,
    pub(super) filters: &'a mut Vec<(String, String)>,
    pub(super) report: &'a mut ConvertReport,
}

impl TableCopy {
    /// Declares the group and the arrays of a table. `attributes` are those that the target accepts.
    pub(super) fn declare(
        sink: &mut dyn Sink,
        path: &str,
        reader: TableReader,
        mut attributes: Attributes,
        declaration: Declaration<'_, '_>,
    ) -> Result<Self> {
        let Declaration { holds, options, filter_choice, filters, report } = declaration;
        let scan = reader.scan(&options.selection, None)?;
        let columns = reader.schema().columns.clone();
        let mut forms = Vec::with_capacity(columns.len());
        for column in &columns {
            let name = format!("{path}: column {}", column.name);
            forms.push(match ArrayForm::new(&name, &column.dtype, column.nullable, holds)? {
                Some(form) => form,
                None => ArrayForm {
                    form: Form::new(&column.dtype, &|_| true).ok_or_else(|| Error::invalid(name))?,
                    masked: false,
                },
            });
        }
        let rows = measure(&reader, &scan, &mut forms)?;
        attributes.set(KIND, TABLE);
        if reader.schema().stored.duplicates == Some(true) {
            attributes.set(DUPLICATES, small(1)?);
        }
        sink.group(path, &attributes)?;
        let mut declared = Vec::with_capacity(columns.len());
        let paths: HashSet<String> = columns.iter().map(|column| child_path(path, &column.name)).collect();
        for (number, (column, form)) in columns.iter().zip(forms).enumerate() {
            let place = child_path(path, &column.name);
            if column.name.is_empty() || column.name.contains('/') {
                return Err(Error::unsupported(
                    path,
                    format!("a column {:?} as a name in the target", column.name),
                ));
            }
            let words = form.words(&column.dtype);
            if !words.is_empty() {
                report.change(&place, words);
            }
            let taken = |other: &str| paths.contains(other);
            let mask = crate::forms::mask_path(&place, &taken);
            let mut marks = Attributes::new();
            form.mark(&column.dtype, mask.rsplit('/').next().unwrap_or_default(), &mut marks);
            marks.set(COLUMN, small(number)?);
            if column.dimension {
                marks.set(DIMENSION, small(1)?);
            }
            let mut parts = Vec::new();
            let mut groups: Vec<String> = Vec::new();
            if let Form::Struct(..) = form.form {
                sink.group(&place, &marks)?;
            }
            for (members, leaf) in form.form.leaves() {
                let mut own = place.clone();
                for (depth, member) in members.iter().enumerate() {
                    own = child_path(&own, member);
                    if depth + 1 < members.len() && !groups.contains(&own) {
                        sink.group(&own, &Attributes::new())?;
                        groups.push(own.clone());
                    }
                }
                let marks = if members.is_empty() { marks.clone() } else { Attributes::new() };
                let spec = spec(rows, leaf.dtype.clone(), leaf.axes(), leaf.axis_names(), marks, options)?;
                parts.push(PartCopy::new(sink, &own, spec, column, filter_choice, filters)?);
            }
            if form.masked {
                let flags = Form::new(&DType::Bool, holds.dtype);
                let flags = flags.and_then(|form| Some(form.leaves().first()?.1.dtype.clone()));
                let flags = flags.ok_or_else(|| Error::unsupported(path, "a mask in the target"))?;
                let spec = spec(rows, flags, Vec::new(), Vec::new(), Attributes::new(), options)?;
                parts.push(PartCopy::new(sink, &mask, spec, column, filter_choice, filters)?);
            }
            declared.push(ColumnCopy { form, parts });
        }
        Ok(Self { reader, scan, columns: declared, rows })
    }

    /// Copies all rows. Returns their number and the size of their elements in bytes.
    pub(super) fn run(mut self, progress: &Progress) -> Result<(u64, u64)> {
        let (mut rows, mut bytes) = (0_u64, 0_u64);
        let reader = self.reader.clone();
        for batch in reader.rows_of(&self.scan)?.batches {
            progress.check_cancelled()?;
            let Batch { rows: count, columns } = batch?;
            rows += count as u64;
            if rows > self.rows {
                return Err(Error::invalid("the table grew while it was converted"));
            }
            for (column, elements) in self.columns.iter_mut().zip(&columns) {
                let length = elements.bytes();
                bytes = bytes.saturating_add(length);
                progress.total.fetch_add(length, Ordering::Relaxed);
                column.take(elements, count)?;
                progress.done.fetch_add(length, Ordering::Relaxed);
            }
        }
        if rows != self.rows {
            return Err(Error::invalid("the table changed while it was converted"));
        }
        for column in &mut self.columns {
            column.parts.iter_mut().try_for_each(|part| part.flush(true))?;
        }
        Ok((rows, bytes))
    }
}

impl ColumnCopy {
    fn take(&mut self, elements: &Elements, rows: usize) -> Result<()> {
        let mut encoded = self.form.form.encode(elements)?;
        if self.form.masked {
            let flags: Vec<u8> = (0..rows).map(|row| u8::from(elements.is_missing(row))).collect();
            encoded.push(Elements::fixed(flags));
        }
        for (part, elements) in self.parts.iter_mut().zip(encoded) {
            part.elements += rows * part.each;
            part.waiting.push(elements);
            part.flush(false)?;
        }
        Ok(())
    }
}

impl PartCopy {
    fn new(
        sink: &mut dyn Sink,
        path: &str,
        mut spec: ArraySpec,
        column: &Column,
        filter_choice: FilterChoice<'_>,
        filters: &mut Vec<(String, String)>,
    ) -> Result<Self> {
        let sink = create(sink, path, &mut spec, &column.filters, filter_choice, filters)?;
        let each = product(&spec.grid.shape()[1..]).unwrap_or(1) as usize;
        Ok(Self { dtype: spec.dtype, sink, each, chunk: 0, waiting: Vec::new(), elements: 0 })
    }

    /// Writes the full chunks; with `all`, the last one as well.
    fn flush(&mut self, all: bool) -> Result<()> {
        let grid = self.sink.grid().clone();
        while self.chunk < grid.extents()[0] {
            let mut coord: ChunkCoord = grid.extents();
            coord.fill(0);
            coord[0] = self.chunk;
            let wanted = grid.region(&coord).shape[0] as usize * self.each;
            if self.elements < wanted && !all {
                break;
            }
            let picks =
                self.waiting.iter().enumerate().flat_map(|(row, elements)| {
                    (0..elements.len(&self.dtype)).map(move |index| (row, index))
                });
            let picks: Vec<(usize, usize)> = picks.collect();
            let rows: Vec<&Elements> = self.waiting.iter().collect();
            let (now, later) = picks.split_at(wanted.min(picks.len()));
            let chunk = Elements::gather(&self.dtype, &rows, now)?;
            let rest = Elements::gather(&self.dtype, &rows, later)?;
            self.elements -= now.len();
            self.waiting = vec![rest];
            // Formats may divide other axes than the rows too; the parts of a chunk of rows are then written one after another.
            self.write(&grid, &coord, &chunk)?;
            self.chunk += 1;
        }
        Ok(())
    }

    fn write(&self, grid: &Grid, first: &ChunkCoord, rows: &Elements) -> Result<()> {
        let behind: u64 = grid.extents()[1..].iter().product();
        if behind <= 1 {
            return self.sink.write(first, self.sink.encode(first, rows)?);
        }
        let count = grid.region(first).shape[0];
        let mut shape = grid.shape().to_vec();
        shape[0] = count;
        let values = Values::new(self.dtype.clone(), &shape, rows.clone())?;
        let inner = Grid::new(&grid.shape()[1..], &grid.chunk_shape()[1..])?;
        for number in 0..behind {
            let coord: ChunkCoord = [first[0]].into_iter().chain(inner.coord(number)).collect();
            let mut region = grid.region(&coord);
            region.start[0] = 0;
            let part = super::cut(&self.dtype, &values, &region)?;
            self.sink.write(&coord, self.sink.encode(&coord, &part)?)?;
        }
        Ok(())
    }
}

/// Counts the rows and measures texts that are stored padded.
fn measure(reader: &TableReader, scan: &Scan, forms: &mut [ArrayForm]) -> Result<u64> {
    let texts: Vec<usize> = (0..forms.len()).filter(|column| forms[*column].form.has_text()).collect();
    if texts.is_empty() && scan.region.is_empty() {
        return reader.inner().rows();
    }
    let names = &reader.schema().columns;
    let wanted = if texts.is_empty() { vec![0] } else { texts.clone() };
    let columns = Some(wanted.iter().map(|column| names[*column].name.clone()).collect());
    let mut rows = 0;
    for batch in reader.rows_of(&Scan { columns, ..scan.clone() })?.batches {
        let batch = batch?;
        rows += batch.rows as u64;
        for (column, elements) in texts.iter().zip(&batch.columns) {
            forms[*column].form.measure(elements)?;
        }
    }
    forms.iter_mut().for_each(|form| form.form.fill_empty_text());
    Ok(rows)
}

fn spec(
    rows: u64,
    dtype: DType,
    axes: Vec<u64>,
    names: Vec<String>,
    attributes: Attributes,
    options: &ConvertOptions,
) -> Result<ArraySpec> {
    let shape: Vec<u64> = [rows].into_iter().chain(axes).collect();
    let item = dtype.size().unwrap_or(16) as u64;
    let mut chunk_shape = match (&options.chunk_shape, options.chunk_bytes) {
        (Some(chunk_shape), _) if chunk_shape.len() == shape.len() => chunk_shape.clone(),
        _ => default_chunk_shape(&shape, item),
    };
    for (chunk, extent) in chunk_shape.iter_mut().zip(&shape) {
        *chunk = (*chunk).clamp(1, (*extent).max(1));
    }
    let mut spec = ArraySpec::new(dtype, Grid::new(&shape, &chunk_shape)?);
    let names = [ROW.to_owned()].into_iter().chain(names);
    spec.dimensions = names.map(Some).collect();
    spec.attributes = attributes;
    Ok(spec)
}

fn small(number: usize) -> Result<Attribute> {
    let number = i32::try_from(number).map_err(|_| Error::invalid("the number of columns overflows"))?;
    Ok(Values::scalar(DType::Int32, Elements::fixed(number.to_ne_bytes().to_vec()))?.into())
}
