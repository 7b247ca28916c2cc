//! Stores in an S3 bucket: written by the peers and read by us, and the other way round.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

const SECRET: &str = "test-secret-7d1f";

/// Environment variables of the AWS tools: meaningless keys, and no other source of credentials.
const ENVIRONMENT: [(&str, &str); 6] = [
    ("AWS_ACCESS_KEY_ID", "test-key"),
    ("AWS_SECRET_ACCESS_KEY", SECRET),
    ("AWS_EC2_METADATA_DISABLED", "true"),
    ("AWS_REGION", "us-east-1"),
    ("AWS_CONFIG_FILE", "/nonexistent"),
    ("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent"),
];

fn script() -> Command {
    let python = std::env::var("HYPERSLAB_PEERS").expect("HYPERSLAB_PEERS names an interpreter with moto");
    let mut command = Command::new(python);
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/peers/bucket.py")).envs(ENVIRONMENT);
    command
}

/// A server with a bucket, and a folder with the same stores.
struct Bucket {
    server: Child,
    port: u16,
    folder: tempfile::TempDir,
    /// Names of the stores that are in both.
    names: Vec<String>,
}

impl Drop for Bucket {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

impl Bucket {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("its address").port();
        drop(listener);
        let server = script()
            .args(["serve", &port.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the server starts");
        let folder = tempfile::tempdir().expect("a folder");
        let mut bucket = Self { server, port, folder, names: Vec::new() };
        for _ in 0..600 {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                break;
            }
            assert!(bucket.server.try_wait().expect("a process").is_none(), "the server ended");
            std::thread::sleep(Duration::from_millis(100));
        }
        let folder = bucket.folder.path().to_owned();
        let names = bucket.script("make", &[folder.to_str().expect("a UTF-8 path")]);
        bucket.names = serde_json::from_str(&names).expect("a list of names");
        bucket
    }

    fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn script(&self, command: &str, words: &[&str]) -> String {
        let output = script().arg(command).arg(self.endpoint()).args(words).output().expect("Python starts");
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// Runs `tet` in the folder. The endpoint comes from the environment or from an option.
    fn tet(&self, words: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tet"));
        command.current_dir(self.folder.path()).args(words).envs(ENVIRONMENT);
        if words.contains(&"--storage-option") {
            command.env_remove("AWS_ACCESS_KEY_ID").env_remove("AWS_SECRET_ACCESS_KEY");
        } else {
            command.env("AWS_ENDPOINT_URL", self.endpoint());
        }
        command.output().expect("tet starts")
    }

    /// Runs `tet`, checks the exit code, and returns stdout, or stderr for an error.
    fn output_of(&self, code: i32, words: &[&str]) -> String {
        let output = self.tet(words);
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(code), "tet {words:?}\n{out}\n{err}");
        assert!(!out.contains(SECRET) && !err.contains(SECRET), "tet {words:?} reveals the secret");
        if code == 2 { err.into_owned() } else { out.into_owned() }
    }

    fn json(&self, words: &[&str]) -> Value {
        serde_json::from_str(&self.output_of(0, words)).expect("one JSON document")
    }

    fn local(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The bucket's objects, and the keys of uploads that were never finished.
    fn objects(&self) -> (Vec<Value>, Vec<Value>) {
        let found: Value = serde_json::from_str(&self.script("keys", &[])).expect("one JSON document");
        let list = |name: &str| found[name].as_array().expect("a list").clone();
        (list("objects"), list("unfinished"))
    }

    /// The keys under a prefix.
    fn keys(&self, prefix: &str) -> Vec<String> {
        let keys =
            self.objects().0.into_iter().map(|object| object["key"].as_str().unwrap_or_default().to_owned());
        keys.filter(|key| key.starts_with(prefix)).collect()
    }
}

fn url(name: &str) -> String {
    format!("s3://bucket/{name}")
}

#[test]
fn stores_written_by_peers_read_as_from_disk() {
    let bucket = Bucket::new();
    assert_eq!(bucket.names.len(), 9);
    for name in &bucket.names {
        let url = url(name);
        let strip = |mut document: Value| {
            let members = document.as_object_mut().expect("an object");
            members.remove("path");
            document
        };
        let there = bucket.json(&["info", &url, "--json"]);
        assert_eq!(there["path"], url.as_str());
        let here = strip(bucket.json(&["info", name, "--json"]));
        assert_eq!(strip(there), here, "{name}");
        for node in here["nodes"].as_array().expect("nodes") {
            let path = node["path"].as_str().expect("a path");
            let reads: &[&[&str]] = match node["kind"].as_str() {
                Some("array") => &[&["read"], &["query", "--max"]],
                Some("table") => &[&["read"]],
                _ => &[],
            };
            for words in reads {
                let asked = |place: &str| {
                    let mut all = vec![words[0], place, path];
                    all.extend(&words[1..]);
                    bucket.tet(&all)
                };
                let (there, here) = (asked(&url), asked(name));
                assert_eq!(there.status.code(), here.status.code(), "{name} {path} {words:?}");
                assert_eq!(there.stdout, here.stdout, "{name} {path} {words:?}");
            }
        }
        bucket.output_of(0, &["verify", &url, "--deep"]);
        bucket.output_of(0, &["diff", &url, name]);
        if name == "rows.tiledb" {
            for (source, target) in [(url.as_str(), "there.parquet"), (name, "here.parquet")] {
                bucket.output_of(0, &["convert", source, target, "-q"]);
            }
            let read = |name: &str| std::fs::read(bucket.local(name)).expect("the file");
            assert_eq!(read("there.parquet"), read("here.parquet"));
        } else {
            let copy = format!("copy-{name}");
            bucket.output_of(0, &["convert", &url, &copy, "-q"]);
            bucket.output_of(0, &["diff", &copy, name]);
        }
    }
    // The same with options instead of variables.
    let endpoint = format!("endpoint_url={}", bucket.endpoint());
    let secret = format!("secret={SECRET}");
    let words =
        ["--storage-option", &endpoint, "--storage-option", "key=test-key", "--storage-option", &secret];
    let words = [&["hash", "s3://bucket/x.h5"], &words[..]].concat();
    assert_eq!(
        bucket.output_of(0, &words).lines().next(),
        bucket.output_of(0, &["hash", "x.h5"]).lines().next()
    );
}

#[test]
fn peers_read_stores_converted_into_the_bucket() {
    let bucket = Bucket::new();
    let conversions: [(&str, &[&str]); 9] = [
        ("to2.zarr", &["--to", "zarr2"]),
        ("to3.zarr", &["--to", "zarr3"]),
        ("sharded-to.zarr", &["--to", "zarr3", "--shards", "60"]),
        ("to.tiledb", &[]),
        ("to.h5", &[]),
        ("to.nc", &["--to", "netcdf4"]),
        ("to3.nc", &["--to", "netcdf3"]),
        ("to.tet", &[]),
        ("to.npz", &["--skip-unsupported"]),
    ];
    for (name, words) in conversions {
        let target = url(name);
        bucket.output_of(0, &[&["convert", "source.nc", &target, "-q"], words].concat());
        bucket.output_of(0, &["verify", &target, "--deep"]);
    }
    bucket.output_of(0, &["convert", "points.zv", "s3://bucket/to.zv", "-q"]);
    let differences = bucket.script("check", &[bucket.folder.path().to_str().expect("a UTF-8 path")]);
    assert!(differences.is_empty(), "{differences}");
    assert_eq!(bucket.objects().1, Vec::<Value>::new());
}

#[test]
fn an_existing_target_requires_force() {
    let bucket = Bucket::new();
    bucket.output_of(0, &["convert", "v2.zarr", "s3://bucket/out.zarr", "-q", "--to", "zarr2"]);
    let before = bucket.objects();
    let refused = bucket.output_of(2, &["convert", "source.nc", "s3://bucket/out.zarr", "-q"]);
    assert!(refused.contains("s3://bucket/out.zarr") && refused.contains("exists"), "{refused}");
    assert_eq!(bucket.objects(), before, "nothing was touched");

    // Another version of the format, another format, a file in place of a folder and the other way round.
    let steps: [(&str, &str, &str); 5] = [
        ("source.nc", "zarr3", "zarr.json"),
        ("source.nc", "tiledb", "__group"),
        ("x.h5", "hdf5", ""),
        ("v3.zarr", "zarr3", "zarr.json"),
        ("x.npz", "zarr2", ".zgroup"),
    ];
    for (source, to, first) in steps {
        let local = format!("local-{to}-{source}");
        bucket.output_of(0, &["convert", source, "s3://bucket/out.zarr", "-q", "--to", to, "--force"]);
        bucket.output_of(0, &["convert", source, &local, "-q", "--to", to]);
        let wanted = if first.is_empty() {
            vec!["out.zarr".to_owned()]
        } else {
            let mut files = Vec::new();
            files_below(&bucket.local(&local), "out.zarr", &mut files);
            assert!(files.iter().any(|key| key.starts_with(&format!("out.zarr/{first}"))), "{files:?}");
            files
        };
        let mut found = bucket.keys("out.zarr");
        found.sort();
        assert_eq!(without_times(found), without_times(wanted), "{source} to {to}");
        bucket.output_of(0, &["diff", "s3://bucket/out.zarr", &local]);
    }

    for key in ["notes.zarr", "folder.zarr/notes.txt"] {
        bucket.script("put", &[key]);
        let target = url(key.split('/').next().unwrap_or(key));
        for force in [&[][..], &["--force"]] {
            let refused = bucket.output_of(2, &[&["convert", "x.h5", &target, "-q"], force].concat());
            assert!(refused.contains(&target), "{refused}");
        }
        let again = bucket.output_of(2, &["convert", "x.h5", &target, "-q", "--force"]);
        assert!(again.contains("not a store"), "{again}");
        assert_eq!(bucket.keys(key), [key]);
    }
}

/// TileDB names folders after the time and a random number.
fn without_times(keys: Vec<String>) -> Vec<String> {
    let plain =
        |part: &str| if part.starts_with("__") && part.len() > 40 { "__time" } else { part }.to_owned();
    let mut keys: Vec<String> =
        keys.iter().map(|key| key.split('/').map(plain).collect::<Vec<_>>().join("/")).collect();
    keys.sort();
    keys
}

fn files_below(folder: &Path, prefix: &str, files: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let entry = entry.expect("an entry");
        let key = format!("{prefix}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() { files_below(&entry.path(), &key, files) } else { files.push(key) }
    }
}

#[test]
fn large_files_are_uploaded_in_parts() {
    let bucket = Bucket::new();
    bucket.output_of(0, &["convert", "large.npy", "large.h5", "-q"]);
    bucket.output_of(0, &["convert", "large.npy", "s3://bucket/large.h5", "-q"]);
    assert_eq!(
        bucket.script("same", &["large.h5", bucket.local("large.h5").to_str().expect("UTF-8")]).trim(),
        "true"
    );
    let (objects, unfinished) = bucket.objects();
    let large = objects.iter().find(|object| object["key"] == "large.h5").expect("the object");
    // A tag with a number of parts is that of an upload in parts.
    let tag = large["tag"].as_str().expect("a tag").trim_matches('"').to_owned();
    let parts: u64 = tag.rsplit_once('-').expect("parts").1.parse().expect("a number");
    assert_eq!(parts, large["size"].as_u64().expect("a size").div_ceil(16 << 20), "{tag}");
    assert!(unfinished.is_empty());
    bucket.output_of(0, &["diff", "s3://bucket/large.h5", "large.h5"]);

    // If the server rejects a part, or an object of a store, nothing remains.
    for (source, target) in [("large.npy", "refused/large.h5"), ("v3.zarr", "refused/x.zarr")] {
        let refused = bucket.output_of(2, &["convert", source, &url(target), "-q"]);
        assert!(refused.contains(&url(target)) && refused.contains("access denied"), "{refused}");
        assert_eq!(bucket.keys("refused"), Vec::<String>::new());
        assert_eq!(bucket.objects().1, Vec::<Value>::new(), "no upload is left open");
    }
}

/// Every command that writes a file takes a URL, and every edit works in the bucket.
#[test]
fn outputs_and_edits_work_at_urls() {
    let bucket = Bucket::new();
    let outputs: [(&[&str], &str); 8] = [
        (&["read", "x.h5", "/g/t"], "read.npy"),
        (&["read", "x.h5", "/g/t"], "read.csv"),
        (&["read", "rows.tiledb"], "read.parquet"),
        (&["query", "x.h5", "/g/t", "--max", "0"], "query.npy"),
        (&["plot", "x.h5", "/g/t"], "plot.svg"),
        (&["references", "x.h5", "--url", "x.h5"], "references.json"),
        (&["verify", "x.h5", "-q"], "record.json"),
        (&["convert", "rows.tiledb", "-q"], "convert.parquet"),
    ];
    for (words, name) in outputs {
        let target = url(&format!("out/{name}"));
        let to = |target: &str| -> Vec<String> {
            let mut all: Vec<String> = words.iter().map(ToString::to_string).collect();
            match words[0] {
                "convert" => all.insert(2, target.to_owned()),
                "verify" => all.extend(["--record".to_owned(), target.to_owned()]),
                _ => all.extend(["-o".to_owned(), target.to_owned()]),
            }
            all
        };
        let run = |code: i32, words: &[String]| {
            bucket.output_of(code, &words.iter().map(String::as_str).collect::<Vec<_>>())
        };
        run(0, &to(name));
        run(0, &to(&target));
        bucket.script("same", &[&format!("out/{name}"), bucket.local(name).to_str().expect("a UTF-8 path")]);
        if words[0] != "verify" {
            let refused = run(2, &to(&target));
            assert!(refused.contains(&target) && refused.contains("already exists"), "{refused}");
            run(0, &[to(&target), vec!["--force".to_owned()]].concat());
        }
    }
    bucket.output_of(0, &["verify", "s3://bucket/x.h5", "-q", "--against", "s3://bucket/out/record.json"]);
    for name in ["x.h5", "v3.zarr", "dense.tiledb"] {
        let target = url(name);
        bucket.output_of(0, &["attrs", &target, "/", "run=7"]);
        let shown = bucket.json(&["attrs", &target, "/", "--json"]);
        assert_eq!(shown["run"], 7, "{name}");
        bucket.output_of(0, &["attrs", &target, "/", "--delete", "run"]);
        bucket.output_of(0, &["verify", &target, "--deep"]);
    }
    bucket.output_of(0, &["rename", "s3://bucket/x.h5", "/g/t", "renamed"]);
    bucket.output_of(0, &["diff", "s3://bucket/x.h5", "x.h5", "/g/renamed", "/g/t"]);
    bucket.output_of(0, &["rm", "s3://bucket/x.h5", "/g"]);
    bucket.output_of(0, &["repair", "s3://bucket/x.h5", "--salvage", "s3://bucket/out/saved.h5"]);
    bucket.output_of(0, &["verify", "s3://bucket/out/saved.h5", "--deep"]);
    let explained = bucket.json(&["read", "s3://bucket/v3.zarr", "/t", "--explain", "--json"]);
    assert_eq!((&explained["operation"], &explained["plan"]["chunks"]), (&"read".into(), &12.into()));
    assert!(bucket.objects().1.is_empty(), "no upload is left open");
}

#[test]
fn verbose_output_reports_traffic() {
    let bucket = Bucket::new();
    let output_of = |words: &[&str]| {
        let output = bucket.tet(words);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        String::from_utf8(output.stderr).expect("UTF-8")
    };
    // Numbers of requests and rounds, then the rest of the line.
    let parsed = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |at: usize| words[at].parse::<u64>().expect("a number");
        assert_eq!((words[1], words[2], words[4]), ("requests", "in", "rounds,"), "{line}");
        (number(0), number(3))
    };
    let info = output_of(&["info", "s3://bucket/x.h5", "-v"]);
    let (requests, rounds) = parsed(&info);
    assert!(
        requests >= 1 && rounds <= requests && info.contains("received") && !info.contains("sent"),
        "{info}"
    );
    let read = output_of(&["read", "s3://bucket/v3.zarr", "/t", "-o", "t.npy", "--verbose"]);
    // Twelve chunks and the metadata.
    assert!(parsed(read.lines().last().expect("a line")).0 > 12, "{read}");
    let sent = output_of(&["convert", "x.h5", "s3://bucket/sent.h5", "-q", "-v"]);
    assert!(sent.contains(" sent"), "{sent}");
    assert_eq!(output_of(&["info", "s3://bucket/x.h5"]), "");
}

#[test]
fn refusals_name_the_url_and_no_secret() {
    let bucket = Bucket::new();
    for words in [&["info", "s3://missing/x.zarr"][..], &["convert", "x.h5", "s3://missing/x.zarr", "-q"]] {
        let missing = bucket.output_of(2, words);
        assert!(missing.contains("s3://missing/x.zarr"), "{missing}");
    }
    let none = bucket.output_of(2, &["info", "s3://bucket/none.h5"]);
    assert!(none.contains("s3://bucket/none.h5") && none.contains("not found"), "{none}");
    let edited = bucket.output_of(2, &["attrs", "s3://bucket/x.h5", "/none", "a=1"]);
    assert!(edited.contains("s3://bucket/x.h5") && edited.contains("/none not found"), "{edited}");
    for words in [
        &["repair", "s3://bucket/dense.tiledb"][..],
        &["clean", "s3://bucket/dense.tiledb"],
        &["vacuum", "s3://bucket/dense.tiledb"],
    ] {
        let refused = bucket.output_of(2, words);
        assert!(
            refused.contains("s3://bucket/dense.tiledb") && refused.contains("remote storage"),
            "{refused}"
        );
        assert!(words[0] != "vacuum" || refused.contains("next: change a copy"), "{refused}");
    }

    // From here on, the server accepts no key.
    bucket.script("enforce", &[]);
    for words in [
        &["info", "s3://bucket/x.h5"][..],
        &["info", "s3://bucket/v3.zarr"],
        &["verify", "s3://bucket/dense.tiledb"],
        &["convert", "x.h5", "s3://bucket/new.zarr", "-q"],
        &["convert", "x.h5", "s3://bucket/v3.zarr", "-q", "--force"],
    ] {
        let refused = bucket.output_of(2, words);
        let target = words.iter().find(|word| word.starts_with("s3://")).expect("a URL");
        assert!(refused.contains(target), "{refused}");
        assert!(refused.contains("access denied") || refused.contains("credentials"), "{refused}");
    }
}
