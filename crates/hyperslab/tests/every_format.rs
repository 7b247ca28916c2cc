//! Behaviour that all writable formats share: any array, any chunks and any selection, compared with a plain loop
//! over the elements; and any format converted to any other.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;
use std::sync::atomic::Ordering;

use hyperslab::convert::{ConvertOptions, Progress, convert};
use hyperslab::{
    Attributes, AxisSelection, ChunkCoord, CreateOptions, DType, Elements, Filter, Format, Grid, OpenOptions,
    Result, Selection, Values, create, export,
};
use proptest::prelude::*;

/// The formats that support arrays of any shape and simple type, with their filters.
fn writable() -> Vec<(Format, Vec<Filter>)> {
    let zstd = || vec![Filter::new("zstd").with("level", 1)];
    let mut formats = vec![(Format::NPY, Vec::new()), (Format::NPZ, Vec::new())];
    #[cfg(feature = "tet")]
    formats.extend([(Format::TET, Vec::new()), (Format::TET, zstd())]);
    #[cfg(feature = "hdf5")]
    formats.extend([(Format::HDF5, Vec::new()), (Format::HDF5, zstd())]);
    #[cfg(feature = "netcdf3")]
    formats.push((Format::NETCDF3, Vec::new()));
    #[cfg(feature = "tiledb")]
    formats.extend([(Format::TILEDB, Vec::new()), (Format::TILEDB, zstd())]);
    #[cfg(feature = "zarr")]
    formats.extend([(Format::ZARR, Vec::new()), (Format::ZARR, zstd())]);
    formats
}

fn file_of(folder: &Path, format: Format) -> std::path::PathBuf {
    folder.join(format!("x.{}", format.info().extensions[0]))
}

/// Element `i` is `i`, in as many bytes as the type has.
fn counted(dtype: &DType, cells: u64) -> Elements {
    let size = dtype.size().unwrap();
    let bytes = (0..cells)
        .flat_map(|cell| cell.to_le_bytes().into_iter().chain([0; 8]).take(size))
        .collect::<Vec<u8>>();
    Elements::fixed(bytes)
}

/// Writes an array chunk by chunk through the sink.
fn write(path: &Path, format: Format, values: &Values, chunk: &[u64], filters: &[Filter]) -> Result<()> {
    let mut sink = create(path, format, &CreateOptions::default())?;
    sink.group("/", &Attributes::new())?;
    let spec = hyperslab::ArraySpec::new(values.dtype.clone(), Grid::new(&values.shape, chunk)?)
        .with_filters(filters.iter().cloned());
    let array = sink.array("/x", &spec)?;
    let (item, bytes) = (values.dtype.size().unwrap(), values.elements.as_fixed().unwrap());
    let grid = array.grid().clone();
    // In reverse order, because any order must work.
    for number in (0..grid.chunks().unwrap()).rev() {
        let coord: ChunkCoord = grid.coord(number);
        let region = grid.region(&coord);
        let mut part = vec![0; region.cells().unwrap() as usize * item];
        let mut from = hyperslab::driver::Layout::packed(&values.shape, item);
        for (start, stride) in region.start.iter().zip(&from.strides) {
            from.offset += *start as usize * stride.unsigned_abs();
        }
        let to = hyperslab::driver::Layout::packed(&region.shape, item);
        hyperslab::driver::copy_box(bytes, &from, &mut part, &to, &region.shape, item)?;
        array.write(&coord, array.encode(&coord, &Elements::fixed(part))?)?;
    }
    drop(array);
    sink.commit()
}

/// The selected elements, cell by cell.
fn walked(values: &Values, selection: &Selection) -> Vec<u8> {
    let positions = selection.resolve(&values.shape, &[]).unwrap();
    let strides = hyperslab::driver::CellOrder::RowMajor.strides(&values.shape);
    let (item, bytes) = (values.dtype.size().unwrap(), values.elements.as_fixed().unwrap());
    let counts = positions.counts();
    let mut picked = Vec::new();
    for cell in 0..positions.cells().unwrap() {
        let (mut left, mut at) = (cell, 0_u64);
        for axis in (0..counts.len()).rev() {
            let wanted = positions.axes[axis];
            let step = wanted.step * (left % counts[axis]) as i64;
            at += wanted.start.checked_add_signed(step).unwrap() * strides[axis];
            left /= counts[axis];
        }
        picked.extend_from_slice(&bytes[at as usize * item..][..item]);
    }
    picked
}

#[derive(Debug, Clone)]
struct Case {
    dtype: DType,
    shape: Vec<u64>,
    chunk: Vec<u64>,
    selections: Vec<Selection>,
}

fn axis(extent: u64) -> impl Strategy<Value = AxisSelection> {
    let bound = || prop::option::of(-(extent as i64) - 2..extent as i64 + 2);
    prop_oneof![
        1 => (0..extent as i64).prop_map(AxisSelection::Index),
        4 => (bound(), bound(), prop_oneof![Just(1_i64), 2_i64..4, -3_i64..0])
            .prop_map(|(start, stop, step)| AxisSelection::Slice { start, stop, step }),
    ]
}

fn case() -> impl Strategy<Value = Case> {
    let dtypes = vec![DType::UInt8, DType::Int16, DType::Float32, DType::Float64];
    (prop::sample::select(dtypes), prop::collection::vec((1_u64..14, 1_u64..9), 1..4)).prop_flat_map(
        |(dtype, dims)| {
            let (shape, chunk): (Vec<u64>, Vec<u64>) =
                dims.into_iter().map(|(extent, chunk)| (extent, chunk.min(extent))).unzip();
            let axes: Vec<_> = shape.iter().map(|extent| axis(*extent)).collect();
            prop::collection::vec(axes.prop_map(Selection::positions), 1..4).prop_map(move |selections| {
                Case { dtype: dtype.clone(), shape: shape.clone(), chunk: chunk.clone(), selections }
            })
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn selections_equal_a_plain_loop(case in case()) {
        let cells = case.shape.iter().product();
        let values = Values::new(case.dtype.clone(), &case.shape, counted(&case.dtype, cells)).unwrap();
        for (format, filters) in writable() {
            let folder = tempfile::tempdir().unwrap();
            let path = file_of(folder.path(), format);
            write(&path, format, &values, &case.chunk, &filters).unwrap();
            for mapped in [true, false] {
                let options = OpenOptions::default().with_mapped(mapped);
                let store = hyperslab::open_with(&path, &options).unwrap();
                let array = store.array(&store.only_node().unwrap()).unwrap();
                prop_assert_eq!(array.schema().dtype.clone(), case.dtype.clone());
                for selection in &case.selections {
                    let read = array.read(selection).unwrap();
                    let expected = walked(&values, selection);
                    prop_assert_eq!(&read.elements.as_fixed().unwrap()[..], &expected[..], "{} {:?}", format.name(), selection);
                    let mut buffer = vec![0xaa; expected.len()];
                    array.read_into(selection, &mut buffer).unwrap();
                    prop_assert_eq!(&buffer, &expected);
                }
            }
        }
    }
}

#[test]
fn any_format_converts_to_any_other() -> Result<()> {
    let shape = [7, 10, 5];
    let values = Values::new(DType::Float32, &shape, counted(&DType::Float32, 350))?;
    for (from, filters) in writable() {
        for (to, target_filters) in writable() {
            let folder = tempfile::tempdir().unwrap();
            let source = folder.path().join(format!("source.{}", from.info().extensions[0]));
            write(&source, from, &values, &[3, 4, 2], &filters)?;
            let target = folder.path().join(format!("target.{}", to.info().extensions[0]));
            // A low memory limit, so that the array is copied in several blocks.
            let options = ConvertOptions::default()
                .with_chunk_shape(vec![2, 5, 5])
                .with_filters(target_filters)
                .with_memory(600);
            let progress = Progress::default();
            convert(&hyperslab::open(&source)?, &target, to, &options, &progress)?;
            assert_eq!(progress.done.load(Ordering::Relaxed), 1400);
            let store = hyperslab::open(&target)?;
            let read = store.array(&store.only_node()?)?.read(&Selection::all())?;
            assert_eq!(read, values, "{} to {}", from.name(), to.name());
        }
    }
    Ok(())
}

#[test]
fn selections_are_converted_and_cancelling_leaves_nothing() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source.npy");
    let values = Values::new(DType::UInt8, &[6, 4], counted(&DType::UInt8, 24))?;
    export::write(&values, &source, false)?;
    let options = ConvertOptions::default().with_selection("[::-2, 1]".parse()?);
    let store = hyperslab::open(&source)?;
    let target = folder.path().join("target.npz");
    convert(&store, &target, Format::NPZ, &options, &Progress::default())?;
    let read = hyperslab::open(&target)?.array("/arr_0")?.read(&Selection::all())?;
    assert_eq!(read.as_slice::<u8>(), Some(&[21, 13, 5][..]));

    let stopped = Progress::default();
    stopped.stop.store(true, Ordering::Relaxed);
    let other = folder.path().join("other.npy");
    assert!(convert(&store, &other, Format::NPY, &ConvertOptions::default(), &stopped).is_err());
    assert!(convert(&store, &target, Format::NPZ, &ConvertOptions::default(), &Progress::default()).is_err());
    assert!(
        convert(
            &store,
            &source,
            Format::NPY,
            &ConvertOptions::default().with_replace(true),
            &Progress::default()
        )
        .is_err()
    );
    let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    Ok(())
}

#[test]
fn a_contiguous_selection_of_raw_chunks_is_a_view() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    for (format, chunk) in [(Format::NPY, [8, 6]), (Format::NPZ, [8, 6])] {
        let path = file_of(folder.path(), format);
        let values = Values::new(DType::UInt8, &[8, 6], counted(&DType::UInt8, 48))?;
        write(&path, format, &values, &chunk, &[])?;
        let store = hyperslab::open(&path)?;
        let array = store.array(&store.only_node()?)?;
        let (twice, again) = (array.read(&"[2:5]".parse()?)?, array.read(&"[2:5]".parse()?)?);
        let start = |values: &Values| values.elements.as_fixed().unwrap().as_ptr();
        assert_eq!(start(&twice), start(&again), "the same bytes of the mapping, not copies of them");
        assert_eq!(twice.as_slice::<u8>().unwrap(), &(12..30).collect::<Vec<u8>>()[..]);
        let strided = array.read(&"[2:5, ::2]".parse()?)?;
        assert_ne!(start(&strided), start(&array.read(&"[2:5, ::2]".parse()?)?));
    }
    Ok(())
}

#[test]
fn results_beyond_the_memory_limit_are_rejected_early() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npy");
    export::write(&Values::new(DType::UInt8, &[64], counted(&DType::UInt8, 64))?, &path, false)?;
    let options = OpenOptions::default().with_memory(16).with_mapped(false);
    let array = hyperslab::open_with(&path, &options)?.array("/")?;
    assert!(array.read(&Selection::all()).unwrap_err().to_string().contains("the limit is 16"));
    assert_eq!(array.read(&"[:16]".parse()?)?.len(), 16);
    Ok(())
}

/// Flips the bits of these bytes of a store.
fn damage(store: &Path, span: &hyperslab::driver::Span, skip: u64) {
    let file = match &span.blob {
        hyperslab::driver::BlobKey::Main => store.to_owned(),
        hyperslab::driver::BlobKey::Named(name) => store.join(&**name),
    };
    let mut bytes = std::fs::read(&file).unwrap();
    let at = (span.offset + skip) as usize;
    bytes[at..at + 4].iter_mut().for_each(|byte| *byte ^= 0xff);
    std::fs::write(&file, bytes).unwrap();
}

/// The messages of a deep check with this many threads, without those in `before`.
fn failures(path: &Path, threads: usize, before: &[String]) -> Vec<String> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let report = pool.install(|| hyperslab::open(path).unwrap().verify(hyperslab::Depth::Deep)).unwrap();
    let failed = report.findings.iter().filter(|finding| !finding.ok);
    failed.map(|finding| format!("{finding:?}")).filter(|text| !before.contains(text)).collect()
}

/// Two damaged chunks are both reported, in index order, whatever the number of threads. Raw chunks only reveal
/// damage if the format stores checksums or statistics of them.
#[test]
fn damaged_chunks_are_reported_in_index_order() {
    // Enough chunks for several threads.
    let values = Values::new(DType::Int32, &[400, 210], counted(&DType::Int32, 84_000)).unwrap();
    for (format, filters) in writable() {
        let raw = filters.is_empty();
        // A tile of TileDB starts with a header of 20 bytes.
        let skip = match format.name() {
            "tiledb" if raw => 20,
            "tet" | "tiledb" => 0,
            _ if raw => continue,
            _ => 0,
        };
        let folder = tempfile::tempdir().unwrap();
        let path = file_of(folder.path(), format);
        write(&path, format, &values, &[160, 90], &filters).unwrap();
        let store = hyperslab::open(&path).unwrap();
        let mut spans = Vec::new();
        let visit = &mut |_, reference: hyperslab::driver::ChunkRef| {
            spans.extend(reference.spans().next().cloned());
            Ok(std::ops::ControlFlow::Continue(()))
        };
        store.array(&store.only_node().unwrap()).unwrap().inner().visit_chunks(visit).unwrap();
        drop(store);
        let before = failures(&path, 1, &[]);
        let mut alone = Vec::new();
        // Whole chunks, and chunks clipped by the edge.
        for chunk in [2, 4] {
            damage(&path, &spans[chunk], skip);
            alone.push(failures(&path, 1, &before));
            damage(&path, &spans[chunk], skip);
        }
        assert!(alone.iter().all(|failures| !failures.is_empty()), "{} raw {raw}", format.name());
        damage(&path, &spans[4], skip);
        damage(&path, &spans[2], skip);
        let both = failures(&path, 1, &before);
        assert_eq!(both, failures(&path, 4, &before));
        // Compare each check separately: some formats run one check on all chunks before the next.
        let mut expected = alone.concat();
        expected.sort_by_key(|text| both.iter().position(|own| own[..40] == text[..40]));
        assert_eq!(both, expected, "{} raw {raw}", format.name());
    }
}
