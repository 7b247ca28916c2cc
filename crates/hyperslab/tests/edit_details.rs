//! Edits of stores with groups, links, forms and the bookkeeping of their formats.

#![cfg(all(feature = "zarr", feature = "hdf5", feature = "netcdf3", feature = "tet"))]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hyperslab::convert::{ConvertOptions, Progress, convert};
use hyperslab::edit::{Edit, EditOptions, EditReport, attribute_value, attributes_of, edit, parse_attribute};
use hyperslab::{
    ArraySpec, Attribute, Attributes, CreateOptions, DType, Depth, Elements, Format, Grid, Node, Region,
    RegionWriter, Selection, Sink, StructType, Values, create, format_named, open,
};
use hyperslab_core::LinkTarget;
use serde_json::json;

/// Starts a store with a root group.
fn start(path: &Path, format: &str) -> Box<dyn Sink> {
    let (format, variant) = format_named(format).unwrap();
    let options = CreateOptions::default().with_variant(variant).with_replace(true);
    let mut sink = create(path, format, &options).unwrap();
    sink.group("/", &Attributes::new()).unwrap();
    sink
}

/// Adds an array of one chunk with these dimension names, each of length 3.
fn add(
    sink: &mut Box<dyn Sink>,
    node: &str,
    dtype: &DType,
    names: &[&str],
    attributes: &[(&str, Attribute)],
    elements: Elements,
) {
    let shape = vec![3; names.len()];
    let mut spec = ArraySpec::new(dtype.clone(), Grid::new(&shape, &shape).unwrap());
    spec.dimensions =
        names.iter().map(|name| Some((*name).to_owned()).filter(|name| !name.is_empty())).collect();
    attributes.iter().for_each(|(name, value)| spec.attributes.set(*name, value.clone()));
    let array = sink.array(node, &spec).unwrap();
    let writer = RegionWriter::new(array, dtype.clone(), spec.fill.clone());
    let values = Values::new(dtype.clone(), &shape, elements).unwrap();
    writer.assign(&Region::whole(&shape), &values).unwrap();
    writer.finish().unwrap();
}

fn integers(count: i32) -> Elements {
    Elements::fixed((0..count).flat_map(i32::to_ne_bytes).collect::<Vec<u8>>())
}

fn floats(count: u16) -> Elements {
    Elements::fixed((0..count).flat_map(|number| f32::from(number).to_ne_bytes()).collect::<Vec<u8>>())
}

fn set(node: &str, name: &str, text: &str) -> Edit {
    let value = parse_attribute(text, None).unwrap();
    Edit::SetAttribute { node: node.to_owned(), name: name.to_owned(), value }
}

fn delete(node: &str, name: &str) -> Edit {
    Edit::DeleteAttribute { node: node.to_owned(), name: name.to_owned() }
}

fn rename(from: &str, to: &str) -> Edit {
    Edit::Rename { from: from.to_owned(), to: to.to_owned() }
}

fn remove(node: &str) -> Edit {
    Edit::Remove { node: node.to_owned() }
}

fn apply(path: &Path, edits: &[Edit]) -> hyperslab::Result<EditReport> {
    edit(path, edits, &EditOptions::default(), &Progress::default())
}

fn check(path: &Path, edits: &[Edit]) -> hyperslab::Result<EditReport> {
    edit(path, edits, &EditOptions::default().with_dry_run(true), &Progress::default())
}

fn attribute(path: &Path, node: &str, name: &str) -> Option<Attribute> {
    attributes_of(&open(path).unwrap(), node).unwrap().get(name).cloned()
}

fn text(path: &Path, node: &str, name: &str) -> Option<String> {
    attribute(path, node, name)?.as_text()
}

fn dimensions(path: &Path, node: &str) -> Vec<Option<String>> {
    open(path).unwrap().array(node).unwrap().schema().dimensions.clone()
}

fn elements(path: &Path, node: &str) -> Values {
    open(path).unwrap().array(node).unwrap().read(&Selection::all()).unwrap()
}

#[test]
fn attributes_of_an_object_change_under_all_of_its_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("links.h5");
    for name in ["/t", "/a", "/s"] {
        let mut sink = start(&path, "hdf5");
        add(&mut sink, "/a", &DType::Int32, &[""], &[("flag", "x".into())], integers(3));
        sink.link("/s", &LinkTarget::Soft("/a".to_owned())).unwrap();
        sink.link("/t", &LinkTarget::Hard("/a".to_owned())).unwrap();
        sink.commit().unwrap();
        apply(&path, &[set(name, "units", "K"), delete(name, "flag")]).unwrap();
        for other in ["/t", "/a", "/s"] {
            assert_eq!(text(&path, other, "units").as_deref(), Some("K"), "{name} {other}");
            assert_eq!(attribute(&path, other, "flag"), None, "{name} {other}");
        }
    }
}

/// Two groups with a coordinate `x`, a variable `w(y, x)` and an auxiliary one, by the same names.
fn groups(path: &Path, format: &str, coordinates: &Attribute) {
    let mut sink = start(path, format);
    for group in ["/g1", "/g2"] {
        sink.group(group, &Attributes::new()).unwrap();
        add(&mut sink, &format!("{group}/x"), &DType::Int32, &["x"], &[], integers(3));
        let attributes = [("coordinates", coordinates.clone())];
        add(&mut sink, &format!("{group}/w"), &DType::Int32, &["y", "x"], &attributes, integers(9));
        add(&mut sink, &format!("{group}/aux"), &DType::Int32, &["x"], &[], integers(3));
    }
    sink.commit().unwrap();
}

#[test]
fn renaming_in_one_group_does_not_touch_another() {
    let folder = tempfile::tempdir().unwrap();
    let characters = Values::scalar(DType::FixedBytes(3), Elements::fixed(b"aux".to_vec())).unwrap();
    for (name, format) in [("g.zarr", "zarr"), ("g.nc", "netcdf4"), ("g.tet", "tet")] {
        let path = folder.path().join(name);
        let coordinates: Attribute = match format {
            "netcdf4" => characters.clone().into(),
            _ => "aux".into(),
        };
        groups(&path, format, &coordinates);
        apply(&path, &[rename("g1/x", "xx"), rename("/g1/aux", "AUX")]).unwrap();
        let name = |name: &str| Some(name.to_owned());
        assert_eq!(dimensions(&path, "/g1/w"), [name("y"), name("xx")], "{format}");
        assert_eq!(dimensions(&path, "/g1/xx"), [name("xx")], "{format}");
        assert_eq!(dimensions(&path, "/g1/AUX"), [name("xx")], "{format}");
        assert_eq!(dimensions(&path, "/g2/w"), [name("y"), name("x")], "{format}");
        assert_eq!(dimensions(&path, "/g2/x"), [name("x")], "{format}");
        assert_eq!(text(&path, "/g1/w", "coordinates").as_deref(), Some("AUX"), "{format}");
        assert_eq!(text(&path, "/g2/w", "coordinates").as_deref(), Some("aux"), "{format}");
        if format == "netcdf4" {
            let Some(Attribute::Values(renamed)) = attribute(&path, "/g1/w", "coordinates") else {
                panic!("no text")
            };
            assert_eq!(renamed.dtype, DType::FixedBytes(3), "characters stay characters");
        }
    }
}

#[test]
fn new_paths_count_from_the_root_and_references_follow() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("g.zarr");
    groups(&path, "zarr", &"aux".into());
    apply(&path, &[rename("g1/aux", "g2/other"), rename("g2/aux", "more")]).unwrap();
    assert!(
        open(&path).unwrap().array("/g2/other").is_ok() && open(&path).unwrap().array("/g2/more").is_ok()
    );
    assert_eq!(text(&path, "/g1/w", "coordinates").as_deref(), Some("/g2/other"));
    assert_eq!(text(&path, "/g2/w", "coordinates").as_deref(), Some("more"));
    apply(&path, &[rename("/g2", "/g3")]).unwrap();
    assert_eq!(text(&path, "/g1/w", "coordinates").as_deref(), Some("/g3/other"));
    assert_eq!(text(&path, "/g3/w", "coordinates").as_deref(), Some("more"));
}

/// A file with a coordinate `x` and a variable `t(x)` of floats.
fn file(folder: &Path, format: &str) -> PathBuf {
    let path = folder.join(if format == "netcdf4" { "file.nc".to_owned() } else { format!("file.{format}") });
    let mut sink = start(&path, format);
    add(&mut sink, "/x", &DType::Int32, &["x"], &[], integers(3));
    let marker =
        Values::scalar(DType::Float32, Elements::fixed((-9999.0_f32).to_ne_bytes().to_vec())).unwrap();
    add(&mut sink, "/t", &DType::Float32, &["x"], &[("_FillValue", marker.into())], floats(3));
    sink.commit().unwrap();
    path
}

#[test]
fn attributes_get_a_type_of_the_format_or_are_refused() {
    for format in ["netcdf4", "classic", "hdf5", "zarr", "tet"] {
        let folder = tempfile::tempdir().unwrap();
        let path = file(folder.path(), format);
        apply(&path, &[set("/", "b", "true"), set("/", "l", "[true, false]")]).unwrap();
        let is_netcdf = ["netcdf4", "classic"].contains(&format);
        let expected =
            if is_netcdf { (json!(1), json!([1, 0])) } else { (json!(true), json!([true, false])) };
        let found = |name: &str| match attribute(&path, "/", name).unwrap().to_json() {
            serde_json::Value::Array(items) if name == "b" => items[0].clone(),
            value => value,
        };
        assert_eq!((found("b"), found("l")), expected, "{format}");
        let before = attributes_of(&open(&path).unwrap(), "/").unwrap();
        for document in ["null", "[]", "{\"a\": 1}", "[1, \"a\"]"] {
            let done = apply(&path, &[set("/", "title", "new"), set("/", "d", document)]);
            if ["zarr", "tet"].contains(&format) {
                done.unwrap();
                continue;
            }
            let why = done.unwrap_err().to_string();
            assert!(why.contains("\"d\"") && why.contains("Nothing was changed"), "{format}: {why}");
            assert_eq!(attributes_of(&open(&path).unwrap(), "/").unwrap(), before, "{format}: {document}");
        }
        // Such attributes are no obstacle to a rewrite.
        apply(&path, &[rename("/t", "temperature")]).unwrap();
        assert_eq!(found("b"), expected.0, "{format}");
    }
}

#[test]
fn types_of_other_writers_survive_a_rewrite() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flags.nc");
    // As h5netcdf writes it if asked to write invalid files.
    let mut sink = start(&path, "hdf5");
    sink.attributes("/", &Attributes::from_iter([("_NCProperties", "version=2,h5netcdf=1.8.2")])).unwrap();
    let flag = Values::scalar(DType::Bool, Elements::fixed(vec![1])).unwrap();
    add(
        &mut sink,
        "/a",
        &DType::Bool,
        &["x"],
        &[("valid", flag.clone().into())],
        Elements::fixed(vec![0, 1, 0]),
    );
    add(&mut sink, "/b", &DType::Int32, &["x"], &[], integers(3));
    sink.commit().unwrap();
    check(&path, &[rename("/b", "c")]).unwrap();
    apply(&path, &[rename("/b", "c")]).unwrap();
    assert_eq!(elements(&path, "/a").to_json(), json!([false, true, false]));
    assert_eq!(attribute(&path, "/a", "valid"), Some(flag.into()));
}

#[test]
fn markers_have_the_type_of_the_array_and_bookkeeping_is_protected() {
    for format in ["netcdf4", "classic", "hdf5", "zarr", "tet"] {
        let folder = tempfile::tempdir().unwrap();
        let path = file(folder.path(), format);
        for wrong in ["hello", "[1, 2]", "true"] {
            let why = apply(&path, &[set("/t", "_FillValue", wrong)]).unwrap_err().to_string();
            assert!(why.contains("float32"), "{format}: {why}");
        }
        assert!(apply(&path, &[set("/x", "_FillValue", "1.5")]).is_err(), "{format}");
        // A number of another type is converted.
        apply(&path, &[set("/t", "_FillValue", "-1"), set("/x", "_FillValue", "-1")]).unwrap();
        let Some(Attribute::Values(marker)) = attribute(&path, "/t", "_FillValue") else {
            panic!("{format}")
        };
        // NetCDF's attributes are lists.
        let value = if format == "classic" { json!([-1.0]) } else { json!(-1.0) };
        assert_eq!((marker.dtype.clone(), marker.to_json()), (DType::Float32, value), "{format}");
        if format == "netcdf4" {
            for name in ["CLASS", "NAME", "_Netcdf4Dimid", "REFERENCE_LIST"] {
                let why = apply(&path, &[set("/x", name, "foo")]).unwrap_err().to_string();
                assert!(why.contains("bookkeeping"), "{why}");
            }
            assert!(apply(&path, &[delete("/x", "CLASS")]).is_err());
            assert!(apply(&path, &[set("/t", "CLASS", "DIMENSION_SCALE")]).is_err());
            assert_eq!(dimensions(&path, "/t"), [Some("x".to_owned())]);
        }
    }
}

#[test]
fn texts_are_parsed_as_the_type_of_the_attribute() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(file(folder.path(), "netcdf4")).unwrap();
    let parse =
        |name: &str, text: &str, named: Option<&str>| attribute_value(&store, "/t", name, text, named);
    let range = parse("valid_range", "[NaN, 1]", None).unwrap();
    let Attribute::Values(range) = range else { panic!("not typed") };
    assert_eq!((range.dtype.clone(), range.to_json()), (DType::Float32, json!(["NaN", 1.0])));
    assert!(parse("valid_range", "abc", None).is_err());
    assert!(parse("valid_range", "abc", Some("float32")).is_err());
    assert!(parse("anything", "\"5\"", Some("int16")).is_err());
    assert!(parse("_FillValue", "hello", None).is_err());
    assert!(parse("anything", "1", Some("int61")).unwrap_err().to_string().contains("did you mean int16?"));
    assert_eq!(parse("anything", "abc", None).unwrap().as_text().as_deref(), Some("abc"));
}

#[test]
fn a_dry_run_finds_what_the_change_would_refuse() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("references.h5");
    let mut sink = start(&path, "hdf5");
    add(&mut sink, "/e", &DType::Int32, &[""], &[], integers(3));
    add(&mut sink, "/f", &DType::Int32, &[""], &[], integers(3));
    add(&mut sink, "/r", &DType::Reference, &[""], &[], Elements::variable(["/e", "/e", "/e"]));
    sink.commit().unwrap();
    let before = std::fs::read(&path).unwrap();
    let why = check(&path, &[remove("/e")]).unwrap_err().to_string();
    assert!(why.contains("to /e") && why.contains("References do not follow"), "{why}");
    assert!(!check(&path, &[remove("/f")]).unwrap().applied);
    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
    assert!(apply(&path, &[remove("/e")]).is_err());
    apply(&path, &[remove("/f")]).unwrap();
    assert!(open(&path).unwrap().node("/f").is_err());
}

#[test]
fn content_in_other_forms_is_edited() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source.h5");
    let fields = StructType::packed([("id", DType::Int32), ("value", DType::Float32)]);
    let row = |number: u8| [i32::from(number).to_ne_bytes(), f32::from(number).to_ne_bytes()].concat();
    let mut sink = start(&source, "hdf5");
    let table = DType::Struct(Arc::new(fields));
    add(&mut sink, "/tab", &table, &["x"], &[], Elements::fixed((0..3).flat_map(row).collect::<Vec<u8>>()));
    add(&mut sink, "/t", &DType::Int32, &["x"], &[], integers(3));
    sink.commit().unwrap();
    let path = folder.path().join("forms.zarr");
    let options = ConvertOptions::default();
    convert(&open(&source).unwrap(), &path, Format::ZARR, &options, &Progress::default()).unwrap();
    let why = apply(&path, &[remove("/tab/id")]).unwrap_err().to_string();
    assert!(why.contains("a member of the array /tab"), "{why}");
    apply(&path, &[rename("/t", "tt"), rename("/tab", "rows")]).unwrap();
    assert_eq!(elements(&path, "/rows"), elements(&source, "/tab"));
    assert_eq!(elements(&path, "/tt"), elements(&source, "/t"));
    apply(&path, &[remove("/rows")]).unwrap();
    assert_eq!(open(&path).unwrap().children("/").unwrap(), ["tt"]);
}

#[test]
fn masks_follow_their_arrays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("masked.zarr");
    let csv = folder.path().join("rows.csv");
    std::fs::write(&csv, "n,x\n1,1.5\n,2.5\n3,3.5\n").unwrap();
    let options = ConvertOptions::default();
    convert(&open(&csv).unwrap(), &path, Format::ZARR, &options, &Progress::default()).unwrap();
    let stored = |path: &Path| {
        let mut names = open(path).unwrap().as_stored().children("/").unwrap();
        names.sort();
        names
    };
    assert_eq!(stored(&path), ["n", "n_mask", "x"]);
    apply(&path, &[rename("/n", "number")]).unwrap();
    assert_eq!(stored(&path), ["number", "number_mask", "x"]);
    let Node::Table(table) = open(&path).unwrap().node("/").unwrap() else { panic!("no table") };
    assert!(table.schema().columns.iter().any(|column| column.name == "number" && column.nullable));
    apply(&path, &[remove("/number")]).unwrap();
    assert_eq!(stored(&path), ["x"]);
    assert!(matches!(open(&path).unwrap().node("/").unwrap(), Node::Table(_)));
}

#[test]
fn tet_files_are_edited_with_their_history() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "tet");
    let mut before = elements(&path, "/t");
    let operations = || {
        let details = open(&path).unwrap().inner().details().unwrap();
        let rows = details["history"].as_array().unwrap().clone();
        rows.iter().map(|row| row["op"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(operations(), ["write"]);
    let edits = [set("/t", "units", "K"), set("/", "n", "5"), delete("/t", "_FillValue")];
    assert!(apply(&path, &edits).unwrap().in_place);
    assert_eq!(operations(), ["write", "edit"]);
    assert_eq!(text(&path, "/t", "units").as_deref(), Some("K"));
    assert_eq!(attribute(&path, "/t", "_FillValue"), None);
    assert_eq!(attribute(&path, "/", "n").unwrap().to_json(), json!(5));
    // The old type is forgotten together with the old value.
    apply(&path, &[set("/", "n", "\"5\""), set("/t", "units", "\"7\"")]).unwrap();
    assert_eq!(attribute(&path, "/", "n").unwrap().to_json(), json!("5"));
    apply(&path, &[delete("/", "n")]).unwrap();
    assert_eq!(attribute(&path, "/", "n"), None);
    assert!(!apply(&path, &[rename("/t", "temperature")]).unwrap().in_place);
    assert_eq!(operations(), ["write", "edit", "edit", "edit", "edit"]);
    let after = elements(&path, "/temperature");
    before.shape = after.shape.clone();
    assert_eq!(after, before);
    assert!(open(&path).unwrap().verify(Depth::Deep).unwrap().ok());
}
