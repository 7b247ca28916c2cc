//! A format that the application registers: a text file of comma-separated rows. It is recognised, read, queried,
//! converted and written like built-in formats.

#![cfg(all(feature = "tet", feature = "zarr", feature = "hdf5"))]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};

use bytes::Bytes;
use hyperslab::convert::{ConvertOptions, Progress, convert};
use hyperslab::driver::storage::StagedFile;
use hyperslab::driver::{
    Array, Blob, BlobKey, ChunkRef, Content, EncodedChunk, Glimpse, MemoryBlob, OpenContext, Place,
    Recognition, StoreForm, VariantInfo,
};
use hyperslab::query::{Operation, Query};
use hyperslab::repair::repair_path;
use hyperslab::{
    ArraySchema, ArraySink, ArraySpec, Attributes, Capabilities, ChunkCoord, CreateOptions, DType, Depth,
    Elements, Error, Format, FormatDriver, FormatInfo, Grid, Node, OpenOptions, Report, Result, Selection,
    Sink, Store, Variant, create, format_named, open, register,
};

const MAGIC: &str = "#rows\n";

/// The driver of the test.
#[derive(Debug)]
struct RowsDriver;

static ROWS: FormatInfo = FormatInfo {
    extensions: &["rows"],
    variants: &[VariantInfo::new("rows1")],
    capabilities: Capabilities { create: true, ..Capabilities::NONE },
    ..FormatInfo::new("rows")
};

impl FormatDriver for RowsDriver {
    fn info(&self) -> &'static FormatInfo {
        &ROWS
    }

    fn recognise(&self, glimpse: &Glimpse<'_>) -> Result<Recognition> {
        Ok(glimpse.head().starts_with(MAGIC.as_bytes()).into())
    }

    fn open(&self, content: Content, _: &OpenContext<'_>) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(RowsStore(Arc::new(RowsArray::open(content.into_file(&ROWS)?)?))))
    }

    fn create(&self, target: &Path, options: &CreateOptions) -> Result<Box<dyn Sink>> {
        Ok(Box::new(RowsSink { file: StagedFile::create(target, options.stage())?, array: None }))
    }
}

#[derive(Debug)]
struct RowsStore(Arc<RowsArray>);

impl Store for RowsStore {
    fn format(&self) -> &'static str {
        ROWS.name
    }

    fn name(&self) -> &Arc<str> {
        self.0.blob.name()
    }

    fn children(&self, path: &str) -> Result<Vec<String>> {
        self.node(path).map(|_| Vec::new())
    }

    fn node(&self, path: &str) -> Result<Node> {
        match path {
            "/" => Ok(Node::Array(Arc::clone(&self.0) as Arc<dyn Array>)),
            _ => Err(Error::not_found(Arc::clone(self.name()), path)),
        }
    }

    fn verify(&self, _: Depth, report: &mut Report) -> Result<()> {
        report.passed("rows", "all rows are equally long");
        Ok(())
    }
}

/// Each line is a chunk.
#[derive(Debug)]
struct RowsArray {
    blob: Arc<dyn Blob>,
    schema: ArraySchema,
    /// The offset and the length of each line.
    lines: Vec<(u64, u64)>,
}

impl RowsArray {
    fn open(blob: Arc<dyn Blob>) -> Result<Self> {
        let bytes = blob.read_range(0..blob.len()?)?;
        let corrupt = |why: &str| Place::new(blob.name(), "rows", 0).corrupt(why);
        let text = std::str::from_utf8(&bytes).map_err(|_| corrupt("not text"))?;
        let mut lines = Vec::new();
        let mut offset = MAGIC.len();
        for line in text[MAGIC.len()..].lines() {
            lines.push((offset as u64, line.len() as u64));
            offset += line.len() + 1;
        }
        let width = text[MAGIC.len()..].lines().next().map_or(0, |line| line.split(',').count() as u64);
        let grid = Grid::new(&[lines.len() as u64, width], &[1, width.max(1)])?;
        let mut schema = ArraySchema::new(DType::Float64, grid);
        schema.chunk_index = "lines".to_owned();
        Ok(Self { blob, schema, lines })
    }

    fn reference(&self, chunk: &[u64]) -> Option<ChunkRef> {
        let (offset, length) = *self.lines.get(usize::try_from(*chunk.first()?).ok()?)?;
        Some(ChunkRef::encoded(BlobKey::Main, offset, length, 0))
    }
}

impl Array for RowsArray {
    fn schema(&self) -> &ArraySchema {
        &self.schema
    }

    fn name(&self) -> &str {
        self.blob.name()
    }

    fn locate(&self, chunks: &[ChunkCoord]) -> Result<Vec<Option<ChunkRef>>> {
        Ok(chunks.iter().map(|chunk| self.reference(chunk)).collect())
    }

    fn blob(&self, _: &BlobKey) -> Result<Arc<dyn Blob>> {
        Ok(Arc::clone(&self.blob))
    }

    fn decode(&self, _: &ChunkCoord, _: &ChunkRef, stored: &[Bytes], out: &mut [u8]) -> Result<()> {
        let corrupt = |why: &str| Place::new(self.blob.name(), "row", 0).corrupt(why);
        let text = std::str::from_utf8(&stored[0]).map_err(|_| corrupt("not text"))?;
        let mut cells = text.split(',').map(str::parse::<f64>);
        for place in out.chunks_exact_mut(8) {
            let cell =
                cells.next().and_then(std::result::Result::ok).ok_or_else(|| corrupt("not a number"))?;
            place.copy_from_slice(&cell.to_ne_bytes());
        }
        Ok(())
    }

    fn visit_chunks(
        &self,
        visit: &mut dyn FnMut(ChunkCoord, ChunkRef) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        for row in 0..self.lines.len() as u64 {
            let coord = ChunkCoord::from_slice(&[row, 0]);
            if let Some(reference) = self.reference(&coord)
                && visit(coord, reference)?.is_break()
            {
                break;
            }
        }
        Ok(())
    }
}

#[derive(Debug)]
struct RowsSink {
    file: StagedFile,
    array: Option<Arc<LinesSink>>,
}

impl Sink for RowsSink {
    fn group(&mut self, path: &str, _: &Attributes) -> Result<()> {
        if path == "/" { Ok(()) } else { Err(Error::invalid(format!("no group {path} in a file of rows"))) }
    }

    fn array(&mut self, path: &str, spec: &ArraySpec) -> Result<Arc<dyn ArraySink>> {
        let [rows, width] = *spec.grid.shape() else {
            return Err(Error::unsupported(path, "rows of another rank than 2"));
        };
        if spec.dtype != DType::Float64 || self.array.is_some() {
            return Err(Error::unsupported(path, "anything but one array of float64"));
        }
        let spec = ArraySpec { grid: Grid::new(&[rows, width], &[1, width])?, ..spec.clone() };
        let array = Arc::new(LinesSink { spec, lines: Mutex::default() });
        self.array = Some(Arc::clone(&array));
        Ok(array)
    }

    fn commit(self: Box<Self>) -> Result<()> {
        let mut text = MAGIC.to_owned();
        for line in self.array.iter().flat_map(|array| array.lines.lock().unwrap().clone().into_values()) {
            text.push_str(&line);
            text.push('\n');
        }
        self.file.file().write_all(text.as_bytes()).map_err(|source| self.file.failed(source))?;
        self.file.publish()
    }
}

#[derive(Debug)]
struct LinesSink {
    spec: ArraySpec,
    lines: Mutex<BTreeMap<u64, String>>,
}

impl ArraySink for LinesSink {
    fn grid(&self) -> &Grid {
        &self.spec.grid
    }

    fn encode(&self, chunk: &ChunkCoord, elements: &Elements) -> Result<EncodedChunk> {
        self.spec.check_chunk(chunk, elements)?;
        let bytes = elements.as_fixed().unwrap();
        let mut line = String::new();
        for (at, cell) in bytes.as_chunks::<8>().0.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            write!(line, "{comma}{}", f64::from_ne_bytes(*cell)).unwrap();
        }
        Ok(EncodedChunk { parts: vec![line.into()], filter_mask: 0, raw_length: bytes.len() as u64, tag: 0 })
    }

    fn write(&self, chunk: &ChunkCoord, encoded: EncodedChunk) -> Result<()> {
        let line = String::from_utf8(encoded.parts[0].to_vec()).unwrap();
        self.lines.lock().unwrap().insert(chunk[0], line);
        Ok(())
    }
}

/// The format, registered once for all tests of this process.
fn rows() -> Format {
    static FORMAT: OnceLock<Format> = OnceLock::new();
    *FORMAT.get_or_init(|| register(&RowsDriver).unwrap())
}

fn sample(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("sample.txt");
    std::fs::write(&path, "#rows\n1,2,3\n4,5,6\n7,8,9.5\n").unwrap();
    path
}

#[test]
fn a_registered_format_is_recognised_and_read() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = sample(folder.path());
    let format = rows();
    // Recognised by its bytes, because the extension is another.
    let store = open(&path)?;
    assert_eq!((store.format(), store.driver()), ("rows", Some(format)));
    assert_eq!(store.only_node()?, "/");
    let array = store.array("/")?;
    let values = array.read(&"[1:, ::2]".parse()?)?;
    assert_eq!(values.as_slice::<f64>(), Some(&[4.0, 6.0, 7.0, 9.5][..]));
    let sum = Query::new(Operation::Sum).run(&array)?;
    assert_eq!(sum.scalar()?, Some(45.5));
    assert_eq!(store.catalog()?.to_json()["format"], "rows");
    assert!(store.verify(Depth::Deep)?.ok());
    Ok(())
}

#[test]
fn a_registered_format_is_converted_and_written() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let (source, format) = (sample(folder.path()), rows());
    let to = |source: &Path, target: &Path, format: Format, replace: bool| {
        let options = ConvertOptions::default().with_replace(replace);
        convert(&open(source)?, target, format, &options, &Progress::default())
    };
    let zarr = folder.path().join("x.zarr");
    to(&source, &zarr, Format::ZARR, false)?;
    let tet = folder.path().join("x.tet");
    to(&zarr, &tet, Format::TET, false)?;
    let back = folder.path().join("back.rows");
    assert_eq!(Format::from_extension(&back), Some(format));
    assert_eq!(to(&tet, &back, format, false)?.arrays, 1);
    assert_eq!(std::fs::read_to_string(&back).unwrap(), std::fs::read_to_string(&source).unwrap());
    // It is a store, so it can be replaced by a store of its own or another format. Other files cannot.
    to(&tet, &back, format, true)?;
    to(&tet, &back, Format::HDF5, true)?;
    assert_eq!(open(&back)?.format(), "hdf5");
    to(&tet, &back, format, true)?;
    let notes = folder.path().join("notes.rows");
    std::fs::write(&notes, "not rows").unwrap();
    assert!(to(&tet, &notes, format, true).is_err());
    assert_eq!(std::fs::read_to_string(&notes).unwrap(), "not rows");
    Ok(())
}

#[test]
fn missing_capabilities_are_errors() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let (path, format) = (sample(folder.path()), rows());
    let append = CreateOptions::default().with_append(true);
    let error = create(&path, format, &append).unwrap_err();
    assert!(error.is_unsupported() && error.to_string().contains("adding to rows"), "{error}");
    let options = OpenOptions::default();
    let error = hyperslab::fragments::vacuum_path(&path, &options).unwrap_err();
    assert!(error.to_string().contains("vacuuming rows"), "{error}");
    assert!(repair_path(&path, &options, false)?.fixes.is_empty());
    let as_zarr = OpenOptions::default().with_format(Format::ZARR);
    let error = hyperslab::open_with(&path, &as_zarr).unwrap_err().to_string();
    assert!(error.ends_with("sample.txt is a file, but zarr needs a directory"), "{error}");
    Ok(())
}

#[test]
fn names_are_unique() -> Result<()> {
    #[derive(Debug)]
    struct Impostor(&'static FormatInfo);

    impl FormatDriver for Impostor {
        fn info(&self) -> &'static FormatInfo {
            self.0
        }

        fn recognise(&self, _: &Glimpse<'_>) -> Result<Recognition> {
            Ok(Recognition::Yes)
        }

        fn open(&self, _: Content, _: &OpenContext<'_>) -> Result<Arc<dyn Store>> {
            Err(Error::invalid("an impostor"))
        }
    }

    static SAME: Impostor = Impostor(&FormatInfo::new("hdf5"));
    static VARIANT: Impostor = Impostor(&FormatInfo::new("zarr2"));
    static OWN_VARIANT: Impostor =
        Impostor(&FormatInfo { variants: &[VariantInfo::new("rows")], ..FormatInfo::new("other") });
    let format = rows();
    let taken: [&'static dyn FormatDriver; 4] = [&SAME, &VARIANT, &OWN_VARIANT, &RowsDriver];
    for driver in taken {
        let error = register(driver).unwrap_err().to_string();
        assert!(error.contains("is taken"), "{error}");
    }
    assert_eq!("rows".parse::<Format>()?, format);
    assert_eq!(format_named("rows1")?, (format, format.info().variant("rows1")));
    assert_eq!(format_named("netcdf4")?.1.map(Variant::name), Some("netcdf4"));
    assert!(Format::all().ends_with(&[format]));
    Ok(())
}

/// The capabilities that a driver declares match its behaviour.
#[test]
fn capabilities_match_behaviour() {
    let folder = tempfile::tempdir().unwrap();
    for format in Format::all() {
        let (info, target) = (format.info(), folder.path().join(format.name()));
        assert_eq!(Format::from_name(info.name), Some(format));
        assert!(!info.forms.is_empty(), "{format}");
        assert!(!info.extensions.is_empty() || !info.capabilities.create, "{format}");
        let created = create(&target, format, &CreateOptions::default());
        assert_eq!(created.is_ok(), info.capabilities.create, "{format}");
        if let Ok(mut sink) = created {
            let spec = ArraySpec::new(DType::Float64, Grid::new(&[1, 1], &[1, 1]).unwrap());
            let path = if info.capabilities.several_arrays { "/a" } else { "/" };
            sink.group("/", &Attributes::new()).unwrap();
            let array = sink.array(path, &spec).unwrap();
            let chunk = ChunkCoord::from_slice(&[0, 0]);
            let encoded = array.encode(&chunk, &Elements::fixed(vec![0; 8])).unwrap();
            array.write(&chunk, encoded).unwrap();
            drop(array);
            sink.commit().unwrap();
            assert_eq!(target.is_dir(), info.created_form() == StoreForm::Directory, "{format}");
            let store = open(&target).unwrap();
            assert_eq!(store.format(), info.name);
            let append = CreateOptions::default().with_append(true);
            let added = create(&target, format, &append);
            assert_eq!(added.is_ok(), info.capabilities.append, "{format}");
            let options = OpenOptions::default();
            let vacuumed = hyperslab::fragments::vacuum_path(&target, &options);
            assert_eq!(vacuumed.is_ok(), info.capabilities.fragments, "{format}");
            let values = store.array(&store.only_node().unwrap()).unwrap().read(&Selection::all()).unwrap();
            assert_eq!(values.to_json().to_string(), "[[0.0]]", "{format}");
        }
    }
}

/// The message names the file and what was expected.
#[test]
fn unknown_signatures_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    std::fs::write(&path, "nothing of ours").unwrap();
    let error = open(&path).unwrap_err().to_string();
    assert!(error.contains("notes.txt: unknown signature; expected one of tet, hdf5"), "{error}");
    let error = open(folder.path()).unwrap_err().to_string();
    assert!(error.contains("the directory is not a store; expected one of tet, hdf5"), "{error}");
    let memory = Content::File(Arc::new(MemoryBlob::new("memory", b"\x93NUMPY".to_vec())));
    let glimpse = Glimpse::new(&memory).unwrap();
    assert_eq!(Format::NPY.driver().recognise(&glimpse).unwrap(), Recognition::Yes);
}
