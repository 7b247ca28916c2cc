//! Writes a geometry from memory as a new store.

use std::path::Path;

use hyperslab_core::{DType, Elements, Error, GeometryData, Result, Values};

use super::{ColumnSpec, GeometryKind, GeometrySpec, WriteOptions, ZvfWriter};

/// The number of vertices per batch.
const BATCH: usize = 1 << 16;

/// Writes a geometry as a new store.
///
/// For lines, an object's rows are its path, and `links` is ignored. Vertices of points, graphs and meshes belong to
/// at most one object. For geometries larger than memory, use [`ZvfWriter`].
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) if the data is inconsistent or contradicts the options; [`Io`](Error::Io) if the
/// system reports an error. Nothing is left behind then.
pub fn write(
    target: impl AsRef<Path>,
    kind: GeometryKind,
    data: &GeometryData,
    options: &WriteOptions,
) -> Result<()> {
    let [rows, rank] = data.vertices.shape.as_slice() else {
        return Err(Error::invalid("vertices need one row a vertex and one column an axis"));
    };
    let links = data.links.as_ref().filter(|_| kind.stores_links());
    let spec = GeometrySpec {
        kind,
        rank: *rank as usize,
        dtype: data.vertices.dtype.clone(),
        attributes: columns(&data.attributes, *rows)?,
        link_width: links.map(link_width).transpose()?,
        link_attributes: match links {
            Some(links) => columns(&data.link_attributes, links.shape[0])?,
            None => Vec::new(),
        },
        objects: !data.objects.is_empty() || kind.is_path(),
    };
    let mut writer = ZvfWriter::create(target, spec, options.clone())?;
    add(&mut writer, data)?;
    writer.commit()
}

/// Adds a geometry to a writer, which may already have content.
pub(crate) fn add(writer: &mut ZvfWriter, data: &GeometryData) -> Result<()> {
    let kind = writer.spec.kind;
    let [rows, _] = *data.vertices.shape.as_slice() else {
        return Err(Error::invalid("vertices need one row a vertex and one column an axis"));
    };
    if !data.objects.is_empty() && !writer.spec.objects {
        return Err(Error::invalid("the vertices belong to objects, and the store has none"));
    }
    let first = writer.count - writer.base;
    let order = Order::new(kind, data, rows)?;
    match &order {
        None => {
            let nobody = vec![None; if writer.spec.objects { rows as usize } else { 0 }];
            writer.vertices(&data.vertices, &data.attributes, &nobody)?;
        }
        Some(order) => order.push(data, writer)?,
    }
    for (id, rows) in &data.objects {
        if rows.is_empty() {
            writer.object(*id)?;
        }
    }
    if let Some(links) = data.links.as_ref().filter(|_| kind.stores_links()) {
        let mut numbers = link_rows(links, rows)?;
        if let Some(order) = &order {
            let places = order.places(rows as usize);
            numbers.iter_mut().for_each(|row| *row = places[*row as usize]);
        }
        numbers.iter_mut().for_each(|row| *row += first);
        writer.links(&numbers, &data.link_attributes)?;
    }
    let ids: Vec<i64> = data.objects.iter().map(|(id, _)| *id).collect();
    for (name, values) in &data.object_attributes {
        writer.attribute_of(name, ids.clone(), values.clone());
    }
    Ok(())
}

fn columns(attributes: &[(String, Values)], rows: u64) -> Result<Vec<ColumnSpec>> {
    let one = |(name, values): &(String, Values)| match values.shape.first() {
        Some(own) if *own == rows => ColumnSpec::of(name, values),
        _ => Err(Error::invalid(format!(
            "the attribute {name:?} of the shape {:?} needs {rows} rows",
            values.shape
        ))),
    };
    attributes.iter().map(one).collect()
}

/// Selects the rows with these numbers.
fn gathered(values: &Values, rows: &[usize]) -> Result<Values> {
    let each: usize = values.shape[1..].iter().product::<u64>() as usize;
    let picks: Vec<(usize, usize)> =
        rows.iter().flat_map(|row| (0..each).map(move |part| (0, row * each + part))).collect();
    let mut shape = values.shape.clone();
    shape[0] = rows.len() as u64;
    let elements = match (values.elements.as_fixed(), values.dtype.size()) {
        (Some(bytes), Some(size)) if values.elements.validity.is_none() => {
            let size = size * each;
            let mut out = Vec::with_capacity(rows.len() * size);
            rows.iter().for_each(|row| out.extend_from_slice(&bytes[row * size..(row + 1) * size]));
            Elements::fixed(out)
        }
        _ => Elements::gather(&values.dtype, &[&values.elements], &picks)?,
    };
    Values::new(values.dtype.clone(), &shape, elements)
}

/// The order in which vertices are written: by object, then those without an object.
struct Order {
    rows: Vec<usize>,
    owners: Vec<Option<i64>>,
}

impl Order {
    /// Returns `None` if there are no objects, which keeps the given order.
    fn new(kind: GeometryKind, data: &GeometryData, rows: u64) -> Result<Option<Self>> {
        if data.objects.is_empty() && !kind.is_path() {
            return Ok(None);
        }
        let mut objects: Vec<&(i64, Vec<u64>)> = data.objects.iter().collect();
        objects.sort_by_key(|(id, _)| *id);
        if objects.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Err(Error::invalid("an object's id occurs twice"));
        }
        let mut seen = vec![false; rows as usize];
        let (mut order, mut owners) = (Vec::new(), Vec::new());
        for (id, own) in objects {
            for row in own {
                let Some(seen) = seen.get_mut(*row as usize) else {
                    return Err(Error::invalid(format!("object {id} names vertices past the last")));
                };
                if std::mem::replace(seen, true) && !kind.is_path() {
                    let problem = format!("vertex {row} of object {id} belongs to another, or occurs twice");
                    return Err(Error::invalid(problem));
                }
                order.push(*row as usize);
                owners.push(Some(*id));
            }
        }
        let left: Vec<usize> = (0..rows as usize).filter(|row| !seen[*row]).collect();
        if let Some(vertex) = left.first().filter(|_| kind.is_path()) {
            return Err(Error::invalid(format!("vertex {vertex} belongs to no line")));
        }
        owners.extend(left.iter().map(|_| None));
        order.extend(left);
        Ok(Some(Self { rows: order, owners }))
    }

    fn push(&self, data: &GeometryData, writer: &mut ZvfWriter) -> Result<()> {
        for (rows, owners) in self.rows.chunks(BATCH).zip(self.owners.chunks(BATCH)) {
            let attributes = data.attributes.iter();
            let attributes = attributes.map(|(name, values)| Ok((name.clone(), gathered(values, rows)?)));
            let attributes: Vec<_> = attributes.collect::<Result<_>>()?;
            writer.vertices(&gathered(&data.vertices, rows)?, &attributes, owners)?;
        }
        Ok(())
    }

    /// The number under which each vertex was written.
    fn places(&self, rows: usize) -> Vec<u64> {
        let mut places = vec![0; rows];
        self.rows.iter().enumerate().for_each(|(place, row)| places[*row] = place as u64);
        places
    }
}

fn link_width(links: &Values) -> Result<usize> {
    match links.shape.as_slice() {
        [_, width] if (2..=8).contains(width) => Ok(*width as usize),
        shape => Err(Error::invalid(format!("links of the shape {shape:?}"))),
    }
}

fn link_rows(links: &Values, rows: u64) -> Result<Vec<u64>> {
    let numbers: Option<Vec<u64>> = match (&links.dtype, links.elements.as_fixed()) {
        (DType::UInt64 | DType::Int64, Some(bytes)) => {
            Some(bytes.as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word)).collect())
        }
        (DType::UInt32, Some(bytes)) => {
            Some(bytes.as_chunks::<4>().0.iter().map(|word| u32::from_ne_bytes(*word).into()).collect())
        }
        (DType::Int32, Some(bytes)) => {
            let signed = bytes.as_chunks::<4>().0.iter().map(|word| i32::from_ne_bytes(*word));
            Some(signed.map(|row| u64::try_from(row).unwrap_or(u64::MAX)).collect())
        }
        _ => None,
    };
    let numbers = numbers.ok_or_else(|| Error::invalid(format!("links of {}", links.dtype)))?;
    match numbers.iter().find(|row| **row >= rows) {
        Some(row) => Err(Error::invalid(format!("a link to vertex {row} of {rows}"))),
        None => Ok(numbers),
    }
}
