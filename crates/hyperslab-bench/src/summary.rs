//! The table of the README: one row per common task, compared with the usual tool.

use std::fmt::Write;
use std::path::Path;

use crate::harness::Outcome;
use crate::results::{Line, time};

/// A common task, the case that measures it, and the peer.
const HEADLINES: &[(&str, &str, &str)] = &[
    ("HDF5, gzip: read all of it", "hdf5 shuffle gzip-4 full read, new buffer", "h5py"),
    ("HDF5, 200,000 chunks: open, one element", "hdf5 200,000 chunks: open, first element", "h5py"),
    ("HDF5, gzip: write", "hdf5 write shuffle gzip-4", "h5py"),
    ("HDF5, gzip: mean of all values", "query hdf5 compressed mean", "h5py"),
    ("Zarr, zstd: read all of it", "zarr zstd-3 full read", "zarr-python"),
    ("Zarr, sharded: 100 boxes of 32³", "zarr sharded raw 100 boxes of 32³", "tensorstore"),
    ("TileDB, zstd: 100 boxes of 32³", "tiledb zstd-3 100 boxes of 32³", "tiledb-py"),
    ("TileDB, sparse: 100 boxes of 5M points", "tiledb sparse 5M points 100 boxes", "tiledb-py"),
    ("Zarr Vectors: 100 boxes of 2M points", "zvf 100 boxes, 2 million points, zstd", "zarr-vectors"),
    ("`.tet`, zstd: read all of it, in Python", "python tet compressed full", "tet-py"),
    ("HDF5 to Zarr, recompressed", "convert hdf5 shuffle gzip-4 to zarr zstd-3", "gdalmdimtranslate"),
];

/// The markers around the table in the README.
const START: &str = "<!-- bench: written by `cargo xtask bench` -->";
const END: &str = "<!-- /bench -->";

/// The table of headlines. Cases that were never measured are left out.
pub(crate) fn table(lines: &[Line]) -> Outcome<String> {
    let mut text =
        String::from("| 1 GiB unless named, two cores | ours | peer | ratio |\n|---|---|---|---|\n");
    for (what, case, peer) in HEADLINES {
        let Some(line) = lines.iter().find(|line| line.case == *case) else { continue };
        let Some(seconds) = line.seconds.get(*peer) else { continue };
        let ratio = seconds / line.ours();
        writeln!(text, "| {what} | {} | {peer} {} | **{ratio:.1}×** |", time(line.ours()), time(*seconds))?;
    }
    Ok(text)
}

/// The page with its table replaced; unchanged if it has no markers.
pub(crate) fn replaced(page: &str, table: &str) -> String {
    let found = page.split_once(START).and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
    match found {
        Some((before, after)) => format!("{before}{START}\n{table}{END}{after}"),
        None => page.to_owned(),
    }
}

/// Writes the table to the README.
pub(crate) fn write(lines: &[Line], page: &Path) -> Outcome {
    let text = std::fs::read_to_string(page)?;
    std::fs::write(page, replaced(&text, &table(lines)?))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Results;

    #[test]
    fn the_readme_has_the_measured_figures() -> Outcome {
        let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let results = Results::open(&project.join("bench"))?;
        let page = std::fs::read_to_string(project.join("README.md"))?;
        let table = table(&results.lines)?;
        assert_eq!(table.lines().count(), HEADLINES.len() + 2, "a headline was never measured");
        assert!(page.contains(START), "the front page has no place for the table");
        assert_eq!(replaced(&page, &table), page);
        Ok(())
    }

    #[test]
    fn only_the_table_changes() {
        let page = format!("a\n{START}\nold\n{END}\nb\n");
        assert_eq!(replaced(&page, "new\n"), format!("a\n{START}\nnew\n{END}\nb\n"));
        assert_eq!(replaced("a", "new"), "a");
    }
}
