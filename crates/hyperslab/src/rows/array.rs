//! Dense arrays as rows, in C order, read one slab at a time.

use std::collections::VecDeque;
use std::sync::Arc;

use hyperslab_core::{
    ArraySchema, AxisPositions, Batch, Column, DType, Elements, Error, Extents, Grid, Labels, Positions,
    Region, Result, Selection, TimeAxis, Values, product,
};

use super::{Rows, members, plain_column};
use crate::ArrayReader;
use crate::labels::{Coordinate, DateForm};

/// The number of bytes read at once.
const SLAB_BYTES: u64 = 128 << 20;
/// Rows per batch, for which dimension columns are generated at a time.
const BATCH_ROWS: usize = 1 << 17;

impl ArrayReader {
    /// The elements of a selection as rows. An array of structs has one column per member, any other array a column `value`.
    /// Before them come the labels along the dimensions that the selection keeps, or positions if there are no labels, and the
    /// labels of single positions. These columns are named after the dimensions, or `dim_0`, `dim_1` … Times become dates. A
    /// one-dimensional array of structs is already a table, so its rows have no position column. Missing values of a
    /// [decoded](Self::decoded_nullable) array are null, and its times are dates; to find their type, they are read once before.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) for a selection that the array does not have.
    pub fn rows(&self, selection: &Selection) -> Result<Rows<'static>> {
        self.rows_named(selection, "value")
    }

    /// Like [`rows`](Self::rows), with another name for the column of values.
    pub(crate) fn rows_named(&self, selection: &Selection, name: &str) -> Result<Rows<'static>> {
        let positions = self.resolve(selection)?;
        let mut along = self.row_dimensions(&positions)?;
        let is_struct = matches!(self.schema().dtype, DType::Struct(_));
        if is_struct && positions.axes.iter().filter(|axis| axis.keep).count() <= 1 {
            along.clear();
        }
        let axes = (0..self.schema().grid.rank()).collect();
        let array = RowArray { reader: self.clone(), axes, dates: None };
        rows_of_arrays(vec![(name.to_owned(), array)], positions, along)
    }

    /// The dimension columns of rows: all dimensions that the positions keep, and those of single positions that have labels.
    fn row_dimensions(&self, positions: &Positions) -> Result<Vec<RowDimension>> {
        let schema = self.schema();
        let mut kept = 0;
        let mut found = Vec::new();
        for (axis, own) in positions.axes.iter().enumerate() {
            let name = schema.dimensions[axis].clone().filter(|name| !name.is_empty());
            let labels = self.labels_at(axis, *own)?;
            if own.keep || labels.is_some() {
                let name = name.unwrap_or_else(|| format!("dim_{axis}"));
                found.push(RowDimension { name, kept: own.keep.then_some(kept), own: *own, labels });
            }
            kept += usize::from(own.keep);
        }
        Ok(found)
    }

    /// Returns true if one of its dimensions has labels.
    #[must_use]
    pub fn has_labels(&self) -> bool {
        self.schema().labels.iter().any(|labels| *labels != Labels::None)
    }

    /// The labels at some positions along an axis: dates if a coordinate counts time. `None` if there are only positions.
    pub(crate) fn labels_at(&self, axis: usize, positions: AxisPositions) -> Result<Option<Values>> {
        let schema = self.schema();
        let name = schema.dimensions[axis].as_deref().unwrap_or_default();
        let (labels, extent) = (&schema.labels[axis], schema.shape()[axis]);
        match Coordinate::read_part(labels, extent, positions, name, self.store()) {
            Ok(found) => found.map(Coordinate::into_values).transpose(),
            // An array that does not hold the labels is not a coordinate.
            Err(Error::Invalid(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Arrays on the dimensions of the first as rows, in C order: the columns of the dimensions as in [`ArrayReader::rows`], then one
/// column per array with its name. An array on some of the dimensions is repeated along the others.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) if there is no array, if one has other dimensions, and for a selection that the first does not have.
pub(crate) fn rows_together(
    arrays: Vec<(String, ArrayReader)>,
    selection: &Selection,
) -> Result<Rows<'static>> {
    let Some((_, first)) = arrays.first() else { return Err(Error::invalid("there are no arrays")) };
    let positions = first.resolve(selection)?;
    let along = first.row_dimensions(&positions)?;
    let wide = Arc::clone(first.inner());
    let arrays = arrays
        .into_iter()
        .map(|(name, reader)| {
            let axes = axes_in(wide.schema(), reader.schema()).ok_or_else(|| {
                Error::invalid(format!("{name} has other dimensions than the arrays beside it"))
            })?;
            Ok((name, RowArray { reader, axes, dates: None }))
        })
        .collect::<Result<_>>()?;
    rows_of_arrays(arrays, positions, along)
}

/// The axes of `wide` that an array has, in its own order; `None` if it has others, or other extents.
pub(crate) fn axes_in(wide: &ArraySchema, own: &ArraySchema) -> Option<Vec<usize>> {
    let axis_of = |axis: usize| {
        let name = own.dimensions[axis].as_ref()?;
        let found = wide.dimensions.iter().position(|dimension| dimension.as_ref() == Some(name))?;
        (wide.shape()[found] == own.shape()[axis]).then_some(found)
    };
    let axes: Vec<usize> = (0..own.grid.rank()).map(axis_of).collect::<Option<_>>()?;
    let is_unique = (1..axes.len()).all(|at| !axes[..at].contains(&axes[at]));
    is_unique.then_some(axes)
}

fn rows_of_arrays(
    arrays: Vec<(String, RowArray)>,
    positions: Positions,
    along: Vec<RowDimension>,
) -> Result<Rows<'static>> {
    let (names, mut arrays): (Vec<String>, Vec<RowArray>) = arrays.into_iter().unzip();
    let blocks = slabs(&arrays, &positions);
    for array in &mut arrays {
        array.find_dates(&positions, &blocks)?;
    }
    let mut columns: Vec<Column> = along.iter().map(RowDimension::column).collect();
    columns.extend(names.iter().zip(&arrays).flat_map(|(name, array)| array.value_columns(name)));
    make_unique(&mut columns);
    let rows = ArrayRows { arrays, positions, along, block: 0, blocks, ready: VecDeque::new() };
    Ok(Rows { columns, batches: Box::new(rows) })
}

/// An array whose values are columns of rows.
struct RowArray {
    reader: ArrayReader,
    /// The axes of the rows that it has, in its own order.
    axes: Vec<usize>,
    /// The form of its values as dates, if they count time.
    dates: Option<(DateForm, TimeAxis)>,
}

impl RowArray {
    /// Its columns: one named `name`, or one per member of structs.
    fn value_columns(&self, name: &str) -> Vec<Column> {
        let schema = self.reader.schema();
        let nullable = schema.nullable || self.reader.may_mark_missing() || self.dates.is_some();
        match (&schema.dtype, self.dates) {
            (DType::Struct(fields), _) => fields
                .members
                .iter()
                .map(|member| plain_column(&member.name, member.dtype.clone(), nullable))
                .collect(),
            (_, Some((form, _))) => vec![plain_column(name, form.dtype(), nullable)],
            (dtype, None) => vec![plain_column(name, dtype.clone(), nullable)],
        }
    }

    /// Reads its values, if they count time, to find the form of dates that holds them all.
    fn find_dates(&mut self, positions: &Positions, blocks: &Grid) -> Result<()> {
        let Some(times) = self.reader.row_times() else { return Ok(()) };
        let parts = (0..blocks.chunks().unwrap_or(0))
            .map(|block| self.own(&within(positions, &blocks.region(&blocks.coord(block)))));
        let form = self.reader.date_form(times, parts)?;
        self.dates = Some((form, times));
        Ok(())
    }

    /// Its own positions in these positions of the rows.
    fn own(&self, positions: &Positions) -> Positions {
        Positions { axes: self.axes.iter().map(|axis| positions.axes[*axis]).collect() }
    }

    /// Its values in the rows of these positions, each column with its type.
    fn columns(&self, positions: &Positions) -> Result<Vec<(DType, Elements)>> {
        let mut values = self.reader.mark_missing(self.reader.read_positions(self.own(positions))?);
        if let Some((form, times)) = self.dates {
            values = form.apply(&values, times)?;
        }
        let elements = self.repeated(&values, positions)?;
        Ok(match &values.dtype {
            DType::Struct(fields) => {
                let held = members(fields, &elements)?;
                fields.members.iter().map(|member| member.dtype.clone()).zip(held).collect()
            }
            _ => vec![(values.dtype, elements)],
        })
    }

    /// The values along all axes of the rows.
    fn repeated(&self, values: &Values, positions: &Positions) -> Result<Elements> {
        if self.axes.iter().copied().eq(0..positions.axes.len()) {
            return Ok(values.elements.clone());
        }
        let counts: Extents = positions.axes.iter().map(|axis| axis.count).collect();
        let mut strides: Extents = std::iter::repeat_n(0, counts.len()).collect();
        let mut stride = 1;
        for axis in self.axes.iter().rev() {
            strides[*axis] = stride;
            stride *= counts[*axis];
        }
        let place = |row: u64| {
            let mut left = row;
            (0..counts.len()).rev().fold(0, |at, axis| {
                let along = left % counts[axis].max(1);
                left /= counts[axis].max(1);
                at + along * strides[axis]
            })
        };
        let picks: Vec<_> = (0..product(&counts).unwrap_or(0)).map(|row| (0, place(row) as usize)).collect();
        Elements::gather(&values.dtype, &[&values.elements], &picks)
    }
}

/// A dimension column of rows.
struct RowDimension {
    name: String,
    /// Its number among the axes of the result; `None` for a single position.
    kept: Option<usize>,
    /// The positions that the result has.
    own: AxisPositions,
    /// The labels at these positions.
    labels: Option<Values>,
}

impl RowDimension {
    fn column(&self) -> Column {
        let (dtype, nullable) = self.labels.as_ref().map_or((DType::Int64, false), |labels| {
            (labels.dtype.clone(), labels.elements.validity.is_some())
        });
        Column { dimension: true, ..plain_column(&self.name, dtype, nullable) }
    }

    /// Its elements in rows of the result, given their positions in the array.
    fn elements(&self, positions: &[i64]) -> Result<Elements> {
        match &self.labels {
            None => Ok(Elements::fixed(to_bytes(positions))),
            Some(labels) => {
                let index = |at: &i64| ((at - self.own.start as i64) / self.own.step) as usize;
                let picks: Vec<_> = positions.iter().map(|at| (0, index(at))).collect();
                Elements::gather(&labels.dtype, &[&labels.elements], &picks)
            }
        }
    }
}

/// Appends an underscore to duplicate column names, because columnar files identify columns by name.
fn make_unique(columns: &mut [Column]) {
    for at in 1..columns.len() {
        while columns[..at].iter().any(|before| before.name == columns[at].name) {
            columns[at].name.push('_');
        }
    }
}

/// Divides the result into runs in C order that cover whole chunks of the first array if memory allows.
fn slabs(arrays: &[RowArray], positions: &Positions) -> Grid {
    let shape = positions.shape();
    let item = |array: &RowArray| array.reader.schema().dtype.size().unwrap_or(64).max(1) as u64;
    let first = arrays.first().map(|array| &array.reader);
    let memory = first.map_or(SLAB_BYTES, ArrayReader::memory);
    let slabs = Grid::slabs(&shape, arrays.iter().map(item).sum(), SLAB_BYTES.min(memory));
    let own = first.map_or(&[][..], |reader| reader.schema().grid.chunk_shape());
    let chunks: Vec<u64> = positions
        .axes
        .iter()
        .zip(own)
        .filter(|(axis, _)| axis.keep)
        .map(|(axis, chunk)| (chunk / axis.step.unsigned_abs()).max(1))
        .collect();
    let mut block: Extents = slabs.chunk_shape().into();
    let cut = (0..shape.len()).rev().find(|&axis| block[axis] < shape[axis]);
    if let Some(axis) = cut
        && block[axis] > chunks[axis]
    {
        block[axis] -= block[axis] % chunks[axis];
    }
    Grid::new(&shape, &block).unwrap_or(slabs)
}

struct ArrayRows {
    /// The first has all axes.
    arrays: Vec<RowArray>,
    positions: Positions,
    along: Vec<RowDimension>,
    block: u64,
    blocks: Grid,
    ready: VecDeque<Batch>,
}

impl Iterator for ArrayRows {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.ready.is_empty() {
            if self.block >= self.blocks.chunks().unwrap_or(0) {
                return None;
            }
            let region = self.blocks.region(&self.blocks.coord(self.block));
            self.block += 1;
            if let Err(error) = self.read(&region) {
                // Nothing can follow a missing part.
                self.block = u64::MAX;
                return Some(Err(error));
            }
        }
        self.ready.pop_front().map(Ok)
    }
}

impl ArrayRows {
    fn read(&mut self, region: &Region) -> Result<()> {
        let positions = within(&self.positions, region);
        let axes: Vec<_> = positions.axes.iter().filter(|axis| axis.keep).copied().collect();
        let shape: Extents = axes.iter().map(|axis| axis.count).collect();
        let total = product(&shape).unwrap_or(0) as usize;
        let mut columns: Vec<(DType, Elements)> = Vec::new();
        for array in &self.arrays {
            columns.extend(array.columns(&positions)?);
        }
        for first in (0..total).step_by(BATCH_ROWS) {
            let count = BATCH_ROWS.min(total - first);
            let mut batch =
                Batch { rows: count, columns: Vec::with_capacity(self.along.len() + columns.len()) };
            for along in &self.along {
                let column: Vec<i64> = match along.kept {
                    None => vec![along.own.start as i64; count],
                    Some(axis) => {
                        let inner = product(&shape[axis + 1..]).unwrap_or(1).max(1);
                        let extent = shape[axis].max(1);
                        let place = |row: usize| {
                            let at = row as u64 / inner % extent;
                            axes[axis].start.wrapping_add_signed(axes[axis].step.wrapping_mul(at as i64))
                                as i64
                        };
                        (first..first + count).map(place).collect()
                    }
                };
                batch.columns.push(along.elements(&column)?);
            }
            for (dtype, elements) in &columns {
                batch.columns.push(run(dtype, elements, first, count)?);
            }
            self.ready.push_back(batch);
        }
        Ok(())
    }
}

/// The positions of a region of the result.
fn within(positions: &Positions, region: &Region) -> Positions {
    let mut positions = positions.clone();
    let kept = positions.axes.iter_mut().filter(|axis| axis.keep);
    for (axis, (start, count)) in kept.zip(region.start.iter().zip(&region.shape)) {
        axis.start = axis.start.wrapping_add_signed(axis.step.wrapping_mul(*start as i64));
        axis.count = *count;
    }
    positions
}

/// `count` elements starting at `first`. Fixed-size elements are not copied.
pub(crate) fn run(dtype: &DType, elements: &Elements, first: usize, count: usize) -> Result<Elements> {
    if let (Some(size), Some(bytes), None) = (dtype.size(), elements.as_fixed(), &elements.validity) {
        let part = first.checked_mul(size).zip(count.checked_mul(size));
        let part = part.filter(|(start, length)| start + length <= bytes.len());
        let (start, length) = part.ok_or_else(|| Error::invalid("there are fewer elements than cells"))?;
        return Ok(Elements::fixed(bytes.slice(start..start + length)));
    }
    let picks: Vec<_> = (first..first + count).map(|index| (0, index)).collect();
    Elements::gather(dtype, &[elements], &picks)
}

fn to_bytes(numbers: &[i64]) -> Vec<u8> {
    bytemuck::cast_slice(numbers).to_vec()
}

#[cfg(test)]
mod tests {
    use hyperslab_core::StructType;

    use super::*;

    fn reader(values: &Values) -> (tempfile::TempDir, ArrayReader) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.npy");
        crate::export::write(values, &path, false).unwrap();
        let reader = crate::open(&path).unwrap().array("/").unwrap();
        (folder, reader)
    }

    fn numbers(elements: &Elements) -> Vec<i64> {
        bytemuck::pod_collect_to_vec(elements.as_fixed().unwrap())
    }

    #[test]
    fn cells_become_rows_with_their_positions() -> Result<()> {
        let values = Values::new(DType::UInt8, &[3, 4], Elements::fixed((0..12).collect::<Vec<u8>>()))?;
        let (_folder, reader) = reader(&values);
        let (columns, all) = reader.rows(&"[::-2, 1:3]".parse()?)?.collect()?;
        let names: Vec<_> = columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names, ["dim_0", "dim_1", "value"]);
        assert_eq!(numbers(&all.columns[0]), [2, 2, 0, 0]);
        assert_eq!(numbers(&all.columns[1]), [1, 2, 1, 2]);
        assert_eq!(all.columns[2].as_fixed().unwrap()[..], [9, 10, 1, 2]);
        let (columns, all) = reader.rows(&"[1, 2]".parse()?)?.collect()?;
        assert_eq!((columns.len(), all.rows), (1, 1));
        Ok(())
    }

    #[test]
    fn a_row_of_structs_is_a_table() -> Result<()> {
        let point = DType::from(StructType::packed([("a", DType::UInt8), ("b", DType::UInt8)]));
        let values = Values::new(point.clone(), &[3], Elements::fixed(vec![1, 2, 3, 4, 5, 6]))?;
        let (_folder, one) = reader(&values);
        let (columns, all) = one.rows(&Selection::all())?.collect()?;
        assert_eq!(columns.len(), 2);
        assert_eq!(all.columns[1].as_fixed().unwrap()[..], [2, 4, 6]);
        let (_folder, two) = reader(&Values::new(point, &[3, 1], values.elements)?);
        assert_eq!(two.rows(&Selection::all())?.columns.len(), 4);
        Ok(())
    }
}
