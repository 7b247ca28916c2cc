//! The command as users run it: output, exit codes, files.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn tet(folder: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tet")).current_dir(folder).args(words).output().expect("tet starts")
}

/// Runs `tet`, checks the exit code, and returns stdout.
fn output_of(folder: &Path, code: i32, words: &[&str]) -> String {
    let output = tet(folder, words);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "tet {words:?}\n{out}\n{err}");
    if code == 2 { err.into_owned() } else { out.into_owned() }
}

/// Runs a command that changes a store, and returns its report. Standard output is for data.
fn report_of(folder: &Path, code: i32, words: &[&str]) -> String {
    let output = tet(folder, words);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!((output.status.code(), &*out), (Some(code), ""), "tet {words:?}\n{err}");
    err.into_owned()
}

fn json(folder: &Path, code: i32, words: &[&str]) -> Value {
    serde_json::from_str(&output_of(folder, code, words)).expect("one JSON document")
}

/// A folder with a small array in every format that can be written.
fn samples() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    output_of(folder.path(), 0, &["demo", "samples"]);
    let samples = folder.path().join("samples");
    std::fs::copy(samples.join("field.npy"), folder.path().join("x.npy")).expect("the sample");
    for target in ["x.npz", "x.tet", "x.zarr"] {
        output_of(folder.path(), 0, &["convert", "x.npy", target, "--chunks", "8,12,24"]);
    }
    folder
}

#[test]
fn info_is_the_same_for_every_format() {
    let folder = samples();
    for (file, format) in [("x.npy", "npy"), ("x.npz", "npz"), ("x.tet", "tet"), ("x.zarr", "zarr")] {
        let document = json(folder.path(), 0, &["info", file, "--json"]);
        assert_eq!(document["format"], format);
        assert_eq!(document["path"], file);
        let nodes = document["nodes"].as_array().expect("nodes");
        let array = nodes.iter().find(|node| node["kind"] == "array").expect("an array");
        assert_eq!(array["dtype"], "float32");
        assert_eq!(array["shape"], serde_json::json!([24, 36, 72]));
        let text = output_of(folder.path(), 0, &["info", file]);
        assert!(text.contains("24 × 36 × 72") && text.contains("float32"), "{text}");
        assert!(!text.contains('\u{1b}'), "no colours outside a terminal");
    }
    let chunks = json(folder.path(), 0, &["info", "x.tet", "--json", "--chunks", "-n", "0"]);
    let array = chunks["nodes"]
        .as_array()
        .expect("nodes")
        .iter()
        .find(|node| node["kind"] == "array")
        .expect("array");
    assert_eq!(array["chunks"].as_array().map(Vec::len), Some(27));
    assert_eq!(array["chunks_stored"], 27);
    assert!(output_of(folder.path(), 0, &["info", "x.tet", "--chunks", "-n", "5"]).contains("22 more"));
}

#[test]
fn a_repair_says_what_it_did_not_read() {
    let folder = samples();
    let text = report_of(folder.path(), 0, &["repair", "x.tet"]);
    assert!(text.contains("nothing to fix") && text.contains("tet verify x.tet --deep"), "{text}");
    // Lost chunks do not count as saved.
    let path = folder.path().join("x.npy");
    let bytes = std::fs::read(&path).expect("the sample");
    std::fs::write(&path, &bytes[..bytes.len() / 2]).expect("written");
    let text = report_of(folder.path(), 1, &["repair", "x.npy", "--salvage", "y.npy"]);
    assert!(text.contains("1 array shortened"), "{text}");
    let chunk = folder.path().join("x.zarr/c/0/0/0");
    let chunk = if chunk.exists() { chunk } else { folder.path().join("x.zarr/data/c/0/0/0") };
    std::fs::write(&chunk, b"damage").expect("written");
    let text = report_of(folder.path(), 1, &["repair", "x.zarr", "--salvage", "y.zarr"]);
    assert!(text.contains("234.0 KiB of 243.0 KiB saved, 1 chunk lost"), "{text}");
}

/// A soft link, and a second hard link, are shown with their targets, and their bytes count once.
#[test]
fn info_shows_where_links_lead() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../hyperslab-hdf5/tests/golden");
    let text = output_of(&golden, 0, &["info", "latest.h5"]);
    let line = |start: &str| text.lines().find(|line| line.trim_start().starts_with(start)).expect("a line");
    assert!(line("/soft → /types/f8").contains("float64") && !line("/soft").contains("96 B"), "{text}");
    assert!(line("/types/up ").contains("→ /") && line("/types/f8").contains("96 B"), "{text}");
    assert!(text.contains("60 arrays · 3 links"), "{text}");
    let document = json(&golden, 0, &["info", "latest.h5", "--json"]);
    let node = |path: &str| document["nodes"].as_array()?.iter().find(|node| node["path"] == path);
    assert_eq!(node("/soft").expect("the link")["link"], serde_json::json!({ "soft": "/types/f8" }));
    assert_eq!(node("/types/up").expect("the link")["link"], serde_json::json!({ "hard": "/" }));
    assert!(node("/types/f8").expect("the array").get("link").is_none());
    assert!(output_of(&golden, 0, &["info", "latest.h5", "--tree"]).contains("soft → /types/f8"));
}

#[test]
fn read_gives_the_same_values_for_every_format() {
    let folder = samples();
    let expected = json(folder.path(), 0, &["read", "x.npy", "[3, ::9, -2:]", "--json"]);
    assert_eq!(expected.as_array().map(Vec::len), Some(4));
    for file in ["x.npz", "x.tet", "x.zarr"] {
        let values = json(folder.path(), 0, &["read", file, "[3, ::9, -2:]", "--json"]);
        assert_eq!(values, expected, "{file}");
    }
    output_of(folder.path(), 0, &["read", "x.tet", "[0]", "-o", "out.npy"]);
    assert!(output_of(folder.path(), 0, &["info", "out.npy"]).contains("36 × 72"));
    output_of(folder.path(), 0, &["read", "x.tet", "[0, 0]", "-o", "out.csv"]);
    let csv = std::fs::read_to_string(folder.path().join("out.csv")).expect("out.csv");
    assert_eq!(csv.lines().count(), 72);
    assert!(output_of(folder.path(), 2, &["read", "x.tet", "-o", "out.csv"]).contains("--force"));
    output_of(folder.path(), 0, &["read", "x.tet", "[0]", "-o", "out.csv", "--force"]);
}

#[test]
fn arrays_are_appended_to_existing_files() {
    let folder = samples();
    output_of(folder.path(), 0, &["read", "x.npy", "[0]", "-o", "y.npy"]);
    output_of(folder.path(), 0, &["convert", "y.npy", "y.npz"]);
    output_of(folder.path(), 0, &["convert", "x.npy", "x.h5"]);
    output_of(folder.path(), 0, &["convert", "x.h5", "g.zarr"]);
    let before = json(folder.path(), 0, &["read", "x.npy", "[0]", "--json"]);
    for target in ["x.tet", "x.h5", "g.zarr"] {
        output_of(folder.path(), 0, &["convert", "y.npz", target, "--append"]);
        assert_eq!(json(folder.path(), 0, &["read", target, "/arr_0", "--json"]), before);
        assert_eq!(json(folder.path(), 0, &["read", target, "/data", "[0]", "--json"]), before);
        output_of(folder.path(), 0, &["verify", target, "--deep"]);
        assert!(output_of(folder.path(), 2, &["convert", "y.npz", target, "--append"]).contains("already"));
    }
    let why = output_of(folder.path(), 2, &["convert", "y.npz", "x.npz", "--append"]);
    assert!(why.contains("not supported"), "{why}");
}

/// A TileDB array gets a new version. Both can be read and consolidated, and the old one removed.
#[test]
fn fragments_are_added_consolidated_and_vacuumed() {
    let folder = samples();
    let values = |words: &[&str]| {
        json(folder.path(), 0, &[&["read", "a.tiledb", "--json", "[0, 0, :4]"], words].concat())
    };
    output_of(folder.path(), 0, &["convert", "x.npy", "a.tiledb", "--chunks", "8,12,24"]);
    let first = values(&[]);
    output_of(folder.path(), 0, &["read", "x.npy", "[::-1]", "-o", "y.npy"]);
    output_of(folder.path(), 0, &["convert", "y.npy", "a.tiledb", "--append"]);
    let second = values(&[]);
    assert_eq!(second, json(folder.path(), 0, &["read", "y.npy", "--json", "[0, 0, :4]"]));
    assert_ne!(first, second);
    let info = json(folder.path(), 0, &["info", "a.tiledb", "--all", "--json"]);
    let text = info.to_string();
    assert_eq!(text.matches("\"fragment\":\"__").count(), 2, "{text}");
    let time = info["fragments"][0]["time"][1].to_string();
    assert_eq!(values(&["--at", &time]), first);
    let report = json(folder.path(), 0, &["consolidate", "a.tiledb", "--json"]);
    assert_eq!((&report["replaced"], values(&[])), (&2.into(), second.clone()));
    assert!(report_of(folder.path(), 0, &["consolidate", "a.tiledb"]).contains("nothing to merge"));
    assert!(report_of(folder.path(), 0, &["vacuum", "a.tiledb"]).contains("2 fragments removed"));
    assert!(report_of(folder.path(), 0, &["repair", "x.tet"]).contains("nothing to fix"));
    assert!(
        report_of(folder.path(), 0, &["repair", "x.tet", "--salvage", "saved.tet"]).contains("nothing lost")
    );
    assert!(report_of(folder.path(), 0, &["clean", "."]).contains("nothing to remove"));
    assert_eq!(json(folder.path(), 0, &["vacuum", "a.tiledb", "--json"])["removed"], 0);
    assert_eq!(values(&[]), second);
    output_of(folder.path(), 0, &["verify", "a.tiledb", "--deep"]);
    for (command, doing) in [("consolidate", "consolidating tet"), ("vacuum", "vacuuming zarr")] {
        let file = if command == "vacuum" { "x.zarr" } else { "x.tet" };
        assert!(output_of(folder.path(), 2, &[command, file]).contains(doing), "{command}");
    }
}

#[test]
fn errors_suggest_the_next_step() {
    let folder = samples();
    for (words, why) in [
        (&["read", "x.tet", "[99]"][..], "out of bounds"),
        (&["read", "x.tet", "/nope"], "not found"),
        (&["read", "nothing.tet"], "nothing.tet"),
        (&["read", "x.tet", "[0", "]"], "expected"),
        (&["convert", "x.npy", "x.unknown"], "--to"),
        (&["convert", "x.npy", "x.tet"], "--force"),
        (&["info", "x.npy", "--format", "nonsense"], "there are"),
        (&["read", "x.tet", "-o", "out.xyz"], ".npy"),
    ] {
        let printed = output_of(folder.path(), 2, words);
        assert!(printed.contains(why), "{words:?}: {printed}");
    }
    std::fs::write(folder.path().join("noise"), b"not an array at all").expect("a file");
    assert!(output_of(folder.path(), 2, &["info", "noise"]).contains("unknown signature"));
}

#[test]
fn damage_is_found_and_exits_with_1() {
    let folder = samples();
    assert!(output_of(folder.path(), 0, &["verify", "x.tet", "--deep"]).contains("whole"));
    let path = folder.path().join("x.tet");
    let mut bytes = std::fs::read(&path).expect("x.tet");
    // Flips a bit of the last payload, which only a checksum can detect.
    let document = json(folder.path(), 0, &["info", "x.tet", "--json", "--chunks", "-n", "0"]);
    let array = document["nodes"]
        .as_array()
        .expect("nodes")
        .iter()
        .find(|node| node["kind"] == "array")
        .expect("array");
    let offset = array["chunks"][5]["offset"].as_u64().expect("an offset") as usize;
    bytes[offset + 100] ^= 4;
    std::fs::write(&path, &bytes).expect("damaged");
    let verified = json(folder.path(), 1, &["verify", "x.tet", "--deep", "--json"]);
    assert_eq!(verified["ok"], false);
    assert_eq!(verified["file_len"], bytes.len());
    let failed: Vec<_> =
        verified["findings"].as_array().expect("findings").iter().filter(|f| f["ok"] == false).collect();
    assert!(!failed.is_empty() && failed.iter().all(|finding| finding["check"].is_string()));
    bytes[..4].copy_from_slice(b"JUNK");
    std::fs::write(&path, &bytes).expect("damaged");
    let verified = json(folder.path(), 1, &["verify", "x.tet", "--json"]);
    assert_eq!(verified["findings"][0]["check"], "parse");
    assert!(output_of(folder.path(), 2, &["verify", "nothing.tet"]).contains("nothing.tet"));
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let folder = samples();
    let mut child = Command::new(env!("CARGO_BIN_EXE_tet"))
        .current_dir(folder.path())
        .args(["read", "x.tet", "--full"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("tet starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn help_opens_with_examples() {
    let folder = tempfile::tempdir().expect("a folder");
    for command in
        ["info", "read", "convert", "verify", "repair", "consolidate", "vacuum", "demo", "completions"]
    {
        assert!(output_of(folder.path(), 0, &[command, "--help"]).starts_with("Examples:"), "{command}");
    }
    for shell in ["bash", "zsh", "fish"] {
        assert!(output_of(folder.path(), 0, &["completions", shell]).contains("verify"));
    }
    assert!(output_of(folder.path(), 0, &["man"]).contains(".TH tet"));
}

#[test]
fn short_help_fits_a_screen() {
    let folder = tempfile::tempdir().expect("a folder");
    let all = output_of(folder.path(), 0, &["-h"]);
    let commands = all.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands: Vec<&str> =
        commands.map_while(|line| line.split_whitespace().next()).filter(|name| *name != "help").collect();
    assert!(commands.len() > 20, "{commands:?}");
    for words in std::iter::once(vec!["-h"]).chain(commands.iter().map(|name| vec![*name, "-h"])) {
        let text = output_of(folder.path(), 0, &words);
        assert!(text.starts_with("Examples:"), "{words:?}");
        assert!(text.lines().count() <= 54, "{words:?} has {} lines", text.lines().count());
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{words:?}: {text}");
    }
    let all = output_of(folder.path(), 0, &["convert", "--help"]);
    assert!(all.contains("--provenance") && all.contains("vertices, positions, points"), "{all}");
}

#[test]
fn the_demo_runs_twice() {
    let folder = tempfile::tempdir().expect("a folder");
    for _ in 0..2 {
        let printed = output_of(folder.path(), 0, &["demo", "samples"]);
        assert!(printed.contains("$ tet info") && printed.contains("Try next"), "{printed}");
    }
}

#[test]
fn nodes_may_have_brackets_in_their_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, document: Value| {
        let path = folder.path().join("s.zarr").join(name);
        std::fs::create_dir_all(&path).expect("a folder");
        std::fs::write(path.join("zarr.json"), document.to_string()).expect("a document");
    };
    write("", serde_json::json!({"zarr_format": 3, "node_type": "group"}));
    for (name, fill) in [("m", 1), ("m[1][2]", 7)] {
        let array = serde_json::json!({
            "zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "int32", "fill_value": fill,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
            "chunk_key_encoding": {"name": "default"}, "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        });
        write(name, array);
    }
    let read = |words: &[&str]| json(folder.path(), 0, &[&["read", "s.zarr"], words, &["--json"]].concat());
    assert_eq!(read(&["/m[1][2]"]), serde_json::json!([7, 7, 7, 7]));
    assert_eq!(read(&["/m[1][2]", "[1:3]"]), serde_json::json!([7, 7]));
    // If no node has that name, its end is a selection.
    assert_eq!(read(&["/m[1:4]"]), serde_json::json!([1, 1, 1]));
    assert!(output_of(folder.path(), 2, &["read", "s.zarr", "/n[0]"]).contains("/n[0]"));
}

/// A server that starts without its store would answer every request with an error.
#[test]
fn an_address_without_a_store_is_not_served() {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/none.h5", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let _ =
                stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        }
    });
    let mut child = Command::new(env!("CARGO_BIN_EXE_tet"))
        .args(["serve", &url, "--port", "0"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("tet starts");
    // It announces itself or fails.
    let mut line = [0; 1];
    let announced = child.stdout.as_mut().expect("output").read(&mut line).expect("output") > 0;
    if announced {
        child.kill().expect("stopped");
    }
    let output = child.wait_with_output().expect("tet ends");
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(!announced && output.status.code() == Some(2) && why.contains("none.h5"), "{why}");
}

/// Users, passwords and signatures in URLs, and storage options, appear in no message.
#[test]
fn secrets_are_not_repeated() {
    let folder = samples();
    // No request is sent: a host has no space.
    let url = "http://me:hush@a host/a.nc?sig='a)b hush";
    for words in [
        vec!["info", url],
        vec!["clean", url],
        vec!["diff", url, "x.npy"],
        vec!["append", url, "x.zarr", "--along", "time"],
        vec!["append", "x.npy", url, "--along", "time"],
        vec!["convert", url, "y.zarr"],
        vec!["convert", "x.npy", url],
        vec!["convert", url, "x.npy", "y.zarr", "--concat", "time"],
        vec!["plot", "x.npy", "-o", url],
        vec!["read", "x.npy", "-o", url],
        vec!["query", "q.json", "--target", url, "-x"],
        vec!["query", url, "--mean", "time"],
        vec!["rm", url, "/t"],
        vec!["info", "s3://bucket/x", "--storage-option", "hush"],
    ] {
        let error = output_of(folder.path(), 2, &words);
        assert!(!error.contains("hush"), "{words:?}: {error}");
    }
}
