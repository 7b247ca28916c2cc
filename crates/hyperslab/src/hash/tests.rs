use std::sync::Arc;

use hyperslab_core::Elements;

use super::*;
use crate::table::testing::{OneNode, sample};

fn field(shape: &[u64]) -> Values {
    let cells = shape.iter().product::<u64>() as u32;
    let bytes: Vec<u8> = (0..cells).flat_map(|cell| (cell as f32).to_ne_bytes()).collect();
    Values::new(DType::Float32, shape, Elements::fixed(bytes)).unwrap()
}

/// Computed by hand: 300 x 301 cells are more than 65,536, so the longest axis is split into 151 and 150.
#[test]
fn large_boxes_are_hashed_by_halves() -> Result<()> {
    let field = field(&[300, 301]);
    let bytes = field.elements.as_fixed().unwrap();
    let half = |columns: std::ops::Range<usize>| {
        let mut own = vec![0];
        for row in 0..300 {
            own.extend_from_slice(&bytes[(row * 301 + columns.start) * 4..(row * 301 + columns.end) * 4]);
        }
        *blake3::hash(&own).as_bytes()
    };
    let root = blake3::hash(&[&[2][..], &half(0..151), &half(151..301)].concat());
    assert_eq!(tree(&field, &Region::whole(&[300, 301]))?, root);
    Ok(())
}

#[test]
fn a_box_of_one_value_is_hashed_at_once() -> Result<()> {
    let element = Elements::fixed(1.5_f32.to_ne_bytes().to_vec());
    for shape in
        [&[][..], &[0, 3], &[7], &[70_001], &[300, 500], &[500, 300, 2], &[3, 1, 99_999], &[99_999, 3]]
    {
        let cells = product(shape).unwrap() as usize;
        let all = Elements::gather(&DType::Float32, &[&element], &vec![(0, 0); cells])?;
        let expected = tree(&Values::new(DType::Float32, shape, all)?, &Region::whole(shape))?;
        let mut repeated =
            Repeated { dtype: &DType::Float32, element: element.clone(), known: HashMap::new() };
        assert_eq!(repeated.tree(shape)?, expected, "{shape:?}");
    }
    // Halving gives 2^30 shapes that differ only in the order of their axes.
    let mut repeated = Repeated { dtype: &DType::Float32, element, known: HashMap::new() };
    repeated.tree(&[5; 30])?;
    assert!(repeated.known.len() < 1000, "{}", repeated.known.len());
    Ok(())
}

#[test]
fn the_hash_follows_the_definition() -> Result<()> {
    let values_ = Values::new(DType::UInt8, &[2], Elements::fixed(vec![3, 4]))?;
    let mut expected = b"hyperslab content hash 2 array\n".to_vec();
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
