//! Files extended by both us and libhdf5, and files with many chunks.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod recording;

use std::path::Path;
use std::process::Command;

use hyperslab_core::{ArraySpec, Attributes, DType, Elements, Grid, Sink};
use hyperslab_hdf5::{AppendOptions, Hdf5Append, Hdf5Options, Hdf5Sink};
use serde_json::Value;

/// Runs a task of the script. Returns its output.
fn python(task: &str, path: &Path, count: Option<u64>) -> Value {
    let interpreter = std::env::var_os("HYPERSLAB_PEERS")
        .expect("HYPERSLAB_PEERS names the Python interpreter that has h5py");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/append.py");
    let done = Command::new(interpreter)
        .arg(script)
        .arg(task)
        .arg(path)
        .args(count.map(|count| count.to_string()))
        .output()
        .unwrap();
    assert!(done.status.success(), "{task}: {}", String::from_utf8_lossy(&done.stderr));
    serde_json::from_slice(&done.stdout).unwrap_or(Value::Null)
}

fn add(path: &Path, from: u64, count: u64) {
    let mut file = Hdf5Append::open(path, AppendOptions::default()).unwrap();
    for number in from..from + count {
        file.append("/frames", &recording::frame(number)).unwrap_or_else(|error| panic!("{error}"));
        if number % 7 == 0 {
            file.flush().unwrap();
        }
    }
    file.close().unwrap();
}

/// Files of all libhdf5 versions are extended by us, then by libhdf5, then by us again.
#[test]
fn we_and_libhdf5_take_turns() {
    let folder = tempfile::tempdir().unwrap();
    python("make", folder.path(), None);
    let files: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    for path in &files {
        add(path, 10, 60);
        let mut file = Hdf5Append::open(path, AppendOptions::default()).unwrap();
        for number in 0..[1, 5, 30][path.as_os_str().len() % 3] {
            file.group(&format!("/ours/{number}"), &Attributes::new()).unwrap();
            file.group(&format!("/of us {number}"), &Attributes::from_iter([("who", "we")])).unwrap();
            file.attribute("/frames", &format!("of us {number}"), "text").unwrap();
        }
        // One attribute that is larger than before, one of the same size, one of an object that we changed in other ways.
        file.attribute("/frames", "units", "counts, and many of them").unwrap();
        file.attribute("/frames", "level", serde_json::json!(2.5)).unwrap();
        file.attribute("/", "title", serde_json::json!([1, 2, 3])).unwrap();
        file.close().unwrap();
    }
    let counts = python("check", folder.path(), None);
    assert_eq!(counts.as_object().unwrap().len(), 24);
    assert!(counts.as_object().unwrap().values().all(|count| *count == 70), "{counts}");
    python("extend", folder.path(), None);
    for path in &files {
        assert_eq!(recording::check(path, 370), 370);
        add(path, 370, 40);
        let mut file = Hdf5Append::open(path, AppendOptions::default()).unwrap();
        file.attribute("/frames", "a3", "three").unwrap();
        file.close().unwrap();
        assert_eq!(recording::check(path, 410), 410);
    }
    let counts = python("check", folder.path(), None);
    assert!(counts.as_object().unwrap().values().all(|count| *count == 410), "{counts}");
}

/// `/x` of one-element chunks, every `step`-th of which is written.
fn one_element_chunks(path: &Path, count: u64, step: usize, value: impl Fn(u64) -> u8) {
    let mut sink = Box::new(Hdf5Sink::create(path, Hdf5Options::default()).unwrap());
    let mut spec = ArraySpec::new(DType::UInt8, Grid::new(&[count], &[1]).unwrap());
    spec.max_shape[0] = None;
    let array = sink.array("/x", &spec).unwrap();
    for number in (0..count).step_by(step) {
        let chunk = [number].as_slice().into();
        array.write(&chunk, array.encode(&chunk, &Elements::fixed(vec![value(number)])).unwrap()).unwrap();
    }
    sink.commit().unwrap();
}

#[test]
fn a_million_chunks_are_read_by_h5py() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("million.h5");
    one_element_chunks(&path, 1_000_000, 1, |number| (number % 251) as u8);
    python("read", &path, Some(1_000_000));
}

/// Our headers have the same counters as libhdf5's, and our index is not larger.
#[test]
fn extensible_arrays_are_as_libhdf5_makes_them() {
    let folder = tempfile::tempdir().unwrap();
    for (count, step) in [(3_u64, 1_usize), (500, 1), (140_000, 1), (400_000, 997)] {
        let path = folder.path().join(format!("{count}.h5"));
        one_element_chunks(&path, count, step, |_| 1);
        let seen = python("index", &path, Some(u64::from(step == 1)));
        assert_eq!(seen["ours"], seen["theirs"], "{count} by {step}");
        let [ours, theirs] = [0, 1].map(|at| seen["sizes"][at].as_u64().unwrap());
        assert!(ours <= theirs + theirs / 100, "{count} by {step}: {ours} bytes, libhdf5 needs {theirs}");
    }
}

/// The writer that is killed or followed; not a test by itself.
#[test]
fn child() {
    recording::child();
}

#[test]
fn h5py_opens_what_a_killed_writer_leaves() {
    let folder = tempfile::tempdir().unwrap();
    let mut flushed = Vec::new();
    for round in 0..8 {
        let name = format!("{round}.h5");
        flushed.push((name.clone(), recording::record_and_kill(&folder.path().join(name), round, false)));
    }
    let counts = python("check", folder.path(), None);
    for (name, flushed) in flushed {
        assert!(
            counts[&name].as_u64().unwrap() >= flushed,
            "{name}: {flushed} were flushed, {}",
            counts[&name]
        );
    }
}

#[test]
fn h5py_follows_a_file_that_grows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.h5");
    let mut child = recording::spawn(&path, 5, 1, true);
    // Wait for the first frames.
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    while !lines.next().unwrap().unwrap().starts_with("flushed") {}
    let drain = std::thread::spawn(move || lines.map_while(Result::ok).count());
    let outcome = std::panic::catch_unwind(|| python("follow", &path, Some(1500)));
    child.kill().unwrap();
    child.wait().unwrap();
    drain.join().unwrap();
    outcome.unwrap();
}

/// h5py finds the names that it wrote, in any encoding, after we extended the same groups.
#[test]
fn names_that_are_not_utf8_are_still_found() {
    let run = |script: &str, path: &Path| {
        let interpreter = std::env::var_os("HYPERSLAB_PEERS").unwrap();
        let done = Command::new(interpreter).arg("-c").arg(script).arg(path).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    let make = "
import h5py, sys
for library in ('earliest', 'latest'):
    with h5py.File(sys.argv[1] + library, 'w', libver=library) as file:
        for name in (b'caf\\xe9', b'b\\xff', 'b\\U00010000'.encode(), b'plain'):
            file.create_group(name).attrs['x'] = name.decode('latin-1')
        file['soft'] = h5py.SoftLink('/plain')
        file['elsewhere'] = h5py.ExternalLink('other.h5', '/there')
        for number in range(12):
            file['plain'].attrs[str(number)] = number
";
    let check = "
import h5py, sys
with h5py.File(sys.argv[1]) as file:
    for name in (b'caf\\xe9', b'b\\xff', 'b\\U00010000'.encode(), b'plain'):
        assert file[name].attrs['x'] == name.decode('latin-1'), name
    assert file.get('soft', getlink=True).path == '/plain'
    link = file.get('elsewhere', getlink=True)
    assert (link.filename, link.path) == ('other.h5', '/there')
    assert len(file) == 26 and len(file['plain'].attrs) == 14, (len(file), len(file['plain'].attrs))
    assert all(file['plain'].attrs[str(number)] == number for number in range(12))
";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.");
    run(make, &path);
    for library in ["earliest", "latest"] {
        let path = folder.path().join(format!("x.{library}"));
        for round in 0..2 {
            let mut file = Hdf5Append::open(&path, AppendOptions::default()).unwrap();
            for number in 0..10 {
                file.group(&format!("/new {round} {number}"), &Attributes::new()).unwrap();
            }
            if round == 0 {
                file.attribute("/plain", "one more", "y").unwrap();
            }
            file.close().unwrap();
        }
        run(check, &path);
    }
}
