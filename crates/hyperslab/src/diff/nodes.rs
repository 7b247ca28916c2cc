//! Compares two nodes: arrays block by block, tables batch by batch, geometries level by level.

use hyperslab_core::{
    ArraySchema, Batch, Batches, Column, DType, Elements, Extents, GeometryQuery, Grid, Node, Positions,
    Region, Result, Scan, Values, element_to_json, product,
};
use rayon::prelude::*;

use super::values::{Mismatches, compare};
use super::{DiffOptions, DiffReport, Difference, Shared, ValueDifference, about, alike, attributes};
use crate::hash::{self, canonical::type_name};
use crate::written::{fill_element, fold_pieces, halves, written_chunks};
use crate::{ArrayReader, OpenStore, TableReader, convert, rows};

/// The maximum number of elements that one core compares at once.
const BLOCK_CELLS: u64 = 1 << 16;

/// The block shape for an array: as close to a cube as the shape allows.
fn block_shape(shape: &[u64]) -> Extents {
    let mut block = Region::whole(shape);
    block.shape.iter_mut().for_each(|extent| *extent = (*extent).max(1));
    while block.cells().is_none_or(|cells| cells > BLOCK_CELLS) {
        let Some([low, _]) = halves(&block) else { break };
        block = low;
    }
    block.shape
}

/// A node of one side: its store, its path and the node.
type Side<'a> = (&'a OpenStore, &'a String, &'a Node);

pub(super) struct Comparison<'a> {
    pub(super) options: &'a DiffOptions,
    pub(super) report: &'a mut DiffReport,
    /// The properties that both formats can express.
    pub(super) shared: Shared,
    /// The compared paths.
    pub(super) roots: [&'a str; 2],
}

impl Comparison<'_> {
    pub(super) fn nodes(&mut self, path: &str, [a, b]: [Side<'_>; 2]) -> Result<()> {
        let alike = alike::nodes(a.2, b.2)?;
        let [one, other] = alike.as_ref().map_or([a.2, b.2], |[one, other]| [one, other]);
        let [a, b] = [(a.0, a.1, one), (b.0, b.1, other)];
        let attributes_too = self.options.attributes && !self.options.values_only;
        if let (true, Some(one), Some(other)) = (attributes_too, beside(a.2), beside(b.2)) {
            attributes(self.report, path, one, other, self.shared);
            if self.shared.format {
                about::null_attributes(self.report, path, one, other);
            }
        }
        match (a.2, b.2) {
            (Node::Group(_), Node::Group(_)) => {}
            (Node::Array(one), Node::Array(other)) => {
                let readers =
                    [a.0.reader(std::sync::Arc::clone(one)), b.0.reader(std::sync::Arc::clone(other))];
                self.arrays(path, &readers)?;
            }
            (Node::Table(_), Node::Table(_)) => self.tables(path, &[a.0.table(a.1)?, b.0.table(b.1)?])?,
            (Node::Geometry(_), Node::Geometry(_)) => self.geometries(path, a, b)?,
            (Node::Link(one), Node::Link(other)) if one == other => {}
            (Node::Type(one, _), Node::Type(other, _)) if type_name(one) == type_name(other) => {}
            (Node::Link(_), Node::Link(_)) | (Node::Type(..), Node::Type(..)) => {
                let (code, detail) = match (a.2, b.2) {
                    (Node::Type(one, _), Node::Type(other, _)) => ("type", format!("{one} ≠ {other}")),
                    (Node::Link(one), Node::Link(other)) => ("link", format!("{one} ≠ {other}")),
                    _ => ("kind", String::new()),
                };
                self.report.add(path, code, detail);
            }
            (one, other) => self.report.add(path, "kind", format!("{} ≠ {}", one.kind(), other.kind())),
        }
        Ok(())
    }

    fn arrays(&mut self, path: &str, [a, b]: &[ArrayReader; 2]) -> Result<()> {
        self.report.nodes += 1;
        let (one, other) = (a.schema(), b.schema());
        if !self.options.values_only {
            about::arrays(self.report, path, [one, other], self.shared, self.roots);
            // An array without a dataspace has no shape to compare.
            if self.shared.format && one.stored.no_space != other.stored.no_space {
                return Ok(());
            }
        }
        let mut comparable = true;
        let as_texts = !self.shared.format && alike::are_texts(&one.dtype, &other.dtype);
        if !as_texts && !about::same_type(&one.dtype, &other.dtype, self.shared) {
            self.report.add(path, "type", format!("{} ≠ {}", one.dtype, other.dtype));
            comparable = false;
        }
        if one.shape() != other.shape() {
            self.report.add(path, "shape", format!("{:?} ≠ {:?}", one.shape(), other.shape()));
            comparable = false;
        }
        if !comparable {
            return Ok(());
        }
        let memory = self.options.memory / 2;
        let block = block_shape(one.shape());
        let mut sum = Sum::default();
        let mut compare = |region: &Region| {
            let read = |reader: &ArrayReader| {
                let values = reader.read_positions(Positions::region(region))?;
                if as_texts { alike::texts(&values) } else { Ok(values) }
            };
            let (one, other) = rayon::join(|| read(a), || read(b));
            self.boxes(&mut sum, region, &block, one.and_then(|one| Ok([one, other?]))?)
        };
        let item = one.dtype.size().unwrap_or(64).max(1) as u64;
        let lists = [a, b].map(|side| written_chunks(&**side.inner(), memory / 4));
        match lists {
            [Ok(Some(of_a)), Ok(Some(of_b))] => {
                let mut written: Vec<Region> = of_a.iter().map(|chunk| one.grid.region(chunk)).collect();
                written.extend(of_b.iter().map(|chunk| other.grid.region(chunk)));
                let chunks =
                    [&one.grid, &other.grid].map(|grid| product(grid.chunk_shape()).unwrap_or(u64::MAX));
                let smaller = chunks[0].min(chunks[1]).saturating_mul(8);
                let most = smaller.clamp(BLOCK_CELLS, (memory.min(a.memory()) / item).max(BLOCK_CELLS));
                let fill = |schema: &ArraySchema| match fill_element(schema) {
                    own if as_texts => (DType::String, alike::text_elements(&schema.dtype, &own)),
                    own => (schema.dtype.clone(), own),
                };
                let [(one, own_fill), (other, other_fill)] = [fill(one), fill(other)];
                let mut unwritten = Sum::default();
                let mut take = |region: &Region, written: bool| {
                    if written {
                        return compare(region);
                    }
                    let found = matching(&one, &own_fill, &other_fill, &other, 1, self.options)?;
                    let sides = [(&one, &own_fill), (&other, &other_fill)];
                    let cell = Sum::of(&found, 1, |_| region.start.to_vec(), sides);
                    unwritten.join(cell.times(region.cells().unwrap_or(u64::MAX)));
                    Ok(())
                };
                let whole = Region::whole(a.schema().shape());
                fold_pieces(&whole, &written.iter().collect::<Vec<_>>(), most, &mut take, &|(), ()| ())?;
                sum.join(unwritten);
            }
            [of_a, of_b] => {
                of_a?;
                of_b?;
                let blocks = Grid::new(one.shape(), &block)?;
                let boxes =
                    convert::block_grid(&blocks, one.grid.chunk_shape(), item, memory.min(a.memory()))?;
                for number in 0..boxes.chunks().unwrap_or(0) {
                    compare(&boxes.region(&boxes.coord(number)))?;
                }
            }
        }
        self.close(path, "values", sum, one.shape());
        Ok(())
    }

    /// Compares one box of both sides, block by block on all cores.
    fn boxes(&self, sum: &mut Sum, region: &Region, block: &[u64], [a, b]: [Values; 2]) -> Result<()> {
        let cells = region.cells().unwrap_or(0);
        let plain = |values: &Values| values.elements.validity.is_none() && values.dtype.is_fixed();
        if plain(&a) && plain(&b) && a.elements == b.elements {
            sum.of += cells;
            return Ok(());
        }
        let inside = Grid::new(&region.shape, block)?;
        let dtype = &a.dtype;
        let sums = (0..inside.chunks().unwrap_or(0) as usize)
            .into_par_iter()
            .map(|number| {
                let local = inside.region(&inside.coord(number as u64));
                let (one, other) = (convert::cut(dtype, &a, &local)?, convert::cut(&b.dtype, &b, &local)?);
                let count = usize::try_from(local.cells().unwrap_or(0)).unwrap_or(0);
                let found = matching(dtype, &one, &other, &b.dtype, count, self.options)?;
                let place = |index: usize| {
                    let mut left = index as u64;
                    let mut place = vec![0; local.shape.len()];
                    for axis in (0..place.len()).rev() {
                        place[axis] = region.start[axis] + local.start[axis] + left % local.shape[axis];
                        left /= local.shape[axis];
                    }
                    place
                };
                Ok(Sum::of(&found, count, place, [(dtype, &one), (&b.dtype, &other)]))
            })
            .collect::<Result<Vec<_>>>()?;
        sums.into_iter().for_each(|part| sum.join(part));
        Ok(())
    }

    fn close(&mut self, path: &str, code: &'static str, sum: Sum, shape: &[u64]) {
        self.report.elements += sum.of;
        let Some((first, values)) = sum.first else { return };
        let place = if shape.is_empty() { String::new() } else { format!(", first at {first:?}") };
        let mut detail = format!("{} of {} differ{place}: {} ≠ {}", sum.count, sum.of, values[0], values[1]);
        if let Some(largest) = sum.largest {
            detail.push_str(&format!(", largest difference {largest}"));
        }
        let values = ValueDifference { count: sum.count, of: sum.of, first, values, largest: sum.largest };
        self.report.differences.push(Difference {
            path: path.to_owned(),
            code,
            detail,
            values: Some(values),
        });
    }

    fn tables(&mut self, path: &str, [a, b]: &[TableReader; 2]) -> Result<()> {
        self.report.nodes += 1;
        let describe = |reader: &TableReader| -> Vec<String> {
            let column = |column: &Column| format!("{}: {}", column.name, type_name(&column.dtype));
            reader.schema().columns.iter().map(column).collect()
        };
        if describe(a) != describe(b) {
            let detail = format!("{} ≠ {}", describe(a).join(", "), describe(b).join(", "));
            self.report.add(path, "columns", detail);
            return Ok(());
        }
        if self.options.tolerance.is_exact() && hash::table(a)? == hash::table(b)? {
            let columns = a.schema().columns.len() as u64;
            self.report.elements += a.inner().rows()?.saturating_mul(columns);
            return Ok(());
        }
        let (one, other) = (a.rows_of(&Scan::default())?, b.rows_of(&Scan::default())?);
        let columns = one.columns;
        let (mut one, mut other) = (Cursor::new(one.batches), Cursor::new(other.batches));
        let mut sums: Vec<Sum> = columns.iter().map(|_| Sum::default()).collect();
        let mut row = 0;
        loop {
            let count = one.ready()?.min(other.ready()?);
            if count == 0 {
                break;
            }
            for (number, column) in columns.iter().enumerate() {
                let (held, against) =
                    (one.part(number, &column.dtype, count)?, other.part(number, &column.dtype, count)?);
                let found = compare(&column.dtype, &held, &against, count, self.options.tolerance)?;
                let place = |index: usize| vec![row + index as u64];
                sums[number].join(Sum::of(
                    &found,
                    count,
                    place,
                    [(&column.dtype, &held), (&column.dtype, &against)],
                ));
            }
            row += count as u64;
            one.skip(count);
            other.skip(count);
        }
        for (column, sum) in columns.iter().zip(sums) {
            let below =
                if path == "/" { format!("/{}", column.name) } else { format!("{path}/{}", column.name) };
            self.close(&below, "values", sum, &[row]);
        }
        let (left, right) = (row + one.rest()?, row + other.rest()?);
        if left != right {
            self.report.add(path, "rows", format!("{left} ≠ {right}"));
        }
        Ok(())
    }

    fn geometries(&mut self, path: &str, a: Side<'_>, b: Side<'_>) -> Result<()> {
        self.report.nodes += 1;
        let (one, other) = (a.0.geometry(a.1)?, b.0.geometry(b.1)?);
        let levels = [one.inner().levels()?.len(), other.inner().levels()?.len()];
        if levels[0] != levels[1] {
            self.report.add(path, "shape", format!("{} levels ≠ {} levels", levels[0], levels[1]));
        }
        for level in 0..levels[0].min(levels[1]) {
            let query = GeometryQuery { level: Some(level), ..GeometryQuery::default() };
            let (one, other) = (one.query(&query)?.data, other.query(&query)?.data);
            let at = |part: &str| format!("{}/{level}/{part}", path.trim_end_matches('/'));
            self.values(&at("vertices"), &one.vertices, &other.vertices)?;
            match (&one.links, &other.links) {
                (Some(one), Some(other)) => self.values(&at("links"), one, other)?,
                (None, None) => {}
                _ => self.report.add(&at("links"), "node", "only one side has links"),
            }
            for (name, held) in &one.attributes {
                match other.attributes.iter().find(|(own, _)| own == name) {
                    Some((_, against)) => self.values(&at(name), held, against)?,
                    None => self.report.add(&at(name), "node", "only the first has this attribute"),
                }
            }
            for (name, _) in &other.attributes {
                if !one.attributes.iter().any(|(own, _)| own == name) {
                    self.report.add(&at(name), "node", "only the second has this attribute");
                }
            }
            let (mut held, mut against) = (one.objects, other.objects);
            held.sort();
            against.sort();
            if held != against {
                let differing = held.iter().zip(&against).find(|(one, other)| one != other);
                let first =
                    differing.map_or_else(String::new, |(one, _)| format!(", first object {}", one.0));
                self.report.add(
                    &at("objects"),
                    "values",
                    format!("{} objects ≠ {} objects{first}", held.len(), against.len()),
                );
            }
        }
        Ok(())
    }

    fn values(&mut self, path: &str, a: &Values, b: &Values) -> Result<()> {
        if type_name(&a.dtype) != type_name(&b.dtype) {
            self.report.add(path, "type", format!("{} ≠ {}", a.dtype, b.dtype));
        } else if a.shape != b.shape {
            self.report.add(path, "shape", format!("{:?} ≠ {:?}", a.shape, b.shape));
        } else {
            let mut sum = Sum::default();
            let region = Region::whole(&a.shape);
            self.boxes(&mut sum, &region, &block_shape(&a.shape), [a.clone(), b.clone()])?;
            self.close(path, "values", sum, &a.shape);
        }
        Ok(())
    }
}

/// Types may be equal except for padding in structs, which are then compared by their members.
fn matching(
    dtype: &DType,
    a: &Elements,
    b: &Elements,
    other: &DType,
    count: usize,
    options: &DiffOptions,
) -> Result<Mismatches> {
    match (dtype, other) {
        (DType::Struct(one), DType::Struct(two)) if one != two => {
            let packed = |fields: &hyperslab_core::StructType, elements: &Elements| -> Result<Elements> {
                let members = rows::members(fields, elements)?;
                let data = hyperslab_core::Data::Struct { length: count, members };
                Ok(Elements { data, validity: elements.validity.clone() })
            };
            compare(dtype, &packed(one, a)?, &packed(two, b)?, count, options.tolerance)
        }
        _ => compare(dtype, a, b, count, options.tolerance),
    }
}

fn beside(node: &Node) -> Option<&hyperslab_core::Attributes> {
    match node {
        Node::Group(attributes) | Node::Type(_, attributes) => Some(attributes),
        Node::Array(array) => Some(&array.schema().attributes),
        Node::Table(table) => Some(&table.schema().attributes),
        Node::Geometry(geometry) => Some(&geometry.schema().attributes),
        _ => None,
    }
}

/// The differences so far.
#[derive(Debug, Default)]
struct Sum {
    count: u64,
    of: u64,
    first: Option<(Vec<u64>, [serde_json::Value; 2])>,
    largest: Option<f64>,
}

impl Sum {
    fn of(
        found: &Mismatches,
        count: usize,
        place: impl Fn(usize) -> Vec<u64>,
        sides: [(&DType, &Elements); 2],
    ) -> Self {
        let first = found.differs.iter().position(|differs| *differs);
        Self {
            count: found.differs.iter().filter(|differs| **differs).count() as u64,
            of: count as u64,
            first: first
                .map(|index| (place(index), sides.map(|(dtype, held)| element_to_json(dtype, held, index)))),
            largest: found.largest,
        }
    }

    /// The same differences, found this many times.
    const fn times(mut self, times: u64) -> Self {
        self.count = self.count.saturating_mul(times);
        self.of = self.of.saturating_mul(times);
        self
    }

    fn join(&mut self, other: Self) {
        self.count = self.count.saturating_add(other.count);
        self.of = self.of.saturating_add(other.of);
        self.first = match (self.first.take(), other.first) {
            (Some(one), Some(other)) => Some(if other.0 < one.0 { other } else { one }),
            (one, other) => one.or(other),
        };
        self.largest = match (self.largest, other.largest) {
            (Some(one), Some(other)) => Some(one.max(other)),
            (one, other) => one.or(other),
        };
    }
}

/// Rows of one side, taken in parts of any length.
struct Cursor<'a> {
    batches: Batches<'a>,
    batch: Option<Batch>,
    at: usize,
}

impl<'a> Cursor<'a> {
    fn new(batches: Batches<'a>) -> Self {
        Self { batches, batch: None, at: 0 }
    }

    /// The number of rows available without a new batch; zero at the end.
    fn ready(&mut self) -> Result<usize> {
        loop {
            match &self.batch {
                Some(batch) if self.at < batch.rows => return Ok(batch.rows - self.at),
                _ => match self.batches.next().transpose()? {
                    None => return Ok(0),
                    next => (self.batch, self.at) = (next, 0),
                },
            }
        }
    }

    fn part(&self, column: usize, dtype: &DType, count: usize) -> Result<Elements> {
        match &self.batch {
            Some(batch) => rows::run(dtype, &batch.columns[column], self.at, count),
            None => Ok(Elements::empty(dtype)),
        }
    }

    const fn skip(&mut self, count: usize) {
        self.at += count;
    }

    /// The number of rows left.
    fn rest(&mut self) -> Result<u64> {
        let mut rest = 0;
        loop {
            let count = self.ready()?;
            if count == 0 {
                return Ok(rest);
            }
            rest += count as u64;
            self.skip(count);
        }
    }
}
