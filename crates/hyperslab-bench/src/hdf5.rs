//! HDF5 files written by libhdf5: large reads, many small chunks, many small datasets, compared with h5py and the
//! Rust crates that read HDF5.

mod contender;
#[cfg(feature = "crates")]
mod crates;
#[cfg(feature = "crates")]
mod crates_write;
mod ours;

use std::io::Write;
use std::path::{Path, PathBuf};

use contender::Told;

use crate::data;
use crate::harness::{Bench, Outcome, say};
use crate::memory::Watch;
use crate::peers;

/// The fields: the case, and the case in `peers.py` that creates the file.
const FIELDS: [(&str, &str); 3] =
    [("hdf5 raw", "hdf5_raw"), ("hdf5 shuffle gzip-4", "hdf5_gzip"), ("hdf5 shuffle zstd-3", "hdf5_zstd")];

/// The operations on a field.
const FIELD_CASES: [(&str, &str); 3] =
    [("full read, new buffer", "full"), ("full read, reused buffer", "into"), ("100 boxes of 32³", "boxes")];

/// 200,000 chunks of 16 int32 in an extensible array. Every run opens the file again.
const CHUNK_CASES: [(&str, &str); 3] = [
    ("hdf5 200,000 chunks: open, first element", "first"),
    ("hdf5 200,000 chunks: open, all of it", "all"),
    ("hdf5 200,000 chunks: open, list their references", "references"),
];

/// 100,000 small datasets in one group. Every run opens the file again.
const NAME_CASES: [(&str, &str); 2] = [("open, read one by name", "one"), ("open, list all names", "names")];

/// The first argument of a contender's process.
pub(crate) const CONTENDER: &str = "hdf5-contender";

pub(crate) fn run(bench: &mut Bench) -> Outcome {
    fields(bench)?;
    many_chunks(bench)?;
    for (form, make) in [("old group", "make_names_old"), ("new group", "make_names_new")] {
        many_datasets(bench, form, make)?;
    }
    Ok(())
}

fn fields(bench: &mut Bench) -> Outcome {
    let bytes = bench.bytes;
    for (field, created_once) in FIELDS {
        for (what, case) in FIELD_CASES {
            let line = format!("{field} {what}");
            if !bench.wants(&line) {
                continue;
            }
            let source = bench.file("field.npy", |path| data::write_npy(bytes, path))?;
            let file = bench.file(created_once, |path| {
                peers::make_from(bench, &format!("make_{created_once}"), &source, path)
            })?;
            compare(bench, &line, case, &file)?;
        }
    }
    Ok(())
}

fn many_chunks(bench: &mut Bench) -> Outcome {
    for (line, case) in CHUNK_CASES {
        if bench.wants(line) {
            let file = created_once(bench, "hdf5_many_chunks", "make_many_chunks")?;
            compare(bench, line, case, &file)?;
        }
    }
    Ok(())
}

fn many_datasets(bench: &mut Bench, form: &str, make: &str) -> Outcome {
    for (what, case) in NAME_CASES {
        let line = format!("hdf5 100,000 datasets in an {form}: {what}").replace("an new", "a new");
        if bench.wants(&line) {
            let file = created_once(bench, &make.replace("make", "hdf5"), make)?;
            compare(bench, &line, case, &file)?;
        }
    }
    Ok(())
}

/// A file that is created once and kept. Its size does not depend on the field's.
fn created_once(bench: &Bench, name: &str, case: &str) -> Outcome<PathBuf> {
    let path = bench.files.join(name);
    if !path.exists() {
        say(&format!("making {}", path.display()));
        contender::make(bench, case, &path)?;
    }
    Ok(path)
}

/// Runs all contenders on the same case, each in its own process. The note names those that do not support it.
fn compare(bench: &mut Bench, line: &str, case: &str, file: &Path) -> Outcome {
    let (mut seconds, mut notes) = (Vec::new(), Vec::new());
    for contender in contender::all(bench) {
        match contender.run(case, file)? {
            Told::Time { seconds: time, peak } => {
                if case == "all" {
                    notes.push(format!("{} {} MiB", contender.name, peak >> 20));
                }
                seconds.push((contender.name, time));
            }
            Told::Cannot(why) => notes.push(format!("{}: {why}", contender.name)),
        }
    }
    bench.line(line, seconds, &notes.join("; "));
    Ok(())
}

/// Times of the Rust crates that write the field in `source`, and notes about them.
pub(crate) fn writers(bench: &Bench, case: &str, source: &Path) -> Outcome<(Vec<(String, f64)>, String)> {
    let (mut seconds, mut notes) = (Vec::new(), String::new());
    for contender in contender::writers(bench) {
        match contender.run(case, source)? {
            Told::Time { seconds: time, peak } => {
                notes += &format!("; {} {} MiB", contender.name, peak >> 20);
                seconds.push((contender.name, time));
            }
            Told::Cannot(why) => notes += &format!("; {}: {why}", contender.name),
        }
    }
    Ok((seconds, notes))
}

/// The contender's process: `hdf5-contender CRATE CASE FILE` prints the median seconds and the peak of its private
/// memory in kibibytes.
pub(crate) fn serve(arguments: &[String]) -> Outcome {
    let [name, case, file] = arguments else { return Err("a contender: CRATE CASE FILE".into()) };
    let file = Path::new(file);
    let watch = Watch::start();
    let seconds = match name.as_str() {
        "hyperslab" => ours::run(case, file),
        #[cfg(feature = "crates")]
        name => crates::run(name, case, file),
        #[cfg(not(feature = "crates"))]
        name => Err(format!("{name} was not built").into()),
    }?;
    let peak = watch.peak().unwrap_or(0);
    writeln!(std::io::stdout(), "{seconds} {}", peak >> 10)?;
    Ok(())
}
