//! Responses of `/data`: selected values as JSON, bytes, CSV, `.npy` or TIFF.

use std::sync::Arc;

use bytes::Bytes;
use hyperslab::driver::{ByteOrder, StoredClass, product, swap_bytes};
use hyperslab::{
    ArrayReader, AxisSelection, Batch, Column, DType, Data, Elements, Positions, Scan, Selection, StructType,
    TableReader, Values, export,
};

use super::entity::Entity;
use super::slabs::Slabs;
use super::{csv, json, tiff};
use crate::answer::{Answer, Blocks, Content, Failure};
use crate::parameters::Parameters;
use crate::stores::Opened;
use crate::work::Job;

/// Larger results are streamed.
const STREAM: u64 = 8 << 20;
/// The maximum size of one block of a stream.
const PIECE: u64 = 32 << 20;
/// The approximate maximum length of a number in text.
const DIGITS: u64 = 28;

/// The format of the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Json,
    Bin,
    Csv,
    Npy,
    Tiff,
}

impl Form {
    fn parse(text: Option<&str>) -> Result<Self, Failure> {
        Ok(match text {
            None | Some("json") => Self::Json,
            Some("bin") => Self::Bin,
            Some("csv") => Self::Csv,
            Some("npy") => Self::Npy,
            Some("tiff") => Self::Tiff,
            Some(other) => return Err(Failure::query(format!("Unsupported encoding {other}"))),
        })
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Bin => "bin",
            Self::Csv => "csv",
            Self::Npy => "npy",
            Self::Tiff => "tiff",
        }
    }
}

/// The requested format and selection.
struct DataRequest<'a> {
    form: Form,
    safe: bool,
    flatten: bool,
    selection: Option<&'a str>,
}

/// The stored values.
pub(crate) fn data(parameters: &Parameters, opened: &Opened, job: &Job) -> Result<Answer, Failure> {
    let entity = Entity::find_dataset(opened, &parameters.path())?;
    respond(&entity, parameters, job)
}

/// The values as the file's conventions interpret them: scaled, and NaN where one is missing.
pub(crate) fn decoded(parameters: &Parameters, opened: &Opened, job: &Job) -> Result<Answer, Failure> {
    let mut entity = Entity::find_dataset(opened, &parameters.path())?;
    if let Entity::Array(array) = &mut entity {
        **array = array.decoded()?;
    }
    respond(&entity, parameters, job)
}

fn respond(entity: &Entity, parameters: &Parameters, job: &Job) -> Result<Answer, Failure> {
    let path = parameters.path();
    let safe = match parameters.get("dtype") {
        None | Some("origin") => false,
        Some("safe") => true,
        Some(other) => return Err(Failure::query(format!("Unsupported dtype {other}"))),
    };
    let request = DataRequest {
        form: Form::parse(parameters.get("format"))?,
        safe,
        flatten: parameters.flag("flatten")?,
        selection: parameters.get("selection"),
    };
    if let Entity::Array(array) = entity {
        if array.schema().stored.no_space {
            return null_dataset(&request);
        }
        if let Some(answer) = streamed(array, &request, job)? {
            return Ok(answer);
        }
    }
    let values = selected_values(&path, entity, request.selection, job)?;
    let big = matches!(entity, Entity::Array(array) if is_big_endian(array));
    let held = job.reserve(encoded_bytes(&values, request.form))?;
    Ok(encode(values, &request, big)?.held(held))
}

/// The response for a dataset with a null dataspace.
fn null_dataset(request: &DataRequest<'_>) -> Result<Answer, Failure> {
    match request.form {
        _ if request.safe => Err(Failure::query("Unsupported dtype safe for non-numeric data")),
        Form::Json => Ok(Answer::new("application/json", Bytes::from_static(b"null"))),
        Form::Bin => Ok(Answer::new("application/octet-stream", Bytes::new())),
        other => Err(unsupported(other)),
    }
}

fn unsupported(form: Form) -> Failure {
    Failure::query(format!("Unsupported encoding {} for non-numeric content", form.name()))
}

/// The selected values of any dataset.
pub(crate) fn selected_values(
    path: &str,
    entity: &Entity,
    selection: Option<&str>,
    job: &Job,
) -> Result<Values, Failure> {
    match entity {
        Entity::Array(array) => {
            let positions = positions_of(array, selection)?;
            let item = array.schema().dtype.size().unwrap_or(64) as u64;
            let bytes = positions.cells().and_then(|cells| cells.checked_mul(item)).unwrap_or(u64::MAX);
            let _held = job.reserve(bytes)?;
            let reader = ArrayReader::clone(array).with_progress(Arc::clone(&job.progress));
            Ok(without_missing(reader.read_positions(positions)?))
        }
        Entity::Table(table) => rows(table, selection, job),
        Entity::Part(part) => {
            let shape = part.shape();
            let positions = parse_selection(selection)?.resolve(&shape, &[])?;
            let _held = job.reserve(product(&shape).unwrap_or(u64::MAX).saturating_mul(16))?;
            pick(part.read(None)?, &positions)
        }
        _ => Err(Failure::query(format!("{path} is not a dataset"))),
    }
}

/// Converts nullable numbers to floats, with NaN for missing values, because the API has no way to request validity.
fn without_missing(values: Values) -> Values {
    let Some(validity) = &values.elements.validity else { return values };
    let Some(bytes) = values.elements.as_fixed() else { return values };
    let Some(read) = super::stats::numbers_of(&values.dtype) else { return values };
    let size = values.dtype.size().unwrap_or(1).max(1);
    let numbers = bytes.chunks_exact(size).enumerate();
    let floats: Vec<u8> = numbers
        .flat_map(|(index, held)| if validity.get(index) { read(held) } else { f64::NAN }.to_ne_bytes())
        .collect();
    Values { dtype: DType::Float64, shape: values.shape, elements: Elements::fixed(floats) }
}

/// The type under which a dataset is shown: see [`without_missing`].
pub(crate) fn shown_dtype(array: &ArrayReader) -> Option<DType> {
    let schema = array.schema();
    (schema.nullable && super::stats::numbers_of(&schema.dtype).is_some()).then_some(DType::Float64)
}

pub(crate) fn positions_of(array: &ArrayReader, selection: Option<&str>) -> Result<Positions, Failure> {
    Ok(parse_selection(selection)?.resolve(array.schema().shape(), &[])?)
}

/// Parses `0,:,2:5`: an index or a slice per axis, as in h5grove.
fn parse_selection(text: Option<&str>) -> Result<Selection, Failure> {
    let Some(text) = text else { return Ok(Selection::all()) };
    let wrong = || Failure::query(format!("{text} is not a valid selection"));
    let number = |part: &str| part.trim().parse::<i64>().map_err(|_| wrong());
    let bound = |part: &str| if part.trim().is_empty() { Ok(None) } else { number(part).map(Some) };
    let axes = text.split(',').map(|part| {
        let bounds: Vec<&str> = part.split(':').collect();
        Ok(match bounds.as_slice() {
            [index] => AxisSelection::Index(number(index)?),
            [start, stop] => AxisSelection::Slice { start: bound(start)?, stop: bound(stop)?, step: 1 },
            [start, stop, step] => AxisSelection::Slice {
                start: bound(start)?,
                stop: bound(stop)?,
                step: bound(step)?.unwrap_or(1),
            },
            _ => return Err(wrong()),
        })
    });
    Ok(Selection::positions(axes.collect::<Result<Vec<_>, Failure>>()?))
}

/// Selects cells of values in memory.
fn pick(values: Values, positions: &Positions) -> Result<Values, Failure> {
    let mut picks = vec![0_usize];
    for (axis, extent) in positions.axes.iter().zip(&values.shape) {
        let places: Vec<usize> =
            (0..axis.count).map(|i| (axis.start as i64 + axis.step * i as i64) as usize).collect();
        if places.iter().any(|place| *place as u64 >= *extent) {
            return Err(Failure::query("the selection is outside the values"));
        }
        picks = picks
            .iter()
            .flat_map(|base| places.iter().map(move |place| base * *extent as usize + place))
            .collect();
    }
    let picks: Vec<(usize, usize)> = picks.into_iter().map(|at| (0, at)).collect();
    let elements = Elements::gather(&values.dtype, &[&values.elements], &picks)?;
    Ok(Values::new(values.dtype, &positions.shape(), elements)?)
}

/// The rows of a table as structs.
fn rows(table: &TableReader, selection: Option<&str>, job: &Job) -> Result<Values, Failure> {
    let all = table.inner().rows()?;
    let positions = parse_selection(selection)?.resolve(&[all], &[])?;
    let Some(axis) = positions.axes.first().copied() else {
        return Err(Failure::query("a table has one axis"));
    };
    let columns = &table.schema().columns;
    let _held = job.reserve(axis.count.saturating_mul(columns.len() as u64).saturating_mul(32))?;
    let (first, last) = axis.ascending();
    let wanted = if axis.count == 0 { 0..0 } else { first..last + 1 };
    let batch = row_range(table, wanted, None, job)?;
    let picks: Vec<(usize, usize)> = (0..axis.count)
        .map(|i| (0, (axis.start as i64 + axis.step * i as i64 - first as i64) as usize))
        .collect();
    if picks.iter().any(|(_, row)| *row >= batch.rows) {
        return Err(Failure::query("the table has fewer rows than its metadata claims"));
    }
    let members = columns.iter().zip(&batch.columns);
    let members = members
        .map(|(column, held)| Elements::gather(&column.dtype, &[held], &picks))
        .collect::<hyperslab::Result<Vec<_>>>()?;
    let fields = StructType::packed(columns.iter().map(|column| (column.name.clone(), column.dtype.clone())));
    let elements = Elements { data: Data::Struct { length: picks.len(), members }, validity: None };
    Ok(Values { dtype: fields.into(), shape: positions.shape(), elements })
}

/// The rows whose numbers are in `wanted`, in table order.
pub(crate) fn row_range(
    table: &TableReader,
    wanted: std::ops::Range<u64>,
    names: Option<Vec<String>>,
    job: &Job,
) -> Result<Batch, Failure> {
    let found = table.rows_of(&Scan { columns: names, region: Vec::new(), ..Scan::default() })?;
    let columns: Vec<Column> = found.columns;
    let (mut at, mut parts): (u64, Vec<Vec<Elements>>) = (0, vec![Vec::new(); columns.len()]);
    let mut rows = 0;
    for batch in found.batches {
        job.progress.check_cancelled()?;
        let batch = batch?;
        let (start, end) = (at, at + batch.rows as u64);
        let (from, to) = (wanted.start.max(start), wanted.end.min(end));
        if from < to {
            let picks: Vec<(usize, usize)> =
                ((from - start) as usize..(to - start) as usize).map(|row| (0, row)).collect();
            for ((column, held), part) in columns.iter().zip(&batch.columns).zip(&mut parts) {
                part.push(Elements::gather(&column.dtype, &[held], &picks)?);
            }
            rows += picks.len();
        }
        at = end;
        if at >= wanted.end {
            break;
        }
    }
    let mut joined = Vec::with_capacity(columns.len());
    for (column, part) in columns.iter().zip(&parts) {
        let sources: Vec<&Elements> = part.iter().collect();
        let picks: Vec<(usize, usize)> = part
            .iter()
            .enumerate()
            .flat_map(|(number, own)| (0..own.len(&column.dtype)).map(move |row| (number, row)))
            .collect();
        joined.push(if sources.is_empty() {
            Elements::empty(&column.dtype)
        } else {
            Elements::gather(&column.dtype, &sources, &picks)?
        });
    }
    Ok(Batch { rows, columns: joined })
}

fn encoded_bytes(values: &Values, form: Form) -> u64 {
    let (held, cells) = (values.elements.bytes(), values.len() as u64);
    match form {
        Form::Json | Form::Csv => held.saturating_mul(2).saturating_add(cells.saturating_mul(DIGITS)),
        _ => held.saturating_mul(2).saturating_add(4096),
    }
}

fn encode(values: Values, request: &DataRequest<'_>, big_endian: bool) -> Result<Answer, Failure> {
    let numeric = is_numeric(&values.dtype);
    if request.safe && !numeric {
        return Err(Failure::query("Unsupported dtype safe for non-numeric data"));
    }
    let mut values = if request.safe { to_safe(values) } else { values };
    if request.flatten && !values.shape.is_empty() {
        values.shape = std::iter::once(values.len() as u64).collect();
    }
    match request.form {
        Form::Json => {
            let mut out = Vec::new();
            json::write(&values, request.flatten, &mut out);
            Ok(Answer::new("application/json", out.into()))
        }
        Form::Bin => {
            let bytes = values.elements.as_fixed().filter(|_| values.elements.validity.is_none()).cloned();
            let bytes = bytes.ok_or_else(|| {
                Failure::query(format!(
                    "elements of {} have no fixed-size representation; use format=json",
                    values.dtype
                ))
            })?;
            let bytes = if big_endian && !request.safe { swapped(&values.dtype, bytes) } else { bytes };
            Ok(Answer::new("application/octet-stream", bytes))
        }
        form if !numeric => Err(unsupported(form)),
        Form::Npy => {
            let mut out = Vec::new();
            export::write_npy(&values, &mut out)?;
            Ok(Answer::new("application/octet-stream", out.into()).saved_as("data.npy"))
        }
        form if values.shape.is_empty() => {
            Err(Failure::query(format!("Unsupported encoding {} for empty and scalar datasets", form.name())))
        }
        Form::Csv => Ok(Answer::new("text/csv", csv::encode(&values)?.into()).saved_as("data.csv")),
        Form::Tiff => Ok(Answer::new("image/tiff", tiff::encode(&values)?.into()).saved_as("data.tiff")),
    }
}

/// Returns true for numbers and booleans.
fn is_numeric(dtype: &DType) -> bool {
    match dtype {
        DType::Bool | DType::Complex64 | DType::Complex128 | DType::Enum(_) => true,
        DType::DateTime(_) | DType::Duration(_) => true,
        DType::Array(base, _) => is_numeric(base),
        other => other.is_numeric(),
    }
}

/// Converts to types that a browser's typed arrays support: half precision to single, 80-bit floats to 64 bits.
pub(crate) fn to_safe(values: Values) -> Values {
    let converted: Option<(DType, Vec<u8>)> = match (&values.dtype, values.elements.as_fixed()) {
        (DType::Float16, Some(bytes)) => {
            let numbers = bytes.chunks_exact(2).map(bytemuck::pod_read_unaligned::<half::f16>);
            Some((DType::Float32, numbers.flat_map(|number| number.to_f32().to_ne_bytes()).collect()))
        }
        (DType::Float128, Some(_)) => {
            let number =
                |index| match hyperslab::driver::element_to_json(&values.dtype, &values.elements, index) {
                    serde_json::Value::Number(number) => number.as_f64().unwrap_or(f64::NAN),
                    serde_json::Value::String(text) => text.to_ascii_lowercase().parse().unwrap_or(f64::NAN),
                    _ => f64::NAN,
                };
            Some((DType::Float64, (0..values.len()).flat_map(|index| number(index).to_ne_bytes()).collect()))
        }
        _ => None,
    };
    match converted {
        Some((dtype, bytes)) => Values { dtype, shape: values.shape, elements: Elements::fixed(bytes) },
        None => values,
    }
}

/// Returns true if an HDF5 file stores the numbers of this array in big-endian order.
fn is_big_endian(array: &ArrayReader) -> bool {
    let Some(stored) = &array.schema().stored.dtype else { return false };
    let order = match &stored.class {
        StoredClass::Integer(layout) | StoredClass::Bitfield(layout) => layout.order,
        StoredClass::Float(layout) => layout.order,
        StoredClass::Enum { base, .. } => match &base.class {
            StoredClass::Integer(layout) => layout.order,
            _ => return false,
        },
        StoredClass::Compound { members } if super::types::is_complex(members) => match &members[0].2.class {
            StoredClass::Float(layout) => layout.order,
            _ => return false,
        },
        _ => return false,
    };
    order == ByteOrder::Big && !array.schema().nullable
}

fn swapped(dtype: &DType, bytes: Bytes) -> Bytes {
    match dtype.swap_unit() {
        Some(unit) if unit > 1 => {
            let mut bytes = bytes.to_vec();
            swap_bytes(unit, &mut bytes);
            bytes.into()
        }
        _ => bytes,
    }
}

/// Streams a large result of plain bytes. Returns `None` for all others.
fn streamed(array: &ArrayReader, request: &DataRequest<'_>, job: &Job) -> Result<Option<Answer>, Failure> {
    let schema = array.schema();
    let converts = request.safe && matches!(schema.dtype, DType::Float16 | DType::Float128);
    let (Some(item), false) = (schema.dtype.size(), schema.nullable || converts) else { return Ok(None) };
    if !matches!(request.form, Form::Bin | Form::Npy) || !is_numeric(&schema.dtype) {
        return Ok(None);
    }
    let positions = positions_of(array, request.selection)?;
    let bytes = positions.cells().and_then(|cells| cells.checked_mul(item as u64));
    let Some(bytes) = bytes.filter(|bytes| *bytes > STREAM) else { return Ok(None) };
    let most = PIECE.min(job.limit() / 4);
    let mut head = Vec::new();
    if request.form == Form::Npy {
        let mut shape = positions.shape().to_vec();
        if request.flatten {
            shape = vec![product(&shape).unwrap_or(0)];
        }
        head = hyperslab::npy::encode_header(&npy_type(&schema.dtype, &mut shape), &shape)?;
    }
    let big = is_big_endian(array) && !request.safe && request.form == Form::Bin;
    let total = bytes + head.len() as u64;
    let (reader, dtype) = (array.clone(), schema.dtype.clone());
    let mut pieces = Slabs::new(positions, item as u64, schema.grid.chunk_shape(), (STREAM.min(most), most));
    let mut head = Some(Bytes::from(head)).filter(|head| !head.is_empty());
    let blocks = Blocks::new(pieces.largest(item as u64), move |progress| {
        if let Some(head) = head.take() {
            return Some(Ok(head));
        }
        let piece = pieces.next()?;
        let values = reader.clone().with_progress(Arc::clone(progress)).read_positions(piece);
        Some(values.map(|values| {
            let bytes = values.elements.as_fixed().cloned().unwrap_or_default();
            if big { swapped(&dtype, bytes) } else { bytes }
        }))
    });
    let mut answer = Answer::new("application/octet-stream", Bytes::new());
    answer.content = Content::Blocks(total, blocks);
    Ok(Some(if request.form == Form::Npy { answer.saved_as("data.npy") } else { answer }))
}

/// NumPy appends the shape of array elements to the array's own shape.
fn npy_type(dtype: &DType, shape: &mut Vec<u64>) -> DType {
    let mut dtype = dtype.clone();
    while let DType::Array(base, inner) = &dtype {
        shape.extend(inner.iter().map(|extent| *extent as u64));
        dtype = (**base).clone();
    }
    dtype
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selections_match_h5grove() {
        let resolve = |text: &str, shape: &[u64]| {
            let positions = parse_selection(Some(text)).ok()?.resolve(shape, &[]).ok()?;
            Some((
                positions.shape().to_vec(),
                positions.axes.iter().map(|axis| axis.start).collect::<Vec<_>>(),
            ))
        };
        assert_eq!(resolve("0,:,2:5", &[4, 5, 6]), Some((vec![5, 3], vec![0, 0, 2])));
        assert_eq!(resolve("1", &[4, 5]), Some((vec![5], vec![1, 0])));
        assert_eq!(resolve("::2", &[5]), Some((vec![3], vec![0])));
        assert_eq!(resolve("9", &[4]), None);
        assert_eq!(resolve("a", &[4]), None);
        assert_eq!(resolve("0:1:2:3", &[4]), None);
        assert_eq!(resolve("0,0", &[4]), None);
        assert_eq!(resolve("", &[4]), None);
    }

    #[test]
    fn cells_are_picked() -> hyperslab::Result<()> {
        let values = Values::new(DType::UInt8, &[2, 3], Elements::fixed(vec![0, 1, 2, 3, 4, 5]))?;
        let positions = parse_selection(Some("1,::2")).unwrap().resolve(&[2, 3], &[])?;
        let picked = pick(values, &positions).unwrap();
        assert_eq!((picked.shape.to_vec(), picked.as_slice::<u8>()), (vec![2], Some(&[3, 5][..])));
        Ok(())
    }
}
