//! Writes files of every kind that we support, and remembers their contents.

use std::path::Path;
use std::sync::Arc;

use hyperslab_core::{
    Array, ArraySpec, Attribute, Attributes, ChunkCoord, DType, Data, Elements, EnumType, Fill, Filter, Grid,
    Layout, Node, OpaqueType, Positions, Result, Sink, Store, StructType, TimeUnit, Values, copy_box,
    read_serial,
};
use hyperslab_hdf5::{Compatibility, DatasetLayout, Hdf5Options, Hdf5Sink};

/// A dataset of a file: its description and its values.
pub(crate) struct Dataset {
    pub(crate) path: String,
    pub(crate) spec: ArraySpec,
    pub(crate) options: Hdf5Options,
    pub(crate) values: Values,
    /// Chunks that are not written, by number.
    pub(crate) missing: Vec<u64>,
}

pub(crate) const COMPATIBILITIES: [(&str, Compatibility); 3] =
    [("earliest", Compatibility::Earliest), ("v110", Compatibility::V110), ("v200", Compatibility::V200)];

/// Options for a file.
pub(crate) fn options(compatibility: Compatibility) -> Hdf5Options {
    let mut options = Hdf5Options::default();
    options.compatibility = compatibility;
    options
}

/// Numbers that differ from byte to byte, and compress.
pub(crate) fn counted(dtype: &DType, shape: &[u64]) -> Values {
    let cells: u64 = shape.iter().product();
    let size = dtype.size().unwrap();
    let bytes: Vec<u8> = (0..cells)
        .flat_map(|cell| match dtype {
            DType::Float16 => half::f16::from_f32(cell as f32 / 4.0).to_le_bytes().to_vec(),
            DType::Float32 => (cell as f32 / 4.0).to_le_bytes().to_vec(),
            DType::Float64 => (cell as f64 / 4.0).to_le_bytes().to_vec(),
            DType::Bool => vec![(cell % 3 == 0).into()],
            DType::Complex64 => [cell as f32, -1.5].iter().flat_map(|part| part.to_le_bytes()).collect(),
            DType::Complex128 => [cell as f64, -1.5].iter().flat_map(|part| part.to_le_bytes()).collect(),
            DType::Enum(_) => (cell % 3).to_le_bytes()[..size].to_vec(),
            DType::FixedBytes(_) => format!("{:<size$}", cell % 1000).into_bytes()[..size].to_vec(),
            DType::FixedText(_) => {
                let text: Vec<char> = format!("é{}", cell % 10).chars().collect();
                (0..size / 4).flat_map(|at| text.get(at).map_or(0, |c| *c as u32).to_le_bytes()).collect()
            }
            DType::Float128 => {
                // 1.0 is an exponent of 16383 and a mantissa of one bit.
                let mut bytes = [0; 16];
                bytes[..8].copy_from_slice(&(0x8000_0000_0000_0000_u64 + cell).to_le_bytes());
                bytes[8..10].copy_from_slice(&16383_u16.to_le_bytes());
                bytes.to_vec()
            }
            _ => cell.to_le_bytes().into_iter().cycle().take(size).collect(),
        })
        .collect();
    Values::new(dtype.clone(), shape, Elements::fixed(bytes)).unwrap()
}

fn texts(cells: u64) -> Elements {
    Elements::variable(
        (0..cells).map(|cell| "é".repeat(cell as usize % 5) + &cell.to_string()[..(cell as usize % 2)]),
    )
}

fn lists(cells: u64) -> Elements {
    let mut offsets = vec![0];
    for cell in 0..cells {
        offsets.push(offsets[offsets.len() - 1] + cell % 4);
    }
    let items: Vec<u8> = (0..offsets[offsets.len() - 1] as i32).flat_map(i32::to_le_bytes).collect();
    Elements { data: Data::List { offsets, items: Box::new(Elements::fixed(items)) }, validity: None }
}

/// Every type that we write, with values of this shape.
pub(crate) fn types(shape: &[u64]) -> Vec<(&'static str, Values)> {
    let cells: u64 = shape.iter().product();
    let of = |dtype: DType, elements: Elements| Values::new(dtype, shape, elements).unwrap();
    let colours =
        EnumType::new(DType::Int16, vec![("red".into(), 0), ("green".into(), 1), ("blue".into(), 2)]);
    let inner = StructType::packed([("x", DType::Float32), ("y", DType::Int64)]);
    let mixed = StructType::packed([
        ("a", DType::Int32),
        ("b", DType::Array(Arc::new(DType::Int16), vec![2, 3])),
        ("c", inner.clone().into()),
        ("d", DType::FixedBytes(5)),
    ]);
    let mut gaps = StructType::packed([("a", DType::UInt8), ("b", DType::Float64)]);
    gaps.members[1].offset = 8;
    gaps.size = 24;
    let variable = StructType::packed([("id", DType::Int32), ("name", DType::String)]);
    let members = vec![counted(&DType::Int32, shape).elements, texts(cells)];
    let mut found: Vec<(&'static str, Values)> = [
        ("bool", DType::Bool),
        ("int8", DType::Int8),
        ("int16", DType::Int16),
        ("int32", DType::Int32),
        ("int64", DType::Int64),
        ("uint8", DType::UInt8),
        ("uint16", DType::UInt16),
        ("uint32", DType::UInt32),
        ("uint64", DType::UInt64),
        ("float16", DType::Float16),
        ("float32", DType::Float32),
        ("float64", DType::Float64),
        ("float128", DType::Float128),
        ("complex64", DType::Complex64),
        ("complex128", DType::Complex128),
        ("bytes7", DType::FixedBytes(7)),
        ("text3", DType::FixedText(3)),
        ("opaque", DType::Opaque(Arc::new(OpaqueType { size: 5, tag: String::new() }))),
        ("enum", colours.into()),
        ("struct", inner.into()),
        ("mixed", mixed.into()),
        ("array", DType::Array(Arc::new(DType::Float32), vec![2, 2])),
        ("datetime", DType::DateTime(TimeUnit::Nanosecond)),
        ("duration", DType::Duration(TimeUnit::Second)),
    ]
    .into_iter()
    .map(|(name, dtype)| (name, counted(&dtype, shape)))
    .collect();
    let gaps = DType::from(gaps);
    let mut bytes = counted(&gaps, shape).elements.as_fixed().unwrap().to_vec();
    bytes.chunks_exact_mut(24).for_each(|element| {
        element[1..8].fill(0);
        element[16..].fill(0);
    });
    found.push(("gaps", of(gaps, Elements::fixed(bytes))));
    found.push((
        "references",
        of(DType::Reference, Elements::variable((0..cells).map(|cell| ["/few", "/", ""][cell as usize % 3]))),
    ));
    found.push(("string", of(DType::String, texts(cells))));
    found.push(("list", of(DType::List(Arc::new(DType::Int32)), lists(cells))));
    found.push((
        "records",
        of(
            variable.into(),
            Elements { data: Data::Struct { length: cells as usize, members }, validity: None },
        ),
    ));
    found
}

/// Every filter that we write, for elements of a type.
pub(crate) fn filters() -> Vec<(&'static str, Vec<Filter>)> {
    let gzip = || Filter::new("gzip").with("level", 4);
    let shuffle = || Filter::new("shuffle");
    vec![
        ("none", vec![]),
        ("gzip", vec![gzip()]),
        ("shuffle_gzip", vec![shuffle(), gzip()]),
        ("fletcher32", vec![Filter::new("fletcher32")]),
        ("shuffle_gzip_fletcher32", vec![shuffle(), gzip(), Filter::new("fletcher32")]),
        ("lzf", vec![shuffle(), Filter::new("lzf")]),
        ("zstd", vec![Filter::new("zstd").with("level", 3)]),
        ("lz4", vec![Filter::new("lz4")]),
        ("bzip2", vec![Filter::new("bzip2")]),
        ("bitshuffle", vec![Filter::new("bitshuffle")]),
        ("bitshuffle_lz4", vec![Filter::new("bitshuffle").with("codec", "lz4")]),
        ("bitshuffle_zstd", vec![Filter::new("bitshuffle").with("codec", "zstd").with("level", 2)]),
        ("blosc_lz4", vec![Filter::new("blosc")]),
        ("blosc_zstd", vec![Filter::new("blosc").with("codec", "zstd").with("shuffle", 2)]),
        ("blosc_zlib", vec![Filter::new("blosc").with("codec", "zlib").with("shuffle", 0)]),
        ("scaleoffset", vec![Filter::new("scaleoffset")]),
    ]
}

fn dataset(path: impl Into<String>, values: Values, chunk: &[u64], compatibility: Compatibility) -> Dataset {
    let spec = ArraySpec::new(values.dtype.clone(), Grid::new(&values.shape, chunk).unwrap());
    Dataset { path: path.into(), spec, options: options(compatibility), values, missing: Vec::new() }
}

/// A name, a shape, chunks, limits, and whether all space is allocated early.
type Shapes = (&'static str, &'static [u64], &'static [u64], &'static [Option<u64>], bool);

/// The cross product of layouts, indexes, types and filters for one kind of file.
pub(crate) fn datasets(compatibility: Compatibility) -> Vec<Dataset> {
    let mut made = Vec::new();
    for (name, values) in types(&[7, 5]) {
        made.push(dataset(format!("/types/{name}/chunked"), values.clone(), &[3, 2], compatibility));
        let mut zipped = dataset(format!("/types/{name}/zipped"), values.clone(), &[4, 5], compatibility);
        zipped.spec.filters = vec![Filter::new("shuffle"), Filter::new("gzip").with("level", 5)];
        made.push(zipped);
        for (kind, layout) in [("compact", DatasetLayout::Compact), ("contiguous", DatasetLayout::Contiguous)]
        {
            let mut own = dataset(format!("/types/{name}/{kind}"), values.clone(), &[3, 2], compatibility);
            own.options.layout = layout;
            made.push(own);
        }
    }
    let layouts: [Shapes; 12] = [
        ("single", &[6, 5], &[6, 5], &[Some(6), Some(5)], false),
        ("implicit", &[7, 5], &[3, 2], &[Some(7), Some(5)], true),
        ("fixed", &[7, 5], &[3, 2], &[Some(7), Some(5)], false),
        ("fixed_larger", &[7, 5], &[3, 2], &[Some(20), Some(9)], false),
        ("fixed_paged", &[60, 50], &[1, 2], &[Some(60), Some(50)], false),
        ("extensible", &[700, 2], &[1, 1], &[None, Some(2)], false),
        ("extensible_1", &[5, 300], &[2, 1], &[Some(8), None], false),
        ("extensible_mid", &[3, 9, 4], &[2, 2, 3], &[Some(6), None, Some(4)], false),
        ("extensible_few", &[3], &[1], &[None], false),
        ("tree", &[30, 40], &[2, 3], &[None, None], false),
        ("tree_deep", &[90, 90], &[1, 1], &[None, None], false),
        ("empty", &[0, 4], &[2, 2], &[None, Some(4)], false),
    ];
    for (name, shape, chunk, most, early) in layouts {
        for (filter, filters) in filters() {
            let heavy = shape.iter().product::<u64>() > 1000;
            if heavy && !["none", "shuffle_gzip", "zstd"].contains(&filter) {
                continue;
            }
            let values = counted(&DType::Int32, shape);
            let mut own = dataset(format!("/layouts/{name}/{filter}"), values, chunk, compatibility);
            own.spec.filters = filters;
            own.spec.max_shape = most.to_vec();
            own.options.allocate_early = early;
            own.options.layout = DatasetLayout::Chunked;
            made.push(own);
        }
    }
    // Chunks that are never written hold the fill value.
    for (name, shape, chunk, most, early) in layouts {
        let mut own = dataset(format!("/fill/{name}"), counted(&DType::Int32, shape), chunk, compatibility);
        own.spec.max_shape = most.to_vec();
        own.options.allocate_early = early;
        own.spec.fill = Fill::Element(Elements::fixed((-7_i32).to_le_bytes().to_vec()));
        own.missing = (0..own.spec.grid.chunks().unwrap()).filter(|number| number % 3 == 1).collect();
        made.push(own);
    }
    made.push(dataset("/scalar", counted(&DType::Float64, &[]), &[], compatibility));
    made.push(dataset("/nothing", counted(&DType::Float64, &[0]), &[1], compatibility));
    made
}

/// Attributes of every type, a large one, and many.
pub(crate) fn attributes() -> Attributes {
    let mut attributes = Attributes::new();
    for (name, values) in types(&[3]).into_iter().chain(types(&[])) {
        attributes.set(format!("{name} {}", values.shape.len()), values);
    }
    attributes.set("large", counted(&DType::Int16, &[50_000]));
    attributes.set("medium", counted(&DType::Int16, &[3_000]));
    attributes.set("document", Attribute::Json(serde_json::json!({"a": [1, {"b": null}]})));
    attributes.set("numbers", Attribute::Json(serde_json::json!([1, 2.5])));
    attributes
}

/// Writes one dataset's chunks, last first.
fn write_chunks(array: &dyn hyperslab_core::ArraySink, own: &Dataset) -> Result<()> {
    let grid = array.grid().clone();
    for number in (0..grid.chunks().unwrap()).rev().filter(|number| !own.missing.contains(number)) {
        let coord: ChunkCoord = grid.coord(number);
        let part = cut(&own.values, &grid.region(&coord))?;
        array.write(&coord, array.encode(&coord, &part)?)?;
    }
    Ok(())
}

/// The elements of a box.
pub(crate) fn cut(values: &Values, region: &hyperslab_core::Region) -> Result<Elements> {
    let shape = &values.shape;
    if let (Some(item), Some(bytes)) = (values.dtype.size(), values.elements.as_fixed()) {
        let mut part = vec![0; region.cells().unwrap() as usize * item];
        let mut from = Layout::packed(shape, item);
        for (start, stride) in region.start.iter().zip(&from.strides) {
            from.offset += *start as usize * stride.unsigned_abs();
        }
        copy_box(bytes, &from, &mut part, &Layout::packed(&region.shape, item), &region.shape, item)?;
        return Ok(Elements::fixed(part));
    }
    let strides = hyperslab_core::CellOrder::RowMajor.strides(shape);
    let picks: Vec<_> = (0..region.cells().unwrap())
        .map(|cell| {
            let (mut left, mut at) = (cell, 0);
            for axis in (0..shape.len()).rev() {
                at += (region.start[axis] + left % region.shape[axis]) * strides[axis];
                left /= region.shape[axis];
            }
            (0, at as usize)
        })
        .collect();
    Elements::gather(&values.dtype, &[&values.elements], &picks)
}

/// The expected values if some chunks were not written.
fn expected(own: &Dataset) -> Values {
    let mut values = own.values.clone();
    if own.missing.is_empty() {
        return values;
    }
    let Fill::Element(fill) = &own.spec.fill else { panic!("missing chunks need a fill value here") };
    let item = values.dtype.size().unwrap();
    let mut bytes = values.elements.as_fixed().unwrap().to_vec();
    for number in &own.missing {
        let region = own.spec.grid.region(&own.spec.grid.coord(*number));
        let part = fill.as_fixed().unwrap().repeat(region.cells().unwrap() as usize);
        let mut to = Layout::packed(&values.shape, item);
        for (start, stride) in region.start.iter().zip(&to.strides) {
            to.offset += *start as usize * stride.unsigned_abs();
        }
        copy_box(&part, &Layout::packed(&region.shape, item), &mut bytes, &to, &region.shape, item).unwrap();
    }
    values.elements = Elements::fixed(bytes);
    values
}

/// Writes a file with these datasets, and with many groups and attributes.
pub(crate) fn write(path: &Path, compatibility: Compatibility, datasets: &[Dataset]) -> Result<()> {
    let mut sink = Box::new(Hdf5Sink::create(path, options(compatibility))?);
    let all = attributes();
    let fits = |name: &str| compatibility != Compatibility::Earliest || name != "large";
    let fitting: Attributes =
        all.iter().filter(|(name, _)| fits(name)).map(|(name, value)| (name, value.clone())).collect();
    sink.group("/", &fitting)?;
    sink.group("/few", &Attributes::from_iter([("title", "ein paar Wörter")]))?;
    sink.group("/deep/er/and/deeper", &Attributes::new())?;
    for number in 0..1500 {
        sink.group(&format!("/many/a group with the number {number}"), &Attributes::new())?;
    }
    for own in datasets {
        let array = sink.dataset(&own.path, &own.spec, &own.options)?;
        write_chunks(&*array, own)?;
    }
    sink.commit()
}

/// The elements as we read them back, since some types are written as others.
fn as_read(values: &Values) -> Values {
    let mut values = values.clone();
    if let DType::FixedText(points) = values.dtype {
        let bytes = values.elements.as_fixed().unwrap();
        let texts = bytes.chunks_exact(4 * points).flat_map(|text| {
            let letters = text.chunks_exact(4).map(|c| u32::from_le_bytes(c.try_into().unwrap()));
            let text: String = letters.filter(|c| *c != 0).filter_map(char::from_u32).collect();
            let mut bytes = text.into_bytes();
            bytes.resize(4 * points, 0);
            bytes
        });
        values = Values {
            dtype: DType::FixedBytes(4 * points),
            shape: values.shape.clone(),
            elements: Elements::fixed(texts.collect::<Vec<_>>()),
        };
    }
    values
}

/// The differences between what was written and what we read.
pub(crate) fn differences(path: &Path, datasets: &[Dataset]) -> Vec<String> {
    let store = hyperslab_hdf5::open_path(path).unwrap();
    let mut problems = Vec::new();
    for own in datasets {
        let array: Arc<dyn Array> = match store.node(&own.path) {
            Ok(Node::Array(array)) => array,
            other => {
                problems.push(format!("{}: {other:?}", own.path));
                continue;
            }
        };
        let schema = array.schema();
        if schema.max_shape != own.spec.max_shape {
            problems.push(format!("{}: may grow to {:?}", own.path, schema.max_shape));
        }
        match read_serial(&*array, Positions::whole(schema.shape())) {
            Ok(read) if read == as_read(&expected(own)) => {}
            Ok(read) => problems.push(format!(
                "{} ({}): {:.200} is not {:.200}",
                own.path,
                schema.chunk_index,
                format!("{:?}", read.to_json()),
                format!("{:?}", expected(own).to_json())
            )),
            Err(error) => problems.push(format!("{}: {error}", own.path)),
        }
    }
    problems
}
