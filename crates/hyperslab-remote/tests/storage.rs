//! Tests remote storage against a server with a request log and simulated faults.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::single_range_in_vec_init, reason = "lists of ranges are what is tested")]

use std::path::Path;

use hyperslab_core::{ByteRange, ObjectRange, Result, Storage};
use hyperslab_remote::{Remote, RemoteOptions, RemoteStorage};
use hyperslab_testing::{Behaviour, WebServer};

const LARGE: usize = 5_000_000;

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 7 % 251) as u8).collect()
}

fn files() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    };
    write("bucket/a/large", &pattern(LARGE));
    write("bucket/a/small", b"hyperslab");
    write("bucket/a/empty", b"");
    write("bucket/a/deep/er/x", b"x");
    write("bucket/b", b"b");
    folder
}

fn http(server: &WebServer, key: &str) -> RemoteStorage {
    Remote::new(&server.url(key), &RemoteOptions::default()).unwrap().directory()
}

fn s3(server: &WebServer, url: &str) -> RemoteStorage {
    let options =
        RemoteOptions::default().with_option("endpoint_url", server.endpoint()).with_anonymous(true);
    Remote::new(url, &options).unwrap().directory()
}

fn both(server: &WebServer) -> [RemoteStorage; 2] {
    [http(server, "bucket/a"), s3(server, "s3://bucket/a")]
}

#[test]
fn objects_are_read_by_ranges() -> Result<()> {
    let folder = files();
    let server = WebServer::start(folder.path()).unwrap();
    let expected = pattern(LARGE);
    for storage in both(&server) {
        assert_eq!(storage.read("small")?.unwrap(), "hyperslab");
        assert!(storage.read("none")?.is_none() && storage.open("none")?.is_none());
        assert_eq!(storage.read("empty")?.unwrap(), "");
        let blob = storage.open("large")?.unwrap();
        assert_eq!(blob.len()?, LARGE as u64);
        for range in [0..10, 4095..4097, 100_000..3_000_000, LARGE as u64 - 1..LARGE as u64, 7..7] {
            assert_eq!(blob.read_range(range.clone())?, expected[range.start as usize..range.end as usize]);
        }
        let ranges = [10..20, 4_000_000..4_000_100, 0..LARGE as u64, 20..30];
        for (range, bytes) in ranges.iter().zip(blob.read(&ranges)?) {
            assert_eq!(bytes, expected[range.start as usize..range.end as usize]);
        }
        assert!(blob.read_range(5..LARGE as u64 + 1).unwrap_err().is_corrupt());
        assert!(storage.open("../b").is_err(), "a key must not climb out");
    }
    Ok(())
}

#[test]
fn a_batch_is_one_round_of_merged_requests() -> Result<()> {
    let folder = files();
    let server = WebServer::start(folder.path()).unwrap();
    for storage in both(&server) {
        let _ = server.take_log();
        let before = storage.traffic();
        let requests = [
            ObjectRange { key: "large", range: ByteRange::Bounded(0..1000) },
            ObjectRange { key: "large", range: ByteRange::Bounded(2000..3000) },
            ObjectRange { key: "large", range: ByteRange::Bounded(4_000_000..4_000_010) },
            ObjectRange::whole("small"),
            ObjectRange::whole("none"),
            ObjectRange { key: "small", range: ByteRange::Suffix(4) },
        ];
        let answers = storage.read_many(&requests)?;
        let expected = pattern(LARGE);
        assert_eq!(answers[0].as_deref(), Some(&expected[..1000]));
        assert_eq!(answers[1].as_deref(), Some(&expected[2000..3000]));
        assert_eq!(answers[2].as_deref(), Some(&expected[4_000_000..4_000_010]));
        assert_eq!(answers[3].as_deref(), Some(&b"hyperslab"[..]));
        assert_eq!(answers[4], None);
        assert_eq!(answers[5].as_deref(), Some(&b"slab"[..]));
        let log = server.take_log();
        assert_eq!(log.len(), 5, "{log:?}");
        let after = storage.traffic();
        assert_eq!((after.rounds - before.rounds, after.requests - before.requests), (1, 5));
        assert_eq!(after.bytes - before.bytes, 3000 + 10 + 9 + 4);
    }
    Ok(())
}

#[test]
fn prefetched_reads_cost_one_round() -> Result<()> {
    let folder = files();
    let server = WebServer::start(folder.path()).unwrap();
    for storage in both(&server) {
        let _ = server.take_log();
        storage.prefetch(&[
            ObjectRange { key: "large", range: ByteRange::Bounded(0..65_536) },
            ObjectRange::whole("small"),
            ObjectRange::whole("none"),
        ]);
        assert_eq!(server.take_log().len(), 3);
        assert_eq!(storage.traffic().rounds, 1);
        let blob = storage.open("large")?.unwrap();
        assert_eq!(blob.read_range(0..65_536)?, pattern(LARGE)[..65_536]);
        assert_eq!((storage.size("small")?, storage.read("small")?.unwrap().len()), (Some(9), 9));
        assert!(storage.read("none")?.is_none());
        assert_eq!(server.take_log(), [], "everything was known");
        // Without the prefetch, each would be a separate round.
        blob.prefetch(&[1_000_000..1_000_100, 2_000_000..2_000_100, 3_000_000..3_000_100]);
        for start in [1_000_000_u64, 2_000_000, 3_000_000] {
            assert_eq!(blob.read_range(start..start + 100)?, pattern(LARGE)[start as usize..][..100]);
        }
        assert_eq!((server.take_log().len(), storage.traffic().rounds), (3, 2));
    }
    Ok(())
}

#[test]
fn buckets_are_listed_and_web_servers_are_not() -> Result<()> {
    let folder = files();
    let server = WebServer::start(folder.path()).unwrap();
    let bucket = s3(&server, "s3://bucket/a");
    let names: Vec<_> =
        bucket.list("")?.into_iter().map(|entry| (entry.name, entry.is_directory, entry.size)).collect();
    let expected = [
        ("deep".to_owned(), true, None),
        ("empty".to_owned(), false, Some(0)),
        ("large".to_owned(), false, Some(LARGE as u64)),
        ("small".to_owned(), false, Some(9)),
    ];
    assert_eq!(names, expected);
    let all: Vec<_> = bucket.list_all("deep")?.into_iter().map(|object| (object.key, object.size)).collect();
    assert_eq!(all, [("deep/er/x".to_owned(), 1)]);
    assert!(bucket.list("none")?.is_empty());
    let refused = http(&server, "bucket/a").list("").unwrap_err();
    assert!(refused.is_unsupported() && refused.to_string().contains("listing"), "{refused}");
    Ok(())
}

/// Servers that misbehave: the bytes are correct, or there is an error.
#[test]
fn faults_are_survived_or_reported() -> Result<()> {
    let folder = files();
    let server = WebServer::start(folder.path()).unwrap();
    let expected = pattern(LARGE);
    let behaviours = [
        Behaviour { no_ranges: true, ..Behaviour::default() },
        Behaviour { no_suffix: true, ..Behaviour::default() },
        Behaviour { fail: Some((503, 2)), ..Behaviour::default() },
        Behaviour { fail: Some((429, 1)), ..Behaviour::default() },
        Behaviour { cut: 1, ..Behaviour::default() },
    ];
    for behaviour in behaviours {
        for storage in both(&server) {
            server.behave(behaviour.clone());
            let blob = storage.open("large")?.unwrap();
            assert_eq!(blob.read_range(1000..2000)?, expected[1000..2000], "{behaviour:?}");
            assert_eq!(blob.read(&[0..LARGE as u64])?[0], expected, "{behaviour:?}");
            let last = ObjectRange { key: "small", range: ByteRange::Suffix(4) };
            assert_eq!(storage.read_many(&[last])?[0].as_deref(), Some(&b"slab"[..]), "{behaviour:?}");
        }
    }
    server.behave(Behaviour { fail: Some((403, 1)), ..Behaviour::default() });
    let denied = http(&server, "bucket/a").read("small").unwrap_err();
    assert!(
        denied.to_string().contains("denied") && denied.to_string().contains("/bucket/a/small"),
        "{denied}"
    );
    Ok(())
}

#[test]
fn changed_objects_are_detected() -> Result<()> {
    let folder = files();
    let server = WebServer::start(folder.path()).unwrap();
    for storage in both(&server) {
        let blob = storage.open("large")?.unwrap();
        let _ = blob.read_range(0..100)?;
        let mut other = pattern(LARGE);
        other[3_000_000] ^= 1;
        rewrite(&folder.path().join("bucket/a/large"), &other);
        let changed = blob.read(&[3_000_000..3_000_100]).unwrap_err();
        assert!(changed.to_string().contains("changed while it was being read"), "{changed}");
        rewrite(&folder.path().join("bucket/a/large"), &pattern(LARGE));
    }
    Ok(())
}

/// Rewrites a file with a later modification time.
fn rewrite(path: &Path, bytes: &[u8]) {
    std::thread::sleep(std::time::Duration::from_millis(20));
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn a_tree_is_listed_at_once_unless_it_is_too_large() -> Result<()> {
    let folder = files();
    let server = WebServer::start(folder.path()).unwrap();
    for url in ["s3://bucket/a", "s3://bucket"] {
        let plain = s3(&server, url);
        let keys = ["", "deep", "deep/er", "de", "none", "a", "a/deep"];
        for most in [5, 4, 3] {
            let storage = s3(&server, url);
            storage.prefetch_tree("", most);
            storage.prefetch_tree("", most);
            let asked = server.take_log().len();
            assert_eq!(asked, 1);
            for key in keys {
                assert_eq!(storage.list(key)?, plain.list(key)?, "{url} {key}");
                assert_eq!(storage.list_all(key)?, plain.list_all(key)?, "{url} {key}");
            }
            let own = s3(&server, url);
            let _ = server.take_log();
            own.prefetch_tree("", most);
            keys.iter().try_for_each(|key| own.list(key).map(drop))?;
            let is_complete = server.take_log().len() == 1;
            let objects = if url.ends_with('a') { 4 } else { 5 };
            assert_eq!(is_complete, objects <= most, "{url} {most}");
        }
    }
    Ok(())
}
