//! Create a store with a group, attributes and a compressed array, chunk by chunk, and convert it.
//!
//! `cargo run --example write -- FOLDER`

use std::path::Path;

use hyperslab::convert::{ConvertOptions, Progress, convert};
use hyperslab::{
    ArraySpec, Attributes, CreateOptions, DType, Elements, Filter, Format, Grid, Result, create, open,
};

/// Writes an array of 4 × 6 numbers in chunks of 2 × 3. Nothing is visible before the sink is committed.
fn write(path: &Path) -> Result<()> {
    let mut sink = create(path, Format::HDF5, &CreateOptions::default())?;
    let mut attributes = Attributes::new();
    attributes.set("title", "an example");
    sink.group("/", &attributes)?;
    let spec = ArraySpec::new(DType::Float32, Grid::new(&[4, 6], &[2, 3])?)
        .with_filters([Filter::new("gzip").with("level", 4)]);
    let array = sink.array("/t", &spec)?;
    let grid = array.grid().clone();
    for number in 0..grid.chunks().unwrap_or(0) {
        let chunk = grid.coord(number);
        let cells = grid.region(&chunk).cells().unwrap_or(0);
        let values: Vec<u8> = (0..cells).flat_map(|cell| (cell as f32).to_ne_bytes()).collect();
        // Encoding is separate from writing, so that chunks can be encoded on several threads.
        let encoded = array.encode(&chunk, &Elements::fixed(values))?;
        array.write(&chunk, encoded)?;
    }
    drop(array);
    sink.commit()
}

fn run(folder: &Path) -> Result<()> {
    let (hdf5, zarr) = (folder.join("example.h5"), folder.join("example.zarr"));
    write(&hdf5)?;
    let report =
        convert(&open(&hdf5)?, &zarr, Format::ZARR, &ConvertOptions::default(), &Progress::default())?;
    println!("{} array, {} bytes; {} things changed", report.arrays, report.bytes, report.losses.len());
    Ok(())
}

fn main() -> Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    run(Path::new(&folder))
}

#[test]
fn runs() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    run(folder.path())?;
    let sum: f32 = open(folder.path().join("example.zarr"))?
        .array("/t")?
        .read_vec::<f32>(&hyperslab::Selection::all())?
        .iter()
        .sum();
    assert_eq!(sum, 4.0 * 15.0);
    Ok(())
}
