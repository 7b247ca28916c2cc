//! Edits of stores, and salvage of damaged ones.

#![cfg(all(feature = "zarr", feature = "hdf5", feature = "netcdf3"))]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

use hyperslab::convert::{ConvertOptions, Progress, convert};
use hyperslab::edit::{Edit, EditOptions, attributes_of, edit, parse_attribute};
use hyperslab::salvage::salvage;
use hyperslab::{
    ArraySpec, Attributes, CreateOptions, DType, Depth, Elements, Format, Grid, OpenOptions, Region,
    RegionWriter, Selection, Values, create, open,
};

const FORMATS: [(&str, Format); 3] = [("zarr", Format::ZARR), ("h5", Format::HDF5), ("nc", Format::NETCDF3)];

/// A store with an array `/t` of 40 × 3 along `time` and `x`, its coordinate `/time`, and an array `/other`.
fn store(folder: &Path, extension: &str, format: Format) -> PathBuf {
    let path = folder.join(format!("data.{extension}"));
    let mut sink = create(&path, format, &CreateOptions::default()).unwrap();
    sink.group("/", &Attributes::new()).unwrap();
    let mut specs = Vec::new();
    for (node, shape, names) in [
        ("/time", &[40_u64][..], &["time"][..]),
        ("/t", &[40, 3], &["time", "x"]),
        ("/other", &[40], &["time"]),
    ] {
        let chunks: Vec<u64> = shape.iter().map(|extent| (*extent).min(8)).collect();
        let mut spec = ArraySpec::new(DType::Int32, Grid::new(shape, &chunks).unwrap());
        spec.dimensions = names.iter().map(|name| Some((*name).to_owned())).collect();
        spec.attributes.set("units", "C");
        spec.attributes.set("history", "old");
        spec.attributes.set("coordinates", "other");
        specs.push((sink.array(node, &spec).unwrap(), spec));
    }
    for (array, spec) in specs {
        let shape = spec.grid.shape();
        let count = i32::try_from(shape.iter().product::<u64>()).unwrap();
        let bytes: Vec<u8> = (0..count).flat_map(i32::to_ne_bytes).collect();
        let writer = RegionWriter::new(array, DType::Int32, spec.fill.clone());
        let values = Values::new(DType::Int32, shape, Elements::fixed(bytes)).unwrap();
        writer.assign(&Region::whole(shape), &values).unwrap();
        writer.finish().unwrap();
    }
    sink.commit().unwrap();
    path
}

fn apply(path: &Path, edits: &[Edit], dry_run: bool) -> hyperslab::Result<hyperslab::edit::EditReport> {
    edit(path, edits, &EditOptions::default().with_dry_run(dry_run), &Progress::default())
}

fn numbers(path: &Path, node: &str) -> Vec<i32> {
    open(path).unwrap().array(node).unwrap().read_vec(&Selection::all()).unwrap()
}

fn text(path: &Path, node: &str, name: &str) -> Option<String> {
    attributes_of(&open(path).unwrap(), node).unwrap().get(name).and_then(hyperslab::Attribute::as_text)
}

#[test]
fn attributes_are_set_and_deleted() {
    for (extension, format) in FORMATS {
        let folder = tempfile::tempdir().unwrap();
        let path = store(folder.path(), extension, format);
        let edits = [
            Edit::SetAttribute {
                node: "/t".to_owned(),
                name: "units".to_owned(),
                value: parse_attribute("K", None).unwrap(),
            },
            Edit::DeleteAttribute { node: "/t".to_owned(), name: "history".to_owned() },
        ];
        assert!(!apply(&path, &edits, true).unwrap().applied);
        assert_eq!(text(&path, "/t", "units").as_deref(), Some("C"), "{extension}");
        assert!(apply(&path, &edits, false).unwrap().applied);
        assert_eq!(text(&path, "/t", "units").as_deref(), Some("K"), "{extension}");
        assert_eq!(text(&path, "/t", "history"), None, "{extension}");
        assert_eq!(text(&path, "/other", "history").as_deref(), Some("old"), "{extension}");
        assert_eq!(numbers(&path, "/t"), (0..120).collect::<Vec<_>>(), "{extension}");
        let missing = Edit::DeleteAttribute { node: "/t".to_owned(), name: "unit".to_owned() };
        let why = apply(&path, &[missing], false).unwrap_err().to_string();
        assert!(why.contains("did you mean units?"), "{why}");
        assert_eq!(
            std::fs::read_dir(folder.path()).unwrap().count(),
            1,
            "{extension}: nothing is left beside it"
        );
    }
}

#[test]
fn nodes_are_renamed_and_removed() {
    for (extension, format) in FORMATS {
        let folder = tempfile::tempdir().unwrap();
        let path = store(folder.path(), extension, format);
        let rename = |from: &str, to: &str| Edit::Rename { from: from.to_owned(), to: to.to_owned() };
        apply(&path, &[rename("/t", "temperature"), rename("/time", "/day")], false).unwrap();
        let opened = open(&path).unwrap();
        let schema = opened.array("/temperature").unwrap().schema().clone();
        assert_eq!(schema.dimensions[0].as_deref(), Some("day"), "{extension}");
        assert!(opened.node("/t").is_err() && opened.node("/time").is_err(), "{extension}");
        drop(opened);
        assert_eq!(numbers(&path, "/temperature"), (0..120).collect::<Vec<_>>(), "{extension}");
        // An existing name, a missing node, the root.
        assert!(apply(&path, &[rename("/temperature", "/day")], false).is_err());
        assert!(apply(&path, &[rename("/none", "/some")], false).is_err());
        assert!(apply(&path, &[Edit::Remove { node: "/".to_owned() }], false).is_err());
        apply(&path, &[rename("/other", "/more")], false).unwrap();
        assert_eq!(text(&path, "/temperature", "coordinates").as_deref(), Some("more"), "{extension}");
        apply(&path, &[Edit::Remove { node: "/more".to_owned() }], false).unwrap();
        assert!(open(&path).unwrap().node("/more").is_err(), "{extension}");
        assert_eq!(numbers(&path, "/day"), (0..40).collect::<Vec<_>>(), "{extension}");
    }
}

#[test]
fn conversions_select_and_rename_nodes() {
    let folder = tempfile::tempdir().unwrap();
    let path = store(folder.path(), "zarr", Format::ZARR);
    let target = folder.path().join("part.nc");
    let options = ConvertOptions::default()
        .with_keep(vec!["t".to_owned()])
        .with_rename(vec![("t".to_owned(), "temperature".to_owned())])
        .with_drop(vec!["other".to_owned()]);
    let source = open(&path).unwrap();
    convert(&source, &target, Format::HDF5, &options, &Progress::default()).unwrap();
    let part = open(&target).unwrap();
    assert!(
        part.array("/temperature").is_ok() && part.array("/time").is_ok() && part.node("/other").is_err()
    );
    let wrong = ConvertOptions::default().with_drop(vec!["othr".to_owned()]);
    let why = convert(&source, &folder.path().join("no.nc"), Format::HDF5, &wrong, &Progress::default());
    assert!(why.unwrap_err().to_string().contains("did you mean /other?"));
}

#[test]
fn intact_content_of_truncated_files_is_salvaged() {
    for (extension, format) in [("h5", Format::HDF5), ("nc", Format::NETCDF3)] {
        let folder = tempfile::tempdir().unwrap();
        let path = store(folder.path(), extension, format);
        let bytes = std::fs::read(&path).unwrap();
        let all = numbers(&path, "/t");
        let mut saved_some = false;
        for eighths in 1..8 {
            let (cut, out) = (folder.path().join("cut"), folder.path().join(format!("{eighths}.zarr")));
            std::fs::write(&cut, &bytes[..bytes.len() * eighths / 8]).unwrap();
            let saved = salvage(
                &cut,
                &out,
                Some(Format::ZARR),
                &OpenOptions::default(),
                &ConvertOptions::default(),
                &Progress::default(),
            );
            // A file without its root is an error, not an empty store.
            let Ok(report) = saved else { continue };
            let is_reported = !report.lost.is_empty() || report.written.dropped().next().is_some();
            assert!(is_reported, "{extension}: {eighths} eighths: {report:?}");
            assert!(open(&out).unwrap().verify(Depth::Deep).is_ok());
            let Ok(array) = open(&out).unwrap().array("/t") else { continue };
            let found: Vec<i32> = array.read_vec(&Selection::all()).unwrap();
            assert!(
                found
                    .iter()
                    .zip(&all)
                    .all(|(found, own)| found == own || *found == 0 || *found == i32::MIN + 1)
            );
            saved_some |= found.iter().zip(&all).skip(1).any(|(found, own)| found == own);
        }
        assert!(saved_some, "{extension}: nothing was saved of any cut");
    }
}

#[test]
fn only_damaged_chunks_are_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = store(folder.path(), "zarr", Format::ZARR);
    let chunk = path.join("t/c/2/0");
    let bytes = std::fs::read(&chunk).unwrap();
    std::fs::write(&chunk, &bytes[..bytes.len() / 2]).unwrap();
    let out = folder.path().join("saved.zarr");
    let options = (OpenOptions::default(), ConvertOptions::default());
    let report = salvage(&path, &out, None, &options.0, &options.1, &Progress::default()).unwrap();
    let lost: Vec<_> = report.lost.iter().map(|lost| (lost.node.as_str(), lost.chunk.clone())).collect();
    assert_eq!(lost, [("/t", Some(vec![2, 0]))]);
    let expected: Vec<i32> =
        (0..120).map(|number| if (48..72).contains(&number) { 0 } else { number }).collect();
    assert_eq!(numbers(&out, "/t"), expected);
}
