//! Content that some formats lack, converted between every pair of formats: what is kept is restored, and what is not
//! is named.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::Command;

use hyperslab::convert::{ConvertOptions, Progress, convert};
use hyperslab::diff::{DiffOptions, diff};
use hyperslab::{OpenStore, format_named};

/// The targets: file extension and format name.
const TARGETS: [(&str, &str); 8] = [
    ("h5", "hdf5"),
    ("nc", "netcdf4"),
    ("nc3", "netcdf3"),
    ("zarr2", "zarr2"),
    ("zarr3", "zarr3"),
    ("tiledb", "tiledb"),
    ("tet", "tet"),
    ("npz", "npz"),
];

/// The expected state of a source in a target.
enum Expected {
    /// The target reads like the source, and converting it back gives the source.
    Kept,
    /// Values are kept, but not their meaning: our own comparison sees the stored form.
    Values,
    /// A node is left out, and the report has these words.
    LeftOut(&'static str),
}

/// Where another result than [`Expected::Kept`] is expected, by source and target.
const EXCEPTIONS: &[(&str, &str, Expected)] = &[
    // NumPy's files have no attributes, so forms cannot be marked.
    ("nullable.tiledb", "npz", Expected::Values),
    ("table.tiledb", "npz", Expected::Values),
    ("types.h5", "npz", Expected::LeftOut("names of the values")),
    ("types.nc", "npz", Expected::LeftOut("names of the values")),
    ("types.zarr3", "npz", Expected::Values),
    // NetCDF has its own forms for booleans, half floats and text, which xarray reads.
    ("types.npz", "netcdf4", Expected::Values),
    ("types.h5", "netcdf4", Expected::Values),
    ("types.zarr3", "netcdf4", Expected::Values),
    ("types.zarr3", "netcdf3", Expected::Values),
    // The classic formats have no groups for the members of structs.
    ("types.npz", "netcdf3", Expected::LeftOut("a group below the root")),
    ("types.h5", "netcdf3", Expected::LeftOut("a group below the root")),
    ("types.nc", "netcdf3", Expected::LeftOut("a group below the root")),
];

/// The expected differences, by the start of the sentence that describes them. Each must occur.
const DIFFERENT: &[&str] = &[
    // TileDB has no arrays without dimensions; `.tet` stores them as one element.
    // NumPy's files have the mask beside the values, without a mark.
    "nullable.tiledb~.npz: /a: ",
    "nullable.tiledb~.npz: /f: ",
    // Text of a column is stored as bytes along one more axis, which only Hyperslab restores.
    "table.tiledb~.nc3: rows ",
    // The classic formats have no groups for the members of structs.
    "types.h5~.nc3: /point is missing",
    "types.nc~.nc3: /point is missing",
    "types.npz~.nc3: /point is missing",
    // The members of a struct are attributes of one array.
    "types.h5~.tiledb: /point is missing",
    "types.nc~.tiledb: /point is missing",
    "types.npz~.tiledb: /point is missing",
];

fn expected(source: &str, target: &str) -> &'static Expected {
    let found = EXCEPTIONS.iter().find(|(own, to, _)| *own == source && *to == target);
    found.map_or(&Expected::Kept, |(.., expected)| expected)
}

fn script(command: &str, folder: &Path) -> String {
    let python =
        std::env::var("HYPERSLAB_PEERS").expect("HYPERSLAB_PEERS names an interpreter with the peers");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/matrix.py");
    let output = Command::new(python).arg(script).arg(command).arg(folder).output().unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn to(source: &OpenStore, target: &Path, name: &str) -> hyperslab::Result<hyperslab::convert::ConvertReport> {
    let (format, variant) = format_named(name)?;
    let options = ConvertOptions::default().with_variant(variant);
    convert(source, target, format, &options, &Progress::default())
}

/// The differences in values, as sentences.
fn differences(a: &OpenStore, b: &OpenStore) -> Vec<String> {
    let options = DiffOptions::default().with_values_only(true);
    let report = diff((a, "/"), (b, "/"), &options);
    report.map_or_else(
        |error| vec![error.to_string()],
        |report| {
            report
                .differences
                .iter()
                .map(|difference| format!("{}: {}", difference.path, difference.sentence()))
                .collect()
        },
    )
}

#[test]
fn every_format_to_every_format_and_back() {
    let folder = tempfile::tempdir().unwrap();
    let sources: Vec<String> = serde_json::from_str(&script("make", folder.path())).unwrap();
    std::fs::create_dir(folder.path().join("x")).unwrap();
    let mut wrong = Vec::new();
    for name in &sources {
        let source = hyperslab::open(folder.path().join(name)).unwrap();
        for (extension, format) in TARGETS {
            let target = folder.path().join(format!("x/{name}~.{extension}"));
            let report = to(&source, &target, format);
            let case = format!("{name} to {format}");
            match (expected(name, format), report) {
                (Expected::LeftOut(words), Ok(report)) => {
                    if !report.dropped().any(|loss| loss.to_string().contains(words)) {
                        wrong.push(format!("{case}: nothing is left out"));
                    }
                }
                (expected @ (Expected::Kept | Expected::Values), Ok(report)) => {
                    wrong.extend(report.dropped().map(|loss| format!("{case}: {loss}")));
                    if matches!(expected, Expected::Values) {
                        continue;
                    }
                    let there = hyperslab::open(&target).unwrap();
                    wrong.extend(differences(&source, &there).iter().map(|what| format!("{case}: {what}")));
                    // Convert back to the source's own format.
                    let own = source.format();
                    let ending = name.rsplit('.').next().unwrap();
                    let back = folder.path().join(format!("back-{name}-{format}.{ending}"));
                    match to(&there, &back, if ending == "nc" { "netcdf4" } else { own }) {
                        Ok(_) => {
                            let back = hyperslab::open(&back).unwrap();
                            let found = differences(&source, &back);
                            wrong.extend(found.iter().map(|what| format!("{case} and back: {what}")));
                        }
                        Err(why) => wrong.push(format!("{case} and back: {why}")),
                    }
                }
                (_, Err(why)) => wrong.push(format!("{case}: {why}")),
            }
        }
    }
    // Sentences are lines that start with the name of a source; other lines continue the one before.
    let compared = script("compare", folder.path());
    let starts = |line: &&str| sources.iter().any(|name| line.starts_with(name.as_str()));
    wrong.extend(compared.lines().filter(starts).map(str::to_owned));
    let (expected_lines, unexpected): (Vec<_>, Vec<_>) =
        wrong.into_iter().partition(|line| DIFFERENT.iter().any(|start| line.starts_with(start)));
    let stale = DIFFERENT.iter().filter(|start| !expected_lines.iter().any(|line| line.starts_with(**start)));
    let stale: Vec<_> = stale.map(|start| format!("no longer different: {start}")).collect();
    assert!(unexpected.is_empty() && stale.is_empty(), "{}", [unexpected, stale].concat().join("\n"));
}
