//! Open a store of any format, list its contents and read a slice.
//!
//! `cargo run --example read -- climate.nc /temperature '[0, 10:20]'`

use hyperslab::{Result, Selection};

fn show(path: &str, node: &str, selection: &str) -> Result<()> {
    let store = hyperslab::open(path)?;
    println!("{path} is {}", store.format());
    for node in &store.catalog()?.nodes {
        println!("  {}", node.path);
    }
    let array = store.array(node)?;
    let values = array.read(&selection.parse::<Selection>()?)?;
    println!("{node} {selection}: {} of shape {:?}", values.dtype, values.shape);
    Ok(())
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [path, node, selection] => show(path, node, selection),
        _ => Err(hyperslab::Error::invalid("usage: read PATH NODE SELECTION")),
    }
}

#[test]
fn runs() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("x.npy");
    let values =
        hyperslab::Values::new(hyperslab::DType::UInt8, &[3], hyperslab::Elements::fixed(vec![1, 2, 3]))?;
    hyperslab::export::write_npy(&values, &mut std::fs::File::create(&path)?)?;
    show(&path.display().to_string(), "/", "[1:]")?;
    // A typed read rejects elements of another type instead of misreading their bytes.
    let array = hyperslab::open(&path)?.array("/")?;
    assert_eq!(array.read_vec::<u8>(&Selection::all())?, [1, 2, 3]);
    assert!(array.read_vec::<i8>(&Selection::all()).is_err());
    Ok(())
}
