use std::sync::Arc;

use hyperslab_core::Elements;

use super::*;
use crate::table::testing::{OneNode, sample};

fn field(shape: &[u64]) -> Values {
    let cells = shape.iter().product::<u64>() as u32;
    let bytes: Vec<u8> = (0..cells).flat_map(|cell| (cell as f32).to_ne_bytes()).collect();
    Values::new(DType::Float32, shape, Elements::fixed(bytes)).unwrap()
}

#[test]
fn blocks_depend_on_the_shape_alone() {
    assert_eq!(block_shape(&[100, 100])[..], [100, 100]);
    assert_eq!(block_shape(&[1000, 1000])[..], [250, 250]);
    assert_eq!(block_shape(&[1, 1 << 40])[..], [1, 1 << 16]);
    assert_eq!(block_shape(&[0, 5])[..], [1, 5]);
    assert_eq!(block_shape(&[])[..], [0_u64; 0]);
}

#[test]
fn the_hash_is_that_of_the_definition() -> Result<()> {
    let values_ = Values::new(DType::UInt8, &[2], Elements::fixed(vec![3, 4]))?;
    let mut expected = b"hyperslab content hash 1 array\n".to_vec();
    expected.extend_from_slice(&5_u64.to_le_bytes());
    expected.extend_from_slice(b"uint8");
    expected.extend_from_slice(&1_u64.to_le_bytes());
    expected.extend_from_slice(&2_u64.to_le_bytes());
    expected.extend_from_slice(blake3::hash(&[0, 3, 4]).as_bytes());
    assert_eq!(values(&values_)?, blake3::hash(&expected));
    Ok(())
}

#[test]
fn formats_and_chunks_do_not_matter() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let field = field(&[70, 50, 40]);
    let npy = folder.path().join("x.npy");
    crate::export::write(&field, &npy, false)?;
    let expected = values(&field)?;
    let source = crate::open(&npy)?;
    assert_eq!(array(&source.array("/")?)?, expected);
    #[cfg(feature = "zarr")]
    for (number, chunks) in [vec![7, 50, 40], vec![64, 64, 3]].into_iter().enumerate() {
        let target = folder.path().join(format!("{number}.zarr"));
        let options =
            convert::ConvertOptions { chunk_shape: Some(chunks), ..convert::ConvertOptions::default() };
        convert::convert(&source, &target, crate::Format::ZARR, &options, &convert::Progress::default())?;
        let store = crate::open(&target)?;
        assert_eq!(array(&store.array(&store.only_node()?)?)?, expected);
    }
    let mut other = field.elements.as_fixed().unwrap().to_vec();
    other[0] ^= 1;
    let other = Values::new(DType::Float32, &[70, 50, 40], Elements::fixed(other))?;
    assert_ne!(values(&other)?, expected);
    let turned = Values::new(DType::Float32, &[50, 70, 40], field.elements)?;
    assert_ne!(values(&turned)?, expected);
    Ok(())
}

#[test]
fn the_order_of_rows_does_not_matter() -> Result<()> {
    let open = |table| OneNode::open(Node::Table(Arc::new(table)));
    let expected = table(&open(sample()).table("/")?)?;
    let mut turned = sample();
    let picks: Vec<_> = [4, 2, 0, 1, 3].map(|row| (0, row)).to_vec();
    for (column, elements) in turned.schema.columns.iter().zip(&mut turned.batch.columns) {
        *elements = Elements::gather(&column.dtype, &[elements], &picks)?;
    }
    turned.each = 5;
    assert_eq!(table(&open(turned).table("/")?)?, expected);
    let mut fewer = sample();
    fewer.batch.rows = 4;
    assert_ne!(table(&open(fewer).table("/")?)?, expected);
    let store = open(sample());
    assert_eq!(together(&nodes(&store, "/")?), expected);
    Ok(())
}
