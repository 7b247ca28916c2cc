//! Network faults: at every request of a read and of a write, each fault is survived or reported. Results are never
//! wrong, and targets are never partial.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hyperslab::convert::{ConvertOptions, Progress, convert};
use hyperslab::diff::{DiffOptions, diff};
use hyperslab::{Error, Format, OpenOptions, OpenStore, RemoteOptions, Result, open, open_with};
use hyperslab_testing::{Behaviour, FaultRule, WebServer, WireFault};

use super::{Remote, STORES, read};

/// Options of a client that gives up soon, with a secret key.
fn hasty(server: &WebServer) -> RemoteOptions {
    [
        ("endpoint_url", server.endpoint().as_str()),
        ("key", "told-key"),
        ("secret", "told-secret"),
        ("region", "r"),
        ("read_timeout", "1s"),
        ("max_retries", "2"),
        ("retry_timeout", "5s"),
    ]
    .into_iter()
    .fold(RemoteOptions::default(), |options, (name, value)| options.with_option(name, value))
}

impl Remote {
    fn hasty(&self, name: &str) -> Result<OpenStore> {
        let options = OpenOptions::default().with_remote(hasty(&self.server));
        open_with(format!("s3://bucket/{name}"), &options)
    }

    fn convert_to(&self, name: &str, options: &ConvertOptions) -> Result<()> {
        let options = options.clone().with_remote(hasty(&self.server));
        let target = format!("s3://bucket/{name}");
        let format = Format::from_extension(Path::new(name)).unwrap();
        convert(&open(self.local("x.h5"))?, Path::new(&target), format, &options, &Progress::default())
            .map(drop)
    }

    /// The objects whose keys start with a prefix.
    fn objects(&self, prefix: &str) -> Vec<String> {
        let mut found = Vec::new();
        let mut pending = vec![self.folder.path().join("bucket")];
        while let Some(folder) = pending.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    pending.push(path);
                } else {
                    let key = path.strip_prefix(self.folder.path().join("bucket")).unwrap();
                    found.push(key.to_str().unwrap().to_owned());
                }
            }
        }
        found.retain(|key| key.starts_with(prefix));
        found.sort();
        found
    }
}

fn check_told(error: &Error) {
    let text = format!("{error} {error:?}");
    assert!(!text.contains("told-"), "a secret in {text}");
    assert!(text.contains("s3://bucket/"), "no URL in {text}");
}

const READ_FAULTS: [WireFault; 10] = [
    WireFault::Status(500),
    WireFault::Status(429),
    WireFault::RetryAfter(503, 1),
    WireFault::Reset,
    WireFault::Cut,
    WireFault::Stall,
    WireFault::Short,
    WireFault::Long,
    WireFault::Shifted,
    WireFault::Error(400, "ExpiredToken"),
];

/// The selection that the tests of faults read, and what it holds.
const FAULTY: &str = "[2, :40, :40]";

/// Runs a test for each store, all at once, because most of the time is spent waiting.
fn for_each_store(test: impl Fn(&Remote, &'static str) + Sync) {
    std::thread::scope(|scope| {
        for name in STORES {
            let test = &test;
            scope.spawn(move || test(&Remote::new(), name));
        }
    });
}

/// One fault at a time, at each request of a read.
#[test]
fn faults_during_a_read_are_survived_or_reported() {
    for_each_store(|remote, name| {
        let expected = read(&open(remote.local(name)).unwrap(), FAULTY).unwrap();
        let answer = || remote.hasty(name).and_then(|store| read(&store, FAULTY));
        remote.server.behave(Behaviour::default());
        let (_, requests, _) = remote.count(|| answer().unwrap());
        for fault in READ_FAULTS {
            for number in 0..requests as u64 {
                remote.server.behave(Behaviour::fault_at(number, fault));
                match answer() {
                    Ok(found) => assert!(found == expected, "{name} {fault:?} at {number}"),
                    Err(error) => {
                        check_told(&error);
                        // Error responses of the server are retried.
                        let survivable = matches!(
                            fault,
                            WireFault::Status(_) | WireFault::RetryAfter(..) | WireFault::Reset
                        );
                        assert!(!survivable, "{name} {fault:?} at {number}: {error}");
                    }
                }
            }
        }
    });
}

/// A fault that lasts, from each request of a read on: the error is told, and there are no values.
#[test]
fn lasting_faults_during_a_read_are_reported() {
    let faults = [
        WireFault::Status(500),
        WireFault::Status(429),
        WireFault::Reset,
        WireFault::Cut,
        WireFault::Short,
        WireFault::Long,
        WireFault::Shifted,
        WireFault::Error(400, "ExpiredToken"),
        WireFault::Error(403, "AccessDenied"),
    ];
    for_each_store(|remote, name| {
        let expected = read(&open(remote.local(name)).unwrap(), FAULTY).unwrap();
        let answer = || remote.hasty(name).and_then(|store| read(&store, FAULTY));
        remote.server.behave(Behaviour::default());
        let (_, requests, _) = remote.count(|| answer().unwrap());
        for fault in faults {
            for number in 0..requests as u64 {
                remote.server.behave(Behaviour::fault_from(number, fault));
                match answer() {
                    // Responses without a body or a range have nothing that such a fault changes.
                    Ok(found) => {
                        let is_of_body = matches!(
                            fault,
                            WireFault::Cut | WireFault::Short | WireFault::Long | WireFault::Shifted
                        );
                        assert!(is_of_body && found == expected, "{name} {fault:?} from {number}");
                    }
                    Err(error) => check_told(&error),
                }
            }
        }
    });
}

/// If a server asks clients to wait, all requests wait.
#[test]
fn retry_after_is_respected() {
    let remote = Remote::new();
    let store = remote.hasty("x.zarr").unwrap();
    let started = Instant::now();
    remote.server.behave(Behaviour::fault_at(0, WireFault::RetryAfter(429, 2)));
    read(&store, "[3]").unwrap();
    assert!(started.elapsed() >= Duration::from_secs(2));
}

/// Servers that lack features: the result is correct without them, or an error names them.
#[test]
fn servers_without_some_features_are_read() {
    let remote = Remote::new();
    let behaviours = [
        Behaviour { no_ranges: true, ..Behaviour::default() },
        Behaviour { no_suffix: true, ..Behaviour::default() },
        Behaviour { no_tags: true, ..Behaviour::default() },
        Behaviour { weak_tags: true, ..Behaviour::default() },
        Behaviour { denies_missing: true, ..Behaviour::default() },
    ];
    for name in STORES {
        let expected = read(&open(remote.local(name)).unwrap(), "[2:4]").unwrap();
        for behaviour in &behaviours {
            // A bucket always sends entity tags.
            let over_http = behaviour.no_tags || behaviour.weak_tags;
            if over_http && name == "x.tiledb" {
                continue;
            }
            remote.server.behave(behaviour.clone());
            let store = if over_http { remote.http(name) } else { remote.hasty(name) };
            let found = store.and_then(|store| read(&store, "[2:4]"));
            if let (true, Err(error)) = (behaviour.denies_missing, &found) {
                // Missing objects cannot be distinguished from forbidden ones.
                check_told(error);
                assert!(error.to_string().contains("access denied"), "{name} {error}");
                continue;
            }
            assert!(found.as_ref().is_ok_and(|found| *found == expected), "{name} {behaviour:?} {found:?}");
        }
    }
    // Only TileDB, and Zarr groups without consolidated metadata, need listings.
    remote.server.behave(Behaviour { no_lists: true, ..Behaviour::default() });
    for name in STORES {
        match remote.hasty(name).and_then(|store| read(&store, "[2]")) {
            Ok(_) => assert_ne!(name, "x.tiledb"),
            Err(error) => {
                check_told(&error);
                assert!(name == "x.tiledb" && error.to_string().contains("access denied"), "{name} {error}");
            }
        }
    }
}

/// A denied object is not one that was never written.
#[test]
fn denied_objects_are_not_missing() {
    let remote = Remote::new();
    let denied = WireFault::Error(403, "AccessDenied");
    for (name, objects) in [("sharded.zarr", "/c/"), ("x.zarr", "/c/"), ("x.tiledb", "/__fragments/")] {
        remote.server.behave(Behaviour::with_rules([FaultRule::new("", objects, denied)]));
        let error = remote.s3(name).and_then(|store| read(&store, "[2]")).unwrap_err();
        assert!(error.to_string().contains("access denied"), "{name}: {error}");
    }
}

/// Redirected requests are followed.
#[test]
fn redirects_are_followed() {
    let remote = Remote::new();
    let folder = tempfile::tempdir().unwrap();
    let other = WebServer::start(folder.path()).unwrap();
    other.behave(Behaviour { redirect: Some(remote.server.endpoint()), ..Behaviour::default() });
    for name in ["x.h5", "x.zarr", "x.tet"] {
        let expected = read(&open(remote.local(name)).unwrap(), "[2]").unwrap();
        let store = open(other.url(&format!("bucket/{name}"))).unwrap();
        assert!(read(&store, "[2]").unwrap() == expected, "{name}");
    }
}

/// Replacing an object while it is read is noticed, with and without entity tags.
#[test]
fn changes_during_a_read_are_noticed() {
    let remote = Remote::new();
    let mut noticed = 0;
    for behaviour in [
        Behaviour::default(),
        Behaviour { weak_tags: true, ..Behaviour::default() },
        Behaviour { no_tags: true, ..Behaviour::default() },
    ] {
        for name in ["x.h5", "x.tet"] {
            remote.server.behave(behaviour.clone());
            let store = remote.http(name).unwrap();
            let array = store.array(&store.only_node().unwrap()).unwrap();
            array.read(&"[0]".parse().unwrap()).unwrap();
            let last = read(&open(remote.local(name)).unwrap(), "[7]").unwrap();
            let path = remote.local(name);
            let mut bytes = std::fs::read(&path).unwrap();
            let at = bytes.len() - 40;
            bytes[at] ^= 1;
            // Modification times have a resolution of one second in HTTP.
            std::thread::sleep(Duration::from_millis(1100));
            std::fs::write(&path, &bytes).unwrap();
            // Earlier content may be cached, but is not mixed with new content.
            match array.read(&"[7]".parse().unwrap()) {
                Ok(found) => assert!(found == last, "{name} {behaviour:?}"),
                Err(error) => {
                    assert!(error.to_string().contains("changed while"), "{name} {behaviour:?} {error}");
                    noticed += 1;
                }
            }
            bytes[at] ^= 1;
            std::fs::write(&path, &bytes).unwrap();
        }
    }
    assert!(noticed > 0);
}

const WRITE_FAULTS: [WireFault; 6] = [
    WireFault::Status(500),
    WireFault::RetryAfter(503, 1),
    WireFault::Reset,
    WireFault::Lost,
    WireFault::Cut,
    WireFault::Error(403, "AccessDenied"),
];

/// One fault at a time, at each request of a conversion into the bucket: the target is complete or absent.
#[test]
fn faults_during_a_write_leave_all_or_nothing() {
    let remote = Remote::new();
    let options = ConvertOptions::default().with_chunk_shape(vec![8, 64, 64]);
    for name in ["new.h5", "new.zarr", "new.tiledb"] {
        remote.server.behave(Behaviour::default());
        let (_, requests, _) = remote.count(|| remote.convert_to(name, &options).unwrap());
        remove(&remote.local(name));
        for fault in WRITE_FAULTS {
            for number in 0..requests as u64 {
                remote.server.behave(Behaviour::fault_at(number, fault));
                let written = remote.convert_to(name, &options);
                remote.server.behave(Behaviour::default());
                match written {
                    Ok(()) => check_same(&remote, name),
                    Err(error) => {
                        check_told(&error);
                        let left = remote.objects(name);
                        assert!(left.is_empty(), "{name} {fault:?} at {number}: {left:?}\n{error}");
                        let survivable = !matches!(fault, WireFault::Cut | WireFault::Error(..));
                        assert!(!survivable, "{name} {fault:?} at {number}: {error}");
                    }
                }
                assert!(remote.objects(&format!(".{name}")).is_empty());
                assert_eq!(remote.server.open_uploads(), 0);
                remove(&remote.local(name));
            }
        }
    }
}

/// A fault that lasts, from each request of a conversion on: the target is complete or is not taken for a store.
#[test]
fn lasting_faults_during_a_write_leave_no_partial_store() {
    let remote = Remote::new();
    let options = ConvertOptions::default().with_chunk_shape(vec![8, 64, 64]);
    for name in ["lasting.h5", "lasting.zarr", "lasting.tiledb"] {
        remote.server.behave(Behaviour::default());
        let (_, requests, _) = remote.count(|| remote.convert_to(name, &options).unwrap());
        remove(&remote.local(name));
        for fault in [WireFault::Status(500), WireFault::Lost, WireFault::Error(403, "AccessDenied")] {
            for number in 0..requests as u64 {
                remote.server.behave(Behaviour::fault_from(number, fault));
                let written = remote.convert_to(name, &options);
                remote.server.behave(Behaviour::default());
                check_told(&written.unwrap_err());
                if open(remote.local(name)).is_ok() {
                    check_same(&remote, name);
                }
                remove(&remote.local(name));
            }
        }
    }
}

fn remove(path: &Path) {
    let _ = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
}

fn check_same(remote: &Remote, name: &str) {
    let (there, here) = (open(remote.local(name)).unwrap(), open(remote.local("x.h5")).unwrap());
    let same = diff((&there, "/"), (&here, "/"), &DiffOptions::default()).unwrap();
    assert!(same.same(), "{name}: {same:?}");
}

/// Rejected requests while a store is replaced: the old store stays unchanged until the new one is complete.
#[test]
fn the_old_store_stays_until_the_new_one_is_complete() {
    let remote = Remote::new();
    let options = ConvertOptions::default().with_replace(true).with_chunk_shape(vec![8, 64, 64]);
    for name in ["old.h5", "old.zarr", "old.tiledb"] {
        let old = ConvertOptions::default().with_chunk_shape(vec![4, 64, 64]);
        remote.server.behave(Behaviour::default());
        remote.convert_to(name, &old).unwrap();
        let (_, requests, _) = remote.count(|| remote.convert_to(name, &options).unwrap());
        for number in (0..requests as u64).step_by(requests / 12 + 1) {
            remove(&remote.local(name));
            remote.server.behave(Behaviour::default());
            remote.convert_to(name, &old).unwrap();
            remote.server.behave(Behaviour::fault_at(number, WireFault::Error(403, "AccessDenied")));
            let written = remote.convert_to(name, &options);
            remote.server.behave(Behaviour::default());
            match written {
                Ok(()) => check_same(&remote, name),
                Err(error) if error.to_string().contains("complete at") => {
                    // Between the two states, the new store is complete beside the old location.
                    let staged = error.to_string();
                    let staged = staged.split("complete at s3://bucket/").nth(1).unwrap();
                    check_same(&remote, staged.split_whitespace().next().unwrap());
                }
                Err(_) if open(remote.local(name)).is_ok() => check_same(&remote, name),
                Err(error) => panic!("{name} at {number}: neither store is there: {error}"),
            }
            for left in remote.objects(&format!(".{name}")) {
                remove(&remote.local(&left));
            }
        }
        remove(&remote.local(name));
    }
}

/// An upload in parts is complete even if the response to its last request is lost.
#[test]
fn the_response_to_an_upload_in_parts_may_be_lost() {
    let remote = Remote::new();
    let large = remote.folder.path().join("large.npy");
    let header = "{'descr': '|u1', 'fortran_order': False, 'shape': (41943040,), }";
    let mut npy = b"\x93NUMPY\x01\x00".to_vec();
    npy.extend(118_u16.to_le_bytes());
    npy.extend(format!("{header:<117}\n").bytes());
    npy.resize(npy.len() + (40 << 20), 7);
    std::fs::write(&large, npy).unwrap();
    let options = ConvertOptions::default().with_remote(hasty(&remote.server));
    let target = Path::new("s3://bucket/large.npy");
    for fault in [WireFault::Lost, WireFault::Reset] {
        remote.server.behave(Behaviour::with_rules([FaultRule::new("POST", "uploadId=", fault).times(1)]));
        convert(&open(&large).unwrap(), target, Format::NPY, &options, &Progress::default()).unwrap();
        assert_eq!(std::fs::read(remote.local("large.npy")).unwrap(), std::fs::read(&large).unwrap());
        assert_eq!(remote.server.open_uploads(), 0);
        remove(&remote.local("large.npy"));
    }
}

/// A new store that may be visible, because no answer says whether its last object was put, stays complete.
#[test]
fn a_store_that_may_be_visible_is_not_removed() {
    let remote = Remote::new();
    let options = ConvertOptions::default().with_chunk_shape(vec![8, 64, 64]);
    remote.server.behave(Behaviour::with_rules([
        FaultRule::new("PUT", "seen.zarr/zarr.json", WireFault::Lost).times(1),
        FaultRule::new("HEAD", "seen.zarr/zarr.json", WireFault::Error(403, "AccessDenied")),
    ]));
    let error = remote.convert_to("seen.zarr", &options).unwrap_err();
    check_told(&error);
    check_same(&remote, "seen.zarr");
}

/// A store that another writer replaces while a conversion runs is not replaced again.
#[test]
fn a_replacement_by_another_writer_is_not_lost() {
    let remote = Arc::new(Remote::new());
    let shaped =
        |chunk: u64| ConvertOptions::default().with_replace(true).with_chunk_shape(vec![chunk, 64, 64]);
    for name in ["lost.zarr", "lost.tiledb"] {
        remote.server.behave(Behaviour::default());
        remote.convert_to(name, &shaped(8)).unwrap();
        let _ = remote.server.take_log();
        remote.convert_to(name, &shaped(8)).unwrap();
        let log = remote.server.take_log();
        let claim = log.iter().position(|answered| answered.path.ends_with(".claim")).unwrap();
        let (other, second) = (Arc::clone(&remote), name.to_owned());
        let (done, told) = std::sync::mpsc::channel();
        remote.server.behave(Behaviour::default());
        // The first writer has examined the target and converted its source, but has not claimed the target yet.
        remote.server.before_request(claim as u64, move || {
            done.send(other.convert_to(&second, &shaped(4)).is_ok()).unwrap();
        });
        let error = remote.convert_to(name, &shaped(8)).unwrap_err().to_string();
        assert!(error.contains("another writer"), "{error}");
        assert!(told.recv().unwrap());
        let store = open(remote.local(name)).unwrap();
        let array = store.array(&store.only_node().unwrap()).unwrap();
        assert_eq!(array.schema().grid.chunk_shape(), [4, 64, 64]);
        check_same(&remote, name);
        assert!(remote.objects(&format!(".{name}")).is_empty());
        remove(&remote.local(name));
    }
}

/// Two writers at once: the second one gets an error, and nothing of the first is lost.
#[test]
fn racing_writers_get_an_error() {
    let remote = Arc::new(Remote::new());
    let replace = ConvertOptions::default().with_replace(true);
    for name in ["race.h5", "race.zarr", "race.tiledb"] {
        remote.server.behave(Behaviour::default());
        remote.convert_to(name, &ConvertOptions::default()).unwrap();
        let (_, requests, _) = remote.count(|| remote.convert_to(name, &replace).unwrap());
        let mut lost = 0;
        // A dozen points in time of each conversion are tested.
        for number in (0..requests as u64).step_by(requests / 12 + 1) {
            let other = Arc::clone(&remote);
            let (ran, ended) =
                (Arc::new(AtomicBool::new(false)), Arc::clone(&Arc::new(AtomicBool::new(false))));
            let (ran_there, ended_there, replace_there) =
                (Arc::clone(&ran), Arc::clone(&ended), replace.clone());
            let second = name.to_owned();
            remote.server.behave(Behaviour::default());
            remote.server.before_request(number, move || {
                ran_there.store(other.convert_to(&second, &replace_there).is_ok(), Ordering::SeqCst);
                ended_there.store(true, Ordering::SeqCst);
            });
            let first = remote.convert_to(name, &replace).is_ok();
            // A first writer that was not answered in time has given up before the second is done.
            let patience = Instant::now();
            while !ended.load(Ordering::SeqCst) {
                assert!(patience.elapsed() < Duration::from_secs(120), "{name} at {number}");
                std::thread::sleep(Duration::from_millis(10));
            }
            // At least one of them got an error, unless they ran one after the other.
            lost += usize::from(!first || !ran.load(Ordering::SeqCst));
            check_same(&remote, name);
            assert!(remote.objects(&format!(".{name}")).is_empty(), "{name} at {number}");
        }
        assert!(lost > 0, "{name}: no race was noticed");
        remove(&remote.local(name));
    }
}

/// A cancelled upload does not wait for a server that does not respond.
#[test]
fn an_upload_stops_at_once() {
    let remote = Remote::new();
    remote.server.behave(Behaviour::fault_from(4, WireFault::Stall));
    let progress = Progress::default();
    let written = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(300));
            progress.stop.store(true, Ordering::Relaxed);
        });
        let options = ConvertOptions::default().with_remote(hasty(&remote.server));
        let source = open(remote.local("x.h5")).unwrap();
        convert(&source, Path::new("s3://bucket/stop.zarr"), Format::ZARR, &options, &progress)
    });
    // The server does not respond to the removal either, which the error mentions.
    let mentions_leftovers = |error: &Error| error.to_string().contains("the uploaded objects remain");
    assert!(written.is_err_and(|error| matches!(error, Error::Cancelled) || mentions_leftovers(&error)));
}
