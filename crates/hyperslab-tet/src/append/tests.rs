use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use hyperslab_core::{Blob, Content, DType, Depth, Elements, FormatDriver, OpenContext, Values};

use super::*;
use crate::open_path;
use crate::verify::verify_path;
use crate::write::TetSink;
use crate::write::tests::{array_at, chunk_of, read_all, sample, write_all};

/// A file of two arrays, one with a hole. With a `reserve` of 0, payloads start directly after the index.
fn old_file(path: &Path, reserve: u64) -> Result<()> {
    let options = TetOptions { reserve, overwrite: true, ..TetOptions::default() };
    let mut sink: Box<dyn Sink> = Box::new(TetSink::create(path, options)?);
    let mut spec = ArraySpec::new(DType::Int16, Grid::new(&[5, 4], &[2, 3])?);
    spec.attributes.set("units", "K");
    write_all(sink.as_mut(), "a", &spec, &sample(&spec.dtype, spec.grid.shape()))?;
    spec.fill = Fill::Undefined;
    let holes = sink.array("g/holes", &spec)?;
    for chunk in [[0_u64, 0], [2, 1]] {
        let bytes = chunk_of(&sample(&spec.dtype, spec.grid.shape()), 2, &spec.grid, &chunk);
        let chunk = chunk.as_slice().into();
        holes.write(&chunk, holes.encode(&chunk, &Elements::fixed(bytes))?)?;
    }
    sink.commit()
}

/// Fills the holes, and adds two arrays.
fn append(path: &Path, life: Option<&Arc<AtomicU64>>) -> Result<()> {
    let mut append = TetAppend::open(path, TetOptions::default())?;
    append.target.life = life.cloned();
    if let Some(stage) = Arc::get_mut(&mut append.stage) {
        stage.disk.life = life.cloned();
    }
    let holes = append.existing("/g/holes")?;
    let bytes = sample(&DType::Int16, &[5, 4]);
    for number in (0..6).filter(|number| ![0, 5].contains(number)) {
        let chunk = holes.grid().coord(number);
        let elements = Elements::fixed(chunk_of(&bytes, 2, holes.grid(), &chunk));
        holes.write(&chunk, holes.encode(&chunk, &elements)?)?;
    }
    let mut append: Box<dyn Sink> = Box::new(append);
    let spec = ArraySpec::new(DType::Float64, Grid::new(&[30], &[7])?).with_filters([Filter::new("zstd")]);
    write_all(append.as_mut(), "g/new", &spec, &sample(&spec.dtype, &[30]))?;
    let mut raw = ArraySpec::new(DType::UInt8, Grid::new(&[9], &[4])?);
    raw.dimensions[0] = Some("x".to_owned());
    write_all(append.as_mut(), "raw", &raw, &sample(&raw.dtype, &[9]))?;
    append.commit()
}

fn bytes_of(values: &Values) -> &[u8] {
    values.elements.as_fixed().unwrap()
}

fn assert_old(store: &TetStore) {
    assert_eq!(bytes_of(&read_all(store, "/a").unwrap()), sample(&DType::Int16, &[5, 4]));
    assert_eq!(array_at(store, "/a").schema().attributes.to_json()["units"], "K");
}

/// Checks the file after the append, whether or not it was interrupted after its commit. Reading changes nothing, and gives the
/// same content as after applying.
fn assert_new(path: &Path) {
    let before = content(path);
    assert_appended(path);
    let base: Arc<dyn Blob> = Arc::new(FileBlob::open(path).unwrap());
    let completed = [false, true].map(|mapped| super::completed(&base, path, mapped).unwrap());
    assert_eq!(content(path), before);
    assert_eq!(recover(path).unwrap(), completed[0].is_some());
    assert!(!redo_path(path).exists());
    let after = std::fs::read(path).unwrap();
    for completed in completed.iter().flatten() {
        assert_eq!(completed.read_range(0..completed.len().unwrap()).unwrap(), after);
        let step = after.len() / 7 + 1;
        for start in (0..after.len()).step_by(step) {
            let end = after.len().min(start + 2 * step);
            let part = completed.read_range(start as u64..end as u64).unwrap();
            assert_eq!(part, after[start..end]);
        }
        assert!(completed.read_range(0..after.len() as u64 + 1).unwrap_err().is_corrupt());
    }
    assert_appended(path);
}

/// The bytes of the file and of its redo file.
fn content(path: &Path) -> (Vec<u8>, Option<Vec<u8>>) {
    (std::fs::read(path).unwrap(), std::fs::read(redo_path(path)).ok())
}

fn assert_appended(path: &Path) {
    let store = open_path(path).unwrap();
    assert_old(&store);
    assert_eq!(bytes_of(&read_all(&store, "/g/holes").unwrap()), sample(&DType::Int16, &[5, 4]));
    assert_eq!(bytes_of(&read_all(&store, "/g/new").unwrap()), sample(&DType::Float64, &[30]));
    assert_eq!(bytes_of(&read_all(&store, "/raw").unwrap()), sample(&DType::UInt8, &[9]));
    assert_eq!(array_at(&store, "/raw").schema().dimensions, [Some("x".to_owned())]);
    let operations: Vec<_> = store.history().iter().map(|row| row.op.as_str()).collect();
    assert_eq!(operations, ["write", "append"]);
    let report = verify_path(path, Depth::Deep).unwrap();
    assert!(report.ok, "{:#?}", report.report.findings);
    for check in ["chunk_checksums", "zone_maps"] {
        assert!(report.report.findings.iter().any(|finding| finding.check == check && finding.ok), "{check}");
    }
}

/// Dies as soon as the redo file exists.
fn commit_without_applying(path: &Path, original: &[u8]) {
    for left in (0..).step_by(64) {
        let _ = append(path, Some(&Arc::new(AtomicU64::new(left))));
        std::fs::write(path, original).unwrap();
        if redo_path(path).exists() {
            return;
        }
    }
}

fn scratch() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.tet");
    (folder, path)
}

#[test]
fn chunks_and_arrays_are_added() -> Result<()> {
    for reserve in [0, 200, 1 << 16] {
        let (_folder, path) = scratch();
        old_file(&path, reserve)?;
        let before = std::fs::read(&path).unwrap();
        let old = crate::store::open(Arc::new(hyperslab_core::MemoryBlob::new("old", before.clone())))?;
        append(&path, None)?;
        assert_new(&path);
        // With room after the index, nothing moves.
        let after = std::fs::read(&path).unwrap();
        let rows: Vec<Row> = open_path(&path)?.rows().collect();
        let kept = old.rows().filter(|row| rows.contains(row)).count();
        assert_eq!(kept, if reserve == 1 << 16 { 8 } else { 0 });
        for row in old.rows().filter(|row| rows.contains(row)) {
            let span = row.offset as usize..row.end().unwrap() as usize;
            assert_eq!(before[span.clone()], after[span]);
        }
    }
    Ok(())
}

#[test]
fn killed_at_any_byte_it_is_the_old_file_or_the_new_one() -> Result<()> {
    for reserve in [0, 1 << 16] {
        let (_folder, path) = scratch();
        old_file(&path, reserve)?;
        let original = std::fs::read(&path).unwrap();
        let whole = 1_u64 << 40;
        let life = Arc::new(AtomicU64::new(whole));
        append(&path, Some(&life))?;
        let cost = whole - life.load(Ordering::Relaxed);
        let (mut olds, mut news) = (0, 0);
        // Sample all bytes, and test every one near the end, where the head is complete and the redo file is removed.
        let stride = cost / 250 + 1;
        for left in (0..cost).filter(|left| left % stride == 0 || cost - left < 40) {
            let _ = std::fs::remove_file(redo_path(&path));
            std::fs::write(&path, &original).unwrap();
            assert!(append(&path, Some(&Arc::new(AtomicU64::new(left)))).is_err(), "{left} of {cost}");
            let is_new = open_path(&path)?.datasets().len() == 4;
            if is_new {
                news += 1;
                assert_new(&path);
            } else {
                olds += 1;
                assert_eq!(std::fs::read(&path).unwrap(), original);
                // An interrupted append can be repeated.
                if olds % 20 == 1 {
                    append(&path, None)?;
                    assert_new(&path);
                }
            }
        }
        assert!(olds > 10 && news > 10, "{olds} {news}");
    }
    Ok(())
}

/// An interrupted append is read from a read-only folder, through the driver. Only a repair completes it.
#[test]
fn opening_never_writes() -> Result<()> {
    let (folder, path) = scratch();
    old_file(&path, 0)?;
    let original = std::fs::read(&path).unwrap();
    commit_without_applying(&path, &original);
    let set_readonly = |readonly: bool| {
        for path in [redo_path(&path).as_path(), &path, folder.path()] {
            let mut permissions = std::fs::metadata(path).unwrap().permissions();
            permissions.set_readonly(readonly);
            std::fs::set_permissions(path, permissions).unwrap();
        }
    };
    set_readonly(true);
    let state = || (content(&path), std::fs::metadata(&path).unwrap().modified().unwrap());
    let before = state();
    for mapped in [false, true] {
        let blob = Content::File(Arc::new(FileBlob::open(&path)?));
        let context = OpenContext { path: Some(&path), mapped, ..OpenContext::default() };
        let store = crate::TetDriver.open(blob, &context)?;
        assert_eq!(store.children("/g")?, ["holes", "new"]);
        let mut report = hyperslab_core::Report::default();
        store.verify(Depth::Deep, &mut report)?;
        assert!(report.ok());
        assert!(report.findings.iter().any(|finding| finding.check == "pending_append"));
        assert_eq!(report.recommendations[0].code, "pending_append");
        let repairs = crate::TetDriver.repair(&path, &context, true)?;
        assert_eq!(repairs.fixes.iter().map(|fix| fix.code.as_str()).collect::<Vec<_>>(), ["pending_append"]);
    }
    assert_eq!(state(), before);
    set_readonly(false);
    crate::TetDriver.repair(&path, &OpenContext::default(), false)?;
    assert!(!redo_path(&path).exists());
    assert_appended(&path);
    Ok(())
}

#[test]
fn recovery_survives_being_killed() -> Result<()> {
    let (_folder, path) = scratch();
    old_file(&path, 0)?;
    let original = std::fs::read(&path).unwrap();
    // Kept: a redo file that was never applied.
    let saved = path.with_extension("saved");
    commit_without_applying(&path, &original);
    std::fs::copy(redo_path(&path), &saved).unwrap();
    for left in (0_u64..).step_by(97) {
        std::fs::copy(&saved, redo_path(&path)).unwrap();
        std::fs::write(&path, &original).unwrap();
        let redo = Disk::open(&redo_path(&path))?;
        let mut target = Disk::open(&path)?;
        target.life = Some(Arc::new(AtomicU64::new(left)));
        let done = apply(&redo, &redo_path(&path), &target).is_ok();
        drop(target);
        assert_new(&path);
        if done {
            return Ok(());
        }
    }
    Ok(())
}

#[test]
fn a_redo_file_of_another_target_is_left_alone() -> Result<()> {
    let (_folder, path) = scratch();
    old_file(&path, 0)?;
    let original = std::fs::read(&path).unwrap();
    commit_without_applying(&path, &original);
    // The same file with another value at its end, and one that is shorter.
    let mut other = original.clone();
    let last = other.len() - 30;
    other[last] ^= 1;
    for other in [other, original[..original.len() - 1].to_vec()] {
        std::fs::write(&path, &other).unwrap();
        let _ = open_path(&path);
        assert_eq!(std::fs::read(&path).unwrap(), other);
    }
    // Damage to the redo file itself.
    let redo = std::fs::read(redo_path(&path)).unwrap();
    for at in [redo.len() - 1, redo.len() - 60, redo.len() - 100] {
        let mut damaged = redo.clone();
        damaged[at] ^= 1;
        std::fs::write(redo_path(&path), damaged).unwrap();
        std::fs::write(&path, &original).unwrap();
        assert_old(&open_path(&path)?);
        assert_eq!(std::fs::read(&path).unwrap(), original);
    }
    std::fs::write(redo_path(&path), redo).unwrap();
    assert_new(&path);
    Ok(())
}

/// An interrupted append belongs to the file that was there: replacing the file removes the redo file too.
#[test]
fn replacing_a_file_removes_its_redo_file() -> Result<()> {
    let (_folder, path) = scratch();
    old_file(&path, 0)?;
    let original = std::fs::read(&path).unwrap();
    commit_without_applying(&path, &original);
    let replace = || -> Result<()> {
        let options = TetOptions { overwrite: true, ..TetOptions::default() };
        let mut sink: Box<dyn Sink> = Box::new(TetSink::create(&path, options)?);
        let spec = ArraySpec::new(DType::UInt32, Grid::new(&[5, 2], &[2, 2])?);
        write_all(sink.as_mut(), "only", &spec, &sample(&spec.dtype, &[5, 2]))?;
        sink.commit()
    };
    replace()?;
    assert!(!redo_path(&path).exists());
    assert_eq!(open_path(&path)?.datasets().len(), 1);
    // An unrelated file of that name stays.
    std::fs::write(redo_path(&path), "notes").unwrap();
    replace()?;
    assert_eq!(std::fs::read(redo_path(&path)).unwrap(), b"notes");
    Ok(())
}

#[test]
fn an_array_grows() -> Result<()> {
    let (_folder, path) = scratch();
    let mut sink: Box<dyn Sink> = Box::new(TetSink::create(&path, TetOptions::default())?);
    let spec = ArraySpec::new(DType::UInt32, Grid::new(&[5, 2], &[2, 2])?);
    write_all(sink.as_mut(), "t", &spec, &sample(&spec.dtype, &[5, 2]))?;
    sink.commit()?;
    let (bytes, grid) = (sample(&DType::UInt32, &[9, 2]), Grid::new(&[9, 2], &[2, 2])?);
    let write = |sink: &dyn ArraySink, rows: std::ops::Range<u64>| -> Result<()> {
        for row in rows {
            let chunk = [row, 0].as_slice().into();
            sink.write(&chunk, sink.encode(&chunk, &Elements::fixed(chunk_of(&bytes, 4, &grid, &chunk)))?)?;
        }
        Ok(())
    };
    // Row 2 was clipped by the edge: it contains 4 but not 5.
    let mut append = TetAppend::open(&path, TetOptions::default())?;
    assert!(append.grow("t", &[4, 2]).is_err());
    let array = append.grow("t", &[9, 2])?;
    assert!(append.grow("t", &[9, 2]).is_err());
    write(array.as_ref(), 3..5)?;
    assert!(write(array.as_ref(), 1..2).is_err());
    assert!(Box::new(append).commit().unwrap_err().to_string().contains("written again"));
    let mut append = TetAppend::open(&path, TetOptions::default())?;
    let array = append.grow("t", &[9, 2])?;
    write(array.as_ref(), 2..5)?;
    Box::new(append).commit()?;
    let store = open_path(&path)?;
    assert_eq!(bytes_of(&read_all(&store, "/t")?), bytes);
    assert!(verify_path(&path, Depth::Deep)?.ok);
    Ok(())
}

#[test]
fn a_second_appender_is_refused_and_leaves_nothing_behind() -> Result<()> {
    let (folder, path) = scratch();
    old_file(&path, 0)?;
    let original = std::fs::read(&path).unwrap();
    let first = TetAppend::open(&path, TetOptions::default())?;
    assert!(TetAppend::open(&path, TetOptions::default()).is_err());
    drop(first);
    let mut again = TetAppend::open(&path, TetOptions::default())?;
    let spec = ArraySpec::new(DType::UInt8, Grid::single(&[2]));
    for taken in ["a", "/g", "g/holes"] {
        assert!(again.array(taken, &spec).is_err());
    }
    drop(again);
    assert_eq!(std::fs::read(&path).unwrap(), original);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    Ok(())
}

/// Appends of single samples leave nothing behind: neither footers nor old payloads of a chunk that becomes longer.
#[test]
fn appending_single_samples_wastes_little_space() -> Result<()> {
    for rows in [1, 32] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("samples.tet");
        let (width, samples) = (1024_u64, 300_u64);
        let row = sample(&DType::Int32, &[1, width]);
        let mut sink: Box<dyn Sink> = Box::new(TetSink::create(&path, TetOptions::default())?);
        let spec = ArraySpec::new(DType::Int32, Grid::new(&[1, width], &[rows, width])?);
        write_all(sink.as_mut(), "x", &spec, &row)?;
        sink.commit()?;
        for number in 1..samples {
            let mut append: Box<dyn Sink> = Box::new(TetAppend::open(&path, TetOptions::default())?);
            let array = append.grow("/x", &[number + 1, width])?;
            let chunk = [number / rows, 0].as_slice().into();
            let elements = Elements::fixed(row.repeat((number % rows + 1) as usize));
            array.write(&chunk, array.encode(&chunk, &elements)?)?;
            append.commit()?;
        }
        let data = samples * width * 4;
        let length = std::fs::metadata(&path).unwrap().len();
        assert!(length <= data + data / 5, "{length} bytes for {data}, {rows} rows in a chunk");
        assert_eq!(bytes_of(&read_all(&open_path(&path)?, "/x")?), row.repeat(samples as usize));
        let report = verify_path(&path, Depth::Deep).unwrap();
        assert!(report.ok, "{:#?}", report.report.findings);
    }
    Ok(())
}
