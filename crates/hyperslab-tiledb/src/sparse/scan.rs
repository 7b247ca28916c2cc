//! Scans: select fragments and tiles, then produce batches.

use std::collections::VecDeque;
use std::sync::Arc;

use hyperslab_core::{Batch, Batches, DType, Data, Elements, Result};
use rayon::prelude::*;

use super::filter::FilterPlan;
use super::loaded::Loaded;
use super::merge::{GlobalOrder, Merge};
use super::reader::{ColumnCells, FragmentReader};
use super::region::DimensionRange;
use super::{SparseTable, key_of};
use crate::condition::Delete;
use crate::fragment::Fragment;
use crate::names::TimeWindow;
use crate::schema::{Range, Schema};

/// The target number of rows in a batch. Smaller tiles are combined up to this number; larger tiles become batches of
/// their own.
const BATCH_ROWS: usize = 64 << 10;

/// The state that all parts of a scan share.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) readers: Vec<Arc<FragmentReader>>,
    pub(crate) region: Vec<DimensionRange>,
    pub(crate) order: GlobalOrder,
    pub(crate) rank: usize,
    columns: Vec<usize>,
    dtypes: Vec<DType>,
    /// The types of all columns of the table.
    all: Vec<DType>,
    /// The name of each column of the table, and whether it is nullable.
    pub(super) names: Vec<(String, bool)>,
    pub(super) deletes: Arc<[Delete]>,
    pub(super) window: TimeWindow,
    pub(super) filter: Option<FilterPlan>,
}

/// Fragments that may share coordinates and must be merged.
#[derive(Debug)]
pub(crate) struct Component {
    pub(crate) readers: Vec<usize>,
    pub(crate) merged: bool,
}

/// Groups the fragments so that different groups cannot share coordinates.
pub(crate) fn components(table: &SparseTable, readers: &[Arc<FragmentReader>]) -> Vec<Component> {
    let schema = &table.array.schema;
    if schema.allows_duplicates {
        return (0..readers.len()).map(|reader| Component { readers: vec![reader], merged: false }).collect();
    }
    let mut components: Vec<(Vec<usize>, Vec<Range>)> = Vec::new();
    for (index, reader) in readers.iter().enumerate() {
        let Some(domain) = &reader.fragment.footer.domain else { continue };
        let (mut members, mut bounds) = (vec![index], domain.clone());
        // Joining a component may enlarge the box so that it overlaps others. Repeat until none overlaps.
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
            // A consolidated fragment can hold several versions of a cell.
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

/// The bounding box of two boxes.
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
    filter: Option<FilterPlan>,
) -> Result<Batches<'_>> {
    let context = Context { filter, ..context(table, columns, region)? };
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
        all: all.iter().map(|column| column.dtype.clone()).collect(),
        names: all.iter().map(|column| (column.name.clone(), column.nullable)).collect(),
        deletes: Arc::clone(table.deletes()?),
        window: table.array.window(),
        filter: None,
    })
}

/// Iterates over all versions of all cells of some fragments, in global order. Used by consolidation.
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

/// Cells to be written to a consolidated fragment.
#[derive(Debug)]
pub(crate) struct VersionTile {
    pub(crate) columns: Vec<Elements>,
    /// The write time of each cell.
    pub(crate) times: Vec<u64>,
    /// The delete time of each cell, `u64::MAX` for never. Empty if no fragment has deletes.
    pub(crate) deleted: Vec<u64>,
}

/// Returns the index of a tile in the list of tiles in use, adding it if needed. It is usually one of the last few.
fn place_of(tiles: &mut Vec<Arc<Loaded>>, tile: Arc<Loaded>) -> usize {
    match tiles.iter().rposition(|own| Arc::ptr_eq(own, &tile)) {
        Some(place) => place,
        None => {
            tiles.push(tile);
            tiles.len() - 1
        }
    }
}

/// A tile to read: the reader's index, the tile's number, and whether all of its cells are wanted.
type Unit = (usize, usize, bool);

struct Scanner {
    context: Context,
    components: VecDeque<Component>,
    /// Tiles of fragments that need no merging, grouped into batches.
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
    /// Prepares more batches. Returns false if there are none left.
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
            // Build several batches at a time, on all cores.
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
        // Adjacent fragments that need no merging share batches.
        let mut alone = component.readers;
        while let Some(next) = self.components.front().filter(|next| !next.merged) {
            alone.extend(&next.readers);
            self.components.pop_front();
        }
        for reader in alone {
            for (tile, inside) in self.context.readers[reader].tiles(&self.context.region)? {
                if let Some(filter) = &self.context.filter
                    && filter.rules_out(&self.context.readers[reader], tile)?
                {
                    continue;
                }
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

/// Builds a batch from tiles that need no merging.
fn plain_batch(context: &Context, units: &[Unit]) -> Result<Batch> {
    let mut tiles = Vec::with_capacity(units.len());
    for &(reader, tile, inside) in units {
        let mut loaded = Loaded::load(context, reader, tile, inside)?;
        loaded.drop_deleted(context)?;
        loaded.drop_filtered(context)?;
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

/// Builds a batch from merged fragments. Returns true with the last rows.
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
    // Filter after merging: otherwise an older version of a cell would reappear if the newest fails the filter.
    if let Some(filter) = &context.filter {
        let cells = |column: usize| {
            let dtype = context.all[column].clone();
            gather_column(&dtype, column, &tiles, &picks).map(ColumnCells::Each)
        };
        let mut passed = filter.evaluate(picks.len(), &cells)?.into_iter();
        picks.retain(|_| passed.next() == Some(1));
    }
    let columns = gather(context, &tiles, &picks)?;
    Ok((Batch { rows: picks.len(), columns }, done))
}

/// Gathers the wanted columns of the picked cells.
fn gather(context: &Context, tiles: &[Arc<Loaded>], picks: &[(usize, usize)]) -> Result<Vec<Elements>> {
    let columns = context.columns.iter().zip(&context.dtypes);
    columns.map(|(&column, dtype)| gather_column(dtype, column, tiles, picks)).collect()
}

fn gather_column(
    dtype: &DType,
    column: usize,
    tiles: &[Arc<Loaded>],
    picks: &[(usize, usize)],
) -> Result<Elements> {
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
    Elements::gather(dtype, &rows, &own)
}

/// Concatenates the wanted cells of several tiles.
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
