//! Exports values to `.npy`, `.json` and `.csv` files.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use hyperslab_core::storage::{StageOptions, StagedFile};
use hyperslab_core::{DType, Elements, Error, Result, Values, element_to_json, element_to_text, product};
use hyperslab_npy::encode_header;
use serde_json::Value;

/// Writes values in the format given by the extension of `path`. The file appears complete or not at all.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) for an unknown extension or a type that the format cannot hold, [`Exists`](Error::Exists) if the
/// file exists and `replace` is false; [`Io`](Error::Io) if the system reports an error.
pub fn write(values: &Values, path: &Path, replace: bool) -> Result<()> {
    write_staged(values, path, StageOptions::default().with_replace(replace))
}

/// Like [`write`], with all staging options.
pub(crate) fn write_staged(values: &Values, path: &Path, options: StageOptions) -> Result<()> {
    let path = &*crate::location::local_target(path)?;
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_ascii_lowercase();
    let form = match ending.as_str() {
        "npy" => write_npy,
        "json" => write_json,
        "csv" => write_csv,
        _ => {
            return Err(Error::invalid(format!(
                "{}: cannot infer the format from the extension{}; use one of .{}",
                crate::location_name(path),
                crate::formats::extension_hint(path),
                crate::rows::ENDINGS.join(", .")
            )));
        }
    };
    if options.replace {
        crate::formats::check_replaceable_file(path)?;
    }
    let staged = StagedFile::create(path, options)?;
    let mut out = BufWriter::with_capacity(1 << 20, staged.file());
    form(values, &mut out)?;
    out.flush().map_err(|source| staged.failed(source))?;
    drop(out);
    staged.publish()
}

/// Writes bytes to a file of any other kind. It appears complete or not at all.
///
/// # Errors
///
/// [`Exists`](Error::Exists) if the file exists and `replace` is false; [`Io`](Error::Io) if the system reports an error.
pub fn write_bytes(bytes: &[u8], path: &Path, replace: bool) -> Result<()> {
    let path = &*crate::location::local_target(path)?;
    if replace {
        crate::formats::check_replaceable_file(path)?;
    }
    let staged = StagedFile::create(path, StageOptions::default().with_replace(replace))?;
    (&mut staged.file()).write_all(bytes).map_err(|source| staged.failed(source))?;
    staged.publish()
}

fn failed(source: io::Error) -> Error {
    Error::io("output", source)
}

/// Writes NumPy's `.npy`. Variable-length text becomes fixed-length text of the longest length.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) for lists and missing elements, which NumPy files cannot hold; [`Io`](Error::Io)
/// if the system reports an error.
pub fn write_npy(values: &Values, out: &mut impl Write) -> Result<()> {
    if values.elements.validity.as_ref().is_some_and(|validity| validity.missing() > 0) {
        return Err(Error::invalid("NumPy files cannot hold missing elements; write .json or .csv"));
    }
    let fixed;
    let mut values = values;
    if matches!(values.dtype, DType::String | DType::Bytes | DType::Reference) {
        fixed = to_fixed(values)?;
        values = &fixed;
    }
    let (mut dtype, mut shape) = (values.dtype.clone(), values.shape.to_vec());
    while let DType::Array(base, inner) = &dtype {
        shape.extend(inner.iter().map(|extent| *extent as u64));
        dtype = (**base).clone();
    }
    let header = encode_header(&dtype, &shape)?;
    let bytes = values.elements.as_fixed().ok_or_else(|| {
        Error::invalid(format!("NumPy files cannot hold elements of {}; write .json", values.dtype))
    })?;
    out.write_all(&header).and_then(|()| out.write_all(bytes)).map_err(failed)
}

/// Elements of fixed size: text and bytes padded to the longest, others unchanged.
pub(crate) fn fixed(dtype: &DType, elements: Elements, length: usize) -> Result<(DType, Elements)> {
    if !matches!(dtype, DType::String | DType::Bytes | DType::Reference) {
        return Ok((dtype.clone(), elements));
    }
    let validity = elements.validity.clone();
    let values = to_fixed(&Values::new(dtype.clone(), &[length as u64], elements)?)?;
    Ok((values.dtype, values.elements.with_validity(validity)))
}

/// Text as fixed-length UTF-32, bytes as fixed-length bytes, padded to the longest element.
fn to_fixed(values: &Values) -> Result<Values> {
    let items: Vec<&[u8]> =
        (0..values.len()).map(|i| values.elements.variable_at(i).unwrap_or_default()).collect();
    let text = values.dtype != DType::Bytes;
    let points = |item: &[u8]| if text { String::from_utf8_lossy(item).chars().count() } else { item.len() };
    let longest = items.iter().map(|item| points(item)).max().unwrap_or(0).max(1);
    let mut bytes = Vec::new();
    for item in items {
        if text {
            let mut count = 0;
            for character in String::from_utf8_lossy(item).chars() {
                bytes.extend_from_slice(&u32::from(character).to_ne_bytes());
                count += 1;
            }
            bytes.resize(bytes.len() + (longest - count) * 4, 0);
        } else {
            bytes.extend_from_slice(item);
            bytes.resize(bytes.len() + longest - item.len(), 0);
        }
    }
    let dtype = if text { DType::FixedText(longest) } else { DType::FixedBytes(longest) };
    Values::new(dtype, &values.shape, Elements::fixed(bytes))
}

/// Writes nested lists. A scalar becomes a single value.
///
/// # Errors
///
/// [`Io`](Error::Io) if the system reports an error.
pub fn write_json(values: &Values, out: &mut impl Write) -> Result<()> {
    let mut next = 0;
    write_nested(values, &values.shape, &mut next, out).and_then(|()| out.write_all(b"\n")).map_err(failed)
}

fn write_nested(values: &Values, shape: &[u64], next: &mut usize, out: &mut impl Write) -> io::Result<()> {
    let [extent, inner @ ..] = shape else {
        let element = element_to_json(&values.dtype, &values.elements, *next);
        *next += 1;
        return serde_json::to_writer(out, &element).map_err(Into::into);
    };
    out.write_all(b"[")?;
    for i in 0..*extent {
        if i > 0 {
            out.write_all(if inner.is_empty() { b", " } else { b",\n" })?;
        }
        write_nested(values, inner, next, out)?;
    }
    out.write_all(b"]")
}

/// Writes one line per run along the last axis, with values separated by commas. An array of structs has one line per element and
/// a header with the member names.
///
/// # Errors
///
/// [`Io`](Error::Io) if the system reports an error.
pub fn write_csv(values: &Values, out: &mut impl Write) -> Result<()> {
    let each = match (&values.dtype, values.shape.last()) {
        (DType::Struct(fields), _) => {
            let names: Vec<_> = fields.members.iter().map(|member| quoted(&member.name)).collect();
            writeln!(out, "{}", names.join(",")).map_err(failed)?;
            1
        }
        // One dimension becomes a column, as expected for a list of numbers.
        (_, Some(&last)) if values.shape.len() > 1 => last as usize,
        _ => 1,
    };
    let cells = product(&values.shape).unwrap_or(0) as usize;
    for index in 0..cells {
        let cell = match values.dtype {
            DType::Float16 | DType::Float32 | DType::Float64 if !values.elements.is_missing(index) => {
                element_to_text(&values.dtype, &values.elements, index)
            }
            DType::Enum(_) if !values.elements.is_missing(index) => {
                quoted(&element_to_text(&values.dtype, &values.elements, index))
            }
            _ => cell_text(&element_to_json(&values.dtype, &values.elements, index)),
        };
        let end = if (index + 1) % each.max(1) == 0 { "\n" } else { "," };
        write!(out, "{cell}{end}").map_err(failed)?;
    }
    Ok(())
}

/// One CSV value. Members of a struct become separate cells.
fn cell_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => quoted(text),
        Value::Object(members) if !members.contains_key("hex") => {
            members.values().map(cell_text).collect::<Vec<_>>().join(",")
        }
        Value::Array(_) | Value::Object(_) => quoted(&value.to_string()),
        plain => plain.to_string(),
    }
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
