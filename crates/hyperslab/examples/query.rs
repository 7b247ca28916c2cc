//! Reduce an array that may be larger than memory, over some of its axes.
//!
//! `cargo run --example query -- climate.nc /temperature`

use hyperslab::query::{Operation, Query};
use hyperslab::{Result, Values};

/// The mean over the first axis. Missing values are left out by the file's conventions.
fn mean(path: &str, node: &str) -> Result<Values> {
    let array = hyperslab::open(path)?.array(node)?.decoded()?;
    let query = Query::new(Operation::Mean).over([0]);
    query.run(&array)?.values()
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, node] = arguments.as_slice() else {
        return Err(hyperslab::Error::invalid("usage: query PATH NODE"));
    };
    let means = mean(path, node)?;
    println!("{} means of shape {:?}", means.dtype, means.shape);
    Ok(())
}

#[test]
fn runs() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("x.npy");
    let values = hyperslab::Values::new(
        hyperslab::DType::UInt8,
        &[2, 2],
        hyperslab::Elements::fixed(vec![1, 2, 3, 4]),
    )?;
    hyperslab::export::write_npy(&values, &mut std::fs::File::create(&path)?)?;
    assert_eq!(mean(&path.display().to_string(), "/")?.to_vec::<f64>()?, [2.0, 3.0]);
    Ok(())
}
