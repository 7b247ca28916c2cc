//! Replacing a target: a store may replace another store; anything else is kept, whatever the options.
#![cfg(all(feature = "zarr", feature = "tiledb", feature = "tet", feature = "hdf5", feature = "zvf"))]

use std::path::Path;

use hyperslab::convert::{ConvertOptions, Progress, convert, convert_to_rows};
use hyperslab::driver::StoreForm;
use hyperslab::{ArraySpec, CreateOptions, DType, Elements, Format, Grid, Result, create, open};

fn write(path: &Path, format: Format, replace: bool) -> Result<()> {
    let options = CreateOptions::default().with_replace(replace);
    let mut sink = create(path, format, &options)?;
    let spec = ArraySpec::new(DType::UInt8, Grid::new(&[3], &[3])?);
    let array = sink.array(if format == Format::NPY { "/" } else { "/a" }, &spec)?;
    let chunk = [0].as_slice().into();
    array.write(&chunk, array.encode(&chunk, &Elements::fixed(vec![1, 2, 3]))?)?;
    sink.commit()
}

const WRITTEN: [Format; 6] =
    [Format::TET, Format::HDF5, Format::TILEDB, Format::ZARR, Format::NPY, Format::NPZ];

#[test]
fn foreign_folders_and_files_are_kept() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let documents = folder.path().join("documents");
    std::fs::create_dir_all(documents.join("letters")).unwrap();
    std::fs::write(documents.join("letters/first.txt"), "dear").unwrap();
    let (text, archive) = (folder.path().join("notes.txt"), folder.path().join("report.docx"));
    std::fs::write(&text, "notes").unwrap();
    // An empty zip archive, because documents of other programs are zip archives.
    std::fs::write(&archive, [&b"PK\x05\x06"[..], &[0; 18]].concat()).unwrap();
    for format in WRITTEN {
        for kept in [&documents, &text, &archive] {
            let refused = write(kept, format, true).unwrap_err().to_string();
            assert!(refused.contains("choose another target"), "{format:?}: {refused}");
        }
    }
    let source = folder.path().join("source.npy");
    write(&source, Format::NPY, false)?;
    let options = ConvertOptions::default().with_replace(true);
    for format in WRITTEN.into_iter().chain([Format::ZVF]) {
        assert!(convert(&open(&source)?, &documents, format, &options, &Progress::default()).is_err());
    }
    let rows = folder.path().join("rows.csv");
    std::fs::create_dir(&rows).unwrap();
    assert!(convert_to_rows(&open(&source)?, &rows, &options, &Progress::default()).is_err());
    assert_eq!(std::fs::read(documents.join("letters/first.txt")).unwrap(), b"dear");
    assert_eq!(std::fs::read(&text).unwrap(), b"notes");
    assert!(archive.is_file() && rows.is_dir());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 5, "nothing is left behind");
    Ok(())
}

#[test]
fn stores_and_empty_targets_are_replaced() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    for old in WRITTEN {
        for new in WRITTEN {
            let target = folder.path().join(format!("{}-{}", old.name(), new.name()));
            write(&target, old, false)?;
            let into_file = target.is_dir() && new.info().created_form() == StoreForm::File;
            match write(&target, new, true) {
                Ok(()) => assert_eq!(open(&target)?.format(), new.name()),
                Err(error) => assert!(into_file, "{old:?} by {new:?}: {error}"),
            }
            assert_eq!(open(&target)?.format(), if into_file { old.name() } else { new.name() });
        }
    }
    for format in WRITTEN {
        let target = folder.path().join(format!("empty-{}", format.name()));
        if format.info().created_form() == StoreForm::Directory {
            std::fs::create_dir(&target).unwrap();
        } else {
            std::fs::write(&target, "").unwrap();
        }
        write(&target, format, true)?;
        assert_eq!(open(&target)?.format(), format.name());
    }
    let (source, rows) = (folder.path().join("source.npy"), folder.path().join("rows.csv"));
    write(&source, Format::NPY, false)?;
    let options = ConvertOptions::default().with_replace(true);
    for _ in 0..2 {
        convert_to_rows(&open(&source)?, &rows, &options, &Progress::default())?;
    }
    Ok(())
}

/// A link is neither replaced nor followed, because its target was not named.
#[test]
#[cfg(unix)]
fn links_are_kept() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    for format in WRITTEN {
        let store = folder.path().join(format!("store-{}", format.name()));
        write(&store, format, false)?;
        let link = folder.path().join(format!("link-{}", format.name()));
        std::os::unix::fs::symlink(&store, &link).unwrap();
        let refused = write(&link, format, true).unwrap_err().to_string();
        assert!(refused.contains("symbolic link"), "{refused}");
        assert!(link.is_symlink());
        assert_eq!(open(&store)?.format(), format.name());
    }
    Ok(())
}

/// Replacing a target that contains the source would remove the source.
#[test]
fn a_store_above_the_source_is_kept() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("target");
    write(&target, Format::ZARR, false)?;
    let source = target.join("source.npy");
    write(&source, Format::NPY, false)?;
    let options = ConvertOptions::default().with_replace(true);
    assert!(convert(&open(&source)?, &target, Format::ZARR, &options, &Progress::default()).is_err());
    assert!(source.exists());
    Ok(())
}
