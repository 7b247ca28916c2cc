//! `tet serve` beside h5grove under FastAPI, nginx and Python's file server, each in a process of its own, on loopback.
//!
//! Throughput is shown as the time of one request: what a minute of them took, divided by their number.

mod client;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use client::{Load, fetch};

use crate::harness::{Bench, OURS, Outcome, say, timed};
use crate::peers;

const SCRIPT: &str = "serve.py";
const GROVE: &str = "h5grove, FastAPI";
/// What `--memory` says, in mebibytes.
const MEMORY: &str = "512";
const LOAD: &str = "serve: 200 connections";
const CASES: [&str; 5] = [
    "serve: first paint of a plane of 4 MiB, gzip and shuffle",
    "serve: root of 100,000 nodes",
    "serve: group of 1000 nodes",
    "serve: stored chunk of 1 MiB, 16 connections",
    LOAD,
];

pub(crate) fn run(bench: &mut Bench) -> Outcome {
    if !CASES.iter().any(|case| bench.wants(case)) {
        return Ok(());
    }
    let tet = std::env::var_os("HYPERSLAB_TET").ok_or("HYPERSLAB_TET names no tet; run cargo xtask bench")?;
    let folder = bench.file("serve", |folder| {
        std::fs::create_dir_all(folder)?;
        let size = (bench.bytes >> 20).to_string();
        peers::make_in(bench, SCRIPT, "make", [folder.as_os_str(), size.as_ref()])
    })?;
    let ours = Server::start(
        OURS,
        Command::new(tet).args(["serve", "--memory", MEMORY]).arg(&folder).arg("--port"),
    )?;
    let grove = match script(bench).map(|mut command| Server::start(GROVE, command.arg("grove").arg(&folder)))
    {
        Some(Ok(grove)) => Some(grove),
        Some(Err(why)) => return Err(why),
        None => None,
    };
    let planes = (bench.bytes >> 22).max(1);
    paint(bench, &ours, grove.as_ref(), planes)?;
    for (case, path) in
        [(CASES[1], "/meta?file=tree.h5&path=/"), (CASES[2], "/meta?file=tree.h5&path=/group050")]
    {
        if bench.wants(case) {
            let start = Instant::now();
            fetch(ours.port, path)?;
            // Later ones may come from the cache.
            let note = format!("our first response after {:.1} ms", start.elapsed().as_secs_f64() * 1e3);
            let times =
                both(&ours, grove.as_ref(), |server| timed(server.name, || fetch(server.port, path)))?;
            bench.line(case, times, &note);
        }
    }
    stored(bench, &folder, &ours)?;
    load(bench, &ours, grove.as_ref(), planes)
}

/// Another plane in each run, so that no answer is in a cache.
fn paint(bench: &mut Bench, ours: &Server, grove: Option<&Server>, planes: u64) -> Outcome {
    if !bench.wants(CASES[0]) {
        return Ok(());
    }
    let times = both(ours, grove, |server| {
        let mut number = 0;
        timed(server.name, || {
            number = (number + 7) % planes;
            fetch(
                server.port,
                &format!("/data?file=field.h5&path=/field&format=bin&dtype=safe&selection={number},:,:"),
            )
        })
    })?;
    bench.line(CASES[0], times, "");
    Ok(())
}

/// Chunks as they are stored, and the same bytes as a file from servers of files.
fn stored(bench: &mut Bench, folder: &Path, ours: &Server) -> Outcome {
    if !bench.wants(CASES[3]) {
        return Ok(());
    }
    let mut servers = vec![];
    if let Some(mut command) = script(bench) {
        servers.push(Server::start("python -m http.server", command.arg("files").arg(folder))?);
    }
    match nginx(folder) {
        Ok(server) => servers.push(server),
        Err(why) => say(&format!("nginx: {why}")),
    }
    let (mut times, mut notes) = (Vec::new(), Vec::new());
    for server in std::iter::once(ours).chain(&servers) {
        let paths = if server.name == OURS { "/zarr/raw.h5/raw/c/0/0" } else { "/files/chunk" };
        let load = Load::run(server.port, 16, Duration::from_secs(10), |_| paths.to_owned())?;
        times.push((server.name.to_owned(), load.seconds_a_request()));
        notes.push(format!("{}: {}", server.name, load.text()));
    }
    bench.line(CASES[3], times, &notes.join("; "));
    Ok(())
}

/// A mix of lists and of parts of planes on many connections at once.
fn load(bench: &mut Bench, ours: &Server, grove: Option<&Server>, planes: u64) -> Outcome {
    if !bench.wants(LOAD) {
        return Ok(());
    }
    let (mut times, mut notes) = (Vec::new(), Vec::new());
    for (server, seconds) in [(Some(ours), 60), (grove, 10)] {
        let Some(server) = server else { continue };
        let load = Load::run(server.port, 200, Duration::from_secs(seconds), |number| match number % 3 {
            0 => format!("/meta?file=tree.h5&path=/group0{}", 10 + number % 80),
            _ => format!(
                "/data?file=field.h5&path=/field&format=bin&dtype=safe&selection={},:,0:64",
                number % planes
            ),
        })?;
        times.push((server.name.to_owned(), load.seconds_a_request()));
        let memory =
            server.peak_memory().map_or_else(String::new, |peak| format!(", {} MiB at most", peak >> 20));
        notes.push(format!("{}: {} in {seconds} s{memory}", server.name, load.text()));
        if server.name == OURS && load.errors > 0 {
            return Err(format!("{} of {} requests failed", load.errors, load.requests).into());
        }
    }
    bench.line(LOAD, times, &format!("--memory {MEMORY}; {}", notes.join("; ")));
    Ok(())
}

fn both(
    ours: &Server,
    grove: Option<&Server>,
    time: impl FnMut(&Server) -> Outcome<(String, f64)>,
) -> Outcome<Vec<(String, f64)>> {
    std::iter::once(ours).chain(grove).map(time).collect()
}

/// The script of the peers, if there are peers.
fn script(bench: &Bench) -> Option<Command> {
    let mut command = Command::new(bench.python.as_ref()?);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(SCRIPT));
    Some(command)
}

fn nginx(folder: &Path) -> Outcome<Server> {
    let program = std::env::var_os("NGINX").map_or_else(|| PathBuf::from("/usr/sbin/nginx"), PathBuf::from);
    let port = free_port()?;
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .iter()
        .map(|name| format!("{name}_temp_path {}/nginx; ", folder.display()))
        .collect();
    let text = format!(
        "pid {0}/nginx.pid; daemon off; master_process off; error_log stderr crit; events {{}} http {{ access_log off; \
         sendfile on; {temporary} server {{ listen 127.0.0.1:{port}; root {0}; }} }}",
        folder.display()
    );
    let file = folder.join("nginx.conf");
    std::fs::write(&file, text)?;
    Server::started("nginx", Command::new(program).arg("-c").arg(file), port)
}

fn free_port() -> Outcome<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// A server in a process of its own.
#[derive(Debug)]
struct Server {
    name: &'static str,
    process: Child,
    port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Server {
    /// Starts a command whose last argument is the port, and waits until it answers.
    fn start(name: &'static str, command: &mut Command) -> Outcome<Self> {
        let port = free_port()?;
        Self::started(name, command.arg(port.to_string()), port)
    }

    fn started(name: &'static str, command: &mut Command, port: u16) -> Outcome<Self> {
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let mut server = Self { name, process, port };
        for _ in 0..600 {
            if std::net::TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Ok(server);
            }
            if let Some(status) = server.process.try_wait()? {
                return Err(format!("{name} ended: {status}").into());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Err(format!("{name} does not answer").into())
    }

    /// The most memory that the process ever had.
    fn peak_memory(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
    }
}
