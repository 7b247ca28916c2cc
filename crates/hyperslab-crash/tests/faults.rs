//! Failures of the system: no space, no file handles, failed or truncated reads. Each must give a clear error, leave
//! no partial content and no leftovers.
#![cfg(unix)]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hyperslab::convert::{ConvertOptions, Progress, convert};
use hyperslab::driver::{Content, FileBlob, LocalStorage, OpenContext};
use hyperslab::{Format, OpenOptions, OpenStore, hash, open_with};
use hyperslab_crash::content;
use hyperslab_crash::limit::{self, Limit};
use hyperslab_crash::writers::{self, Places, Scale, Writer};
use hyperslab_testing::{Fault, Faults, FaultyBlob, FaultyStorage};

fn limited(limits: &[Limit]) {
    let program = Path::new(env!("CARGO_BIN_EXE_crash"));
    let (mut findings, mut failed) = (Vec::new(), 0);
    let writers = writers::all();
    for writer in &writers {
        let tally = limit::run(writer, limits, program).unwrap_or_else(|why| panic!("{writer:?}: {why}"));
        failed += u64::from(tally.failed > 0);
        findings.extend(tally.findings);
    }
    assert!(findings.is_empty(), "{findings:#?}");
    // Nearly all writers need more than that; a vacuum only removes.
    assert!(failed + 6 > writers.len() as u64, "{failed} of {} writers failed", writers.len());
}

/// The file size is limited to 0, 1, 2 … units, so that each write of each writer fails once.
#[test]
fn failed_writes_keep_the_old_content() {
    limited(&[0, 1, 2, 3, 4, 6, 8].map(Limit::FileSize));
}

#[test]
fn writers_without_file_handles_keep_the_old_content() {
    limited(&[4, 5, 6, 7, 8, 10].map(Limit::Handles));
}

/// A store of each format.
fn stores(folder: &Path) -> Vec<(Writer, PathBuf)> {
    let new = writers::all().into_iter().filter(|writer| writer.is_new && writer.peer != "bytes");
    let new = new.filter(|writer| !["arrow", "parquet"].contains(&writer.peer));
    new.map(|writer| {
        let own = folder.join(writer.name.replace(' ', "-"));
        std::fs::create_dir(&own).unwrap();
        let places = Places { target: own.join(writer.target), sources: own.clone() };
        (writer.write)(&places, Scale::SMALL).unwrap();
        (writer, places.target)
    })
    .collect()
}

fn hash_lines(text: &str) -> Vec<&str> {
    text.lines().filter(|line| line.starts_with("hash ")).collect()
}

/// Each request for opening, reading and checking fails once.
#[test]
fn failed_reads_are_errors_and_never_values() {
    let folder = tempfile::tempdir().unwrap();
    let faults = [ErrorKind::Other, ErrorKind::Interrupted, ErrorKind::TimedOut].map(Fault::Error);
    for (writer, path) in stores(folder.path()) {
        let store = open_with(&path, &OpenOptions::default()).unwrap();
        let format = Format::all().into_iter().find(|format| format.name() == store.format()).unwrap();
        let whole = content::of_store(&store).unwrap();
        for fault in faults.into_iter().chain([Fault::Short]) {
            let mut request = 0;
            loop {
                let faults = Faults::at(request, fault);
                let inner = if path.is_dir() {
                    let storage = LocalStorage::new(&path);
                    Content::Directory(Arc::new(FaultyStorage::new(storage, faults.clone())))
                } else {
                    let blob = Arc::new(FileBlob::open(&path).unwrap());
                    Content::File(Arc::new(FaultyBlob::new(blob, faults.clone())))
                };
                let opened = format.driver().open(inner, &OpenContext::default());
                let read = opened.and_then(|store| content::of_store(&OpenStore::from_store(store, &path)));
                let case = format!("{writer:?}, {fault:?} at request {request}");
                match read {
                    Ok(text) if !faults.met() => {
                        assert_eq!(text, whole, "{case}");
                        break;
                    }
                    // Reported by the check or in place of the attribute, or without consequence. Values are correct.
                    Ok(text) => {
                        let is_reported = ["\ndamage ", "unreadable"].iter().any(|word| text.contains(word));
                        assert!(text == whole || is_reported, "{case}: {text}");
                        assert_eq!(hash_lines(&text), hash_lines(&whole), "{case}");
                    }
                    Err(problem) => assert!(!problem.to_string().is_empty(), "{case}"),
                }
                request += 1;
                assert!(request < 2000, "{case}");
            }
            assert!(request > 0, "{writer:?}");
        }
    }
}

/// A source that is truncated or replaced after it was opened, without mapping.
#[test]
fn changes_of_a_source_are_errors_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    for (writer, path) in stores(folder.path()) {
        if path.is_dir() {
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        let options = OpenOptions::default().with_mapped(false);
        let whole = content::of(&path);
        let hashes = hash::nodes(&open_with(&path, &options).unwrap(), "/").unwrap();
        for part in [0, 1, 2, 3] {
            let store = open_with(&path, &options).unwrap();
            let file = std::fs::File::options().write(true).open(&path).unwrap();
            file.set_len(bytes.len() as u64 * part / 4).unwrap();
            let target = path.with_file_name("copy.zarr");
            let done =
                convert(&store, &target, Format::ZARR, &ConvertOptions::default(), &Progress::default());
            // If everything needed was read before the truncation, the copy is complete.
            if done.is_ok() {
                let copy = hyperslab::open(&target).unwrap();
                assert_eq!(hash::nodes(&copy, "/").unwrap(), hashes, "{writer:?} cut to {part} quarters");
                std::fs::remove_dir_all(&target).unwrap();
            }
            assert!(done.is_err() || part > 0, "{writer:?}");
            let left = |name: &std::ffi::OsStr| name.to_string_lossy().contains("copy.zarr");
            let entries = std::fs::read_dir(path.parent().unwrap()).unwrap().flatten();
            assert!(!entries.map(|entry| entry.file_name()).any(|name| left(&name)), "{writer:?}");
            std::fs::write(&path, &bytes).unwrap();
        }
        // After a replacement by rename, the opened file is read to its end.
        let store = open_with(&path, &options).unwrap();
        let other = path.with_file_name("other");
        std::fs::write(&other, "something else").unwrap();
        std::fs::rename(&other, &path).unwrap();
        assert_eq!(content::of_store(&store).unwrap(), whole, "{writer:?}");
    }
}
