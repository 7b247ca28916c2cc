//! The writers of every format: the content before, and the work of each.

mod shapes;
mod sparse;

use std::fmt;
use std::path::{Path, PathBuf};

use hyperslab::convert::{ConvertOptions, GeometryOptions, Progress, convert, convert_to_rows};
use hyperslab::fragments::{consolidate_path, vacuum_path};
use hyperslab::repair::repair_path;
use hyperslab::{
    ArraySpec, Attributes, CreateOptions, DType, Elements, Error, Fill, Format, Grid, OpenOptions, Region,
    RegionWriter, Result, Sink, Values, create, extend, format_named,
};
use hyperslab_zvf::{PyramidOptions, build_pyramid};

/// The number of cells in a row.
pub(crate) const COLUMNS: u64 = 64;

/// The folders of a writer.
#[derive(Debug, Clone)]
pub struct Places {
    /// The store to write.
    pub target: PathBuf,
    /// A separate folder with the input.
    pub sources: PathBuf,
}

/// The amount of data that a writer writes.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    /// The number of rows of an array.
    pub rows: u64,
    /// The number of rows of a chunk.
    pub chunk: u64,
}

impl Scale {
    /// Small enough that every state can be tested.
    pub const SMALL: Self = Self { rows: 6, chunk: 4 };
    /// Large enough that a process can be killed halfway.
    pub const LARGE: Self = Self { rows: 12_000, chunk: 300 };
}

/// How a target is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    New,
    /// New, and made durable at once.
    Synced,
    Replace,
}

type Work = Box<dyn Fn(&Places, Scale) -> Result<()> + Send + Sync>;

/// A writer to test.
pub struct Writer {
    /// The operation and the format: `append zarr`.
    pub name: String,
    /// The name of the target.
    pub target: &'static str,
    /// The format's name for the reference libraries; see `checker.py`.
    pub peer: &'static str,
    /// Creates the content that exists before.
    pub before: Work,
    /// The operation under test.
    pub write: Work,
    /// Another write to the same target, which must work whatever the first one left.
    pub again: Work,
    /// Whether the target is new and not synced, so that a power cut may lose it.
    pub is_new: bool,
}

impl fmt::Debug for Writer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.name)
    }
}

/// A format that stores arrays.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ArrayFormat {
    pub(crate) name: &'static str,
    /// The name of the format or variant.
    format: &'static str,
    pub(crate) target: &'static str,
    peer: &'static str,
    shards: bool,
}

const fn kind(
    name: &'static str,
    format: &'static str,
    target: &'static str,
    peer: &'static str,
    shards: bool,
) -> ArrayFormat {
    ArrayFormat { name, format, target, peer, shards }
}

const KINDS: [ArrayFormat; 10] = [
    kind("tet", "tet", "x.tet", "tet", false),
    kind("hdf5", "hdf5", "x.h5", "hdf5", false),
    kind("netcdf4", "netcdf4", "x.nc", "netcdf", false),
    kind("netcdf3", "netcdf3", "x.nc", "netcdf", false),
    kind("zarr", "zarr", "x.zarr", "zarr", false),
    kind("zarr2", "zarr2", "x.zarr", "zarr", false),
    kind("zarr shards", "zarr", "x.zarr", "zarr", true),
    kind("tiledb", "tiledb", "x.tdb", "tiledb", false),
    kind("npy", "npy", "x.npy", "npy", false),
    kind("npz", "npz", "x.npz", "npz", false),
];

/// Files of rows.
const ROWS: [(&str, &str, &str); 4] = [
    ("csv", "x.csv", "bytes"),
    ("json", "x.json", "bytes"),
    ("arrow", "x.arrow", "arrow"),
    ("parquet", "x.parquet", "parquet"),
];

/// Numbers from `first` on.
fn numbers(rows: u64, first: u32) -> Result<Values> {
    let count = (rows * COLUMNS) as u32;
    let bytes: Vec<u8> = (first..first + count).flat_map(u32::to_ne_bytes).collect();
    // Signed, because NetCDF classic has no unsigned integers.
    Values::new(DType::Int32, &[rows, COLUMNS], Elements::fixed(bytes))
}

/// The formats whose arrays can grow.
const GROWING: [&str; 7] = ["tet", "hdf5", "netcdf4", "netcdf3", "zarr", "zarr2", "tiledb"];

impl ArrayFormat {
    /// The kinds whose arrays can grow.
    pub(crate) fn growing() -> impl Iterator<Item = Self> {
        KINDS.into_iter().filter(|kind| GROWING.contains(&kind.format))
    }

    /// Creates a new store with one array that can grow.
    pub(crate) fn make(&self, places: &Places, scale: Scale, first: u32) -> Result<()> {
        self.create(places, scale, How::New, first)
    }

    /// The format.
    pub(crate) fn driver(&self) -> Result<Format> {
        Ok(format_named(self.format)?.0)
    }

    /// The options of a sink for additions.
    pub(crate) fn appending() -> CreateOptions {
        CreateOptions::default().with_append(true)
    }

    fn options(&self, how: How, scale: Scale) -> Result<(Format, CreateOptions)> {
        let (format, variant) = format_named(self.format)?;
        let shard_shape = self.shards.then(|| vec![scale.chunk * 4, COLUMNS]);
        let (replace, sync) = (how == How::Replace, how == How::Synced);
        Ok((
            format,
            CreateOptions::default()
                .with_replace(replace)
                .with_sync(sync)
                .with_variant(variant)
                .with_shard_shape(shard_shape),
        ))
    }

    /// Creates a store with one array that can grow.
    fn create(&self, places: &Places, scale: Scale, how: How, first: u32) -> Result<()> {
        let (format, options) = self.options(how, scale)?;
        let mut sink = create(&places.target, format, &options)?;
        let path = if self.format == "npy" { "/" } else { "/t" };
        put(&mut *sink, path, scale, &numbers(scale.rows, first)?, self.format)?;
        sink.commit()
    }

    fn append(&self, places: &Places) -> Result<Box<dyn Sink>> {
        create(&places.target, self.driver()?, &Self::appending())
    }

    fn grow(&self, places: &Places, scale: Scale) -> Result<()> {
        let store = hyperslab::open(&places.target)?;
        let mut sink = self.append(places)?;
        extend(&mut *sink, &store.array("/t")?, "/t", 0, &numbers(scale.rows, 5_000_000)?)?;
        sink.commit()
    }

    fn attribute(&self, places: &Places) -> Result<()> {
        let mut sink = self.append(places)?;
        sink.attributes("/t", &Attributes::from_iter([("units", "degrees Celsius, not kelvin")]))?;
        sink.commit()
    }

    fn add_array(&self, places: &Places, scale: Scale) -> Result<()> {
        let mut sink = self.append(places)?;
        put(&mut *sink, "/other", scale, &numbers(scale.rows, 9_000_000)?, self.format)?;
        sink.commit()
    }

    fn writer(
        self,
        verb: &str,
        write: impl Fn(&Self, &Places, Scale) -> Result<()> + Send + Sync + 'static,
    ) -> Writer {
        Writer {
            name: format!("{verb} {}", self.name),
            target: self.target,
            peer: self.peer,
            before: Box::new(move |places, scale| self.create(places, scale, How::New, 1)),
            write: Box::new(move |places, scale| write(&self, places, scale)),
            again: Box::new(move |places, scale| self.create(places, scale, How::Replace, 77)),
            is_new: false,
        }
    }
}

/// Writes an array that can grow.
fn put(sink: &mut dyn Sink, path: &str, scale: Scale, values: &Values, format: &str) -> Result<()> {
    let grid = Grid::new(&values.shape, &[scale.chunk, COLUMNS])?;
    let mut spec = ArraySpec::new(values.dtype.clone(), grid);
    if format != "npy" && format != "npz" {
        spec.max_shape = vec![None, Some(COLUMNS)];
        spec.attributes = Attributes::from_iter([("units", "kelvin")]);
    }
    if format == "tet" {
        spec.attributes = Attributes::new();
    }
    if format.starts_with("netcdf") {
        spec.dimensions = vec![Some("time".to_owned()), Some("x".to_owned())];
    }
    let array = RegionWriter::new(sink.array(path, &spec)?, values.dtype.clone(), Fill::Zero);
    array.assign(&Region::whole(&values.shape), values)?;
    array.finish()
}

/// All writers.
#[must_use]
pub fn all() -> Vec<Writer> {
    let mut writers = Vec::new();
    for kind in KINDS {
        let mut new = kind.writer("new", |kind, places, scale| kind.create(places, scale, How::New, 700));
        new.before = Box::new(|_, _| Ok(()));
        new.is_new = true;
        writers.push(new);
        let mut synced =
            kind.writer("new synced", |kind, places, scale| kind.create(places, scale, How::Synced, 700));
        synced.before = Box::new(|_, _| Ok(()));
        writers.push(synced);
        writers.push(
            kind.writer("replace", |kind, places, scale| kind.create(places, scale, How::Replace, 700)),
        );
        if GROWING.contains(&kind.format) {
            writers.push(kind.writer("append", ArrayFormat::grow));
        }
        if ["hdf5", "zarr", "zarr2", "tiledb"].contains(&kind.format) && !kind.shards {
            writers.push(kind.writer("attribute", |kind, places, _| kind.attribute(places)));
        }
        if ["tet", "hdf5", "zarr", "zarr2"].contains(&kind.format) && !kind.shards {
            writers.push(kind.writer("add array", ArrayFormat::add_array));
        }
        if kind.format == "tet" {
            writers.push(repair(kind));
        }
        if kind.format == "tiledb" {
            writers.extend(fragments(kind));
            writers.push(repair_missing_fragment(kind));
        }
    }
    writers.push(sparse::append());
    writers.extend(geometry());
    writers.extend(shapes::all());
    for (name, target, peer) in ROWS {
        writers.extend(rows(name, target, peer));
    }
    writers
}

/// Repair of a `.tet` file without its end.
fn repair(kind: ArrayFormat) -> Writer {
    let mut writer = kind.writer("repair", |_, places, _| {
        repair_path(&places.target, &OpenOptions::default(), false).map(|_| ())
    });
    writer.before = Box::new(move |places, scale| {
        kind.create(places, scale, How::New, 1)?;
        let failed = |source| Error::io(places.target.display().to_string(), source);
        let mut bytes = std::fs::read(&places.target).map_err(failed)?;
        bytes.truncate(bytes.len() - 40);
        std::fs::write(&places.target, bytes).map_err(failed)
    });
    writer
}

/// Repair of a TileDB array with the commit file of a missing fragment.
fn repair_missing_fragment(kind: ArrayFormat) -> Writer {
    let mut writer = kind.writer("repair", |_, places, _| {
        repair_path(&places.target, &OpenOptions::default(), false).map(|_| ())
    });
    writer.before = Box::new(move |places, scale| {
        kind.create(places, scale, How::New, 1)?;
        // The array is the folder of the group's only node, or the target itself.
        let array = places.target.join("t");
        let commits = if array.is_dir() { array } else { places.target.clone() }.join("__commits");
        let failed = |source| Error::io(commits.display().to_string(), source);
        let name = "__9_9_0123456789abcdef0123456789abcdef_22.wrt";
        std::fs::write(commits.join(name), []).map_err(failed)
    });
    writer
}

/// Consolidating fragments, and removing the old ones.
fn fragments(kind: ArrayFormat) -> [Writer; 2] {
    let consolidate = |places: &Places| {
        let options = OpenOptions::default();
        consolidate_path(&places.target, &options, &Progress::default()).map(|_| ())
    };
    let many = move |places: &Places, scale: Scale| {
        kind.create(places, scale, How::New, 1)?;
        (0..3).try_for_each(|_| kind.grow(places, scale))
    };
    let mut both = [
        kind.writer("consolidate", move |_, places, _| consolidate(places)),
        kind.writer("vacuum", |_, places, _| {
            vacuum_path(&places.target, &OpenOptions::default()).map(|_| ())
        }),
    ];
    both[0].before = Box::new(many);
    both[1].before = Box::new(move |places, scale| {
        many(places, scale)?;
        consolidate(places)
    });
    both
}

/// Zarr Vectors: points, and coarser levels.
fn geometry() -> [Writer; 5] {
    let writer = |verb: &str, before: Work, write: Work| Writer {
        name: format!("{verb} zarr vectors"),
        target: "x.zv",
        peer: "zv",
        before,
        write,
        again: Box::new(|places, scale| write_points(places, How::Replace, 3, 0, scale)),
        is_new: verb == "new",
    };
    let old = |places: &Places, scale: Scale| write_points(places, How::New, 1, 0, scale);
    let pyramid = |places: &Places, _: Scale| build_pyramid(&places.target, &PyramidOptions::new(vec![2.0]));
    [
        writer(
            "new",
            Box::new(|_, _| Ok(())),
            Box::new(|places, scale| write_points(places, How::New, 2, 1, scale)),
        ),
        writer(
            "new synced",
            Box::new(|_, _| Ok(())),
            Box::new(|places, scale| write_points(places, How::Synced, 2, 1, scale)),
        ),
        writer(
            "replace",
            Box::new(old),
            Box::new(|places, scale| write_points(places, How::Replace, 2, 1, scale)),
        ),
        writer("pyramid", Box::new(old), Box::new(pyramid)),
        writer(
            "append",
            Box::new(|places, scale| write_points(places, How::New, 1, 1, scale)),
            Box::new(append_points),
        ),
    ]
}

/// Adds points to a store, whose coarser level is generated again.
fn append_points(places: &Places, scale: Scale) -> Result<()> {
    let source = places.sources.join("points-more.npz");
    points(&source, scale.rows, 9)?;
    let options = ConvertOptions::default().with_append(true);
    let store = hyperslab::open(&source)?;
    convert(&store, &places.target, Format::ZVF, &options, &Progress::default()).map(|_| ())
}

fn convert_options(how: How) -> ConvertOptions {
    ConvertOptions::default().with_replace(how == How::Replace).with_sync(how == How::Synced)
}

fn write_points(places: &Places, how: How, seed: u64, levels: usize, scale: Scale) -> Result<()> {
    let source = places.sources.join(format!("points-{seed}.npz"));
    points(&source, scale.rows, seed)?;
    let geometry =
        GeometryOptions::default().with_kind(None).with_chunk_shape(vec![50.0]).with_levels(levels);
    let options = convert_options(how).with_geometry(geometry);
    let store = hyperslab::open(&source)?;
    convert(&store, &places.target, Format::ZVF, &options, &Progress::default()).map(|_| ())
}

fn points(path: &Path, count: u64, seed: u64) -> Result<()> {
    let mut random = crate::random::Random::new(seed);
    let places: Vec<u8> =
        (0..count * 3).flat_map(|_| ((random.part() * 100.0) as f32).to_ne_bytes()).collect();
    let weights: Vec<u8> = (0..count).flat_map(|number| (number as f64).to_ne_bytes()).collect();
    let mut sink = create(path, Format::NPZ, &CreateOptions::default().with_replace(true))?;
    for (name, dtype, shape, bytes) in [
        ("/vertices", DType::Float32, vec![count, 3], places),
        ("/weight", DType::Float64, vec![count], weights),
    ] {
        let array = sink.array(name, &ArraySpec::new(dtype, Grid::single(&shape)))?;
        let chunk = array.grid().coord(0);
        array.write(&chunk, array.encode(&chunk, &Elements::fixed(bytes))?)?;
    }
    sink.commit()
}

/// Writes files of rows from an array of numbers.
fn rows(name: &'static str, target: &'static str, peer: &'static str) -> [Writer; 3] {
    fn write(places: &Places, scale: Scale, how: How, first: u32) -> Result<()> {
        let source = places.sources.join(format!("rows-{first}.npy"));
        hyperslab::export::write(&numbers(scale.rows, first)?, &source, true)?;
        let options = convert_options(how);
        let store = hyperslab::open(&source)?;
        convert_to_rows(&store, &places.target, &options, &Progress::default()).map(|_| ())
    }
    let writer = |verb: &str, before: Work, how: How| Writer {
        name: format!("{verb} {name}"),
        target,
        peer,
        before,
        write: Box::new(move |places, scale| write(places, scale, how, 700)),
        again: Box::new(|places, scale| write(places, scale, How::Replace, 77)),
        is_new: how == How::New,
    };
    [
        writer("new", Box::new(|_, _| Ok(())), How::New),
        writer("new synced", Box::new(|_, _| Ok(())), How::Synced),
        writer("replace", Box::new(|places, scale| write(places, scale, How::New, 1)), How::Replace),
    ]
}
