use std::io::Write;
use std::path::PathBuf;

use super::*;
use crate::Result;

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn is_leftover(name: &str, target: &str) -> bool {
    let rest = name.strip_prefix(&format!(".{target}.")).and_then(|rest| rest.strip_suffix(".part"));
    rest.is_some_and(|digits| digits.len() == 16)
}

const NEW: StageOptions = StageOptions { replace: false, sync: false };
const REPLACE: StageOptions = StageOptions { replace: true, sync: false };
const SYNC: StageOptions = StageOptions { replace: false, sync: true };

#[test]
fn a_file_appears_whole_or_not_at_all() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("x");
    drop(StagedFile::create(&target, NEW)?);
    assert!(names(folder.path()).is_empty());
    let staged = StagedFile::create(&target, NEW)?;
    staged.file().write_all(b"new").unwrap();
    assert!(is_leftover(&names(folder.path())[0], "x"));
    staged.publish()?;
    assert_eq!(std::fs::read(&target).unwrap(), b"new");
    assert!(matches!(StagedFile::create(&target, NEW), Err(Error::Exists { .. })));
    StagedFile::create(&target, REPLACE)?.publish()?;
    assert_eq!(std::fs::read(&target).unwrap(), b"");
    assert_eq!(names(folder.path()), ["x"]);
    Ok(())
}

#[test]
fn a_target_that_appears_meanwhile_is_not_replaced() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let (file, store) = (folder.path().join("file"), folder.path().join("store"));
    let staged_file = StagedFile::create(&file, NEW)?;
    let staged_folder = StagedFolder::create(&store, NEW)?;
    std::fs::write(&file, "other").unwrap();
    std::fs::create_dir(&store).unwrap();
    let error = staged_file.publish().unwrap_err();
    assert_eq!(error.to_string(), format!("{} already exists", file.display()));
    assert!(matches!(staged_folder.publish(), Err(Error::Exists { .. })));
    assert_eq!(std::fs::read(&file).unwrap(), b"other");
    assert_eq!(names(folder.path()), ["file", "store"]);
    Ok(())
}

#[test]
fn a_folder_is_replaced_by_one_exchange() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("store");
    let first = StagedFolder::create(&target, NEW)?;
    first.writer().put("a/old", b"old")?;
    first.publish()?;
    assert!(matches!(StagedFolder::create(&target, NEW), Err(Error::Exists { .. })));
    let second = StagedFolder::create(&target, REPLACE)?;
    second.writer().put_new("new", &[b"n", b"ew"])?;
    second.scratch().put("aside", b"not published")?;
    assert!(target.join("a/old").exists());
    second.publish()?;
    assert_eq!(names(&target), ["new"]);
    assert_eq!(names(folder.path()), ["store"]);
    // A folder may replace a file, too.
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    StagedFolder::create(&file, REPLACE)?.publish()?;
    assert!(file.is_dir());
    assert_eq!(names(folder.path()), ["file", "store"]);
    Ok(())
}

#[test]
fn objects_are_written_by_key() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let staged = StagedFolder::create(&folder.path().join("store"), NEW)?;
    let writer = staged.writer().below("group")?;
    writer.put("a", b"1")?;
    writer.put("a", b"2")?;
    assert_eq!(writer.read("a")?, Some(b"2".to_vec()));
    assert_eq!(staged.writer().read("group/a")?, Some(b"2".to_vec()));
    assert_eq!(writer.read("a/x")?, None);
    writer.put_new("c/0/1", &[b"12", b"3"])?;
    assert!(writer.put_new("c/0/1", &[b"4"]).unwrap_err().to_string().contains("was already written"));
    writer.write_at("c/0/1", 1, &[b"x", b"yz"])?;
    assert_eq!(writer.read("c/0/1")?, Some(b"1xyz".to_vec()));
    staged.scratch().create("part").map(|mut file| file.write_all(b"p").unwrap())?;
    writer.take("d/part", &staged.scratch(), "part")?;
    assert_eq!(writer.read("d/part")?, Some(b"p".to_vec()));
    writer.remove("d")?;
    assert_eq!(writer.read("d/part")?, None);
    for key in ["../x", "/x", "a/../../x"] {
        assert!(writer.put(key, b"").is_err() && writer.create(key).is_err(), "{key}");
        assert!(writer.below(key).is_err() && writer.read(key).is_err(), "{key}");
    }
    staged.publish()?;
    // A writer whose stage is gone creates nothing.
    assert!(writer.put("late", b"").unwrap_err().is_not_found());
    assert!(writer.put("late/later", b"").unwrap_err().is_not_found());
    assert_eq!(names(folder.path()), ["store"]);
    Ok(())
}

fn old_store(folder: &Path) -> PathBuf {
    let store = folder.join("store");
    std::fs::create_dir_all(store.join("data")).unwrap();
    std::fs::write(store.join("data/0"), "old").unwrap();
    std::fs::write(store.join("index"), "old").unwrap();
    store
}

fn staged_change(store: &Path) -> Result<StagedChange> {
    let change = StagedChange::open(store)?;
    let writer = change.writer();
    for (key, bytes) in [("data/0", "larger"), ("data/1", "new"), ("more/deep/2", "new"), ("index", "new")] {
        writer.put(key, bytes.as_bytes())?;
    }
    writer.put("commits/3", b"")?;
    Ok(change)
}

#[test]
fn a_change_is_invisible_until_it_is_published() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let store = old_store(folder.path());
    drop(staged_change(&store)?);
    assert_eq!(names(folder.path()), ["store"]);
    let change = staged_change(&store)?;
    assert_eq!(names(&store), ["data", "index"]);
    assert_eq!(std::fs::read(store.join("data/0")).unwrap(), b"old");
    change.publish(&["commits/3", "index"])?;
    assert_eq!(names(&store), ["commits", "data", "index", "more"]);
    assert_eq!(std::fs::read(store.join("data/0")).unwrap(), b"larger");
    assert_eq!(std::fs::read(store.join("index")).unwrap(), b"new");
    assert!(store.join("more/deep/2").exists() && store.join("commits/3").exists());
    assert_eq!(names(folder.path()), ["store"]);
    Ok(())
}

#[test]
fn single_objects_are_placed_and_removed() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let store = old_store(folder.path());
    let ((), trace) = Trace::of(|| {
        let change = staged_change(&store).unwrap();
        change.place("commits/3").unwrap();
        change.place("index").unwrap();
        change.remove(["data/0", "missing", "missing/below"]).unwrap();
        assert!(change.remove(["../other"]).is_err());
    });
    assert_eq!(trace.violations(true), Vec::<String>::new());
    let data = store.canonicalize().unwrap().join("data");
    assert_eq!(trace.steps.last(), Some(&Step::SyncFolder(data)));
    assert_eq!(names(&store), ["commits", "data", "index"]);
    assert!(names(&store.join("data")).is_empty());
    Ok(())
}

#[test]
fn a_new_target_costs_no_sync() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let synced = |trace: &Trace| {
        let is_sync = |step: &&Step| matches!(step, Step::Sync(_) | Step::SyncFolder(_) | Step::SyncTree(_));
        trace.steps.iter().filter(is_sync).count()
    };
    for options in [NEW, REPLACE, SYNC] {
        let target = folder.path().join(format!("file{options:?}"));
        let (done, trace) = Trace::of(|| StagedFile::create(&target, options)?.publish());
        done?;
        assert_eq!(synced(&trace), if options.sync { 2 } else { 0 });
        assert_eq!(trace.violations(options.sync), Vec::<String>::new());
        let target = folder.path().join(format!("folder{options:?}"));
        let (done, trace) = Trace::of(|| {
            let staged = StagedFolder::create(&target, options)?;
            staged.writer().put("a/b", b"1")?;
            staged.publish()
        });
        done?;
        assert_eq!(synced(&trace) > 0, options.sync);
        assert_eq!(trace.violations(options.sync), Vec::<String>::new());
    }
    Ok(())
}

#[test]
fn replacements_and_changes_are_synced_before_they_are_visible() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "old").unwrap();
    let (done, trace) = Trace::of(|| {
        let staged = StagedFile::create(&file, REPLACE)?;
        staged.write_at(b"new", 0)?;
        staged.publish()
    });
    done?;
    assert_eq!(trace.violations(false), Vec::<String>::new());
    let kinds: Vec<_> = trace.steps.iter().map(std::mem::discriminant).collect();
    let path = || PathBuf::new();
    let expected = [
        Step::Create(path()),
        Step::Write(path()),
        Step::Sync(path()),
        Step::Rename { from: path(), to: path(), replaced: true },
        Step::SyncFolder(path()),
    ];
    assert_eq!(kinds, expected.each_ref().map(std::mem::discriminant));

    let store = old_store(folder.path());
    let (done, trace) = Trace::of(|| staged_change(&store)?.publish(&["index"]));
    done?;
    assert_eq!(trace.violations(true), Vec::<String>::new());

    // A few files are synced one by one, many at once.
    for count in [1, 200] {
        let (done, trace) = Trace::of(|| {
            let staged = StagedFolder::create(&store, REPLACE)?;
            (0..count).try_for_each(|number| staged.writer().put(&format!("c/{number}"), b"1"))?;
            staged.publish()
        });
        done?;
        assert_eq!(trace.violations(false), Vec::<String>::new());
        assert!(matches!(trace.steps.last(), Some(Step::SyncFolder(own)) if own == folder.path()));
        assert_eq!(trace.steps.iter().filter(|step| matches!(step, Step::Exchange { .. })).count(), 1);
    }
    Ok(())
}

/// Checks that the checker detects violations.
#[test]
fn wrong_orders_are_noticed() {
    let rename = |replaced| Step::Rename { from: "f/.x.part".into(), to: "f/x".into(), replaced };
    let (write, sync) = (Step::Write("f/.x.part".into()), Step::Sync("f/.x.part".into()));
    let folder = Step::SyncFolder("f".into());
    let violations = |steps: &[&Step], change| {
        Trace { steps: steps.iter().map(|step| (*step).clone()).collect() }.violations(change).len()
    };
    assert_eq!(violations(&[&write, &sync, &rename(true), &folder], false), 0);
    assert_eq!(violations(&[&write, &rename(true), &sync, &folder], false), 1);
    assert_eq!(violations(&[&sync, &write, &rename(true), &folder], false), 1);
    assert_eq!(violations(&[&write, &sync, &folder, &rename(true)], false), 1);
    assert_eq!(violations(&[&write, &rename(false)], false), 0);
    assert_eq!(violations(&[&write, &rename(false)], true), 2);
    // The object that makes others visible moved before their names were durable.
    let index = Step::Rename { from: "g/.i.part".into(), to: "g/i".into(), replaced: true };
    let second = Step::SyncFolder("g".into());
    assert_eq!(violations(&[&write, &sync, &rename(false), &index, &folder, &second], true), 1);
    assert_eq!(violations(&[&write, &sync, &rename(false), &folder, &index, &second], true), 0);
}

#[test]
#[cfg(unix)]
fn permissions_are_those_of_new_files() -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    let (plain_file, plain_folder) = (folder.path().join("plain"), folder.path().join("folder"));
    std::fs::write(&plain_file, "").unwrap();
    std::fs::create_dir(&plain_folder).unwrap();
    let (file, store) = (folder.path().join("x"), folder.path().join("store"));
    StagedFile::create(&file, NEW)?.publish()?;
    let staged = StagedFolder::create(&store, NEW)?;
    staged.writer().put("a/b", b"1")?;
    staged.publish()?;
    assert_eq!((mode(&file), mode(&store.join("a/b"))), (mode(&plain_file), mode(&plain_file)));
    assert_eq!((mode(&store), mode(&store.join("a"))), (mode(&plain_folder), mode(&plain_folder)));
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
    let staged = StagedFile::create(&file, REPLACE)?;
    staged.keep_permissions();
    staged.publish()?;
    assert_eq!(mode(&file), 0o640);
    Ok(())
}

#[test]
fn long_and_odd_names_can_be_staged() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    for name in ["x".repeat(255), "ü".repeat(127), ".part".to_owned(), "a.part".to_owned()] {
        StagedFile::create(&folder.path().join(&name), NEW)?.publish()?;
        assert!(folder.path().join(&name).exists());
    }
    assert!(StagedFile::create(Path::new("/"), REPLACE).is_err());
    assert!(StagedFolder::create(&folder.path().join(".."), REPLACE).is_err());
    Ok(())
}

/// Where the process of [`a_killed_writers_leftovers_are_removed`] writes.
const CHILD: &str = "HYPERSLAB_TEST_STAGE";

/// Not a test of its own: the part that runs in the other process until it is killed.
#[test]
fn writer_that_is_killed() -> Result<()> {
    let Some(folder) = std::env::var_os(CHILD).map(PathBuf::from) else { return Ok(()) };
    let file = StagedFile::create(&folder.join("file"), NEW)?;
    file.write_at(b"half", 0)?;
    let store = StagedFolder::create(&folder.join("store"), NEW)?;
    store.writer().put("c/0", b"half")?;
    std::fs::write(folder.join("ready"), "").unwrap();
    std::thread::sleep(std::time::Duration::from_secs(60));
    Ok(())
}

#[test]
#[cfg(unix)]
fn a_killed_writers_leftovers_are_removed() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let (file, store) = (folder.path().join("file"), folder.path().join("store"));
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "storage::tests::writer_that_is_killed"])
        .env(CHILD, folder.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let start = std::time::Instant::now();
    while !folder.path().join("ready").exists() {
        assert!(start.elapsed().as_secs() < 30, "the other process did not start");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let theirs: Vec<String> = names(folder.path()).into_iter().filter(|name| name != "ready").collect();
    assert_eq!(theirs.len(), 2);
    // While it lives, its files are left alone.
    drop((StagedFile::create(&file, NEW).unwrap(), StagedFolder::create(&store, NEW).unwrap()));
    assert!(theirs.iter().all(|name| folder.path().join(name).exists()));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(theirs.iter().all(|name| folder.path().join(name).exists()));
    // Writers of other targets leave it alone, and so do similar names.
    std::fs::write(folder.path().join(".file.part"), "").unwrap();
    std::fs::write(folder.path().join(".file.x.0123456789abcdef.part"), "").unwrap();
    drop(StagedFile::create(&folder.path().join("fil"), NEW)?);
    assert!(theirs.iter().all(|name| folder.path().join(name).exists()));
    let (live_file, live_store) = (StagedFile::create(&file, NEW)?, StagedFolder::create(&store, NEW)?);
    live_store.writer().put("a", b"1")?;
    assert!(theirs.iter().all(|name| !folder.path().join(name).exists()));
    // Two writers of one process do not take each other for dead, either.
    drop((StagedFile::create(&file, NEW)?, StagedFolder::create(&store, NEW)?));
    live_file.publish()?;
    live_store.publish()?;
    let left = [".file.part", ".file.x.0123456789abcdef.part", "file", "ready", "store"];
    assert_eq!(names(folder.path()), left);
    Ok(())
}

#[test]
fn files_change_in_place() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x");
    std::fs::write(&path, "0123456789").unwrap();
    let file = LocalFile::open(&path)?;
    assert!(file.try_lock()? && !LocalFile::open(&path)?.try_lock()?);
    file.write_at(b"ab", 2)?;
    let mut read = [0; 4];
    file.read_at(&mut read, 1)?;
    assert_eq!(&read, b"1ab4");
    assert!(file.read_at(&mut read, 8).is_err());
    file.copy_to(0, 3, |piece, done| file.write_at(piece, 5 + done))?;
    assert_eq!(file.length()?, 10);
    assert_eq!(std::fs::read(&path).unwrap(), b"01ab401a89");
    LocalFile::remove(&path)?;
    LocalFile::remove(&path)?;
    assert!(!path.exists());
    Ok(())
}
