//! The rarer parts of the formats, against the libraries that write and read them.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::output_of;

/// Runs a function of `formats.py`.
fn peer(words: &[&str]) {
    let python = std::env::var("HYPERSLAB_PEERS").expect("HYPERSLAB_PEERS names an interpreter with tiledb");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/formats.py");
    let output = Command::new(python).arg(script).args(words).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn read(folder: &Path, words: &[&str]) -> Value {
    let out = folder.join("out.json");
    let mut all = vec!["read"];
    all.extend_from_slice(words);
    all.extend(["-o", "out.json", "--force"]);
    output_of(folder, 0, &all);
    serde_json::from_slice(&std::fs::read(out).unwrap()).unwrap()
}

#[test]
fn labels_of_dimensions_are_read_selected_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let text = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    peer(&["tiledb_labels_write", folder.to_str().unwrap()]);
    let rows = |from: i64, to: i64| -> Value {
        (from..to)
            .map(|row| (0..4).map(|column| row * 4 + column).collect::<Vec<_>>())
            .collect::<Vec<_>>()
            .into()
    };
    for (name, start) in [("plain", "0"), ("shifted", "10")] {
        let depth = read(folder, &[name, "/depth"]);
        assert_eq!((&depth[0], &depth[1]), (&json!(100), &json!(99)));
        assert_eq!(read(folder, &[name, "/name"]), json!(["ash", "birch", "oak", "pine"]));
        assert_eq!(read(folder, &[name, "/a", "place=1..2.5"]), rows(2, 6));
        assert_eq!(read(folder, &[name, "/a", "depth=97..98"]), rows(2, 4));
        assert_eq!(read(folder, &[name, "/a", "place=1", "name=oak"]), json!(10));
        let text = output_of(folder, 2, &["read", name, "/a", "place=1.2"]);
        assert!(text.contains("place~1.2") || text.contains("neighbours"), "{text}");
        // A copy keeps them as labels, also for the library. A part of the array keeps the labels of that part.
        let copy = format!("{name}.copy");
        output_of(folder, 0, &["convert", name, &copy, "--to", "tiledb"]);
        peer(&["tiledb_labels_check", &text_of(folder, &copy), start]);
        output_of(folder, 0, &["diff", name, &copy]);
        output_of(folder, 0, &["verify", &copy, "--deep"]);
        let part = format!("{name}.part");
        output_of(folder, 0, &["convert", name, &part, "--to", "tiledb", "--select", "place=1..2.5"]);
        assert_eq!(read(folder, &[&part, "/depth"]), json!([98, 97, 96, 95]));
        assert_eq!(read(folder, &[&part, "/a", "depth=95..96"]), rows(4, 6));
    }
    // If the domain starts at zero, selections by the dimension's name use the label.
    assert_eq!(
        read(folder, &["plain", "/a", "y=birch"]),
        json!((0..20).map(|row| row * 4 + 1).collect::<Vec<_>>())
    );
    assert_eq!(read(folder, &["shifted", "/a", "x=12"]), json!([8, 9, 10, 11]));
    output_of(folder, 0, &["convert", "plain", "plain.zarr"]);
    assert_eq!(read(folder, &["plain.zarr", "/place"]), read(folder, &["plain", "/place"]));
    peer(&["tiledb_labels_check", &text("plain"), "0"]);
}

fn text_of(folder: &Path, name: &str) -> String {
    folder.join(name).to_str().unwrap().to_owned()
}

#[test]
fn fields_are_added_and_dropped_as_the_library_does() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    peer(&["tiledb_evolve_write", folder.to_str().unwrap()]);
    for name in ["dense", "sparse"] {
        let evolve = |words: &[&'static str]| [&["evolve", name], words].concat();
        let change = ["--add", "c:int16=-7", "--add", "note:string?", "--drop", "b"];
        let before = output_of(folder, 0, &["info", name, "--json"]);
        output_of(folder, 0, &evolve(&[&change[..], &["--dry-run"]].concat()));
        for wrong in [
            &["--add", "a:int8"][..],
            &["--add", "x:int8"],
            &["--drop", "c"],
            &["--add", "c:int7"],
            &["--add", "c:int8=400"],
            &["--add", "c"],
            &["--drop", "a", "--drop", "nothing"],
            &[],
        ] {
            output_of(folder, 2, &evolve(wrong));
        }
        assert_eq!(output_of(folder, 0, &["info", name, "--json"]), before, "nothing was written");
        output_of(folder, 0, &evolve(&change));
        output_of(folder, 0, &["verify", name, "--deep"]);
    }
    assert_eq!(read(folder, &["dense", "/c"]), json!(vec![-7; 10]));
    assert_eq!(read(folder, &["dense", "/note"]), Value::from(vec![Value::Null; 10]));
    output_of(folder, 2, &["read", "dense", "/b"]);
    let table = read(folder, &["sparse"]);
    assert_eq!((&table["c"], &table["a"][9]), (&json!(vec![-7; 10]), &json!(9)));
    peer(&["tiledb_evolve_check", folder.to_str().unwrap()]);
    let table = read(folder, &["sparse"]);
    assert_eq!(
        (&table["c"][3], &table["note"][3], &table["note"][4]),
        (&json!(5), &json!("new"), &json!(null))
    );
    // Each attribute of a dense array is a node, so it can be removed like any other.
    output_of(folder, 0, &["rm", "dense", "/note"]);
    output_of(folder, 2, &["read", "dense", "/note"]);
    peer(&["tiledb_evolve_by_library", folder.to_str().unwrap()]);
    assert_eq!(read(folder, &["dense", "/late"]), json!(vec![2.5; 10]));
    assert_eq!(read(folder, &["sparse"])["late"], json!(vec![2.5; 10]));
    output_of(folder, 2, &["read", "dense", "/a"]);
    let text = output_of(folder, 2, &["evolve", "dense", "--drop", "late,c"]);
    assert!(text.contains("needs an attribute"), "{text}");
}

#[test]
fn arrays_are_added_to_a_group_that_exists() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let path = text_of(folder, "g.tiledb");
    peer(&["tiledb_group_write", &path]);
    peer(&["hdf5_for_group", &text_of(folder, "x.h5")]);
    output_of(folder, 0, &["convert", "x.h5", "g.tiledb", "--append"]);
    peer(&["tiledb_group_check", &path]);
    output_of(folder, 0, &["verify", "g.tiledb", "--deep"]);
    assert_eq!(read(folder, &["g.tiledb", "/more/u/u"]), json!([0.0, 1.0, 2.0, 3.0, 4.0]));
    // A single array is not a group.
    output_of(folder, 2, &["convert", "x.h5", "g.tiledb/first", "--to", "tiledb", "--append"]);
}

#[test]
fn images_of_the_webp_filter_are_read_and_written() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    peer(&["tiledb_webp_write", folder.to_str().unwrap()]);
    for name in ["rgb", "bgra"] {
        output_of(folder, 0, &["diff", &format!("{name}.npy"), name, "--no-attributes"]);
        let copy = format!("{name}.copy");
        output_of(folder, 0, &["convert", name, &copy, "--to", "tiledb"]);
        let info: Value = serde_json::from_str(&output_of(folder, 0, &["info", &copy, "--json"])).unwrap();
        assert_eq!(info["nodes"][1]["filters"][0]["name"], "webp", "{info}");
        peer(&["same_values", &text_of(folder, &copy), &text_of(folder, &format!("{name}.npy"))]);
    }
}

#[test]
fn categories_become_enumerations_that_later_rows_extend() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    peer(&["categories_write", folder.to_str().unwrap()]);
    output_of(folder, 0, &["convert", "one.parquet", "c.tiledb", "--dimensions", "x"]);
    output_of(folder, 0, &["convert", "two.parquet", "c.tiledb", "--append"]);
    peer(&["categories_check", &text_of(folder, "c.tiledb")]);
    let table = read(folder, &["c.tiledb"]);
    assert_eq!(table["kind"], json!(["NK", "B", "NK", "T", "B", "mast"]));
}

#[test]
fn arrays_without_cells_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let python = std::env::var("HYPERSLAB_PEERS").unwrap();
    let script = "import h5py, sys\nf = h5py.File(sys.argv[1], 'w')\n\
                  f.create_dataset('a', (0, 5), maxshape=(None, 5), chunks=(2, 5), dtype='i4')\n\
                  f.create_dataset('b', (3, 0), dtype='f8')\nf.close()";
    let done = Command::new(python).args(["-c", script, &text_of(folder, "e.h5")]).status().unwrap();
    assert!(done.success());
    output_of(folder, 0, &["convert", "e.h5", "e.tiledb"]);
    output_of(folder, 0, &["diff", "e.h5", "e.tiledb"]);
    output_of(folder, 0, &["verify", "e.tiledb", "--deep"]);
    peer(&["empty_check", &text_of(folder, "e.tiledb/a")]);
    assert_eq!(read(folder, &["e.tiledb", "/a/a"]), json!([]));
    assert_eq!(read(folder, &["e.tiledb", "/b/b"]), json!([[], [], []]));
}

#[test]
fn references_in_parquet_files_are_written_and_read() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let place = folder.to_str().unwrap();
    peer(&["references_source", place]);
    output_of(folder, 0, &["references", "data.h5", "-o", "ours.parq"]);
    output_of(folder, 0, &["references", "data.h5", "-o", "refs.json"]);
    peer(&["references_parquet_check", place, "ours.parq"]);
    peer(&["references_parquet_by_fsspec", place, &text_of(folder, "refs.json")]);
    for found in ["ours.parq", "theirs.parq"] {
        let text = output_of(folder, 0, &["diff", "data.h5", found, "--no-attributes"]);
        assert!(!text.contains("differ"), "{found}: {text}");
    }
    // An existing target is kept. The error names an external file that is too short or missing.
    assert!(output_of(folder, 2, &["references", "data.h5", "-o", "ours.parq"]).contains("ours.parq"));
    output_of(folder, 0, &["references", "data.h5", "-o", "ours.parq", "--force"]);
    let file = std::fs::OpenOptions::new().write(true).open(folder.join("data.h5")).unwrap();
    file.set_len(3000).unwrap();
    for store in ["ours.parq", "refs.json"] {
        let text = output_of(folder, 2, &["read", store, "/t"]);
        assert!(text.contains("data.h5, which has 3000"), "{store}: {text}");
    }
    std::fs::remove_file(folder.join("data.h5")).unwrap();
    for store in ["ours.parq", "refs.json"] {
        let text = output_of(folder, 2, &["read", store, "/t"]);
        assert!(text.contains("data.h5") && text.contains("target"), "{store}: {text}");
    }
}

#[test]
fn metadata_and_raw_data_in_files_of_their_own_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    peer(&["hdf5_split_write", folder.to_str().unwrap()]);
    output_of(folder, 0, &["diff", "one.h5", "split-m.h5"]);
    output_of(folder, 0, &["verify", "split-m.h5", "--deep"]);
    output_of(folder, 0, &["convert", "split-m.h5", "joined.h5"]);
    output_of(folder, 0, &["diff", "one.h5", "joined.h5"]);
    std::fs::remove_file(folder.join("split-r.h5")).unwrap();
    assert!(output_of(folder, 2, &["info", "split-m.h5"]).contains("split-r.h5"));
    std::fs::rename(folder.join("split-m.h5"), folder.join("other.h5")).unwrap();
    assert!(output_of(folder, 2, &["info", "other.h5"]).contains("%s-m.h5"));
}

#[test]
fn files_of_the_multi_driver_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    peer(&["hdf5_multi_write", folder.to_str().unwrap()]);
    for name in ["old", "new"] {
        let first = format!("{name}-s.h5");
        output_of(folder, 0, &["diff", "one.h5", &first]);
        output_of(folder, 0, &["verify", &first, "--deep"]);
        let raw = format!("{name}-r.h5");
        std::fs::remove_file(folder.join(&raw)).unwrap();
        assert!(output_of(folder, 2, &["info", &first]).contains(&raw));
        let headers = format!("{name}-o.h5");
        std::fs::remove_file(folder.join(&headers)).unwrap();
        assert!(output_of(folder, 2, &["info", &first]).contains(&format!("{name}-")));
    }
}

#[test]
fn images_get_coarser_levels() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let place = folder.to_str().unwrap();
    peer(&["image_source", place]);
    for (node, method, name, more) in [
        ("cells", "mean", "a.ome.zarr", &[][..]),
        ("cells", "nearest", "b.ome.zarr", &["--shards", "2,10,40,40", "--chunks", "1,5,20,20"]),
        ("labels", "mode", "c.ome.zarr", &[]),
    ] {
        let words = ["convert", "image.h5", name, "--node", node, "--levels", "3", "--downsample", method];
        output_of(folder, 0, &[&words[..], more].concat());
        peer(&["image_check", place, name, node, method]);
        let info: Value = serde_json::from_str(&output_of(folder, 0, &["info", name, "--json"])).unwrap();
        assert_eq!(info["nodes"].as_array().unwrap().len(), 5, "{info}");
        output_of(folder, 0, &["read", name, "--level", "2", "-o", "level.npy", "--force"]);
    }
    for (words, why) in [
        (&["image.h5", "d.zarr", "--levels", "2"][..], "several"),
        (&["image.h5", "d.h5", "--node", "cells", "--levels", "2"], "OME-Zarr"),
        (&["image.h5", "d.zarr", "--to", "zarr2", "--node", "cells", "--levels", "2"], "Zarr v3"),
        (&["image.h5", "d.zarr", "--node", "cells", "--levels", "2", "--downsample", "max"], "mean, mode"),
        (&["image.h5", "d.zarr", "--node", "cells", "--levels", "99"], "32"),
    ] {
        let text = output_of(folder, 2, &[&["convert"], words].concat());
        assert!(text.contains(why), "{words:?}: {text}");
        assert!(!folder.join("d.zarr").exists() && !folder.join("d.h5").exists());
    }
}
