//! Writes a store of geometry, such as Zarr Vectors, from a geometry, arrays or a table.
//!
//! | source | vertices | objects | links | attributes |
//! |---|---|---|---|---|
//! | a geometry | its own | its own, and their groups | its own | its own |
//! | arrays | `vertices`, `positions`, `points` or the only one: one row per vertex | `object_id`, `ids` … | `links`, `edges`,
//! `faces` | every other array with one row per vertex |
//! | a table | its dimensions, or the columns x, y, z | the column `object_id` … | none | every other numeric column |
//!
//! A missing or negative object id means that the vertex belongs to no object. Missing floats of a table become NaN. Arrays and tables are processed in batches; a geometry is
//! held in memory as a whole.

use std::path::Path;
use std::sync::atomic::Ordering;

use hyperslab_core::{
    ArraySchema, Batch, Column, DType, Elements, Error, GeometryColumn, GeometryQuery, GeometrySink,
    GeometrySpec, Node, Result, Selection, Validity, Values,
};

use super::{ConvertOptions, ConvertReport, Progress};
use crate::{ArrayReader, Format, OpenStore, TableReader};

/// Common names of the arrays.
const VERTICES: [&str; 4] = ["vertices", "positions", "points", "coordinates"];
const OBJECTS: [&str; 5] = ["object_id", "object_ids", "object", "objects", "ids"];
const LINKS: [&str; 3] = ["links", "edges", "faces"];
/// The kind of geometry that has only vertices.
const POINTS: &str = "point_cloud";
const AXES: [&str; 4] = ["x", "y", "z", "w"];
/// Rows per batch.
const BATCH: u64 = 1 << 17;
/// The number of vertices to aim for in a chunk, unless the chunk size is given.
const PER_CHUNK: f64 = 16_384.0;

/// Options for writing geometry.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct GeometryOptions {
    /// The kind, in the format's terms: `point_cloud`, `streamline`, `mesh` … By default the kind of the source, or the one that
    /// its links suggest.
    pub kind: Option<String>,
    /// The chunk size along each axis, in units of space. A single size applies to all axes. By default, chunks hold some
    /// thousand vertices.
    pub chunk_shape: Option<Vec<f64>>,
    /// The number of coarser levels, each with half the detail of the one before.
    pub levels: usize,
}

hyperslab_core::option_setters! { GeometryOptions {
    with_kind = kind: into Option<String>,
    with_chunk_shape = chunk_shape: into Option<Vec<f64>>,
    with_levels = levels: usize,
} }

pub(super) fn convert(
    source: &OpenStore,
    nodes: &[(String, Node)],
    (target, format): (&Path, Format),
    options: &ConvertOptions,
    progress: &Progress,
) -> Result<ConvertReport> {
    if options.shapes_arrays() || options.selection != Selection::all() {
        return Err(Error::unsupported(
            target.display().to_string(),
            "selecting, sharding or filtering when writing geometry",
        ));
    }
    let mut job = Job::new(target, format, options, progress);
    if options.append && target.exists() {
        job.existing = Some(Existing::open(target, format, options)?);
    }
    job.add(source, nodes)?;
    if let Some(existing) = job.existing {
        existing.sink.commit()?;
    }
    Ok(job.report)
}

/// Adds the geometry, arrays or table of each source to a geometry store: all of them or none. Returns the old number
/// of vertices.
pub(crate) fn append(
    target: &Path,
    format: Format,
    sources: &[OpenStore],
    (options, dry_run): (&ConvertOptions, bool),
    progress: &Progress,
) -> Result<(u64, ConvertReport)> {
    let mut job = Job::new(target, format, options, progress);
    let existing = Existing::open(target, format, options)?;
    let before = existing.before;
    job.existing = Some(existing);
    for source in sources {
        job.add(source, &super::nodes::by_path(source, &[])?.all_nodes()?)?;
    }
    if let Some(existing) = job.existing.filter(|_| !dry_run) {
        existing.sink.commit()?;
    }
    Ok((before, job.report))
}

/// A geometry store to which sources are added.
struct Existing {
    sink: Box<dyn GeometrySink>,
    kind: String,
    /// The old number of vertices.
    before: u64,
    /// The number of vertices added.
    added: u64,
}

impl Existing {
    fn open(target: &Path, format: Format, options: &ConvertOptions) -> Result<Self> {
        let geometry = &options.geometry;
        if geometry.chunk_shape.is_some() || geometry.levels > 0 {
            return Err(Error::invalid(
                "an existing store keeps its chunks and levels; leave out the options that set them",
            ));
        }
        let store = crate::open(target)?;
        let reader = store.geometry("/")?;
        let kind = reader.schema().kinds.first().cloned().unwrap_or_default();
        if let Some(wanted) = geometry.kind.as_ref().filter(|wanted| **wanted != kind) {
            return Err(Error::invalid(format!("{} is a {kind}, not a {wanted}", target.display())));
        }
        let before = reader.inner().levels()?.first().map_or(0, |level| level.vertices);
        let sink = format.driver().append_geometry(target, options.memory)?;
        Ok(Self { sink, kind, before, added: 0 })
    }
}

struct Job<'a> {
    target: &'a Path,
    format: Format,
    options: &'a ConvertOptions,
    progress: &'a Progress,
    report: ConvertReport,
    /// The store to extend, unless a new one is written.
    existing: Option<Existing>,
}

impl<'a> Job<'a> {
    fn new(target: &'a Path, format: Format, options: &'a ConvertOptions, progress: &'a Progress) -> Self {
        Self { target, format, options, progress, report: ConvertReport::default(), existing: None }
    }

    /// Writes a source, or adds it to the existing store.
    fn add(&mut self, source: &OpenStore, nodes: &[(String, Node)]) -> Result<()> {
        let of_kind = |wanted: fn(&Node) -> bool| nodes.iter().filter(move |(_, node)| wanted(node));
        let geometries: Vec<_> = of_kind(|node| matches!(node, Node::Geometry(_))).collect();
        let tables: Vec<_> = of_kind(|node| matches!(node, Node::Table(_))).collect();
        match (geometries.as_slice(), tables.as_slice()) {
            ([(path, _), ..], _) => self.geometry(source, path),
            ([], [(path, _)]) => self.table(&source.table(path)?),
            ([], [_, _, ..]) => Err(Error::invalid("the source has several tables; choose one by its path")),
            ([], []) => {
                let array = |(path, node): &(String, Node)| match node {
                    Node::Array(array) => Some((path.clone(), source.reader(std::sync::Arc::clone(array)))),
                    _ => None,
                };
                self.arrays(nodes.iter().filter_map(array).collect())
            }
        }
    }

    /// Writes `vertices` vertices and their links, to a new store or to the existing one. `write` gets the number of
    /// the first vertex.
    fn write(
        &mut self,
        spec: &GeometrySpec,
        write: impl FnOnce(&mut Self, &mut dyn GeometrySink, u64) -> Result<u64>,
    ) -> Result<()> {
        let Some(mut existing) = self.existing.take() else {
            let mut sink = self.format.driver().create_geometry(self.target, spec)?;
            write(self, &mut *sink, 0)?;
            return sink.commit();
        };
        existing.added += write(self, &mut *existing.sink, existing.added)?;
        self.existing = Some(existing);
        Ok(())
    }

    /// Returns true if the chunk size has to be derived from the bounds of the vertices.
    fn needs_bounds(&self) -> bool {
        self.options.geometry.chunk_shape.is_none() && self.existing.is_none()
    }

    fn leave_out(&mut self, path: &str, what: String) -> Result<()> {
        if self.options.strict {
            return Err(Error::invalid(format!("{path}: {what}; nothing was written")));
        }
        self.report.drop(path, what);
        Ok(())
    }

    fn kind(&self, suggested: &str) -> Result<String> {
        let Some(name) = &self.options.geometry.kind else { return Ok(suggested.to_owned()) };
        let kinds = self.format.info().geometry_kinds;
        if !kinds.contains(&name.as_str()) {
            let all = kinds.join(", ");
            return Err(Error::invalid(format!("{name:?} is not a kind of geometry; choose one of: {all}")));
        }
        Ok(name.clone())
    }

    /// A spec for this kind, with this many vertices within these bounds, and no attributes yet.
    fn spec(&self, kind: String, dtype: DType, bounds: &Bounds, count: u64) -> GeometrySpec {
        let rank = bounds.low.len();
        let chunk_shape = match self.options.geometry.chunk_shape.as_deref() {
            Some([size]) => vec![*size; rank],
            Some(sizes) => sizes.to_vec(),
            None => {
                let parts = (count as f64 / PER_CHUNK).powf(1.0 / rank.max(1) as f64).ceil().max(1.0);
                let size = |(low, high): (&f64, &f64)| if high > low { (high - low) / parts } else { 1.0 };
                bounds.low.iter().zip(&bounds.high).map(size).collect()
            }
        };
        GeometrySpec {
            kind,
            rank,
            dtype,
            attributes: Vec::new(),
            link_width: None,
            objects: false,
            groups: Vec::new(),
            axes: None,
            chunk_shape,
            levels: self.options.geometry.levels,
            memory: self.options.memory,
            replace: self.options.replace,
            sync: self.options.sync,
        }
    }

    /// The column for an array with one row per vertex, if the format supports it.
    fn column_of(&self, name: &str, schema: &ArraySchema) -> Option<GeometryColumn> {
        match *schema.shape() {
            [_] => self.column(name, &schema.dtype, None),
            [_, width] if width > 0 => self.column(name, &schema.dtype, Some(width)),
            _ => None,
        }
    }

    /// The column for these values, if the format supports it.
    fn column(&self, name: &str, dtype: &DType, width: Option<u64>) -> Option<GeometryColumn> {
        let column = GeometryColumn { name: name.to_owned(), dtype: dtype.clone(), width };
        Some(column).filter(|column| self.format.driver().takes_column(column))
    }

    fn done(&mut self, rows: u64, bytes: u64) -> Result<()> {
        self.progress.check_cancelled()?;
        self.progress.done.fetch_add(bytes, Ordering::Relaxed);
        (self.report.rows, self.report.bytes) = (self.report.rows + rows, self.report.bytes + bytes);
        Ok(())
    }

    /// Writes an existing geometry at its finest level.
    fn geometry(&mut self, source: &OpenStore, path: &str) -> Result<()> {
        let reader = source.geometry(path)?;
        let schema = reader.schema();
        let known = self.format.info().geometry_kinds;
        let own = schema.kinds.first().map(String::as_str).filter(|own| known.contains(own));
        let kind = self.kind(own.unwrap_or(POINTS))?;
        if let Some(existing) = self.existing.as_ref().filter(|existing| existing.kind != kind) {
            return Err(Error::invalid(format!(
                "{}: a {kind} cannot be added to a {}",
                source.path().display(),
                existing.kind
            )));
        }
        let coarser = reader.inner().levels()?.len().saturating_sub(1);
        if coarser > 0 && self.options.geometry.levels == 0 {
            self.leave_out(
                path,
                format!("{coarser} coarser levels are left out; they can be generated again"),
            )?;
        }
        if schema.kinds.len() > 1 {
            self.leave_out(
                path,
                format!("of the kinds {}, only {kind} is recorded", schema.kinds.join(", ")),
            )?;
        }
        if !super::rows::own_attributes(&schema.attributes) {
            self.leave_out(path, "its attributes are left out".to_owned())?;
        }
        let data = reader.query(&GeometryQuery::default())?.data;
        let rows = data.vertices.shape[0];
        let mut bounds = Bounds::new(schema.axes.len());
        bounds.add(&numbers(&data.vertices.dtype, &data.vertices.elements)?);
        let mut spec = self.spec(kind, data.vertices.dtype.clone(), &bounds, rows);
        spec.axes = Some(schema.axes.clone());
        spec.groups = groups(&reader)?;
        self.progress.check_cancelled()?;
        match &mut self.existing {
            None => self.format.driver().write_geometry(self.target, &spec, &data)?,
            Some(existing) => {
                existing.sink.geometry(&data, &spec.groups)?;
                existing.added += rows;
            }
        }
        self.done(rows, data.vertices.elements.as_fixed().map_or(0, |bytes| bytes.len() as u64))
    }

    fn arrays(&mut self, mut arrays: Vec<(String, ArrayReader)>) -> Result<()> {
        let mut take = |names: &[&str]| {
            let called = |path: &str, name: &str| path.rsplit('/').next() == Some(name);
            let found = names.iter().find_map(|name| arrays.iter().position(|(path, _)| called(path, name)));
            found.map(|at| arrays.remove(at))
        };
        let (objects, links) = (take(&OBJECTS), take(&LINKS));
        let vertices = take(&VERTICES).or_else(|| if arrays.len() == 1 { arrays.pop() } else { None });
        let Some((path, vertices)) = vertices else {
            let names = VERTICES.join(", ");
            return Err(Error::invalid(format!(
                "geometry needs an array of vertices with one of the names {names}"
            )));
        };
        let [rows, rank] = *vertices.schema().shape() else {
            let problem = format!("{path}: vertices need one row per vertex and one column per axis");
            return Err(Error::invalid(problem));
        };
        let mut attributes = Vec::new();
        for (path, array) in arrays {
            let name = path.rsplit('/').next().unwrap_or_default().to_owned();
            let fits = array.schema().shape().first() == Some(&rows) && array.schema().shape().len() <= 2;
            match self.column_of(&name, array.schema()).filter(|_| fits) {
                Some(spec) => attributes.push((spec, array)),
                None => self.leave_out(
                    &path,
                    format!("left out, because it is not a numeric column with {rows} rows"),
                )?,
            }
        }
        let width = match &links {
            None => None,
            Some((_, links)) => match *links.schema().shape() {
                [_, width] => Some(width as usize),
                _ => return Err(Error::invalid("links need one row per link and one column per end")),
            },
        };
        let kind = self.kind(match width {
            None => POINTS,
            Some(2) => "graph",
            Some(_) => "mesh",
        })?;
        let item = vertices.schema().dtype.size().unwrap_or(8) as u64;
        self.progress.total.fetch_add(rows.saturating_mul(rank).saturating_mul(item), Ordering::Relaxed);
        let mut bounds = Bounds::new(rank as usize);
        if self.needs_bounds() {
            for part in batches(rows) {
                let values = vertices.read(&part)?;
                bounds.add(&numbers(&values.dtype, &values.elements)?);
                self.progress.check_cancelled()?;
            }
        }
        let mut spec = self.spec(kind, vertices.schema().dtype.clone(), &bounds, rows);
        spec.attributes = attributes.iter().map(|(column, _)| column.clone()).collect();
        spec.link_width = width;
        spec.objects = objects.is_some();
        self.write(&spec, |job, writer, first| {
            for part in batches(rows) {
                let values = vertices.read(&part)?;
                let owners = match &objects {
                    Some((_, objects)) => owners(&objects.read(&part)?)?,
                    None => Vec::new(),
                };
                let columns =
                    attributes.iter().map(|(spec, array)| Ok((spec.name.clone(), array.read(&part)?)));
                writer.vertices(&values, &columns.collect::<Result<Vec<_>>>()?, &owners)?;
                let bytes = values.elements.as_fixed().map_or(0, |bytes| bytes.len() as u64);
                job.done(values.shape[0], bytes)?;
            }
            for part in links.iter().flat_map(|(_, links)| batches(links.schema().shape()[0])) {
                let Some((path, links)) = &links else { continue };
                writer.links(&ends(path, &links.read(&part)?, rows, first)?)?;
                job.progress.check_cancelled()?;
            }
            Ok(rows)
        })?;
        self.report.arrays += 1 + attributes.len() as u64 + u64::from(width.is_some());
        Ok(())
    }

    fn table(&mut self, table: &TableReader) -> Result<()> {
        let columns = &table.schema().columns;
        let by_name = |name: &str| columns.iter().position(|column| column.name.eq_ignore_ascii_case(name));
        let mut axes: Vec<usize> = (0..columns.len()).filter(|at| columns[*at].dimension).collect();
        if axes.len() < 2 || axes.iter().any(|axis| !columns[*axis].dtype.is_numeric()) {
            axes = AXES.iter().map_while(|name| by_name(name)).collect();
        }
        if axes.is_empty() {
            return Err(Error::invalid("geometry needs coordinate columns: dimensions, or x, y, z"));
        }
        let objects = OBJECTS.iter().find_map(|name| by_name(name)).filter(|at| !axes.contains(at));
        let mut attributes = Vec::new();
        for (at, column) in columns.iter().enumerate() {
            if axes.contains(&at) || objects == Some(at) {
                continue;
            }
            if self.column(&column.name, &column.dtype, None).is_some() {
                attributes.push(at);
            } else {
                let what =
                    format!("left out, because a vertex cannot have an attribute of type {}", column.dtype);
                self.leave_out(&column.name, what)?;
            }
        }
        let all = || table.rows(&Selection::all(), None);
        let mut bounds = Bounds::new(axes.len());
        let mut rows = 0;
        let mut missing = vec![0; columns.len()];
        if self.needs_bounds() || attributes.iter().any(|at| columns[*at].nullable) {
            for batch in all()?.batches {
                let batch = batch?;
                rows += batch.rows as u64;
                bounds.add(&coordinates(&batch, columns, &axes)?);
                for (count, column) in missing.iter_mut().zip(&batch.columns) {
                    *count += column.validity.as_ref().map_or(0, Validity::missing);
                }
                self.progress.check_cancelled()?;
            }
        }
        for at in std::mem::take(&mut attributes) {
            let Column { name, dtype, .. } = &columns[at];
            match (missing[at], dtype) {
                (0, _) => attributes.push(at),
                (count, DType::Float16 | DType::Float32 | DType::Float64) => {
                    self.report.change(name, format!("{count} missing values are stored as NaN"));
                    attributes.push(at);
                }
                (count, _) => {
                    let what =
                        format!("left out, because {count} values are missing, and {dtype} has no NaN");
                    self.leave_out(name, what)?;
                }
            }
        }
        let kind = self.kind(POINTS)?;
        let single = axes.iter().all(|axis| columns[*axis].dtype == DType::Float32);
        let names = axes.iter().map(|axis| columns[*axis].name.clone()).collect();
        let column_of = |at: &usize| GeometryColumn {
            name: columns[*at].name.clone(),
            dtype: columns[*at].dtype.clone(),
            width: None,
        };
        let dtype = if single { DType::Float32 } else { DType::Float64 };
        let mut spec = self.spec(kind, dtype, &bounds, rows);
        spec.attributes = attributes.iter().map(column_of).collect();
        spec.objects = objects.is_some();
        spec.axes = Some(names);
        self.write(&spec, |job, writer, _| {
            let mut rows = 0;
            for batch in all()?.batches {
                let batch = batch?;
                let positions = coordinates(&batch, columns, &axes)?;
                let bytes: Vec<u8> = if single {
                    positions.iter().flat_map(|at| (*at as f32).to_ne_bytes()).collect()
                } else {
                    positions.iter().flat_map(|at| at.to_ne_bytes()).collect()
                };
                let size = bytes.len() as u64;
                let shape = [batch.rows as u64, axes.len() as u64];
                let vertices = Values::new(spec.dtype.clone(), &shape, Elements::fixed(bytes))?;
                let column = |at: usize| {
                    let elements = with_nan(&columns[at].dtype, &batch.columns[at]);
                    Values::new(columns[at].dtype.clone(), &[batch.rows as u64], elements)
                };
                let values = attributes.iter().map(|at| Ok((columns[*at].name.clone(), column(*at)?)));
                let owners = match objects {
                    Some(at) => owners(&Values::new(
                        columns[at].dtype.clone(),
                        &[batch.rows as u64],
                        batch.columns[at].clone(),
                    )?)?,
                    None => Vec::new(),
                };
                writer.vertices(&vertices, &values.collect::<Result<Vec<_>>>()?, &owners)?;
                rows += batch.rows as u64;
                job.done(batch.rows as u64, size)?;
            }
            Ok(rows)
        })
    }
}

/// The ends of links between `rows` vertices, the first of which has the number `first`.
fn ends(path: &str, links: &Values, rows: u64, first: u64) -> Result<Vec<u64>> {
    let ends = integers(&links.dtype, &links.elements)?.into_iter();
    let ends = ends.map(|end| u64::try_from(end).ok().filter(|end| *end < rows)?.checked_add(first));
    ends.collect::<Option<Vec<u64>>>().ok_or_else(|| {
        Error::invalid(format!("{path}: a link refers to a vertex outside the {rows} vertices"))
    })
}

/// The lowest and highest coordinates so far.
struct Bounds {
    low: Vec<f64>,
    high: Vec<f64>,
}

impl Bounds {
    fn new(rank: usize) -> Self {
        Self { low: vec![f64::INFINITY; rank], high: vec![f64::NEG_INFINITY; rank] }
    }

    fn add(&mut self, positions: &[f64]) {
        for vertex in positions.chunks_exact(self.low.len().max(1)) {
            for ((at, low), high) in vertex.iter().zip(&mut self.low).zip(&mut self.high) {
                (*low, *high) = (low.min(*at), high.max(*at));
            }
        }
    }
}

/// The objects of each group, if there are groups.
fn groups(reader: &crate::geometry::GeometryReader) -> Result<Vec<Vec<i64>>> {
    let mut groups = Vec::new();
    loop {
        let query = GeometryQuery {
            groups: vec![groups.len() as u64],
            attributes: Some(Vec::new()),
            ..GeometryQuery::default()
        };
        match reader.query(&query) {
            Ok(found) => groups.push(found.data.objects.into_iter().map(|(id, _)| id).collect()),
            Err(Error::Invalid(_)) => return Ok(groups),
            Err(error) => return Err(error),
        }
    }
}

/// Rows in batches.
fn batches(rows: u64) -> impl Iterator<Item = Selection> {
    (0..rows.div_ceil(BATCH)).filter_map(move |batch| {
        let (start, end) = (batch * BATCH, rows.min((batch + 1) * BATCH));
        format!("[{start}:{end}]").parse().ok()
    })
}

/// The coordinates of a batch, vertex by vertex.
fn coordinates(batch: &Batch, columns: &[Column], axes: &[usize]) -> Result<Vec<f64>> {
    let axis = |axis: &usize| {
        let (column, elements) = (&columns[*axis], &batch.columns[*axis]);
        if elements.validity.as_ref().is_some_and(|validity| validity.missing() > 0) {
            let name = &column.name;
            let problem = format!("some rows have no value of {name}; every vertex needs all coordinates");
            return Err(Error::invalid(problem));
        }
        numbers(&column.dtype, elements)
    };
    let all = axes.iter().map(axis).collect::<Result<Vec<_>>>()?;
    Ok((0..batch.rows).flat_map(|row| all.iter().map(move |axis| axis[row])).collect())
}

/// The elements with NaN in place of missing floats.
fn with_nan(dtype: &DType, elements: &Elements) -> Elements {
    let nan: &[u8] = match dtype {
        DType::Float16 => &half::f16::NAN.to_ne_bytes(),
        DType::Float32 => &f32::NAN.to_ne_bytes(),
        DType::Float64 => &f64::NAN.to_ne_bytes(),
        _ => &[],
    };
    let (Some(validity), Some(bytes), false) = (&elements.validity, elements.as_fixed(), nan.is_empty())
    else {
        return elements.clone().with_validity(None);
    };
    let mut bytes = bytes.to_vec();
    for (row, element) in bytes.chunks_exact_mut(nan.len()).enumerate() {
        if !validity.get(row) {
            element.copy_from_slice(nan);
        }
    }
    Elements::fixed(bytes)
}

/// Object ids. A missing or negative id means that the vertex belongs to no object.
fn owners(values: &Values) -> Result<Vec<Option<i64>>> {
    let ids = integers(&values.dtype, &values.elements)?;
    let is_present = |row: usize| values.elements.validity.as_ref().is_none_or(|own| own.get(row));
    Ok(ids.into_iter().enumerate().map(|(row, id)| (id >= 0 && is_present(row)).then_some(id)).collect())
}

macro_rules! each_number {
    ($bytes:expr, $type:ty, $to:expr) => {
        $bytes.as_chunks().0.iter().map(|held| $to(<$type>::from_ne_bytes(*held))).collect()
    };
}

fn integers(dtype: &DType, elements: &Elements) -> Result<Vec<i64>> {
    let wrong = || Error::invalid(format!("object ids and vertex numbers must be integers, not {dtype}"));
    let bytes = elements.as_fixed().ok_or_else(wrong)?;
    Ok(match dtype {
        DType::Int8 => each_number!(bytes, i8, i64::from),
        DType::Int16 => each_number!(bytes, i16, i64::from),
        DType::Int32 => each_number!(bytes, i32, i64::from),
        DType::Int64 => each_number!(bytes, i64, i64::from),
        DType::UInt8 => each_number!(bytes, u8, i64::from),
        DType::UInt16 => each_number!(bytes, u16, i64::from),
        DType::UInt32 => each_number!(bytes, u32, i64::from),
        DType::UInt64 => {
            let whole: std::result::Result<Vec<i64>, _> =
                bytes.as_chunks().0.iter().map(|held| i64::try_from(u64::from_ne_bytes(*held))).collect();
            whole.map_err(|_| Error::invalid("an object id or vertex number is 2^63 or more"))?
        }
        _ => return Err(wrong()),
    })
}

fn numbers(dtype: &DType, elements: &Elements) -> Result<Vec<f64>> {
    let wrong = || Error::invalid(format!("coordinates must be numbers, not {dtype}"));
    let bytes = elements.as_fixed().ok_or_else(wrong)?;
    Ok(match dtype {
        DType::Float32 => each_number!(bytes, f32, f64::from),
        DType::Float64 => each_number!(bytes, f64, f64::from),
        DType::UInt64 => each_number!(bytes, u64, |number| number as f64),
        _ => {
            integers(dtype, elements).map_err(|_| wrong())?.into_iter().map(|number| number as f64).collect()
        }
    })
}
