//! The requests and bytes of every command on every format, exactly.

use std::path::Path;

use hyperslab::convert::{ConvertOptions, Progress, convert};
use hyperslab::diff::{DiffOptions, diff};
use hyperslab::query::{Axis, Operation, Query};
use hyperslab::references::{self, Options};
use hyperslab::{
    ArraySpec, CreateOptions, DType, Depth, Elements, Format, GeometryQuery, Grid, OpenOptions, OpenStore,
    RemoteOptions, create, hash, open, open_with,
};

use super::{Remote, read};

/// What is measured, in the order of the table.
const COMMANDS: [&str; 10] =
    ["info", "plane", "series", "all", "query", "convert", "diff", "hash", "verify", "deep"];

/// Commands whose threads may ask for the same piece at once: the table has a bound for them.
const BOUNDED: [(&str, &str); 8] = [
    ("points.zv", "verify"),
    ("points.zv", "deep"),
    ("refs.json", "all"),
    ("refs.json", "query"),
    ("refs.json", "convert"),
    ("refs.json", "diff"),
    ("refs.json", "hash"),
    ("refs.json", "deep"),
];

/// A store and the requests and bytes of each command, opening included.
type Line = (&'static str, [(usize, u64); 10]);

/// An `.npz` file of arrays of numbers that count up.
fn arrays(path: &Path, parts: &[(&str, DType, &[u64])]) {
    let mut sink = create(path, Format::NPZ, &CreateOptions::default()).unwrap();
    let sinks: Vec<_> = parts
        .iter()
        .map(|(name, dtype, shape)| {
            let spec = ArraySpec::new(dtype.clone(), Grid::new(shape, shape).unwrap());
            (sink.array(&format!("/{name}"), &spec).unwrap(), shape.iter().product::<u64>())
        })
        .collect();
    for (array, cells) in sinks {
        let numbers: Vec<u8> = (0..cells).flat_map(|at| ((at * 37 % 1009) as f32).to_ne_bytes()).collect();
        let chunk = array.grid().coord(0);
        array.write(&chunk, array.encode(&chunk, &Elements::fixed(numbers)).unwrap()).unwrap();
    }
    sink.commit().unwrap();
}

/// More stores, beside those of all tests.
pub(super) fn add_stores(remote: &Remote) {
    let to = |source: &Path, name: &str, format: Format| {
        let options = ConvertOptions::default().with_chunk_shape(super::CHUNK.to_vec());
        convert(&open(source).unwrap(), &remote.local(name), format, &options, &Progress::default()).unwrap();
    };
    let field = remote.folder.path().join("x.npy");
    to(&field, "x.nc", Format::NETCDF3);
    to(&field, "x.zarr.zip", Format::ZARR);
    let pair = remote.folder.path().join("pair.npz");
    arrays(&pair, &[("a", DType::Float32, &[64, 64]), ("b", DType::Float32, &[100])]);
    let plain = ConvertOptions::default();
    let target = remote.local("pair2.zarr");
    let v2 = ConvertOptions::default().with_variant(Format::ZARR.info().variant("zarr2"));
    convert(&open(&pair).unwrap(), &target, Format::ZARR, &v2, &Progress::default()).unwrap();
    let target = remote.local("pair.tiledb");
    convert(&open(&pair).unwrap(), &target, Format::TILEDB, &plain, &Progress::default()).unwrap();
    let points = remote.folder.path().join("points.npz");
    arrays(&points, &[("vertices", DType::Float32, &[3000, 3]), ("weight", DType::Float32, &[3000])]);
    let target = remote.local("points.zv");
    convert(&open(&points).unwrap(), &target, Format::ZVF, &plain, &Progress::default()).unwrap();
    let file = open(remote.local("x.h5")).unwrap();
    let mut options = Options::new(&file);
    options.url = "x.h5".into();
    references::write(&file, &options, &remote.local("refs.json"), false).unwrap();
}

impl Remote {
    /// Opens with a fixed gap: measurements between requests would change it.
    fn steady(&self, name: &str) -> OpenStore {
        let options = RemoteOptions::default()
            .with_option("endpoint_url", self.server.endpoint())
            .with_option("merge_gap", "65536")
            .with_anonymous(true);
        open_with(format!("s3://bucket/{name}"), &OpenOptions::default().with_remote(options)).unwrap()
    }
}

/// Runs a command on a store of the bucket.
fn run(remote: &Remote, name: &str, command: &str) {
    let store = remote.steady(name);
    let geometry = name == "points.zv";
    match command {
        "info" => drop(store.catalog().unwrap()),
        "plane" | "series" | "all" if geometry => {
            let region = match command {
                "plane" => Some([vec![0.0, 0.0, 0.0], vec![400.0, 400.0, 400.0]]),
                "series" => Some([vec![0.0, 0.0, 0.0], vec![9.0, 9.0, 9.0]]),
                _ => None,
            };
            let query = GeometryQuery { region, ..GeometryQuery::default() };
            drop(store.geometry("/").unwrap().query(&query).unwrap());
        }
        "plane" | "series" | "all" | "query" if name == "pair.tiledb" => {
            let array = store.array(if command == "series" { "/b" } else { "/a" }).unwrap();
            let selection = if command == "plane" { "[3]" } else { "[:]" };
            drop(array.read(&selection.parse().unwrap()).unwrap());
        }
        "plane" => drop(read(&store, "[3]").unwrap()),
        "series" => drop(read(&store, "[:, 5, 7]").unwrap()),
        "all" => drop(read(&store, "[:]").unwrap()),
        "query" if geometry => {}
        "query" => {
            let array = store.array(&store.only_node().unwrap()).unwrap();
            let mut query = Query::new(Operation::Max);
            query.over = vec![Axis::Number(0)];
            drop(query.plan(&array).unwrap().run(&array).unwrap());
        }
        "convert" => {
            let (format, target) = if geometry {
                (Format::ZVF, remote.folder.path().join("copy.zv"))
            } else {
                (Format::ZARR, remote.folder.path().join("copy.zarr"))
            };
            let options = ConvertOptions::default().with_replace(true);
            convert(&store, &target, format, &options, &Progress::default()).unwrap();
        }
        "diff" => {
            let local = open(remote.local(name)).unwrap();
            assert!(diff((&store, "/"), (&local, "/"), &DiffOptions::default()).unwrap().same(), "{name}");
        }
        "hash" => {
            let local = hash::nodes(&open(remote.local(name)).unwrap(), "/").unwrap();
            assert_eq!(hash::nodes(&store, "/").unwrap(), local, "{name}");
        }
        "verify" => assert!(store.verify(Depth::Quick).unwrap().ok(), "{name}"),
        _ => assert!(store.verify(Depth::Deep).unwrap().ok(), "{name}"),
    }
}

/// A difference shows the table to review.
#[test]
fn requests_and_bytes_of_every_command_are_these() {
    let remote = Remote::new();
    add_stores(&remote);
    let expected: [Line; 11] = [
        (
            "x.h5",
            [
                (2, 66876),
                (3, 67900),
                (3, 116032),
                (4, 133436),
                (3, 133436),
                (3, 133436),
                (4, 133436),
                (4, 133436),
                (2, 66876),
                (3, 133436),
            ],
        ),
        (
            "x.nc",
            [
                (3, 73836),
                (4, 204908),
                (4, 204908),
                (4, 204908),
                (4, 204908),
                (4, 204908),
                (4, 204908),
                (4, 204908),
                (3, 73836),
                (4, 204908),
            ],
        ),
        (
            "x.zarr",
            [
                (2, 21404),
                (17, 16928),
                (9, 576),
                (129, 131616),
                (129, 131616),
                (129, 131616),
                (129, 131616),
                (129, 131616),
                (3, 42264),
                (131, 173336),
            ],
        ),
        (
            "v2.zarr",
            [
                (6, 21600),
                (21, 17097),
                (13, 745),
                (133, 131785),
                (133, 131785),
                (133, 131785),
                (133, 131785),
                (133, 131785),
                (7, 42487),
                (135, 173559),
            ],
        ),
        (
            "sharded.zarr",
            [
                (4, 3675),
                (3, 18432),
                (5, 101388),
                (3, 134148),
                (3, 134148),
                (3, 134148),
                (3, 134148),
                (3, 134148),
                (5, 4274),
                (7, 135346),
            ],
        ),
        (
            "x.zarr.zip",
            [
                (6, 22719),
                (21, 17727),
                (13, 1375),
                (133, 132415),
                (133, 132415),
                (133, 132415),
                (133, 132415),
                (133, 132415),
                (7, 44095),
                (135, 175167),
            ],
        ),
        (
            "x.tiledb",
            [
                (4, 5409),
                (5, 22113),
                (5, 123381),
                (6, 139041),
                (5, 139041),
                (5, 139041),
                (6, 139041),
                (6, 139041),
                (6, 5409),
                (7, 139041),
            ],
        ),
        (
            "pair.tiledb",
            [
                (7, 7686),
                (6, 21810),
                (6, 5716),
                (6, 21810),
                (6, 21810),
                (9, 24510),
                (9, 24510),
                (9, 24510),
                (11, 7686),
                (13, 24510),
            ],
        ),
        (
            "x.tet",
            [
                (2, 131960),
                (3, 148344),
                (3, 164732),
                (4, 177016),
                (3, 177016),
                (3, 177016),
                (4, 177016),
                (4, 177016),
                (3, 177016),
                (3, 177016),
            ],
        ),
        (
            "points.zv",
            [
                (1, 2290),
                (10, 10367),
                (10, 10367),
                (16, 10557),
                (1, 2290),
                (19, 11037),
                (16, 10557),
                (16, 10557),
                (60, 40000),
                (60, 40000),
            ],
        ),
        (
            "refs.json",
            [
                (1, 4669),
                (3, 21053),
                (3, 119361),
                (5, 135741),
                (3, 135741),
                (3, 135741),
                (5, 135741),
                (5, 135741),
                (1, 4669),
                (3, 135741),
            ],
        ),
    ];
    let names = expected.map(|(name, _)| name);
    let found: Vec<Line> = names
        .into_iter()
        .map(|name| {
            let counts = COMMANDS.map(|command| {
                let ((), requests, bytes) = remote.count(|| run(&remote, name, command));
                (requests, bytes)
            });
            (name, counts)
        })
        .collect();
    let fits = |name: &str, at: usize, found: (usize, u64), expected: (usize, u64)| {
        let bounded = BOUNDED.contains(&(name, COMMANDS[at]));
        found == expected || bounded && found.0 <= expected.0 && found.1 <= expected.1
    };
    let same = found.iter().zip(&expected).all(|((name, found), (_, expected))| {
        found
            .iter()
            .zip(expected)
            .enumerate()
            .all(|(at, (found, expected))| fits(name, at, *found, *expected))
    });
    let lines: String = found.iter().map(|(name, counts)| format!("({name:?}, {counts:?}),\n")).collect();
    assert!(same, "found, in the order of {COMMANDS:?}:\n{lines}");
}
