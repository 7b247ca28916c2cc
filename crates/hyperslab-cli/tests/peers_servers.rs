//! Stores on real servers: an S3 server, Azure's emulator, nginx, and servers with gaps or that lie.
//!
//! `cargo xtask test` installs them; `HYPERSLAB_SERVERS` names the folder. All listen on this machine only.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use serde_json::Value;

const KEY: &str = "test-key";
const SECRET: &str = "test-secret-7d1f";
/// The account that azurite has from the start.
const AZURE_KEY: &str = "devstoreaccount1";
const AZURE_SECRET: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// A server, and what it takes and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A faithful S3 server.
    S3,
    /// The same without keys, which answers as Google's does to readers.
    Google,
    Azure,
    /// A faithful web server.
    Nginx,
    /// A web server that refuses suffix ranges.
    RangeServer,
    /// Answers 200 with the whole object where a range is asked for, and knows no conditions.
    Rclone,
    /// Sends wrong bytes for suffix ranges, lists a thousand objects at most, and knows no conditions.
    S3rver,
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is set by cargo xtask test"))
}

/// A program of the Python environment of the peers.
fn beside_python(name: &str) -> PathBuf {
    Path::new(&variable("HYPERSLAB_PEERS")).with_file_name(name)
}

struct Server {
    kind: Kind,
    process: Child,
    port: u16,
    /// The stores of this machine, and `served` with those of the server.
    folder: tempfile::TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Server {
    /// Starts a server with an empty bucket.
    fn new(kind: Kind) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let served = folder.path().join("served");
        std::fs::create_dir_all(served.join("bucket")).unwrap();
        Self::on(kind, folder)
    }

    /// Starts a server on a folder.
    fn on(kind: Kind, folder: tempfile::TempDir) -> Self {
        let port = free_port();
        let mut command = command(kind, port, folder.path());
        let log = std::fs::File::create(folder.path().join(format!("{kind:?}.log"))).unwrap();
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        let process = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let mut server = Self { kind, process, port, folder };
        for _ in 0..1200 {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                break;
            }
            let log = || std::fs::read_to_string(server.folder.path().join(format!("{kind:?}.log")));
            assert!(server.process.try_wait().unwrap().is_none(), "{kind:?} ended: {:?}", log());
            std::thread::sleep(Duration::from_millis(50));
        }
        if kind == Kind::Azure {
            server.script("container", &[&server.endpoint()]);
        }
        server
    }

    fn endpoint(&self) -> String {
        let account = if self.kind == Kind::Azure { "/devstoreaccount1" } else { "" };
        format!("http://127.0.0.1:{}{account}", self.port)
    }

    /// The URL of a store.
    fn url(&self, name: &str) -> String {
        match self.kind {
            Kind::S3 | Kind::Rclone | Kind::S3rver => format!("s3://bucket/{name}"),
            Kind::Google => format!("gs://bucket/{name}"),
            Kind::Azure => format!("az://bucket/{name}"),
            Kind::Nginx | Kind::RangeServer => format!("{}/bucket/{name}", self.endpoint()),
        }
    }

    /// Credentials as the tools of each cloud take them from the environment, and no way to any other.
    fn environment(&self) -> Vec<(&'static str, String)> {
        let mut set = vec![
            ("AWS_EC2_METADATA_DISABLED", "true".to_owned()),
            ("AWS_CONFIG_FILE", "/nonexistent".to_owned()),
            ("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent".to_owned()),
        ];
        match self.kind {
            Kind::S3 | Kind::Rclone | Kind::S3rver => set.extend([
                ("AWS_ENDPOINT_URL", self.endpoint()),
                ("AWS_REGION", "us-east-1".to_owned()),
                ("AWS_ACCESS_KEY_ID", self.key().0.to_owned()),
                ("AWS_SECRET_ACCESS_KEY", self.key().1.to_owned()),
            ]),
            Kind::Azure => set.extend([
                ("AZURE_STORAGE_ENDPOINT", self.endpoint()),
                ("AZURE_STORAGE_ACCOUNT_NAME", AZURE_KEY.to_owned()),
                ("AZURE_STORAGE_ACCOUNT_KEY", AZURE_SECRET.to_owned()),
            ]),
            Kind::Google => set.push(("GOOGLE_SERVICE_ACCOUNT_KEY", self.google_account())),
            Kind::Nginx | Kind::RangeServer => {}
        }
        set
    }

    fn key(&self) -> (&'static str, &'static str) {
        match self.kind {
            Kind::Azure => (AZURE_KEY, AZURE_SECRET),
            // It has one user.
            Kind::S3rver => ("S3RVER", "S3RVER"),
            _ => (KEY, SECRET),
        }
    }

    /// A service account that sends requests here, without a signature.
    fn google_account(&self) -> String {
        let endpoint = self.endpoint();
        serde_json::json!({
            "gcs_base_url": endpoint, "disable_oauth": true,
            "client_email": "", "private_key": "", "private_key_id": "",
        })
        .to_string()
    }

    fn local(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs `servers.py`.
    fn script(&self, command: &str, words: &[&str]) -> String {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/peers/servers.py");
        let mut python = Command::new(variable("HYPERSLAB_PEERS"));
        python
            .arg(script)
            .arg(command)
            .args(words)
            .env("TEST_KEY", self.key().0)
            .env("TEST_SECRET", self.key().1);
        let output = python.output().unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn tet(&self, words: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tet"));
        command.current_dir(self.folder.path()).args(words).envs(self.environment());
        if self.kind == Kind::S3 {
            // It fails when a folder is taken for an object, however often it is asked.
            command.args(["--storage-option", "max_retries=1"]);
        }
        command.output().unwrap()
    }

    /// Runs `tet`, expects this exit code, gives stdout, or stderr of an error.
    fn told(&self, code: i32, words: &[&str]) -> String {
        let output = self.tet(words);
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(code), "{:?}: tet {words:?}\n{out}\n{err}", self.kind);
        for secret in [SECRET, AZURE_SECRET] {
            assert!(!out.contains(secret) && !err.contains(secret), "tet {words:?} tells the secret");
        }
        if code == 2 { err.into_owned() } else { out.into_owned() }
    }

    /// The array of the peers as stores of this machine.
    fn make_stores(&self) {
        self.script("source", &[self.folder.path().to_str().unwrap()]);
        for (name, words) in STORES {
            let source = if *name == "points.zv" { "points.npz" } else { "x.h5" };
            self.told(0, &[&["convert", source, name, "-q"], *words].concat());
        }
    }

    /// Converts the source into a store of the server, and adds nothing to it.
    fn write(&self, name: &str, words: &[&str]) {
        let url = self.url(name);
        self.told(
            0,
            &[&["convert", if name == "points.zv" { "points.npz" } else { "x.h5" }, &url, "-q"], words]
                .concat(),
        );
    }

    /// Everything that reads a store gives the same here and there.
    fn check_reading(&self, name: &str) {
        let url = self.url(name);
        self.told(0, &["diff", &url, name]);
        self.told(0, &["verify", &url, "--deep"]);
        let first = |text: String| text.lines().next().map(str::to_owned);
        let hash = |place: &str| first(self.told(0, &["hash", place])).map(|line| line.replace(place, ""));
        assert_eq!(hash(&url), hash(name), "{:?} {name}", self.kind);
        if name == "points.zv" {
            return;
        }
        let node = if name.ends_with(".npy") { "/" } else { "/t" };
        for (asked, there, here) in [("[3]", "there.npy", "here.npy"), ("[:, 5, 7]", "there.npy", "here.npy")]
        {
            for (place, out) in [(url.as_str(), there), (name, here)] {
                self.told(0, &["read", place, node, asked, "-o", out, "--force"]);
            }
            let read = |name: &str| std::fs::read(self.local(name)).unwrap();
            assert_eq!(read(there), read(here), "{:?} {name} {asked}", self.kind);
        }
    }

    /// A store appears once, is replaced only by force, and is then the other one.
    fn check_writing(&self, name: &str, words: &[&str]) {
        self.write(name, words);
        self.check_reading(name);
        let url = self.url(name);
        let refused = self.told(2, &["convert", "x.h5", &url, "-q"]);
        assert!(refused.contains("exists"), "{refused}");
        self.told(0, &[&["convert", name, &url, "-q", "--force"], words].concat());
        self.told(0, &["diff", &url, name]);
    }
}

/// A port that no other server takes while this one starts: those that the system hands out lie above.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    loop {
        let offset = (std::process::id() as u16).wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = 20_000 + offset % 10_000;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// The command of a server that serves the folder `served` below another.
fn command(kind: Kind, port: u16, folder: &Path) -> Command {
    let (served, port) = (folder.join("served"), port.to_string());
    let servers = || PathBuf::from(variable("HYPERSLAB_SERVERS"));
    let address = format!("127.0.0.1:{port}");
    let mut command;
    match kind {
        Kind::S3 | Kind::Google => {
            command = Command::new(servers().join("bin/s3s-fs"));
            command.args(["--host", "127.0.0.1", "--port", &port]).arg(&served);
            if kind == Kind::S3 {
                command.args(["--access-key", KEY, "--secret-key", SECRET]);
            }
        }
        Kind::Azure => {
            command = Command::new("node");
            command.arg(servers().join("node_modules/azurite/dist/src/blob/main.js"));
            command.args(["--blobHost", "127.0.0.1", "--blobPort", &port, "--inMemoryPersistence"]);
            command.args(["--skipApiVersionCheck", "--disableTelemetry", "--silent"]).current_dir(folder);
        }
        Kind::S3rver => {
            command = Command::new("node");
            command.arg(servers().join("node_modules/s3rver/bin/s3rver.js"));
            command.args(["-a", "127.0.0.1", "-p", &port, "--configure-bucket", "bucket", "-d"]).arg(&served);
        }
        Kind::Rclone => {
            command = Command::new(beside_python("rclone"));
            command.args(["serve", "s3", "--config", "/dev/null", "--addr", &address]).arg(&served);
        }
        Kind::RangeServer => {
            command = Command::new(variable("HYPERSLAB_PEERS"));
            command.args(["-m", "RangeHTTPServer", "-b", "127.0.0.1", &port]).current_dir(&served);
        }
        Kind::Nginx => {
            let (own, log) = (folder.join("nginx"), "error_log stderr crit;");
            std::fs::create_dir(&own).unwrap();
            let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
                .iter()
                .map(|name| format!("{name}_temp_path {}; ", own.display()))
                .collect();
            let text = format!(
                "pid {0}/pid; daemon off; master_process off; {log} events {{}} http {{ access_log off; {temporary} \
                 server {{ listen {address}; root {1}; }} }}",
                own.display(),
                served.display()
            );
            let file = own.join("conf");
            std::fs::write(&file, text).unwrap();
            command = Command::new(variable("NGINX"));
            command.arg("-c").arg(file);
        }
    }
    command
}

/// The stores that are tried, and how they are made.
const STORES: &[(&str, &[&str])] = &[
    ("copy.h5", &[]),
    ("x.nc", &["--to", "netcdf4"]),
    ("x3.nc", &["--to", "netcdf3"]),
    ("x.zarr", &[]),
    ("v2.zarr", &["--to", "zarr2"]),
    ("sharded.zarr", &["--shards", "60"]),
    ("x.zarr.zip", &[]),
    ("x.tiledb", &[]),
    ("x.tet", &[]),
    ("points.zv", &[]),
];

/// What the peers write is read, and what is written the peers read, each through its own client.
fn check_peers(server: &Server, kind: &str) {
    let folder = server.folder.path().to_str().unwrap();
    let endpoint = server.endpoint();
    let written: Value = serde_json::from_str(&server.script("write", &[kind, &endpoint, folder])).unwrap();
    let expected = std::fs::read(server.local("expected.npy")).unwrap();
    for (name, node) in written.as_object().unwrap() {
        let url = server.url(name);
        server.told(0, &["verify", &url, "--deep"]);
        server.told(0, &["read", &url, node.as_str().unwrap(), "-o", "found.npy", "--force"]);
        assert_eq!(std::fs::read(server.local("found.npy")).unwrap(), expected, "{name}");
    }
    let targets: [(&str, &[&str]); 6] = [
        // tensorstore lacks the shuffle of HDF5, which would be kept.
        ("to.zarr", &["--filter", "zstd"]),
        ("to2.zarr", &["--to", "zarr2"]),
        ("sharded-to.zarr", &["--shards", "60", "--filter", "zstd"]),
        ("to.tiledb", &[]),
        ("to.h5", &[]),
        ("to.nc", &["--to", "netcdf4"]),
    ];
    for (name, words) in targets {
        server.write(name, words);
    }
    let wrong = server.script("read", &[kind, &endpoint, folder]);
    assert!(wrong.is_empty(), "{wrong}");
}

/// A plot, and `tet serve`, of a store on a server are those of the store here.
fn check_looking(server: &Server, name: &str) {
    let url = server.url(name);
    for (place, out) in [(url.as_str(), "there.json"), (name, "here.json")] {
        server.told(0, &["plot", place, "/t", "[2]", "--title", "t", "-o", out, "--force"]);
    }
    let plot = |name: &str| std::fs::read_to_string(server.local(name)).unwrap();
    assert_eq!(plot("there.json"), plot("here.json"));

    let mut command = Command::new(env!("CARGO_BIN_EXE_tet"));
    command.args(["serve", &url, "--port", "0"]).envs(server.environment()).stdout(Stdio::piped());
    let mut serving = command.spawn().unwrap();
    let mut lines = BufReader::new(serving.stdout.take().unwrap()).lines();
    let told = lines.find_map(|line| line.unwrap().split_once(" is at http://").map(|(_, at)| at.to_owned()));
    let address = told.expect("an address").trim_end_matches('/').to_owned();
    let mut connection = TcpStream::connect(&address).unwrap();
    let asked = format!("/data?file={name}&path=/t&format=npy&selection=3,:,:");
    let head = format!("GET {asked} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    connection.write_all(head.as_bytes()).unwrap();
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer).unwrap();
    serving.kill().unwrap();
    serving.wait().unwrap();
    server.told(0, &["read", name, "/t", "[3]", "-o", "here.npy", "--force"]);
    let expected = std::fs::read(server.local("here.npy")).unwrap();
    assert!(
        answer.ends_with(&expected[expected.len() - 40 * 30 * 4..]),
        "{}",
        String::from_utf8_lossy(&answer)
    );
}

#[test]
fn an_s3_server_holds_every_format() {
    let server = Server::new(Kind::S3);
    server.make_stores();
    for (name, words) in STORES {
        server.check_writing(name, words);
    }
    // More objects than one page of a listing has are replaced by few, and none is left.
    let many = server.url("many.zarr");
    server.told(0, &["convert", "many.h5", &many, "-q"]);
    server.told(0, &["diff", &many, "many.h5"]);
    server.told(0, &["convert", "many.h5", &many, "-q", "--force", "--chunks", "1200"]);
    server.told(0, &["diff", &many, "many.h5"]);
    let left = files(&server.local("served/bucket"));
    let chunks = left.iter().filter(|name| name.contains("many.zarr") && name.contains("/c/")).count();
    assert_eq!(chunks, 1, "{left:?}");
    check_peers(&server, "s3");
    for name in ["x.nc", "x.zarr", "x.tiledb"] {
        check_looking(&server, name);
    }

    // Google's readers get the same from the same folder.
    let served = tempfile::tempdir().unwrap();
    std::fs::rename(server.local("served"), served.path().join("served")).unwrap();
    for (name, _) in STORES {
        copy_of(&server.local(name), &served.path().join(name));
    }
    drop(server);
    let google = Server::on(Kind::Google, served);
    for (name, _) in STORES {
        google.check_reading(name);
    }
    google.told(
        0,
        &["diff", &google.url("peer.tiledb"), &google.url("to.tiledb"), "/t", "/t", "--values-only"],
    );
    let missing = google.told(2, &["info", "gs://bucket/none.h5"]);
    assert!(missing.contains("gs://bucket/none.h5") && missing.contains("not found"), "{missing}");
}

#[test]
fn an_azure_container_holds_every_format() {
    let server = Server::new(Kind::Azure);
    server.make_stores();
    for (name, words) in STORES {
        server.check_writing(name, words);
    }
    check_peers(&server, "az");
    // The other names of the same place.
    for url in [
        "azure://bucket/x.tet",
        "abfs://bucket/x.tet",
        "abfss://bucket@devstoreaccount1.dfs.core.windows.net/x.tet",
    ] {
        server.told(0, &["diff", url, "x.tet"]);
    }
    for url in ["az://bucket/none.zarr", "az://missing/x.zarr"] {
        let missing = server.told(2, &["info", url]);
        assert!(missing.contains(url), "{missing}");
    }
    let words = ["info", "az://bucket/copy.h5", "--storage-option"];
    let text = format!(
        "connection_string=AccountName={AZURE_KEY};AccountKey={AZURE_SECRET};BlobEndpoint={}",
        server.endpoint()
    );
    server.told(0, &[&words[..], &[&text]].concat());
    let wrong = AZURE_SECRET.replace("Eby", "Abc");
    let refused = server.told(2, &[&words[..], &[&format!("account_key={wrong}")]].concat());
    assert!(refused.contains("az://bucket/copy.h5") && !refused.contains(&wrong), "{refused}");
    let unknown = server.told(2, &[&words[..], &["acount_key=x"]].concat());
    assert!(unknown.contains("acount_key") && unknown.contains("account_key"), "{unknown}");
}

#[test]
fn web_servers_give_what_the_disk_gives() {
    for kind in [Kind::Nginx, Kind::RangeServer] {
        let server = Server::new(kind);
        server.make_stores();
        for (name, _) in STORES {
            copy_of(&server.local(name), &server.local("served/bucket").join(name));
        }
        for name in ["copy.h5", "x.nc", "x3.nc", "x.zarr", "sharded.zarr", "x.zarr.zip", "x.tet"] {
            server.check_reading(name);
        }
        // The objects of these must be listed.
        for name in ["x.tiledb", "points.zv"] {
            let refused = server.told(2, &["diff", &server.url(name), name]);
            assert!(refused.contains("listing"), "{kind:?} {name}: {refused}");
        }
        let refused = server.told(2, &["convert", "x.h5", &server.url("new.zarr"), "-q"]);
        assert!(refused.contains("web server"), "{refused}");
    }
}

/// Servers that lie: what is read is right, and what cannot be done is an error that leaves the old store.
#[test]
fn servers_that_lie_are_survived() {
    for kind in [Kind::Rclone, Kind::S3rver] {
        let server = Server::new(kind);
        server.make_stores();
        for (name, words) in STORES {
            if *name == "points.zv" && kind == Kind::S3rver {
                // It does not find what it should copy if the name has a plus sign, which is noticed beforehand.
                server.write(name, words);
                server.check_reading(name);
                let refused = server.told(2, &["convert", "points.npz", &server.url(name), "-q", "--force"]);
                assert!(!refused.contains("gone"), "{refused}");
                server.check_reading(name);
                continue;
            }
            server.check_writing(name, words);
        }
    }
}

/// Files below a folder.
fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| if path.is_dir() { files(&path) } else { vec![path.to_str().unwrap().to_owned()] })
        .collect()
}

fn copy_of(from: &Path, to: &Path) {
    if !from.is_dir() {
        std::fs::copy(from, to).unwrap();
        return;
    }
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        copy_of(&entry.path(), &to.join(entry.file_name()));
    }
}
