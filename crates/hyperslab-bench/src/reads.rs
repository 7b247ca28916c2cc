//! HDF5 and TileDB files that their own libraries wrote: full reads and boxes, against those libraries.

use std::hint::black_box;
use std::path::Path;

use hyperslab::{ArrayReader, Buffer, Node, Region, Selection};

use crate::data::{self, BOX};
use crate::harness::{Bench, Outcome, timed};
use crate::peers;

/// What is read: the name of the line, of the case in `peers.py` and of the peer.
const FILES: [(&str, &str, &str); 5] = [
    ("hdf5 raw", "hdf5_raw", "h5py"),
    ("hdf5 shuffle gzip-4", "hdf5_gzip", "h5py"),
    ("hdf5 shuffle zstd-3", "hdf5_zstd", "h5py"),
    ("tiledb raw", "tiledb_raw", "tiledb-py"),
    ("tiledb zstd-3", "tiledb_zstd", "tiledb-py"),
];

pub(crate) fn run(bench: &mut Bench) -> Outcome {
    let bytes = bench.bytes;
    for (line, case, peer) in FILES {
        if !bench.wants(line) {
            continue;
        }
        let source = bench.file("field.npy", |path| data::write_npy(bytes, path))?;
        let file =
            bench.file(case, |path| peers::make_from(bench, &format!("make_{case}"), &source, path))?;
        full(bench, line, case, peer, &file)?;
        boxes(bench, line, case, peer, &file)?;
    }
    Ok(())
}

/// The first array of a file.
pub(crate) fn array(path: &Path) -> Outcome<ArrayReader> {
    let store = hyperslab::open(path)?;
    let mut found = None;
    store.walk(&mut |_, node| {
        if let (Ok(Node::Array(array)), None) = (node, &found) {
            found = Some(array);
        }
        Ok(())
    })?;
    Ok(store.reader(found.ok_or("no array")?))
}

/// The same boxes for everybody.
pub(crate) fn box_selections(reader: &ArrayReader) -> Outcome<Vec<Selection>> {
    let boxes = data::boxes(reader.schema().shape());
    Ok(boxes
        .iter()
        .map(|start| Selection::region(&Region::new(start, &[BOX; 3])))
        .collect::<Result<_, _>>()?)
}

/// Into a buffer that is new each time, and into one that is reused.
fn full(bench: &mut Bench, line: &str, case: &str, peer: &str, file: &Path) -> Outcome {
    let reader = array(file)?;
    let all = Selection::all();
    let ours = timed("hyperslab", || {
        black_box(reader.read(&all)?);
        Ok(())
    })?;
    let theirs = peers::timed(bench, peer, &format!("{}_full", family(case)), file)?;
    bench.line(&format!("{line} full read, new buffer"), [ours].into_iter().chain(theirs), "");
    let mut reused = Buffer::zeroed(usize::try_from(bench.bytes)?)?;
    let ours = timed("hyperslab", || Ok(reader.read_into(&all, reused.as_mut_slice())?))?;
    // Of the peers only h5py was given a buffer to reuse here: the others have no ratio on this line.
    let theirs = match family(case) {
        "hdf5" => peers::timed(bench, peer, "hdf5_into", file)?,
        _ => None,
    };
    bench.line(&format!("{line} full read, reused buffer"), [ours].into_iter().chain(theirs), "");
    Ok(())
}

fn boxes(bench: &mut Bench, line: &str, case: &str, peer: &str, file: &Path) -> Outcome {
    let reader = array(file)?;
    let selections = box_selections(&reader)?;
    let ours = timed("hyperslab", || {
        for selection in &selections {
            black_box(reader.read(selection)?);
        }
        Ok(())
    })?;
    let theirs = peers::timed(bench, peer, &format!("{}_boxes", family(case)), file)?;
    bench.line(&format!("{line} 100 boxes of 32³"), [ours].into_iter().chain(theirs), "");
    Ok(())
}

/// `hdf5` of `hdf5_gzip`.
fn family(case: &str) -> &str {
    case.split('_').next().unwrap_or(case)
}
