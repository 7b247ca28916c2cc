//! Writes sparse arrays: columns to fragments.

use std::path::Path;
use std::sync::Arc;

use hyperslab_core::storage::{StageOptions, StagedChange, StagedFolder};
use hyperslab_core::{Bound, Data, Elements, Error, Result};
use rayon::prelude::*;

use super::fragment::Extra;
use super::{
    FieldTile, FragmentWriter, TileStats, WriteOptions, put_commit, put_schema, schema_to_write, timed_name,
};
use crate::OpenOptions;
use crate::datatype::Number;
use crate::field::FieldCodecs;
use crate::fragment::RTree;
use crate::key::Key;
use crate::schema::{ArrayKind, Range, Schema, WRITTEN};
use crate::sparse::{GlobalOrder, Keys, join};

/// The number of tiles that are encoded at a time.
const GROUP: usize = 32;

/// Creates an empty sparse array.
///
/// # Errors
///
/// [`Exists`](Error::Exists) if something exists at the path and `force` is not set, [`Invalid`](Error::Invalid) if
/// the schema is not of a sparse array.
pub fn create_sparse(path: &Path, schema: &Schema, options: &WriteOptions) -> Result<()> {
    if schema.kind != ArrayKind::Sparse || schema.capacity == 0 {
        return Err(Error::invalid("the schema is not that of a sparse array"));
    }
    let stage = StageOptions::default().with_replace(options.force).with_sync(options.sync);
    let staged = StagedFolder::create(path, stage)?;
    put_schema(staged.writer(), schema, super::next_time(options.at, 0), options.key.as_ref())?;
    staged.publish()
}

/// Appends rows to a sparse array as one fragment. Columns are in the schema's order: dimensions, then attributes.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) if columns are missing or differ in length, if coordinates lie outside the domain, or
/// if two rows have the same coordinates in an array without duplicates.
pub fn write_sparse(path: &Path, columns: &[Elements], options: &WriteOptions) -> Result<()> {
    let open = OpenOptions { key: options.key.clone(), ..OpenOptions::default() };
    let _lock = super::locks::adding(path)?;
    let directory = Arc::new(hyperslab_core::LocalStorage::new(path));
    let array = crate::array::OpenArray::open(directory, String::new(), open)?;
    let schema = Arc::clone(&array.schema);
    let at = super::time_of(&array, options)?;
    let rows = check_columns(&schema, columns)?;
    if rows == 0 {
        return Ok(());
    }
    let change = StagedChange::open(path)?;
    let (schema, schema_name) = schema_to_write(change.writer(), &array, options.key.as_ref())?;
    let name = timed_name(at, at, true)?;
    let writer = FragmentWriter::create(
        change.writer(),
        &name,
        Arc::clone(&schema),
        schema_name,
        Extra::default(),
        options.key.clone(),
    )?;
    write_rows(writer, &schema, columns, (0, rows), options)?;
    let commit = put_commit(change.writer(), &name)?;
    change.publish(&[commit])
}

/// Checks that all columns are present and have the same length. Returns the number of rows.
fn check_columns(schema: &Schema, columns: &[Elements]) -> Result<usize> {
    let dtypes: Vec<_> = schema
        .dimensions
        .iter()
        .map(crate::schema::Dimension::dtype)
        .chain(schema.attributes.iter().map(crate::schema::Attribute::dtype))
        .collect();
    if dtypes.len() != columns.len() {
        return Err(Error::invalid(format!(
            "{} columns given, the array has {}",
            columns.len(),
            dtypes.len()
        )));
    }
    let rows = columns.first().zip(dtypes.first()).map_or(0, |(column, dtype)| column.len(dtype));
    for (column, dtype) in columns.iter().zip(&dtypes) {
        if column.len(dtype) != rows {
            return Err(Error::invalid(format!("columns of {rows} and {} rows", column.len(dtype))));
        }
    }
    if u32::try_from(rows).is_err() {
        return Err(Error::invalid("more than 2^32 rows in one write; write several fragments"));
    }
    Ok(rows)
}

/// Writes `rows` rows as one fragment. `before` is the number of rows before them, for messages.
pub(super) fn write_rows(
    mut writer: FragmentWriter,
    schema: &Arc<Schema>,
    columns: &[Elements],
    (before, rows): (usize, usize),
    options: &WriteOptions,
) -> Result<()> {
    let rank = schema.dimensions.len();
    let numbers: Vec<Number> =
        schema.dimensions.iter().map(|dimension| dimension.datatype.number()).collect();
    let keys: Vec<Keys> =
        numbers.iter().zip(columns).map(|(number, column)| Keys::of(*number, column)).collect();
    check_domain(schema, &keys, before, rows)?;
    let sorted = sorted_rows(schema, keys, &numbers, (before, rows))?;
    let capacity = usize::try_from(schema.capacity).unwrap_or(usize::MAX);
    let codecs = codecs(schema, options.key.as_ref());
    let dtypes: Vec<_> = schema
        .dimensions
        .iter()
        .map(crate::schema::Dimension::dtype)
        .chain(schema.attributes.iter().map(crate::schema::Attribute::dtype))
        .collect();
    let tiles: Vec<&[u32]> = sorted.chunks(capacity).collect();
    let mut leaves: Vec<Vec<Range>> = Vec::with_capacity(tiles.len());
    for group in tiles.chunks(GROUP) {
        let encoded = group
            .par_iter()
            .map(|cells| encode_tile(schema, &dtypes, &codecs, columns, cells))
            .collect::<Result<Vec<_>>>()?;
        for (fields, leaf) in encoded {
            for (column, tile) in fields.iter().enumerate() {
                // Slots: attributes first, then the unused slot, then dimensions.
                let slot = match column.checked_sub(rank) {
                    Some(attribute) => attribute,
                    None => schema.attributes.len() + 1 + column,
                };
                writer.append(slot, tile)?;
            }
            leaves.push(leaf);
        }
    }
    let count = leaves.len() as u64;
    let domain = leaves.iter().skip(1).fold(leaves[0].clone(), |all, leaf| join(schema, &all, leaf));
    let join_all = |boxes: &[Vec<Range>]| {
        boxes.iter().skip(1).fold(boxes[0].clone(), |all, leaf| join(schema, &all, leaf))
    };
    let rtree = RTree::build(leaves, join_all);
    let last = tiles.last().map_or(0, |tile| tile.len()) as u64;
    writer.finish(&domain, count, last, &rtree)
}

/// One codec per column, dimensions first.
pub(super) fn codecs(schema: &Schema, key: Option<&Key>) -> Vec<FieldCodecs> {
    (0..schema.dimensions.len())
        .map(|index| FieldCodecs::dimension(schema, index, WRITTEN, key))
        .chain((0..schema.attributes.len()).map(|index| FieldCodecs::attribute(schema, index, WRITTEN, key)))
        .collect()
}

fn check_domain(schema: &Schema, keys: &[Keys], before: usize, rows: usize) -> Result<()> {
    for (dimension, keys) in schema.dimensions.iter().zip(keys) {
        let Keys::Fixed(keys) = keys else { continue };
        let (number, size) = (dimension.datatype.number(), dimension.datatype.size());
        let low = crate::sparse::key_of(number, &dimension.domain[..size]);
        let high = crate::sparse::key_of(number, &dimension.domain[size..]);
        if let Some(row) = (0..rows).find(|&row| !(low..=high).contains(&keys[row])) {
            let end = |bytes| match crate::sparse::bound(dimension, bytes) {
                Bound::Integer(value) => value.to_string(),
                Bound::Float(value) => value.to_string(),
                Bound::Bytes(_) => String::new(),
            };
            let (low, high) = dimension.domain.split_at(size);
            return Err(Error::invalid(format!(
                "row {} lies outside the domain of dimension {:?}, which is {} to {}; it cannot change, so rows outside it \
                 need a new array",
                before + row + 1,
                dimension.name,
                end(low),
                end(high)
            )));
        }
    }
    Ok(())
}

/// Sorts the rows into global order. Two numeric dimensions, the common case, are sorted as plain numbers.
fn sorted_rows(
    schema: &Schema,
    keys: Vec<Keys>,
    numbers: &[Number],
    (before, rows): (usize, usize),
) -> Result<Vec<u32>> {
    let order = GlobalOrder::new(schema);
    let ordered = order.prepare(keys, numbers, rows);
    let sorted: Vec<u32> = if let Some(mut flat) = order.flat(&ordered, rows) {
        flat.par_sort_unstable();
        flat.into_iter().map(|(_, _, _, row)| row).collect()
    } else {
        let mut sorted: Vec<u32> = (0..rows as u32).collect();
        sorted.par_sort_by(|&a, &b| order.compare(&ordered, a as usize, &ordered, b as usize));
        sorted
    };
    if !schema.allows_duplicates {
        let twice = sorted
            .par_windows(2)
            .find_any(|pair| order.compare(&ordered, pair[0] as usize, &ordered, pair[1] as usize).is_eq());
        if let Some(pair) = twice {
            return Err(Error::invalid(format!(
                "rows {} and {} have the same coordinates, but the array allows no duplicates",
                before + pair[0] as usize,
                before + pair[1] as usize
            )));
        }
    }
    Ok(sorted)
}

/// Encodes one tile of each column, and computes its box.
fn encode_tile(
    schema: &Schema,
    dtypes: &[hyperslab_core::DType],
    codecs: &[FieldCodecs],
    columns: &[Elements],
    cells: &[u32],
) -> Result<(Vec<FieldTile>, Vec<Range>)> {
    let rank = schema.dimensions.len();
    let (mut fields, mut leaf) = (Vec::with_capacity(columns.len()), Vec::with_capacity(rank));
    for (index, (column, codec)) in columns.iter().zip(codecs).enumerate() {
        let own = pick(&dtypes[index], column, cells)?;
        let mut tile = codec.encode(&own, cells.len())?;
        match index.checked_sub(rank) {
            None => leaf.push(range_of(&schema.dimensions[index], &own, cells.len())?),
            Some(attribute) => {
                tile.stats = TileStats::of(&schema.attributes[attribute], &own, cells.len());
            }
        }
        fields.push(tile);
    }
    Ok((fields, leaf))
}

/// Selects these rows of a column.
fn pick(dtype: &hyperslab_core::DType, column: &Elements, cells: &[u32]) -> Result<Elements> {
    if let (Data::Fixed(bytes), None, Some(8)) = (&column.data, &column.validity, dtype.size()) {
        let (words, _) = bytes.as_chunks::<8>();
        let mut own = Vec::with_capacity(cells.len() * 8);
        for &cell in cells {
            own.extend_from_slice(&words[cell as usize]);
        }
        return Ok(Elements::fixed(own));
    }
    let picks: Vec<(usize, usize)> = cells.iter().map(|&cell| (0, cell as usize)).collect();
    Elements::gather(dtype, &[column], &picks)
}

/// The lowest and the highest coordinate.
pub(super) fn range_of(dimension: &crate::schema::Dimension, own: &Elements, cells: usize) -> Result<Range> {
    let empty = || Error::invalid("a tile without cells");
    if dimension.is_text() {
        let texts = || (0..cells).filter_map(|cell| own.variable_at(cell));
        let (low, high) = (texts().min().ok_or_else(empty)?, texts().max().ok_or_else(empty)?);
        return Ok(Range { low: low.to_vec(), high: high.to_vec(), text: true });
    }
    let size = dimension.datatype.size();
    let bytes = own.as_fixed().ok_or_else(empty)?;
    let keys = crate::sparse::keys_of(dimension.datatype.number(), bytes);
    let low = (0..cells).min_by_key(|&cell| keys[cell]).ok_or_else(empty)?;
    let high = (0..cells).max_by_key(|&cell| keys[cell]).ok_or_else(empty)?;
    let value = |cell: usize| bytes[cell * size..(cell + 1) * size].to_vec();
    Ok(Range { low: value(low), high: value(high), text: false })
}
