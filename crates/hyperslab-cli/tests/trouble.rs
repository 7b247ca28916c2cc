//! External failures: Ctrl-C, a full disk, and files that another program truncates.

#![cfg(unix)]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

const TET: &str = env!("CARGO_BIN_EXE_tet");

/// A folder with `noise.tet`: 16 MiB in raw chunks of 1 MiB that compress slowly.
fn noise() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let header = "{'descr': '|u1', 'fortran_order': False, 'shape': (16777216,), }";
    let mut npy = b"\x93NUMPY\x01\x00".to_vec();
    npy.extend(118_u16.to_le_bytes());
    npy.extend(format!("{header:<117}\n").bytes());
    let mut state = 0x9e37_79b9_u32;
    npy.extend((0..16 << 20).map(|_| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        b'a' + (state >> 28) as u8
    }));
    std::fs::write(folder.path().join("noise.npy"), npy).expect("the sample");
    let made = tet(folder.path(), &["convert", "noise.npy", "noise.tet", "--chunks", "1048576"]);
    assert!(made.status.success(), "{}", error_of(&made));
    std::fs::remove_file(folder.path().join("noise.npy")).expect("removed");
    folder
}

fn tet(folder: &Path, words: &[&str]) -> Output {
    Command::new(TET).current_dir(folder).args(words).output().expect("tet starts")
}

fn error_of(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn names(folder: &Path) -> Vec<PathBuf> {
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().into())
        .collect();
    names.sort();
    names
}

/// Starts a conversion that takes seconds, and waits until it has begun to write beside its target.
fn slow_conversion(folder: &Path, target: &str) -> Child {
    let child = Command::new(TET)
        .current_dir(folder)
        .args(["convert", "noise.tet", target, "--filter", "zstd:19"])
        .stderr(Stdio::piped())
        .spawn()
        .expect("tet starts");
    while names(folder).len() < 2 {
        std::thread::sleep(Duration::from_millis(2));
    }
    child
}

#[test]
fn an_interrupt_leaves_nothing_behind() {
    for target in ["out.tet", "out.zarr"] {
        let folder = noise();
        let child = slow_conversion(folder.path(), target);
        let stopped = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill");
        assert!(stopped.success());
        let output = child.wait_with_output().expect("tet ends");
        assert_eq!(output.status.code(), Some(2), "{}", error_of(&output));
        assert!(error_of(&output).contains("stopped"), "{}", error_of(&output));
        assert_eq!(names(folder.path()), [Path::new("noise.tet")]);
    }
}

#[test]
fn a_truncated_source_is_an_error_and_nothing_is_left() {
    let folder = noise();
    let child = slow_conversion(folder.path(), "out.zarr");
    let source = std::fs::OpenOptions::new().write(true).open(folder.path().join("noise.tet"));
    source.and_then(|source| source.set_len(9 << 20)).expect("cut short");
    let output = child.wait_with_output().expect("tet ends");
    assert_eq!(output.status.code(), Some(2), "{}", error_of(&output));
    assert!(error_of(&output).contains("the file ends at 0x900000"), "{}", error_of(&output));
    assert_eq!(names(folder.path()), [Path::new("noise.tet")]);
}

/// Whether the truncation is noticed depends on timing. Either way, the process must not be killed without a message.
#[test]
fn truncating_a_mapped_file_does_not_kill_without_a_message() {
    let folder = noise();
    let path = folder.path().join("noise.tet");
    let bytes = std::fs::read(&path).expect("the sample");
    for wait in [0, 1, 2, 4, 8] {
        std::fs::write(&path, &bytes).expect("the sample");
        let child = Command::new(TET)
            .current_dir(folder.path())
            .args(["query", "noise.tet", "--var"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("tet starts");
        std::thread::sleep(Duration::from_millis(wait));
        let file = std::fs::OpenOptions::new().write(true).open(&path);
        file.and_then(|file| file.set_len(1 << 20)).expect("cut short");
        let output = child.wait_with_output().expect("tet ends");
        match output.status.code() {
            Some(0) => {}
            Some(2) => assert!(!error_of(&output).is_empty()),
            other => panic!("{other:?}: {}", error_of(&output)),
        }
    }
}

/// A limit on the file size simulates a full disk: the same call fails, with another error code.
#[test]
fn a_full_disk_leaves_nothing_behind() {
    let folder = noise();
    for target in ["out.tet", "out.zarr", "out.npy", "out.npz", "out.tiledb"] {
        let words =
            format!("trap '' XFSZ; ulimit -f 600; exec {TET} convert noise.tet {target} --filter none");
        let output =
            Command::new("sh").current_dir(folder.path()).args(["-c", &words]).output().expect("a shell");
        assert_eq!(output.status.code(), Some(2), "{target}: {}", error_of(&output));
        assert!(error_of(&output).contains("too large"), "{target}: {}", error_of(&output));
        assert_eq!(names(folder.path()), [Path::new("noise.tet")], "{target}");
    }
}
