use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Float32Type, Int32Type, TimestampSecondType};
use arrow_schema::DataType;
use hyperslab_core::{Data, EnumType, OpaqueType, StructType, TimeUnit, Validity};

use super::*;

fn longs(numbers: &[i64]) -> Elements {
    Elements::fixed(bytemuck::cast_slice(numbers).to_vec())
}

#[test]
fn numbers_are_passed_on_without_a_copy() -> Result<()> {
    let buffer = hyperslab_core::Buffer::zeroed(16)?.freeze();
    let array = to_array(&DType::Int32, Elements::fixed(buffer.clone()), 4)?;
    let numbers = array.as_primitive::<Int32Type>();
    assert_eq!(numbers.values().as_ptr().cast::<u8>(), buffer.as_ptr());
    // Unaligned buffers must be copied.
    let array = to_array(&DType::Int32, Elements::fixed(buffer.slice(1..13)), 3)?;
    assert_eq!(array.as_primitive::<Int32Type>().values()[..], [0, 0, 0]);
    Ok(())
}

#[test]
fn text_is_passed_on_and_validated() -> Result<()> {
    let validity = Validity::from_flags([true, false, true]);
    let texts = Elements::variable(["a", "", "ß"]).with_validity(Some(validity));
    let array = to_array(&DType::String, texts, 3)?;
    let texts = array.as_string::<i64>();
    assert_eq!((texts.value(0), texts.is_null(1), texts.value(2)), ("a", true, "ß"));
    let bad = to_array(&DType::String, Elements::variable([b"\xff"]), 1).unwrap_err().to_string();
    assert!(bad.contains("string") && bad.to_lowercase().contains("utf"), "{bad}");
    Ok(())
}

#[test]
fn hostile_offsets_are_refused() {
    for offsets in [vec![0, 9, 2], vec![0, 1], vec![0, u64::MAX, 2], vec![5, 1, 2]] {
        let data = Data::Variable { offsets: offsets.clone(), bytes: "ab".into() };
        let refused = to_array(&DType::Bytes, Elements { data, validity: None }, 2);
        assert!(refused.is_err(), "{offsets:?}");
    }
    assert!(to_array(&DType::Int32, Elements::fixed(vec![0; 7]), 2).is_err());
    assert!(to_array(&DType::List(DType::Int8.into()), Elements::fixed(vec![0; 7]), 7).is_err());
}

#[test]
fn dates_keep_their_unit_and_not_a_time_is_null() -> Result<()> {
    let days = to_array(&DType::DateTime(TimeUnit::Day), longs(&[18_262, i64::MIN]), 2)?;
    assert_eq!(days.as_primitive::<Date32Type>().value(0), 18_262);
    assert!(days.is_null(1));
    assert!(to_array(&DType::DateTime(TimeUnit::Day), longs(&[1 << 40]), 1).is_err());
    let hours = to_array(&DType::DateTime(TimeUnit::Hour), longs(&[-1, i64::MIN]), 2)?;
    assert_eq!(hours.as_primitive::<TimestampSecondType>().value(0), -3600);
    assert!(hours.is_null(1));
    assert!(to_array(&DType::DateTime(TimeUnit::Week), longs(&[i64::MAX]), 1).is_err());
    let months = to_array(&DType::DateTime(TimeUnit::Month), longs(&[600]), 1)?;
    assert_eq!(*months.data_type(), DataType::Int64);
    let field = field("m", &DType::DateTime(TimeUnit::Month), false);
    assert_eq!(field.metadata()["hyperslab.dtype"], "datetime64[M]");
    Ok(())
}

#[test]
fn every_type_fits_its_field() -> Result<()> {
    let point = StructType::packed([("a", DType::Int32), ("t", DType::FixedText(2))]);
    let loose = StructType::packed([("a", DType::Int8), ("t", DType::String)]);
    let color = EnumType::new(DType::UInt8, vec![("red".to_owned(), 3)]);
    let types = [
        DType::Bool,
        DType::UInt64,
        DType::Float16,
        DType::Float128,
        DType::Complex64,
        DType::Complex128,
        DType::DateTime(TimeUnit::Nanosecond),
        DType::DateTime(TimeUnit::Attosecond),
        DType::Duration(TimeUnit::Second),
        DType::Duration(TimeUnit::Year),
        DType::FixedBytes(3),
        DType::FixedBytes(0),
        DType::FixedText(2),
        DType::Opaque(OpaqueType { size: 2, tag: "x".to_owned() }.into()),
        color.into(),
        point.into(),
        loose.into(),
        DType::Array(DType::Int16.into(), vec![2, 3]),
        DType::Array(DType::String.into(), vec![2, 2]),
        DType::Bytes,
        DType::Reference,
        DType::List(DType::List(DType::Float32.into()).into()),
    ];
    for dtype in types {
        let zero = Elements::zero(&dtype);
        let three = Elements::gather(&dtype, &[&zero], &[(0, 0); 3])?;
        let column = crate::rows::plain_column("x", dtype.clone(), true);
        for validity in [None, Some(Validity::from_flags([true, false, true]))] {
            let missing = usize::from(validity.is_some());
            let batch = Batch { rows: 3, columns: vec![three.clone().with_validity(validity)] };
            let batch = record_batch(std::slice::from_ref(&column), batch)?;
            assert_eq!(batch.num_rows(), 3, "{dtype}");
            assert_eq!(batch.column(0).null_count(), missing, "{dtype}");
        }
    }
    Ok(())
}

#[test]
fn nested_arrays_keep_their_order() -> Result<()> {
    let dtype = DType::Array(DType::Float32.into(), vec![2, 2]);
    let numbers: Vec<f32> = (0..8_u8).map(f32::from).collect();
    let array = to_array(&dtype, Elements::fixed(bytemuck::cast_slice(&numbers).to_vec()), 2)?;
    let second = array.as_fixed_size_list().value(1);
    let last = second.as_fixed_size_list().value(1);
    assert_eq!(last.as_primitive::<Float32Type>().values()[..], [6.0, 7.0]);
    Ok(())
}
