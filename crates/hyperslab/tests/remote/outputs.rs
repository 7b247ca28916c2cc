//! Outputs, edits and repairs at URLs: the results equal those on disk, complete or absent, and nothing of another writer is lost.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hyperslab::convert::{ConvertOptions, Progress, TableOptions, convert, convert_to_rows};
use hyperslab::diff::{DiffOptions, diff};
use hyperslab::edit::{Edit, EditOptions, EditReport, edit};
use hyperslab::references::{self, Options};
use hyperslab::repair::repair_path;
use hyperslab::salvage::salvage;
use hyperslab::verify::Record;
use hyperslab::{
    Attribute, Depth, Error, Format, OpenOptions, OpenStore, RemoteOptions, Result, Selection, open,
    open_with, rows, write_at,
};
use hyperslab_testing::{Behaviour, WireFault};

use super::Remote;

impl Remote {
    fn options(&self) -> OpenOptions {
        let remote = RemoteOptions::default()
            .with_option("endpoint_url", self.server.endpoint())
            .with_option("max_retries", "2")
            .with_option("retry_timeout", "5s")
            .with_anonymous(true);
        OpenOptions::default().with_remote(remote)
    }

    fn convert_options(&self) -> ConvertOptions {
        ConvertOptions::default().with_remote(self.options().remote)
    }

    /// Writes a text at a key.
    fn put(&self, key: &str, replace: bool, text: &str) -> Result<()> {
        let write =
            |path: &Path, replace: bool| hyperslab::export::write_bytes(text.as_bytes(), path, replace);
        write_at(&url(key), replace, &self.options(), &Progress::default(), write)
    }

    fn edit(&self, key: &str, edits: &[Edit], dry_run: bool) -> Result<EditReport> {
        let options = EditOptions::default().with_open(self.options()).with_dry_run(dry_run);
        edit(&url(key), edits, &options, &Progress::default())
    }

    /// A store `NAME` in the bucket and a copy of it on disk.
    fn pair(&self, name: &str) -> PathBuf {
        let here = self.folder.path().join(name);
        let format = Format::from_extension(&here).unwrap();
        for target in [&here, &self.local(name)] {
            let source = open(self.local("x.h5")).unwrap();
            let options = ConvertOptions::default().with_chunk_shape(vec![4, 64, 64]).with_replace(true);
            convert(&source, target, format, &options, &Progress::default()).unwrap();
        }
        here
    }

    /// Checks that nothing is left beside the stores of the bucket.
    fn check_clean(&self) {
        for entry in std::fs::read_dir(self.folder.path().join("bucket")).unwrap() {
            let name = entry.unwrap().file_name();
            assert!(!name.to_string_lossy().starts_with('.'), "{name:?} was left");
        }
    }
}

fn url(key: &str) -> PathBuf {
    PathBuf::from(format!("s3://bucket/{key}"))
}

fn check_same(there: &OpenStore, here: &OpenStore, name: &str) {
    let found = diff((there, "/"), (here, "/"), &DiffOptions::default()).unwrap();
    assert!(found.same(), "{name}: {found:?}");
}

fn set(name: &str, value: i64) -> Edit {
    Edit::SetAttribute { node: "/".into(), name: name.into(), value: Attribute::Json(value.into()) }
}

#[test]
fn files_of_rows_are_written_to_a_bucket() {
    let remote = Remote::new();
    let source = open(remote.local("x.h5")).unwrap();
    for ending in ["csv", "json", "npy", "parquet", "arrow"] {
        let (key, here) = (format!("rows.{ending}"), remote.folder.path().join(format!("rows.{ending}")));
        let mut options = remote.convert_options();
        options.selection = "[2:4, 3, :]".parse().unwrap();
        convert_to_rows(&source, &here, &options, &Progress::default()).unwrap();
        convert_to_rows(&source, &url(&key), &options, &Progress::default()).unwrap();
        assert_eq!(std::fs::read(remote.local(&key)).unwrap(), std::fs::read(&here).unwrap(), "{key}");
        // It is not replaced by accident.
        let error = convert_to_rows(&source, &url(&key), &options, &Progress::default()).unwrap_err();
        assert!(matches!(error, Error::Exists { .. }), "{error}");
        options.replace = true;
        convert_to_rows(&source, &url(&key), &options, &Progress::default()).unwrap();
        assert_eq!(std::fs::read(remote.local(&key)).unwrap(), std::fs::read(&here).unwrap(), "{key}");
        // The functions that write to a local path refuse a URL.
        if ending != "json" {
            let found = source.array(&source.only_node().unwrap()).unwrap();
            let all: Selection = "[0, 0, :]".parse().unwrap();
            let error = rows::write(found.rows(&all).unwrap(), &url(&key), true).unwrap_err();
            assert!(error.is_unsupported(), "{error}");
        }
    }
}

#[test]
fn an_output_replaces_only_what_was_there() {
    let remote = Arc::new(Remote::new());
    remote.put("note.csv", false, "first").unwrap();
    assert!(matches!(remote.put("note.csv", false, "second"), Err(Error::Exists { .. })));
    let read = || std::fs::read_to_string(remote.local("note.csv")).unwrap();
    assert_eq!(read(), "first");
    // A folder is not replaced by a file, even if it is a store.
    let error = remote.put("x.zarr", true, "text").unwrap_err().to_string();
    assert!(error.contains("s3://bucket/x.zarr is a folder"), "{error}");
    assert!(open(remote.local("x.zarr")).is_ok());
    // Another writer replaces the object while this one works, at each request.
    let (_, requests, _) = remote.count(|| remote.put("note.csv", true, "third").unwrap());
    let mut lost = 0;
    for number in 0..requests as u64 {
        let other = remote.local("note.csv");
        remote.server.behave(Behaviour::default());
        remote.server.before_request(number, move || std::fs::write(other, "of another writer").unwrap());
        match remote.put("note.csv", true, "fourth") {
            Ok(()) => assert_eq!(read(), "fourth"),
            Err(error) => {
                assert!(error.to_string().contains("another writer"), "{error}");
                assert_eq!(read(), "of another writer");
                lost += 1;
            }
        }
    }
    assert!(lost > 0);
    // A web server cannot be written to.
    let target = remote.server.url("bucket/note.csv");
    let write = |path: &Path, replace: bool| hyperslab::export::write_bytes(b"", path, replace);
    let none = OpenOptions::default();
    let error = write_at(target.as_ref(), true, &none, &Progress::default(), write).unwrap_err();
    assert!(error.is_unsupported() && error.to_string().contains("web server"), "{error}");
}

#[test]
fn stores_in_a_bucket_are_edited_like_stores_on_disk() {
    let remote = Remote::new();
    for name in ["edit.h5", "edit.zarr", "edit.tiledb", "edit.tet", "edit.nc"] {
        let here = remote.pair(name);
        let node = open(&here).unwrap().only_node().unwrap();
        let mut steps = vec![
            vec![set("run", 7), set("count", 3)],
            vec![set("run", 8)],
            vec![Edit::DeleteAttribute { node: "/".into(), name: "count".into() }],
        ];
        // TileDB keeps versions, which a rewritten store would lose.
        if name != "edit.tiledb" && name != "edit.tet" {
            steps.push(vec![Edit::Rename { from: node, to: "renamed".into() }]);
        }
        for edits in steps {
            let before = remote.objects_with_content(name);
            let planned = remote.edit(name, &edits, true).unwrap();
            assert!(!planned.applied);
            assert!(remote.objects_with_content(name) == before, "{name}: a dry run changed the store");
            let there = remote.edit(name, &edits, false).unwrap();
            let options = EditOptions::default();
            let local = edit(&here, &edits, &options, &Progress::default()).unwrap();
            assert_eq!((there.applied, there.in_place), (true, local.in_place), "{name} {edits:?}");
            assert_eq!(there.changes, local.changes);
            check_same(&open(remote.local(name)).unwrap(), &open(&here).unwrap(), name);
            assert!(open(remote.local(name)).unwrap().verify(Depth::Deep).unwrap().ok(), "{name}");
            remote.check_clean();
        }
        let error = remote.edit(name, &[Edit::Remove { node: "/missing".into() }], false).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(&format!("s3://bucket/{name}")) && !text.contains("/tmp"), "{text}");
    }
    let error = edit(
        remote.server.url("bucket/edit.h5").as_ref(),
        &[set("run", 1)],
        &EditOptions::default(),
        &Progress::default(),
    );
    assert!(error.unwrap_err().is_unsupported());
}

impl Remote {
    fn objects_with_content(&self, prefix: &str) -> Vec<(PathBuf, Vec<u8>)> {
        let bucket = self.folder.path().join("bucket");
        let mut found: Vec<_> = super::walk(&bucket)
            .into_iter()
            .filter(|path| path.strip_prefix(&bucket).unwrap().to_string_lossy().starts_with(prefix))
            .map(|path| (path.clone(), std::fs::read(&path).unwrap()))
            .collect();
        found.sort();
        found
    }
}

/// One fault at a time, at each request of an edit: the store has all of the edits or none.
#[test]
fn faults_during_an_edit_leave_all_or_nothing() {
    let remote = Remote::new();
    let edits = [set("one", 1), set("two", 2)];
    for name in ["fault.h5", "fault.zarr", "fault.tiledb"] {
        remote.pair(name);
        remote.server.behave(Behaviour::default());
        let (_, requests, _) = remote.count(|| remote.edit(name, &edits, false).unwrap());
        for fault in [WireFault::Error(403, "AccessDenied"), WireFault::Lost, WireFault::Reset] {
            for number in 0..requests as u64 {
                remote.pair(name);
                remote.server.behave(Behaviour::fault_at(number, fault));
                let edited = remote.edit(name, &edits, false);
                remote.server.behave(Behaviour::default());
                let store = open(remote.local(name)).unwrap();
                let attributes = hyperslab::edit::attributes_of(&store, "/").unwrap();
                let has = ["one", "two"].map(|name| attributes.get(name).is_some());
                assert_eq!(has[0], has[1], "{name} {fault:?} at {number}: {edited:?}");
                assert!(store.verify(Depth::Deep).unwrap().ok(), "{name} {fault:?} at {number}");
                match edited {
                    Ok(_) => assert!(has[0], "{name} {fault:?} at {number}"),
                    Err(error) => {
                        let may_have_changed = error.to_string().contains("may have been uploaded")
                            || error.to_string().contains("it is unknown whether");
                        assert!(!has[0] || may_have_changed, "{name} {fault:?} at {number}: {error}");
                    }
                }
                for left in super::walk(&remote.folder.path().join("bucket")) {
                    if left.file_name().unwrap().to_string_lossy().ends_with(".claim") {
                        std::fs::remove_file(left).unwrap();
                    }
                }
            }
        }
    }
}

/// Another writer edits the store while this one does.
#[test]
fn racing_edits_are_errors_and_lose_nothing() {
    let remote = Arc::new(Remote::new());
    for name in ["race.h5", "race.zarr", "race.tiledb"] {
        remote.pair(name);
        remote.server.behave(Behaviour::default());
        let (_, requests, _) = remote.count(|| remote.edit(name, &[set("mine", 1)], false).unwrap());
        let mut lost = 0;
        for number in 0..requests as u64 {
            remote.pair(name);
            let (other, second) = (Arc::clone(&remote), name.to_owned());
            let (done, told) = std::sync::mpsc::channel();
            remote.server.behave(Behaviour::default());
            remote.server.before_request(number, move || {
                done.send(other.edit(&second, &[set("yours", 2)], false).is_ok()).unwrap();
            });
            let mine = remote.edit(name, &[set("mine", 1)], false).is_ok();
            let yours = told.recv().unwrap();
            let store = open(remote.local(name)).unwrap();
            let attributes = hyperslab::edit::attributes_of(&store, "/").unwrap();
            let has = |name: &str| attributes.get(name).is_some();
            assert_eq!((has("mine"), has("yours")), (mine, yours), "{name} at {number}");
            lost += usize::from(!mine || !yours);
            remote.check_clean();
        }
        assert!(lost > 0, "{name}: no race was noticed");
    }
}

#[test]
fn files_in_a_bucket_are_repaired_and_salvaged() {
    let remote = Remote::new();
    let here = remote.folder.path().join("torn.tet");
    let mut bytes = std::fs::read(remote.local("x.tet")).unwrap();
    bytes.extend_from_slice(&[7; 100]);
    for path in [&here, &remote.local("torn.tet")] {
        std::fs::write(path, &bytes).unwrap();
    }
    let local = repair_path(&here, &OpenOptions::default(), false).unwrap();
    assert!(local.applied && !local.fixes.is_empty());
    let planned = repair_path(&url("torn.tet"), &remote.options(), true).unwrap();
    assert_eq!((planned.fixes.len(), planned.applied), (local.fixes.len(), false));
    assert_eq!(std::fs::read(remote.local("torn.tet")).unwrap(), bytes);
    let there = repair_path(&url("torn.tet"), &remote.options(), false).unwrap();
    assert_eq!((there.fixes.len(), there.applied), (local.fixes.len(), true));
    // The history has the time of the repair.
    let repaired = open(remote.local("torn.tet")).unwrap();
    check_same(&repaired, &open(&here).unwrap(), "torn.tet");
    assert!(repaired.verify(Depth::Deep).unwrap().ok());
    assert!(std::fs::read(remote.local("torn.tet")).unwrap() != bytes);
    // An intact file is not uploaded again.
    let _ = remote.server.take_log();
    assert!(!repair_path(&url("x.tet"), &remote.options(), false).unwrap().applied);
    assert!(remote.server.take_log().iter().all(|answered| answered.method != "PUT"));
    let error = repair_path(&url("x.tiledb"), &remote.options(), false).map(|_| ()).unwrap_err();
    assert!(error.is_unsupported() && error.to_string().contains("--salvage"), "{error}");

    let here = remote.folder.path().join("cut.nc");
    let field = open(remote.local("x.h5")).unwrap();
    convert(&field, &here, Format::NETCDF3, &ConvertOptions::default(), &Progress::default()).unwrap();
    let whole = std::fs::read(&here).unwrap();
    for path in [remote.local("cut.nc"), here.clone()] {
        std::fs::write(path, &whole[..whole.len() - 40_000]).unwrap();
    }
    let save = |from: &Path, to: &Path| {
        salvage(from, to, None, &remote.options(), &remote.convert_options(), &Progress::default()).unwrap()
    };
    let here = save(&here, &remote.folder.path().join("saved.h5"));
    let there = save(&url("cut.nc"), &url("saved.h5"));
    assert!(!here.lost.is_empty());
    let places = |lost: &[hyperslab::salvage::Lost]| -> Vec<_> {
        lost.iter().map(|own| (own.node.clone(), own.chunk.clone(), own.positions.clone())).collect()
    };
    assert_eq!(places(&there.lost), places(&here.lost));
    let saved = open(remote.folder.path().join("saved.h5")).unwrap();
    check_same(&open(remote.local("saved.h5")).unwrap(), &saved, "saved.h5");
    // A directory store is salvaged from the bucket as well.
    assert!(save(&url("x.zarr"), &url("saved.zarr")).lost.is_empty());
    check_same(
        &open(remote.local("saved.zarr")).unwrap(),
        &open(remote.local("x.zarr")).unwrap(),
        "saved.zarr",
    );
}

#[test]
fn records_and_references_are_kept_in_a_bucket() {
    let remote = Remote::new();
    let options = remote.options();
    let store = open_with(url("x.h5"), &options).unwrap();
    let record = Record::of(&store).unwrap();
    let write = |path: &Path, _: bool| record.write(path);
    write_at(&url("x.record.json"), true, &options, &Progress::default(), write).unwrap();
    assert_eq!(Record::read_at(&url("x.record.json"), &options).unwrap(), record);
    assert!(Record::read_at(&url("none.json"), &options).unwrap_err().is_not_found());
    for name in ["refs.json", "refs.parq"] {
        for replace in [false, true] {
            let mut how = Options::new(&store);
            how.url = "x.h5".into();
            let write = |path: &Path, replace: bool| references::write(&store, &how, path, replace);
            write_at(&url(name), replace, &options, &Progress::default(), write).unwrap();
            let found = open_with(url(name), &options).unwrap();
            assert!(found.verify(Depth::Deep).unwrap().ok(), "{name}");
            assert_eq!(super::read(&found, "[3]").unwrap(), super::read(&store, "[3]").unwrap(), "{name}");
            remote.check_clean();
        }
    }
}

#[test]
fn rows_are_added_to_a_table_in_a_bucket() {
    let remote = Remote::new();
    let csv = |name: &str, text: &str| {
        let path = remote.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let (first, second) = (csv("1.csv", "id,v\n1,0.5\n2,0.75\n"), csv("2.csv", "id,v\n3,1.5\n4,2.5\n"));
    let table = TableOptions::default().with_dimensions(vec!["id".to_owned()]);
    let new = remote.convert_options().with_table(table);
    let add = remote.convert_options().with_append(true);
    let run = |source: &Path, options: &ConvertOptions| {
        convert(&open(source).unwrap(), &url("t.tiledb"), Format::TILEDB, options, &Progress::default())
    };
    run(&first, &new).unwrap();
    run(&second, &add).unwrap();
    let count = || open(remote.local("t.tiledb")).unwrap().table("/").unwrap().inner().rows().unwrap();
    assert_eq!(count(), 4);
    remote.check_clean();
    // A fault leaves the old rows or all rows.
    let third = csv("3.csv", "id,v\n5,1.5\n");
    let (_, requests, _) = remote.count(|| run(&third, &add).unwrap());
    for number in 0..requests as u64 {
        let before = count();
        let more = csv("more.csv", &format!("id,v\n{},1.5\n", 100 + number));
        remote.server.behave(Behaviour::fault_at(number, WireFault::Error(403, "AccessDenied")));
        let added = run(&more, &add).is_ok();
        remote.server.behave(Behaviour::default());
        assert_eq!(count(), before + u64::from(added), "at {number}");
        for left in remote.objects_with_content(".t.tiledb") {
            std::fs::remove_file(left.0).unwrap();
        }
    }
}
