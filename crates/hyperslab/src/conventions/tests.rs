use hyperslab_core::{Attribute, Elements, Grid, Values};
use serde_json::json;

use super::*;

fn schema(dtype: DType, attributes: &[(&str, Attribute)]) -> ArraySchema {
    let mut schema = ArraySchema::new(dtype, Grid::new(&[4], &[2]).unwrap());
    attributes.iter().for_each(|(name, value)| schema.attributes.set(*name, value.clone()));
    schema
}

fn float32(value: f32) -> Attribute {
    Values::scalar(DType::Float32, Elements::fixed(value.to_ne_bytes().to_vec())).unwrap().into()
}

fn float64(value: f64) -> Attribute {
    Values::scalar(DType::Float64, Elements::fixed(value.to_ne_bytes().to_vec())).unwrap().into()
}

fn int8(value: i8) -> Attribute {
    Values::scalar(DType::Int8, Elements::fixed(value.to_ne_bytes().to_vec())).unwrap().into()
}

#[test]
fn markers_are_values_of_the_stored_type() {
    // A double that no single-precision float equals, so no cell equals it.
    let typed = Interpretation::of(&schema(DType::Float32, &[("missing_value", float64(1e20))]));
    assert!(typed.missing.is_empty());
    assert!(typed.warnings[0].contains("no cell equals it"), "{:?}", typed.warnings);
    let exact = schema(DType::Float32, &[("missing_value", json!(f64::from(1e20_f32)).into())]);
    assert_eq!(Interpretation::of(&exact).missing, [Number::Float(f64::from(1e20_f32))]);
    // Both markers count, each once, and a float without a fraction is an integer.
    let both = schema(
        DType::Int16,
        &[("_FillValue", float32(-9999.0)), ("missing_value", json!([-9999, 7]).into())],
    );
    assert_eq!(Interpretation::of(&both).missing, [Number::Integer(-9999), Number::Integer(7)]);
    let outside = Interpretation::of(&schema(DType::UInt8, &[("_FillValue", json!(300).into())]));
    assert!(outside.is_identity() && outside.warnings.len() == 1);
}

#[test]
fn contradictions_are_reported_and_ignored() {
    let odd = schema(DType::Int16, &[("scale_factor", "two".into()), ("_FillValue", "none".into())]);
    let odd = Interpretation::of(&odd);
    assert!(odd.is_identity());
    assert_eq!(odd.warnings.len(), 2, "{:?}", odd.warnings);
}

#[test]
fn decoded_types_are_those_of_xarray() {
    let of = |dtype: DType, attributes: &[(&str, Attribute)]| {
        let schema = schema(dtype, attributes);
        Interpretation::of(&schema).dtype(&schema)
    };
    let fill = || ("_FillValue", int8(-1));
    assert_eq!(of(DType::Int16, &[fill()]), DType::Float32);
    assert_eq!(of(DType::Int32, &[fill()]), DType::Float64);
    assert_eq!(of(DType::Float32, &[fill()]), DType::Float32);
    assert_eq!(of(DType::Int8, &[("_Unsigned", "true".into())]), DType::UInt8);
    let (scale, offset) = (("scale_factor", float32(0.5)), ("add_offset", float32(1.0)));
    assert_eq!(of(DType::Int16, &[scale.clone(), offset.clone()]), DType::Float32);
    assert_eq!(of(DType::Int32, &[scale.clone(), offset]), DType::Float64);
    assert_eq!(of(DType::Int16, &[scale.clone(), ("add_offset", float64(1.0))]), DType::Float64);
    assert_eq!(of(DType::Int16, &[scale]), DType::Float32);
    assert_eq!(of(DType::Int16, &[("scale_factor", json!(0.5).into())]), DType::Float64);
}

#[test]
fn values_are_masked_then_unpacked() {
    let spec = UnpackSpec {
        missing: &[Number::Integer(255)],
        valid: (None, Some(Number::Integer(100))),
        scale: Some(0.5),
        offset: Some(1.0),
    };
    let map = unpack(&DType::UInt8, &DType::Float64, &spec, "x").unwrap();
    let mut out = [0_u8; 32];
    map.map(&[0, 100, 101, 255], &mut out);
    let values: Vec<f64> =
        out.chunks_exact(8).map(|bytes| f64::from_ne_bytes(bytes.try_into().unwrap())).collect();
    assert_eq!(values[..2], [1.0, 51.0]);
    assert!(values[2].is_nan() && values[3].is_nan());
}

#[test]
fn a_marker_of_unsigned_values_is_stated_in_the_stored_type() {
    let own = schema(DType::Int8, &[("_Unsigned", "true".into()), ("_FillValue", int8(-1))]);
    assert_eq!(Interpretation::of(&own).missing, [Number::Integer(255)]);
}

#[test]
fn contradictions_are_reported_with_the_assumption_made() {
    let warnings =
        |attributes: &[(&str, Attribute)]| Interpretation::of(&schema(DType::Float32, attributes)).warnings;
    let two = warnings(&[("_FillValue", float32(-1.0)), ("missing_value", float32(-2.0))]);
    assert_eq!(two, ["_FillValue and missing_value differ; both are treated as missing"]);
    assert!(warnings(&[("_FillValue", float32(-1.0)), ("missing_value", float32(-1.0))]).is_empty());
    assert!(warnings(&[("_FillValue", float32(f32::NAN)), ("missing_value", float32(f32::NAN))]).is_empty());
    let units = warnings(&[("units", "fortnights since 2000-01-01".into())]);
    assert!(units[0].contains("fortnights") && units[0].contains("plain numbers"), "{units:?}");
    let calendar = warnings(&[("units", "days since 2000-01-01".into()), ("calendar", "lunar".into())]);
    assert!(calendar[0].contains("lunar"), "{calendar:?}");
    assert!(warnings(&[("units", "days since 2000-01-01".into())]).is_empty());
    assert!(warnings(&[("scale_factor", "two".into())])[0].contains("scale_factor"));
}
