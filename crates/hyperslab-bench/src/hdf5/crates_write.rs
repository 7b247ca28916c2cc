//! The Rust crates that write HDF5: the field from memory to a new file.

use std::path::Path;

use crate::data::CHUNK;
use crate::harness::{Outcome, median};

/// The field's values and its shape.
fn field(source: &Path) -> Outcome<(Vec<f32>, Vec<u64>)> {
    let reader = hyperslab::open(source)?.array("/")?;
    let values = reader.read(&hyperslab::Selection::all())?;
    let cells = values.as_slice::<f32>().ok_or("a field of float32")?.to_vec();
    Ok((cells, reader.schema().shape().to_vec()))
}

/// The median time of writing the field in `source`.
pub(super) fn run(name: &str, case: &str, source: &Path) -> Outcome<f64> {
    let (cells, shape) = field(source)?;
    let target = source.with_extension(format!("{name}.h5"));
    let seconds = median(|| match name {
        "rust-hdf5" => rust_hdf5(case, &cells, &shape, &target),
        "hdf5-pure" => hdf5_pure(case, &cells, &shape, &target),
        _ => Err("has no writing".into()),
    });
    let _ = std::fs::remove_file(&target);
    seconds
}

fn rust_hdf5(case: &str, cells: &[f32], shape: &[u64], target: &Path) -> Outcome {
    let file = rust_hdf5::H5File::create(target)?;
    let extents: Vec<usize> = shape.iter().map(|extent| *extent as usize).collect();
    let chunk = CHUNK.map(|extent| extent as usize);
    let dataset = file.new_dataset::<f32>().shape(&extents).chunk(&chunk);
    let dataset = match case {
        "write_raw" => dataset,
        "write_gzip" => dataset.shuffle_deflate(4),
        // Its zstd pipeline has no shuffle.
        _ => dataset.zstd(3),
    };
    dataset.create("x")?.write_raw(cells)?;
    Ok(file.close()?)
}

fn hdf5_pure(case: &str, cells: &[f32], shape: &[u64], target: &Path) -> Outcome {
    let mut builder = hdf5_pure::FileBuilder::new();
    let dataset = builder.create_dataset("x");
    dataset.with_f32_data(cells).with_shape(shape).with_chunks(&CHUNK);
    match case {
        "write_raw" => {}
        "write_gzip" => {
            dataset.with_shuffle().with_deflate(4);
        }
        _ => return Err("has no zstd".into()),
    }
    Ok(builder.write(target)?)
}
