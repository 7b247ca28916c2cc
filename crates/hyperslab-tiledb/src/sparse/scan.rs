//! Scans: which fragments and tiles, then batches.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use hyperslab_core::{Batch, Batches, DType, Data, Elements, Result};
use rayon::prelude::*;

use super::merge::{GlobalOrder, Merge};
use super::reader::{ColumnCells, FragmentReader};
use super::region::DimensionRange;
use super::{Keys, SparseTable, key_of};
use crate::condition::{CellValue, Delete};
use crate::fragment::Fragment;
use crate::names::Window;
use crate::schema::{Range, Schema};

/// Rows of a batch: small tiles are put together up to this, larger ones stand alone.
const BATCH_ROWS: usize = 64 << 10;

/// Everything that a scan needs to know.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) readers: Vec<Arc<FragmentReader>>,
    pub(crate) region: Vec<DimensionRange>,
    pub(crate) order: GlobalOrder,
    pub(crate) rank: usize,
    columns: Vec<usize>,
    dtypes: Vec<DType>,
    /// Name, and may it be null, of every column of the table.
    names: Vec<(String, bool)>,
    deletes: Arc<[Delete]>,
    window: Window,
}

/// Fragments that may share coordinates, and must be read as one.
#[derive(Debug)]
pub(crate) struct Component {
    pub(crate) readers: Vec<usize>,
    pub(crate) merged: bool,
}

/// The fragments in groups that cannot share coordinates with each other.
pub(crate) fn components(table: &SparseTable, readers: &[Arc<FragmentReader>]) -> Vec<Component> {
    let schema = &table.array.schema;
    if schema.allows_duplicates {
        return (0..readers.len()).map(|reader| Component { readers: vec![reader], merged: false }).collect();
    }
    let mut components: Vec<(Vec<usize>, Vec<Range>)> = Vec::new();
    for (index, reader) in readers.iter().enumerate() {
        let Some(domain) = &reader.fragment.footer.domain else { continue };
        let (mut members, mut bounds) = (vec![index], domain.clone());
        // Joining one may make the box reach others: until none is left.
        while let Some(found) = components.iter().position(|(_, other)| overlap(schema, &bounds, other)) {
            let (others, other) = components.swap_remove(found);
            members.extend(others);
            bounds = join(schema, &bounds, &other);
        }
        components.push((members, bounds));
    }
    let mut components: Vec<Component> = components
        .into_iter()
        .map(|(mut members, _)| {
            members.sort_unstable();
            // A consolidated fragment keeps all versions of a cell.
            let merged = members.len() > 1
                || members.iter().any(|&index| readers[index].fragment.footer.has_timestamps);
            Component { readers: members, merged }
        })
        .collect();
    components.sort_by_key(|component| component.readers.first().copied());
    components
}

fn overlap(schema: &Schema, a: &[Range], b: &[Range]) -> bool {
    schema.dimensions.iter().zip(a.iter().zip(b)).all(|(dimension, (a, b))| {
        if dimension.is_text() {
            return a.low <= b.high && b.low <= a.high;
        }
        let key = |bytes: &[u8]| key_of(dimension.datatype.number(), bytes);
        key(&a.low) <= key(&b.high) && key(&b.low) <= key(&a.high)
    })
}

/// The box around two.
pub(crate) fn join(schema: &Schema, a: &[Range], b: &[Range]) -> Vec<Range> {
    let joined = schema.dimensions.iter().zip(a.iter().zip(b)).map(|(dimension, (a, b))| {
        let below = |x: &[u8], y: &[u8]| {
            if dimension.is_text() {
                return x < y;
            }
            key_of(dimension.datatype.number(), x) < key_of(dimension.datatype.number(), y)
        };
        Range {
            low: if below(&b.low, &a.low) { b.low.clone() } else { a.low.clone() },
            high: if below(&a.high, &b.high) { b.high.clone() } else { a.high.clone() },
            text: a.text,
        }
    });
    joined.collect()
}

/// Starts a scan.
pub(crate) fn start(
    table: &SparseTable,
    columns: Vec<usize>,
    region: Vec<DimensionRange>,
) -> Result<Batches<'_>> {
    let context = context(table, columns, region)?;
    let components = components(table, &context.readers).into();
    let (units, ready) = (VecDeque::new(), VecDeque::new());
    Ok(Box::new(Scanner { context, components, units, merge: None, ready, failed: false }))
}

fn context(table: &SparseTable, columns: Vec<usize>, region: Vec<DimensionRange>) -> Result<Context> {
    let schema = &table.array.schema;
    let all = &hyperslab_core::Table::schema(table).columns;
    Ok(Context {
        readers: table.readers()?.to_vec(),
        region,
        order: GlobalOrder::new(schema),
        rank: schema.dimensions.len(),
        dtypes: columns.iter().map(|&column| all[column].dtype.clone()).collect(),
        columns,
        names: all.iter().map(|column| (column.name.clone(), column.nullable)).collect(),
        deletes: Arc::clone(table.deletes()?),
        window: table.array.window(),
    })
}

/// Every version of every cell of some fragments, in global order: what consolidation writes.
pub(crate) struct VersionRows {
    context: Context,
    merge: Merge,
    with_deletes: bool,
}

impl VersionRows {
    pub(crate) fn start(table: &SparseTable, fragments: &[Arc<Fragment>]) -> Result<Self> {
        let columns = (0..hyperslab_core::Table::schema(table).columns.len()).collect();
        let region = vec![DimensionRange::All; table.array.schema.dimensions.len()];
        let context = context(table, columns, region)?;
        let chosen = |reader: &FragmentReader| fragments.iter().any(|own| own.name == reader.fragment.name);
        let readers: Vec<usize> =
            (0..context.readers.len()).filter(|&index| chosen(&context.readers[index])).collect();
        let merge = Merge::start(&context, &readers)?;
        let with_deletes = fragments.iter().any(|fragment| fragment.footer.has_deletes);
        Ok(Self { context, merge, with_deletes })
    }

    /// The next cells, at most `capacity` of them.
    pub(crate) fn next_tile(&mut self, capacity: usize) -> Result<Option<VersionTile>> {
        let (mut tiles, mut picks) = (Vec::new(), Vec::new());
        let (mut times, mut deleted) = (Vec::new(), Vec::new());
        while picks.len() < capacity {
            let Some((tile, cell)) = self.merge.next_version(&self.context)? else { break };
            times.push(tile.time(cell));
            if self.with_deletes {
                deleted.push(tile.deleted_at(&self.context, cell)?);
            }
            picks.push((place_of(&mut tiles, tile), cell));
        }
        if picks.is_empty() {
            return Ok(None);
        }
        Ok(Some(VersionTile { columns: gather(&self.context, &tiles, &picks)?, times, deleted }))
    }
}

/// Cells on their way into a consolidated fragment.
#[derive(Debug)]
pub(crate) struct VersionTile {
    pub(crate) columns: Vec<Elements>,
    /// When each was written.
    pub(crate) times: Vec<u64>,
    /// When each was deleted, `u64::MAX` for never; empty where no fragment knows of deletes.
    pub(crate) deleted: Vec<u64>,
}

/// The number of a tile among those in use. Almost always one of the last few.
fn place_of(tiles: &mut Vec<Arc<Loaded>>, tile: Arc<Loaded>) -> usize {
    match tiles.iter().rposition(|own| Arc::ptr_eq(own, &tile)) {
        Some(place) => place,
        None => {
            tiles.push(tile);
            tiles.len() - 1
        }
    }
}

/// A tile of a fragment: reader, tile, are all its cells wanted?
type Unit = (usize, usize, bool);

struct Scanner {
    context: Context,
    components: VecDeque<Component>,
    /// Tiles of fragments that stand alone, grouped into batches.
    units: VecDeque<Vec<Unit>>,
    merge: Option<Merge>,
    ready: VecDeque<Result<Batch>>,
    failed: bool,
}

impl Iterator for Scanner {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Result<Batch>> {
        loop {
            if self.failed {
                return None;
            }
            if let Some(batch) = self.ready.pop_front() {
                match batch {
                    Ok(batch) if batch.rows == 0 => continue,
                    batch => return Some(batch),
                }
            }
            match self.refill() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => {
                    self.failed = true;
                    return Some(Err(error));
                }
            }
        }
    }
}

impl Scanner {
    /// Makes more batches ready; false when there are none left.
    fn refill(&mut self) -> Result<bool> {
        if let Some(merge) = &mut self.merge {
            let (batch, done) = merged_batch(&self.context, merge)?;
            if done {
                self.merge = None;
            }
            self.ready.push_back(Ok(batch));
            return Ok(true);
        }
        if !self.units.is_empty() {
            // Several batches at a time, on all cores.
            let some = rayon::current_num_threads().max(1) * 2;
            let units: Vec<Vec<Unit>> = self.units.drain(..some.min(self.units.len())).collect();
            let context = &self.context;
            self.ready =
                units.into_par_iter().map(|unit| plain_batch(context, &unit)).collect::<Vec<_>>().into();
            return Ok(true);
        }
        let Some(component) = self.components.pop_front() else { return Ok(false) };
        if component.merged {
            self.merge = Some(Merge::start(&self.context, &component.readers)?);
            return Ok(true);
        }
        let mut rows = 0;
        // Neighbouring fragments that stand alone share batches.
        let mut alone = component.readers;
        while let Some(next) = self.components.front().filter(|next| !next.merged) {
            alone.extend(&next.readers);
            self.components.pop_front();
        }
        for reader in alone {
            for (tile, inside) in self.context.readers[reader].tiles(&self.context.region)? {
                let cells = self.context.readers[reader].cells(tile)?;
                match self.units.back_mut() {
                    Some(unit) if rows + cells <= BATCH_ROWS => {
                        unit.push((reader, tile, inside));
                        rows += cells;
                    }
                    _ => {
                        self.units.push_back(vec![(reader, tile, inside)]);
                        rows = cells;
                    }
                }
            }
        }
        Ok(true)
    }
}

/// Tiles of fragments that stand alone.
fn plain_batch(context: &Context, units: &[Unit]) -> Result<Batch> {
    let mut tiles = Vec::with_capacity(units.len());
    for &(reader, tile, inside) in units {
        let mut loaded = Loaded::load(context, reader, tile, inside)?;
        loaded.drop_deleted(context)?;
        if loaded.count() > 0 {
            tiles.push(loaded);
        }
    }
    let rows = tiles.iter().map(Loaded::count).sum();
    let mut columns = Vec::with_capacity(context.columns.len());
    for (&column, dtype) in context.columns.iter().zip(&context.dtypes) {
        let mut parts = Vec::with_capacity(tiles.len());
        for tile in &tiles {
            parts.push((tile.column(column)?, tile.selection.as_deref(), tile.count()));
        }
        columns.push(collect(dtype, &parts, rows)?);
    }
    Ok(Batch { rows, columns })
}

/// The next rows of merged fragments; true when they were the last.
fn merged_batch(context: &Context, merge: &mut Merge) -> Result<(Batch, bool)> {
    let mut tiles: Vec<Arc<Loaded>> = Vec::new();
    let mut picks: Vec<(usize, usize)> = Vec::new();
    let mut done = false;
    while picks.len() < BATCH_ROWS {
        let Some((tile, cell)) = merge.next(context)? else {
            done = true;
            break;
        };
        if tile.is_deleted(context, cell)? {
            continue;
        }
        let row = place_of(&mut tiles, tile);
        picks.push((row, cell));
    }
    let columns = gather(context, &tiles, &picks)?;
    Ok((Batch { rows: picks.len(), columns }, done))
}

/// The wanted columns of these cells.
fn gather(context: &Context, tiles: &[Arc<Loaded>], picks: &[(usize, usize)]) -> Result<Vec<Elements>> {
    let mut columns = Vec::with_capacity(context.columns.len());
    for (&column, dtype) in context.columns.iter().zip(&context.dtypes) {
        let cells = tiles.iter().map(|tile| tile.column(column)).collect::<Result<Vec<_>>>()?;
        let rows: Vec<&Elements> = cells
            .iter()
            .map(|cells| match cells {
                ColumnCells::Each(elements) | ColumnCells::Same(elements) => elements,
            })
            .collect();
        let same: Vec<bool> = cells.iter().map(|cells| matches!(cells, ColumnCells::Same(_))).collect();
        let own: Vec<(usize, usize)> =
            picks.iter().map(|&(row, cell)| (row, if same[row] { 0 } else { cell })).collect();
        columns.push(Elements::gather(dtype, &rows, &own)?);
    }
    Ok(columns)
}

/// A tile whose wanted cells are known.
#[derive(Debug)]
pub(crate) struct Loaded {
    reader: Arc<FragmentReader>,
    pub(crate) tile: usize,
    pub(crate) cells: usize,
    /// The wanted cells; `None` for all.
    selection: Option<Vec<u32>>,
    columns: Vec<OnceLock<ColumnCells>>,
    times: Option<Vec<u64>>,
    delete_times: Option<Vec<u64>>,
}

impl Loaded {
    pub(crate) fn load(context: &Context, reader: usize, tile: usize, inside: bool) -> Result<Self> {
        let reader = Arc::clone(&context.readers[reader]);
        let cells = reader.cells(tile)?;
        let mut loaded = Self {
            times: reader.timestamps(tile)?,
            delete_times: reader.delete_times(tile)?,
            columns: std::iter::repeat_with(OnceLock::new).take(context.names.len()).collect(),
            selection: None,
            reader,
            tile,
            cells,
        };
        let fragment = Arc::clone(&loaded.reader.fragment);
        let late = !fragment.name.inside(context.window);
        if !late && inside {
            return Ok(loaded);
        }
        // As many as the tile is seen to have: the first dimension is decoded before memory is taken for cells.
        let mut wanted: Vec<u32> = match &loaded.times {
            Some(times) if late => {
                (0..cells as u32).filter(|&cell| context.window.contains(times[cell as usize])).collect()
            }
            _ if late && !context.window.contains(fragment.name.start) => Vec::new(),
            _ => {
                loaded.column(0)?;
                (0..cells as u32).collect()
            }
        };
        if !inside {
            for (dimension, range) in context.region.iter().enumerate() {
                if *range != DimensionRange::All && !wanted.is_empty() {
                    range.select(&loaded.keys(dimension)?, &mut wanted);
                }
            }
        }
        loaded.selection = Some(wanted);
        Ok(loaded)
    }

    /// How many cells are wanted.
    pub(crate) fn count(&self) -> usize {
        self.selection.as_ref().map_or(self.cells, Vec::len)
    }

    /// The `index`-th wanted cell.
    pub(crate) fn selected(&self, index: usize) -> usize {
        self.selection.as_ref().map_or(index, |selection| selection[index] as usize)
    }

    /// When a cell was written.
    pub(crate) fn time(&self, cell: usize) -> u64 {
        self.times.as_ref().map_or(self.reader.fragment.name.start, |times| times[cell])
    }

    /// A column, decoded once.
    fn column(&self, column: usize) -> Result<ColumnCells> {
        let slot = &self.columns[column];
        if let Some(known) = slot.get() {
            return Ok(known.clone());
        }
        let cells = self.reader.column(column, self.tile)?;
        Ok(slot.get_or_init(|| cells).clone())
    }

    pub(crate) fn keys(&self, dimension: usize) -> Result<Keys> {
        let number = self.reader.datatype(dimension).number();
        match self.column(dimension)? {
            ColumnCells::Each(elements) | ColumnCells::Same(elements) => Ok(Keys::of(number, &elements)),
        }
    }

    /// Leaves out of the selection what was deleted.
    fn drop_deleted(&mut self, context: &Context) -> Result<()> {
        if self.delete_times.is_none() && !self.may_be_deleted(context)? {
            return Ok(());
        }
        let mut alive = Vec::with_capacity(self.count());
        for index in 0..self.count() {
            let cell = self.selected(index);
            if !self.is_deleted(context, cell)? {
                alive.push(cell as u32);
            }
        }
        self.selection = Some(alive);
        Ok(())
    }

    fn may_be_deleted(&self, context: &Context) -> Result<bool> {
        for delete in context.deletes.iter() {
            if self.applies(delete)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Can a delete concern this fragment at all?
    fn applies(&self, delete: &Delete) -> Result<bool> {
        Ok(delete.name.start >= self.reader.fragment.name.start
            && !self.reader.has_processed(&delete.name.stem)?)
    }

    /// Was a cell deleted, by a time of its own or by a condition that is not yet applied?
    pub(crate) fn is_deleted(&self, context: &Context, cell: usize) -> Result<bool> {
        if self
            .delete_times
            .as_ref()
            .is_some_and(|times| times[cell] <= context.window.end && times[cell] != u64::MAX)
        {
            return Ok(true);
        }
        for delete in context.deletes.iter() {
            if self.deletes(context, delete, cell)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// When a cell was first deleted; `u64::MAX` for never.
    fn deleted_at(&self, context: &Context, cell: usize) -> Result<u64> {
        let mut first = self.delete_times.as_ref().map_or(u64::MAX, |times| times[cell]);
        for delete in context.deletes.iter() {
            if delete.name.start < first && self.deletes(context, delete, cell)? {
                first = delete.name.start;
            }
        }
        Ok(first)
    }

    /// Does a condition that is not yet applied delete a cell?
    fn deletes(&self, context: &Context, delete: &Delete, cell: usize) -> Result<bool> {
        if delete.name.start < self.time(cell) || !self.applies(delete)? {
            return Ok(false);
        }
        let mut fields = Vec::new();
        delete.keep.fields(&mut fields);
        let mut columns = Vec::with_capacity(fields.len());
        for field in fields {
            if let Some(index) = context.names.iter().position(|(name, _)| *name == field) {
                columns.push((field, index, self.column(index)?));
            }
        }
        let keep = delete.keep.evaluate(&|name: &str| {
            let (_, index, cells) = columns.iter().find(|(field, ..)| field == name)?;
            let (elements, cell) = match cells {
                ColumnCells::Each(elements) => (elements, cell),
                ColumnCells::Same(elements) => (elements, 0),
            };
            let datatype = self.reader.datatype(*index);
            Some(CellValue {
                datatype,
                text: datatype.is_bytes() || matches!(elements.data, Data::Variable { .. }),
                nullable: context.names[*index].1,
                bytes: cell_bytes(elements, datatype.size(), cell),
            })
        });
        Ok(keep == Some(false))
    }
}

/// The bytes of one cell; `None` when it is null.
fn cell_bytes(elements: &Elements, size: usize, cell: usize) -> Option<&[u8]> {
    if elements.is_missing(cell) {
        return None;
    }
    match &elements.data {
        Data::Fixed(bytes) => bytes.get(cell * size..(cell + 1) * size),
        _ => elements.variable_at(cell),
    }
}

/// The wanted cells of several tiles as one row.
fn collect(dtype: &DType, parts: &[(ColumnCells, Option<&[u32]>, usize)], rows: usize) -> Result<Elements> {
    if let [(ColumnCells::Each(elements), None, _)] = parts {
        return Ok(elements.clone());
    }
    let plain = parts.iter().all(|(cells, ..)| {
        matches!(cells, ColumnCells::Each(Elements { data: Data::Fixed(_), validity: None }))
    });
    if let (true, Some(size)) = (plain, dtype.size()) {
        let mut bytes = Vec::with_capacity(rows * size);
        for (cells, selection, _) in parts {
            if let ColumnCells::Each(Elements { data: Data::Fixed(own), .. }) = cells {
                append(own, size, *selection, &mut bytes);
            }
        }
        return Ok(Elements::fixed(bytes));
    }
    let held: Vec<&Elements> = parts
        .iter()
        .map(|(cells, ..)| match cells {
            ColumnCells::Each(elements) | ColumnCells::Same(elements) => elements,
        })
        .collect();
    let mut picks = Vec::with_capacity(rows);
    for (row, (cells, selection, count)) in parts.iter().enumerate() {
        let same = matches!(cells, ColumnCells::Same(_));
        picks.extend((0..*count).map(|index| {
            let cell = selection.map_or(index, |selection| selection[index] as usize);
            (row, if same { 0 } else { cell })
        }));
    }
    Elements::gather(dtype, &held, &picks)
}

fn append(bytes: &[u8], size: usize, selection: Option<&[u32]>, out: &mut Vec<u8>) {
    fn pick<const N: usize>(bytes: &[u8], selection: &[u32], out: &mut Vec<u8>) {
        let (cells, _) = bytes.as_chunks::<N>();
        for &cell in selection {
            out.extend_from_slice(&cells[cell as usize]);
        }
    }
    match (selection, size) {
        (None, _) => out.extend_from_slice(bytes),
        (Some(selection), 4) => pick::<4>(bytes, selection, out),
        (Some(selection), 8) => pick::<8>(bytes, selection, out),
        (Some(selection), _) => {
            for &cell in selection {
                out.extend_from_slice(&bytes[cell as usize * size..(cell as usize + 1) * size]);
            }
        }
    }
}
